//! Every row of `docs/recovery.md`: the state is made, it shows as the row says, and what the row says to type works.

use std::collections::BTreeSet;
use std::process::Command;

use rustix::process::Signal;

use crate::support::{Ended, TestEnv, wait_until};
use crate::{moved_branch, placement};

/// A row: the state, the exit codes that show it, the words that it says, the commands to type.
struct Row {
    state: String,
    codes: Vec<i32>,
    says: Vec<String>,
    types: Vec<Vec<String>>,
}

fn rows() -> Vec<Row> {
    let text = include_str!("../../docs/recovery.md");
    text.lines().filter(|line| line.starts_with("| `")).map(row).collect()
}

fn row(line: &str) -> Row {
    let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
    let state = cells[0].trim_matches(['`', ' ']).to_owned();
    let spans =
        |cell: &str, mark: char| -> Vec<String> { cell.split(mark).skip(1).step_by(2).map(str::to_owned).collect() };
    let codes = cells[1].split("exit code ").nth(1).map(|rest| rest.split('"').next().unwrap_or_default());
    let codes = codes.into_iter().flat_map(|codes| codes.split([',', ' ']).filter_map(|word| word.parse().ok()));
    let commands = spans(cells[3], '`').into_iter().filter(|span| span.starts_with("lanewright "));
    Row {
        state,
        codes: codes.collect(),
        says: spans(cells[1], '"'),
        types: commands.map(|command| words(&command)).collect(),
    }
}

/// The words of a command, one of which may be in quotes; the program's name left out.
fn words(command: &str) -> Vec<String> {
    let parts = command.split('"').enumerate();
    let quoted = |(at, part): (usize, &str)| match at % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
        _ => vec![part.to_owned()],
    };
    parts.flat_map(quoted).skip(1).collect()
}

const WORKS: &str = "[[lane]]\nid = \"L\"\nagent_worktrees = \"on\"\ncommand = 'echo l > l.txt'\n";

/// A lane whose agent waits in its first attempt.
const WAITS: &str = "[[lane]]\nid = \"L\"\nagent_worktrees = \"on\"\ncommand = 'echo l > l.txt; touch \"$SCRATCH/began\"; wait-for go'\n";

/// A lane that passes once the cause is fixed.
const FAILS: &str = "[[lane]]\nid = \"L\"\nagent_worktrees = \"on\"\nretries = 0\ncommand = '[ -e \"$SCRATCH/fixed\" ] && echo l > l.txt'\n";

/// The worktree of L's agent.
const PLACE: &str = "repo.lanes/r1/L/agents/agent/code";

fn planned(plan: &str) -> TestEnv {
    let env = TestEnv::new();
    env.plan(plan);
    env
}

/// A run whose agent was at work when it was asked to stop.
fn stopped() -> (TestEnv, Ended) {
    let env = planned(WAITS);
    let run = env.start(&[]);
    wait_until("the agent", || env.path("scratch/began").exists());
    env.lanewright(&["stop", "r1"]).exits(0);
    let ended = run.wait();
    env.write("scratch/go", "");
    (env, ended)
}

/// A run whose terminal was closed; its agent goes on.
fn hung_up() -> (TestEnv, Ended) {
    let env = planned(WAITS);
    let run = env.start(&[]);
    wait_until("the agent", || env.path("scratch/began").exists());
    run.signal(Signal::HUP);
    let ended = run.wait();
    env.write("scratch/go", "");
    (env, ended)
}

/// A run whose Lanewright was killed; its agent goes on.
fn interrupted() -> TestEnv {
    let env = planned(WAITS);
    let run = env.start(&[]);
    wait_until("the agent", || env.path("scratch/began").exists());
    run.signal(Signal::KILL);
    run.wait();
    env.write("scratch/go", "");
    env
}

/// Empties the object that `name` leads to.
fn empty(env: &TestEnv, name: &str) {
    let id = env.git(&["rev-parse", name]);
    let object = env.path(&format!("repo/.git/objects/{}/{}", &id[..2], &id[2..]));
    std::fs::remove_file(&object).expect("a loose object");
    std::fs::write(object, "").expect("an empty file");
}

/// The snapshot that a rollback took last.
fn snapshot_of_rollback(env: &TestEnv) -> String {
    let taken = env.events("snapshot_taken").into_iter().rfind(|event| event["reason"] == "rollback");
    taken.expect("a snapshot")["reference"].as_str().expect("a ref").to_owned()
}

/// Makes the state and shows it: what the user sees first.
fn shown(state: &str) -> (TestEnv, Ended) {
    let executed = |plan: &str| {
        let env = planned(plan);
        let ended = env.execute(&[]);
        (env, ended)
    };
    let then = |env: TestEnv, arguments: &[&str]| {
        let ended = env.lanewright(arguments);
        (env, ended)
    };
    match state {
        "interrupted" => then(interrupted(), &["status", "r1"]),
        "terminal-closed" => hung_up(),
        "stopped" => stopped(),
        "setup-waits" => {
            let setup = "user_setup = [{ service = \"mail\", env_vars = [{ name = \"MAIL_KEY\" }] }]\ncommand";
            executed(&WORKS.replace("command", setup))
        }
        "plan-waits" => executed(&WORKS.replace("command", "approval = [\"plan\"]\ncommand")),
        "changes-wait" => executed(&WORKS.replace("command", "approval = [\"changes\"]\ncommand")),
        "person-waits" => {
            executed(&format!("{WORKS}[[lane.task]]\nid = \"ask\"\ntype = \"checkpoint:decision\"\nprompt = \"Which?\"\n"))
        }
        "lane-failed" | "lane-hopeless" => executed(FAILS),
        "network-out" => {
            let env = planned(&FAILS.replace("&& echo l > l.txt", "|| { echo Could not resolve host: x; exit 1; }; echo l > l.txt"));
            env.write("config/lanewright/config.toml", "outage_limit = \"0s\"\n");
            let ended = env.execute(&[]);
            (env, ended)
        }
        "agent-blocked" => executed(&FAILS.replace(
            "&& echo l > l.txt",
            "|| echo \"{\\\"status\\\": \\\"BLOCKED\\\", \\\"blocked_by\\\": \\\"the key is missing\\\"}\" > \"$LANEWRIGHT_STATUS_FILE\"; echo l > l.txt",
        )),
        "checkout-in-the-way" => {
            let env = planned(&WAITS.replace("l.txt;", "README.md;"));
            let run = env.start(&[]);
            // Owned files must be clean when the lane begins; later they are in the way.
            wait_until("the agent", || env.path("scratch/began").exists());
            env.write("repo/README.md", "being edited\n");
            env.write("scratch/go", "");
            (env, run.wait())
        }
        "tests-red" => executed(&FAILS.replace("command = '[ -e \"$SCRATCH/fixed\" ] &&", "tests = '[ -e \"$SCRATCH/fixed\" ]'\ncommand = '")),
        "phase-red" => executed(&format!("[gates]\nfinal = '[ -e \"$SCRATCH/fixed\" ]'\n{WORKS}")),
        "changed-outside" => {
            let env = stopped().0;
            let opened = env.events("worktree_opened");
            let place = opened.last().expect("a worktree");
            let place = place["worktree"]["path"].as_str().expect("a path");
            std::fs::write(format!("{place}/l.txt"), "by somebody else\n").expect("a file");
            then(env, &["resume", "r1"])
        }
        "work-gone" => {
            let merged = "[[lane]]\nid = \"M\"\ncommand = 'echo m > m.txt'\n";
            let env = executed(&format!("{merged}{}", FAILS.replace("retries", "depends_on = [\"M\"]\nretries"))).0;
            env.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
            then(env, &["resume", "r1"])
        }
        "branch-moved" => {
            let env = planned(WAITS);
            let run = env.start(&[]);
            wait_until("the agent", || env.path("scratch/began").exists());
            moved_branch::move_branch_alone(&env, "new.txt");
            env.write("scratch/go", "");
            (env, run.wait())
        }
        "work-gone-at-end" => {
            let reset = "git branch --quiet --force main HEAD~1";
            let env = planned(&format!("base_branch = \"main\"\n[gates]\nfinal = '{reset}'\n{WORKS}"));
            env.git(&["switch", "--quiet", "--create", "side"]);
            let ended = env.execute(&[]);
            (env, ended)
        }
        "plan-changed" => {
            let env = stopped().0;
            env.plan(&format!("{WAITS}[[lane]]\nid = \"M\"\ncommand = 'echo m > m.txt'\n"));
            then(env, &["resume", "r1"])
        }
        "plan-edited" => {
            let env = stopped().0;
            let pinned = "repo/.claude/ai-dev-kit/run-logs/r1/plan.json";
            env.write(pinned, env.read(pinned).replace("echo l > l.txt", "echo other > l.txt"));
            then(env, &["resume", "r1"])
        }
        "half-rolled-back" => {
            let env = stopped().0;
            let point = "rollback_keep:1";
            env.lanewright_with(&["rollback", "r1", "--lane", "L"], |command| command.env("LANEWRIGHT_CRASH_POINT", point));
            then(env, &["resume", "r1"])
        }
        "done-half-rolled-back" => {
            let env = executed(WORKS).0;
            let point = "rollback_undo_merges:1";
            env.lanewright_with(&["rollback", "r1", "--yes"], |command| command.env("LANEWRIGHT_CRASH_POINT", point));
            then(env, &["status", "r1"])
        }
        "needs-yes" => then(executed(WORKS).0, &["rollback", "r1"]),
        "rolled-back" => {
            let env = executed(WORKS).0;
            env.lanewright(&["rollback", "r1", "--yes"]).exits(0);
            then(env, &["status", "r1"])
        }
        "rollback-dependants" => {
            let env = executed(&format!("{WORKS}{}depends_on = [\"L\"]\n", WORKS.replace("\"L\"", "\"M\"").replace("l.txt", "m.txt"))).0;
            then(env, &["rollback", "r1", "--lane", "L"])
        }
        "rollback-conflict" => {
            let env = executed(WORKS).0;
            env.write("repo/l.txt", "later work\n");
            env.commit("later work");
            then(env, &["rollback", "r1", "--yes"])
        }
        "rollback-checkout" => {
            let env = executed(WORKS).0;
            env.write("repo/l.txt", "in the middle of something\n");
            then(env, &["rollback", "r1", "--yes"])
        }
        "rollback-branch-used" => {
            let env = executed(FAILS).0;
            let (worktree, other) = (env.path(PLACE), env.path("other"));
            env.git_in(&worktree, &["checkout", "--quiet", "--detach"]);
            env.git(&["worktree", "add", "--quiet", other.to_str().expect("UTF-8"), "lane-agent/P1/L/agent"]);
            then(env, &["rollback", "r1"])
        }
        "rollback-embedded" => {
            let env = executed(&FAILS.replace("'[", "'[ -e \"$SCRATCH/fixed\" ] || git init -q own; [")).0;
            then(env, &["rollback", "r1"])
        }
        "rollback-elsewhere" => {
            let env = placement::chain();
            let run = env.start(&[]);
            wait_until("the lane's agent", || placement::has_begun(&env, 1));
            placement::wait_for_the_claim(&env);
            run.signal(Signal::KILL);
            run.wait();
            env.write("scratch/go", "");
            then(env, &["rollback", "r1"])
        }
        "rollback-no-point" => then(executed(FAILS).0, &["rollback", "r1", "--lane", "L", "--to", "pre_pr"]),
        "rollback-which-agent" => {
            let two = "command = 'echo l > $LANEWRIGHT_AGENT.txt'\n[[lane.agent]]\nname = \"a\"\n[[lane.agent]]\nname = \"b\"\n";
            let plan = "[[lane]]\nid = \"L\"\nretries = 0\ntests = '[ -e \"$SCRATCH/fixed\" ]'\n";
            then(executed(&format!("{plan}{two}")).0, &["rollback", "r1", "--lane", "L", "--to", "1"])
        }
        "rollback-which-lane" => {
            let red = WORKS.replace("command", "retries = 0\ntests = '[ -e \"$SCRATCH/fixed\" ]'\ncommand");
            let other = red.replace("\"L\"", "\"M\"").replace("l.txt", "m.txt");
            let env = planned(&format!("{red}{other}"));
            env.execute(&["--keep-going"]);
            then(env, &["rollback", "r1", "--to", "1"])
        }
        "rollback-waits" => {
            let env = executed(&format!("{WORKS}{}depends_on = [\"L\"]\n", WORKS.replace("\"L\"", "\"M\"").replace("l.txt", "m.txt"))).0;
            env.lanewright(&["rollback", "r1", "--yes"]).exits(0);
            let taken = env.events("snapshot_taken").into_iter().rfind(|event| event["lane"] == "M").expect("a snapshot");
            let to = taken["reference"].as_str().expect("a ref").to_owned();
            then(env, &["rollback", "r1", "--lane", "M", "--yes", "--to", &to])
        }
        "rollback-placed" => {
            let env = placement::chain();
            env.write("scratch/go", "");
            env.execute(&[]).exits(0);
            then(env, &["rollback", "r1", "--yes", "--to", "after_lane_start"])
        }
        "rollback-point-lost" => {
            let env = executed(&WORKS.replace("echo l", "ls \"$SCRATCH\"")).0;
            env.lanewright(&["rollback", "r1", "--yes"]).exits(0);
            let snapshot = snapshot_of_rollback(&env);
            empty(&env, &format!("{snapshot}:l.txt"));
            then(env, &["rollback", "r1", "--lane", "L", "--to", &snapshot])
        }
        "rollback-branch-taken" => {
            let env = executed(WORKS).0;
            env.git(&["branch", "lane/P1/L", "main~1"]);
            then(env, &["rollback", "r1", "--lane", "L", "--yes", "--to", "pre_pr"])
        }
        "rollback-conflict-again" => {
            let env = executed(WORKS).0;
            env.lanewright(&["rollback", "r1", "--yes"]).exits(0);
            env.write("repo/l.txt", "later work\n");
            env.commit("later work");
            let snapshot = snapshot_of_rollback(&env);
            then(env, &["rollback", "r1", "--lane", "L", "--to", &snapshot])
        }
        "worktree-gone" => {
            let env = executed(FAILS).0;
            let opened = env.events("worktree_opened");
            let place = opened[0]["worktree"]["path"].as_str().expect("a path");
            std::fs::remove_dir_all(place).expect("removed");
            then(env, &["doctor", "r1"])
        }
        "objects-damaged" => {
            let env = executed(&FAILS.replace("'[", "'echo l > l.txt; [")).0;
            let snapshot = env.events("snapshot_taken").pop().expect("a snapshot");
            empty(&env, &format!("{}:l.txt", snapshot["reference"].as_str().expect("a ref")));
            then(env, &["doctor", "r1"])
        }
        "work-unreadable" => {
            let env = executed(&FAILS.replace("command = '[ -e \"$SCRATCH/fixed\" ] &&", "tests = '[ -e \"$SCRATCH/fixed\" ]'\ncommand = '")).0;
            empty(&env, "lane/P1/L:l.txt");
            std::fs::remove_dir_all(env.path("repo.lanes/slots")).expect("removed");
            then(env, &["resume", "r1"])
        }
        "state-damaged" => {
            let env = executed(FAILS).0;
            env.write("repo/.claude/ai-dev-kit/run-logs/checkpoints.json", "[{");
            then(env, &["resume", "r1"])
        }
        "complete" => then(executed(WORKS).0, &["resume", "r1"]),
        "never-began" => {
            let env = planned(WORKS);
            let start = ["execute-phase", "../plan.toml", "--run-id", "r1"];
            env.lanewright_with(&start, |command| command.env("LANEWRIGHT_CRASH_POINT", "after_sync:1"));
            env.write("repo/plan.toml", env.read("plan.toml"));
            then(env, &["resume", "r1"])
        }
        "unknown-run" => {
            let env = planned(WORKS);
            env.execute(&["--run-id=another"]).exits(0);
            then(env, &["resume", "r1"])
        }
        other => panic!("nothing makes `{other}`"),
    }
}

/// Types the rest of the line that `label` begins; whether it worked.
fn typed(env: &TestEnv, said: &str, label: &str) -> bool {
    let command = said.split_once(label).and_then(|(_, rest)| rest.lines().next()).expect(label);
    env.pin(&mut Command::new("sh")).args(["-c", command]).status().expect("sh").success()
}

/// What the row tells the user to do without Lanewright.
fn by_hand(state: &str, env: &TestEnv, said: &str) {
    match state {
        "checkout-in-the-way" => drop(env.git(&["checkout", "--quiet", "README.md"])),
        "branch-moved" => drop(moved_branch::carry_out(env, said, "uncommitted changes: ")),
        "rollback-conflict" => {
            assert!(!typed(env, said, "undo it by hand: "), "the later work conflicts");
            env.git(&["rm", "--quiet", "l.txt"]);
            env.git(&["-c", "core.editor=true", "revert", "--continue"]);
        }
        "rollback-checkout" => drop(env.git(&["stash", "--quiet"])),
        "rollback-branch-used" => assert!(typed(env, said, "leave the branch: ")),
        "rollback-branch-taken" => assert!(typed(env, said, "give it another name: ")),
        "rollback-embedded" => {
            let own = env.path(PLACE).join("own");
            std::fs::rename(own, env.path("own")).expect("moved");
        }
        _ => {}
    }
}

/// States in which a live process has the run; they are looked at while it lives.
const LIVE: [&str; 2] = ["running", "held"];

/// Rows after which the phase is not complete: nothing was begun, or there is nothing to bring to an end.
const ENDS_ELSEWHERE: [&str; 4] = ["complete", "needs-yes", "never-began", "unknown-run"];

#[test]
fn publication_note_left_by_a_kill_is_removed() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    env.execute(&[]).exits(0);
    let note = "repo/.git/lanewright/published.json";
    for (command, code) in [(&["resume", "r1"][..], 7), (&["clean", "r1", "--yes"], 0)] {
        env.write(note, format!("{{\"main\":\"{}\"}}", env.git(&["rev-parse", "main~1"])));
        env.lanewright(command).exits(code);
        assert!(!env.path(note).exists(), "{command:?}");
    }
}

#[test]
fn unfinished_publication_note_is_removed_by_the_next() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    env.execute(&[]).exits(0);
    let left = "repo/.git/lanewright/.published.json.01a21c8f8f6a74bd831b7da72be100da.tmp";
    env.write(left, "{");
    env.plan("[[lane]]\nid = \"B\"\ncommand = 'echo b > b.txt'\n");
    env.lanewright(&["execute-phase", env.path("plan.toml").to_str().unwrap(), "--run-id", "r2"]).exits(0);
    assert!(!env.path(left).exists());
}

#[test]
fn recovery_doc_messages_and_commands_are_correct() {
    let rows = rows();
    let names: BTreeSet<&str> = rows.iter().map(|row| row.state.as_str()).collect();
    assert!(rows.len() > 20 && names.len() == rows.len(), "{names:?}");
    for row in rows.iter().filter(|row| !LIVE.contains(&row.state.as_str())) {
        let (env, ended) = shown(&row.state);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(row.codes.is_empty() || row.codes.contains(&ended.code), "{}: {}:\n{said}", row.state, ended.code);
        assert!(row.says.iter().all(|text| said.contains(text.as_str())), "{} does not say so:\n{said}", row.state);
        env.write("scratch/fixed", "");
        by_hand(&row.state, &env, &said);
        assert!(!row.types.is_empty(), "{} has nothing to type", row.state);
        for command in &row.types {
            let command: Vec<&str> = command.iter().map(String::as_str).collect();
            let typed = env.lanewright(&command);
            assert_eq!(typed.code, 0, "{}: {command:?}:\n{}{}", row.state, typed.stdout, typed.stderr);
        }
        if !ENDS_ELSEWHERE.contains(&row.state.as_str()) {
            env.resume(&[]).exits(7).says(&["is complete"]);
        }
    }
}

#[test]
fn a_live_run_shows_as_the_table_says() {
    let env = planned(WAITS);
    let run = env.start(&[]);
    wait_until("the agent", || env.path("scratch/began").exists());
    let of = |state: &str| rows().into_iter().find(|row| row.state == state).expect("a row");
    let status = env.lanewright(&["status", "r1"]).exits(0);
    assert!(of("running").says.iter().all(|text| status.stdout.contains(text.as_str())), "{}", status.stdout);
    let held = of("held");
    let says: Vec<&str> = held.says.iter().map(String::as_str).collect();
    let plan = env.path("plan.toml");
    env.lanewright(&["execute-phase", plan.to_str().expect("UTF-8")]).exits(held.codes[0]).says(&says);
    for command in of("running").types.iter().chain(&held.types[..0]) {
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        env.lanewright(&command).exits(0);
    }
    run.wait().exits(143);
}
