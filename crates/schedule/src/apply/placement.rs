//! Folding what becomes of lanes that work on a cluster.

use lanewright_model::event::{Event, LaneStage, Record, RunOutcome};
use lanewright_model::{LaneIndex, Timestamp};

use crate::action::Action;
use crate::state::RunState;
use crate::state::lane::LaneEnd;
use crate::state::lane::placement::Placement;

impl RunState {
    pub(super) fn apply_placement(&mut self, lane: LaneIndex, event: &Event, at: Timestamp) {
        let has_checkpoint_gate = !self.plan.gates.checkpoint.is_empty();
        let (is_lane_run, is_stopping) = (self.is_lane_run(), self.stop.is_some());
        if let Event::LaneOffered { budget, .. } = event
            && let Some(started) = self.started.as_mut().filter(|_| is_lane_run)
        {
            started.options.budget = budget.on_top_of(&self.used);
            self.unfinish();
        }
        let (state, plan) = (&mut self.lanes[lane.at()], self.plan.lane(lane));
        match event {
            Event::LaneOffered { .. } if is_lane_run => {
                state.end = state.end.take().filter(|end| *end != LaneEnd::Returned)
            }
            Event::LaneReturned { .. } if is_lane_run => state.end = Some(LaneEnd::Returned),
            _ if is_lane_run => {}
            Event::LaneOffered { number, executor, .. } => {
                let here = state.attempts_here();
                state.placement.number = *number;
                let executor = executor.clone();
                state.placement.current = Some(Placement { executor, job: None, host: None });
                self.running_attempts -= here;
            }
            Event::LanePlaced { offer, ticket, .. } => {
                if let Some(placement) = &mut state.placement.current {
                    placement.job = Some((offer.clone(), ticket.clone()));
                }
            }
            Event::LaneClaimed { host, moved, .. } => {
                if let Some(placement) = &mut state.placement.current {
                    placement.host = Some(host.clone());
                }
                if *moved {
                    state.move_machine();
                } else {
                    state.revive(has_checkpoint_gate, false, at);
                }
            }
            Event::PlacementEnded { reason, outcome, .. } => {
                let here = state.attempts_here();
                state.come_back();
                // Attempts whose ends were not recorded.
                self.running_attempts += state.attempts_here() - here;
                let was_asked = is_stopping || state.stopping.is_some();
                let gave_it_back = *outcome == Some(RunOutcome::Done);
                if !was_asked
                    && !gave_it_back
                    && state.end.is_none()
                    && state.stage < LaneStage::AwaitingUserApproval
                    && !state.is_parked(plan)
                {
                    state.placement.losses += 1;
                    state.placement.lost = Some((at, reason.clone()));
                }
            }
            _ => {}
        }
    }

    /// After a forced stop, stops waiting for lanes whose action ended without an end of the placement.
    pub(crate) fn release_placements(&mut self, finished: &[Action]) {
        if self.stop.is_none_or(|stop| !stop.force) {
            return;
        }
        for action in finished {
            let (Action::FollowLane(lane) | Action::PlaceLane(lane)) = *action else { continue };
            let placement = &mut self.lanes[lane.at()].placement;
            let has_job = placement.current.as_ref().map(|current| current.job.is_some());
            placement.is_released |= has_job == Some(matches!(action, Action::FollowLane(_)));
        }
    }

    /// Counts a record that was copied from the lane's own log.
    pub(super) fn note_copy(&mut self, lane: LaneIndex, record: &Record) {
        let Some(origin) = record.origin.filter(|_| !self.is_lane_run()) else { return };
        let placement = &mut self.lanes[lane.at()].placement;
        placement.seen = placement.seen.max(origin);
        let is_progress = matches!(
            record.event,
            Event::CheckpointReached { .. } | Event::WorkCommitted { .. } | Event::AgentMerged { .. }
        );
        if is_progress {
            placement.losses = 0;
        }
    }
}
