//! Failed attempts, what the next one is told, and what others read of it (seed 004, Automatic Retry Behavior).

use serde_json::{Value, json};

use crate::support::TestEnv;

/// Says seven lines, keeps what it was told, and fails before the attempt of that number.
fn fails_before(attempt: u32, retries: u32) -> String {
    format!(
        "[[lane]]\nid = \"L\"\nretries = {retries}\nprompt = \"Make it.\"\ncommand = '''\n\
         for line in 1 2 3 4 5 6 7; do echo \"line $line of $LANEWRIGHT_ATTEMPT\"; done\n\
         cp \"$LANEWRIGHT_PROMPT_FILE\" \"$SCRATCH/prompt.$LANEWRIGHT_ATTEMPT\"\n\
         cp \"$LANEWRIGHT_FAILURE_CONTEXT_FILE\" \"$SCRATCH/context.$LANEWRIGHT_ATTEMPT\"\n\
         [ \"$LANEWRIGHT_ATTEMPT\" -ge {attempt} ] || exit 7\n\
         echo made > made.txt\n'''\n"
    )
}

fn context(env: &TestEnv, attempt: u32) -> Vec<String> {
    serde_json::from_str(&env.scratch(&format!("context.{attempt}"))).expect("an array of texts")
}

#[test]
fn retry_prompt_has_error_and_last_lines_of_attempts() {
    let env = TestEnv::new();
    env.plan(&fails_before(3, 2));
    env.execute(&[]).exits(0);
    assert_eq!(context(&env, 1), [] as [String; 0]);
    let told = context(&env, 3);
    assert_eq!(context(&env, 2), told[..6]);
    assert_eq!(told.len(), 12);
    for (attempt, entries) in (1..=2).zip(told.chunks(6)) {
        assert!(entries[0].starts_with(&format!("Attempt {attempt}: ")) && entries[0].contains('7'), "{}", entries[0]);
        let lines: Vec<String> = (3..=7).map(|line| format!("line {line} of {attempt}")).collect();
        assert_eq!(entries[1..], lines);
    }
    let prompts = [1, 2, 3].map(|attempt| env.scratch(&format!("prompt.{attempt}")));
    assert!(prompts[0] != prompts[1] && prompts[1] != prompts[2] && prompts[0] != prompts[2], "{prompts:?}");
    assert!(prompts.iter().all(|prompt| prompt.starts_with("Make it.")), "{prompts:?}");
    assert!(told.iter().all(|entry| prompts[2].contains(entry)), "{}", prompts[2]);
    let once = "- Attempt 2: exited with code 7\n\n      line 1 of 2\n      line 2 of 2\n";
    assert!(prompts[2].contains(once) && prompts[2].matches("line 7 of 2").count() == 1, "{}", prompts[2]);
}

#[test]
fn last_different_attempt_is_not_counted_as_retry() {
    let env = TestEnv::new();
    env.plan(&fails_before(9, 1));
    let ended = env.execute(&[]).exits(1);
    let status_json: Value =
        serde_json::from_str(&env.lanewright(&["status", "r1", "--format", "json"]).stdout).expect("JSON");
    let retries = status_json["lanes"][0]["retries"].as_array().expect("retries");
    let levels: Vec<&Value> = retries.iter().map(|retry| &retry["level"]).collect();
    assert_eq!(levels, ["retry", "rollback"]);
    assert_eq!(ended.stderr.matches("L agent: retry 1 of 1").count(), 1, "{}", ended.stderr);
    let page = env.lanewright(&["status", "r1", "L"]).exits(0).stdout;
    assert!(page.contains("(agent: retry 1 of 1, then a different approach)"), "{page}");
    let junit = env.lanewright(&["report", "r1", "--format", "junit"]).exits(0).stdout;
    assert!(
        junit.contains("name=\"attempts\" value=\"3\"") && junit.contains("name=\"retries\" value=\"1\""),
        "{junit}"
    );
}

#[test]
fn the_retry_checkpoint_is_what_the_seed_says() {
    let env = TestEnv::new();
    env.plan(&fails_before(3, 2));
    env.execute(&["--session-id", "s1"]).exits(0);
    let record = env.checkpoint("L", "retry_attempt");
    for (field, value) in [
        ("run_id", json!("r1")),
        ("phase", json!("P1")),
        ("lane", json!("L")),
        ("status", json!("complete")),
        ("retry_attempt", json!(2)),
        ("max_retries", json!(2)),
        ("failure_context", json!(context(&env, 3))),
        ("base_branch", json!("main")),
        ("log_path", json!(env.path("repo/.claude/ai-dev-kit/run-logs/r1.jsonl"))),
        ("session_id", json!("s1")),
    ] {
        assert_eq!(record[field], value, "{field}");
    }
    let text = |field: &str| record[field].as_str().expect("text").to_owned();
    assert_eq!(text("worktree_path"), "", "it is gone with the merge");
    assert!(text("timestamp").ends_with('Z'));
    assert!(text("resume_hint").contains("--resume") && text("rollback_hint").contains("--rollback"));
}

#[test]
fn exhausted_retries_fail_lane_with_checkpoint() {
    let env = TestEnv::new();
    env.plan(&fails_before(9, 2));
    env.execute(&[]).exits(1).says(&["lanewright resume r1"]);
    let record = env.checkpoint("L", "retry_attempt");
    assert_eq!(
        (&record["status"], &record["retry_attempt"], &record["max_retries"]),
        (&json!("failed"), &json!(2), &json!(2))
    );
    let told = context(&env, 4);
    let last: Vec<String> = record["failure_context"].as_array().expect("texts").iter().map(text).collect();
    assert_eq!(last[..18], told);
    assert!(last[18].starts_with("Attempt 4: ") && last[23] == "line 7 of 4", "{last:?}");
    assert!(!env.path("scratch/prompt.5").exists(), "a fifth attempt");
    assert_eq!(env.files("main"), [".gitignore", "README.md"]);
}

/// An agent that adds to a file, fails in its own words each time, and says what it found.
fn adds_and_fails(retries: u32, says: &str, passes_at: u32) -> String {
    format!(
        "[[lane]]\nid = \"L\"\nretries = {retries}\ncommand = '''\n\
         cat work.txt > \"$SCRATCH/found.$LANEWRIGHT_ATTEMPT\" 2>/dev/null\n\
         cp \"$LANEWRIGHT_PROMPT_FILE\" \"$SCRATCH/prompt.$LANEWRIGHT_ATTEMPT\"\n\
         echo $LANEWRIGHT_ATTEMPT >> work.txt\n\
         echo \"{says}\"\n\
         [ $LANEWRIGHT_ATTEMPT -ge {passes_at} ]\n'''\n"
    )
}

/// Different words for each attempt.
const OWN_WORDS: &str = "$(echo $LANEWRIGHT_ATTEMPT | tr 1234567 abcdefg)";

fn levels(env: &TestEnv) -> Vec<String> {
    env.events("retry_planned").iter().map(|event| text(&event["level"])).collect()
}

#[test]
fn last_retry_is_followed_by_one_reset_attempt() {
    let env = TestEnv::new();
    env.plan(&adds_and_fails(2, OWN_WORDS, 4));
    env.execute(&[]).exits(0);
    assert_eq!(levels(&env), ["retry", "retry", "rollback"]);
    assert_eq!(env.scratch("found.3"), "1\n2\n", "a retry goes on with what is there");
    assert_eq!(env.scratch("found.4"), "", "the last one starts anew");
    let prompt = env.scratch("prompt.4");
    assert!(prompt.contains("different approach") && prompt.contains("Attempt 3: "), "{prompt}");
    assert!(!env.scratch("prompt.3").contains("different approach"));
    assert!(env.holds("main", "work.txt"));
}

#[test]
fn same_failure_three_times_ends_retries_early() {
    let env = TestEnv::new();
    env.plan(&adds_and_fails(9, "failed after 0.$LANEWRIGHT_ATTEMPT s", 9));
    env.execute(&[]).exits(1);
    assert_eq!(levels(&env), ["retry", "retry", "rollback"]);
    let other = TestEnv::new();
    other.plan(&adds_and_fails(4, OWN_WORDS, 9));
    other.execute(&[]).exits(1);
    assert_eq!(levels(&other), ["retry", "retry", "retry", "retry", "rollback"], "these fail in different ways");
}

#[test]
fn a_quota_that_is_out_uses_up_no_retry() {
    let env = TestEnv::new();
    env.plan(&adds_and_fails(0, "API Error: 429 Too Many Requests", 4));
    env.execute(&[]).exits(0);
    assert_eq!(levels(&env), ["wait", "wait", "wait"]);
    let prompts = [1, 2, 3, 4].map(|attempt| env.scratch(&format!("prompt.{attempt}")));
    assert!(prompts.windows(2).all(|pair| pair[0] != pair[1]), "{prompts:?}");
    let errors = env.read("repo/.claude/ai-dev-kit/run-logs/r1/errors.jsonl");
    assert_eq!(errors.matches("\"error_type\":\"network\"").count(), 3, "{errors}");
}

#[test]
fn lasting_network_outage_fails_the_lane_with_advice() {
    let env = TestEnv::new();
    env.write("config/lanewright/config.toml", "outage_limit = \"0s\"\n");
    env.plan(&adds_and_fails(3, "curl: (6) Could not resolve host: example.com", 2));
    env.execute(&[]).exits(1).says(&["Could not resolve host", "lanewright resume r1"]);
    let record = env.checkpoint("L", "after_lane_start");
    assert_eq!(record["status"], "failed");
    assert!(text(&record["resume_hint"]).contains("--resume"));
    env.lanewright(&["resume"]).exits(0);
}

#[test]
fn without_retries_the_first_failure_is_the_last() {
    let env = TestEnv::new();
    env.plan(&fails_before(9, 3));
    env.execute(&["--retries", "0"]).exits(1);
    assert!(!env.path("scratch/prompt.2").exists(), "a second attempt");
    assert_eq!(env.events("retry_planned"), [] as [Value; 0]);
}

/// Leaves a file and fails, then says what is there.
fn half_done(resume: &str) -> TestEnv {
    let env = TestEnv::new();
    env.plan(&format!(
        "[[lane]]\nid = \"L\"\nresume = \"{resume}\"\ncommand = '''\n\
         if [ $LANEWRIGHT_ATTEMPT = 1 ]; then echo half > half.txt; exit 1; fi\n\
         ls > \"$SCRATCH/seen\"; git for-each-ref --format='%(refname)' refs/lanewright > \"$SCRATCH/refs\"\n\
         git show $(tail -n 1 \"$SCRATCH/refs\"):half.txt > \"$SCRATCH/kept\"; echo done > done.txt\n'''\n"
    ));
    env.execute(&[]).exits(0);
    assert_eq!(env.scratch("kept"), "half\n", "the failed attempt's work was not kept");
    env
}

#[test]
fn a_retry_goes_on_where_the_failed_attempt_stopped() {
    let env = half_done("continue");
    assert!(env.scratch("seen").contains("half.txt"));
    assert!(env.holds("main", "half.txt"));
}

#[test]
fn a_fresh_retry_finds_what_last_passed() {
    let env = half_done("fresh");
    assert!(!env.scratch("seen").contains("half.txt"));
    assert!(!env.holds("main", "half.txt") && env.holds("main", "done.txt"));
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}
