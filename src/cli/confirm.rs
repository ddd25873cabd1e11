//! Asking the user whether to go ahead.

use std::io::{self, IsTerminal};

use anyhow::{Context as _, Result};

use super::Context;
use super::args::Format;

/// Whether the user can be asked: standard input and output are a terminal, and the output is text.
pub(super) fn can_ask(context: &Context) -> bool {
    context.printer.format() == Format::Text && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Asks `question`. Everything but a yes is a no.
pub(super) fn confirms(context: &Context, question: &str) -> Result<bool> {
    context.printer.out(format!("\n{question} [y/N] "))?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
