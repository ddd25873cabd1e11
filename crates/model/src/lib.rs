//! What Lanewright's plans, run log and state files hold, as types.
//!
//! Nothing here reads a file, asks the clock or starts a program: a type holds data and checks it. The JSON of a type is
//! that of the files, so a program that reads the run log, `plan.json`, `checkpoints.json` or `task.json` can use these
//! types.
//!
//! Begin with [`event::Event`], what can happen in a run, and [`Plan`], what a run is to do.

#![allow(missing_docs, reason = "names that say it all")]

// For the derive in `word_enum!`, which names it by its path from outside.
#[cfg(feature = "schema")]
extern crate self as lanewright_model;

pub mod agent_options;
pub mod agent_phase;
mod attempt_runner;
pub mod cells;
mod change_size;
pub mod checkpoint;
pub mod checkpoint_record;
pub mod command;
pub mod dag;
pub mod dependencies;
pub mod diagnosis;
pub mod digest;
pub mod event;
mod executor;
pub mod failure;
mod git_variables;
mod human_gate;
pub mod id;
pub mod job;
mod lane_digest;
mod list_options;
mod merge_choice;
mod merged_plan;
pub mod must_haves;
pub mod outage;
pub mod ownership;
pub mod plan;
mod progress;
mod pull_request;
pub mod redact;
mod replaced;
mod reporting;
pub mod retry;
pub mod runner;
pub mod safe_text;
pub mod snapshot_rules;
pub mod task_file;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod time;
mod transcript;
mod tree_entry;
pub mod user_setup;
mod wall;
pub mod withheld;
mod word;

pub use agent_options::AgentOptions;
pub use agent_phase::AgentPhase;
pub use change_size::ChangeSize;
pub use checkpoint::{Checkpoint, CheckpointStatus, Stage};
pub use checkpoint_record::{CheckpointRecord, GitState};
pub use command::CommandLine;
pub use dag::{Dag, LaneIndex};
pub use dependencies::Submodules;
pub use diagnosis::{Diagnosis, FailureClass, Finding};
pub use executor::{ExecutorKind, ExecutorSettings, HERE, Resources};
pub use failure::{Failure, FailureKind};
pub use git_variables::{is_display_variable, is_foreign_git_variable, is_transport_variable};
pub use human_gate::HumanGate;
pub use id::{AgentName, CommitId, EventName, InvalidId, LaneId, PhaseId, RunId, TaskId};
pub use job::{ExitCause, GitDirectory, JobExit, JobId, JobRole, JobSpec, OnOrphan, ProcessId};
pub use list_options::{LaneOrder, LaneSplit, ListOptions};
pub use merge_choice::{MergeChoice, MergeMode, MergeStyle, PublishMode, Sign, SignOff};
pub use merged_plan::{MergedPlan, PlanningFiles, Tick};
pub use must_haves::{Artifact, Demand, KeyLink, MustHaves, MustHavesRule, Verdict};
pub use outage::{Outage, OutageKind};
pub use plan::{
    Agent, Approval, Gates, Lane, Plan, PlanFormat, PlanParts, Round, Task, TaskKind, Timeouts, UNSET_RUNNER,
};
pub use progress::{NotifyOn, Progress};
pub use pull_request::{
    ChecksState, Follow, ForgeChoice, PullRequest, PullRequestState, PullRequestStatus, Remark, ReviewState,
};
pub use redact::Redactor;
pub use replaced::{AgentPart, Replaced};
pub use reporting::{Ci, ReportFormat};
pub use retry::RetryLevel;
pub use runner::Runner;
pub use snapshot_rules::SnapshotRules;
pub use task_file::{Interruption, TaskAgent, TaskCheckpoint, TaskFile, Transition};
pub use time::Timestamp;
pub use transcript::{Budget, Dollars, Refusal, Session, Transcript, Usage};
pub use tree_entry::{TreeEntry, TreeEntryKind};
pub use user_setup::{SetupStep, SetupVariable, UserSetup};
pub use wall::{OutsideChanges, SandboxChoice, Wall, WallBuilder};
pub use word::Word;

#[doc(hidden)]
#[cfg(feature = "schema")]
pub use schemars;
