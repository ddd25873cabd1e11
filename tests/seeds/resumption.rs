//! Checkpoints between which a task can be resumed: when they are made, and how they are stored (seed 001).

use std::fs;

use serde_json::Value;

use crate::support::{CHECKPOINTS, RUN, Running, STATE, TestEnv, all_files, wait_until};

fn taken(env: &TestEnv, reason: &str) -> Vec<Value> {
    env.events("snapshot_taken").into_iter().filter(|event| event["reason"] == reason).collect()
}

/// Starts a lane of one agent, and waits until it has made `sign` in `$SCRATCH`.
fn at_work(env: &TestEnv, settings: &str, command: &str, sign: &str) -> Running {
    env.write("repo/lanewright.toml", settings);
    env.commit("settings");
    env.plan(&format!("[[lane]]\nid = \"A\"\nagent_worktrees = \"on\"\ncommand = '''\n{command}\n'''\n"));
    env.execute_until(&format!("scratch/{sign}"))
}

/// Waits until Lanewright has read what the agent reported until now: with an interval of next to nothing, each look at
/// an agent leaves a checkpoint.
fn wait_for_a_look(env: &TestEnv) {
    let before = taken(env, "interval").len();
    // A look that had begun earlier may have missed it.
    wait_until("two more looks", || taken(env, "interval").len() >= before + 2);
}

#[test]
fn t06_ten_tool_calls_are_followed_by_a_checkpoint() {
    let env = TestEnv::new();
    let call = "echo '{\"tool\":\"Read\",\"input\":{\"file\":\"x\"}}' >> \"$LANEWRIGHT_TOOL_CALLS_FILE\"";
    let command = format!(
        "for n in 1 2 3 4 5 6 7 8 9; do {call}; done\ntouch \"$SCRATCH/nine\"\n\
         wait-for tenth\n{call}\nwait-for kept\necho a > a.txt"
    );
    let running = at_work(&env, "checkpoint_every = '1ms'\n", &command, "nine");
    wait_for_a_look(&env);
    assert_eq!(taken(&env, "tool_calls"), [] as [Value; 0], "before the tenth call");
    env.write("scratch/tenth", "");
    wait_until("a checkpoint", || !taken(&env, "tool_calls").is_empty());
    wait_for_a_look(&env);
    env.write("scratch/kept", "");
    running.wait().exits(0);
    assert_eq!(taken(&env, "tool_calls").len(), 1);
}

#[test]
fn t07_what_is_risky_can_be_configured() {
    let env = TestEnv::new();
    let command = "echo x > gone.txt\n\
         echo '{\"tool\":\"Bash\",\"input\":{\"command\":\"rm -rf x\"}}' >> \"$LANEWRIGHT_TOOL_CALLS_FILE\"\n\
         touch \"$SCRATCH/removed\"; wait-for deploy\n\
         echo '{\"tool\":\"Bash\",\"input\":{\"command\":\"deploy prod\"}}' >> \"$LANEWRIGHT_TOOL_CALLS_FILE\"\n\
         wait-for kept; rm gone.txt; echo a > a.txt";
    let settings = "checkpoint_every = '1ms'\ncheckpoint_every_tool_calls = 0\ncheckpoint_before = ['deploy']\n";
    let running = at_work(&env, settings, command, "removed");
    wait_for_a_look(&env);
    assert_eq!(taken(&env, "risky"), [] as [Value; 0], "a deletion is none of the configured operations");
    env.write("scratch/deploy", "");
    wait_until("a checkpoint", || !taken(&env, "risky").is_empty());
    env.write("scratch/kept", "");
    running.wait().exits(0);
    let kept = taken(&env, "risky");
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(env.holds(kept[0]["commit"].as_str().expect("a commit"), "gone.txt"));
}

/// How many bytes git's directory holds.
fn size_of_git(env: &TestEnv) -> u64 {
    all_files(&env.path("repo/.git")).iter().filter_map(|file| fs::metadata(file).ok()).map(|file| file.len()).sum()
}

#[test]
fn t14_superseded_checkpoints_go_at_the_end_of_a_run() {
    let kept = |settings: &str| {
        let env = TestEnv::new();
        env.write("repo/lanewright.toml", settings);
        env.commit("settings");
        let tasks: String = (1..=3).map(|number| format!("[[lane.task]]\nid = \"{number}\"\n")).collect();
        env.plan(&format!(
            "[[lane]]\nid = \"A\"\nretries = 0\ntests = 'exit 1'\ncommand = 'echo x > \"$LANEWRIGHT_TASK.txt\"'\n{tasks}"
        ));
        env.execute(&[]).exits(1);
        assert_eq!(taken(&env, "task").len(), 3);
        env.refs().into_iter().filter(|name| name.starts_with("refs/lanewright/")).count()
    };
    assert_eq!((kept(""), kept("checkpoint_keep = 1\n")), (3, 1));
}

#[test]
fn t17_checkpoints_are_compressed() {
    let env = TestEnv::new();
    let command = "yes 'a line like every other' | head -c 4000000 > big.txt\ntouch \"$SCRATCH/began\"; wait-for go";
    let running = at_work(&env, "checkpoint_every = 'none'\n", command, "began");
    let before = size_of_git(&env);
    let create = || {
        let made = env.lanewright(&["checkpoints", "create", RUN, "A", "agent", "--format", "json"]).exits(0).json();
        env.git(&["rev-parse", &format!("{}:big.txt", made["reference"].as_str().expect("a ref"))])
    };
    let first = create();
    env.write("repo.lanes/r1/A/agents/agent/code/more.txt", "more\n");
    assert_eq!(create(), first, "a file that did not change is stored twice");
    assert_eq!(env.git(&["cat-file", "-s", &first]), "4000000");
    let grown = size_of_git(&env).saturating_sub(before);
    assert!(grown < 400_000, "two checkpoints of 4 MB take {grown} bytes");
    env.write("scratch/go", "");
    running.wait().exits(0);
}

#[test]
fn t30_hundreds_of_tool_calls_are_handled() {
    let env = TestEnv::new();
    let input = "canary ".repeat(150);
    env.write("scratch/calls", format!("{{\"tool\":\"Edit\",\"input\":{{\"text\":\"{input}\"}}}}\n").repeat(100));
    let command = "for step in 1 2 3 4 5 6; do\n\
         cat \"$SCRATCH/calls\" >> \"$LANEWRIGHT_TOOL_CALLS_FILE\"; touch \"$SCRATCH/told\"; wait-for kept.$step\n\
         done\necho a > a.txt";
    let running = at_work(&env, "checkpoint_every = 'none'\n", command, "told");
    for step in 1..=6 {
        wait_until("a checkpoint", || taken(&env, "tool_calls").len() >= step);
        env.write(&format!("scratch/kept.{step}"), "");
    }
    running.wait().exits(0);
    assert_eq!(env.attempt_file("A", "agent", 1, "exchange/tool_calls.jsonl").lines().count(), 600);
    let log = env.read(&format!("repo/{STATE}/{RUN}.jsonl"));
    assert!(!log.contains("canary"), "the run log holds what the tools were given");
    assert!(env.holds("main", "a.txt"));
}

#[test]
fn t29_attempts_are_kept_across_resumes() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\nretries = 1\ncommand = 'echo try $LANEWRIGHT_ATTEMPT; exit 3'\n");
    env.execute(&[]).exits(1);
    env.resume(&[]).exits(1);
    let text = fs::read_to_string(env.path(&format!("repo/{CHECKPOINTS}"))).expect("the file");
    let records: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    let failed = records.iter().find(|record| record["lane"] == "A" && record["status"] == "failed").expect("a record");
    let context = failed["failure_context"].as_array().expect("a list");
    let attempts: Vec<&str> = context.iter().filter_map(|line| line.as_str()?.split(':').next()).collect();
    let attempts: Vec<&str> = attempts.into_iter().filter(|word| word.starts_with("Attempt")).collect();
    let starts = env.events("job_started").len();
    let expected: Vec<String> = (1..=starts).map(|number| format!("Attempt {number}")).collect();
    assert_eq!(attempts, expected);
}

/// The record of lane A that says where it stands.
fn newest_record(env: &TestEnv) -> Value {
    let records: Vec<Value> = serde_json::from_str(&env.read(&format!("repo/{CHECKPOINTS}"))).expect("an array");
    let of_lane = records.into_iter().filter(|record| record["lane"] == "A");
    of_lane.max_by_key(|record| record["timestamp"].as_str().map(str::to_owned)).expect("a record of A")
}

#[test]
fn t04_git_is_that_of_the_agents_worktree() {
    let env = TestEnv::new();
    let work = "touch $SCRATCH/works; while [ -d \"$SCRATCH\" ] && [ ! -e \"$SCRATCH/go\" ]; do sleep 0.02; done; echo a > a.txt";
    let running = at_work(&env, "", work, "works");
    let git = || newest_record(&env)["git"].clone();
    wait_until("the record names the agent's branch", || {
        git()["branch"].as_str().is_some_and(|branch| branch.ends_with("/agent"))
    });
    assert_eq!(git()["head"], env.main(), "the agent has committed nothing yet");
    env.write("scratch/go", "");
    running.wait().exits(0);
    assert_eq!(newest_record(&env)["git"]["dirty_files"], serde_json::json!([]));
}

#[test]
fn t11_a_checkpoint_names_branch_commit_and_files() {
    for worktrees in ["on", "off"] {
        let env = TestEnv::new();
        env.plan(&format!(
            "[[lane]]\nid = \"A\"\nretries = 0\nagent_worktrees = \"{worktrees}\"\ncommand = '''\n\
             [ -e \"$SCRATCH/fixed\" ] && exit 0\n\
             echo a > a.txt; git add a.txt; git commit --quiet -m mine; git rev-parse HEAD > \"$SCRATCH/head\"\n\
             echo b > b.txt; echo more >> README.md; exit 1\n'''\n"
        ));
        env.execute(&[]).exits(1);
        let record = newest_record(&env);
        assert_eq!(record["status"], "failed");
        assert_eq!(record["git"]["dirty_files"], serde_json::json!(["README.md", "b.txt"]), "{worktrees}");
        assert_eq!(record["git"]["head"], env.scratch("head").trim(), "{worktrees}");
        let branch = record["git"]["branch"].as_str().expect("a branch");
        assert_eq!(branch.ends_with("/agent"), worktrees == "on", "{branch}");

        // The list is that of the last save, until the work is committed.
        env.write("scratch/fixed", "");
        env.lanewright(&["retry", "A"]).exits(0);
        let record = newest_record(&env);
        assert_eq!((&record["status"], &record["git"]["dirty_files"]), (&"complete".into(), &serde_json::json!([])));
    }
}
