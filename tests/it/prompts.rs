//! Prompts: their contents, and templates of the repository's own.

use crate::support::TestEnv;

const PLAN: &str = r#"
[gates]
atomic = ["test -d ."]
checkpoint = ["true # checkpoint"]
[[lane]]
id = "L"
owns = ["work.txt"]
retries = 1
tests = ["grep -q good work.txt"]
[[lane.agent]]
name = "engineer"
command = "if [ $LANEWRIGHT_ATTEMPT = 1 ]; then echo bad > work.txt; else echo good > work.txt; fi"
[[lane.agent]]
name = "critic"
round = "review"
command = '''cp "$LANEWRIGHT_PROMPT_FILE" "$SCRATCH/review.md"
sed -n 's/^    \(git .*\)/\1/p' "$LANEWRIGHT_PROMPT_FILE" | sh > "$SCRATCH/review-shows" 2>&1
printf '{"status": "COMPLETE", "decision": "APPROVED"}' > "$LANEWRIGHT_STATUS_FILE"'''
prompt = "Be strict."
[[lane.task]]
agent = "engineer"
id = "1"
name = "the work"
prompt = "Write work.txt."
verify = ["test -f work.txt"]
"#;

/// Puts a template of the repository's own in place.
fn template(env: &TestEnv, name: &str, text: &str) {
    env.write(&format!("repo/.lanewright/prompts/{name}"), text);
}

#[test]
fn prompt_names_the_gates_and_review_its_diff() {
    let env = TestEnv::new();
    env.plan(PLAN);
    env.execute(&[]).exits(0);
    let first = env.attempt_file("L", "engineer", 1, "prompt.md");
    assert!(first.starts_with("Write work.txt.\n"), "{first}");
    for told in ["    test -f work.txt\n    test -d .\n", "    true # checkpoint\n", "    grep -q good work.txt\n"] {
        assert!(first.contains(told), "{told}: {first}");
    }
    assert!(first.contains("- work.txt") && first.contains("$LANEWRIGHT_STATUS_FILE"), "{first}");
    let second = env.attempt_file("L", "engineer", 2, "prompt.md");
    assert!(second.contains("## This is attempt 2\n\nEarlier attempts failed."), "{second}");
    let review = env.scratch("review.md");
    for told in ["Be strict.", "This is a review", "task 1, the work\n\nWrite work.txt.", "    grep -q good work.txt\n"]
    {
        assert!(review.contains(told), "{told}: {review}");
    }
    let shown = env.scratch("review-shows");
    assert!(shown.contains("work.txt | 1 +") && shown.contains("+good") && !shown.contains("fatal"), "{shown}");
}

#[test]
fn plan_show_prints_the_prompts_that_agents_get() {
    let env = TestEnv::new();
    env.plan(PLAN);
    let plan = env.path("plan.toml");
    let shown = env.lanewright(&["plan", "show", plan.to_str().unwrap(), "--prompts"]).exits(0).stdout;
    env.execute(&[]).exits(0);
    let first = env.attempt_file("L", "engineer", 1, "prompt.md");
    assert!(shown.contains(&format!("==> L · engineer · task 1 <==\n\n{first}")), "{shown}");
    assert!(shown.contains("==> L · critic · task review <==") && shown.contains("git diff BASE HEAD"), "{shown}");
}

#[test]
fn prompt_template_is_pinned_at_run_start() {
    let env = TestEnv::new();
    template(&env, "implementation.md", "Team rules.\n\n{{ task.prompt }}{% include \"history.md\" %}");
    let plan = PLAN.replace("command = \"if", "command = \"[ $LANEWRIGHT_ATTEMPT = 1 ] && exit 3; if");
    env.plan(&plan.replace("retries = 1", "retries = 0"));
    env.execute(&[]).exits(1);
    assert_eq!(env.attempt_file("L", "engineer", 1, "prompt.md"), "Team rules.\n\nWrite work.txt.\n");
    template(&env, "implementation.md", "{{ nonsense");
    env.resume(&[]).exits(0);
    let last = env.attempt_file("L", "engineer", 2, "prompt.md");
    assert!(last.starts_with("Team rules.\n\nWrite work.txt.\n\n## This is attempt 2"), "{last}");
}

#[test]
fn invalid_template_is_refused_with_its_location() {
    let cases = [
        ("implementation.md", "\n{{ taks.prompt }}", "implementation.md:2:4: error: `taks` is none of"),
        ("implementation.md", "{{ attempt }} {{ task.promt }}", "implementation.md:1:18: error: undefined value"),
        ("history.md", "{% if attempt %}", "history.md:1:15: error: syntax error"),
        ("implementation.md", "{{ task.prompt }}", "implementation.md:1: error: a retry gets the same prompt"),
        // Only together with another value, or without it.
        ("history.md", "{{ attempt }}{% if remarks and not reports %}{{ remarks[7].x }}{% endif %}", "history.md:1:"),
        ("history.md", "{{ attempt }}{% if last_words %}{{ complaints[0].x.y }}{% endif %}", "history.md:1:"),
        // What does not end, or makes too much of little.
        (
            "scope.md",
            "\n{%- for a in range(2000) %}{% for b in range(2000) %}{% endfor %}{% endfor %}",
            "too many steps",
        ),
        ("scope.md", "{% for a in range(999) %}{{ '%99999d' | format(a) }}{% endfor %}", "of more than 16 MiB"),
        ("implementation.md", "{{ attempt }}{% include \"team.md\" %}", "template not found"),
    ];
    for (name, text, expected) in cases {
        let env = TestEnv::new();
        env.plan(PLAN);
        template(&env, name, text);
        let refused = env.execute(&[]).exits(2).stderr;
        assert!(refused.contains(expected) && refused.contains("docs/prompts.md"), "{text}: {refused}");
        assert!(!env.path("repo/.git/refs/heads/lane").exists(), "{text}");
    }
}

#[test]
fn template_error_at_a_retry_blocks_the_lane_once() {
    let env = TestEnv::new();
    let bad = "{{ task.prompt }}{% if attempt == 4 %}{{ failures[77].x }}{% endif %}{% include \"history.md\" %}";
    template(&env, "implementation.md", bad);
    env.plan("[[lane]]\nid = \"A\"\nretries = 2\ncommand = \"echo zz; exit 1\"\n");
    env.execute(&["--timeout", "60s"]).exits(3).says(&["the prompt cannot be made"]);
    assert_eq!(env.events("lane_blocked").len(), 1);
}

#[test]
fn a_template_with_a_misspelt_name_is_named() {
    let env = TestEnv::new();
    env.plan(PLAN);
    template(&env, "implementaton.md", "never used");
    template(&env, "Requirements.MD", "never used");
    template(&env, "review.txt", "never used");
    for name in ["team.md", "README", "scope.md", "scope.md~"] {
        template(&env, name, "may be there");
    }
    let told = env.execute(&[]).exits(0).stderr;
    for (name, meant) in [("implementaton.md", "implementation.md"), ("Requirements.MD", "requirements.md")] {
        let warning = format!("{name}:1: warning: no prompt uses this template\n  help: did you mean `{meant}`?\n");
        assert!(told.contains(&warning), "{told}");
    }
    assert!(told.contains("review.txt:1: warning") && told.matches("did you mean").count() == 3, "{told}");
}

#[test]
fn a_template_without_the_text_of_the_task_is_named() {
    let env = TestEnv::new();
    env.plan(PLAN);
    template(&env, "review.md", "Look at {{ head }}.{% include \"history.md\" %}");
    let warning = "review.md:1: warning: the prompt does not have `task.prompt`, the text of the task";
    let plan = env.path("plan.toml");
    let told = env.lanewright(&["plan", "check", plan.to_str().expect("UTF-8")]).exits(0).stderr;
    assert!(told.contains(warning), "{told}");
    assert!(env.execute(&[]).exits(0).stderr.contains(warning), "a run starts without the warning");
    template(&env, "review.md", "{% include \"team.md\" %}{% include \"history.md\" %}");
    template(&env, "team.md", "{{ task.prompt | upper | lower }}: {{ task.prompt | indent }}");
    let told = env.lanewright(&["plan", "check", plan.to_str().expect("UTF-8")]).exits(0).stderr;
    assert!(!told.contains("task.prompt"), "{told}");
}

#[test]
fn a_directory_of_templates_that_was_set_must_be_one() {
    let env = TestEnv::new();
    env.plan(PLAN);
    let with = |directory: &str| {
        let plan = env.path("plan.toml");
        let check = ["plan", "check", plan.to_str().expect("UTF-8")];
        env.lanewright_with(&check, |command| command.env("LANEWRIGHT_PROMPTS", directory))
    };
    let missing = with("nowhere").exits(2).stderr;
    assert!(missing.contains("does not exist (set by: LANEWRIGHT_PROMPTS)"), "{missing}");
    assert!(with("README.md").exits(2).stderr.contains("is not a directory"));
    env.write("repo/own/team.md", "");
    with("own").exits(0);
    env.write("repo/.lanewright/prompts", "");
    let file = env.execute(&[]).exits(2).stderr;
    assert!(file.contains("is not a directory (set by: default)"), "{file}");
}
