//! States of lanes that no job of Lanewright pushed: agents can push what they like.

use serde_json::Value;

use crate::exchange::clone;
use crate::executors::{slurm, this};
use crate::placement::{has_begun, in_other};
use crate::state::forged;
use crate::support::{Ended, TestEnv, wait_until};

const STATE: &str = "refs/lanewright/state/r1.A";

/// A lane whose agent waits, and two that go on meanwhile.
fn waiting() -> TestEnv {
    let env = slurm(this());
    env.plan(
        "[defaults]\nexecutor = 'main'\n\
         [[lane]]\nid = 'A'\n\
         command = 'echo $$ >>$SCRATCH/attempts; wait-for go; echo a >a.txt'\n\
         [[lane]]\nid = 'B'\n\
         command = 'wait-for planted; echo b >b.txt'\n\
         [[lane]]\nid = 'HERE'\nexecutor = 'local'\ncommand = 'echo h >h.txt'\n",
    );
    env.commit("settings");
    env
}

/// Pushes the state of lane A with another file, as its agent could.
fn plant(env: &TestEnv, path: &str, text: &str) {
    let exchange = "exchange.git";
    env.write("scratch/file", text);
    let file = env.path("scratch/file").display().to_string();
    let blob = env.git_at(exchange, &["hash-object", "-w", &file]);
    env.git_at(exchange, &["read-tree", STATE]);
    env.git_at(exchange, &["update-index", "--add", "--cacheinfo", &format!("100644,{},{path}", blob.trim())]);
    let tree = env.git_at(exchange, &["write-tree"]);
    let commit = env.git_at(exchange, &["commit-tree", "-p", STATE, "-m", "planted", tree.trim()]);
    env.git_at(exchange, &["update-ref", STATE, commit.trim()]);
}

fn manifest(env: &TestEnv) -> Value {
    serde_json::from_str(&env.git_at("exchange.git", &["show", &format!("{STATE}:state.json")])).expect("JSON")
}

/// Has lane A refused, and the others go on.
fn refused(env: &TestEnv, plant: impl Fn(&TestEnv)) -> Ended {
    let run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(env, 1));
    wait_until("its claim", || env.events("lane_claimed").iter().any(|event| event["lane"] == "A"));
    plant(env);
    wait_until("the refusal", || run.has_said("A: blocked: "));
    env.write("scratch/planted", "");
    let ended = run.wait().exits(3);
    assert_eq!(env.git(&["show", "main:b.txt"]).trim(), "b");
    assert_eq!(env.git(&["show", "main:h.txt"]).trim(), "h");
    ended.says(&["remove that state and resume: git push ", ":refs/lanewright/state/r1.A"])
}

/// The lane goes on from what was taken over before.
fn goes_on_without(env: &TestEnv) {
    env.resume(&["--yes"]).exits(3).says(&["A blocked: "]);
    env.git_at("exchange.git", &["update-ref", "-d", STATE]);
    env.write("scratch/go", "");
    env.resume(&["--yes"]).exits(0);
    assert_eq!(env.git(&["show", "main:a.txt"]).trim(), "a");
}

#[test]
fn a_lane_with_files_of_others_is_blocked_alone() {
    let env = waiting();
    let planted = "lanes/A/merged-tests-1/exit.json";
    let said = refused(&env, |env| plant(env, &format!("files/{planted}"), "{}"));
    said.says(&["the state of run r1.A", planted, "is not of lane A"]);
    assert!(!env.log_file().with_extension("").join(planted).exists());
    goes_on_without(&env);
}

#[test]
fn a_lane_with_snapshots_of_others_is_blocked_alone() {
    let env = waiting();
    let name = "refs/lanewright/checkpoint/P1-B/x";
    let said = refused(&env, |env| {
        let mut manifest = manifest(env);
        manifest["references"][name] = manifest["integration"].clone();
        plant(env, "state.json", &manifest.to_string());
    });
    said.says(&[name, "is not of lane A"]);
    assert_eq!(env.git(&["for-each-ref", name]), "");
}

#[test]
fn a_lane_whose_log_was_replaced_is_blocked_alone() {
    let env = waiting();
    let said = refused(&env, |env| {
        let log = env.git_at("exchange.git", &["show", &format!("{STATE}:log/000001.jsonl")]);
        let first = log.lines().next().expect("a line").to_owned();
        plant(env, "log/000001.jsonl", &format!("{first}\n"));
    });
    said.says(&["its log does not extend the one seen before"]);
}

#[test]
fn lane_state_of_newer_format_blocks_only_its_lane() {
    let env = waiting();
    let said = refused(&env, |env| {
        let mut manifest = manifest(env);
        manifest["format"] = "9.0".into();
        plant(env, "state.json", &manifest.to_string());
    });
    said.says(&["has format 9.0"]);
    goes_on_without(&env);
}

#[test]
fn planted_exit_file_is_not_a_job_exit() {
    let env = TestEnv::new();
    let place = env.log_file().with_extension("").join("lanes/A/tests-1").display().to_string();
    env.plan(&format!(
        "[[lane]]\nid = 'A'\nretries = 0\n\
         command = 'mkdir -p {place}; cp $SCRATCH/exit.json {place}; echo a >a.txt'\n\
         tests = ['echo ran >>$SCRATCH/tests; exit 9']\n"
    ));
    let exit = "{\"cause\":\"exited\",\"exit_code\":0,\"command\":\"true\",\
                \"started_at\":\"2026-01-01T00:00:00.000Z\",\"finished_at\":\"2026-01-01T00:00:00.000Z\"}";
    env.write("scratch/exit.json", exit);
    env.execute(&[]).exits(1);
    assert_eq!(env.scratch("tests").trim(), "ran");
}

#[test]
fn state_pull_ignores_output_of_unplanned_jobs() {
    let env = slurm(this());
    env.plan("[[lane]]\nid = 'A'\ncommand = 'exit 9'\nretries = 0\n");
    env.commit("settings");
    clone(&env);
    env.execute(&["--state-remote", "x"]).exits(1);
    let exchange = "exchange.git";
    env.git_at(exchange, &["update-ref", STATE, "refs/lanewright/state/r1"]);
    plant(&env, "files/final-1/exit.json", "{}");
    env.git_at(exchange, &["update-ref", "refs/lanewright/state/r1", STATE]);
    in_other(&env, &["state", "pull", "r1", "--remote", "x"]).wait().exits(0);
    let files = env.path("other/.claude/ai-dev-kit/run-logs/r1");
    assert!(files.join("lanes/A").exists() && !files.join("final-1").exists());
    plant(&env, "files/requests/1.json", "{}");
    env.git_at(exchange, &["update-ref", "refs/lanewright/state/r1", STATE]);
    in_other(&env, &["clean", "r1", "--force", "--logs", "--yes"]).wait().exits(0);
    let pulled = in_other(&env, &["state", "pull", "r1", "--remote", "x"]).wait().exits(6);
    pulled.says(&["`files/requests/1.json` does not belong in it"]);
}

/// Has the log of lane A say that its change is empty.
fn without_changes(env: &TestEnv) {
    let show = |path: &str| env.git_at("exchange.git", &["show", &format!("{STATE}:{path}")]);
    let empty = |body: &str| match body.split_once("\"changes\":{") {
        Some((before, after)) => {
            let rest = after.split_once('}').expect("its end").1;
            format!("{before}\"changes\":{{\"files\":0,\"added\":0,\"removed\":0}}{rest}")
        }
        None => body.to_owned(),
    };
    let (log, manifest) = forged(&show("log/000001.jsonl"), &show("state.json"), &empty);
    plant(env, "log/000001.jsonl", &log);
    plant(env, "state.json", &manifest);
}

#[test]
fn approval_is_required_despite_forged_empty_changes() {
    let env = slurm(this());
    env.plan(
        "[[lane]]\nid = 'A'\nexecutor = 'main'\napproval = ['changes']\n\
         command = 'echo $$ >>$SCRATCH/attempts; wait-for go; echo a >a.txt'\n",
    );
    env.commit("settings");
    let mut run = env.start(&[]);
    wait_until("the lane's agent", || has_begun(&env, 1));
    wait_until("its claim", || !env.events("lane_claimed").is_empty());
    run.kill();
    env.write("scratch/go", "");
    wait_until("the end of its run", || manifest(&env)["outcome"] != Value::Null);
    without_changes(&env);
    env.resume(&["--yes"]).exits(3).says(&["needs approval"]);
    assert_eq!(env.git(&["ls-tree", "--name-only", "main", "a.txt"]), "");
}
