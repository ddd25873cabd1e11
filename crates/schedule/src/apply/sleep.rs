//! Time asleep: everything that time limits and delays count from moves by it, so that they count time awake.

use std::time::Duration;

use crate::state::RunState;

impl RunState {
    /// It slept until now. All times of the state are from before.
    pub(super) fn sleep(&mut self, duration: Duration) {
        self.alive_since = self.alive_since.map(|since| since.plus(duration));
        self.pauses.sleep(duration);
        self.following.sleep(duration);
        for lane in &mut self.lanes {
            lane.clock.sleep(duration);
            lane.placement.sleep(duration);
            lane.proposal.sleep(duration);
            lane.attempts.agents_mut().iter_mut().for_each(|agent| agent.sleep(duration));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::sample_plans::{lane, moment, plan};
    use crate::state::agent::AgentStep;
    use lanewright_model::event::{Event, Record};
    use lanewright_model::{JobId, JobRole, LaneId, LaneIndex, Outage, OutageKind};

    fn job(state: &RunState) -> JobId {
        let agent = &state.plan().lanes[0].agents[0];
        let role = JobRole::Attempt { agent: agent.name.clone(), task: agent.tasks[0].id.clone() };
        state.next_job(Some(&state.plan().lanes[0].id), role)
    }

    #[test]
    fn limits_and_delays_move_by_the_time_asleep() {
        let mut state = RunState::new(Arc::new(plan(vec![lane("A", &[], 1, &[])], &[])));
        let limit = Duration::from_secs(1);
        let outage = Outage::new(OutageKind::Network, "refused");
        state.alive_since = Some(moment(10));
        let worked = &mut state.lanes[0];
        worked.clock.move_on(moment(20));
        worked.placement.lost = Some((moment(30), "why".into()));
        worked.proposal.apply(&Event::ForgeUnavailable { lane: LaneId::new("A").unwrap(), outage }, moment(40));
        worked.attempts.agents_mut()[0].step = AgentStep::Retrying(moment(500));
        state.pauses.failed("x", &job(&state), &Outage::new(OutageKind::Network, "refused"), moment(50));

        let event = Event::Slept { duration: Duration::from_millis(1_000_000) };
        state.apply(&Record { seq: 1, at: moment(1_000_100), event, origin: None }).unwrap();

        let slept = state.lane(LaneIndex(0));
        assert_eq!(state.alive_since, Some(moment(1_000_010)));
        assert_eq!(slept.clock.deadline(limit), Some(moment(1_001_020)));
        assert_eq!(slept.clock.since(), Some(moment(20)), "names of snapshots stay");
        assert_eq!(slept.placement.lost.as_ref().unwrap().0, moment(1_000_030));
        assert_eq!(slept.proposal.out.as_ref().unwrap().at, moment(1_000_040));
        assert_eq!(slept.agents()[0].step, AgentStep::Retrying(moment(1_000_500)));
        assert_eq!(state.pauses.of("x").unwrap().since, moment(1_000_050));
    }
}
