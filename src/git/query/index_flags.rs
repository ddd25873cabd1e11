//! Files that git was told not to compare with the index: `git update-index --assume-unchanged` and `--skip-worktree`.
//! What an agent changes in them is work like any other.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use git2::{IndexEntry, IndexEntryExtendedFlag, IndexEntryFlag};

use crate::git::command::error::GitError;
use crate::git::command::program::{Git, nul_separated, temporary};
use crate::git::repo::git_dir::git_directory;

/// Paths of an index.
#[derive(Default)]
struct Flagged {
    assumed: Vec<Vec<u8>>,
    /// Those that are on disk all the same: the others are left out of the worktree by a sparse selection.
    skipped: Vec<Vec<u8>>,
}

/// Removes the flags from the index of `worktree`, in which no agent is at work.
pub(crate) fn clear_flags(worktree: &Path) -> Result<(), GitError> {
    let index = git_directory(worktree)?.join("index");
    clear_flags_in(worktree, &index, || Git::new(worktree).without_hooks())
}

/// The same in the file `index`, on which `git` works.
pub(crate) fn clear_flags_in<'a>(worktree: &Path, index: &Path, git: impl Fn() -> Git<'a>) -> Result<(), GitError> {
    let flagged = flagged(worktree, index, &git)?;
    for (option, paths) in [("--no-assume-unchanged", flagged.assumed), ("--no-skip-worktree", flagged.skipped)] {
        if paths.is_empty() {
            continue;
        }
        let names = temporary(worktree, &paths.join(&0))?;
        git().stdin(&names).args(["update-index", option, "-z", "--stdin"]).run()?;
    }
    Ok(())
}

/// Whether the index of `worktree` has such files.
pub(crate) fn has_flags(worktree: &Path) -> Result<bool, GitError> {
    let index = git_directory(worktree)?.join("index");
    let flagged = flagged(worktree, &index, &|| Git::new(worktree).reading_only())?;
    Ok(!flagged.assumed.is_empty() || !flagged.skipped.is_empty())
}

fn flagged<'a>(worktree: &Path, index: &Path, git: &impl Fn() -> Git<'a>) -> Result<Flagged, GitError> {
    if !index.exists() {
        return Ok(Flagged::default());
    }
    let flags: Vec<(Vec<u8>, [bool; 2])> = match git2::Index::open(index) {
        Ok(index) => index.iter().map(|entry| (entry.path.clone(), is_flagged(&entry))).collect(),
        // `H path`: `S` is a file that is skipped, a small letter one that is assumed to be unchanged.
        Err(_) => nul_separated(&git().args(["ls-files", "-v", "-z"]).run()?)
            .filter_map(|line| {
                let (tag, path) = (line.first()?, line.get(2..)?);
                Some((path.to_vec(), [tag.is_ascii_lowercase(), tag.eq_ignore_ascii_case(&b'S')]))
            })
            .collect(),
    };
    let on_disk = |path: &[u8]| fs::symlink_metadata(worktree.join(OsStr::from_bytes(path))).is_ok();
    let mut found = Flagged::default();
    for (path, [assumed, skipped]) in flags {
        if skipped && on_disk(&path) {
            found.skipped.push(path.clone());
        }
        if assumed {
            found.assumed.push(path);
        }
    }
    Ok(found)
}

/// Whether an entry is assumed to be unchanged, and whether it is skipped.
fn is_flagged(entry: &IndexEntry) -> [bool; 2] {
    let assumed = entry.flags & IndexEntryFlag::VALID.bits() != 0;
    [assumed, entry.flags_extended & IndexEntryExtendedFlag::SKIP_WORKTREE.bits() != 0]
}
