//! Arguments of the commands about what is on record: errors, checkpoints, snapshots.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::model::{AgentName, LaneId, PhaseId, RunId, TaskId};
use crate::settings::value;
use crate::store::error_log::ErrorType;

/// `log-error`.
#[derive(Debug, clap::Args)]
pub struct LogError {
    /// The phase
    #[arg(long)]
    pub phase: PhaseId,
    /// The plan: a lane, or the file that holds the whole plan
    #[arg(long)]
    pub plan: String,
    /// The task
    #[arg(long)]
    pub task: TaskId,
    /// The agent
    #[arg(long)]
    pub specialist: AgentName,
    /// What kind of error
    #[arg(long, value_name = "TYPE", value_parser = error_type())]
    pub error_type: ErrorType,
    /// What happened
    #[arg(long, value_name = "TEXT")]
    pub details: String,
    /// The run, whose own error log is written then
    #[arg(long)]
    pub run: Option<RunId>,
    /// The lane
    #[arg(long)]
    pub lane: Option<LaneId>,
}

fn error_type() -> impl TypedValueParser<Value = ErrorType> {
    let words = ErrorType::ALL.iter().map(|kind| kind.word());
    PossibleValuesParser::new(words).try_map(|word| ErrorType::from_word(&word).ok_or("no such type"))
}

/// `checkpoints`.
#[derive(Debug, Subcommand)]
pub enum Checkpoints {
    /// List what a run has on record: the stages of its lanes, and its snapshots
    List(ListCheckpoints),
    /// Show one snapshot: what was known then, what it changes, how to restore it
    Show(ShowCheckpoint),
    /// Keep a worktree as it is now
    Create(CreateCheckpoint),
    /// Restore a snapshot; the current state is saved first
    Restore(RestoreCheckpoint),
    /// Remove superseded snapshots
    Prune(PruneCheckpoints),
}

/// `checkpoints list`.
#[derive(Debug, clap::Args)]
pub struct ListCheckpoints {
    /// The run; if left out the only unfinished one, else the newest
    pub run: Option<RunId>,
    /// Only this lane
    #[arg(long)]
    pub lane: Option<LaneId>,
}

/// `checkpoints show`.
#[derive(Debug, clap::Args)]
pub struct ShowCheckpoint {
    /// The snapshot: its name, its ref, or the beginning of its commit
    pub name: String,
}

/// `checkpoints create`.
#[derive(Debug, clap::Args)]
pub struct CreateCheckpoint {
    /// The run
    pub run: RunId,
    /// The lane
    pub lane: LaneId,
    /// The agent whose worktree is kept; if left out the lane's own
    pub agent: Option<AgentName>,
    /// What to say about it
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub message: String,
}

/// `checkpoints restore`.
#[derive(Debug, clap::Args)]
pub struct RestoreCheckpoint {
    /// The snapshot: its name, its ref, the beginning of its commit, or latest:LANE[/AGENT] for the newest intact one
    pub name: String,
    /// Check it out into this new directory instead of the worktree it came from
    #[arg(long, value_name = "DIR", conflicts_with = "branch")]
    pub to: Option<PathBuf>,
    /// Only make this branch of it
    #[arg(long, value_name = "NAME", value_parser = value::branch)]
    pub branch: Option<String>,
}

/// `checkpoints prune`.
#[derive(Debug, clap::Args)]
pub struct PruneCheckpoints {
    /// The run; if left out the only unfinished one, else the newest
    pub run: Option<RunId>,
    /// Keep the newest N of each lane [default: checkpoint_keep]
    #[arg(long, value_name = "N", value_parser = value::count)]
    pub keep: Option<NonZeroU32>,
    /// Only those that are older than this
    #[arg(long, value_name = "DURATION", value_parser = value::duration)]
    pub older_than: Option<Duration>,
    /// Remove those that are the only holder of unmerged work too
    #[arg(long)]
    pub force: bool,
    /// Show what would be removed, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}
