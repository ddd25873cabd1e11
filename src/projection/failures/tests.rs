use super::*;
use crate::event::Event;
use crate::model::{Failure, FailureKind};
use crate::projection::testing::*;

fn told(story: &Story, width: usize) -> String {
    let view = RunHistory::for_plan(&plan(&[("SL-1", &[], &[])])).after(&story.records);
    let log_of = |job: &JobId| PathBuf::from("/repo/läufe/r1").join(job.directory()).join("output.log");
    failures(&view, &log_of, width, Styles::plain())
}

#[test]
fn a_failed_lane_says_what_failed_and_where_to_read_on() {
    let second = attempt("SL-1", "engineer", 2);
    let story = Story::begun().opened("SL-1", 1).retried("SL-1", 1, 1).job(&second).exited(&second, 101);
    insta::assert_snapshot!(told(&story.noted("SL-1").failed("SL-1"), 80), @r#"
    SL-1 failed: TypeError: undefined is not a function
      agent    engineer
      task     1
      attempt  2
      retries  1 of 1
      command  cargo test auth
      exit     101
      log      /repo/läufe/r1/lanes/SL-1/agents/engineer/tasks/1/attempt-2/output.log
      | Test failed: AuthService.register
    "#);
}

#[test]
fn what_the_failure_does_not_say_is_taken_from_the_job() {
    let tests = tests_of("SL-1", 1);
    let failure = Failure { exit_code: Some(101), ..Failure::new(FailureKind::Gate, "the lane's tests failed") };
    let story = Story::begun().opened("SL-1", 1).job(&tests).exited(&tests, 101);
    let story = story.then(Event::LaneFailed { lane: lane("SL-1"), failure });
    insta::assert_snapshot!(told(&story, 20), @r#"
    SL-1 failed: the lane's tests failed
      command  cargo test auth
      exit     101
      log      /repo/läufe/r1/lanes/SL-1/tests-1/output.log
      | Test failed: Au…
    "#);
}

#[test]
fn an_old_failure_that_was_fixed_is_not_blamed() {
    let full = Failure::new(FailureKind::State, "No space left on device");
    let story = Story::begun().opened("SL-1", 1).retried("SL-1", 1, 3);
    let text = told(&story.then(Event::LaneFailed { lane: lane("SL-1"), failure: full }), 80);
    assert!(!text.contains("cargo test") && !text.contains("log "), "{text}");
}

#[test]
fn a_run_without_failure_has_nothing_to_say() {
    assert_eq!(told(&Story::begun().opened("SL-1", 1).merged("SL-1", 'd'), 80), "");
}
