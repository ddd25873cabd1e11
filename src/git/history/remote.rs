//! The user's remotes: what is there, fetching, and pushing by compare-and-set.
//!
//! Nothing here asks a person: credentials come from the user's helpers, keys or environment, or the command fails.
//! Nothing takes longer than its time limit.

use std::process::Output;
use std::time::Duration;

use crate::git::command::error::GitError;
use crate::git::command::program::{Git, ProgramError, path_text};
use crate::git::repo::repository::{Repository, commit_id};
use crate::model::CommitId;

/// How long a command may take that reaches a remote.
const LIMIT: Duration = Duration::from_secs(600);

/// A remote of a repository.
#[derive(Debug, Clone)]
pub struct Remote {
    repository: Repository,
    name: String,
    limit: Duration,
    /// What runs ssh, where the user has not said so: one that never asks.
    ssh: Option<&'static str>,
}

/// Where a ref of a remote is expected before it is pushed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The ref's full name there.
    pub reference: String,
    /// The commit; `None`: there is no such ref.
    pub expected: Option<CommitId>,
}

/// What is to be pushed.
#[derive(Debug, Clone, Default)]
pub struct PushRequest {
    /// As git takes them: `COMMIT:refs/heads/x`, `:refs/heads/x` to delete, with `+` to overwrite.
    pub refspecs: Vec<String>,
    /// Refs that are overwritten only if they are where they are expected.
    pub leases: Vec<Lease>,
    /// All refs or none; a remote that cannot do that is an error.
    pub atomic: bool,
    /// Run the user's `pre-push` hook.
    pub hooks: bool,
}

/// What came of a push that reached the remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    /// Every ref is where it was to be.
    Done,
    /// These refs are not where they were expected, or hold something else by now; they were not changed.
    Moved(Vec<String>),
}

impl Remote {
    /// The remote that the user calls `name`.
    ///
    /// # Errors
    /// [`GitError::NoSuchRemote`], or what git says.
    pub fn named(repository: &Repository, name: &str) -> Result<Self, GitError> {
        let known = Git::new(repository.main_worktree()).arg("remote").line()?;
        if !known.lines().any(|known| known == name) {
            let known = known.lines().map(str::to_owned).collect();
            return Err(GitError::NoSuchRemote { name: name.to_owned(), known });
        }
        let (repository, name) = (repository.clone(), name.to_owned());
        let ssh = (!has_ssh_of_the_users(&repository)?).then_some("ssh -oBatchMode=yes");
        Ok(Self { repository, name, limit: LIMIT, ssh })
    }

    /// The same with another limit on how long a command may take.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Where it is, as the user's settings say; may hold credentials.
    ///
    /// # Errors
    /// What git says.
    pub fn url(&self) -> Result<String, GitError> {
        Ok(Git::new(self.repository.main_worktree()).args(["remote", "get-url", &self.name]).line()?)
    }

    /// The refs there whose full names begin with one of `prefixes`, with what they are at.
    ///
    /// # Errors
    /// [`GitError::Remote`].
    pub fn references(&self, prefixes: &[&str]) -> Result<Vec<(String, CommitId)>, GitError> {
        let git = self.git().args(["ls-remote", "--quiet", "--refs", &self.name]);
        let git = git.args(prefixes.iter().map(|prefix| format!("{prefix}*")));
        let listing = path_text(&self.reach(&git)?.stdout);
        let entries = listing.lines().filter_map(|line| line.split_once('\t'));
        entries
            .filter(|(_, name)| prefixes.iter().any(|prefix| name.starts_with(prefix)))
            .map(|(commit, name)| Ok((name.to_owned(), commit_id(commit.as_bytes())?)))
            .collect()
    }

    /// Fetches `refspecs`, and nothing else: no tags, no submodules.
    ///
    /// # Errors
    /// [`GitError::Remote`].
    pub fn fetch<S: AsRef<str>>(&self, refspecs: &[S]) -> Result<(), GitError> {
        let git = self.git().without_hooks().args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]);
        let git = git.args(["--recurse-submodules=no", "--end-of-options", &self.name]);
        self.reach(&git.args(refspecs.iter().map(AsRef::as_ref))).map(drop)
    }

    /// Pushes what `request` says, and nothing else: no tags, no submodules.
    ///
    /// # Errors
    /// [`GitError::Remote`] when it cannot be reached, [`GitError::PushRefused`] when it says no.
    pub fn push(&self, request: &PushRequest) -> Result<Pushed, GitError> {
        let git = self.git().args(["push", "--porcelain", "--no-follow-tags", "--recurse-submodules=no"]);
        let git = if request.hooks { git } else { git.without_hooks().arg("--no-verify") };
        let git = if request.atomic { git.arg("--atomic") } else { git };
        let git = git.args(request.leases.iter().map(Lease::flag)).args(["--end-of-options", &self.name]);
        let git = git.args(&request.refspecs);
        let output = git.attempt().map_err(|error| self.failed(error))?;
        if output.status.success() {
            return Ok(Pushed::Done);
        }
        let refusals = refusals(&path_text(&output.stdout));
        if refusals.is_empty() {
            return Err(self.failed(git.failure(&output)));
        }
        let stderr = path_text(&output.stderr);
        if refusals.iter().all(|refusal| refusal.is_about_its_place(&stderr)) {
            return Ok(Pushed::Moved(refusals.into_iter().map(|refusal| refusal.reference).collect()));
        }
        Err(self.refused(&refusals, &stderr))
    }

    /// Whether the clone holds only a part of the history, so that nothing can be told about what came before.
    pub(crate) fn is_shallow_here(&self) -> Result<bool, GitError> {
        let git = Git::new(self.repository.main_worktree()).args(["rev-parse", "--is-shallow-repository"]);
        Ok(git.line()? == "true")
    }

    fn git(&self) -> Git<'_> {
        let git = Git::new(self.repository.main_worktree()).reaching_out().within(self.limit);
        match self.ssh {
            Some(ssh) => git.variable("GIT_SSH_COMMAND", ssh),
            None => git,
        }
    }

    fn reach(&self, git: &Git<'_>) -> Result<Output, GitError> {
        let output = git.attempt().map_err(|error| self.failed(error))?;
        if output.status.success() { Ok(output) } else { Err(self.failed(git.failure(&output))) }
    }

    fn failed(&self, source: ProgramError) -> GitError {
        GitError::Remote { remote: self.name.clone(), remedy: remedy(&source), source }
    }

    fn refused(&self, refusals: &[Refusal], stderr: &str) -> GitError {
        let reasons = refusals.iter().map(|refusal| format!("{}: {}", refusal.reference, refusal.reason)).collect();
        // What a server's hook says is told there only.
        let said = stderr.lines().filter_map(|line| line.strip_prefix("remote: ")).map(str::trim_end);
        let said = said.filter(|line| !line.is_empty()).map(str::to_owned).collect();
        GitError::PushRefused { remote: self.name.clone(), reasons, said }
    }
}

impl Lease {
    fn flag(&self) -> String {
        let expected = self.expected.as_ref().map_or("", CommitId::as_str);
        format!("--force-with-lease={}:{expected}", self.reference)
    }
}

/// Whether the user has said how ssh is run.
fn has_ssh_of_the_users(repository: &Repository) -> Result<bool, GitError> {
    if ["GIT_SSH_COMMAND", "GIT_SSH"].iter().any(|name| std::env::var_os(name).is_some()) {
        return Ok(true);
    }
    Ok(Git::new(repository.main_worktree()).args(["config", "--get", "core.sshCommand"]).yes()?)
}

/// A ref that was not pushed.
struct Refusal {
    reference: String,
    reason: String,
}

impl Refusal {
    /// Whether the ref is not where it was expected. A server that somebody else pushed to at the same moment says no more
    /// than that it failed; what stands in its way otherwise it says to people.
    fn is_about_its_place(&self, stderr: &str) -> bool {
        let says = |words: &[&str]| words.iter().any(|word| self.reason.contains(word));
        let lost_race = says(&["cannot lock ref", "failed to update ref"]);
        let obstacles = ["Permission denied", "Read-only file system", "No space left", "cannot create"];
        let obstructed = obstacles.iter().any(|word| stderr.contains(word) || self.reason.contains(word));
        says(&["stale info", "fetch first", "non-fast-forward", "already exists", "needs force"])
            || (lost_race && !obstructed)
    }
}

/// What `git push --porcelain` says was refused: `!\tFROM:TO\t[rejected] (stale info)`. Those that were held back only
/// because another one was refused are left out.
fn refusals(report: &str) -> Vec<Refusal> {
    let line = |line: &str| {
        let mut parts = line.strip_prefix("!\t")?.splitn(2, '\t');
        let (refspec, reason) = (parts.next()?, parts.next()?);
        let reference = refspec.rsplit_once(':').map_or(refspec, |(_, to)| to);
        Some(Refusal { reference: reference.to_owned(), reason: reason.to_owned() })
    };
    let refused: Vec<Refusal> = report.lines().filter_map(line).collect();
    refused.into_iter().filter(|refusal| !refusal.reason.contains("atomic")).collect()
}

/// What a person can do about a command that did not get through.
fn remedy(error: &ProgramError) -> &'static str {
    let ProgramError::Failed { stderr, .. } = error else { return "see that the remote answers, and try again" };
    let says = |words: &[&str]| words.iter().any(|word| stderr.contains(word));
    if says(&["terminal prompts disabled", "Authentication failed", "Permission denied", "403", "401"]) {
        "give git credentials that it can use without asking (a credential helper, a token, a key in the ssh agent)"
    } else if says(&["does not support --atomic"]) {
        "use a remote whose server can push several refs at once"
    } else if says(&["does not appear to be a git repository", "not found", "No such file"]) {
        "see that its address is right (`git remote -v`)"
    } else {
        "see that the remote can be reached (`git ls-remote`), and try again"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_from_what_was_only_held_back() {
        let report = "To /x\n \tabc:refs/lanekeeper/b\tabc..def\n\
            !\tabc:refs/lanekeeper/a\t[rejected] (stale info)\n\
            !\tabc:refs/heads/c\t[rejected] (atomic push failed)\nDone\n";
        let found = refusals(report);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].reference, "refs/lanekeeper/a");
        assert!(found[0].is_about_its_place(""));
        let hook = refusals("!\tabc:refs/heads/c\t[remote rejected] (pre-receive hook declined)\n");
        assert!(!hook[0].is_about_its_place(""));
    }

    #[test]
    fn a_lost_race_is_told_from_a_server_that_cannot_write() {
        let found = refusals("!\tabc:refs/lanekeeper/a\t[remote rejected] (failed to update ref)\n");
        assert!(
            found[0].is_about_its_place("remote: error: cannot lock ref 'refs/lanekeeper/a': is at b but expected c")
        );
        let denied = "remote: error: cannot lock ref 'refs/lanekeeper/a': Unable to create 'a.lock': Permission denied";
        assert!(!found[0].is_about_its_place(denied));
    }
}
