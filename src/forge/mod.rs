//! Forges: whoever keeps pull requests, reached through the programs that people are logged in with.
//!
//! Nothing here asks a person, and nothing takes longer than its time limit. Every call may be made again: a pull
//! request that is there is found and brought up to date. `docs/pull-requests.md` tells which calls are made.

mod address;
mod choose;
mod command;
mod error;
mod gh;
mod glab;
mod program;

use std::path::{Path, PathBuf};

use crate::model::PullRequest;
use address::Address;
use choose::Speaker;

pub use choose::Wish;
pub use error::ForgeError;

/// A forge that is ready to be spoken to.
#[derive(Debug, Clone)]
pub struct Forge {
    speaker: Speaker,
    /// Where the programs run: the main worktree.
    directory: PathBuf,
    address: Option<Address>,
    remote: String,
}

/// What a pull request is to say.
#[derive(Debug, Clone, Copy)]
pub struct Proposal<'a> {
    /// The branch with the work, as the remote calls it.
    pub branch: &'a str,
    /// Its head.
    pub head: &'a str,
    /// The branch that it is to be merged into.
    pub base: &'a str,
    /// One line.
    pub title: &'a str,
    /// A file with the rest, in Markdown.
    pub body_file: &'a Path,
    /// The pull request as it was last known.
    pub known: Option<&'a PullRequest>,
    /// More for a command of the user's, as environment variables.
    pub variables: &'a [(String, String)],
}

/// A pull request that says what it is to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The pull request.
    pub pull_request: PullRequest,
    /// Whether it was there before.
    pub updated: bool,
}

/// A pull request as a forge lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listed {
    number: u64,
    url: String,
    base: String,
    head: String,
    is_open: bool,
    is_merged: bool,
}

impl Forge {
    /// What the user calls the remote whose forge it is.
    pub fn remote(&self) -> &str {
        &self.remote
    }

    /// Opens a pull request, or brings the one of the same branch up to date.
    ///
    /// # Errors
    /// [`ForgeError`]; asked again, it goes on where it stood.
    pub fn propose(&self, proposal: &Proposal<'_>) -> Result<Opened, ForgeError> {
        if let Speaker::Command(command) = &self.speaker {
            return command::propose(self, command, proposal);
        }
        let listed = self.list(proposal.branch)?;
        match chosen(&listed, proposal.head) {
            Some(known) if known.is_merged => Ok(known.opened(&known.base)),
            Some(known) => {
                self.update(known, proposal)?;
                Ok(known.opened(proposal.base))
            }
            None => self.create(proposal),
        }
    }

    fn list(&self, branch: &str) -> Result<Vec<Listed>, ForgeError> {
        if self.speaker == Speaker::Glab { glab::list(self, branch) } else { gh::list(self, branch) }
    }

    fn create(&self, proposal: &Proposal<'_>) -> Result<Opened, ForgeError> {
        if self.speaker == Speaker::Glab { glab::create(self, proposal) } else { gh::create(self, proposal) }
    }

    fn update(&self, known: &Listed, proposal: &Proposal<'_>) -> Result<(), ForgeError> {
        match self.speaker == Speaker::Glab {
            true => glab::update(self, known.number, proposal),
            false => gh::update(self, known.number, proposal),
        }
    }
}

/// The one that is open; else one that was merged as the branch stands now, of which there is nothing left to ask.
fn chosen<'l>(listed: &'l [Listed], head: &str) -> Option<&'l Listed> {
    let merged = |it: &&Listed| it.is_merged && it.head == head;
    listed.iter().find(|it| it.is_open).or_else(|| listed.iter().find(merged))
}

impl Listed {
    fn opened(&self, base: &str) -> Opened {
        let pull_request = PullRequest { url: self.url.clone(), number: Some(self.number), base: base.to_owned() };
        Opened { pull_request, updated: true }
    }
}

/// A pull request that has just been made, told by its address.
fn made(url: &str, base: &str) -> Opened {
    let number = url.rsplit('/').find(|part| !part.is_empty()).and_then(|part| part.parse().ok());
    Opened { pull_request: PullRequest { url: url.to_owned(), number, base: base.to_owned() }, updated: false }
}

/// The address on the last line of what a program said.
fn address_on_last_line(text: &str) -> Option<&str> {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    let is_address = ["https://", "http://"].iter().any(|scheme| line.starts_with(scheme));
    (is_address && !line.contains(|c: char| c.is_whitespace() || c.is_control())).then_some(line)
}

#[cfg(test)]
mod tests;
