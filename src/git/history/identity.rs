//! In whose name commits of ours are made.

use crate::git::command::error::GitError;
use crate::git::command::program::Git;
use crate::git::fast::libgit2;
use crate::git::repo::repository::{Repository, commit_id};
use crate::model::CommitId;

/// Who makes a commit where the user has not told git a name.
const NAME: &str = "Lanekeeper";
const EMAIL: &str = "lanekeeper@localhost";

/// Runs `git`, which makes a commit, in the user's name or, where none is configured, in Lanekeeper's.
pub(crate) fn run_identified(git: Git<'_>) -> Result<Vec<u8>, GitError> {
    // Without this setting git invents an address from the machine's name.
    let git = git.configured("user.useConfigOnly=true");
    let output = git.attempt()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    if !String::from_utf8_lossy(&output.stderr).contains("auto-detection is disabled") {
        return Err(git.failure(&output).into());
    }
    let git = git.variable("GIT_AUTHOR_NAME", NAME).variable("GIT_AUTHOR_EMAIL", EMAIL);
    Ok(git.variable("GIT_COMMITTER_NAME", NAME).variable("GIT_COMMITTER_EMAIL", EMAIL).run()?)
}

/// What says otherwise than `user.name` and `user.email`.
const VARIABLES: &[&str] = &["GIT_AUTHOR_", "GIT_COMMITTER_", "EMAIL"];
const SETTINGS: &[&str] = &["author.name", "author.email", "committer.name", "committer.email", "i18n.commitencoding"];

/// Makes a commit in the user's name, or in Lanekeeper's where none is configured; not yet durable.
pub(crate) fn make_commit(
    repository: &Repository,
    tree: &str,
    parents: &[&CommitId],
    message: &str,
) -> Result<CommitId, GitError> {
    if repository.may_write_in_process()
        && let Some(commit) = repository.in_process(|git| commit_tree(repository, git, tree, parents, message))
    {
        return commit_id(commit.to_string().as_bytes());
    }
    let git = Git::new(repository.main_worktree()).args(["commit-tree", tree, "-m", message]);
    commit_id(&run_identified(git.args(parents.iter().flat_map(|parent| ["-p", parent.as_str()])))?)
}

/// The same without a process; an error where the git program would do it differently.
pub(crate) fn commit_tree(
    repository: &Repository,
    git: &git2::Repository,
    tree: &str,
    parents: &[&CommitId],
    message: &str,
) -> Result<git2::Oid, git2::Error> {
    let signature = plain_signature(repository)?;
    let tree = git.find_tree(git2::Oid::from_str(tree)?)?;
    let parents = parents.iter().map(|parent| git.find_commit(libgit2::oid(parent)?));
    let parents = parents.collect::<Result<Vec<_>, git2::Error>>()?;
    // As `git commit-tree -m` ends it.
    let message = if message.ends_with('\n') { message.to_owned() } else { format!("{message}\n") };
    git.commit(None, &signature, &signature, &message, &tree, &parents.iter().collect::<Vec<_>>())
}

/// The user's name as git reads it from its settings, of which libgit2 does not find all.
fn plain_signature(repository: &Repository) -> Result<git2::Signature<'static>, git2::Error> {
    let is_told_otherwise =
        |(name, _): (std::ffi::OsString, _)| VARIABLES.iter().any(|start| name.to_string_lossy().starts_with(start));
    let unknown = || git2::Error::from_str("more is said of names than their settings");
    let settings = repository.configuration().map_err(|_| unknown())?;
    if std::env::vars_os().any(is_told_otherwise) || SETTINGS.iter().any(|name| settings.get(name).is_some()) {
        return Err(unknown());
    }
    let [name, email] = ["user.name", "user.email"].map(|name| settings.get(name).ok_or_else(unknown));
    git2::Signature::now(name?, email?)
}
