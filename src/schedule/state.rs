//! The state of a run: what its events add up to.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::agent_machine::AgentPhase;
use super::gate::Gate;
use super::in_vain::InVain;
use super::lists::Lists;
use super::people::approval_at;
use super::proposal::ProposalState;
use crate::event::{Event, LaneStage, RunOutcome, RunStarted, SnapshotReason, StopReason, Worktree};
use crate::model::plan::SPECIALIST_TIME_LIMIT;
use crate::model::text::shell_line;
use crate::model::{
    Agent, AgentName, Approval, CommitId, Failure, HumanGate, JobId, JobRole, Lane, LaneId, LaneIndex, Plan, Session,
    Stage, TaskId, Timestamp, Usage, Verdict,
};

/// A run, folded from its events.
#[derive(Debug, Clone)]
pub struct RunState {
    pub(super) plan: Arc<Plan>,
    pub(super) started: Option<Box<RunStarted>>,
    pub(super) lanes: Vec<LaneState>,
    /// The highest number used for each kind of job, so that no name is ever used again.
    pub(super) job_numbers: HashMap<(Option<LaneId>, JobRole), u32>,
    /// Lanes by how they stand.
    pub(super) lists: Lists,
    /// Lanes that want to be merged, first come first served.
    pub(super) merge_queue: VecDeque<LaneIndex>,
    pub(super) running_attempts: usize,
    pub(super) integration: Option<CommitId>,
    pub(super) final_worktree: Option<Worktree>,
    pub(super) final_gate: Gate,
    pub(super) final_in_vain: InVain,
    /// Merges of lanes into the integration branch, oldest first, with what it was then.
    pub(super) merges: Vec<(LaneIndex, CommitId)>,
    /// What the integration branch was before the first of them, where that is not the run's base.
    pub(super) searched_from: Option<CommitId>,
    /// The merges were searched for the one that broke the final gate.
    pub(super) bisected: bool,
    pub(super) blocked: Option<String>,
    pub(super) stop: Option<StopState>,
    pub(super) finished: Option<(RunOutcome, u8)>,
    pub(super) pool_emptied: bool,
    pub(super) resumes: u32,
    /// What all attempts used, of lanes that were put back as well.
    pub(super) used: Usage,
    /// When this life of the run began.
    pub(super) alive_since: Option<Timestamp>,
}

/// A request to stop, as hard as the hardest one made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopState {
    /// Who asked first.
    pub reason: StopReason,
    /// Kill instead of asking.
    pub force: bool,
}

/// One lane.
#[derive(Debug, Clone)]
pub struct LaneState {
    /// Where it stands.
    pub stage: LaneStage,
    /// How it ended, if it did.
    pub end: Option<LaneEnd>,
    /// Dependencies that are not merged yet.
    pub missing: usize,
    /// What it is built on.
    pub base: Option<CommitId>,
    /// The first of its ports; 0 before it has any.
    pub port: u16,
    /// Its own worktree.
    pub worktree: Option<Worktree>,
    /// Its branch's head.
    pub head: Option<CommitId>,
    /// Its `setup` commands.
    pub setup: Gate,
    /// Its agents, in the order of the plan.
    pub agents: Vec<AgentState>,
    /// Agents whose work is taken into the lane, one at a time, first come first served.
    pub intake: VecDeque<usize>,
    /// Merges of agents into the lane since it stands on its base, oldest first: whose, and the lane's head after it.
    pub merges: Vec<(usize, CommitId)>,
    /// Whose merge broke the tests that failed last, once that was searched; the inner `None`: nobody's.
    pub culprit: Option<Option<usize>>,
    /// How often a gate failed on the lane as a whole and nobody could tell of which kind that was.
    pub misunderstood: u32,
    /// Who is to mend that; `None` once that one's work is in the lane again.
    pub mender: Option<usize>,
    /// Its tests, on its branch.
    pub tests: Gate,
    /// Its tests, on the merged result.
    pub merged_tests: Gate,
    /// What became of its must-haves, and at which head.
    pub must_haves: Option<(CommitId, Vec<Verdict>)>,
    /// The checkpoints it reached on its present way.
    pub checkpoints: BTreeSet<Stage>,
    /// The answers that people gave.
    pub answers: BTreeMap<HumanGate, Answer>,
    /// What people said when they resumed the run, oldest first.
    pub remarks: Vec<String>,
    /// How often it went back to be mended.
    pub rework: u32,
    /// A merge that is made and not published.
    pub staged: Option<StagedMerge>,
    /// What the lane must be put onto before its agents go on.
    pub rebuild: Option<Rebuild>,
    /// The integration branch with its work in it; with `--merge none` and `pr` the lane's own head.
    pub merged: Option<CommitId>,
    /// What the remote and the forge have of it.
    pub proposal: ProposalState,
    /// Jobs that were started and have not ended.
    pub running: BTreeSet<JobId>,
    /// It was asked to stop; nothing new begins in it.
    pub stopping: Option<bool>,
    /// A failure that was noted for the lane and has not been acted upon.
    pub failure: Option<Failure>,
    /// Since when its time limit counts.
    pub clock: Option<Timestamp>,
    /// When it came to its stage, or somebody began to put it back; a resume changes nothing of that. What is kept of
    /// its worktree is named by it, so that who is asked again finds what was kept before.
    pub stands_since: Option<Timestamp>,
    /// Since when it waits for a person.
    pub parked_since: Option<Timestamp>,
    /// The refs that keep its snapshots, and what they keep.
    pub snapshots: Vec<(String, CommitId)>,
    /// Somebody began to put it back and has not come to the end of that.
    pub rolling_back: bool,
    /// Decisions that came to nothing and are made again.
    pub(super) in_vain: InVain,
}

/// How a lane ended.
#[derive(Debug, Clone, PartialEq)]
pub enum LaneEnd {
    /// Its work is where it belongs and it is cleaned up.
    Merged,
    /// An earlier run merged it.
    MergedBefore,
    /// It is not part of this run.
    Left,
    /// No retry is left.
    Failed(Failure),
    /// Something outside must change first.
    Blocked(String),
}

/// A person's answer at a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Yes or no.
    pub approved: bool,
    /// What was said.
    pub message: String,
}

/// A merge that is made and not published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedMerge {
    /// The integration branch it was made for.
    pub onto: CommitId,
    /// The merge.
    pub commit: CommitId,
    /// Whether the lane's tests have not seen all that it holds.
    pub moved: bool,
}

/// What a lane is put onto before its agents go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebuild {
    /// The integration branch alone: the lane's work does not merge and is done again.
    OnIntegration,
    /// The lane's own work merged with the integration branch: it merges, and its tests fail.
    OnMerge(CommitId),
}

/// One agent of a lane.
#[derive(Debug, Clone)]
pub struct AgentState {
    /// Where its work stands, in the words of seed 000.
    pub phase: AgentPhase,
    /// What comes next.
    pub step: AgentStep,
    /// The task it is at.
    pub task: usize,
    /// Retries used for that task.
    pub retries: u32,
    /// The number of its last attempt at that task.
    pub attempt: u32,
    /// Its worktree; the lane's, where it shares that.
    pub worktree: Option<Worktree>,
    /// Its `setup` commands.
    pub setup: Gate,
    /// Where its branch began: what it changed is told against this.
    pub start: Option<CommitId>,
    /// Its branch's head.
    pub head: Option<CommitId>,
    /// Files that it changed since its worktree was opened.
    pub changed: Vec<String>,
    /// Its branch's head when its last task passed.
    pub good: Option<CommitId>,
    /// The same for every task that passed since `start`, oldest first.
    pub passed: Vec<CommitId>,
    /// What went wrong before, oldest first.
    pub past: Vec<PastFailure>,
    /// Level 2 was reached in its task: the next attempt is the last.
    pub rolled_back: bool,
    /// Its next failure costs no retry: a gate was run again before the agent, or its session was gone.
    pub excused: bool,
    /// The network or a quota is out.
    pub outage: Option<OutageState>,
    /// Snapshots of work that was put aside, newest last.
    pub salvaged: Vec<String>,
    /// Where its next attempt starts from.
    pub restart: RestartFrom,
    /// The session of its runner in which the next attempt can go on.
    pub session: Option<Session>,
    /// What a reviewer that said no wants changed.
    pub rejection: Option<String>,
    /// It says itself that its task is complete.
    pub claims_completion: bool,
    /// What its last attempt said that ended well.
    pub said: Vec<String>,
    /// Since when its state is to be kept: the name of the snapshot, also when it is asked for again.
    pub keep_since: Option<Timestamp>,
    /// Why what it left could not be kept, although the next attempt is to start from somewhere else.
    pub unkept: Option<String>,
}

/// A failure that was noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastFailure {
    /// In which task; `None`: of the whole of the agent's work.
    pub task: Option<TaskId>,
    /// What it adds to `failure_context`; nothing for an outage, of which there is nothing to learn.
    pub context: Vec<String>,
    /// What it has in common with the same failure.
    pub signature: String,
    /// What a gate complained about, each with its place.
    pub complaints: Vec<String>,
}

/// Something outside that is out, and how long one has waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutageState {
    /// Since when attempts have failed for it, one after another.
    pub since: Timestamp,
    /// How often one has waited.
    pub waits: u32,
    /// How long the service asks to wait.
    pub retry_after: Option<Duration>,
    /// It has been out for longer than one waits.
    pub given_up: bool,
}

/// What comes next for an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentStep {
    /// Its next attempt can begin once its worktree is open and there is a place.
    Ready,
    /// Its next task is a person's, who is asked.
    Asking,
    /// An attempt runs.
    Running(JobId),
    /// An attempt succeeded; what it left is committed.
    Committing,
    /// The task's own gate.
    Verifying(Gate),
    /// The task passed; its state is kept.
    Snapshotting,
    /// All tasks are done; the lane takes the work in.
    Merging,
    /// The work is in the lane; the `checkpoint` gate runs.
    Gating(Gate),
    /// Something failed and is not noted yet.
    Judging(Failure),
    /// What a failure or a stop left is kept before anything else happens.
    Salvaging(SnapshotReason, Option<Failure>),
    /// Kept; either tried again or given up.
    Failed(Failure),
    /// A retry begins at that moment, from there.
    Retrying(Timestamp),
    /// The agent says that something outside must come first.
    Blocked(String),
    /// Its work is in the lane, or its word is given.
    Done,
    /// No retry is left.
    GaveUp(Failure),
}

/// Where a retry starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartFrom {
    /// The worktree as the failed attempt left it.
    Here,
    /// The last state that passed its gate.
    LastGood,
    /// The lane's head.
    LaneHead,
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
            lists: Lists::new(&plan, plan.dag().remaining(weight)),
            merge_queue: VecDeque::new(),
            running_attempts: 0,
            integration: None,
            final_worktree: None,
            final_gate: Gate::Due,
            final_in_vain: InVain::default(),
            merges: Vec::new(),
            searched_from: None,
            bisected: false,
            blocked: None,
            stop: None,
            finished: None,
            pool_emptied: false,
            resumes: 0,
            used: Usage::default(),
            alive_since: None,
            plan,
        }
    }

    /// The plan that is run.
    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// The first event, if there was one.
    pub fn started(&self) -> Option<&RunStarted> {
        self.started.as_deref()
    }

    /// Why nobody may be set to work any more, where the budget is used up.
    pub(super) fn budget_exhausted(&self) -> Option<String> {
        let started = self.started.as_ref()?;
        let budget = &started.options.budget;
        let exhausted = budget.exhausted_by(&self.used)?;
        let words = ["lanekeeper", "resume", started.run_id.as_str()].map(str::to_owned).into_iter();
        Some(format!("{exhausted}; to continue: `{}`", shell_line(words.chain(budget.flags_for_more(&self.used)))))
    }

    /// The lane at `index`.
    pub fn lane(&self, index: LaneIndex) -> &LaneState {
        &self.lanes[index.at()]
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

    /// Whether the run was asked to stop.
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

    /// Where the final gate runs.
    pub fn final_worktree(&self) -> Option<&Worktree> {
        self.final_worktree.as_ref()
    }

    /// How often the run was resumed.
    pub fn resumes(&self) -> u32 {
        self.resumes
    }

    /// How many attempts run now.
    pub fn running_attempts(&self) -> usize {
        self.running_attempts
    }

    /// Every job that was started or planned and has not ended.
    pub fn running_jobs(&self) -> impl Iterator<Item = &JobId> {
        let last = match &self.final_gate {
            Gate::Running(job) => Some(job),
            _ => None,
        };
        self.lanes.iter().flat_map(|lane| &lane.running).chain(last)
    }

    /// How long the path from where the lane stands to the end takes at most, in seconds.
    pub(super) fn remaining(&self, lane: LaneIndex) -> u64 {
        let agents = self.plan.lane(lane).agents.iter().zip(&self.lane(lane).agents);
        let done = agents.map(|(agent, worker)| seconds(&self.plan, agent, worker.task)).sum();
        self.lists.path(lane).saturating_sub(done)
    }

    /// The name that the next job of that kind gets.
    pub fn next_job(&self, lane: Option<&LaneId>, role: JobRole) -> JobId {
        let key = (lane.cloned(), role);
        let number = self.job_numbers.get(&key).copied().unwrap_or(0) + 1;
        JobId { lane: key.0, role: key.1, number }
    }
}

/// How long a lane takes at most, in seconds: what the longest remaining path is measured by.
pub(super) fn plan_weight(plan: &Plan, lane: LaneIndex) -> u64 {
    plan.lane(lane).agents.iter().map(|agent| seconds(plan, agent, agent.tasks.len())).sum::<u64>().max(1)
}

/// How long the first `tasks` of an agent's tasks take at most.
fn seconds(plan: &Plan, agent: &Agent, tasks: usize) -> u64 {
    (0..tasks).map(|task| agent.time_limit(task, &plan.timeouts, SPECIALIST_TIME_LIMIT).as_secs()).sum()
}

impl LaneState {
    pub(super) fn new(lane: &Lane, missing: usize) -> Self {
        Self {
            stage: LaneStage::Waiting,
            end: None,
            missing,
            base: None,
            port: 0,
            worktree: None,
            head: None,
            setup: Gate::Due,
            agents: lane.agents.iter().map(|_| AgentState::new()).collect(),
            intake: VecDeque::new(),
            merges: Vec::new(),
            culprit: None,
            misunderstood: 0,
            mender: None,
            tests: Gate::Due,
            merged_tests: Gate::Due,
            must_haves: None,
            checkpoints: BTreeSet::new(),
            answers: BTreeMap::new(),
            remarks: Vec::new(),
            rework: 0,
            staged: None,
            rebuild: None,
            merged: None,
            proposal: ProposalState::default(),
            running: BTreeSet::new(),
            stopping: None,
            failure: None,
            clock: None,
            stands_since: None,
            parked_since: None,
            snapshots: Vec::new(),
            rolling_back: false,
            in_vain: InVain::default(),
        }
    }

    /// Whether anything of it was made that is still there.
    pub fn has_begun(&self) -> bool {
        self.stage != LaneStage::Waiting || self.rolling_back
    }

    /// Whether its work is where it belongs, now or from an earlier run.
    pub fn is_merged(&self) -> bool {
        self.merged.is_some() || self.end == Some(LaneEnd::MergedBefore)
    }

    /// Whether this run has work to do in it.
    pub fn is_left_to_do(&self) -> bool {
        !self.is_merged() && self.end != Some(LaneEnd::Left)
    }

    /// Whether it can do nothing before a person says something.
    pub fn is_parked(&self, plan: &Lane) -> bool {
        let unanswered = |gate: Approval| plan.needs(gate) && !self.answers.contains_key(&gate.into());
        self.is_stopped() || self.waits_for_people(plan) || approval_at(self.stage).is_some_and(unanswered)
    }

    /// Whether it was asked to stop and nothing of it is left running.
    pub fn is_stopped(&self) -> bool {
        self.stopping.is_some() && self.is_quiet()
    }

    /// Agents whose work is in the lane, in the order in which it came, the last time each.
    pub(super) fn merged_agents(&self) -> Vec<usize> {
        let last = |&(at, (agent, _)): &(usize, &(usize, CommitId))| {
            self.merges[at + 1..].iter().all(|(later, _)| later != agent)
        };
        self.merges.iter().enumerate().filter(last).map(|(_, (agent, _))| *agent).collect()
    }

    /// Whether no agent of it is at work and nothing that one did waits to be judged, committed, kept or merged.
    pub(super) fn is_at_rest(&self) -> bool {
        let rests = |step: &AgentStep| match step {
            AgentStep::Ready | AgentStep::Asking | AgentStep::Retrying(_) => true,
            AgentStep::Done | AgentStep::Blocked(_) | AgentStep::GaveUp(_) => true,
            AgentStep::Running(_) | AgentStep::Committing | AgentStep::Verifying(_) | AgentStep::Snapshotting => false,
            AgentStep::Salvaging(..) | AgentStep::Merging | AgentStep::Gating(_) => false,
            AgentStep::Judging(_) | AgentStep::Failed(_) => false,
        };
        self.running.is_empty() && self.agents.iter().all(|agent| rests(&agent.step))
    }

    /// Whether no job of it runs and nothing that a job left waits to be kept.
    pub fn is_quiet(&self) -> bool {
        let salvaging = |agent: &AgentState| matches!(agent.step, AgentStep::Salvaging(..)) && agent.unkept.is_none();
        self.running.is_empty() && !self.agents.iter().any(salvaging)
    }

    /// Whether a person already said yes at `gate`.
    pub fn approved(&self, gate: &HumanGate) -> bool {
        self.answers.get(gate).is_some_and(|answer| answer.approved)
    }
}

impl AgentState {
    pub(super) fn new() -> Self {
        Self {
            phase: AgentPhase::Initialized,
            step: AgentStep::Ready,
            task: 0,
            retries: 0,
            attempt: 0,
            worktree: None,
            setup: Gate::Due,
            start: None,
            head: None,
            changed: Vec::new(),
            good: None,
            passed: Vec::new(),
            past: Vec::new(),
            rolled_back: false,
            excused: false,
            outage: None,
            salvaged: Vec::new(),
            restart: RestartFrom::Here,
            session: None,
            rejection: None,
            claims_completion: false,
            said: Vec::new(),
            keep_since: None,
            unkept: None,
        }
    }

    /// The entries of `failure_context` for an attempt at `task`: of that task and of the agent's work as a whole.
    pub fn failure_context(&self, task: &TaskId) -> Vec<String> {
        let concerns = |failure: &&PastFailure| failure.task.as_ref().is_none_or(|about| about == task);
        self.past.iter().filter(concerns).flat_map(|failure| failure.context.clone()).collect()
    }
}

/// Where the agent of that name stands in its lane.
pub(super) fn agent_index(lane: &Lane, name: &AgentName) -> Option<usize> {
    lane.agents.iter().position(|agent| agent.name == *name)
}
