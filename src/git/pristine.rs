//! Whether a worktree holds just what its head holds, found out without a process and in one walk.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use git2::{Index, IndexEntry, IndexEntryExtendedFlag, IndexEntryFlag, ObjectType, Oid};

use super::open_index;
use super::repository::Repository;
use super::slot::git_directory;
use crate::fs::regular_file;
use crate::model::CommitId;

/// How many files may have to be read because they are as young as the index. Git does that with more threads, and
/// writes down what it found.
const READ_AT_MOST: usize = 1000;

/// Whether `worktree` holds what its head holds, and not a file more, ignored ones and empty directories included.
///
/// `false` is no answer: git has to be asked what differs, if anything does. That is so with submodules, a sparse
/// selection, an unfinished merge, or whatever else makes an index more than a list of files.
pub(crate) fn is_pristine(repository: &Repository, worktree: &Path) -> bool {
    look(repository, worktree, None).is_some_and(|look| look.index_is_head && look.has_no_more())
}

/// The same of `commit`, wherever the head is.
pub(crate) fn is_pristine_at(repository: &Repository, worktree: &Path, commit: &CommitId) -> bool {
    look(repository, worktree, Some(commit)).is_some_and(|look| look.index_is_head && look.has_no_more())
}

/// Whether no file that `worktree` tracks is changed or staged; what is not tracked is not looked at. `false` is no answer.
pub(crate) fn is_unchanged(repository: &Repository, worktree: &Path) -> bool {
    look(repository, worktree, None).is_some_and(|look| look.index_is_head)
}

/// A worktree whose files are as its index has them.
struct Look<'a> {
    worktree: &'a Path,
    files: usize,
    index_is_head: bool,
}

impl Look<'_> {
    /// All files of the index are there, so where there are as many as it has, these are they and no others.
    fn has_no_more(&self) -> bool {
        files_below(self.worktree).ok().flatten() == Some(self.files + 1)
    }
}

/// Compares files with the index and the index with `commit`, or with the head. `None`: a file is not as indexed, or that
/// cannot be told.
fn look<'a>(repository: &Repository, worktree: &'a Path, commit: Option<&CommitId>) -> Option<Look<'a>> {
    let file = git_directory(worktree).ok()?.join("index");
    let written = fs::metadata(&file).ok()?.mtime();
    let index = Index::open(&file).ok()?;
    let mut read = 0;
    let mut directories = HashSet::new();
    for entry in index.iter() {
        let path = worktree.join(OsStr::from_bytes(&entry.path));
        if !is_below_directories(&path, worktree, &mut directories) {
            return None;
        }
        read += usize::from(is_young(&entry, written));
        if read > READ_AT_MOST || !is_as_indexed(&entry, &path, &fs::symlink_metadata(&path).ok()?, written).ok()? {
            return None;
        }
    }
    let commit = commit.cloned().or_else(|| repository.head_at(worktree).ok().map(|head| head.commit))?;
    let staged = repository.in_process(|git| open_index::staged(git, &file, &commit))?;
    Some(Look { worktree, files: index.len(), index_is_head: staged.is_empty() })
}

/// Whether no directory on the way from `worktree` to `path` is a link: what is behind one is not in the worktree.
fn is_below_directories(path: &Path, worktree: &Path, known: &mut HashSet<PathBuf>) -> bool {
    let above = path.ancestors().skip(1).take_while(|above| *above != worktree);
    for directory in above {
        if known.contains(directory) {
            return true;
        }
        if !fs::symlink_metadata(directory).is_ok_and(|found| found.is_dir()) {
            return false;
        }
        known.insert(directory.to_owned());
    }
    true
}

/// Whether the entry is a file or a link that git would look at like any other.
fn is_plain(entry: &IndexEntry) -> bool {
    const STAGE: u16 = 0x3000;
    let special = IndexEntryExtendedFlag::INTENT_TO_ADD | IndexEntryExtendedFlag::SKIP_WORKTREE;
    let valid = entry.flags & (STAGE | IndexEntryFlag::VALID.bits()) == 0;
    valid && entry.flags_extended & special.bits() == 0 && matches!(entry.mode, 0o100644 | 0o100755 | 0o120000)
}

/// Git compares whole seconds: a file that is as young as its index, written at `index`, may have changed after it.
fn is_young(entry: &IndexEntry, index: i64) -> bool {
    i64::from(entry.mtime.seconds()) >= index
}

/// Whether `file`, which is at `path`, is as an index has it that was written at `index`, in seconds.
pub(super) fn is_as_indexed(entry: &IndexEntry, path: &Path, file: &Metadata, index: i64) -> io::Result<bool> {
    let same = is_plain(entry) && has_the_marks(entry, file);
    Ok(same && (!is_young(entry, index) || holds(path, file, entry.id)?))
}

fn has_the_marks(entry: &IndexEntry, file: &Metadata) -> bool {
    let mode = match entry.mode {
        0o120000 => file.is_symlink(),
        mode => file.is_file() && (mode & 0o100 != 0) == (file.mode() & 0o100 != 0),
    };
    let times = [(entry.mtime, file.mtime(), file.mtime_nsec()), (entry.ctime, file.ctime(), file.ctime_nsec())];
    let same = |&(known, seconds, nanoseconds): &(git2::IndexTime, i64, i64)| {
        i64::from(known.seconds()) == seconds && i64::from(known.nanoseconds()) == nanoseconds
    };
    mode && times.iter().all(same) && entry.ino == file.ino() as u32 && entry.file_size == file.size() as u32
}

/// Whether a file's bytes, or where a link leads, are those of the blob. Then nothing is lost with it.
fn holds(path: &Path, file: &Metadata, blob: Oid) -> io::Result<bool> {
    let bytes = match file.is_symlink() {
        true => fs::read_link(path)?.into_os_string().into_encoded_bytes(),
        false => regular_file::read(path)?,
    };
    Ok(Oid::hash_object(ObjectType::Blob, &bytes).is_ok_and(|found| found == blob))
}

/// How many files and links are below `directory`; `None`: there is a directory without any.
fn files_below(directory: &Path) -> io::Result<Option<usize>> {
    let mut count = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        count += match entry.file_type()?.is_dir() {
            true => match files_below(&entry.path())? {
                None | Some(0) => return Ok(None),
                Some(inner) => inner,
            },
            false => 1,
        };
    }
    Ok(Some(count))
}
