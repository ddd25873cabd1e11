//! In whose name Lanewright's commits are made.

use lanewright_model::CommitId;

use crate::command::{Git, Result, path_text};
use crate::fast::libgit2;
use crate::history::signing::{Signing, signed_off};
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
pub(crate) fn run_identified(git: &Git<'_>) -> Result<Vec<u8>> {
    // Without this setting git invents an address from the machine's name.
    let mut git = git.clone().configured(ONLY_CONFIGURED);
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
    let message = signed_off(repository, message)?;
    let mut git = repository.git().args(["commit-tree", tree, "-p", parent.as_str(), "-F", "-"]);
    // Git takes no empty name.
    if !author.name.is_empty() && !author.email.is_empty() {
        git = git.variable("GIT_AUTHOR_NAME", &author.name).variable("GIT_AUTHOR_EMAIL", &author.email);
    }
    if let Some(date) = &author.date {
        git = git.variable("GIT_AUTHOR_DATE", format!("@{date}"));
    }
    run(repository, git.input(message.as_bytes().to_vec()), Signing::of(repository)?)
}

impl Repository {
    /// The name and the address that the user has configured.
    pub(crate) fn configured_identity(&self) -> Option<(String, String)> {
        let setting = |name: &str| self.setting_of_commits(name).ok().flatten();
        Some((setting("user.name")?, setting("user.email")?))
    }
}

/// Variables that override the settings of the identity.
const VARIABLES: &[&str] = &["GIT_AUTHOR_", "GIT_COMMITTER_", "EMAIL"];
/// The settings that say whom commits name; all but those of the user override those.
pub(crate) const IDENTITY: &[&str] =
    &["user.name", "user.email", "author.name", "author.email", "committer.name", "committer.email"];

/// The settings that `git` needs so that it names whom commits of `repository` name, as `name=value`: those that another
/// program has changed meanwhile.
pub(crate) fn overridden_identity(repository: &Repository) -> Result<Vec<String>> {
    let Some(settings) = &repository.commit_rules.settings else { return Ok(Vec::new()) };
    let now = repository.configuration()?;
    Ok(settings.overriding(IDENTITY, |name| now.get(name).map(str::to_owned)))
}

/// The committer of commits, `NAME <ADDRESS>`; `None`: the user has configured none.
pub(crate) fn committer(repository: &Repository) -> Result<Option<String>> {
    let overridden = overridden_identity(repository)?;
    let git = overridden.iter().map(String::as_str).fold(repository.git().configured(ONLY_CONFIGURED), Git::configured);
    let output = git.args(["var", Role::Committer.names()[0]]).attempt()?;
    let said = path_text(&output.stdout);
    // The time comes last.
    let named = said.rsplit_once('>').map(|(named, _)| format!("{named}>"));
    Ok(named.filter(|_| output.status.success()))
}

/// Runs `git`, which makes a commit; signed where that is given.
fn run(repository: &Repository, git: Git<'_>, signing: Option<Signing>) -> Result<CommitId> {
    let overridden = overridden_identity(repository)?;
    let git = overridden.iter().map(String::as_str).fold(git, Git::configured);
    match signing {
        Some(signing) => signing.run(git),
        None => commit_id(&run_identified(&git)?),
    }
}

/// Makes a commit of the user's history in the name that the user has configured, or in Lanewright's; signed and
/// signed off as the user's are. Not yet durable.
pub(crate) fn make_commit(
    repository: &Repository,
    tree: &str,
    parents: &[&CommitId],
    message: &str,
) -> Result<CommitId> {
    let (message, signing) = (signed_off(repository, message)?, Signing::of(repository)?);
    made(repository, (tree, parents), &message, signing)
}

/// Makes a commit for a ref of Lanewright's own, such as a snapshot, which is not signed; not yet durable.
pub(crate) fn make_own_commit(
    repository: &Repository,
    tree: &str,
    parents: &[&CommitId],
    message: &str,
) -> Result<CommitId> {
    made(repository, (tree, parents), message, None)
}

fn made(
    repository: &Repository,
    (tree, parents): (&str, &[&CommitId]),
    message: &str,
    signing: Option<Signing>,
) -> Result<CommitId> {
    if signing.is_none()
        && let Some(commit) = commit_in_process(repository, tree, parents, message)
    {
        return Ok(commit);
    }
    // Not in the lane's worktree, which may have settings of its own that an agent wrote.
    let git = repository.git().args(["commit-tree", tree, "-m", message]);
    run(repository, git.args(parents.iter().flat_map(|parent| ["-p", parent.as_str()])), signing)
}

/// `None`: the git program has to, or would do it differently: libgit2 does not find all settings of git's.
fn commit_in_process(repository: &Repository, tree: &str, parents: &[&CommitId], message: &str) -> Option<CommitId> {
    let overrides =
        |(name, _): (std::ffi::OsString, _)| VARIABLES.iter().any(|start| name.to_string_lossy().starts_with(start));
    let is_set = |name: &str| repository.setting_of_commits(name).ok().flatten().is_some();
    if std::env::vars_os().any(overrides) || IDENTITY.iter().any(|name| !name.starts_with("user.") && is_set(name)) {
        return None;
    }
    let (name, email) = repository.configured_identity()?;
    // As `git commit-tree -m` ends it.
    let message = if message.ends_with('\n') { message.to_owned() } else { format!("{message}\n") };
    libgit2::commit(repository, tree, parents, &message, (&name, &email))
}
