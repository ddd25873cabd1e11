//! The user's remotes: listing refs, fetching, and pushing by compare-and-set.
//!
//! Nothing here asks the user: credentials come from the user's helpers, keys or environment, or the command fails.
//! Nothing takes longer than its time limit.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use lanewright_files::atomic;
use lanewright_model::CommitId;
use lanewright_model::retry::backoff;
use lanewright_model::time::exact;
use tempfile::TempDir;

use crate::command::{Git, GitError, ProgramError, Result, io_error, path_text};
use crate::repo::{Repository, commit_id, giving_hook, hook, said_by_hook};

/// How long a command may take that reaches a remote.
const LIMIT: Duration = Duration::from_secs(600);

/// How often a push is tried while a ref on the remote is locked and does not move, and the first pause between.
const LOCKED_ATTEMPTS: u32 = 5;
const LOCKED_PAUSE: Duration = Duration::from_millis(100);

/// The name of a file with parents that commits do not have.
const GRAFT: &str = "grafts";

/// What keeps git from advising against such a file.
const SILENT: &str = "advice.graftFileDeprecated=false";

#[derive(Debug, Clone)]
pub struct Remote {
    repository: Repository,
    name: String,
    limit: Duration,
    /// The command for ssh where the user has not configured one: it never asks.
    ssh: Option<&'static str>,
}

/// A ref that is to be set on a remote by compare-and-set.
#[derive(Debug, Clone, Copy)]
pub struct PushRequest<'a> {
    pub reference: &'a str,
    /// `None`: delete the ref.
    pub commit: Option<&'a CommitId>,
    /// Where it must be there now; `None`: it must not exist.
    pub expected: Option<&'a CommitId>,
    /// Run the user's `pre-push` hook.
    pub hooks: bool,
    /// The worktree in which the hook runs; `None`: the main one.
    pub worktree: Option<&'a Path>,
    /// Most files of `commit` are those of `expected`, which it need not descend from. Only the others are sent then.
    pub is_similar: bool,
}

impl<'a> PushRequest<'a> {
    /// Without hooks, of a commit that has little in common with the one that is expected.
    pub fn new(reference: &'a str, commit: Option<&'a CommitId>, expected: Option<&'a CommitId>) -> Self {
        Self { reference, commit, expected, hooks: false, worktree: None, is_similar: false }
    }
}

impl Remote {
    pub fn named(repository: &Repository, name: &str) -> Result<Self> {
        let known = repository.git().arg("remote").line()?;
        if !known.lines().any(|known| known == name) {
            let known = known.lines().map(str::to_owned).collect();
            return Err(GitError::NoSuchRemote { name: name.to_owned(), known });
        }
        Self::at(repository, name)
    }

    fn at(repository: &Repository, name: &str) -> Result<Self> {
        let ssh = (!has_ssh_of_the_users(repository)?).then_some("ssh -oBatchMode=yes");
        Ok(Self { repository: repository.clone(), name: name.to_owned(), limit: LIMIT, ssh })
    }

    /// The remote of that name, or the repository at that address, which need not be a remote.
    pub fn named_or_at(repository: &Repository, name: &str) -> Result<Self> {
        match Self::named(repository, name) {
            Err(GitError::NoSuchRemote { .. }) if name.contains(['/', ':']) => Self::at(repository, name),
            named => named,
        }
    }

    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address in the user's settings; may hold credentials.
    pub fn url(&self) -> Result<String> {
        Ok(self.repository.git().args(["remote", "get-url", &self.name]).line()?)
    }

    pub fn references(&self, prefixes: &[&str]) -> Result<Vec<(String, CommitId)>> {
        let git = self.git().args(["ls-remote", "--quiet", "--refs", &self.name]);
        let git = git.args(prefixes.iter().map(|prefix| format!("{prefix}*")));
        let listing = path_text(&self.reach(&git)?.stdout);
        let entries = listing.lines().filter_map(|line| line.split_once('\t'));
        entries
            .filter(|(_, name)| prefixes.iter().any(|prefix| name.starts_with(prefix)))
            .map(|(commit, name)| Ok((name.to_owned(), commit_id(commit.as_bytes())?)))
            .collect()
    }

    /// Where a ref of the remote is; `None`: it has none of that name.
    pub fn commit_at(&self, reference: &str) -> Result<Option<CommitId>> {
        let found = self.references(&[reference])?.into_iter().find(|(name, _)| name == reference);
        Ok(found.map(|(_, commit)| commit))
    }

    /// Fetches `refspecs`, and nothing else: no tags, no submodules.
    pub fn fetch<S: AsRef<str>>(&self, refspecs: &[S]) -> Result<()> {
        let git = self.git().without_hooks().args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head"]);
        let git = git.args(["--recurse-submodules=no", "--end-of-options", &self.name]);
        self.reach(&git.args(refspecs.iter().map(AsRef::as_ref))).map(drop)
    }

    /// Pushes one ref, and nothing else: no tags, no submodules. `false`: it is not where it is expected.
    ///
    /// # Errors
    /// [`GitError::Remote`] when the remote cannot be reached, [`GitError::PushRefused`] when it refuses.
    pub fn push(&self, request: &PushRequest<'_>) -> Result<bool> {
        self.push_together(std::slice::from_ref(request))
    }

    /// Pushes several refs: all, or none if one of them is not where it is expected.
    ///
    /// # Errors
    /// As for [`Self::push`]; also when the remote cannot do that. [`GitError::RemoteLocked`] when git there changes a ref of
    /// them all the time, or died and left its lock.
    pub fn push_together(&self, requests: &[PushRequest<'_>]) -> Result<bool> {
        for attempt in 1.. {
            let said = match self.try_push(requests)? {
                Pushed::Yes => return Ok(true),
                Pushed::Moved => return Ok(false),
                Pushed::Locked { said } => said,
            };
            // A server says the same of a push that was slower than another one.
            if !self.are_where_expected(requests)? {
                return Ok(false);
            }
            if attempt == LOCKED_ATTEMPTS {
                return Err(GitError::RemoteLocked { remote: self.name.clone(), said });
            }
            std::thread::sleep(backoff(LOCKED_PAUSE, requests[0].reference, attempt));
        }
        unreachable!("the loop has no end")
    }

    fn are_where_expected(&self, requests: &[PushRequest<'_>]) -> Result<bool> {
        let references: Vec<&str> = requests.iter().map(|request| request.reference).collect();
        let there: HashMap<String, CommitId> = self.references(&references)?.into_iter().collect();
        Ok(requests.iter().all(|request| there.get(request.reference) == request.expected))
    }

    fn try_push(&self, requests: &[PushRequest<'_>]) -> Result<Pushed> {
        let text = |commit: Option<&CommitId>| commit.map_or(String::new(), CommitId::to_string);
        let lease = |it: &PushRequest<'_>| format!("--force-with-lease={}:{}", it.reference, text(it.expected));
        let change = |it: &PushRequest<'_>| format!("{}:{}", text(it.commit), it.reference);
        let of_lane = requests.iter().find_map(|request| request.worktree);
        let worktree = of_lane.unwrap_or(self.repository.main_worktree());
        let relative = self.relative_to_main(worktree)?;
        let git = relative.iter().fold(self.git_in(worktree), |git, setting| git.configured(setting));
        let git = git.args(["push", "--porcelain", "--no-follow-tags", "--recurse-submodules=no"]);
        let git = git.args((requests.len() > 1).then_some("--atomic"));
        let hooks = requests.iter().any(|request| request.hooks);
        let hook = if hooks { hook(&self.repository, worktree, "pre-push")? } else { None };
        let variables = of_lane.map(|place| self.repository.variables_at(place)).unwrap_or_default();
        let git = match hook.as_ref().filter(|_| !variables.is_empty()) {
            Some(place) => giving_hook(git, &self.repository, ("pre-push", place), &variables)?,
            None => git,
        };
        let git = if hooks { git } else { git.without_hooks().arg("--no-verify") };
        let grafts = self.grafts(requests)?;
        let git = match &grafts {
            Some(directory) => git.configured(SILENT).variable("GIT_GRAFT_FILE", directory.path().join(GRAFT)),
            None => git,
        };
        let git = git.args(requests.iter().map(lease)).args(["--end-of-options", &self.name]);
        let git = git.args(requests.iter().map(change));
        let refused = |place: PathBuf, said: String| GitError::Hook { name: "pre-push", place, said };
        let output = match (git.attempt(), &hook) {
            (Err(ProgramError::TimedOut { limit, .. }), Some(place)) => {
                let limit = exact(limit);
                let said = format!(
                    "or the remote `{}` took longer than {limit}, as long as a gate may; the push was ended",
                    self.name
                );
                return Err(refused(place.clone(), said));
            }
            (output, _) => output.map_err(|error| self.failed(error))?,
        };
        if output.status.success() {
            return Ok(Pushed::Yes);
        }
        let stderr = path_text(&output.stderr);
        let Some(reason) = refusal(&path_text(&output.stdout)) else {
            return Err(match hook {
                // Git prints no cause then, and reports a remote that it cannot reach with another code.
                Some(place) if output.status.code() == Some(1) && stderr.contains("failed to push some refs") => {
                    let said = said_by_hook(&format!("{}\n{stderr}", path_text(&output.stdout)));
                    refused(place, format!("refuses the push{said}"))
                }
                _ => self.failed(git.failure(&output)),
            });
        };
        // What a server's hook prints is only there.
        let said = stderr.lines().filter_map(|line| line.strip_prefix("remote: ")).map(str::trim_end);
        let said: Vec<String> = said.filter(|line| !line.is_empty()).map(str::to_owned).collect();
        match Refused::of(&reason, &stderr) {
            Refused::Moved => return Ok(Pushed::Moved),
            Refused::MovedOrLocked => {
                let about_lock = said.iter().find_map(|line| line.strip_prefix("error: cannot lock ref "));
                return Ok(Pushed::Locked { said: about_lock.map_or(reason, str::to_owned) });
            }
            Refused::Otherwise => {}
        }
        let references: Vec<&str> = requests.iter().map(|request| request.reference).collect();
        let reason = format!("{}: {reason}", references.join(", "));
        Err(GitError::PushRefused { remote: self.name.clone(), reason, said })
    }

    /// A file that makes git take `expected` for one more parent of each `commit` that is similar to it; `None`: none is. Git
    /// leaves out the files that the remote has in an ancestor of what is pushed, and no others. A git that does not know
    /// such files sends all.
    fn grafts(&self, requests: &[PushRequest<'_>]) -> Result<Option<TempDir>> {
        let mut lines = String::new();
        for request in requests.iter().filter(|request| request.is_similar) {
            let PushRequest { commit: Some(commit), expected: Some(expected), .. } = request else { continue };
            if self.repository.has_commit(expected)? {
                let git = self.repository.git().args(["rev-list", "--parents", "--max-count=1", commit.as_str()]);
                lines.push_str(&format!("{} {expected}\n", git.line()?));
            }
        }
        if lines.is_empty() {
            return Ok(None);
        }
        let directory = tempfile::tempdir().map_err(io_error("create", &std::env::temp_dir()))?;
        atomic::replace(&directory.path().join(GRAFT), lines.as_bytes())?;
        Ok(Some(directory))
    }

    /// Whether the clone was made with a filter: what is fetched comes without some files, which git fetches one by one.
    pub fn is_filtered_here(&self) -> Result<bool> {
        let key = format!("remote.{}.promisor", self.name);
        let promisor = self.repository.git().args(["config", "--type=bool", "--get", &key]).line_if_any()?;
        Ok(promisor.as_deref() == Some("true"))
    }

    pub fn is_shallow_here(&self) -> Result<bool> {
        Ok(self.repository.git().args(["rev-parse", "--is-shallow-repository"]).line()? == "true")
    }

    /// The setting with which git finds this remote from `worktree`, if its address is a path below or beside the main one.
    fn relative_to_main(&self, worktree: &Path) -> Result<Option<String>> {
        let main = self.repository.main_worktree();
        if worktree == main {
            return Ok(None);
        }
        let address = self.repository.git().args(["remote", "get-url", "--push", &self.name]).line()?;
        let is_path = address.starts_with('.') || !address.starts_with(['/', '~']) && !address.contains(':');
        let setting = is_path.then(|| format!("url.{}.insteadOf={address}", main.join(&address).display()));
        // Git takes the first `=` for the end of the setting's name.
        Ok(setting.filter(|setting| setting.matches('=').count() == 1))
    }

    fn git(&self) -> Git<'_> {
        self.git_in(self.repository.main_worktree())
    }

    fn git_in<'w>(&self, worktree: &'w Path) -> Git<'w> {
        let git = Git::new(worktree).reaching_out().within(self.limit);
        match self.ssh {
            Some(ssh) => git.variable("GIT_SSH_COMMAND", ssh),
            None => git,
        }
    }

    fn reach(&self, git: &Git<'_>) -> Result<Output> {
        let output = git.attempt().map_err(|error| self.failed(error))?;
        if output.status.success() { Ok(output) } else { Err(self.failed(git.failure(&output))) }
    }

    fn failed(&self, source: ProgramError) -> GitError {
        GitError::Remote { remote: self.name.clone(), remedy: remedy(&source), source }
    }
}

fn has_ssh_of_the_users(repository: &Repository) -> Result<bool> {
    if ["GIT_SSH_COMMAND", "GIT_SSH"].iter().any(|name| std::env::var_os(name).is_some()) {
        return Ok(true);
    }
    Ok(repository.git().args(["config", "--get", "core.sshCommand"]).yes()?)
}

enum Pushed {
    Yes,
    Moved,
    /// The server could not lock a ref.
    Locked {
        said: String,
    },
}

#[derive(Debug, PartialEq)]
enum Refused {
    /// A ref is not where it was expected.
    Moved,
    /// The server received another push at the same moment, or a lock is left from one that died: it says the same of both.
    MovedOrLocked,
    Otherwise,
}

impl Refused {
    fn of(reason: &str, stderr: &str) -> Self {
        let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
        let causes = ["Permission denied", "Read-only file system", "No space left", "cannot create"];
        let has_cause = causes.iter().any(|word| stderr.contains(word) || reason.contains(word));
        let moved = ["stale info", "fetch first", "non-fast-forward", "already exists", "needs force"];
        // So do servers from git 2.51 on.
        let moved_there = ["incorrect old value", "reference does not exist"];
        if says(&moved) || says(&moved_there) {
            Self::Moved
        } else if says(&["cannot lock ref", "failed to update ref", "atomic transaction failed"]) && !has_cause {
            Self::MovedOrLocked
        } else {
            Self::Otherwise
        }
    }
}

/// Why `git push --porcelain` did not push a ref: `!\tFROM:TO\t[rejected] (stale info)`.
fn refusal(report: &str) -> Option<String> {
    let mut reasons = report.lines().filter_map(|line| Some(line.strip_prefix("!\t")?.split_once('\t')?.1.to_owned()));
    let first = reasons.next()?;
    // Of several refs, those that were refused only because another one was say no more than this.
    let is_consequence = |reason: &String| reason.contains("atomic push fail");
    Some(if is_consequence(&first) { reasons.find(|reason| !is_consequence(reason)).unwrap_or(first) } else { first })
}

fn remedy(error: &ProgramError) -> &'static str {
    let ProgramError::Failed { stderr, .. } = error else { return "see that the remote answers, and try again" };
    let says = |words: &[&str]| words.iter().any(|word| stderr.contains(word));
    if says(&["terminal prompts disabled", "Authentication failed", "Permission denied", "403", "401"]) {
        "give git credentials that it can use without asking (a credential helper, a token, a key in the ssh agent)"
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
    fn push_refusals_are_classified() {
        let stale = refusal("To /x\n!\tabc:refs/lanewright/a\t[rejected] (stale info)\nDone\n").unwrap();
        assert_eq!(Refused::of(&stale, ""), Refused::Moved);
        let last = "!\ta:r/o\t[rejected] (atomic push failed)\n!\ta:r/a\t[rejected] (atomic push failed)\n\
                    !\ta:r/b\t[rejected] (stale info)\n";
        assert_eq!(Refused::of(&refusal(last).unwrap(), ""), Refused::Moved);
        let hook = refusal("!\tabc:refs/heads/c\t[remote rejected] (pre-receive hook declined)\n").unwrap();
        assert_eq!(Refused::of(&hook, ""), Refused::Otherwise);
        let race = refusal("!\tabc:refs/lanewright/a\t[remote rejected] (failed to update ref)\n").unwrap();
        let said = "remote: error: cannot lock ref 'refs/lanewright/a': is at b but expected c";
        assert_eq!(Refused::of(&race, said), Refused::MovedOrLocked);
        let denied = "remote: error: cannot lock ref 'refs/lanewright/a': Unable to create 'a.lock': Permission denied";
        assert_eq!(Refused::of(&race, denied), Refused::Otherwise);
    }
    #[test]
    fn rules_of_forges_are_recognized() {
        let refused = |reason: &str, said: &[&str]| {
            let said = said.iter().map(|line| (*line).to_owned()).collect();
            GitError::PushRefused { remote: "origin".into(), reason: reason.into(), said }.is_refused_by_rule()
        };
        for (reason, said) in [
            ("[remote rejected] (protected branch hook declined)", "error: GH006: Protected branch update failed"),
            ("[remote rejected] (push declined due to repository rule violations)", "error: GH013: Repository rule"),
            (
                "[remote rejected] (pre-receive hook declined)",
                "GitLab: You are not allowed to push code to protected branches on this project.",
            ),
            ("[remote rejected] (TF402455: Pushes to this branch are not permitted)", ""),
        ] {
            assert!(refused(reason, &[said]), "{reason}");
        }
        let workflow = "[remote rejected] (refusing to allow a GitHub App to create or update workflow `a.yml`)";
        assert!(!refused(workflow, &[]));
        assert!(!refused("[remote rejected] (branch is currently checked out)", &[]));
    }
}
