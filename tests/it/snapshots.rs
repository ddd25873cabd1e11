//! Snapshots: those that are taken while agents work, and the commands about them (SPEC §2 and §5).

use serde_json::Value;

use crate::support::{RUN, STATE, TestEnv, wait_until};

fn taken(env: &TestEnv, reason: &str) -> Vec<Value> {
    env.events("snapshot_taken").into_iter().filter(|event| event["reason"] == reason).collect()
}

fn text<'v>(event: &'v Value, field: &str) -> &'v str {
    event[field].as_str().expect("text")
}

/// An agent that tells of tool calls and waits until the run log holds what they led to.
fn agent(calls: &str, wait: &str) -> String {
    format!(
        "[[lane]]\nid = \"A\"\nagent_worktrees = \"on\"\ncommand = '''\necho half > half.txt; git add half.txt; echo more > more.txt\n{calls}\nwait-for {wait}\ngit rm -q --cached half.txt; rm half.txt; echo a > a.txt\n'''\n"
    )
}

/// Runs an agent until the run log holds a snapshot for `reason`, and then to the end.
fn kept_for(env: &TestEnv, reason: &str, settings: &str, calls: &str) -> Vec<Value> {
    env.write("repo/lanewright.toml", settings);
    env.commit("settings");
    env.plan(&agent(calls, "kept"));
    let running = env.start(&["--merge", "none"]);
    wait_until("the snapshot", || {
        env.path(&format!("repo/{STATE}/{RUN}.jsonl")).exists() && !lines_with(env, reason).is_empty()
    });
    env.write("scratch/kept", "");
    running.wait().exits(0);
    taken(env, reason)
}

fn lines_with(env: &TestEnv, reason: &str) -> Vec<String> {
    let log = env.read(&format!("repo/{STATE}/{RUN}.jsonl"));
    log.lines().filter(|line| line.contains(&format!("\"reason\":\"{reason}\""))).map(str::to_owned).collect()
}

const CALL: &str = "{\"tool\":\"Read\",\"input\":{\"file\":\"x\"},\"at\":\"2026-01-01T00:00:00Z\"}";

#[test]
fn interval_snapshot_saves_work_of_running_agent() {
    let env = TestEnv::new();
    let kept = kept_for(&env, "interval", "checkpoint_every = '1ms'\n", "");
    let reference = text(&kept[0], "reference");
    assert_eq!(kept[0]["agent"], "agent");
    assert!(env.holds(reference, "half.txt") && env.holds(reference, "more.txt"), "{:?}", env.files(reference));
    assert_eq!(env.files("lane/P1/A"), [".gitignore", "README.md", "a.txt", "lanewright.toml", "more.txt"]);
}

#[test]
fn unrecorded_snapshot_is_recorded_at_resume() {
    for ends_alone in [false, true] {
        let env = TestEnv::new();
        env.write("repo/lanewright.toml", "checkpoint_every = '1ms'\n");
        env.commit("settings");
        env.plan(&agent("", "kept"));
        let plan = env.path("plan.toml");
        let start = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id=r1"];
        env.lanewright_with(&start, |command| command.env("LANEWRIGHT_CRASH_POINT", "kept:1"));
        let untold = env.git(&["for-each-ref", "--format=%(refname)", "refs/lanewright/checkpoint"]);
        assert!(untold.starts_with("refs/lanewright/checkpoint/P1-A/") && taken(&env, "interval").is_empty());
        // Neither a person's own copy nor what git has lost since is the run's.
        let own = "refs/lanewright/checkpoint/P1-A/my-own";
        env.git(&["update-ref", own, &untold]);
        // Two that were taken within a second may be one commit.
        let twin = "refs/lanewright/checkpoint/P1-A/20260101T000000.000Z";
        env.git(&["update-ref", twin, &untold]);
        for lost in ["P1-A", "P1-old-B"] {
            let place = format!("repo/.git/refs/lanewright/checkpoint/{lost}/20250101T000000.000Z");
            env.write(&place, format!("{}\n", "5".repeat(40)));
        }
        env.write("scratch/kept", "");
        if ends_alone {
            let attempt = "lanes/A/agents/agent/tasks/1/attempt-1";
            wait_until("its end", || env.path(&format!("repo/{STATE}/{RUN}/{attempt}/exit.json")).exists());
        }
        env.resume(&[]).exits(0);
        let told: Vec<String> = taken(&env, "interval").iter().map(|it| text(it, "reference").to_owned()).collect();
        assert_eq!(told[..2], [twin.to_owned(), untold]);
        assert!(told.iter().all(|name| name != own && !name.contains("20250101")), "{told:?}");
        let left = env.git(&["for-each-ref", "--format=%(refname)", "refs/lanewright"]);
        assert_eq!(left.lines().filter(|name| !name.contains("20250101")).collect::<Vec<_>>(), [own]);
    }
}

#[test]
fn every_so_many_tool_calls_keep_what_is_there() {
    let env = TestEnv::new();
    let calls = format!("for n in 1 2 3; do echo '{CALL}' >> \"$LANEWRIGHT_TOOL_CALLS_FILE\"; done");
    let settings = "checkpoint_every = 'none'\ncheckpoint_every_tool_calls = 3\n";
    let kept = kept_for(&env, "tool_calls", settings, &calls);
    assert_eq!(kept.len(), 1);
    assert!(env.holds(text(&kept[0], "reference"), "half.txt"));
}

#[test]
fn tool_calls_are_counted_from_one_look_to_the_next() {
    let env = TestEnv::new();
    // Far fewer of them come between two looks than make a snapshot.
    let call = format!("echo '{CALL}' >> \"$LANEWRIGHT_TOOL_CALLS_FILE\"");
    let calls = format!("while [ -d \"$SCRATCH\" ] && [ ! -e \"$SCRATCH/kept\" ]; do {call}; sleep 0.02; done");
    let settings = "checkpoint_every = 'none'\ncheckpoint_every_tool_calls = 60\n";
    assert!(!kept_for(&env, "tool_calls", settings, &calls).is_empty());
}

#[test]
fn risky_tool_call_takes_snapshot_despite_bad_json() {
    let env = TestEnv::new();
    let calls = "echo 'no json' >> \"$LANEWRIGHT_TOOL_CALLS_FILE\"\n\
                 echo '{\"tool\":\"Bash\",\"input\":{\"command\":\"git reset --hard\"}}' >> \"$LANEWRIGHT_TOOL_CALLS_FILE\"";
    let kept = kept_for(&env, "risky", "checkpoint_every = 'none'\n", calls);
    assert_eq!(kept.len(), 1);
    assert!(env.holds(text(&kept[0], "reference"), "half.txt"));
}

#[test]
fn no_interval_snapshot_when_disabled_or_not_due() {
    let env = TestEnv::new();
    env.write(
        "repo/lanewright.toml",
        "checkpoint_every = 'none'\ncheckpoint_every_tool_calls = 0\ncheckpoint_before = []\n",
    );
    env.commit("settings");
    let calls = "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do echo '{\"tool\":\"Bash\",\"input\":\"rm -rf x\"}' >> \"$LANEWRIGHT_TOOL_CALLS_FILE\"; done";
    env.plan(&agent(calls, "started"));
    env.write("scratch/started", "");
    env.execute(&["--merge", "none"]).exits(0);
    let reasons: Vec<Value> = env.events("snapshot_taken").into_iter().map(|event| event["reason"].clone()).collect();
    assert_eq!(reasons, ["task"]);
}

#[test]
fn failed_snapshot_is_reported_and_fails_no_agent() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "checkpoint_every = '1ms'\n");
    env.commit("settings");
    env.plan("[[lane]]\nid = \"A\"\nagent_worktrees = \"on\"\ncommand = '''\nmv .git ../was-git; wait-for told; mv ../was-git .git; echo a > a.txt\n'''\n");
    let running = env.start(&["--merge", "none"]);
    wait_until("the failure", || {
        let log = env.path(&format!("repo/{STATE}/{RUN}.jsonl"));
        std::fs::read_to_string(log).is_ok_and(|log| log.contains("snapshot_failed"))
    });
    env.write("scratch/told", "");
    running.wait().exits(0);
    let failed = &env.events("snapshot_failed")[0];
    assert_eq!((&failed["reason"], &failed["status"]), (&Value::from("interval"), &Value::from("error")));
    assert!(env.events("failure_noted").is_empty() && env.holds("lane/P1/A", "a.txt"));
    assert!(env.read(&format!("repo/{STATE}/{RUN}/errors.jsonl")).contains("a snapshot could not be taken"));
}

#[test]
fn interval_snapshot_is_not_a_passing_state() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "checkpoint_every = '1ms'\n");
    env.commit("settings");
    // The second attempt starts from the last state that passed, not from what was kept of the first.
    env.plan(
        "[gates]\natomic = ['test -e good.txt']\n\
         [[lane]]\nid = \"A\"\nagent_worktrees = \"on\"\nretries = 1\nresume = \"fresh\"\ncommand = '''\n\
         if [ \"$LANEWRIGHT_ATTEMPT\" = 1 ]; then echo bad > bad.txt; wait-for kept; exit 0; fi\n\
         ls > \"$SCRATCH/seen\"; echo good > good.txt\n'''\n",
    );
    let running = env.start(&["--merge", "none"]);
    wait_until("the snapshot", || {
        let log = env.path(&format!("repo/{STATE}/{RUN}.jsonl"));
        std::fs::read_to_string(log).is_ok_and(|log| log.contains("\"reason\":\"interval\""))
    });
    env.write("scratch/kept", "");
    running.wait().exits(0);
    assert!(!env.scratch("seen").contains("bad.txt"), "{}", env.scratch("seen"));
    assert!(!env.holds("lane/P1/A", "bad.txt"));
}

/// A lane whose agent failed and left something, and nobody at work.
fn failed_run() -> TestEnv {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\nagent_worktrees = \"on\"\nretries = 0\ncommand = 'echo one > one.txt; echo no luck; exit 3'\n");
    env.execute(&[]).exits(1);
    env
}

/// The worktree of the agent, below the test's directory.
const WORKTREE: &str = "repo.lanes/r1/A/agents/agent/code";

fn listed(env: &TestEnv) -> Vec<Value> {
    let shown = env.lanewright(&["checkpoints", "list", RUN, "--format", "json"]).exits(0);
    let shown: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    shown["snapshots"].as_array().expect("a list").clone()
}

fn json(env: &TestEnv, arguments: &[&str]) -> Value {
    let ended = env.lanewright(&[arguments, &["--format", "json"]].concat()).exits(0);
    serde_json::from_str(&ended.stdout).expect("JSON")
}

#[test]
fn checkpoints_list_and_show_their_context() {
    let env = failed_run();
    let shown_text = env.lanewright(&["checkpoints", "list", "--lane", "A"]).exits(0).stdout;
    for part in ["before_lane_start", "after_lane_start", "failed", "ckpt_A_1_", "failure", "1 file changed"] {
        assert!(shown_text.contains(part), "{part} is not in\n{shown_text}");
    }
    let name = text(&listed(&env)[0], "name").to_owned();
    let shown = json(&env, &["checkpoints", "show", &name]);
    let context = &shown["snapshot"]["context"];
    assert_eq!(context["tail"], serde_json::json!(["no luck"]));
    assert_eq!((&context["next_task"], &shown["changed_files"]), (&Value::from("1"), &serde_json::json!(["one.txt"])));
    assert!(context["blockers"][0].as_str().expect("text").contains("exited with code 3"), "{shown}");
    let shown_text = env.lanewright(&["checkpoints", "show", &name]).exits(0).stdout;
    for part in ["no luck", "one.txt", &format!("lanewright checkpoints restore {name}")] {
        assert!(shown_text.contains(part), "{part} is not in\n{shown_text}");
    }
    env.lanewright(&["checkpoints", "list", "--lane", "B"]).exits(2).hints("A");
    env.lanewright(&["checkpoints", "show", "ckpt_A_9_never"]).exits(8).says(&["ckpt_A_9_never"]);
}

#[test]
fn snapshot_is_found_by_name_ref_or_commit_prefix() {
    let env = failed_run();
    let one = &listed(&env)[0];
    let (reference, commit) = (text(one, "reference"), text(one, "commit"));
    for name in [text(one, "name"), reference, &reference["refs/".len()..], &commit[..8], commit] {
        assert_eq!(json(&env, &["checkpoints", "show", name])["snapshot"]["commit"], one["commit"], "{name}");
    }
    env.lanewright(&["checkpoints", "show", &commit[..3]]).exits(8);
}

#[test]
fn restore_saves_the_replaced_state_first() {
    let env = failed_run();
    let made = json(&env, &["checkpoints", "create", RUN, "A", "agent", "-m", "before lunch"]);
    env.write(&format!("{WORKTREE}/one.txt"), "spoilt\n");
    env.write(&format!("{WORKTREE}/two.txt"), "two\n");
    let head = env.git_at(WORKTREE, &["rev-parse", "HEAD"]);
    env.lanewright(&["checkpoints", "restore", text(&made, "name")]).exits(0);
    assert_eq!(env.read(&format!("{WORKTREE}/one.txt")), "one\n");
    assert!(!env.path(&format!("{WORKTREE}/two.txt")).exists(), "what the snapshot does not hold is still there");
    assert_eq!(env.git_at(WORKTREE, &["rev-parse", "HEAD"]), head, "the branch moved");
    let kept = &taken(&env, "restore")[0];
    env.lanewright(&["checkpoints", "restore", text(kept, "reference")]).exits(0);
    assert_eq!(env.read(&format!("{WORKTREE}/one.txt")), "spoilt\n");
    assert_eq!(env.read(&format!("{WORKTREE}/two.txt")), "two\n");
    assert_eq!(taken(&env, "request").len(), 1);
    let shown = json(&env, &["checkpoints", "show", text(&made, "name")]);
    assert!(text(&shown, "message").contains("before lunch"), "{shown}");
    env.resume(&[]).exits(1);
}

#[test]
fn restore_to_directory_or_branch_never_overwrites() {
    let env = failed_run();
    let name = text(&listed(&env)[0], "name").to_owned();
    env.lanewright(&["checkpoints", "restore", &name, "--to", "../out"]).exits(0);
    assert_eq!(env.read("out/one.txt"), "one\n");
    env.lanewright(&["checkpoints", "restore", &name, "--to", "../out"]).exits(2).says(&["out"]);
    env.lanewright(&["checkpoints", "restore", &name, "--branch", "saved"]).exits(0);
    assert!(env.holds("saved", "one.txt"));
    let again = env.lanewright(&["checkpoints", "restore", &name, "--branch", "main"]);
    assert_ne!(again.code, 0);
    assert!(!env.holds("main", "one.txt"));
    env.lanewright(&["checkpoints", "restore", &name, "--branch=-x"]).exits(2);
}

#[test]
fn active_run_can_create_but_not_restore_snapshots() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\nagent_worktrees = \"on\"\ncommand = 'echo half > half.txt; touch \"$SCRATCH/began\"; wait-for go'\n");
    let running = env.start(&["--merge", "none"]);
    wait_until("the agent", || env.path("scratch/began").exists());
    let made = json(&env, &["checkpoints", "create", RUN, "A", "agent"]);
    assert!(env.holds(text(&made, "reference"), "half.txt"));
    env.lanewright(&["checkpoints", "create", RUN, "A"]).exits(0);
    env.lanewright(&["checkpoints", "create", RUN, "A", "nobody"]).exits(2).hints("agent");
    env.lanewright(&["checkpoints", "restore", text(&made, "name")]).exits(4);
    env.write("scratch/go", "");
    running.wait().exits(0);
    assert_eq!(taken(&env, "request").len(), 2);
    assert!(env.holds("lane/P1/A", "half.txt"));
}

#[test]
fn restore_is_refused_while_an_orphan_agent_runs() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\nagent_worktrees = \"on\"\ncommand = 'echo half > half.txt; touch \"$SCRATCH/began\"; wait-for go'\n");
    let running = env.start(&["--merge", "none"]);
    wait_until("the agent", || env.path("scratch/began").exists());
    let made = json(&env, &["checkpoints", "create", RUN, "A", "agent"]);
    running.signal(rustix::process::Signal::KILL);
    running.wait().exits(137);
    env.lanewright(&["checkpoints", "restore", text(&made, "name")]).exits(4).says(&["still runs"]);
    // Another one may be taken all the same.
    env.lanewright(&["checkpoints", "create", RUN, "A", "agent"]).exits(0);
    env.write("scratch/go", "");
    env.resume(&[]).exits(0);
    assert_eq!(taken(&env, "request").len(), 2);
}

/// Takes away the object that holds `file` in the snapshot, which nothing else holds.
fn damage(env: &TestEnv, reference: &str, file: &str) {
    let blob = env.git(&["rev-parse", &format!("{reference}:{file}")]);
    let path = env.path(&format!("repo/.git/objects/{}/{}", &blob[..2], &blob[2..]));
    std::fs::remove_file(path).expect("a loose object");
}

#[test]
fn damaged_snapshot_is_listed_and_latest_skips_it() {
    let env = failed_run();
    env.lanewright(&["checkpoints", "create", RUN, "A", "agent"]).exits(0);
    env.write(&format!("{WORKTREE}/three.txt"), "three\n");
    let made = json(&env, &["checkpoints", "create", RUN, "A", "agent"]);
    damage(&env, text(&made, "reference"), "three.txt");
    let found = listed(&env);
    assert!(found[2]["damage"].is_string() && found[1]["damage"].is_null(), "{found:?}");
    let text_list = env.lanewright(&["checkpoints", "list", RUN]).exits(0).stdout;
    assert_eq!(text_list.matches("DAMAGED").count(), 1, "{text_list}");
    env.lanewright(&["checkpoints", "show", text(&made, "name")]).exits(0);
    let refused = env.lanewright(&["checkpoints", "restore", text(&made, "name"), "--to", "../out"]);
    refused.exits(6).hints("latest:A");
    assert!(!env.path("out").exists());
    env.lanewright(&["checkpoints", "restore", "latest:A/agent", "--branch", "saved"]).exits(0).says(&["damaged"]);
    assert_eq!(env.git(&["rev-parse", "saved"]), text(&found[1], "commit"));
}

#[test]
fn pruning_leaves_what_was_put_aside_and_the_newest() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "checkpoint_every = '1ms'\ncheckpoint_every_tool_calls = 0\n");
    env.commit("settings");
    env.plan("[[lane]]\nid = \"A\"\nagent_worktrees = \"on\"\nretries = 0\ncommand = 'echo x > x.txt; wait-for kept; exit 3'\n");
    let running = env.start(&[]);
    wait_until("snapshots", || {
        env.path(&format!("repo/{STATE}/{RUN}.jsonl")).exists() && lines_with(&env, "interval").len() > 2
    });
    env.write("scratch/kept", "");
    running.wait().exits(1);
    let before = listed(&env);
    env.lanewright(&["checkpoints", "prune", RUN]).exits(2).hints("--keep");
    let would = json(&env, &["checkpoints", "prune", RUN, "--keep", "1", "--dry-run"]);
    assert!(would["snapshots"].as_array().expect("a list").iter().any(|one| one["removed"] == true), "{would}");
    assert_eq!(listed(&env), before, "a dry run removed something");
    env.lanewright(&["checkpoints", "prune", RUN, "--older-than", "1h"]).exits(0);
    assert_eq!(listed(&env), before, "what is young went");
    env.lanewright_with(&["checkpoints", "prune", RUN], |command| command.env("LANEWRIGHT_CHECKPOINT_KEEP", "1"))
        .exits(0);
    let left = listed(&env);
    assert_eq!(left, before[before.len() - 1..], "not just the last one, the salvage, is left");
    assert_eq!(left[0]["reason"], "failure");
    env.lanewright(&["checkpoints", "prune", RUN, "--older-than", "0s", "--force"]).exits(0);
    assert_eq!(listed(&env), left, "the last one went");
    env.lanewright(&["checkpoints", "show", text(&before[0], "name")]).exits(8).says(&["pruned"]);
}

#[test]
fn lane_without_worktree_cannot_be_saved_or_restored() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\nagent_worktrees = \"on\"\ncommand = 'echo a > a.txt'\n");
    env.execute(&[]).exits(0);
    env.lanewright(&["checkpoints", "create", RUN, "A"]).exits(8).says(&["no worktree"]);
    assert_eq!(listed(&env), [] as [Value; 0]);
    let gone = &taken(&env, "task")[0];
    env.lanewright(&["checkpoints", "restore", text(gone, "reference")]).exits(8).says(&["merged"]);
    env.lanewright(&["checkpoints", "create", "never", "A"]).exits(8);
}

/// Two tasks; the first attempt at the second one takes the blob of `one.txt`, what the first one made, out of git.
fn with_damage(more: &str) -> TestEnv {
    let env = TestEnv::new();
    env.plan(&format!(
        "[gates]\natomic = ['test -e one.txt']\n[[lane]]\nid = \"A\"\nagent_worktrees = \"on\"\nretries = 1\nresume = \"fresh\"\ncommand = '''\n\
         echo \"$LANEWRIGHT_TASK $LANEWRIGHT_ATTEMPT $(ls)\" | tr '\\n' ' ' >> \"$SCRATCH/done\"; echo >> \"$SCRATCH/done\"\n\
         if [ \"$LANEWRIGHT_TASK\" = 1 ]; then echo only here > one.txt; exit 0; fi\n\
         if [ \"$LANEWRIGHT_ATTEMPT\" = 1 ]; then\n\
         blob=$(git rev-parse HEAD:one.txt); objects=\"$SCRATCH/../repo/.git/objects\"\n\
         rm -f \"$objects/$(echo $blob | cut -c1-2)/$(echo $blob | cut -c3-)\"\n{more}\nexit 1\nfi\necho two > two.txt\n'''\n\
         [[lane.task]]\nid = \"1\"\nprompt = \"one\"\n[[lane.task]]\nid = \"2\"\nprompt = \"two\"\n"
    ));
    env
}

#[test]
fn lost_git_objects_are_rewritten_from_the_files() {
    let env = with_damage("echo left > left.txt");
    env.execute(&[]).exits(0);
    assert_eq!(env.file_at("main", "one.txt"), "only here");
    assert_eq!(env.scratch("done").lines().filter(|line| line.starts_with("1 ")).count(), 1, "{}", env.scratch("done"));
    assert!(env.events("snapshot_damaged").is_empty() && env.events("snapshot_failed").is_empty());
    env.git(&["fsck", "--no-dangling"]);
}

#[test]
fn damaged_passing_state_falls_back_to_the_one_before() {
    let env = with_damage("rm one.txt");
    env.execute(&[]).exits(0);
    assert_eq!(env.file_at("main", "one.txt"), "only here");
    let lines = env.scratch("done");
    assert_eq!(lines.lines().filter(|line| line.starts_with("1 ")).count(), 2, "the task was not done again: {lines}");
    let damaged = &env.events("snapshot_damaged")[0];
    assert_eq!((&damaged["status"], &damaged["agent"]), (&Value::from("error"), &Value::from("agent")));
    assert!(env.read(&format!("repo/{STATE}/{RUN}/errors.jsonl")).contains("is damaged"));
}

/// Two runs that have failed: `r1` of phase P1 with lane `A-B`, and `r2` of phase P1-A with lane `B`, whose snapshots have
/// names in one directory of refs.
fn with_overlapping_names() -> (TestEnv, [Vec<String>; 2]) {
    let env = TestEnv::new();
    for (run, phase, lane) in [("r1", "P1", "A-B"), ("r2", "P1-A", "B")] {
        let command = format!("echo {run} $LANEWRIGHT_ATTEMPT > work.txt; exit 3");
        env.write(
            &format!("{run}.toml"),
            format!("phase = \"{phase}\"\n[[lane]]\nid = \"{lane}\"\nagent_worktrees = \"on\"\nretries = 2\ncommand = '{command}'\n"),
        );
        env.lanewright(&["execute-phase", &format!("../{run}.toml"), "--run-id", run]).exits(1);
    }
    let named = ["r1", "r2"].map(|run| {
        let log = env.read(&format!("repo/{STATE}/{run}.jsonl"));
        let events = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
        let taken = events.filter(|event| event["event"] == "snapshot_taken");
        taken.map(|event| text(&event, "reference").to_owned()).collect::<Vec<_>>()
    });
    let directory = "refs/lanewright/checkpoint/P1-A-B/";
    assert!(named.iter().all(|names| names.len() > 1 && names.iter().all(|name| name.starts_with(directory))));
    (env, named)
}

#[test]
fn snapshots_of_overlapping_names_are_not_confused() {
    let (env, [of_one, of_other]) = with_overlapping_names();
    let listed = |run: &str| -> Vec<String> {
        let listed = json(&env, &["checkpoints", "list", run]);
        listed["snapshots"].as_array().expect("a list").iter().map(|it| text(it, "reference").to_owned()).collect()
    };
    assert_eq!((listed("r1"), listed("r2")), (of_one.clone(), of_other.clone()));
    env.lanewright(&["checkpoints", "prune", "r1", "--keep", "1", "--force"]).exits(0);
    assert!(listed("r1").len() < of_one.len());
    assert_eq!(listed("r2"), of_other);
    env.lanewright(&["checkpoints", "restore", &of_other[0], "--branch", "saved"]).exits(0);
    assert_eq!(env.file_at("saved", "work.txt"), "r2 1");
    env.lanewright(&["clean", "r1", "--force", "--yes"]).exits(0);
    assert!(env.refs().iter().all(|name| !of_one.contains(name)), "left by clean");
    assert_eq!(listed("r2"), of_other);
}

#[test]
fn doctor_tells_snapshots_of_similar_lanes_apart() {
    let (env, [of_one, of_other]) = with_overlapping_names();
    std::fs::rename(env.path(&format!("repo/{STATE}/r1.jsonl")), env.path("r1.jsonl")).expect("moved");
    let said = env.lanewright(&["--format", "json", "doctor"]).exits(6).stdout;
    assert!(of_one.iter().all(|name| said.contains(name)), "{said}");
    assert!(of_other.iter().all(|name| !said.contains(name)), "taken for the other run's:\n{said}");
    // What is left of a run that is gone has no run, although a lane of another phase has its name.
    let stray = "refs/lanewright/checkpoint/P1-A-B/20250101T000000.000Z";
    let tree = env.git(&["rev-parse", "main^{tree}"]);
    let commit = env.git(&["commit-tree", &tree, "-m", "Snapshot of A-B\n\nRun: r0\nLane: A-B\nReason: stop"]);
    env.git(&["update-ref", stray, &commit]);
    std::fs::rename(env.path("r1.jsonl"), env.path(&format!("repo/{STATE}/r1.jsonl"))).expect("moved");
    env.lanewright(&["rollback", "r1", "--yes"]);
    env.lanewright(&["clean", "r1", "--force", "--logs", "--yes"]).exits(0);
    let said = env.lanewright(&["doctor"]).stdout;
    assert!(said.contains(stray), "{said}");
    assert!(of_other.iter().all(|name| !said.contains(name)), "{said}");
}
