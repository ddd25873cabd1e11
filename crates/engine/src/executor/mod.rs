//! The executor: carries out the core's actions on real git, real processes and real files.
//!
//! Each action becomes a `Task`, prepared from the state in the engine's thread and run on a worker thread. A task is
//! idempotent: asked twice, also in another life of the run, it finds and reports the finished work. Its answer is a list
//! of events; what it cannot do blocks the lane, with the reason.

mod agent;
mod bisect;
pub(crate) mod change_size;
mod clock;
mod copied;
pub mod crash;
mod follow;
mod held_worktrees;
mod job;
mod lane;
mod left_out;
mod lists;
mod merge;
mod must_haves;
pub mod placements;
mod preconditions;
mod proposal;
mod reach;
mod regenerate;
pub mod repair;
pub(crate) mod snapshot;
pub mod timed;
mod tracking;
mod unsaved;

pub use clock::RunClock;
pub use copied::{CopiedFiles, RunningCopy};
use held_worktrees::HeldWorktree;
pub(crate) use held_worktrees::{OpenWorktree, open_worktrees};
pub use job::{BaseGates, BriefFiles, Judgement, Surroundings, Walls, messages, report_left};
pub(crate) use lane::FINAL;
pub use left_out::LeftOutReports;
pub use snapshot::SnapshotTarget;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lanewright_agents::runner::Withheld;
use lanewright_git::{GitError, Holder, Pool, Repository, SharedState};
use lanewright_model::event::{Event, Record, RunStarted, SnapshotReason};
use lanewright_model::{
    AgentName, CommitId, LaneId, LaneIndex, MergedPlan, OutsideChanges, Plan, PlanFormat, PlanningFiles, PullRequest,
    Redactor, RunId, SnapshotRules, Tick, Timestamp,
};
use lanewright_programs::forge::{Forge, ForgeError, Reviewers};
use lanewright_schedule::{Action, RunState};
use lanewright_store::{LaneDirectory, RunDirectory};

/// An action on its way: run once, on any thread. The argument takes events that are sent before the end.
pub(crate) type Task = Box<dyn FnOnce(&dyn Fn(Event)) -> Vec<Event> + Send>;

/// Writes the title and the text of a lane's pull request.
pub type PullRequestText = fn(&Plan, &RunId, LaneIndex, &[Record], &[PullRequest]) -> (String, String);

/// Waits until the state of the run is where other clones get it from; the error is why nothing may be published here.
pub type BeforePublication = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Which merged work the integration branch no longer has, and what to do; `None`: it has all.
pub type MissingWork = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// The world in which one run takes place.
pub struct Executor {
    pub repository: Repository,
    pub pool: Pool,
    pub run: RunDirectory,
    pub facts: RunStarted,
    pub plan: Arc<Plan>,
    pub program: PathBuf,
    pub kill_after: Duration,
    /// How often supervisors give a sign of life.
    pub heartbeat: Duration,
    /// How many bytes of the disk the output of a job may take; `None`: no limit.
    pub output_limit: Option<u64>,
    /// Which variables of this process its jobs do not get.
    pub withheld: Withheld,
    /// Which of them lead into a checkout of the user's.
    pub surroundings: Arc<Surroundings>,
    /// What its jobs reach.
    pub walls: Walls,
    /// Patterns of secrets, besides the values of secret variables.
    pub redact: Vec<String>,
    /// Takes secrets out of what is written for agents.
    pub redactor: Redactor,
    pub snapshots: SnapshotRules,
    pub forge: Option<Forge>,
    /// Whose comments on pull requests agents are given.
    pub reviewers: CountedReviewers,
    /// Where lanes work that do not work here; `None`: all lanes work here.
    pub placements: Option<Arc<dyn placements::Placements>>,
    /// `None`: the state of the run stays here.
    pub before_publication: Option<BeforePublication>,
    /// `None`: the run does not merge.
    pub missing_work: Option<MissingWork>,
    /// The title and the text of a lane's pull request, after the run's records and the pull requests before it.
    pub pull_request_text: PullRequestText,
    /// What the files of the project's plans hold once one of them is done.
    pub planning_files: fn(&MergedPlan<'_>) -> PlanningFiles,
    /// What a list of the plan says once a lane is done, or open again; `None`: as before.
    pub ticked: fn(&Tick<'_>) -> Option<String>,
    /// Whether a path is that of a list of the format, of whichever plan.
    pub is_list: fn(PlanFormat, &str) -> bool,
    /// The program and its arguments that record that a lane is done, where the plan is an export of that program's store.
    pub recording_command: fn(PlanFormat, &str) -> Option<Vec<String>>,
    pub clock: RunClock,
    /// What becomes of an attempt that changed another checkout.
    pub outside_changes: OutsideChanges,
    /// What agents share with the user, before they work, for which the first ones wait; `None`: it cannot be told.
    pub shared_before: Arc<OnceLock<Option<SharedState>>>,
    /// What was reported as left out of the lanes' work.
    pub left_out: LeftOutReports,
    /// Which worktrees have the ignored files that lanes ask for.
    pub copied: Arc<CopiedFiles>,
    /// The commands that make files again where a merge conflicts in nothing else, by globs.
    pub regenerate: BTreeMap<String, String>,
    /// Which gates run without the changes of their lanes.
    pub base_gates: BaseGates,
}

/// What went wrong with an action: the lane is blocked, nothing is lost.
#[derive(Debug, thiserror::Error)]
pub enum ExecutorError {
    #[error("{}", .0.with_remedy())]
    Git(#[from] GitError),
    #[error(transparent)]
    Process(#[from] lanewright_programs::process::ProcessError),
    #[error("{0}; {remedy}, then resume", remedy = .0.remedy())]
    Forge(#[from] ForgeError),
    #[error(transparent)]
    File(#[from] lanewright_files::FileError),
    #[error("the run log does not record {0}; run `lanewright status` and compare")]
    Missing(&'static str),
    #[error("the prompt cannot be made: {0}")]
    Prompt(#[from] lanewright_agents::prompt::PromptError),
    #[error("{0}")]
    Precondition(String),
}

/// Whose comments on pull requests count.
#[derive(Debug, Default)]
pub struct CountedReviewers {
    /// Besides those who may write to the repository.
    pub listed: Vec<String>,
    pub known: Reviewers,
}

/// What the run log knows of a lane, and the time that names what is saved of it.
pub(crate) struct LaneContext {
    lane: LaneIndex,
    at: Timestamp,
    known: Vec<(String, CommitId)>,
    holdings: Vec<HeldWorktree>,
    bases: Vec<CommitId>,
    /// The lane's work is where it belongs, so its snapshots may go.
    landed: bool,
}

impl LaneContext {
    /// The worktree at `path`, which the lane or an agent of it holds.
    fn holding(&self, path: &Path) -> Option<&HeldWorktree> {
        self.holdings.iter().find(|holding| holding.worktree.path == path)
    }

    fn before_reset<'a>(&self, agent: Option<&'a AgentName>) -> SnapshotTarget<'a> {
        SnapshotTarget { lane: self.lane, agent, at: self.at, reason: SnapshotReason::Reset }
    }
}

pub(crate) type Result<T, E = ExecutorError> = std::result::Result<T, E>;

type Answer = Result<Vec<Event>>;

type Prepared = Result<Task>;

impl Executor {
    /// Turns an action into a task. Everything that it needs of the state is read here and now.
    pub(crate) fn prepare(self: &Arc<Self>, action: &Action, state: &RunState) -> Task {
        match self.prepared(action, state) {
            Ok(task) => task,
            Err(error) => self.refused(action, error),
        }
    }

    fn prepared(self: &Arc<Self>, action: &Action, state: &RunState) -> Prepared {
        match *action {
            Action::CheckLane(lane) => self.check_lane(lane, state),
            Action::OpenWorktree { lane, agent: None } => self.open_lane(lane, state),
            Action::OpenWorktree { lane, agent: Some(agent) } => self.open_agent(lane, agent, state),
            Action::RunJob(ref job) => self.run_job(job, state),
            Action::StopJob { ref job, force } => Ok(self.stop_job(job, force)),
            Action::CommitWork(lane, agent) => self.commit_work(lane, agent, state),
            Action::Snapshot { lane, agent, reason } => self.snapshot(lane, agent, reason, state),
            Action::MergeAgent(lane, agent) => self.merge_agent(lane, agent, state),
            Action::ReleaseAgent(lane, agent) => self.release_agent(lane, agent, state),
            Action::ResetAgent(lane, agent) => self.reset_agent(lane, agent, state),
            Action::ResetLane(lane) => self.reset_lane(lane, state),
            Action::StageMerge(lane) => self.stage_merge(lane, state),
            Action::PublishMerge(lane) => self.publish_merge(lane, state),
            Action::PushBranch(lane) => self.push_branch(lane, state),
            Action::OpenPullRequest(lane) => self.open_pull_request(lane, state),
            Action::CheckPullRequests => Ok(self.check_pull_requests(state)),
            Action::MergePullRequest(lane) => self.merge_pull_request(lane, state),
            Action::CleanLane(lane) => self.clean_lane(lane, state),
            // Only without an executor: the engine gives them to it.
            Action::PlaceLane(_) | Action::FollowLane(_) | Action::StopPlacement { .. } => {
                let reason = "the lane works on a cluster, and no exchange is set; set `exchange`, then resume";
                Err(ExecutorError::Precondition(reason.to_owned()))
            }
            Action::BisectMerges(lane) => self.bisect(lane, state),
            Action::CheckMustHaves(lane) => self.check_must_haves(lane, state),
            Action::MeasureChanges(lane) => self.measure_changes(lane, state),
            Action::OpenFinal => Ok(self.open_final()),
            Action::EmptyPool => Ok(self.empty_pool(state)),
        }
    }

    /// A task that carries out `work`, again after repairs where git refuses it, and blocks `lane` if it cannot.
    fn task(
        self: &Arc<Self>,
        lane: LaneIndex,
        state: &RunState,
        work: impl Fn(&Self) -> Answer + Send + 'static,
    ) -> Task {
        let (executor, context) = (self.clone(), self.lane_context(lane, state));
        Box::new(move |emit| {
            let done = executor.retry_with_repairs(&context, emit, || work(&executor));
            let events = done.unwrap_or_else(|error| vec![executor.blocked(lane, &error)]);
            if let Some(message) = executor.pool.hook_failure() {
                emit(executor.note(lane, message));
            }
            executor.repository.take_notices().into_iter().for_each(|message| emit(executor.note(lane, message)));
            events
        })
    }

    fn refused(self: &Arc<Self>, action: &Action, error: ExecutorError) -> Task {
        let message = format!("{}: {error}", action.word());
        let event = match (action, subject(action, &self.plan).0) {
            // The lane continues without it, and would ask for it again after it was blocked.
            (&Action::Snapshot { lane, agent, reason }, _) => {
                self.snapshot_event(lane, &self.agent_name(lane, agent), reason, Err(error))
            }
            (_, Some(lane)) => Event::LaneBlocked { lane, reason: message },
            (_, None) => Event::Noted { lane: None, message },
        };
        Box::new(move |_| vec![event])
    }

    fn blocked(&self, lane: LaneIndex, error: &ExecutorError) -> Event {
        Event::LaneBlocked { lane: self.id(lane), reason: error.to_string() }
    }

    fn id(&self, lane: LaneIndex) -> LaneId {
        self.plan.lane(lane).id.clone()
    }

    fn agent_name(&self, lane: LaneIndex, agent: usize) -> AgentName {
        self.plan.lane(lane).agents[agent].name.clone()
    }

    fn note(&self, lane: LaneIndex, message: String) -> Event {
        Event::Noted { lane: Some(self.id(lane)), message }
    }

    pub(crate) fn holder(&self, lane: LaneIndex, agent: Option<usize>) -> Holder {
        let agent = agent.map(|agent| self.agent_name(lane, agent));
        Holder { run: self.facts.run_id.clone(), lane: Some(self.id(lane)), agent }
    }

    /// `lane/<phase>/<lane>`, with the run's suffix if it has one.
    pub(crate) fn lane_branch(&self, lane: LaneIndex) -> String {
        self.facts.lane_branch(&self.plan.lane(lane).id)
    }

    /// `lane-agent/<phase>/<lane>/<agent>`, with the run's suffix; the lane's branch for an agent that shares it.
    pub(crate) fn agent_branch(&self, lane: LaneIndex, agent: usize) -> String {
        let plan = self.plan.lane(lane);
        if plan.shares_worktree(agent) {
            return self.lane_branch(lane);
        }
        self.facts.agent_branch(&plan.id, &plan.agents[agent].name)
    }

    fn lane_context(&self, lane: LaneIndex, state: &RunState) -> LaneContext {
        let lane_state = state.lane(lane);
        let at = lane_state.since().unwrap_or_else(|| self.clock.now());
        let known = lane_state.snapshots().iter().chain(lane_state.kept_candidates()).cloned().collect();
        let landed = lane_state.merged().is_some();
        let bases = lane_state.base().into_iter().chain([&self.facts.base_commit]).cloned().collect();
        LaneContext { lane, at, known, holdings: self.holdings(lane, state), bases, landed }
    }

    fn lane_directory(&self, lane: LaneIndex) -> LaneDirectory {
        LaneDirectory::new(self.pool.root(), &self.facts.run_id, &self.plan.lane(lane).id)
    }

    pub(crate) fn integration(&self) -> Result<CommitId> {
        let branch = &self.facts.base_branch;
        self.repository.branch_commit(branch)?.ok_or_else(|| {
            ExecutorError::Precondition(format!(
                "the integration branch `{branch}` is gone; `lanewright doctor` shows the commit to create it at"
            ))
        })
    }

    pub(crate) fn trailers<'a>(&'a self, lane: &'a LaneId) -> Vec<(&'static str, &'a str)> {
        vec![("Run", self.facts.run_id.as_str()), ("Lane", lane.as_str())]
    }
}

fn lane_head(state: &RunState, lane: LaneIndex) -> Result<CommitId> {
    state.lane(lane).head().cloned().ok_or(ExecutorError::Missing("the lane's head"))
}

/// The lane and the agent that an action is about.
fn subject(action: &Action, plan: &Plan) -> (Option<LaneId>, Option<AgentName>) {
    let of_lane = |lane: LaneIndex| Some(plan.lane(lane).id.clone());
    match *action {
        Action::RunJob(ref job) | Action::StopJob { ref job, .. } => (job.lane.clone(), job.agent().cloned()),
        Action::OpenWorktree { lane, agent: Some(agent) }
        | Action::CommitWork(lane, agent)
        | Action::Snapshot { lane, agent, .. }
        | Action::MergeAgent(lane, agent)
        | Action::ReleaseAgent(lane, agent)
        | Action::ResetAgent(lane, agent) => (of_lane(lane), Some(plan.lane(lane).agents[agent].name.clone())),
        Action::OpenWorktree { lane, agent: None }
        | Action::CheckLane(lane)
        | Action::ResetLane(lane)
        | Action::StageMerge(lane)
        | Action::CheckMustHaves(lane)
        | Action::MeasureChanges(lane)
        | Action::PublishMerge(lane)
        | Action::PushBranch(lane)
        | Action::OpenPullRequest(lane)
        | Action::MergePullRequest(lane)
        | Action::PlaceLane(lane)
        | Action::FollowLane(lane)
        | Action::StopPlacement { lane, .. }
        | Action::CleanLane(lane) => (of_lane(lane), None),
        Action::BisectMerges(lane) => (lane.and_then(of_lane), None),
        Action::CheckPullRequests | Action::OpenFinal | Action::EmptyPool => (None, None),
    }
}
