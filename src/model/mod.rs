//! The words of the field as types. Nothing here does anything but hold and check data.

mod change_size;
pub mod checkpoint;
pub mod checkpoint_record;
pub mod command;
pub mod dag;
pub mod diagnosis;
pub mod digest;
pub mod failure;
mod git_variables;
mod human_gate;
pub mod id;
pub mod job;
mod merge_choice;
mod merged_plan;
pub mod must_haves;
pub mod outage;
pub mod ownership;
pub mod plan;
mod progress;
mod pull_request;
pub mod redact;
mod reporting;
pub mod retry;
pub mod runner;
pub mod safe_text;
pub mod snapshot_rules;
pub mod task_file;
pub mod text;
pub mod time;
mod transcript;
mod tree_entry;
pub mod withheld;
pub(crate) mod word;

pub use change_size::ChangeSize;
pub use checkpoint::{Checkpoint, CheckpointStatus, CommitId, Stage};
pub use checkpoint_record::{CheckpointRecord, GitState};
pub use command::CommandLine;
pub use dag::{Dag, LaneIndex};
pub use diagnosis::{Diagnosis, FailureClass, Finding};
pub use failure::{Failure, FailureKind};
pub use git_variables::{is_display_variable, is_foreign_git_variable, is_transport_variable};
pub use human_gate::HumanGate;
pub use id::{AgentName, InvalidId, LaneId, PhaseId, RunId, TaskId};
pub use job::{ExitCause, JobExit, JobId, JobRole, JobSpec, OnOrphan, ProcessId};
pub use merge_choice::{MergeChoice, MergeMode, MergeStyle};
pub use merged_plan::{MergedPlan, PlanningFiles};
pub use must_haves::{Artifact, Demand, KeyLink, MustHaves, MustHavesRule, Verdict};
pub use outage::{Outage, OutageKind};
pub use plan::{
    Agent, AgentOptions, Approval, Gates, Lane, Plan, PlanFormat, PlanParts, Round, Task, TaskKind, Timeouts,
    UNSET_RUNNER,
};
pub use progress::{NotifyOn, Progress};
pub use pull_request::{ForgeChoice, PullRequest};
pub use redact::Redactor;
pub use reporting::{Ci, ReportFormat};
pub use retry::RetryLevel;
pub use runner::Runner;
pub use snapshot_rules::SnapshotRules;
pub use task_file::{Interruption, TaskAgent, TaskCheckpoint, TaskFile, Transition};
pub use time::Timestamp;
pub use transcript::{Budget, Dollars, Session, Transcript, Usage};
pub use tree_entry::{TreeEntry, TreeEntryKind};
pub(crate) use word::{Word, word_enum};
