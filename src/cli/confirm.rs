//! Asking the user whether to go ahead.

use std::io::{self, IsTerminal};

use super::args::Format;
use super::context::Context;
use super::error::{CliError, ExitStatus};

/// Whether the user can be asked: standard input and output are a terminal, and the output is text.
pub(super) fn can_ask(context: &Context) -> bool {
    context.printer.format() == Format::Text && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Asks `question`. Everything but a yes is a no.
pub(super) fn confirms(context: &Context, question: &str) -> Result<bool, CliError> {
    context.printer.out(format!("\n{question} [y/N] "))?;
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    read.map_err(|error| CliError::new(ExitStatus::Failed, format!("cannot read the answer: {error}")))?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
