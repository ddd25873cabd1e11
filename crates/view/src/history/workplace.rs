//! Where a lane or an agent works: its branch and its worktree.

use std::path::PathBuf;

use lanewright_model::event::{RunStarted, Worktree};
use lanewright_model::{AgentName, CommitId, LaneId};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workplace {
    /// The head of its branch, as far as the run moved it.
    pub head: Option<CommitId>,
    /// The head that its checkpoints record: at a retry, that of the agent.
    pub checkpoint_head: Option<CommitId>,
    /// `None` before it is opened and once it is released.
    pub worktree: Option<Worktree>,
    /// The commit with all that the worktree held when it was last left; `None` once a job has started in it.
    pub content: Option<CommitId>,
    /// Where it was opened again after it was lost: that is its content then, whatever snapshots hold.
    pub reopened_at: Option<CommitId>,
    /// The first files with changes that were in no commit when it was saved last and stayed as it was.
    pub dirty: Vec<String>,
}

/// The link to a worktree that is named after its lane, and its agent.
pub fn worktree_link(run: &RunStarted, lane: &LaneId, agent: Option<&AgentName>) -> PathBuf {
    let lane = run.options.worktree_root.join(run.run_id.as_str()).join(lane.as_str());
    let place = agent.map_or_else(|| lane.clone(), |agent| lane.join("agents").join(agent.as_str()));
    place.join("code")
}

impl Workplace {
    pub(super) fn open(&mut self, worktree: &Worktree) {
        self.worktree = Some(worktree.clone());
        self.set_head(&worktree.head);
    }

    pub(super) fn set_head(&mut self, head: &CommitId) {
        self.head = Some(head.clone());
        self.checkpoint_head = Some(head.clone());
        self.content = Some(head.clone());
        self.dirty.clear();
    }

    pub(super) fn reopened(&mut self, head: &CommitId) {
        self.content = Some(head.clone());
        self.reopened_at = Some(head.clone());
        self.dirty.clear();
    }

    /// What is checked out; `None`: no worktree, or on no branch.
    pub fn branch(&self) -> Option<&str> {
        self.worktree.as_ref().map(|worktree| worktree.branch.as_str()).filter(|branch| !branch.is_empty())
    }
}
