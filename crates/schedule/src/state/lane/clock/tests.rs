use super::*;
use crate::sample_plans::moment;

const LIMIT: Duration = Duration::from_millis(100);

#[test]
fn lane_timeout_excludes_waiting_for_people() {
    let mut clock = LaneClock::default();
    assert_eq!(clock.deadline(LIMIT), None);
    clock.move_on(moment(10));
    clock.move_on(moment(20));
    assert_eq!((clock.deadline(LIMIT), clock.since()), (Some(moment(110)), Some(moment(20))));
    clock.park(true, moment(30));
    clock.park(true, moment(35));
    clock.park(false, moment(40));
    clock.park(false, moment(50));
    assert_eq!(clock.deadline(LIMIT), Some(moment(120)));
    clock.begin_rollback(moment(60));
    assert_eq!(clock.since(), Some(moment(60)));
}

#[test]
fn lane_timeout_excludes_sleep() {
    let mut clock = LaneClock::default();
    clock.sleep(LIMIT);
    assert_eq!(clock.deadline(LIMIT), None, "it has not begun");
    clock.move_on(moment(10));
    clock.sleep(Duration::from_millis(1000));
    assert_eq!(clock.deadline(LIMIT), Some(moment(1110)));
    clock.park(true, moment(1020));
    clock.sleep(Duration::from_millis(5000));
    clock.park(false, moment(6040));
    assert_eq!(clock.deadline(LIMIT), Some(moment(6130)), "asleep for 6000, parked for 20 awake");
}

#[test]
fn resume_restarts_lane_timeout() {
    let mut clock = LaneClock::default();
    clock.restart(moment(5));
    assert_eq!(clock.deadline(LIMIT), None, "it has not begun");
    clock.move_on(moment(10));
    clock.park(true, moment(20));
    clock.restart(moment(1000));
    clock.park(false, moment(1001));
    assert_eq!((clock.deadline(LIMIT), clock.since()), (Some(moment(1101)), Some(moment(10))));
}
