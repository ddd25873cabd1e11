//! The snapshots of a run, each with what is known of the moment (SPEC §5: context).

use lanewright_model::event::{Decision, Event, Record, SnapshotReason};
use lanewright_model::text::headline;
use lanewright_model::{AgentName, CommitId, LaneId, Plan, TaskId, Timestamp};
use serde::Serialize;

use crate::history::{AnswerView, JobHistory, LaneHistory, RunHistory, SnapshotView};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeptSnapshot {
    /// Its name on the command line: `ckpt_<lane>_<task>_<timestamp>`.
    pub name: String,
    pub lane: LaneId,
    /// Whose worktree; `None`: the lane's.
    pub agent: Option<AgentName>,
    pub task: Option<TaskId>,
    pub reason: SnapshotReason,
    pub at: Timestamp,
    pub commit: CommitId,
    pub reference: String,
    pub base: Option<CommitId>,
    pub context: SnapshotContext,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SnapshotContext {
    /// What the user and reviewers said, and what agents decided, oldest first.
    pub decisions: Vec<String>,
    /// What failed or stood in the agent's way since its last task that passed, oldest first.
    pub blockers: Vec<String>,
    pub next_task: Option<TaskId>,
    /// The end of the output of the agent's last attempt.
    pub tail: Vec<String>,
}

/// The fewest digits of a commit that name it.
const SHORTEST_PREFIX: usize = 4;

impl KeptSnapshot {
    /// Whether a user may mean it by `name`: its name, its ref with or without what is before it, or its commit.
    pub fn is_called(&self, name: &str) -> bool {
        let prefix = name.len() >= SHORTEST_PREFIX && self.commit.as_str().starts_with(name);
        let reference = self.reference == name || self.reference.strip_prefix("refs/") == Some(name);
        let tag = self.reference.strip_prefix("refs/tags/") == Some(name);
        self.name == name || reference || tag || prefix
    }
}

/// Every snapshot of a run, in the order in which they were taken.
pub fn snapshots(records: &[Record], plan: Option<&Plan>) -> Vec<KeptSnapshot> {
    let mut history = RunHistory::default();
    let mut all: Vec<KeptSnapshot> = Vec::new();
    for record in records {
        history.apply(record);
        if let Event::SnapshotTaken { lane, reference, .. } = &record.event {
            // A restored one is recorded again.
            let known = all.iter().any(|known| known.reference == *reference);
            all.extend(history.lane(lane).filter(|_| !known).and_then(|lane| last_of(lane, plan)));
        }
    }
    all
}

/// The snapshot that was taken just now.
fn last_of(lane: &LaneHistory, plan: Option<&Plan>) -> Option<KeptSnapshot> {
    let SnapshotView { agent, reason, commit, reference, at, context: given, .. } = lane.snapshots.last()?.clone();
    let attempt = agent.as_ref().and_then(|agent| last_attempt(lane, agent));
    let task = attempt.and_then(|job| job.job.task().cloned());
    let given = given.and_then(|given| given.next_task);
    let next_task = given.or_else(|| match (reason, &task, &agent) {
        (SnapshotReason::Task, Some(task), Some(agent)) => plan.and_then(|plan| following(plan, &lane.id, agent, task)),
        (SnapshotReason::Task, ..) => None,
        _ => task.clone(),
    });
    let of_agent = |job: &JobHistory| job.job.is_attempt() && agent.is_some() && job.job.agent() == agent.as_ref();
    let tail = lane.jobs.last_ended(of_agent).and_then(|job| Some(job.exit.as_ref()?.tail.clone())).unwrap_or_default();
    let blockers = blockers(lane, agent.as_ref());
    let context = SnapshotContext { decisions: decisions(lane), blockers, next_task, tail };
    let (name, base, lane) = (name(&lane.id, task.as_ref(), &reference), lane.base.clone(), lane.id.clone());
    Some(KeptSnapshot { name, lane, agent, task, reason, at, commit, reference, base, context })
}

fn last_attempt<'l>(lane: &'l LaneHistory, agent: &AgentName) -> Option<&'l JobHistory> {
    lane.jobs.all().filter(|job| job.job.is_attempt() && job.job.agent() == Some(agent)).last()
}

fn following(plan: &Plan, lane: &LaneId, agent: &AgentName, task: &TaskId) -> Option<TaskId> {
    let agent = plan.lane(plan.find(lane)?).agents.iter().find(|known| known.name == *agent)?;
    let index = agent.tasks.iter().position(|known| known.id == *task)?;
    agent.tasks.get(index + 1).map(|task| task.id.clone())
}

/// The failures of an agent, what it reported to stand in its way and what was given with snapshots, since its last task
/// that passed, without those of the snapshot that was taken just now. Without an agent: what was given for the lane.
fn blockers(lane: &LaneHistory, agent: Option<&AgentName>) -> Vec<String> {
    let is_own = |snapshot: &&SnapshotView| snapshot.agent.as_ref() == agent;
    let is_task = |snapshot: &&SnapshotView| is_own(snapshot) && snapshot.reason == SnapshotReason::Task;
    let passed = lane.snapshots.split_last().and_then(|(_, earlier)| earlier.iter().rfind(is_task));
    let own = lane.failures.iter().filter(|failure| agent.is_some() && failure.agent.as_ref() == agent);
    let is_since = |at: Timestamp| passed.is_none_or(|passed| at > passed.at);
    let failed = own.map(|failure| (failure.at, failure.failure.headline().to_owned()));
    let attempts =
        lane.jobs.ended.iter().filter(|job| job.job.is_attempt() && agent.is_some() && job.job.agent() == agent);
    let given =
        lane.snapshots.iter().filter(is_own).filter_map(|snapshot| Some((snapshot.at, snapshot.context.as_ref()?)));
    let given = given.flat_map(|(at, context)| context.blockers.iter().map(move |blocker| (at, blocker.clone())));
    let reported = attempts.filter_map(|job| {
        let (at, report) = (job.ended?, job.report.as_ref()?);
        Some(report.blockers.iter().map(move |blocker| (at, blocker.clone())))
    });
    let mut all: Vec<_> = failed.chain(reported.flatten()).chain(given).filter(|(at, _)| is_since(*at)).collect();
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, text)| text).collect()
}

/// What the user and reviewers said, what agents decided, and what was given with snapshots.
pub(crate) fn decisions(lane: &LaneHistory) -> Vec<String> {
    let answer = |answer: &AnswerView| {
        let word = if answer.approved { "approved" } else { "rejected" };
        (answer.at, format!("{} {word}", answer.gate.for_people()), answer.message.clone())
    };
    let review = |job: &JobHistory| {
        let (agent, report) = (job.job.agent().filter(|_| job.job.is_attempt())?, job.report.as_ref()?);
        let decided = (job.ended?, format!("{agent}: {}", report.decision), report.feedback.clone());
        // The supervisor's word, where the agent gave none.
        (!report.decision.is_empty() && report.decision != "PENDING").then_some(decided)
    };
    let own = |job: &JobHistory| {
        let (agent, ended, report) = (job.job.agent()?.clone(), job.ended?, job.report.as_ref()?);
        let said = move |decision: &Decision| (ended, format!("{agent}: {}", decision.text), decision.reason.clone());
        Some(report.decisions.iter().map(said).collect::<Vec<_>>())
    };
    let ended = || lane.jobs.ended.iter();
    let mut all: Vec<_> = lane.answers.iter().map(answer).chain(ended().filter_map(review)).collect();
    all.extend(ended().filter_map(own).flatten());
    for snapshot in &lane.snapshots {
        let given = snapshot.context.iter().flat_map(|context| &context.decisions);
        let by = snapshot.agent.as_ref().map(|agent| format!("{agent}: ")).unwrap_or_default();
        all.extend(given.map(|decision| (snapshot.at, format!("{by}{}", decision.text), decision.reason.clone())));
    }
    all.sort_by_key(|(at, ..)| *at);
    let say = |(_, what, why): (_, String, String)| {
        if why.is_empty() { what } else { format!("{what}: {}", headline(&why, 200)) }
    };
    all.into_iter().map(say).collect()
}

/// `ckpt_<lane>_<task>_<timestamp>` (seed 000); the time is the ref's, which differs for snapshots of one instant.
fn name(lane: &LaneId, task: Option<&TaskId>, reference: &str) -> String {
    let time = reference.rsplit('/').next().unwrap_or_default();
    format!("ckpt_{lane}_{}_{time}", task.map_or("-", TaskId::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewright_model::testing::{Story, agent, commit, lane};
    use lanewright_model::{Failure, FailureKind};

    fn taken(reason: SnapshotReason) -> Event {
        let reference = format!("refs/lanewright/checkpoint/P1-SL-1/{reason}/20260131T120000.000Z-2");
        Event::snapshot(lane("SL-1"), Some(agent("engineer")), reason, commit('a'), reference)
    }

    fn failed(message: &str) -> Event {
        let failure = Failure::new(FailureKind::Gate, message);
        Event::FailureNoted { lane: lane("SL-1"), agent: Some(agent("engineer")), task: None, failure }
    }

    #[test]
    fn a_snapshot_is_named_after_its_lane_task_and_ref() {
        let story = Story::begun().then(taken(SnapshotReason::Interval));
        let found = snapshots(&story.records, None);
        assert_eq!(found[0].name, "ckpt_SL-1_-_20260131T120000.000Z-2");
    }

    #[test]
    fn blockers_are_listed_until_a_task_passed() {
        let story = Story::begun().then(failed("one")).then(taken(SnapshotReason::Failure));
        let story = story.then(failed("two")).then(taken(SnapshotReason::Task)).then(taken(SnapshotReason::Interval));
        let blockers: Vec<Vec<String>> =
            snapshots(&story.records, None).into_iter().map(|kept| kept.context.blockers).collect();
        assert_eq!(blockers, [vec!["one"], vec!["one", "two"], vec![]]);
    }
}
