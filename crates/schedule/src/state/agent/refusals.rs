//! What agents are not allowed to do.

use lanewright_model::{Refusal, Transcript};

/// What an attempt was refused since it wrote a file for the last time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refusals {
    /// How many calls were refused in the whole attempt.
    count: u64,
    newest: Vec<Refusal>,
}

impl Refusals {
    pub(crate) fn of(transcript: &Transcript) -> Self {
        Self { count: transcript.usage.refused_calls, newest: transcript.refusals.clone() }
    }

    /// The newest ones, each as a line.
    pub fn lines(&self) -> Vec<String> {
        self.newest.iter().map(ToString::to_string).collect()
    }

    /// That several calls were refused, each different one with its reason; `None`: at most one was.
    pub(crate) fn several(&self) -> Option<String> {
        let named = self.lines().join("; ");
        let remedy = "allow this in the settings of the program, or use another runner";
        (self.count > 1 && !self.newest.is_empty())
            .then(|| format!("{} tool calls were refused and no file was changed: {named}; {remedy}", self.count))
    }
}
