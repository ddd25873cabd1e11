//! A small index by itself, in which git adds a few paths without reading or writing the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use git2::Oid;

use super::index_file::Entry;
use super::tree_update::Changes;

/// Paths of an index, with what they hold.
pub(super) type Holdings = BTreeMap<Vec<u8>, (u32, Vec<u8>)>;

/// Makes the index `file` of those of `known` that are at `paths`, which git may need for what it makes of a file, and of
/// those with attributes, which it looks up there if they are not on disk. Answers what is in it.
pub(super) fn fill(file: &Path, known: &[Entry<'_>], paths: &BTreeSet<&[u8]>) -> Option<Holdings> {
    // An empty file is no index; none at all is.
    fs::remove_file(file).ok()?;
    let mut few = git2::Index::open(file).ok()?;
    let mut before = Holdings::new();
    for entry in known.iter().filter(|entry| entry.settled) {
        let wanted = paths.contains(&*entry.path);
        if wanted || entry.path.ends_with(b".gitattributes") {
            few.add(&index_entry(entry)?).ok()?;
            before.insert(entry.path.to_vec(), (entry.mode, entry.object.to_vec()));
        }
    }
    few.write().ok()?;
    Some(before)
}

/// An entry of which nothing but its content is known.
fn index_entry(entry: &Entry<'_>) -> Option<git2::IndexEntry> {
    let never = git2::IndexTime::new(0, 0);
    Some(git2::IndexEntry {
        ctime: never,
        mtime: never,
        dev: 0,
        ino: 0,
        mode: entry.mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id: Oid::from_bytes(entry.object).ok()?,
        flags: 0,
        flags_extended: 0,
        path: entry.path.to_vec(),
    })
}

/// What became of paths; those that are as before are left out.
pub(super) fn changes(before: &Holdings, now: Vec<Entry<'_>>) -> Option<Changes> {
    let holding = |entry: Entry<'_>| (entry.path.into_owned(), (entry.mode, entry.object.to_vec()));
    let now: Holdings = now.into_iter().map(holding).collect();
    let gone = before.keys().filter(|path| !now.contains_key(*path)).map(|path| Some((path.clone(), None)));
    let new = now.iter().filter(|(path, holding)| before.get(*path) != Some(holding));
    let new = new.map(|(path, (mode, object))| Some((path.clone(), Some((*mode, Oid::from_bytes(object).ok()?)))));
    gone.chain(new).collect()
}
