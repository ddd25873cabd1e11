//! The end of slots: moved aside in one step, deleted afterwards.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::claim::{Claim, Holder};
use super::condition::{SET_ASIDE, blocker};
use super::pool::{Kept, Pool, make_directory};
use super::slot::{Occupant, clear_half_made, forget, is_locked, occupant};
use crate::fs::atomic;
use crate::git::command::error::{GitError, io_error};
use crate::git::repo::git_dir::directories_in;
use crate::git::repo::lock::Guarded;
use crate::git::repo::state_file;
use crate::model::RunId;

impl Pool {
    /// Removes the slots that have no holder, and the empty directories of `run` and of the pool. Returns what was kept of
    /// these, and the slots that `run` still holds, each with the reason.
    ///
    /// A slot with uncommitted work, with commits that no ref contains, or that the user locked is kept; so is whatever the
    /// pool did not create. No symbolic link is followed. What takes longer than `limit` to delete stays in the trash, is
    /// returned, and is deleted by the next call.
    ///
    /// # Errors
    /// [`GitError::File`].
    pub fn empty(&self, run: &RunId, limit: Option<Duration>) -> Result<Vec<Kept>, GitError> {
        let until = limit.map(|limit| Instant::now() + limit);
        let mut kept = Vec::new();
        self.repository().holding(Guarded::Pool, |_| {
            for number in self.numbers()? {
                if let Err(reason) = self.put_aside(number, run) {
                    kept.extend(reason.map(|reason| Kept { path: self.slot(number), reason }));
                }
            }
            self.forget_vanished()?;
            state_file::remove_unfinished(&self.slots())
        })?;
        kept.extend(self.set_aside().into_iter().map(|path| Kept { path, reason: SET_ASIDE.to_owned() }));
        kept.extend(delete_trash(&self.trash(), until));
        // Another run may be about to move something there.
        self.repository().holding(Guarded::Admin, |_| {
            let _ = fs::remove_dir(self.trash());
            Ok::<(), GitError>(())
        })?;
        self.remove_empty(run);
        Ok(kept)
    }

    /// Removes what is empty of the directories of `run` and of the pool.
    pub fn remove_empty(&self, run: &RunId) {
        remove_empty_directories(&self.root().join(run.as_str()));
        let emptied = self.repository().holding(Guarded::Pool, |_| {
            for path in [self.slots(), self.root().to_owned()] {
                let _ = fs::remove_dir(path);
            }
            Ok::<(), GitError>(())
        });
        if let Err(error) = emptied {
            tracing::debug!("empty directories of the pool stay: {error}");
        }
    }

    /// Moves slot `number` to the trash. The error is the reason why not, if it is one that `run` should know.
    fn put_aside(&self, number: u32, run: &RunId) -> Result<(), Option<String>> {
        let told = |error: GitError| Some(error.to_string());
        let path = self.slot(number);
        let found = occupant(self.repository(), &path);
        if let Some(claim) = Claim::read(&self.claim_file(number)).map_err(told)? {
            let ours = claim.holder.run == *run && self.owns(&claim);
            return match found {
                _ if !ours => Err(None),
                Occupant::Nothing => state_file::remove(&self.claim_file(number)).map_err(told),
                _ => Err(Some(held_by(&claim.holder))),
            };
        }
        match found {
            Occupant::Ours(entry) => match blocker(self.repository(), &path, &entry, None) {
                Some(reason) => Err(Some(reason)),
                None => self.repository().holding(Guarded::Admin, |_| self.discard(&path, &entry)).map_err(told),
            },
            Occupant::HalfMade => self
                .repository()
                .holding(Guarded::Admin, |_| clear_half_made(self.repository(), &path))
                .and_then(|()| fs::remove_dir(&path).map_err(io_error("remove", &path)))
                .map_err(told),
            Occupant::Nothing => {
                let _ = fs::remove_dir(&path);
                Ok(())
            }
            Occupant::Stranger => Err(told(GitError::NotOurs { path })),
        }
    }

    /// Moves the slot at `path` into the trash and forgets its entry. The caller holds the admin lock.
    pub(crate) fn discard(&self, path: &Path, entry: &Path) -> Result<(), GitError> {
        make_directory(&self.trash())?;
        let aside = self.trash().join(uuid::Uuid::now_v7().to_string());
        atomic::rename(path, &aside).map_err(io_error("move", path))?;
        forget(self.repository(), entry)
    }

    /// Forgets the entries of slots that are gone, which a crash between two steps of [`Pool::discard`] leaves.
    fn forget_vanished(&self) -> Result<(), GitError> {
        self.repository().holding(Guarded::Admin, |_| {
            for entry in self.repository().linked_worktrees()? {
                let gone = fs::symlink_metadata(&entry.worktree).is_err() && !is_locked(&entry.directory);
                let number = entry.worktree.file_name().and_then(|name| name.to_str()?.parse().ok());
                let free = number.is_some_and(|number| !self.claim_file(number).exists());
                if gone && free && entry.worktree.parent() == Some(&self.slots()) {
                    forget(self.repository(), &entry.directory)?;
                }
            }
            Ok(())
        })
    }
}

fn held_by(holder: &Holder) -> String {
    let agent = holder.agent.as_ref().map(|agent| format!(" for agent {agent}")).unwrap_or_default();
    let lane = holder.lane.as_ref().map(|lane| format!(" by lane {lane}{agent}")).unwrap_or_default();
    format!("still held{lane}")
}

/// Deletes what is in the trash, until a moment if one is given; returns what could not be deleted.
fn delete_trash(trash: &Path, until: Option<Instant>) -> Vec<Kept> {
    if !fs::symlink_metadata(trash).is_ok_and(|kind| kind.is_dir()) {
        return Vec::new();
    }
    let worktrees = directories_in(trash).unwrap_or_default();
    let kept = worktrees.into_iter().filter_map(|path| {
        let reason = match delete(&path, until).err()? {
            late if late.kind() == io::ErrorKind::TimedOut => {
                "takes long to delete; `lanekeeper clean` does it".to_owned()
            }
            error => format!("cannot be deleted: {error}"),
        };
        Some(Kept { path, reason })
    });
    kept.collect()
}

/// Deletes a file, a link (not what it leads to) or a directory; gone already is as good.
fn delete(path: &Path, until: Option<Instant>) -> io::Result<()> {
    let Ok(kind) = fs::symlink_metadata(path) else { return Ok(()) };
    if until.is_some_and(|until| Instant::now() >= until) {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let done = match (kind.is_dir(), until) {
        (false, _) => fs::remove_file(path),
        (true, None) => fs::remove_dir_all(path),
        (true, Some(_)) => fs::read_dir(path)
            .and_then(|mut entries| entries.try_for_each(|entry| delete(&entry?.path(), until)))
            .and_then(|()| fs::remove_dir(path)),
    };
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Removes `path` and the directories in it, as far as they are empty.
fn remove_empty_directories(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|kind| kind.is_dir()) {
        directories_in(path).unwrap_or_default().iter().for_each(|inner| remove_empty_directories(inner));
        let _ = fs::remove_dir(path);
    }
}
