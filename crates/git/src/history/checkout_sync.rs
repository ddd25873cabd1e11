//! Fast-forwarding the user's checkout with its branch: files, index and branch, all of them or none.
//!
//! Git's own lock on the index is held throughout, so no git of the user's changes files or index meanwhile; only the
//! head may be switched to another branch at the same commit, which is looked for once the branch has moved. The lock
//! says what is under way, so the next process after a crash recognizes it and finishes it: forward where the branch
//! has moved, back where it has not. Files are moved with an index of our own, which replaces the other one at the end.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use lanewright_files::{atomic, regular_file};
use lanewright_model::CommitId;
use serde::{Deserialize, Serialize};

use crate::command::{Result, path_text};
use crate::fast::libgit2;
use crate::fast::libgit2::RefUpdate;
use crate::history::stale_checkouts;
use crate::history::{Blockers, Ready, blockers, in_the_way, reference_lock, set_reference};
use crate::query::{Head, operation_in};
use crate::repo::{Repository, WorktreeEntry, branch_reference, git_directory};

/// Longer than it takes from the lock on the index to that on the branch.
pub(crate) const MAX_PUBLICATION_TIME: Duration = Duration::from_secs(60);

const LOCK_TRIES: u32 = 40;

const BETWEEN_LOCK_TRIES: Duration = Duration::from_millis(50);

/// Longer than git has a lock on a ref that it only has to write.
const RECHECK_DELAY: Duration = Duration::from_secs(1);

/// Whether a crash may have left no more than this of `whole`.
fn is_cut_short(found: &[u8], whole: &[u8]) -> bool {
    whole.starts_with(found) || found.iter().all(|&byte| byte == 0)
}

fn texts(paths: &[Vec<u8>]) -> Vec<String> {
    paths.iter().map(|path| path_text(path)).collect()
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Advance {
    /// For people who look into the lock.
    lanewright: String,
    pub(crate) branch: String,
    pub(crate) onto: CommitId,
    pub(crate) commit: CommitId,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SyncOutcome {
    /// The branch is at the commit, and so is the checkout if it still is on the branch.
    Moved,
    /// The checkout left the branch, or the branch its place, before anything moved.
    Superseded,
    /// The user has something there that must not be touched; nothing was changed.
    Blocked(Blockers),
}

impl Advance {
    pub(crate) fn new(branch: &str, onto: &CommitId, commit: &CommitId) -> Self {
        let lanewright = "moves this checkout along with its branch; `lanewright resume` finishes that".to_owned();
        Self { lanewright, branch: branch.to_owned(), onto: onto.clone(), commit: commit.clone() }
    }

    /// What is under way in the checkout whose git directory is `directory`: its index is locked by one of ours.
    pub(crate) fn under_way(directory: &Path) -> Option<Self> {
        serde_json::from_slice(&regular_file::read(directory.join("index.lock")).ok()?).ok()
    }

    fn bytes(&self) -> Vec<u8> {
        format!("{}\n", serde_json::json!(self)).into_bytes()
    }
}

/// Moves `worktree`, which has the branch checked out, and the branch: both from `advance.onto`, or the checkout alone if it
/// is behind, its head at `advance.commit` and its index at `advance.onto`. The caller holds the lock on publishing, whose
/// file is `lock`.
pub(crate) fn advance_checkout(
    repository: &Repository,
    worktree: &Path,
    advance: &Advance,
    lock: &File,
) -> Result<SyncOutcome> {
    let checkout = Checkout::new(repository, worktree, lock)?;
    if !checkout.lock_index(advance)? {
        return Ok(SyncOutcome::Blocked(Blockers::locked(&checkout.index_lock())));
    }
    match checkout.blocker(advance) {
        Ok(None) => checkout.advance(advance),
        Ok(Some(blocker)) => checkout.unlock().map(|()| blocker),
        Err(error) => checkout.unlock().and(Err(error)),
    }
}

/// Finishes what a dead Lanewright began in `worktree`. Returns what the user changed there since, of what was to be moved:
/// that is left as it is, and the index is unlocked.
pub(crate) fn finish(
    repository: &Repository,
    worktree: &Path,
    advance: &Advance,
    lock: &File,
) -> Result<Option<Blockers>> {
    let checkout = Checkout::new(repository, worktree, lock)?;
    checkout.remove_dead_branch_lock(advance)?;
    let (from, to) = if checkout.head_contains(&advance.commit)? {
        (&advance.onto, &advance.commit)
    } else {
        (&advance.commit, &advance.onto)
    };
    checkout.put(advance, from, to)
}

/// A checkout whose index is locked by us.
pub(crate) struct Checkout<'a> {
    pub(crate) repository: &'a Repository,
    pub(crate) worktree: &'a Path,
    pub(crate) directory: PathBuf,
    pub(crate) lock: &'a File,
}

impl<'a> Checkout<'a> {
    fn new(repository: &'a Repository, worktree: &'a Path, lock: &'a File) -> Result<Self> {
        Ok(Self { repository, worktree, directory: git_directory(worktree)?, lock })
    }

    pub(crate) fn index_lock(&self) -> PathBuf {
        self.directory.join("index.lock")
    }

    /// `false`: another process holds the lock for longer than the git that refreshes an index or switches a branch.
    fn lock_index(&self, advance: &Advance) -> Result<bool> {
        for _ in 0..LOCK_TRIES {
            if atomic::create_by_way_of(&self.own("lock"), &self.index_lock(), &advance.bytes())? {
                return Ok(true);
            }
            thread::sleep(BETWEEN_LOCK_TRIES);
        }
        Ok(false)
    }

    fn unlock(&self) -> Result<()> {
        self.remove_scratch_files()?;
        Ok(atomic::remove_durably(&self.index_lock())?)
    }

    /// Our index becomes the checkout's, and others may lock it again.
    fn install_index(&self) -> Result<()> {
        atomic::rename(&self.scratch_index(), &self.directory.join("index"))?;
        self.unlock()
    }

    /// Unlocks the index as it is: the user changed `touched`, which were to move.
    fn cancel(&self, advance: &Advance, touched: Vec<String>) -> Result<Blockers> {
        let Advance { branch, onto, commit, .. } = advance;
        if self.head_contains(commit)? {
            stale_checkouts::note_checkout(self.repository, branch, onto, commit)?;
        }
        self.unlock()?;
        let earlier = stale_checkouts::earlier_tip(self.repository, self.worktree, branch, commit)?;
        Ok(match earlier {
            Some(earlier) => Blockers::changed_in_stale_checkout(touched, branch, &earlier),
            None => Blockers::changed(touched),
        })
    }

    fn is_on(&self, branch: &str) -> Result<bool> {
        Ok(Head::branch_of(self.worktree)?.as_deref() == Some(branch))
    }

    /// Whether the head holds `commit`, be it by the branch or by one that was made of it meanwhile.
    fn head_contains(&self, commit: &CommitId) -> Result<bool> {
        self.repository.is_ancestor(commit, &self.repository.head_at(self.worktree)?.commit)
    }

    /// Whether only index and files have to move. The head may have left the branch: `git switch --create` takes along what
    /// is staged.
    fn is_behind(&self, advance: &Advance) -> Result<bool> {
        Ok(self.repository.head_at(self.worktree)?.commit == advance.commit)
    }

    /// What prevents moving the checkout, before anything is touched.
    fn blocker(&self, advance: &Advance) -> Result<Option<SyncOutcome>> {
        let Advance { branch, onto, commit, .. } = advance;
        let is_behind = self.is_behind(advance)?;
        // Before the head: a rebase, which detaches it, will move the branch when it ends.
        if !is_behind && operation_in(self.worktree)?.is_none() && !self.is_on(branch)? {
            return Ok(Some(SyncOutcome::Superseded));
        }
        // A `git switch` has ended since the checkouts were brought into step.
        if !is_behind && stale_checkouts::earlier_tip(self.repository, self.worktree, branch, onto)?.is_some() {
            return Ok(Some(SyncOutcome::Superseded));
        }
        let found = match is_behind {
            // What is staged is not the user's, so only what is to move is looked at.
            true => {
                let found = in_the_way(self.worktree, &self.repository.differences(onto, commit)?)?;
                if found.is_empty() {
                    Blockers::default()
                } else {
                    Blockers::changed_in_stale_checkout(found, branch, onto)
                }
            }
            false => blockers(self.repository, self.worktree, onto, commit)?,
        };
        Ok((!found.paths.is_empty()).then_some(SyncOutcome::Blocked(found)))
    }

    fn advance(&self, advance: &Advance) -> Result<SyncOutcome> {
        let (onto, commit) = (&advance.onto, &advance.commit);
        let ready = match self.make_ready(onto, commit) {
            Ok(Ready::Yes(ready)) => ready,
            Ok(Ready::Touched(touched)) => return self.cancel(advance, texts(&touched)).map(SyncOutcome::Blocked),
            // Nothing has moved yet.
            Err(error) => return self.unlock().and(Err(error)),
        };
        let outcome = match self.move_prepared(&ready, onto, commit) {
            Ok(None) => {
                let moved = if self.is_behind(advance)? { Ok(None) } else { self.move_branch(advance) };
                // Whatever moved it: files follow, and an error is reported. If that cannot be known, the lock stays.
                if self.head_contains(commit)? {
                    return self.install_index().and(moved).map(|_| SyncOutcome::Moved);
                }
                moved.map(|outcome| outcome.unwrap_or(SyncOutcome::Moved))
            }
            Ok(Some(touched)) => Ok(SyncOutcome::Blocked(Blockers::changed(texts(&touched)))),
            Err(error) => Err(error),
        };
        self.put(advance, commit, onto).and(outcome)
    }

    /// Moves the branch by compare-and-set, or returns why it was not. A process that dies meanwhile may leave git's lock on
    /// it, which [`Self::remove_dead_branch_lock`] removes.
    fn move_branch(&self, advance: &Advance) -> Result<Option<SyncOutcome>> {
        let name = &branch_reference(&advance.branch);
        let (old, to) = (Some(&advance.onto), &advance.commit);
        let update = RefUpdate { name, old, to, why: "lanewright: publish" };
        if libgit2::set_reference(self.repository, self.worktree, &update).is_some() {
            return Ok(None);
        }
        let moved = set_reference(self.repository, self.worktree, &update)?;
        Ok((!moved).then_some(SyncOutcome::Superseded))
    }

    /// Removes the lock that a dead [`Self::move_branch`] left: it is little younger than the lock on the index, and holds
    /// the commit or, after a crash, less than that; a git that is alive does not rest there.
    fn remove_dead_branch_lock(&self, advance: &Advance) -> Result<()> {
        let lock = reference_lock(self.repository.common_dir(), &branch_reference(&advance.branch));
        let age = || {
            fs::metadata(&lock)?
                .modified()?
                .duration_since(fs::metadata(self.index_lock())?.modified()?)
                .map_err(io::Error::other)
        };
        let look = || Some((fs::metadata(&lock).ok()?.ino(), regular_file::read(&lock).ok()?));
        let whole = format!("{}\n", advance.commit).into_bytes();
        match look() {
            Some((_, target)) if target == whole => Ok(atomic::remove_durably(&lock)?),
            Some(found) if is_cut_short(&found.1, &whole) && age().is_ok_and(|age| age < MAX_PUBLICATION_TIME) => {
                thread::sleep(RECHECK_DELAY);
                if look() == Some(found) { Ok(atomic::remove_durably(&lock)?) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Moves files and index, which may be half-way in either direction, to `to`, and unlocks the index.
    fn put(&self, advance: &Advance, from: &CommitId, to: &CommitId) -> Result<Option<Blockers>> {
        let mut ready = self.make_ready(from, to)?;
        if let Ready::Touched(touched) = &ready
            && self.remove_cut_short(touched, [from, to])?
        {
            ready = self.make_ready(from, to)?;
        }
        let touched = match ready {
            Ready::Touched(touched) => Some(touched),
            Ready::Yes(ready) => self.move_prepared(&ready, from, to)?,
        };
        match touched {
            None => self.install_index().map(|()| None),
            Some(touched) => self.cancel(advance, texts(&touched)).map(Some),
        }
    }
}

impl Repository {
    /// The checkouts whose move an interrupted process did not finish, unless this process moves them now.
    pub(crate) fn half_moved(&self) -> Result<Vec<(PathBuf, Advance)>> {
        let here = self.all_worktrees()?.into_iter().filter(WorktreeEntry::is_there);
        Ok(here.filter_map(|entry| Some((entry.worktree, Advance::under_way(&entry.directory)?))).collect())
    }
}
