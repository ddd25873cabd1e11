//! Arguments of the commands that show runs and change nothing.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, NaiveTime};
use clap::Args;
use lanewright_model::Timestamp;
use lanewright_plan::settings::value;

use super::{AgentArgs, Name, RunArg};

#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// Show only this lane: its attempts, gates, findings, output and what you can do
    pub(crate) lane: Option<Name>,
    /// Keep the display up to date until the run ends
    #[arg(long, conflicts_with = "settings")]
    pub(crate) watch: bool,
    /// Show every setting and where its value came from instead
    #[arg(long, conflicts_with = "run")]
    pub(crate) settings: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// [RUN] [LANE...]: a run, if the first word is one, and only these lanes. Of two lanes the second is an agent of the
    /// first, unless it is a lane
    #[arg(value_name = "RUN|LANE")]
    pub(crate) names: Vec<Name>,
    /// Only the last N lines of each lane
    #[arg(long, value_name = "N")]
    pub(crate) tail: Option<usize>,
    /// Only attempts and gates that ran after this: a duration ago (10m), a time of today (14:30) or a timestamp
    #[arg(long, value_name = "DURATION|TIME", value_parser = since)]
    pub(crate) since: Option<Since>,
    /// Print the raw output, without interpreting event streams
    #[arg(long)]
    pub(crate) raw: bool,
    /// Follow the output
    #[arg(short, long)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    #[command(flatten)]
    pub(crate) target: AgentArgs,
    /// Show what this candidate of the lane changed, chosen or not
    #[arg(long, value_name = "N", conflicts_with = "agent")]
    pub(crate) candidate: Option<u32>,
    /// Show a diffstat instead of the changes
    #[arg(long)]
    pub(crate) stat: bool,
    /// Show only the names of changed files
    #[arg(long, conflicts_with = "stat")]
    pub(crate) name_only: bool,
    /// Show the changes in the user's diff tool (git difftool)
    #[arg(long, conflicts_with_all = ["stat", "name_only"])]
    pub(crate) tool: bool,
    /// More arguments for git diff, such as -w, or -- and paths
    #[arg(last = true, value_name = "GIT ARGUMENTS")]
    pub(crate) git: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Open {
    #[command(flatten)]
    pub(crate) target: AgentArgs,
    /// Run this shell line in the worktree [default: $VISUAL or $EDITOR with the directory]
    #[arg(long, value_name = "COMMAND")]
    pub(crate) with: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// The moment that `logs --since` names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Since {
    Ago(Duration),
    At(Timestamp),
    Today(NaiveTime),
}

fn since(text: &str) -> Result<Since, String> {
    let time = ["%H:%M:%S", "%H:%M"].iter().find_map(|format| NaiveTime::parse_from_str(text, format).ok());
    if let Some(time) = time {
        return Ok(Since::Today(time));
    }
    if let Ok(moment) = DateTime::parse_from_rfc3339(text) {
        return Ok(Since::At(Timestamp(moment.to_utc())));
    }
    let duration = value::duration(text).map(Since::Ago);
    duration.map_err(|_| format!("`{text}` is not a time; write for example `10m`, `14:30` or `2026-01-31T14:30:00Z`"))
}
