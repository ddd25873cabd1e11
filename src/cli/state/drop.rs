//! `state drop`: runs removed from a remote.

use serde_json::{Value, json};

use super::list::standing;
use super::remote;
use crate::cli::args::{DropState, Format};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::execution::Site;
use crate::model::text::counted;
use crate::settings::Layer;
use crate::travel::{Manifest, Offer, TravelError, drop_state, forget, offers};

pub(super) fn run(context: &Context, arguments: &DropState) -> Result<ExitStatus, CliError> {
    let site = Site::find_to_work_in(context)?;
    let settings = context.layers(Layer::default())?.resolve(None);
    let remote = remote(&site.repository, &arguments.remote, &settings)?;
    let (chosen, others): (Vec<Offer>, Vec<Offer>) =
        offers(&site.repository, &remote)?.into_iter().partition(|offer| is_meant(offer, arguments));
    if let (Some(run), true) = (&arguments.run, chosen.is_empty()) {
        return Err(match others.iter().find(|offer| offer.run == *run) {
            Some(offer) => unfinished(offer),
            None => TravelError::NoState { remote: remote.name().to_owned(), run: run.clone() }.into(),
        });
    }
    let mut dropped = Vec::new();
    for offer in chosen {
        if !drop_state(&remote, &offer.run, &offer.commit)? {
            let message = format!("run {} was pushed to {} just now, so it is left there", offer.run, remote.name());
            return Err(CliError::new(ExitStatus::Held, message));
        }
        forget(&site.repository, &offer.run)?;
        dropped.push(offer.run);
    }
    match context.printer.format() {
        Format::Text => {
            let runs: String = dropped.iter().map(|run| format!("dropped run {run}\n")).collect();
            let count = counted(dropped.len(), "run");
            context.printer.out(format_args!("{runs}{count} dropped from {}.\n", remote.name()))?;
        }
        Format::Json => {
            let runs: Vec<Value> = dropped.iter().map(|run| json!(run)).collect();
            context.printer.json(&json!({"remote": remote.name(), "dropped": runs}))?;
        }
    }
    Ok(ExitStatus::Done)
}

fn is_meant(offer: &Offer, arguments: &DropState) -> bool {
    let done = offer.manifest.as_ref().is_ok_and(Manifest::is_done);
    match &arguments.run {
        Some(run) => offer.run == *run && (done || arguments.force),
        None => done,
    }
}

fn unfinished(offer: &Offer) -> CliError {
    let message = format!("run {} is {}, so it was not dropped", offer.run, standing(offer));
    CliError::new(ExitStatus::InvalidOperation, message)
        .hint(format!("to go on with it: lanekeeper state pull {0}, then lanekeeper resume {0}", offer.run))
        .hint("to drop it all the same: --force")
}
