//! The points of a lane to which a rollback can take it back: stages that it reached, tasks that passed, snapshots.

use std::collections::HashMap;
use std::sync::Arc;

use lanewright_model::event::{Event, Record, SnapshotReason};
use lanewright_model::{AgentName, CommitId, Lane, LaneId, LaneIndex, Plan, Stage, TaskId};
use lanewright_schedule::{AgentStep, Fault, LaneState, RunState};
use lanewright_view::history::snapshots::snapshots;

use super::{Result, RollbackError};

/// A moment of a lane to which it can be taken back.
#[derive(Debug, Clone)]
pub struct Point {
    /// What it is called.
    pub name: String,
    /// The number of the record after which the lane stood there.
    pub(super) seq: u64,
    /// The lane after that record.
    pub(super) then: Box<LaneState>,
    /// Whether it was merged after that, so that the integration branch holds its commits, undone.
    pub(super) merged_since: bool,
    /// What its worktrees held besides what was committed.
    pub(super) files: Vec<SavedFiles>,
}

/// Files of a worktree that are in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SavedFiles {
    pub(super) agent: Option<AgentName>,
    pub(super) commit: CommitId,
    pub(super) reference: String,
}

/// A record after which a lane stood at a point.
#[derive(Debug, Clone)]
struct Candidate {
    kind: Kind,
    seq: u64,
    /// The rollback that took the snapshot.
    rollback: Option<OpenRollback>,
    files: Vec<SavedFiles>,
}

/// A rollback that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenRollback {
    /// The number of the record with which it began.
    begun: u64,
    /// The number of the lane's last record before.
    before: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Stage(Stage),
    Task(AgentName, TaskId),
    /// Its ref.
    Snapshot(String),
}

impl Candidate {
    fn committed(kind: Kind, seq: u64) -> Self {
        Self { kind, seq, rollback: None, files: Vec::new() }
    }
}

impl Kind {
    fn is_called(&self, name: &str) -> bool {
        match self {
            Self::Stage(stage) => stage.word() == name,
            Self::Task(agent, task) => task.as_str() == name || format!("{agent}/{task}") == name,
            Self::Snapshot(reference) => reference == name,
        }
    }
}

/// What is known of a lane's points while its records are read.
#[derive(Debug, Default)]
struct Reading {
    candidates: Vec<Candidate>,
    /// The number of its last record.
    last: u64,
    rollback: Option<OpenRollback>,
    /// The numbers of the records that ended rollbacks, each with that of the point.
    rollbacks: Vec<(u64, Option<u64>)>,
}

/// The point that each of the lanes has by the name `to`, and the names of those of each lane that has none. The name of
/// a snapshot is any that it has on the command line.
///
/// # Errors
/// [`RollbackError::Contradiction`], and [`RollbackError::AmbiguousPoint`] where agents of a lane have a task of that name.
pub(super) fn points(
    plan: &Arc<Plan>,
    records: &[Record],
    lanes: &[LaneIndex],
    to: &str,
) -> Result<HashMap<LaneIndex, Result<Point, Vec<String>>>> {
    let called = snapshots(records, None).into_iter().filter(|snapshot| snapshot.is_called(to));
    let references: Vec<String> = called.map(|snapshot| snapshot.reference).collect();
    let mut chosen = HashMap::new();
    let mut found = HashMap::new();
    for (lane, candidates) in candidates(plan, records, lanes)? {
        let is_meant = |it: &&Candidate| it.kind.is_called(to) || references.iter().any(|name| it.kind.is_called(name));
        let meant: Vec<&Candidate> = candidates.iter().filter(is_meant).collect();
        let Some(newest) = meant.last() else {
            found.insert(lane, Err(names_of(&candidates)));
            continue;
        };
        if let Some(other) = meant.iter().find(|it| is_task(it) && is_task(newest) && it.kind != newest.kind) {
            let names = [other, newest].map(|it| name_of(&it.kind, true));
            return Err(RollbackError::AmbiguousPoint { lane: plan.lane(lane).id.clone(), to: to.to_owned(), names });
        }
        // All that one rollback saved belongs together.
        let saved_with = |it: &&Candidate| it.rollback == newest.rollback;
        let files = match newest.rollback {
            Some(_) => candidates.iter().filter(saved_with).flat_map(|it| it.files.clone()).collect(),
            None => newest.files.clone(),
        };
        chosen.insert(lane, Candidate { files, ..(*newest).clone() });
    }
    let mut state = RunState::new(plan.clone());
    state.expect(records);
    chosen.iter().for_each(|(&lane, point)| state.expect_point(lane, point.seq));
    apply_all(&mut state, records)?;
    for (lane, Candidate { kind, seq, files, .. }) in chosen {
        let then = state.point(lane, seq).cloned().map(Box::new);
        let name = if let Kind::Snapshot(_) = kind { to.to_owned() } else { name_of(&kind, to.contains('/')) };
        let id = &plan.lane(lane).id;
        let merged_since = records.iter().rev().take_while(|record| record.seq > seq).any(|record| {
            matches!(&record.event, Event::LaneMerged { lane, .. } | Event::MergeStaged { lane, .. } if lane == id)
        });
        found.insert(lane, then.map(|then| Point { name, seq, then, merged_since, files }).ok_or_else(Vec::new));
    }
    Ok(found)
}

fn is_task(candidate: &Candidate) -> bool {
    matches!(candidate.kind, Kind::Task(..))
}

fn name_of(kind: &Kind, with_agent: bool) -> String {
    match kind {
        Kind::Stage(stage) => stage.word().to_owned(),
        Kind::Task(agent, task) if with_agent => format!("{agent}/{task}"),
        Kind::Task(_, task) => task.to_string(),
        Kind::Snapshot(reference) => reference.clone(),
    }
}

/// Every stage and task that a lane can be taken back to; snapshots have a list of their own.
fn names_of(candidates: &[Candidate]) -> Vec<String> {
    let mut names = vec![Stage::BeforeLaneStart.word().to_owned()];
    for Candidate { kind, .. } in candidates.iter().filter(|it| !matches!(it.kind, Kind::Snapshot(_))) {
        let name = name_of(kind, false);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn apply_all(state: &mut RunState, records: &[Record]) -> Result<(), Fault> {
    records.iter().try_for_each(|record| state.apply(record))
}

fn candidates(plan: &Arc<Plan>, records: &[Record], lanes: &[LaneIndex]) -> Result<HashMap<LaneIndex, Vec<Candidate>>> {
    let mut readings: HashMap<LaneIndex, Reading> = lanes.iter().map(|&lane| (lane, Reading::default())).collect();
    let mut state = RunState::new(plan.clone());
    state.expect(records);
    for record in records {
        let lane = record.event.lane().and_then(|id: &LaneId| state.find(id));
        let reading = lane.and_then(|lane| Some((lane, readings.get_mut(&lane)?)));
        let Some((lane, reading)) = reading else {
            state.apply(record)?;
            continue;
        };
        let before = passed_tasks(plan.lane(lane), state.lane(lane));
        let was_merged = state.lane(lane).merged().is_some();
        state.apply(record)?;
        let lane_state = state.lane(lane);
        reading.note(record, lane_state, was_merged);
        for (agent, (before, now)) in
            plan.lane(lane).agents.iter().zip(before.into_iter().zip(passed_tasks(plan.lane(lane), lane_state)))
        {
            for task in agent.tasks.iter().take(now).skip(before) {
                let kind = Kind::Task(agent.name.clone(), task.id.clone());
                reading.candidates.push(Candidate::committed(kind, record.seq));
            }
        }
        reading.last = record.seq;
    }
    Ok(readings.into_iter().map(|(lane, reading)| (lane, reading.valid())).collect())
}

/// How many of its tasks each agent of the lane has done.
fn passed_tasks(plan: &Lane, lane: &LaneState) -> Vec<usize> {
    let count = |(worker, agent): (&lanewright_schedule::AgentState, &lanewright_model::Agent)| match worker.step {
        AgentStep::Merging | AgentStep::Gating(_) | AgentStep::Done => agent.tasks.len(),
        AgentStep::Unchosen { passed: true } => agent.tasks.len(),
        _ => worker.task,
    };
    lane.agents().iter().zip(&plan.agents).map(count).collect()
}

impl Reading {
    fn note(&mut self, record: &Record, lane: &LaneState, was_merged: bool) {
        match &record.event {
            Event::CheckpointReached { checkpoint, .. }
                if matches!(checkpoint.stage, Stage::AfterLaneStart | Stage::AfterLaneTests | Stage::PrePr) =>
            {
                let kind = Kind::Stage(checkpoint.stage);
                self.candidates.push(Candidate::committed(kind, record.seq));
            }
            Event::RollbackBegun { .. } => {
                // A lane that was merged goes back to where it was about to be.
                let is_ready =
                    |it: &&Candidate| it.kind == Kind::Stage(Stage::PrePr) && self.leads_to(it.seq, self.last);
                let ready = self.candidates.iter().rfind(is_ready).map(|it| it.seq);
                let before = ready.filter(|_| was_merged).unwrap_or(self.last);
                self.rollback.get_or_insert(OpenRollback { begun: record.seq, before });
            }
            Event::LaneRolledBack { point, .. } => {
                self.rollback = None;
                self.rollbacks.push((record.seq, point.as_ref().map(|point| point.seq)));
            }
            Event::SnapshotTaken { agent, reason, commit, reference, .. } => {
                let (agent, commit, reference) = (agent.clone(), commit.clone(), reference.clone());
                self.note_snapshot(record, lane, *reason, SavedFiles { agent, commit, reference });
            }
            _ => {}
        }
    }

    /// Snapshots, and the stages and tasks on the lane's way to where it stands.
    fn valid(mut self) -> Vec<Candidate> {
        let candidates = std::mem::take(&mut self.candidates).into_iter();
        let is_valid = |it: &Candidate| matches!(it.kind, Kind::Snapshot(_)) || self.leads_to(it.seq, self.last);
        candidates.filter(is_valid).collect()
    }

    /// Whether the record `seq` is one of those by which the lane came to where it stood after the record `until`: none that
    /// a rollback undid.
    fn leads_to(&self, seq: u64, mut until: u64) -> bool {
        for (ended, point) in self.rollbacks.iter().rev() {
            match point {
                _ if *ended > until => {}
                _ if seq >= *ended => break,
                Some(point) => until = *point,
                None => return false,
            }
        }
        seq <= until
    }

    fn note_snapshot(&mut self, record: &Record, lane: &LaneState, reason: SnapshotReason, saved: SavedFiles) {
        let kind = Kind::Snapshot(saved.reference.clone());
        // One that is restored is recorded again.
        if self.candidates.iter().any(|known| known.kind == kind) {
            return;
        }
        let rollback = self.rollback.filter(|_| reason == SnapshotReason::Rollback);
        let heads = lane.agents().iter().filter_map(|agent| agent.head.as_ref()).chain(lane.head());
        let is_committed = reason == SnapshotReason::Task || heads.into_iter().any(|head| *head == saved.commit);
        let files = Some(saved).filter(|_| !is_committed).into_iter().collect();
        let seq = rollback.map_or(record.seq, |rollback| rollback.before);
        self.candidates.push(Candidate { kind, seq, rollback, files });
    }
}
