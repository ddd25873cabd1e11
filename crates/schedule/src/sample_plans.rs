//! Plans and their parts for the unit tests of this crate.

use std::time::Duration;

use lanewright_model::testing::{empty_plan, plan_lane};
use lanewright_model::{CommitId, ExitCause, JobExit, Lane, LaneIndex, Plan, PlanParts, Timestamp};

/// A lane with one agent, `engineer`, and its one task.
pub(crate) fn lane(id: &str, depends_on: &[u32], minutes: u64, uses: &[&str]) -> Lane {
    let mut lane = plan_lane(id, depends_on.iter().copied().map(LaneIndex).collect());
    lane.uses = uses.iter().map(|&pool| pool.to_owned()).collect();
    lane.agents[0].tasks[0].max_time = Some(Duration::from_secs(60 * minutes));
    lane
}

pub(crate) fn plan(lanes: Vec<Lane>, exclusions: &[(u32, u32)]) -> Plan {
    let exclusions = exclusions.iter().map(|&(one, other)| (LaneIndex(one), LaneIndex(other))).collect();
    Plan::new(PlanParts { pools: [("two".to_owned(), 2)].into(), lanes, exclusions, ..empty_plan() }).unwrap()
}

pub(crate) fn commit(number: u32) -> CommitId {
    CommitId::new(&format!("{number:040x}")).unwrap()
}

pub(crate) fn moment(millis: i64) -> Timestamp {
    Timestamp::from_unix_millis(millis)
}

pub(crate) fn exit(cause: ExitCause, exit_code: i32) -> JobExit {
    JobExit {
        cause,
        exit_code,
        command: "agent --go".into(),
        started_at: moment(0),
        finished_at: moment(0),
        tail: vec!["a".into(), " ".into(), "b".into()],
        notes: "why".into(),
    }
}
