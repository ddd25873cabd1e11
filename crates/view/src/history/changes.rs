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
        Self::after(&records.iter().filter(|record| record.event.lane() == Some(lane)).collect::<Vec<_>>())
    }

    pub fn all(records: &[Record]) -> HashMap<&LaneId, Self> {
        let mut all: HashMap<&LaneId, Vec<&Record>> = HashMap::new();
        for (lane, record) in records.iter().filter_map(|record| Some((record.event.lane()?, record))) {
            all.entry(lane).or_default().push(record);
        }
        all.into_iter().map(|(lane, records)| (lane, Self::after(&records))).collect()
    }

    /// What it is after all `records` of its lane. What came between a point and the rollback to it does not count.
    fn after(records: &[&Record]) -> Self {
        let before = |at: usize| match &records[at].event {
            Event::LaneRolledBack { point: None, .. } => None,
            Event::LaneRolledBack { point: Some(point), .. } => {
                records.partition_point(|record| record.seq <= point.seq).checked_sub(1)
            }
            _ => at.checked_sub(1),
        };
        let counting: Vec<usize> = std::iter::successors(records.len().checked_sub(1), |at| before(*at)).collect();
        let mut work = Self::default();
        counting.into_iter().rev().for_each(|at| work.apply(&records[at].event));
        work
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
                let agents = std::mem::take(&mut self.agents);
                *self = point.as_ref().map_or_else(Self::default, |point| Self::at(point, agents));
            }
            _ => {}
        }
    }

    /// What it is again after a rollback to `point`, where its agents had what `agents` says.
    fn at(point: &LanePoint, agents: HashMap<AgentName, AgentWork>) -> Self {
        let mut work = Self { base: Some(point.base.clone()), agents, ..Self::default() };
        for agent in work.agents.values_mut() {
            agent.merged = agent.merged.take().map(|(before, after)| (point.now(&before), point.now(&after)));
        }
        for OpenedWorktree { agent, worktree, .. } in &point.worktrees {
            match agent {
                None => {
                    work.branch.clone_from(&worktree.branch);
                    work.moved_to(&worktree.head);
                }
                Some(agent) => work.agent(agent).branch.clone_from(&worktree.branch),
            }
        }
        work
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
    use lanewright_model::event::LaneStage;
    use lanewright_model::testing::*;

    use super::*;

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

    #[test]
    fn a_rollback_to_a_point_leaves_what_agents_had_then() {
        let story = Story::begun().opened("SL-1", 1).then(merged("one", '7'));
        let point = LanePoint {
            name: "post_implementation".to_owned(),
            seq: story.records.last().map(|record| record.seq).expect("the merge"),
            stage: LaneStage::Implementation,
            base: commit('1'),
            worktrees: Vec::new(),
            again: vec![(commit('7'), commit('8'))],
        };
        let lane = lane("SL-1");
        let back = Event::LaneRolledBack { lane, integration: None, kept: Vec::new(), point: Some(Box::new(point)) };
        let work = work(story.then(merged("two", '9')).then(back));
        let before = work.agents[&agent("one")].merged.as_ref().map(|(_, after)| after);
        assert_eq!((before, work.agents.get(&agent("two"))), (Some(&commit('8')), None));
    }
}
