//! Any forge, through the user's own commands.

use std::collections::BTreeMap;

use super::error::ForgeError;
use super::program::run;
use super::{Forge, NO_ADDRESS, Opened, Proposal, Review, address_on_last_line, made};

/// Has the command open the pull request or bring it up to date; it finds out which by itself.
pub(super) fn propose(forge: &Forge, command: &[String], proposal: &Proposal<'_>) -> Result<Opened, ForgeError> {
    let variables: Vec<(String, String)> = [
        ("LANEWRIGHT_REMOTE", forge.remote.as_str()),
        ("LANEWRIGHT_BRANCH", proposal.branch),
        ("LANEWRIGHT_HEAD", proposal.head),
        ("LANEWRIGHT_BASE_BRANCH", proposal.base),
        ("LANEWRIGHT_TITLE", proposal.title),
        ("LANEWRIGHT_BODY_FILE", &proposal.body_file.to_string_lossy()),
        ("LANEWRIGHT_PULL_REQUEST", proposal.known.map_or("", |known| &known.url)),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into_iter()
    .chain(proposal.variables.iter().cloned())
    .collect();
    let said = run(&forge.directory, command, &variables)?;
    let url = address_on_last_line(&said).ok_or_else(|| ForgeError::answer(command, NO_ADDRESS, &said))?;
    let updated = proposal.known.is_some_and(|known| known.url == url);
    Ok(Opened { updated, ..made(url, proposal.base) })
}

/// What the command for that says of pull requests, each by its address.
pub(super) fn reviews(forge: &Forge, pulls: &[(u64, &str)]) -> Result<BTreeMap<u64, Review>, ForgeError> {
    let call = forge.status_command.as_deref().ok_or(ForgeError::NoStatusCommand)?;
    let mut reviews = BTreeMap::new();
    for (number, url) in pulls {
        let variables = [("LANEWRIGHT_REMOTE", forge.remote.as_str()), ("LANEWRIGHT_PULL_REQUEST", url)];
        let said = run(&forge.directory, call, &variables.map(|(name, value)| (name.to_owned(), value.to_owned())))?;
        let review = serde_json::from_str(&said).map_err(|error| {
            ForgeError::answer(call, "must print the status of the pull request as JSON", &format!("{error}: {said}"))
        })?;
        reviews.insert(*number, review);
    }
    Ok(reviews)
}
