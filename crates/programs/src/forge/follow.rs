//! Asks forges what became of pull requests, whose words count, and has them merged.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use lanewright_model::MergeStyle;

use super::choose::ForgeProgram;
use super::error::ForgeError;
use super::review::{Author, Check, Comment, Review};
use super::{Forge, command, gh_review, glab_review};

/// Whose comments count, as far as the forge was asked for it.
#[derive(Debug, Default)]
pub struct Reviewers(Mutex<BTreeMap<String, bool>>);

impl Forge {
    /// What the forge says of the pull requests with these numbers, or, for a command, addresses: those that it knows.
    ///
    /// # Errors
    /// The program fails, or says something else.
    pub fn reviews(&self, pulls: &[(u64, &str)]) -> Result<BTreeMap<u64, Review>, ForgeError> {
        match &self.program {
            ForgeProgram::Gh => gh_review::reviews(self, pulls),
            ForgeProgram::Glab => glab_review::reviews(self, pulls),
            ForgeProgram::Command(_) => command::reviews(self, pulls),
        }
    }

    /// Whether this forge can be asked about pull requests.
    ///
    /// # Errors
    /// [`ForgeError::NoStatusCommand`].
    pub fn can_follow(&self) -> Result<(), ForgeError> {
        match (&self.program, &self.status_command) {
            (ForgeProgram::Command(_), None) => Err(ForgeError::NoStatusCommand),
            _ => Ok(()),
        }
    }

    /// Whether the author of a comment is `listed`, or may write to the repository. Programs only count where they are
    /// listed.
    ///
    /// # Errors
    /// The forge does not say.
    pub fn counts(&self, comment: &Comment, listed: &[String], known: &Reviewers) -> Result<bool, ForgeError> {
        let key = match &comment.author {
            _ if listed.iter().any(|name| name.eq_ignore_ascii_case(&comment.by)) => return Ok(true),
            Author::Chosen => return Ok(true),
            Author::Program => return Ok(false),
            Author::Person(key) => key,
        };
        let lock = || known.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(key) {
            return Ok(*known);
        }
        let may_write = match self.program == ForgeProgram::Glab {
            true => glab_review::may_write(self, key)?,
            false => gh_review::may_write(self, key)?,
        };
        lock().insert(key.clone(), may_write);
        Ok(may_write)
    }

    /// The log of a check, or what it says by itself.
    pub fn log_of(&self, check: &Check) -> String {
        let log = check.job.map(|job| match self.program == ForgeProgram::Glab {
            true => glab_review::log(self, job),
            false => gh_review::log(self, job),
        });
        log.and_then(Result::ok).filter(|log| !log.trim().is_empty()).unwrap_or_else(|| check.log.clone())
    }

    /// Has a pull request ask to be merged into another branch.
    ///
    /// # Errors
    /// The forge refuses, or cannot be asked.
    pub fn retarget(&self, number: u64, base: &str) -> Result<(), ForgeError> {
        match &self.program {
            ForgeProgram::Gh => gh_review::retarget(self, number, base),
            ForgeProgram::Glab => glab_review::retarget(self, number, base),
            ForgeProgram::Command(_) => Err(ForgeError::NoMerge),
        }
    }

    /// Has a pull request merged that is still at `head`.
    ///
    /// # Errors
    /// The forge refuses, or cannot be asked.
    pub fn merge(&self, number: u64, head: &str, style: MergeStyle) -> Result<(), ForgeError> {
        match &self.program {
            ForgeProgram::Gh => gh_review::merge(self, number, head, style),
            ForgeProgram::Glab => glab_review::merge(self, number, head, style),
            ForgeProgram::Command(_) => Err(ForgeError::NoMerge),
        }
    }
}
