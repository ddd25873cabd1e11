//! The state of a run: what its events add up to.

pub(crate) mod agent;
pub(crate) mod following;
pub(crate) mod gate;
pub(crate) mod indexes;
pub(crate) mod lane;
pub(crate) mod next_choice;
pub(crate) mod no_progress;
pub mod pauses;
pub(crate) mod runners;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use lanewright_model::event::{Event, LaneStage, Owner, RunOutcome, RunStarted, StopReason, Worktree};
use lanewright_model::plan::SPECIALIST_TIME_LIMIT;
use lanewright_model::text::shell_line;
use lanewright_model::{
    Agent, Approval, Budget, CommitId, Follow, HumanGate, JobId, JobRole, LaneId, LaneIndex, MergeMode, Plan,
    PullRequestState, Round, Timestamp, Usage,
};

use crate::state::following::Following;
use crate::state::gate::Gate;
use crate::state::indexes::LaneIndexes;
use crate::state::lane::{LaneEnd, LaneState, approval_at};
use crate::state::no_progress::NoProgress;
use crate::state::pauses::Pauses;

/// A run, folded from its events.
#[derive(Debug, Clone)]
pub struct RunState {
    pub(crate) plan: Arc<Plan>,
    pub(crate) started: Option<Box<RunStarted>>,
    pub(crate) lanes: Vec<LaneState>,
    /// The highest number used for each kind of job, so that no name is ever used again.
    pub(crate) job_numbers: HashMap<(Option<LaneId>, JobRole), u32>,
    /// Lanes by how they stand.
    pub(crate) indexes: LaneIndexes,
    /// Lanes that want to be merged, first come first served.
    pub(crate) merge_queue: VecDeque<LaneIndex>,
    pub(crate) running_attempts: usize,
    /// Accounts of runners whose attempts wait.
    pub(crate) pauses: Pauses,
    pub(crate) following: Following,
    pub(crate) integration: Option<CommitId>,
    pub(crate) final_worktree: Option<Worktree>,
    pub(crate) final_gate: Gate,
    pub(crate) final_no_progress: NoProgress,
    /// Merges of lanes into the integration branch, oldest first, with what it was then.
    pub(crate) merges: Vec<(LaneIndex, CommitId)>,
    /// What the integration branch was before the first of them, where that is not the run's base.
    pub(crate) searched_from: Option<CommitId>,
    /// The merges were searched for the one that broke the final gate.
    pub(crate) bisected: bool,
    pub(crate) blocked: Option<String>,
    pub(crate) stop: Option<StopState>,
    pub(crate) finished: Option<(RunOutcome, u8)>,
    pub(crate) pool_emptied: bool,
    pub(crate) resumes: u32,
    /// The process that worked on it last.
    pub(crate) owner: Option<Owner>,
    /// How many lanes had failed when it was resumed and stay as they are.
    pub(crate) failed_before: usize,
    /// What all attempts used, of lanes that were rolled back as well.
    pub(crate) used: Usage,
    /// The same by lane, and by runner.
    pub(crate) used_in: HashMap<LaneIndex, Usage>,
    pub(crate) used_by: HashMap<String, Usage>,
    /// When this life of the run began.
    pub(crate) alive_since: Option<Timestamp>,
    /// Lanes as they were after certain records, once these were applied: rollbacks take them back there.
    pub(crate) points: HashMap<(LaneIndex, u64), Option<LaneState>>,
}

/// A request to stop, as hard as the hardest one made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopState {
    /// Of the first request.
    pub reason: StopReason,
    /// Kill instead of asking.
    pub force: bool,
}

impl RunState {
    /// The state before the first event.
    pub fn new(plan: Arc<Plan>) -> Self {
        let weight = |lane: LaneIndex| plan_weight(&plan, lane);
        let lanes = plan.indices().map(|lane| LaneState::new(plan.lane(lane), plan.dag().dependencies(lane).len()));
        Self {
            started: None,
            lanes: lanes.collect(),
            job_numbers: HashMap::new(),
            indexes: LaneIndexes::new(&plan, plan.dag().remaining(weight)),
            merge_queue: VecDeque::new(),
            running_attempts: 0,
            pauses: Pauses::default(),
            following: Following::default(),
            integration: None,
            final_worktree: None,
            final_gate: Gate::Due,
            final_no_progress: NoProgress::default(),
            merges: Vec::new(),
            searched_from: None,
            bisected: false,
            blocked: None,
            stop: None,
            finished: None,
            pool_emptied: false,
            resumes: 0,
            owner: None,
            failed_before: 0,
            used: Usage::default(),
            used_in: HashMap::new(),
            used_by: HashMap::new(),
            alive_since: None,
            points: HashMap::new(),
            plan,
        }
    }

    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The first event, if there was one.
    pub fn started(&self) -> Option<&RunStarted> {
        self.started.as_deref()
    }

    /// How finished lanes reach the integration branch.
    pub(crate) fn merge_mode(&self) -> Option<MergeMode> {
        self.started.as_ref().map(|started| started.options.merge)
    }

    /// The delay of a first retry.
    pub(crate) fn first_backoff(&self) -> Duration {
        self.started.as_ref().map_or(Duration::ZERO, |started| started.options.backoff)
    }

    /// How pull requests are followed.
    pub fn follow(&self) -> Option<Follow> {
        self.following.given().or(self.started.as_ref()?.options.follow)
    }

    /// Whether the event is an answer of the forge about what is no more: a lane that continued or was stopped meanwhile, or a
    /// pull request that was merged.
    pub(crate) fn is_stale(&self, event: &Event) -> bool {
        let lane = |lane: &LaneId| self.find(lane).map(|lane| self.lane(lane));
        match event {
            Event::FeedbackReceived { lane: id, remarks, .. } => lane(id).is_some_and(|lane| {
                !lane.is_followed() || remarks.iter().all(|remark| lane.proposal().is_answered(&remark.id))
            }),
            Event::PullRequestChanged { lane: id, status } => lane(id).is_some_and(|lane| {
                let is_merged = lane.proposal().status().is_some_and(|known| known.state == PullRequestState::Merged);
                is_merged || !lane.is_followed() && !status.is_closed()
            }),
            _ => false,
        }
    }

    /// Whether this is the run of one lane that another run placed on a cluster.
    pub(crate) fn is_lane_run(&self) -> bool {
        self.started.as_ref().is_some_and(|started| started.options.placed_by.is_some())
    }

    /// The executor that the lane is to work on; `None`: here.
    pub(crate) fn executor(&self, lane: LaneIndex) -> Option<&str> {
        self.plan.lane(lane).executor.as_deref().filter(|_| !self.is_lane_run())
    }

    /// Why no more agents may be started, if the budget is used up.
    pub(crate) fn budget_exhausted(&self) -> Option<String> {
        let started = self.started.as_ref()?;
        let budget = &started.options.budget;
        let exhausted = budget.exhausted_by(&self.used)?;
        let words = ["lanewright", "resume", started.run_id.as_str()].map(str::to_owned).into_iter();
        Some(format!("{exhausted}; to continue: `{}`", shell_line(words.chain(budget.flags_for_more(&self.used)))))
    }

    /// The same of the lane's own budget.
    pub(crate) fn budget_exhausted_in(&self, lane: LaneIndex) -> Option<String> {
        let (plan, used) = (self.plan.lane(lane), self.used_in.get(&lane)?);
        let exhausted = plan.budget.exhausted_by(used)?;
        Some(format!(
            "{exhausted} of the lane; to continue, raise its `max_cost` or `max_tokens` in the plan, and resume with --accept-plan-change"
        ))
    }

    /// What the lane may use, if all that have begun share what is left of the run's budget.
    pub(crate) fn budget_part(&self, lane: LaneIndex) -> Budget {
        let budget = self.started.as_ref().map(|started| started.options.budget).unwrap_or_default();
        let used = self.used_in.get(&lane).copied().unwrap_or_default();
        let own = self.plan.lane(lane).budget.part_left(&used, 1);
        budget.part_left(&self.used, self.indexes.active().len()).and(own)
    }

    /// The lane as it was after the record `seq`, if that was expected and applied.
    pub fn point(&self, lane: LaneIndex, seq: u64) -> Option<&LaneState> {
        self.points.get(&(lane, seq))?.as_ref()
    }

    /// Notes what [`Self::point`] would return, had the record been expected.
    pub fn note_point(&mut self, lane: LaneIndex, seq: u64, then: LaneState) {
        self.points.insert((lane, seq), Some(then));
    }

    pub fn lane(&self, index: LaneIndex) -> &LaneState {
        &self.lanes[index.at()]
    }

    /// The digest that the merge of the lane records; empty: it was made without a lane that it depends on.
    pub fn digest_of_merge(&self, lane: LaneIndex) -> String {
        let is_whole = !self.plan.dag().dependencies(lane).iter().any(|on| self.lane(*on).is_skipped());
        if is_whole { self.plan.lane_digest(lane).to_owned() } else { String::new() }
    }

    /// The moves of agents ([`Event::AgentMoved`]) that the log does not have yet.
    pub fn unrecorded_moves(&self) -> Vec<Event> {
        let mut moves = Vec::new();
        for &lane in self.indexes.moved() {
            let plan = self.plan.lane(lane);
            for (agent, worker) in plan.agents.iter().zip(self.lane(lane).agents()) {
                let recorded = |(from, to)| {
                    let (lane, agent) = (plan.id.clone(), agent.name.clone());
                    Event::AgentMoved { lane, agent, from, to }
                };
                moves.extend(worker.phase.unrecorded().map(recorded));
            }
        }
        moves
    }

    /// Where the lane of that name stands in the plan.
    pub fn find(&self, lane: &LaneId) -> Option<LaneIndex> {
        self.plan.find(lane)
    }

    /// Whether the plan has the lane, and the lane the agent, that an event of another process is about.
    pub fn has_subject_of(&self, event: &Event) -> bool {
        let Some(lane) = event.lane() else { return true };
        let Some(index) = self.find(lane) else { return false };
        match event {
            Event::SnapshotTaken { agent: Some(agent), .. } => {
                self.plan.lane(index).agents.iter().any(|known| known.name == *agent)
            }
            _ => true,
        }
    }

    /// How the run ended, if it did, and the exit code that says so.
    pub fn finished(&self) -> Option<(RunOutcome, u8)> {
        self.finished
    }

    pub fn stop(&self) -> Option<StopState> {
        self.stop
    }

    /// Why the phase as a whole is blocked, if it is.
    pub fn blocked(&self) -> Option<&str> {
        self.blocked.as_deref()
    }

    /// The integration branch as the run last knew it.
    pub fn integration(&self) -> Option<&CommitId> {
        self.integration.as_ref()
    }

    /// Merges of lanes into the integration branch, oldest first, with what it was then.
    pub fn merges(&self) -> &[(LaneIndex, CommitId)] {
        &self.merges
    }

    /// What the integration branch was before the first of these merges, where that is not the run's base.
    pub fn merges_began_at(&self) -> Option<&CommitId> {
        self.searched_from.as_ref()
    }

    pub fn final_worktree(&self) -> Option<&Worktree> {
        self.final_worktree.as_ref()
    }

    /// The round whose agents work in the lane now.
    pub fn round_at_work(&self, lane: LaneIndex) -> Option<Round> {
        let stage = self.lane(lane).stage;
        let works = matches!(stage, LaneStage::Requirements | LaneStage::Implementation | LaneStage::Review);
        self.current_round(lane).filter(|_| works)
    }

    /// The gates at which the lane waits for a person, in the order of the plan.
    pub fn open_gates(&self, lane: LaneIndex) -> Vec<HumanGate> {
        let (plan, state) = (self.plan().lane(lane), self.lane(lane));
        if state.end.is_some() {
            return Vec::new();
        }
        let approval = approval_at(state.stage).filter(|gate| state.needs(plan, *gate)).map(HumanGate::from);
        let tasks = (0..plan.agents.len()).filter_map(|agent| state.asks(plan, agent)).cloned().map(HumanGate::Task);
        let mut gates: Vec<HumanGate> = approval.into_iter().chain(tasks).collect();
        gates.retain(|gate| state.answer(gate).is_none());
        gates.dedup();
        gates
    }

    /// Whether how much the lane changed decides about an approval.
    pub(crate) fn may_need_approval_of_changes(&self, lane: LaneIndex) -> bool {
        let protects = || self.started().is_some_and(|started| !started.options.protect.is_empty());
        self.plan.lane(lane).needs(Approval::Changes) || protects()
    }

    /// Whether it does, and is not known for the lane's head.
    pub(crate) fn has_changes_to_measure(&self, lane: LaneIndex) -> bool {
        let state = self.lane(lane);
        self.may_need_approval_of_changes(lane) && state.validation.changes(state.head()).is_none()
    }

    /// Whether no step of Lanewright can have been interrupted in the lane: what differs there from the run log was
    /// changed by another program.
    pub fn is_changed_by_others_only(&self, index: LaneIndex) -> bool {
        let (lane, plan) = (self.lane(index), self.plan().lane(index));
        if lane.merged().is_some() || lane.is_interrupted() || !lane.is_quiet() {
            return false;
        }
        let has_ended = self.finished().is_some();
        match lane.end() {
            Some(LaneEnd::Failed(_) | LaneEnd::Blocked(_)) => has_ended || !lane.has_unrecorded_step(plan),
            Some(_) => false,
            None => has_ended || lane.is_parked(plan) && !lane.has_unrecorded_step(plan),
        }
    }

    /// Whether a lane waits for an answer of the user.
    pub fn asks_user(&self) -> bool {
        self.plan().indices().any(|lane| !self.open_gates(lane).is_empty())
    }

    /// The process that worked on the run last.
    pub fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref()
    }

    pub fn resumes(&self) -> u32 {
        self.resumes
    }

    pub fn running_attempts(&self) -> usize {
        self.running_attempts
    }

    /// Whether that attempt runs.
    pub(crate) fn runs(&self, job: &JobId) -> bool {
        let lane = job.lane.as_ref().and_then(|lane| self.find(lane));
        lane.is_some_and(|lane| self.lane(lane).running().contains(job))
    }

    /// Every job of this machine that was started or planned and has not ended.
    pub fn running_jobs(&self) -> impl Iterator<Item = &JobId> {
        let here = self.lanes.iter().filter(|lane| !lane.is_elsewhere());
        here.flat_map(LaneState::running).chain(self.final_gate.job())
    }

    /// How long the path from where the lane stands to the end takes at most, in seconds.
    pub(crate) fn remaining(&self, lane: LaneIndex) -> u64 {
        let agents = self.plan.lane(lane).agents.iter().zip(self.lane(lane).agents());
        let agents = agents.filter(|(agent, _)| !works_beside(agent));
        let done = agents.map(|(agent, worker)| seconds(&self.plan, agent, worker.task)).sum();
        self.indexes.path(lane).saturating_sub(done)
    }

    /// The name that the next job of that kind gets.
    pub fn next_job(&self, lane: Option<&LaneId>, role: JobRole) -> JobId {
        let key = (lane.cloned(), role);
        let number = self.job_numbers.get(&key).copied().unwrap_or(0) + 1;
        JobId { lane: key.0, role: key.1, number }
    }
}

/// How long a lane takes at most, in seconds: what the longest remaining path is measured by.
pub(crate) fn plan_weight(plan: &Plan, lane: LaneIndex) -> u64 {
    let agents = plan.lane(lane).agents.iter().filter(|agent| !works_beside(agent));
    agents.map(|agent| seconds(plan, agent, agent.tasks.len())).sum::<u64>().max(1)
}

/// Whether it is a candidate beside the first one, which takes as long.
fn works_beside(agent: &Agent) -> bool {
    agent.candidate.is_some_and(|number| number > 1)
}

/// How long the first `tasks` of an agent's tasks take at most.
fn seconds(plan: &Plan, agent: &Agent, tasks: usize) -> u64 {
    (0..tasks).map(|task| agent.time_limit(task, &plan.timeouts, SPECIALIST_TIME_LIMIT).as_secs()).sum()
}
