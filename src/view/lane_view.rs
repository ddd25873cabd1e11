//! What is known of one lane.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::event::{LaneStage, SnapshotReason, Worktree};
use crate::model::{
    AgentName, Approval, CommitId, ExitCause, Failure, JobExit, JobId, JobRole, Lane, LaneId, PullRequest, RetryLevel,
    Task, TaskId, Timestamp, Transcript, Usage, Verdict,
};

/// How a lane stands, in the words that people see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LaneState {
    /// Waits for dependencies or for a place.
    Waiting,
    /// Worktrees are opened.
    Starting,
    /// Agents work.
    Running,
    /// The lane's tests run.
    Testing,
    /// Reviewers decide.
    Reviewing,
    /// A person must say yes or no.
    NeedsApproval(Approval),
    /// A person must do a task, or say what was decided.
    NeedsPerson,
    /// On its way onto the integration branch.
    Merging,
    /// The integration branch holds its work.
    Merged,
    /// A pull request asks for its work to be merged.
    Proposed,
    /// Ended without success.
    Failed,
    /// Something outside must change first.
    Blocked,
    /// Begun, and asked to stop.
    Stopped,
    /// Put back to where it had not begun.
    RolledBack,
    /// Not part of this run.
    Skipped,
}

impl LaneState {
    /// The word or words for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Testing => "testing",
            Self::Reviewing => "reviewing",
            Self::NeedsApproval(Approval::Plan) => "waiting for approval (plan)",
            Self::NeedsApproval(Approval::Changes) => "waiting for approval (changes)",
            Self::NeedsPerson => "waiting for a person",
            Self::Merging => "merging",
            Self::Merged => "merged",
            Self::Proposed => "proposed",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::Stopped => "stopped",
            Self::RolledBack => "rolled back",
            Self::Skipped => "skipped",
        }
    }

    /// Whether this run has nothing left to do for the lane's work.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Merged | Self::Proposed)
    }

    /// Whether something goes on in the lane, or would if a person said so.
    pub fn is_active(self) -> bool {
        match self {
            Self::Starting | Self::Running | Self::Testing | Self::Reviewing | Self::Merging => true,
            Self::NeedsApproval(_) | Self::NeedsPerson => true,
            Self::Waiting | Self::Merged | Self::Proposed | Self::Failed | Self::Blocked => false,
            Self::Stopped | Self::RolledBack | Self::Skipped => false,
        }
    }
}

impl Serialize for LaneState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// A lane, as the events so far tell it.
#[derive(Debug, Clone)]
pub struct LaneView {
    /// Whether a command judges its work before it is merged; unknown of a lane that no plan names.
    pub has_gate: Option<bool>,
    /// Its id.
    pub id: LaneId,
    /// What people call it.
    pub name: Option<String>,
    /// The lanes that must be merged first.
    pub depends_on: Vec<LaneId>,
    /// Its human gates, where the plan is known.
    pub approval: Vec<Approval>,
    /// Its tasks that are a person's, and what each asks, where the plan is known.
    pub people: Vec<(TaskId, String)>,
    /// Agents that wait for a person, each with the task.
    pub asking: Vec<(AgentName, TaskId)>,
    /// Those to whom the person said no, as long as nothing follows from it: a resume asks again.
    pub(super) refused: Vec<(AgentName, TaskId)>,
    /// How it stands; follows from the rest and from the run.
    pub state: LaneState,
    /// Where it stands in its life.
    pub stage: LaneStage,
    /// Jobs that are planned or run, oldest first.
    pub running: Vec<JobView>,
    /// Jobs that ended, in the order they ended.
    pub ended: Vec<JobView>,
    /// Its agents that have done something, in the order they first did.
    pub agents: Vec<AgentView>,
    /// Retries so far.
    pub retries: Vec<RetryView>,
    /// No agent starts before this moment, after a failure.
    pub delayed_until: Option<Timestamp>,
    /// When it left the queue.
    pub started: Option<Timestamp>,
    /// When it was merged, failed, blocked or rolled back.
    pub finished: Option<Timestamp>,
    /// The commit it starts from.
    pub base: Option<CommitId>,
    /// Its worktree.
    pub worktree: Option<Worktree>,
    /// Its branch's head.
    pub head: Option<CommitId>,
    /// The integration branch after the lane's merge.
    pub merge_commit: Option<CommitId>,
    /// Its pull request.
    pub pull_request: Option<PullRequest>,
    /// Whether an earlier run merged it.
    pub merged_before: bool,
    /// Whether this run leaves it out.
    pub skipped: bool,
    /// Whether it was asked to stop.
    pub stopping: bool,
    /// How it ended, if it ended without a merge.
    pub ending: Option<Ending>,
    /// The last failure, mended or not.
    pub last_failure: Option<FailureView>,
    /// Snapshots that were taken.
    pub snapshots: Vec<SnapshotView>,
    /// What became of its must-haves when they were looked for the last time.
    pub must_haves: Vec<Verdict>,
    /// What was kept at cleanup or rollback, each with the reason.
    pub kept: Vec<String>,
    /// Human gates that were answered with yes, and hold.
    pub(super) approved: Vec<Approval>,
    /// Whether the merge has begun.
    pub(super) merging: bool,
}

/// How a lane ended without a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// It failed; [`LaneView::last_failure`] tells more.
    Failed(Failure),
    /// It waits for something outside: what must change, and how.
    Blocked(String),
    /// It was put back.
    RolledBack,
}

/// A job: an agent's attempt or a gate's run.
#[derive(Debug, Clone, PartialEq)]
pub struct JobView {
    /// Its name; its number is the attempt's.
    pub job: JobId,
    /// Since when it is planned, or runs.
    pub since: Timestamp,
    /// Whether its supervisor runs.
    pub running: bool,
    /// How it ended; `None` while it runs, or when nobody will ever know.
    pub exit: Option<JobExit>,
    /// What its event stream came to, where its runner has one.
    pub transcript: Option<Transcript>,
}

impl JobView {
    /// From when to when it ran; until `now` while it runs.
    pub fn span(&self, now: Timestamp) -> (Timestamp, Timestamp) {
        self.exit.as_ref().map_or((self.since, now), |exit| (exit.started_at, exit.finished_at))
    }
}

/// An agent of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentView {
    /// Its name.
    pub name: AgentName,
    /// Its worktree, while it holds one of its own.
    pub worktree: Option<Worktree>,
    /// Its branch's head.
    pub head: Option<CommitId>,
    /// Whether its work is in the lane branch.
    pub merged: bool,
    /// How often it was told to try again.
    pub retries: u32,
}

/// A retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RetryView {
    /// Who tries again.
    pub agent: AgentName,
    /// A retry, or the last attempt, which starts from the last state that passed and counts as no retry.
    pub level: RetryLevel,
    /// Which retry, from 1; of the last attempt, how many there were.
    pub attempt: u32,
    /// How many there may be.
    pub max: u32,
    /// What had failed.
    pub reason: String,
    /// When it was planned.
    pub at: Timestamp,
}

impl RetryView {
    /// `1 of 3`, and that the last attempt was made where it was.
    pub fn used(&self) -> String {
        let last = if self.level == RetryLevel::Rollback { ", then a different approach" } else { "" };
        format!("{} of {}{last}", self.attempt, self.max)
    }

    /// What the attempt is that follows.
    pub fn told(&self) -> String {
        match self.level {
            RetryLevel::Rollback => "last attempt, with a different approach".to_owned(),
            _ => format!("retry {} of {}", self.attempt, self.max),
        }
    }
}

/// A failure and what it happened to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureView {
    /// Who is to mend it.
    pub agent: Option<AgentName>,
    /// In which task.
    pub task: Option<TaskId>,
    /// The job that failed, where a job failed.
    pub job: Option<JobId>,
    /// What.
    pub failure: Failure,
    /// When.
    pub at: Timestamp,
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotView {
    /// Whose worktree; `None`: the lane's.
    pub agent: Option<AgentName>,
    /// Why it was taken.
    pub reason: SnapshotReason,
    /// The commit.
    pub commit: CommitId,
    /// The ref that keeps it.
    pub reference: String,
    /// When.
    pub at: Timestamp,
}

/// What a lane waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitingFor {
    /// Lanes that are not merged.
    Lanes(Vec<LaneId>),
    /// A place among those that work at once.
    Place,
    /// A person.
    Approval(Approval),
    /// A person: these tasks.
    Person(Vec<TaskId>),
    /// A moment, after a failure.
    Until(Timestamp),
}

impl LaneView {
    /// A lane of which only the name is known.
    pub(super) fn new(id: LaneId) -> Self {
        Self {
            has_gate: None,
            id,
            name: None,
            depends_on: Vec::new(),
            approval: Vec::new(),
            people: Vec::new(),
            asking: Vec::new(),
            refused: Vec::new(),
            state: LaneState::Waiting,
            stage: LaneStage::Waiting,
            running: Vec::new(),
            ended: Vec::new(),
            agents: Vec::new(),
            retries: Vec::new(),
            delayed_until: None,
            started: None,
            finished: None,
            base: None,
            worktree: None,
            head: None,
            merge_commit: None,
            pull_request: None,
            merged_before: false,
            skipped: false,
            stopping: false,
            ending: None,
            last_failure: None,
            snapshots: Vec::new(),
            must_haves: Vec::new(),
            kept: Vec::new(),
            approved: Vec::new(),
            merging: false,
        }
    }

    /// A lane of a plan.
    pub(super) fn of_plan(lane: &Lane) -> Self {
        let tasks = lane.agents.iter().flat_map(|agent| &agent.tasks).filter(|task| task.kind.is_human());
        let mut people: Vec<_> = tasks.map(|task| (task.id.clone(), question(task))).collect();
        people.dedup();
        Self { name: lane.name.clone(), approval: lane.approval.clone(), people, ..Self::new(lane.id.clone()) }
    }

    /// Its branch, once it has a worktree.
    pub fn branch(&self) -> Option<&str> {
        self.worktree.as_ref().map(|worktree| worktree.branch.as_str()).filter(|branch| !branch.is_empty())
    }

    /// Agents that work now, each with its attempt.
    pub fn current_attempts(&self) -> impl Iterator<Item = &JobView> {
        self.running.iter().filter(|job| job.job.is_attempt())
    }

    /// How many attempts of agents were started.
    pub fn attempts(&self) -> usize {
        self.running.iter().chain(&self.ended).filter(|job| job.job.is_attempt()).count()
    }

    /// What its agents used.
    pub fn usage(&self) -> Usage {
        self.jobs().filter_map(|job| job.transcript.as_ref()).map(|transcript| transcript.usage).sum()
    }

    /// Every job, ended ones first: what a timeline shows.
    pub fn jobs(&self) -> impl Iterator<Item = &JobView> {
        self.ended.iter().chain(&self.running)
    }

    /// How long it has taken until `now`, or took; `None` before it began.
    pub fn elapsed(&self, now: Timestamp) -> Option<Duration> {
        self.started.map(|started| self.finished.unwrap_or(now).since(started))
    }

    /// Why it failed or is blocked.
    pub fn reason(&self) -> Option<&str> {
        match self.ending.as_ref()? {
            Ending::Failed(failure) => Some(&failure.message),
            Ending::Blocked(reason) => Some(reason),
            Ending::RolledBack => None,
        }
    }

    /// Where its worktree and those of its agents are.
    pub fn worktree_paths(&self) -> Vec<PathBuf> {
        let agents = self.agents.iter().filter_map(|agent| agent.worktree.as_ref());
        self.worktree.iter().chain(agents).map(|worktree| worktree.path.clone()).collect()
    }

    /// The agent of that name, known from now on.
    pub(super) fn agent(&mut self, name: &AgentName) -> &mut AgentView {
        let at = self.agents.iter().position(|agent| agent.name == *name).unwrap_or_else(|| {
            let name = name.clone();
            self.agents.push(AgentView { name, worktree: None, head: None, merged: false, retries: 0 });
            self.agents.len() - 1
        });
        &mut self.agents[at]
    }

    /// The job that the failure of `agent` is about: the last one of its own that did not pass, else of anybody's.
    pub(super) fn failed_job(&self, agent: Option<&AgentName>) -> Option<&JobView> {
        let failed = || self.ended.iter().rev().filter(|job| job.exit.as_ref().is_some_and(failed_by_itself));
        failed().find(|job| agent.is_some() && job.job.agent() == agent).or_else(|| failed().next())
    }

    pub(super) fn testing_the_merge(&self) -> bool {
        self.running.iter().any(|job| job.job.role == JobRole::MergedTests)
    }
}

/// What a person is asked: `checkpoint:decision: Which database? …`.
fn question(task: &Task) -> String {
    let name = task.name.as_ref().filter(|name| **name != task.prompt).map(|name| format!("{name}: "));
    format!("{}: {}{}", task.kind, name.unwrap_or_default(), task.prompt.trim())
}

fn failed_by_itself(exit: &JobExit) -> bool {
    !exit.passed() && exit.cause != ExitCause::Stopped
}
