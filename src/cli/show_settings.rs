//! `status --settings`: every setting and where its value came from.

use anyhow::Result;

use super::{Context, ExitStatus};
use crate::settings::{Layer, json, table};

/// Writes the table; no plan is involved, so its layer is empty.
pub(super) fn run(context: &Context) -> Result<ExitStatus> {
    let settings = context.layers(Layer::default())?.resolve(None);
    context.printer.print(table(&settings), &json(&settings))
}
