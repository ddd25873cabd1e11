//! `state list`: the runs that a remote has.

use serde_json::{Value, json};

use super::remote;
use crate::cli::args::{Format, ListStates};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::execution::Site;
use crate::settings::Layer;
use crate::travel::{Offer, offers};

pub(super) fn run(context: &Context, arguments: &ListStates) -> Result<ExitStatus, CliError> {
    let site = Site::find_to_work_in(context)?;
    let settings = context.layers(Layer::default())?.resolve(None);
    let remote = remote(&site.repository, &arguments.remote, &settings)?;
    let offers = offers(&site.repository, &remote)?;
    match context.printer.format() {
        Format::Json => {
            let states: Vec<Value> = offers.iter().map(as_json).collect();
            context.printer.json(&json!({"remote": remote.name(), "states": states}))?;
        }
        Format::Text if offers.is_empty() => {
            context.printer.out(format_args!("{} has no state of any run.\n", remote.name()))?;
        }
        Format::Text => context.printer.out(offers.iter().map(as_text).collect::<String>())?,
    }
    Ok(ExitStatus::Done)
}

/// How a run stands, in a word.
pub(super) fn standing(offer: &Offer) -> &'static str {
    match &offer.manifest {
        Ok(manifest) => manifest.outcome.map_or("unfinished", |outcome| outcome.word()),
        Err(_) => "unreadable",
    }
}

fn as_text(offer: &Offer) -> String {
    let standing = standing(offer);
    match &offer.manifest {
        Ok(it) => format!(
            "{:<32} {standing:<10} phase {} on {}, {} records, pushed by {}, last at {}\n",
            offer.run.as_str(),
            it.phase,
            it.base_branch,
            it.records,
            it.host,
            it.at
        ),
        Err(error) => format!("{:<32} {standing:<10} {error}\n", offer.run.as_str()),
    }
}

fn as_json(offer: &Offer) -> Value {
    let mut value = json!({"run_id": offer.run, "commit": offer.commit, "standing": standing(offer)});
    match &offer.manifest {
        Ok(it) => {
            value["phase"] = json!(it.phase);
            value["base_branch"] = json!(it.base_branch);
            value["records"] = json!(it.records);
            value["host"] = json!(it.host);
            value["at"] = json!(it.at);
        }
        Err(error) => value["error"] = json!(error.to_string()),
    }
    value
}
