//! The end of slots: moved aside in one step, deleted afterwards.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::admin_lock::Guarded;
use super::claim::{Claim, Holder};
use super::durable;
use super::error::{GitError, io_error};
use super::operation::refuse_operation;
use super::pool::{Kept, Pool, make_directory};
use super::pristine::is_pristine;
use super::program::Git;
use super::repository::Repository;
use super::slot::{Occupant, clear_half_made, forget, is_locked, is_untouched, occupant};
use super::status::refuse_uncommitted;
use super::worktrees::directories_in;
use crate::fs::{atomic, regular_file};
use crate::model::{CommitId, RunId};

impl Pool {
    /// Removes the slots that nobody holds, and what is empty of the directories of `run` and of the pool. Answers
    /// what was kept of these, and the slots that `run` still holds, each with the reason.
    ///
    /// A slot with uncommitted work, with commits that no ref holds, or that a person locked is kept; so is whatever
    /// is not ours. Nothing is reached through a symbolic link.
    ///
    /// # Errors
    /// [`GitError::File`].
    pub fn empty(&self, run: &RunId) -> Result<Vec<Kept>, GitError> {
        self.empty_until(run, None)
    }

    /// The same, but what takes longer than `limit` to delete stays in the trash and is answered; whoever empties the
    /// pool next deletes it.
    ///
    /// # Errors
    /// [`GitError::File`].
    pub fn empty_within(&self, run: &RunId, limit: Duration) -> Result<Vec<Kept>, GitError> {
        self.empty_until(run, Some(Instant::now() + limit))
    }

    fn empty_until(&self, run: &RunId, until: Option<Instant>) -> Result<Vec<Kept>, GitError> {
        let mut kept = Vec::new();
        self.repository().holding(Guarded::Pool, |_| {
            for number in self.numbers()? {
                if let Err(reason) = self.put_aside(number, run) {
                    kept.extend(reason.map(|reason| Kept { path: self.slot(number), reason }));
                }
            }
            self.forget_vanished()?;
            durable::remove_unfinished(&self.slots())
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
            let ours = claim.holder.run == *run && claim.repository == self.repository().common_dir();
            return match found {
                _ if !ours => Err(None),
                Occupant::Nothing => durable::remove(&self.claim_file(number)).map_err(told),
                _ => Err(Some(held_by(&claim.holder))),
            };
        }
        match found {
            Occupant::Ours(entry) => match hindrance(self.repository(), &path, &entry) {
                Some(reason) => Err(Some(reason)),
                None => self.repository().holding(Guarded::Admin, |_| discard(self, &path, &entry)).map_err(told),
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

    /// Forgets the entries of slots that are gone, which a crash between two steps of [`discard`] leaves.
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
    if holder.makes_ahead() {
        return "still being made; `lanekeeper clean` removes it".to_owned();
    }
    let agent = holder.agent.as_ref().map(|agent| format!(" for agent {agent}")).unwrap_or_default();
    let lane = holder.lane.as_ref().map(|lane| format!(" by lane {lane}{agent}")).unwrap_or_default();
    format!("still held{lane}")
}

/// What is in a worktree that nobody holds and that may be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Nothing: it was made and never checked out.
    Untouched,
    /// What its head holds, and not a file more.
    Pristine,
    /// Anything else that is not worth keeping, such as ignored files.
    Used,
}

/// Why the worktree at `path`, which nobody holds, may neither be taken over nor removed.
pub(crate) fn hindrance(repository: &Repository, path: &Path, entry: &Path) -> Option<String> {
    condition(repository, path, entry, None).err()
}

/// What is in the worktree at `path`, which nobody holds; the error is the reason why it must stay as it is. A commit
/// that `likely` holds its head saves looking at all refs.
pub(crate) fn condition(
    repository: &Repository,
    path: &Path,
    entry: &Path,
    likely: Option<&CommitId>,
) -> Result<Condition, String> {
    if is_locked(entry) {
        return Err(format!("locked; `git worktree unlock {}` allows it", path.display()));
    }
    if is_untouched(path, entry) {
        return Ok(Condition::Untouched);
    }
    let condition = if is_pristine(repository, path) { Condition::Pristine } else { Condition::Used };
    let look = || {
        refuse_operation(path)?;
        if condition == Condition::Used {
            refuse_uncommitted(repository, path)?;
        }
        refuse_unreachable(repository, path, entry, likely)
    };
    look().map(|()| condition).map_err(|error: GitError| error.to_string())
}

/// Why what was moved aside stays.
pub(crate) const SET_ASIDE: &str = "was in the place of a worktree that an agent or somebody else removed; look at it, \
    and delete it";

/// What the reflog of a slot says when it was given back: its head was in something that is kept.
pub(crate) const RELEASED: &str = "lanekeeper: release";

/// Whether nothing happened in a worktree since it was given back with `head`. Who removed since then what held that
/// commit, such as the snapshots of a merged lane, did not want it any more.
pub(crate) fn rests_since_release(entry: &Path, head: &CommitId) -> bool {
    let log = regular_file::read_text(entry.join("logs/HEAD")).unwrap_or_default();
    let last = log.lines().next_back().and_then(|line| line.split_once('\t'));
    last.is_some_and(|(who, what)| what == RELEASED && who.split(' ').nth(1) == Some(head.as_str()))
}

/// Refuses a worktree whose head no ref holds. A commit that `likely` holds it, and is held, saves looking at all refs.
fn refuse_unreachable(
    repository: &Repository,
    path: &Path,
    entry: &Path,
    likely: Option<&CommitId>,
) -> Result<(), GitError> {
    let head = repository.head_at(path)?.commit;
    if rests_since_release(entry, &head) {
        return Ok(());
    }
    if let Some(likely) = likely
        && repository.is_ancestor(&head, likely)?
    {
        return Ok(());
    }
    let git = Git::new(repository.main_worktree()).args(["for-each-ref", "--count=1", "--contains", head.as_str()]);
    if git.run()?.is_empty() {
        return Err(GitError::Unmerged { place: path.display().to_string(), head });
    }
    Ok(())
}

/// Moves the slot at `path` into the trash and forgets its entry. The caller holds the admin lock.
pub(crate) fn discard(pool: &Pool, path: &Path, entry: &Path) -> Result<(), GitError> {
    make_directory(&pool.trash())?;
    let aside = pool.trash().join(uuid::Uuid::now_v7().to_string());
    atomic::rename(path, &aside).map_err(io_error("move", path))?;
    forget(pool.repository(), entry)
}

/// Threads that delete at once.
const DELETING_THREADS: usize = 8;

/// Deletes what is in the trash, until a moment if one is given; answers what could not be deleted.
fn delete_trash(trash: &Path, until: Option<Instant>) -> Vec<Kept> {
    if !fs::symlink_metadata(trash).is_ok_and(|kind| kind.is_dir()) {
        return Vec::new();
    }
    let worktrees = directories_in(trash).unwrap_or_default();
    let parts: Vec<PathBuf> = worktrees.iter().flat_map(fs::read_dir).flatten().flatten().map(|it| it.path()).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..DELETING_THREADS.min(parts.len()) {
            scope.spawn(|| {
                while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let _ = delete(part, until);
                }
            });
        }
    });
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
