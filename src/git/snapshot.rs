//! Snapshots: a worktree's whole state in a commit of its own, made beside the agent's work without touching it.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::admin_lock::{holding, holding_worktree};
use super::commit::{add_all, embedded_in};
use super::durable;
use super::error::{GitError, io_error};
use super::head::{head_of, remove_dead_locks};
use super::identity::run_identified;
use super::operation::quit_operations;
use super::program::{Git, nul_separated, path_text};
use super::references::{delete_reference, set_own_reference};
use super::repository::{Repository, commit_id};
use super::slot::git_directory;
use crate::model::{CommitId, PhaseId, Timestamp};

/// What is to be kept, and how.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotRequest<'a> {
    /// Whose state.
    pub worktree: &'a Path,
    /// An index that is ours alone, kept from one snapshot of the worktree to the next; need not exist.
    pub index_file: &'a Path,
    /// The ref that keeps it; a number is added if something else has that name.
    pub reference: &'a str,
    /// The commit's message.
    pub message: &'a str,
    /// The commit's parents.
    pub parents: &'a [CommitId],
    /// Commits whose objects are durable; everything that came after them is made so.
    pub since: &'a [CommitId],
}

/// A worktree's state that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The commit that holds it.
    pub commit: CommitId,
    /// The ref that keeps it.
    pub reference: String,
}

/// The name of a snapshot's ref (SPEC §4), of our own or, with `tags`, a tag.
pub fn reference_name(phase: &PhaseId, lane: impl fmt::Display, at: Timestamp, tags: bool) -> String {
    let space = if tags { "refs/tags/checkpoint" } else { "refs/lanekeeper/checkpoint" };
    format!("{space}/{phase}-{lane}/{}", at.compact())
}

/// Keeps everything in a worktree that is tracked, or untracked and not ignored. Branch, index and files stay as they
/// are, and others may work on them meanwhile. A repository within the worktree is not looked into.
///
/// # Errors
/// What git says, for example that a file cannot be read; [`GitError::Io`].
pub fn snapshot(repository: &Repository, request: &SnapshotRequest<'_>) -> Result<Snapshot, GitError> {
    let tree = tree_of(request.worktree, request.index_file)?;
    let git = Git::new(repository.main_worktree()).args(["commit-tree", &tree, "-m", request.message]);
    let git = git.args(request.parents.iter().flat_map(|parent| ["-p", parent.as_str()]));
    let commit = commit_id(&run_identified(git)?)?;
    durable::objects(repository, &commit, request.since)?;
    keep(repository, request.reference, commit)
}

/// Whether tracked files of a worktree are not as its head has them.
///
/// # Errors
/// What git says.
pub fn has_changes(worktree: &Path) -> Result<bool, GitError> {
    let status = Git::new(worktree).reading_only().args(["status", "--porcelain", "-z", "--untracked-files=no"]);
    Ok(!status.run()?.is_empty())
}

/// Puts the tracked files of a worktree back to its head; untracked ones stay.
///
/// # Errors
/// What git says.
pub fn put_back(worktree: &Path) -> Result<(), GitError> {
    holding_worktree(worktree, |lock| {
        Git::new(worktree).without_hooks().stdin(lock).args(["reset", "--hard", "--quiet"]).run()?;
        Ok(())
    })
}

/// The files in which a worktree differs from `known`, untracked ones included, ignored ones not. Nothing in it changes.
///
/// # Errors
/// What git says; [`GitError::Io`].
pub fn changed_since(
    repository: &Repository,
    worktree: &Path,
    index: &Path,
    known: &CommitId,
) -> Result<Vec<String>, GitError> {
    let tree = tree_of(worktree, index)?;
    let git = Git::new(repository.main_worktree()).args(["diff-tree", "-r", "-z", "--name-only", "--no-renames"]);
    let listing = git.args([known.as_str(), tree.as_str()]).run()?;
    Ok(nul_separated(&listing).map(path_text).collect())
}

/// The tree that a worktree would be, made with an index of our own.
fn tree_of(worktree: &Path, index: &Path) -> Result<String, GitError> {
    if let Some(parent) = index.parent() {
        fs::create_dir_all(parent).map_err(io_error("create", parent))?;
    }
    holding(&beside(index, ".guard"), |guard| {
        durable::remove(&beside(index, ".lock"))?;
        if !index.exists() {
            copy_index(worktree, index)?;
        }
        let git = || Git::new(worktree).unsynced().variable("GIT_INDEX_FILE", index).stdin(guard);
        add_everything(worktree, index, &git)?;
        let tree = git().arg("write-tree").line()?;
        // Git gives it the permissions of any file of its own; it names what is in the worktree.
        fs::set_permissions(index, fs::Permissions::from_mode(0o600)).map_err(io_error("write", index))?;
        Ok(tree)
    })
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Copies the worktree's index, so that what it knows of unchanged files need not be found out again.
pub(crate) fn copy_index(worktree: &Path, index: &Path) -> Result<(), GitError> {
    let source = git_directory(worktree)?.join("index");
    let staged = beside(index, ".new");
    let copy = || {
        // The copy must not look younger than it is: git takes a file written in the same second as the index for
        // changed, one written before it for known.
        let modified = fs::metadata(&source)?.modified()?;
        fs::copy(&source, &staged)?;
        fs::File::options().write(true).open(&staged)?.set_modified(modified)?;
        fs::rename(&staged, index)
    };
    match copy() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        copied => copied.map_err(io_error("copy", &source)),
    }
}

/// How often everything is added: an agent at work may remove a file between the listing and the reading.
const TRIES: u32 = 3;

fn add_everything<'a>(worktree: &Path, index: &Path, git: &dyn Fn() -> Git<'a>) -> Result<(), GitError> {
    let whole = || git().configured("core.splitIndex=false");
    let mut tries = 1;
    // A repository within the worktree that has no commit makes git give up, so it must be looked for then.
    let mut embedded = Vec::new();
    while let Err(error) = add_all(whole(), &embedded).run() {
        if tries == TRIES {
            return Err(error.into());
        }
        tries += 1;
        embedded = embedded_in(worktree)?;
    }
    add_forced(worktree, index, git)
}

/// Adds what is tracked in the worktree although it is ignored, which adding everything passes by.
fn add_forced<'a>(worktree: &Path, index: &Path, git: &dyn Fn() -> Git<'a>) -> Result<(), GitError> {
    let list = ["ls-files", "-z", "--cached", "--ignored", "--exclude-standard"];
    let forced = Git::new(worktree).reading_only().args(list).run()?;
    if nul_separated(&forced).next().is_none() {
        return Ok(());
    }
    let names = beside(index, ".names");
    durable::write(&names, &forced)?;
    let names = fs::File::open(&names).map_err(io_error("read", &names))?;
    let git = git();
    git.stdin(&names).args(["update-index", "--add", "--remove", "-z", "--stdin"]).run()?;
    Ok(())
}

/// Keeps `commit` under `reference`; a number is added to the name if something else has it.
///
/// # Errors
/// What git says.
pub fn keep(repository: &Repository, reference: &str, commit: CommitId) -> Result<Snapshot, GitError> {
    let mut name = reference.to_owned();
    let mut number = 1;
    loop {
        if set_own_reference(repository, &name, &commit, None, "lanekeeper: snapshot")? {
            return Ok(Snapshot { commit, reference: name });
        }
        if let Some(known) = repository.commit_at(&name)?
            && outline(repository, &known)? == outline(repository, &commit)?
        {
            durable::reference(repository, &name)?;
            return Ok(Snapshot { commit: known, reference: name });
        }
        number += 1;
        name = format!("{reference}-{number}");
    }
}

/// The snapshots that were made under `reference`, numbered ones included, with that message of one line.
///
/// # Errors
/// What git says.
pub fn kept_under(repository: &Repository, reference: &str, message: &str) -> Result<Vec<Snapshot>, GitError> {
    let git =
        Git::new(repository.main_worktree()).args(["for-each-ref", "--format=%(objectname) %(refname) %(subject)"]);
    let listing = path_text(&git.arg(reference).arg(format!("{reference}-*")).run()?);
    let mut found = Vec::new();
    for line in listing.lines() {
        let mut parts = line.splitn(3, ' ');
        if let (Some(commit), Some(name), Some(subject)) = (parts.next(), parts.next(), parts.next())
            && subject == message
        {
            found.push(Snapshot { commit: commit_id(commit.as_bytes())?, reference: name.to_owned() });
        }
    }
    Ok(found)
}

/// What a commit holds and continues.
fn outline(repository: &Repository, commit: &CommitId) -> Result<String, GitError> {
    let git = Git::new(repository.main_worktree()).args(["show", "--no-patch", "--format=%T %P", commit.as_str()]);
    Ok(git.line()?)
}

/// Puts the files of `worktree` to a snapshot's: what it does not hold is removed, ignored files excepted. The branch
/// stays where it is, nothing is staged, and whatever was in progress is forgotten.
///
/// # Errors
/// What git says; asked again, it goes on.
pub fn restore(worktree: &Path, commit: &CommitId) -> Result<(), GitError> {
    holding_worktree(worktree, |lock| {
        head_of(worktree)?;
        quit_operations(worktree, lock)?;
        remove_dead_locks(worktree)?;
        let git = || Git::new(worktree).stdin(lock);
        git().args(["read-tree", "--reset", "-u", commit.as_str()]).run()?;
        git().args(["clean", "-ffdq"]).run()?;
        // The snapshot held files that were not tracked; they must not stay staged.
        git().args(["reset", "--quiet"]).run()?;
        Ok(())
    })
}

/// Deletes refs that still are where they are expected. Answers those that are not, which stay.
///
/// # Errors
/// What git says.
pub fn delete_references(repository: &Repository, references: &[(String, CommitId)]) -> Result<Vec<String>, GitError> {
    let mut kept = Vec::new();
    for (name, expected) in references {
        match delete_reference(repository, name, expected) {
            Err(GitError::ReferenceMoved { .. }) => kept.push(name.clone()),
            done => done?,
        }
    }
    Ok(kept)
}
