//! `state drop`: runs removed from a remote. Work that only a state holds is never dropped unasked.

use serde_json::{Value, json};

use super::list::standing;
use super::remote;
use crate::cli::args::{DropState, Format};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::execution::Site;
use crate::git::Remote;
use crate::model::RunId;
use crate::model::text::{counted, shell_line};
use crate::settings::Layer;
use crate::travel::{Manifest, Offer, TravelError, drop_state, forget, offers, unpublished};

/// A run that stays, with the branches that must be pushed first.
type Kept = (RunId, Vec<String>);

pub(super) fn run(context: &Context, arguments: &DropState) -> Result<ExitStatus, CliError> {
    let site = Site::find_to_work_in(context)?;
    let settings = context.layers(Layer::default())?.resolve(None);
    let remote = remote(&site.repository, &arguments.remote, &settings)?;
    let offers = offers(&site.repository, &remote)?;
    let (chosen, kept) = match &arguments.run {
        Some(run) => (vec![named(&site, &remote, offers, run, arguments.force)?], Vec::new()),
        None => of_this_branch(&site, &remote, offers)?,
    };
    let mut dropped = Vec::new();
    for offer in chosen {
        if !drop_state(&remote, &offer.run, &offer.commit)? {
            let message = format!("run {} was pushed to {} just now, so it is left there", offer.run, remote.name());
            return Err(CliError::new(ExitStatus::Held, message));
        }
        forget(&site.repository, &offer.run)?;
        dropped.push(offer.run);
    }
    report(context, &remote, &dropped, &kept)?;
    Ok(ExitStatus::Done)
}

/// The run that is asked for by name.
fn named(site: &Site, remote: &Remote, offers: Vec<Offer>, run: &RunId, force: bool) -> Result<Offer, CliError> {
    let unknown = || TravelError::NoState { remote: remote.name().to_owned(), run: run.clone() };
    let offer = offers.into_iter().find(|offer| offer.run == *run).ok_or_else(unknown)?;
    if force {
        return Ok(offer);
    }
    let Some(manifest) = done(&offer) else { return Err(unfinished(&offer)) };
    let missing = unpublished(&site.repository, remote, manifest)?;
    if missing.is_empty() { Ok(offer) } else { Err(only_there(remote, run, &missing)) }
}

/// The runs of the branch that is checked out which are done: those whose work is published, and those that stay.
fn of_this_branch(site: &Site, remote: &Remote, offers: Vec<Offer>) -> Result<(Vec<Offer>, Vec<Kept>), CliError> {
    let here = site.repository.current_branch()?;
    let (mut chosen, mut kept) = (Vec::new(), Vec::new());
    for offer in offers {
        let Some(manifest) = done(&offer).filter(|it| here.as_ref() == Some(&it.base_branch)) else { continue };
        let missing = unpublished(&site.repository, remote, manifest)?;
        if missing.is_empty() {
            chosen.push(offer);
        } else {
            kept.push((offer.run, missing));
        }
    }
    Ok((chosen, kept))
}

fn done(offer: &Offer) -> Option<&Manifest> {
    offer.manifest.as_ref().ok().filter(|manifest| manifest.is_done())
}

fn report(context: &Context, remote: &Remote, dropped: &[RunId], kept: &[Kept]) -> Result<(), CliError> {
    let name = remote.name();
    match context.printer.format() {
        Format::Text => {
            let gone: String = dropped.iter().map(|run| format!("dropped run {run}\n")).collect();
            let stay: String = kept
                .iter()
                .map(|(run, missing)| {
                    format!("kept run {run}: it holds work that no branch of {name} has; {}\n", publish(name, missing))
                })
                .collect();
            let count = counted(dropped.len(), "run");
            context.printer.out(format_args!("{gone}{stay}{count} dropped from {name}.\n"))?;
        }
        Format::Json => {
            let kept: Vec<Value> =
                kept.iter().map(|(run, missing)| json!({"run_id": run, "unpublished": missing})).collect();
            context.printer.json(&json!({"remote": name, "dropped": dropped, "kept": kept}))?;
        }
    }
    Ok(())
}

/// How a person publishes branches.
fn publish(remote: &str, branches: &[String]) -> String {
    let words = ["git", "push", remote].into_iter().chain(branches.iter().map(String::as_str));
    format!("to publish it: {}", shell_line(words))
}

fn only_there(remote: &Remote, run: &RunId, missing: &[String]) -> CliError {
    let name = remote.name();
    let message = format!("run {run} holds work that no branch of {name} has, so it was not dropped");
    CliError::new(ExitStatus::Blocked, message)
        .hint(format!("{}; then drop it again", publish(name, missing)))
        .hint(format!("where that work is not here: lanekeeper state pull {run}"))
        .hint("to drop it all the same: --force")
}

fn unfinished(offer: &Offer) -> CliError {
    let message = format!("run {} is {}, so it was not dropped", offer.run, standing(offer));
    CliError::new(ExitStatus::InvalidOperation, message)
        .hint(format!("to resume it: lanekeeper state pull {0}, then lanekeeper resume {0}", offer.run))
        .hint("to drop it all the same: --force")
}
