//! What a run's log says that there is: worktrees, branches, snapshots, jobs.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Event, Record, RunOutcome, RunStarted, Worktree};
use crate::git::Holder;
use crate::model::{AgentName, CommitId, JobId, LaneId};

/// What a run's log says that there is.
#[derive(Debug, Clone)]
pub struct Expected {
    /// What it began with.
    pub started: RunStarted,
    /// Whether its last word is that everything is done.
    pub done: bool,
    /// The worktrees that are held, and by whom.
    pub holdings: BTreeMap<Owned, Holding>,
    /// Lanes that are half rolled back: whatever they lack, the rollback will take.
    pub rolling_back: BTreeSet<LaneId>,
    /// Jobs that were planned and have not ended.
    pub open_jobs: BTreeSet<JobId>,
    /// Every job that was ever planned.
    pub known_jobs: BTreeSet<JobId>,
    /// Every commit that the run published.
    pub merges: BTreeSet<CommitId>,
    /// The snapshots of every worktree, the newest last.
    pub snapshots: Vec<(Owned, String, CommitId)>,
}

/// Whose something is; without a lane the final gate's.
pub type Owned = (Option<LaneId>, Option<AgentName>);

/// A worktree that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// Where, and on which branch.
    pub worktree: Worktree,
    /// Where its branch last stood.
    pub head: CommitId,
}

impl Expected {
    /// Reads it from a run's log; `None`: it does not begin with the beginning of a run.
    pub fn of(records: &[Record]) -> Option<Self> {
        let Event::RunStarted(started) = &records.first()?.event else { return None };
        let mut expected = Self {
            started: (**started).clone(),
            done: false,
            holdings: BTreeMap::new(),
            rolling_back: BTreeSet::new(),
            open_jobs: BTreeSet::new(),
            known_jobs: BTreeSet::new(),
            merges: BTreeSet::new(),
            snapshots: Vec::new(),
        };
        records.iter().for_each(|record| expected.follow(&record.event));
        Some(expected)
    }

    /// Who holds a slot in the words of the pool.
    pub fn holder(&self, (lane, agent): &Owned) -> Holder {
        Holder { run: self.started.run_id.clone(), lane: lane.clone(), agent: agent.clone() }
    }

    /// The newest snapshot of a worktree.
    pub fn last_snapshot(&self, owned: &Owned) -> Option<(&str, &CommitId)> {
        let last = self.snapshots.iter().rev().find(|(whose, ..)| whose == owned);
        last.map(|(_, reference, commit)| (reference.as_str(), commit))
    }

    fn follow(&mut self, event: &Event) {
        let own = |lane: &LaneId, agent: Option<&AgentName>| (Some(lane.clone()), agent.cloned());
        match event {
            Event::RunFinished { outcome, .. } => self.done = *outcome == RunOutcome::Done,
            Event::RunResumed { .. } => self.done = false,
            Event::JobPlanned { job } => {
                self.open_jobs.insert(job.clone());
                self.known_jobs.insert(job.clone());
            }
            Event::JobExited { job, .. } => drop(self.open_jobs.remove(job)),
            Event::WorktreeOpened { lane, agent, worktree } => {
                self.hold(own(lane, agent.as_ref()), worktree);
            }
            Event::FinalOpened { worktree } => self.hold((None, None), worktree),
            Event::WorktreeReleased { lane, agent } => drop(self.holdings.remove(&own(lane, Some(agent)))),
            Event::WorkCommitted { lane, agent, head, .. } | Event::AgentReset { lane, agent, head } => {
                // An agent without a worktree of its own works on the lane's branch.
                let owned = own(lane, Some(agent));
                let owned = if self.holdings.contains_key(&owned) { owned } else { own(lane, None) };
                self.stand(&owned, head);
            }
            Event::AgentMerged { lane, head, .. } => self.stand(&own(lane, None), head),
            Event::LaneReset { lane, base } => self.stand(&own(lane, None), base),
            Event::SnapshotTaken { lane, agent, commit, reference, .. } => {
                self.snapshots.push((own(lane, agent.as_ref()), reference.clone(), commit.clone()));
            }
            Event::LaneMerged { lane, commit, .. } => {
                self.merges.insert(commit.clone());
                self.leave(lane);
            }
            Event::LaneCleaned { lane, .. } => self.leave(lane),
            Event::RollbackBegun { lane } => drop(self.rolling_back.insert(lane.clone())),
            Event::LaneRolledBack { lane, .. } => {
                self.done = false;
                self.rolling_back.remove(lane);
                self.open_jobs.retain(|job| job.lane.as_ref() != Some(lane));
                self.leave(lane);
            }
            Event::PoolEmptied { .. } => drop(self.holdings.remove(&(None, None))),
            _ => {}
        }
    }

    fn hold(&mut self, owned: Owned, worktree: &Worktree) {
        self.holdings.insert(owned, Holding { worktree: worktree.clone(), head: worktree.head.clone() });
    }

    fn stand(&mut self, owned: &Owned, head: &CommitId) {
        if let Some(holding) = self.holdings.get_mut(owned) {
            holding.head = head.clone();
        }
    }

    /// What a merged lane still holds is on its way out.
    fn leave(&mut self, lane: &LaneId) {
        self.holdings.retain(|(whose, _), _| whose.as_ref() != Some(lane));
    }
}
