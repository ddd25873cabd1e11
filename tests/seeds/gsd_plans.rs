//! Plans in the manner of GSD: the time of specialists, and the log of errors (seed 002).

use serde_json::Value;

use crate::support::{RUN, STATE, TestEnv};

/// A lane with a reviewer; `more` is said of the reviewer.
fn reviewed(env: &TestEnv, more: &str, reviewer: &str) {
    env.plan(&format!(
        "[[lane]]\nid = \"L\"\n[[lane.agent]]\nname = \"engineer\"\ncommand = 'echo x > x.txt'\n\
         [[lane.agent]]\nname = \"critic\"\nround = \"review\"\n{more}command = '''\n{reviewer}\n'''\n"
    ));
}

/// Why and with which code the attempts of the reviewer ended.
fn ends_of_reviewer(env: &TestEnv) -> Vec<(Value, Value)> {
    let exits = env.events("job_exited").into_iter();
    let own = exits.filter(|job| job["job"]["role"]["attempt"]["agent"] == "critic");
    own.map(|job| (job["exit"]["cause"].clone(), job["exit"]["exit_code"].clone())).collect()
}

#[test]
fn g17_specialist_timeout_ends_a_specialist() {
    let env = TestEnv::new();
    reviewed(&env, "", "wait-for never");
    let arguments = ["execute-phase", "../plan.toml", "--run-id", RUN, "--retries", "0"];
    env.lanewright_in(&arguments, &[("SPECIALIST_TIMEOUT", "1")]).exits(1);
    assert_eq!(ends_of_reviewer(&env), [(Value::from("timed_out"), Value::from(124))]);

    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'echo x > x.txt'\n");
    env.execute(&[]).exits(0);
    assert_eq!(env.events("run_started")[0]["options"]["specialist_timeout"], 5 * 60 * 1000);
}

#[test]
fn g32_a_verifier_has_limit_checkpoint_and_rollback() {
    let env = TestEnv::new();
    reviewed(
        &env,
        "timeout = \"1s\"\n",
        "ls > \"$SCRATCH/found.$LANEWRIGHT_ATTEMPT\"\n\
         if [ $LANEWRIGHT_ATTEMPT = 1 ]; then echo notes > notes.txt; wait-for never; fi\n\
         echo '{\"status\": \"COMPLETE\", \"decision\": \"APPROVED\"}' > \"$LANEWRIGHT_STATUS_FILE\"",
    );
    env.execute(&[]).exits(0);
    assert_eq!(ends_of_reviewer(&env)[0], (Value::from("timed_out"), Value::from(124)));
    let kept = env.events("snapshot_taken").into_iter().find(|kept| kept["reason"] == "timeout").expect("a checkpoint");
    assert_eq!(kept["agent"], "critic");
    assert!(env.holds(kept["commit"].as_str().expect("a commit"), "notes.txt"));
    assert_eq!(env.scratch("found.2"), "README.md\nx.txt\n", "it starts again without what it left");
    assert_eq!(env.files("main"), [".gitignore", "README.md", "x.txt"]);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn g33_log_error_requires_six_flags() {
    let env = TestEnv::new();
    let flags = [
        ["--phase", "P1"],
        ["--plan", "10-01"],
        ["--task", "1.3"],
        ["--specialist", "engineer"],
        ["--error-type", "timeout"],
        ["--details", "no answer"],
    ];
    let file = env.path(&format!("repo/{STATE}/errors.jsonl"));
    for left_out in flags {
        let given: Vec<&str> = flags.iter().filter(|flag| **flag != left_out).flatten().copied().collect();
        env.lanewright(&[&["log-error"], &given[..]].concat()).exits(2).says(&[left_out[0]]);
        assert!(!file.exists(), "an error without {} was logged", left_out[0]);
    }
    env.lanewright(&[&["log-error"], flags.as_flattened()].concat()).exits(0);
    assert!(file.exists());
}

#[test]
fn g08_artifacts_are_checked_and_missing_files_made() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\ncommand = 'echo \"$LANEWRIGHT_ATTEMPT\" > made.txt; \
         [ $LANEWRIGHT_ATTEMPT = 1 ] || echo x > later.txt'\n[[lane.must_haves.artifacts]]\npath = \"later.txt\"\n\
         [[lane.must_haves.artifacts]]\npath = \"made.txt\"\nmin_lines = 9\ncontains = \"never\"\n\
         [[lane.must_haves.artifacts]]\npath = \"docs/\"\n[[lane.must_haves.artifacts]]\npath = \"*.md5\"\n\
         [[lane.must_haves.artifacts]]\npath = \"~/notes.txt\"\n",
    );
    let ended = env.execute(&[]).exits(0);
    ended.says(&["L: must-haves: 1 of 4 hold, 1 not checked"]);
    assert_eq!(env.file_at("main", "made.txt"), "2", "the missing file was not asked for");
    let broken = "1 of 9 lines";
    for shown in [&["status", RUN][..], &["report", RUN, "--format", "md"], &["report", RUN, "--format", "junit"]] {
        let text = env.lanewright(shown).exits(0).stdout;
        assert!(text.contains(broken), "{text}");
    }
}

/// A GSD phase of one plan whose front matter has `more`, with an agent that counts its starts.
fn gsd_plan(env: &TestEnv, more: &str) {
    gsd_plan_with(env, more, "", "");
}

/// The same with `sections` before the tasks, and an agent that does `work` as well.
fn gsd_plan_with(env: &TestEnv, more: &str, sections: &str, work: &str) {
    env.write("repo/lanewright.toml", "runner = 'agent'\n[runners.agent]\ncommand = 'agent.sh'\n");
    let agent = "#!/bin/sh\necho x >> \"$SCRATCH/starts\"; echo \"${STRIPE_KEY:-none}\" > pay.txt\n";
    env.program("agent.sh", &format!("{agent}{work}\n"));
    let plan = format!(
        "---\nphase: 03-pay\nplan: 01\ntype: execute\nwave: 1\nfiles_modified: [pay.txt]\n{more}---\n\
         <objective>Pay</objective>\n{sections}<tasks>\n<task type=\"auto\"><name>Write</name><files>pay.txt</files>\n\
         <action>Write pay.txt</action><verify><automated>test -f pay.txt</automated></verify>\n\
         <done>there</done></task>\n</tasks>\n"
    );
    env.write("repo/.planning/phases/03-pay/03-01-PLAN.md", plan);
    env.commit("plan");
}

const PHASE: [&str; 4] = ["execute-phase", ".planning/phases/03-pay", "--run-id", RUN];

const VARIABLE: &str = "user_setup:\n  - service: stripe\n    why: payments\n    env_vars:\n      - name: STRIPE_KEY\n        \
                        source: Dashboard\n";

#[test]
fn g06_a_missing_variable_waits_for_the_user() {
    let env = TestEnv::new();
    gsd_plan(&env, VARIABLE);
    let to_do = "set STRIPE_KEY (Dashboard)";
    let shown = env.lanewright(&["plan", "show", PHASE[1]]).exits(0).stdout;
    assert!(shown.contains(&format!("set up {to_do}")), "{shown}");
    let asked = format!("03-01 waits for your approval of its setup: {to_do}.");
    env.lanewright(&PHASE).exits(3).says(&[&format!("To set up for 03-01: {to_do}"), &asked, "--gate setup"]);
    assert!(!env.path("scratch/starts").exists(), "an agent was paid");
    let status = env.lanewright(&["status", RUN]).exits(0).stdout;
    assert!(status.contains(&asked), "{status}");

    env.lanewright(&["approve", RUN, "03-01", "--gate", "setup"]).exits(0);
    env.lanewright(&["resume", RUN]).exits(0).says(&["starts without STRIPE_KEY, as its setup was approved"]);
    assert_eq!(env.file_at("main", "pay.txt"), "none");
    assert_eq!(env.scratch("starts"), "x\n");
}

#[test]
fn g06_variables_that_are_set_ask_for_nothing() {
    let env = TestEnv::new();
    gsd_plan(&env, VARIABLE);
    env.lanewright_in(&PHASE, &[("STRIPE_KEY", "sk_live_1")]).exits(0);
    assert_eq!(env.file_at("main", "pay.txt"), "sk_live_1");
    let records = env.log().iter().map(ToString::to_string).collect::<String>();
    assert!(!records.contains("sk_live_1"), "the value is stored");
}

#[test]
fn g06_a_token_that_pushes_counts_as_missing() {
    let env = TestEnv::new();
    gsd_plan(&env, &VARIABLE.replace("STRIPE_KEY", "GITHUB_TOKEN"));
    env.lanewright_in(&PHASE, &[("GITHUB_TOKEN", "x")]).exits(3).says(&["set GITHUB_TOKEN (Dashboard)"]);
    env.lanewright_in(&["resume", RUN], &[("GITHUB_TOKEN", "x"), ("LANEWRIGHT_PASS_ENV", "GITHUB_TOKEN")]).exits(0);
}

#[test]
fn g06_a_resume_checks_the_variables_again() {
    let env = TestEnv::new();
    gsd_plan(&env, VARIABLE);
    env.lanewright(&PHASE).exits(3);
    env.lanewright_in(&["resume", RUN], &[("STRIPE_KEY", "1")]).exits(0);
    assert_eq!(env.file_at("main", "pay.txt"), "1");
}

#[test]
fn g06_a_dashboard_step_waits_for_the_user() {
    let env = TestEnv::new();
    let steps =
        format!("{VARIABLE}    dashboard_config:\n      - task: Create a webhook\n        location: Developers\n");
    gsd_plan(&env, &steps);
    let with = [("STRIPE_KEY", "1")];
    let asked = "03-01 waits for your approval of its setup: Create a webhook (Developers).";
    env.lanewright_in(&PHASE, &with).exits(3).says(&[asked]);
    env.lanewright(&["reject", RUN, "03-01", "-m", "no account"]).exits(0);
    env.lanewright_in(&["resume", RUN], &with).exits(3).says(&["a person rejected the setup: no account"]);
    env.lanewright_in(&["resume", RUN], &with).exits(3).says(&[asked]);
    env.lanewright_in(&["approve", RUN, "03-01", "--resume"], &with).exits(0);
    assert_eq!(env.scratch("starts"), "x\n");
}

#[test]
fn g04_files_beyond_the_plan_are_named() {
    let env = TestEnv::new();
    gsd_plan_with(&env, "", "", "echo y > other.txt; mkdir -p .planning; echo z > .planning/notes.md");
    let beyond = "03-01 changed 1 file beyond its plan";
    env.lanewright(&PHASE).exits(0).says(&[&format!("{beyond}: other.txt")]);
    for format in ["text", "md"] {
        let report = env.lanewright(&["report", RUN, "--format", format]).exits(0).stdout;
        assert!(report.contains(beyond) && report.contains("other.txt"), "{report}");
    }
    assert!(env.holds("main", "other.txt"), "the list is advisory");
}

#[test]
fn g11_execution_context_is_for_reference() {
    let env = TestEnv::new();
    let sections = "<execution_context>\n@~/.claude/execute-plan.md\n</execution_context>\n";
    gsd_plan_with(&env, "", sections, "");
    let prompt = env.lanewright(&["plan", "show", PHASE[1], "--prompts"]).exits(0).stdout;
    let parts = ["Write pay.txt", "## For reference", "@~/.claude/execute-plan.md", "these take precedence"];
    let places = parts.map(|part| prompt.find(part).unwrap_or_else(|| panic!("{part} is not in {prompt}")));
    assert!(places.is_sorted(), "{prompt}");
}

#[test]
fn g12_a_missing_context_file_is_a_warning() {
    let env = TestEnv::new();
    env.write("repo/src/a.ts", "a\n");
    let context = "<context>\n@src/a.ts\n@src/gone.ts\n@pay.txt\n@docs/x.md (if available)\n</context>\n";
    gsd_plan_with(&env, "", context, "");
    let next = "---\nphase: 03-pay\nplan: 02\nwave: 2\ndepends_on: [03-01]\nfiles_modified: [b.txt]\n---\n<context>\n@pay.txt\n\
                @.planning/phases/03-pay/03-01-SUMMARY.md\n</context>\n<tasks>\n<task type=\"auto\"><name>B</name>\n\
                <action>b</action></task>\n</tasks>\n";
    env.write("repo/.planning/phases/03-pay/03-02-PLAN.md", next);
    let checked = env.lanewright(&["plan", "check", PHASE[1]]).exits(0).stderr;
    assert_eq!(checked.matches("the context names").count(), 2, "{checked}");
    for missing in ["the context names `src/gone.ts`, which does not exist", "the context names `pay.txt`"] {
        assert!(checked.contains(missing), "{checked}");
    }
}

#[test]
fn g15_reviewers_get_the_criteria_of_the_plan() {
    let env = TestEnv::new();
    let sections =
        "<verification>\nBoth work.\n</verification>\n<success_criteria>\n- Paid in 1 s\n</success_criteria>\n";
    gsd_plan_with(&env, "", sections, "");
    let plan = env.lanewright(&["plan", "convert", PHASE[1]]).exits(0).stdout;
    let critic = "\n[[lane.agent]]\nname = \"engineer\"\ncommand = 'true'\n[[lane.agent]]\nname = \"critic\"\nround = \"review\"\ncommand = 'true'\n";
    env.write("plan.toml", plan + critic);
    let path = env.path("plan.toml");
    let shown = env.lanewright(&["plan", "show", path.to_str().expect("UTF-8"), "--prompts"]).exits(0).stdout;
    let (_, prompt) = shown.split_once("## This is a review").expect("the prompt of the reviewer");
    let (_, section) = prompt.split_once("## How the work as a whole is judged").expect("a section of its own");
    for part in
        ["### Verification of the whole plan\n\nBoth work.", "### Success criteria of the whole plan", "- Paid in 1 s"]
    {
        assert!(section.contains(part), "{part} is not in {section}");
    }
}

#[test]
fn g16_a_plan_without_its_summary_gets_one() {
    let env = TestEnv::new();
    let summary = ".planning/phases/03-pay/03-01-SUMMARY.md";
    let output = format!("<output>\nAfter completion, create `{summary}`\n</output>\n");
    gsd_plan_with(&env, "", &output, "");
    env.lanewright(&PHASE).exits(0).says(&[&format!("the agent left no summary; Lanewright adds {summary}")]);
    let text = env.file_at("main", summary);
    for part in ["# Plan 03-01: Pay", "- Write", "- pay.txt", "run r1"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(env.holds("main", "pay.txt"));

    let env = TestEnv::new();
    gsd_plan_with(&env, "", &output, &format!("echo own > {summary}"));
    env.lanewright(&PHASE).exits(0);
    assert_eq!(env.file_at("main", summary), "own");
}

#[test]
fn g20_errors_are_appended_below_planning() {
    let env = TestEnv::new();
    gsd_plan_with(&env, "", "", "[ $LANEWRIGHT_ATTEMPT != 1 ] || exit 7");
    env.lanewright(&PHASE).exits(0);
    let lines = env.read("repo/.planning/specialist-errors.jsonl");
    let error: Value = serde_json::from_str(lines.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&error["lane"], &error["task"]), (&Value::from("03-01"), &Value::from("1")));
    assert_eq!(lines.lines().count(), 1, "{lines}");
    assert_eq!(env.git(&["status", "--porcelain"]), "", "it is shown as a change");

    let flags =
        ["--phase", "P", "--plan", "1", "--task", "1", "--specialist", "x", "--error-type", "crash", "--details", "d"];
    env.lanewright(&[&["log-error"], &flags[..]].concat()).exits(0);
    assert_eq!(env.read("repo/.planning/specialist-errors.jsonl").lines().count(), 2);
}

#[test]
fn g22_a_checkpoint_tag_has_the_number_of_the_plan() {
    let env = TestEnv::new();
    gsd_plan_with(&env, "", "", "exit 7");
    let settings = "runner = 'agent'\ncheckpoint_tags = true\nretries = 0\n[runners.agent]\ncommand = 'agent.sh'\n";
    env.write("repo/lanewright.toml", settings);
    env.commit("tags");
    env.lanewright(&PHASE).exits(1);
    let tags = env.git(&["tag", "--list"]);
    assert!(tags.starts_with("checkpoint/03-pay-01/20"), "{tags}");
}

#[test]
fn g29_the_start_of_an_attempt_is_a_checkpoint() {
    let env = TestEnv::new();
    gsd_plan(&env, "");
    let base = env.main();
    env.lanewright(&PHASE).exits(0);
    let listed = env.lanewright(&["checkpoints", "list", RUN]).exits(0).stdout;
    assert!(listed.contains("Starts of attempts\n") && listed.contains(&base[..10]), "{listed}");
    let json = env.lanewright(&["checkpoints", "list", RUN, "--format", "json"]).exits(0).json();
    let start = &json["starts"][0];
    assert_eq!((&start["lane"], &start["attempt"], &start["commit"]), (&"03-01".into(), &1.into(), &base.into()));
}

#[test]
fn g35_errors_are_added_to_the_state_where_it_is_kept() {
    let env = TestEnv::new();
    gsd_plan_with(&env, "", "", "[ $LANEWRIGHT_ATTEMPT != 1 ] || exit 7");
    let settings = "runner = 'agent'\ngsd.tracking = true\n[runners.agent]\ncommand = 'agent.sh'\n";
    env.write("repo/lanewright.toml", settings);
    env.write("repo/.planning/STATE.md", "# State\n");
    env.commit("tracking");
    env.lanewright(&PHASE).exits(0);
    let state = env.file_at("main", ".planning/STATE.md");
    assert!(state.contains("## Errors\n\n- 20") && state.contains(": plan 03-01, task 1 (agent): "), "{state}");
}
