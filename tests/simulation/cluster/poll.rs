//! Polling the exchange and the engine.

use std::sync::Arc;

use lanewright_model::event::{Event, Incoming, RunOutcome};
use lanewright_model::testing::empty_plan;
use lanewright_model::{ExitCause, JobId, LaneIndex, Plan, PlanParts};
use lanewright_schedule::lane_log::news;
use lanewright_schedule::{Action, RunState};

use super::{Cluster, PlacingBug, State, lost};

impl Cluster {
    pub(super) fn poll_exchange(&mut self) -> Result<(), String> {
        for lane in self.followed.keys().copied().collect::<Vec<_>>() {
            let Some(state) = self.exchange.get(&lane).cloned() else { continue };
            let events = self.news(lane, &state);
            let outcome = state.outcome.filter(|_| state.claim.is_some());
            match outcome {
                Some(outcome) => self.ended(lane, events, Some(outcome))?,
                None if events.is_empty() => {}
                None => self.absorb(events, vec![])?,
            }
        }
        Ok(())
    }

    fn news(&self, lane: LaneIndex, state: &State) -> Vec<Incoming> {
        let Some(run_loop) = &self.run_loop else { return Vec::new() };
        let seen = run_loop.state().lane(lane).placement().seen();
        let seen = if self.bug == Some(PlacingBug::CopyAgain) { seen / 2 } else { seen };
        news(&self.plan.lane(lane).id, &state.log, seen)
    }

    fn ended(&mut self, lane: LaneIndex, mut events: Vec<Incoming>, outcome: Option<RunOutcome>) -> Result<(), String> {
        self.followed.remove(&lane);
        let Some(run_loop) = &self.run_loop else { return Ok(()) };
        let (number, id) = (run_loop.state().lane(lane).placement().number(), self.plan.lane(lane).id.clone());
        events.push(Event::PlacementEnded { lane: id, number, outcome, reason: "its job ended".to_owned() }.into());
        self.absorb(events, vec![Action::FollowLane(lane)])
    }

    /// Takes the lanes back of jobs that are over and did not end their lane.
    pub(super) fn poll_engine(&mut self) -> Result<(), String> {
        for (lane, id) in self.followed.clone() {
            if self.jobs.get(&id).is_some_and(|job| !job.is_over) || self.dies() {
                continue;
            }
            self.poll_exchange()?;
            if !self.followed.contains_key(&lane) {
                continue;
            }
            let Some(state) = self.exchange.get(&lane).cloned() else { continue };
            if self.bug != Some(PlacingBug::CloseWithoutCompare) {
                // Nobody else moves it between the look and this.
                self.replace(lane, State { claim: Some(0), ..state.clone() })?;
            }
            let alone = Plan::new(PlanParts { lanes: vec![self.plan.lane(lane).clone()], ..empty_plan() });
            let mut own = RunState::new(Arc::new(alone.map_err(|error| format!("{error:?}"))?));
            state.log.iter().try_for_each(|record| own.apply(record)).map_err(|fault| fault.to_string())?;
            let mut events = self.news(lane, &state);
            events.extend(own.running_jobs().map(|job| Incoming::from(self.lost_here(job))));
            self.ended(lane, events, None)?;
        }
        Ok(())
    }

    fn lost_here(&self, job: &JobId) -> Event {
        match lost(job) {
            Event::JobExited { job, mut exit, .. } if self.bug == Some(PlacingBug::LossIsFailure) => {
                (exit.cause, exit.exit_code) = (ExitCause::Exited, 1);
                Event::JobExited { job, exit, report: None, reading: None, transcript: None }
            }
            event => event,
        }
    }
}
