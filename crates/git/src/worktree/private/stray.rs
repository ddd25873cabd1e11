//! Keeps what agents did whose worktrees are gone.

use std::fmt;
use std::path::{Path, PathBuf};

use lanewright_files::{atomic, directory};
use lanewright_model::CommitId;

use super::files::{head_in, read_small};
use super::home::{Home, KEPT, LeftBehind, RECORD, Record, Stage, TOKEN, discard, private_git_directory, record_in};
use super::references::References;
use crate::command::{GitError, PRIVATE_GIT, Result};
use crate::fast::durable;
use crate::history::references::force_reference;
use crate::repo::{Repository, holding, registered_place};

/// Below it is what no branch has of agents whose worktrees were removed.
const RESCUED: &str = "refs/lanewright/rescued";

/// What was kept of an agent whose worktree was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rescued {
    /// A ref of the agent's.
    Kept { name: String, reference: String },
    /// Its git directory, of which not all can be read.
    Aside { place: PathBuf, reason: String },
    /// Nothing yet, for its directory cannot be read.
    NotYet { place: PathBuf, reason: String },
}

impl fmt::Display for Rescued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept { name, reference } => {
                write!(f, "the worktree of an agent was removed; its `{name}` is kept as {reference}")
            }
            Self::Aside { place, reason } => {
                let place = place.display();
                write!(
                    f,
                    "the worktree of an agent was removed; its git directory is kept as {place}, since not all of it was copied: {reason}"
                )
            }
            Self::NotYet { place, reason } => {
                write!(f, "{} may hold work of an agent whose worktree was removed: {reason}", place.display())
            }
        }
    }
}

/// What was kept of agents whose worktrees were removed, until a person deletes it.
#[derive(Debug, Default)]
pub struct KeptOfRemoved {
    pub references: Vec<(String, CommitId)>,
    /// Git directories of which not all can be read.
    pub directories: Vec<PathBuf>,
}

/// What was kept of agents whose worktrees were removed.
pub fn kept_of_removed(repository: &Repository) -> Result<KeptOfRemoved> {
    let directories = directory::directories(&repository.common_dir().join(KEPT))?;
    Ok(KeptOfRemoved { references: repository.references(RESCUED)?, directories })
}

/// Removes the git directory of an agent with its record, and keeps and notes what only it has. The caller holds the lock of
/// the entry, if there is one.
pub(super) fn discard_home(repository: &Repository, place: &Path) -> Result<()> {
    let rescued = match Stray::in_place(repository, place)? {
        // A branch that is checked out cannot be moved here, and one that is not may be another lane's since.
        Some(mut stray) => stray.keep_and_discard(false)?,
        None => {
            let aside = put_aside_without_record(repository, place)?;
            discard(repository, place)?;
            aside.into_iter().collect()
        }
    };
    rescued.iter().for_each(|kept| repository.notice(kept));
    Ok(())
}

/// Keeps the git directory in `place`, of which there is a record that cannot be read.
fn put_aside_without_record(repository: &Repository, place: &Path) -> Result<Option<Rescued>> {
    let (git, record) = (place.join(PRIVATE_GIT), place.join(RECORD));
    if !git.is_dir() || record.symlink_metadata().is_err() || record_in(place)?.is_some() {
        return Ok(None);
    }
    let kept = repository.common_dir().join(KEPT).join(uuid::Uuid::now_v7().to_string());
    directory::create_directory(kept.parent().unwrap_or(&kept))?;
    atomic::rename(&git, &kept)?;
    Ok(Some(Rescued::Aside { place: kept, reason: "its record cannot be read".to_owned() }))
}

/// The git directory of an agent whose work was not taken over, whether or not its worktree is there.
pub(super) struct Stray<'a> {
    home: Home<'a>,
    record: Record,
}

impl<'a> Stray<'a> {
    pub(super) fn in_place(repository: &'a Repository, place: &'a Path) -> Result<Option<Self>> {
        let stray = record_in(place)?.map(|record| Self::new(repository, place, record));
        Ok(stray.filter(|stray| stray.record.stage == Stage::Working || stray.is_unnoted()))
    }

    fn new(repository: &'a Repository, place: &'a Path, record: Record) -> Self {
        let entry = repository.entries_directory().join(place.file_name().unwrap_or_default());
        Self { home: Home { repository, worktree: place, entry, place: place.to_owned() }, record }
    }

    /// Whether it was taken over, as far as it can be read, and the process that did so died before that was noted: then the
    /// directory is there.
    fn is_unnoted(&self) -> bool {
        self.record.stage != Stage::Working && self.home.git().is_dir()
    }

    /// The worktree that leads there, also where git's directory for it was removed.
    pub(super) fn worktree(&self) -> Option<PathBuf> {
        let known = Some(self.record.worktree.clone()).filter(|place| !place.as_os_str().is_empty());
        let worktree = known.or_else(|| registered_place(&self.home.entry))?;
        private_git_directory(&worktree).filter(|git| *git == self.home.git()).map(|_| worktree)
    }

    /// Whether the worktree is there that it was made for.
    pub(super) fn has_worktree(&self) -> bool {
        let is_there = || registered_place(&self.home.entry).is_some_and(|place| place.is_dir());
        self.worktree().is_some() || (self.has_entry() && is_there())
    }

    /// Whether git lists the worktree that it was made for.
    fn has_entry(&self) -> bool {
        read_small(&self.home.entry.join(TOKEN)).is_some_and(|token| token == self.record.token)
    }

    pub(super) fn rescue(mut self) -> Result<Vec<Rescued>> {
        if !self.home.entry.exists() {
            return self.keep_and_discard(true);
        }
        let lock = self.home.entry.join("lanewright.lock");
        holding(&lock, |_| match self.has_entry() {
            true => self.bring_over(),
            false => self.keep_and_discard(true),
        })
    }

    /// Brings over the branch. Where the repository is at another place for the agent, as in a container, nothing is done.
    fn bring_over(&mut self) -> Result<Vec<Rescued>> {
        if self.record.stage == Stage::Working && self.home.git().is_dir() && self.home.has_own_alternates() {
            match self.keep_branch(true) {
                Ok(_) | Err(GitError::PrivateLost { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Vec::new())
    }

    fn keep_and_discard(&mut self, moves_branch: bool) -> Result<Vec<Rescued>> {
        let mut rescued = Vec::new();
        match &self.record.stage {
            Stage::Working => {
                self.record.rest = match self.keep(moves_branch) {
                    Err(GitError::PrivateLost { reason, .. }) => Some(reason),
                    kept => kept?,
                };
            }
            Stage::Lost(reason) => self.record.rest = Some(reason.clone()),
            Stage::TakenOver => {}
        }
        let left = std::mem::take(&mut self.record.left);
        let mut lost = self.home.repository.without_reference(&left.iter().map(|it| it.commit.clone()).collect())?;
        for LeftBehind { name, commit } in left {
            if lost.remove(&commit) {
                let reference = format!("{RESCUED}/{commit}");
                force_reference(self.home.repository, &reference, &commit)?;
                rescued.push(Rescued::Kept { name, reference });
            }
        }
        let kept = self.home.discard_git(&self.record)?;
        discard(self.home.repository, &self.home.place)?;
        let aside = kept.zip(self.record.rest.take()).map(|(place, reason)| Rescued::Aside { place, reason });
        rescued.extend(aside);
        Ok(rescued)
    }

    /// Keeps branch, head, index, and what else the agent left, and names it in the record. Returns why some of it cannot be had.
    fn keep(&mut self, moves_branch: bool) -> Result<Option<String>> {
        if !self.home.git().is_dir() {
            return Ok(None);
        }
        let Kept { references, head, mut left, missing } = self.keep_branch(moves_branch)?;
        let mut missing = self.home.take_left(&mut self.record, &references)?.or(missing);
        left.append(&mut self.record.left);
        match self.home.staged(&self.record, head.as_ref().or(self.record.base.as_ref())) {
            Err(GitError::PrivateLost { reason, .. }) => missing = missing.or(Some(reason)),
            staged => left.extend(staged?),
        }
        self.record.left = left;
        Ok(missing)
    }

    /// Whether the user has the branch checked out: that checkout would be left behind.
    fn is_checked_out_elsewhere(&self, name: &str) -> Result<bool> {
        let own = registered_place(&self.home.entry);
        let places = self.home.repository.all_checked_out(name.strip_prefix("refs/heads/").unwrap_or(name))?;
        Ok(places.iter().any(|place| own.as_ref() != Some(place)))
    }

    /// Copies what branch and head lead to.
    fn keep_branch(&mut self, moves_branch: bool) -> Result<Kept> {
        let git = self.home.git();
        self.home.check_objects()?;
        let references = References::of(&git, &[]).map_err(|error| self.home.lost(error.to_string()))?;
        let named = |name: &str| CommitId::new(references.named.get(name)?.object.as_str()).ok();
        let head = head_in(&git).and_then(|head| match head.strip_prefix("ref: ") {
            Some(name) => named(name),
            None => CommitId::new(&head).ok(),
        });
        let branch = self.record.branch.clone();
        let tip = branch.as_deref().and_then(named);
        let is_new = |tip: &&CommitId| self.record.base.as_ref() != Some(*tip);
        let of_branch = tip.clone().filter(|tip| is_new(&tip)).map(|tip| (branch.clone().unwrap_or_default(), tip));
        let of_head = head.clone().filter(|head| is_new(&head) && tip.as_ref() != Some(head));
        let mut missing = None;
        let mut left = Vec::new();
        for (name, commit) in of_branch.into_iter().chain(of_head.map(|head| ("HEAD".to_owned(), head))) {
            match self.home.copy_objects(&self.record, &[&commit], None) {
                Ok(()) => left.push(LeftBehind { name, commit }),
                Err(GitError::PrivateLost { reason, .. }) => missing = Some(reason),
                Err(error) => return Err(error),
            }
        }
        for LeftBehind { commit, .. } in &left {
            durable::objects(self.home.repository, commit, self.record.base.iter())?;
        }
        let copied = left.iter().find(|it| Some(&it.name) == branch.as_ref());
        if let (true, Some(name), Some(tip)) = (moves_branch, &branch, copied)
            && !self.is_checked_out_elsewhere(name)?
        {
            self.home.move_branch(&mut self.record, name, &tip.commit)?;
        }
        Ok(Kept { references, head, left, missing })
    }
}

/// What was copied of branch and head.
struct Kept {
    references: References,
    head: Option<CommitId>,
    left: Vec<LeftBehind>,
    missing: Option<String>,
}
