//! What somebody changed in worktrees and branches while nothing of the run was at work there (SPEC §9; seed 001).
//!
//! The run log tells the last state of each worktree that Lanekeeper knows of: the head that was checked out or
//! committed, or a snapshot. Where a job ran after that, or something may have been cut short, nothing can be told, and
//! nothing is said.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::event::{Event, Record, SnapshotReason, Worktree};
use crate::git::{self, GitError, Repository, Undone};
use crate::model::{AgentName, CommitId, JobId, JobRole, Lane, LaneId, LaneIndex, MergeMode};
use crate::schedule::{LaneEnd, RunState};

/// A worktree that holds something else than when it was left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalChange {
    /// The lane.
    pub lane: LaneId,
    /// Whose worktree; `None`: the lane's.
    pub agent: Option<AgentName>,
    /// Where.
    pub worktree: PathBuf,
    /// The files that changed.
    pub paths: Vec<String>,
}

/// A merged lane whose work is no longer in the integration branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneMerge {
    /// The lane.
    pub lane: LaneId,
    /// Its merge.
    pub merge: CommitId,
    /// What happened, in a sentence without a full stop.
    pub message: String,
}

/// What changed from outside.
#[derive(Debug, Default)]
pub struct ExternalChanges {
    /// Changed files: somebody has to say whether the run may go on with them.
    pub conflicts: Vec<ExternalChange>,
    /// Lanes whose merged work is gone from the integration branch, in the order in which they were merged.
    pub undone: Vec<UndoneMerge>,
    /// Heads and branches that are not where they were left, each in a sentence: nothing is lost by going on.
    pub moved: Vec<String>,
}

/// Looks for changes in everything that the run left at rest. `index_of` tells the private index of a worktree's
/// snapshots.
///
/// # Errors
/// What git says.
pub fn external_changes(
    repository: &Repository,
    state: &RunState,
    records: &[Record],
    index_of: &dyn Fn(LaneIndex, Option<&AgentName>) -> PathBuf,
) -> Result<ExternalChanges, GitError> {
    let mut found = ExternalChanges::default();
    let places = Places::left_by(state, records);
    for ((lane, agent), place) in places.0.into_iter().filter(|((lane, _), _)| is_at_rest(state, *lane)) {
        let id = &state.plan().lane(lane).id;
        let whose = agent.as_ref().map_or_else(|| id.to_string(), |agent| format!("{id} {agent}"));
        if !place.worktree.path.join(".git").exists() || git::is_half_updated(&place.worktree.path).unwrap_or(false) {
            continue;
        }
        match changes_at(repository, &place, &index_of(lane, agent.as_ref())) {
            Ok((moved, paths)) => {
                found.moved.extend(moved.map(|moved| format!("{whose}: {moved}")));
                let (lane, worktree) = (id.clone(), place.worktree.path);
                let change = ExternalChange { lane, agent, worktree, paths };
                found.conflicts.extend(Some(change).filter(|change| !change.paths.is_empty()));
            }
            // A commit that is gone, for example: that is the doctor's to tell, and no reason to refuse.
            Err(error) => {
                let place = place.worktree.path.display();
                found.moved.push(format!("{whose}: whether {place} was changed cannot be told: {error}"));
            }
        }
    }
    found.moved.extend(integration_moved(repository, state)?);
    found.undone = undone_merges(repository, state, records)?;
    Ok(found)
}

/// The lanes whose work somebody took out of the integration branch, but for those that an earlier resume was told to
/// continue without.
fn undone_merges(repository: &Repository, state: &RunState, records: &[Record]) -> Result<Vec<UndoneMerge>, GitError> {
    let started = state.started().filter(|started| started.options.merge == MergeMode::Local);
    let Some(started) = started else { return Ok(Vec::new()) };
    let branch = &started.base_branch;
    let Some(tip) = repository.branch_commit(branch)? else { return Ok(Vec::new()) };
    let mut merges: Vec<(&LaneId, [&CommitId; 2])> = Vec::new();
    for record in records {
        match &record.event {
            Event::LaneMerged { lane, commit, onto } if commit != onto => merges.push((lane, [onto, commit])),
            Event::LaneRolledBack { lane, .. } => merges.retain(|(merged, _)| *merged != lane),
            _ => {}
        }
    }
    let mut found = Vec::new();
    for (lane, merge) in merges {
        let what = match git::undone(repository, merge, &tip) {
            Ok(None) => continue,
            Ok(Some(Undone::By(commit))) => format!("{} undid it", commit.short()),
            Ok(Some(Undone::Rewritten)) => "its history was rewritten without it".to_owned(),
            // The doctor reports what git has lost.
            Err(_) => continue,
        };
        let message = format!("{branch} no longer has the work of {lane} (merged as {}): {what}", merge[1].short());
        let is_accepted =
            |record: &Record| matches!(&record.event, Event::Noted { message: noted, .. } if *noted == message);
        if !records.iter().any(is_accepted) {
            found.push(UndoneMerge { lane: lane.clone(), merge: merge[1].clone(), message });
        }
    }
    Ok(found)
}

/// Where the branch went, and the files that changed and are committed nowhere.
fn changes_at(repository: &Repository, place: &Place, index: &Path) -> Result<(Option<String>, Vec<String>), GitError> {
    let (Some(known), Some(head)) = (&place.known, head_of_branch(repository, &place.worktree)?) else {
        return Ok((None, Vec::new()));
    };
    let paths = git::changed_since(repository, &place.worktree.path, index, known)?;
    let paths = git::not_left_behind(&place.worktree.path, &place.head, paths)?;
    if head == place.head {
        return Ok((None, paths));
    }
    let (branch, from, to) = (&place.worktree.branch, place.head.short(), head.short());
    let moved = format!("{branch} moved from {from} to {to}; the run continues with what it holds");
    // What was committed from outside is no loss: the branch holds it.
    let dirty = git::changed_since(repository, &place.worktree.path, index, &head)?;
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

/// Whether nothing of Lanekeeper's can have been cut short in the lane.
fn is_at_rest(state: &RunState, lane: LaneIndex) -> bool {
    let lane_state = state.lane(lane);
    match &lane_state.end {
        Some(LaneEnd::Merged | LaneEnd::MergedBefore | LaneEnd::Left) => false,
        Some(LaneEnd::Failed(_) | LaneEnd::Blocked(_)) => lane_state.is_quiet(),
        None => lane_state.is_quiet() && (state.finished().is_some() || lane_state.is_parked(state.plan().lane(lane))),
    }
}

/// A worktree as the log leaves it.
struct Place {
    worktree: Worktree,
    head: CommitId,
    /// The commit that holds what it held; `None` once a job has run in it.
    known: Option<CommitId>,
}

/// Each worktree by its holder.
struct Places(BTreeMap<(LaneIndex, Option<AgentName>), Place>);

impl Places {
    fn left_by(state: &RunState, records: &[Record]) -> Self {
        let mut places = Self(BTreeMap::new());
        for record in records {
            if let Some(lane) = record.event.lane().and_then(|id| state.find(id)) {
                places.follow(lane, state.plan().lane(lane), &record.event);
            }
        }
        places
    }

    fn follow(&mut self, lane: LaneIndex, plan: &Lane, event: &Event) {
        let own = |agent: &AgentName| {
            let shares =
                plan.agents.iter().position(|known| known.name == *agent).is_some_and(|at| plan.shares_worktree(at));
            Some(agent.clone()).filter(|_| !shares)
        };
        match event {
            Event::WorktreeOpened { agent, worktree, .. } => {
                let (head, known) = (worktree.head.clone(), Some(worktree.head.clone()));
                self.0.insert((lane, agent.clone()), Place { worktree: worktree.clone(), head, known });
            }
            Event::WorktreeReleased { agent, .. } => drop(self.0.remove(&(lane, Some(agent.clone())))),
            Event::JobPlanned { job } | Event::JobStarted { job, .. } => {
                let holder = works_in(job).and_then(own);
                self.0.entry((lane, holder)).and_modify(|place| place.known = None);
            }
            Event::WorkCommitted { agent, head, .. } | Event::AgentReset { agent, head, .. } => {
                self.stands((lane, own(agent)), head);
            }
            Event::AgentMerged { head, .. } | Event::LaneReset { base: head, .. } => self.stands((lane, None), head),
            // What was put aside for the lane: a stash, the head of a worktree that was lost. No worktree holds it.
            Event::SnapshotTaken { agent: None, reason: SnapshotReason::Reset, .. } => {}
            Event::SnapshotTaken { agent, commit, .. } => {
                let holder = agent.as_ref().and_then(own);
                self.0.entry((lane, holder)).and_modify(|place| place.known = Some(commit.clone()));
            }
            Event::LaneMerged { .. } | Event::LaneRolledBack { .. } => self.0.retain(|(of, _), _| *of != lane),
            _ => {}
        }
    }

    fn stands(&mut self, holder: (LaneIndex, Option<AgentName>), at: &CommitId) {
        self.0.entry(holder).and_modify(|place| {
            place.head = at.clone();
            place.known = Some(at.clone());
        });
    }
}

/// The agent in whose worktree the job runs; `None`: the lane's.
fn works_in(job: &JobId) -> Option<&AgentName> {
    if matches!(job.role, JobRole::Checkpoint { .. }) { None } else { job.agent() }
}
