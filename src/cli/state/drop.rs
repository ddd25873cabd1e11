//! `state drop`: removes runs from a remote. Work that nothing else has is dropped with `--force` only.

use lanewright_engine::state_sync::{Manifest, Offer, StateSyncError, drop_state, forget, offers, unpublished};
use lanewright_git::Remote;
use lanewright_model::event::{AGENT_BRANCHES, LANE_BRANCHES};
use lanewright_model::text::{counted, shell_line};
use lanewright_model::{CommitId, RunId};
use serde_json::{Value, json};

use super::list::standing;
use super::run_of;
use crate::cli::args::DropState;
use crate::cli::{Context, ExitStatus, Hint, RepositoryContext, Result};

/// A run that stays, with the branches that must be pushed first.
type Kept = (RunId, Vec<String>);

pub(super) fn run(within: &RepositoryContext, remote: &Remote, arguments: &DropState) -> Result<ExitStatus> {
    let offers = offers(&within.repository, remote)?;
    let (chosen, kept) = match &arguments.run {
        Some(name) => {
            (vec![named(within, remote, offers, &run_of(within, remote, name)?, arguments.force)?], Vec::new())
        }
        None => of_this_branch(within, remote, offers)?,
    };
    for offer in &chosen {
        remove(within, remote, &offer.run, &offer.commit)?;
    }
    let dropped: Vec<RunId> = chosen.into_iter().map(|offer| offer.run).collect();
    report(&within.context, remote, &dropped, &kept)
}

/// Removes the state of a run from the remote, if it still is `commit`.
pub(super) fn remove(within: &RepositoryContext, remote: &Remote, run: &RunId, commit: &CommitId) -> Result<()> {
    if !drop_state(remote, run, commit)? {
        let message = format!("run {run} was pushed to {} just now, so it is left there", remote.name());
        return Err(ExitStatus::Held.error(message));
    }
    Ok(forget(&within.repository, run)?)
}

/// The run that is asked for by name.
fn named(within: &RepositoryContext, remote: &Remote, offers: Vec<Offer>, run: &RunId, force: bool) -> Result<Offer> {
    let unknown = || StateSyncError::NoState { remote: remote.name().to_owned(), run: run.clone() };
    let offer = offers.into_iter().find(|offer| offer.run == *run).ok_or_else(unknown)?;
    if force {
        return Ok(offer);
    }
    let Some(manifest) = done(&offer) else { return Err(unfinished(&offer)) };
    let missing = unpublished(&within.repository, remote, manifest)?;
    if missing.is_empty() { Ok(offer) } else { Err(only_there(remote, run, &missing)) }
}

/// The runs of the branch that is checked out which are done: those whose work is published, and those that stay.
fn of_this_branch(within: &RepositoryContext, remote: &Remote, offers: Vec<Offer>) -> Result<(Vec<Offer>, Vec<Kept>)> {
    let here = within.repository.current_branch()?;
    let (mut chosen, mut kept) = (Vec::new(), Vec::new());
    for offer in offers {
        let Some(manifest) = done(&offer).filter(|it| here.as_ref() == Some(&it.base_branch)) else { continue };
        let missing = unpublished(&within.repository, remote, manifest)?;
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

fn report(context: &Context, remote: &Remote, dropped: &[RunId], kept: &[Kept]) -> Result<ExitStatus> {
    let name = remote.name();
    let gone: String = dropped.iter().map(|run| format!("dropped run {run}\n")).collect();
    let stay = kept.iter().map(|(run, missing)| {
        format!(
            "kept run {run}: {} on {name} has not all of its work; {}\n",
            missing.join(", "),
            publish(name, run, missing)
        )
    });
    let text = format!("{gone}{}{} dropped from {name}.\n", stay.collect::<String>(), counted(dropped.len(), "run"));
    let kept: Vec<Value> = kept.iter().map(|(run, missing)| json!({"run_id": run, "unpublished": missing})).collect();
    context.printer.print(text, &json!({"remote": name, "dropped": dropped, "kept": kept}))
}

fn publish(remote: &str, run: &RunId, branches: &[String]) -> String {
    let is_of_lane =
        |branch: &String| [LANE_BRANCHES, AGENT_BRANCHES].iter().any(|names| branch.contains(&format!("{names}/")));
    let words: Vec<&str> = match branches.iter().any(is_of_lane) {
        true => ["git", "push", remote].into_iter().chain(branches.iter().map(String::as_str)).collect(),
        false => vec!["lanewright", "publish", run.as_str()],
    };
    format!("to publish it: {}", shell_line(words))
}

fn only_there(remote: &Remote, run: &RunId, missing: &[String]) -> anyhow::Error {
    let name = remote.name();
    let message = format!("{} on {name} has not all the work of run {run}, so it was not dropped", missing.join(", "));
    ExitStatus::Blocked
        .error(message)
        .hint(format!("{}; then drop it again", publish(name, run, missing)))
        .hint(format!("where that work is not here: lanewright state pull {run}"))
        .hint("to drop it all the same: --force")
}

fn unfinished(offer: &Offer) -> anyhow::Error {
    let message = format!("run {} is {}, so it was not dropped", offer.run, standing(offer));
    ExitStatus::InvalidOperation
        .error(message)
        .hint(format!("to resume it: lanewright state pull {0}, then lanewright resume {0}", offer.run))
        .hint("to drop it all the same: --force")
}
