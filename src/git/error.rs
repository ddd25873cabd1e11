//! What can go wrong with git, each with its place and, where one exists, its remedy.

use std::io;
use std::path::{Path, PathBuf};

use super::program::ProgramError;
use crate::fs::FileError;
use crate::model::CommitId;

/// Why a git operation was not done.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// A git command failed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A file or directory could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The git program lacks what is needed.
    #[error(
        "git {found} is too old, Lanekeeper needs {needed} or newer; install a newer git, and see that it comes first in PATH"
    )]
    TooOld {
        /// Its version.
        found: String,
        /// The oldest that will do.
        needed: String,
    },
    /// There is no repository here.
    #[error("{from} is not inside a git repository; change into one, or run `git init` and commit once")]
    NotARepository {
        /// Where one was looked for.
        from: PathBuf,
    },
    /// The repository has no main worktree.
    #[error("{path} is a bare repository, lanes need one with files; work in a clone of it (`git clone {path}`)")]
    Bare {
        /// The repository.
        path: PathBuf,
    },
    /// The repository's main worktree cannot be told from here.
    #[error("{common} does not say where its main worktree is; start again from the main worktree")]
    NoMainWorktree {
        /// The repository.
        common: PathBuf,
    },
    /// The repository's refs are not in the format that libgit2 and Lanekeeper read.
    #[error(
        "{path} stores its refs as `{format}`, which Lanekeeper does not support; convert it with \
         `git refs migrate --ref-format=files`, or work in a clone (`git clone --ref-format=files {path} NEW-DIRECTORY`)"
    )]
    RefFormat {
        /// The repository.
        path: PathBuf,
        /// The value of `extensions.refStorage`.
        format: String,
    },
    /// There is no commit yet.
    #[error("{path} has no commit yet; make a first one (`git commit --allow-empty -m start`)")]
    UnbornHead {
        /// The worktree.
        path: PathBuf,
    },
    /// An object that was stored a moment ago was removed again.
    #[error(
        "git has lost object {object}; `git fsck` lists what is missing, and `git gc --prune=now` may have removed it"
    )]
    LostObject {
        /// Its name.
        object: String,
    },
    /// Every slot of the run's pool is held.
    #[error("all {limit} slots of the worktree pool are in use; release one, or allow more")]
    PoolExhausted {
        /// How many there may be.
        limit: u32,
    },
    /// A branch of somebody else's has the name that is wanted, or is checked out elsewhere.
    #[error(
        "branch `{branch}` is in the way{}: rename or delete it (`git branch -m {branch} NEW-NAME`), or start with --new-run",
        .place.as_ref().map(|place| format!(", it is checked out in {}", place.display())).unwrap_or_default()
    )]
    BranchInTheWay {
        /// Its name.
        branch: String,
        /// Where it is checked out, if it is.
        place: Option<PathBuf>,
    },
    /// A branch that should exist does not.
    #[error(
        "there is no branch `{branch}`: `lanekeeper doctor --fix` makes one of a lane or an agent again, and `git reflog` may know the commits of others"
    )]
    BranchMissing {
        /// Its name.
        branch: String,
    },
    /// A ref is not where it was last seen; nothing was changed.
    #[error("`{reference}` should be at {expected} and is at {}", .found.as_ref().map_or("nothing", CommitId::as_str))]
    ReferenceMoved {
        /// Its name.
        reference: String,
        /// Where it should be.
        expected: CommitId,
        /// Where it is.
        found: Option<CommitId>,
    },
    /// Uncommitted work is in the way.
    #[error("{path} holds uncommitted work: {}", listed(.paths))]
    Dirty {
        /// The worktree.
        path: PathBuf,
        /// What is uncommitted.
        paths: Vec<String>,
    },
    /// Commits would be lost.
    #[error("{head}, in {place}, is not merged into anything that is kept")]
    Unmerged {
        /// The worktree or the branch.
        place: String,
        /// The commit that nothing keeps.
        head: CommitId,
    },
    /// Something in a worktree cannot be read, so it cannot be committed.
    #[error("git cannot read {what} in {path} ({reason}); give read permission or shorten the path, or remove it")]
    Unreadable {
        /// The worktree.
        path: PathBuf,
        /// The directory or file below it, as git names it.
        what: String,
        /// Why.
        reason: String,
    },
    /// A merge, rebase, cherry-pick, revert or bisect was left half-way.
    #[error("{path} is in the middle of {which}; finish or abort it there")]
    OperationInProgress {
        /// The worktree.
        path: PathBuf,
        /// What was left: `a merge`, `a rebase`, …
        which: &'static str,
    },
    /// Somebody works on the index, or died while doing so.
    #[error("{lock} exists: another git works there, or died; if none does, delete the file")]
    IndexLocked {
        /// The lock.
        lock: PathBuf,
    },
    /// Another git holds a lock that every change of refs needs, or died while it held it.
    #[error("{lock} exists: another git changes refs, or died; if no git runs in this repository, delete the file")]
    RefsLocked {
        /// The lock.
        lock: PathBuf,
    },
    /// A worktree's head left its branch for something that does not continue it.
    #[error(
        "{worktree} is on {} at {head}, which does not continue its branch `{branch}`; check out `{branch}` there",
        .on.as_ref().map_or_else(|| "no branch".to_owned(), |on| format!("branch `{on}`"))
    )]
    Astray {
        /// The worktree.
        worktree: PathBuf,
        /// Its head.
        head: CommitId,
        /// The branch it is on.
        on: Option<String>,
        /// The branch it should be on.
        branch: String,
    },
    /// Something that Lanekeeper did not make is where a thing of its own should be.
    #[error("{path} is not Lanekeeper's own; move it away")]
    NotOurs {
        /// What is there.
        path: PathBuf,
    },
    /// A slot's claim cannot be read.
    #[error("{path} is damaged ({reason}); if no run uses that slot, delete the file")]
    BadClaim {
        /// The claim's file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Two commits have no history in common.
    #[error("{ours} and {theirs} have no history in common and cannot be merged")]
    Unrelated {
        /// One.
        ours: CommitId,
        /// The other.
        theirs: CommitId,
    },
    /// A commit does not continue the branch it should be published on.
    #[error("{commit} does not continue {onto}, so `{branch}` cannot be moved to it")]
    NotAFastForward {
        /// The branch.
        branch: String,
        /// Where it is.
        onto: CommitId,
        /// Where it should go.
        commit: CommitId,
    },
    /// Git answered something else than a commit's name.
    #[error("git answered `{text}` where a commit's full name was expected")]
    NoCommitName {
        /// The answer.
        text: String,
    },
    /// The user has no remote of that name.
    #[error("there is no remote `{name}`: {}", told_remotes(.name, .known))]
    NoSuchRemote {
        /// What was asked for.
        name: String,
        /// The remotes that there are.
        known: Vec<String>,
    },
    /// A remote could not be asked, or did not get to an answer.
    #[error("remote `{remote}`: {source}; {remedy}")]
    Remote {
        /// Its name.
        remote: String,
        /// What a person can do about it.
        remedy: &'static str,
        /// What was run and what git said.
        source: ProgramError,
    },
    /// A remote was reached and takes something not.
    #[error("remote `{remote}` refuses {}{}", .reasons.join(", "), .said.iter().map(|line| format!("\n  {line}")).collect::<String>())]
    PushRefused {
        /// Its name.
        remote: String,
        /// Each ref with git's reason.
        reasons: Vec<String>,
        /// What the server said to it.
        said: Vec<String>,
    },
    /// A pattern of files to copy cannot be read.
    #[error("`{pattern}` is no pattern of files: {reason}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// How many names a message lists.
const LISTED: usize = 10;

fn listed(paths: &[String]) -> String {
    let shown = paths.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = paths.len().saturating_sub(LISTED);
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

fn told_remotes(name: &str, known: &[String]) -> String {
    if known.is_empty() {
        return format!("add one (`git remote add {name} URL`)");
    }
    format!("there are {}", listed(known))
}

/// Turns an I/O error into a [`GitError`] that says what was tried with which path.
pub(crate) fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> GitError {
    move |source| FileError::io(doing, path)(source).into()
}
