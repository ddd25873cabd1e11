//! One lane, as its events so far describe it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::{Deref, DerefMut};

use lanewright_agents::shell::has_gate;
use lanewright_model::event::{GivenContext, LaneStage, RunOutcome, SnapshotReason};
use lanewright_model::ownership::Ownership;
use lanewright_model::plan::OwnershipRule;
use lanewright_model::text::{counted, listed};
use lanewright_model::{
    Agent, AgentName, AgentPhase, Approval, Budget, ChangeSize, CheckpointStatus, CommitId, Failure, HumanGate, JobId,
    JobRole, Lane, LaneId, Plan, PullRequest, PullRequestStatus, RetryLevel, Round, Stage, Task, TaskId, Timestamp,
    Usage, UserSetup, Verdict, user_setup,
};
use serde::Serialize;

use super::candidates::Choice;
use super::job::{AgentStatus, JobHistory, Jobs, Retry};
use super::state::LaneState;
use super::workplace::Workplace;

/// How many files are named.
const NAMED: usize = 20;

pub type Span = (Timestamp, Timestamp);

/// A lane, and what its events add up to.
#[derive(Debug, Clone)]
pub struct LaneHistory {
    pub id: LaneId,
    facts: LaneFacts,
}

#[derive(Debug, Clone, Default)]
pub struct LaneFacts {
    pub name: Option<String>,
    pub depends_on: Vec<LaneId>,
    /// Whether a command judges its work before it is merged; unknown without a plan.
    pub has_gate: Option<bool>,
    /// Globs of the files that the plan says are changed, where it is no rule that only these may be.
    pub(super) about: Vec<String>,
    /// The approvals that the plan asks for, where it is known.
    pub approval: Vec<Approval>,
    /// What a person sets up before it starts, where the plan is known.
    pub user_setup: Vec<UserSetup>,
    /// The variables of it that are not set; `None` before that was checked.
    pub missing: Option<Vec<String>>,
    /// The user's tasks and what each asks, where the plan is known.
    pub human_tasks: Vec<(TaskId, String)>,
    /// The tasks of each agent, where the plan is known.
    pub tasks: Vec<(AgentName, Vec<TaskId>)>,
    /// The runners of its agents, where the plan is known.
    pub(super) runners: BTreeMap<AgentName, String>,
    /// Its candidates, each with its number, where the plan is known.
    pub(super) candidates: Vec<(AgentName, u32)>,
    /// The tasks that a command does in place of the agent's program.
    pub(super) commands: Vec<TaskId>,
    /// What its agents may use together.
    pub(crate) budget: Budget,
    /// Whether the plan has it work on a cluster.
    pub(super) has_executor: bool,
    /// What each of its agents may work with, where the plan is known.
    pub(super) accounts: Vec<AgentAccounts>,

    /// Follows from the rest and from the run.
    pub state: LaneState,
    pub stage: LaneStage,
    pub transitions: Vec<(LaneStage, LaneStage, Timestamp)>,
    /// When it left the queue.
    pub started: Option<Timestamp>,
    /// When it was merged, failed, blocked or rolled back.
    pub finished: Option<Timestamp>,
    /// When its last event was recorded.
    pub last: Option<Timestamp>,
    /// Whether an earlier run merged it.
    pub merged_before: bool,
    /// Whether this run leaves it out.
    pub skipped: bool,
    /// Why the user left it out.
    pub left_out: Option<String>,
    /// The point to which it was rolled back, or half rolled back, if not to its beginning.
    pub point: Option<String>,
    pub stopping: bool,
    /// How it ended, if it ended without a merge.
    pub ending: Option<Ending>,

    pub base: Option<CommitId>,
    pub workplace: Workplace,
    /// Whether its worktree is on another machine.
    pub(crate) is_open_elsewhere: bool,
    /// Its jobs on clusters, in the order of their offers.
    pub placements: Vec<PlacementView>,
    /// Those that have done something, in the order they first did.
    pub agents: Vec<AgentHistory>,
    pub jobs: Jobs,
    /// Of all levels; those of [`RetryLevel::Wait`] are not counted.
    pub retries: Vec<Retry>,
    /// No agent starts before this moment, after a failure.
    pub delayed_until: Option<Timestamp>,
    /// Since when the runner was paused for which it waited last, and since when that can work again.
    pub(super) last_pause: Option<(Timestamp, Timestamp)>,
    /// The last failure, repaired or not.
    pub last_failure: Option<FailureView>,
    pub failures: Vec<FailureView>,
    pub snapshots: Vec<SnapshotView>,
    /// How many of them were taken before its last rollback.
    pub(super) old_snapshots: usize,
    pub checkpoints: Vec<CheckpointView>,
    pub must_haves: Vec<Verdict>,
    /// Which candidate continues as its agent, after each record that decided it: the last one counts.
    pub(super) choices: Vec<(u64, Choice)>,
    /// How much it changed, where the user is asked to approve that.
    pub changes: Option<ChangeSize>,
    /// The protected files among that.
    pub protected: Vec<String>,

    /// Agents that wait for the user, each with the task.
    pub asking: Vec<(AgentName, TaskId)>,
    /// Those that the user rejected, until a resume asks again.
    pub(super) refused: Vec<(AgentName, TaskId)>,
    pub answers: Vec<AnswerView>,
    /// Approvals that were given, and are still valid.
    pub(super) approved: Vec<Approval>,
    /// What was rejected and is not reworked yet.
    pub(super) rejected: Vec<Approval>,

    pub(super) merging: bool,
    pub merges: Vec<MergeView>,
    /// The integration branch after the lane's merge.
    pub merge_commit: Option<CommitId>,
    pub pull_request: Option<PullRequest>,
    /// What the forge says of it, where it is followed.
    pub pull_request_status: Option<PullRequestStatus>,
    pub(crate) is_cleaned: bool,
    /// Whether its rollback began and is not finished.
    pub(crate) is_half_rolled_back: bool,
    /// What was kept at cleanup or rollback, each with the reason.
    pub kept: Vec<String>,
    /// When git worked for it.
    pub git: Vec<Span>,
    pub(super) statuses: Vec<(AgentName, AgentStatus)>,
    /// How the phases of its agents changed.
    pub agent_moves: Vec<AgentMove>,
}

/// A change of the phase of an agent's work.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentMove {
    pub agent: AgentName,
    pub from: AgentPhase,
    /// `INITIALIZED`: new work began, as after a rollback.
    pub to: AgentPhase,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    Failed(Failure),
    /// What must change outside, and how.
    Blocked(String),
    RolledBack,
}

/// A lane's job on a cluster, from the offer to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacementView {
    /// Which of the lane's placements; from 1.
    pub number: u32,
    /// The name of the executor.
    pub executor: String,
    /// The engine's name of the job; `None`: it is about to be submitted.
    pub job: Option<String>,
    /// The machine that works on the lane.
    pub host: Option<String>,
    /// What was noted about the job, such as why it waits.
    pub note: Option<String>,
    pub offered: Timestamp,
    /// When the job began to work on it.
    pub claimed: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    /// How the lane's own run ended; `None` after the end: it was cut off.
    pub outcome: Option<RunOutcome>,
    /// What became of the job.
    pub reason: Option<String>,
}

/// The job of a cluster that has a lane, or is to have it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Elsewhere<'a> {
    /// The name of the executor.
    executor: &'a str,
    /// The job, as its executor calls it; null: it was not submitted yet.
    job: Option<&'a str>,
    /// The machine that works on the lane.
    host: Option<&'a str>,
    /// What was noted about the job, such as why it waits.
    note: Option<&'a str>,
}

impl PlacementView {
    pub(super) fn offered(number: u32, executor: &str, offered: Timestamp) -> Self {
        Self {
            number,
            executor: executor.to_owned(),
            job: None,
            host: None,
            note: None,
            offered,
            claimed: None,
            ended: None,
            outcome: None,
            reason: None,
        }
    }

    /// Until when its job was waited for; `None`: it still is.
    pub(crate) fn awaited_until(&self) -> Option<Timestamp> {
        self.claimed.or(self.ended)
    }

    /// Where it is, or what became of it.
    pub(crate) fn result(&self) -> String {
        match (&self.reason, self.outcome) {
            (Some(reason), Some(outcome)) => format!("{reason}: {outcome}"),
            (Some(reason), None) => reason.clone(),
            (None, _) if self.ended.is_none() && self.claimed.is_some() => "works".to_owned(),
            (None, _) => self.note.clone().unwrap_or_else(|| "waits".to_owned()),
        }
    }

    /// What programs are shown of a job while it has the lane.
    pub(crate) fn elsewhere(&self) -> Elsewhere<'_> {
        let Self { executor, job, host, note, .. } = self;
        Elsewhere { executor, job: job.as_deref(), host: host.as_deref(), note: note.as_deref() }
    }
}

impl fmt::Display for PlacementView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { executor, job, host, note, .. } = self;
        match (job, host, note) {
            (None, ..) => write!(f, "waits for executor {executor}"),
            (Some(_), None, Some(note)) => f.write_str(note),
            (Some(job), None, None) => write!(f, "waits for job {job} of {executor}"),
            (Some(job), Some(host), _) => write!(f, "job {job} of {executor} on {host}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentHistory {
    pub name: AgentName,
    pub workplace: Workplace,
    pub branch: Option<String>,
    /// The files that its work changed.
    pub(super) changed: Vec<String>,
}

/// A failure and what it happened to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailureView {
    pub at: Timestamp,
    /// Whose work it concerns; null: the lane's.
    pub agent: Option<AgentName>,
    pub task: Option<TaskId>,
    /// The job that failed, where a job failed.
    #[serde(skip)]
    pub job: Option<JobId>,
    #[serde(flatten)]
    pub failure: Failure,
}

/// A worktree's whole state, saved in a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SnapshotView {
    /// Whose worktree; null: the lane's.
    pub agent: Option<AgentName>,
    pub reason: SnapshotReason,
    pub commit: CommitId,
    /// Its ref.
    pub reference: String,
    pub at: Timestamp,
    /// Whether it holds only what the attempt began with.
    #[serde(skip)]
    pub unchanged: bool,
    /// What its taker gave along with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Box<GivenContext>>,
}

/// A checkpoint of a lane (`docs/checkpoints.md`).
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointView {
    pub at: Timestamp,
    pub stage: Stage,
    pub status: CheckpointStatus,
    /// The last command, or what the lane waited for.
    pub notes: String,
}

/// An approval or a rejection.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswerView {
    pub at: Timestamp,
    /// `plan`, `changes` or `task:ID`.
    pub gate: HumanGate,
    pub approved: bool,
    /// What the user wrote.
    pub message: String,
}

/// The merge of a lane into the integration branch, or of an agent's work into its lane.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MergeView {
    pub at: Timestamp,
    /// Whose work was merged into the lane; null: the lane's into the integration branch.
    pub agent: Option<AgentName>,
    /// The branch after it.
    pub commit: CommitId,
    /// The branch before it, if that is known.
    pub onto: Option<CommitId>,
}

/// The accounts that an agent may work with.
#[derive(Debug, Clone)]
pub(super) struct AgentAccounts {
    pub(super) round: Round,
    pub(super) agent: AgentName,
    /// For each task that is not a person's those of its own runner and of its fallback, each with what of it may be refused.
    pub(super) tasks: Vec<(TaskId, Vec<[String; 2]>)>,
}

impl AgentAccounts {
    fn of(plan: &Plan, agent: &Agent) -> Self {
        let of_task = |task: &Task| {
            let names = std::iter::once(None).chain(plan.fallback(agent, task).map(Some));
            let account = |name| {
                let who = plan.with_runner(agent, name);
                [plan.account(&who, task).into_owned(), plan.refusable(&who, task).into_owned()]
            };
            (task.id.clone(), names.map(account).collect())
        };
        let tasks = agent.tasks.iter().filter(|task| !task.kind.is_human()).map(of_task).collect();
        Self { round: agent.round, agent: agent.name.clone(), tasks }
    }
}

impl LaneHistory {
    /// A lane of which only the name is known.
    pub(super) fn new(id: LaneId) -> Self {
        Self { id, facts: LaneFacts::default() }
    }

    pub(super) fn of_plan(plan: &Plan, lane: &Lane) -> Self {
        let tasks = lane.agents.iter().flat_map(|agent| &agent.tasks).filter(|task| task.kind.is_human());
        let mut human_tasks: Vec<_> = tasks.map(|task| (task.id.clone(), question(task))).collect();
        human_tasks.dedup();
        let of_agent = |agent: &Agent| (agent.name.clone(), agent.tasks.iter().map(|task| task.id.clone()).collect());
        let accounts = |agent: &Agent| AgentAccounts::of(plan, agent);
        let commands = lane.agents.iter().flat_map(|agent| &agent.tasks).filter(|task| task.command.is_some());
        let facts = LaneFacts {
            name: lane.name.clone(),
            depends_on: lane.depends_on.iter().map(|&index| plan.lane(index).id.clone()).collect(),
            has_gate: Some(has_gate(plan, lane)),
            about: if lane.ownership == OwnershipRule::Advisory { lane.owns.clone() } else { Vec::new() },
            approval: lane.approval.clone(),
            user_setup: lane.user_setup.clone(),
            human_tasks,
            tasks: lane.agents.iter().map(of_agent).collect(),
            candidates: lane.agents.iter().filter_map(|agent| Some((agent.name.clone(), agent.candidate?))).collect(),
            runners: lane.agents.iter().map(|agent| (agent.name.clone(), agent.runner.clone())).collect(),
            commands: commands.map(|task| task.id.clone()).collect(),
            budget: lane.budget,
            has_executor: lane.executor.is_some(),
            accounts: lane.agents.iter().map(accounts).collect(),
            ..LaneFacts::default()
        };
        Self { id: lane.id.clone(), facts }
    }
}

impl Deref for LaneHistory {
    type Target = LaneFacts;
    fn deref(&self) -> &LaneFacts {
        &self.facts
    }
}

impl DerefMut for LaneHistory {
    fn deref_mut(&mut self) -> &mut LaneFacts {
        &mut self.facts
    }
}

impl LaneFacts {
    /// The files that its agents changed beyond those that its plan names, in the order of their paths. Files of the
    /// planning itself are changed by every plan.
    pub fn beyond_plan(&self) -> Vec<String> {
        let Ok(named) = Ownership::new(&self.about) else { return Vec::new() };
        let is_planning = |path: &str| path.split('/').any(|part| part == ".planning");
        let changed: BTreeSet<&str> = self.agents.iter().flat_map(|agent| &agent.changed).map(String::as_str).collect();
        changed.into_iter().filter(|path| !named.allows(path) && !is_planning(path)).map(str::to_owned).collect()
    }

    /// [`Self::beyond_plan`] in a line: `changed 2 files beyond its plan: a.txt, b.txt`.
    pub(crate) fn beyond_plan_line(&self) -> Option<String> {
        let files = self.beyond_plan();
        let line = format!("changed {} beyond its plan: {}", counted(files.len(), "file"), listed(&files, NAMED));
        (!files.is_empty()).then_some(line)
    }

    /// What a person is asked to set up, each in a few words.
    pub(crate) fn setup_to_do(&self) -> Vec<String> {
        let missing = self.missing.as_deref();
        user_setup::to_do(&self.user_setup, |name| missing.is_none_or(|missing| missing.iter().any(|it| it == name)))
    }

    pub fn is_merged(&self) -> bool {
        self.merge_commit.is_some() || self.merged_before
    }

    /// The job of a cluster that has it, or is to have it.
    pub fn elsewhere(&self) -> Option<&PlacementView> {
        self.placements.last().filter(|placement| placement.ended.is_none())
    }

    /// Whether it failed or is blocked.
    pub(crate) fn is_given_up(&self) -> bool {
        matches!(self.ending, Some(Ending::Failed(_) | Ending::Blocked(_)))
    }

    /// Whether it did not begin because a lane that it depends on ended without a merge.
    pub(super) fn is_blocked_by_lanes(&self) -> bool {
        let is_blocked = matches!(self.ending, Some(Ending::Blocked(_)));
        is_blocked && self.stage == LaneStage::Waiting && !self.depends_on.is_empty()
    }

    /// Its merge: the integration branch before and after it.
    pub fn merge(&self) -> Option<(&CommitId, &CommitId)> {
        let last = self.merges.iter().rfind(|merge| merge.agent.is_none() && self.merge_commit.is_some())?;
        Some((last.onto.as_ref()?, &last.commit))
    }

    /// Its snapshots from before its last rollback, and those since.
    pub fn snapshots_by_rollback(&self) -> (&[SnapshotView], &[SnapshotView]) {
        self.snapshots.split_at(self.old_snapshots)
    }

    pub fn attempts(&self) -> usize {
        self.jobs.all().filter(|job| job.job.is_attempt()).count()
    }

    pub fn usage(&self) -> Usage {
        self.jobs.all().filter_map(|job| job.transcript.as_ref()).map(|transcript| transcript.usage).sum()
    }

    /// Retries that are counted, and the last attempt after them.
    pub fn counted_retries(&self) -> impl DoubleEndedIterator<Item = &Retry> {
        self.retries.iter().filter(|retry| retry.level != RetryLevel::Wait)
    }

    /// How often `agent` was retried, also before a rollback: a count that forgot those could retry without end.
    pub fn retries_of(&self, agent: &AgentName) -> u32 {
        let own = self.retries.iter().filter(|retry| retry.agent == *agent && retry.level == RetryLevel::Retry);
        u32::try_from(own.count()).unwrap_or(u32::MAX)
    }

    pub fn reason(&self) -> Option<&str> {
        match self.ending.as_ref()? {
            Ending::Failed(failure) => Some(&failure.message),
            Ending::Blocked(reason) => Some(reason),
            Ending::RolledBack => None,
        }
    }

    pub fn agent(&self, name: &AgentName) -> Option<&AgentHistory> {
        self.agents.iter().find(|agent| agent.name == *name)
    }

    /// Where the plan is known.
    pub(crate) fn tasks_of(&self, agent: &AgentName) -> Option<&[TaskId]> {
        self.tasks.iter().find(|(name, _)| name == agent).map(|(_, tasks)| tasks.as_slice())
    }

    pub fn status_of(&self, agent: &AgentName) -> AgentStatus {
        self.statuses.iter().find(|(name, _)| name == agent).map_or(AgentStatus::Missing, |(_, status)| *status)
    }

    /// The phase of the agent's work; `None`: an older version, which did not record it, wrote the log.
    pub fn phase_of(&self, agent: &AgentName) -> Option<AgentPhase> {
        let last = self.agent_moves.iter().rfind(|step| step.agent == *agent).map(|step| step.to);
        let is_new = self.status_of(agent) == AgentStatus::Missing;
        last.or(is_new.then_some(AgentPhase::Initialized))
    }

    /// The phases of the agents that have done something, as far as they are known.
    pub(crate) fn agent_phases(&self) -> BTreeMap<&AgentName, AgentPhase> {
        let names = self.agent_moves.iter().map(|step| &step.agent);
        names.filter_map(|name| Some((name, self.phase_of(name)?))).collect()
    }

    /// The lane's workplace, and those of its agents that have worktrees of their own.
    pub fn workplaces(&self) -> impl Iterator<Item = (Option<&AgentName>, &Workplace)> {
        let own = self.agents.iter().map(|agent| (Some(&agent.name), &agent.workplace));
        std::iter::once((None, &self.workplace)).chain(own).filter(|(_, workplace)| workplace.worktree.is_some())
    }

    /// The agent in whose own worktree a job runs; `None`: it runs in the lane's.
    pub fn works_in<'j>(&self, job: &'j JobId) -> Option<&'j AgentName> {
        job.agent().filter(|agent| !matches!(job.role, JobRole::Checkpoint { .. }) && self.has_own_worktree(agent))
    }

    pub(super) fn has_own_worktree(&self, agent: &AgentName) -> bool {
        self.agent(agent).is_some_and(|agent| agent.workplace.worktree.is_some())
    }

    /// The job that the failure of `agent` is about: the last one of its own that did not pass, else of any agent.
    pub(super) fn failed_job(&self, agent: Option<&AgentName>) -> Option<&JobHistory> {
        let own = |job: &JobHistory| agent.is_some() && job.job.agent() == agent && job.failed_by_itself();
        self.jobs.last_ended(own).or_else(|| self.jobs.last_ended(JobHistory::failed_by_itself))
    }
}

/// What the user is asked: `checkpoint:decision: Which database? …`.
fn question(task: &Task) -> String {
    let name = task.name.as_ref().filter(|name| **name != task.prompt).map(|name| format!("{name}: "));
    format!("{}: {}{}", task.kind, name.unwrap_or_default(), task.prompt.trim())
}
