//! What is known of a lane's branch on the remote, and of its pull request.

use std::collections::BTreeSet;
use std::time::Duration;

use lanewright_model::event::Event;
use lanewright_model::{
    ChecksState, CommitId, Outage, PullRequest, PullRequestState, PullRequestStatus, Remark, Timestamp,
};

/// What the remote and the forge have of a lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProposalState {
    pub(crate) announced: Vec<CommitId>,
    /// What the remote has of its branch.
    pub(crate) pushed: Option<CommitId>,
    pull_request: Option<PullRequest>,
    /// The head that the pull request was opened or brought up to date for in this life of the lane.
    pub(crate) made_for: Option<CommitId>,
    /// When that was, and as much later as one slept since.
    made_at: Option<Timestamp>,
    /// When the run pushed its branch first.
    first_pushed: Option<Timestamp>,
    /// Remarks from before are of an earlier run.
    known_since: Option<Timestamp>,
    /// What the forge said last.
    status: Option<PullRequestStatus>,
    failed_since: Option<Timestamp>,
    /// The branch that a person had the pull request ask to be merged into.
    chosen_base: Option<String>,
    /// What other people pushed on top of what the run pushed.
    others: Vec<CommitId>,
    /// The remarks that agents were given.
    answered: BTreeSet<String>,
    /// Remarks that were not acted upon yet.
    pub(crate) feedback: Vec<Remark>,
    /// How often the lane was sent back since it last gave up.
    pub(crate) rounds: u32,
    /// When it was sent back last.
    sent_back: Option<Timestamp>,
    /// When the forge refused to merge it as it is.
    pub(crate) refused: Option<Timestamp>,
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

    /// What of that is on the remote since the lane began.
    pub fn pushed(&self) -> Option<&CommitId> {
        self.pushed.as_ref()
    }

    /// What other people pushed on top of it, in all of its lives.
    pub fn others(&self) -> &[CommitId] {
        &self.others
    }

    pub(crate) fn take_in(&mut self, theirs: &CommitId) {
        self.others.push(theirs.clone());
        self.pushed = Some(theirs.clone());
    }

    /// Its pull request, which may be of an earlier life.
    pub fn pull_request(&self) -> Option<&PullRequest> {
        self.pull_request.as_ref()
    }

    /// Whether it may still be sent back or merged, for which others wait. One that was closed may be opened again.
    pub(crate) fn is_open(&self) -> bool {
        self.made_for.is_some() && self.status.as_ref().is_none_or(|status| status.state != PullRequestState::Merged)
    }

    /// When it was opened or brought up to date last.
    pub(crate) fn made_at(&self) -> Option<Timestamp> {
        self.made_at
    }

    /// Since when the remarks on it are about this run; `None`: all are.
    pub fn known_since(&self) -> Option<Timestamp> {
        self.known_since
    }

    pub(crate) fn chosen_base(&self) -> Option<&String> {
        self.chosen_base.as_ref()
    }

    /// What the forge said last.
    pub fn status(&self) -> Option<&PullRequestStatus> {
        self.status.as_ref()
    }

    /// Since when a check has failed.
    pub fn failed_since(&self) -> Option<Timestamp> {
        self.failed_since
    }

    /// How often the lane was sent back since it last gave up.
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Whether what the forge said when it `answered` is of after the lane was sent back last.
    pub(crate) fn is_up_to_date(&self, answered: Timestamp) -> bool {
        self.sent_back.is_none_or(|sent_back| answered > sent_back)
    }

    /// Whether its agents were given that remark.
    pub fn is_answered(&self, remark: &str) -> bool {
        self.answered.contains(remark)
    }

    /// The agents of the lane are to act upon `remarks`; whether any of them is new.
    pub(crate) fn send_back(&mut self, remarks: &[Remark], at: Timestamp) -> bool {
        let new: Vec<Remark> =
            remarks.iter().filter(|remark| self.answered.insert(remark.id.clone())).cloned().collect();
        self.rounds += u32::from(!new.is_empty());
        self.feedback = new;
        if !self.feedback.is_empty() {
            self.sent_back = Some(at);
        }
        !self.feedback.is_empty()
    }

    /// Whether the forge has what the lane holds at `head`.
    pub(crate) fn is_made_for(&self, head: Option<&CommitId>) -> bool {
        self.pull_request.is_some() && self.made_for.as_ref() == head
    }

    pub(crate) fn apply(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::BranchPushed { head, .. } => {
                self.pushed = Some(head.clone());
                self.first_pushed.get_or_insert(at);
                self.out = None;
            }
            Event::PullRequestOpened { pull_request, head, updated, .. } => {
                // One that was open already may have remarks on the work of an earlier run, or this one opened it and died.
                if *updated && self.pull_request.is_none() {
                    self.known_since = Some(self.first_pushed.unwrap_or(at));
                }
                self.pull_request = Some(pull_request.clone());
                self.made_for = Some(head.clone());
                self.made_at = Some(at);
                // Its checks run again.
                (self.status, self.failed_since) = (None, None);
                self.out = None;
                self.refused = None;
            }
            Event::PullRequestChanged { status, .. } => {
                let has_failed = status.checks == ChecksState::Failed;
                self.failed_since = has_failed.then(|| self.failed_since.unwrap_or(at));
                self.chosen_base = status.retargeted.clone().or(self.chosen_base.take());
                self.status = Some(status.clone());
                self.refused = None;
            }
            Event::PullRequestRefused { .. } => self.refused = Some(at),
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
        self.made_at = self.made_at.map(|at| at.plus(duration));
        self.sent_back = self.sent_back.map(|at| at.plus(duration));
    }

    /// What is left of it when the lane is rolled back: the remote and the forge still have what was brought there.
    pub(crate) fn after_rollback(self) -> Self {
        let Self { announced, others, pull_request, first_pushed, known_since, .. } = self;
        Self { announced, others, pull_request, first_pushed, known_since, ..Self::default() }
    }
}

#[cfg(test)]
mod tests;
