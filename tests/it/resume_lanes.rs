//! Resuming some lanes of a run, and trying one again.

use crate::support::{RUN, TestEnv, wait_until};

/// `A` and `B` fail until something outside is fixed; `C` depends on `A`.
fn failed() -> TestEnv {
    let env = TestEnv::new();
    let lane = |id: &str, depends_on: &str| {
        let fixed = id.to_lowercase();
        format!(
            "[[lane]]\nid = \"{id}\"\nretries = 1\ndepends_on = [{depends_on}]\n\
             command = 'test -e \"$SCRATCH/{fixed}\" && echo {id} > {fixed}.txt'\n"
        )
    };
    env.plan(&format!("{}{}{}", lane("A", ""), lane("B", ""), lane("C", "\"A\"")));
    env.execute(&[]).exits(1);
    for file in ["a", "b", "c"] {
        env.write(&format!("scratch/{file}"), "");
    }
    env
}

fn attempts(env: &TestEnv, lane: &str) -> usize {
    env.events("job_planned").iter().filter(|job| job["lane"] == lane && job["task"] == "1").count()
}

fn state(env: &TestEnv, lane: &str) -> String {
    let status = env.lanewright(&["status", RUN, "--format", "json"]).exits(0).json();
    let lanes = status["lanes"].as_array().expect("lanes");
    let found = lanes.iter().find(|it| it["lane"] == lane).expect("the lane");
    found["state"].as_str().expect("a state").to_owned()
}

#[test]
fn resume_of_named_lanes_leaves_the_others() {
    let env = failed();
    env.lanewright(&["resume", "--lane", "B"]).exits(0);
    assert_eq!((attempts(&env, "A"), attempts(&env, "B"), attempts(&env, "C")), (3, 4, 0));
    assert_eq!([state(&env, "A"), state(&env, "B"), state(&env, "C")], ["failed", "merged", "blocked"]);
    env.resume(&[]).exits(0);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn a_lane_that_is_named_brings_what_it_depends_on() {
    let env = failed();
    env.lanewright(&["resume", "--lane", "C"]).exits(0);
    assert_eq!([state(&env, "A"), state(&env, "B"), state(&env, "C")], ["merged", "failed", "merged"]);
}

#[test]
fn retry_of_a_lane_includes_its_dependants() {
    let env = failed();
    std::fs::remove_file(env.path("scratch/a")).expect("a file");
    env.lanewright(&["retry", "A"]).exits(1);
    assert_eq!((attempts(&env, "A"), attempts(&env, "B")), (6, 3), "its retries are fresh, and B is left alone");
    env.write("scratch/a", "");
    env.lanewright(&["retry", RUN, "A", "-m", "look at the fixture"]).exits(0);
    assert!(env.attempt_file("A", "agent", 7, "prompt.md").contains("look at the fixture"));
    assert_eq!([state(&env, "A"), state(&env, "B"), state(&env, "C")], ["merged", "failed", "merged"]);
    env.lanewright(&["retry", "B"]).exits(0);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn unselected_lanes_stay_stopped_until_resumed() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\ncommand = 'touch \"$SCRATCH/a\"; wait-for go; echo a > a.txt'\n\
         [[lane]]\nid = \"B\"\ncommand = 'touch \"$SCRATCH/b\"; wait-for go; echo b > b.txt'\n\
         [[lane]]\nid = \"W\"\napproval = [\"plan\"]\ncommand = 'echo w > w.txt'\n",
    );
    let running = env.start(&["--max-parallel", "3"]);
    wait_until("both", || env.path("scratch/a").exists() && env.path("scratch/b").exists());
    wait_until("the question", || state(&env, "W") == "waiting for approval (plan)");
    env.lanewright(&["stop"]).exits(0);
    running.wait().exits(143);
    env.write("scratch/go", "");
    env.lanewright(&["resume", "--lane", "A"]).exits(0);
    assert_eq!([state(&env, "A"), state(&env, "B")], ["merged", "stopped"]);
    assert_eq!(state(&env, "W"), "waiting for approval (plan)", "a question stays open");
    assert_eq!(attempts(&env, "B"), 1);
    env.resume(&[]).exits(3);
    env.lanewright(&["approve", "W", "--resume"]).exits(0);
    assert!(["a.txt", "b.txt", "w.txt"].iter().all(|file| env.holds("main", file)));
}

/// A merge that a crash kept from the run log is no commit of the user's, also once other lanes ended the run.
#[test]
fn interrupted_step_is_no_manual_change() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\nagent_worktrees = \"on\"\ncommand = 'echo a > a.txt'\n\
         [[lane]]\nid = \"B\"\ncommand = 'wait-for go; echo b > b.txt'\n",
    );
    let plan = env.path("plan.toml");
    let run = ["run", plan.to_str().expect("UTF-8"), "--max-parallel", "2", "--run-id", RUN];
    env.lanewright_with(&run, |command| command.env("LANEWRIGHT_CRASH_POINT", "after_merge_agent:1")).exits(137);
    env.write("scratch/go", "");
    env.lanewright(&["resume", "--lane", "B"]).exits(0);
    let resumed = env.resume(&[]).exits(0);
    assert!(!resumed.stderr.contains("kept as"), "{}", resumed.stderr);
    assert!(["a.txt", "b.txt"].iter().all(|file| env.holds("main", file)));
}

#[test]
fn an_answer_is_shown_until_its_lane_is_resumed() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\napproval = [\"changes\"]\ncommand = 'echo l > l.txt'\n\
         [[lane]]\nid = \"M\"\nretries = 0\ncommand = 'exit 1'\n",
    );
    env.execute(&[]).exits(1);
    env.lanewright(&["approve", "L"]).exits(0);
    env.lanewright(&["retry", "M"]).exits(1).says(&[" · 1 failed · 1 approved\n", "lanewright retry r1 M -m"]);
    let status = env.lanewright(&["status"]).exits(0).stdout;
    assert!(status.contains("\nL: approved, resume to merge\n"), "{status}");
}

#[test]
fn a_lane_with_nothing_to_do_is_refused() {
    let env = failed();
    env.lanewright(&["resume", "--lane", "D"]).exits(2).says(&["the run has no lane `D`"]);
    env.lanewright(&["resume", "--lane", "B"]).exits(0);
    env.lanewright(&["resume", "--lane", "B"]).exits(7).says(&["lane B is done"]);
    env.lanewright(&["retry", "B"]).exits(7).says(&["lane B is done"]);
    env.lanewright(&["retry"]).exits(2).says(&["no lane is named"]);
    let waits = TestEnv::new();
    waits.plan("[[lane]]\nid = \"L\"\napproval = [\"plan\"]\ncommand = 'true'\n");
    waits.execute(&[]).exits(3);
    waits.lanewright(&["retry", "L"]).exits(7).says(&["neither failed nor is it blocked"]).hints("resume r1 --lane L");
}

#[test]
fn dependant_of_skipped_lane_runs_without_its_work() {
    let env = failed();
    std::fs::remove_file(env.path("scratch/a")).expect("a file");
    let said = env.lanewright(&["skip", "A", "-m", "not needed"]).exits(0).stdout;
    assert!(said.contains("Lane A is skipped; C will go on without its work. Its work is kept."), "{said}");
    assert!(said.contains("lanewright rollback r1 --lane A"), "{said}");
    assert_eq!(state(&env, "A"), "skipped");
    let status = env.lanewright(&["status"]).exits(0).stdout;
    assert!(status.lines().any(|line| line.starts_with("A ") && line.contains("not needed")), "{status}");
    env.resume(&[]).exits(0);
    assert_eq!([state(&env, "A"), state(&env, "B"), state(&env, "C")], ["skipped", "merged", "merged"]);
    assert!(env.git(&["branch", "--list", "lane/*"]).contains("lane/P1/A"), "its branch is kept");
    env.lanewright(&["skip", "B"]).exits(7).says(&["lane B is done"]);
}

#[test]
fn a_skipped_lane_is_taken_in_again_by_a_rollback() {
    let env = failed();
    env.lanewright(&["skip", "A"]).exits(0);
    env.lanewright(&["rollback", "--lane", "A"]).exits(0);
    env.resume(&[]).exits(0);
    assert_eq!([state(&env, "A"), state(&env, "B"), state(&env, "C")], ["merged", "merged", "merged"]);
}

/// The command that the text after `label` consists of, run with the yes that undoing merged work needs.
fn run_printed(env: &TestEnv, text: &str, label: &str) -> crate::support::Ended {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(label));
    let words: Vec<&str> = line.unwrap_or_else(|| panic!("no `{label}`: {text}")).split(' ').collect();
    env.lanewright(&[&words[1..], &["--yes"]].concat())
}

#[test]
fn rollback_printed_by_skip_works_after_later_merges() {
    let env = failed();
    let said = env.lanewright(&["skip", "A"]).exits(0).stdout;
    env.resume(&[]).exits(0);
    env.lanewright(&["rollback", "r1", "--lane", "A"])
        .exits(2)
        .says(&["the lanes that depend on it and have begun: C"])
        .hints("lanewright rollback r1 --lane A --lane C");
    env.lanewright(&["retry", "A"]).exits(7).says(&["lane A is skipped"]).hints("rollback r1 --lane A --lane C");
    env.lanewright(&["skip", "A"]).exits(7).says(&["lane A is skipped"]).hints("rollback r1 --lane A --lane C");
    run_printed(&env, &said, "To take it in again: ").exits(0);
    assert_eq!([state(&env, "A"), state(&env, "C")], ["rolled back", "rolled back"]);
    env.lanewright(&["diff", "C"]).exits(8).says(&["it was rolled back"]).hints("lanewright checkpoints list r1");
    env.resume(&[]).exits(0);
    assert_eq!([state(&env, "A"), state(&env, "B"), state(&env, "C")], ["merged", "merged", "merged"]);
}

#[test]
fn skipped_lane_can_be_restored_by_rollback() {
    let env = failed();
    env.lanewright(&["skip", "C", "--resume"]).exits(0);
    env.lanewright(&["rollback", "r1", "--lane", "C"]).exits(0);
    env.resume(&[]).exits(0);
    assert_eq!((state(&env, "C").as_str(), attempts(&env, "C")), ("merged", 1));
}

#[test]
fn lane_with_unrecorded_merge_cannot_be_skipped() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    let plan = env.path("plan.toml");
    let words = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", RUN];
    let ended = env.lanewright_with(&words, |command| command.env("LANEWRIGHT_CRASH_POINT", "after_publish_merge:1"));
    assert!(ended.was_killed() && env.holds("main", "a.txt"));
    env.lanewright(&["skip", "A"]).exits(7).says(&["it cannot be skipped now"]).hints("lanewright resume r1");
    env.resume(&[]).exits(0);
}

#[test]
fn status_after_skip_shows_ready_lanes_and_answers() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'exit 1'\n\
         [[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\ncommand = 'echo b > b.txt'\n\
         [[lane]]\nid = \"C\"\ndepends_on = [\"B\"]\ncommand = 'echo c > c.txt'\n\
         [[lane]]\nid = \"L\"\napproval = [\"changes\"]\ncommand = 'echo l > l.txt'\n",
    );
    env.execute(&[]).exits(1);
    env.lanewright(&["approve", "L"]).exits(0);
    env.lanewright(&["skip", "A"]).exits(0);
    let status = env.lanewright(&["status"]).exits(0).stdout;
    assert!(status.starts_with("P1 · stopped · 0/3 lanes"), "{status}");
    let row = |lane: &str, note: &str| status.lines().any(|row| row.starts_with(lane) && row.ends_with(note));
    assert!(row("B     waiting", "ready, resume to start") && row("C     waiting", "after B"), "{status}");
    assert!(status.contains("\nL: approved, resume to merge\n"), "{status}");
    assert_eq!(status.matches("lanewright resume r1").count(), 1, "{status}");
    assert!(status.contains("\nB is ready. Resume the run, or roll it back:\n  lanewright resume r1\n"), "{status}");
    env.resume(&[]).exits(0);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "b.txt", "c.txt", "l.txt"]);
}

#[test]
fn earlier_failure_does_not_trigger_fail_fast() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'exit 1'\n\
         [[lane]]\nid = \"B\"\ncommand = 'wait-for b && echo b > b.txt'\n",
    );
    env.execute(&["--fail-fast"]).exits(1);
    env.write("scratch/b", "");
    env.lanewright(&["resume", "--lane", "B"]).exits(0);
    assert_eq!([state(&env, "A"), state(&env, "B")], ["failed", "merged"]);
}

#[test]
fn lane_can_be_skipped_before_it_starts() {
    let env = failed();
    std::fs::remove_file(env.path("scratch/c")).expect("a file");
    env.lanewright(&["skip", "C", "--resume"]).exits(0).says(&["no other lane depends on it"]);
    assert_eq!(attempts(&env, "C"), 0);
    assert_eq!([state(&env, "A"), state(&env, "B"), state(&env, "C")], ["merged", "merged", "skipped"]);
}

#[test]
fn several_lanes_are_retried_at_once() {
    let env = failed();
    env.lanewright(&["retry", "A", "NOSUCH"]).exits(2).says(&["the run has no lane `NOSUCH`"]).hints("it has A, B, C");
    env.lanewright(&["retry", "B", "A", "B", "-m", "look at the fixture"]).exits(0);
    assert_eq!((attempts(&env, "A"), attempts(&env, "B")), (4, 4));
    for (lane, told) in [("A", true), ("B", true), ("C", false)] {
        let attempt = if lane == "C" { 1 } else { 4 };
        let prompt = env.attempt_file(lane, "agent", attempt, "prompt.md");
        assert_eq!(prompt.contains("look at the fixture"), told, "{lane}: {prompt}");
    }
    env.assert_nothing_left(&["main"]);
}

#[test]
fn retried_agent_works_before_the_failed_tests_rerun() {
    let tested = || {
        let env = TestEnv::new();
        env.plan(
            "[[lane]]\nid = \"A\"\nretries = 0\ntests = ['echo test >> \"$SCRATCH/log\"; test -e good.txt']\n\
             command = 'echo agent >> \"$SCRATCH/log\"; cp \"$LANEWRIGHT_PROMPT_FILE\" \"$SCRATCH/prompt\"; \
             echo $LANEWRIGHT_ATTEMPT > a.txt; test $LANEWRIGHT_ATTEMPT -eq 1 || echo > good.txt'\n",
        );
        env.execute(&[]).exits(1);
        env
    };
    let env = tested();
    env.lanewright(&["retry", "A"]).exits(0);
    assert_eq!(env.scratch("log"), "agent\ntest\nagent\ntest\n");
    assert!(env.scratch("prompt").contains("the lane's tests failed"), "{}", env.scratch("prompt"));
    let resumed = tested();
    resumed.resume(&[]).exits(0);
    assert_eq!(resumed.scratch("log"), "agent\ntest\ntest\nagent\ntest\n");
}

/// `L` waits for an approval, `M` failed, and `N`, which depends on `M`, waits for it.
fn failed_beside_a_question() -> TestEnv {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\napproval = [\"changes\"]\ncommand = 'echo l > l.txt'\n\
         [[lane]]\nid = \"M\"\nretries = 0\ncommand = 'exit 1'\n\
         [[lane]]\nid = \"N\"\ndepends_on = [\"M\"]\ncommand = 'echo n > n.txt'\n\
         [[lane]]\nid = \"O\"\ndepends_on = [\"L\"]\ncommand = 'echo o > o.txt'\n",
    );
    env.execute(&[]).exits(1);
    env
}

#[test]
fn resuming_answer_does_not_restart_failed_lanes() {
    let env = failed_beside_a_question();
    env.lanewright(&["reject", "L", "-m", "shorter", "--resume"]).exits(1).says(&["lanewright retry r1 M"]);
    assert_eq!((attempts(&env, "L"), attempts(&env, "M")), (2, 1));
    env.lanewright(&["approve", "L", "--resume"]).exits(1);
    assert_eq!(attempts(&env, "M"), 1);
    assert_eq!(["L", "M", "N", "O"].map(|lane| state(&env, lane)), ["merged", "failed", "blocked", "merged"]);
    env.resume(&[]).exits(1);
    assert_eq!(attempts(&env, "M"), 2, "a resume starts them");
}

#[test]
fn unneeded_answer_is_refused_with_next_command() {
    let env = failed_beside_a_question();
    env.lanewright(&["approve", "L"]).exits(0);
    env.lanewright(&["approve", "L", "--resume"]).exits(7).says(&["approved already"]).hints("lanewright resume r1");
    env.lanewright(&["approve"]).exits(7).says(&["no lane of run r1 waits"]).hints("lanewright resume r1");
    env.lanewright(&["approve", "M"]).exits(7).hints("lanewright retry r1 M");
    env.resume(&[]).exits(1);
    env.lanewright(&["reject", "L", "-m", "no"]).exits(7).hints("lanewright rollback r1 --lane L");
}

#[test]
fn unknown_lane_is_refused_with_lane_names() {
    let env = failed();
    env.lanewright(&["retry", "NOSUCH"]).exits(8).hints("the lanes of run r1: A, B, C");
}
