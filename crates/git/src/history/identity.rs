//! In whose name Lanewright's commits are made.

use std::path::Path;

use lanewright_model::CommitId;

use crate::command::{Git, Result};
use crate::fast::libgit2;
use crate::repo::{Repository, commit_id};

/// The author of a commit where the user has not configured a name.
const NAME: &str = "Lanewright";
const EMAIL: &str = "lanewright@localhost";

/// In which part somebody is named in a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Author,
    Committer,
}

impl Role {
    const ALL: [Self; 2] = [Self::Author, Self::Committer];

    pub fn word(self) -> &'static str {
        match self {
            Self::Author => "author",
            Self::Committer => "committer",
        }
    }

    /// What `git var` calls the role's identity, and the variables that set it.
    fn names(self) -> [&'static str; 3] {
        match self {
            Self::Author => ["GIT_AUTHOR_IDENT", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"],
            Self::Committer => ["GIT_COMMITTER_IDENT", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"],
        }
    }

    /// Whether git refuses to name anybody in this role, where it has the variables of `git`: the name or the address is
    /// missing, empty, or of characters only that git removes.
    fn is_refused(self, git: &Git<'_>) -> bool {
        git.with_arguments(["var", self.names()[0]]).attempt().is_ok_and(|output| !output.status.success())
    }
}

/// Runs `git`, which makes a commit, in the user's name or, in a role for which git has none, in Lanewright's.
pub(crate) fn run_identified(git: Git<'_>) -> Result<Vec<u8>> {
    // Without this setting git invents an address from the machine's name.
    let mut git = git.configured(ONLY_CONFIGURED);
    let output = git.attempt()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let refused: Vec<Role> = Role::ALL.into_iter().filter(|role| role.is_refused(&git)).collect();
    if refused.is_empty() {
        return Err(git.failure(&output).into());
    }
    let email = fallback_email();
    for [_, name, address] in refused.into_iter().map(Role::names) {
        git = git.variable(name, NAME).variable(address, &email);
    }
    Ok(git.run()?)
}

const ONLY_CONFIGURED: &str = "user.useConfigOnly=true";

/// The address that the user gave without a name, else Lanewright's.
fn fallback_email() -> String {
    std::env::var("EMAIL").ok().filter(|email| email.contains('@')).unwrap_or_else(|| EMAIL.to_owned())
}

/// In whose name commits are made where none is configured: `NAME <ADDRESS>`.
pub fn fallback_identity() -> String {
    format!("{NAME} <{}>", fallback_email())
}

/// The roles in which commits name Lanewright, because git has no name or address of the user's for them.
pub fn roles_without_identity(repository: &Repository) -> Vec<Role> {
    let git = repository.git().configured(ONLY_CONFIGURED);
    Role::ALL.into_iter().filter(|role| role.is_refused(&git)).collect()
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
