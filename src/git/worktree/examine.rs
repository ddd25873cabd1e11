//! Looking at worktrees, refs and indexes that something may have damaged. Nothing here writes a byte.

use std::fs;
use std::path::{Path, PathBuf};

use crate::fs::regular_file;
use crate::git::command::error::GitError;
use crate::git::command::program::{Git, nul_separated, path_text};
use crate::git::history::checkout_sync::Advance;
use crate::git::history::dead_locks::index_lock;
use crate::git::query::head::{Head, HeadFile, head_of};
use crate::git::query::status::worktree_changes;
use crate::git::repo::git_dir::{
    directories_in, entry_named_by, git_directory, read_line, registered_place, same_place,
};
use crate::git::repo::registry::WorktreeEntry;
use crate::git::repo::repository::{Repository, branch_reference, commit_id};
use crate::git::worktree::claim::{Claim, Holder, Progress};
use crate::git::worktree::condition::rests_since_release;
use crate::git::worktree::pool::Pool;
use crate::git::worktree::slot::{Occupant, is_locked, is_untouched, occupant};
use crate::model::{CommitId, RunId};

/// What is where a worktree of ours should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    Missing,
    /// Nothing; the worktree lies there now.
    Moved(PathBuf),
    /// Its files; git has forgotten them, or what is checked out. The path is the entry that they name.
    Forgotten(PathBuf),
    /// Its files; git believes them somewhere else, where nothing is.
    Misplaced,
    /// Something that is not ours.
    Foreign,
    Present(Present),
}

/// A worktree that is where it should be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Present {
    /// Whether it is on its branch, or will be when its rebase ends.
    pub on_branch: bool,
    /// What it is on: a branch without `refs/heads/`; `None`: no branch.
    pub checked_out: Option<String>,
    /// Why a person locked it, if one did; may be empty.
    pub locked: Option<String>,
}

/// A slot of the pool as its files say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slot {
    pub number: u32,
    pub path: PathBuf,
    /// The file that says who holds it; need not exist.
    pub claim: PathBuf,
    /// Who holds it, whichever repository's run that is; the error is what is wrong with the claim.
    pub holder: Result<Option<Holder>, String>,
    /// What is checked out according to its claim; `None`: it has no claim, or one that cannot be read.
    pub checkout: Option<SlotCheckout>,
    /// Whether it is a worktree of ours.
    pub ours: bool,
    /// What in it is in no commit, or that its head is in no ref; empty: nothing would be lost without it.
    pub work: Vec<String>,
}

/// What is checked out in a slot according to its claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SlotCheckout {
    /// The checkout was not completed, so the slot holds nothing of its holder's.
    Incomplete,
    /// A branch, without `refs/heads/`.
    Branch(String),
    /// No branch, this commit.
    Detached(CommitId),
}

impl From<Progress> for SlotCheckout {
    fn from(progress: Progress) -> Self {
        match progress {
            Progress::Claimed | Progress::Started { .. } => Self::Incomplete,
            Progress::Opened { branch: Some(branch), .. } => Self::Branch(branch),
            Progress::Opened { branch: None, head } => Self::Detached(head),
        }
    }
}

/// A worktree of the pool's that git knows and that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prunable {
    /// Git's own directory for it.
    pub entry: PathBuf,
    /// Where it should be.
    pub place: PathBuf,
    /// A commit that only this entry holds.
    pub only_here: Option<CommitId>,
}

impl Repository {
    /// What is at `path`, where a worktree with `branch` checked out should be (empty: with none).
    pub(crate) fn standing(&self, path: &Path, branch: &str) -> Result<Standing, GitError> {
        match occupant(self, path) {
            // A power cut may leave git's note of what is checked out empty.
            Occupant::Ours(entry) => Ok(match checked_out(path, &entry) {
                Some(on) => Standing::Present(present(path, entry, branch, on)?),
                None => Standing::Forgotten(entry),
            }),
            Occupant::Nothing | Occupant::HalfMade => {
                Ok(self.moved_to(path, branch)?.map_or(Standing::Missing, Standing::Moved))
            }
            Occupant::Stranger => Ok(self.stranger(path)),
        }
    }

    /// Files that claim to be a worktree of this repository, of which the repository thinks otherwise.
    fn stranger(&self, path: &Path) -> Standing {
        let entries = self.common_dir().join("worktrees");
        let is_ours = |entry: &PathBuf| {
            let above = entry.parent();
            above == Some(&entries) || above.is_some_and(|above| same_place(above, &entries))
        };
        let Some(entry) = entry_named_by(path).filter(is_ours) else { return Standing::Foreign };
        match registered_place(&entry) {
            None => Standing::Forgotten(entry),
            Some(place) if place == path && !entry.join("HEAD").exists() => Standing::Forgotten(entry),
            Some(place) if fs::symlink_metadata(&place).is_err() => Standing::Misplaced,
            Some(_) => Standing::Foreign,
        }
    }

    /// Where the worktree lies that should be at `path`: somebody used `git worktree move`, or a plain `mv` to beside
    /// the pool or the repository.
    fn moved_to(&self, path: &Path, branch: &str) -> Result<Option<PathBuf>, GitError> {
        for entry in self.linked_worktrees()? {
            if entry.worktree == path {
                return Ok(self.neighbours(path)?.into_iter().find(|it| leads_to(it, &entry.directory)));
            }
            // A person's own worktree may have the branch; ours are known by the lock that each of them gets.
            let ours = entry.directory.join("lanekeeper.lock").exists();
            if ours && !branch.is_empty() && entry.holds(branch) && leads_to(&entry.worktree, &entry.directory) {
                return Ok(Some(entry.worktree));
            }
        }
        Ok(None)
    }

    fn neighbours(&self, path: &Path) -> Result<Vec<PathBuf>, GitError> {
        let mut places: Vec<&Path> = path.ancestors().skip(1).take(3).collect();
        places.extend(self.main_worktree().parent());
        let mut found = Vec::new();
        for place in places {
            found.extend(directories_in(place).unwrap_or_default());
        }
        Ok(found)
    }

    /// Whether `commit` is in the repository.
    pub(crate) fn has_commit(&self, commit: &CommitId) -> Result<bool, GitError> {
        let git = Git::new(self.main_worktree()).args(["cat-file", "-e", &format!("{commit}^{{commit}}")]);
        Ok(git.attempt()?.status.success())
    }

    /// The first parent of `commit`; `None`: it has none, or is not in the repository.
    pub(crate) fn parent_of(&self, commit: &CommitId) -> Result<Option<CommitId>, GitError> {
        let git = Git::new(self.main_worktree()).args(["rev-parse", "--verify", "--quiet", &format!("{commit}^1")]);
        let output = git.attempt()?;
        output.status.success().then(|| commit_id(&output.stdout)).transpose()
    }

    /// Whether some ref holds `commit`.
    pub(crate) fn is_kept(&self, commit: &CommitId) -> Result<bool, GitError> {
        let git = Git::new(self.main_worktree()).args(["for-each-ref", "--count=1", "--contains", commit.as_str()]);
        Ok(!git.run()?.is_empty())
    }

    /// The commits on `branch` that bear the name of `run` and that none of `known` holds, the newest first.
    pub(crate) fn commits_of_run(
        &self,
        run: &RunId,
        branch: &str,
        known: &[CommitId],
    ) -> Result<Vec<CommitId>, GitError> {
        if self.branch_commit(branch)?.is_none() {
            return Ok(Vec::new());
        }
        let git =
            Git::new(self.main_worktree()).args(["rev-list", "--fixed-strings", "--grep", &format!("Run: {run}")]);
        let git = git.arg(branch_reference(branch)).arg("--not").args(known.iter().map(CommitId::as_str));
        let listing = git.run()?;
        listing.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(commit_id).collect()
    }

    /// The refs whose names begin with `prefix`, each with its commit.
    ///
    /// # Errors
    /// What git says.
    pub fn references(&self, prefix: &str) -> Result<Vec<(String, CommitId)>, GitError> {
        let git = Git::new(self.main_worktree()).args(["for-each-ref", "--format=%(objectname)%00%(refname)", prefix]);
        let listing = git.run()?;
        let mut found = Vec::new();
        for line in listing.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let parts: Vec<&[u8]> = nul_separated(line).collect();
            if let [commit, name] = parts[..] {
                found.push((path_text(name), commit_id(commit)?));
            }
        }
        Ok(found)
    }

    /// Git's lock on the index of `worktree`, if there is one.
    pub(crate) fn index_lock_in(&self, worktree: &Path) -> Result<Option<PathBuf>, GitError> {
        // One of our own is no finding: `resume` finishes what it is for.
        let ours = |lock: &PathBuf| lock.parent().is_some_and(|directory| Advance::under_way(directory).is_some());
        Ok(index_lock(worktree)?.filter(|lock| !ours(lock)))
    }

    /// Git's index of `worktree`, if there is one and it cannot be read.
    pub(crate) fn damaged_index_in(&self, worktree: &Path) -> Result<Option<PathBuf>, GitError> {
        let index = git_directory(worktree)?.join("index");
        Ok(is_damaged_index(&index).then_some(index))
    }

    /// Where the worktree that should be at `path` last stood, as git's own directory for it tells.
    pub(crate) fn last_head(&self, path: &Path) -> Option<CommitId> {
        let known = self.linked_worktrees().ok()?.into_iter().find(|entry| entry.worktree == path)?;
        let log = regular_file::read_text(known.directory.join("logs/HEAD")).ok()?;
        let stood = |line: &str| CommitId::new(line.split(' ').nth(1)?).ok();
        // A branch that is deleted below its worktree leaves a line that leads to nothing.
        log.lines().rev().filter_map(stood).find(|commit| commit.as_str().bytes().any(|digit| digit != b'0'))
    }
}

impl Pool {
    /// Every slot that exists or is claimed.
    pub(crate) fn slots_seen(&self) -> Result<Vec<Slot>, GitError> {
        self.numbers()?.into_iter().map(|number| self.slot_seen(number)).collect()
    }

    fn slot_seen(&self, number: u32) -> Result<Slot, GitError> {
        let (path, claim) = (self.slot(number), self.claim_file(number));
        let read = || Claim::read(&claim).map_err(|error| error.to_string());
        let (holder, checkout) = match read() {
            Ok(Some(claim)) => (Ok(Some(claim.holder)), Some(claim.progress.into())),
            Ok(None) => (Ok(None), None),
            Err(error) => (Err(error), None),
        };
        let entry = match occupant(self.repository(), &path) {
            Occupant::Ours(entry) => Some(entry),
            Occupant::Nothing | Occupant::HalfMade | Occupant::Stranger => None,
        };
        let work = match &entry {
            Some(entry) if holder == Ok(None) => {
                let work = self.work_in(&path, entry);
                // A live session may have claimed or removed it meanwhile.
                let is_free = read() == Ok(None) && occupant(self.repository(), &path) == Occupant::Ours(entry.clone());
                Some(work).filter(|_| is_free)
            }
            _ => None,
        };
        Ok(Slot { number, path, holder, checkout, ours: entry.is_some(), work: work.unwrap_or_default(), claim })
    }

    /// What would be lost without the slot at `path`. What cannot be looked at counts.
    fn work_in(&self, path: &Path, entry: &Path) -> Vec<String> {
        if is_untouched(path, entry) {
            return Vec::new();
        }
        let looked = head_of(path).and_then(|head| {
            let mut work = worktree_changes(path, &head.commit)?;
            let released = rests_since_release(entry, &head.commit);
            if !released && !self.repository().is_kept(&head.commit)? {
                work.push(format!("commit {}, which no ref holds", head.commit));
            }
            Ok(work)
        });
        looked.unwrap_or_else(|error: GitError| vec![error.to_string()])
    }

    /// Worktrees of this pool that git knows, that nobody holds, and that are gone.
    pub(crate) fn prunable(&self) -> Result<Vec<Prunable>, GitError> {
        let mut found = Vec::new();
        for WorktreeEntry { directory, worktree } in self.repository().linked_worktrees()? {
            let number = worktree.file_name().and_then(|name| name.to_str()?.parse().ok());
            let free = number.is_some_and(|number| !self.claim_file(number).exists());
            let gone = fs::symlink_metadata(&worktree).is_err();
            if worktree.parent() != Some(&self.slots()) || !gone || !free || is_locked(&directory) {
                continue;
            }
            let detached = read_line(&directory.join("HEAD")).and_then(|head| CommitId::new(&head).ok());
            let only_here = match detached {
                Some(head) if self.repository().has_commit(&head)? && !self.repository().is_kept(&head)? => Some(head),
                _ => None,
            };
            found.push(Prunable { entry: directory, place: worktree, only_here });
        }
        Ok(found)
    }
}

fn present(path: &Path, entry: PathBuf, branch: &str, checked_out: Option<String>) -> Result<Present, GitError> {
    let locked = is_locked(&entry).then(|| read_line(&entry.join("locked")).unwrap_or_default());
    let known = WorktreeEntry { directory: entry, worktree: path.to_owned() };
    let on_branch = checked_out.as_deref().unwrap_or_default() == branch || known.holds(branch);
    Ok(Present { on_branch, checked_out, locked })
}

/// The branch that is checked out in a worktree, if it can be read without git, which gives up where the branch itself is
/// damaged; `Some(None)`: none is, `None`: nobody knows.
fn checked_out(path: &Path, entry: &Path) -> Option<Option<String>> {
    match HeadFile::read(entry) {
        Some(head) => Some(head.branch()),
        None => Head::branch_of(path).ok(),
    }
}

/// Whether the index file at `path` is there and cannot be read.
pub(crate) fn is_damaged_index(path: &Path) -> bool {
    path.is_file() && git2::Index::open(path).is_err()
}

fn leads_to(worktree: &Path, entry: &Path) -> bool {
    entry_named_by(worktree).is_some_and(|named| same_place(&named, entry))
}
