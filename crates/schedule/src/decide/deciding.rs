//! Decisions in the making, and what those about lanes, agents and merges have in common.

use std::collections::BTreeSet;
use std::time::Duration;

use lanewright_model::event::{ChosenBy, Event, LaneStage, RunOutcome};
use lanewright_model::{AgentName, Checkpoint, Failure, JobRole, Lane, LaneId, LaneIndex, TaskId, Timestamp};

use crate::action::Action;
use crate::state::RunState;
use crate::state::agent::AgentStep;
use crate::state::gate::{FailedGate, Gate};
use crate::state::lane::LaneState;
use crate::state::lane::attempts::end_with;

/// What follows from a state at a moment.
#[derive(Debug, Default)]
pub struct Decisions {
    /// To be appended and applied before anything else happens.
    pub events: Vec<Event>,
    /// Wanted now; not to be acted upon while there are events.
    pub actions: Vec<Action>,
    /// When to ask again even if nothing happens.
    pub wake_at: Option<Timestamp>,
    /// The run has come to its end, once nothing that was acted upon is under way any more.
    pub finish: Option<Finish>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finish {
    pub outcome: RunOutcome,
    /// The exit code that says so (SPEC §2).
    pub code: u8,
}

/// The decisions in the making, with what is left to give away.
pub(crate) struct Deciding<'a> {
    pub(crate) state: &'a RunState,
    pub(crate) now: Timestamp,
    pub(crate) out: Decisions,
    /// Attempts that may still begin.
    pub(crate) places: usize,
    /// Paused accounts whose probe is among the decisions.
    pub(crate) probed: BTreeSet<String>,
}

impl<'a> Deciding<'a> {
    pub(crate) fn new(state: &'a RunState, now: Timestamp, places: usize) -> Self {
        Self { state, now, out: Decisions::default(), places, probed: BTreeSet::new() }
    }

    pub(crate) fn lane(&self, lane: LaneIndex) -> (&'a LaneState, &'a Lane) {
        (self.state.lane(lane), self.state.plan.lane(lane))
    }

    pub(crate) fn id(&self, lane: LaneIndex) -> LaneId {
        self.state.plan.lane(lane).id.clone()
    }

    pub(crate) fn note(&mut self, event: Event) {
        self.out.events.push(event);
    }

    pub(crate) fn fail(&mut self, lane: LaneIndex, failure: Failure) {
        self.note(end_with(self.id(lane), &failure));
    }

    pub(crate) fn block(&mut self, lane: LaneIndex, reason: String) {
        self.note(Event::LaneBlocked { lane: self.id(lane), reason });
    }

    /// Records a failure: of `agent`, which is to fix it, or of the lane; of `task`, or of the work as a whole.
    pub(crate) fn note_failure(
        &mut self,
        lane: LaneIndex,
        agent: Option<usize>,
        task: Option<&TaskId>,
        failure: Failure,
    ) {
        let agent = agent.map(|agent| self.state.plan.lane(lane).agents[agent].name.clone());
        self.note(Event::FailureNoted { lane: self.id(lane), agent, task: task.cloned(), failure });
    }

    pub(crate) fn want(&mut self, action: Action) {
        self.out.actions.push(action);
    }

    /// Asks to be asked again at `moment`; says whether it has come.
    pub(crate) fn due(&mut self, moment: Timestamp) -> bool {
        if moment <= self.now {
            return true;
        }
        self.out.wake_at = Some(self.out.wake_at.map_or(moment, |earlier| earlier.min(moment)));
        false
    }
}

pub(crate) fn move_on(deciding: &mut Deciding, lane: LaneIndex, to: LaneStage) {
    deciding.note(Event::LaneMoved { lane: deciding.id(lane), from: deciding.state.lane(lane).stage, to });
}

pub(crate) fn reach(deciding: &mut Deciding, lane: LaneIndex, checkpoint: Checkpoint) {
    deciding.note(Event::CheckpointReached { lane: Some(deciding.id(lane)), checkpoint });
}

/// One of the lane's candidates continues.
pub(crate) fn choose(deciding: &mut Deciding, lane: LaneIndex, candidate: usize, by: ChosenBy) {
    let agent = deciding.state.plan.lane(lane).agents[candidate].name.clone();
    deciding.note(Event::CandidateChosen { lane: deciding.id(lane), agent, by });
}

/// The lane is complete as it stands on its branch.
pub(crate) fn leave_branch(deciding: &mut Deciding, lane: LaneIndex) {
    let lane_state = deciding.state.lane(lane);
    if let (Some(commit), Some(onto)) = (lane_state.head().cloned(), lane_state.base().cloned()) {
        let plan = Some(deciding.state.digest_of_merge(lane));
        deciding.note(Event::LaneMerged { lane: deciding.id(lane), commit, onto, plan });
    }
}

/// Runs a gate of the lane; how it ended, once it has.
pub(crate) fn run_gate<'g>(
    deciding: &mut Deciding,
    lane: LaneIndex,
    gate: &'g Gate,
    role: impl FnOnce() -> JobRole,
) -> Option<Result<(), &'g FailedGate>> {
    match gate {
        Gate::Due => plan_job(deciding, lane, role()),
        Gate::Running(job) => deciding.want(Action::RunJob(job.clone())),
        Gate::Passed => return Some(Ok(())),
        Gate::Failed(gate) => return Some(Err(gate)),
    }
    None
}

/// Runs set-up commands; whether they passed. If they fail, the lane ends: no agent of it could fix that.
pub(crate) fn set_up(deciding: &mut Deciding, lane: LaneIndex, gate: &Gate, agent: Option<&AgentName>) -> bool {
    let ended = run_gate(deciding, lane, gate, || JobRole::Setup { agent: agent.cloned() });
    if let Some(Err(gate)) = ended {
        deciding.note_failure(lane, None, None, gate.failure("the setup failed"));
    }
    matches!(ended, Some(Ok(())))
}

fn plan_job(deciding: &mut Deciding, lane: LaneIndex, role: JobRole) {
    let job = deciding.state.next_job(Some(&deciding.id(lane)), role);
    deciding.note(Event::planned(job));
}

/// Has every running job of the lane stopped and what it leaves kept; nothing else.
pub(crate) fn stop_jobs(deciding: &mut Deciding, lane: LaneIndex, force: bool) {
    for job in deciding.state.lane(lane).running() {
        deciding.want(Action::StopJob { job: job.clone(), force });
    }
    wait_for_jobs(deciding, lane);
}

/// Waits for what runs and keeps what ended without success; begins nothing.
pub(crate) fn wait_for_jobs(deciding: &mut Deciding, lane: LaneIndex) {
    let lane_state = deciding.state.lane(lane);
    for job in lane_state.running() {
        deciding.want(Action::RunJob(job.clone()));
    }
    for (agent, worker) in lane_state.agents().iter().enumerate() {
        if let (AgentStep::Salvaging(reason, _), None) = (&worker.step, &worker.unkept) {
            let reason = *reason;
            deciding.want(Action::Snapshot { lane, agent, reason });
        }
    }
}

/// How long a lane may take when neither it nor a person is waited for.
pub(crate) fn lane_deadline(state: &RunState, lane: LaneIndex) -> Option<(Timestamp, Duration)> {
    let limit = state.plan.lane(lane).timeout?;
    Some((state.lane(lane).clock.deadline(limit)?, limit))
}
