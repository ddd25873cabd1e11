//! Arguments of the commands about what is on record: errors, checkpoints, snapshots.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use lanewright_model::{AgentName, EventName, LaneId, PhaseId, TaskId};
use lanewright_plan::settings::value;
use lanewright_store::error_log::ErrorType;

use super::flags::ProgressArgs;
use super::{AgentArgs, Name, RunArg, choice};

#[derive(Debug, clap::Args)]
pub(crate) struct LogError {
    /// The phase
    #[arg(long)]
    pub(crate) phase: PhaseId,
    /// The plan: a lane, or the file that holds the whole plan
    #[arg(long)]
    pub(crate) plan: String,
    /// The task
    #[arg(long)]
    pub(crate) task: TaskId,
    /// The agent
    #[arg(long, value_name = "AGENT")]
    pub(crate) specialist: AgentName,
    /// What kind of error
    #[arg(long, value_name = "TYPE", value_parser = choice::<ErrorType>())]
    pub(crate) error_type: ErrorType,
    /// What happened
    #[arg(long, value_name = "TEXT")]
    pub(crate) details: String,
    /// The run, whose own error log is written then
    #[arg(long)]
    pub(crate) run: Option<Name>,
    /// The lane
    #[arg(long)]
    pub(crate) lane: Option<LaneId>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LogEvent {
    /// The name of the event, for example deployed
    pub(crate) name: EventName,
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// Data of the event, as JSON of at most 1 MB; `-` reads it from standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) data: Option<String>,
    /// The lane that it is about
    #[arg(long)]
    pub(crate) lane: Option<LaneId>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Checkpoints {
    /// List what a run has on record: the stages of its lanes, and its snapshots
    List(ListCheckpoints),
    /// Show one snapshot: what was known then, what it changes, how to restore it
    Show {
        /// The snapshot: its name, its ref, or the beginning of its commit
        name: String,
    },
    /// Keep a worktree as it is now, or a branch that has none
    Create(CreateCheckpoint),
    /// Restore a snapshot; the current state is saved first
    Restore(RestoreCheckpoint),
    /// Remove superseded snapshots
    Prune(PruneCheckpoints),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ListCheckpoints {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// Only this lane
    #[arg(long)]
    pub(crate) lane: Option<LaneId>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CreateCheckpoint {
    #[command(flatten)]
    pub(crate) target: AgentArgs,
    /// What to say about it
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) message: String,
    /// Decisions, blockers and the next task, as JSON; `-` reads it from standard input
    ///
    /// An object with the keys decisions, blockers and next_task, each of which may be left out. The agents' next prompts
    /// have the decisions.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) context: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RestoreCheckpoint {
    /// The snapshot: its name, its ref, the beginning of its commit, or latest:LANE[/AGENT] for the newest intact one
    pub(crate) name: String,
    /// Check it out into this new directory instead of the worktree it came from
    #[arg(long, value_name = "DIR", conflicts_with = "branch")]
    pub(crate) to: Option<PathBuf>,
    /// Only make this branch of it
    #[arg(long, value_name = "NAME", value_parser = value::branch)]
    pub(crate) branch: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PruneCheckpoints {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// Keep the newest N of each lane [default: checkpoint_keep]
    #[arg(long, value_name = "N", value_parser = value::count)]
    pub(crate) keep: Option<NonZeroU32>,
    /// Only those that are older than this
    #[arg(long, value_name = "DURATION", value_parser = value::duration)]
    pub(crate) older_than: Option<Duration>,
    /// Remove those that are the only holder of unmerged work too
    #[arg(long)]
    pub(crate) force: bool,
    /// Show what would be removed, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}
