//! The end of slots: moved aside in one step, deleted afterwards.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lanewright_files::directory::create_directory;
use lanewright_files::{atomic, directory, remove_unfinished};
use lanewright_model::{CommitId, RunId};
use rustix::io::Errno;

use crate::command::{GitError, Result, io_error};
use crate::repo::{Guarded, WorktreeEntry};
use crate::worktree::deletion::delete;
use crate::worktree::{
    Checkout, Claim, HeldSlot, Holder, Kept, Mode, Occupant, Pool, SET_ASIDE, blocker, clear_half_made, forget,
    is_locked, occupant, remove_private_leftovers,
};

/// What is between a slot's number and the time in the name of what was found in its place.
pub(crate) const ASIDE: &str = ".aside-";

impl Pool {
    /// Removes the slots that have no holder, and the empty directories of `run` and of the pool. Returns what was kept of
    /// these, and the slots that `run` still holds, each with the reason.
    ///
    /// A slot with uncommitted work, with commits that no ref contains, or that the user locked is kept; so is whatever the
    /// pool did not create. No symbolic link is followed. What takes longer than `limit` to delete stays in the trash.
    pub fn empty(&self, run: &RunId, limit: Option<Duration>) -> Result<Vec<Kept>> {
        let until = limit.map(|limit| Instant::now() + limit);
        let mut kept = Vec::new();
        self.repository.holding(Guarded::Pool, |_| {
            for number in self.numbers()? {
                if let Err(reason) = self.put_aside(number, run) {
                    kept.extend(reason.map(|reason| Kept { path: self.slot(number), reason }));
                }
            }
            remove_private_leftovers(&self.repository)?;
            // A crash between two steps of `discard` leaves them.
            self.repository.holding(Guarded::Admin, |_| {
                self.vanished()?.iter().try_for_each(|entry| forget(&self.repository, &entry.directory))
            })?;
            Ok(remove_unfinished(&self.slots())?)
        })?;
        kept.extend(self.set_aside().into_iter().map(|path| Kept { path, reason: SET_ASIDE.to_owned() }));
        kept.extend(self.delete_trash(until)?);
        self.remove_empty(run);
        Ok(kept)
    }

    /// The directories that wait in the trash for their deletion.
    pub fn in_trash(&self) -> Vec<PathBuf> {
        let mut found = directory::directories(&self.trash()).unwrap_or_default();
        // What has another name is not of this pool.
        found.retain(|path| path.file_name().and_then(|name| name.to_str()?.parse::<uuid::Uuid>().ok()).is_some());
        found
    }

    /// Whether there is a trash.
    pub fn has_trash(&self) -> bool {
        fs::symlink_metadata(self.trash()).is_ok_and(|kind| kind.is_dir())
    }

    /// Deletes what is in the trash, until a moment if one is given. Returns what cannot be deleted, each with the reason.
    ///
    /// # Errors
    /// The lock of the worktrees cannot be had.
    pub fn delete_trash(&self, until: Option<Instant>) -> Result<Vec<Kept>> {
        if !self.has_trash() {
            return Ok(Vec::new());
        }
        let trash = self.trash();
        let kept = self.in_trash().into_iter().filter_map(|path| {
            let error = delete(&path, until).err().filter(|error| error.kind() != io::ErrorKind::TimedOut)?;
            let remedy = match error.raw_os_error() {
                Some(code) if code == Errno::PERM.raw_os_error() => {
                    "make it mutable (`chattr -R -i`), then run `lanewright clean`"
                }
                _ => "delete it as the user who may",
            };
            let reason = format!("{} MB that cannot be deleted: {error}; {remedy}", size_of(&path) >> 20);
            Some(Kept { path, reason })
        });
        let kept = kept.collect();
        // Another run may be about to move something there.
        self.repository.holding(Guarded::Admin, |_| {
            let _ = fs::remove_dir(&trash);
            Ok(())
        })?;
        Ok(kept)
    }

    /// Takes a slot back from its holder and discards what is in it, ignored files excepted; it then stands at `commit`, on
    /// no branch.
    pub fn throw_away(&self, slot: &HeldSlot, commit: &CommitId) -> Result<()> {
        if slot.provisioned {
            let want = Checkout { branch: None, start: commit.clone(), mode: Mode::Reset, adopt: true };
            self.open(&slot.holder, &want)?;
        }
        self.release(&slot.holder, std::slice::from_ref(commit))
    }

    pub fn remove_empty(&self, run: &RunId) {
        remove_empty_directories(&self.root().join(run.as_str()));
        self.remove_root();
    }

    /// Removes the pool's own directories if nothing is in them.
    pub fn remove_root(&self) {
        let emptied = self.repository.holding(Guarded::Pool, |_| {
            for path in [self.slots(), self.root().to_owned()] {
                let _ = fs::remove_dir(path);
            }
            Ok(())
        });
        if let Err(error) = emptied {
            tracing::debug!("empty directories of the pool stay: {error}");
        }
    }

    /// The slots without a holder, and what was moved aside from one, each with the reason why it may not be removed.
    pub fn unheld(&self) -> Result<Vec<(PathBuf, Option<String>)>> {
        let mut found = Vec::new();
        for number in self.numbers()? {
            if Claim::read(&self.claim_file(number))?.is_none() {
                let path = self.slot(number);
                let reason = self.removal_blocker(&path, &occupant(&self.repository, &path));
                found.push((path, reason));
            }
        }
        found.extend(self.set_aside().into_iter().map(|path| (path, Some(SET_ASIDE.to_owned()))));
        Ok(found)
    }

    fn set_aside(&self) -> Vec<PathBuf> {
        let mut found = directory::entries(&self.slots()).unwrap_or_default();
        found.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(ASIDE)));
        found
    }

    fn removal_blocker(&self, path: &Path, found: &Occupant) -> Option<String> {
        match found {
            Occupant::Ours(entry) => blocker(&self.repository, path, entry, None),
            Occupant::Foreign => Some(GitError::NotOurs { path: path.to_owned() }.with_remedy()),
            Occupant::Nothing | Occupant::HalfMade => None,
        }
    }

    /// Moves slot `number` to the trash. The error is the reason why not, if `run` should know it.
    fn put_aside(&self, number: u32, run: &RunId) -> Result<(), Option<String>> {
        let path = self.slot(number);
        let found = occupant(&self.repository, &path);
        let claim = Claim::read(&self.claim_file(number)).map_err(|error| Some(error.with_remedy()))?;
        let done = match (claim, &found) {
            (Some(claim), _) if claim.holder.run != *run || !self.owns(&claim) => return Err(None),
            (Some(_), Occupant::Nothing) => atomic::remove_durably(&self.claim_file(number)).map_err(GitError::from),
            (Some(claim), _) => return Err(Some(held_by(&claim.holder))),
            (None, found) => match self.removal_blocker(&path, found) {
                Some(reason) => return Err(Some(reason)),
                None => self.repository.holding(Guarded::Admin, |_| self.remove_slot(&path, found)),
            },
        };
        done.map_err(|error| Some(error.with_remedy()))
    }

    fn remove_slot(&self, path: &Path, found: &Occupant) -> Result<()> {
        match found {
            Occupant::Ours(entry) => self.discard(path, entry),
            Occupant::HalfMade => {
                clear_half_made(&self.repository, path)?;
                fs::remove_dir(path).map_err(io_error("remove", path))
            }
            Occupant::Nothing => {
                let _ = fs::remove_dir(path);
                Ok(())
            }
            Occupant::Foreign => Ok(()),
        }
    }

    /// Moves the slot at `path` into the trash and forgets its entry. The caller holds the admin lock.
    pub(crate) fn discard(&self, path: &Path, entry: &Path) -> Result<()> {
        create_directory(&self.trash())?;
        let aside = self.trash().join(uuid::Uuid::now_v7().to_string());
        // A directory that its owner may not write cannot be moved into another.
        directory::change_below(path, || atomic::rename(path, &aside))?;
        forget(&self.repository, entry)
    }

    /// Git's entries for slots that are gone, that have no holder, and that the user did not lock.
    pub(crate) fn vanished(&self) -> Result<Vec<WorktreeEntry>> {
        let mut entries = self.repository.linked_worktrees()?;
        entries.retain(|entry| {
            let number = entry.worktree.file_name().and_then(|name| name.to_str()?.parse().ok());
            let free = number.is_some_and(|number| !self.claim_file(number).exists());
            let gone = fs::symlink_metadata(&entry.worktree).is_err();
            entry.worktree.parent() == Some(&self.slots()) && gone && free && !is_locked(&entry.directory)
        });
        Ok(entries)
    }
}

fn held_by(holder: &Holder) -> String {
    let agent = holder.agent.as_ref().map(|agent| format!(" for agent {agent}")).unwrap_or_default();
    let lane = holder.lane.as_ref().map(|lane| format!(" by lane {lane}{agent}")).unwrap_or_default();
    format!("still held{lane}")
}

/// The bytes of all files in a directory, links not followed.
fn size_of(path: &Path) -> u64 {
    let Ok(found) = fs::symlink_metadata(path) else { return 0 };
    let below = if found.is_dir() { fs::read_dir(path).ok() } else { None };
    found.len() + below.into_iter().flatten().flatten().map(|entry| size_of(&entry.path())).sum::<u64>()
}

/// Removes `path` and the directories in it, as far as they are empty.
fn remove_empty_directories(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|kind| kind.is_dir()) {
        directory::directories(path).unwrap_or_default().iter().for_each(|inner| remove_empty_directories(inner));
        let _ = fs::remove_dir(path);
    }
}
