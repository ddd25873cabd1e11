//! Arguments of the commands that repair and remove state.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lanewright_plan::settings::value;

use super::Name;
use super::flags::ProgressArgs;

#[derive(Debug, Args)]
pub(crate) struct Clean {
    /// The run: its id, the beginning of its id, or @latest [default: all finished runs]
    pub(crate) run: Option<Name>,
    /// Remove unmerged work too
    #[arg(long)]
    pub(crate) force: bool,
    /// Remove logs and reports too
    #[arg(long)]
    pub(crate) logs: bool,
    /// Only show what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The run: its id, the beginning of its id, or @latest [default: all runs]
    pub(crate) run: Option<Name>,
    /// Repair what can be repaired; without this, nothing is written
    #[arg(long)]
    pub(crate) fix: bool,
    /// Check an executor of the settings instead, with a job
    ///
    /// The job answers through the exchange and is removed again; see docs/clusters.md.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["run", "fix"])]
    pub(crate) executor: Option<String>,
    /// The git remote, by name or address, that jobs are to reach [default: the setting exchange, else state_remote]
    #[arg(long, value_name = "REMOTE", requires = "executor", value_parser = value::exchange,
        hide_short_help = true)]
    pub(crate) exchange: Option<String>,
    /// Ask the executor for what the lanes of this plan would ask it for
    ///
    /// Each different request gets a job, one after the other. Lanes that name no executor count, too.
    #[arg(long, value_name = "PLAN", requires = "executor", hide_short_help = true)]
    pub(crate) plan: Option<PathBuf>,
    /// How long the job may take until it answers
    #[arg(long, value_name = "DURATION", requires = "executor", default_value = "5m",
        value_parser = value::positive_duration, hide_short_help = true)]
    pub(crate) wait: Duration,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}
