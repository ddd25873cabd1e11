//! The bounded pool of worktrees. A slot that nobody holds is taken over rather than made anew: that costs a sixth.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::admin_lock::{Guarded, holding_worktree};
use super::claim::{Claim, Holder, Progress};
use super::durable;
use super::error::{GitError, io_error};
use super::head::{head_of, remove_dead_locks};
use super::hook::{forget_hook, run_post_checkout};
use super::operation::{quit_operations, refuse_operation};
use super::program::Git;
use super::references::reference_lock;
use super::repository::{Repository, branch_reference};
use super::retire::{RELEASED, discard, hindrance};
use super::slot::{Occupant, git_directory, make, occupant};
use super::status::refuse_uncommitted;
use crate::event::Worktree;
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
}

impl Pool {
    /// A pool below `root`, which need not exist, of which one run holds at most `limit` slots at once. With
    /// `keep_caches` ignored files stay in a slot that is taken over.
    pub fn new(repository: Repository, root: &Path, limit: u32, keep_caches: bool) -> Self {
        let (hook_failure, told_of_hook) = (Arc::default(), Arc::default());
        Self { repository, root: resolved(root), limit, keep_caches, hook_failure, told_of_hook }
    }

    /// Where the pool and the runs' directories are; absolute, without symbolic links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How the user's post-checkout hook failed, the first time that it did; told once.
    pub fn hook_failure(&self) -> Option<String> {
        self.hook_failure.get().filter(|_| !self.told_of_hook.swap(true, Ordering::Relaxed)).cloned()
    }

    pub(crate) fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Gives `holder` a worktree with `want` checked out: the one it has, else a free one, else a new one.
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
            let number = self.claim(holder, &unfit)?;
            match self.furnish(number, want) {
                Ok(Some(worktree)) => return Ok(worktree),
                Ok(None) => unfit.push(number),
                Err(error) => return self.give_up(number).and(Err(error)),
            }
        }
    }

    /// Takes the slot of `holder` back. It stays as it is, without its branch.
    ///
    /// # Errors
    /// [`GitError::Dirty`], [`GitError::OperationInProgress`], or [`GitError::Unmerged`] when its head is in none of
    /// `kept_by`: then the holder keeps it.
    pub fn release(&self, holder: &Holder, kept_by: &[CommitId]) -> Result<(), GitError> {
        for (number, claim) in self.own_claims()? {
            if claim.holder == *holder {
                let path = self.slot(number);
                if let Occupant::Ours(_) = occupant(&self.repository, &path) {
                    holding_worktree(&path, |lock| self.detach(&path, kept_by, lock))?;
                }
                self.repository.holding(Guarded::Pool, |_| durable::remove(&self.claim_file(number)))?;
            }
        }
        Ok(())
    }

    /// Who holds which slot of this repository.
    ///
    /// # Errors
    /// [`GitError::BadClaim`], [`GitError::Io`].
    pub fn claims(&self) -> Result<Vec<(u32, Holder)>, GitError> {
        let damaged = self.numbers()?.into_iter().find_map(|number| Claim::read(&self.claim_file(number)).err());
        match damaged {
            Some(error) => Err(error),
            None => Ok(self.own_claims()?.into_iter().map(|(number, claim)| (number, claim.holder)).collect()),
        }
    }

    /// Claims a slot for `holder` that is not `unfit`: its own, a free one, or a number that is not used.
    fn claim(&self, holder: &Holder, unfit: &[u32]) -> Result<u32, GitError> {
        self.repository.holding(Guarded::Pool, |_| {
            // Within the lock: another run that ends removes what is empty.
            make_directory(&self.slots())?;
            let mut held = 0;
            for (number, claim) in self.own_claims()? {
                if claim.holder == *holder && unfit.contains(&number) {
                    durable::remove(&self.claim_file(number))?;
                } else if claim.holder == *holder {
                    return Ok(number);
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
            self.claim_first(&claim, unfit)
        })
    }

    fn claim_first(&self, claim: &Claim, unfit: &[u32]) -> Result<u32, GitError> {
        let used = self.numbers()?;
        let free =
            used.into_iter().filter(|&it| matches!(occupant(&self.repository, &self.slot(it)), Occupant::Ours(_)));
        let vacant = |&number: &u32| {
            matches!(occupant(&self.repository, &self.slot(number)), Occupant::Nothing | Occupant::HalfMade)
        };
        for number in free.chain((1..).filter(vacant)) {
            let file = self.claim_file(number);
            if !unfit.contains(&number) && !file.exists() && claim.create(&file)? {
                return Ok(number);
            }
        }
        Err(GitError::PoolExhausted { limit: self.limit })
    }

    /// Drops a claim with which nothing was begun, so that a failed `open` holds no slot.
    fn give_up(&self, number: u32) -> Result<(), GitError> {
        self.repository.holding(Guarded::Pool, |_| match Claim::read(&self.claim_file(number))? {
            Some(Claim { progress: Progress::Claimed, .. }) => durable::remove(&self.claim_file(number)),
            _ => Ok(()),
        })
    }

    /// Makes slot `number`, which is claimed, hold what is wanted. `None`: the slot cannot be used.
    fn furnish(&self, number: u32, want: &Checkout) -> Result<Option<Worktree>, GitError> {
        let path = self.slot(number);
        let claim = self.read_claim(number)?;
        if claim.progress == Progress::Claimed && !self.take_over(&path, &want.start)? {
            return Ok(None);
        }
        if !self.make_if_missing(&path, want)? {
            return Ok(None);
        }
        holding_worktree(&path, |lock| {
            let claim = self.read_claim(number)?;
            let head = match self.settled(&path, &claim.progress, want)? {
                Some(head) => head,
                None => self.check_out(number, claim, want, lock)?,
            };
            let branch = want.branch.clone().unwrap_or_default();
            Ok(Some(Worktree { slot: number, path: path.clone(), branch, head }))
        })
    }

    /// Whether a slot that nobody held may be used; what is in it is not worth keeping then.
    fn take_over(&self, path: &Path, start: &CommitId) -> Result<bool, GitError> {
        let Occupant::Ours(entry) = occupant(&self.repository, path) else { return Ok(true) };
        if hindrance(&self.repository, path, &entry, Some(start)).is_some() {
            return Ok(false);
        }
        // A checkout leaves submodules and the selection of sparse files as they are.
        if ["modules", "info/sparse-checkout", "config.worktree"].iter().any(|name| entry.join(name).exists()) {
            self.repository.holding(Guarded::Admin, |_| discard(self, path, &entry))?;
        }
        Ok(true)
    }

    /// Whether there is a worktree of ours at `path` now.
    fn make_if_missing(&self, path: &Path, want: &Checkout) -> Result<bool, GitError> {
        if let Occupant::Ours(_) = occupant(&self.repository, path) {
            return Ok(true);
        }
        self.repository.holding(Guarded::Admin, |lock| match occupant(&self.repository, path) {
            Occupant::Ours(_) => Ok(true),
            Occupant::Stranger => Ok(false),
            Occupant::Nothing | Occupant::HalfMade => make(&self.repository, path, &want.start, lock).map(|()| true),
        })
    }

    /// The head with which the slot was opened, if it still is what is wanted. Where it is not, leaving loses nothing.
    fn settled(&self, path: &Path, progress: &Progress, want: &Checkout) -> Result<Option<CommitId>, GitError> {
        let Progress::Opened { head: opened, .. } = progress else { return Ok(None) };
        if want.mode == Mode::Reset || !git_directory(path)?.join("index").exists() {
            return Ok(None);
        }
        let head = head_of(path)?;
        if head.branch == want.branch && (head.branch.is_some() || head.commit == want.start) {
            return Ok(Some(if head.branch.is_some() { opened.clone() } else { head.commit }));
        }
        refuse_operation(path)?;
        refuse_uncommitted(path)?;
        let mut kept_by = vec![opened.clone(), want.start.clone()];
        if let Some(branch) = &want.branch {
            kept_by.extend(self.repository.branch_commit(branch)?);
        }
        self.refuse_unmerged(path, &head.commit, &kept_by)?;
        Ok(None)
    }

    fn check_out(&self, number: u32, mut claim: Claim, want: &Checkout, lock: &File) -> Result<CommitId, GitError> {
        let path = self.slot(number);
        let arguments = self.checkout_arguments(&path, &claim, want)?;
        let again = want.adopt || claim.progress != Progress::Claimed;
        let keep_ignored = match claim.progress {
            Progress::Claimed => self.keep_caches,
            Progress::Started { keep_ignored, .. } => keep_ignored,
            Progress::Opened { .. } => true,
        };
        let used = git_directory(&path)?.join("index").exists();
        claim.progress = Progress::Started { branch: want.branch.clone(), keep_ignored };
        self.record(number, &claim)?;
        quit_operations(&path, lock)?;
        remove_dead_locks(&path)?;
        if let Some(branch) = want.branch.as_ref().filter(|_| again) {
            durable::remove(&reference_lock(self.repository.common_dir(), &branch_reference(branch)))?;
        }
        forget_hook(&path)?;
        let before = head_of(&path)?.commit;
        // Git's own look at other worktrees believes entries whose worktree is gone; ours was better. The hook comes
        // last: with it git's exit code says nothing of the checkout.
        let git = Git::new(&path).without_hooks().stdin(lock);
        git.args(["checkout", "--quiet", "--force", "--ignore-other-worktrees"]).args(arguments).run()?;
        if used {
            let how = if keep_ignored { "-ffdq" } else { "-ffdxq" };
            Git::new(&path).stdin(lock).args(["clean", how]).run()?;
        }
        let head = head_of(&path)?.commit;
        if let Some(failure) = run_post_checkout(&path, &before, &head, lock)? {
            let _ = self.hook_failure.set(failure);
        }
        if let Some(branch) = &want.branch {
            durable::reference(&self.repository, &branch_reference(branch))?;
        }
        claim.progress = Progress::Opened { branch: want.branch.clone(), head: head.clone() };
        self.record(number, &claim)?;
        Ok(head)
    }

    /// What to tell `git checkout`, once the branch is known not to be somebody else's.
    fn checkout_arguments(&self, path: &Path, claim: &Claim, want: &Checkout) -> Result<Vec<String>, GitError> {
        let start = want.start.to_string();
        let Some(branch) = want.branch.clone() else { return Ok(vec!["--detach".to_owned(), start]) };
        let place = self.repository.all_checked_out(&branch)?.into_iter().find(|place| place != path);
        if place.is_some() {
            return Err(GitError::BranchInTheWay { branch, place });
        }
        let made = |flag: &str, branch| vec!["--no-track".to_owned(), flag.to_owned(), branch, start];
        let ours = want.adopt || claim.progress.branch() == Some(&branch);
        match (self.repository.branch_commit(&branch)?, want.mode) {
            (None, Mode::ExistingBranch) => Err(GitError::BranchMissing { branch }),
            (None, Mode::FreshBranch | Mode::Reset) => Ok(made("-b", branch)),
            (Some(_), Mode::Reset) if ours => Ok(made("-B", branch)),
            (Some(_), Mode::ExistingBranch) => Ok(vec![branch, "--".to_owned()]),
            (Some(tip), Mode::FreshBranch) if ours && self.repository.is_ancestor(&want.start, &tip)? => {
                Ok(vec![branch, "--".to_owned()])
            }
            (Some(_), _) => Err(GitError::BranchInTheWay { branch, place: None }),
        }
    }

    fn detach(&self, path: &Path, kept_by: &[CommitId], lock: &File) -> Result<(), GitError> {
        refuse_operation(path)?;
        refuse_uncommitted(path)?;
        let head = head_of(path)?;
        self.refuse_unmerged(path, &head.commit, kept_by)?;
        remove_dead_locks(path)?;
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

    fn read_claim(&self, number: u32) -> Result<Claim, GitError> {
        let path = self.claim_file(number);
        let gone = || GitError::BadClaim { path: path.clone(), reason: "it is gone".to_owned() };
        Claim::read(&path)?.ok_or_else(gone)
    }

    fn record(&self, number: u32, claim: &Claim) -> Result<(), GitError> {
        self.repository.holding(Guarded::Pool, |_| claim.replace(&self.claim_file(number)))
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
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
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
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io_error("create", path))
}

/// `path` without symbolic links, as far as it exists: git registers worktrees by such names.
fn resolved(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|part| Some((part, fs::canonicalize(part).ok()?)));
    match existing {
        Some((part, real)) => real.join(path.strip_prefix(part).unwrap_or(Path::new(""))),
        None => path.to_owned(),
    }
}
