//! The bounded pool of worktrees. A slot that has no holder is taken over rather than created: that costs a sixth.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::claim::{Claim, Holder, Progress};
use super::condition::RELEASED;
use super::creation_queue::{CreationQueue, Turn};
use super::slot::{Occupant, is_untouched, occupant};
use crate::event::Worktree;
use crate::fs::directory;
use crate::git::command::error::{GitError, io_error};
use crate::git::command::program::Git;
use crate::git::fast::libgit2;
use crate::git::history::dead_locks::remove_dead_locks;
use crate::git::query::head::Head;
use crate::git::query::operation::refuse_operation;
use crate::git::query::status::refuse_uncommitted;
use crate::git::repo::lock::{Guarded, holding_worktree};
use crate::git::repo::repository::Repository;
use crate::git::repo::state_file;
use crate::model::CommitId;

/// What is to be checked out in a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// The branch, without `refs/heads/`; `None`: no branch, `start` itself.
    pub branch: Option<String>,
    /// Where a new branch starts.
    pub start: CommitId,
    /// What becomes of a branch that exists.
    pub mode: Mode,
    /// Whether the branch, if it exists, was made for this holder: the run log knows.
    pub adopt: bool,
}

/// What becomes of a branch that exists, and of work in the holder's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The branch is made; one that is the holder's and continues `start` is kept as it is.
    FreshBranch,
    /// The branch exists and is kept as it is.
    ExistingBranch,
    /// The branch is put to `start`, and whatever the slot holds is thrown away, ignored files excepted.
    Reset,
}

/// A worktree that was not removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Where it is.
    pub path: PathBuf,
    /// Why it was kept.
    pub reason: String,
}

/// The slots of one repository below one root.
#[derive(Debug, Clone)]
pub struct Pool {
    pub(crate) repository: Repository,
    root: PathBuf,
    limit: u32,
    pub(crate) keep_caches: bool,
    /// The first failure of the user's post-checkout hook, until it is reported.
    pub(crate) hook_failure: Arc<OnceLock<Mutex<Option<String>>>>,
    creation_queue: Arc<CreationQueue>,
    /// The holders that this process knows: a claim may be removed while its slot is held, and such a slot is given to no
    /// other holder.
    known: Arc<Mutex<BTreeMap<u32, Holder>>>,
}

impl Pool {
    /// A pool below `root`, which need not exist, of which one run holds at most `limit` slots at once. With
    /// `keep_caches` ignored files stay in a slot that is taken over.
    pub fn new(repository: Repository, root: &Path, limit: u32, keep_caches: bool) -> Self {
        let (hook_failure, creation_queue, known) = Default::default();
        Self { repository, root: resolved(root), limit, keep_caches, hook_failure, creation_queue, known }
    }

    /// Where the pool and the runs' directories are; absolute, without symbolic links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How the user's post-checkout hook failed the first time; reported once.
    pub fn hook_failure(&self) -> Option<String> {
        self.hook_failure.get()?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Notes that the run log names `holder` as the holder of a slot.
    pub(crate) fn note_holder(&self, number: u32, holder: &Holder) {
        self.known().insert(number, holder.clone());
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<u32, Holder>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Gives `holder` a worktree with `want` checked out: the one it has, else the free one that is nearest to `want`,
    /// else a new one.
    ///
    /// Asked again, it answers the same, `head` being the one of the first time; work that was done meanwhile stays.
    ///
    /// # Errors
    /// [`GitError::PoolExhausted`]; [`GitError::BranchInTheWay`] and [`GitError::BranchMissing`] as `want` says;
    /// [`GitError::Dirty`], [`GitError::Unmerged`] or [`GitError::OperationInProgress`] when the holder's slot stands
    /// elsewhere and leaving there would lose work; or what git says.
    pub fn open(&self, holder: &Holder, want: &Checkout) -> Result<Worktree, GitError> {
        let mut unfit = Vec::new();
        loop {
            let (number, turn) = self.find(holder, &want.start, &unfit)?;
            match self.provision(number, holder, want, turn) {
                Ok(Some(worktree)) => return Ok(worktree),
                Ok(None) => unfit.push(number),
                Err(error) => return self.give_up(number).and(Err(error)),
            }
        }
    }

    /// Takes the slot of `holder` back. It stays as it is, without its branch. A slot whose checkout was not completed
    /// holds no work of the holder's and is discarded; one that was only claimed stays as the last holder left it.
    ///
    /// # Errors
    /// [`GitError::Dirty`], [`GitError::OperationInProgress`], or [`GitError::Unmerged`] when its head is in none of
    /// `kept_by`: then the holder keeps it.
    pub fn release(&self, holder: &Holder, kept_by: &[CommitId]) -> Result<(), GitError> {
        for (number, claim) in self.own_claims()? {
            if claim.holder == *holder {
                let path = self.slot(number);
                if let Occupant::Ours(entry) = occupant(&self.repository, &path)
                    && claim.progress != Progress::Claimed
                {
                    // A git that outlives a killed Lanekeeper holds this lock.
                    holding_worktree(&path, |lock| match claim.progress.is_opened() && !is_untouched(&path, &entry) {
                        true => self.detach(&path, kept_by, lock),
                        false => self.repository.holding(Guarded::Admin, |_| self.discard(&path, &entry)),
                    })?;
                }
                self.repository.holding(Guarded::Pool, |_| state_file::remove(&self.claim_file(number)))?;
            }
        }
        self.known().retain(|_, known| known != holder);
        Ok(())
    }

    /// Claims a slot for `holder`: its own or a free one at once, else, when its turn to create one comes, a new one.
    fn find(&self, holder: &Holder, start: &CommitId, unfit: &[u32]) -> Result<(u32, Option<Turn<'_>>), GitError> {
        if let Some(number) = self.claim(holder, start, unfit, false)? {
            return Ok((number, None));
        }
        let turn = self.creation_queue.wait();
        let number = self.claim(holder, start, unfit, true)?.ok_or(GitError::PoolExhausted { limit: self.limit })?;
        Ok((number, Some(turn)))
    }

    /// Claims a slot for `holder` that is not `unfit`: its own, else a free one, else, if it may `create` one, the first
    /// number that is not in use.
    fn claim(&self, holder: &Holder, start: &CommitId, unfit: &[u32], create: bool) -> Result<Option<u32>, GitError> {
        self.repository.holding(Guarded::Pool, |_| {
            // Within the lock: another run that ends removes what is empty.
            make_directory(&self.slots())?;
            let mut held = 0;
            for (number, claim) in self.own_claims()? {
                if claim.holder == *holder && unfit.contains(&number) {
                    self.known().remove(&number);
                    state_file::remove(&self.claim_file(number))?;
                } else if claim.holder == *holder {
                    self.note_holder(number, holder);
                    return Ok(Some(number));
                } else if claim.holder.run == holder.run {
                    held += 1;
                }
            }
            if held >= self.limit {
                return Err(GitError::PoolExhausted { limit: self.limit });
            }
            let claim = Claim {
                repository: self.repository.common_dir().to_owned(),
                holder: holder.clone(),
                progress: Progress::Claimed,
            };
            let vacant = |&number: &u32| {
                matches!(occupant(&self.repository, &self.slot(number)), Occupant::Nothing | Occupant::HalfMade)
            };
            let numbers = (1..).take_while(|_| create).filter(vacant);
            self.claim_first(&claim, unfit, self.nearest_first(start)?.into_iter().chain(numbers))
        })
    }

    /// The free slots, the one that differs from `start` in the fewest paths first.
    fn nearest_first(&self, start: &CommitId) -> Result<Vec<u32>, GitError> {
        let mut free = self.free_slots()?;
        let distance = |head: CommitId| self.repository.changed_paths(&head, start).map(|paths| paths.len());
        if free.len() > 1 {
            free.sort_by_cached_key(|&number| {
                self.repository.head_at(&self.slot(number)).and_then(|head| distance(head.commit)).unwrap_or(usize::MAX)
            });
        }
        Ok(free)
    }

    /// The slots that exist and have no claim. One on a branch was never given back: its claim was removed.
    fn free_slots(&self) -> Result<Vec<u32>, GitError> {
        let mut free = self.numbers()?;
        free.retain(|&number| {
            let path = self.slot(number);
            !self.claim_file(number).exists()
                && matches!(occupant(&self.repository, &path), Occupant::Ours(_))
                && matches!(Head::branch_of(&path), Ok(None))
        });
        Ok(free)
    }

    fn claim_first(
        &self,
        claim: &Claim,
        unfit: &[u32],
        numbers: impl Iterator<Item = u32>,
    ) -> Result<Option<u32>, GitError> {
        for number in numbers {
            let file = self.claim_file(number);
            let is_anothers = self.known().get(&number).is_some_and(|known| *known != claim.holder);
            if !is_anothers && !unfit.contains(&number) && !file.exists() && claim.create(&file)? {
                self.note_holder(number, &claim.holder);
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Drops a claim with which nothing was begun, so that a failed `open` holds no slot.
    fn give_up(&self, number: u32) -> Result<(), GitError> {
        self.repository.holding(Guarded::Pool, |_| match Claim::read(&self.claim_file(number))? {
            Some(Claim { progress: Progress::Claimed, .. }) => {
                self.known().remove(&number);
                state_file::remove(&self.claim_file(number))
            }
            _ => Ok(()),
        })
    }

    fn detach(&self, path: &Path, kept_by: &[CommitId], lock: &File) -> Result<(), GitError> {
        refuse_operation(path)?;
        refuse_uncommitted(path)?;
        let head = self.repository.head_at(path)?;
        self.refuse_unmerged(path, &head.commit, kept_by)?;
        remove_dead_locks(path)?;
        let detached = libgit2::change(&self.repository, path, |git| {
            git.reference("HEAD", libgit2::oid(&head.commit)?, true, RELEASED).map(drop)
        });
        if detached.is_some() {
            return Ok(());
        }
        // Not `git checkout --detach`, which would run the user's hooks for nothing.
        let git = Git::new(path).without_hooks().stdin(lock);
        git.args(["update-ref", "--no-deref", "-m", RELEASED, "HEAD", head.commit.as_str()]).run()?;
        Ok(())
    }

    pub(crate) fn refuse_unmerged(&self, path: &Path, head: &CommitId, kept_by: &[CommitId]) -> Result<(), GitError> {
        for kept in kept_by {
            if self.repository.is_ancestor(head, kept)? {
                return Ok(());
            }
        }
        Err(GitError::Unmerged { place: path.display().to_string(), head: head.clone() })
    }

    /// The claim of `holder`, which may have been removed since it was made, and be another's now.
    pub(crate) fn read_claim(&self, number: u32, holder: &Holder) -> Result<Claim, GitError> {
        let path = self.claim_file(number);
        let gone = || GitError::BadClaim { path: path.clone(), reason: "it was removed".to_owned() };
        Claim::read(&path)?.filter(|claim| claim.holder == *holder).ok_or_else(gone)
    }

    pub(crate) fn record(&self, number: u32, claim: &Claim) -> Result<(), GitError> {
        let path = self.claim_file(number);
        self.repository.holding(Guarded::Pool, |_| match Claim::read(&path)? {
            Some(other) if other.holder != claim.holder => {
                Err(GitError::BadClaim { path: path.clone(), reason: "it is another holder's now".to_owned() })
            }
            _ => claim.replace(&path),
        })
    }

    /// The readable claims of this repository; a damaged one keeps its slot from every holder.
    pub(crate) fn own_claims(&self) -> Result<Vec<(u32, Claim)>, GitError> {
        let claims = self.numbers()?.into_iter().filter_map(|number| {
            let claim = Claim::read(&self.claim_file(number)).ok().flatten()?;
            self.owns(&claim).then_some((number, claim))
        });
        Ok(claims.collect())
    }

    /// Whether the claim is one of this repository; two repositories may share a root.
    pub(crate) fn owns(&self, claim: &Claim) -> bool {
        claim.repository == self.repository.common_dir()
    }

    /// The numbers of all slots that exist or are claimed.
    pub(crate) fn numbers(&self) -> Result<Vec<u32>, GitError> {
        let slots = self.slots();
        let listing = match fs::read_dir(&slots) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            listing => listing.map_err(io_error("list", &slots))?,
        };
        let names = listing.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut numbers: Vec<u32> =
            names.filter_map(|name| name.strip_suffix(".claim").unwrap_or(&name).parse().ok()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers)
    }

    pub(crate) fn slots(&self) -> PathBuf {
        self.root.join("slots")
    }

    pub(crate) fn trash(&self) -> PathBuf {
        self.root.join("trash")
    }

    pub(crate) fn slot(&self, number: u32) -> PathBuf {
        self.slots().join(format!("{number:02}"))
    }

    pub(crate) fn claim_file(&self, number: u32) -> PathBuf {
        self.slots().join(format!("{number:02}.claim"))
    }
}

/// Makes a directory that only its owner may enter; one that exists is as good.
pub(crate) fn make_directory(path: &Path) -> Result<(), GitError> {
    Ok(directory::create_directory(path)?)
}

/// `path` without symbolic links, as far as it exists: git registers worktrees by such names.
fn resolved(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|part| Some((part, fs::canonicalize(part).ok()?)));
    match existing {
        Some((part, real)) => real.join(path.strip_prefix(part).unwrap_or(Path::new(""))),
        None => path.to_owned(),
    }
}
