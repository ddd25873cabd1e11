//! Private copies of a worktree's index, and what makes git look at every file in spite of it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lanewright_files::handle::set_modified;
use lanewright_files::regular_file::Links;
use lanewright_files::{atomic, directory, if_there, regular_file};

use crate::command::{Git, Result, io_error, nul_separated, path_text};
use crate::fast::libgit2::{self, IndexEntry};
use crate::query::split_tab;
use crate::repo::git_directory;

/// Copies the worktree's index, so that what it knows of unchanged files need not be found out again.
pub(crate) fn copy_index(worktree: &Path, index: &Path) -> Result<()> {
    let source = git_directory(worktree)?.join("index");
    let staged = directory::with_suffix(index, ".new");
    let copy = || -> io::Result<()> {
        // The copy must not look younger than it is: git takes a file written in the same second as the index for
        // changed, one written before it for known.
        let modified = fs::metadata(&source)?.modified()?;
        regular_file::copy(&source, &staged)?;
        set_modified(&staged, Links::Refuse, modified)?;
        Ok(atomic::rename(&staged, index)?)
    };
    if_there(copy()).map(drop).map_err(io_error("copy", &source))
}

/// Removes the flags from the index of `worktree`, in which no agent is at work. Returns what the index holds.
///
/// Flagged paths are those that git was told not to compare with the index, by `git update-index --assume-unchanged` or
/// `--skip-worktree`. What an agent changes in them is work like any other.
pub(crate) fn clear_flags(worktree: &Path) -> Result<Vec<IndexEntry>> {
    let index = git_directory(worktree)?.join("index");
    clear_flags_in(worktree, &index, || Git::new(worktree).without_hooks())
}

/// The same in the file `index`, on which `git` works.
pub(crate) fn clear_flags_in<'a>(worktree: &Path, index: &Path, git: impl Fn() -> Git<'a>) -> Result<Vec<IndexEntry>> {
    let entries = entries_in(index, &git)?;
    for (option, has_flag) in FLAGS {
        let flagged = entries.iter().filter(|entry| has_flag(worktree, entry));
        let paths: Vec<&[u8]> = flagged.map(|entry| entry.path.as_slice()).collect();
        if !paths.is_empty() {
            git().input(paths.join(&0)).args(["update-index", option, "-z", "--stdin"]).run()?;
        }
    }
    Ok(entries)
}

/// Puts the entries back that were there `before` in the index of `git`, to which all files of `worktree` were added, of files
/// that still hold them byte by byte; if there are any, and `may` allows it.
///
/// Git would store such a file otherwise by rules that came after it was committed, for line ends or by a filter, so it
/// differs in every new worktree, and nobody has changed it.
pub(crate) fn restore_untouched<'a>(
    worktree: &Path,
    git: impl Fn() -> Git<'a>,
    (before, after): (&[IndexEntry], &mut [IndexEntry]),
    may: impl FnOnce() -> Result<bool>,
) -> Result<()> {
    let known: BTreeMap<&[u8], &IndexEntry> = before.iter().map(|entry| (entry.path.as_slice(), entry)).collect();
    let pairs = after.iter_mut().filter_map(|entry| Some((*known.get(entry.path.as_slice())?, entry)));
    let untouched =
        |(old, entry): &(&IndexEntry, &mut IndexEntry)| old.object != entry.object && holds_as_committed(worktree, old);
    let untouched: Vec<_> = pairs.filter(untouched).collect();
    if untouched.is_empty() || !may()? {
        return Ok(());
    }
    let mut input = Vec::new();
    for (old, entry) in untouched {
        entry.object = old.object;
        let object = old.object.map(|object| object.to_string()).unwrap_or_default();
        input.extend(format!("{:o} {object} 0\t", entry.mode).bytes().chain(old.path.iter().copied()).chain([0]));
    }
    git().input(input).args(["update-index", "-z", "--index-info"]).run()?;
    Ok(())
}

/// Whether the file of an entry is as the entry says, byte by byte.
pub(crate) fn is_untouched(worktree: &Path, entry: &IndexEntry) -> bool {
    let file = fs::symlink_metadata(worktree.join(OsStr::from_bytes(&entry.path)));
    let mode = file.map(|file| if file.mode() & 0o100 == 0 { 0o100_644 } else { 0o100_755 });
    mode.is_ok_and(|mode| mode == entry.mode) && holds_as_committed(worktree, entry)
}

/// Whether the file of an entry, executable or not, holds byte by byte what the entry does.
fn holds_as_committed(worktree: &Path, entry: &IndexEntry) -> bool {
    let file = worktree.join(OsStr::from_bytes(&entry.path));
    let is_file = fs::symlink_metadata(&file).is_ok_and(|file| file.is_file());
    is_file && entry.object.is_some_and(|blob| libgit2::holds(&file, blob))
}

pub(crate) fn has_flags(worktree: &Path, entries: &[IndexEntry]) -> bool {
    FLAGS.iter().any(|(_, has_flag)| entries.iter().any(|entry| has_flag(worktree, entry)))
}

/// The options that remove flags, each with whether an entry has that flag.
const FLAGS: [(&str, HasFlag); 2] =
    [("--no-assume-unchanged", |_, entry| entry.assumed), ("--no-skip-worktree", is_skipped)];

type HasFlag = fn(&Path, &IndexEntry) -> bool;

/// Whether a path is skipped although it is on disk: the others are left out of the worktree by a sparse selection.
fn is_skipped(worktree: &Path, entry: &IndexEntry) -> bool {
    entry.skipped && fs::symlink_metadata(worktree.join(OsStr::from_bytes(&entry.path))).is_ok()
}

pub(crate) fn index_entries(worktree: &Path) -> Result<Vec<IndexEntry>> {
    entries_in(&git_directory(worktree)?.join("index"), &|| Git::new(worktree).reading_only())
}

/// The symbolic links in the index of `worktree`, relative to it.
///
/// # Errors
/// [`GitError`](crate::GitError): the index cannot be read.
pub fn tracked_links(worktree: &Path) -> Result<Vec<PathBuf>> {
    let links = index_entries(worktree)?.into_iter().filter(|entry| entry.mode == SYMBOLIC_LINK);
    Ok(links.map(|entry| OsString::from_vec(entry.path).into()).collect())
}

/// The mode of a symbolic link in an index.
const SYMBOLIC_LINK: u32 = 0o120_000;

/// The same in the file `index`, which `git` reads where libgit2 does not.
pub(crate) fn entries_in<'a>(index: &Path, git: &impl Fn() -> Git<'a>) -> Result<Vec<IndexEntry>> {
    if !index.exists() {
        return Ok(Vec::new());
    }
    if let Some(known) = libgit2::index_entries(index) {
        return Ok(known);
    }
    let listing = git().args(["ls-files", "-v", "--stage", "-z"]).run()?;
    Ok(nul_separated(&listing).filter_map(listed).collect())
}

/// Reads `H 100644 OBJECT 0\tpath`: `S` is a file that is skipped, a small letter one that is assumed to be unchanged.
fn listed(line: &[u8]) -> Option<IndexEntry> {
    let (facts, path) = split_tab(line)?;
    let tag = facts.first()?;
    Some(IndexEntry {
        path: path.to_vec(),
        mode: u32::from_str_radix(&path_text(facts.get(2..8)?), 8).ok()?,
        object: path_text(facts.get(9..)?.split(|&byte| byte == b' ').next()?).parse().ok(),
        conflicts: facts.last() != Some(&b'0'),
        assumed: tag.is_ascii_lowercase(),
        skipped: tag.eq_ignore_ascii_case(&b'S'),
        size: None,
    })
}

/// Whether `worktree` holds anything that its index does not name: a file, ignored or not, or an empty directory.
pub(crate) fn has_untracked(worktree: &Path) -> Result<bool> {
    let tracked = index_entries(worktree)?.into_iter().map(|entry| entry.path).collect();
    Ok(find_untracked(worktree, b"", &tracked, &mut |_| true))
}

/// Gives `found` what is not `tracked` in a directory, whose path in the worktree is `prefix`, until it returns true: files,
/// directories without a tracked file, and what cannot be read. Returns whether it did.
pub(crate) fn find_untracked(
    directory: &Path,
    prefix: &[u8],
    tracked: &BTreeSet<Vec<u8>>,
    found: &mut impl FnMut(Vec<u8>) -> bool,
) -> bool {
    let Ok(entries) = fs::read_dir(directory) else { return found(prefix.to_vec()) };
    for entry in entries {
        let Ok(entry) = entry else { return found(prefix.to_vec()) };
        let path = [prefix, entry.file_name().as_bytes()].concat();
        if tracked.contains(&path) || path == b".git" {
            continue;
        }
        let below = [&path, &b"/"[..]].concat();
        let is_above_tracked = tracked.range(below.clone()..).next().is_some_and(|next| next.starts_with(&below));
        let ends = if is_above_tracked && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find_untracked(&entry.path(), &below, tracked, found)
        } else {
            found(path)
        };
        if ends {
            return true;
        }
    }
    false
}

/// Has git read every file of `worktree` again, whatever the index in the file `index` knows of it, where a program can
/// write to a file through memory without changing its times. Elsewhere nothing happens.
///
/// Git reads a file that is not older than the index, so the index is dated to the beginning of time; 0 is "unknown" to git.
pub(crate) fn distrust_times(worktree: &Path, index: &Path) {
    if hides_mapped_writes(worktree) {
        date_to_the_beginning(index);
    }
}

fn date_to_the_beginning(index: &Path) {
    let beginning = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    if index.exists()
        && let Err(error) = set_modified(index, Links::Refuse, beginning)
    {
        tracing::warn!("{} cannot be dated back: {error}", index.display());
    }
}

/// Whether only the first write to a page through memory changes a file's times under `path`. Where files are on a disk,
/// each write after the page was written back does as well.
#[cfg(target_os = "linux")]
fn hides_mapped_writes(path: &Path) -> bool {
    /// As `statfs` names them: tmpfs, ramfs.
    const NEVER_WRITTEN_BACK: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    rustix::fs::statfs(path).is_ok_and(|found| NEVER_WRITTEN_BACK.contains(&(found.f_type as u64 & 0xffff_ffff)))
}

/// The same where nobody has tried it.
#[cfg(not(target_os = "linux"))]
fn hides_mapped_writes(_path: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn index_dated_back_makes_git_reread_files() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        // Only size and time count, so that a write can hide from git as one through memory does.
        let git = |arguments: &[&str]| {
            let git = Git::new(&place).configured("core.trustctime=false").configured("core.checkStat=minimal");
            git.args(arguments).line().unwrap()
        };
        let write = |text: &str| {
            fs::write(place.join("file"), text).unwrap();
            let file = File::options().write(true).open(place.join("file")).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
        };
        git(&["init", "--quiet"]);
        write("before");
        git(&["add", "file"]);
        write("after!");
        let index = place.join(".git/index");
        let found = || git(&["--no-optional-locks", "diff-files", "--name-only"]);
        assert_eq!(found(), "", "git believes the times");
        date_to_the_beginning(&index);
        assert_eq!(fs::metadata(&index).unwrap().mtime(), 1);
        assert_eq!(found(), "file");
    }
}
