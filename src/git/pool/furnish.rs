//! Furnishing a slot: looking at what is in it, making it, checking out.

use std::fs::File;
use std::path::Path;

use super::turns::Turn;
use super::{Checkout, Mode, Pool};
use crate::event::Worktree;
use crate::git::admin_lock::{Guarded, holding_worktree};
use crate::git::claim::{Claim, Holder, Progress};
use crate::git::durable;
use crate::git::error::GitError;
use crate::git::head::remove_dead_locks;
use crate::git::hook::{forget_left_behind, run_post_checkout};
use crate::git::index_flags::clear_flags;
use crate::git::library;
use crate::git::move_files::move_files;
use crate::git::operation::{quit_operations, refuse_operation};
use crate::git::program::Git;
use crate::git::references::{delete_reference, reference_lock, set_own_reference};
use crate::git::repository::branch_reference;
use crate::git::retire::{Condition, condition, discard};
use crate::git::slot::{Occupant, git_directory, is_untouched, make, occupant};
use crate::git::status::refuse_uncommitted;
use crate::model::CommitId;

/// Why a branch and the head of a slot are where they are.
const OPENED: &str = "lanekeeper: open";

impl Pool {
    /// Makes slot `number`, which is claimed, hold what is wanted. `None`: the slot cannot be used.
    pub(super) fn furnish(
        &self,
        number: u32,
        holder: &Holder,
        want: &Checkout,
        turn: Option<Turn<'_>>,
    ) -> Result<Option<Worktree>, GitError> {
        let path = self.slot(number);
        let claim = self.read_claim(number, holder)?;
        let condition = match claim.progress {
            Progress::Claimed => self.take_over(&path, &want.start)?,
            Progress::Started { .. } | Progress::Opened { .. } => Some(Condition::Used),
        };
        let Some(condition) = condition else { return Ok(None) };
        if !self.make_if_missing(&path, want)? {
            return Ok(None);
        }
        holding_worktree(&path, |lock| {
            let claim = self.read_claim(number, holder)?;
            let head = match self.settled(&path, &claim.progress, want)? {
                Some(head) => head,
                None => {
                    let condition =
                        if is_untouched(&path, &git_directory(&path)?) { Condition::Untouched } else { condition };
                    self.check_out(number, claim, want, condition, turn, lock)?
                }
            };
            let branch = want.branch.clone().unwrap_or_default();
            Ok(Some(Worktree { slot: number, path: path.clone(), branch, head }))
        })
    }

    /// What is in a slot that nobody held, none of which is worth keeping. `None`: the slot cannot be used.
    fn take_over(&self, path: &Path, start: &CommitId) -> Result<Option<Condition>, GitError> {
        let Occupant::Ours(entry) = occupant(&self.repository, path) else { return Ok(Some(Condition::Untouched)) };
        let Ok(condition) = condition(&self.repository, path, &entry, Some(start)) else { return Ok(None) };
        // A checkout leaves submodules and the selection of sparse files as they are.
        if ["modules", "info/sparse-checkout", "config.worktree"].iter().any(|name| entry.join(name).exists()) {
            self.repository.holding(Guarded::Admin, |_| discard(self, path, &entry))?;
            return Ok(Some(Condition::Untouched));
        }
        Ok(Some(condition))
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
        let head = self.repository.head_at(path)?;
        if head.branch == want.branch && (head.branch.is_some() || head.commit == want.start) {
            return Ok(Some(if head.branch.is_some() { opened.clone() } else { head.commit }));
        }
        refuse_operation(path)?;
        refuse_uncommitted(&self.repository, path)?;
        let mut kept_by = vec![opened.clone(), want.start.clone()];
        if let Some(branch) = &want.branch {
            kept_by.extend(self.repository.branch_commit(branch)?);
        }
        self.refuse_unmerged(path, &head.commit, &kept_by)?;
        Ok(None)
    }

    fn check_out(
        &self,
        number: u32,
        mut claim: Claim,
        want: &Checkout,
        condition: Condition,
        turn: Option<Turn<'_>>,
        lock: &File,
    ) -> Result<CommitId, GitError> {
        let path = self.slot(number);
        let arguments = self.checkout_arguments(&path, &claim, want)?;
        let again = want.adopt || claim.progress != Progress::Claimed;
        let keep_ignored = match claim.progress {
            Progress::Claimed => self.keep_caches,
            Progress::Started { keep_ignored, .. } => keep_ignored,
            Progress::Opened { .. } => true,
        };
        let interrupted = matches!(claim.progress, Progress::Started { .. });
        claim.progress = Progress::Started { branch: want.branch.clone(), keep_ignored };
        self.record(number, &claim)?;
        self.clear_the_way(&path, want.branch.as_ref().filter(|_| again), interrupted, lock)?;
        let before = self.repository.head_at(&path)?.commit;
        if condition == Condition::Untouched {
            self.copy_what_is_near(number, &want.start);
        }
        if condition != Condition::Pristine || !self.move_to(&path, &before, want)? {
            self.write_files(&path, &before, &arguments, lock)?;
        }
        if condition == Condition::Used {
            let how = if keep_ignored { "-ffdq" } else { "-ffdxq" };
            Git::new(&path).stdin(lock).args(["clean", how]).run()?;
        }
        // Whoever waits to make a slot need not wait for the user's hook.
        drop(turn);
        let head = self.repository.head_at(&path)?.commit;
        if let Some(failure) = run_post_checkout(&self.repository, &path, &before, &head, lock)? {
            let _ = self.hook_failure.set(failure);
        }
        if let Some(branch) = &want.branch {
            durable::reference(&self.repository, &branch_reference(branch))?;
        }
        claim.progress = Progress::Opened { branch: want.branch.clone(), head: head.clone() };
        self.record(number, &claim)?;
        Ok(head)
    }

    /// Removes what the last holder, or a try of the same one that died, left in git's directory for the worktree.
    fn clear_the_way(
        &self,
        path: &Path,
        branch: Option<&String>,
        interrupted: bool,
        lock: &File,
    ) -> Result<(), GitError> {
        quit_operations(path, lock)?;
        remove_dead_locks(path)?;
        if let Some(branch) = branch {
            durable::remove(&reference_lock(self.repository.common_dir(), &branch_reference(branch)))?;
        }
        if interrupted {
            // Nobody knows which files were written under which attributes: all are to be written again.
            durable::remove(&git_directory(path)?.join("index"))?;
        }
        // Git would leave a flagged file as the last holder changed it.
        clear_flags(path)?;
        forget_left_behind(path)
    }

    /// Puts a pristine slot, whose head is at `before`, onto a new branch without a process. `false`: git has to.
    fn move_to(&self, path: &Path, before: &CommitId, want: &Checkout) -> Result<bool, GitError> {
        let Some(branch) = want.branch.as_ref().filter(|_| want.mode != Mode::ExistingBranch) else { return Ok(false) };
        let name = branch_reference(branch);
        if self.repository.commit_at(&name)?.is_some()
            || self.repository.attributes_differ(before, &want.start)?
            || !move_files(&self.repository, path, before, &want.start)
            || !set_own_reference(&self.repository, &name, &want.start, None, OPENED)?
        {
            return Ok(false);
        }
        let on_branch = library::change(&self.repository, path, |git| {
            git.reference_symbolic("HEAD", &name, true, OPENED).map(drop)
        });
        if on_branch.is_none() {
            delete_reference(&self.repository, &name, &want.start)?;
        }
        Ok(on_branch.is_some())
    }

    /// Has git write the files. Where attributes say something else than `before`, it writes all of them: it leaves a
    /// file alone whose blob is the same, although a filter or the ends of lines may not be.
    fn write_files(&self, path: &Path, before: &CommitId, arguments: &[String], lock: &File) -> Result<(), GitError> {
        // Git's own look at other worktrees believes entries whose worktree is gone; ours was better. The hook comes
        // last: with it git's exit code says nothing of the checkout.
        let checkout = || Git::new(path).without_hooks().stdin(lock).args(["checkout", "--quiet", "--force"]);
        checkout().arg("--ignore-other-worktrees").args(arguments).run()?;
        if self.repository.attributes_differ(before, &self.repository.head_at(path)?.commit)? {
            durable::remove(&git_directory(path)?.join("index"))?;
            checkout().run()?;
        }
        Ok(())
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
}
