//! Moving the integration branch, which the user may have checked out.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use lanewright_model::CommitId;

use crate::command::{GitError, Result};
use crate::fast::durable;
use crate::fast::libgit2::RefUpdate;
use crate::history::moved_branches::stale_since_move;
use crate::history::stale_checkouts;
use crate::history::{Advance, Blockers, SyncOutcome, advance_checkout, blockers, finish, index_lock, set_reference};
use crate::query::{operation_in, worktree_changes};
use crate::repo::{Guarded, Repository, Stamps, branch_reference};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Publication {
    /// The branch is at the commit now; so is the worktree that has it checked out, if one has.
    Published,
    /// The branch held the commit already.
    AlreadyThere,
    /// The branch is elsewhere than the commit was made for.
    Moved(CommitId),
    /// A checkout of the branch cannot be fast-forwarded; nothing was changed.
    CheckedOutDirty { worktree: PathBuf, blockers: Blockers },
}

impl Publication {
    fn blocked(worktree: &Path, blockers: Blockers) -> Self {
        Self::CheckedOutDirty { worktree: worktree.to_owned(), blockers }
    }
}

/// How often a checkout is looked at that is switched while it is to be fast-forwarded.
const TRIES: u32 = 3;

/// Longer than `git switch` takes from looking a branch up to moving the head, but for the files that it writes.
const MAX_SWITCH_TIME: Duration = Duration::from_millis(200);

/// How long [`sync_after_switches`] waits for a `git switch` that writes many files.
const LONGEST_SWITCH: Duration = Duration::from_secs(10);

const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// Moves `branch` from `onto` to `commit`, which continues it. Where the branch is checked out, files and index are
/// updated as with `git merge --ff-only`, without hooks, or nothing moves. One at a time in a repository. What a process
/// that died left half-way is finished first.
///
/// # Errors
/// [`GitError::BranchMissing`], [`GitError::NotAFastForward`].
pub fn publish(repository: &Repository, branch: &str, onto: &CommitId, commit: &CommitId) -> Result<Publication> {
    if !repository.is_ancestor(onto, commit)? {
        let (branch, onto, commit) = (branch.to_owned(), onto.clone(), commit.clone());
        return Err(GitError::NotAFastForward { branch, onto, commit });
    }
    repository.restore_worktree_setting()?;
    repository.holding(Guarded::Publish, |lock| {
        let advance = Advance::new(branch, onto, commit);
        for _ in 0..TRIES {
            if let Some(blocked) = sync_stale_checkouts(repository, branch, lock)? {
                return Ok(blocked);
            }
            if let Some(publication) = try_once(repository, &advance, lock)? {
                return Ok(publication);
            }
        }
        let now = tip(repository, branch)?;
        if now != *onto {
            return Ok(Publication::Moved(now));
        }
        // The branch is where the commit was made for: merging again would change nothing.
        let place = repository.where_checked_out(branch)?;
        Ok(Publication::blocked(place.as_deref().unwrap_or(repository.main_worktree()), Blockers::switching()))
    })
}

/// Fast-forwards checkouts of `branch` that a publication left half-way or behind: a crash, or a `git switch` at the same
/// moment. Returns what prevents that.
pub fn sync_checkouts(repository: &Repository, branch: &str) -> Result<Option<Publication>> {
    repository.holding(Guarded::Publish, |lock| sync_stale_checkouts(repository, branch, lock))
}

/// The same until every `git switch` that looked the branch up before its last publication has ended: one that takes longer
/// than 0.2 s writes files, and holds the index lock meanwhile.
pub fn sync_after_switches(repository: &Repository, branch: &str) -> Result<Option<Publication>> {
    let began = Instant::now();
    let (mut looked, mut blocked) = (None, None);
    while let Some(age) = stale_checkouts::since_publication(repository, branch)? {
        // Before the look: a switch that ends in between is seen by it.
        let switching = index_lock(repository.main_worktree())?.is_some() && began.elapsed() < LONGEST_SWITCH;
        let over = (age >= MAX_SWITCH_TIME || began.elapsed() >= MAX_SWITCH_TIME) && !switching;
        let now = Some((checkouts(repository)?, repository.branch_commit(branch)?));
        if over || looked != now {
            blocked = sync_checkouts(repository, branch)?;
            looked = now;
        }
        if over {
            return Ok(blocked);
        }
        thread::sleep(POLL_INTERVAL);
    }
    Ok(None)
}

/// What every `git switch` changes.
fn checkouts(repository: &Repository) -> Result<Stamps> {
    let directories = repository.all_worktrees()?.into_iter().map(|entry| entry.directory);
    Ok(Stamps::of(directories.flat_map(|directory| ["HEAD", "index"].map(|file| directory.join(file)))))
}

/// What would prevent [`publish`] from moving `branch` from `onto` to `commit` now; nothing is changed.
pub fn publish_blocker(
    repository: &Repository,
    branch: &str,
    onto: &CommitId,
    commit: &CommitId,
) -> Result<Option<Publication>> {
    repository.holding(Guarded::Publish, |lock| {
        if let Some(blocked) = sync_stale_checkouts(repository, branch, lock)? {
            return Ok(Some(blocked));
        }
        for worktree in repository.all_checked_out(branch)? {
            let blockers = match index_lock(&worktree)? {
                Some(lock) => Blockers::locked(&lock),
                None => blockers(repository, &worktree, onto, commit)?,
            };
            if !blockers.paths.is_empty() {
                return Ok(Some(Publication::blocked(&worktree, blockers)));
            }
        }
        Ok(None)
    })
}

/// A checkout of a branch that had no differences from that commit.
pub type CleanCheckout = (PathBuf, CommitId);

/// The checkout of `branch`, if it has no differences from the branch. Takes no lock and changes nothing.
pub fn clean_checkout(repository: &Repository, branch: &str) -> Result<Option<CleanCheckout>> {
    let Some(worktree) = repository.where_checked_out(branch)? else { return Ok(None) };
    let tip = tip(repository, branch)?;
    let is_clean = worktree_changes(repository, &worktree, &tip)?.is_empty();
    Ok(is_clean.then_some((worktree, tip)))
}

/// Where `branch` is checked out, and the paths, sorted, in which that checkout differs from the branch, uncommitted
/// and untracked files included. Never in the middle of a publication. `clean`: a checkout that is not looked at again.
pub fn changes_where_checked_out(
    repository: &Repository,
    branch: &str,
    clean: Option<&CleanCheckout>,
) -> Result<Option<(PathBuf, Vec<String>)>> {
    repository.holding(Guarded::Publish, |lock| {
        sync_stale_checkouts(repository, branch, lock)?;
        let Some(worktree) = repository.where_checked_out(branch)? else { return Ok(None) };
        let tip = tip(repository, branch)?;
        let earlier = stale_checkouts::earlier_tip(repository, &worktree, branch, &tip)?;
        let base =
            earlier.map_or_else(|| stale_since_move(repository, &worktree, &tip), |it| Ok(Some(it)))?.unwrap_or(tip);
        let is_clean = clean.is_some_and(|(place, head)| (place, head) == (&worktree, &base));
        let changes = if is_clean { Vec::new() } else { worktree_changes(repository, &worktree, &base)? };
        Ok(Some((worktree, changes)))
    })
}

/// `None`: a checkout was switched meanwhile, so it must be looked at again.
fn try_once(repository: &Repository, advance: &Advance, lock: &File) -> Result<Option<Publication>> {
    let Advance { branch, onto, commit, .. } = advance;
    let now = tip(repository, branch)?;
    // What continues the place where the branch is has not been published.
    if now != *onto || commit == onto {
        if !repository.is_ancestor(commit, &now)? {
            return Ok(Some(Publication::Moved(now)));
        }
        return durable::reference(repository, &branch_reference(branch)).map(|()| Some(Publication::AlreadyThere));
    }
    durable::objects(repository, commit, [onto])?;
    stale_checkouts::note(repository, branch, onto, commit)?;
    match repository.all_checked_out(branch)?.as_slice() {
        [] => {
            let publication = compare_and_set(repository, branch, onto, commit)?;
            // What prevents this look has no influence on the publication; a later look reports it.
            if let Err(error) = sync_stale_checkouts(repository, branch, lock) {
                tracing::debug!("checkouts of {branch} were not examined: {error}");
            }
            Ok(Some(publication))
        }
        [worktree] => Ok(match advance_checkout(repository, worktree, advance, lock)? {
            SyncOutcome::Moved => Some(Publication::Published),
            SyncOutcome::Superseded => None,
            SyncOutcome::Blocked(blockers) => Some(Publication::blocked(worktree, blockers)),
        }),
        [_, other, ..] => Ok(Some(Publication::blocked(other, Blockers::twice(branch)))),
    }
}

/// Finishes what Lanewrights that died left half-way in any checkout. Returns what prevents that for the one of `branch`.
fn finish_killed(repository: &Repository, branch: &str, lock: &File) -> Result<Option<Publication>> {
    let mut found = None;
    for (worktree, advance) in repository.half_moved()? {
        let blockers = finish(repository, &worktree, &advance, lock)?.filter(|_| advance.branch == branch);
        found = found.or(blockers.map(|blockers| Publication::blocked(&worktree, blockers)));
    }
    Ok(found)
}

/// Brings all checkouts into step with what was published before. Returns what prevents that for one of `branch`.
fn sync_stale_checkouts(repository: &Repository, branch: &str, lock: &File) -> Result<Option<Publication>> {
    match finish_killed(repository, branch, lock)? {
        None => sync_published(repository, branch, lock),
        blocked => Ok(blocked),
    }
}

fn sync_published(repository: &Repository, branch: &str, lock: &File) -> Result<Option<Publication>> {
    let Some(age) = stale_checkouts::since_publication(repository, branch)? else { return Ok(None) };
    let on_branch = repository.all_checked_out(branch)?;
    // A branch that was made in a checkout that was behind took that along; one with commits of its own did not.
    let main = repository.main_worktree().to_owned();
    let was_on_it = |main: &PathBuf| -> Result<bool> {
        match repository.head_at(main) {
            Ok(head) => repository.is_ancestor(&head.commit, &tip(repository, branch)?),
            // Such as the head of a branch without a commit.
            Err(_) => Ok(false),
        }
    };
    let left_it = if on_branch.contains(&main) || !was_on_it(&main)? { None } else { Some(main) };
    for worktree in on_branch.iter().chain(&left_it) {
        if operation_in(worktree)?.is_some() || index_lock(worktree)?.is_some() {
            return Ok(None);
        }
        let head = repository.head_at(worktree)?;
        if let Some(earlier) = stale_checkouts::earlier_tip(repository, worktree, branch, &head.commit)? {
            let advance = Advance::new(branch, &earlier, &head.commit);
            match advance_checkout(repository, worktree, &advance, lock)? {
                SyncOutcome::Moved => {}
                // It left the branch as it is, and may come back.
                SyncOutcome::Superseded => return Ok(None),
                SyncOutcome::Blocked(blockers) => return Ok(Some(Publication::blocked(worktree, blockers))),
            }
        }
    }
    if on_branch.is_empty() || age < MAX_SWITCH_TIME {
        Ok(None)
    } else {
        stale_checkouts::forget(repository, branch).map(|()| None)
    }
}

fn tip(repository: &Repository, branch: &str) -> Result<CommitId> {
    repository.branch_commit(branch)?.ok_or_else(|| GitError::BranchMissing { branch: branch.to_owned() })
}

fn compare_and_set(repository: &Repository, branch: &str, onto: &CommitId, commit: &CommitId) -> Result<Publication> {
    let name = &branch_reference(branch);
    let update = RefUpdate { name, old: Some(onto), to: commit, why: "lanewright: publish" };
    let moved = set_reference(repository, repository.main_worktree(), &update)?;
    if moved { Ok(Publication::Published) } else { Ok(Publication::Moved(tip(repository, branch)?)) }
}
