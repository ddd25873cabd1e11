//! What the events of a run add up to: the one fold on which every view is built.

mod candidates;
pub mod changes;
pub(crate) mod clock;
mod job;
mod lane;
mod lane_events;
mod pauses;
mod run;
pub mod snapshots;
mod state;
mod state_rules;
pub(crate) mod times;
mod waits;
mod workplace;

use std::collections::{BTreeSet, HashMap};

use lanewright_model::cells::clean;
use lanewright_model::event::{Event, Record, RunOutcome};
use lanewright_model::text::{counted, headline};
use lanewright_model::{Dollars, LaneId, Plan, Redactor, Usage};

pub use candidates::CandidateView;
pub use job::{JobHistory, Retry};
pub use lane::{
    AgentMove, AnswerView, CheckpointView, Elsewhere, Ending, FailureView, LaneHistory, MergeView, PlacementView,
    SnapshotView, Span,
};
pub use pauses::PauseView;
pub(crate) use run::event_logged;
pub use run::{InterfaceView, NoteView, RunFacts};
pub use state::{LaneState, StateGroup, WaitingFor};
pub use waits::{Wait, WaitReason};
pub use workplace::{Workplace, worktree_link};

/// A run, as its events so far describe it. Events in any order are accepted; lanes that no plan named are added at the
/// end.
#[derive(Debug, Clone, Default)]
pub struct RunHistory {
    pub run: RunFacts,
    lanes: Vec<LaneHistory>,
    positions: HashMap<LaneId, usize>,
    active: BTreeSet<usize>,
    /// Lanes that the end of another lane blocks: every merge looks at them.
    blocked_by_lanes: BTreeSet<usize>,
    done: usize,
}

impl RunHistory {
    /// A run of `plan`, before its first event.
    pub fn for_plan(plan: &Plan) -> Self {
        let mut history = Self { run: RunFacts::of_plan(plan), ..Self::default() };
        for lane in &plan.lanes {
            history.add(LaneHistory::of_plan(plan, lane));
        }
        history
    }

    /// The same run some records later.
    pub fn after<'a>(mut self, records: impl IntoIterator<Item = &'a Record>) -> Self {
        records.into_iter().for_each(|record| self.apply(record));
        self
    }

    /// Without what `redactor` finds in the texts of the plan. Events are redacted when they are written.
    #[must_use]
    pub fn redacted(mut self, redactor: &Redactor) -> Self {
        self.run.title.iter_mut().for_each(|title| redactor.clean(title));
        for lane in &mut self.lanes {
            lane.name.iter_mut().for_each(|name| redactor.clean(name));
            lane.human_tasks.iter_mut().for_each(|(_, question)| redactor.clean(question));
            lane.user_setup.iter_mut().for_each(|service| service.change_texts(&mut |text| redactor.clean(text)));
        }
        self
    }

    pub fn lanes(&self) -> &[LaneHistory] {
        &self.lanes
    }

    pub fn lane(&self, id: &LaneId) -> Option<&LaneHistory> {
        self.positions.get(id).map(|&index| &self.lanes[index])
    }

    /// Lanes at work, in the order of the plan.
    pub fn active(&self) -> impl ExactSizeIterator<Item = &LaneHistory> {
        self.active.iter().map(|&index| &self.lanes[index])
    }

    /// What `lane` waits for; `None` when it works or has ended.
    pub(crate) fn waiting_for(&self, lane: &LaneHistory) -> Option<WaitingFor> {
        match lane.state {
            LaneState::Waiting => Some(match self.missing_dependencies(lane) {
                WaitingFor::Place => self.paused_runner(lane).unwrap_or(WaitingFor::Place),
                lanes => lanes,
            }),
            LaneState::NeedsApproval(gate) => Some(WaitingFor::Approval(gate)),
            LaneState::NeedsPerson => {
                Some(WaitingFor::Person(lane.asking.iter().map(|(_, task)| task.clone()).collect()))
            }
            state if state.is_active() && lane.jobs.running.is_empty() => {
                self.paused_runner(lane).or(lane.delayed_until.map(WaitingFor::Until))
            }
            _ => None,
        }
    }

    fn paused_runner(&self, lane: &LaneHistory) -> Option<WaitingFor> {
        let pause = self.pause_of(lane)?;
        Some(WaitingFor::Runner { account: pause.account.clone(), until: pause.until })
    }

    /// Whether all lanes that it depends on are merged or left out.
    pub(crate) fn has_all_dependencies(&self, lane: &LaneHistory) -> bool {
        lane.depends_on.iter().all(|id| self.is_done_or_left_out(id))
    }

    fn is_done_or_left_out(&self, id: &LaneId) -> bool {
        self.lane(id).is_some_and(|lane| lane.state.is_done() || lane.left_out.is_some())
    }

    /// The lanes that must be merged before `lane` begins; where all are, a place.
    pub(crate) fn missing_dependencies(&self, lane: &LaneHistory) -> WaitingFor {
        let missing: Vec<LaneId> = lane.depends_on.iter().filter(|id| !self.is_done_or_left_out(id)).cloned().collect();
        if missing.is_empty() { WaitingFor::Place } else { WaitingFor::Lanes(missing) }
    }

    /// Snapshots but those on the way, which later ones include.
    pub(crate) fn lasting_snapshots(&self) -> impl Iterator<Item = (&LaneHistory, &SnapshotView)> {
        let all = self.lanes.iter().flat_map(|lane| lane.snapshots.iter().map(move |snapshot| (lane, snapshot)));
        all.filter(|(_, snapshot)| !snapshot.reason.is_routine())
    }

    /// Whether the branches of `lane` are its own. Those of a lane that was merged and cleaned up are gone, and whatever has
    /// their names now is another run's.
    pub fn owns_branches(&self, lane: &LaneHistory) -> bool {
        !(self.run.merges() && lane.is_cleaned && lane.kept.is_empty())
    }

    /// Whether `name`, a branch or a snapshot of `lane`, exists as far as the run knows: the merge of a lane removes all
    /// but what it reports as kept.
    pub(crate) fn still_has(&self, lane: &LaneHistory, name: &str) -> bool {
        !(self.run.merges() && lane.is_cleaned) || lane.kept.iter().any(|kept| kept.contains(name))
    }

    /// The lanes whose rollback began and is not finished.
    pub(crate) fn half_rolled_back(&self) -> impl Iterator<Item = &LaneHistory> {
        self.lanes.iter().filter(|lane| lane.is_half_rolled_back)
    }

    /// The lanes that the last resume was asked for, if it is done with them and the run fails or waits for others.
    pub(crate) fn done_without_others(&self) -> Option<Vec<&LaneHistory>> {
        let is_open = matches!(self.run.outcome, Some(RunOutcome::Failed | RunOutcome::Blocked));
        let asked: Vec<_> = self.run.resumed_lanes.iter().filter_map(|lane| self.lane(lane)).collect();
        let is_over = |lane: &&LaneHistory| lane.state.is_done() || lane.state == LaneState::Skipped;
        (is_open && !asked.is_empty() && asked.iter().all(is_over)).then_some(asked)
    }

    /// How many lanes this run has nothing left to do for.
    pub fn done(&self) -> usize {
        self.done
    }

    /// What the lanes were merged without, each with its number: `2 must-haves unmet`, `1 lane without a gate`.
    pub fn lacks(&self) -> Vec<String> {
        let merged = || self.lanes.iter().filter(|lane| lane.merge_commit.is_some());
        let unmet = merged().flat_map(|lane| &lane.must_haves).filter(|verdict| verdict.holds == Some(false)).count();
        let ungated = merged().filter(|lane| lane.has_gate == Some(false)).count();
        let unmet = (unmet > 0).then(|| format!("{} unmet", counted(unmet, "must-have")));
        let ungated = (ungated > 0).then(|| format!("{} without a gate", counted(ungated, "lane")));
        unmet.into_iter().chain(ungated).collect()
    }

    pub fn apply(&mut self, record: &Record) {
        self.note_usage(&record.event);
        let last = self.run.last.replace(record.at);
        self.run.note(record, last);
        match record.event.lane() {
            Some(lane) => {
                let index = self.position(lane);
                self.note_waits(index, record);
                self.lanes[index].apply(record);
                match record.event {
                    Event::LaneSkipped { .. } | Event::LaneRolledBack { .. } => {
                        self.unblock_dependants(|lane| lane.skipped || lane.is_given_up());
                    }
                    Event::LaneMerged { .. } => {
                        let works = |lane: &LaneHistory| !lane.is_merged() && lane.state.is_active();
                        self.unblock_dependants(|lane| lane.skipped || lane.is_given_up() || works(lane));
                    }
                    _ => {}
                }
                self.refresh(index);
            }
            None => {
                let waited = self.waiting_for_runners(&record.event);
                self.run.apply(record);
                self.apply_to_lanes(&record.event);
                for (index, since) in waited {
                    if !self.waits_for_runner(&self.lanes[index]) {
                        self.lanes[index].last_pause = Some((since, record.at));
                    }
                }
            }
        }
    }

    /// Whose tokens an attempt used.
    fn note_usage(&mut self, event: &Event) {
        let Event::JobExited { job, exit, transcript, .. } = event else { return };
        let Some(lane) = job.lane.as_ref().and_then(|lane| self.lane(lane)) else { return };
        let known = lane.jobs.running.iter().find(|known| known.job == *job);
        let recorded = known.and_then(|known| known.made_with.as_ref()).map(|made_with| made_with.runner.clone());
        let planned = || lane.runners.get(job.agent()?).cloned();
        let Some(runner) = recorded.or_else(planned) else { return };
        let usage = transcript.as_ref().map(|transcript| transcript.usage).unwrap_or_default();
        let is_agents = job.task().is_some_and(|task| job.is_attempt() && !lane.commands.contains(task));
        if usage.tokens() == 0
            && usage.cost.is_none()
            && exit.passed()
            && is_agents
            && self.run.runners.contains(&runner)
        {
            self.run.unreported.insert(runner.clone());
        }
        *self.run.used_by.entry(runner).or_default() += usage;
    }

    /// What agents used, in words: `34.5k tokens`, and `$0.0267 + codex 12.8k tokens (no price)`.
    pub fn spent(&self) -> Vec<String> {
        let tokens = Usage { cost: None, ..self.run.used }.spent();
        tokens.into_iter().chain(self.price().filter(|_| self.run.used.cost > Some(Dollars::default()))).collect()
    }

    /// The same behind the calls of tools.
    pub(crate) fn used(&self) -> String {
        self.run.used.calls().into_iter().chain(self.spent()).collect::<Vec<_>>().join(", ")
    }

    /// `$0.12`; where that is not the cost of all agents, with what the others used: `$0.12 + codex 12.8k tokens (no price)`,
    /// `$0.12 + aider (not reported)`. `None`: no cost is reported.
    pub(crate) fn price(&self) -> Option<String> {
        let name = |runner: &str| headline(&clean(runner), 40);
        let unpriced = self.run.used_by.iter().filter(|(_, usage)| usage.without_price() > 0).map(|(runner, usage)| {
            let unpriced = Usage { input_tokens: usage.without_price(), ..Usage::default() };
            format!("{} {} (no price)", name(runner), unpriced.spent().concat())
        });
        let unreported = self.run.unreported.iter().map(|runner| format!("{} (not reported)", name(runner)));
        let others: Vec<String> = unpriced.chain(unreported).collect();
        match self.run.used.cost {
            Some(cost) if !others.is_empty() => Some(format!("{cost} + {}", others.join(" + "))),
            _ => self.run.used.price(),
        }
    }

    fn note_waits(&mut self, index: usize, record: &Record) {
        let lane = &self.lanes[index];
        let merged = lane.depends_on.iter().filter_map(|id| self.lane(id).filter(|lane| lane.merge_commit.is_some()));
        let ready = merged.filter_map(|lane| lane.finished).chain(self.run.begun).max();
        let paused = self.pause_of(lane).filter(|_| self.waits_for_runner(lane));
        let pause = paused.map(|pause| (pause.since, record.at)).or(lane.last_pause);
        let mut waits = waits::ended_waits(&record.event, lane, ready, (pause, paused.is_some()), record.at);
        waits.extend(self.run.merge_queue.apply(&lane.id, &record.event, record.at));
        self.run.waits.extend(waits.into_iter().filter(|wait| wait.from < wait.until));
    }

    /// What an event of the run means for its lanes.
    fn apply_to_lanes(&mut self, event: &Event) {
        match event {
            Event::RunStarted(started) => {
                let chosen = self.with_dependencies(&started.options.lanes);
                let done: BTreeSet<&LaneId> = started.options.done.iter().collect();
                for lane in &mut self.lanes {
                    lane.merged_before = done.contains(&lane.id);
                    lane.skipped = !chosen.is_empty() && !chosen.contains(&lane.id);
                }
            }
            Event::RunResumed { lanes, .. } => {
                let goes_on = |lane: &LaneHistory| lanes.is_empty() || lanes.contains(&lane.id);
                for lane in &mut self.lanes {
                    if goes_on(lane) { lane.resumed() } else { lane.set_aside() }
                }
            }
            Event::StopRequested { .. } | Event::RunFinished { .. } => {}
            _ => return,
        }
        (0..self.lanes.len()).for_each(|index| self.refresh(index));
    }

    /// Lanes that were blocked by the end of another lane, and are not any more, wait again: none that they depend on
    /// `blocks` them.
    fn unblock_dependants(&mut self, blocks: impl Fn(&LaneHistory) -> bool) {
        let is_free = |history: &Self, index: &usize| {
            let lane = &history.lanes[*index];
            lane.is_blocked_by_lanes() && !lane.depends_on.iter().filter_map(|id| history.lane(id)).any(&blocks)
        };
        while let Some(index) = self.blocked_by_lanes.iter().copied().find(|index| is_free(self, index)) {
            (self.lanes[index].ending, self.lanes[index].finished) = (None, None);
            self.refresh(index);
        }
    }

    /// `lanes` and everything they depend on, directly or not.
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

    fn position(&mut self, id: &LaneId) -> usize {
        match self.positions.get(id) {
            Some(&index) => index,
            None => self.add(LaneHistory::new(id.clone())),
        }
    }

    fn add(&mut self, lane: LaneHistory) -> usize {
        let index = self.lanes.len();
        self.positions.insert(lane.id.clone(), index);
        self.lanes.push(lane);
        index
    }

    /// Sets the lane's state, and what is known of the states of all lanes.
    fn refresh(&mut self, index: usize) {
        let state = state_rules::state_of(&self.lanes[index], &self.run);
        let before = std::mem::replace(&mut self.lanes[index].state, state);
        self.done = self.done + usize::from(state.is_done()) - usize::from(before.is_done());
        if state.is_active() {
            self.active.insert(index);
        } else {
            self.active.remove(&index);
        }
        if self.lanes[index].is_blocked_by_lanes() {
            self.blocked_by_lanes.insert(index);
        } else {
            self.blocked_by_lanes.remove(&index);
        }
    }
}

#[cfg(test)]
mod tests;
