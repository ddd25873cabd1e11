//! What a lane has in the repository: its branch, its worktree and the refs of its snapshots.

use lanewright_model::CommitId;
use lanewright_model::event::{LanePoint, Worktree};

use crate::state::gate::Gate;

/// What a lane has in the repository.
#[derive(Debug, Clone, Default)]
pub(crate) struct Work {
    pub(super) base: Option<CommitId>,
    /// What it was built on at first: `base` may be a merge of its own work that failed its tests.
    pub(super) first_base: Option<CommitId>,
    /// The first of its ports.
    pub(super) port: u16,
    /// The variables of its `user_setup` that were not set when it was checked.
    pub(super) missing: Vec<String>,
    pub(super) worktree: Option<Worktree>,
    /// The set-up commands of `worktree`.
    pub(super) setup: Gate,
    pub(super) head: Option<CommitId>,
    /// The refs that keep its snapshots, and what they keep.
    pub(super) snapshots: Vec<(String, CommitId)>,
}

impl Work {
    /// Whether the lane's work changed nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.base
    }

    pub(crate) fn setup(&self) -> &Gate {
        &self.setup
    }

    pub(crate) fn missing(&self) -> &[String] {
        &self.missing
    }

    pub(crate) fn begin(&mut self, base: &CommitId, port: u16, missing: &[String]) {
        self.base = Some(base.clone());
        self.first_base = Some(base.clone());
        self.port = port;
        self.missing = missing.to_vec();
    }

    pub(crate) fn set_head(&mut self, head: &CommitId) {
        self.head = Some(head.clone());
    }

    /// The branch is at `base`, with nothing of its agents in it.
    pub(super) fn reset(&mut self, base: &CommitId) {
        self.base = Some(base.clone());
        self.set_head(base);
    }

    /// The lane is back at a point of its own.
    pub(super) fn return_to(&mut self, point: &LanePoint) {
        let opened = point.worktrees.iter().find(|opened| opened.agent.is_none());
        self.base = Some(point.base.clone());
        self.first_base.get_or_insert_with(|| point.base.clone());
        self.head = self.head.as_ref().map(|head| point.now(head));
        self.worktree = opened.map(|opened| opened.worktree.clone());
        self.setup = Gate::Due;
    }

    pub(super) fn close(&mut self) {
        self.worktree = None;
    }

    /// Its worktree was on another machine and is gone; a new one is set up again.
    pub(super) fn lose_worktree(&mut self) {
        self.close();
        self.setup.run_again();
    }

    pub(crate) fn add_snapshot(&mut self, reference: &str, commit: &CommitId) {
        self.snapshots.push((reference.to_owned(), commit.clone()));
    }

    /// The ref of the newest one.
    pub(super) fn last_snapshot(&self) -> Option<&String> {
        self.snapshots.last().map(|(reference, _)| reference)
    }

    pub(crate) fn forget_snapshots(&mut self, is_meant: impl Fn(&String) -> bool) {
        self.snapshots.retain(|(reference, _)| !is_meant(reference));
    }
}
