//! The command line: a file or a folder for each command, in folders by what users do with them. Beside them is what
//! several commands share.

mod args;
mod child;
mod confirm;
mod context;
mod control;
mod demo;
mod diagnostics;
mod error;
mod executors;
mod integrations;
mod json_argument;
mod look;
mod manual;
mod plan;
mod printer;
mod repair;
mod repository_context;
mod repository_gates;
mod run;
mod run_id;
mod runs;
mod secrets;
mod select;
mod signals;
mod snapshots;
mod state;
mod this_process;
mod timings;
mod wait_policy;
mod worktree_needs;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::process::ExitCode;

use args::{Args, Command, Format, GlobalArgs};
pub(crate) use context::Context;
use control::{answer, pick, recover, retry, skip, stop, tell};
pub(crate) use error::{CliError, ExitStatus, Hint, Result};
use integrations::{hook, init, mcp, notify};
use look::{diff, gate, list, logs, report, status, ui, worktree};
pub(crate) use printer::Printer;
use repair::{checkpoints, clean, doctor, log_error, log_event};
pub(crate) use repository_context::RepositoryContext;
pub(crate) use this_process::{host, local_now, now, offset, owner};

use lanewright_files::timing::Timings;
use lanewright_model::ReportFormat;

pub use repair::clean::delete_trash;

/// Does what the command line says; the first argument is the program's own name.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    // A shell that completes sets a variable; then candidates are printed, and the program ends.
    clap_complete::CompleteEnv::with_factory(manual::complete::command).complete();
    let parsed = args::parse(&arguments);
    let format = parsed.as_ref().map_or_else(|_| Format::asked_for(&arguments), |args| args.global.data_format());
    let printer = Printer::new(format);
    let status = match parsed {
        Ok(args) => run_command(args, &arguments, printer),
        Err(refusal) if hook::is_called(&arguments) => printer.refusal(&refusal).map(|_| ExitStatus::Done),
        Err(refusal) => printer.refusal(&refusal),
    };
    status.unwrap_or_else(|error| printer.error(&error.into())).into()
}

fn run_command(args: Args, arguments: &[OsString], printer: Printer) -> Result<ExitStatus> {
    args.global.color.set();
    if let Command::Hook { event } = args.command {
        return Ok(hook::run(&args.global, printer, event));
    }
    refuse_documents(&args)?;
    let mut context = Context::new(&args.global, printer)?;
    if args.command.is_detached() {
        return child::background::run(&context, arguments);
    }
    context.timings = args.command.timings().map(|file| timings::begin(&context, file)).transpose()?;
    diagnostics::start(&args.global, &context.environment, context.timings.clone())?;
    let status = carry_out(args.command, &args.global, &context);
    context.timings.iter().for_each(Timings::finish);
    status
}

fn carry_out(command: Command, global: &GlobalArgs, context: &Context) -> Result<ExitStatus> {
    match command {
        Command::ExecutePhase(arguments) => run::execute_phase(context, &arguments),
        Command::ExecuteLane(arguments) => run::execute_lane(context, &arguments),
        Command::Resume(arguments) => run::resume_run(context, &arguments),
        Command::Follow(arguments) => run::follow_run(context, &arguments),
        Command::Retry(arguments) => retry::run(context, &arguments),
        Command::Recover(arguments) => recover::run(context, &arguments),
        Command::Pick(arguments) => pick::run(context, &arguments),
        Command::Tell(arguments) => tell::run(context, &arguments),
        Command::Skip(arguments) => skip::run(context, &arguments),
        Command::Plan(command) => plan::run(context, &command),
        Command::Demo(arguments) => demo::run(context, &arguments),
        Command::Rollback(arguments) => run::rollback(context, &arguments),
        Command::Checkpoints(command) => checkpoints::run(context, &command),
        Command::State(command) => state::run(context, &command),
        Command::Publish(arguments) => state::publish::run(context, &arguments),
        Command::Work(arguments) => state::work::run(context, &arguments),
        Command::Ci(arguments) => state::ci::run(context, &arguments),
        Command::LogError(arguments) => log_error::run(context, &arguments),
        Command::LogEvent(arguments) => log_event::run(context, &arguments),
        Command::Clean(arguments) => clean::run(context, &arguments),
        Command::Doctor(arguments) => doctor::run(context, &arguments),
        Command::Init(arguments) => init::run(context, &arguments),
        Command::Notify => notify::run(context),
        Command::Mcp => mcp::run(context),
        Command::Hook { event } => Ok(hook::run(global, context.printer, event)),
        Command::Completions { shell } => manual::completions(context, shell),
        Command::Man { dir } => manual::man(context, dir.as_deref()),
        Command::List => list::run(context),
        Command::Status(arguments) if arguments.settings => status::settings(context),
        Command::Status(arguments) => status::run(context, &arguments),
        Command::Ui(arguments) => ui::run(context, &arguments),
        Command::Logs(arguments) => logs::run(context, &arguments),
        Command::Path(arguments) => worktree::path(context, &arguments),
        Command::Open(arguments) => worktree::open(context, &arguments),
        Command::Diff(arguments) => diff::run(context, &arguments),
        Command::Report(arguments) => report::run(context, &arguments, global.format),
        Command::Stop(arguments) => stop::run(context, &arguments),
        Command::Gate(arguments) => gate::run(context, &arguments),
        Command::Approve(arguments) => answer::run(context, &arguments, true),
        Command::Reject(arguments) => answer::run(context, &arguments, false),
    }
}

fn refuse_documents(args: &Args) -> Result<()> {
    let format = args.global.format;
    if matches!(format, ReportFormat::Text | ReportFormat::Json) || matches!(args.command, Command::Report(_)) {
        return Ok(());
    }
    let error = ExitStatus::Usage.error(format!("--format {format} is for `report` only"));
    Err(error.hint(format!("for a run's report: lanewright report [RUN] --format {format}; else text or json")))
}
