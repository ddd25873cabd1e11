//! The recovery contract: what a resume and a rollback print, and what `checkpoints.json` holds of failures (seed 004).

use serde_json::{Value, json};

use crate::support::{CHECKPOINTS, Ended, RUN, TestEnv};

#[test]
fn r31_a_rollback_prints_how_to_roll_back_again() {
    let env = TestEnv::new();
    let lane = |id: &str| format!("[[lane]]\nid = \"{id}\"\ncommand = 'echo {id} > {id}.txt'\n");
    env.plan(&["A", "B", "C"].map(lane).concat());
    env.execute(&[]).exits(0);
    let told = env.lanewright(&["rollback", RUN, "--lane", "A", "--yes"]).exits(0).stdout;
    assert!(told.contains("lanewright rollback r1\n"), "{told}");
    let told = env.lanewright(&["rollback", RUN, "--lane", "B", "--yes", "--format", "json"]).exits(0).json();
    let hint = told["rollback_hint"].as_str().expect("a command");
    assert!(hint.ends_with("lanewright rollback r1"), "{hint}");
    assert!(env.holds("main", "C.txt"));
    env.lanewright(&["rollback", RUN, "--yes"]).exits(0);
    assert_eq!(env.files("main"), [".gitignore", "README.md"]);
}

/// The line that says where the lanes are.
fn stages(ended: &Ended) -> &str {
    ended.stderr.lines().find(|line| line.contains("Current stage: ")).expect("the stages")
}

#[test]
fn r32_a_resume_and_a_rollback_print_each_stage() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"SL-3\"\nretries = 0\ncommand = 'exit 1'\n");
    env.execute(&[]).exits(1);
    let resumed = env.resume(&[]).exits(1);
    let line = stages(&resumed);
    assert!(line.contains("SL-3") && line.contains("implementation"), "{line}");
    let rolled_back = env.lanewright(&["rollback", RUN]).exits(0);
    let line = stages(&rolled_back);
    assert!(line.contains("SL-3 at implementation"), "{line}");
}

#[test]
fn r33_a_second_rollback_prints_stage_and_path() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'exit 1'\n");
    env.execute(&[]).exits(1);
    let path = env.path(&format!("repo/{CHECKPOINTS}"));
    for stage in ["A at implementation", "A rolled back"] {
        let told = env.lanewright(&["rollback", RUN]).exits(0);
        assert!(stages(&told).contains(stage), "{}", told.stderr);
        told.says(&[&format!("Checkpoints: {}", path.display())]);
    }
}

#[test]
fn r34_a_resume_names_what_comes_next() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'exit 1'\n[[lane]]\nid = \"B\"\ncommand = 'echo b > b.txt'\n\
         [gates]\nfinal = ['[ -e \"$SCRATCH/may-pass\" ]']\n",
    );
    env.execute(&["--keep-going"]).exits(1);
    env.resume(&[]).exits(1).says(&["Next actions: 1 lane left (A: agent at task 1)"]);
    env.lanewright(&["skip", RUN, "A"]).exits(0);
    env.resume(&[]).exits(3);
    env.write("scratch/may-pass", "");
    env.resume(&[]).exits(0).says(&["Next actions: the final gate"]);
}

#[test]
fn r42_a_lasting_network_failure_is_recorded_with_what_to_type() {
    let env = TestEnv::new();
    env.write("config/lanewright/config.toml", "outage_limit = \"0s\"\n");
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo \"curl: (6) Could not resolve host: x\" >&2; exit 1'\n");
    let offered = ["lanewright resume r1\n", "lanewright rollback r1 --lane A\n"];
    env.execute(&[]).exits(1).says(&offered);
    let record = env.checkpoint("A", "after_lane_start");
    let command = record["command"].as_str().expect("a command");
    assert_eq!((&record["status"], command.contains("echo \"curl: (6)")), (&json!("failed"), true), "{record}");
    for (hint, flag) in [("resume_hint", "--resume"), ("rollback_hint", "--rollback")] {
        assert!(record[hint].as_str().is_some_and(|line| line.ends_with(flag)), "{record}");
    }
}

#[test]
fn r43_failed_tests_are_recorded_retried_and_reported() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\nretries = 1\ntests = 'exit 9'\ncommand = 'echo x >> x.txt'\n");
    let ended = env.execute(&[]).exits(1);
    let record = env.checkpoint("L", "after_lane_tests");
    let found = ["status", "command", "exit_code"].map(|field| record[field].clone());
    assert_eq!(found, [json!("failed"), json!("exit 9"), json!(9)]);
    let tests = env.events("job_exited").iter().filter(|job| job["job"]["role"] == "tests").count();
    assert_eq!((tests, env.events("retry_planned").len()), (2, 1));
    ended.says(&["lanewright resume r1", "lanewright rollback r1 --lane L"]);
}

#[test]
fn r47_the_contract_holds_for_execute_lane() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'echo x >> \"$SCRATCH/began\"; exit 1'\n\
         [[lane]]\nid = \"B\"\ncommand = 'touch \"$SCRATCH/other\"'\n",
    );
    let plan = env.path("plan.toml");
    let plan = plan.to_str().expect("UTF-8");
    let statuses =
        || ["before_lane_start", "after_lane_start"].map(|stage| env.checkpoint("A", stage)["status"].clone());
    env.lanewright(&["execute-lane", plan, "A", "--run-id", RUN]).exits(1).says(&["lanewright resume r1"]);
    assert_eq!(statuses(), ["complete", "failed"]);
    let record: Value = env.checkpoint("A", "after_lane_start");
    for hint in ["resume_hint", "rollback_hint"] {
        assert!(record[hint].as_str().is_some_and(|command| command.contains(RUN)), "{record}");
    }
    env.lanewright(&["execute-lane", plan, "A", "--resume"]).exits(1);
    assert_eq!((env.events("run_resumed").len(), env.scratch("began").as_str()), (1, "x\nx\n"));
    assert_eq!(statuses(), ["complete", "failed"]);
    env.lanewright(&["execute-lane", plan, "A", "--rollback"]).exits(0);
    assert_eq!(env.events("lane_rolled_back").len(), 1);
    assert_eq!(statuses(), ["rolled_back", "rolled_back"]);
    assert!(!env.path("scratch/other").exists(), "another lane was begun");
}
