//! Arguments of the commands that resume a run.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use lanewright_model::LaneId;
use lanewright_plan::settings::{Layer, value};

use super::control::ControlArgs;
use super::flags::{LIMITS, Limit, SESSION, flag};
use super::{LaneArgs, Name, RunArg};

#[derive(Debug, Args)]
#[command(mut_arg("yes", |yes| yes.hide_short_help(true)))]
pub(crate) struct Resume {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// How long the run may take from now on
    ///
    /// Such as 90s, 2h or none. Default: as long as when it began.
    #[arg(long, value_name = "DURATION", value_parser = value::limit, help_heading = LIMITS)]
    pub(crate) timeout: Option<Limit>,
    /// Add this text to the next prompt of each agent
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) message: String,
    /// Send the message only to this lane's agents
    #[arg(long, value_name = "LANE", requires = "message")]
    pub(crate) message_for: Option<LaneId>,
    /// Wait for your answers instead of ending
    ///
    /// When lanes need nothing else.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Run in the background; return once the run has begun
    ///
    /// Prints how to look at it and how to stop it. What keeps it from beginning is printed, with its exit code.
    #[arg(long, help_heading = SESSION, hide_short_help = true)]
    pub(crate) detach: bool,
    /// Only this lane and what it depends on; repeatable
    ///
    /// The others stay as they are.
    #[arg(long = "lane", value_name = "LANE")]
    pub(crate) lanes: Vec<LaneId>,
    /// Write a Chrome trace of the run to FILE, for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE", help_heading = SESSION, hide_short_help = true)]
    pub(crate) timings: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

#[derive(Debug, Args)]
#[command(mut_arg("yes", |yes| yes.hide_short_help(true)))]
pub(crate) struct FollowArgs {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// For how long [default: the setting `follow`, else 2h]
    ///
    /// After a pull request was opened or updated, or this command began, whichever is later.
    #[arg(long, value_name = "DURATION", value_parser = value::duration)]
    pub(crate) time: Option<Duration>,
    /// Ask the forge once, and end when nothing more follows from that
    #[arg(long, conflicts_with = "time")]
    pub(crate) once: bool,
    /// Run in the background; return once the run has begun
    ///
    /// Prints how to look at it and how to stop it. What keeps it from beginning is printed, with its exit code.
    #[arg(long, help_heading = SESSION, hide_short_help = true)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

#[derive(Debug, Args)]
#[command(mut_arg("yes", |yes| yes.hide_short_help(true)))]
pub(crate) struct Retry {
    /// [RUN] LANE...: a run, if the first word is one, and the lanes
    ///
    /// Without a run, the newest unfinished one, else the newest.
    #[arg(value_name = "RUN|LANE")]
    pub(crate) names: Vec<Name>,
    /// Add this text to the next prompts of the lanes
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) message: String,
    /// The prompt of the task that failed, from now on
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt_file: Option<PathBuf>,
    /// The runner of the agent that failed, from now on
    #[arg(long, value_name = "NAME", value_parser = value::runner)]
    pub(crate) runner: Option<String>,
    /// Wait for your answers instead of ending
    ///
    /// When lanes need nothing else.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Run in the background; return once the run has begun
    ///
    /// Prints how to look at it and how to stop it. What keeps it from beginning is printed, with its exit code.
    #[arg(long, help_heading = SESSION, hide_short_help = true)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

#[derive(Debug, Args)]
#[command(mut_arg("yes", |yes| yes.hide_short_help(true)))]
pub(crate) struct Recover {
    #[command(flatten)]
    pub(crate) target: LaneArgs,
    /// What is known of the error; the agents' next prompts have it
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) error: String,
    /// Show which level is next and why, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Wait for your answers instead of ending
    ///
    /// When lanes need nothing else.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Run in the background; return once the run has begun
    ///
    /// Prints how to look at it and how to stop it. What keeps it from beginning is printed, with its exit code.
    #[arg(long, help_heading = SESSION, hide_short_help = true)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

impl Resume {
    /// The layer of settings that these flags make.
    pub(crate) fn layer(&self) -> Layer {
        Layer { timeout: flag("--timeout", &self.timeout), ..self.control.layer() }
    }
}
