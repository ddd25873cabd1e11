//! `status --settings`: every setting and where its value came from.

use super::args::Format;
use super::context::Context;
use super::error::{CliError, ExitStatus};
use crate::settings::{Layer, json, table};

/// Writes the table; no plan is involved, so its layer is empty.
pub(super) fn run(context: &Context) -> Result<ExitStatus, CliError> {
    let settings = context.layers(Layer::default())?.resolve(None);
    match context.printer.format() {
        Format::Text => context.printer.out(table(&settings))?,
        Format::Json => context.printer.json(&json(&settings))?,
    }
    Ok(ExitStatus::Done)
}
