//! Changes in worktrees and branches while no process of the run worked there (SPEC §9; seed 001).
//!
//! The history has the last known content of each worktree: a head that was checked out or committed, or a snapshot.
//! Nothing is reported where a job ran after that, or where a step may have been interrupted.

use std::path::PathBuf;

use crate::event::Worktree;
use crate::git::{self, GitError, Repository, Undone};
use crate::model::{AgentName, CommitId, LaneId, LaneIndex, MergeMode};
use crate::projection::RunHistory;
use crate::projection::history::{LaneHistory, Workplace};
use crate::schedule::{LaneEnd, RunState};

/// A worktree with files that changed since it was last known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExternalChange {
    pub(crate) lane: LaneId,
    /// Whose worktree; `None`: the lane's.
    pub(crate) agent: Option<AgentName>,
    pub(crate) worktree: PathBuf,
    pub(crate) paths: Vec<String>,
}

/// A merged lane whose work is no longer in the integration branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UndoneMerge {
    pub(crate) lane: LaneId,
    /// What `git cherry-pick -m 1` is given to bring it back: a commit, or several with options.
    pub(crate) picked: Vec<String>,
    /// What happened, in a sentence without a full stop.
    pub(crate) message: String,
}

#[derive(Debug, Default)]
pub(crate) struct ExternalChanges {
    /// The user decides whether the run may continue with them.
    pub(crate) conflicts: Vec<ExternalChange>,
    /// In the order in which the lanes were merged.
    pub(crate) undone: Vec<UndoneMerge>,
    /// Branches that moved, each in a sentence: continuing loses nothing.
    pub(crate) moved: Vec<String>,
}

/// Looks for changes in every worktree at rest.
pub(crate) fn external_changes(
    repository: &Repository,
    state: &RunState,
    history: &RunHistory,
) -> Result<ExternalChanges, GitError> {
    let mut found = ExternalChanges::default();
    for at in state.plan().indices().filter(|&at| is_at_rest(state, at)) {
        let Some(lane) = history.lane(&state.plan().lane(at).id) else { continue };
        let mut workplaces: Vec<_> = lane.workplaces().collect();
        workplaces.sort_by_key(|(agent, _)| *agent);
        for (agent, workplace) in workplaces {
            found.add(repository, &lane.id, agent, workplace);
        }
    }
    found.moved.extend(integration_moved(repository, state)?);
    found.undone = undone_merges(repository, history)?;
    Ok(found)
}

impl ExternalChanges {
    fn add(&mut self, repository: &Repository, lane: &LaneId, agent: Option<&AgentName>, workplace: &Workplace) {
        let Some(Worktree { path, .. }) = &workplace.worktree else { return };
        if !path.join(".git").exists() || git::is_half_updated(path).unwrap_or(false) {
            return;
        }
        let whose = agent.map_or_else(|| lane.to_string(), |agent| format!("{lane} {agent}"));
        match changes_at(repository, workplace) {
            Ok((moved, paths)) => {
                self.moved.extend(moved.map(|moved| format!("{whose}: {moved}")));
                let (lane, agent, worktree) = (lane.clone(), agent.cloned(), path.clone());
                let change = ExternalChange { lane, agent, worktree, paths };
                self.conflicts.extend(Some(change).filter(|change| !change.paths.is_empty()));
            }
            // For example a missing commit: the doctor reports it, and it is no reason to refuse.
            Err(error) => {
                let place = path.display();
                self.moved.push(format!("{whose}: whether {place} was changed is unknown: {}", error.with_remedy()));
            }
        }
    }
}

/// The lanes whose merged work is no longer in the integration branch, except those that the user
/// accepted at an earlier resume.
fn undone_merges(repository: &Repository, history: &RunHistory) -> Result<Vec<UndoneMerge>, GitError> {
    let started = history.run.start.as_ref().filter(|start| start.options.merge == MergeMode::Local);
    let Some(started) = started else { return Ok(Vec::new()) };
    let branch = &started.base_branch;
    let Some(tip) = repository.branch_commit(branch)? else { return Ok(Vec::new()) };
    let mut merged: Vec<&LaneHistory> = history.lanes().iter().filter(|lane| lane.merge_commit.is_some()).collect();
    merged.sort_by_key(|lane| lane.finished);
    let mut found = Vec::new();
    for lane in merged {
        let Some((onto, merge)) = lane.merge().filter(|(onto, merge)| onto != merge) else { continue };
        let what = match git::undone(repository, [onto, merge], &tip) {
            Ok(None) => continue,
            Ok(Some(Undone::By(commit))) => format!("{} undid it", commit.short()),
            Ok(Some(Undone::Rewritten)) => "its history was rewritten without it".to_owned(),
            // The doctor reports what git has lost.
            Err(_) => continue,
        };
        let message = format!("{branch} no longer has the work of {} (merged as {}): {what}", lane.id, merge.short());
        if history.run.notes.iter().all(|note| note.message != message) {
            let picked = match repository.parent_of(merge)?.as_ref() == Some(onto) {
                true => vec![merge.short().to_owned()],
                false => vec!["--first-parent".to_owned(), format!("{}..{}", onto.short(), merge.short())],
            };
            found.push(UndoneMerge { lane: lane.id.clone(), picked, message });
        }
    }
    Ok(found)
}

/// Where the branch moved, and the files that changed and are committed nowhere.
fn changes_at(repository: &Repository, workplace: &Workplace) -> Result<(Option<String>, Vec<String>), GitError> {
    let Workplace { worktree: Some(worktree), head: Some(known_head), content: Some(known), .. } = workplace else {
        return Ok((None, Vec::new()));
    };
    let Some(head) = head_of_branch(repository, worktree)? else { return Ok((None, Vec::new())) };
    let paths = git::changed_since(repository, &worktree.path, known)?;
    let paths = git::not_left_behind(&worktree.path, known_head, paths)?;
    if head == *known_head {
        return Ok((None, paths));
    }
    let (branch, from, to) = (&worktree.branch, known_head.short(), head.short());
    let moved = format!("{branch} moved from {from} to {to}; the run continues with what it holds");
    // What was committed is not lost: the branch has it.
    let dirty = git::changed_since(repository, &worktree.path, &head)?;
    Ok((Some(moved), paths.into_iter().filter(|path| dirty.contains(path)).collect()))
}

fn head_of_branch(repository: &Repository, worktree: &Worktree) -> Result<Option<CommitId>, GitError> {
    if worktree.branch.is_empty() { Ok(None) } else { repository.branch_commit(&worktree.branch) }
}

fn integration_moved(repository: &Repository, state: &RunState) -> Result<Option<String>, GitError> {
    let Some((started, known)) = state.started().zip(state.integration()) else { return Ok(None) };
    let now = repository.branch_commit(&started.base_branch)?;
    let moved = now.filter(|now| now != known);
    Ok(moved.map(|now| {
        let (branch, from, to) = (&started.base_branch, known.short(), now.short());
        format!("{branch} moved from {from} to {to}; lanes are merged into it as it is now")
    }))
}

/// Whether no step of Lanekeeper can have been interrupted in the lane.
fn is_at_rest(state: &RunState, lane: LaneIndex) -> bool {
    let lane_state = state.lane(lane);
    match lane_state.end() {
        Some(LaneEnd::Merged | LaneEnd::MergedBefore | LaneEnd::Left | LaneEnd::Skipped) => false,
        Some(LaneEnd::Failed(_) | LaneEnd::Blocked(_)) => lane_state.is_quiet(),
        None => lane_state.is_quiet() && (state.finished().is_some() || lane_state.is_parked(state.plan().lane(lane))),
    }
}
