//! The ports: what carries out the core's actions on real git, real processes and real files.
//!
//! Each action becomes a [`Task`], prepared from the state in the engine's thread and run on a worker thread. A task is
//! idempotent: asked twice, also in another life of the run, it finds the work done and says so. Its answer is a list
//! of events; what it cannot do blocks the lane, with the reason.

mod agent;
mod bisect;
mod brief;
mod intact;
mod job;
pub(crate) mod keep;
mod lane;
mod lost;
mod merge;
mod must_haves;
mod preconditions;
mod proposal;
mod repair;
mod stream;
pub mod timed;
mod tracking;
mod watch;

pub(crate) use keep::Keeping;
pub(crate) use lane::FINAL;
use repair::Holding;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::engine::RunClock;
use crate::event::{Event, RunStarted, SnapshotReason};
use crate::forge::{Forge, ForgeError};
use crate::git::{GitError, Holder, Pool, Repository};
use crate::model::{AgentName, CommitId, LaneId, LaneIndex, Plan, Redactor, SnapshotRules, Timestamp};
use crate::schedule::{Action, RunState};
use crate::store::{LaneDirectory, RunDirectory};

/// An action on its way: run once, on any thread. The argument takes events that are to be told before the end.
pub type Task = Box<dyn FnOnce(&dyn Fn(Event)) -> Vec<Event> + Send>;

/// The world in which one run takes place.
pub struct Ports {
    /// The repository.
    pub repository: Repository,
    /// Its worktrees.
    pub pool: Pool,
    /// The run's files.
    pub run: RunDirectory,
    /// What the run began with.
    pub facts: RunStarted,
    /// What is run.
    pub plan: Arc<Plan>,
    /// The program that supervises jobs: this one.
    pub program: PathBuf,
    /// From SIGTERM to SIGKILL.
    pub kill_after: Duration,
    /// How often supervisors give a sign of life.
    pub heartbeat: Duration,
    /// Patterns of secrets, besides what the environment says.
    pub redact: Vec<String>,
    /// Takes secrets out of what is written for agents.
    pub redactor: Redactor,
    /// When a running agent's worktree is kept.
    pub snapshots: SnapshotRules,
    /// Who opens pull requests, where lanes are proposed.
    pub forge: Option<Forge>,
    /// What the time is.
    pub clock: RunClock,
}

/// What went wrong with an action: the lane is blocked, nothing is lost.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// Git, or a worktree.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A supervisor.
    #[error(transparent)]
    Process(#[from] crate::process::ProcessError),
    /// A forge.
    #[error("{0}; {remedy}, then resume", remedy = .0.remedy())]
    Forge(#[from] ForgeError),
    /// A state file.
    #[error(transparent)]
    File(#[from] crate::fs::FileError),
    /// The state lacks what the action is about: the run log does not fit the plan.
    #[error("the run log does not say {0}; run `lanekeeper status` and compare")]
    Missing(&'static str),
    /// Something outside must be different first.
    #[error("{0}")]
    Precondition(String),
}

/// When something of a lane is put aside, which gives it its name, and what of the lane the run log knows.
struct Moment {
    lane: LaneIndex,
    at: Timestamp,
    known: Vec<(String, CommitId)>,
    holdings: Vec<Holding>,
    /// The lane's work is where it belongs, so its snapshots may go.
    landed: bool,
}

impl Moment {
    /// Whatever has to make room then.
    fn making_room<'a>(&self, agent: Option<&'a AgentName>) -> Keeping<'a> {
        Keeping { lane: self.lane, agent, at: self.at, reason: SnapshotReason::Reset }
    }
}

type Answer = Result<Vec<Event>, PortError>;

impl Ports {
    /// Turns an action into a task. Everything that it needs of the state is read here and now.
    pub fn prepare(self: &Arc<Self>, action: &Action, state: &RunState) -> Task {
        match self.prepared(action, state) {
            Ok(task) => task,
            Err(error) => self.refused(action, error),
        }
    }

    fn prepared(self: &Arc<Self>, action: &Action, state: &RunState) -> Result<Task, PortError> {
        match *action {
            Action::CheckLane(lane) => self.check_lane(lane, state),
            Action::OpenWorktree { lane, agent: None } => self.open_lane(lane, state),
            Action::OpenWorktree { lane, agent: Some(agent) } => self.open_agent(lane, agent, state),
            Action::RunJob(ref job) => self.run_job(job, state),
            Action::StopJob { ref job, force } => Ok(self.stop_job(job, force)),
            Action::CommitWork { lane, agent } => self.commit_work(lane, agent, state),
            Action::Snapshot { lane, agent, reason } => self.snapshot(lane, agent, reason, state),
            Action::MergeAgent { lane, agent } => self.merge_agent(lane, agent, state),
            Action::ReleaseAgent { lane, agent } => self.release_agent(lane, agent, state),
            Action::ResetAgent { lane, agent } => self.reset_agent(lane, agent, state),
            Action::ResetLane(lane) => self.reset_lane(lane, state),
            Action::StageMerge(lane) => self.stage_merge(lane, state),
            Action::PublishMerge(lane) => self.publish_merge(lane, state),
            Action::PushBranch(lane) => self.push_branch(lane, state),
            Action::OpenPullRequest(lane) => self.open_pull_request(lane, state),
            Action::CleanLane(lane) => self.clean_lane(lane, state),
            Action::BisectMerges(lane) => self.bisect(lane, state),
            Action::CheckMustHaves(lane) => self.check_must_haves(lane, state),
            Action::MakeAhead => Ok(self.make_ahead(state)),
            Action::OpenFinal => self.open_final(state),
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
        let (ports, moment) = (self.clone(), self.moment(lane, state));
        Box::new(move |tell| {
            let done = ports.persist(&moment, tell, || work(&ports));
            let events = done.unwrap_or_else(|error| vec![ports.blocked(lane, &error)]);
            if let Some(message) = ports.pool.hook_failure() {
                tell(Event::Noted { lane: Some(ports.id(lane)), message });
            }
            events
        })
    }

    fn refused(self: &Arc<Self>, action: &Action, error: PortError) -> Task {
        let message = format!("{}: {error}", action.word());
        let event = match action.lane(&self.plan) {
            Some(lane) => Event::LaneBlocked { lane, reason: message },
            None => Event::Noted { lane: None, message },
        };
        Box::new(move |_| vec![event])
    }

    fn blocked(&self, lane: LaneIndex, error: &PortError) -> Event {
        Event::LaneBlocked { lane: self.id(lane), reason: error.to_string() }
    }

    fn id(&self, lane: LaneIndex) -> LaneId {
        self.plan.lane(lane).id.clone()
    }

    fn holder(&self, lane: LaneIndex, agent: Option<usize>) -> Holder {
        let plan = self.plan.lane(lane);
        let agent = agent.map(|agent| plan.agents[agent].name.clone());
        Holder { run: self.facts.run_id.clone(), lane: Some(plan.id.clone()), agent }
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

    fn moment(&self, lane: LaneIndex, state: &RunState) -> Moment {
        let lane_state = state.lane(lane);
        let at = lane_state.stands_since.unwrap_or_else(|| self.clock.now());
        let (known, landed) = (lane_state.snapshots.clone(), lane_state.merged.is_some());
        Moment { lane, at, known, holdings: self.holdings(lane, state), landed }
    }

    fn lane_directory(&self, lane: LaneIndex) -> LaneDirectory {
        LaneDirectory::new(self.pool.root(), &self.facts.run_id, &self.plan.lane(lane).id)
    }

    /// The integration branch as it is now.
    pub(crate) fn integration(&self) -> Result<CommitId, PortError> {
        let branch = &self.facts.base_branch;
        self.repository.branch_commit(branch)?.ok_or_else(|| {
            PortError::Precondition(format!(
                "the integration branch `{branch}` is gone; `lanekeeper doctor` shows the commit to create it at"
            ))
        })
    }

    pub(crate) fn trailers<'a>(&'a self, lane: &'a LaneId) -> Vec<(&'static str, &'a str)> {
        vec![("Run", self.facts.run_id.as_str()), ("Lane", lane.as_str())]
    }
}

impl Action {
    /// The lane that the action is about, if it is about one.
    fn lane(&self, plan: &Plan) -> Option<LaneId> {
        match self {
            Self::RunJob(job) | Self::StopJob { job, .. } => job.lane.clone(),
            Self::BisectMerges(lane) => lane.map(|lane| plan.lane(lane).id.clone()),
            Self::MakeAhead | Self::OpenFinal | Self::EmptyPool => None,
            Self::CheckLane(lane)
            | Self::OpenWorktree { lane, .. }
            | Self::CommitWork { lane, .. }
            | Self::Snapshot { lane, .. }
            | Self::MergeAgent { lane, .. }
            | Self::ReleaseAgent { lane, .. }
            | Self::ResetAgent { lane, .. }
            | Self::ResetLane(lane)
            | Self::StageMerge(lane)
            | Self::CheckMustHaves(lane)
            | Self::PublishMerge(lane)
            | Self::PushBranch(lane)
            | Self::OpenPullRequest(lane)
            | Self::CleanLane(lane) => Some(plan.lane(*lane).id.clone()),
        }
    }
}
