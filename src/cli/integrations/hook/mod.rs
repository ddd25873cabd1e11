//! `hook`: what Claude Code calls when something happens in a session (SPEC §12; `docs/integrations.md`).
//!
//! A hook may neither disturb the session nor make it wait. So whatever goes wrong here, a panic included, it ends with
//! exit code 0 and says nothing; standard output gets one JSON object or nothing; and of runs only the ends of their logs
//! and the small files of their lanes are read. It waits only for the gate `edit`, where one is set, up to a limit.

mod edit_gate;
mod input;
mod interruption;
mod prompt;
mod tool_use;
mod unfinished;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::panic::{self, AssertUnwindSafe};

use input::Input;
use lanewright_model::safe_text;
use serde_json::{Value, json};
use unfinished::SessionRuns;

use crate::cli::args::{GlobalArgs, HookEvent};
use crate::cli::diagnostics;
use crate::cli::{CliError, Context, ExitStatus, Printer, Result};

/// Whether a hook is called, also an unknown one: then bad arguments must not fail either, because Claude Code drops the
/// prompt of a hook that ends with exit code 2.
pub(crate) fn is_called(arguments: &[OsString]) -> bool {
    arguments.get(1).is_some_and(|word| word == "hook")
}

/// Answers `event`. Never fails.
pub(crate) fn run(global: &GlobalArgs, printer: Printer, event: HookEvent) -> ExitStatus {
    if io::stdin().is_terminal() {
        printer.warning("a hook reads what happened as JSON from standard input", &[HINT.to_owned()]);
        return ExitStatus::Done;
    }
    if let Some(answer) = unharmed(|| answer(global, printer, event)) {
        // A failure cannot be reported anywhere.
        let _ = writeln!(io::stdout().lock(), "{}", safe_text::json(&answer.to_string()));
    }
    ExitStatus::Done
}

const HINT: &str = "Claude Code calls it where `lanewright init --hooks` was called";

/// What `work` answers; nothing where it fails in whatever way.
fn unharmed(work: impl FnOnce() -> Result<Option<Value>>) -> Option<Value> {
    match panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => {
            tracing::debug!("{}", CliError::from(error).message);
            None
        }
        Err(_) => None,
    }
}

fn answer(global: &GlobalArgs, printer: Printer, event: HookEvent) -> Result<Option<Value>> {
    let context = Context::new(global, printer)?;
    diagnostics::start(global, &context.environment, None)?;
    let Some(input) = Input::read() else { return Ok(None) };
    let in_agent = context.environment.contains_key("LANEWRIGHT_RUN_ID");
    match event {
        HookEvent::PostToolUse => {
            let noted = if in_agent { tool_use::pass_on(&context, &input) } else { tool_use::count(&context, &input) };
            if let Err(error) = noted {
                tracing::debug!("{}", CliError::from(error).message);
            }
            let mut answer = edit_gate::judge(&context, &input)?;
            // Taken last: a message counts as given, and a failure would drop it.
            let told = tool_use::messages(&context).unwrap_or_else(|error| {
                tracing::debug!("{}", CliError::from(error).message);
                None
            });
            if let Some(told) = told {
                let told = added("PostToolUse", &told);
                match &mut answer {
                    Some(judged) => judged["hookSpecificOutput"] = told["hookSpecificOutput"].clone(),
                    None => answer = Some(told),
                }
            }
            Ok(answer)
        }
        _ if in_agent => Ok(None),
        _ => Ok(SessionRuns::find(&context, &input).and_then(|runs| match event {
            HookEvent::SessionStart => runs.at_start().map(|text| added("SessionStart", &text)),
            HookEvent::UserPromptSubmit => {
                prompt::note_prompt(&runs, &input).map(|text| added("UserPromptSubmit", &text))
            }
            HookEvent::Stop if input.stop_hook_active => None,
            HookEvent::Stop | HookEvent::PostToolUse => runs.at_stop().map(|text| json!({"systemMessage": text})),
        })),
    }
}

fn added(event: &str, text: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_panics_of_hooks_are_silent() {
        assert_eq!(unharmed(|| panic!("planted")), None);
        assert_eq!(unharmed(|| Err(ExitStatus::Corrupted.error("planted"))), None);
        assert_eq!(unharmed(|| Ok(Some(json!({})))), Some(json!({})));
    }

    #[test]
    fn only_hooks_ignore_invalid_arguments() {
        let words = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert!(is_called(&words(&["lanewright", "hook", "nonsense"])));
        assert!(!is_called(&words(&["lanewright", "execute-lane", "hook"])) && !is_called(&[]));
    }
}
