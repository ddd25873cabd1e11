//! What can go wrong with git, each with its place.

use std::io;
use std::path::{Path, PathBuf};

use lanewright_files::FileError;
use lanewright_model::CommitId;

use crate::command::ProgramError;

pub(crate) type Result<T, E = GitError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("git {found} is too old, Lanewright needs {needed} or newer")]
    TooOld { found: String, needed: String },
    #[error("{from} is not inside a git repository")]
    NotARepository { from: PathBuf },
    #[error("{path} is a bare repository, lanes need one with files")]
    Bare { path: PathBuf },
    #[error("{common} does not say where its main worktree is")]
    NoMainWorktree { common: PathBuf },
    /// The repository's refs are not in the format that libgit2 and Lanewright read.
    #[error("{path} stores its refs as `{format}`, which Lanewright does not support")]
    RefFormat { path: PathBuf, format: String },
    #[error("{path} has no commit yet")]
    UnbornHead { path: PathBuf },
    /// The branch is there, its commit is not.
    #[error("{path} is at commit {}, which git cannot read ({reason})", .commit.short())]
    UnreadableHead { path: PathBuf, commit: CommitId, reason: String },
    /// An object that a ref leads to, or that was stored a moment ago, is damaged or removed.
    #[error("git has lost object {object}")]
    LostObject { object: String },
    #[error("all {limit} slots of the worktree pool are in use")]
    PoolExhausted { limit: u32 },
    #[error(
        "branch `{branch}` is in the way{}",
        .place.as_ref().map(|place| format!(", it is checked out in {}", place.display())).unwrap_or_default()
    )]
    BranchInTheWay { branch: String, place: Option<PathBuf> },
    #[error("there is no branch `{branch}`")]
    BranchMissing { branch: String },
    #[error("`{reference}` should be at {expected} and is at {}", .found.as_ref().map_or("nothing", CommitId::as_str))]
    ReferenceMoved { reference: String, expected: CommitId, found: Option<CommitId> },
    #[error("{path} holds uncommitted work: {}", listed(.paths))]
    Dirty { path: PathBuf, paths: Vec<String> },
    /// Commits would be lost.
    #[error("{head}, in {place}, is not merged into anything that is kept")]
    Unmerged { place: String, head: CommitId },
    #[error("git cannot read {what} in {path} ({reason})")]
    Unreadable { path: PathBuf, what: String, reason: String },
    #[error("{path} is in the middle of {which}")]
    OperationInProgress { path: PathBuf, which: &'static str },
    #[error("{lock} exists: another git changes refs, or died")]
    RefsLocked { lock: PathBuf },
    #[error(
        "{worktree} is on {} at {head}, which does not continue its branch `{branch}`",
        .on.as_ref().map_or_else(|| "no branch".to_owned(), |on| format!("branch `{on}`"))
    )]
    Astray { worktree: PathBuf, head: CommitId, on: Option<String>, branch: String },
    /// Something that Lanewright did not make is where a thing of its own should be.
    #[error("{path} is not Lanewright's own")]
    NotOurs { path: PathBuf },
    /// What was committed there cannot be had.
    #[error("the git directory of the agent, {path}, cannot be read: {reason}")]
    PrivateLost { path: PathBuf, reason: String },
    #[error("{path} is damaged ({reason})")]
    BadClaim { path: PathBuf, reason: String },
    #[error("{ours} and {theirs} have no history in common and cannot be merged")]
    Unrelated { ours: CommitId, theirs: CommitId },
    #[error("{commit} does not continue {onto}, so `{branch}` cannot be moved to it")]
    NotAFastForward { branch: String, onto: CommitId, commit: CommitId },
    #[error("git answered `{text}` where a commit's full name was expected")]
    NoCommitName { text: String },
    #[error("there is no remote `{name}`")]
    NoSuchRemote { name: String, known: Vec<String> },
    #[error("remote `{remote}`: {}", said(source))]
    Remote { remote: String, remedy: &'static str, source: ProgramError },
    #[error("remote `{remote}` refuses {reason}{}", .said.iter().map(|line| format!("\n  {line}")).collect::<String>())]
    PushRefused { remote: String, reason: String, said: Vec<String> },
    /// Git would sign commits here, and the program that does it fails.
    #[error("cannot sign commits: {said}")]
    Signing { format: String, said: String },
    /// A hook of the user's refuses, or cannot be run.
    #[error("the {name} hook ({}) {said}", .place.display())]
    Hook { name: &'static str, place: PathBuf, said: String },
    /// No ref moved, and the server could not lock one of them again and again.
    #[error("remote `{remote}` cannot lock {said}")]
    RemoteLocked { remote: String, said: String },
    #[error("`{pattern}` is not a valid file pattern: {reason}")]
    BadPattern { pattern: String, reason: String },
    #[error("`copy` and .worktreeinclude name {files} ({size}), most of them in {largest}; at most {limit} are copied")]
    TooMuchToCopy { files: String, size: String, limit: String, largest: String },
    /// Its programs and packages name the place where it was made.
    #[error(
        "`copy` and .worktreeinclude name the virtual environment {path}, whose copies would run the checkout's code"
    )]
    VirtualEnvironment { path: String },
}

impl GitError {
    /// What the user can do about it.
    pub fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::TooOld { .. } => "install a newer git, and see that it comes first in PATH".to_owned(),
            Self::NotARepository { .. } => "change into one, or run `git init` and commit once".to_owned(),
            Self::Bare { path } => format!(
                "check its branch out beside it (`git -C {0} worktree add PLACE BRANCH`), or work in a clone (`git clone {0}`); \
                 if it is not to be bare: `git -C {0} config core.bare false`",
                path.display()
            ),
            Self::NoMainWorktree { .. } => "start again from the main worktree".to_owned(),
            Self::RefFormat { path, .. } => format!(
                "convert it with `git refs migrate --ref-format=files`, or work in a clone \
                 (`git clone --ref-format=files {} NEW-DIRECTORY`)",
                path.display()
            ),
            Self::UnbornHead { .. } => "make a first one (`git commit --allow-empty -m start`)".to_owned(),
            Self::UnreadableHead { .. } => {
                "`git fsck` lists what is damaged, or was removed by `git gc --prune=now`: restore it from another clone or a \
                 backup; a resume makes it again from the files of a lane's worktree where that is possible"
                    .to_owned()
            }
            Self::LostObject { .. } => {
                "`git fsck` lists what is missing, and `git gc --prune=now` may have removed it".to_owned()
            }
            Self::PoolExhausted { .. } => "release one, or allow more".to_owned(),
            Self::BranchInTheWay { branch, .. } => {
                format!("rename or delete it (`git branch -m {branch} NEW-NAME`), or start with --new-run")
            }
            Self::BranchMissing { .. } => "`lanewright doctor --fix` restores one of a lane or an agent, and \
                 `git reflog` may list the commits of others"
                .to_owned(),
            Self::Unreadable { .. } => "give read permission or shorten the path, or remove it".to_owned(),
            Self::OperationInProgress { .. } => "finish or abort it there".to_owned(),
            Self::RefsLocked { .. } => "if no git runs in this repository, delete the file".to_owned(),
            Self::RemoteLocked { .. } => "if no git works there, delete the file".to_owned(),
            Self::Astray { branch, .. } => format!("check out `{branch}` there"),
            Self::NotOurs { .. } => "move it away".to_owned(),
            Self::BadClaim { .. } => "if no run uses that slot, delete the file".to_owned(),
            Self::NoSuchRemote { name, known } if known.is_empty() => {
                format!("add one (`git remote add {name} URL`)")
            }
            Self::NoSuchRemote { known, .. } => format!("the remotes are {}", listed(known)),
            Self::Hook { .. } => "fix what it reports, or the hook, and try again".to_owned(),
            Self::Signing { format, .. } => format!(
                "commit.gpgSign is true, with gpg.format = {format}: see that `git commit -S` signs here without asking \
                 (a passphrase must be known to {agent}), or set `sign = \"off\"` in lanewright.toml",
                agent = if format == "ssh" { "ssh-agent" } else { "gpg-agent" }
            ),
            Self::Remote { remedy, .. } => (*remedy).to_owned(),
            Self::TooMuchToCopy { .. } => "name fewer, have `setup` install them, or raise `copy_limit`".to_owned(),
            Self::VirtualEnvironment { .. } => {
                "leave it out there, and have `setup` make one (`setup = [\"uv sync\"]`, \
                 or `python3 -m venv .venv && .venv/bin/pip install -e .`)"
                    .to_owned()
            }
            _ => return None,
        })
    }

    /// Whether the same may succeed later, without anything being done here.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Remote { .. } | Self::RemoteLocked { .. })
    }

    /// Whether the remote refuses a push by a rule about its branch, so that the same commit may be pushed to another one.
    /// What GitHub, GitLab, Gitea, Bitbucket and Azure DevOps print, and any server with a hook.
    pub fn is_refused_by_rule(&self) -> bool {
        let Self::PushRefused { reason, said, .. } = self else { return false };
        let text = format!("{reason}\n{}", said.join("\n")).to_ascii_lowercase();
        ["protected branch", "hook declined", "repository rule violations", "tf402455"]
            .iter()
            .any(|it| text.contains(it))
    }

    /// The message and the remedy, for texts that have one line for both.
    pub fn with_remedy(&self) -> String {
        self.remedy().map_or_else(|| self.to_string(), |remedy| format!("{self}; {remedy}"))
    }
}

/// What a remote or the way to it said, on one line and without git's advice; otherwise what became of the command.
fn said(source: &ProgramError) -> String {
    let ProgramError::Failed { stderr, .. } = source else { return source.to_string() };
    let lines = stderr.lines().map(str::trim).take_while(|line| !line.starts_with("Please make sure"));
    let mut lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    if lines.len() > 1 {
        lines.retain(|line| *line != "fatal: Could not read from remote repository.");
    }
    if lines.is_empty() { source.to_string() } else { lines.join(", ") }
}

const LISTED: usize = 10;

fn listed(paths: &[String]) -> String {
    let shown = paths.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = paths.len().saturating_sub(LISTED);
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

pub(crate) fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> GitError {
    move |source| FileError::io(doing, path)(source).into()
}
