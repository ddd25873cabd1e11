//! The bounded pool of worktrees. A slot that has no holder is taken over rather than created: that costs a sixth.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lanewright_files::directory::create_directory_unsynced;
use lanewright_files::{atomic, directory};
use lanewright_model::CommitId;
use lanewright_model::event::Worktree;

use crate::command::{GitError, Result};
use crate::history::{detach_head, remove_dead_locks};
use crate::query::{Head, refuse_operation, refuse_uncommitted};
use crate::repo::{Guarded, Repository, holding_worktree};
use crate::worktree::{
    Claim, CreationQueue, Holder, Occupant, Progress, RELEASED, Turn, forget_private, is_untouched, occupant,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// The branch, without `refs/heads/`; `None`: no branch, `start` itself.
    pub branch: Option<String>,
    pub start: CommitId,
    pub mode: Mode,
    /// Whether the branch, if it exists, was made for this holder according to the run log.
    pub adopt: bool,
}

impl Checkout {
    /// Of a worktree that the holder has had: its branch as it is, or its head on no branch.
    pub fn again(worktree: &Worktree) -> Self {
        let branch = branch_of(worktree);
        let mode = if branch.is_some() { Mode::ExistingBranch } else { Mode::Reset };
        Self { branch, start: worktree.head.clone(), mode, adopt: true }
    }
}

/// The branch of a worktree; its name is empty where there is none.
pub(crate) fn branch_of(worktree: &Worktree) -> Option<String> {
    Some(worktree.branch.clone()).filter(|branch| !branch.is_empty())
}

/// What becomes of a branch that exists, and of work in the holder's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The branch is made; one that is the holder's and continues `start` is kept as it is.
    FreshBranch,
    /// The branch exists and is kept as it is.
    ExistingBranch,
    /// The branch is reset to `start`, and whatever is in the slot is discarded, ignored files excepted.
    Reset,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub path: PathBuf,
    pub reason: String,
}

/// A hook of the user's that a holder waits for.
#[derive(Debug)]
struct RunningHook {
    holder: Holder,
    hook: &'static str,
    since: Instant,
}

/// How the user's post-checkout hook failed first; without the text: it was reported.
type HookFailure = Option<String>;

/// The slots of one repository below one root.
#[derive(Debug, Clone)]
pub struct Pool {
    pub(crate) repository: Repository,
    root: PathBuf,
    limit: u32,
    pub(crate) keep_caches: bool,
    /// How long the user's post-checkout hook may take; `None`: for ever.
    pub(crate) hook_limit: Option<Duration>,
    /// The first failure of the user's post-checkout hook, until it is reported.
    hook_failure: Arc<Mutex<Option<HookFailure>>>,
    /// The holders for whose checkout the user's post-checkout hook runs, and since when.
    running_hooks: Arc<Mutex<Vec<RunningHook>>>,
    creation_queue: Arc<CreationQueue>,
    /// The holders that this process knows: a claim may be removed while its slot is held, and such a slot must not be given
    /// to another holder.
    known: Arc<Mutex<BTreeMap<u32, Holder>>>,
}

impl Pool {
    /// A pool below `root`, which need not exist, of which one run holds at most `limit` slots at once. With
    /// `keep_caches` ignored files stay in a slot that is taken over.
    pub fn new(repository: Repository, root: &Path, limit: u32, keep_caches: bool) -> Self {
        let (hook_failure, running_hooks, creation_queue, known) = Default::default();
        let (root, hook_limit) = (resolved(root), None);
        Self { repository, root, limit, keep_caches, hook_limit, hook_failure, running_hooks, creation_queue, known }
    }

    /// How long a hook of the user's may take.
    pub fn hook_limit(&self) -> Option<Duration> {
        self.hook_limit
    }

    /// Ends the user's post-checkout hook where it takes longer than `limit`; the checkout stands.
    pub fn ending_hooks_after(self, limit: Duration) -> Self {
        Self { hook_limit: Some(limit), ..self }
    }

    /// Where the pool and the runs' directories are; absolute, without symbolic links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How the user's post-checkout hook failed the first time; reported once.
    pub fn hook_failure(&self) -> Option<String> {
        self.hook_failure.lock().unwrap_or_else(PoisonError::into_inner).as_mut()?.take()
    }

    pub(crate) fn note_hook_failure(&self, failure: String) {
        self.hook_failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(Some(failure));
    }

    /// The holders that wait for a hook of the user's, its name, and for how long.
    pub fn running_hooks(&self) -> Vec<(Holder, &'static str, Duration)> {
        let running = self.running_hooks.lock().unwrap_or_else(PoisonError::into_inner);
        running.iter().map(|it| (it.holder.clone(), it.hook, it.since.elapsed())).collect()
    }

    /// Has `run` run the `hook` for `holder`, which is listed as running meanwhile.
    pub fn while_hook_runs<T>(&self, holder: &Holder, hook: &'static str, run: impl FnOnce() -> T) -> T {
        let running = || self.running_hooks.lock().unwrap_or_else(PoisonError::into_inner);
        running().push(RunningHook { holder: holder.clone(), hook, since: Instant::now() });
        let done = run();
        running().retain(|it| it.holder != *holder);
        done
    }

    /// Notes that the run log names `holder` as the holder of a slot.
    pub fn note_holder(&self, number: u32, holder: &Holder) {
        self.known().insert(number, holder.clone());
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<u32, Holder>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Gives `holder` a worktree with `want` checked out: the one it has, else the free one that is nearest to `want`,
    /// else a new one.
    ///
    /// Asked again, it returns the same, `head` being the one of the first time; work that was done meanwhile stays.
    ///
    /// # Errors
    /// [`GitError::PoolExhausted`]; [`GitError::BranchInTheWay`] and [`GitError::BranchMissing`] depending on `want`;
    /// [`GitError::Dirty`], [`GitError::Unmerged`] or [`GitError::OperationInProgress`] when the holder's slot is elsewhere
    /// and leaving there would lose work.
    pub fn open(&self, holder: &Holder, want: &Checkout) -> Result<Worktree> {
        let mut unfit = Vec::new();
        loop {
            let (number, turn) = self.find(holder, &want.start, &unfit)?;
            match self.provision(number, holder, want, turn) {
                Ok(Some(worktree)) => return Ok(worktree),
                Ok(None) => unfit.push(number),
                Err(error) => return self.drop_unused_claim(number).and(Err(error)),
            }
        }
    }

    /// Takes the slot of `holder` back. It stays as it is, without its branch. A slot whose checkout was not completed
    /// holds no work of the holder's and is discarded; one that was only claimed stays as the last holder left it.
    ///
    /// # Errors
    /// [`GitError::Dirty`], [`GitError::OperationInProgress`], or [`GitError::Unmerged`] when its head is in none of
    /// `kept_by`: then the holder keeps it.
    pub fn release(&self, holder: &Holder, kept_by: &[CommitId]) -> Result<()> {
        for (number, claim) in self.own_claims()?.into_iter().filter(|(_, claim)| claim.holder == *holder) {
            let path = self.slot(number);
            forget_private(&self.repository, &path)?;
            if let Some(entry) = self.repository.own_entry(&path)
                && claim.progress != Progress::Claimed
            {
                // A git that outlives a killed Lanewright holds this lock.
                holding_worktree(&path, |lock| match claim.progress.is_opened() && !is_untouched(&path, &entry) {
                    true => self.detach(&path, kept_by, lock),
                    false => self.repository.holding(Guarded::Admin, |_| self.discard(&path, &entry)),
                })?;
            }
            self.repository.holding(Guarded::Pool, |_| self.remove_claim(number))?;
        }
        self.known().retain(|_, known| known != holder);
        Ok(())
    }

    /// Claims a slot for `holder`: its own or a free one at once, else, when its turn to create one comes, a new one.
    fn find(&self, holder: &Holder, start: &CommitId, unfit: &[u32]) -> Result<(u32, Option<Turn<'_>>)> {
        if let Some(number) = self.claim(holder, start, unfit, false)? {
            return Ok((number, None));
        }
        let turn = self.creation_queue.wait();
        let number = self.claim(holder, start, unfit, true)?.ok_or(GitError::PoolExhausted { limit: self.limit })?;
        Ok((number, Some(turn)))
    }

    /// Claims a slot for `holder` that is not `unfit`: its own, else a free one, else, if it may `create` one, the first
    /// number that is not in use.
    fn claim(&self, holder: &Holder, start: &CommitId, unfit: &[u32], create: bool) -> Result<Option<u32>> {
        self.repository.holding(Guarded::Pool, |_| {
            // Within the lock: another run that ends removes what is empty.
            create_directory_unsynced(&self.slots())?;
            let mut held = 0;
            for (number, claim) in self.own_claims()? {
                if claim.holder == *holder && unfit.contains(&number) {
                    self.remove_claim(number)?;
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
    fn nearest_first(&self, start: &CommitId) -> Result<Vec<u32>> {
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
    fn free_slots(&self) -> Result<Vec<u32>> {
        let mut free = self.numbers()?;
        free.retain(|&number| {
            let path = self.slot(number);
            !self.claim_file(number).exists()
                && self.repository.own_entry(&path).is_some()
                && matches!(Head::branch_of(&path), Ok(None))
        });
        Ok(free)
    }

    fn claim_first(&self, claim: &Claim, unfit: &[u32], numbers: impl Iterator<Item = u32>) -> Result<Option<u32>> {
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
    fn drop_unused_claim(&self, number: u32) -> Result<()> {
        self.repository.holding(Guarded::Pool, |_| match Claim::read(&self.claim_file(number))? {
            Some(Claim { progress: Progress::Claimed, .. }) => self.remove_claim(number),
            _ => Ok(()),
        })
    }

    pub(crate) fn remove_claim(&self, number: u32) -> Result<()> {
        self.known().remove(&number);
        Ok(atomic::remove(&self.claim_file(number))?)
    }

    fn detach(&self, path: &Path, kept_by: &[CommitId], lock: &File) -> Result<()> {
        refuse_operation(path)?;
        self.repository.take_new_files_of_submodules(path)?;
        refuse_uncommitted(&self.repository, path)?;
        let head = self.repository.head_at(path)?;
        self.refuse_unmerged(path, &head.commit, kept_by)?;
        remove_dead_locks(path)?;
        detach_head(&self.repository, path, &head.commit, RELEASED, lock)
    }

    pub(crate) fn refuse_unmerged(&self, path: &Path, head: &CommitId, kept_by: &[CommitId]) -> Result<()> {
        match self.repository.is_in_any(head, kept_by)? {
            true => Ok(()),
            false => Err(GitError::Unmerged { place: path.display().to_string(), head: head.clone() }),
        }
    }

    /// The claim of `holder`, which may have been removed since it was made, and be another's now.
    pub(crate) fn read_claim(&self, number: u32, holder: &Holder) -> Result<Claim> {
        let path = self.claim_file(number);
        let gone = || GitError::BadClaim { path: path.clone(), reason: "it was removed".to_owned() };
        Claim::read(&path)?.filter(|claim| claim.holder == *holder).ok_or_else(gone)
    }

    pub(crate) fn record(&self, number: u32, claim: &Claim) -> Result<()> {
        let path = self.claim_file(number);
        self.repository.holding(Guarded::Pool, |_| match Claim::read(&path)? {
            Some(other) if other.holder != claim.holder => {
                Err(GitError::BadClaim { path: path.clone(), reason: "it is another holder's now".to_owned() })
            }
            _ => claim.replace(&path),
        })
    }

    /// The readable claims of this repository; a damaged one keeps its slot from every holder.
    pub(crate) fn own_claims(&self) -> Result<Vec<(u32, Claim)>> {
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

    pub(crate) fn numbers(&self) -> Result<Vec<u32>> {
        let slots = self.slots();
        let paths = if slots.is_dir() { directory::entries(&slots)? } else { Vec::new() };
        let names = paths.iter().filter_map(|path| path.file_name()?.to_str());
        let numbers: BTreeSet<u32> =
            names.filter_map(|name| name.strip_suffix(".claim").unwrap_or(name).parse().ok()).collect();
        Ok(numbers.into_iter().collect())
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

/// `path` without symbolic links, as far as it exists: git registers worktrees by such names.
fn resolved(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|part| Some((part, fs::canonicalize(part).ok()?)));
    match existing {
        Some((part, real)) => real.join(path.strip_prefix(part).unwrap_or(Path::new(""))),
        None => path.to_owned(),
    }
}
