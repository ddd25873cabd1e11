//! What a report tells that [`RunView`] does not keep: the view holds where a run stands, this how it came there.

use std::collections::HashMap;

use super::Note;
use super::lane::{AnswerReport, CheckpointReport, FailureReport, MergeReport, RetryReport};
use crate::event::{AgentReport, Event, Reading, Record, RunStarted, StopReason};
use crate::model::{AgentName, Checkpoint, JobId, LaneId, Timestamp};
use crate::view::lane_view::{FailureView, LaneView};
use crate::view::run_view::RunView;
use crate::view::waits::WaitFold;

/// How a run came to where it stands.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) started: Option<RunStarted>,
    pub(super) stop: Option<StopReason>,
    pub(super) lanes: HashMap<LaneId, LaneHistory>,
    pub(super) jobs: HashMap<JobId, JobHistory>,
    /// From when to when nobody worked on the run.
    pub(super) rests: Vec<(Timestamp, Timestamp)>,
    /// From when to when a retry was put off.
    pub(super) delays: Vec<(Timestamp, Timestamp)>,
    /// From when to when git worked, for whichever lane.
    pub(super) git: Vec<(Timestamp, Timestamp)>,
    pub(super) notes: Vec<Note>,
    waits: WaitFold,
    /// Retries that have not begun.
    planned: HashMap<(LaneId, AgentName), RetryReport>,
    last: Option<Timestamp>,
}

/// What happened in a lane.
#[derive(Debug, Default)]
pub(super) struct LaneHistory {
    pub(super) failures: Vec<FailureReport>,
    pub(super) merges: Vec<MergeReport>,
    pub(super) checkpoints: Vec<CheckpointReport>,
    pub(super) answers: Vec<AnswerReport>,
    /// From when to when git worked for it.
    pub(super) git: Vec<(Timestamp, Timestamp)>,
    /// From when to when it waited for something that is no fault of Lanekeeper's.
    pub(super) waits: Vec<(Timestamp, Timestamp)>,
}

/// What is known of a job besides its exit.
#[derive(Debug, Default)]
pub(super) struct JobHistory {
    pub(super) retry: Option<RetryReport>,
    pub(super) said: Option<AgentReport>,
    pub(super) reading: Option<Reading>,
}

impl History {
    /// A run that has not begun, with the lanes of `view`.
    pub(super) fn new(view: &RunView) -> Self {
        let dependencies = view.lanes().iter().map(|lane| (lane.id.clone(), lane.depends_on.clone()));
        Self { waits: WaitFold::new(dependencies), ..Self::default() }
    }

    /// Takes in a record that `view` has taken in already.
    pub(super) fn apply(&mut self, record: &Record, view: &RunView) {
        let at = record.at;
        for wait in self.waits.apply(record) {
            self.lanes.entry(wait.lane).or_default().waits.push((wait.from, wait.until));
        }
        match &record.event {
            Event::RunStarted(started) => self.started = Some((**started).clone()),
            Event::RunResumed { .. } => {
                self.stop = None;
                self.rests.extend(self.last.map(|last| (last, at)));
            }
            // Until then nobody worked on it, there or here.
            Event::RunMoved(_) => self.rests.extend(self.last.map(|last| (last, at))),
            Event::StopRequested { lane: None, reason, .. } => self.stop = Some(*reason),
            Event::Noted { lane, message } => {
                self.notes.push(Note { at, lane: lane.clone(), message: message.clone() });
            }
            Event::GitWorked { lane, took_ms } => self.git_worked(lane.as_ref(), at, *took_ms),
            Event::JobPlanned { job } => self.begin(job),
            Event::JobExited { job, report, reading, .. } => {
                let history = self.jobs.entry(job.clone()).or_default();
                history.said.clone_from(report);
                history.reading = reading.as_deref().cloned();
            }
            Event::RetryPlanned { lane, agent, level, not_before, checkpoint } => {
                let failure = view.lane(lane).and_then(|lane| lane.last_failure.as_ref());
                let retry = RetryReport {
                    level: *level,
                    number: checkpoint.retry_attempt,
                    of: checkpoint.max_retries,
                    reason: failure.map(|known| known.failure.message.clone()).unwrap_or_default(),
                    planned: at,
                    not_before: *not_before,
                };
                self.planned.insert((lane.clone(), agent.clone()), retry);
                self.delays.push((at, *not_before));
                self.reached(lane, checkpoint, at);
            }
            event => {
                if let Some(lane) = event.lane().and_then(|lane| view.lane(lane)) {
                    self.lanes.entry(lane.id.clone()).or_default().apply(event, lane, at);
                }
            }
        }
        self.last = Some(at);
    }

    /// An attempt of an agent that was told to try again is that retry.
    fn begin(&mut self, job: &JobId) {
        let (Some(lane), Some(agent)) = (&job.lane, job.agent().filter(|_| job.is_attempt())) else { return };
        let retry = self.planned.remove(&(lane.clone(), agent.clone()));
        self.jobs.entry(job.clone()).or_default().retry = retry;
    }

    /// It worked until now, as far as the log tells: the line was written when it had.
    fn git_worked(&mut self, lane: Option<&LaneId>, at: Timestamp, took_ms: u64) {
        let began = at.unix_millis().saturating_sub(i64::try_from(took_ms).unwrap_or(i64::MAX));
        let span = (Timestamp::from_unix_millis(began), at);
        self.git.push(span);
        if let Some(lane) = lane {
            self.lanes.entry(lane.clone()).or_default().git.push(span);
        }
    }

    fn reached(&mut self, lane: &LaneId, checkpoint: &Checkpoint, at: Timestamp) {
        self.lanes.entry(lane.clone()).or_default().reached(checkpoint, at);
    }
}

impl LaneHistory {
    fn apply(&mut self, event: &Event, lane: &LaneView, at: Timestamp) {
        match event {
            Event::FailureNoted { .. } => self.failures.extend(lane.last_failure.as_ref().map(FailureReport::from)),
            Event::CheckpointReached { checkpoint, .. } => self.reached(checkpoint, at),
            Event::AgentMerged { agent, head, .. } => {
                self.merges.push(MergeReport { at, agent: Some(agent.clone()), commit: head.clone(), onto: None });
            }
            Event::LaneMerged { commit, onto, .. } => {
                self.merges.push(MergeReport { at, agent: None, commit: commit.clone(), onto: Some(onto.clone()) });
            }
            Event::GateAnswered { gate, approved, message, .. } => {
                let message = message.clone();
                self.answers.push(AnswerReport { at, gate: gate.clone(), approved: *approved, message });
            }
            _ => {}
        }
    }

    fn reached(&mut self, checkpoint: &Checkpoint, at: Timestamp) {
        let Checkpoint { stage, status, context, .. } = checkpoint;
        self.checkpoints.push(CheckpointReport { at, stage: *stage, status: *status, notes: context.clone() });
    }
}

impl From<&FailureView> for FailureReport {
    fn from(view: &FailureView) -> Self {
        let FailureView { agent, task, failure, at, .. } = view.clone();
        Self { at, agent, task, failure }
    }
}
