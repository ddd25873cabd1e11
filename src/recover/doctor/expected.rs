//! What a run's log records: the worktrees that were opened, and those that the run still uses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::event::{Event, Record, RunOutcome, RunStarted, Worktree};
use crate::git::Holder;
use crate::model::{AgentName, CommitId, JobId, JobRole, Lane, LaneId, MergeMode, Plan};
use crate::recover::resume::{ResumeError, replay};
use crate::schedule::{AgentStep, Fault, LaneState, RunState};

/// What a run's log records.
#[derive(Debug, Clone)]
pub struct Expected {
    /// What it began with.
    pub started: RunStarted,
    /// Whether its last word is that everything is done.
    pub done: bool,
    /// What the engine makes of the log; `None`: no plan fits it.
    pub state: Option<RunState>,
    /// The worktrees that were opened and not given back.
    pub opened: BTreeMap<Owned, Worktree>,
    /// Every job that was ever planned.
    pub known_jobs: BTreeSet<JobId>,
    /// The snapshots of every worktree, the newest last.
    pub snapshots: Vec<(Owned, String, CommitId)>,
}

/// Whose something is; without a lane the final gate's.
pub type Owned = (Option<LaneId>, Option<AgentName>);

/// A worktree that the run still uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// Where, and on which branch; empty: on none, at `head`.
    pub worktree: Worktree,
    /// Where its branch last stood.
    pub head: CommitId,
    /// Whether a job has worked in it whose result the engine has not taken yet: what is checked out is up to that job,
    /// and the engine judges it.
    pub unjudged: bool,
}

impl Expected {
    /// Reads a run's log; `None`: its first record does not start a run.
    pub fn of(records: &[Record]) -> Option<Self> {
        let Event::RunStarted(started) = &records.first()?.event else { return None };
        let mut expected = Self {
            started: (**started).clone(),
            done: false,
            state: None,
            opened: BTreeMap::new(),
            known_jobs: BTreeSet::new(),
            snapshots: Vec::new(),
        };
        records.iter().for_each(|record| expected.follow(&record.event));
        Some(expected)
    }

    /// Replays the log with `plan`, as a resume does.
    ///
    /// # Errors
    /// The line that does not follow from those before it.
    pub fn replay(&mut self, plan: &Arc<Plan>, records: &[Record]) -> Result<(), (u64, Fault)> {
        match replay(&self.started.run_id, plan, records) {
            Ok(state) => self.state = Some(state),
            Err(ResumeError::Contradiction { line, fault, .. }) => return Err((line, fault)),
            Err(_) => {}
        }
        Ok(())
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

    /// Jobs that were planned and have not ended.
    pub fn open_jobs(&self) -> impl Iterator<Item = &JobId> {
        self.state.iter().flat_map(RunState::running_jobs)
    }

    /// Whose worktree a job works in.
    pub fn workplace(&self, job: &JobId) -> Owned {
        let plan = self.state.as_ref().map(RunState::plan);
        let lane = plan.and_then(|plan| Some(plan.lane(plan.find(job.lane.as_ref()?)?)));
        (job.lane.clone(), lane.and_then(|lane| workplace(job, lane)).cloned())
    }

    /// The worktrees that the run still uses. One that is about to be released (a merged lane's, that of an agent whose
    /// work is in the lane, those of a lane that is rolled back) may be half gone already.
    pub fn holdings(&self) -> BTreeMap<Owned, Holding> {
        let Some(state) = self.state.as_ref().filter(|_| !self.done) else { return BTreeMap::new() };
        let mut found = BTreeMap::new();
        for at in state.plan().indices() {
            let (lane, plan) = (state.lane(at), state.plan().lane(at));
            if lane.is_left_to_do() && !lane.rolling_back {
                found.extend(of_lane(state, lane, plan));
                found.extend(of_agents(lane, plan));
            }
        }
        let final_gate_runs = state.running_jobs().any(|job| job.lane.is_none());
        found.extend(state.final_worktree().filter(|_| final_gate_runs).map(|worktree| {
            let head = worktree.head.clone();
            ((None, None), Holding { worktree: worktree.clone(), head, unjudged: true })
        }));
        found
    }

    fn follow(&mut self, event: &Event) {
        let own = |lane: &LaneId, agent: Option<&AgentName>| (Some(lane.clone()), agent.cloned());
        match event {
            Event::RunFinished { outcome, .. } => self.done = *outcome == RunOutcome::Done,
            Event::RunResumed { .. } => self.done = false,
            Event::JobPlanned { job } => drop(self.known_jobs.insert(job.clone())),
            Event::WorktreeOpened { lane, agent, worktree } => {
                self.opened.insert(own(lane, agent.as_ref()), worktree.clone());
            }
            Event::FinalOpened { worktree } => drop(self.opened.insert((None, None), worktree.clone())),
            Event::WorktreeReleased { lane, agent } => drop(self.opened.remove(&own(lane, Some(agent)))),
            Event::SnapshotTaken { lane, agent, commit, reference, .. } => {
                self.snapshots.push((own(lane, agent.as_ref()), reference.clone(), commit.clone()));
            }
            // What a merged lane still has is on its way out.
            Event::LaneMerged { lane, .. } | Event::LaneCleaned { lane, .. } => {
                self.opened.retain(|(whose, _), _| whose.as_ref() != Some(lane))
            }
            Event::LaneRolledBack { lane, .. } => {
                self.done = false;
                self.opened.retain(|(whose, _), _| whose.as_ref() != Some(lane));
            }
            Event::PoolEmptied { .. } => drop(self.opened.remove(&(None, None))),
            _ => {}
        }
    }
}

/// The lane's own worktree. It is on no branch while the lane's tests judge its merge.
fn of_lane(state: &RunState, lane: &LaneState, plan: &Lane) -> Option<(Owned, Holding)> {
    let mut worktree = lane.worktree.clone()?;
    let mut head = lane.head.clone().unwrap_or_else(|| worktree.head.clone());
    let merges_here = state.started().is_some_and(|started| started.options.merge == MergeMode::Local);
    let staged = lane.staged.as_ref().filter(|staged| staged.moved && merges_here && !plan.tests.is_empty());
    if let Some(staged) = staged {
        worktree.branch.clear();
        head = staged.commit.clone();
    }
    let works_there = |job: &JobId| workplace(job, plan).is_none();
    let shares = |&at: &usize| plan.shares_worktree(at) && is_unjudged(&lane.agents[at].step);
    let unjudged = lane.running.iter().any(works_there) || (0..lane.agents.len()).any(|at| shares(&at));
    Some(((Some(plan.id.clone()), None), Holding { worktree, head, unjudged: unjudged && lane.end.is_none() }))
}

fn of_agents(lane: &LaneState, plan: &Lane) -> impl Iterator<Item = (Owned, Holding)> {
    let own = lane.agents.iter().zip(&plan.agents).filter(|(worker, _)| worker.step != AgentStep::Done);
    own.filter_map(|(worker, agent)| {
        let worktree = worker.worktree.clone()?;
        let head = worker.head.clone().unwrap_or_else(|| worktree.head.clone());
        let unjudged = lane.end.is_none() && is_unjudged(&worker.step);
        Some(((Some(plan.id.clone()), Some(agent.name.clone())), Holding { worktree, head, unjudged }))
    })
}

/// The agent in whose own worktree a job runs; `None`: it runs in the lane's.
fn workplace<'a>(job: &'a JobId, plan: &Lane) -> Option<&'a AgentName> {
    let agent = job.agent().filter(|_| !matches!(job.role, JobRole::Checkpoint { .. }))?;
    let at = plan.agents.iter().position(|known| known.name == *agent)?;
    (!plan.shares_worktree(at)).then_some(agent)
}

/// Whether an agent or its gate may have left something in the worktree that the engine still has to take or judge.
fn is_unjudged(step: &AgentStep) -> bool {
    match step {
        AgentStep::Ready | AgentStep::Asking | AgentStep::Blocked(_) | AgentStep::GaveUp(_) | AgentStep::Done => false,
        AgentStep::Running(_) | AgentStep::Committing | AgentStep::Verifying(_) | AgentStep::Snapshotting => true,
        AgentStep::Merging | AgentStep::Gating(_) | AgentStep::Judging(_) | AgentStep::Salvaging(..) => true,
        AgentStep::Failed(_) | AgentStep::Retrying(_) => true,
    }
}
