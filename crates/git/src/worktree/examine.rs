//! Looking at worktrees, slots and indexes that something may have damaged. Nothing here writes a byte.

use std::fs;
use std::path::{Path, PathBuf};

use lanewright_files::directory;
use lanewright_model::{CommitId, RunId};

use crate::command::{GitError, Result, path_text, read_line};
use crate::fast::libgit2::is_damaged_index;
use crate::history::{Advance, embedded_in, index_lock};
use crate::query::{Head, head_of, worktree_changes};
use crate::repo::{Repository, WorktreeEntry, entry_named_by, git_directory, registered_place, same_place};
use crate::worktree::{
    Claim, Holder, Occupant, Pool, Progress, is_locked, is_untouched, occupant, unchanged_since_release,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeState {
    Missing,
    /// Nothing; the worktree is at this path now.
    Moved(PathBuf),
    /// Its files; git has lost its record of them, or of what is checked out. The path is the entry that they name.
    Forgotten(PathBuf),
    /// Its files; git has another place for them on record, where nothing is.
    Misplaced,
    /// Something that is not Lanewright's.
    Foreign,
    Present(Present),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Present {
    /// Whether it is on its branch, or will be when its rebase ends.
    pub on_branch: bool,
    pub checked_out: Option<String>,
    /// The user's reason for locking it, which may be empty; `None`: it is not locked.
    pub locked: Option<String>,
}

/// A slot of the pool according to its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    pub number: u32,
    pub path: PathBuf,
    /// The file that names its holder; need not exist.
    pub claim: PathBuf,
    /// The holder, of any repository's run; the error is what is wrong with the claim.
    pub holder: Result<Option<Holder>, String>,
    /// What is checked out according to its claim; `None`: it has no claim, or one that cannot be read.
    pub checkout: Option<SlotCheckout>,
    pub ours: bool,
    /// What in it is in no commit, or that its head is in no ref; empty: nothing would be lost without it.
    pub work: Vec<String>,
}

/// What is checked out in a slot according to its claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotCheckout {
    /// The checkout was not completed, so the slot contains no work of its holder.
    Incomplete,
    /// A branch, without `refs/heads/`.
    Branch(String),
    Detached(CommitId),
}

impl From<Progress> for SlotCheckout {
    fn from(progress: Progress) -> Self {
        match progress {
            Progress::Claimed | Progress::Started { .. } => Self::Incomplete,
            Progress::Opened { branch: Some(branch), .. } => Self::Branch(branch),
            Progress::Opened { branch: None, head } => Self::Detached(head),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldSlot {
    pub holder: Holder,
    pub path: PathBuf,
    /// Whether there is a worktree in which the holder may have worked: its checkout was completed.
    pub provisioned: bool,
}

/// A worktree of the pool that git has on record and that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prunable {
    pub entry: PathBuf,
    pub place: PathBuf,
    /// A commit that only this entry holds.
    pub only_here: Option<CommitId>,
}

impl Repository {
    /// What is at `path`, where a worktree with `branch` checked out should be (empty: with none).
    pub fn worktree_state(&self, path: &Path, branch: &str) -> Result<WorktreeState> {
        match occupant(self, path) {
            // A power cut may leave git's note of what is checked out empty.
            Occupant::Ours(entry) => Ok(match Head::branch_of(path) {
                Ok(on) => WorktreeState::Present(present(path, entry, branch, on)),
                Err(_) => WorktreeState::Forgotten(entry),
            }),
            Occupant::Nothing | Occupant::HalfMade => {
                Ok(self.moved_to(path, branch)?.map_or(WorktreeState::Missing, WorktreeState::Moved))
            }
            Occupant::Foreign => Ok(self.foreign_state(path)),
        }
    }

    /// Files that claim to be a worktree of this repository, of which the repository has no such record.
    fn foreign_state(&self, path: &Path) -> WorktreeState {
        let entries = self.entries_directory();
        let is_ours =
            |entry: &PathBuf| entry.parent().is_some_and(|above| above == entries || same_place(above, &entries));
        let Some(entry) = entry_named_by(path).filter(is_ours) else { return WorktreeState::Foreign };
        match registered_place(&entry) {
            None => WorktreeState::Forgotten(entry),
            Some(place) if place == path && !entry.join("HEAD").exists() => WorktreeState::Forgotten(entry),
            Some(place) if fs::symlink_metadata(&place).is_err() => WorktreeState::Misplaced,
            Some(_) => WorktreeState::Foreign,
        }
    }

    /// Where the worktree is that should be at `path`: moved by `git worktree move`, or by a plain `mv` to beside the pool
    /// or the repository.
    fn moved_to(&self, path: &Path, branch: &str) -> Result<Option<PathBuf>> {
        for entry in self.linked_worktrees()? {
            if entry.worktree == path {
                return Ok(self.neighbours(path).into_iter().find(|it| leads_to(it, &entry.directory)));
            }
            // A worktree of the user's may have the branch; Lanewright's have a lock file.
            let ours = entry.directory.join("lanewright.lock").exists();
            if ours && !branch.is_empty() && entry.holds(branch) && leads_to(&entry.worktree, &entry.directory) {
                return Ok(Some(entry.worktree));
            }
        }
        Ok(None)
    }

    fn neighbours(&self, path: &Path) -> Vec<PathBuf> {
        let places = path.ancestors().skip(1).take(3).chain(self.main_worktree().parent());
        places.flat_map(|place| directory::directories(place).unwrap_or_default()).collect()
    }

    /// Git's lock on the index of `worktree`, if there is one. One of Lanewright's is no finding: `resume` finishes its work.
    pub fn index_lock_in(&self, worktree: &Path) -> Result<Option<PathBuf>> {
        let ours = |lock: &PathBuf| lock.parent().is_some_and(|directory| Advance::under_way(directory).is_some());
        Ok(index_lock(worktree)?.filter(|lock| !ours(lock)))
    }

    /// Git's index of `worktree`, if there is one and it cannot be read.
    pub fn damaged_index_in(&self, worktree: &Path) -> Result<Option<PathBuf>> {
        Ok(Some(git_directory(worktree)?.join("index")).filter(|index| is_damaged_index(index)))
    }

    /// Where the worktree that should be at `path` last stood according to its reflog.
    pub fn last_head(&self, path: &Path) -> Option<CommitId> {
        self.entry_at(path).ok()??.last_head()
    }
}

impl Pool {
    pub fn inspect_slots(&self) -> Result<Vec<Slot>> {
        Ok(self.numbers()?.into_iter().map(|number| self.inspect_slot(number)).collect())
    }

    fn inspect_slot(&self, number: u32) -> Slot {
        let (path, claim) = (self.slot(number), self.claim_file(number));
        let read = || Claim::read(&claim).map_err(|error| error.with_remedy());
        let (holder, checkout) = match read() {
            Ok(Some(claim)) => (Ok(Some(claim.holder)), Some(claim.progress.into())),
            Ok(None) => (Ok(None), None),
            Err(error) => (Err(error), None),
        };
        let entry = self.repository.own_entry(&path);
        let mut work = Vec::new();
        if let (Some(found), Ok(None)) = (&entry, &holder) {
            let seen = self.work_in(&path, found);
            // A live session may have claimed or removed it meanwhile.
            if read() == Ok(None) && self.repository.own_entry(&path) == entry {
                work = seen;
            }
        }
        Slot { number, path, holder, checkout, ours: entry.is_some(), work, claim }
    }

    /// What would be lost without the slot at `path`. What cannot be looked at counts.
    fn work_in(&self, path: &Path, entry: &Path) -> Vec<String> {
        if is_untouched(path, entry) {
            return Vec::new();
        }
        let looked = head_of(path).and_then(|head| {
            let mut work = worktree_changes(&self.repository, path, &head.commit)?;
            if !unchanged_since_release(entry, &head.commit) && !self.repository.is_in_any_reference(&head.commit)? {
                work.push(format!("commit {}, which no ref holds", head.commit));
            }
            Ok(work)
        });
        looked.unwrap_or_else(|error: GitError| vec![error.with_remedy()])
    }

    /// Worktrees of this pool that git has on record, that have no holder, and that are gone.
    pub fn prunable(&self) -> Result<Vec<Prunable>> {
        let mut found = Vec::new();
        for WorktreeEntry { directory: entry, worktree: place } in self.vanished()? {
            let detached = read_line(&entry.join("HEAD")).and_then(|head| CommitId::new(&head).ok());
            let only_here = match detached {
                Some(head) if self.repository.has_commit(&head)? && !self.repository.is_in_any_reference(&head)? => {
                    Some(head)
                }
                _ => None,
            };
            found.push(Prunable { entry, place, only_here });
        }
        Ok(found)
    }

    /// The slots that `run` holds, those included that a crash left half-made.
    pub fn held_by(&self, run: &RunId) -> Result<Vec<HeldSlot>> {
        let mut held = Vec::new();
        for number in self.numbers()? {
            let Some(claim) = Claim::read(&self.claim_file(number))? else { continue };
            if claim.holder.run == *run && self.owns(&claim) {
                let path = self.slot(number);
                let entry = self.repository.own_entry(&path).filter(|_| claim.progress.is_opened());
                let provisioned = entry.is_some_and(|entry| !is_untouched(&path, &entry));
                held.push(HeldSlot { holder: claim.holder, path, provisioned });
            }
        }
        Ok(held)
    }
}

fn present(path: &Path, entry: PathBuf, branch: &str, checked_out: Option<String>) -> Present {
    let locked = is_locked(&entry).then(|| read_line(&entry.join("locked")).unwrap_or_default());
    let known = WorktreeEntry { directory: entry, worktree: path.to_owned() };
    let on_branch = checked_out.as_deref().unwrap_or_default() == branch || known.holds(branch);
    Present { on_branch, checked_out, locked }
}

fn leads_to(worktree: &Path, entry: &Path) -> bool {
    entry_named_by(worktree).is_some_and(|named| same_place(&named, entry))
}

/// The repositories within `worktree` that it does not track. No snapshot can hold them.
pub fn embedded_repositories_in(worktree: &Path) -> Result<Vec<String>> {
    Ok(embedded_in(worktree)?.iter().map(|path| path_text(path)).collect())
}
