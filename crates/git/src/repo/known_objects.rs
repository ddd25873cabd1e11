//! The objects that this process has made durable, and those that it remembers.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use git2::{ObjectType, Oid};

pub(crate) fn loose(common: &Path, name: &str) -> Option<PathBuf> {
    Some(common.join("objects").join(name.get(..2)?).join(name.get(2..)?))
}

/// Objects that this process has made durable with everything that they lead to, so that it need not do so again: one
/// snapshot of an agent's work holds mostly what the one before held. Each by its file: one that is pruned and comes back is
/// another.
#[derive(Debug, Clone, Default)]
pub(crate) struct DurableObjects(Arc<Mutex<HashMap<Oid, FileId>>>);

/// Inode and birth of a file.
type FileId = (u64, SystemTime);

fn file_id(common: &Path, object: Oid) -> Option<FileId> {
    let found = std::fs::metadata(loose(common, &object.to_string())?).ok()?;
    Some((found.ino(), found.created().ok()?))
}

impl DurableObjects {
    pub(crate) fn add(&self, common: &Path, objects: impl IntoIterator<Item = Oid>) {
        let files = objects.into_iter().filter_map(|object| Some((object, file_id(common, object)?)));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(files);
    }

    pub(crate) fn has(&self, common: &Path, object: Oid) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&object).copied();
        known.is_some() && file_id(common, object) == known
    }
}

/// The contents of the newest objects that this process has made, shared by all copies of a repository: `git gc
/// --prune=now` removes what no ref led to when it looked, and a ref that was set a moment later then leads to nothing. The
/// same bytes make the same object again.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecentObjects(Arc<Mutex<Recent>>);

#[derive(Debug, Default)]
pub(crate) struct Recent {
    pub(crate) objects: BTreeMap<Oid, (ObjectType, Vec<u8>)>,
    order: VecDeque<Oid>,
    bytes: usize,
}

/// The most bytes that are remembered; the oldest objects are forgotten first.
const MOST_BYTES: usize = 16 << 20;

impl RecentObjects {
    pub(crate) fn locked(&self) -> MutexGuard<'_, Recent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recent {
    pub(crate) fn add(&mut self, object: Oid, kind: ObjectType, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        self.order.push_back(object);
        self.objects.insert(object, (kind, bytes));
        while self.bytes > MOST_BYTES {
            let oldest = self.order.pop_front().and_then(|oldest| self.objects.remove(&oldest));
            self.bytes -= oldest.map_or(self.bytes, |(_, bytes)| bytes.len());
        }
    }
}
