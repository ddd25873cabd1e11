//! Objects that this process has made: remembered, because a prune may remove them before a ref leads to them, or just after.
//!
//! `git gc --prune=now` removes what no ref led to when it looked. A ref that was set a moment later then leads to nothing.
//! The same bytes make the same object again.

use git2::Oid;

use crate::git::fast::libgit2;
use crate::git::repo::repository::Repository;

/// The most bytes that are remembered; the oldest objects are forgotten first.
const MOST: usize = 16 << 20;

/// The largest object that is remembered. A file that large is in a worktree, too.
const LARGEST: usize = 1 << 20;

/// Remembers those of `objects` that can be read and are not too large.
pub(crate) fn remember(repository: &Repository, objects: impl IntoIterator<Item = Oid>) {
    let recent = repository.recent_objects();
    let known = |object: &Oid| recent.locked().objects.contains_key(object);
    let new: Vec<Oid> = objects.into_iter().filter(|object| !known(object)).collect();
    let read = repository.in_process(|git| {
        let odb = git.odb()?;
        let is_small = |object: &Oid| odb.read_header(*object).is_ok_and(|(size, _)| size <= LARGEST);
        let read = |object| odb.read(object).map(|found| (object, found.kind(), found.data().to_vec()));
        new.into_iter().filter(is_small).map(read).collect::<Result<Vec<_>, _>>()
    });
    let mut recent = recent.locked();
    for (object, kind, bytes) in read.into_iter().flatten() {
        recent.bytes += bytes.len();
        recent.order.push_back(object);
        recent.objects.insert(object, (kind, bytes));
    }
    while recent.bytes > MOST {
        let Some((_, bytes)) = recent.order.pop_front().and_then(|oldest| recent.objects.remove(&oldest)) else {
            break;
        };
        recent.bytes -= bytes.len();
    }
}

impl Repository {
    /// Stores the objects again that this process has made and that git has lost. Returns how many these are.
    pub(crate) fn restore_recent_objects(&self) -> usize {
        let recent = self.recent_objects();
        let recent = recent.locked();
        let lost = self.in_process(|git| {
            let odb = git.odb()?;
            Ok(recent.objects.keys().copied().filter(|object| !odb.exists(*object)).collect::<Vec<_>>())
        });
        let lost = lost.unwrap_or_default();
        let restored = libgit2::change(self, self.main_worktree(), |git| {
            let odb = git.odb()?;
            let known = lost.iter().filter_map(|object| recent.objects.get(object));
            known.map(|(kind, bytes)| odb.write(*kind, bytes).map(drop)).collect::<Result<Vec<()>, _>>()
        });
        restored.map_or(0, |restored| restored.len())
    }
}
