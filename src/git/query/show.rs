//! Looking at a snapshot, and taking it elsewhere than into the worktree it came from.

use std::path::Path;

use crate::git::command::error::GitError;
use crate::git::command::program::{Git, path_text};
use crate::git::repo::repository::Repository;
use crate::model::CommitId;

impl Repository {
    /// How two commits differ, a line a file and a sum, for people (`git diff --stat`).
    pub(crate) fn diff_stat(&self, from: &CommitId, to: &CommitId) -> Result<String, GitError> {
        let git = Git::new(self.main_worktree()).args(["diff", "--stat=80", "--no-ext-diff", "--no-color"]);
        Ok(path_text(&git.args([from.as_str(), to.as_str()]).run()?))
    }

    /// What a commit says of itself.
    pub(crate) fn message_of(&self, commit: &CommitId) -> Result<String, GitError> {
        let git = Git::new(self.main_worktree()).args(["show", "--no-patch", "--format=%B", commit.as_str()]);
        Ok(path_text(&git.run()?).trim_end().to_owned())
    }

    /// Makes the branch `name` at `commit`. One that is there is an error.
    pub(crate) fn branch_off(&self, name: &str, commit: &CommitId) -> Result<(), GitError> {
        Git::new(self.main_worktree()).args(["branch", "--no-track", name, commit.as_str()]).run()?;
        Ok(())
    }

    /// Checks `commit` out into a new worktree at `directory`, on no branch. It is the user's own from then on.
    pub(crate) fn check_out_apart(&self, directory: &Path, commit: &CommitId) -> Result<(), GitError> {
        let git = Git::new(self.main_worktree()).without_hooks().args(["worktree", "add", "--quiet", "--detach"]);
        git.arg(directory).arg(commit.as_str()).run()?;
        Ok(())
    }
}
