//! Whether a worktree holds just what its head holds, found out without a process and in one walk.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use git2::{IndexEntry, IndexEntryExtendedFlag, IndexEntryFlag, ObjectType, Oid};

use super::slot::git_directory;

/// How many files may have to be read because they are as young as the index. Git does that with more threads, and
/// writes down what it found.
const READ_AT_MOST: usize = 200;

/// Whether `worktree` holds what its head holds, and not a file more, ignored ones and empty directories included.
///
/// `false` is no answer: git has to be asked what differs, if anything does. That is so with submodules, a sparse
/// selection, an unfinished merge, or whatever else makes an index more than a list of files.
pub(crate) fn is_pristine(worktree: &Path) -> bool {
    look(worktree).unwrap_or(false)
}

fn look(worktree: &Path) -> Option<bool> {
    let written = fs::metadata(git_directory(worktree).ok()?.join("index")).ok()?.mtime();
    let git = git2::Repository::open(worktree).ok()?;
    let index = git.index().ok()?;
    let mut read = 0;
    for entry in index.iter() {
        let path = worktree.join(OsStr::from_bytes(&entry.path));
        let file = fs::symlink_metadata(&path).ok()?;
        if !is_plain(&entry) || !is_as_indexed(&entry, &file) {
            return Some(false);
        }
        // Git compares whole seconds: a file that is as young as the index may have changed after it.
        if i64::from(entry.mtime.seconds()) >= written {
            read += 1;
            if read > READ_AT_MOST || !holds(&path, &file, entry.id).ok()? {
                return Some(false);
            }
        }
    }
    // All files of the index are there, so as many files as it has are these and no others.
    if files_below(worktree).ok()?? != index.len() + 1 {
        return Some(false);
    }
    let tree = git.head().ok()?.peel_to_tree().ok()?;
    Some(git.diff_tree_to_index(Some(&tree), Some(&index), None).ok()?.deltas().len() == 0)
}

/// Whether the entry is a file or a link that git would look at like any other.
fn is_plain(entry: &IndexEntry) -> bool {
    const STAGE: u16 = 0x3000;
    let special = IndexEntryExtendedFlag::INTENT_TO_ADD | IndexEntryExtendedFlag::SKIP_WORKTREE;
    let valid = entry.flags & (STAGE | IndexEntryFlag::VALID.bits()) == 0;
    valid && entry.flags_extended & special.bits() == 0 && matches!(entry.mode, 0o100644 | 0o100755 | 0o120000)
}

fn is_as_indexed(entry: &IndexEntry, file: &Metadata) -> bool {
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
        false => fs::read(path)?,
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
