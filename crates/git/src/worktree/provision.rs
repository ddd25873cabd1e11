//! Provisioning a slot: checks what the last holder left, creates the worktree, checks out.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use lanewright_files::{atomic, directory};
use lanewright_model::CommitId;
use lanewright_model::event::Worktree;

use crate::command::{Git, GitError, ProgramError, Result, path_text};
use crate::history::{reference_lock, remove_dead_locks};
use crate::query::{
    clear_flags, forget_generated, has_untracked, quit_operations, refuse_operation, refuse_uncommitted,
    run_post_checkout,
};
use crate::repo::{Guarded, Repository, branch_reference, git_directory, holding_worktree, hook, said_by_hook};
use crate::worktree::private::KEYS;
use crate::worktree::{
    Checkout, Claim, Holder, Mode, Occupant, Pool, Progress, Turn, blocker, forget_private, make, occupant, rescue,
};

/// Leads from git's directory for a worktree to the keys of filters in the common one.
fn share_keys(repository: &Repository, worktree: &Path) -> Result<()> {
    for name in KEYS {
        let (shared, own) = (repository.common_dir().join(name), git_directory(worktree)?.join(name));
        if shared.exists() && own.symlink_metadata().is_err() {
            atomic::link(&shared, &own)?;
        }
    }
    Ok(())
}

/// Whether the worktree has no files yet.
fn holds_nothing(worktree: &Path) -> bool {
    let is_link = |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|entry| entry.file_name() == ".git");
    fs::read_dir(worktree).is_ok_and(|mut entries| entries.all(is_link))
}

/// Whether git was refused the removal of a file that does not belong into a checkout.
fn cannot_remove(error: &ProgramError) -> bool {
    let ProgramError::Failed { stderr, .. } = error else { return false };
    let is_refusal = |line: &str| line.contains("failed to remove ") || line.contains("unable to unlink ");
    stderr.lines().any(is_refusal)
}

impl Pool {
    /// Checks out `want` in slot `number`, which is claimed. `None`: the slot cannot be used.
    pub(crate) fn provision(
        &self,
        number: u32,
        holder: &Holder,
        want: &Checkout,
        turn: Option<Turn<'_>>,
    ) -> Result<Option<Worktree>> {
        let path = self.slot(number);
        forget_private(&self.repository, &path)?;
        // Of a worktree that was removed from here: a new one would be taken for the one that its record is of.
        rescue(&self.repository)?.iter().for_each(|kept| self.repository.notice(kept));
        let progress = self.read_claim(number, holder)?.progress;
        if progress == Progress::Claimed && !self.may_take_over(&path, &want.start)?
            || !self.create_if_missing(&path, want)?
        {
            return Ok(None);
        }
        let opened = holding_worktree(&path, |lock| {
            let claim = self.read_claim(number, holder)?;
            let head = match self.already_open(&path, &claim.progress, want)? {
                Some(head) => head,
                None => self.check_out(number, claim, want, turn, lock)?,
            };
            let branch = want.branch.clone().unwrap_or_default();
            Ok(Some(Worktree { slot: number, path: path.clone(), branch, head }))
        });
        match (opened, self.repository.own_entry(&path)) {
            // What an agent left as another user, with `sudo` or in a container, is in the way of everybody.
            (Err(GitError::Program(error)), Some(entry)) if cannot_remove(&error) => {
                self.repository.holding(Guarded::Admin, |_| self.discard(&path, &entry))?;
                self.provision(number, holder, want, None)
            }
            (opened, _) => opened,
        }
    }

    /// Whether a slot that has no holder contains nothing worth keeping.
    fn may_take_over(&self, path: &Path, start: &CommitId) -> Result<bool> {
        let Some(entry) = self.repository.own_entry(path) else { return Ok(true) };
        if blocker(&self.repository, path, &entry, Some(start)).is_some() {
            return Ok(false);
        }
        // A checkout leaves submodules and the selection of sparse files as they are.
        if ["modules", "info/sparse-checkout", "config.worktree"].iter().any(|name| entry.join(name).exists()) {
            self.repository.holding(Guarded::Admin, |_| self.discard(path, &entry))?;
        }
        Ok(true)
    }

    /// Whether there is a worktree of the pool at `path` now.
    fn create_if_missing(&self, path: &Path, want: &Checkout) -> Result<bool> {
        if self.repository.own_entry(path).is_some() {
            return Ok(true);
        }
        self.repository.holding(Guarded::Admin, |lock| match occupant(&self.repository, path) {
            Occupant::Ours(_) => Ok(true),
            Occupant::Foreign => Ok(false),
            Occupant::Nothing | Occupant::HalfMade => make(&self.repository, path, &want.start, lock).map(|()| true),
        })
    }

    /// The head with which the slot was opened, if it still stands where `want` says. `None`: it has to be checked out, which
    /// loses no work.
    fn already_open(&self, path: &Path, progress: &Progress, want: &Checkout) -> Result<Option<CommitId>> {
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
        turn: Option<Turn<'_>>,
        lock: &File,
    ) -> Result<CommitId> {
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
        let arguments = self.make_branch_if_allowed(&path, want, arguments)?;
        self.clear_leftovers(&path, want.branch.as_ref().filter(|_| again), [interrupted, keep_ignored], lock)?;
        let before = self.repository.head_at(&path)?.commit;
        let was_empty = holds_nothing(&path);
        let write = || -> Result<CommitId> {
            let head = self.write_files(&path, &before, &arguments, lock)?;
            if !was_empty && has_untracked(&path)? {
                Git::new(&path).stdin(lock).args(["clean", if keep_ignored { "-ffdq" } else { "-ffdxq" }]).run()?;
            }
            Ok(head)
        };
        let head = directory::change_below(&path, write)?;
        // The next checkout need not wait for the user's hook.
        drop(turn);
        let run_hook = || run_post_checkout(&self.repository, &path, [&before, &head], self.hook_limit, lock);
        if let Some(failure) = self.while_hook_runs(&claim.holder, "post-checkout", run_hook)? {
            self.note_hook_failure(failure);
        }
        claim.progress = Progress::Opened { branch: want.branch.clone(), head: head.clone() };
        self.record(number, &claim)?;
        Ok(head)
    }

    /// Removes what the last holder, or an interrupted checkout, left in git's directory for the worktree.
    fn clear_leftovers(
        &self,
        path: &Path,
        branch: Option<&String>,
        [interrupted, keep_ignored]: [bool; 2],
        lock: &File,
    ) -> Result<()> {
        quit_operations(path, lock)?;
        remove_dead_locks(path)?;
        if let Some(branch) = branch {
            atomic::remove_durably(&reference_lock(self.repository.common_dir(), &branch_reference(branch)))?;
        }
        if interrupted {
            // Unknown which files were written under which attributes: all are written again.
            atomic::remove_durably(&git_directory(path)?.join("index"))?;
        }
        // Git would leave a flagged file as the last holder changed it.
        clear_flags(path)?;
        share_keys(&self.repository, path)?;
        forget_generated(path, keep_ignored)
    }

    /// Has git write the files. It does not touch a file whose blob is the same, although another filter or another end of
    /// line may apply to it: where attributes differ from those of `before`, all files are written.
    fn write_files(&self, path: &Path, before: &CommitId, arguments: &[String], lock: &File) -> Result<CommitId> {
        // Git's own check of other worktrees trusts entries whose worktree is gone; `checkout_arguments` has done a better
        // one. With a hook git's exit code would not be that of the checkout.
        let users_own = self.repository.configuration()?.get("checkout.workers").is_some();
        let checkout = || {
            let git = Git::new(path).without_hooks().unsynced().stdin(lock);
            // As many as there are cores: several times faster where the kernel is slow to make files. They are processes,
            // so only for what takes long.
            let git = if users_own {
                git
            } else {
                git.configured("checkout.workers=0").configured("checkout.thresholdForParallelism=1000")
            };
            git.args(["checkout", "--quiet", "--force"])
        };
        checkout().arg("--ignore-other-worktrees").args(arguments).run()?;
        let head = self.repository.head_at(path)?.commit;
        if self.repository.changed_paths(before, &head)?.iter().any(|path| path.ends_with(".gitattributes")) {
            atomic::remove_durably(&git_directory(path)?.join("index"))?;
            checkout().run()?;
        }
        Ok(head)
    }

    /// Has git make the branch that a checkout with `arguments` would make, if a hook of the user's decides about refs: the
    /// checkout itself runs no hooks. Returns the arguments that are left.
    fn make_branch_if_allowed(&self, path: &Path, want: &Checkout, arguments: Vec<String>) -> Result<Vec<String>> {
        const HOOK: &str = "reference-transaction";
        let is_made = arguments.iter().any(|argument| argument == "-b");
        let Some(branch) = want.branch.as_ref().filter(|_| is_made) else { return Ok(arguments) };
        let Some(place) = hook(&self.repository, self.repository.main_worktree(), HOOK)? else { return Ok(arguments) };
        let git = self.repository.git().args(["branch", "--no-track", branch, want.start.as_str()]);
        let git = git.giving_hooks(self.repository.variables_at(path));
        let git = match self.hook_limit {
            Some(limit) => git.within(limit),
            None => git,
        };
        let output = git.attempt()?;
        let said = path_text(&output.stderr);
        if !output.status.success() && said.contains("aborted by hook") {
            let said = format!("refuses the branch {branch}{}", said_by_hook(&said));
            return Err(GitError::Hook { name: HOOK, place, said });
        }
        if output.status.success() {
            Ok(vec![branch.clone(), "--".to_owned()])
        } else {
            Err(git.failure(&output).into())
        }
    }

    fn checkout_arguments(&self, path: &Path, claim: &Claim, want: &Checkout) -> Result<Vec<String>> {
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
