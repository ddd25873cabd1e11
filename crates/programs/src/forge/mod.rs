//! Forges, which host pull requests, through the programs that the user is logged in with.
//!
//! Nothing here asks a person, and nothing takes longer than its time limit. Every call may be made again: a pull
//! request that exists is found and updated. `docs/pull-requests.md` lists the calls.

mod address;
mod choose;
mod command;
mod error;
mod follow;
mod gh;
mod gh_review;
mod glab;
mod glab_review;
mod issues;
mod program;
mod review;

use std::path::{Path, PathBuf};

use address::Address;
use choose::ForgeProgram;
use lanewright_model::PullRequest;

pub use choose::ForgeSettings;
pub use error::ForgeError;
pub use follow::Reviewers;
pub use issues::IssueFilter;
pub use review::{Check, Comment, Review};

#[derive(Debug, Clone)]
pub struct Forge {
    program: ForgeProgram,
    directory: PathBuf,
    address: Option<Address>,
    remote: String,
    /// The user's command that says what becomes of pull requests.
    status_command: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy)]
pub struct Proposal<'a> {
    pub branch: &'a str,
    pub head: &'a str,
    pub base: &'a str,
    pub title: &'a str,
    /// A file with the rest, in Markdown.
    pub body_file: &'a Path,
    pub known: Option<&'a PullRequest>,
    pub variables: &'a [(String, String)],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    pub pull_request: PullRequest,
    pub updated: bool,
}

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
    pub fn remote(&self) -> &str {
        &self.remote
    }

    /// Opens a pull request, or brings the one of the same branch up to date.
    pub fn propose(&self, proposal: &Proposal<'_>) -> Result<Opened, ForgeError> {
        if let ForgeProgram::Command(command) = &self.program {
            return command::propose(self, command, proposal);
        }
        let listed = self.list(proposal.branch)?;
        match chosen(&listed, proposal.head) {
            Some(known) if known.is_merged => Ok(known.opened(&known.base)),
            Some(known) => {
                // A person chose another base than the recorded one. It is recorded once the forge is asked for its state.
                let is_retargeted = proposal.known.is_some_and(|recorded| recorded.base != known.base);
                let base = if is_retargeted { known.base.as_str() } else { proposal.base };
                self.update(known, &Proposal { base, ..*proposal })?;
                Ok(known.opened(proposal.base))
            }
            None => self.create(proposal),
        }
    }

    /// The pull requests of a branch that were merged, each with the head of the branch at that time. A command of the
    /// user's is not asked for them.
    pub fn merged(&self, branch: &str) -> Result<Vec<(PullRequest, String)>, ForgeError> {
        if let ForgeProgram::Command(_) = &self.program {
            return Ok(Vec::new());
        }
        let merged = self.list(branch)?.into_iter().filter(|it| it.is_merged);
        Ok(merged.map(|it| (it.opened(&it.base).pull_request, it.head)).collect())
    }

    /// The address, unless its host is a name that only the user's settings of ssh know.
    fn public_address(&self) -> Option<&Address> {
        self.address.as_ref().filter(|address| !address.is_alias())
    }

    fn list(&self, branch: &str) -> Result<Vec<Listed>, ForgeError> {
        if self.program == ForgeProgram::Glab { glab::list(self, branch) } else { gh::list(self, branch) }
    }

    fn create(&self, proposal: &Proposal<'_>) -> Result<Opened, ForgeError> {
        if self.program == ForgeProgram::Glab { glab::create(self, proposal) } else { gh::create(self, proposal) }
    }

    fn update(&self, known: &Listed, proposal: &Proposal<'_>) -> Result<(), ForgeError> {
        match self.program == ForgeProgram::Glab {
            true => glab::update(self, known.number, proposal),
            false => gh::update(self, known.number, proposal),
        }
    }
}

/// The page on which a person can open a pull request; `None`: the forge is not known by the name of its host.
pub fn page_to_open(urls: &[String], branch: &str, base: &str) -> Option<String> {
    let address = urls.iter().find_map(|url| Address::parse(url)).filter(|address| !address.is_alias())?;
    let Address { host, path } = &address;
    let words = |text: &str| text.split('/').map(percent_encoded).collect::<Vec<_>>().join("/");
    if host.contains("github") {
        return Some(format!("https://{host}/{path}/compare/{}...{}?expand=1", words(base), words(branch)));
    }
    let query = |name: &str, value: &str| format!("merge_request%5B{name}%5D={}", percent_encoded(value));
    let (source, target) = (query("source_branch", branch), query("target_branch", base));
    host.contains("gitlab").then(|| format!("https://{host}/{path}/-/merge_requests/new?{source}&{target}"))
}

/// As it may stand between two slashes of an address.
fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// The open one; else one that was merged with the current head of the branch, which needs nothing more.
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

/// A pull request that has just been created, identified by its address.
fn made(url: &str, base: &str) -> Opened {
    let number = url.rsplit('/').find(|part| !part.is_empty()).and_then(|part| part.parse().ok());
    Opened { pull_request: PullRequest { url: url.to_owned(), number, base: base.to_owned() }, updated: false }
}

/// What is expected of a program whose last line is no address.
const NO_ADDRESS: &str = "must print the pull request's address on its last line";

fn address_on_last_line(text: &str) -> Option<&str> {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    let is_address = ["https://", "http://"].iter().any(|scheme| line.starts_with(scheme));
    (is_address && !line.contains(|c: char| c.is_whitespace() || c.is_control())).then_some(line)
}

#[cfg(test)]
mod tests;
