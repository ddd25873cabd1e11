//! The candidates of a lane, and which of them continues.

use std::fmt;

use lanewright_model::{AgentName, Usage};
use serde::Serialize;

use super::lane::LaneFacts;

/// One of several agents that do the same in a lane.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CandidateView<'a> {
    pub agent: &'a AgentName,
    /// What `pick` takes.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub number: u32,
    /// Whether the lane continues with it.
    pub chosen: bool,
    /// Whether the user picked it, and the lane does not continue with it yet.
    pub picked: bool,
    /// What its attempts used.
    pub usage: Usage,
}

impl fmt::Display for CandidateView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.chosen { "chosen" } else { "" };
        let notes = [word, if self.picked { "picked" } else { "" }, &self.usage.to_string()].map(str::to_owned);
        let notes: Vec<String> = notes.into_iter().filter(|note| !note.is_empty()).collect();
        write!(f, "{}", self.agent)?;
        if notes.is_empty() { Ok(()) } else { write!(f, " ({})", notes.join(", ")) }
    }
}

/// Which candidate of a lane continues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) chosen: Option<AgentName>,
    /// The one that the user wants in its place.
    pub(super) picked: Option<AgentName>,
}

impl LaneFacts {
    pub(super) fn choice(&self) -> Choice {
        self.choice_at(u64::MAX)
    }

    /// The choice after the record `seq`.
    pub(super) fn choice_at(&self, seq: u64) -> Choice {
        let until = self.choices.iter().rfind(|(at, _)| *at <= seq);
        until.map(|(_, choice)| choice.clone()).unwrap_or_default()
    }

    /// The candidate that is to take the place of the chosen one.
    pub(crate) fn replacement(&self) -> Option<AgentName> {
        let Choice { chosen, picked } = self.choice();
        picked.filter(|_| chosen.is_some())
    }

    /// Its candidates, in the order of their numbers.
    pub fn candidates(&self) -> Vec<CandidateView<'_>> {
        let usage = |agent: &AgentName| {
            let own = self.jobs.all().filter(|job| job.job.agent() == Some(agent));
            own.filter_map(|job| job.transcript.as_ref()).map(|transcript| transcript.usage).sum()
        };
        let choice = self.choice();
        self.candidates
            .iter()
            .map(|(agent, number)| CandidateView {
                agent,
                number: *number,
                chosen: choice.chosen.as_ref() == Some(agent),
                picked: choice.picked.as_ref() == Some(agent),
                usage: usage(agent),
            })
            .collect()
    }

    /// Its candidates on one line; empty: it has none.
    pub fn candidates_line(&self) -> String {
        self.candidates().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}
