//! What is known of a lane's branch on the remote, and of its pull request.

use std::time::Duration;

use lanewright_model::event::Event;
use lanewright_model::{CommitId, Outage, PullRequest, Timestamp};

/// What the remote and the forge have of a lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProposalState {
    pub(crate) announced: Vec<CommitId>,
    /// What the remote has of its branch.
    pub(crate) pushed: Option<CommitId>,
    pull_request: Option<PullRequest>,
    /// The head that the pull request was opened or brought up to date for in this life of the lane.
    made_for: Option<CommitId>,
    /// The remote or the forge cannot be reached.
    pub(crate) out: Option<ForgeOutage>,
}

/// A remote or a forge that cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForgeOutage {
    /// When it was found out the last time, and as much later as one slept since.
    pub(crate) at: Timestamp,
    /// How often in a row.
    pub(crate) times: u32,
    /// What is out.
    pub(crate) outage: Outage,
}

impl ProposalState {
    /// Heads of its branch that were to be pushed, in all of its lives: what the remote has of it is one of them, or
    /// was pushed by another program.
    pub fn announced(&self) -> &[CommitId] {
        &self.announced
    }

    /// Its pull request, which may be of an earlier life.
    pub fn pull_request(&self) -> Option<&PullRequest> {
        self.pull_request.as_ref()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.made_for.is_some()
    }

    /// Whether the forge has what the lane holds at `head`.
    pub(crate) fn is_made_for(&self, head: Option<&CommitId>) -> bool {
        self.pull_request.is_some() && self.made_for.as_ref() == head
    }

    pub(crate) fn apply(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::BranchPushed { head, .. } => {
                self.pushed = Some(head.clone());
                self.out = None;
            }
            Event::PullRequestOpened { pull_request, head, .. } => {
                self.pull_request = Some(pull_request.clone());
                self.made_for = Some(head.clone());
                self.out = None;
            }
            Event::ForgeUnavailable { outage, .. } => {
                let times = self.out.as_ref().map_or(1, |out| out.times + 1);
                self.out = Some(ForgeOutage { at, times, outage: outage.clone() });
            }
            _ => {}
        }
    }

    pub(crate) fn sleep(&mut self, duration: Duration) {
        if let Some(out) = &mut self.out {
            out.at = out.at.plus(duration);
        }
    }

    /// What is left of it when the lane is rolled back: the remote and the forge still have what was brought there.
    pub(crate) fn after_rollback(self) -> Self {
        Self { announced: self.announced, pull_request: self.pull_request, ..Self::default() }
    }
}

#[cfg(test)]
mod tests;
