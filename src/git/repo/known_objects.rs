//! The objects that this process has made durable, and those that it remembers.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use git2::{ObjectType, Oid};

/// Where git has a loose object.
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

fn file_id(file: &Path) -> Option<FileId> {
    let found = std::fs::metadata(file).ok()?;
    Some((found.ino(), found.created().ok()?))
}

impl DurableObjects {
    pub(crate) fn add(&self, common: &Path, objects: BTreeSet<Oid>) {
        let files =
            objects.into_iter().filter_map(|object| Some((object, file_id(&loose(common, &object.to_string())?)?)));
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(files);
    }

    pub(crate) fn has(&self, common: &Path, object: Oid) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&object).copied();
        known.is_some_and(|known| loose(common, &object.to_string()).and_then(|file| file_id(&file)) == Some(known))
    }
}

/// The objects that this process has made; shared by all copies of a repository.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecentObjects(Arc<Mutex<Recent>>);

#[derive(Debug, Default)]
pub(crate) struct Recent {
    pub(crate) objects: BTreeMap<Oid, (ObjectType, Vec<u8>)>,
    pub(crate) order: VecDeque<Oid>,
    pub(crate) bytes: usize,
}

impl RecentObjects {
    pub(crate) fn locked(&self) -> MutexGuard<'_, Recent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
