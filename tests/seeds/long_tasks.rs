//! Long tasks: small tasks one after the other, their checkpoints, and the levels of recovery (seed 000).

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{RUN, STATE, TestEnv, wait_until};

fn taken(env: &TestEnv, reason: &str) -> Vec<Value> {
    env.events("snapshot_taken").into_iter().filter(|event| event["reason"] == reason).collect()
}

fn levels(env: &TestEnv) -> Vec<Value> {
    env.events("retry_planned").into_iter().map(|event| event["level"].clone()).collect()
}

/// What happened to the tasks, in the order of the run log.
fn steps(env: &TestEnv) -> Vec<String> {
    let step = |event: &Value| {
        let role = &event["job"]["role"];
        let of = |kind: &str, word: &str| role[kind]["task"].as_str().map(|task| format!("{word} {task}"));
        match event["event"].as_str().expect("a kind") {
            "job_planned" => of("attempt", "begun"),
            "job_exited" => of("attempt", "executed").or_else(|| of("verify", "validated")),
            "snapshot_taken" if event["reason"] == "task" => Some("checkpoint".to_owned()),
            _ => None,
        }
    };
    env.log().iter().filter_map(step).collect()
}

#[test]
fn l03_each_completed_task_has_a_checkpoint() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\ncommand = 'echo x > $LANEWRIGHT_TASK.txt'\n\
         [[lane.task]]\n[[lane.task]]\n[[lane.task]]\n",
    );
    env.execute(&[]).exits(0);
    let checkpoints = taken(&env, "task");
    assert_eq!(checkpoints.len(), 3, "{checkpoints:?}");
    for (done, checkpoint) in (1..).zip(&checkpoints) {
        let commit = checkpoint["commit"].as_str().expect("a commit");
        let held = [1, 2, 3].map(|task| env.holds(commit, &format!("{task}.txt")));
        assert_eq!(held, [1, 2, 3].map(|task| task <= done), "the checkpoint of task {done}");
    }
}

#[test]
fn l15_a_task_that_succeeds_is_kept_before_the_next() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\ncommand = '''\n\
         [ $LANEWRIGHT_TASK.$LANEWRIGHT_ATTEMPT != 2.1 ] || exit 1\necho x > $LANEWRIGHT_TASK.txt\n'''\n\
         [[lane.task]]\n[[lane.task]]\n[[lane.task]]\n",
    );
    env.execute(&[]).exits(0);
    let expected: [&[&str]; 4] = [
        &["begun 1", "executed 1", "checkpoint"],
        &["begun 2", "executed 2"],
        &["begun 2", "executed 2", "checkpoint"],
        &["begun 3", "executed 3", "checkpoint"],
    ];
    assert_eq!(steps(&env), expected.concat());
}

#[test]
fn l19_a_rollback_takes_no_checkpoint_but_its_own() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "checkpoint_every = '1ms'\n");
    env.commit("settings");
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'echo half > half.txt; touch \"$SCRATCH/began\"; wait-for go'\n");
    let running = env.execute_until("scratch/began");
    wait_until("a checkpoint of the agent at work", || !taken(&env, "interval").is_empty());
    running.signal(Signal::KILL);
    running.wait().exits(137);
    env.lanewright(&["rollback", RUN]).exits(0);
    let log = env.log();
    let begun = log.iter().position(|event| event["event"] == "rollback_begun").expect("a rollback");
    let reasons: Vec<&Value> =
        log[begun..].iter().filter(|event| event["event"] == "snapshot_taken").map(|event| &event["reason"]).collect();
    assert!(reasons.iter().any(|reason| **reason == "rollback"), "the work was not kept: {reasons:?}");
    assert!(reasons.iter().all(|reason| **reason == "rollback" || **reason == "stop"), "{reasons:?}");
}

/// The names in the notes about what is left out.
fn left_out(env: &TestEnv) -> Vec<String> {
    let notes = env.events("noted").into_iter().filter_map(|note| note["message"].as_str().map(str::to_owned));
    notes.filter_map(|note| Some(note.strip_prefix("left out of the work: ")?.to_owned())).collect()
}

/// The snapshot of what was left in the lane's worktree.
fn saved_at_the_end(env: &TestEnv) -> String {
    let kept = env.events("lane_cleaned")[0]["kept"].to_string();
    let reference = kept.split('"').flat_map(|text| text.split(": ")).find(|part| part.starts_with("refs/"));
    reference.unwrap_or_else(|| panic!("nothing was saved: {kept}")).to_owned()
}

const JUNK: &str = "mkdir -p node_modules/p .venv .claude/checkpoints; echo x > node_modules/p/i.js; \
                    echo home > .venv/pyvenv.cfg; echo z > .claude/checkpoints/z; echo s > .f1.swp; echo a > a.txt";

#[test]
fn l21_junk_is_left_out_and_named() {
    let env = TestEnv::new();
    let line = format!("{JUNK}; git add node_modules; echo x > $LANEWRIGHT_TASK.txt");
    env.plan(&format!("[[lane]]\nid = \"L\"\ncommand = '{line}'\n[[lane.task]]\n[[lane.task]]\n"));
    env.execute(&[]).exits(0).says(&["node_modules/ (1 file)"]);
    assert_eq!(env.files("main"), [".gitignore", "1.txt", "2.txt", "README.md", "a.txt"]);
    let names = ".claude/checkpoints/ (1 file), .venv/ (1 file), node_modules/ (1 file), .f1.swp";
    let globs = r#"[".claude/checkpoints", ".venv", "node_modules", ".f1.swp"]"#;
    let redo = "and if the lane is done by then, run the plan with --redo --lane L";
    assert_eq!(left_out(&env), [format!("{names}; to commit them, set `take = {globs}` in lanewright.toml, {redo}")]);
    let table = env.lanewright(&["status", RUN]).exits(0).stdout;
    assert!(table.contains("L: left out of the work: .claude/checkpoints/"), "{table}");
    let saved = saved_at_the_end(&env);
    assert!(env.holds(&saved, ".f1.swp") && !env.holds(&saved, "node_modules/p/i.js"), "{saved}");
}

#[test]
fn l21_trees_alone_are_not_uncommitted_work() {
    let env = TestEnv::new();
    let line = "mkdir -p web/node_modules; echo x > web/node_modules/x; echo a > web/a";
    env.plan(&format!("[[lane]]\nid = \"L\"\ncommand = '{line}'\n"));
    env.execute(&[]).exits(0);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "web/a"]);
    assert!(env.events("lane_cleaned")[0]["kept"].is_null(), "{:?}", env.events("lane_cleaned"));
    assert_eq!(env.kept(), [""; 0]);
}

#[test]
fn l21_agent_that_changed_only_junk_changed_nothing() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\nretries = 0\ncommand = 'mkdir -p node_modules; echo x > node_modules/x'\n");
    env.execute(&[]).exits(1);
    assert_eq!(env.events("work_committed")[0]["changed"].as_array().map(Vec::len), Some(0));
    assert_eq!(left_out(&env).len(), 1);
}

#[test]
fn l21_large_file_is_saved_and_not_merged() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "max_file_size = '1KiB'\n");
    env.commit("settings");
    let line = "head -c 1025 /dev/zero > dump.bin; head -c 1024 /dev/zero > small.bin";
    env.plan(&format!("[[lane]]\nid = \"L\"\ncommand = '{line}'\n"));
    env.execute(&[]).exits(0);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "lanewright.toml", "small.bin"]);
    let named = left_out(&env);
    assert!(named[0].starts_with("dump.bin (") && named[0].contains("raise `max_file_size`"), "{named:?}");
    assert!(env.holds(&saved_at_the_end(&env), "dump.bin"));
}

#[test]
fn l21_what_an_agent_moves_is_not_new() {
    let moves = "mkdir -p to; mv big.bin notes~ to; git mv lib/node_modules to; echo more >> to/big.bin";
    let commits = format!("{moves}; git add -A; git commit -qm moved");
    let in_two_tasks = "if [ $LANEWRIGHT_TASK = 1 ]; then mv big.bin notes~ lib/node_modules \"$SCRATCH\"; \
                        else mkdir -p to; cd \"$SCRATCH\"; mv big.bin notes~ node_modules \"$OLDPWD/to\"; fi";
    for command in [moves, &commits, in_two_tasks] {
        let env = TestEnv::new();
        env.write("repo/lanewright.toml", "max_file_size = '1KiB'\n");
        env.write("repo/big.bin", "12345678\n".repeat(300));
        env.write("repo/notes~", "n");
        env.write("repo/lib/node_modules/p/i.js", "x");
        env.git(&["add", "-f", "."]);
        env.commit("files");
        let tasks = "[[lane.task]]\nallow_empty = true\n".repeat(2);
        env.plan(&format!("[[lane]]\nid = \"L\"\ncommand = '{command}'\n{tasks}"));
        let ended = env.execute(&[]).exits(0);
        for path in ["to/big.bin", "to/notes~", "to/node_modules/p/i.js"] {
            assert!(env.holds("main", path), "{command}: {path}: {}", ended.stderr);
        }
        assert_eq!(left_out(&env), [""; 0], "{command}");
    }
}

#[test]
fn l21_moved_files_may_change_and_leave_something_behind() {
    let rewritten = "mkdir web; mv node_modules web; for i in 1 2 3; do echo new $i > web/node_modules/p/$i.js; done";
    let linked = "mkdir to; mv big.bin to; ln -s to/big.bin big.bin";
    let replaced = "mkdir to; mv big.bin to; echo moved > big.bin";
    for (command, path) in [(rewritten, "web/node_modules/p/2.js"), (linked, "to/big.bin"), (replaced, "to/big.bin")] {
        let env = TestEnv::new();
        env.write("repo/lanewright.toml", "max_file_size = '1KiB'\n");
        env.write("repo/big.bin", "12345678\n".repeat(300));
        for number in 1..=3 {
            env.write(&format!("repo/node_modules/p/{number}.js"), format!("module {number}\nfoo\nbaz\n"));
        }
        env.git(&["add", "-f", "."]);
        env.commit("files");
        env.plan(&format!("[[lane]]\nid = \"L\"\ncommand = '{command}'\n"));
        let ended = env.execute(&[]).exits(0);
        assert!(env.holds("main", path), "{command}: {}", ended.stderr);
    }
}

#[test]
fn l21_known_files_may_grow_and_come_with_a_rebase() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "max_file_size = '1KiB'\n");
    env.commit("settings");
    env.plan(
        r#"
[[lane]]
id = "L"
retries = 0
command = '''
seq 200 >> data.bin
[ $LANEWRIGHT_TASK = 1 ] && exit
touch "$SCRATCH/began"
wait-for go
git add -A && git commit -qm grown && git rebase -q main'''
[[lane.task]]
[[lane.task]]
"#,
    );
    let running = env.execute_until("scratch/began");
    env.write("repo/vendor/node_modules/x", "x");
    env.git(&["add", "-f", "vendor"]);
    env.commit("vendor");
    env.write("scratch/go", "");
    running.wait().exits(0);
    assert!(env.holds("main", "vendor/node_modules/x"));
    assert_eq!(env.file_at("main", "data.bin").lines().count(), 400);
}

#[test]
fn l21_large_file_is_saved_where_tests_judge_the_lane() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "max_file_size = '1KiB'\n");
    env.commit("settings");
    let line = "head -c 1025 /dev/zero > dump.bin; echo x > small";
    env.plan(&format!("[[lane]]\nid = \"L\"\ncommand = '{line}'\ntests = [\"test -f small\"]\n"));
    let said = env.execute(&[]).exits(0).stderr;
    let saved = said.lines().find_map(|line| line.split("did not commit are saved as ").nth(1)).expect("a ref");
    assert!(env.holds(saved.trim(), "dump.bin") && !env.holds("main", "dump.bin"), "{said}");
}

#[test]
fn l21_file_that_a_filter_makes_small_is_taken() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "max_file_size = '1KiB'\n");
    env.write("repo/.gitattributes", "*.bin filter=pointer\n");
    env.commit("settings");
    env.git(&["config", "filter.pointer.clean", "cat > /dev/null; echo pointer"]);
    let line = "head -c 5000 /dev/zero > dump.bin; head -c 5000 /dev/zero > dump";
    env.plan(&format!("[[lane]]\nid = \"L\"\ncommand = '{line}'\n"));
    env.execute(&[]).exits(0);
    assert_eq!(env.file_at("main", "dump.bin").trim_end(), "pointer");
    assert!(!env.holds("main", "dump"));
}

#[test]
fn l21_tracked_trees_and_take_are_committed() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "take = ['web/node_modules', '*.swp']\n");
    env.write("repo/node_modules/old", "");
    env.commit("settings");
    env.plan(
        "[[lane]]\nid = \"L\"\ncommand = '''\n\
         mkdir -p web/node_modules doc/node_modules; echo x > web/node_modules/x; echo x > doc/node_modules/x\n\
         echo x > node_modules/new; echo s > .f1.swp\n'''\n",
    );
    env.execute(&[]).exits(0);
    let files = env.files("main");
    for taken in ["node_modules/new", "node_modules/old", "web/node_modules/x", ".f1.swp"] {
        assert!(files.iter().any(|file| file == taken), "{taken}: {files:?}");
    }
    assert!(!env.holds("main", "doc/node_modules/x"));
}

#[test]
fn l21_agent_that_commits_junk_itself_fails() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\nretries = 1\ncommand = '''\n\
         mkdir -p node_modules; echo x > node_modules/x; echo a > a.txt\n\
         [ $LANEWRIGHT_ATTEMPT != 1 ] || { git add --all; git commit -qm junk; }\n'''\n",
    );
    env.execute(&[]).exits(0);
    let failures = env.events("failure_noted");
    assert_eq!(failures.len(), 1, "{failures:?}");
    let failure = &failures[0]["failure"];
    assert_eq!(
        (failure["kind"].as_str(), failure["paths"][0].as_str()),
        (Some("ownership"), Some("node_modules/ (1 file)"))
    );
    assert!(failure["message"].to_string().contains(r#"take = [\"node_modules\"]"#), "{failure}");
    assert_eq!(env.files("main"), [".gitignore", "README.md", "a.txt"]);
    assert_eq!(env.git(&["log", "--format=%s", "main", "--", "node_modules"]), "");
}

#[test]
fn l21_resume_does_not_take_junk_for_changes() {
    for point in ["after_commit_work:1", "after_snapshot:1"] {
        let env = TestEnv::new();
        env.plan(&format!("[[lane]]\nid = \"L\"\ncommand = '{JUNK}'\n"));
        let plan = env.path("plan.toml");
        let start = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", RUN];
        let killed = env.lanewright_with(&start, |command| command.env("LANEWRIGHT_CRASH_POINT", point));
        assert!(killed.was_killed(), "{point}: {}", killed.stderr);
        // Programs that still run, or are started again, change them meanwhile.
        env.write("repo.lanes/r1/L/code/node_modules/p/more.js", "");
        env.write("repo.lanes/r1/L/code/.a.swp", "");
        env.resume(&[]).exits(0);
        assert_eq!(env.files("main"), [".gitignore", "README.md", "a.txt"], "{point}");
    }
}

#[test]
fn l27_a_failed_task_is_retried_at_most_three_times() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\ncommand = '''\n\
         echo x >> \"$SCRATCH/began\"\n\
         echo \"it failed with $(echo $LANEWRIGHT_ATTEMPT | tr 1234567 abcdefg)\"; exit 1\n'''\n",
    );
    env.execute(&[]).exits(1);
    assert_eq!(levels(&env), ["retry", "retry", "retry", "rollback"]);
    assert_eq!(env.scratch("began").lines().count(), 5);
    assert_eq!(env.events("lane_failed").len(), 1);
}

#[test]
fn l29_the_second_level_restores_the_last_checkpoint() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\nretries = 1\ncommand = '''\n\
         ls > \"$SCRATCH/found.$LANEWRIGHT_TASK.$LANEWRIGHT_ATTEMPT\"\n\
         case $LANEWRIGHT_TASK.$LANEWRIGHT_ATTEMPT in\n\
         1.1) echo one > one.txt ;;\n\
         2.3) echo two > two.txt ;;\n\
         *) echo left > left.$LANEWRIGHT_ATTEMPT; exit 1 ;;\n\
         esac\n'''\n[[lane.task]]\n[[lane.task]]\n",
    );
    env.execute(&[]).exits(0);
    assert_eq!(levels(&env), ["retry", "rollback"]);
    assert_eq!(
        env.scratch("found.2.2"),
        "README.md\nleft.1\none.txt\n",
        "the first level goes on from the worktree as it is"
    );
    assert_eq!(env.scratch("found.2.3"), "README.md\none.txt\n");
    assert_eq!(env.files("main"), [".gitignore", "README.md", "one.txt", "two.txt"]);
}

#[test]
fn l50_each_task_is_begun_validated_and_completed() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\ncommand = '''\n\
         echo x > $LANEWRIGHT_TASK.txt\n\
         [ $LANEWRIGHT_TASK = 1 ] || { touch \"$SCRATCH/second\"; wait-for go; }\n'''\n\
         [[lane.task]]\nverify = ['test -e 1.txt']\n[[lane.task]]\nverify = ['test -e 2.txt']\n",
    );
    let running = env.execute_until("scratch/second");
    let lane = || env.lanewright(&["status", RUN, "L", "--format", "json"]).exits(0).json();
    wait_until("the second task in the status", || lane()["running"][0]["task"] == "2");
    let shown = lane();
    assert_eq!(shown["running"][0]["role"], "attempt", "{shown}");
    let completed: Vec<&Value> =
        shown["snapshots"].as_array().expect("a list").iter().map(|snapshot| &snapshot["reason"]).collect();
    assert_eq!(completed, ["task"], "the first task alone is completed");
    let file = env.path("repo.lanes/r1/L/task.json");
    wait_until("the agent in task.json", || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        serde_json::from_str::<Value>(&text).is_ok_and(|task| task["agents"]["agent"]["status"] == "WORKING")
    });
    env.write("scratch/go", "");
    running.wait().exits(0);
    let of = |task: u32| {
        [format!("begun {task}"), format!("executed {task}"), format!("validated {task}"), "checkpoint".to_owned()]
    };
    assert_eq!(steps(&env), [of(1), of(2)].concat());
    assert_eq!(lane()["state"], "merged");
}

#[test]
fn l32_the_end_of_a_run_shows_the_escalation() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\nretries = 1\ncommand = 'echo the database is away; exit 1'\n\
         [[lane]]\nid = \"M\"\ndepends_on = [\"L\"]\ncommand = 'echo m > m.txt'\n",
    );
    let ended = env.execute(&[]).exits(1);
    ended.says(&["the database is away", "Lane L needs a decision.\n", "Impact: M depends on it", "\nOptions:\n1. "]);
    let status = env.lanewright(&["status", "--format", "json"]).exits(0).json();
    let ended = env.resume(&[]).exits(1);
    let options = status["escalations"][0]["options"].as_array().expect("options");
    assert_eq!(options.len(), 4, "{options:?}");
    for option in options {
        let words: Vec<&str> = option["command"].as_array().expect("words").iter().filter_map(Value::as_str).collect();
        let command = words[..4.min(words.len())].join(" ");
        assert!(ended.stderr.contains(&command), "{command} is not in {}", ended.stderr);
    }
}

/// A lane whose command does not make the file that the lane must have before the attempt `until`.
fn lane_without_its_file(env: &TestEnv, until: u32, more: &str) {
    env.plan(&format!(
        "[[lane]]\nid = \"L\"\n{more}command = '''\ncp \"$LANEWRIGHT_PROMPT_FILE\" \
         \"$SCRATCH/prompt.$LANEWRIGHT_ATTEMPT\"; echo x > x.txt\n[ $LANEWRIGHT_ATTEMPT -lt {until} ] || echo y > \
         made.txt\n'''\n[[lane.must_haves.artifacts]]\npath = \"made.txt\"\n"
    ));
}

#[test]
fn l14_a_lane_without_its_file_is_not_merged() {
    let env = TestEnv::new();
    lane_without_its_file(&env, 9, "retries = 0\n");
    env.execute(&[]).exits(1).says(&["the lane lacks what it must have (0 of 1 hold): made.txt"]);
    assert!(!env.holds("main", "x.txt"), "it was merged");
}

#[test]
fn l60_a_missing_file_goes_back_to_the_agent() {
    let env = TestEnv::new();
    lane_without_its_file(&env, 2, "");
    env.execute(&[]).exits(0);
    let context = env.scratch("prompt.2");
    assert!(context.contains("missing: artifact made.txt: missing file"), "{context}");
    assert!(env.holds("main", "made.txt"));
}

#[test]
fn l58_the_end_counts_what_the_work_lacks() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "must_haves = \"report\"\n");
    env.commit("settings");
    lane_without_its_file(&env, 9, "");
    let done = "done, 1 must-have unmet, 1 lane without a gate";
    env.execute(&[]).exits(0).says(&[done]);
    for shown in [&["status", RUN][..], &["report", RUN, "--format", "md"]] {
        let text = env.lanewright(shown).exits(0).stdout;
        assert!(text.contains(done), "{text}");
    }
    let records = env.read(&format!("repo/{STATE}/checkpoints.json"));
    assert!(records.contains("1 must-have unmet; 1 lane without a gate; 1 lane merged into main"), "{records}");

    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'echo x > x.txt'\ntests = 'test -e x.txt'\n");
    env.execute(&[]).exits(0).says(&["P1 done · 1 merged"]);
}

/// The phases that an agent's work went through, by the run log.
fn phases(env: &TestEnv, lane: &str) -> Vec<String> {
    let moves: Vec<Value> = env.events("agent_moved").into_iter().filter(|event| event["lane"] == lane).collect();
    let word = |value: &Value| value.as_str().expect("a word").to_owned();
    assert!(moves.windows(2).all(|two| two[0]["to"] == two[1]["from"]), "{moves:#?}");
    let first = moves.first().map(|event| word(&event["from"]));
    first.into_iter().chain(moves.iter().map(|event| word(&event["to"]))).collect()
}

#[test]
fn l34_states_of_agents_follow_the_table() {
    let env = TestEnv::new();
    env.plan(
        r#"
[[lane]]
id = "L"
command = 'echo $LANEWRIGHT_TASK $LANEWRIGHT_ATTEMPT >> l.txt'
[[lane.task]]
id = "1"
prompt = "one"
verify = ["grep -q '1 2' l.txt"]
[[lane.task]]
id = "2"
prompt = "two"
[[lane]]
id = "F"
command = "exit 1"
retries = 0
"#,
    );
    env.execute(&[]).exits(1);
    let executes = ["INITIALIZED", "PLANNING", "PLANNED", "EXECUTING"];
    let passes = ["VALIDATING", "CHECKPOINTING"];
    let fails_and_passes = ["VALIDATING", "FAILED", "ROLLING_BACK", "EXECUTING", "VALIDATING", "CHECKPOINTING"];
    let of_l = [&executes[..], &fails_and_passes, &["EXECUTING"], &passes, &["COMPLETED"]].concat();
    let of_f = [&executes[..], &["FAILED", "ABANDONED"]].concat();
    assert_eq!(phases(&env, "L"), of_l);
    assert_eq!(phases(&env, "F"), of_f);

    let status = env.lanewright(&["status", RUN, "--format", "json"]).json();
    let states: Vec<&Value> =
        status["lanes"].as_array().expect("a list").iter().map(|lane| &lane["agent_states"]).collect();
    assert_eq!(states, [&json!({"agent": "COMPLETED"}), &json!({"agent": "ABANDONED"})]);
    let report = env.lanewright(&["report", RUN, "--format", "json"]).json();
    let last = report["lanes"][1]["agent_moves"].as_array().expect("a list").last().expect("a move");
    assert_eq!((&last["from"], &last["to"]), (&json!("FAILED"), &json!("ABANDONED")));
    let task: Value = serde_json::from_str(&env.read("repo.lanes/r1/F/task.json")).expect("an object");
    assert_eq!(task["agents"]["agent"]["state"], "ABANDONED");
    let steps = task["agents"]["agent"]["transition_log"].as_array().expect("a list");
    assert_eq!(steps.iter().map(|step| step["to"].as_str().expect("a word")).collect::<Vec<_>>(), of_f[1..]);
}

#[test]
fn l40_new_work_of_an_agent_begins_at_initialized() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\nretries = 0\ncommand = 'test -e \"$SCRATCH/go\" && echo l > l.txt'\n");
    env.execute(&[]).exits(1);
    env.write("scratch/go", "");
    env.resume(&[]).exits(0);
    env.lanewright(&["rollback", RUN, "--lane", "L", "--yes"]).exits(0);
    let once = ["INITIALIZED", "PLANNING", "PLANNED", "EXECUTING"];
    let twice = ["INITIALIZED", "PLANNING", "PLANNED", "EXECUTING", "VALIDATING", "CHECKPOINTING", "COMPLETED"];
    let expected = [&once[..], &["FAILED", "ABANDONED"], &twice, &["INITIALIZED"]].concat();
    assert_eq!(phases(&env, "L"), expected);
}
