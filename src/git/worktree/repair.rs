//! Putting back what something took away from our worktrees and branches. Nothing here throws anything away, and every
//! step asked for again finds that it is done.

use std::fs;
use std::path::{Path, PathBuf};

use crate::event::Worktree;
use crate::fs::{atomic, regular_file};
use crate::git::command::error::{GitError, io_error};
use crate::git::command::program::Git;
use crate::git::fast::durable;
use crate::git::history::dead_locks::remove_dead_locks;
use crate::git::history::identity::{make_commit, run_identified};
use crate::git::history::references::{move_branch, set_reference};
use crate::git::repo::git_dir::git_directory;
use crate::git::repo::lock::{Guarded, holding_worktree};
use crate::git::repo::repository::{Repository, branch_reference, commit_id};
use crate::git::repo::state_file;
use crate::git::worktree::claim::{Claim, Holder, Progress};
use crate::git::worktree::pool::{Checkout, Mode, Pool, make_directory};
use crate::git::worktree::slot::forget;
use crate::git::worktree::update::adopt_head;
use crate::model::CommitId;

impl Pool {
    /// Gives `holder` the slot `worktree` back, which is gone or whose claim is, with its branch, which exists.
    pub(crate) fn reopen(&self, holder: &Holder, worktree: &Worktree) -> Result<(), GitError> {
        self.reclaim(holder, worktree)?;
        let branch = Some(worktree.branch.clone()).filter(|branch| !branch.is_empty());
        let mode = if branch.is_some() { Mode::ExistingBranch } else { Mode::Reset };
        let opened = self.open(holder, &Checkout { branch, start: worktree.head.clone(), mode, adopt: true })?;
        if opened.path != worktree.path {
            return Err(GitError::NotOurs { path: worktree.path.clone() });
        }
        self.link(holder, &opened.path)
    }

    /// Notes again that `holder` holds the slot `worktree`. A claim that cannot be read is kept beside it.
    pub(crate) fn reclaim(&self, holder: &Holder, worktree: &Worktree) -> Result<(), GitError> {
        make_directory(&self.slots())?;
        let file = self.claim_file(worktree.slot);
        let branch = Some(worktree.branch.clone()).filter(|branch| !branch.is_empty());
        let claim = Claim {
            repository: self.repository().common_dir().to_owned(),
            holder: holder.clone(),
            progress: Progress::Opened { branch, head: worktree.head.clone() },
        };
        self.repository().holding(Guarded::Pool, |_| match Claim::read(&file) {
            Ok(Some(known)) if known.holder == *holder => Ok(()),
            Ok(Some(_)) => Err(GitError::NotOurs { path: file.clone() }),
            Ok(None) => claim.create(&file).map(drop),
            Err(_) => {
                set_aside(&file)?;
                claim.create(&file).map(drop)
            }
        })
    }

    /// Puts a claim aside that cannot be read and that belongs to no run; the slot stays as it is. Answers where it is.
    pub(crate) fn drop_claim(&self, file: &Path) -> Result<PathBuf, GitError> {
        self.repository().holding(Guarded::Pool, |_| set_aside(file))
    }

    /// Brings the worktree that lies in `from` back to `to`, where nothing is.
    pub(crate) fn bring_back(&self, from: &Path, to: &Path) -> Result<(), GitError> {
        make_directory(&self.slots())?;
        self.repository().holding(Guarded::Admin, |lock| {
            let _ = fs::remove_dir(to);
            let known = self.repository().linked_worktrees()?.iter().any(|entry| entry.worktree == from);
            if known {
                let git = Git::new(self.repository().main_worktree()).stdin(lock);
                git.args(["worktree", "move"]).arg(from).arg(to).run()?;
                return Ok(());
            }
            atomic::rename(from, to).map_err(io_error("move", from))?;
            state_file::directory(&self.slots())
        })
    }

    /// Registers `worktree` with git again, whose `entry` is gone or empty: on its branch, or else at its head, with
    /// every file as it is.
    pub(crate) fn register(&self, worktree: &Worktree, entry: &Path) -> Result<(), GitError> {
        let path = &worktree.path;
        let head = match worktree.branch.as_str() {
            "" => format!("{}\n", worktree.head),
            branch => format!("ref: {}\n", branch_reference(branch)),
        };
        self.repository().holding(Guarded::Admin, |lock| {
            make_directory(entry)?;
            let link = path.join(".git");
            for (name, text) in
                [("HEAD", head), ("commondir", "../..\n".to_owned()), ("gitdir", format!("{}\n", link.display()))]
            {
                state_file::write(&entry.join(name), text.as_bytes())?;
            }
            // An index that is there may hold what was staged and is nowhere else.
            if !entry.join("index").exists() {
                Git::new(path).stdin(lock).args(["reset", "--quiet"]).run()?;
            }
            Ok(())
        })
    }

    /// Makes git look for the worktree at `path` there, not where it believes it.
    ///
    /// # Errors
    /// What git says.
    pub fn place(&self, path: &Path) -> Result<(), GitError> {
        self.repository().holding(Guarded::Admin, |lock| {
            let git = Git::new(self.repository().main_worktree()).stdin(lock);
            git.args(["worktree", "repair"]).arg(path).run()?;
            Ok(())
        })
    }

    /// Makes git forget a worktree of this pool that is gone.
    pub(crate) fn forget(&self, entry: &Path) -> Result<(), GitError> {
        self.repository().holding(Guarded::Admin, |_| match entry.exists() {
            true => forget(self.repository(), entry),
            false => Ok(()),
        })
    }

    /// Puts the worktree of `holder` back onto its branch. Where its head continues the branch, the branch moves there;
    /// else nothing in it may be uncommitted, and some ref must hold its head.
    pub(crate) fn back_to_branch(&self, holder: &Holder, worktree: &Worktree) -> Result<(), GitError> {
        let path = &worktree.path;
        match adopt_head(self.repository(), path, &worktree.branch) {
            // The pool refuses to leave what is uncommitted.
            Err(GitError::Astray { head, .. }) => {
                if !self.repository().is_kept(&head)? {
                    return Err(GitError::Unmerged { place: path.display().to_string(), head });
                }
                let branch = Some(worktree.branch.clone());
                self.open(holder, &Checkout { branch, start: head, mode: Mode::ExistingBranch, adopt: true })?;
                Ok(())
            }
            adopted => adopted.map(drop),
        }
    }
}

impl Repository {
    /// Makes `branch` again, at `commit`, which exists. One that is there by now is as good.
    pub(crate) fn make_branch(&self, branch: &str, commit: &CommitId) -> Result<(), GitError> {
        let name = branch_reference(branch);
        let file = self.common_dir().join(&name);
        // Such as a power cut leaves of a ref that was being written; git changes no ref that it cannot read.
        if let Ok(held) = regular_file::read(&file) {
            let lost = commit_id(&held).is_ok_and(|commit| self.has_commit(&commit).is_ok_and(|found| !found));
            if lost || !names_something(&held) {
                state_file::remove(&file)?;
            }
        }
        set_reference(self.main_worktree(), self, &name, commit, None, "lanekeeper: doctor").map(drop)
    }

    /// Whether two commits have history in common.
    pub(crate) fn is_related(&self, one: &CommitId, other: &CommitId) -> Result<bool, GitError> {
        let git = || Git::new(self.main_worktree()).args(["merge-base", one.as_str(), other.as_str()]);
        Ok(self.is_ancestor(one, other)? || git().attempt()?.status.code() != Some(1))
    }

    /// Puts what `head`, at which `branch` is, holds on top of `onto`. A commit in a worktree whose branch was deleted
    /// begins a history of its own, which cannot be merged.
    pub(crate) fn graft(
        &self,
        branch: &str,
        head: &CommitId,
        onto: &CommitId,
        message: &str,
    ) -> Result<CommitId, GitError> {
        let tree = Git::new(self.main_worktree()).args(["rev-parse", &format!("{head}^{{tree}}")]).line()?;
        let commit = make_commit(self, &tree, &[onto], message)?;
        durable::objects(self, &commit, std::slice::from_ref(onto))?;
        move_branch(self, branch, head, &commit)?;
        Ok(commit)
    }

    /// Removes git's locks on the index and the head of a worktree of ours; the caller knows that no git lives in it.
    pub(crate) fn remove_locks_in(&self, worktree: &Path) -> Result<(), GitError> {
        self.vouch_for(worktree)?;
        holding_worktree(worktree, |_| remove_dead_locks(worktree))
    }

    /// Makes git's index of a worktree of ours anew, as its head has it; no file changes. The caller knows that no git
    /// lives in it.
    pub(crate) fn make_index(&self, worktree: &Path) -> Result<(), GitError> {
        self.vouch_for(worktree)?;
        holding_worktree(worktree, |lock| {
            let directory = git_directory(worktree)?;
            let (staged, index) = (directory.join("lanekeeper.index"), directory.join("index"));
            state_file::remove(&staged)?;
            let git = Git::new(worktree).without_hooks().stdin(lock).variable("GIT_INDEX_FILE", &staged);
            git.args(["read-tree", "HEAD"]).run()?;
            // In one step: a worktree without an index counts as one that was never checked out.
            atomic::rename(&staged, &index).map_err(io_error("write", &index))?;
            state_file::directory(&directory)
        })
    }

    /// A commit of what was staged in the worktree at `path`, which is gone, on top of where it stood; `None`: nothing
    /// was, or nobody knows.
    pub(crate) fn staged_in_missing(&self, path: &Path, tip: &CommitId) -> Result<Option<CommitId>, GitError> {
        let known = self.linked_worktrees()?.into_iter().find(|entry| entry.worktree == path);
        let index = known.map(|entry| entry.directory.join("index")).filter(|index| index.is_file());
        let Some(index) = index else { return Ok(None) };
        let git = || Git::new(self.main_worktree());
        let written = git().variable("GIT_INDEX_FILE", &index).arg("write-tree").attempt()?;
        let tree = String::from_utf8_lossy(&written.stdout).trim().to_owned();
        if !written.status.success() || tree == git().args(["rev-parse", &format!("{tip}^{{tree}}")]).line()? {
            return Ok(None);
        }
        let message = "What was staged in a worktree that is gone";
        let commit = git().args(["commit-tree", &tree, "-p", tip.as_str(), "-m", message]);
        commit_id(&run_identified(commit)?).map(Some)
    }
}

/// Renames what cannot be read to a name that nothing reads.
fn set_aside(file: &Path) -> Result<PathBuf, GitError> {
    let mut aside = file.as_os_str().to_owned();
    aside.push(".damaged");
    let aside = PathBuf::from(aside);
    atomic::rename(file, &aside).map_err(io_error("set aside", file))?;
    state_file::directory(file.parent().unwrap_or(Path::new("/")))?;
    Ok(aside)
}

/// Whether the file of a ref names an object or another ref.
fn names_something(held: &[u8]) -> bool {
    let held = held.trim_ascii();
    held.starts_with(b"ref: ") || held.len() >= 40 && held.iter().all(u8::is_ascii_hexdigit)
}
