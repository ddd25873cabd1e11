//! `--detach`: the same command in the background, in a session of its own; returns once its run has begun.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitStatus as Exit;

use lanewright_model::event::Event;
use lanewright_model::text::shell_line;
use lanewright_model::{ProcessId, RunId};
use lanewright_programs::process;
use lanewright_programs::process::LiveProcess;
use lanewright_store::{StateDirectory, run_log};
use lanewright_view::answers::commands::Commands;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::Caller;
use super::detached::{Start, spawn, take_output, wait};
use crate::cli::runs::{Stamp, stamp};
use crate::cli::signals::Signals;
use crate::cli::{Context, ExitStatus, Result};

const FLAG: &str = "--detach";

/// Starts `arguments`, which are this process's own, in the background and waits until their run has begun. What prevents
/// that is printed as the command printed it, with its exit code.
pub(crate) fn run(context: &Context, arguments: &[OsString]) -> Result<ExitStatus> {
    let state = Caller::new(context)?.state()?;
    let before = logs(&state)?;
    let output = std::env::temp_dir().join(format!("lanewright-{}.log", uuid::Uuid::now_v7()));
    // Before the child begins: Ctrl-C is for both, and the child is in another session.
    let signals = Signals::watch()?;
    let words: Vec<&OsString> = arguments.iter().skip(1).filter(|word| *word != FLAG).collect();
    let child = spawn(&process::current_program()?, &words, Path::new("."), &output)?;
    let process = i32::try_from(child.id()).ok().and_then(ProcessId::of);
    let mut forward = forwarding(Pid::from_child(&child), signals);
    let waited = wait(child, None, || {
        forward();
        Ok(begun_by(&state, &before, process))
    })?;
    match waited {
        Start::Begun(run) => report(context, &state, &run, process, &output),
        Start::Ended(exit) => Ok(repeat(context, exit, &take_output(&output))),
        Start::NotYet => unreachable!("the wait has no limit"),
    }
}

/// Sends SIGTERM to the child once this process is asked to stop. A closed terminal is no reason to.
fn forwarding(child: Pid, signals: Signals) -> impl FnMut() {
    let mut is_asked = false;
    move || {
        let asks = matches!(signals.received(), Some((ExitStatus::Interrupted | ExitStatus::Terminated, _)));
        // A second one would kill its agents.
        if asks && !std::mem::replace(&mut is_asked, true) {
            // It may have ended.
            let _ = kill_process(child, Signal::TERM);
        }
    }
}

/// The logs of all runs, as they are now.
fn logs(state: &StateDirectory) -> Result<HashMap<RunId, Stamp>> {
    Ok(state.runs()?.into_iter().map(|run| (run.clone(), stamp(&state.run(&run).log()))).collect())
}

/// The run that `process` has begun or resumed: it holds the run's lock by then.
fn begun_by(state: &StateDirectory, before: &HashMap<RunId, Stamp>, process: Option<ProcessId>) -> Option<RunId> {
    let changed = logs(state).ok()?.into_iter().filter(|(run, stamp)| before.get(run) != Some(stamp));
    let is_beginning = |word: &str| ["run_started", "run_resumed"].contains(&word);
    let is_ours = |event: &Event| match event {
        Event::RunStarted(started) => Some(started.owner.process) == process,
        Event::RunResumed { owner, .. } => Some(owner.process) == process,
        _ => false,
    };
    changed.map(|(run, _)| run).find(|run| {
        let records = run_log::read_some(&state.run(run).log(), is_beginning).unwrap_or_default();
        records.iter().any(|record| is_ours(&record.event))
    })
}

fn report(
    context: &Context,
    state: &StateDirectory,
    run: &RunId,
    process: Option<ProcessId>,
    output: &Path,
) -> Result<ExitStatus> {
    let program = state.program();
    let commands = Commands { program: &program, run };
    let rows = [
        ("status", shell_line(commands.status())),
        ("output of agents", shell_line(commands.follow_logs())),
        ("interface", shell_line(commands.ui())),
        ("stop", shell_line(commands.stop())),
    ];
    let pid = process.map(|process| process.pid);
    let json = json!({
        "run_id": run, "begun": true, "pid": pid, "output": output,
        "next": rows.iter().map(|(_, command)| command).collect::<Vec<_>>(),
    });
    let lines: String = rows.iter().map(|(what, command)| format!("  {what:<18}{command}\n")).collect();
    let process = pid.map(|pid| format!(" as process {pid}")).unwrap_or_default();
    let text =
        format!("Run {run} works in the background{process}.\n{lines}  {:<18}{}\n", "its own output", output.display());
    context.printer.print(text, &json)
}

/// What the command printed that did not begin a run, and how it ended.
fn repeat(context: &Context, exit: Exit, said: &str) -> ExitStatus {
    context.printer.note(said);
    let status = exit.code().and_then(|code| ExitStatus::of_code(code.try_into().ok()?));
    status.unwrap_or(ExitStatus::Failed)
}
