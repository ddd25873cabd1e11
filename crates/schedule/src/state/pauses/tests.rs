use std::time::Duration;

use lanewright_model::{AgentName, JobRole, TaskId};

use super::*;
use crate::sample_plans::moment;

const FIRST: Duration = Duration::from_secs(10);
const LIMIT: Duration = Duration::from_secs(24 * 3600);
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;

fn attempt(number: u32) -> JobId {
    let role = JobRole::Attempt { agent: AgentName::new("a").unwrap(), task: TaskId::new("t").unwrap() };
    JobId { lane: None, role, number }
}

fn quota(until: Option<i64>) -> Outage {
    Outage { until: until.map(moment), ..Outage::new(OutageKind::Quota, "429") }
}

/// Has what is unrecorded recorded, and says when the probe begins.
fn record(pauses: &mut Pauses) -> Option<Option<i64>> {
    let events = pauses.unrecorded(FIRST, LIMIT);
    match events.as_slice() {
        [Event::RunnerPaused { account, outage, since, until }] => {
            pauses.paused(account, outage, *since, *until);
            Some(until.map(Timestamp::unix_millis))
        }
        [Event::RunnerContinued { account }] => {
            pauses.continued(account);
            None
        }
        events => panic!("{events:?}"),
    }
}

#[test]
fn a_pause_lasts_as_long_as_the_program_says() {
    let mut pauses = Pauses::default();
    pauses.failed("claude", &attempt(1), &quota(Some(3 * HOUR)), moment(0));
    assert_eq!(record(&mut pauses), Some(Some(3 * HOUR)));
    assert!(pauses.unrecorded(FIRST, LIMIT).is_empty() && pauses.of("codex").is_none());

    pauses.failed("claude", &attempt(2), &quota(Some(2 * HOUR)), moment(MINUTE));
    pauses.failed("claude", &attempt(3), &quota(None), moment(MINUTE));
    assert!(pauses.unrecorded(FIRST, LIMIT).is_empty(), "attempts that began before say nothing new");
    pauses.failed("claude", &attempt(4), &quota(Some(4 * HOUR)), moment(MINUTE));
    assert_eq!(record(&mut pauses), Some(Some(4 * HOUR)), "a later end counts");
}

#[test]
fn the_end_of_a_probe_ends_the_pause_or_makes_it_longer() {
    let mut pauses = Pauses::default();
    let runs = |_: &JobId| true;
    pauses.failed("claude", &attempt(1), &quota(None), moment(0));
    let first = record(&mut pauses).unwrap().unwrap();
    assert!((5_000..=10_000).contains(&first), "{first}");

    pauses.probe("claude", &attempt(2), moment(first));
    assert!(pauses.of("claude").unwrap().is_probed(runs) && !pauses.of("claude").unwrap().is_probed(|_| false));
    pauses.failed("claude", &attempt(2), &quota(None), moment(first));
    let second = record(&mut pauses).unwrap().unwrap() - first;
    assert!((10_000..=20_000).contains(&second), "{second}");

    pauses.probe("claude", &attempt(3), moment(HOUR));
    pauses.ended("claude", &attempt(3), AttemptEnd::Stopped);
    assert!(pauses.unrecorded(FIRST, LIMIT).is_empty(), "a probe that was stopped says nothing");
    pauses.probe("claude", &attempt(4), moment(HOUR));
    pauses.ended("claude", &attempt(9), AttemptEnd::Passed);
    assert!(pauses.unrecorded(FIRST, LIMIT).is_empty(), "another attempt says nothing");
    assert_eq!(pauses.probes(runs), [("claude".to_owned(), moment(HOUR + 5 * MINUTE))]);
    pauses.ended("claude", &attempt(4), AttemptEnd::Failed);
    assert_eq!(record(&mut pauses), None);
    assert!(pauses.is_empty());
}

#[test]
fn an_account_is_waited_for_until_the_limit() {
    let mut pauses = Pauses::default();
    pauses.failed("claude", &attempt(1), &quota(Some(400 * 24 * HOUR)), moment(0));
    assert_eq!(record(&mut pauses), Some(Some(24 * HOUR)), "the last probe begins when the limit is over");
    pauses.probe("claude", &attempt(2), moment(24 * HOUR));
    pauses.failed("claude", &attempt(2), &quota(Some(400 * 24 * HOUR)), moment(24 * HOUR));
    assert_eq!(record(&mut pauses), Some(None));
    assert!(pauses.of("claude").unwrap().needs_user());

    pauses.run_finished();
    pauses.resume(moment(25 * HOUR));
    let pause = pauses.of("claude").unwrap();
    assert_eq!((pause.since, pause.until), (moment(25 * HOUR), Some(moment(25 * HOUR))));
}

#[test]
fn a_time_that_is_over_gives_no_pause_without_a_delay() {
    let mut pauses = Pauses::default();
    pauses.failed("claude", &attempt(1), &quota(Some(0)), moment(HOUR));
    let until = record(&mut pauses).unwrap().unwrap() - HOUR;
    assert!((5_000..=10_000).contains(&until), "{until}");
}

/// It works with another account, or on a cluster; or the service took longer than it had said.
#[test]
fn an_attempt_that_begins_in_a_pause_finds_nothing_out() {
    let mut pauses = Pauses::default();
    pauses.failed("claude", &attempt(1), &quota(Some(3 * HOUR)), moment(0));
    record(&mut pauses);
    pauses.probe("claude", &attempt(2), moment(HOUR));
    assert!(pauses.probes(|_| true).is_empty(), "it is a probe");
    pauses.probe("claude", &attempt(3), moment(3 * HOUR));
    pauses.failed("claude", &attempt(2), &quota(Some(9 * HOUR)), moment(3 * HOUR));
    record(&mut pauses);
    assert!(pauses.probes(|_| true).is_empty(), "it began before the longer pause was known");
}

#[test]
fn a_refusal_waits_for_the_user() {
    let mut pauses = Pauses::default();
    pauses.failed("claude", &attempt(1), &Outage::new(OutageKind::Refused, "401"), moment(0));
    assert_eq!(record(&mut pauses), Some(None));
    pauses.failed("claude", &attempt(2), &quota(Some(HOUR)), moment(1));
    assert!(pauses.unrecorded(FIRST, LIMIT).is_empty());
}

#[test]
fn a_crash_changes_no_pause_and_sleep_no_time_of_day() {
    let mut pauses = Pauses::default();
    pauses.failed("claude", &attempt(1), &quota(Some(3 * HOUR)), moment(0));
    record(&mut pauses);
    pauses.sleep(Duration::from_secs(3600));
    pauses.resume(moment(2 * HOUR));
    let pause = pauses.of("claude").unwrap();
    assert_eq!((pause.since, pause.until), (moment(2 * HOUR), Some(moment(3 * HOUR))));
}

#[test]
fn attempts_that_run_for_long_do_not_make_the_limit_begin_anew() {
    let mut pauses = Pauses::default();
    pauses.failed("claude", &attempt(1), &quota(None), moment(0));
    record(&mut pauses);
    for number in 2..=3 {
        let begun = 8 * HOUR * i64::from(number);
        pauses.probe("claude", &attempt(number), moment(begun));
        pauses.continued("claude");
        assert!(pauses.of("claude").is_none() && pauses.probes(|_| true).is_empty(), "others begin again");
        pauses.probe("claude", &attempt(9), moment(begun));
        pauses.failed("claude", &attempt(number), &quota(None), moment(begun + HOUR));
        pauses.failed("claude", &attempt(9), &quota(None), moment(begun + HOUR));
        let until = record(&mut pauses).unwrap();
        assert_eq!(until.is_none(), number == 3, "attempt {number}");
        assert_eq!(pauses.of("claude").unwrap().since, moment(0));
    }
}

#[test]
fn an_attempt_that_ends_otherwise_ends_the_outage_that_was_lifted() {
    for (end, is_over) in [(AttemptEnd::Passed, true), (AttemptEnd::Failed, true), (AttemptEnd::Stopped, false)] {
        let mut pauses = Pauses::default();
        pauses.failed("claude", &attempt(1), &quota(None), moment(0));
        record(&mut pauses);
        pauses.probe("claude", &attempt(2), moment(HOUR));
        pauses.continued("claude");
        pauses.ended("claude", &attempt(5), end);
        assert_eq!(pauses.is_empty(), is_over, "{end:?}");
    }
}

#[test]
fn an_attempt_that_passes_shows_that_its_account_is_not_refused() {
    let refused = || {
        let mut pauses = Pauses::default();
        pauses.failed("claude", &attempt(1), &Outage::new(OutageKind::Refused, "model not found"), moment(0));
        record(&mut pauses);
        pauses
    };
    let mut pauses = refused();
    pauses.ended("claude", &attempt(2), AttemptEnd::Failed);
    assert!(pauses.unrecorded(FIRST, LIMIT).is_empty());
    pauses.resume(moment(MINUTE));
    pauses.probe("claude", &attempt(3), moment(MINUTE));
    pauses.ended("claude", &attempt(2), AttemptEnd::Passed);
    assert_eq!(record(&mut pauses), None);
    assert!(pauses.is_empty());
}

#[test]
fn a_limit_holds_where_a_refusal_turns_out_to_be_none() {
    let refused = Outage::new(OutageKind::Refused, "model not found");
    for (order, is_recorded) in [(0, false), (0, true), (1, false), (1, true), (2, true)] {
        let mut pauses = Pauses::default();
        let mut steps: [&dyn Fn(&mut Pauses); 2] =
            [&|pauses| pauses.limited("claude", &quota(Some(HOUR)), moment(0)), &|pauses| {
                pauses.failed("claude", &attempt(1), &refused, moment(1))
            }];
        let failed = |pauses: &mut Pauses| pauses.failed("claude", &attempt(4), &quota(Some(HOUR)), moment(0));
        match order {
            0 => {}
            1 => steps.reverse(),
            _ => steps = [steps[1], &failed],
        }
        for step in steps {
            step(&mut pauses);
            if is_recorded && !pauses.unrecorded(FIRST, LIMIT).is_empty() {
                record(&mut pauses);
            }
        }
        pauses.ended("claude", &attempt(2), AttemptEnd::Passed);
        assert_eq!(record(&mut pauses), Some(Some(HOUR)), "{order} {is_recorded}");
        pauses.probe("claude", &attempt(3), moment(HOUR));
        pauses.ended("claude", &attempt(3), AttemptEnd::Passed);
        assert_eq!(record(&mut pauses), None, "{order} {is_recorded}");
    }
}

#[test]
fn a_run_that_was_opened_again_after_its_end_is_probed_at_once() {
    let mut pauses = Pauses::default();
    pauses.failed("claude", &attempt(1), &quota(Some(3 * HOUR)), moment(0));
    record(&mut pauses);
    pauses.run_finished();
    pauses.resume(moment(HOUR));
    assert_eq!(pauses.ends(|_| true), [moment(HOUR)]);
    pauses.paused("claude", &quota(None), moment(HOUR), Some(moment(4 * HOUR)));
    pauses.resume(moment(2 * HOUR));
    assert_eq!(pauses.ends(|_| true), [moment(4 * HOUR)], "that was a crash");
}

#[test]
fn a_limit_that_a_probe_reports_begins_another_pause() {
    let mut pauses = Pauses::default();
    pauses.limited("claude", &quota(Some(HOUR)), moment(0));
    assert_eq!(record(&mut pauses), Some(Some(HOUR)));
    // By less than a failed attempt must name.
    pauses.probe("claude", &attempt(2), moment(HOUR));
    pauses.ended("claude", &attempt(2), AttemptEnd::Passed);
    pauses.limited("claude", &quota(Some(HOUR + 30_000)), moment(HOUR + 500));
    assert_eq!(record(&mut pauses), Some(Some(HOUR + 30_000)));
    assert_eq!(pauses.of("claude").unwrap().since, moment(HOUR + 500), "an attempt passed in between");
    pauses.limited("claude", &quota(Some(HOUR)), moment(HOUR + 600));
    assert!(pauses.unrecorded(FIRST, LIMIT).is_empty(), "the pause lasts longer");
}

#[test]
fn an_attempt_that_began_in_the_last_pause_is_waited_for_in_the_next() {
    let mut pauses = Pauses::default();
    pauses.failed("claude", &attempt(1), &Outage::new(OutageKind::Refused, "model not found"), moment(0));
    record(&mut pauses);
    pauses.resume(moment(MINUTE));
    pauses.probe("claude", &attempt(3), moment(MINUTE));
    pauses.ended("claude", &attempt(2), AttemptEnd::Passed);
    pauses.limited("claude", &quota(Some(HOUR)), moment(2 * MINUTE));
    assert_eq!(record(&mut pauses), Some(Some(HOUR)));
    let is_due = |runs: bool| pauses.of("claude").unwrap().is_due(moment(2 * HOUR), |_| runs);
    assert!(!is_due(true) && is_due(false));
}
