//! State that travels: runs pushed to a remote while they work, their machine lost, and gone on with from a new clone.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::support::{Ended, RUN, Running, STATE, TestEnv, all_files, wait_until};

/// The ref of the run's state on the remote.
pub(crate) const PUSHED: &str = "refs/lanewright/state/r1";

/// A is quick. B has a first task that is quick and a second one that waits for help, as C does once A is merged. D
/// comes last.
const PLAN: &str = "phase = \"P1\"
[[lane]]
id = \"A\"
command = 'echo began >> \"$SCRATCH/A\" && echo a > a.txt'
[[lane]]
id = \"B\"
command = 'echo began >> \"$SCRATCH/B$LANEWRIGHT_TASK\" && { [ \"$LANEWRIGHT_TASK\" = 1 ] || wait-for help; } \
&& echo b > \"b$LANEWRIGHT_TASK.txt\"'
[[lane.task]]
id = \"1\"
[[lane.task]]
id = \"2\"
[[lane]]
id = \"C\"
depends_on = [\"A\"]
command = 'echo began >> \"$SCRATCH/C\" && wait-for help && [ -e a.txt ] && echo c > c.txt'
[[lane]]
id = \"D\"
depends_on = [\"B\", \"C\"]
command = 'echo began >> \"$SCRATCH/D\" && [ -e b2.txt ] && echo d > d.txt'
";

/// A clone of a bare repository, with the plan committed.
pub(crate) fn cloned() -> TestEnv {
    let env = TestEnv::without_repository();
    env.git_at("", &["init", "--quiet", "--bare", "origin.git"]);
    env.git_at("", &["clone", "--quiet", "origin.git", "repo"]);
    env.write("repo/plan.toml", PLAN);
    env.commit("plan");
    env.git(&["push", "--quiet", "origin", "main"]);
    env
}

pub(crate) fn clone_into(env: &TestEnv, below: &str) {
    env.git_at("", &["clone", "--quiet", "origin.git", below]);
}

/// The remote's branches, which nothing here may touch.
pub(crate) fn branches(env: &TestEnv) -> String {
    env.git_at("origin.git", &["for-each-ref", "refs/heads", "refs/tags"])
}

/// The run log as the remote has it.
pub(crate) fn pushed_log(env: &TestEnv) -> Vec<Value> {
    let mut command = std::process::Command::new("git");
    env.pin(&mut command).current_dir(env.path("origin.git"));
    let output = command.args(["show", &format!("{PUSHED}:log/000001.jsonl")]).output().expect("git");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("a whole line")).collect()
}

pub(crate) fn has(log: &[Value], event: &str, lane: &str) -> bool {
    log.iter().any(|record| record["event"] == event && record["lane"] == lane)
}

fn begin(env: &TestEnv) -> Running {
    let arguments = ["execute-phase", "plan.toml", "--run-id", RUN, "--max-parallel", "4", "--state-remote", "origin"];
    env.start_with(&arguments, |command| command.process_group(0))
}

/// Waits until A is merged, B and C are in the middle, and the remote knows.
fn wait_for_the_middle(env: &TestEnv) {
    wait_until("B and C to begin", || ["B2", "C"].iter().all(|name| env.path(&format!("scratch/{name}")).exists()));
    wait_until("the remote to know", || {
        let log = pushed_log(env);
        let begun = log.iter().filter(|it| it["event"] == "checkpoint_reached" && it["stage"] == "after_lane_start");
        has(&log, "lane_merged", "A") && has(&log, "work_committed", "B") && begun.count() == 3
    });
}

/// Everything that runs of the run dies at once, as with its machine: Lanewright, supervisors, agents.
fn kill_everything(env: &TestEnv, below: &str, lanewright: Running) {
    lanewright.signal(Signal::KILL);
    lanewright.wait();
    for marker in markers(env, below) {
        for who in ["supervisor", "agent"] {
            let pid = marker[who]["pid"].as_i64().and_then(|pid| Pid::from_raw(i32::try_from(pid).expect("a pid")));
            let Some(pid) = pid else { continue };
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// What is known of the processes of jobs that have not ended.
fn markers(env: &TestEnv, below: &str) -> Vec<Value> {
    let files = all_files(&env.path(&format!("{below}/{STATE}/{RUN}")));
    let markers = files.iter().filter(|path| path.ends_with("supervisor.json"));
    let open = markers.filter(|path| !path.with_file_name("exit.json").exists());
    open.map(|path| serde_json::from_slice(&fs::read(path).expect("a marker")).expect("JSON")).collect()
}

/// The clone and its worktrees are gone. A git that a killed process had started may still write there.
fn delete(env: &TestEnv, below: &str) {
    for place in [below.to_owned(), format!("{below}.lanes")].map(|name| env.path(&name)) {
        assert!(place.exists(), "{}", place.display());
        assert!((0..1000).any(|_| fs::remove_dir_all(&place).is_ok()), "{}", place.display());
    }
}

pub(crate) fn lost_in_the_middle() -> TestEnv {
    let env = cloned();
    let lanewright = begin(&env);
    wait_for_the_middle(&env);
    kill_everything(&env, "repo", lanewright);
    delete(&env, "repo");
    env
}

pub(crate) fn lanewright_in(env: &TestEnv, below: &str, arguments: &[&str]) -> Ended {
    env.lanewright_with(arguments, |command| command.current_dir(env.path(below)))
}

pub(crate) fn count(env: &TestEnv, name: &str) -> usize {
    env.scratch(name).lines().count()
}

/// The run ends well in the clone `below`, and only what ran when its machine died began a second time.
fn goes_on_in(env: &TestEnv, below: &str) {
    let before = branches(env);
    clone_into(env, below);
    lanewright_in(env, below, &["state", "pull"]).exits(0);
    lanewright_in(env, below, &["doctor"]).exits(0);
    env.write("scratch/help", "");
    lanewright_in(env, below, &["resume", "--state-remote", "origin"]).exits(0);
    assert_eq!(["A", "B1", "B2", "C", "D"].map(|lane| count(env, lane)), [1, 1, 2, 2, 1]);
    let files = env.git_at(below, &["ls-tree", "--name-only", "main"]);
    assert_eq!(files, "a.txt\nb1.txt\nb2.txt\nc.txt\nd.txt\nplan.toml");
    assert_eq!(env.git_at(below, &["status", "--porcelain"]), "");
    assert_eq!(branches(env), before, "the remote's branches are the user's");
    assert!(pushed_log(env).iter().any(|record| record["event"] == "run_finished" && record["code"] == 0));
    lanewright_in(env, below, &["doctor"]).exits(0);
    env.git_at(below, &["push", "--quiet", "origin", "main"]);
    lanewright_in(env, below, &["state", "drop"]).exits(0);
    assert_eq!(env.git_at("origin.git", &["for-each-ref", "refs/lanewright"]), "");
}

#[test]
fn run_of_a_dead_machine_continues_in_a_new_clone() {
    let env = lost_in_the_middle();
    goes_on_in(&env, "repo");
}

#[test]
fn run_of_lost_machine_continues_in_new_clone() {
    let env = lost_in_the_middle();
    fs::create_dir(env.path("deep")).expect("a directory");
    goes_on_in(&env, "deep/clone");
    let log = fs::read_to_string(env.path(&format!("deep/clone/{STATE}/{RUN}.jsonl"))).expect("a log");
    let after: Vec<&str> = log.lines().skip_while(|line| !line.contains("\"run_moved\"")).skip(1).collect();
    let old = env.path("repo").display().to_string();
    assert!(after.iter().all(|line| !line.contains(&old)), "something still works with the old place");
}

pub(crate) fn simple() -> TestEnv {
    let env = cloned();
    env.write("scratch/help", "");
    env
}

/// A run that failed, pushed by hand; its agent can pass once `scratch/passes` is there.
fn failed_and_pushed() -> TestEnv {
    let env = cloned();
    let command = "[ -e \"$SCRATCH/passes\" ] && echo a > a.txt";
    env.write("repo/plan.toml", format!("phase = \"P1\"\n[[lane]]\nid = \"A\"\nretries = 0\ncommand = '{command}'\n"));
    env.commit("a plan that fails");
    env.git(&["push", "--quiet", "origin", "main"]);
    env.lanewright(&["execute-phase", "plan.toml", "--run-id", RUN]).exits(1);
    env.lanewright(&["state", "push"]).exits(0);
    env
}

#[test]
fn pushing_and_pulling_again_changes_nothing() {
    let env = failed_and_pushed();
    let first = env.git_at("origin.git", &["rev-parse", PUSHED]);
    env.lanewright(&["state", "push", RUN]).exits(0);
    assert_eq!(env.git_at("origin.git", &["rev-parse", PUSHED]), first);
    let log = env.read(&format!("repo/{STATE}/{RUN}.jsonl"));
    let ended = env.lanewright(&["state", "pull", RUN]).exits(0);
    assert!(ended.stdout.contains("here already"), "{}", ended.stdout);
    assert_eq!(env.read(&format!("repo/{STATE}/{RUN}.jsonl")), log);
}

#[test]
fn remote_run_is_selected_by_run_id_prefix() {
    let env = failed_and_pushed();
    clone_into(&env, "other");
    lanewright_in(&env, "other", &["state", "pull", "q1"]).exits(8).hints("did you mean `r1`?");
    let pulled = lanewright_in(&env, "other", &["state", "pull", "r"]).exits(0);
    assert!(pulled.stdout.contains("Pulled run r1"), "{}", pulled.stdout);
    assert!(env.lanewright(&["state", "push", "r"]).exits(0).stdout.contains("Pushed run r1"));
    env.lanewright(&["state", "drop", "r", "--force"]).exits(0);
    env.lanewright(&["state", "drop", "r", "--force"]).exits(8).says(&["r"]);
}

#[test]
fn pull_takes_the_unfinished_run_of_a_plan() {
    let env = failed_and_pushed();
    env.write("repo/other.toml", "phase = \"P2\"\n[[lane]]\nid = \"O\"\nretries = 0\ncommand = 'false'\n");
    env.write("repo/third.toml", "phase = \"P3\"\n[[lane]]\nid = \"T\"\ncommand = 'false'\n");
    env.commit("more plans");
    env.git(&["push", "--quiet", "origin", "main"]);
    env.lanewright(&["execute-phase", "other.toml", "--run-id", "o1"]).exits(1);
    env.lanewright(&["state", "push", "o1"]).exits(0);
    clone_into(&env, "clone");
    let pull = |plan: &str| lanewright_in(&env, "clone", &["state", "pull", "--plan", plan]);
    lanewright_in(&env, "clone", &["state", "pull"]).exits(2).says(&["origin has 2 unfinished runs on main"]);
    pull("third.toml").exits(8).says(&["origin has no unfinished run of phase P3 on main"]);
    pull("missing.toml").exits(2);
    assert!(pull("other.toml").exits(0).stdout.contains("Pulled run o1"));
    assert!(pull("plan.toml").exits(0).stdout.contains("Pulled run r1"));
}

#[test]
fn a_remote_may_be_given_by_its_address() {
    let env = failed_and_pushed();
    let address = env.path("address.git").display().to_string();
    env.git_at("", &["init", "--quiet", "--bare", "address.git"]);
    env.lanewright(&["state", "push", "--remote", &address]).exits(0);
    env.write("repo/docs/file", "");
    let in_docs = |arguments: &[&str]| lanewright_in(&env, "repo/docs", arguments);
    let listed = in_docs(&["state", "list", "--remote", "../../address.git"]).exits(0).stdout;
    assert!(listed.starts_with("r1 "), "{listed}");
    clone_into(&env, "other");
    lanewright_in(&env, "other", &["state", "pull", "r1", "--remote", "../address.git"]).exits(0);
    in_docs(&["state", "list", "--remote", "address.git"]).exits(3).says(&["there is no remote `address.git`"]);
    let with_password = ["state", "push", "--remote", "https://me:hunter2@localhost/r.git"];
    let ended = env.lanewright(&with_password).exits(2).says(&["it has a password in it"]);
    assert!(!ended.stderr.lines().any(|line| line.starts_with("error: remote")), "{}", ended.stderr);
}

#[test]
fn pull_does_not_overwrite_a_local_run_of_that_name() {
    let env = failed_and_pushed();
    clone_into(&env, "other");
    lanewright_in(&env, "other", &["execute-phase", "plan.toml", "--run-id", RUN]).exits(1);
    lanewright_in(&env, "other", &["state", "pull", RUN]).exits(4).says(&["does not continue the one here"]);
    let log = format!("other/{STATE}/{RUN}.jsonl");
    env.write(&log, "");
    let refused = lanewright_in(&env, "other", &["state", "pull", RUN]).exits(4).says(&["nothing was changed"]);
    refused.hints(&format!("rm {}", env.path(&log).display()));
    fs::remove_file(env.path(&log)).expect("a removal");
    lanewright_in(&env, "other", &["state", "pull", RUN]).exits(0);
}

#[test]
fn the_second_push_is_refused_with_what_to_do() {
    let env = failed_and_pushed();
    clone_into(&env, "other");
    lanewright_in(&env, "other", &["state", "pull"]).exits(0);
    lanewright_in(&env, "other", &["resume"]).exits(1);
    lanewright_in(&env, "other", &["state", "push"]).exits(0);
    let theirs = env.git_at("origin.git", &["rev-parse", PUSHED]);
    env.lanewright(&["resume", RUN]).exits(1);
    let hint = "lanewright state push r1 --remote origin --force";
    env.lanewright(&["state", "push"]).exits(4).says(&["does not continue the one here", hint]);
    env.lanewright(&["state", "pull", RUN]).exits(4).says(&["nothing was changed", "clean r1 --force --logs"]);
    assert_eq!(env.git_at("origin.git", &["rev-parse", PUSHED]), theirs);
    env.lanewright(&["state", "push", "--force"]).exits(0);
    assert_ne!(env.git_at("origin.git", &["rev-parse", PUSHED]), theirs);
}

#[test]
fn a_push_whose_answer_was_lost_is_no_conflict() {
    let env = failed_and_pushed();
    env.git(&["update-ref", "-d", "refs/lanewright/remotes/origin/r1"]);
    env.lanewright(&["resume", RUN]).exits(1);
    env.lanewright(&["state", "push"]).exits(0);
}

#[test]
fn a_run_that_is_further_here_is_not_overwritten() {
    let env = failed_and_pushed();
    env.lanewright(&["resume", RUN]).exits(1);
    let log = env.read(&format!("repo/{STATE}/{RUN}.jsonl"));
    env.lanewright(&["state", "pull"]).exits(0);
    assert_eq!(env.read(&format!("repo/{STATE}/{RUN}.jsonl")), log);
}

#[test]
fn a_run_that_is_at_work_here_is_not_pulled() {
    let env = cloned();
    let lanewright = begin(&env);
    wait_for_the_middle(&env);
    env.lanewright(&["state", "pull", RUN]).exits(4).says(&["is held by"]);
    env.write("scratch/help", "");
    lanewright.wait().exits(0);
}

#[test]
fn diverged_integration_branch_is_refused() {
    let env = lost_in_the_middle();
    clone_into(&env, "repo");
    env.write("repo/mine.txt", "mine\n");
    env.commit("mine");
    let refs = env.refs();
    env.lanewright(&["state", "pull"]).exits(3).says(&["neither continues the other", "git merge"]);
    assert_eq!(env.refs(), refs);
    assert!(!env.path(&format!("repo/{STATE}/{RUN}.jsonl")).exists());
    // What the hint says fixes it.
    let there = env.git_at("origin.git", &["show", &format!("{PUSHED}:state.json")]);
    let there: Value = serde_json::from_str(&there).expect("JSON");
    env.git(&["merge", "--quiet", "--no-edit", there["integration"].as_str().expect("a commit")]);
    env.lanewright(&["state", "pull"]).exits(0);
    env.write("scratch/help", "");
    env.lanewright(&["resume"]).exits(0);
    assert!(env.holds("main", "mine.txt") && env.holds("main", "d.txt"));
}

#[test]
fn work_of_the_users_in_the_checkout_is_not_run_over() {
    let env = lost_in_the_middle();
    clone_into(&env, "repo");
    env.write("repo/a.txt", "mine\n");
    env.lanewright(&["state", "pull"]).exits(3).says(&["a.txt"]);
    assert_eq!(env.read("repo/a.txt"), "mine\n");
    assert!(!env.path(&format!("repo/{STATE}/{RUN}.jsonl")).exists());
}

/// Puts another tree in the place of the pushed one.
fn tamper(env: &TestEnv, change: &dyn Fn(&TestEnv)) {
    env.git(&["fetch", "--quiet", "origin", &format!("+{PUSHED}:refs/tampered")]);
    env.git(&["worktree", "add", "--quiet", "--detach", "../tampered", "refs/tampered"]);
    change(env);
    env.git_at("tampered", &["add", "--all", "--force"]);
    env.git_at("tampered", &["commit", "--quiet", "--message", "tampered"]);
    env.git_at("tampered", &["push", "--quiet", "--force", "origin", &format!("HEAD:{PUSHED}")]);
    env.git(&["worktree", "remove", "--force", "../tampered"]);
}

fn refused_after(change: &dyn Fn(&TestEnv), code: i32, says: &str) {
    let env = failed_and_pushed();
    tamper(&env, change);
    clone_into(&env, "other");
    lanewright_in(&env, "other", &["state", "pull", RUN]).exits(code).says(&[says]);
    assert!(!env.path(&format!("other/{STATE}/{RUN}.jsonl")).exists());
    assert!(!env.path(&format!("other/{STATE}/{RUN}/plan.json")).exists());
    assert_eq!(env.git_at("other", &["for-each-ref", "--format=%(refname)", "refs/heads"]), "refs/heads/main");
}

#[test]
fn a_damaged_log_is_refused() {
    let change = |env: &TestEnv| {
        let log = env.read("tampered/log/000001.jsonl").replacen("lane_based", "lane_bused", 1);
        env.write("tampered/log/000001.jsonl", log);
    };
    refused_after(&change, 6, "its run log is not the one that it was pushed with");
}

#[test]
fn a_state_of_another_version_is_refused() {
    let change = |env: &TestEnv| {
        let manifest = env.read("tampered/state.json").replacen("\"1.0\"", "\"9.0\"", 1);
        env.write("tampered/state.json", manifest);
    };
    refused_after(&change, 3, "has format 9.0");
}

#[test]
fn a_link_or_a_strange_name_in_a_state_is_refused() {
    let link = |env: &TestEnv| {
        std::os::unix::fs::symlink("/etc/passwd", env.path("tampered/files/link")).expect("a link");
    };
    refused_after(&link, 6, "`files/link` does not belong in it");
    refused_after(&|env| env.write("tampered/files/a b", "x"), 6, "does not belong in it");
}

#[test]
fn a_branch_that_is_none_of_the_runs_own_is_refused() {
    let change = |env: &TestEnv| {
        let manifest = env.read("tampered/state.json").replacen("lane/P1/A", "main", 1);
        env.write("tampered/state.json", manifest);
    };
    refused_after(&change, 6, "`main` is no branch of a lane");
}

/// A log whose lines are edited, and the manifest of its state, with all their checksums right.
pub(crate) fn forged(log: &str, manifest: &str, edit: &dyn Fn(&str) -> String) -> (String, String) {
    let lines = log.lines().map(|line| {
        let body = edit(line.split(",\"crc\":").next().expect("a body"));
        format!("{body},\"crc\":\"{:08x}\"}}\n", crc32fast::hash(body.as_bytes()))
    });
    let forged: String = lines.collect();
    assert_ne!(forged, log, "nothing was changed");
    let mut manifest: Value = serde_json::from_str(manifest).expect("JSON");
    let sum = format!("{:x}", Sha256::digest(&forged));
    (manifest["log_bytes"], manifest["log_sha256"]) = (forged.len().into(), sum.into());
    (forged, manifest.to_string())
}

/// Puts another log in the place of the pushed one.
fn forge_log(env: &TestEnv, edit: &dyn Fn(&str) -> String) {
    let (log, manifest) = forged(&env.read("tampered/log/000001.jsonl"), &env.read("tampered/state.json"), edit);
    env.write("tampered/log/000001.jsonl", log);
    env.write("tampered/state.json", manifest);
}

#[test]
fn a_worktree_outside_of_the_runs_root_is_refused() {
    for strange in ["/victim", "/repo.lanes/../victim", "/repo.lanes"] {
        let change = |env: &TestEnv| {
            let (own, other) = (env.path("repo.lanes/slots/01"), format!("{}{strange}", env.path("").display()));
            let other = other.replace("//", "/");
            forge_log(env, &|line| line.replace(&own.display().to_string(), &other));
        };
        refused_after(&change, 6, "its run log has a worktree at");
    }
}

#[test]
fn an_integration_branch_that_is_none_is_refused() {
    for name in ["-evil", "HEAD", "x/../y"] {
        let change = |env: &TestEnv| {
            forge_log(env, &|line| line.replace("\"base_branch\":\"main\"", &format!("\"base_branch\":\"{name}\"")));
            let mut manifest: Value = serde_json::from_str(&env.read("tampered/state.json")).expect("JSON");
            manifest["base_branch"] = name.into();
            env.write("tampered/state.json", manifest.to_string());
        };
        refused_after(&change, 6, "can be no branch");
    }
}

#[test]
fn a_machines_name_cannot_forge_lines() {
    let env = failed_and_pushed();
    tamper(&env, &|env| {
        let mut manifest: Value = serde_json::from_str(&env.read("tampered/state.json")).expect("JSON");
        manifest["host"] = "ci\u{1b}[2K\r\nforged".into();
        env.write("tampered/state.json", manifest.to_string());
    });
    let listed = env.lanewright(&["state", "list"]).exits(0).stdout;
    assert!(listed.lines().count() == 1 && !listed.contains(['\u{1b}', '\r']), "{listed:?}");
}

#[test]
fn unreachable_remote_gets_the_state_later() {
    let env = simple();
    fs::rename(env.path("origin.git"), env.path("away.git")).expect("it is there");
    let arguments = ["execute-phase", "plan.toml", "--run-id", RUN, "--state-remote", "origin"];
    let ended = env.lanewright(&arguments).exits(0).says(&["does not have the newest state", "state push r1"]);
    assert_eq!(ended.stderr.matches("was not pushed").count(), 1, "it is told once:\n{}", ended.stderr);
    fs::rename(env.path("away.git"), env.path("origin.git")).expect("it is there");
    env.lanewright(&["state", "push", RUN]).exits(0);
    let listed = env.lanewright(&["state", "list", "--format", "json"]).exits(0);
    let listed: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_eq!((&listed["states"][0]["run_id"], &listed["states"][0]["standing"]), (&RUN.into(), &"done".into()));
}

#[test]
fn empty_remote_and_unknown_remote_are_different_errors() {
    let env = simple();
    env.lanewright(&["state", "pull"]).exits(8).says(&["origin has no unfinished run on main"]);
    env.lanewright(&["state", "pull", "r7"]).exits(8).says(&["origin has no state of run r7"]);
    env.lanewright(&["state", "pull", "--remote", "nowhere"]).exits(3).says(&["there is no remote `nowhere`"]);
    let arguments = ["execute-phase", "plan.toml", "--run-id", RUN, "--state-remote", "nowhere"];
    env.lanewright(&arguments).exits(3).says(&["there is no remote `nowhere`"]);
    assert!(!env.path(&format!("repo/{STATE}/{RUN}")).exists(), "nothing began");
}

#[test]
fn an_unfinished_run_is_dropped_only_by_force() {
    let env = failed_and_pushed();
    env.lanewright(&["state", "drop"]).exits(0);
    env.lanewright(&["state", "drop", RUN]).exits(7).says(&["is failed", "--force"]);
    assert_ne!(env.git_at("origin.git", &["for-each-ref", PUSHED]), "");
    env.lanewright(&["state", "drop", RUN, "--force"]).exits(0);
    assert_eq!(env.git_at("origin.git", &["for-each-ref", PUSHED]), "");
}

fn is_on_the_remote(env: &TestEnv) -> bool {
    !env.git_at("origin.git", &["for-each-ref", PUSHED]).is_empty()
}

fn done_and_pushed(more: &[&str]) -> TestEnv {
    let env = simple();
    let arguments = ["execute-phase", "plan.toml", "--run-id", RUN, "--state-remote", "origin"];
    env.lanewright(&[&arguments, more].concat()).exits(0);
    env
}

#[test]
fn state_drop_keeps_run_until_its_work_is_pushed() {
    let env = done_and_pushed(&[]);
    clone_into(&env, "other");
    let ended = env.lanewright(&["state", "drop"]).exits(0);
    assert!(ended.stdout.contains("kept run r1") && ended.stdout.contains("lanewright publish r1"), "{}", ended.stdout);
    env.lanewright(&["state", "drop", RUN]).exits(3).says(&["lanewright publish r1", "--force"]);
    assert!(is_on_the_remote(&env), "the only copy of the work was dropped");
    env.git(&["push", "--quiet", "origin", "main"]);
    env.git(&["switch", "--quiet", "--create", "elsewhere"]);
    env.lanewright(&["state", "drop"]).exits(0);
    assert!(is_on_the_remote(&env), "it is a run of main");
    // The remote went on, and this clone has heard of nothing.
    env.git(&["switch", "--quiet", "main"]);
    env.write("repo/more.txt", "more");
    env.commit("more");
    env.git(&["push", "--quiet", "origin", "main"]);
    lanewright_in(&env, "other", &["state", "drop"]).exits(0);
    assert!(!is_on_the_remote(&env));
}

#[test]
fn drop_is_refused_until_unmerged_lanes_are_pushed() {
    let env = cloned();
    env.write("repo/plan.toml", "phase = \"P1\"\n[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
    env.commit("a plan of one lane");
    env.git(&["push", "--quiet", "origin", "main"]);
    env.lanewright(&["execute-phase", "plan.toml", "--run-id", RUN, "--merge", "none"]).exits(0);
    env.lanewright(&["state", "push"]).exits(0);
    let ended = env.lanewright(&["state", "drop"]).exits(0);
    assert!(ended.stdout.contains("git push origin lane/P1/A"), "{}", ended.stdout);
    env.lanewright(&["state", "drop", RUN]).exits(3).says(&["lane/P1/A"]);
    assert!(is_on_the_remote(&env));
    env.git(&["push", "--quiet", "origin", "lane/P1/A"]);
    env.lanewright(&["state", "drop"]).exits(0);
    assert!(!is_on_the_remote(&env));
}

#[test]
fn no_secret_that_an_agent_wrote_is_pushed() {
    let env = cloned();
    env.write(
        "repo/plan.toml",
        "phase = \"P1\"\n[[lane]]\nid = \"A\"\nretries = 0\ncommand = '''\n\
         printf '{\"status\": \"failed\", \"error\": \"%s\"}' \"$DEPLOY_TOKEN\" > \"$LANEWRIGHT_RESULT_FILE\"\n\
         echo \"with $DEPLOY_TOKEN and ACME-$(echo 0042)\" > \"$(dirname \"$LANEWRIGHT_RESULT_FILE\")/env.txt\"\nexit 1\n'''\n",
    );
    env.write("repo/lanewright.toml", "redact = ['ACME-[0-9]+']\n");
    env.commit("a plan that tells");
    let with_token = |arguments: &[&str]| {
        env.lanewright_with(arguments, |command| {
            command.env("DEPLOY_TOKEN", "canary-s3cr3t").env("LANEWRIGHT_PASS_ENV", "DEPLOY_TOKEN")
        })
    };
    with_token(&["execute-phase", "plan.toml", "--run-id", RUN]).exits(1);
    with_token(&["state", "push"]).exits(0);
    let files = env.git_at("origin.git", &["ls-tree", "-r", "--name-only", PUSHED]);
    let texts: String =
        files.lines().map(|name| env.git_at("origin.git", &["show", &format!("{PUSHED}:{name}")])).collect();
    assert!(
        texts.contains("with [redacted:DEPLOY_TOKEN] and [redacted:pattern-1]"),
        "the agent wrote nothing: {files}"
    );
    assert!(!texts.contains("canary-s3cr3t") && !texts.contains("ACME-0042"), "a secret was pushed");
}

#[test]
fn a_part_of_the_history_is_not_enough() {
    let env = failed_and_pushed();
    let origin = format!("file://{}", env.path("origin.git").display());
    env.git_at("", &["clone", "--quiet", "--depth", "1", &origin, "shallow"]);
    lanewright_in(&env, "shallow", &["state", "pull"]).exits(3).says(&["fetch-depth: 0"]);
}

#[test]
fn set_up_commands_run_again_in_the_new_worktrees() {
    let env = cloned();
    let setup = "[[lane]]\nid = \"A\"\nsetup = ['echo ready > made.log']\n\
        command = '[ -e made.log ] && echo a > a.txt && { [ -e \"$SCRATCH/fixed\" ] || exit 1; }'\nretries = 0\n\
        tests = ['[ -e made.log ]']\n";
    env.write("repo/plan.toml", format!("phase = \"P1\"\n{setup}"));
    env.write("repo/.gitignore", "*.log\n");
    env.commit("a plan with set-up commands");
    env.git(&["push", "--quiet", "origin", "main"]);
    env.lanewright(&["execute-phase", "plan.toml", "--run-id", RUN]).exits(1);
    env.lanewright(&["state", "push"]).exits(0);
    delete(&env, "repo");
    clone_into(&env, "repo");
    env.lanewright(&["state", "pull"]).exits(0);
    assert_eq!(worktree_files(&env, "a.txt").len(), 1, "what the agent left uncommitted came along");
    env.write("scratch/fixed", "");
    env.lanewright(&["resume"]).exits(0);
    assert!(env.holds("main", "a.txt"));
}

fn worktree_files(env: &TestEnv, name: &str) -> Vec<PathBuf> {
    let files = all_files(&env.path("repo.lanes/slots"));
    files.into_iter().filter(|path| path.file_name().is_some_and(|it| it == name)).collect()
}

#[test]
fn uncommitted_work_is_redone_after_state_pull() {
    let env = cloned();
    env.write(
        "repo/plan.toml",
        "phase = \"P1\"\n[[lane]]\nid = \"A\"\ncommand = 'echo x >> \"$SCRATCH/A\"; echo a > a.txt'\n",
    );
    env.commit("a plan of one lane");
    env.git(&["push", "--quiet", "origin", "main"]);
    let crash = ("LANEWRIGHT_CRASH_POINT", "before_commit_work:1");
    let arguments = ["execute-phase", "plan.toml", "--run-id", RUN];
    env.lanewright_with(&arguments, |command| command.env(crash.0, crash.1)).exits(137);
    env.lanewright(&["state", "push"]).exits(0);
    delete(&env, "repo");
    clone_into(&env, "repo");
    env.lanewright(&["state", "pull"]).exits(0);
    env.lanewright(&["resume"]).exits(0);
    assert!(env.holds("main", "a.txt"));
    assert_eq!(count(&env, "A"), 2);
    assert_eq!(env.events("failure_noted").len(), 0, "it is not the agent's failure");
}

/// Its merge is staged, or its snapshots are removed, and that is not in the log.
#[test]
fn run_that_died_around_a_merge_continues_in_another_clone() {
    for point in ["before_publish_merge:1", "after_clean_lane:1"] {
        let env = simple();
        let arguments = ["execute-phase", "plan.toml", "--run-id", RUN, "--max-parallel", "1"];
        env.lanewright_with(&arguments, |command| command.env("LANEWRIGHT_CRASH_POINT", point)).exits(137);
        env.lanewright(&["state", "push"]).exits(0);
        delete(&env, "repo");
        clone_into(&env, "repo");
        env.lanewright(&["state", "pull"]).exits(0);
        env.lanewright(&["resume"]).exits(0);
        assert!(env.holds("main", "d.txt"), "{point}");
        assert_eq!(count(&env, "A"), 1, "{point}");
    }
}

#[test]
fn lane_merged_in_another_clone_is_not_merged_again() {
    let env = simple();
    let crash = ("LANEWRIGHT_CRASH_POINT", "after_publish_merge:1");
    let arguments = ["execute-phase", "plan.toml", "--run-id", RUN, "--max-parallel", "1", "--state-remote", "origin"];
    env.lanewright_with(&arguments, |command| command.env(crash.0, crash.1)).exits(137);
    env.git(&["push", "--quiet", "origin", "main"]);
    delete(&env, "repo");
    clone_into(&env, "repo");
    env.lanewright(&["state", "pull"]).exits(0);
    env.lanewright(&["resume"]).exits(0);
    assert!(env.holds("main", "d.txt"));
    let merges = env.git(&["log", "--merges", "--format=%s", "--grep=Merge lane A", "main"]);
    assert_eq!((merges.lines().count(), count(&env, "A")), (1, 1), "{merges}");
}

#[test]
fn run_continued_by_other_clone_merges_nothing() {
    let env = failed_and_pushed();
    clone_into(&env, "other");
    lanewright_in(&env, "other", &["state", "pull"]).exits(0);
    lanewright_in(&env, "other", &["resume"]).exits(1);
    lanewright_in(&env, "other", &["state", "push"]).exits(0);
    let before = env.git(&["rev-parse", "main"]);
    env.write("scratch/passes", "");
    env.lanewright(&["resume", RUN, "--state-remote", "origin"]).says(&["does not continue the one here"]);
    assert_eq!(env.git(&["rev-parse", "main"]), before);
}

#[test]
fn a_slot_that_another_run_holds_here_is_left_to_it() {
    let env = lost_in_the_middle();
    clone_into(&env, "repo");
    env.write("other.toml", "phase = \"P9\"\n[[lane]]\nid = \"Z\"\nretries = 0\ncommand = 'exit 1'\n");
    let other = env.path("other.toml");
    env.lanewright(&["execute-phase", other.to_str().expect("UTF-8"), "--run-id", "r9"]).exits(1);
    env.lanewright(&["state", "pull", RUN]).exits(0);
    env.write("scratch/help", "");
    env.lanewright(&["resume", RUN]).exits(0);
    assert!(env.holds("main", "d.txt"));
    env.lanewright(&["doctor", "r9"]).exits(0);
}

#[test]
fn only_unpublished_done_runs_are_pulled() {
    let env = simple();
    let arguments = ["execute-phase", "plan.toml", "--run-id", RUN, "--state-remote", "origin"];
    env.lanewright(&arguments).exits(0);
    fs::remove_dir_all(env.path("repo")).expect("it was there");
    clone_into(&env, "repo");
    env.lanewright(&["state", "pull"]).exits(0);
    env.lanewright(&["resume", RUN]).exits(7);
    assert!(env.holds("main", "d.txt"));
    env.git(&["push", "--quiet", "origin", "main"]);
    clone_into(&env, "later");
    lanewright_in(&env, "later", &["state", "pull"]).exits(8);
    env.lanewright(&["clean", RUN, "--yes", "--logs"]).exits(0);
    assert!(env.refs().iter().all(|name| !name.starts_with("refs/lanewright/")), "{:?}", env.refs());
}

#[test]
fn plan_of_a_pulled_run_is_not_run_again() {
    let env = done_and_pushed(&[]);
    fs::remove_dir_all(env.path("repo")).expect("it was there");
    clone_into(&env, "repo");
    env.lanewright(&["state", "pull"]).exits(0);
    let again = env.lanewright(&["execute-phase", "plan.toml"]).exits(0);
    assert!(again.stdout.contains("nothing to do: ") && again.stdout.contains("by run r1"), "{}", again.stdout);
}
