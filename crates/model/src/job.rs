//! Jobs: the programs that Lanewright runs for a plan, each under a supervisor of its own.
//!
//! A job is one attempt of an agent at a task, or one run of a gate. Its name is unique in its run and never used
//! again, so that a late message of an earlier job is not taken for that of a later one.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::command::CommandLine;
use super::git_variables::{is_foreign_git_variable, is_transport_variable};
use super::id::{AgentName, LaneId, TaskId};
use super::time::{Timestamp, millis, optional_millis};
use super::wall::Wall;
use super::word_enum;

/// The name of a job, never reused in its run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobId {
    /// The lane; null: the phase's final gate.
    pub lane: Option<LaneId>,
    pub role: JobRole,
    /// From 1 for each lane and role.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub number: u32,
}

/// What a job does: a word, or an object with the word as its one member.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobRole {
    /// One attempt of an agent at a task.
    Attempt { agent: AgentName, task: TaskId },
    /// The task's `verify` commands and the `atomic` gate, in the agent's worktree.
    Verify { agent: AgentName, task: TaskId },
    /// The `setup` commands, in the agent's worktree or, if `agent` is null, in the lane's.
    Setup { agent: Option<AgentName> },
    /// The `checkpoint` gate, in the lane's worktree after the agent was merged.
    Checkpoint { agent: AgentName },
    /// The lane's `tests`, on the lane branch.
    Tests,
    /// The lane's `tests` on the merged result, if the integration branch moved meanwhile.
    MergedTests,
    /// The phase's `final` gate.
    Final,
}

word_enum! {
    /// What a job does, in one word.
    JobKind {
        /// An attempt of an agent at a task.
        Attempt = "attempt",
        /// The task's `verify` commands and the `atomic` gate.
        Verify = "verify",
        /// The `setup` commands.
        Setup = "setup",
        /// The `checkpoint` gate.
        Checkpoint = "checkpoint",
        /// The lane's `tests`.
        Tests = "tests",
        /// The lane's `tests` on the merged result.
        MergedTests = "merged-tests",
        /// The phase's `final` gate.
        Final = "final",
    }
}

impl JobId {
    /// Whether this is an agent's attempt, the kind that counts towards `max_parallel`.
    pub fn is_attempt(&self) -> bool {
        matches!(self.role, JobRole::Attempt { .. })
    }

    pub fn agent(&self) -> Option<&AgentName> {
        match &self.role {
            JobRole::Attempt { agent, .. } | JobRole::Verify { agent, .. } | JobRole::Checkpoint { agent } => {
                Some(agent)
            }
            JobRole::Setup { agent } => agent.as_ref(),
            JobRole::Tests | JobRole::MergedTests | JobRole::Final => None,
        }
    }

    pub fn task(&self) -> Option<&TaskId> {
        match &self.role {
            JobRole::Attempt { task, .. } | JobRole::Verify { task, .. } => Some(task),
            _ => None,
        }
    }

    /// Its directory, relative to the run's: `lanes/SL-1/engineer/1/attempt-2`, `lanes/SL-1/tests-1`, `final-1`.
    pub fn directory(&self) -> PathBuf {
        let mut path = PathBuf::new();
        if let Some(lane) = &self.lane {
            path.push("lanes");
            path.push(lane.as_str());
        }
        // Agents have a directory level of their own, so an agent called `tests-1` meets nothing.
        if let Some(agent) = self.agent() {
            path.push("agents");
            path.push(agent.as_str());
        }
        if let Some(task) = self.task() {
            path.push("tasks");
            path.push(task.as_str());
        }
        path.push(format!("{}-{}", self.role.word(), self.number));
        path
    }
}

impl JobId {
    /// `engineer/1 attempt 2`: for people, where the lane is known.
    pub fn within_lane(&self) -> String {
        let whole = self.to_string();
        let rest = self.lane.as_ref().and_then(|lane| whole.strip_prefix(lane.as_str()));
        rest.map_or(whole.as_str(), |rest| rest.trim_start_matches(['/', ' '])).to_owned()
    }

    /// The job of `lane` that is displayed as `text` within it.
    pub fn displayed_within(lane: &LaneId, text: &str) -> Option<Self> {
        let (rest, number) = text.rsplit_once(' ')?;
        let (place, title) = rest.rsplit_once(' ').unwrap_or(("", rest));
        let mut names = place.split('/').filter(|name| !name.is_empty());
        let agent = names.next().map(AgentName::new).transpose().ok()?;
        let task = names.next().map(TaskId::new).transpose().ok()?;
        let role = match (title, agent, task) {
            ("attempt", Some(agent), Some(task)) => JobRole::Attempt { agent, task },
            ("verify", Some(agent), Some(task)) => JobRole::Verify { agent, task },
            ("setup", agent, None) => JobRole::Setup { agent },
            ("checkpoint", Some(agent), None) => JobRole::Checkpoint { agent },
            ("tests", None, None) => JobRole::Tests,
            _ => return None,
        };
        Some(Self { lane: Some(lane.clone()), role, number: number.parse().ok()? })
    }
}

impl JobRole {
    /// Whether it judges work: then a failure anywhere in a pipeline is one.
    pub fn is_gate(&self) -> bool {
        !matches!(self, Self::Attempt { .. } | Self::Setup { .. })
    }

    pub fn kind(&self) -> JobKind {
        match self {
            Self::Attempt { .. } => JobKind::Attempt,
            Self::Verify { .. } => JobKind::Verify,
            Self::Setup { .. } => JobKind::Setup,
            Self::Checkpoint { .. } => JobKind::Checkpoint,
            Self::Tests => JobKind::Tests,
            Self::MergedTests => JobKind::MergedTests,
            Self::Final => JobKind::Final,
        }
    }

    pub fn word(&self) -> &'static str {
        self.kind().word()
    }

    /// In texts for people.
    pub fn title(&self) -> &'static str {
        match self {
            Self::MergedTests => "tests after the merge",
            other => other.word(),
        }
    }
}

impl fmt::Display for JobId {
    /// `SL-1/engineer/1 attempt 2`: for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut place: Vec<&str> = Vec::new();
        place.extend(self.lane.as_ref().map(LaneId::as_str));
        place.extend(self.agent().map(AgentName::as_str));
        place.extend(self.task().map(TaskId::as_str));
        if !place.is_empty() {
            write!(f, "{} ", place.join("/"))?;
        }
        write!(f, "{} {}", self.role.title(), self.number)
    }
}

/// Everything a supervisor needs to run a job; its only input, read from `spec.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    pub job: JobId,
    /// Run one after another; the first that fails ends the job.
    pub steps: Vec<CommandLine>,
    /// Where they run; absolute.
    pub directory: PathBuf,
    /// Added to what the job [inherits](Self::inherits).
    pub environment: BTreeMap<String, String>,
    /// Names of variables of the supervisor's environment that the job does not get.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// A file that is the first step's standard input; absent: nothing.
    #[serde(default)]
    pub input: Option<PathBuf>,
    /// For all steps together; absent: no limit.
    #[serde(with = "optional_millis", default)]
    pub timeout: Option<Duration>,
    /// From SIGTERM to SIGKILL.
    #[serde(with = "millis")]
    pub kill_after: Duration,
    /// How often a sign of life is written.
    #[serde(with = "millis")]
    pub heartbeat: Duration,
    /// How many bytes of the disk the output may take before its middle is left out; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_limit: Option<u64>,
    /// The agent's `status.json`, which is kept alive until the agent writes it itself; absent for gates.
    #[serde(default)]
    pub status: Option<StatusSpec>,
    /// What happens when Lanewright dies.
    pub on_orphan: OnOrphan,
    /// Regular expressions of secrets, which are taken out of what the job leaves, besides those of the environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redact: Vec<String>,
    /// Of an attempt that a runner of the agent's `fallback` makes: its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// What the job's processes may reach; absent: whatever the user may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<Wall>,
}

impl JobSpec {
    /// Whether the job gets the variable called `name` of Lanewright's own environment. How git reaches other machines, and
    /// with which credentials, is for all jobs but agents.
    pub fn inherits(&self, name: &OsStr) -> bool {
        let is_foreign = is_foreign_git_variable(name) && (self.job.is_attempt() || !is_transport_variable(name));
        !is_foreign && !self.withheld.iter().any(|withheld| name == withheld.as_str())
    }
}

/// What a supervisor writes into `status.json` on an agent's behalf.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatusSpec {
    /// The file; absolute.
    pub path: PathBuf,
    pub agent: String,
    pub task: String,
    pub round: String,
    /// How many retries went before.
    pub retry_count: u32,
}

word_enum! {
    /// What a supervisor does when the Lanewright that started it dies.
    OnOrphan {
        /// Let the agent finish; a resume collects its work.
        Continue = "continue",
        /// Stop the agent as a timeout would.
        Stop = "stop",
    }
}

word_enum! {
    /// Which git directory an agent works with.
    GitDirectory {
        /// One of its own while it works, whose commits are then taken over.
        Private = "private",
        /// That of the repository.
        Shared = "shared",
    }
}

/// What runs did that did not record it.
impl Default for GitDirectory {
    fn default() -> Self {
        Self::Shared
    }
}

impl GitDirectory {
    /// Whether it is that of the repository.
    pub fn is_shared(&self) -> bool {
        *self == Self::Shared
    }
}

/// A process; its start time distinguishes it from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessId {
    /// Its number.
    pub pid: i32,
    /// When it started, in clock ticks since boot (Linux) or microseconds since the epoch (elsewhere).
    pub started: u64,
}

/// How a job ended, as its supervisor recorded it in `exit.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobExit {
    pub cause: ExitCause,
    /// The exit code of the command that ended it. 128 + N: ended by signal N; 124: it ran out of time; 137: it had to be
    /// killed; 127: it could not be started.
    pub exit_code: i32,
    /// The command that ended it, as typed in a shell.
    pub command: String,
    /// When its first command started.
    pub started_at: Timestamp,
    /// When its last process was gone.
    pub finished_at: Timestamp,
    /// The last lines of output, at most 20, oldest first.
    #[serde(default)]
    pub tail: Vec<String>,
    /// More about the cause.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

/// How many lines of output are kept with an exit ([`JobExit::tail`]).
pub const TAIL_LINES: usize = 20;

impl JobExit {
    /// Whether every step ran and exited with 0.
    pub fn passed(&self) -> bool {
        self.cause == ExitCause::Exited && self.exit_code == 0
    }
}

word_enum! {
    /// Why a job ended.
    ExitCause {
        /// The program ended by itself.
        Exited = "exited",
        /// The time limit passed.
        TimedOut = "timed_out",
        /// It was stopped on request; not the agent's failure.
        Stopped = "stopped",
        /// It could not be started.
        NotStarted = "not_started",
        /// The supervisor died without recording an exit; not the agent's failure.
        Lost = "lost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_titles_differ_from_directory_names() {
        let job = JobId { lane: Some(LaneId::new("A").unwrap()), role: JobRole::MergedTests, number: 2 };
        assert_eq!(job.to_string(), "A tests after the merge 2");
        assert_eq!(job.directory(), PathBuf::from("lanes/A/merged-tests-2"));
    }

    #[test]
    fn the_job_of_a_lane_is_known_by_what_is_displayed() {
        let (agent, task) = (AgentName::new("engineer").unwrap(), TaskId::new("1.2").unwrap());
        let roles = [
            JobRole::Attempt { agent: agent.clone(), task: task.clone() },
            JobRole::Verify { agent: agent.clone(), task },
            JobRole::Setup { agent: Some(agent.clone()) },
            JobRole::Setup { agent: None },
            JobRole::Checkpoint { agent },
            JobRole::Tests,
        ];
        for role in roles {
            let job = JobId { lane: Some(LaneId::new("A-1").unwrap()), role, number: 12 };
            let within = job.within_lane();
            assert_eq!(JobId::displayed_within(&LaneId::new("A-1").unwrap(), &within), Some(job), "{within}");
        }
        for other in ["", "tests", "tests x", "attempt 1", "b/c/d tests 1", "rests 1"] {
            assert_eq!(JobId::displayed_within(&LaneId::new("A-1").unwrap(), other), None, "{other}");
        }
    }
}
