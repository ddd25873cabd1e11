//! How Lanewright's commits are made, as far as settings decide it: by whom, signed or not, signed off or not.
//!
//! Agents can write git's settings of the repository (`git config user.name Bot` in a worktree does), and the names of
//! programs in them would then be run. A run therefore uses what they were before its first agent.

use std::collections::BTreeMap;

use lanewright_model::{Sign, SignOff};

/// The settings of Lanewright's that say how commits are made, and git's, where they are those of an earlier time.
#[derive(Debug, Clone, Default)]
pub struct CommitRules {
    pub sign: Sign,
    pub sign_off: SignOff,
    /// `None`: git's settings count as they are at each commit.
    pub settings: Option<CommitSettings>,
}

/// Git's settings that say whose commits are, and whether they are signed; in lower case.
pub(super) const NAMES: &[&str] = &[
    "user.name",
    "user.email",
    "author.name",
    "author.email",
    "committer.name",
    "committer.email",
    "user.signingkey",
    "commit.gpgsign",
    "format.signoff",
    "gpg.format",
    "gpg.program",
    "gpg.openpgp.program",
    "gpg.x509.program",
    "gpg.ssh.program",
    "gpg.ssh.defaultkeycommand",
];

/// Those of git's settings that decide about commits, at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitSettings {
    pub(super) values: BTreeMap<String, String>,
    /// Those of the repository's own files.
    pub(super) of_repository: BTreeMap<String, String>,
}

impl CommitSettings {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Those of `names` that git would find otherwise than they are here, as `name=value`; a setting that is not set here is
    /// empty.
    pub(crate) fn overriding(&self, names: &[&str], now: impl Fn(&str) -> Option<String>) -> Vec<String> {
        let differing = names.iter().filter(|name| self.get(name) != now(name).as_deref());
        differing.map(|name| format!("{name}={}", self.get(name).unwrap_or_default())).collect()
    }
}
