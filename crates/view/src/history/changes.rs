//! Between which commits the changes of a lane or of an agent lie, as far as the run log says.

use std::collections::HashMap;

use lanewright_model::event::{Event, LanePoint, OpenedWorktree, Record};
use lanewright_model::{AgentName, CommitId, JobRole, LaneId};

/// A branch before and after a merge.
pub type Merge = (CommitId, CommitId);

#[derive(Debug, Default, PartialEq)]
pub struct LaneWork {
    /// The integration branch when the lane began.
    pub base: Option<CommitId>,
    /// The lane's branch; empty: none.
    pub branch: String,
    /// The head of the branch, as far as the run moved it.
    pub head: Option<CommitId>,
    pub merged: Option<Merge>,
    pub snapshot: Option<CommitId>,
    /// Whether the user was asked to approve the changes, and no agent has worked since.
    pub asked: bool,
    /// The head or the snapshot, whichever came last.
    pub newest: Option<CommitId>,
    pub agents: HashMap<AgentName, AgentWork>,
}

/// Where the work of an agent with a worktree of its own is.
#[derive(Debug, Default, PartialEq)]
pub struct AgentWork {
    pub branch: String,
    /// What its merge into the lane brought; `None`: it has worked since, or was not merged.
    pub merged: Option<Merge>,
    pub snapshot: Option<CommitId>,
}

impl LaneWork {
    pub fn of(lane: &LaneId, records: &[Record]) -> Self {
        let mut work = Self::default();
        for record in records.iter().filter(|record| record.event.lane() == Some(lane)) {
            work.apply(&record.event);
        }
        work
    }

    pub fn all(records: &[Record]) -> HashMap<&LaneId, Self> {
        let mut all: HashMap<&LaneId, Self> = HashMap::new();
        for event in records.iter().map(|record| &record.event) {
            if let Some(lane) = event.lane() {
                all.entry(lane).or_default().apply(event);
            }
        }
        all
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::LaneBased { base, .. } | Event::LaneReset { base, .. } => {
                self.base = Some(base.clone());
                self.moved_to(base);
            }
            Event::WorktreeOpened { agent: None, worktree, .. } => {
                self.branch.clone_from(&worktree.branch);
                self.moved_to(&worktree.head);
            }
            Event::WorktreeOpened { agent: Some(agent), worktree, .. } => {
                self.agent(agent).branch.clone_from(&worktree.branch);
            }
            Event::BranchMoved { agent: None, head, .. } => self.moved_to(head),
            Event::BranchMoved { agent: Some(agent), .. } => self.agent(agent).merged = None,
            Event::AgentMerged { agent, head, .. } => {
                let before = self.head.clone();
                self.moved_to(head);
                self.agent(agent).merged = before.map(|before| (before, head.clone()));
            }
            Event::JobPlanned { job, .. } => {
                if let JobRole::Attempt { agent, .. } = &job.role {
                    self.asked = false;
                    self.agent(agent).merged = None;
                }
            }
            Event::SnapshotTaken { agent: None, commit, .. } => {
                (self.snapshot, self.newest) = (Some(commit.clone()), Some(commit.clone()));
            }
            Event::SnapshotTaken { agent: Some(agent), commit, .. } => {
                self.agent(agent).snapshot = Some(commit.clone());
            }
            Event::ChangesMeasured { .. } => self.asked = true,
            Event::LaneMerged { onto, commit, .. } => self.merged = Some((onto.clone(), commit.clone())),
            Event::LaneRolledBack { point, .. } => {
                *self = Self::default();
                point.iter().for_each(|point| self.returned_to(point));
            }
            _ => {}
        }
    }

    fn returned_to(&mut self, point: &LanePoint) {
        self.base = Some(point.base.clone());
        for OpenedWorktree { agent, worktree, .. } in &point.worktrees {
            match agent {
                None => {
                    self.branch.clone_from(&worktree.branch);
                    self.moved_to(&worktree.head);
                }
                Some(agent) => self.agent(agent).branch.clone_from(&worktree.branch),
            }
        }
    }

    /// A worktree that is opened again where it was has what its snapshot has.
    fn moved_to(&mut self, head: &CommitId) {
        if self.head.as_ref() != Some(head) {
            (self.head, self.newest) = (Some(head.clone()), Some(head.clone()));
        }
    }

    fn agent(&mut self, name: &AgentName) -> &mut AgentWork {
        self.agents.entry(name.clone()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewright_model::testing::*;

    fn work(story: Story) -> LaneWork {
        LaneWork::of(&lane("SL-1"), &story.records)
    }

    fn merged(name: &str, digit: char) -> Event {
        Event::AgentMerged { lane: lane("SL-1"), agent: agent(name), head: commit(digit) }
    }

    #[test]
    fn agent_merge_starts_at_previous_merge() {
        let story = Story::begun().opened("SL-1", 1).then(merged("one", '7')).then(merged("two", '8'));
        let work = work(story);
        assert_eq!(work.agents[&agent("two")].merged, Some((commit('7'), commit('8'))));
        assert_eq!(work.head, Some(commit('8')));
    }

    #[test]
    fn an_agent_that_works_again_is_not_merged() {
        let story = Story::begun().opened("SL-1", 1).then(merged("one", '7')).job(&attempt("SL-1", "one", 2));
        assert_eq!(work(story).agents[&agent("one")].merged, None);
    }

    #[test]
    fn rollback_resets_lane_work() {
        let back = Event::LaneRolledBack { lane: lane("SL-1"), integration: None, kept: Vec::new(), point: None };
        assert_eq!(work(Story::begun().opened("SL-1", 1).merged("SL-1", '9').then(back)), LaneWork::default());
    }
}
