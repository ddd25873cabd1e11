//! What can go wrong with git, each with its place and, where one exists, its remedy.

use std::io;
use std::path::{Path, PathBuf};

use crate::fs::FileError;
use crate::git::command::ProgramError;
use crate::model::CommitId;

pub(crate) type Result<T, E = GitError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(
        "git {found} is too old, Lanekeeper needs {needed} or newer; install a newer git, and see that it comes first in PATH"
    )]
    TooOld { found: String, needed: String },
    #[error("{from} is not inside a git repository; change into one, or run `git init` and commit once")]
    NotARepository { from: PathBuf },
    #[error("{path} is a bare repository, lanes need one with files; work in a clone of it (`git clone {path}`)")]
    Bare { path: PathBuf },
    #[error("{common} does not say where its main worktree is; start again from the main worktree")]
    NoMainWorktree { common: PathBuf },
    /// The repository's refs are not in the format that libgit2 and Lanekeeper read.
    #[error(
        "{path} stores its refs as `{format}`, which Lanekeeper does not support; convert it with \
         `git refs migrate --ref-format=files`, or work in a clone (`git clone --ref-format=files {path} NEW-DIRECTORY`)"
    )]
    RefFormat { path: PathBuf, format: String },
    #[error("{path} has no commit yet; make a first one (`git commit --allow-empty -m start`)")]
    UnbornHead { path: PathBuf },
    /// An object that was stored a moment ago was removed again.
    #[error(
        "git has lost object {object}; `git fsck` lists what is missing, and `git gc --prune=now` may have removed it"
    )]
    LostObject { object: String },
    #[error("all {limit} slots of the worktree pool are in use; release one, or allow more")]
    PoolExhausted { limit: u32 },
    #[error(
        "branch `{branch}` is in the way{}: rename or delete it (`git branch -m {branch} NEW-NAME`), or start with --new-run",
        .place.as_ref().map(|place| format!(", it is checked out in {}", place.display())).unwrap_or_default()
    )]
    BranchInTheWay { branch: String, place: Option<PathBuf> },
    #[error(
        "there is no branch `{branch}`: `lanekeeper doctor --fix` makes one of a lane or an agent again, and `git reflog` may know the commits of others"
    )]
    BranchMissing { branch: String },
    #[error("`{reference}` should be at {expected} and is at {}", .found.as_ref().map_or("nothing", CommitId::as_str))]
    ReferenceMoved { reference: String, expected: CommitId, found: Option<CommitId> },
    #[error("{path} holds uncommitted work: {}", listed(.paths))]
    Dirty { path: PathBuf, paths: Vec<String> },
    /// Commits would be lost.
    #[error("{head}, in {place}, is not merged into anything that is kept")]
    Unmerged { place: String, head: CommitId },
    #[error("git cannot read {what} in {path} ({reason}); give read permission or shorten the path, or remove it")]
    Unreadable { path: PathBuf, what: String, reason: String },
    #[error("{path} is in the middle of {which}; finish or abort it there")]
    OperationInProgress { path: PathBuf, which: &'static str },
    #[error("{lock} exists: another git changes refs, or died; if no git runs in this repository, delete the file")]
    RefsLocked { lock: PathBuf },
    #[error(
        "{worktree} is on {} at {head}, which does not continue its branch `{branch}`; check out `{branch}` there",
        .on.as_ref().map_or_else(|| "no branch".to_owned(), |on| format!("branch `{on}`"))
    )]
    Astray { worktree: PathBuf, head: CommitId, on: Option<String>, branch: String },
    /// Something that Lanekeeper did not make is where a thing of its own should be.
    #[error("{path} is not Lanekeeper's own; move it away")]
    NotOurs { path: PathBuf },
    #[error("{path} is damaged ({reason}); if no run uses that slot, delete the file")]
    BadClaim { path: PathBuf, reason: String },
    #[error("{ours} and {theirs} have no history in common and cannot be merged")]
    Unrelated { ours: CommitId, theirs: CommitId },
    #[error("{commit} does not continue {onto}, so `{branch}` cannot be moved to it")]
    NotAFastForward { branch: String, onto: CommitId, commit: CommitId },
    #[error("git answered `{text}` where a commit's full name was expected")]
    NoCommitName { text: String },
    #[error("there is no remote `{name}`: {}", remotes_to_choose(.name, .known))]
    NoSuchRemote { name: String, known: Vec<String> },
    #[error("remote `{remote}`: {source}; {remedy}")]
    Remote { remote: String, remedy: &'static str, source: ProgramError },
    #[error("remote `{remote}` refuses {reason}{}", .said.iter().map(|line| format!("\n  {line}")).collect::<String>())]
    PushRefused { remote: String, reason: String, said: Vec<String> },
    #[error("`{pattern}` is not a valid file pattern: {reason}")]
    BadPattern { pattern: String, reason: String },
}

const LISTED: usize = 10;

fn listed(paths: &[String]) -> String {
    let shown = paths.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = paths.len().saturating_sub(LISTED);
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

fn remotes_to_choose(name: &str, known: &[String]) -> String {
    if known.is_empty() {
        return format!("add one (`git remote add {name} URL`)");
    }
    format!("there are {}", listed(known))
}

pub(crate) fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> GitError {
    move |source| FileError::io(doing, path)(source).into()
}
