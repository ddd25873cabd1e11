//! People who are asked before the work begins and before it is merged.

use crate::support::{STATE, TestEnv, wait_until};

fn waiting(approval: &str) -> TestEnv {
    let env = TestEnv::new();
    env.plan(&format!(
        "[[lane]]\nid = \"L\"\napproval = [\"{approval}\"]\ncommand = 'echo \"draft $LANEWRIGHT_ATTEMPT\" > work.txt'\n\
         [[lane]]\nid = \"M\"\ncommand = 'echo m > m.txt'\n\
         [[lane]]\nid = \"N\"\ndepends_on = [\"L\"]\ncommand = 'cat work.txt > n.txt'\n"
    ));
    env.execute(&["--max-parallel", "2"]).exits(3).says(&["approve"]);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "m.txt"], "only what nobody is asked about is merged");
    env
}

fn attempts(env: &TestEnv) -> usize {
    env.events("job_planned").iter().filter(|job| job["lane"] == "L" && job["task"] == "1").count()
}

#[test]
fn plan_approval_precedes_implementation() {
    let env = waiting("plan");
    assert_eq!(attempts(&env), 0);
    env.lanewright(&["approve", "r1", "L", "-m", "mind the index"]).exits(0);
    env.resume(&[]).exits(0);
    assert_eq!(env.file_at("main", "n.txt"), "draft 1");
    assert!(env.attempt_file("L", "agent", 1, "prompt.md").contains("mind the index"));
    env.assert_nothing_left(&["main"]);
}

#[test]
fn changes_approval_precedes_the_merge() {
    let env = waiting("changes");
    assert_eq!(attempts(&env), 1);
    env.lanewright(&["approve", "r1", "L"]).exits(0);
    env.resume(&[]).exits(0);
    assert_eq!(env.file_at("main", "n.txt"), "draft 1");
    assert_eq!(attempts(&env), 1, "the work was done again");
    env.assert_nothing_left(&["main"]);
}

#[test]
fn rejected_changes_go_back_with_what_was_said() {
    let env = waiting("changes");
    let said = env.lanewright(&["reject", "r1", "L", "-m", "too long"]).exits(0).stdout;
    assert!(said.contains("The changes of L were rejected"), "{said}");
    env.resume(&[]).exits(3);
    assert!(env.attempt_file("L", "agent", 2, "prompt.md").contains("too long"));
    env.lanewright(&["approve", "r1", "L"]).exits(0);
    env.resume(&[]).exits(0);
    assert_eq!(env.file_at("main", "n.txt"), "draft 2");
}

#[test]
fn a_resume_without_an_answer_goes_on_waiting() {
    let env = waiting("changes");
    env.resume(&[]).exits(3);
    assert_eq!(attempts(&env), 1);
    assert!(!env.holds("main", "work.txt"));
}

#[test]
fn a_run_that_is_alive_takes_the_answer_at_once() {
    let env = TestEnv::new();
    env.plan(
        "defaults = { allow_empty = true }\n[[lane]]\nid = \"L\"\napproval = [\"plan\"]\ncommand = 'touch \"$SCRATCH/approved\"'\n\
         [[lane]]\nid = \"M\"\ncommand = 'touch \"$SCRATCH/m\"; wait-for approved'\n",
    );
    let run = env.start(&["--max-parallel", "2"]);
    crate::support::wait_until("the other lane", || env.path("scratch/m").exists());
    crate::support::wait_until("the question", || {
        env.events("lane_moved").iter().any(|moved| moved["lane"] == "L" && moved["to"] == "SYNTHESIS")
    });
    env.lanewright(&["approve", "r1", "L"]).exits(0);
    run.wait().exits(0);
}

#[test]
fn an_answer_without_a_question_is_refused() {
    let env = waiting("changes");
    env.lanewright(&["approve", "r1", "M"]).exits(7);
    env.lanewright(&["approve", "r1", "L", "--gate", "plan"]).exits(7).says(&["changes"]);
    env.lanewright(&["approve", "r1", "X"]).exits(2);
    env.lanewright(&["approve", "r9", "L"]).exits(8);
}

/// Leaves an answer as a Lanewright does that took it and died.
fn leave_taken(env: &TestEnv, approved: bool) {
    let answer = serde_json::json!({"request": "answer", "lane": "L", "gate": "changes", "approved": approved, "message": "as seen"});
    env.write(&format!("repo/{STATE}/r1/requests/{}.taken", uuid::Uuid::now_v7()), answer.to_string());
}

#[test]
fn an_answer_that_a_dead_lanewright_took_is_not_lost() {
    let env = waiting("changes");
    leave_taken(&env, true);
    env.resume(&[]).exits(0);
    assert_eq!(env.file_at("main", "n.txt"), "draft 1");
}

#[test]
fn answer_left_by_dead_process_counts_once() {
    let env = waiting("changes");
    leave_taken(&env, false);
    env.lanewright(&["reject", "r1", "L", "-m", "as seen"]).exits(0);
    env.resume(&[]).exits(3);
    assert_eq!((attempts(&env), env.events("gate_answered").len()), (2, 1));
    let left = std::fs::read_dir(env.path(&format!("repo/{STATE}/r1/requests"))).expect("requests");
    assert_eq!(left.count(), 0);
}

#[test]
fn approval_shows_change_size_and_diff_command() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\napproval = [\"changes\"]\ncommand = 'echo a > a.txt; echo b >> README.md'\n");
    let ended = env.execute(&[]).exits(3);
    let head = env.git(&["rev-parse", "--short=10", "lane/P1/L"]);
    let said = "L: waits for your approval of its changes: 2 files changed, +2 -0";
    ended.says(&[&format!("{said}, at commit {head} (lanewright diff r1 L)\n")]);
    let status = env.lanewright(&["status"]).exits(0).stdout;
    assert!(status.contains("of its changes: 2 files changed, +2 -0"), "{status}");
    let measured = env.events("changes_measured");
    assert_eq!(measured[0]["changes"], serde_json::json!({"files": 2, "added": 2, "removed": 0}));
}

#[test]
fn changes_of_protected_files_need_an_approval() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "protect = [\".github\", \"Makefile\"]\n");
    env.plan(
        "[[lane]]\nid = \"L\"\ncommand = 'mkdir -p .github a; echo x > .github/ci.yml; echo x > a/Makefile'\n\
         [[lane]]\nid = \"M\"\ncommand = 'echo m > m.txt'\n",
    );
    let asked = "waits for your approval of its changes: 2 files changed, +2 -0, protected: .github/ci.yml, a/Makefile";
    env.execute(&[]).exits(3).says(&[asked]);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "m.txt"]);
    // The rule is that of the run, whatever the file says since.
    env.write("repo/lanewright.toml", "");
    env.resume(&[]).exits(3).says(&[asked]);
    let status = env.lanewright(&["status"]).exits(0).stdout;
    assert!(status.contains("needs approval"), "{status}");
    let status = env.lanewright(&["status", "--format", "json"]).exits(0).json();
    assert_eq!(status["lanes"][0]["protected"], serde_json::json!([".github/ci.yml", "a/Makefile"]));
    env.lanewright(&["reject", "r1", "L", "-m", "leave CI alone"]).exits(0);
    env.resume(&[]).exits(3);
    assert_eq!(attempts(&env), 2, "the work was not done again");
    env.lanewright(&["approve", "r1", "L"]).exits(0);
    env.resume(&[]).exits(0);
    assert!(env.holds("main", ".github/ci.yml"));
    let report = env.lanewright(&["report", "r1"]).exits(0);
    assert!(report.stdout.contains("L changes protected files: .github/ci.yml, a/Makefile."), "{}", report.stdout);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn a_merge_that_carries_a_change_into_a_protected_file_needs_an_approval() {
    let env = TestEnv::new();
    env.write("repo/build.mk", "a\nb\nc\nd\ne\nf\n");
    env.write("repo/lanewright.toml", "protect = [\"Makefile\"]\n");
    env.git(&["add", "build.mk"]);
    env.git(&["commit", "--quiet", "-m", "build"]);
    env.plan(
        "[[lane]]\nid = \"L\"\ncommand = 'git mv build.mk Makefile'\n\
         [[lane]]\nid = \"M\"\ncommand = 'wait-for renamed; sed -i s/c/evil/ build.mk'\n\
         [[lane]]\nid = \"N\"\ncommand = 'wait-for renamed; echo n > n.txt'\n",
    );
    let running = env.start(&["--max-parallel", "3"]);
    wait_until("the question", || env.lanewright(&["status"]).stdout.contains("protected: Makefile"));
    env.lanewright(&["approve", "r1", "L"]).exits(0);
    wait_until("the merge", || env.holds("main", "Makefile"));
    env.write("scratch/renamed", "");
    running
        .wait()
        .exits(3)
        .says(&["M waits for your approval of its changes: 1 file changed, +1 -1, protected: Makefile"]);
    assert_eq!(env.file_at("main", "Makefile"), "a\nb\nc\nd\ne\nf");
    assert!(env.holds("main", "n.txt"), "others are held up");
    env.lanewright(&["approve", "r1", "M"]).exits(0);
    env.resume(&[]).exits(0);
    assert_eq!(env.file_at("main", "Makefile"), "a\nb\nevil\nd\ne\nf");
    env.assert_nothing_left(&["main"]);
}

#[test]
fn after_failed_merged_tests_all_changes_are_asked_about() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "protect = [\".github\"]\n");
    env.plan(
        "[[lane]]\nid = \"L\"\ntests = 'test ! -f m.txt || test -f fixed.txt'\n\
         command = 'mkdir -p .github; echo x > .github/ci.yml; if test -f m.txt; then echo f > fixed.txt; fi'\n\
         [[lane]]\nid = \"M\"\ncommand = 'echo m > m.txt'\n",
    );
    env.execute(&[]).exits(3).says(&["1 file changed, +1 -0, protected: .github/ci.yml"]);
    env.lanewright(&["approve", "r1", "L"]).exits(0);
    env.resume(&[]).exits(3).says(&["2 files changed, +2 -0, protected: .github/ci.yml"]);
    assert!(!env.holds("main", ".github/ci.yml"));
    env.lanewright(&["approve", "r1", "L"]).exits(0);
    env.resume(&[]).exits(0);
    assert!(env.holds("main", ".github/ci.yml") && env.holds("main", "fixed.txt"));
    env.assert_nothing_left(&["main"]);
}

#[test]
fn an_agent_cannot_answer_for_a_person() {
    let env = TestEnv::new();
    // Programs that agents start may have other variables.
    let approve = format!(
        "'for call in env \"env -u LANEWRIGHT_RUN_ID\"; do $call \"{}\" -C \"$SCRATCH/../repo\" approve r1 L 2>> m.txt; \
         done; true'",
        env!("CARGO_BIN_EXE_lanewright")
    );
    env.plan(&format!(
        "[[lane]]\nid = \"L\"\napproval = [\"plan\"]\ncommand = 'echo l > l.txt'\n\
         [[lane]]\nid = \"M\"\ncommand = {}\n",
        approve.replacen('\'', "'wait-for asked; ", 1)
    ));
    let running = env.start(&["--max-parallel", "2"]);
    wait_until("the question", || env.lanewright(&["status"]).stdout.contains("needs approval"));
    env.write("scratch/asked", "");
    running.wait().exits(3);
    let refused = env.file_at("main", "m.txt");
    assert_eq!(refused.matches("asks a person").count(), 2, "{refused}");
    assert_eq!(env.events("gate_answered").len(), 0);
}

#[test]
fn an_empty_change_needs_no_approval() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\napproval = [\"changes\"]\n\
         [[lane.agent]]\nname = \"engineer\"\nround = \"implementation\"\nallow_empty = true\ncommand = 'true'\n\
         [[lane]]\nid = \"M\"\ndepends_on = [\"L\"]\ncommand = 'echo m > m.txt'\n",
    );
    env.execute(&[]).exits(0).says(&["L: changed nothing, so there is nothing to approve"]);
    assert_eq!(env.events("changes_measured")[0]["changes"]["files"], 0);
    assert_eq!(env.events("gate_answered").len(), 0, "no answer is made up");
    assert!(env.holds("main", "m.txt"));
}

#[test]
fn an_answer_that_waits_for_a_resume_is_shown_as_such() {
    for (gate, answer, expected) in [
        ("changes", "approve", "approved, resume to merge"),
        ("plan", "approve", "plan approved, resume to implement it"),
        ("changes", "reject", "rejected, resume to rework it"),
    ] {
        let env = waiting(gate);
        env.lanewright(&[answer, "L", "-m", "as seen"]).exits(0);
        let status = env.lanewright(&["status"]).exits(0).stdout;
        assert!(status.lines().any(|line| line.starts_with("L ") && line.contains(expected)), "{status}");
        assert!(status.contains(&format!("\nL: {expected}\n  lanewright resume r1\n")), "{status}");
        assert!(!status.contains("Lanes were stopped"), "{status}");
    }
}

#[test]
fn an_answer_may_resume_the_run_at_once() {
    let env = waiting("changes");
    env.lanewright(&["reject", "L", "-m", "too long", "--resume"]).exits(3).says(&["The changes of L were rejected."]);
    assert_eq!(attempts(&env), 2);
    let ended = env.lanewright(&["approve", "L", "--resume", "--progress", "json"]).exits(0);
    assert_eq!(ended.json_lines().last().expect("a line")["event"], "run_finished");
    assert_eq!(env.file_at("main", "n.txt"), "draft 2");
    env.assert_nothing_left(&["main"]);
    env.lanewright(&["approve", "L", "--progress", "json"]).exits(2).says(&["--resume"]);
}

#[test]
fn waiting_run_takes_answers_and_ends_after_the_last() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\napproval = [\"plan\", \"changes\"]\ncommand = 'echo l > l.txt'\n\
         [[lane]]\nid = \"M\"\nretries = 0\ncommand = 'exit 1'\n",
    );
    let mut run = env.start(&["--wait"]);
    for gate in ["SYNTHESIS", "AWAITING_USER_APPROVAL"] {
        crate::support::wait_until(gate, || {
            env.path(&format!("repo/{STATE}/r1.jsonl")).exists()
                && env.events("lane_moved").iter().any(|moved| moved["lane"] == "L" && moved["to"] == gate)
        });
        std::thread::sleep(std::time::Duration::from_millis(500));
        assert!(!run.has_ended(), "it ended instead of waiting");
        env.lanewright(&["approve", "L"]).exits(0);
    }
    run.wait().exits(1);
    assert_eq!(env.file_at("main", "l.txt"), "l");
    assert_eq!(env.events("run_finished").len(), 1);
    let worktrees = env.git(&["worktree", "list"]);
    assert_eq!(worktrees.lines().count(), 2, "all but that of M are removed:\n{worktrees}");
    env.lanewright(&["clean", "--force", "--yes", "r1"]).exits(0);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn waiting_run_ends_when_stopped_or_timed_out() {
    let env = waiting("changes");
    env.resume(&["--wait", "--timeout", "300ms"]).exits(124);
    let resumed = env.start_with(&["resume", "--wait", "--timeout", "none"], |command| command);
    crate::support::wait_until("it waits", || env.events("run_resumed").len() == 2);
    env.lanewright(&["stop"]).exits(0);
    resumed.wait().exits(143);
    let resumed = env.start_with(&["resume", "--wait"], |command| command);
    crate::support::wait_until("it waits", || env.events("run_resumed").len() == 3);
    resumed.signal(rustix::process::Signal::INT);
    resumed.wait().exits(130);
    env.lanewright(&["approve", "L", "--resume"]).exits(0);
}

#[test]
fn hints_name_the_directory_that_the_caller_named() {
    let env = waiting("changes");
    let place = env.path("repo");
    let there = std::fs::canonicalize(&place).expect("a directory");
    let there = there.to_str().expect("UTF-8");
    let outside = |words: &[&str]| {
        env.lanewright_with(&[&["-C", place.to_str().expect("UTF-8")], words].concat(), |command| {
            command.current_dir(env.path("scratch"))
        })
    };
    let shown = outside(&["status"]).exits(0).stdout;
    assert!(shown.contains(&format!("lanewright -C {there} approve r1 L")), "{shown}");
    let answered = outside(&["approve", "r1", "L"]).exits(0).stdout;
    assert!(answered.contains(&format!("lanewright -C {there} resume r1")), "{answered}");
    assert!(env.lanewright(&["status"]).exits(0).stdout.contains("lanewright resume r1"));
}
