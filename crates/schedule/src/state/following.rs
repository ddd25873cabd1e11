//! When the forge was asked about open pull requests.

use std::time::Duration;

use lanewright_model::event::Event;
use lanewright_model::retry::backoff;
use lanewright_model::{Follow, Timestamp};

/// When the forge was asked in this life of the run, and how often since something changed there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Following {
    asked: Option<Timestamp>,
    /// When it answered last for all of them.
    answered: Option<Timestamp>,
    unchanged: u32,
    /// How pull requests are followed in this life of the run, if that was given for it.
    given: Option<Follow>,
}

impl Following {
    pub(crate) fn given(&self) -> Option<Follow> {
        self.given
    }

    pub(crate) fn asked(&self) -> Option<Timestamp> {
        self.asked
    }

    pub(crate) fn answered(&self) -> Option<Timestamp> {
        self.answered
    }

    /// When the forge is to be asked again, after longer and longer while nothing changes.
    pub(crate) fn next(&self, first: Duration, key: &str) -> Option<Timestamp> {
        Some(self.asked?.plus(backoff(first, key, self.unchanged + 1)))
    }

    pub(crate) fn apply(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::RunResumed { follow, .. } => *self = Self { given: *follow, ..Self::default() },
            Event::PullRequestsChecked { error } => {
                (self.asked, self.unchanged) = (Some(at), self.unchanged + 1);
                self.answered = Some(at).filter(|_| error.is_empty()).or(self.answered);
            }
            Event::PullRequestOpened { .. } | Event::PullRequestChanged { .. } => self.unchanged = 0,
            _ => {}
        }
    }

    pub(crate) fn sleep(&mut self, duration: Duration) {
        self.asked = self.asked.map(|at| at.plus(duration));
        self.answered = self.answered.map(|at| at.plus(duration));
    }
}
