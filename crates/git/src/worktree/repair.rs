//! Restoring what another program removed or replaced of Lanewright's worktrees, claims and branches. Nothing here is
//! discarded, and every step that is repeated detects that it is done.

use std::fs;
use std::path::{Path, PathBuf};

use lanewright_files::directory::{create_directory, entries, free_name, sync_directory, with_suffix};
use lanewright_files::{atomic, regular_file};
use lanewright_model::event::Worktree;
use lanewright_model::{CommitId, Timestamp};

use crate::command::{Git, GitError, Result};
use crate::fast::durable;
use crate::fast::libgit2::RefUpdate;
use crate::history::{make_commit, move_branch, remove_dead_locks, run_identified, set_reference};
use crate::query::Head;
use crate::repo::{Guarded, Repository, branch_reference, commit_id, git_directory, holding_worktree};
use crate::worktree::{
    Checkout, Claim, HeldSlot, Holder, Mode, Occupant, Pool, Progress, WorktreeState, adopt_head, clear_half_made,
    forget, has_only_link, is_untouched, occupant, rests_since_release,
};

/// What is between a slot's number and the time in the name of what was found in its place.
const ASIDE: &str = ".aside-";

/// A worktree that is not in its slot any more, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The last head that git recorded for it.
    pub head: Option<CommitId>,
    /// The new path of what was found in the slot; `None`: no files were.
    pub aside: Option<PathBuf>,
}

/// What became of a claim that the run log expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimFound {
    Held,
    /// It was missing or damaged, and was written again.
    Restored,
    /// The slot was given back: the claim is rightly missing.
    Released,
}

impl Repository {
    /// Writes the files of a worktree of the pool again if nothing but `.git` is left of it, although its head has files
    /// and nothing is staged: a commit there would delete them. Returns whether it did.
    ///
    /// # Errors
    /// When git cannot read the index or write the files.
    pub fn refill_if_emptied(&self, path: &Path) -> Result<bool> {
        if !has_only_link(path) || self.own_entry(path).is_none() {
            return Ok(false);
        }
        holding_worktree(path, |lock| {
            // What is staged may be nowhere else.
            let staged = Git::new(path).reading_only().args(["diff", "--cached", "--name-only", "-z"]).paths()?;
            if staged.is_empty() && has_only_link(path) {
                Git::new(path).stdin(lock).args(["checkout-index", "--all", "--quiet"]).run()?;
            }
            // The head may have no files, or none that are selected.
            Ok(staged.is_empty() && !has_only_link(path))
        })
    }
}

impl Pool {
    /// Makes room in the slot of `holder` at `path` if its worktree is missing or replaced: what is in its place is moved
    /// aside, never deleted, to a name that contains `at`, and git forgets the worktree. `None`: the worktree is intact,
    /// or `holder` does not hold the slot.
    pub fn set_lost_aside(&self, holder: &Holder, path: &Path, at: Timestamp) -> Result<Option<Lost>> {
        if self.repository.own_entry(path).is_some() {
            return Ok(None);
        }
        let held = self.own_claims()?.into_iter().find(|(number, _)| self.slot(*number) == path);
        if held.is_none_or(|(_, claim)| claim.holder != *holder || claim.progress == Progress::Claimed) {
            return Ok(None);
        }
        self.repository.holding(Guarded::Admin, |_| {
            let head = self.registered_head(path)?;
            let aside = match occupant(&self.repository, path) {
                Occupant::Nothing => None,
                Occupant::Ours(_) | Occupant::HalfMade | Occupant::Stranger => {
                    let aside = free_name(path, &format!("{ASIDE}{}", at.compact()));
                    atomic::rename(path, &aside)?;
                    Some(aside)
                }
            };
            clear_half_made(&self.repository, path)?;
            Ok(Some(Lost { head, aside }))
        })
    }

    /// The worktree of `holder` if it was made, again, and never checked out.
    pub fn only_made(&self, worktree: &Worktree) -> Result<Option<Lost>> {
        let entry = self.repository.own_entry(&worktree.path);
        match entry.is_some_and(|entry| is_untouched(&worktree.path, &entry)) {
            true => Ok(Some(Lost { head: self.registered_head(&worktree.path)?, aside: None })),
            false => Ok(None),
        }
    }

    /// Whether a checkout in the worktree of `holder` was not completed. It holds no work then.
    pub fn is_half_checked_out(&self, holder: &Holder, worktree: &Worktree) -> Result<bool> {
        Ok(matches!(self.read_claim(worktree.slot, holder)?.progress, Progress::Started { .. }))
    }

    /// Removes what a checkout that failed has written into the slot at `path`, which was missing before.
    pub fn discard_unfinished(&self, path: &Path) -> Result<()> {
        let Some(entry) = self.repository.own_entry(path) else { return Ok(()) };
        self.repository.holding(Guarded::Admin, |_| self.discard(path, &entry))
    }

    /// What was moved aside, of whichever run.
    pub(crate) fn set_aside(&self) -> Vec<PathBuf> {
        let mut found = entries(&self.slots()).unwrap_or_default();
        found.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(ASIDE)));
        found
    }

    /// The head of the worktree that is registered at `path`, whatever is there.
    fn registered_head(&self, path: &Path) -> Result<Option<CommitId>> {
        let Some(entry) = self.repository.entry_at(path)? else { return Ok(None) };
        let git = self.repository.git().arg("--git-dir").arg(&entry.directory);
        let output = git.args(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).attempt()?;
        output.status.success().then(|| commit_id(&output.stdout)).transpose()
    }

    /// Writes the claim of `holder` on the slot of `worktree` again where it is missing or damaged, unless the slot was
    /// given back. According to the run log `holder` holds the slot.
    ///
    /// # Errors
    /// [`GitError::NotOurs`] when another holder claims the slot at the same moment.
    pub fn restore_claim(&self, holder: &Holder, worktree: &Worktree) -> Result<ClaimFound> {
        match Claim::read(&self.claim_file(worktree.slot)) {
            Ok(Some(claim)) if claim.holder == *holder => {
                self.note_holder(worktree.slot, holder);
                return Ok(ClaimFound::Held);
            }
            // Only a slot that was given back can be claimed by another holder.
            Ok(Some(_)) => return Ok(ClaimFound::Released),
            _ if self.is_given_back(worktree) => return Ok(ClaimFound::Released),
            _ => {}
        }
        self.reclaim(holder, worktree)?;
        self.note_holder(worktree.slot, holder);
        Ok(ClaimFound::Restored)
    }

    /// Whether the slot was given back: a slot is detached before its claim is removed. So is one that is being made again.
    fn is_given_back(&self, worktree: &Worktree) -> bool {
        let entry = self.repository.own_entry(&worktree.path).filter(|entry| !is_untouched(&worktree.path, entry));
        let Some(entry) = entry else { return false };
        match self.repository.head_at(&worktree.path) {
            Ok(Head { branch: None, commit }) => !worktree.branch.is_empty() || rests_since_release(&entry, &commit),
            _ => false,
        }
    }

    /// Notes again that `holder` holds the slot `worktree`, and makes its link. A claim that cannot be read is kept beside
    /// it.
    pub fn reclaim(&self, holder: &Holder, worktree: &Worktree) -> Result<()> {
        create_directory(&self.slots())?;
        let file = self.claim_file(worktree.slot);
        let claim = Claim {
            repository: self.repository.common_dir().to_owned(),
            holder: holder.clone(),
            progress: Progress::Opened { branch: branch_of(worktree), head: worktree.head.clone() },
        };
        self.repository.holding(Guarded::Pool, |_| match Claim::read(&file) {
            Ok(Some(known)) if known.holder == *holder => Ok(()),
            Ok(Some(_)) => Err(GitError::NotOurs { path: file.clone() }),
            Ok(None) => claim.create(&file).map(drop),
            Err(_) => {
                set_damaged_aside(&file)?;
                claim.create(&file).map(drop)
            }
        })?;
        self.link(holder, &worktree.path)
    }

    /// Sets a claim aside that cannot be read and that belongs to no run; the slot stays as it is. Returns its new path.
    pub fn drop_claim(&self, file: &Path) -> Result<PathBuf> {
        self.repository.holding(Guarded::Pool, |_| set_damaged_aside(file))
    }

    /// Gives `holder` the slot `worktree` back, which is gone or whose claim is, with its branch, which exists.
    pub fn reopen(&self, holder: &Holder, worktree: &Worktree) -> Result<()> {
        self.reclaim(holder, worktree)?;
        let opened = self.open(holder, &Checkout::again(worktree))?;
        match opened.path == worktree.path {
            true => Ok(()),
            false => Err(GitError::NotOurs { path: worktree.path.clone() }),
        }
    }

    /// The same as [`Self::restore_registration`] unless git has a record of the worktree, which may be damaged.
    pub fn register_again(&self, worktree: &Worktree) -> Result<bool> {
        Ok(self.repository.own_entry(&worktree.path).is_none() && self.restore_registration(worktree)?)
    }

    /// Registers the worktree in its slot with git again, with every file as it is, where only git's own record of it was
    /// removed or is wrong, or brings it back from where it was moved. Returns whether it did.
    pub fn restore_registration(&self, worktree: &Worktree) -> Result<bool> {
        match self.repository.worktree_state(&worktree.path, &worktree.branch)? {
            WorktreeState::Forgotten(entry) => self.register(worktree, &entry)?,
            WorktreeState::Misplaced => self.place(&worktree.path)?,
            WorktreeState::Moved(from) => self.bring_back(&from, &worktree.path)?,
            WorktreeState::Missing | WorktreeState::Foreign | WorktreeState::Present(_) => return Ok(false),
        }
        Ok(true)
    }

    /// Brings the worktree in `from` back to `to`, where nothing is.
    fn bring_back(&self, from: &Path, to: &Path) -> Result<()> {
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
    fn place(&self, path: &Path) -> Result<()> {
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

    /// Puts the worktree of `holder` back onto its branch. Where its head continues the branch, the branch moves there;
    /// else nothing in it may be uncommitted, and some ref must hold its head.
    pub fn back_to_branch(&self, holder: &Holder, worktree: &Worktree) -> Result<()> {
        let path = &worktree.path;
        match adopt_head(&self.repository, path, &worktree.branch) {
            // The pool refuses to leave what is uncommitted.
            Err(GitError::Astray { head, .. }) => {
                if !self.repository.is_kept(&head)? {
                    return Err(GitError::Unmerged { place: path.display().to_string(), head });
                }
                let branch = Some(worktree.branch.clone());
                self.open(holder, &Checkout { branch, start: head, mode: Mode::ExistingBranch, adopt: true })?;
                Ok(())
            }
            adopted => adopted.map(drop),
        }
    }

    /// Takes a slot back from its holder and discards what is in it, ignored files excepted; it then stands at `commit`, on
    /// no branch.
    pub fn throw_away(&self, slot: &HeldSlot, commit: &CommitId) -> Result<()> {
        if slot.provisioned {
            let want = Checkout { branch: None, start: commit.clone(), mode: Mode::Reset, adopt: true };
            self.open(&slot.holder, &want)?;
        }
        self.release(&slot.holder, std::slice::from_ref(commit))
    }
}

fn branch_of(worktree: &Worktree) -> Option<String> {
    Some(worktree.branch.clone()).filter(|branch| !branch.is_empty())
}

impl Checkout {
    /// Of a worktree that the holder has had: its branch as it is, or its head on no branch.
    pub fn again(worktree: &Worktree) -> Self {
        let branch = branch_of(worktree);
        let mode = if branch.is_some() { Mode::ExistingBranch } else { Mode::Reset };
        Self { branch, start: worktree.head.clone(), mode, adopt: true }
    }
}

impl Repository {
    /// Makes `branch` again, at `commit`, which exists. One that exists meanwhile is as good.
    pub fn make_branch(&self, branch: &str, commit: &CommitId) -> Result<()> {
        let name = branch_reference(branch);
        let file = self.common_dir().join(&name);
        // Such as a power cut leaves of a ref that was being written; git changes no ref that it cannot read.
        if let Ok(held) = regular_file::read(&file) {
            let lost = commit_id(&held).is_ok_and(|commit| self.has_commit(&commit).is_ok_and(|found| !found));
            if lost || !names_something(&held) {
                atomic::remove_durably(&file)?;
            }
        }
        let update = RefUpdate { name: &name, old: None, to: commit, why: "lanewright: doctor" };
        set_reference(self, self.main_worktree(), &update).map(drop)
    }

    /// Puts what `head`, at which `branch` and `worktree` are, holds on top of `onto`. A commit in a worktree whose branch
    /// was deleted begins a history of its own, which cannot be merged.
    pub fn graft(
        &self,
        worktree: &Path,
        branch: &str,
        [head, onto]: [&CommitId; 2],
        message: &str,
    ) -> Result<CommitId> {
        let commit = make_commit(self, worktree, &self.tree_of(head)?, &[onto], message)?;
        durable::objects(self, &commit, [onto])?;
        move_branch(self, branch, head, &commit)?;
        Ok(commit)
    }

    /// Removes git's locks on the index and the head of a worktree of Lanewright's; the caller knows that no git is at work
    /// in it.
    pub fn remove_locks_in(&self, worktree: &Path) -> Result<()> {
        self.vouch_for(worktree)?;
        holding_worktree(worktree, |_| remove_dead_locks(worktree))
    }

    /// Makes git's index of a worktree of Lanewright's again from its head; no file changes. The caller knows that no git is
    /// at work in it.
    pub fn make_index(&self, worktree: &Path) -> Result<()> {
        self.vouch_for(worktree)?;
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
        commit_id(&run_identified(commit)?).map(Some)
    }
}

/// Renames a file that cannot be read to a name that nothing reads.
fn set_damaged_aside(file: &Path) -> Result<PathBuf> {
    let aside = with_suffix(file, ".damaged");
    atomic::rename(file, &aside)?;
    file.parent().map_or(Ok(()), sync_directory)?;
    Ok(aside)
}

/// Whether the file of a ref names an object or another ref.
fn names_something(held: &[u8]) -> bool {
    let held = held.trim_ascii();
    held.starts_with(b"ref: ") || held.len() >= 40 && held.iter().all(u8::is_ascii_hexdigit)
}
