//! `state list`: the runs that a remote has.

use lanewright_engine::state_sync::{Manifest, Offer, offers};
use lanewright_git::Remote;
use serde_json::{Value, json};

use crate::cli::{ExitStatus, RepositoryContext, Result};

pub(super) fn run(within: &RepositoryContext, remote: &Remote) -> Result<ExitStatus> {
    let offers = offers(&within.repository, remote)?;
    let states: Vec<Value> = offers.iter().map(as_json).collect();
    let text = match offers.as_slice() {
        [] => format!("{} has no state of any run.\n", remote.name()),
        offers => offers.iter().map(as_text).collect(),
    };
    within.context.printer.print(text, &json!({"remote": remote.name(), "states": states}))
}

/// The state of a run, in a word.
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
            "{:<32} {standing:<10} phase {} on {}, {} records, pushed by {}, last at {}{}\n",
            offer.run.as_str(),
            it.phase,
            it.base_branch,
            it.records,
            it.host,
            it.at,
            claimed_by(it)
        ),
        Err(error) => format!("{:<32} {standing:<10} {error}\n", offer.run.as_str()),
    }
}

fn claimed_by(manifest: &Manifest) -> String {
    match &manifest.claim {
        Some(claim) if manifest.outcome.is_none() => format!(", claimed by {} at {}", claim.host, claim.at),
        _ => String::new(),
    }
}

fn as_json(offer: &Offer) -> Value {
    let (run, commit, standing) = (&offer.run, &offer.commit, standing(offer));
    match &offer.manifest {
        Ok(it) => json!({
            "run_id": run, "commit": commit, "standing": standing, "phase": it.phase, "base_branch": it.base_branch,
            "records": it.records, "host": it.host, "at": it.at, "claim": it.claim,
        }),
        Err(error) => json!({"run_id": run, "commit": commit, "standing": standing, "error": error.to_string()}),
    }
}
