//! Agents that end with success and changed nothing.

use crate::support::TestEnv;

/// A lane that depends on `A`, which shows whether that was merged.
const AFTER: &str = "[[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\ncommand = 'echo b > b.txt'\n";

/// A plan with one lane whose agent runs `script`.
fn plan_of(script: &str, more: &str) -> String {
    format!("[[lane]]\nid = \"A\"\nretries = 1\nprompt = \"Build it.\"\n{more}\ncommand = '''\n{script}\n'''\n{AFTER}")
}

fn failures(env: &TestEnv) -> Vec<String> {
    let noted = env.events("failure_noted");
    noted.iter().map(|event| format!("{}: {}", event["failure"]["kind"], event["failure"]["message"])).collect()
}

#[test]
fn idle_agent_is_not_merged_and_its_output_shown() {
    for (script, said) in [
        ("echo 'Which database should I use?'", "it said: Which database should I use?"),
        ("echo; echo 'I cannot help with that.'; echo", "it said: I cannot help with that."),
        ("true", "said nothing"),
        ("echo 'API Error: 529 overloaded'", "it said: API Error: 529 overloaded"),
        ("echo out > ignored.log; git commit --quiet --allow-empty --message nothing; echo Done.", "it said: Done."),
        (
            "echo out > ignored.log",
            "changed no file but what commits leave out: ignored.log (ignored by .gitignore:2), and said nothing",
        ),
    ] {
        let env = TestEnv::new();
        env.plan(&plan_of(script, ""));
        env.execute(&[]).exits(1).says(&["A agent: changed no file", said]);
        let page = env.lanewright(&["status", "r1", "A"]).exits(0).stdout;
        assert!(page.contains("allow_empty = true"), "{page}");
        assert!(env.events("lane_merged").is_empty(), "{script}");
        // The first attempt, one retry, and the last with a different approach.
        assert_eq!(env.events("work_committed").len(), 3, "{script}");
        assert!(failures(&env).iter().all(|failure| failure.contains(said)), "{script}: {:?}", failures(&env));
    }
}

/// Others, and so the gates of CI, have no such rules.
#[test]
fn new_files_that_only_the_user_ignores_are_named_and_taken() {
    for (take, files) in [("", "main.txt"), ("take = [\"lib\"]", "lib/new.txt main.txt")] {
        let env = TestEnv::new();
        env.write("scratch/rules", "lib/\n*.sql\n*.log\n*~\n.env\n");
        env.git(&["config", "core.excludesFile", env.path("scratch/rules").to_str().expect("UTF-8")]);
        env.write("repo/lanewright.toml", format!("copy = [\".env\"]\n{take}\n"));
        env.write("repo/.env", "x");
        let script = "mkdir lib db; for file in lib/new.txt main.txt db/x.sql a.log main.txt~; do echo 1 > $file; done";
        env.plan(&format!("[[lane]]\nid = \"A\"\ncommand = '{script}'\n"));
        env.execute(&[]).exits(0);
        let notes = env.events("noted");
        let mut notes = notes.iter().filter_map(|note| note["message"].as_str());
        let left_out = notes.find(|note| note.starts_with("left out of the work: ")).expect("a note");
        let rules = env.path("scratch/rules").display().to_string();
        assert!(left_out.contains(&format!("db/x.sql (ignored by {rules}:2)")), "{left_out}");
        assert_eq!(left_out.contains(&format!("lib/ (ignored by {rules}:1)")), take.is_empty(), "{left_out}");
        assert!(![".env (", "a.log (", "main.txt~"].iter().any(|other| left_out.contains(other)), "{left_out}");
        let merged = env.files("main");
        let merged: Vec<&str> = merged.iter().map(String::as_str).filter(|file| !BEFORE.contains(file)).collect();
        assert_eq!(merged.join(" "), files);
    }
}

/// What the repository has before any lane.
const BEFORE: [&str; 2] = [".gitignore", "README.md"];

#[test]
fn retry_after_no_change_quotes_agents_question() {
    let env = TestEnv::new();
    let script = "[ \"$LANEWRIGHT_ATTEMPT\" -gt 1 ] && echo a > a.txt; echo 'Which database?'";
    env.plan(&plan_of(script, ""));
    env.execute(&[]).exits(0);
    let prompt = env.attempt_file("A", "agent", 2, "prompt.md");
    for told in ["changed no file; it said: Which database?", "Nobody answers questions"] {
        assert!(prompt.contains(told), "{told}: {prompt}");
    }
    env.assert_nothing_left(&["main"]);
}

#[test]
fn files_of_setup_and_gates_are_no_agent_changes() {
    let talks = "command = 'echo Which one?'";
    let plans = [
        format!("setup = 'echo lock > lock.json; echo more >> README.md'\n{talks}\n"),
        format!("setup = 'echo lock > lock.json'\nagent_worktrees = \"on\"\n{talks}\n"),
        format!("{talks}\n[[lane.task]]\nverify = 'date > out.txt'\n[[lane.task]]\n"),
        format!("setup = 'ln -s /usr/share modules; rm README.md'\n{talks}\n"),
    ];
    for plan in plans {
        let env = TestEnv::new();
        env.plan(&format!("[[lane]]\nid = \"A\"\nretries = 0\n{plan}"));
        env.execute(&[]).exits(1).says(&["it said: Which one?"]);
        assert!(env.events("lane_merged").is_empty(), "{plan}");
    }
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\nowns = [\"a.txt\"]\nsetup = 'echo lock > lock.json'\n\
         command = 'test -e lock.json && echo a > a.txt'\n",
    );
    env.execute(&[]).exits(0);
    assert!(env.holds("main", "a.txt"));
}

#[test]
fn files_formatted_by_a_gate_stay_agent_work() {
    let env = TestEnv::new();
    let writes = "[ $LANEWRIGHT_TASK != t1 ] || echo 'x  =  1' > a.txt";
    env.plan(&format!(
        "[[lane]]\nid = \"A\"\nretries = 0\ncommand = \"{writes}\"\n[[lane.task]]\nid = \"t1\"\n\
         verify = \"sed -i 's/  */ /g' a.txt && test -s a.txt\"\n[[lane.task]]\nid = \"t2\"\nallow_empty = true\n"
    ));
    env.execute(&[]).exits(0);
    assert_eq!(env.file_at("main", "a.txt"), "x = 1");
}

#[test]
fn work_that_may_change_nothing_is_merged() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "allow_empty = true\n");
    env.plan(&plan_of("echo fine", ""));
    env.execute(&[]).exits(0);
    for more in ["allow_empty = true", "ownership = \"nothing\"", "task = [{ name = \"See\", allow_empty = true }]"] {
        let env = TestEnv::new();
        env.plan(&plan_of("echo fine", more));
        env.execute(&[]).exits(0);
        assert!(env.holds("main", "b.txt"), "{more}");
    }
    let env = TestEnv::new();
    env.plan(
        "defaults = { allow_empty = true }\n[[lane]]\nid = \"A\"\n\
         [[lane.agent]]\nname = \"one\"\ncommand = 'true'\n\
         [[lane.agent]]\nname = \"two\"\nallow_empty = false\ncommand = 'true'\n",
    );
    env.execute(&["--retries", "0"]).exits(1);
    assert_eq!(failures(&env).len(), 1, "{:?}", failures(&env));
}

#[test]
fn resume_applies_changed_agent_settings_when_accepted() {
    let env = TestEnv::new();
    env.plan(&plan_of("echo fine", ""));
    env.execute(&[]).exits(1);
    env.write("repo/lanewright.toml", "allow_empty = true\ntask_timeout = \"7m\"\n");
    env.resume(&[]).exits(1);
    env.resume(&["--accept-plan-change"]).exits(0);
    let pinned = env.read("repo/.claude/ai-dev-kit/run-logs/r1/plan.json");
    assert!(pinned.contains("\"timeout\": 420000"), "{pinned}");
}

#[test]
fn idle_task_beside_task_with_changes_is_reported() {
    let env = TestEnv::new();
    let tasks = "task = [{ id = \"look\" }, { id = \"make\" }, { id = \"check\" }]";
    env.plan(&plan_of("[ $LANEWRIGHT_TASK != make ] || echo a > a.txt", tasks));
    let ended = env.execute(&[]).exits(0);
    // `look` and `check`.
    assert_eq!(ended.stderr.matches("A agent: the task changed no file").count(), 2, "{}", ended.stderr);
    assert!(failures(&env).is_empty());
    let idle: Vec<String> = env.events("work_committed").iter().map(|event| event["idle"].to_string()).collect();
    assert_eq!(idle[..3], ["\"agent\"", "null", "\"task\""]);
}

#[test]
fn idle_tasks_are_retried_together_within_the_limit() {
    let env = TestEnv::new();
    let tasks = "task = [{ id = \"one\" }, { id = \"two\" }]";
    env.plan(&plan_of("echo $LANEWRIGHT_TASK >> \"$SCRATCH/did\"; echo 'May I?'", tasks));
    env.execute(&[]).exits(1).says(&["no task changed a file; it said: May I?"]);
    assert_eq!(env.scratch("did"), "one\ntwo\none\ntwo\n");
}

#[test]
fn own_commits_and_earlier_attempts_count_as_changes() {
    let commits = "echo a > a.txt; git add a.txt; git commit --quiet --message mine";
    let leaves = "[ \"$LANEWRIGHT_ATTEMPT\" -gt 1 ] || { echo a > a.txt; exit 1; }";
    let gate = "verify = '[ -e \"$SCRATCH/tried\" ] || { echo > \"$SCRATCH/tried\"; exit 1; }'";
    let committed = "[ \"$LANEWRIGHT_ATTEMPT\" -gt 1 ] || echo a > a.txt";
    for (script, more) in [
        (commits, String::new()),
        (leaves, String::new()),
        (committed, format!("task = [{{ id = \"1\", {} }}]", gate.replace("'[", "'''[").replace("; }'", "; }'''"))),
    ] {
        let env = TestEnv::new();
        // The lane's key comes before its command, and both are literal texts of several lines.
        env.plan(&plan_of(script, &more));
        env.execute(&[]).exits(0);
        assert!(env.holds("main", "a.txt"), "{script}");
        assert!(failures(&env).iter().all(|failure| !failure.contains("idle")), "{script}: {:?}", failures(&env));
    }
}

#[test]
fn work_that_was_committed_before_a_crash_is_work() {
    for point in ["before_commit_work:1", "after_commit_work:1", "after_snapshot:1", "after_merge_agent:1"] {
        let env = TestEnv::new();
        let separate = "retries = 0\nagent_worktrees = \"on\"";
        env.plan(&plan_of("echo a > a.txt", separate).replacen("retries = 1\n", "", 1));
        let plan = env.path("plan.toml");
        let start = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1"];
        env.lanewright_with(&start, |command| command.env("LANEWRIGHT_CRASH_POINT", point));
        env.resume(&[]).exits(0);
        assert!(failures(&env).is_empty(), "{point}: {:?}", failures(&env));
        assert!(env.holds("main", "a.txt") && env.holds("main", "b.txt"), "{point}");
    }
}

#[test]
fn no_change_is_needed_after_a_gate_failure() {
    let env = TestEnv::new();
    let flaky = "tests = '''[ -e \"$SCRATCH/tried\" ] || { echo > \"$SCRATCH/tried\"; exit 1; }'''";
    env.plan(&plan_of("[ \"$LANEWRIGHT_ATTEMPT\" -gt 1 ] || echo a > a.txt", flaky));
    env.execute(&[]).exits(0);
    assert_eq!(failures(&env).len(), 1, "{:?}", failures(&env));
    assert!(env.holds("main", "a.txt"));
}

#[test]
fn idle_agents_are_judged_singly_in_a_shared_worktree() {
    for worktrees in ["on", "off"] {
        let env = TestEnv::new();
        env.plan(&format!(
            "[[lane]]\nid = \"A\"\nretries = 0\nagent_worktrees = \"{worktrees}\"\n\
             [[lane.agent]]\nname = \"one\"\ncommand = 'echo 1 > one.txt'\n\
             [[lane.agent]]\nname = \"two\"\ncommand = 'echo Nothing to do.'\n"
        ));
        env.execute(&[]).exits(1).says(&["A two: changed no file; it said: Nothing to do."]);
        env.plan(&env.read("plan.toml").replacen("phase = \"P1\"\n", "", 1).replacen(
            "name = \"two\"",
            "name = \"two\"\nallow_empty = true",
            1,
        ));
        env.resume(&["--accept-plan-change"]).exits(0);
        assert!(env.holds("main", "one.txt"), "{worktrees}");
    }
}
