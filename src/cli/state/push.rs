//! `state push`: a run as it is now, to a remote.

use serde_json::json;

use super::remote;
use crate::cli::args::{Format, PushState};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::execution::{Site, host};
use crate::cli::runs::named_or_newest;
use crate::model::text::counted;
use crate::settings::Layer;
use crate::travel::{Source, send};

pub(super) fn run(context: &Context, arguments: &PushState) -> Result<ExitStatus, CliError> {
    let site = Site::find_to_work_in(context)?;
    let settings = context.layers(Layer::default())?.resolve(None);
    let state = site.state(&settings);
    let run = named_or_newest(&state, arguments.run.as_ref())?;
    let remote = remote(&site.repository, &arguments.remote, &settings)?;
    let (directory, repository) = (state.run(&run), site.repository.clone());
    let source = Source { repository, directory, run: run.clone(), host: host() };
    let sent = send(&source, &remote, arguments.force)?;
    let (records, name) = (sent.manifest.records, remote.name());
    match context.printer.format() {
        Format::Text => {
            let records = counted(usize::try_from(records).unwrap_or(usize::MAX), "record");
            context.printer.out(format_args!("Pushed run {run} ({records}) to {name} as {}.\n", sent.reference))?;
        }
        Format::Json => context.printer.json(&json!({
            "run_id": run,
            "remote": name,
            "reference": sent.reference,
            "commit": sent.commit,
            "records": records,
        }))?,
    }
    Ok(ExitStatus::Done)
}
