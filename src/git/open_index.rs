//! A worktree's index, open in this process: what it stands for, and changing it.
//!
//! Git writes into an index which tree it stands for; what libgit2 writes has gaps there, and to fill them takes a look at
//! every directory. So what we write, we note in a file beside it.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use git2::{DiffOptions, Index, IndexEntry, IndexTime, Oid, Tree};

use super::index_file::{checksum, extensions_of, noted_tree};
use super::library::{Difference, canonical, oid};
use super::pristine::is_as_indexed;
use super::slot::git_directory;
use crate::fs::handle::set_modified;
use crate::fs::regular_file::Links;
use crate::fs::{atomic, regular_file};
use crate::model::CommitId;

/// The index of a worktree, or one like it.
pub(super) struct OpenIndex {
    /// What is in it.
    pub(super) entries: Index,
    file: PathBuf,
    bytes: Vec<u8>,
    /// When it was written, in seconds.
    written: i64,
    opened: SystemTime,
}

impl OpenIndex {
    /// Reads the index of `worktree`.
    pub(super) fn of(worktree: &Path) -> Result<Self, git2::Error> {
        let directory = git_directory(worktree).map_err(|error| failed(&error))?;
        Self::at(directory.join("index"))
    }

    /// Reads the index in `file`.
    pub(super) fn at(file: PathBuf) -> Result<Self, git2::Error> {
        let opened = SystemTime::now();
        let look = || fs::metadata(&file).map(|it| (it.ino(), it.mtime(), it.mtime_nsec(), it.len()));
        let before = look().map_err(|error| failed(&error))?;
        let bytes = regular_file::read(&file).map_err(|error| failed(&error))?;
        let entries = Index::open(&file)?;
        if look().ok() != Some(before) {
            return Err(git2::Error::from_str("another process wrote the index meanwhile"));
        }
        Ok(Self { entries, file, bytes, written: before.1, opened })
    }

    /// Whether it holds what `tree` holds.
    pub(super) fn is(&self, git: &git2::Repository, tree: &Tree<'_>) -> Result<bool, git2::Error> {
        Ok(stands_for(&self.file, &self.bytes, tree.id()) || index_differs(git, tree, &self.entries)?.is_empty())
    }

    /// Whether something in it would be lost: libgit2 keeps what it does not know of no index.
    pub(super) fn has_more(&self) -> bool {
        extensions_of(&self.bytes).is_none_or(|names| names.iter().any(|name| !RENEWED.contains(name)))
    }

    /// A file of ours in its directory.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.file.with_file_name(name)
    }

    /// Whether `place` holds what the index has at `path`: nothing, or a file as it was when that was written.
    pub(super) fn has_as_is(&self, path: &[u8], place: &Path) -> bool {
        match (self.entries.get_path(Path::new(OsStr::from_bytes(path)), 0), fs::symlink_metadata(place)) {
            (None, Err(error)) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
            (Some(entry), Ok(found)) => is_as_indexed(&entry, place, &found, self.written).unwrap_or_default(),
            _ => false,
        }
    }

    /// Writes it. It was what the tree is that was changed, and is what `tree` is now.
    ///
    /// Git takes a file for known if the index is younger. What somebody changes since the files were looked at, at `since`
    /// or when the index was opened, must not be, so it is as old as that look, and a little older: clocks are coarse.
    pub(super) fn write(mut self, tree: &Oid, since: Option<SystemTime>) -> Result<(), git2::Error> {
        self.entries.write()?;
        let looked = since.unwrap_or(self.opened) - COARSE;
        set_modified(&self.file, Links::Follow, looked).map_err(|error| failed(&error))?;
        // Who finds no note looks for itself.
        let _ = self.note(tree);
        Ok(())
    }

    fn note(&self, tree: &Oid) -> io::Result<()> {
        let index = regular_file::read(&self.file)?;
        match checksum(&index) {
            Some(name) => Ok(atomic::replace(&note_beside(&self.file), &[name, tree.as_bytes()].concat())?),
            None => Ok(()),
        }
    }
}

/// The parts of an index that git makes anew where they are missing.
const RENEWED: [&[u8]; 4] = [b"TREE", b"REUC", b"EOIE", b"IEOT"];

/// More than a file system's clock may be behind the system's.
const COARSE: Duration = Duration::from_millis(100);

fn failed(error: &dyn std::error::Error) -> git2::Error {
    git2::Error::from_str(&error.to_string())
}

/// The file that tells the tree that an index stands for, after the checksum of that index.
fn note_beside(index: &Path) -> PathBuf {
    let own = index.with_file_name("lanekeeper");
    if own.is_dir() { own.join("index.tree") } else { index.with_file_name("lanekeeper.tree") }
}

/// The paths in which the index in the file `index` differs from a commit, as `git diff-index --cached` tells them.
pub(super) fn staged(git: &git2::Repository, index: &Path, commit: &CommitId) -> Result<Vec<Difference>, git2::Error> {
    let tree = git.find_commit(oid(commit)?)?.tree()?;
    if regular_file::read(index).is_ok_and(|bytes| stands_for(index, &bytes, tree.id())) {
        return Ok(Vec::new());
    }
    index_differs(git, &tree, &Index::open(index)?)
}

fn index_differs(git: &git2::Repository, tree: &Tree<'_>, index: &Index) -> Result<Vec<Difference>, git2::Error> {
    Ok(deltas(&git.diff_tree_to_index(Some(tree), Some(index), Some(&mut every_difference()))?))
}

fn stands_for(index: &Path, bytes: &[u8], tree: Oid) -> bool {
    let ours = || {
        let note = regular_file::read(note_beside(index)).ok()?;
        note.strip_prefix(checksum(bytes)?).map(|noted| noted == tree.as_bytes())
    };
    noted_tree(bytes) == Some(tree.as_bytes()) || ours() == Some(true)
}

/// What an index says of a file at `path` that holds a blob: of the numbers, git keeps the lower 32 bits.
pub(super) fn indexed(path: &[u8], id: Oid, mode: u32, file: &Metadata) -> IndexEntry {
    let time = |seconds: i64, nanoseconds: i64| IndexTime::new(seconds as i32, nanoseconds as u32);
    IndexEntry {
        ctime: time(file.ctime(), file.ctime_nsec()),
        mtime: time(file.mtime(), file.mtime_nsec()),
        dev: file.dev() as u32,
        ino: file.ino() as u32,
        mode,
        uid: file.uid(),
        gid: file.gid(),
        file_size: file.len() as u32,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.to_vec(),
    }
}

fn every_difference() -> DiffOptions {
    let mut options = DiffOptions::new();
    options.include_typechange(true).ignore_case(false).ignore_submodules(false);
    options
}

fn deltas(diff: &git2::Diff<'_>) -> Vec<Difference> {
    let mode = |file: git2::DiffFile<'_>| if file.exists() { canonical(u32::from(file.mode())) } else { 0 };
    let same = |delta: &git2::DiffDelta<'_>| {
        let (old, new) = (delta.old_file(), delta.new_file());
        old.id() == new.id() && mode(old) == mode(new)
    };
    let difference = |delta: git2::DiffDelta<'_>| {
        let path = delta.new_file().path_bytes().or_else(|| delta.old_file().path_bytes()).unwrap_or_default();
        Difference { path: path.to_vec(), from: mode(delta.old_file()), to: mode(delta.new_file()) }
    };
    diff.deltas().filter(|delta| !same(delta)).map(difference).collect()
}

#[cfg(test)]
mod tests {
    use super::super::program::Git;
    use super::super::repository::Repository;
    use super::*;

    #[test]
    fn a_note_holds_for_the_index_that_it_was_made_for_and_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        let git = |arguments: &[&str]| Git::new(&place).args(arguments).run().unwrap();
        git(&["init", "--quiet"]);
        fs::write(place.join("file"), "text").unwrap();
        git(&["add", "--all"]);
        git(&["-c", "user.name=a", "-c", "user.email=a@b.invalid", "commit", "--quiet", "--message=first"]);
        let repository = Repository::locate(&place).unwrap();
        let head = repository.head_at(&place).unwrap().commit;
        let staged = || {
            repository.in_process(|git| {
                let found = staged(git, &place.join(".git/index"), &head)?;
                Ok(found.into_iter().map(|it| String::from_utf8_lossy(&it.path).into_owned()).collect::<Vec<_>>())
            })
        };
        let mut open = OpenIndex::of(&place).unwrap();
        open.entries.remove(Path::new("file"), 0).unwrap();
        let tree = repository.in_process(|git| Ok(git.find_commit(oid(&head)?)?.tree_id())).unwrap();
        // Not so: but what the note says is believed, or it would be of no use.
        open.write(&tree, None).unwrap();
        assert_eq!(staged(), Some(Vec::new()));
        git(&["update-index", "--index-version=4"]);
        assert_eq!(staged(), Some(vec!["file".to_owned()]));
    }
}
