//! Snapshots: a worktree's whole state in a commit of its own, made beside the agent's work without touching it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use lanewright_files::directory;
use lanewright_model::id::snapshot_group;
use lanewright_model::{CommitId, PhaseId, Timestamp};

use crate::command::{Git, Result, nul_separated, path_text};
use crate::fast::durable;
use crate::fast::libgit2::RefUpdate;
use crate::history::{make_own_commit, remove_dead_locks, set_own_reference};
use crate::query::{clear_flags, has_hook_files, head_of, listed, quit_operations, unchanged};
use crate::repo::{Repository, holding_worktree};
use crate::snapshot::{Extent, Start, tree_of};
use crate::worktree::forget_update;

#[derive(Debug, Clone, Copy)]
pub struct SnapshotRequest<'a> {
    pub worktree: &'a Path,
    /// The ref that keeps it; a number is added if something else has that name.
    pub reference: &'a str,
    pub message: &'a str,
    pub head: &'a CommitId,
    /// A commit whose objects are durable; everything that came after it is made so.
    pub since: &'a CommitId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub commit: CommitId,
    pub reference: String,
}

/// The name of a snapshot's ref (SPEC §4), of Lanewright's own or, with `tags`, a tag.
pub fn reference_name(phase: &PhaseId, lane: &str, at: Timestamp, tags: bool) -> String {
    format!("{}/{}/{}", space(tags), snapshot_group(phase.as_str(), lane), at.compact())
}

fn space(tags: bool) -> &'static str {
    if tags { "refs/tags/checkpoint" } else { "refs/lanewright/checkpoint" }
}

/// Keeps everything in a worktree that is tracked, or untracked and not ignored, except trees that programs make again.
/// Branch, index and files stay as they are, and an agent may work on them meanwhile. A repository within the worktree is
/// not looked into.
pub fn snapshot(repository: &Repository, request: &SnapshotRequest<'_>) -> Result<Snapshot> {
    snapshot_from(repository, request, Start::Index, Extent::Everything)
}

/// The same without anything that a commit leaves out, of a worktree that stays as it is.
pub fn snapshot_of_work(repository: &Repository, request: &SnapshotRequest<'_>) -> Result<Snapshot> {
    snapshot_from(repository, request, Start::Index, Extent::Work)
}

/// The same where git may have lost objects: every file is read and stored again.
pub fn snapshot_of_all_files(repository: &Repository, request: &SnapshotRequest<'_>) -> Result<Snapshot> {
    snapshot_from(repository, request, Start::Paths, Extent::Everything)
}

fn snapshot_from(
    repository: &Repository,
    request: &SnapshotRequest<'_>,
    start: Start,
    extent: Extent,
) -> Result<Snapshot> {
    keep_tree(repository, request, &tree_of(repository, request.worktree, start, extent)?)
}

/// The same where a worktree holds what its head holds, because all that was in it was committed just now: nothing is
/// looked at. `None`: that is not so, or a hook left something that is in no commit.
pub fn snapshot_of_head(repository: &Repository, request: &SnapshotRequest<'_>) -> Result<Option<Snapshot>> {
    if repository.head_at(request.worktree)?.commit != *request.head || has_hook_files(request.worktree)? {
        return Ok(None);
    }
    snapshot_of_commit(repository, request).map(Some)
}

/// Keeps what the head of the request holds; no worktree is looked at.
pub fn snapshot_of_commit(repository: &Repository, request: &SnapshotRequest<'_>) -> Result<Snapshot> {
    keep_tree(repository, request, &repository.tree_of(request.head)?)
}

fn keep_tree(repository: &Repository, request: &SnapshotRequest<'_>, tree: &str) -> Result<Snapshot> {
    let commit = make_own_commit(repository, tree, &[request.head], request.message)?;
    durable::objects(repository, &commit, [request.since])?;
    keep(repository, request.reference, commit)
}

/// Whether tracked files of a worktree, in which no agent is at work, are not as its head has them.
pub fn has_changes(worktree: &Path) -> Result<bool> {
    clear_flags(worktree)?;
    Ok(!listed(worktree, "no")?.is_empty())
}

/// Puts the tracked files of a worktree back to its head; untracked ones stay.
pub fn reset_to_head(worktree: &Path) -> Result<()> {
    holding_worktree(worktree, |lock| {
        let git = || Git::new(worktree).without_hooks().stdin(lock);
        directory::change_below(worktree, || git().args(["reset", "--hard", "--quiet"]).run())?;
        Ok(())
    })
}

/// The files in which a worktree differs from `known`, untracked ones included; neither ignored ones nor those that a commit
/// leaves out. Nothing in it changes.
pub fn changed_since(repository: &Repository, worktree: &Path, known: &CommitId) -> Result<Vec<String>> {
    let tree = tree_of(repository, worktree, Start::Index, Extent::Work)?;
    let differing = |more: &[&str]| {
        let git = repository.git().args(["diff-tree", "-r", "-z", "--no-renames"]).args(more.iter().copied());
        git.args([known.as_str(), tree.as_str()]).run()
    };
    let kept = unstaged_only(worktree, &differing(&["--diff-filter=D"])?)?;
    let gone = differing(&["--diff-filter=D", "--name-only"])?;
    let gone = nul_separated(&gone).filter(|path| !kept.contains(*path)).map(<[u8]>::to_vec).collect();
    // A snapshot that was about to be discarded has what is left out, too.
    let gone = repository.left_out_rules.without_left_out(worktree, gone)?;
    let changed = differing(&["--diff-filter=d", "--name-only"])?;
    let changed: BTreeSet<Vec<u8>> = nul_separated(&changed).map(<[u8]>::to_vec).chain(gone).collect();
    Ok(changed.iter().map(|path| path_text(path)).collect())
}

/// The paths in the listing of removed files whose files are as they were: ignored ones that are not staged any more, for
/// example because the index was made again.
fn unstaged_only(worktree: &Path, removed: &[u8]) -> Result<BTreeSet<Vec<u8>>> {
    let parts: Vec<&[u8]> = nul_separated(removed).collect();
    // `:100644 000000 OBJECT 000000… D`, then the path.
    let known: BTreeMap<Vec<u8>, String> = parts
        .chunks_exact(2)
        .filter_map(|pair| Some((pair[1].to_vec(), path_text(pair[0]).split(' ').nth(2)?.to_owned())))
        .collect();
    Ok(unchanged(worktree, &known)?.into_iter().collect())
}

/// Keeps `commit` under `reference`; a number is added to the name if something else has it.
pub fn keep(repository: &Repository, reference: &str, commit: CommitId) -> Result<Snapshot> {
    let mut name = reference.to_owned();
    let mut number = 1;
    loop {
        let update = RefUpdate { name: &name, old: None, to: &commit, why: "lanewright: snapshot" };
        if set_own_reference(repository, repository.main_worktree(), &update)? {
            return Ok(Snapshot { commit, reference: name });
        }
        if let Ok(Some(known)) = repository.commit_at(&name)
            && repository.show(CONTENT, &known)? == repository.show(CONTENT, &commit)?
        {
            return Ok(Snapshot { commit: known, reference: name });
        }
        number += 1;
        name = format!("{reference}-{number}");
    }
}

/// The snapshots that [`keep`] saved under `reference`, or under it with a number, and whose first line is `message`.
pub fn saved_under(repository: &Repository, reference: &str, message: &str) -> Result<Vec<Snapshot>> {
    let mut found = Vec::new();
    for (name, commit) in repository.references(&format!("{reference}*"))? {
        let is_its = name.strip_prefix(reference).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        if is_its && repository.subject_of(&commit)? == message {
            found.push(Snapshot { commit, reference: name });
        }
    }
    Ok(found)
}

/// The refs of a phase's snapshots, each with the [`snapshot_group`] of its lane. No commit is looked at: it may be damaged.
pub fn saved_of_phase(repository: &Repository, phase: &PhaseId, tags: bool) -> Result<Vec<(String, Snapshot)>> {
    let space = space(tags);
    let named = |(reference, commit): (String, CommitId)| {
        let (group, at) = reference.strip_prefix(&format!("{space}/"))?.split_once('/')?;
        let group = Some(group.to_owned()).filter(|_| is_compact_time(at))?;
        Some((group, Snapshot { commit, reference }))
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

/// A commit's tree and parents.
const CONTENT: &str = "%T %P";

/// Makes the files of `worktree` those of a snapshot: what it does not hold is removed, ignored files excepted. The branch
/// stays where it is, nothing is staged, and whatever was in progress is forgotten. Asked again, it continues.
pub fn restore(worktree: &Path, commit: &CommitId) -> Result<()> {
    holding_worktree(worktree, |lock| {
        head_of(worktree)?;
        quit_operations(worktree, lock)?;
        remove_dead_locks(worktree)?;
        let git = || Git::new(worktree).stdin(lock);
        directory::change_below(worktree, || {
            git().args(["read-tree", "--reset", "-u", commit.as_str()]).run()?;
            git().args(["clean", "-ffdq"]).run()
        })?;
        // The snapshot held files that were not tracked; they must not stay staged.
        git().args(["reset", "--quiet"]).run()?;
        forget_update(worktree)
    })
}
