//! A whole run, as the events so far tell it: what every reporter shows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use super::commands::Commands;
use super::interfaces::{self, InterfaceView};
use super::lane_fold::{apply_to_jobs, apply_to_lane, state_of};
use super::lane_view::{JobView, LaneState, LaneView, WaitingFor};
use crate::event::{Event, Owner, Record, RunOptions, RunOutcome, RunStarted, StopReason};
use crate::model::{CommitId, JobExit, LaneId, MergeMode, PhaseId, Plan, Redactor, RunId, Timestamp, Usage};

/// A fold over a run's events. Any order of events is taken without complaint; lanes that no plan named are added at
/// the end.
#[derive(Debug, Clone, Default)]
pub struct RunView {
    /// What is known of the run itself.
    pub run: RunFacts,
    lanes: Vec<LaneView>,
    positions: HashMap<LaneId, usize>,
    active: BTreeSet<usize>,
    counts: BTreeMap<LaneState, usize>,
}

/// What is known of a run itself.
#[derive(Debug, Clone, Default)]
pub struct RunFacts {
    /// Its name.
    pub run_id: Option<RunId>,
    /// Its phase.
    pub phase: Option<PhaseId>,
    /// What the phase is called.
    pub title: Option<String>,
    /// Its interface freeze gates, as the plan has them.
    pub interfaces: Vec<InterfaceView>,
    /// Where the plan was read; absolute.
    pub plan_path: Option<PathBuf>,
    /// The integration branch.
    pub base_branch: String,
    /// Where the integration branch stands, as far as this run moved it.
    pub integration: Option<CommitId>,
    /// Who works on it.
    pub owner: Option<Owner>,
    /// What the command line and the settings decided; the budget as the last resume changed it.
    pub options: Option<RunOptions>,
    /// What all attempts used, of lanes that were put back as well.
    pub used: Usage,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When it ended; `None` after a resume.
    pub finished: Option<Timestamp>,
    /// How it ended.
    pub outcome: Option<RunOutcome>,
    /// The exit code that says so.
    pub code: Option<u8>,
    /// Whether it was asked to stop.
    pub stop: Option<StopView>,
    /// How often it was resumed.
    pub resumes: u32,
    /// When the last event was recorded.
    pub last: Option<Timestamp>,
    /// The lane whose merge broke the final gate, where that was searched and found.
    pub culprit: Option<LaneId>,
    /// Jobs that belong to no lane and run: the final gate.
    pub running: Vec<JobView>,
    /// Those that ended.
    pub ended: Vec<JobView>,
}

/// A request to stop the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopView {
    /// Who asked.
    pub reason: StopReason,
    /// Whether agents are killed instead of asked.
    pub force: bool,
    /// When.
    pub at: Timestamp,
}

impl RunFacts {
    /// Whether finished lanes are merged into the integration branch by this run.
    pub fn merges(&self) -> bool {
        self.options.as_ref().is_none_or(|options| options.merge == MergeMode::Local)
    }

    /// Whether finished lanes are proposed in pull requests by this run.
    pub fn proposes(&self) -> bool {
        self.options.as_ref().is_some_and(|options| options.merge == MergeMode::Pr)
    }

    /// Up to when times are counted: the end of the run, or `now`.
    pub fn until(&self, now: Timestamp) -> Timestamp {
        self.finished.unwrap_or(now)
    }

    /// The final gate's last run, if it failed.
    pub fn failed_final_gate(&self) -> Option<&JobExit> {
        self.ended.last()?.exit.as_ref().filter(|exit| !exit.passed())
    }
}

impl RunView {
    /// A run of these lanes, of which nothing is known but who waits for whom.
    pub fn new(lanes: &[LaneId], edges: &[(LaneId, Vec<LaneId>)]) -> Self {
        let mut view = Self::default();
        for lane in lanes {
            view.add(LaneView::new(lane.clone()));
        }
        for (lane, depends_on) in edges {
            let at = view.position(lane);
            view.lanes[at].depends_on = depends_on.clone();
        }
        view
    }

    /// A run of `plan`, before its first event.
    pub fn for_plan(plan: &Plan) -> Self {
        let mut view = Self::default();
        for lane in &plan.lanes {
            let depends_on = lane.depends_on.iter().map(|&index| plan.lane(index).id.clone()).collect();
            let has_gate = Some(crate::shell::has_gate(plan, lane));
            view.add(LaneView { depends_on, has_gate, ..LaneView::of_plan(lane) });
        }
        view.run.phase = Some(plan.phase.clone());
        view.run.title = plan.title.clone();
        view.run.interfaces = interfaces::of_plan(plan);
        view
    }

    /// A run of which only the events are known; lanes stand in the order they first did something.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        Self::default().after(records)
    }

    /// The same run some records later.
    pub fn after<'a>(mut self, records: impl IntoIterator<Item = &'a Record>) -> Self {
        for record in records {
            self.apply(record);
        }
        self
    }

    /// The same with what `redactor` finds taken out of what the plan says in words; events are clean when they are
    /// written, the pinned plan is not.
    #[must_use]
    pub fn redacted(mut self, redactor: &Redactor) -> Self {
        self.run.title.iter_mut().for_each(|title| redactor.clean(title));
        for lane in &mut self.lanes {
            lane.name.iter_mut().for_each(|name| redactor.clean(name));
            lane.people.iter_mut().for_each(|(_, question)| redactor.clean(question));
        }
        self
    }

    /// All lanes, in the order of the plan.
    pub fn lanes(&self) -> &[LaneView] {
        &self.lanes
    }

    /// The lane of that name.
    pub fn lane(&self, id: &LaneId) -> Option<&LaneView> {
        self.positions.get(id).map(|&at| &self.lanes[at])
    }

    /// Lanes in which something goes on, in the order of the plan.
    pub fn active(&self) -> impl ExactSizeIterator<Item = &LaneView> {
        self.active.iter().map(|&at| &self.lanes[at])
    }

    /// How many lanes stand how; states without a lane are left out.
    pub fn counts(&self) -> &BTreeMap<LaneState, usize> {
        &self.counts
    }

    /// What `lane` waits for; nothing when it works or has ended.
    pub fn waiting_for(&self, lane: &LaneView) -> Option<WaitingFor> {
        match lane.state {
            LaneState::Waiting => Some(self.missing_dependencies(lane)),
            LaneState::NeedsApproval(gate) => Some(WaitingFor::Approval(gate)),
            LaneState::NeedsPerson => {
                Some(WaitingFor::Person(lane.asking.iter().map(|(_, task)| task.clone()).collect()))
            }
            state if state.is_active() && lane.running.is_empty() => lane.delayed_until.map(WaitingFor::Until),
            _ => None,
        }
    }

    fn missing_dependencies(&self, lane: &LaneView) -> WaitingFor {
        let merged = |id: &LaneId| self.lane(id).is_some_and(|lane| lane.state.is_done());
        let missing: Vec<LaneId> = lane.depends_on.iter().filter(|id| !merged(id)).cloned().collect();
        if missing.is_empty() { WaitingFor::Place } else { WaitingFor::Lanes(missing) }
    }

    /// How many lanes this run has nothing left to do for.
    pub fn done(&self) -> usize {
        self.counts.iter().filter(|(state, _)| state.is_done()).map(|(_, count)| count).sum()
    }

    /// `lanekeeper resume RUN`, with the flags without which it would start no agent.
    pub fn resume(&self, commands: &Commands<'_>) -> Vec<String> {
        let budget = self.run.options.as_ref().map(|options| options.budget).unwrap_or_default();
        [commands.resume(), budget.flags_for_more(&self.run.used)].concat()
    }

    /// Takes in one record.
    pub fn apply(&mut self, record: &Record) {
        self.run.last = Some(record.at);
        if let Event::JobExited { transcript: Some(transcript), .. } = &record.event {
            self.run.used += transcript.usage;
        }
        match record.event.lane().cloned() {
            Some(lane) => {
                let at = self.position(&lane);
                apply_to_lane(&mut self.lanes[at], record);
                self.note_integration(&record.event);
                self.refresh(at);
            }
            None => self.apply_to_run(record),
        }
    }

    fn apply_to_run(&mut self, record: &Record) {
        let at = record.at;
        match &record.event {
            Event::RunStarted(started) => self.start(started, at),
            Event::RunResumed { number, owner, budget, .. } => {
                if let (Some(options), Some(budget)) = (&mut self.run.options, budget) {
                    options.budget = *budget;
                }
                self.resumed(*number, owner);
            }
            Event::StopRequested { reason, force, .. } => {
                self.run.stop = Some(StopView { reason: *reason, force: *force, at });
            }
            Event::RunFinished { outcome, code } => {
                self.run.outcome = Some(*outcome);
                self.run.code = Some(*code);
                self.run.finished = Some(at);
            }
            Event::MergesBisected { lane: None, culprit, .. } => {
                self.run.culprit = culprit.as_deref().and_then(|culprit| culprit.parse().ok());
            }
            event => {
                apply_to_jobs(&mut self.run.running, &mut self.run.ended, event, at);
                return;
            }
        }
        for lane in 0..self.lanes.len() {
            self.refresh(lane);
        }
    }

    fn start(&mut self, started: &RunStarted, at: Timestamp) {
        self.run.run_id = Some(started.run_id.clone());
        self.run.phase = Some(started.phase.clone());
        self.run.plan_path = Some(started.plan_path.clone());
        self.run.base_branch = started.base_branch.clone();
        self.run.integration = Some(started.base_commit.clone());
        self.run.owner = Some(started.owner.clone());
        self.run.options = Some(started.options.clone());
        self.run.started = Some(at);
        let chosen = self.with_dependencies(&started.options.lanes);
        let done: BTreeSet<&LaneId> = started.options.done.iter().collect();
        for lane in &mut self.lanes {
            lane.merged_before = done.contains(&lane.id);
            lane.skipped = !chosen.is_empty() && !chosen.contains(&lane.id);
        }
    }

    /// `lanes` and everything they wait for, however far away.
    fn with_dependencies(&self, lanes: &[LaneId]) -> BTreeSet<LaneId> {
        let mut found = BTreeSet::new();
        let mut open = lanes.to_vec();
        while let Some(id) = open.pop() {
            if let Some(lane) = self.lane(&id).filter(|_| !found.contains(&id)) {
                open.extend(lane.depends_on.iter().cloned());
            }
            found.insert(id);
        }
        found
    }

    /// Failed, blocked and rolled back lanes get another chance, and nobody asks for a stop any more.
    fn resumed(&mut self, number: u32, owner: &Owner) {
        self.run.resumes = number;
        self.run.owner = Some(owner.clone());
        self.run.stop = None;
        self.run.culprit = None;
        self.run.finished = None;
        self.run.outcome = None;
        self.run.code = None;
        for lane in &mut self.lanes {
            lane.stopping = false;
            if lane.ending.take().is_some() {
                lane.finished = None;
                lane.asking.append(&mut lane.refused);
            }
        }
    }

    fn note_integration(&mut self, event: &Event) {
        match event {
            Event::LaneMerged { commit, .. } if self.run.merges() => self.run.integration = Some(commit.clone()),
            Event::LaneRolledBack { integration, .. } => {
                self.run.integration = integration.clone().or(self.run.integration.take());
                // There is something to do again.
                self.run.finished = None;
                self.run.outcome = None;
                self.run.code = None;
            }
            _ => {}
        }
    }

    fn position(&mut self, id: &LaneId) -> usize {
        match self.positions.get(id) {
            Some(&at) => at,
            None => self.add(LaneView::new(id.clone())),
        }
    }

    fn add(&mut self, lane: LaneView) -> usize {
        let at = self.lanes.len();
        self.positions.insert(lane.id.clone(), at);
        *self.counts.entry(lane.state).or_default() += 1;
        self.lanes.push(lane);
        at
    }

    /// Works out how the lane stands now; nothing else depends on it but what is counted here.
    fn refresh(&mut self, at: usize) {
        let state = state_of(&self.lanes[at], &self.run);
        let before = std::mem::replace(&mut self.lanes[at].state, state);
        if state == before {
            return;
        }
        if let Some(count) = self.counts.get_mut(&before) {
            *count -= 1;
        }
        self.counts.retain(|_, count| *count > 0);
        *self.counts.entry(state).or_default() += 1;
        if state.is_active() {
            self.active.insert(at);
        } else {
            self.active.remove(&at);
        }
    }
}

#[cfg(test)]
mod tests;
