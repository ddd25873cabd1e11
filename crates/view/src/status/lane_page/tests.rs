use lanewright_model::event::Event;
use lanewright_model::testing::*;
use lanewright_model::text::shell_line;
use lanewright_model::time::LocalTime;
use lanewright_model::{Failure, FailureKind, Finding};

use super::*;
use crate::RunHistory;
use crate::status::summary::SummaryContext;

fn page(story: &Story, width: usize, held: bool) -> String {
    let history = RunHistory::for_plan(&plan(&[("SL-1", &[], &[]), ("SL-2", &["SL-1"], &[])])).after(&story.records);
    let program = program();
    let summary = Summary::of(&history, SummaryContext { now: LocalTime::utc(story.now()), program: &program, held });
    let output_of = |job: &JobId| {
        let path = PathBuf::from("/repo/läufe/r1").join(job.directory()).join("output.log");
        (path, vec!["Test failed: AuthService.register".to_owned(), "会計 \u{1b}[2J".repeat(30)])
    };
    let page = LanePage {
        summary: &summary,
        lane: &summary.lanes[0],
        program: &program,
        output_of: &output_of,
        how: &|it| shell_line(it),
    };
    page.render(width, Styles::plain())
}

fn failed_twice() -> Story {
    let second = attempt("SL-1", "engineer", 2);
    let story = Story::begun().opened("SL-1", 1).retried("SL-1", 1, 1).job(&second).exited(&second, 101);
    story.noted("SL-1").failed("SL-1")
}

#[test]
fn lane_page_of_failed_lane() {
    insta::assert_snapshot!(page(&failed_twice(), 80, false), @"
    SL-1 · failed
    run       P1-SL-AUTH-20251227
    times     2m 17s elapsed, 2m 00s of work

    what                         result         elapsed  note
    attempt 1 of engineer at t…  exit code 101  1m 00s
    attempt 2 of engineer at t…  exit code 101  1m 00s   retry 1 of 1 after: TypeEr…

    /repo/läufe/r1/lanes/SL-1/agents/engineer/tasks/1/attempt-2/output.log
      | Test failed: AuthService.register
      | 会計 会計 会計 会計 会計 会計 会計 会計 会計 会計 会計 会計 会計 会計 会計 …

    Lane SL-1 needs a decision.

    Issue: TypeError: undefined is not a function
    Current State: implementation, on branch lane/P1/SL-1 in /w/P1-SL-AUTH-20251227/SL-1/code
    Recovery Attempts: 2 attempts (engineer: retry 1 of 1)
    Impact: SL-2 depends on it; all work is in its worktree

    Options:
    1. Fix the cause (environment, plan, or the work with a commit in the lane's worktree), then resume; after a change of the plan with --accept-plan-change.
       for: all work is kept, and retries start over; against: you have to find the cause; all that failed runs again
       lanewright resume P1-SL-AUTH-20251227
    2. Let its agent try again, with your advice in its prompt; other failed lanes stay as they are.
       for: the agent does the work, on top of what it has; against: it costs another attempt, and may fail again
       lanewright retry P1-SL-AUTH-20251227 SL-1 -m 'what to change'
    3. Start the lane over. Its work is saved first; rollback prints where.
       for: nothing of the failed work is in the way; against: its agents do all of the lane again
       lanewright rollback P1-SL-AUTH-20251227 --lane SL-1
    4. Abandon the lane: what depends on it goes on without its work, which is kept.
       for: the rest of the run can end; against: its work is missing in what is merged
       lanewright skip P1-SL-AUTH-20251227 SL-1
    ");
}

#[test]
fn a_lane_at_work_shows_what_runs() {
    let story = Story::begun().opened("SL-1", 1).job(&attempt("SL-1", "engineer", 1)).wait(65);
    insta::assert_snapshot!(page(&story, 80, true), @"
    SL-1 · running
    run       P1-SL-AUTH-20251227
    stage     implementation
    times     1m 15s elapsed, 1m 06s of work
    branch    lane/P1/SL-1
    worktree  /w/P1-SL-AUTH-20251227/SL-1/code

    what                             result   elapsed
    attempt 1 of engineer at task 1  running  1m 06s

    /repo/läufe/r1/lanes/SL-1/agents/engineer/tasks/1/attempt-1/output.log
      | Test failed: AuthService.register
      | 会計 会計 会計 会計 会計 会計 会計 会計 会計 会計 会計 会計 会計 会計 会計 …

      lanewright logs P1-SL-AUTH-20251227 SL-1
    ");
}

#[test]
fn attempt_with_rejected_work_did_not_pass() {
    let job = attempt("SL-1", "engineer", 1);
    let noted = |failure| {
        let (lane, agent) = (lane("SL-1"), Some(agent("engineer")));
        Event::FailureNoted { lane, agent, task: Some(task("1")), failure }
    };
    let foreign = Failure::new(FailureKind::Ownership, "changed files outside `owns`");
    let foreign = Failure { paths: vec!["README.md".to_owned()], ..foreign };
    let gate = Failure::new(FailureKind::Gate, "the gate failed");
    for (failure, row) in
        [(foreign, "rejected 1m 00s changed files outside `owns`: README.md"), (gate, "passed 1m 00s")]
    {
        let story = Story::begun().opened("SL-1", 1).job(&job).exited(&job, 0).then(noted(failure));
        let text = page(&story, 100, true).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(row), "{text}");
    }
}

#[test]
fn findings_heading_by_failure_kind() {
    let conflict =
        Failure { paths: vec!["src/a.rs".to_owned()], ..Failure::new(FailureKind::Conflict, "it conflicts") };
    let finding = Finding { file: None, line: None, column: None, message: "boom".to_owned() };
    let unknown =
        Diagnosis { class: FailureClass::Unknown, tool: None, findings: vec![finding], count: 1, in_base: None };
    let gate = Failure { diagnosis: Some(Box::new(unknown)), ..gate_failure() };
    for (failure, shown) in
        [(conflict, "\nconflict in 1 file\n  src/a.rs\n"), (gate, "\nfound in the output\n  boom\n")]
    {
        let (lane, agent) = (lane("SL-1"), Some(agent("engineer")));
        let noted = Event::FailureNoted { lane: lane.clone(), agent, task: None, failure: failure.clone() };
        let story = Story::begun().opened("SL-1", 1).then(noted).then(Event::LaneFailed { lane, failure });
        let text = page(&story, 80, false);
        assert!(text.contains(shown), "{text}");
    }
}

#[test]
fn a_lane_that_ran_out_of_time_names_the_setting() {
    let failure = Failure::new(FailureKind::Timeout, "ran out of time (exit code 124)");
    let text = page(&Story::begun().then(Event::LaneFailed { lane: lane("SL-1"), failure }), 80, false);
    assert!(text.contains("`max_time` of the task"), "{text}");
}

#[test]
fn an_old_failure_that_was_fixed_is_not_blamed() {
    let full = Failure::new(FailureKind::State, "No space left on device");
    let story = Story::begun().opened("SL-1", 1).retried("SL-1", 1, 3);
    let text = page(&story.then(Event::LaneFailed { lane: lane("SL-1"), failure: full }), 80, false);
    assert!(!text.contains("output.log") && text.contains("Issue: No space left"), "{text}");
}

#[test]
fn every_width_is_kept_but_for_commands_and_names() {
    for width in [40, 80, 200] {
        for line in page(&failed_twice(), width, true).lines().filter(|line| !line.contains(['/', '-'])) {
            assert!(lanewright_model::cells::width(line) <= width, "{width}: {line}");
        }
    }
}

#[test]
fn removed_refs_of_a_merged_lane_are_not_shown() {
    let snapshot = "refs/lanewright/checkpoint/P1-SL-1/x";
    let taken = Event::snapshot(
        lane("SL-1"),
        Some(agent("engineer")),
        lanewright_model::event::SnapshotReason::Failure,
        commit('e'),
        snapshot.to_owned(),
    );
    let merged = Story::begun().opened("SL-1", 1).then(taken).merged("SL-1", 'd');
    let cleaned = |kept: &[&str]| {
        let kept = kept.iter().map(|kept| (*kept).to_owned()).collect();
        page(&merged.clone().then(Event::LaneCleaned { lane: lane("SL-1"), kept }), 100, false)
    };
    let text = cleaned(&[]);
    assert!(!text.contains("lane/P1/SL-1") && !text.contains(snapshot), "{text}");
    let text = cleaned(&[&format!("{snapshot}: it is locked")]);
    assert!(text.contains(&format!("snapshot  {snapshot}")), "{text}");
}
