//! A run's snapshots as its log tells them, each with what is known of the moment (SPEC §5: context).

use std::collections::HashMap;

use serde::Serialize;

use crate::event::{AgentReport, Event, Record, SnapshotReason};
use crate::model::text::headline;
use crate::model::{AgentName, CommitId, JobRole, LaneId, Plan, TaskId, Timestamp};

/// One snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptSnapshot {
    /// What it is called on the command line: `ckpt_<lane>_<task>_<timestamp>`.
    pub name: String,
    /// Which lane.
    pub lane: LaneId,
    /// Whose worktree; `None`: the lane's.
    pub agent: Option<AgentName>,
    /// What the agent worked at.
    pub task: Option<TaskId>,
    /// Why.
    pub reason: SnapshotReason,
    /// When.
    pub at: Timestamp,
    /// The commit.
    pub commit: CommitId,
    /// The ref that keeps it.
    pub reference: String,
    /// What the lane was built on then.
    pub base: Option<CommitId>,
    /// What is known of the moment.
    pub context: SnapshotContext,
}

/// What was known when a snapshot was taken, as far as the run log has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SnapshotContext {
    /// What people and reviewers said, oldest first.
    pub decisions: Vec<String>,
    /// What went wrong since the agent's last task that passed, oldest first.
    pub blockers: Vec<String>,
    /// What comes after.
    pub next_task: Option<TaskId>,
    /// The end of what the agent's last attempt printed.
    pub tail: Vec<String>,
}

/// Every snapshot of a run, in the order in which they were taken.
pub fn snapshots(records: &[Record], plan: Option<&Plan>) -> Vec<KeptSnapshot> {
    let mut story = Story { plan, lanes: HashMap::new(), workers: HashMap::new() };
    let mut all: Vec<KeptSnapshot> = Vec::new();
    for snapshot in records.iter().filter_map(|record| story.follow(record)) {
        // One that was restored is told of again.
        if all.iter().all(|known| known.reference != snapshot.reference) {
            all.push(snapshot);
        }
    }
    all
}

/// What happened so far.
struct Story<'p> {
    plan: Option<&'p Plan>,
    lanes: HashMap<LaneId, LaneStory>,
    workers: HashMap<(LaneId, AgentName), WorkerStory>,
}

#[derive(Default)]
struct LaneStory {
    base: Option<CommitId>,
    decisions: Vec<String>,
}

#[derive(Default)]
struct WorkerStory {
    task: Option<TaskId>,
    blockers: Vec<String>,
    tail: Vec<String>,
}

impl Story<'_> {
    fn follow(&mut self, record: &Record) -> Option<KeptSnapshot> {
        match &record.event {
            Event::LaneBased { lane, base, .. } | Event::LaneReset { lane, base } => {
                self.lane(lane).base = Some(base.clone());
            }
            Event::GateAnswered { lane, gate, approved, message } => {
                let word = if *approved { "approved" } else { "rejected" };
                self.decide(lane, format!("{} {word}", gate.for_people()), message);
            }
            Event::JobPlanned { job } => {
                if let (JobRole::Attempt { agent, task }, Some(lane)) = (&job.role, &job.lane) {
                    self.worker(lane, agent).task = Some(task.clone());
                }
            }
            Event::JobExited { job, exit, report, .. } => {
                if let (JobRole::Attempt { agent, .. }, Some(lane)) = (&job.role, &job.lane) {
                    self.worker(lane, agent).tail.clone_from(&exit.tail);
                    if let Some(AgentReport { decision, feedback, .. }) =
                        report.as_ref().filter(|it| !it.decision.is_empty())
                    {
                        self.decide(lane, format!("{agent}: {decision}"), feedback);
                    }
                }
            }
            Event::FailureNoted { lane, agent: Some(agent), failure, .. } => {
                self.worker(lane, agent).blockers.push(failure.message.clone());
            }
            Event::SnapshotTaken { lane, agent, reason, commit, reference } => {
                let kept = self.kept(record.at, (lane, agent.as_ref()), *reason, (commit, reference));
                if let (Some(agent), SnapshotReason::Task) = (agent, reason) {
                    self.worker(lane, agent).blockers.clear();
                }
                return Some(kept);
            }
            _ => {}
        }
        None
    }

    fn kept(
        &mut self,
        at: Timestamp,
        (lane, agent): (&LaneId, Option<&AgentName>),
        reason: SnapshotReason,
        (commit, reference): (&CommitId, &str),
    ) -> KeptSnapshot {
        let worker = agent.and_then(|agent| self.workers.get(&(lane.clone(), agent.clone())));
        let task = worker.and_then(|worker| worker.task.clone());
        let next_task = match reason {
            SnapshotReason::Task => task.as_ref().and_then(|task| self.after(lane, agent?, task)),
            _ => task.clone(),
        };
        let (blockers, tail) = worker.map(|worker| (worker.blockers.clone(), worker.tail.clone())).unwrap_or_default();
        let story = self.lanes.get(lane);
        let decisions = story.map(|story| story.decisions.clone()).unwrap_or_default();
        KeptSnapshot {
            name: name(lane, task.as_ref(), reference),
            lane: lane.clone(),
            agent: agent.cloned(),
            task,
            reason,
            at,
            commit: commit.clone(),
            reference: reference.to_owned(),
            base: story.and_then(|story| story.base.clone()),
            context: SnapshotContext { decisions, blockers, next_task, tail },
        }
    }

    fn after(&self, lane: &LaneId, agent: &AgentName, task: &TaskId) -> Option<TaskId> {
        let plan = self.plan?;
        let agent = plan.lane(plan.find(lane)?).agents.iter().find(|known| known.name == *agent)?;
        let at = agent.tasks.iter().position(|known| known.id == *task)?;
        agent.tasks.get(at + 1).map(|task| task.id.clone())
    }

    fn decide(&mut self, lane: &LaneId, what: String, why: &str) {
        let said = if why.is_empty() { what } else { format!("{what}: {}", headline(why, 200)) };
        self.lane(lane).decisions.push(said);
    }

    fn lane(&mut self, lane: &LaneId) -> &mut LaneStory {
        self.lanes.entry(lane.clone()).or_default()
    }

    fn worker(&mut self, lane: &LaneId, agent: &AgentName) -> &mut WorkerStory {
        self.workers.entry((lane.clone(), agent.clone())).or_default()
    }
}

/// `ckpt_<lane>_<task>_<timestamp>` (seed 000); the time is the ref's, which tells snapshots of one instant apart.
fn name(lane: &LaneId, task: Option<&TaskId>, reference: &str) -> String {
    let time = reference.rsplit('/').next().unwrap_or_default();
    format!("ckpt_{lane}_{}_{time}", task.map_or("-", TaskId::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Failure, FailureKind};
    use crate::view::testing::{Story as Told, agent, commit, lane};

    fn taken(reason: SnapshotReason) -> Event {
        let reference = format!("refs/lanekeeper/checkpoint/P1-SL-1/{reason}/20260131T120000.000Z-2");
        Event::SnapshotTaken {
            lane: lane("SL-1"),
            agent: Some(agent("engineer")),
            reason,
            commit: commit('a'),
            reference,
        }
    }

    fn failed(message: &str) -> Event {
        let failure = Failure::new(FailureKind::Gate, message);
        Event::FailureNoted { lane: lane("SL-1"), agent: Some(agent("engineer")), task: None, failure }
    }

    #[test]
    fn a_snapshot_is_named_after_its_lane_task_and_ref() {
        let story = Told::begun().then(taken(SnapshotReason::Interval));
        let found = snapshots(&story.records, None);
        assert_eq!(found[0].name, "ckpt_SL-1_-_20260131T120000.000Z-2");
    }

    #[test]
    fn what_went_wrong_is_told_until_a_task_passed() {
        let story = Told::begun().then(failed("one")).then(taken(SnapshotReason::Failure));
        let story = story.then(failed("two")).then(taken(SnapshotReason::Task)).then(taken(SnapshotReason::Interval));
        let blockers: Vec<Vec<String>> =
            snapshots(&story.records, None).into_iter().map(|kept| kept.context.blockers).collect();
        assert_eq!(blockers, [vec!["one"], vec!["one", "two"], vec![]]);
    }
}
