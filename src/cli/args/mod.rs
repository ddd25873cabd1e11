//! Arguments as typed.

mod callers;
mod ci;
mod control;
mod examples;
mod flags;
mod help;
mod look;
mod plan;
mod records;
mod repair;
mod resume;
mod start;
mod state;
mod target;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Parser, Subcommand, ValueEnum};

use super::error::exit_code_table;
use flags::{flag, optional, switch};
use lanewright_model::{ReportFormat, Word};
use lanewright_plan::settings::{Layer, absolute, value};

pub(crate) use callers::{AgentProgram, CiService, HookEvent, Init};
pub(crate) use ci::Ci;
pub(crate) use control::{Answer, ControlArgs, Gate, GateName, Pick, Rollback, Skip, Stop, Tell, ThenResume};
pub(crate) use examples::examples_of;
pub(crate) use help::{command, parse};
pub(crate) use look::{Diff, Logs, Open, Report, Since, Status};
pub(crate) use plan::{GraphLanguage, NewPlan, Plan, PlanFile, PlanGraph, PlanShow, PlanSource, ReadingArgs};
pub(crate) use records::{
    Checkpoints, CreateCheckpoint, ListCheckpoints, LogError, LogEvent, PruneCheckpoints, RestoreCheckpoint,
};
pub(crate) use repair::{Clean, Doctor};
pub(crate) use resume::{FollowArgs, Recover, Resume, Retry};
pub(crate) use start::{ExecuteLane, ExecutePhase, ExecutionArgs, Intent};
pub(crate) use state::{DropState, Offered, Publish, PullState, PushState, RemoteArgs, State, Work};
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

    /// The layer of settings that these flags make; relative paths are seen from `directory`.
    pub(crate) fn layer(&self, directory: &Path) -> Layer {
        let layer = Layer {
            checkpoint_path: flag("--checkpoint-path", &self.checkpoint_path),
            log_path: optional("--log-path", &self.log_path),
            allow_unknown: switch("--allow-unknown", self.allow_unknown, true),
            ..Layer::default()
        };
        layer.place_paths(|path| absolute(directory, path))
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
    /// Have lanes continue whose pull requests have failed checks or new comments
    ///
    /// Asks the forge about the open pull requests of a run, gives what it says to the agents of their lanes, tests and pushes
    /// what they change, and asks again. With `follow` in lanewright.toml a run does that by itself after it opened them.
    #[command(after_long_help = exit_code_table())]
    Follow(FollowArgs),
    /// Run failed or blocked lanes again with fresh retries
    ///
    /// And then what depends on them. Where a gate failed, the agent works before it runs again; `resume` runs the gate
    /// first. What --prompt-file and --runner replace stays replaced until the plan file changes there.
    #[command(after_long_help = exit_code_table())]
    Retry(Retry),
    /// Take the next level of recovery for a failed or blocked lane
    ///
    /// Level 1 tries again, level 2 resets the agent to its last state that passed and tries again with a different
    /// approach, and level 3 prints what only you can decide, with exit code 3. The level follows from the run log: retries
    /// and levels since the lane's last progress count, and retries that you asked for, too.
    #[command(after_long_help = exit_code_table())]
    Recover(Recover),
    /// Choose another candidate of a lane before it is merged
    ///
    /// The lane is built again with the work of that candidate, and judged again: gates, tests, reviewers, your approval.
    /// Only a candidate that passed its gates can be picked. While the run works, this takes effect before the lane is merged.
    #[command(after_long_help = exit_code_table())]
    Pick(Pick),
    /// Tell the agents of a lane something, also while they work
    ///
    /// The next prompts of the lane's agents have the text. An agent at work gets it at its next tool call if its program calls
    /// `lanewright hook post-tool-use`, as Claude Code does after `lanewright init --hooks`; others read it from the file that
    /// LANEWRIGHT_MESSAGES_FILE names, or get it with the next attempt. The output says which.
    Tell(Tell),
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
    /// Show a run or a lane, and what to type next
    #[command(visible_alias = "why")]
    Status(Status),
    /// Follow a run in a terminal interface, and answer its lanes
    Ui(RunArg),
    /// Show what the agents and gates of a run wrote
    #[command(visible_alias = "log")]
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
    /// Run a gate of a run by hand; the run does not change
    ///
    /// The gates atomic, checkpoint and tests run in the worktree of the lane as it is, with uncommitted changes; the gate
    /// final runs on the integration branch, in a worktree of its own. The exit code is 0 if the gate passed, 1 if it
    /// failed and 124 if it ran out of time.
    Gate(Gate),
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
    /// Push the work of a finished run to the remote's branch, or propose it in a pull request
    ///
    /// Commits that the remote's branch has and the run does not are merged in. Where a rule of the forge refuses the push,
    /// the work is pushed to the branch lanewright/RUN, and one pull request is opened for it, or brought up to date.
    #[command(after_long_help = exit_code_table())]
    Publish(Publish),
    /// Work on a run that was offered on a git remote (for jobs of a queue)
    #[command(after_long_help = exit_code_table())]
    Work(Work),
    /// Run a phase in a job of a CI service, continuing what earlier jobs began
    ///
    /// Takes the unfinished run of the plan from the remote, if there is one, brings the branch up to date, resumes or starts
    /// the run while its state is pushed, and pushes the branch when the phase is done. Exit code 75: the time of the job is
    /// over, and another one continues. `lanewright init --ci github` writes a workflow that calls it.
    #[command(after_long_help = exit_code_table())]
    Ci(Ci),
    /// Record an error in the error log (for scripts and agents)
    #[command(override_usage = LOG_ERROR)]
    LogError(LogError),
    /// Record an event in the log of a run (for scripts and agents)
    LogEvent(LogEvent),
    /// Check the stored state and repair damage without losing work
    #[command(after_long_help = exit_code_table())]
    Doctor(Doctor),
    /// Remove what finished runs left, unmerged work only with --force
    ///
    /// Candidates that were not chosen are removed once their lane is merged.
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
            Self::Follow(follow) => follow.detach,
            Self::Retry(retry) => retry.detach,
            Self::Recover(recover) => recover.detach,
            Self::Approve(answer) | Self::Reject(answer) => answer.then.detach,
            Self::Skip(skip) => skip.then.detach,
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

/// One of the words of `T`, which help and completions list.
fn choice<T: Word>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(value::words::<T>()).try_map(|word| value::choice(&word))
}
