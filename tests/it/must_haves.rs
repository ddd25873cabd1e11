//! What a plan says that a lane's work must have, held against what is committed.

use serde_json::{Value, json};

use crate::support::TestEnv;

/// Two files of which the first attempt makes one, and a statement that only a reader can judge.
const PLAN: &str = r#"
[[lane]]
id = "L"
command = '''
mkdir -p src; printf 'pub fn pay() {}\n' > src/pay.rs; echo ignored > work.log
[ $LANEWRIGHT_ATTEMPT = 1 ] || printf 'use pay;\npub fn cart() {}\n' > src/cart.rs
cp "$LANEWRIGHT_PROMPT_FILE" "$SCRATCH/prompt.$LANEWRIGHT_ATTEMPT"
'''
[lane.must_haves]
truths = ["A customer can pay"]
[[lane.must_haves.artifacts]]
path = "src/pay.rs"
exports = ["pay"]
[[lane.must_haves.artifacts]]
path = "src/cart.rs"
min_lines = 2
[[lane.must_haves.key_links]]
from = "src/cart.rs"
to = "src/pay.rs"
pattern = "use\\s+pay"
"#;

#[test]
fn missing_must_haves_are_reported_without_failure() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "must_haves = \"report\"\n");
    env.commit("settings");
    env.plan(PLAN);
    let ended = env.execute(&[]).exits(0);
    ended.says(&[
        "L: must-haves: 1 of 3 hold, 1 not checked; artifact src/cart.rs: missing file",
        "\nL: must-haves: 1 of 3 hold, 1 not checked\n  lanewright status r1 L\n",
    ]);
    let page = env.lanewright(&["status", "r1", "L"]).exits(0).stdout;
    assert!(page.contains("missing     key link src/cart.rs -> src/pay.rs: `src/cart.rs` is missing"), "{page}");
    let status = env.lanewright(&["status", "r1", "--format", "json"]).exits(0);
    let status: Value = serde_json::from_str(&status.stdout).expect("JSON");
    let verdicts = &status["lanes"][0]["must_haves"];
    let holds: Vec<_> = (0..4).map(|at| verdicts[at]["holds"].clone()).collect();
    assert_eq!(holds, [json!(null), json!(true), json!(false), json!(false)], "{verdicts}");
    assert_eq!(verdicts[2]["why"], json!(["missing file"]));
    assert_eq!(env.events("must_haves_checked").len(), 1);
    assert_eq!(env.events("run_started")[0]["options"]["must_haves"], "report");
    env.assert_nothing_left(&["main"]);
}

#[test]
fn enforced_must_haves_send_the_lane_back_and_recheck() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "must_haves = \"enforce\"\n");
    env.commit("settings");
    env.plan(PLAN);
    let ended = env.execute(&[]).exits(0);
    ended.says(&["must-haves: 3 of 3 hold, 1 not checked"]);
    let first = env.scratch("prompt.1");
    for part in ["- A customer can pay\n", "- `src/cart.rs` is there, has at least 2 lines\n"] {
        assert!(first.contains(part), "{part} is not in {first}");
    }
    let prompt = env.scratch("prompt.2");
    let told = "the lane lacks what it must have (1 of 3 hold, 1 not checked): src/cart.rs, src/cart.rs -> src/pay.rs";
    for part in [told, "holds: artifact src/pay.rs", "missing: artifact src/cart.rs: missing file"] {
        assert!(prompt.contains(part), "{part} is not in {prompt}");
    }
    assert_eq!(env.events("must_haves_checked").len(), 2);
    assert!(env.holds("main", "src/cart.rs"));
    env.assert_nothing_left(&["main"]);
}

#[test]
fn lane_without_its_must_haves_fails_also_at_resume() {
    let env = TestEnv::new();
    let never = PLAN
        .replace("src/cart.rs\"\nmin_lines", "src/never.rs\"\nmin_lines")
        .replace("id = \"L\"", "id = \"L\"\nretries = 1");
    env.plan(&never);
    let plan = env.path("plan.toml");
    let arguments = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1"];
    let ended = env.lanewright_with(&arguments, |command| command.env("LANEWRIGHT_MUST_HAVES", "enforce"));
    ended.exits(1).says(&["missing: artifact src/never.rs: missing file"]);
    assert!(!env.holds("main", "src/pay.rs"));
    // What was decided when the run began holds for its whole life.
    env.resume(&[]).exits(1);
    // Twice in each life, and once before the resume starts an agent.
    assert_eq!(env.events("must_haves_checked").len(), 5);
}

#[test]
fn artifact_that_is_left_out_is_not_sent_back() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "max_file_size = \"1KiB\"\n");
    env.commit("settings");
    env.plan(
        "[[lane]]\nid = \"L\"\ncommand = 'mkdir -p \"app/[slug]\"; head -c 5000 /dev/zero > \"app/[slug]/x.bin\"; \
         echo done > done.txt'\n[[lane.must_haves.artifacts]]\npath = \"app/[slug]/x.bin\"\n",
    );
    let ended = env.execute(&[]).exits(0);
    let take = "take = [\"app/[[]slug[]]/x.bin\"]";
    ended.says(&["must-haves: 1 not checked", take]);
    let page = env.lanewright(&["status", "r1", "L"]).exits(0).stdout;
    assert!(page.contains("artifact app/[slug]/x.bin: left out of the work; `take = "), "{page}");
    let why = env.events("must_haves_checked")[0]["verdicts"][0]["why"].to_string();
    assert!(why.contains("x.bin"), "{why}");
    assert_eq!(env.events("job_exited").len(), 1, "the agent is not paid for a file that it made");
    // The setting that is printed.
    env.write("repo/lanewright.toml", format!("max_file_size = \"1KiB\"\n{take}\n"));
    env.commit("settings");
    env.lanewright(&["execute-phase", "../plan.toml", "--run-id", "r2", "--redo"]).exits(0);
    assert!(env.holds("main", "app/[slug]/x.bin"));
}
