//! The run itself, as its events so far describe it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use lanewright_model::event::{Event, Owner, Record, RunOutcome, RunStarted, StopReason};
use lanewright_model::text::headline;
use lanewright_model::{
    AgentName, Budget, CommitId, EventName, ExitCause, JobExit, LaneId, MergeMode, PhaseId, Plan, RunId, Timestamp,
    Usage, plan::Interface,
};
use serde::Serialize;
use serde_json::Value;

use super::job::Jobs;
use super::lane::Span;
use super::lane_events::span_before;
use super::pauses::Pauses;
use super::waits::{MergeQueue, Wait};
use super::workplace::{Workplace, worktree_link};

#[derive(Debug, Clone, Default)]
pub struct RunFacts {
    pub start: Option<Box<RunStarted>>,
    pub phase: Option<PhaseId>,
    pub title: Option<String>,
    /// Its interface freeze gates, as the plan has them.
    pub interfaces: Vec<InterfaceView>,
    /// Where the integration branch is, as far as this run moved it.
    pub integration: Option<CommitId>,
    pub owner: Option<Owner>,
    /// As the last resume changed it.
    pub budget: Budget,
    /// By all attempts, also of lanes that were rolled back.
    pub used: Usage,
    /// The same by runner, where the plan is known.
    pub used_by: BTreeMap<String, Usage>,
    /// The runners that the plan defines.
    pub(super) runners: BTreeSet<String>,
    /// Those of attempts that passed and reported neither tokens nor a cost.
    pub(super) unreported: BTreeSet<String>,
    pub started: Option<Timestamp>,
    /// `None` after a resume.
    pub finished: Option<Timestamp>,
    pub outcome: Option<RunOutcome>,
    pub code: Option<u8>,
    pub stop: Option<StopReason>,
    /// Why a person must act before the phase can end, other than for a lane or a gate.
    pub blocked: Option<String>,
    /// Why the forge could not be asked about pull requests when that was last tried.
    pub unanswered: Option<String>,
    pub resumes: u32,
    /// The lanes that the last resume continues, where it leaves others out; empty: all.
    pub resumed_lanes: Vec<LaneId>,
    /// When it was started or resumed last.
    pub begun: Option<Timestamp>,
    /// When the last event was recorded.
    pub last: Option<Timestamp>,
    /// When the last one was that is neither an answer of the user, an event of a caller nor of a rollback.
    last_worked: Option<Timestamp>,
    /// From the beginning of a rollback to the next resume.
    is_rolling_back: bool,
    /// The lane whose merge broke the final gate, where that was searched and found.
    pub culprit: Option<LaneId>,
    /// Those of no lane: the final gate.
    pub jobs: Jobs,
    /// Where the final gate runs.
    pub workplace: Workplace,
    pub notes: Vec<NoteView>,
    /// When no process worked on the run, neither Lanewright nor a job that outlived it.
    pub rests: Vec<Span>,
    /// When Lanewright was asleep.
    pub sleeps: Vec<Span>,
    /// When git worked for no lane.
    pub git: Vec<Span>,
    pub waits: Vec<Wait>,
    pub(super) merge_queue: MergeQueue,
    pub pauses: Pauses,
}

/// An interface freeze gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterfaceView {
    /// Its name, for example `IF-0-P1-LEDGER`.
    pub id: String,
    /// The lane whose merge closes it; null: no lane of this plan does.
    pub provider: Option<LaneId>,
    /// Whether what it names is fixed.
    pub closed: bool,
}

/// A message that was noted in the run log.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoteView {
    pub at: Timestamp,
    /// The lane; null: the phase.
    pub lane: Option<LaneId>,
    pub message: String,
}

/// How many characters are shown of an event that a caller recorded.
const LOGGED: usize = 400;

/// An event that a caller recorded: `deployed {"to":"staging"}`.
pub(crate) fn event_logged(name: &EventName, data: Option<&Value>) -> String {
    data.map_or_else(|| name.to_string(), |data| headline(&format!("{name} {data}"), LOGGED))
}

impl RunFacts {
    pub(super) fn of_plan(plan: &Plan) -> Self {
        let interface = |interface: &Interface| InterfaceView {
            id: interface.id.clone(),
            provider: interface.provider.map(|lane| plan.lane(lane).id.clone()),
            closed: interface.closed,
        };
        Self {
            phase: Some(plan.phase.clone()),
            title: plan.title.clone(),
            interfaces: plan.interfaces.iter().map(interface).collect(),
            runners: plan.runners.keys().cloned().collect(),
            ..Self::default()
        }
    }

    pub fn run_id(&self) -> Option<&RunId> {
        self.start.as_ref().map(|start| &start.run_id)
    }

    /// Empty before the run was started.
    pub fn base_branch(&self) -> &str {
        self.start.as_ref().map_or("", |start| &start.base_branch)
    }

    /// The link to the worktree of a lane or an agent that is named after it.
    pub fn link(&self, lane: &LaneId, agent: Option<&AgentName>) -> Option<PathBuf> {
        self.start.as_ref().map(|start| worktree_link(start, lane, agent))
    }

    /// Whether this run merges finished lanes into the integration branch.
    pub fn merges(&self) -> bool {
        self.start.as_ref().is_none_or(|start| start.options.merge == MergeMode::Local)
    }

    /// Whether this run proposes finished lanes in pull requests.
    pub fn proposes(&self) -> bool {
        self.start.as_ref().is_some_and(|start| start.options.merge == MergeMode::Pr)
    }

    /// Up to when times are counted: the end of the run, or `now`.
    pub fn until(&self, now: Timestamp) -> Timestamp {
        self.finished.unwrap_or(now)
    }

    /// The final gate's last run, if it failed.
    pub fn failed_final_gate(&self) -> Option<&JobExit> {
        self.jobs.ended.last()?.exit.as_ref().filter(|exit| !exit.passed())
    }

    /// Applies a record that is about no lane.
    pub(super) fn apply(&mut self, record: &Record) {
        let at = record.at;
        self.pauses.apply(record);
        match &record.event {
            Event::RunStarted(started) => {
                self.start = Some(started.clone());
                self.phase = Some(started.phase.clone());
                self.integration = Some(started.base_commit.clone());
                self.owner = Some(started.owner.clone());
                self.budget = started.options.budget;
                (self.started, self.begun) = (Some(at), Some(at));
            }
            Event::RunResumed { number, owner, budget, lanes, .. } => {
                self.resumes = *number;
                self.resumed_lanes.clone_from(lanes);
                self.owner = Some(owner.clone());
                self.budget = budget.unwrap_or(self.budget);
                self.stop = None;
                self.culprit = None;
                self.begun = Some(at);
                self.reopen();
            }
            Event::StopRequested { reason, .. } => self.stop = Some(*reason),
            Event::PhaseBlocked { reason } => self.blocked = Some(reason.clone()),
            Event::PullRequestsChecked { error } => {
                self.unanswered = Some(error.clone()).filter(|error| !error.is_empty());
            }
            Event::RunFinished { outcome, code } => {
                (self.outcome, self.code) = (Some(*outcome), Some(*code));
                // A rollback is no work on the run, which ended before.
                let before = self.finished.or(self.last_worked).filter(|_| *outcome == RunOutcome::RolledBack);
                self.finished = before.or(Some(at));
            }
            Event::MergesBisected { culprit, .. } => {
                self.culprit = culprit.as_deref().and_then(|culprit| culprit.parse().ok());
            }
            Event::FinalOpened { worktree } => self.workplace.open(worktree),
            Event::PoolEmptied { .. } => self.workplace.worktree = None,
            Event::CheckpointReached { checkpoint, .. } => {
                self.workplace.checkpoint_head = checkpoint.head_sha.clone().or(self.workplace.checkpoint_head.take());
            }
            Event::GitWorked { took_ms, .. } => self.git.push(span_before(at, *took_ms)),
            event => self.jobs.apply(event, at, None),
        }
    }

    fn reopen(&mut self) {
        (self.outcome, self.code, self.finished) = (None, None, None);
        (self.blocked, self.unanswered) = (None, None);
    }

    /// There is something left to do in a run that has ended: it is stopped until it is resumed.
    fn mark_stopped(&mut self) {
        if self.finished.is_some() {
            (self.outcome, self.code) = (Some(RunOutcome::Stopped), None);
        }
    }

    /// A job that outlived Lanewright worked on the run until its end.
    fn note_surviving_job(&mut self, exit: &JobExit) {
        // Nothing is known of the end of a lost job.
        if matches!(exit.cause, ExitCause::Lost | ExitCause::NotStarted) {
            return;
        }
        for (from, until) in self.rests.iter_mut().filter(|(_, until)| exit.started_at < *until) {
            *from = exit.finished_at.min(*until).max(*from);
        }
        // What ended meanwhile was not asleep: Lanewright alone was stopped.
        let is_within = |(from, until): &&mut Span| *from < exit.finished_at && exit.finished_at < *until;
        self.sleeps.iter_mut().filter(is_within).for_each(|(from, _)| *from = exit.finished_at);
    }

    /// Notes what an event of any lane, or of none, means for the run. `last`: when the event before was recorded.
    pub(super) fn note(&mut self, record: &Record, last: Option<Timestamp>) {
        match &record.event {
            Event::JobExited { exit, transcript, .. } => {
                self.used += transcript.as_ref().map(|transcript| transcript.usage).unwrap_or_default();
                self.note_surviving_job(exit);
            }
            // Until then no process worked on the run, on this machine or another. What was answered meanwhile is no work.
            Event::RunResumed { .. } | Event::RunMoved(_) => {
                let from = self.finished.or(self.last_worked).or(last);
                self.rests.extend(from.map(|from| (from, record.at)));
                self.is_rolling_back = false;
            }
            Event::Slept { duration } => {
                self.sleeps.push(span_before(record.at, u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
            }
            Event::Noted { lane, message } => {
                self.notes.push(NoteView { at: record.at, lane: lane.clone(), message: message.clone() });
            }
            Event::EventLogged { lane, name, data } => {
                let message = event_logged(name, data.as_ref());
                self.notes.push(NoteView { at: record.at, lane: lane.clone(), message });
            }
            Event::LaneMerged { commit, .. } if self.merges() => self.integration = Some(commit.clone()),
            Event::LaneSkipped { .. } => self.mark_stopped(),
            Event::RollbackBegun { .. } => {
                self.mark_stopped();
                self.is_rolling_back = true;
            }
            Event::LaneRolledBack { integration, .. } => {
                self.integration = integration.clone().or(self.integration.take());
                self.mark_stopped();
            }
            _ => {}
        }
        let is_no_work =
            matches!(record.event, Event::GateAnswered { .. } | Event::LaneSkipped { .. } | Event::EventLogged { .. });
        if !is_no_work && !self.is_rolling_back {
            self.last_worked = Some(record.at);
        }
    }
}
