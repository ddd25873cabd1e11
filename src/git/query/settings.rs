//! What the user's settings say of branches and remotes. Nothing here reaches a remote.

use crate::git::command::error::GitError;
use crate::git::command::program::Git;
use crate::git::repo::repository::Repository;

/// The remote that `branch` follows, as its settings say; `None`: it follows none.
pub(crate) fn upstream_remote(repository: &Repository, branch: &str) -> Result<Option<String>, GitError> {
    let name = configured(repository, &format!("branch.{branch}.remote"))?;
    // A branch that follows another one of the same repository names the remote `.`.
    Ok(name.filter(|name| name != "."))
}

/// The address of `remote` as the user wrote it, before `url.….insteadOf` changes it.
pub(crate) fn written_url(repository: &Repository, remote: &str) -> Result<Option<String>, GitError> {
    configured(repository, &format!("remote.{remote}.url"))
}

fn configured(repository: &Repository, key: &str) -> Result<Option<String>, GitError> {
    let git = Git::new(repository.main_worktree()).args(["config", "--get", key]);
    let output = git.attempt()?;
    match output.status.code() {
        Some(0) => Ok(Some(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())),
        Some(1) => Ok(None),
        _ => Err(git.failure(&output).into()),
    }
}
