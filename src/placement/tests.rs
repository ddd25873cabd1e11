use super::lane_log::continued;
use crate::event::Event;
use crate::model::{LaneId, RunId};
use crate::projection::testing::{Story, lane, plan, started};

fn offered(lane: &LaneId, number: u32) -> Event {
    Event::LaneOffered { lane: lane.clone(), number, executor: "main".to_owned() }
}

#[test]
fn the_log_of_a_lane_that_was_rolled_back_begins_again() {
    let (plan, id) = (plan(&[("A", &[], &[])]), lane("A"));
    let Event::RunStarted(begun) = started(&[]) else { unreachable!() };
    let rolled_back = Event::LaneRolledBack { lane: id.clone(), integration: None, kept: Vec::new() };
    let story = Story::begun().then(offered(&id, 1)).then(rolled_back).then(offered(&id, 2));
    let (run, index) = (RunId::new("r1.A").unwrap(), plan.find(&id).unwrap());
    let added = |known: &[_]| continued((&begun, &plan), (&run, index), known, &story.records);
    let new = added(&[]);
    assert_eq!(new.iter().map(|record| (record.seq, record.origin)).collect::<Vec<_>>(), [(1, None), (2, Some(4))]);
    assert_eq!(new[1].event, offered(&id, 2));
    assert!(added(&new).is_empty());
}
