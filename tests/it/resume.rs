//! Going on with a run, and beginning another one beside it.

use crate::support::{TestEnv, wait_until};

/// Fails until somebody puts a file into place. A second run finds the work of `A` done.
const NEEDS_HELP: &str = "[[lane]]\nid = \"A\"\nretries = 0\nallow_empty = true\ncommand = 'echo began >> \"$SCRATCH/a\"; echo a > a.txt'\n\
     [[lane]]\nid = \"B\"\nretries = 0\ncommand = '[ -e \"$SCRATCH/help\" ] && echo b > b.txt'\n\
     [[lane]]\nid = \"C\"\ndepends_on = [\"A\", \"B\"]\ncommand = 'cat a.txt b.txt > c.txt'\n";

fn failed() -> TestEnv {
    let env = TestEnv::new();
    env.plan(NEEDS_HELP);
    env.execute(&[]).exits(1);
    env
}

#[test]
fn resume_repeats_only_failed_work() {
    let env = failed();
    env.write("scratch/help", "");
    let resumed = env.resume(&[]).exits(0);
    for said in ["Current stage", "checkpoints.json", "Next actions", "before_lane_start", "lanewright rollback r1"] {
        assert!(resumed.stderr.contains(said), "it does not say {said}:\n{}", resumed.stderr);
    }
    let header = resumed.stderr.lines().skip_while(|line| !line.starts_with("Resuming run"));
    let header: Vec<&str> = header.take_while(|line| !line.contains("run resumed")).collect();
    assert!(header.len() <= 5, "{header:#?}");
    assert_eq!(env.scratch("a"), "began\n");
    assert_eq!(env.file_at("main", "c.txt"), "a\nb");
    env.assert_nothing_left(&["main"]);
}

#[test]
fn the_flag_takes_the_latest_unfinished_run_of_the_plan() {
    let env = failed();
    env.write("scratch/help", "");
    let plan = env.path("plan.toml");
    env.lanewright(&["execute-phase", plan.to_str().expect("UTF-8"), "--resume"]).exits(0);
    assert_eq!(env.events("run_resumed").len(), 1);
}

#[test]
fn start_beside_an_unfinished_run_is_refused() {
    let env = failed();
    let refs = env.refs();
    env.execute(&["--run-id", "r2"]).says(&["r1"]).hints("--resume").hints("--new-run").exits(7);
    assert_eq!(env.refs(), refs);
    assert!(!env.path("repo/.claude/ai-dev-kit/run-logs/r2.jsonl").exists());
}

#[test]
fn new_run_beside_unfinished_run_uses_own_branches() {
    let env = failed();
    env.execute(&["--run-id", "r2", "--new-run"]).exits(1);
    let branches = env.refs();
    for branch in ["refs/heads/lane/P1/B", "refs/heads/lane/P1/B-r2"] {
        assert!(branches.iter().any(|name| name == branch), "{branches:?}");
    }
    env.write("scratch/help", "");
    env.lanewright(&["resume", "r2"]).exits(0);
    assert_eq!(env.file_at("main", "c.txt"), "a\nb");
}

#[test]
fn complete_run_cannot_be_resumed() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    env.execute(&[]).exits(0);
    env.resume(&[]).exits(7).says(&["r1", "complete"]);
    env.execute(&["--resume"]).exits(7);
}

#[test]
fn unknown_run_cannot_be_resumed() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'true'\n");
    env.lanewright(&["resume"]).exits(8);
    env.resume(&[]).exits(8).says(&["r1"]);
    let plan = env.path("plan.toml");
    env.lanewright(&["execute-phase", plan.to_str().expect("UTF-8"), "--resume"]).exits(8).hints("execute-phase");
    assert!(!env.path("repo/.claude/ai-dev-kit/run-logs/r1.jsonl").exists());
}

#[test]
fn changed_plan_is_refused_with_its_changes() {
    let env = failed();
    let changed =
        env.read("plan.toml").replace("[ -e \"$SCRATCH/help\" ] && ", "").replace("[\"A\", \"B\"]", "[\"B\"]");
    env.write("plan.toml", changed + "[[lane]]\nid = \"D\"\ncommand = 'echo d > d.txt'\n");
    let log = env.log().len();
    env.resume(&[]).exits(2).says(&["lane B", "lane C", "lane D"]).hints("--accept-plan-change");
    assert_eq!(env.log().len(), log);
    env.resume(&["--accept-plan-change"]).exits(0);
    assert!(env.holds("main", "d.txt") && env.holds("main", "c.txt"));
    assert_eq!(env.scratch("a"), "began\n");
}

#[test]
fn a_plan_that_is_gone_is_used_as_it_was_pinned() {
    let env = failed();
    std::fs::remove_file(env.path("plan.toml")).expect("the plan");
    env.write("scratch/help", "");
    env.resume(&[]).exits(0).says(&["is gone"]);
}

#[test]
fn a_run_that_is_alive_belongs_to_who_runs_it() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'touch \"$SCRATCH/began\"; wait-for go; echo a > a.txt'\n");
    let run = env.start(&[]);
    wait_until("the agent", || env.path("scratch/began").exists());
    env.resume(&[]).exits(4).says(&["r1"]);
    let second = env.execute(&["--run-id", "r2"]);
    assert!(second.code == 4 || second.code == 7, "{second:?}");
    assert!(!env.path("repo/.claude/ai-dev-kit/run-logs/r2.jsonl").exists());
    env.write("scratch/go", "");
    run.wait().exits(0);
    assert_eq!(env.events("job_planned").len(), 1);
}

/// Where the run log is, below the test's directory.
const LOG: &str = "repo/.claude/ai-dev-kit/run-logs/r1.jsonl";

#[test]
fn torn_last_line_of_the_log_is_ignored() {
    let env = failed();
    let whole = env.read(LOG);
    env.write(LOG, format!("{whole}{}", &whole.lines().next_back().expect("a line")[..40]));
    env.write("scratch/help", "");
    env.resume(&[]).exits(0);
    assert!(env.read(LOG).starts_with(&whole));
    assert_eq!(env.scratch("a"), "began\n");
}

#[test]
fn log_damaged_in_the_middle_is_refused_untouched() {
    let env = failed();
    let damaged = env.read(LOG).replacen("lane_based", "lane_bused", 1);
    let line = damaged.lines().position(|line| line.contains("lane_bused")).expect("a line") + 1;
    env.write(LOG, &damaged);
    env.write("scratch/help", "");
    env.resume(&[]).exits(6).says(&["r1.jsonl", &format!("line {line}")]);
    assert_eq!(env.read(LOG), damaged);
    assert!(!env.holds("main", "c.txt"));
}

#[test]
fn plan_without_a_started_lane_is_never_accepted() {
    let env = TestEnv::new();
    let lane = |id: &str, command: &str| format!("[[lane]]\nid = \"{id}\"\nretries = 0\ncommand = '{command}'\n");
    let both = lane("A", "echo a > a.txt") + &lane("B", "[ -e \"$SCRATCH/fixed\" ] && echo b > b.txt");
    env.plan(&both);
    env.execute(&[]).exits(1);
    env.plan(&lane("A", "echo a > a.txt"));
    env.resume(&["--accept-plan-change"]).exits(2).says(&["does not fit what run r1 did"]);
    env.plan(&both);
    env.write("scratch/fixed", "");
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "b.txt"));
}

#[test]
fn resume_message_reaches_the_chosen_agents() {
    let env = TestEnv::new();
    env.plan(
        "[defaults]\nretries = 0\n[[lane]]\nid = \"A\"\ncommand = 'exit 1'\n[[lane]]\nid = \"B\"\ncommand = 'exit 1'\n",
    );
    env.execute(&[]).exits(1);
    env.resume(&["-m", "not that one", "--message-for", "C"]).says(&["lane `C`"]).exits(2);
    assert_eq!(env.events("run_resumed").len(), 0);
    env.resume(&["-m", "use the other library"]).exits(1);
    env.resume(&["-m", "only yours", "--message-for", "B"]).exits(1);
    let prompt = |lane: &str, attempt| env.attempt_file(lane, "agent", attempt, "prompt.md");
    for lane in ["A", "B"] {
        assert!(!prompt(lane, 1).contains("What people said"));
        assert!(prompt(lane, 2).contains("## What people said\n\n- use the other library"), "{}", prompt(lane, 2));
    }
    assert!(prompt("B", 3).contains("- use the other library\n- only yours") && !prompt("A", 3).contains("only yours"));
}

#[test]
fn panicking_step_stops_run_and_resume_repeats_it() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'echo x > x.txt'\n");
    let plan = env.path("plan.toml");
    let start = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1"];
    let crash = ("LANEWRIGHT_CRASH_POINT", "panic_before_commit_work:1");
    let stopped = env.lanewright_with(&start, |command| command.env(crash.0, crash.1)).exits(3);
    stopped.says(&["the run stopped: `commit_work` panicked", "panic_before_commit_work"]).hints("lanewright resume");
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "x.txt"));
    env.assert_nothing_left(&["main"]);
}

/// Where the run's plan is pinned, below the test's directory.
const PINNED: &str = "repo/.claude/ai-dev-kit/run-logs/r1/plan.json";

/// Changes the pinned plan so that B passes at once.
fn edit_pinned_plan(env: &TestEnv) {
    let pinned = env.read(PINNED);
    let edited = pinned.replace("[ -e \\\"$SCRATCH/help\\\" ] && echo b > b.txt", "echo b > b.txt");
    assert_ne!(edited, pinned);
    env.write(PINNED, edited);
}

#[test]
fn edited_pinned_plan_is_refused_and_fixed_by_doctor() {
    let env = failed();
    edit_pinned_plan(&env);
    env.resume(&[]).exits(6).says(&["plan.json", "changed by another program"]).hints("doctor r1 --fix");
    env.lanewright(&["rollback", "r1"]).exits(6);
    assert!(env.lanewright(&["doctor", "r1"]).exits(6).stdout.contains("plan-mismatch"));
    env.lanewright(&["doctor", "r1", "--fix"]).exits(0);
    env.resume(&[]).exits(1);
    assert!(!env.holds("main", "b.txt"));
    env.write("scratch/help", "");
    env.resume(&[]).exits(0);
}

/// Changes the plan's file so that B writes `text`.
fn rewrite_plan(env: &TestEnv, text: &str) {
    env.plan(&NEEDS_HELP.replace("echo b > b.txt", &format!("echo {text} > b.txt")));
}

#[test]
fn accepted_plan_replaces_an_edited_pinned_plan() {
    for edit in [
        edit_pinned_plan as fn(&TestEnv),
        |env| env.write(PINNED, "{"),
        |env| {
            env.write(PINNED, env.read(PINNED).replace("\"B\"", "\"X\""));
        },
    ] {
        let env = failed();
        edit(&env);
        rewrite_plan(&env, "accepted");
        env.resume(&[]).exits(6).hints("--accept-plan-change");
        env.resume(&["--accept-plan-change"]).exits(1);
        // The run has recorded the plan that it uses now.
        env.write("scratch/help", "");
        env.resume(&[]).exits(0);
        assert!(env.git(&["show", "main:b.txt"]).contains("accepted"));
    }
}

#[test]
fn edited_pinned_plan_is_accepted_without_a_plan_file() {
    let env = failed();
    edit_pinned_plan(&env);
    std::fs::remove_file(env.path("plan.toml")).expect("the plan");
    env.resume(&[]).exits(6).hints("--accept-plan-change");
    env.resume(&["--accept-plan-change"]).exits(0).says(&["is gone"]);
}

#[test]
fn accepted_plan_is_the_base_of_later_changes() {
    let env = failed();
    let first = env.read("plan.toml");
    rewrite_plan(&env, "second");
    env.resume(&["--accept-plan-change"]).exits(1);
    env.write("plan.toml", &first);
    env.resume(&[]).exits(2).says(&["has changed since run r1 started"]).hints("--accept-plan-change");
    // What the doctor writes is the accepted plan, or nothing.
    std::fs::remove_file(env.path(PINNED)).expect("the pinned plan");
    env.lanewright(&["doctor", "r1", "--fix"]).exits(6);
    rewrite_plan(&env, "second");
    env.lanewright(&["doctor", "r1", "--fix"]).exits(0);
    env.write("plan.toml", &first);
    env.write("scratch/help", "");
    env.resume(&["--accept-plan-change"]).exits(0);
    assert_eq!(env.file_at("main", "b.txt"), "b");
}

#[test]
fn a_plan_is_accepted_only_by_a_resume_that_begins() {
    let env = failed();
    env.write("scratch/help", "");
    env.resume(&[]).exits(0);
    let pinned = env.read(PINNED);
    rewrite_plan(&env, "late");
    env.resume(&["--accept-plan-change"]).exits(7);
    assert_eq!(env.read(PINNED), pinned);
    env.lanewright(&["rollback", "r1", "--yes"]).exits(0);
}

#[test]
fn removed_pinned_plan_is_written_again() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\nretries = 0\nenv = { V = \"visible\" }\ncommand = '[ -e \"$SCRATCH/go\" ] && rm -rf \"$SCRATCH/../repo/.claude\"'\n");
    env.execute(&["--retries", "1"]).exits(1);
    let pinned = env.read(PINNED);
    env.write("repo/lanewright.toml", "redact = [\"visible\"]\n");
    env.write("scratch/go", "");
    env.resume(&[]);
    assert_eq!(env.read(PINNED), pinned);
}

#[test]
fn run_of_a_newer_plan_version_is_not_resumed() {
    let env = failed();
    let pinned = "repo/.claude/ai-dev-kit/run-logs/r1/plan.json";
    env.write(pinned, env.read(pinned).replacen("\"owns\"", "\"sealed_until\":\"review\",\"owns\"", 1));
    env.write("scratch/help", "");
    env.resume(&[]).exits(2).says(&["lanes.0.sealed_until"]).hints("--allow-unknown");
    env.resume(&["--allow-unknown"]).exits(0);
}

#[test]
fn run_with_unknown_plan_key_resumes_if_unchanged() {
    let env = TestEnv::new();
    env.plan(&format!("{NEEDS_HELP}aproval = [\"changes\"]\n"));
    env.execute(&[]).exits(2).says(&["a lane has no key `aproval`"]);
    env.execute(&["--allow-unknown"]).exits(1);
    env.write("scratch/help", "");
    env.resume(&[]).exits(0);
}

/// A lane whose agent notes each of its attempts, and a gate that needs a file in `$SCRATCH`.
fn gated(gate: &str, retries: u32) -> String {
    format!(
        "{gate}[[lane]]\nid = \"A\"\nretries = {retries}\n\
         command = 'echo \"$LANEWRIGHT_ATTEMPT\" >> \"$SCRATCH/attempts\"; echo a > a.txt'\n"
    )
}

/// The three kinds of gates of a lane; `KEY` is their command.
const GATES: [&str; 3] =
    ["gates = { atomic = 'KEY' }\n", "gates = { checkpoint = 'KEY' }\n", "defaults = { tests = 'KEY' }\n"];

const NEEDS_FILE: &str = "[ -e \"$SCRATCH/fixed\" ]";

#[test]
fn resume_runs_failed_gate_before_new_attempt() {
    for gate in GATES {
        let env = TestEnv::new();
        env.plan(&gated(&gate.replace("KEY", NEEDS_FILE), 0));
        env.execute(&[]).exits(1);
        env.write("scratch/fixed", "");
        let resumed = env.resume(&[]).exits(0);
        assert_eq!(env.scratch("attempts"), "1\n", "{gate}");
        assert!(!resumed.stderr.contains("nobody watched"), "{}", resumed.stderr);
        env.assert_nothing_left(&["main"]);
    }
}

#[test]
fn gate_failing_again_after_resume_uses_no_retry() {
    for gate in GATES {
        let env = TestEnv::new();
        env.plan(&gated(&gate.replace("KEY", NEEDS_FILE), 0));
        env.execute(&[]).exits(1);
        env.resume(&[]).exits(1);
        // Without retries the agent gets one attempt in each life of the run, as if the gate had not been run again.
        assert_eq!(env.scratch("attempts"), "1\n2\n", "{gate}");
        let levels: Vec<String> = env.events("retry_planned").iter().map(|event| event["level"].to_string()).collect();
        assert_eq!(levels, ["\"wait\""], "{gate}");
    }
}

#[test]
fn corrected_gate_or_work_passes_without_an_agent() {
    let env = TestEnv::new();
    env.plan(&gated("gates = { atomic = 'false' }\n", 0));
    env.execute(&[]).exits(1);
    env.plan(&gated("gates = { atomic = 'true' }\n", 0));
    env.resume(&["--accept-plan-change"]).exits(0);
    assert_eq!(env.scratch("attempts"), "1\n");

    let env = TestEnv::new();
    env.plan(&gated("gates = { atomic = 'grep -q good a.txt' }\n", 0));
    env.execute(&[]).exits(1);
    let worktree = env.events("worktree_opened").pop().expect("one");
    let path = std::path::Path::new(worktree["worktree"]["path"].as_str().expect("a path")).join("a.txt");
    std::fs::write(path, "good\n").expect("a file");
    env.resume(&["--on-conflict", "override"]).exits(0);
    assert_eq!((env.scratch("attempts").as_str(), env.file_at("main", "a.txt").as_str()), ("1\n", "good"));
}

#[test]
fn a_run_that_had_not_begun_names_the_command_that_starts_it() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    let died = env.lanewright_with(&["execute-phase", "../plan.toml", "--run-id", "r1"], |command| {
        command.env("LANEWRIGHT_CRASH_POINT", "before_check_lane:1")
    });
    died.exits(137);
    env.lanewright(&["resume", "r1"]).exits(8).hints("to start it: lanewright execute-phase");
    env.lanewright(&["execute-phase", "../plan.toml"]).exits(0);
}
