//! Puts the work of a run onto a branch of a remote: as it is, or merged with what the branch has there.
//!
//! Everything happens in git's object store, and the remote's branch moves by compare-and-set. No branch, index or file of
//! this clone is changed.

use lanewright_git::{GitError, Merge, PushRequest, Remote, Repository, branch_reference, merge};
use lanewright_model::{CommitId, RunId};

/// How often the remote's branch may move between looking at it and pushing.
const TRIES: u32 = 5;

/// Why the work of a run is not on the remote's branch. Nothing was pushed.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The work and the branch changed the same places of `paths`.
    #[error("`{branch}` on {remote} conflicts with the work of the run in {}; nothing was pushed", .paths.join(", "))]
    Conflict { remote: String, branch: String, paths: Vec<String> },
    /// Others pushed to the branch each time.
    #[error("`{branch}` on {remote} moved during each of {TRIES} attempts to push; nothing was pushed")]
    Moved { remote: String, branch: String },
    /// The commits at which the histories meet are not in this clone.
    #[error("this is a shallow clone, so the work cannot be merged with `{branch}` of {remote}; nothing was pushed")]
    Shallow { remote: String, branch: String },
    /// Git failed, or the remote refused the push.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// The work of a run, and the remote that is to have it.
#[derive(Debug, Clone, Copy)]
pub struct Work<'a> {
    pub repository: &'a Repository,
    pub remote: &'a Remote,
    pub run: &'a RunId,
    pub commit: &'a CommitId,
}

/// What [`Work::deliver`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The branch has the work, and nothing was pushed.
    AlreadyThere(CommitId),
    /// The branch is at this commit: that of the work, or its merge with what the branch had.
    Pushed(CommitId),
}

impl Delivery {
    /// Where the remote's branch is.
    pub fn tip(&self) -> &CommitId {
        match self {
            Self::AlreadyThere(tip) | Self::Pushed(tip) => tip,
        }
    }
}

impl Work<'_> {
    /// Where the remote's `branch` is; `None`: there is no such branch. Its commits are here then.
    ///
    /// # Errors
    /// The remote cannot be reached.
    pub fn fetch(&self, branch: &str) -> Result<Option<CommitId>, PublishError> {
        let reference = branch_reference(branch);
        let tip = self.remote.commit_at(&reference)?;
        if let Some(tip) = &tip
            && !self.repository.has_commit(tip)?
        {
            self.remote.fetch(&[reference])?;
        }
        Ok(tip)
    }

    /// The tip of the remote's `branch`, if it has the work.
    ///
    /// # Errors
    /// Those of [`Work::fetch`], or a commit cannot be read.
    pub fn found_on(&self, branch: &str) -> Result<Option<CommitId>, PublishError> {
        let Some(tip) = self.fetch(branch)? else { return Ok(None) };
        Ok(self.repository.has_work_of(&tip, self.commit)?.then_some(tip))
    }

    /// Pushes the work to the remote's `branch`, merged with the commits that it has and the work does not. Nothing on the
    /// remote is lost. Called again, it does nothing.
    ///
    /// # Errors
    /// [`PublishError::Conflict`], and [`GitError::PushRefused`] where the remote refuses the push.
    pub fn deliver(&self, branch: &str) -> Result<Delivery, PublishError> {
        let reference = branch_reference(branch);
        for _ in 0..TRIES {
            let there = self.fetch(branch)?;
            let commit = match &there {
                None => self.commit.clone(),
                Some(tip) if self.repository.has_work_of(tip, self.commit)? => {
                    return Ok(Delivery::AlreadyThere(tip.clone()));
                }
                Some(tip) if self.repository.is_ancestor(tip, self.commit)? => self.commit.clone(),
                Some(tip) => self.merged(branch, tip)?,
            };
            // A hook of the user's may upload what the commits only name.
            let request = PushRequest::new(&reference, Some(&commit), there.as_ref());
            if self.remote.push(&PushRequest { hooks: true, ..request })? {
                return Ok(Delivery::Pushed(commit));
            }
        }
        Err(PublishError::Moved { remote: self.remote.name().to_owned(), branch: branch.to_owned() })
    }

    /// The work with what the remote's `branch` has, as after `git pull --no-rebase`.
    fn merged(&self, branch: &str, tip: &CommitId) -> Result<CommitId, PublishError> {
        let (remote, branch) = (self.remote.name().to_owned(), branch.to_owned());
        let message = format!("Merge branch '{branch}' of {remote}\n\nPublishes the work of run {}.", self.run);
        match merge(self.repository, self.commit, tip, &message, &[], &[]) {
            Ok(Merge::Done(commit)) => Ok(commit),
            Ok(Merge::AlreadyIn) => Ok(self.commit.clone()),
            Ok(Merge::Conflict(paths)) => Err(PublishError::Conflict { remote, branch, paths }),
            Err(GitError::Unrelated { .. }) if self.remote.is_shallow_here()? => {
                Err(PublishError::Shallow { remote, branch })
            }
            Err(error) => Err(error.into()),
        }
    }
}
