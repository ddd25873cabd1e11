//! What must hold of the records of a run, in the order in which they become durable.

mod approvals;
mod candidates;
pub mod checkpoints;
mod finish;
mod pauses;
mod restarts;
mod starts;
mod stops;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use lanewright_model::event::{Event, LaneStage, Record};
use lanewright_model::{Budget, HumanGate, JobId, JobRole, Lane, LaneId, Plan, Round, TaskId, Usage};

/// Far more than the agents of a lane may use, outages included.
const MOST_RETRIES: u32 = 200;

/// More than reviewers make on a lane.
const MOST_REMARKS: usize = 30;

pub struct Watch {
    plan: Arc<Plan>,
    /// The run is to stop at the first failure.
    pub fail_fast: bool,
    /// A lane failed since the run was last resumed.
    failed: bool,
    pub budget: Budget,
    used: Usage,
    exited: HashSet<JobId>,
    /// How often agents of each lane were to try again since the run was last resumed.
    retries: BTreeMap<LaneId, u32>,
    /// Tasks that have to be done again before their lane may be merged.
    again: BTreeMap<LaneId, BTreeSet<TaskId>>,
    /// How many remarks each lane was sent back with.
    sent_back: BTreeMap<LaneId, usize>,
    pub stops: stops::Stops,
    starts: starts::Starts,
    restarts: restarts::Restarts,
    pauses: pauses::Pauses,
    candidates: candidates::Candidates,
    pub approvals: approvals::Approvals,
    /// Only of some runs: that takes twice as long as the run itself.
    pub checkpoints: Option<checkpoints::Checkpoints>,
    pub finish: finish::Finish,
}

impl Watch {
    pub fn new(plan: Arc<Plan>) -> Self {
        Self {
            plan,
            checkpoints: None,
            fail_fast: false,
            failed: false,
            budget: Budget::default(),
            used: Usage::default(),
            exited: HashSet::new(),
            retries: BTreeMap::new(),
            again: BTreeMap::new(),
            sent_back: BTreeMap::new(),
            stops: Default::default(),
            starts: Default::default(),
            restarts: Default::default(),
            pauses: Default::default(),
            candidates: Default::default(),
            approvals: Default::default(),
            finish: Default::default(),
        }
    }

    /// What is wrong with a record that follows those before it.
    pub fn see(&mut self, record: &Record) -> Vec<String> {
        let event = &record.event;
        let parts = [
            self.see_itself(event),
            self.stops.see(event),
            self.starts.see(&self.plan, record),
            self.restarts.see(&self.plan, event),
            self.pauses.see(&self.plan, record),
            self.candidates.see(&self.plan, event),
            self.approvals.see(&self.plan, record),
            self.finish.see(&self.plan, event),
            self.checkpoints.as_mut().and_then(|checkpoints| checkpoints.see(&self.plan, record)),
        ];
        parts.into_iter().flatten().collect()
    }

    fn see_itself(&mut self, event: &Event) -> Option<String> {
        match event {
            Event::LaneFailed { lane, failure } => {
                self.failed = true;
                let timed_out = failure.message.contains("longer than its timeout");
                return timed_out.then(|| format!("{lane} ran out of time, of which it needs far less awake"));
            }
            Event::RunResumed { budget, .. } => {
                self.failed = false;
                self.retries.clear();
                self.budget = budget.unwrap_or(self.budget);
            }
            Event::LaneMoved { lane, from: LaneStage::Waiting, .. } if self.failed && self.fail_fast => {
                return Some(format!("{lane} began after a lane had failed"));
            }
            Event::FeedbackReceived { lane, remarks, .. } => {
                let times = self.sent_back.entry(lane.clone()).or_default();
                *times += remarks.len();
                // The record of one that died before it was durable is given again, and ignored.
                return (*times > MOST_REMARKS).then(|| format!("{lane} is sent back without end"));
            }
            Event::RetryPlanned { lane, .. } => {
                let retries = self.retries.entry(lane.clone()).or_default();
                *retries += 1;
                return (*retries > MOST_RETRIES).then(|| format!("the agents of {lane} try again without end"));
            }
            Event::JobPlanned { job, .. } => return self.planned(job),
            Event::JobExited { job, transcript, .. } if self.exited.insert(job.clone()) => {
                self.used += transcript.as_ref().map(|transcript| transcript.usage).unwrap_or_default();
            }
            Event::GateAnswered { lane, gate: HumanGate::Task(task), approved, .. } => {
                let before = task_before(self.plan.lane(self.plan.find(lane)?), task)?;
                let again = self.again.entry(lane.clone()).or_default();
                if *approved {
                    again.remove(&before)
                } else {
                    again.insert(before)
                };
            }
            Event::LaneRolledBack { lane, point: None, .. } => {
                let tasks = tasks_of(self.plan.lane(self.plan.find(lane)?));
                self.again.insert(lane.clone(), tasks);
            }
            Event::LaneMerged { lane, .. } => {
                let task = self.again.get(lane)?.first()?;
                return Some(format!("{lane} was merged and {task} was not done again"));
            }
            _ => {}
        }
        None
    }

    fn planned(&mut self, job: &JobId) -> Option<String> {
        let JobRole::Attempt { task, .. } = &job.role else { return None };
        self.again.entry(job.lane.clone()?).or_default().remove(task);
        match self.budget.exhausted_by(&self.used) {
            _ if self.failed && self.fail_fast => Some(format!("{job} was planned after a lane had failed")),
            Some(exhausted) => Some(format!("{job} was planned although: {exhausted}")),
            None => None,
        }
    }
}

/// The tasks of agents whose work is merged.
fn tasks_of(lane: &Lane) -> BTreeSet<TaskId> {
    let tasks = lane.round(Round::Implementation).flat_map(|agent| &lane.agents[agent].tasks);
    tasks.filter(|task| !task.kind.is_human()).map(|task| task.id.clone()).collect()
}

/// The task that a person's no to `task` is about.
fn task_before(lane: &Lane, task: &TaskId) -> Option<TaskId> {
    let before = |tasks: &[lanewright_model::Task]| {
        let at = tasks.iter().position(|known| known.id == *task)?;
        tasks[..at].iter().rfind(|task| !task.kind.is_human()).map(|task| task.id.clone())
    };
    lane.agents.iter().find_map(|agent| before(&agent.tasks))
}
