//! Arguments as typed. What they mean together with the settings is told by [`super::options`].

mod callers;
mod execution;
mod records;
mod state;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Parser, Subcommand, ValueEnum};

use super::error::exit_code_table;
use crate::model::{AgentName, HumanGate, LaneId, ReportFormat, RunId, Stage};
use crate::settings::value::{self, Choice};

pub use callers::{CiService, Hook, HookEvent, Init};
pub use execution::{
    ControlArgs, ExecuteLane, ExecutePhase, ExecutionArgs, Intent, Limit, ReadingArgs, Resume, Rollback,
};
pub use records::{
    Checkpoints, CreateCheckpoint, ListCheckpoints, LogError, PruneCheckpoints, RestoreCheckpoint, ShowCheckpoint,
};
pub use state::{DropState, ListStates, PullState, PushState, RemoteArgs, State};

/// Runs a phase plan as parallel lanes in git worktrees, and survives being killed.
#[derive(Debug, Parser)]
#[command(name = "lanekeeper", version, after_help = exit_code_table(), max_term_width = 120)]
pub struct Args {
    /// What holds for every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Work as if started in this directory
    #[arg(short = 'C', value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,
    /// The file that holds the checkpoint records
    #[arg(long, value_name = "FILE", global = true)]
    pub checkpoint_path: Option<PathBuf>,
    /// Path of the run log, for a single run
    #[arg(long, value_name = "FILE", global = true)]
    pub log_path: Option<PathBuf>,
    /// Ignore keys of plans and configuration files that this version does not know, with a warning
    #[arg(long, global = true)]
    pub allow_unknown: bool,
    /// Output format: text or json; `report` also writes md, junit and codequality
    #[arg(long, value_name = "FORMAT", value_parser = choice::<ReportFormat>(), default_value = "text",
        hide_possible_values = true, global = true)]
    pub format: ReportFormat,
    /// Write diagnostics to standard error; twice for more
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub verbose: u8,
    /// How diagnostics are written
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", global = true)]
    pub log_format: Format,
    /// When to use colour
    #[arg(long, value_enum, default_value_t, value_name = "WHEN", global = true)]
    pub color: Color,
}

impl GlobalArgs {
    /// How everything but reports is written.
    pub fn data_format(&self) -> Format {
        if self.format == ReportFormat::Json { Format::Json } else { Format::Text }
    }
}

/// For people or for programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

impl Format {
    /// What `arguments` that make no sense as a whole ask for.
    pub fn asked_for(arguments: &[OsString]) -> Self {
        let joined = arguments.iter().any(|argument| argument == "--format=json");
        let apart = arguments.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json");
        if joined || apart { Self::Json } else { Self::Text }
    }
}

/// When to use colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR`, `CLICOLOR` or `TERM` say otherwise.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// Makes every stream of this process follow the choice.
    pub fn set(self) {
        let choice = match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run every lane of a plan
    #[command(after_long_help = exit_code_table())]
    ExecutePhase(ExecutePhase),
    /// Run one lane of a plan
    #[command(after_long_help = exit_code_table())]
    ExecuteLane(ExecuteLane),
    /// Resume an interrupted, failed or blocked run
    #[command(after_long_help = exit_code_table())]
    Resume(Resume),
    /// Reset lanes to their starting point, saving their work first
    Rollback(Rollback),
    /// Read a plan without running anything
    #[command(subcommand)]
    Plan(Plan),
    /// Show where a run stands, what it waits for and what to type next
    Status(Status),
    /// Show what the agents and gates of a run wrote
    Logs(Logs),
    /// Report on a run as text, JSON, Markdown, JUnit or Code Quality
    Report(Report),
    /// Stop a run, or one lane of it, so that it can be resumed
    Stop(Stop),
    /// Approve what a lane is waiting for
    Approve(Answer),
    /// Reject what a lane is waiting for
    Reject(Answer),
    /// List, show, create, restore and prune snapshots
    #[command(subcommand)]
    Checkpoints(Checkpoints),
    /// Push a run to a git remote, and go on with it elsewhere
    #[command(subcommand)]
    State(State),
    /// Record an error in the error log (for scripts and agents)
    LogError(LogError),
    /// Check the stored state and repair damage without losing work
    #[command(after_long_help = exit_code_table())]
    Doctor(Doctor),
    /// Remove what finished runs left, but never unmerged work
    Clean(Clean),
    /// Set a repository up for Claude Code: settings, slash commands, hooks, the MCP server
    Init(Init),
    /// Answer a hook of Claude Code: JSON on standard input, JSON on standard output
    Hook(Hook),
    /// Serve runs to agents by the Model Context Protocol, over standard input and output
    Mcp,
    /// See a run with failures, a kill and a resume in a scratch repository
    Demo(Demo),
    /// Write a shell's completion script to standard output
    Completions(Completions),
    /// Write the manual page
    Man(Man),
}

impl Command {
    /// The file that is to say where the time goes.
    pub fn timings(&self) -> Option<&Path> {
        match self {
            Self::ExecutePhase(phase) => phase.execution.timings.as_deref(),
            Self::ExecuteLane(lane) => lane.execution.timings.as_deref(),
            Self::Resume(resume) => resume.timings.as_deref(),
            _ => None,
        }
    }
}

/// Ways to read a plan.
#[derive(Debug, Subcommand)]
pub enum Plan {
    /// Validate a plan; report every problem with its location
    Check(PlanFile),
    /// Show lanes, waves, the critical path and ownership overlaps
    Show(PlanFile),
    /// Draw the dependencies between the lanes
    Graph(PlanGraph),
    /// Write the plan in the native format (TOML)
    Convert(PlanFile),
    /// Write the JSON Schema of the native format
    Schema,
}

/// A plan to read.
#[derive(Debug, clap::Args)]
pub struct PlanFile {
    /// The plan, the directory of a GSD phase, or a roadmap
    pub plan: PathBuf,
    /// How it is read.
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// `plan graph`.
#[derive(Debug, clap::Args)]
pub struct PlanGraph {
    /// The plan.
    #[command(flatten)]
    pub file: PlanFile,
    /// The language of the drawing
    #[arg(long = "as", value_enum, default_value_t, value_name = "LANGUAGE")]
    pub language: GraphLanguage,
}

/// Languages for drawings of graphs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum GraphLanguage {
    /// Graphviz.
    #[default]
    Dot,
    /// Mermaid, which GitHub and GitLab draw in Markdown.
    Mermaid,
}

/// `status`.
#[derive(Debug, clap::Args)]
pub struct Status {
    /// The run; if left out, the only unfinished one, else the newest
    pub run: Option<RunId>,
    /// Keep the display up to date until the run ends
    #[arg(long, conflicts_with = "settings")]
    pub watch: bool,
    /// Show every setting and where its value came from instead
    #[arg(long, conflicts_with = "run")]
    pub settings: bool,
}

/// `logs`.
#[derive(Debug, clap::Args)]
pub struct Logs {
    /// The run
    pub run: RunId,
    /// Only this lane
    pub lane: Option<LaneId>,
    /// Only this agent of the lane
    pub agent: Option<AgentName>,
    /// Print the raw output, without interpreting event streams
    #[arg(long)]
    pub raw: bool,
    /// Follow the output
    #[arg(short, long)]
    pub follow: bool,
}

/// `report`.
#[derive(Debug, clap::Args)]
pub struct Report {
    /// The run; if left out, the only unfinished one, else the newest
    pub run: Option<RunId>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `stop`.
#[derive(Debug, clap::Args)]
pub struct Stop {
    /// The run
    pub run: RunId,
    /// Only this lane
    pub lane: Option<LaneId>,
    /// Kill the agents instead of asking them to end
    #[arg(long)]
    pub force: bool,
}

/// `approve` and `reject`.
#[derive(Debug, clap::Args)]
pub struct Answer {
    /// The run
    pub run: RunId,
    /// The lane that waits
    pub lane: LaneId,
    /// The gate: plan, changes or a task; may be left out when the lane waits at one
    #[arg(long, value_name = "plan|changes|TASK")]
    pub gate: Option<HumanGate>,
    /// What to tell the agents
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub message: String,
}

/// `clean`.
#[derive(Debug, clap::Args)]
pub struct Clean {
    /// The run; all finished ones if left out
    pub run: Option<RunId>,
    /// Remove unmerged work too
    #[arg(long)]
    pub force: bool,
    /// Remove logs and reports too
    #[arg(long)]
    pub logs: bool,
    /// Only show what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    pub yes: bool,
}

/// `doctor`.
#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// The run; all of them if left out
    pub run: Option<RunId>,
    /// Repair what can be repaired; without this, nothing is written
    #[arg(long)]
    pub fix: bool,
}

/// `demo`.
#[derive(Debug, clap::Args)]
pub struct Demo {
    /// Keep the scratch repository
    #[arg(long)]
    pub keep: bool,
    /// Where to make it, instead of a temporary directory
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// `completions`.
#[derive(Debug, clap::Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// `man`.
#[derive(Debug, clap::Args)]
pub struct Man {
    /// Write a page for every command into this directory instead
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// One of the words of `T`, which help and completions list.
fn choice<T: Choice>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(value::words::<T>()).try_map(|word| value::choice(&word))
}

fn stage() -> impl TypedValueParser<Value = Stage> {
    choice()
}
