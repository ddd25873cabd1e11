//! Any forge, through a command of the user's.

use super::error::ForgeError;
use super::program::run;
use super::{Forge, Opened, Proposal, address_on_last_line, made};
use crate::model::text::shell_line;

/// Has the command open the pull request or bring it up to date; it finds out which by itself.
pub(super) fn propose(forge: &Forge, command: &[String], proposal: &Proposal<'_>) -> Result<Opened, ForgeError> {
    let variables: Vec<(String, String)> = [
        ("LANEKEEPER_REMOTE", forge.remote.as_str()),
        ("LANEKEEPER_BRANCH", proposal.branch),
        ("LANEKEEPER_HEAD", proposal.head),
        ("LANEKEEPER_BASE_BRANCH", proposal.base),
        ("LANEKEEPER_TITLE", proposal.title),
        ("LANEKEEPER_BODY_FILE", &proposal.body_file.to_string_lossy()),
        ("LANEKEEPER_PULL_REQUEST", proposal.known.map_or("", |known| &known.url)),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into_iter()
    .chain(proposal.variables.iter().cloned())
    .collect();
    let said = run(&forge.directory, command, &variables)?;
    let url = address_on_last_line(&said).ok_or_else(|| ForgeError::Answer {
        command: shell_line(command),
        expected: "must print the pull request's address on its last line",
        said: said.trim().to_owned(),
    })?;
    let updated = proposal.known.is_some_and(|known| known.url == url);
    Ok(Opened { updated, ..made(url, proposal.base) })
}
