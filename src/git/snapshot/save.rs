//! Snapshots: a worktree's whole state in a commit of its own, made beside the agent's work without touching it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::git::command::error::GitError;
use crate::git::command::program::{Git, nul_separated, path_text};
use crate::git::fast::durable;
use crate::git::fast::libgit2;
use crate::git::history::dead_locks::remove_dead_locks;
use crate::git::history::identity::make_commit;
use crate::git::history::references::{delete_reference, set_own_reference};
use crate::git::query::head::head_of;
use crate::git::query::hook::left_something;
use crate::git::query::index_flags::clear_flags;
use crate::git::query::operation::quit_operations;
use crate::git::repo::lock::holding_worktree;
use crate::git::repo::repository::{Repository, commit_id};
use crate::git::snapshot::index::{Start, tree_of};
use crate::git::worktree::update::forget_update;
use crate::model::{CommitId, LaneId, PhaseId, Timestamp};

/// What is to be kept, and how.
#[derive(Debug, Clone, Copy)]
pub struct SnapshotRequest<'a> {
    /// Whose state.
    pub worktree: &'a Path,
    /// Where the private index of the snapshot is written.
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
    format!("{}/{phase}-{lane}/{}", space(tags), at.compact())
}

fn space(tags: bool) -> &'static str {
    if tags { "refs/tags/checkpoint" } else { "refs/lanekeeper/checkpoint" }
}

/// Keeps everything in a worktree that is tracked, or untracked and not ignored. Branch, index and files stay as they
/// are, and others may work on them meanwhile. A repository within the worktree is not looked into.
///
/// # Errors
/// What git says, for example that a file cannot be read; [`GitError::File`].
pub fn snapshot(repository: &Repository, request: &SnapshotRequest<'_>) -> Result<Snapshot, GitError> {
    snapshot_from(repository, request, Start::Index)
}

/// The same where git may have lost objects: every file is read and stored again.
pub(crate) fn snapshot_of_all_files(
    repository: &Repository,
    request: &SnapshotRequest<'_>,
) -> Result<Snapshot, GitError> {
    snapshot_from(repository, request, Start::Paths)
}

fn snapshot_from(repository: &Repository, request: &SnapshotRequest<'_>, start: Start) -> Result<Snapshot, GitError> {
    let tree = tree_of(request.worktree, request.index_file, start)?;
    let parents: Vec<&CommitId> = request.parents.iter().collect();
    let commit = make_commit(repository, &tree, &parents, request.message)?;
    durable::objects(repository, &commit, request.since)?;
    keep(repository, request.reference, commit)
}

/// The same where a worktree holds what its head holds, because all that was in it was committed just now: nothing is
/// looked at. `None`: that is not so, or a hook left something that is no commit's.
///
/// # Errors
/// What git says.
pub fn snapshot_of_head(
    repository: &Repository,
    worktree: &Path,
    head: &CommitId,
    reference: &str,
    message: &str,
) -> Result<Option<Snapshot>, GitError> {
    if repository.head_at(worktree)?.commit != *head || left_something(worktree)? {
        return Ok(None);
    }
    let tree = repository.in_process(|git| Ok(git.find_commit(libgit2::oid(head)?)?.tree_id().to_string()));
    let Some(tree) = tree else { return Ok(None) };
    let commit = make_commit(repository, &tree, &[head], message)?;
    durable::objects(repository, &commit, std::slice::from_ref(head))?;
    keep(repository, reference, commit).map(Some)
}

/// Whether tracked files of a worktree, in which no agent is at work, are not as its head has them.
///
/// # Errors
/// What git says.
pub fn has_changes(worktree: &Path) -> Result<bool, GitError> {
    clear_flags(worktree)?;
    let status = Git::new(worktree).reading_only().comparing_carefully().args([
        "status",
        "--porcelain",
        "-z",
        "--untracked-files=no",
    ]);
    Ok(!status.run()?.is_empty())
}

/// Puts the tracked files of a worktree back to its head; untracked ones stay.
pub(crate) fn put_back(worktree: &Path) -> Result<(), GitError> {
    holding_worktree(worktree, |lock| {
        Git::new(worktree).without_hooks().stdin(lock).args(["reset", "--hard", "--quiet"]).run()?;
        Ok(())
    })
}

/// The files in which a worktree differs from `known`, untracked ones included, ignored ones not. Nothing in it changes.
pub(crate) fn changed_since(
    repository: &Repository,
    worktree: &Path,
    index: &Path,
    known: &CommitId,
) -> Result<Vec<String>, GitError> {
    let tree = tree_of(worktree, index, Start::Index)?;
    let git = Git::new(repository.main_worktree()).args(["diff-tree", "-r", "-z", "--name-only", "--no-renames"]);
    let listing = git.args([known.as_str(), tree.as_str()]).run()?;
    Ok(nul_separated(&listing).map(path_text).collect())
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
pub(crate) fn kept_under(repository: &Repository, reference: &str, message: &str) -> Result<Vec<Snapshot>, GitError> {
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

/// The refs of a phase's snapshots, each with its lane. No commit is looked at: it may be damaged.
pub(crate) fn kept_of_phase(
    repository: &Repository,
    phase: &PhaseId,
    tags: bool,
) -> Result<Vec<(LaneId, Snapshot)>, GitError> {
    let space = space(tags);
    let named = |(reference, commit): (String, CommitId)| {
        let (lane, at) = reference.strip_prefix(&format!("{space}/{phase}-"))?.split_once('/')?;
        let lane = LaneId::new(lane).ok().filter(|_| is_compact_time(at))?;
        Some((lane, Snapshot { commit, reference }))
    };
    let references = repository.references(&format!("{space}/{phase}-*/*"))?;
    Ok(references.into_iter().filter_map(named).collect())
}

/// Whether it is a time as [`Timestamp::compact`] writes it, perhaps with the number that [`keep`] adds.
fn is_compact_time(text: &str) -> bool {
    let (time, number) = text.split_once('-').unwrap_or((text, "1"));
    let shape: String = time.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
    shape == "00000000T000000.000Z" && number.parse::<u32>().is_ok()
}

/// The trailers of a commit's message; none of a commit that cannot be read.
pub(crate) fn trailers_of(repository: &Repository, commit: &CommitId) -> BTreeMap<String, String> {
    let message = repository.in_process(|git| {
        let commit = git.find_commit(libgit2::oid(commit)?)?;
        Ok(String::from_utf8_lossy(commit.message_bytes()).into_owned())
    });
    let message = message.unwrap_or_default();
    let trailers = git2::message_trailers_strs(&message).ok();
    let each = trailers.iter().flat_map(|trailers| trailers.iter());
    each.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
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
        forget_update(worktree)
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
