//! The bounded pool of worktrees. A slot that nobody holds is taken over rather than made anew: that costs a sixth.

mod ahead;
mod furnish;
mod nearness;
mod replica;
mod turns;
mod verbatim;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use self::ahead::Making;
use self::turns::{For, Turn, Turns};
use crate::event::Worktree;
use crate::fs::directory;
use crate::git::admin_lock::{Guarded, holding_worktree};
use crate::git::claim::{Claim, Holder, Progress};
use crate::git::durable;
use crate::git::error::{GitError, io_error};
use crate::git::head::{Head, remove_dead_locks};
use crate::git::library;
use crate::git::operation::refuse_operation;
use crate::git::program::Git;
use crate::git::repository::Repository;
use crate::git::retire::{RELEASED, discard};
use crate::git::slot::{Occupant, is_untouched, occupant};
use crate::git::status::refuse_uncommitted;
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
    repository: Repository,
    root: PathBuf,
    limit: u32,
    keep_caches: bool,
    /// The first failure of the user's post-checkout hook, and whether it was asked for.
    hook_failure: Arc<OnceLock<String>>,
    told_of_hook: Arc<AtomicBool>,
    turns: Arc<Turns>,
    making: Arc<Making>,
    known: Arc<KnownHolders>,
}

/// Who holds which slot as far as this process knows, because a claim may be removed while its slot is held: nobody else
/// is given such a slot.
#[derive(Debug, Default)]
struct KnownHolders(Mutex<BTreeMap<u32, Holder>>);

impl KnownHolders {
    fn note(&self, number: u32, holder: &Holder) {
        self.locked().insert(number, holder.clone());
    }

    fn forget(&self, number: u32) {
        self.locked().remove(&number);
    }

    fn forget_holder(&self, holder: &Holder) {
        self.locked().retain(|_, known| known != holder);
    }

    fn holder_of(&self, number: u32) -> Option<Holder> {
        self.locked().get(&number).cloned()
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<u32, Holder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which slots may be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Among {
    Free,
    FreeAndNew,
    New,
}

impl Pool {
    /// A pool below `root`, which need not exist, of which one run holds at most `limit` slots at once. With
    /// `keep_caches` ignored files stay in a slot that is taken over.
    pub fn new(repository: Repository, root: &Path, limit: u32, keep_caches: bool) -> Self {
        let (hook_failure, told_of_hook) = (Arc::default(), Arc::default());
        let (turns, making, known) = (Arc::default(), Arc::default(), Arc::default());
        Self { repository, root: resolved(root), limit, keep_caches, hook_failure, told_of_hook, turns, making, known }
    }

    /// Where the pool and the runs' directories are; absolute, without symbolic links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How the user's post-checkout hook failed, the first time that it did; told once.
    pub fn hook_failure(&self) -> Option<String> {
        self.hook_failure.get().filter(|_| !self.told_of_hook.swap(true, Ordering::Relaxed)).cloned()
    }

    /// Notes that the run log names `holder` as the holder of a slot.
    pub(crate) fn note_holder(&self, number: u32, holder: &Holder) {
        self.known.note(number, holder);
    }

    pub(crate) fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Gives `holder` a worktree with `want` checked out: the one it has, else the free one that is nearest to `want`,
    /// else a new one. Slots are made in turn; whoever waits for that takes a slot that is given back meanwhile.
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
            let (number, turn) = self.find(holder, want, &unfit)?;
            match self.furnish(number, holder, want, turn) {
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
                        false => self.repository.holding(Guarded::Admin, |_| discard(self, &path, &entry)),
                    })?;
                }
                self.repository.holding(Guarded::Pool, |_| durable::remove(&self.claim_file(number)))?;
                self.turns.something_changed();
            }
        }
        self.known.forget_holder(holder);
        Ok(())
    }

    /// Who holds which slot of this repository.
    ///
    /// # Errors
    /// [`GitError::BadClaim`], [`GitError::File`].
    pub fn claims(&self) -> Result<Vec<(u32, Holder)>, GitError> {
        let damaged = self.numbers()?.into_iter().find_map(|number| Claim::read(&self.claim_file(number)).err());
        match damaged {
            Some(error) => Err(error),
            None => Ok(self.own_claims()?.into_iter().map(|(number, claim)| (number, claim.holder)).collect()),
        }
    }

    /// Claims a slot for `holder`: a free one at once, else, in turn, one that has to be made.
    fn find(&self, holder: &Holder, want: &Checkout, unfit: &[u32]) -> Result<(u32, Option<Turn<'_>>), GitError> {
        let mut waiting = self.turns.wait(if holder.agent.is_some() { For::Agent } else { For::Lane });
        loop {
            waiting.look();
            if let Some(number) = self.claim(holder, &want.start, unfit, Among::Free)? {
                return Ok((number, None));
            }
            if let Some(turn) = waiting.turn()
                && let Some(number) = self.claim(holder, &want.start, unfit, Among::FreeAndNew)?
            {
                return Ok((number, Some(turn)));
            }
            waiting.until_something_changes();
        }
    }

    /// Claims a slot for `holder` that is not `unfit`: its own, or one of those `among`; a new one is a number that is not
    /// used.
    fn claim(&self, holder: &Holder, start: &CommitId, unfit: &[u32], among: Among) -> Result<Option<u32>, GitError> {
        self.repository.holding(Guarded::Pool, |_| {
            // Within the lock: another run that ends removes what is empty.
            make_directory(&self.slots())?;
            let mut held = 0;
            for (number, claim) in self.own_claims()? {
                if claim.holder == *holder && unfit.contains(&number) {
                    self.known.forget(number);
                    durable::remove(&self.claim_file(number))?;
                } else if claim.holder == *holder {
                    self.known.note(number, holder);
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
            let free = if among == Among::New { Vec::new() } else { self.nearest_first(start)? };
            let numbers = (1..).take_while(|_| among != Among::Free).filter(vacant);
            self.claim_first(&claim, unfit, free.into_iter().chain(numbers))
        })
    }

    /// The free slots, the one nearest to `start` first.
    fn nearest_first(&self, start: &CommitId) -> Result<Vec<u32>, GitError> {
        let mut free = self.free_slots()?;
        if free.len() > 1 {
            free.sort_by_cached_key(|&number| self.repository.distance(&self.slot(number), start));
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
            let is_anothers = self.known.holder_of(number).is_some_and(|known| known != claim.holder);
            if !is_anothers && !unfit.contains(&number) && !file.exists() && claim.create(&file)? {
                self.known.note(number, &claim.holder);
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Drops a claim with which nothing was begun, so that a failed `open` holds no slot.
    fn give_up(&self, number: u32) -> Result<(), GitError> {
        self.repository.holding(Guarded::Pool, |_| match Claim::read(&self.claim_file(number))? {
            Some(Claim { progress: Progress::Claimed, .. }) => {
                self.known.forget(number);
                durable::remove(&self.claim_file(number))
            }
            _ => Ok(()),
        })
    }

    fn detach(&self, path: &Path, kept_by: &[CommitId], lock: &File) -> Result<(), GitError> {
        refuse_operation(path)?;
        refuse_uncommitted(&self.repository, path)?;
        let head = self.repository.head_at(path)?;
        self.refuse_unmerged(path, &head.commit, kept_by)?;
        remove_dead_locks(path)?;
        let detached = library::change(&self.repository, path, |git| {
            git.reference("HEAD", library::oid(&head.commit)?, true, RELEASED).map(drop)
        });
        if detached.is_some() {
            return Ok(());
        }
        // Not `git checkout --detach`, which would run the user's hooks for nothing.
        let git = Git::new(path).without_hooks().stdin(lock);
        git.args(["update-ref", "--no-deref", "-m", RELEASED, "HEAD", head.commit.as_str()]).run()?;
        Ok(())
    }

    fn refuse_unmerged(&self, path: &Path, head: &CommitId, kept_by: &[CommitId]) -> Result<(), GitError> {
        for kept in kept_by {
            if self.repository.is_ancestor(head, kept)? {
                return Ok(());
            }
        }
        Err(GitError::Unmerged { place: path.display().to_string(), head: head.clone() })
    }

    /// The claim of `holder`, which may have been removed since it was made, and be another's now.
    fn read_claim(&self, number: u32, holder: &Holder) -> Result<Claim, GitError> {
        let path = self.claim_file(number);
        let gone = || GitError::BadClaim { path: path.clone(), reason: "it was removed".to_owned() };
        Claim::read(&path)?.filter(|claim| claim.holder == *holder).ok_or_else(gone)
    }

    fn record(&self, number: u32, claim: &Claim) -> Result<(), GitError> {
        let path = self.claim_file(number);
        self.repository.holding(Guarded::Pool, |_| match Claim::read(&path)? {
            Some(other) if other.holder != claim.holder => {
                Err(GitError::BadClaim { path: path.clone(), reason: "it is another holder's now".to_owned() })
            }
            _ => claim.replace(&path),
        })
    }

    /// The readable claims of this repository; a damaged one keeps its slot from everybody.
    pub(crate) fn own_claims(&self) -> Result<Vec<(u32, Claim)>, GitError> {
        let claims = self.numbers()?.into_iter().filter_map(|number| {
            let claim = Claim::read(&self.claim_file(number)).ok().flatten()?;
            (claim.repository == self.repository.common_dir()).then_some((number, claim))
        });
        Ok(claims.collect())
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
