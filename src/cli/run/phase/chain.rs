//! From one phase to the next: `--next-phase` and roadmaps. A run records what comes after it, so that a resume
//! continues the chain.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::cli::error::unless_gone;
use crate::cli::{CliError, Context, ExitStatus, Result};

/// How a phase ended, and what comes after it.
pub(super) struct PhaseEnd {
    pub(crate) status: ExitStatus,
    /// `None`: it is not part of a chain.
    pub(crate) next: Option<Vec<PathBuf>>,
}

/// Continues after `first` with the next phase as long as each one ends well; `begin` runs a plan that others come after.
pub(crate) fn follow(
    context: &Context,
    first: PhaseEnd,
    begin: &dyn Fn(&Path, Vec<PathBuf>) -> Result<PhaseEnd>,
) -> Result<ExitStatus> {
    let mut ended = first;
    loop {
        let PhaseEnd { status, next: Some(next) } = ended else { return Ok(ended.status) };
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
                let error = CliError::from(error);
                announce(context, "PHASE_COMPLETE_STOP", &error.message.replace('\n', " "))?;
                return Err(error.into());
            }
        };
    }
}

/// A line that callers parse.
fn announce(context: &Context, signal: &str, what: &str) -> Result<()> {
    let printed = context.printer.print(format_args!("{signal}: {what}\n"), &json!({ "signal": signal, "what": what }));
    unless_gone(printed.map(drop))
}
