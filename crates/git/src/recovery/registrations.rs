//! Git's own files for a worktree: that it is registered, its index and its locks. Called when a task finds a registration
//! gone, and by the doctor, which knows that no git is at work there.

use std::fs;
use std::path::Path;

use lanewright_files::atomic;
use lanewright_files::directory::{create_directory, sync_directory};
use lanewright_model::CommitId;
use lanewright_model::event::Worktree;

use crate::command::{Git, Result};
use crate::history::{remove_dead_locks, run_identified};
use crate::repo::{Guarded, Repository, branch_reference, commit_id, entry_named_by, git_directory, holding_worktree};
use crate::worktree::private::private_git_directory;
use crate::worktree::{Pool, WorktreeState, forget};

impl Pool {
    /// The same as [`Self::restore_registration`] unless git has a record of the worktree, which may be damaged.
    pub fn register_again(&self, worktree: &Worktree) -> Result<bool> {
        Ok(self.repository.own_entry(&worktree.path).is_none() && self.restore_registration(worktree)?)
    }

    /// Registers the worktree in its slot with git again, with every file as it is, where only git's own record of it was
    /// removed or is wrong, or moves it back from where it was moved to. Returns whether it did.
    pub fn restore_registration(&self, worktree: &Worktree) -> Result<bool> {
        match self.repository.worktree_state(&worktree.path, &worktree.branch)? {
            WorktreeState::Forgotten(entry) => self.register(worktree, &entry)?,
            WorktreeState::Misplaced => self.repair_path(&worktree.path)?,
            WorktreeState::Moved(from) => self.move_back(&from, &worktree.path)?,
            WorktreeState::Missing | WorktreeState::Foreign | WorktreeState::Present(_) => return Ok(false),
        }
        Ok(true)
    }

    /// Moves the worktree in `from` back to `to`, where nothing is.
    fn move_back(&self, from: &Path, to: &Path) -> Result<()> {
        create_directory(&self.slots())?;
        self.repository.holding(Guarded::Admin, |lock| {
            let _ = fs::remove_dir(to);
            if self.repository.entry_at(from)?.is_some() {
                self.repository.git().stdin(lock).args(["worktree", "move"]).arg(from).arg(to).run()?;
                return Ok(());
            }
            atomic::rename(from, to)?;
            Ok(sync_directory(&self.slots())?)
        })
    }

    /// Registers `worktree` with git again, whose `entry` is gone or empty: on its branch, or else at its head, with
    /// every file as it is.
    fn register(&self, worktree: &Worktree, entry: &Path) -> Result<()> {
        let path = &worktree.path;
        let head = match worktree.branch.as_str() {
            "" => format!("{}\n", worktree.head),
            branch => format!("ref: {}\n", branch_reference(branch)),
        };
        self.repository.holding(Guarded::Admin, |lock| {
            create_directory(entry)?;
            let link = format!("{}\n", path.join(".git").display());
            for (name, text) in [("HEAD", head), ("commondir", "../..\n".to_owned()), ("gitdir", link)] {
                atomic::write(&entry.join(name), text.as_bytes())?;
            }
            // An index that is there may hold what was staged and is nowhere else.
            if !entry.join("index").exists() {
                Git::new(path).stdin(lock).args(["reset", "--quiet"]).run()?;
            }
            Ok(())
        })
    }

    /// Makes git look for the worktree at `path` there, not in the place it has on record.
    fn repair_path(&self, path: &Path) -> Result<()> {
        if private_git_directory(path).is_some()
            && let Some(entry) = entry_named_by(path)
        {
            // Git would look into the git directory of the agent.
            let place = [path.join(".git").as_os_str().as_encoded_bytes(), b"\n"].concat();
            return Ok(atomic::write(&entry.join("gitdir"), &place)?);
        }
        self.repository.holding(Guarded::Admin, |lock| {
            self.repository.git().stdin(lock).args(["worktree", "repair"]).arg(path).run()?;
            Ok(())
        })
    }

    /// Makes git forget a worktree of this pool that is gone.
    pub fn forget(&self, entry: &Path) -> Result<()> {
        self.repository.holding(Guarded::Admin, |_| match entry.exists() {
            true => forget(&self.repository, entry),
            false => Ok(()),
        })
    }
}

impl Repository {
    /// Removes git's locks on the index and the head of a worktree of Lanewright's; the caller knows that no git is at work
    /// in it.
    pub fn remove_locks_in(&self, worktree: &Path) -> Result<()> {
        self.refuse_foreign_worktree(worktree)?;
        holding_worktree(worktree, |_| remove_dead_locks(worktree))
    }

    /// Makes git's index of a worktree of Lanewright's again from its head; no file changes. The caller knows that no git is
    /// at work in it.
    pub fn make_index(&self, worktree: &Path) -> Result<()> {
        self.refuse_foreign_worktree(worktree)?;
        holding_worktree(worktree, |lock| {
            let directory = git_directory(worktree)?;
            let staged = directory.join("lanewright.index");
            atomic::remove_durably(&staged)?;
            let git = Git::new(worktree).without_hooks().stdin(lock).variable("GIT_INDEX_FILE", &staged);
            git.args(["read-tree", "HEAD"]).run()?;
            // In one step: a worktree without an index counts as one that was never checked out.
            atomic::rename(&staged, &directory.join("index"))?;
            Ok(sync_directory(&directory)?)
        })
    }

    /// The same where git cannot read the index. Returns whether it was made again.
    ///
    /// # Errors
    /// The worktree is none of Lanewright's, or the index cannot be written.
    pub fn make_unreadable_index(&self, worktree: &Path) -> Result<bool> {
        // Git reads some that libgit2 does not, such as a split one.
        let is_read = || Git::new(worktree).reading_only().args(["ls-files", "--stage"]).attempt();
        let is_unreadable = self.damaged_index_in(worktree)?.is_some() && !is_read()?.status.success();
        if is_unreadable {
            self.make_index(worktree)?;
        }
        Ok(is_unreadable)
    }

    /// A commit of what was staged in the worktree at `path`, which is gone, on top of where it stood; `None`: nothing
    /// was, or it is unknown.
    pub fn staged_in_missing(&self, path: &Path, tip: &CommitId) -> Result<Option<CommitId>> {
        let index = self.entry_at(path)?.map(|entry| entry.directory.join("index")).filter(|index| index.is_file());
        let Some(index) = index else { return Ok(None) };
        let written = self.git().variable("GIT_INDEX_FILE", &index).arg("write-tree").attempt()?;
        let tree = String::from_utf8_lossy(&written.stdout).trim().to_owned();
        if !written.status.success() || tree == self.tree_of(tip)? {
            return Ok(None);
        }
        let message = "What was staged in a worktree that is gone";
        let commit = self.git().args(["commit-tree", &tree, "-p", tip.as_str(), "-m", message]);
        commit_id(&run_identified(&commit)?).map(Some)
    }
}
