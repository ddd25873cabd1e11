//! In whose name Lanewright's commits are made.

use std::path::Path;

use lanewright_model::CommitId;

use crate::command::{Git, Result};
use crate::fast::libgit2;
use crate::repo::{Repository, commit_id};

/// The author of a commit where the user has not configured a name.
const NAME: &str = "Lanewright";
const EMAIL: &str = "lanewright@localhost";

/// Runs `git`, which makes a commit, in the user's name or, where none is configured, in Lanewright's.
pub(crate) fn run_identified(git: Git<'_>) -> Result<Vec<u8>> {
    // Without this setting git invents an address from the machine's name.
    let git = git.configured("user.useConfigOnly=true");
    let output = git.attempt()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    if !String::from_utf8_lossy(&output.stderr).contains("auto-detection is disabled") {
        return Err(git.failure(&output).into());
    }
    let git = git.or_variable("GIT_AUTHOR_NAME", NAME).or_variable("GIT_AUTHOR_EMAIL", EMAIL);
    Ok(git.variable("GIT_COMMITTER_NAME", NAME).variable("GIT_COMMITTER_EMAIL", EMAIL).run()?)
}

/// In whose name commits are made where none is configured: `NAME <ADDRESS>`.
pub fn fallback_identity() -> String {
    format!("{NAME} <{EMAIL}>")
}

/// Whether commits are made in Lanewright's name, because git knows neither a name nor an address of the user's.
pub fn lacks_identity(repository: &Repository) -> bool {
    if repository.configured_identity().is_some() {
        return false;
    }
    let git = repository.git().configured("user.useConfigOnly=true").args(["var", "GIT_COMMITTER_IDENT"]);
    git.attempt().is_ok_and(|output| !output.status.success())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Author {
    pub(crate) name: String,
    pub(crate) email: String,
    /// Seconds and the zone, as git stores them; `None`: now.
    pub(crate) date: Option<String>,
}

/// Makes a commit of a person's or an agent's work on top of `parent`, in the name that the user has configured, or in Lanewright's;
/// not yet durable.
pub(crate) fn make_commit_of(
    repository: &Repository,
    author: &Author,
    tree: &str,
    parent: &CommitId,
    message: &str,
) -> Result<CommitId> {
    let mut git = repository.git().args(["commit-tree", tree, "-p", parent.as_str(), "-F", "-"]);
    // Git takes no empty name.
    if !author.name.is_empty() && !author.email.is_empty() {
        git = git.variable("GIT_AUTHOR_NAME", &author.name).variable("GIT_AUTHOR_EMAIL", &author.email);
    }
    if let Some(date) = &author.date {
        git = git.variable("GIT_AUTHOR_DATE", format!("@{date}"));
    }
    commit_id(&run_identified(git.input(message.as_bytes().to_vec()))?)
}

impl Repository {
    /// The name and the address that the user has configured.
    pub(crate) fn configured_identity(&self) -> Option<(String, String)> {
        let settings = self.configuration().ok()?;
        Some((settings.get("user.name")?.to_owned(), settings.get("user.email")?.to_owned()))
    }
}

/// What overrides `user.name` and `user.email`.
const VARIABLES: &[&str] = &["GIT_AUTHOR_", "GIT_COMMITTER_", "EMAIL"];
const SETTINGS: &[&str] = &["author.name", "author.email", "committer.name", "committer.email", "i18n.commitencoding"];

/// Makes a commit in the name that the user has configured for `worktree`, or in Lanewright's; not yet durable.
pub(crate) fn make_commit(
    repository: &Repository,
    worktree: &Path,
    tree: &str,
    parents: &[&CommitId],
    message: &str,
) -> Result<CommitId> {
    if let Some(commit) = commit_in_process(repository, worktree, tree, parents, message) {
        return Ok(commit);
    }
    let git = Git::new(worktree).args(["commit-tree", tree, "-m", message]);
    commit_id(&run_identified(git.args(parents.iter().flat_map(|parent| ["-p", parent.as_str()])))?)
}

/// `None`: the git program has to, or would do it differently: libgit2 does not find all settings of git's.
fn commit_in_process(
    repository: &Repository,
    worktree: &Path,
    tree: &str,
    parents: &[&CommitId],
    message: &str,
) -> Option<CommitId> {
    let overrides =
        |(name, _): (std::ffi::OsString, _)| VARIABLES.iter().any(|start| name.to_string_lossy().starts_with(start));
    let settings = repository.configuration().ok()?;
    // They are those of the main worktree.
    if worktree != repository.main_worktree() && !settings.is_uniform() {
        return None;
    }
    if std::env::vars_os().any(overrides) || SETTINGS.iter().any(|name| settings.get(name).is_some()) {
        return None;
    }
    let author = (settings.get("user.name")?, settings.get("user.email")?);
    // As `git commit-tree -m` ends it.
    let message = if message.ends_with('\n') { message.to_owned() } else { format!("{message}\n") };
    libgit2::commit(repository, tree, parents, &message, author)
}
