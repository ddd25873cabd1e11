//! Git's own directories for worktrees, read from their files: git's own listing fails while another process adds one.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use lanewright_files::{directory, regular_file};
use lanewright_model::{CommitId, Timestamp};

use crate::command::{GitError, Result, entry_behind, io_error, link_target, read_line};
use crate::repo::{Repository, branch_reference};

#[derive(Debug, Clone)]
pub(crate) struct WorktreeEntry {
    /// Git's own directory for it: the common directory, or one in `<common>/worktrees/`.
    pub(crate) directory: PathBuf,
    /// Where its files should be; they may be gone.
    pub(crate) worktree: PathBuf,
}

impl Repository {
    /// The worktree that has `branch` checked out, or will have it when its rebase ends.
    pub fn where_checked_out(&self, branch: &str) -> Result<Option<PathBuf>> {
        Ok(self.all_checked_out(branch)?.into_iter().next())
    }

    /// The same for every worktree: `--ignore-other-worktrees` allows more than one.
    pub fn all_checked_out(&self, branch: &str) -> Result<Vec<PathBuf>> {
        let entries = self.all_worktrees()?.into_iter().filter(|entry| entry.holds(branch) && entry.is_there());
        Ok(entries.map(|entry| entry.worktree).collect())
    }

    /// Where files of the repository are checked out: the main worktree, and every linked one.
    ///
    /// # Errors
    /// Git's directories for worktrees cannot be read.
    pub fn checkouts(&self) -> Result<Vec<PathBuf>> {
        Ok(self.all_worktrees()?.into_iter().map(|entry| entry.worktree).collect())
    }

    pub(crate) fn all_worktrees(&self) -> Result<Vec<WorktreeEntry>> {
        let worktree = self.main_worktree().to_owned();
        let main = WorktreeEntry { directory: git_directory(&worktree)?, worktree };
        // Of a bare repository it is a linked one.
        let others = self.linked_worktrees()?.into_iter().filter(|entry| entry.worktree != main.worktree);
        Ok(std::iter::once(main.clone()).chain(others).collect())
    }

    /// Every linked worktree that is registered completely enough to have a place.
    pub(crate) fn linked_worktrees(&self) -> Result<Vec<WorktreeEntry>> {
        let entries = directory::directories(&self.entries_directory())?.into_iter();
        let placed = entries.filter_map(|directory| {
            let worktree = registered_place(&directory)?;
            Some(WorktreeEntry { directory, worktree })
        });
        Ok(placed.collect())
    }

    /// Where git keeps its directories for linked worktrees.
    pub(crate) fn entries_directory(&self) -> PathBuf {
        self.common_dir().join("worktrees")
    }

    /// The linked worktree that is registered at `path`, whatever is there.
    pub(crate) fn entry_at(&self, path: &Path) -> Result<Option<WorktreeEntry>> {
        Ok(self.linked_worktrees()?.into_iter().find(|entry| entry.worktree == path))
    }

    /// Where the worktree at `path` last stood, if it is on `branch`, whether or not that exists: one that is on no branch
    /// stands at a merge that is being tested.
    pub fn last_head_on(&self, path: &Path, branch: &str) -> Option<CommitId> {
        self.entry_at(path).ok()?.filter(|entry| entry.holds(branch))?.last_head()
    }
}

impl WorktreeEntry {
    /// Whether the worktree is where it should be; it may be gone, or something else may be in its place.
    pub(crate) fn is_there(&self) -> bool {
        git_directory(&self.worktree).is_ok_and(|named| same_place(&named, &self.directory))
    }

    /// Whether the worktree is on `branch`, or will be when its rebase ends.
    pub(crate) fn holds(&self, branch: &str) -> bool {
        let full = branch_reference(branch);
        let rebasing = ["rebase-merge/head-name", "rebase-apply/head-name"];
        let says = |file: &str, line: &str| read_line(&self.directory.join(file)).as_deref() == Some(line);
        rebasing.iter().any(|file| says(file, &full)) || says("HEAD", &format!("ref: {full}"))
    }

    /// Where the worktree last stood according to its reflog.
    pub(crate) fn last_head(&self) -> Option<CommitId> {
        let log = head_log(&self.directory, None).ok()?.into_iter();
        // A branch that is deleted below its worktree leaves a line that leads to nothing.
        log.map(|(commit, _)| commit).find(|commit| commit.as_str().bytes().any(|digit| digit != b'0'))
    }
}

/// The entries of the log of a head, in git's `directory` for its worktree, the newest first: where each moved the head,
/// and its message. None without a log. With `tail` only what is in the last bytes, so many: a message has no limit, so
/// that the newest entry of all may be left out.
pub(crate) fn head_log(directory: &Path, tail: Option<u64>) -> Result<Vec<(CommitId, String)>> {
    let path = directory.join("logs/HEAD");
    let Ok(mut log) = regular_file::open(&path) else { return Ok(Vec::new()) };
    let mut end = Vec::new();
    let length = log.metadata().map_err(io_error("read", &path))?.len();
    let start = tail.map_or(0, |tail| length.saturating_sub(tail));
    let read = log.seek(SeekFrom::Start(start)).and_then(|_| log.read_to_end(&mut end));
    read.map_err(io_error("read", &path))?;
    Ok(end.split(|&byte| byte == b'\n').rev().filter_map(log_entry).collect())
}

/// From where to where the head of `worktree` was moved last, since a moment, according to its reflog.
pub fn last_move_of_head(worktree: &Path, since: Timestamp) -> Option<(CommitId, CommitId)> {
    let log = regular_file::read(git_directory(worktree).ok()?.join("logs/HEAD")).ok()?;
    let text = String::from_utf8_lossy(&log);
    let (names, _) = text.lines().next_back()?.split_once('\t')?;
    let mut words = names.split(' ');
    let (old, new) = (CommitId::new(words.next()?).ok()?, CommitId::new(words.next()?).ok()?);
    let at: i64 = words.rev().nth(1)?.parse().ok()?;
    (at >= since.unix_millis() / 1000).then_some((old, new))
}

/// Whether the head of `worktree` came to `commit` by a checkout, so that the commit was made elsewhere.
pub fn came_by_checkout(worktree: &Path, commit: &CommitId) -> bool {
    let last = git_directory(worktree).and_then(|directory| head_log(&directory, Some(TAIL)));
    let last = last.ok().and_then(|log| log.into_iter().next());
    last.is_some_and(|(head, message)| head == *commit && message.starts_with("checkout: "))
}

/// How much of a head's log is read for its last entry.
const TAIL: u64 = 4096;

/// Whether git's directory for `worktree` is `directory`.
pub fn is_directory_of(directory: &Path, worktree: &Path) -> bool {
    git_directory(worktree).is_ok_and(|own| same_place(&own, directory))
}

/// Reads `OLD NEW NAME <MAIL> TIME ZONE\tMESSAGE`.
pub(crate) fn log_entry(line: &[u8]) -> Option<(CommitId, String)> {
    let text = String::from_utf8_lossy(line);
    let (names, message) = text.split_once('\t').unwrap_or((&text, ""));
    Some((CommitId::new(names.split(' ').nth(1)?).ok()?, message.to_owned()))
}

/// Git's own directory for `worktree`, also while an agent works there with another one.
///
/// # Errors
/// [`GitError::NotOurs`]: `worktree` has none.
pub fn git_directory(worktree: &Path) -> Result<PathBuf> {
    let link = worktree.join(".git");
    if link.is_dir() {
        return Ok(link);
    }
    entry_named_by(worktree).ok_or_else(|| GitError::NotOurs { path: worktree.to_owned() })
}

/// The directory that the link in `worktree` names, whether or not it exists; while the link leads to an agent's own git
/// directory, git's directory for the worktree.
pub(crate) fn entry_named_by(worktree: &Path) -> Option<PathBuf> {
    let target = link_target(worktree)?;
    Some(entry_behind(&target).unwrap_or(target))
}

/// What git in a worktree writes outside of it, for commits, branches, tags and stashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenByCommits {
    /// Directories.
    pub writable: Vec<PathBuf>,
    /// What lies in them, or in the worktree, and leads git to other files. Nothing but `git worktree` writes it.
    pub fixed: Vec<PathBuf>,
}

impl Repository {
    /// What git in `worktree` writes outside of it. Settings, hooks, `info` and the packed references of the repository are not
    /// among it: nothing there is written by a commit, and each runs programs or is the user's.
    pub fn written_by_commits(&self, worktree: &Path) -> WrittenByCommits {
        let own = git_directory(worktree).ok();
        let shared = ["objects", "refs", "logs", "lfs", "rr-cache"].map(|name| self.common_dir().join(name));
        let fixed = ["commondir", "gitdir", "config.worktree"];
        let fixed = own.iter().flat_map(|own| fixed.map(|name| own.join(name))).chain([worktree.join(".git")]);
        WrittenByCommits { fixed: fixed.collect(), writable: own.iter().cloned().chain(shared).collect() }
    }
}

/// Whether two paths lead to the same place, which exists.
pub(crate) fn same_place(one: &Path, other: &Path) -> bool {
    matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

/// Where the files of the worktree registered in `directory` should be.
pub(crate) fn registered_place(directory: &Path) -> Option<PathBuf> {
    let link = directory.join(read_line(&directory.join("gitdir"))?);
    Some(link.parent()?.to_owned())
}
