//! Arguments as typed.

mod callers;
mod examples;
mod execution;
mod help;
mod records;
mod state;
mod target;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, NaiveTime};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Parser, Subcommand, ValueEnum};

use super::error::exit_code_table;
use lanewright_model::{HumanGate, PhaseId, ReportFormat, Timestamp, Word};
use lanewright_plan::settings::value;

pub(crate) use callers::{AgentProgram, CiService, HookEvent, Init};
pub(crate) use examples::examples_of;
pub(crate) use execution::{
    ControlArgs, ExecuteLane, ExecutePhase, ExecutionArgs, Intent, ReadingArgs, Resume, Retry, Rollback, Skip,
    ThenResume,
};
pub(crate) use help::{command, parse};
pub(crate) use records::{
    Checkpoints, CreateCheckpoint, ListCheckpoints, LogError, PruneCheckpoints, RestoreCheckpoint,
};
pub(crate) use state::{DropState, Offered, PullState, PushState, RemoteArgs, State, Work};
pub(crate) use target::{AgentArgs, LaneArgs, Name, RunArg};

/// Runs a phase plan as parallel lanes in git worktrees, and survives being killed.
#[derive(Debug, Parser)]
#[command(name = "lanewright", version, after_long_help = exit_code_table(), max_term_width = 120)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Work as if started in this directory
    #[arg(short = 'C', value_name = "DIR", global = true, hide_short_help = true)]
    pub(crate) directory: Option<PathBuf>,
    /// The file that holds the checkpoint records
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    pub(crate) checkpoint_path: Option<PathBuf>,
    /// Path of the run log, for a single run
    #[arg(long, value_name = "FILE", global = true, hide_short_help = true)]
    pub(crate) log_path: Option<PathBuf>,
    /// Ignore keys of plans and configuration files that this version does not know, with a warning
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) allow_unknown: bool,
    /// Output format: text or json; `report` also writes md, html, junit and codequality
    #[arg(long, value_name = "FORMAT", value_parser = choice::<ReportFormat>(), default_value = "text",
        hide_possible_values = true, global = true, hide_short_help = true)]
    pub(crate) format: ReportFormat,
    /// Write diagnostics to standard error; twice for more
    #[arg(short, long, action = ArgAction::Count, global = true, hide_short_help = true)]
    pub(crate) verbose: u8,
    /// How diagnostics are written
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT", global = true, hide_short_help = true)]
    pub(crate) log_format: Format,
    /// When to use colour
    #[arg(long, value_enum, default_value_t, value_name = "WHEN", global = true, hide_short_help = true)]
    pub(crate) color: Color,
}

impl GlobalArgs {
    pub(crate) fn data_format(&self) -> Format {
        if self.format == ReportFormat::Json { Format::Json } else { Format::Text }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

impl Format {
    /// The format that arguments ask for which clap refuses.
    pub(crate) fn asked_for(arguments: &[OsString]) -> Self {
        let joined = arguments.iter().any(|argument| argument == "--format=json");
        let apart = arguments.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json");
        if joined || apart { Self::Json } else { Self::Text }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR`, `CLICOLOR` or `TERM` say otherwise.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    pub(crate) fn set(self) {
        let choice = match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
    }
}

/// In two lines, because everything that is required is in it.
const LOG_ERROR: &str = "lanewright log-error [OPTIONS] --phase <PHASE> --plan <PLAN>
       --task <TASK> --specialist <AGENT> --error-type <TYPE> --details <TEXT>";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run every lane of a plan
    #[command(visible_alias = "run", after_long_help = exit_code_table())]
    ExecutePhase(ExecutePhase),
    /// Run one lane of a plan
    #[command(after_long_help = exit_code_table())]
    ExecuteLane(ExecuteLane),
    /// Resume an interrupted, failed or blocked run
    #[command(after_long_help = exit_code_table())]
    Resume(Resume),
    /// Run failed or blocked lanes again with fresh retries
    ///
    /// And then what depends on them. Where a gate failed, the agent works before it runs again; `resume` runs the gate
    /// first. What --prompt-file and --runner replace stays replaced until the plan file changes there.
    #[command(after_long_help = exit_code_table())]
    Retry(Retry),
    /// Leave a lane out; its work is kept
    ///
    /// What depends on it goes on as if it had no work.
    #[command(after_long_help = exit_code_table())]
    Skip(Skip),
    /// Reset lanes to their starting point, saving their work first
    Rollback(Rollback),
    /// Read a plan without running anything
    #[command(subcommand)]
    Plan(Plan),
    /// List all runs, the newest first
    List,
    /// Show a run: its state, what it waits for, what to type next
    Status(Status),
    /// Follow a run in a terminal interface, and answer its lanes
    Ui(RunArg),
    /// Show what the agents and gates of a run wrote
    Logs(Logs),
    /// Show what a lane or an agent changed, as `git diff` does
    Diff(Diff),
    /// Print the path of a lane's or an agent's worktree
    Path(AgentArgs),
    /// Open a lane's or an agent's worktree in an editor
    Open(Open),
    /// Report on a run as text, JSON, Markdown, HTML, JUnit or Code Quality
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
    /// Push a run to a git remote, and resume it elsewhere
    #[command(subcommand)]
    State(State),
    /// Work on a run that was offered on a git remote (for jobs of a queue)
    #[command(after_long_help = exit_code_table())]
    Work(Work),
    /// Record an error in the error log (for scripts and agents)
    #[command(override_usage = LOG_ERROR)]
    LogError(LogError),
    /// Check the stored state and repair damage without losing work
    #[command(after_long_help = exit_code_table())]
    Doctor(Doctor),
    /// Remove what finished runs left, but never unmerged work
    Clean(Clean),
    /// Set a repository up for coding agents' programs
    Init(Init),
    /// Answer a hook of Claude Code: JSON in, JSON out
    Hook {
        /// What happened
        #[arg(value_enum)]
        event: HookEvent,
    },
    /// Serve runs to agents by the Model Context Protocol
    Mcp,
    /// Send a notification to the targets that are set, to try them
    Notify,
    /// See a run with failures, a kill and a resume
    Demo(Demo),
    /// Write a shell's completion script to standard output
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Write the manual page
    Man {
        /// Write a page for every command into this directory instead
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

impl Command {
    /// Whether the command is to be carried out in the background.
    pub(crate) fn is_detached(&self) -> bool {
        match self {
            Self::ExecutePhase(phase) => phase.execution.detach,
            Self::ExecuteLane(lane) => lane.execution.detach,
            Self::Resume(resume) => resume.detach,
            _ => false,
        }
    }

    pub(crate) fn timings(&self) -> Option<&Path> {
        match self {
            Self::ExecutePhase(phase) => phase.execution.timings.as_deref(),
            Self::ExecuteLane(lane) => lane.execution.timings.as_deref(),
            Self::Resume(resume) => resume.timings.as_deref(),
            _ => None,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Plan {
    /// Validate a plan; report every problem with its location
    Check(PlanFile),
    /// Show lanes, waves, the critical path and ownership overlaps
    Show(PlanShow),
    /// Draw the dependencies between the lanes
    Graph(PlanGraph),
    /// Write the plan in the native format (TOML)
    Convert(PlanFile),
    /// Write the JSON Schema of the native format
    Schema,
    /// Write a commented plan to start from
    New(NewPlan),
}

#[derive(Debug, clap::Args)]
pub(crate) struct NewPlan {
    /// The file
    #[arg(default_value = "plan.toml")]
    pub(crate) file: PathBuf,
    /// The id of the phase [default: P1]
    #[arg(long, value_name = "ID")]
    pub(crate) phase: Option<PhaseId>,
    /// Name of a lane; repeatable
    #[arg(long = "lane", value_name = "NAME")]
    pub(crate) lanes: Vec<String>,
    /// The runner of the agents [default: that of the settings, else claude]
    #[arg(long, value_name = "NAME")]
    pub(crate) runner: Option<String>,
    /// A command that must pass before a lane is merged
    #[arg(long, value_name = "COMMAND")]
    pub(crate) test: Option<String>,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
}

impl NewPlan {
    /// Whether it is left open what the plan is to say.
    pub(crate) fn says_nothing(&self) -> bool {
        self.phase.is_none() && self.lanes.is_empty() && self.runner.is_none() && self.test.is_none()
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct PlanFile {
    /// The plan, the directory of a GSD phase, or a roadmap
    pub(crate) plan: PathBuf,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PlanShow {
    #[command(flatten)]
    pub(crate) file: PlanFile,
    /// Print the first prompt of each agent for each of its tasks instead
    #[arg(long)]
    pub(crate) prompts: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PlanGraph {
    #[command(flatten)]
    pub(crate) file: PlanFile,
    /// The language of the drawing; with `--format json` it is JSON
    #[arg(long = "as", value_enum, default_value_t, value_name = "LANGUAGE")]
    pub(crate) language: GraphLanguage,
    /// Show the states of the lanes in this run
    #[arg(long)]
    pub(crate) run: Option<Name>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphLanguage {
    /// Graphviz.
    #[default]
    Dot,
    /// Mermaid, which GitHub and GitLab draw in Markdown.
    Mermaid,
    /// A picture for browsers.
    Svg,
    /// A list by wave, for terminals.
    Text,
}

#[derive(Debug, clap::Args)]
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

#[derive(Debug, clap::Args)]
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

#[derive(Debug, clap::Args)]
pub(crate) struct Diff {
    #[command(flatten)]
    pub(crate) target: AgentArgs,
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

#[derive(Debug, clap::Args)]
pub(crate) struct Open {
    #[command(flatten)]
    pub(crate) target: AgentArgs,
    /// Run this shell line in the worktree [default: $VISUAL or $EDITOR with the directory]
    #[arg(long, value_name = "COMMAND")]
    pub(crate) with: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Stop {
    #[command(flatten)]
    pub(crate) target: LaneArgs,
    /// Kill the agents instead of asking them to end
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Answer {
    /// The run, or the beginning of its id [default: the one that waits]
    ///
    /// Or @latest, the newest run. The default is the unfinished run in which LANE waits.
    pub(crate) run: Option<Name>,
    /// The lane [default: the only one that waits]
    pub(crate) lane: Option<Name>,
    /// plan, changes or a task [default: the only one]
    #[arg(long, value_name = "GATE")]
    pub(crate) gate: Option<HumanGate>,
    /// Text for the agents; required to reject
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) message: String,
    #[command(flatten)]
    pub(crate) then: ThenResume,
}

#[derive(Debug, clap::Args)]
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
}

#[derive(Debug, clap::Args)]
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
}

#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Show it as fast as the machine can instead of at a pace to follow
    #[arg(long)]
    pub(crate) fast: bool,
    /// Keep the scratch repository
    #[arg(long)]
    pub(crate) keep: bool,
    /// Where to make it, instead of a temporary directory
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
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
    duration.map_err(|_| format!("`{text}` is none; write it as `10m`, `14:30` or `2026-01-31T14:30:00Z`"))
}

/// One of the words of `T`, which help and completions list.
fn choice<T: Word>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(value::words::<T>()).try_map(|word| value::choice(&word))
}
