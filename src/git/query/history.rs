//! Where branches and other refs are, and what commits continue.

use crate::git::command::error::GitError;
use crate::git::command::program::Git;
use crate::git::fast::libgit2;
use crate::git::repo::repository::{Repository, branch_reference, commit_id};
use crate::model::{CommitId, Timestamp};

impl Repository {
    /// Where the branch `name` is; `None`: there is no such branch.
    ///
    /// # Errors
    /// What git says.
    pub fn branch_commit(&self, name: &str) -> Result<Option<CommitId>, GitError> {
        self.commit_at(&branch_reference(name))
    }

    /// The commit that the ref `reference` (a full name) leads to; `None`: there is no such ref.
    pub(crate) fn commit_at(&self, reference: &str) -> Result<Option<CommitId>, GitError> {
        let known = self.in_process(|git| match git.find_reference(reference) {
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            found => found?.peel_to_commit().map(|commit| Some(commit.id().to_string())),
        });
        if let Some(known) = known {
            return known.map(|name| commit_id(name.as_bytes())).transpose();
        }
        let git = Git::new(self.main_worktree()).args(["rev-parse", "--verify", "--quiet"]);
        let git = git.arg(format!("{reference}^{{commit}}"));
        let output = git.attempt()?;
        match output.status.code() {
            Some(0) => commit_id(&output.stdout).map(Some),
            Some(1) => Ok(None),
            _ => Err(git.failure(&output).into()),
        }
    }

    /// Whether `descendant` holds everything that `ancestor` holds; a commit is its own ancestor.
    ///
    /// # Errors
    /// What git says, for example that a commit does not exist.
    pub fn is_ancestor(&self, ancestor: &CommitId, descendant: &CommitId) -> Result<bool, GitError> {
        if ancestor == descendant {
            return Ok(true);
        }
        let known =
            self.in_process(|git| libgit2::is_ancestor(git, libgit2::oid(ancestor)?, libgit2::oid(descendant)?));
        if let Some(known) = known {
            return Ok(known);
        }
        let git = Git::new(self.main_worktree()).args([
            "merge-base",
            "--is-ancestor",
            ancestor.as_str(),
            descendant.as_str(),
        ]);
        Ok(git.yes()?)
    }

    /// When `commit` was made, to the second.
    pub(crate) fn commit_time(&self, commit: &CommitId) -> Result<Timestamp, GitError> {
        let git = Git::new(self.main_worktree()).args(["show", "--no-patch", "--format=%ct", commit.as_str()]);
        let seconds: i64 = git.line()?.parse().unwrap_or_default();
        Ok(Timestamp::from_unix_millis(seconds.saturating_mul(1000)))
    }
}
