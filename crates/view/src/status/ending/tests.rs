use lanewright_model::event::{Event, LaneStage};
use lanewright_model::testing::*;
use lanewright_model::time::LocalTime;
use lanewright_model::{Approval, Diagnosis, Failure, FailureClass, FailureKind, Finding};

use super::*;
use crate::RunHistory;
use crate::status::summary::SummaryContext;

fn ended(lanes: &[(&str, &[&str], &[Approval])], story: &Story, width: usize) -> String {
    let history = RunHistory::for_plan(&plan(lanes)).after(&story.records);
    let program = program();
    let summary =
        Summary::of(&history, SummaryContext { now: LocalTime::utc(story.now()), program: &program, held: false });
    ending(&summary, &program, &|_| Vec::new(), width, Styles::plain())
}

/// The lane's tests failed, with a finding in their output.
fn failed(id: &str) -> Event {
    let finding = Finding {
        file: Some(format!("src/{}.rs", id.to_lowercase())),
        line: Some(12),
        column: Some(5),
        message: "mismatched types: expected `u32`, found `&str` because of a long explanation".to_owned(),
    };
    let diagnosis = Diagnosis {
        class: FailureClass::Compilation,
        tool: Some("rustc".into()),
        findings: vec![finding],
        count: 3,
        in_base: None,
    };
    let failure = Failure {
        diagnosis: Some(Box::new(diagnosis)),
        ..Failure::new(FailureKind::Gate, "the lane's tests failed after 3 attempts, as all of those before had done")
    };
    Event::LaneFailed { lane: lane(id), failure }
}

fn many(count: usize) -> String {
    let names: Vec<String> = (1..=count).map(|number| format!("SL-{number}")).collect();
    let lanes: Vec<(&str, &[&str], &[Approval])> = names.iter().map(|name| (name.as_str(), &[][..], &[][..])).collect();
    let story = names.iter().fold(Story::begun(), |story, name| story.opened(name, 1).then(failed(name)));
    ended(&lanes, &story.finished(RunOutcome::Failed, 1), 80)
}

#[test]
fn six_failed_lanes_and_forty_fit_on_a_screen() {
    for (count, more) in [(6, None), (40, Some("and 34 more: lanewright status P1-SL-AUTH-20251227"))] {
        let text = many(count);
        assert!(text.lines().count() <= 24, "{} lines:\n{text}", text.lines().count());
        assert!(text.lines().all(|line| cells::width(line) <= 80), "{text}");
        assert_eq!(text.matches(": mismatched types").count(), 6, "{text}");
        assert_eq!(text.lines().find(|line| line.starts_with("and ")), more);
    }
}

#[test]
fn ending_of_failed_run() {
    let lanes: [(&str, &[&str], &[Approval]); 3] = [("SL-1", &[], &[]), ("SL-2", &["SL-1"], &[]), ("SL-3", &[], &[])];
    let story = Story::begun().opened("SL-3", 1).merged("SL-3", 'd').opened("SL-1", 1);
    let story = story.then(failed("SL-1")).blocked("SL-2", "it depends on SL-1, which failed");
    insta::assert_snapshot!(ended(&lanes, &story.finished(RunOutcome::Failed, 1), 80), @"
    SL-1 failed: the lane's tests failed after 3 attempts, as all of those before
      had done
      src/sl-1.rs:12:5: mismatched types: expected `u32`, found `&str` because of a
        long explanation (and 2 more)
      lanewright status P1-SL-AUTH-20251227 SL-1

    Lane SL-1 needs a decision.
    Issue: the lane's tests failed after 3 attempts, as all of those before had done
    Current State: implementation, on branch lane/P1/SL-1 in
      /w/P1-SL-AUTH-20251227/SL-1/code
    Recovery Attempts: none
    Impact: SL-2 depends on it; all work is in its worktree
    Options:
    1. Fix the cause (environment, plan, or the work with a commit in the lane's
      worktree), then resume; after a change of the plan with --accept-plan-change.
      for: all work is kept, and retries start over; against: you have to find the
        cause; all that failed runs again
      lanewright resume P1-SL-AUTH-20251227
    2. Let its agent try again, with your advice in its prompt; other failed lanes
      stay as they are.
      for: the agent does the work, on top of what it has; against: it costs another
        attempt, and may fail again
      lanewright retry P1-SL-AUTH-20251227 SL-1 -m 'what to change'
    3. Start the lane over. Its work is saved first; rollback prints where.
      for: nothing of the failed work is in the way; against: its agents do all of
        the lane again
      lanewright rollback P1-SL-AUTH-20251227 --lane SL-1
    4. Abandon the lane: what depends on it goes on without its work, which is kept.
      for: the rest of the run can end; against: its work is missing in what is
        merged
      lanewright skip P1-SL-AUTH-20251227 SL-1

    P1 Billing failed · 1 failed · 1 blocked · 1 merged
    28s elapsed
    ");
}

#[test]
fn a_conflict_names_its_files() {
    let paths = ["src/a.rs", "src/b.rs"].map(str::to_owned).to_vec();
    let message = "the work conflicts with what was merged into main meanwhile";
    let failure = Failure { paths, ..Failure::new(FailureKind::Conflict, message) };
    let story = Story::begun().opened("SL-1", 1).then(Event::LaneFailed { lane: lane("SL-1"), failure });
    let text = ended(&[("SL-1", &[], &[])], &story.finished(RunOutcome::Failed, 1), 80);
    assert_eq!(text.lines().nth(1), Some("  conflict in src/a.rs and 1 more"), "{text}");
}

#[test]
fn ending_lists_questions_first() {
    let lanes: [(&str, &[&str], &[Approval]); 3] =
        [("SL-1", &[], &[]), ("SL-2", &[], &[]), ("SL-3", &[], &[Approval::Changes])];
    let reason = "main is checked out in /repo/checkout and dirty: commit or stash what is changed there, then resume";
    let story = Story::begun().blocked("SL-1", reason).blocked("SL-2", reason).opened("SL-3", 1);
    let story = story.moved("SL-3", LaneStage::Implementation, LaneStage::AwaitingUserApproval);
    insta::assert_snapshot!(ended(&lanes, &story.finished(RunOutcome::Blocked, 3), 80), @"
    SL-3 waits for your approval of its changes, at commit aaaaaaaaaa.
      lanewright diff P1-SL-AUTH-20251227 SL-3
      lanewright approve P1-SL-AUTH-20251227 SL-3 --gate changes
      lanewright reject P1-SL-AUTH-20251227 SL-3 --gate changes -m 'what to change'
    SL-1, SL-2 blocked: main is checked out in /repo/checkout and dirty: commit or
      stash what is changed there, then resume
      lanewright status P1-SL-AUTH-20251227 SL-1

    P1 Billing blocked · 1 needs approval · 2 blocked
    12s elapsed, 1s waiting for you
      lanewright resume P1-SL-AUTH-20251227
    ");
}

#[test]
fn a_run_that_is_done_says_where_its_work_is() {
    let lanes: [(&str, &[&str], &[Approval]); 1] = [("SL-1", &[], &[])];
    let story = Story::begun().opened("SL-1", 1).merged("SL-1", 'd').finished(RunOutcome::Done, 0);
    insta::assert_snapshot!(ended(&lanes, &story, 80), @"
    P1 Billing done, 1 lane without a gate · 1 merged
    18s elapsed
    1 lane merged into main at dddddddddd.
    ");
}

#[test]
fn a_stopped_run_can_be_resumed_or_rolled_back() {
    let lanes: [(&str, &[&str], &[Approval]); 1] = [("SL-1", &[], &[])];
    let story = Story::begun().opened("SL-1", 1).finished(RunOutcome::Stopped, 130);
    insta::assert_snapshot!(ended(&lanes, &story, 80), @"
    P1 Billing stopped · 1 stopped
    9s elapsed
    The run is stopped; no work is lost. Resume it, or roll it back:
      lanewright resume P1-SL-AUTH-20251227
      lanewright rollback P1-SL-AUTH-20251227
    ");
}

#[test]
fn resume_of_some_lanes_does_not_end_as_failed() {
    let lanes: [(&str, &[&str], &[Approval]); 2] = [("SL-1", &[], &[]), ("SL-2", &[], &[])];
    let story = Story::begun().opened("SL-1", 1).then(failed("SL-1")).finished(RunOutcome::Failed, 1);
    let story = story.resumed_for(&["SL-2"]).opened("SL-2", 1).merged("SL-2", 'd').finished(RunOutcome::Failed, 1);
    let text = ended(&lanes, &story, 80);
    assert!(text.contains("\nSL-2 done, P1 is not complete · 1 failed · 1 merged\n"), "{text}");
    assert!(!text.contains("P1 Billing failed"), "{text}");
}

#[test]
fn advice_for_an_outage_is_to_resume() {
    let failure = Failure::new(FailureKind::Network, "no network: connection refused");
    let story = Story::begun().opened("SL-1", 1).then(Event::LaneFailed { lane: lane("SL-1"), failure });
    let text = ended(&[("SL-1", &[], &[])], &story.finished(RunOutcome::Failed, 1), 80);
    assert!(!text.contains("lanewright retry"), "no advice helps against it: {text}");
    assert!(text.contains("1. Resume when the network or the service is back."), "{text}");
}

#[test]
fn a_long_plan_is_cut() {
    let lanes: [(&str, &[&str], &[Approval]); 1] = [("SL-1", &[], &[Approval::Plan])];
    let story = Story::begun().opened("SL-1", 1).moved("SL-1", LaneStage::Requirements, LaneStage::Synthesis);
    let story = story.finished(RunOutcome::Blocked, 3);
    let history = RunHistory::for_plan(&plan(&lanes)).after(&story.records);
    let program = program();
    let summary =
        Summary::of(&history, SummaryContext { now: LocalTime::utc(story.now()), program: &program, held: false });
    let part = |count: usize| PlanPart {
        from: "the plan by analyst".to_owned(),
        lines: (1..=count).map(|number| format!("step {number}")).collect(),
        whole: ["cat", "report.md"].map(str::to_owned).to_vec(),
    };
    let text = |count| ending(&summary, &program, &|_| vec![part(count)], 80, Styles::plain());
    let cut = text(30);
    assert!(cut.contains("the plan by analyst:\n  | step 1\n"), "{cut}");
    assert!(cut.contains("  | step 8\n  and 22 more lines:\n  cat report.md\n"), "{cut}");
    let whole = text(8);
    assert!(whole.contains("  | step 8\n") && !whole.contains("cat report.md"), "{whole}");
}
