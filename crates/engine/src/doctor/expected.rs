//! What a run's log records, and the worktrees that the run still uses.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use lanewright_git::Holder;
use lanewright_model::event::{Event, Record, RunOutcome, RunStarted, Worktree};
use lanewright_model::{AgentName, CommitId, JobId, Lane, LaneId, Plan};
use lanewright_schedule::{AgentStep, Fault, LaneState, RunState};
use lanewright_view::RunHistory;
use lanewright_view::history::{JobHistory, worktree_link};

use crate::executor::{OpenWorktree, open_worktrees};

/// What a run's log records.
#[derive(Debug, Clone)]
pub struct Expected {
    pub started: RunStarted,
    pub history: RunHistory,
    /// The scheduler's state after the log; `None`: no plan fits the log.
    pub state: Option<RunState>,
}

/// The holder of something: a lane or one of its agents; without a lane, the final gate.
pub type Owned = (Option<LaneId>, Option<AgentName>);

/// A worktree that the run still uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// Where, and on which branch; empty: on none, at `head`.
    pub worktree: Worktree,
    /// Where its branch last stood.
    pub head: CommitId,
    /// Whether a job has worked in it whose result the engine has not applied yet: that job decides what is checked out.
    pub unjudged: bool,
}

impl Expected {
    /// Reads a run's log; `None`: its first record does not start a run.
    pub fn of(records: &[Record]) -> Option<Self> {
        let Event::RunStarted(started) = &records.first()?.event else { return None };
        Some(Self { started: (**started).clone(), history: RunHistory::default().after(records), state: None })
    }

    /// Whether all of the run is done.
    pub fn done(&self) -> bool {
        self.history.run.outcome == Some(RunOutcome::Done)
    }

    /// The worktrees that were opened and not released, in the order of their holders. Those of a merged lane are being
    /// removed.
    pub(crate) fn opened(&self) -> Vec<(Owned, &Worktree)> {
        let lanes = self.history.lanes().iter().filter(|lane| lane.merge_commit.is_none());
        let mut all = vec![(None, None, &self.history.run.workplace)];
        for lane in lanes {
            all.extend(lane.workplaces().map(|(agent, workplace)| (Some(&lane.id), agent, workplace)));
        }
        all.sort_by_key(|(lane, agent, _)| (*lane, *agent));
        let owned = |(lane, agent): (Option<&LaneId>, Option<&AgentName>)| (lane.cloned(), agent.cloned());
        let open = all.into_iter().filter_map(|(lane, agent, at)| Some((owned((lane, agent)), at.worktree.as_ref()?)));
        open.collect()
    }

    /// Where users find the worktree: at the link that is named after its lane, if a lane holds it.
    pub(crate) fn shown<'w>(&self, (lane, agent): &Owned, worktree: &'w Worktree) -> Cow<'w, Path> {
        let link = lane.as_ref().map(|lane| worktree_link(&self.started, lane, agent.as_ref()));
        link.map_or(Cow::Borrowed(&*worktree.path), Cow::Owned)
    }

    pub(crate) fn jobs(&self) -> impl Iterator<Item = &JobHistory> {
        self.history.lanes().iter().flat_map(|lane| lane.jobs.all()).chain(self.history.run.jobs.all())
    }

    /// Jobs without a recorded end; of a lane that was rolled back, too.
    pub fn unended_jobs(&self) -> impl Iterator<Item = &JobId> {
        self.jobs().filter(|job| job.exit.is_none()).map(|job| &job.job)
    }

    pub(crate) fn snapshots(&self) -> impl Iterator<Item = &str> {
        self.history.lanes().iter().flat_map(|lane| &lane.snapshots).map(|snapshot| snapshot.reference.as_str())
    }

    /// Replays the log with `plan`, as a resume does.
    ///
    /// # Errors
    /// The line that does not follow from those before it.
    pub fn replay(&mut self, plan: &Arc<Plan>, records: &[Record]) -> Result<(), (u64, Fault)> {
        self.state = Some(RunState::replay(plan, records)?);
        Ok(())
    }

    /// The holder of a slot, as the pool names it.
    pub fn holder(&self, (lane, agent): &Owned) -> Holder {
        Holder { run: self.started.run_id.clone(), lane: lane.clone(), agent: agent.clone() }
    }

    pub fn last_snapshot(&self, (lane, agent): &Owned) -> Option<(&str, &CommitId)> {
        let snapshots = &self.history.lane(lane.as_ref()?)?.snapshots;
        let last = snapshots.iter().rfind(|snapshot| snapshot.agent == *agent)?;
        Some((&last.reference, &last.commit))
    }

    /// Jobs that were planned and have not ended.
    pub fn open_jobs(&self) -> impl Iterator<Item = &JobId> {
        self.state.iter().flat_map(RunState::running_jobs)
    }

    pub fn workplace(&self, job: &JobId) -> Owned {
        let lane = job.lane.as_ref().and_then(|lane| self.history.lane(lane));
        (job.lane.clone(), lane.and_then(|lane| lane.works_in(job)).cloned())
    }

    /// The worktrees that the run still uses. One that is about to be released (a merged lane's, that of an agent whose
    /// work is in the lane, those of a lane that is rolled back) may be half gone already.
    pub fn holdings(&self) -> BTreeMap<Owned, Holding> {
        let Some(state) = self.state.as_ref().filter(|_| !self.done()) else { return BTreeMap::new() };
        let mut found = BTreeMap::new();
        for at in state.plan().indices() {
            let lane = state.lane(at);
            if lane.is_left_to_do() && !lane.is_half_rolled_back() {
                let is_done = |agent: usize| {
                    let agent = &lane.agents()[agent];
                    agent.step == AgentStep::Done || agent.is_unchosen()
                };
                let open = open_worktrees(state, at).into_iter().filter(|open| !open.agent.is_some_and(is_done));
                found.extend(open.map(|open| self.holding(lane, state.plan().lane(at), open)));
            }
        }
        let final_gate_runs = state.running_jobs().any(|job| job.lane.is_none());
        found.extend(state.final_worktree().filter(|_| final_gate_runs).map(|worktree| {
            let head = worktree.head.clone();
            ((None, None), Holding { worktree: worktree.clone(), head, unjudged: true })
        }));
        found
    }

    fn holding(&self, lane: &LaneState, plan: &Lane, open: OpenWorktree) -> (Owned, Holding) {
        let OpenWorktree { agent, worktree, head } = open;
        let works_there = |job: &JobId| self.workplace(job).1.is_none();
        let is_unjudged = |at: usize| is_unjudged(&lane.agents()[at].step);
        let unjudged = match agent {
            Some(agent) => is_unjudged(agent),
            None => {
                let mut sharing = (0..lane.agents().len()).filter(|&at| plan.shares_worktree(at));
                lane.running().iter().any(works_there) || sharing.any(is_unjudged)
            }
        };
        let head = if worktree.branch.is_empty() { worktree.head.clone() } else { head };
        let owned = (Some(plan.id.clone()), agent.map(|agent| plan.agents[agent].name.clone()));
        (owned, Holding { worktree, head, unjudged: unjudged && lane.end().is_none() })
    }
}

/// Whether an agent or its gate may have left something in the worktree that the engine still has to take or judge.
fn is_unjudged(step: &AgentStep) -> bool {
    match step {
        AgentStep::Ready
        | AgentStep::Asking
        | AgentStep::Blocked(_)
        | AgentStep::PermanentlyFailed(_)
        | AgentStep::Unchosen { .. }
        | AgentStep::Done => false,
        AgentStep::Running(_) | AgentStep::Committing | AgentStep::Verifying(_) | AgentStep::Snapshotting => true,
        AgentStep::Merging | AgentStep::Gating(_) | AgentStep::Judging(_) | AgentStep::Salvaging(..) => true,
        AgentStep::Failed(_) | AgentStep::Retrying(_) => true,
    }
}
