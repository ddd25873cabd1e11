//! From one phase to the next: `--next-phase` and roadmaps. A run knows what comes after it, so that a resume goes on
//! with the chain, too.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::cli::args::Format;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};

/// How a phase ended, and what comes after it.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// `None`: it is part of no chain.
    pub(super) next: Option<Vec<PathBuf>>,
}

/// Runs the plan that it is given and knows what comes after that.
pub(super) type Begin<'a> = dyn Fn(&Path, Vec<PathBuf>) -> Result<Ended, CliError> + 'a;

/// Goes on with what comes after a phase as long as each one ends well.
pub(super) fn follow(
    context: &Context,
    first: Result<Ended, CliError>,
    begin: &Begin<'_>,
) -> Result<ExitStatus, CliError> {
    let mut ended = first?;
    loop {
        let Ended { status, next: Some(next) } = ended else { return Ok(ended.status) };
        if status != ExitStatus::Done {
            announce(context, "PHASE_COMPLETE_STOP", status.meaning())?;
            return Ok(status);
        }
        let Some((plan, rest)) = next.split_first() else {
            announce(context, "PHASE_COMPLETE_STOP", "that was the last phase")?;
            return Ok(status);
        };
        announce(context, "PHASE_COMPLETE_CONTINUE", &plan.to_string_lossy())?;
        ended = match begin(plan, rest.to_vec()) {
            Ok(ended) => ended,
            Err(error) => {
                announce(context, "PHASE_COMPLETE_STOP", &error.message.replace('\n', " "))?;
                return Err(error);
            }
        };
    }
}

/// The line that callers look for.
fn announce(context: &Context, signal: &str, what: &str) -> Result<(), CliError> {
    match context.printer.format() {
        Format::Text => context.printer.out(format_args!("{signal}: {what}\n"))?,
        Format::Json => context.printer.json(&json!({ "signal": signal, "what": what }))?,
    }
    Ok(())
}
