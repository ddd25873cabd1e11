use std::sync::Arc;

use lanewright_model::event::{Event, Record};
use lanewright_model::testing::{Story, attempt, lane, plan, started};
use lanewright_model::{Budget, JobId, LaneId, Plan, PlanParts, RunId};
use lanewright_schedule::RunState;
use lanewright_schedule::lane_log::continued;

fn offered(lane: &LaneId, number: u32) -> Event {
    Event::LaneOffered { lane: lane.clone(), number, executor: "main".to_owned(), budget: Budget::default() }
}

/// Lane A was offered twice; in between the run log got the record of a job of it, and the lane was rolled back.
fn rolled_back(job: &JobId) -> Vec<Record> {
    let id = lane("A");
    let rolled_back = Event::LaneRolledBack { lane: id.clone(), integration: None, kept: Vec::new(), point: None };
    let story = Story::begun().then(offered(&id, 1)).then(Event::planned(job.clone()));
    let ended = Event::PlacementEnded { lane: id.clone(), number: 1, outcome: None, reason: "gone".to_owned() };
    let mut records = story.then(ended).then(rolled_back).then(offered(&id, 2)).records;
    records[2].origin = Some(9);
    records
}

#[test]
fn log_of_rolled_back_lane_starts_over() {
    let (plan, id) = (plan(&[("A", &[], &[])]), lane("A"));
    let old = attempt("A", plan.lanes[0].agents[0].name.as_str(), 7);
    let records = rolled_back(&old);
    let Event::RunStarted(begun) = started(&[]) else { unreachable!() };
    let (run, index) = (RunId::new("P1-SL-AUTH-20251227.A").unwrap(), plan.find(&id).unwrap());
    let added = |known: &[_]| continued((&begun, &plan), (&run, index), known, &records);
    let new = added(&[]);
    let origins: Vec<_> = new.iter().map(|record| (record.seq, record.origin)).collect();
    assert_eq!(origins, [(1, None), (2, Some(3)), (3, Some(5)), (4, Some(6))]);
    assert!(added(&new).is_empty());
    let state = RunState::replay(&Arc::new(plan), &new).unwrap();
    assert_eq!(state.next_job(Some(&id), old.role).number, 8, "no job gets the name of an older one");
    assert_eq!(state.running_jobs().count(), 0);
}

#[test]
fn lost_job_is_not_counted_after_rollback() {
    let mut parts = PlanParts::clone(&plan(&[("A", &[], &[])]));
    parts.lanes[0].executor = Some("main".to_owned());
    let plan = Arc::new(Plan::new(parts).unwrap());
    let job = attempt("A", plan.lanes[0].agents[0].name.as_str(), 1);
    assert_eq!(RunState::replay(&plan, &rolled_back(&job)).unwrap().running_attempts(), 0);
}
