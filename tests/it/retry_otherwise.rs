//! Retries with another prompt or another runner, and the plan of the run that they change.

use crate::support::{RUN, TestEnv};

/// A run whose lane `A` failed, beside the runner `mine` that would do it and a better prompt.
fn failed_for_another_runner() -> TestEnv {
    let env = TestEnv::new();
    env.program("mine", "#!/bin/sh\ncat > \"$SCRATCH/prompt\"; echo a > a.txt\n");
    env.write("repo/lanewright.toml", "[runners.mine]\ncommand = [\"mine\"]\nprompt = \"stdin\"\nkey = {}\n");
    env.commit("configured");
    env.plan("[[lane]]\nid = \"A\"\nretries = 0\nprompt = \"as planned\"\ncommand = 'exit 1'\n");
    env.execute(&[]).exits(1);
    env.write("better.md", "do it in small steps\n");
    env
}

#[test]
fn kill_during_plan_replacement_keeps_old_or_new() {
    let dies = |env: &TestEnv, point: &str, arguments: &[&str]| {
        let died = env.lanewright_with(arguments, |command| command.env("LANEWRIGHT_CRASH_POINT", point));
        assert!(died.was_killed(), "{arguments:?} does not come to {point}");
    };
    let retry = ["retry", "A", "--runner", "mine", "--prompt-file", "../better.md"];
    for point in ["plan_replaced:1", "before_sync:1", "after_sync:1"] {
        let env = failed_for_another_runner();
        dies(&env, point, &retry);
        env.lanewright(&["doctor", RUN]).exits(0);
        if env.events("run_resumed").is_empty() {
            // The old plan is put in place, where it dies again.
            dies(&env, point, &["resume"]);
            env.resume(&[]).exits(1);
            assert!(!env.path("scratch/prompt").exists(), "the new plan was used");
            dies(&env, point, &retry);
            env.lanewright(&retry).exits(0);
        } else {
            env.resume(&[]).exits(0);
        }
        assert!(env.scratch("prompt").contains("do it in small steps"), "{point}");
        env.lanewright(&["doctor", RUN]).exits(0);
        env.assert_nothing_left(&["main"]);
    }
}

#[test]
fn retry_accepts_other_prompt_and_runner() {
    let env = failed_for_another_runner();
    env.lanewright(&["retry", "A", "--runner", "min"]).exits(2).says(&["has no runner `min`"]).hints("`mine`");
    env.lanewright(&["retry", "A", "--prompt-file", "nowhere"]).exits(2).says(&["nowhere cannot be read"]);
    env.write("binary.md", "do it\0");
    env.lanewright(&["retry", "A", "--prompt-file", "../binary.md"]).exits(2).says(&["holds a NUL character"]);
    env.lanewright(&["retry", "A", "--runner", "mine", "--prompt-file", "../better.md"]).exits(0);
    let prompt = env.scratch("prompt");
    assert!(prompt.contains("do it in small steps") && !prompt.contains("as planned"), "{prompt}");
    let noted = env
        .events("noted")
        .iter()
        .any(|note| note["message"] == "agent: task 1 is retried by the runner mine and with another prompt");
    assert!(noted, "{:?}", env.events("noted"));
    assert!(env.events("run_resumed")[0]["pinned_sha256"].is_string());
    assert!(env.holds("main", "a.txt"));
}

/// A run whose lane `A` was retried with another prompt and the runner `mine`, which fails until something is fixed.
fn retried_in_another_way() -> TestEnv {
    let env = failed_for_another_runner();
    env.program("mine", "#!/bin/sh\ncat > \"$SCRATCH/prompt\"; test -e \"$SCRATCH/fixed\" && echo a > a.txt\n");
    env.lanewright(&["retry", "A", "--runner", "mine", "--prompt-file", "../better.md"]).exits(1);
    env.write("scratch/fixed", "");
    env
}

fn change_plan(env: &TestEnv, from: &str, to: &str) {
    let plan = std::fs::read_to_string(env.path("plan.toml")).expect("the plan");
    assert!(plan.contains(from), "{plan}");
    env.write("plan.toml", plan.replace(from, to));
}

#[test]
fn retry_override_outlives_an_accepted_plan_change() {
    let env = retried_in_another_way();
    change_plan(&env, "[[lane]]", "[[lane]]\nid = \"B\"\ncommand = 'echo b > b.txt'\n[[lane]]");
    let refused = env.resume(&[]).exits(2).says(&["lane B is new"]).hints("lanewright resume r1 --accept-plan-change");
    assert!(!refused.stderr.contains("lane A"), "{}", refused.stderr);
    env.resume(&["--accept-plan-change"]).exits(0);
    let prompt = env.scratch("prompt");
    assert!(prompt.contains("do it in small steps") && !prompt.contains("as planned"), "{prompt}");
    assert!(env.holds("main", "a.txt") && env.holds("main", "b.txt"));
}

#[test]
fn changed_plan_file_overrides_prompt_of_retry() {
    let env = retried_in_another_way();
    change_plan(&env, "as planned", "as planned, but better");
    let superseded = "lane A: the prompt of task 1 of the plan file replaces that of `retry`";
    env.resume(&[]).exits(2).says(&["lane A: task 1 (prompt)", superseded]);
    env.resume(&["--accept-plan-change"]).exits(0).says(&[superseded]);
    let prompt = env.scratch("prompt");
    assert!(prompt.contains("as planned, but better") && !prompt.contains("small steps"), "{prompt}");
}

#[test]
fn plan_file_with_the_retry_override_is_no_change() {
    let env = retried_in_another_way();
    std::fs::remove_file(env.path("scratch/fixed")).expect("the fix");
    let (planned, better) = ("prompt = \"as planned\"", "prompt = \"do it in small steps\\n\"");
    change_plan(&env, planned, better);
    env.resume(&[]).exits(1);
    change_plan(&env, better, planned);
    env.resume(&[]).exits(2).says(&["lane A: task 1 (prompt)"]);
    env.write("scratch/fixed", "");
    env.resume(&["--accept-plan-change"]).exits(0);
    assert!(env.scratch("prompt").contains("as planned"), "{}", env.scratch("prompt"));
}

#[test]
fn plan_file_can_change_an_unnamed_agents_runner() {
    let env = TestEnv::new();
    let runners = "[runners.one]\ncommand = ['false']\n[runners.two]\ncommand = ['sh', '-c', 'echo a > a.txt']\n";
    env.write("repo/lanewright.toml", runners);
    env.plan("[[lane]]\nid = \"A\"\nrunner = \"one\"\nretries = 0\nprompt = \"as planned\"\n");
    env.execute(&[]).exits(1);
    change_plan(&env, "runner = \"one\"", "runner = \"two\"");
    env.resume(&[]).exits(2).says(&["lane A: agents"]);
    env.resume(&["--accept-plan-change"]).exits(0);
    assert!(env.holds("main", "a.txt"));
}

#[test]
fn conflict_of_retry_override_and_edited_plan_is_named() {
    let env = retried_in_another_way();
    let pinned = "repo/.claude/ai-dev-kit/run-logs/r1/plan.json";
    env.write(pinned, env.read(pinned).replace("small steps", "giant steps"));
    env.resume(&[]).exits(6).hints("--accept-plan-change");
    let edited = "lane A: the prompt of task 1 is what plan.json has, which another program changed";
    env.resume(&["--accept-plan-change"]).exits(0).says(&[edited]);
}

#[test]
fn doctor_reports_retry_override_lost_with_pinned_plan() {
    let env = retried_in_another_way();
    std::fs::remove_file(env.path("repo/.claude/ai-dev-kit/run-logs/r1/plan.json")).expect("the pinned plan");
    let lost = "the prompt or runner that `retry` gave A is not in it";
    let told = |arguments: &[&str], code| env.lanewright(arguments).exits(code).stdout;
    assert!(told(&["doctor", "r1"], 6).contains(lost));
    assert!(told(&["doctor", "r1", "--fix"], 0).contains(lost));
}

#[test]
fn doctor_restores_pinned_plan_with_retry_override() {
    let env = retried_in_another_way();
    change_plan(&env, "prompt = \"as planned\"", "prompt = \"do it in small steps\\n\"");
    change_plan(&env, "command = 'exit 1'", "runner = \"mine\"");
    std::fs::remove_file(env.path("scratch/fixed")).expect("the fix");
    env.resume(&["--accept-plan-change"]).exits(1);
    let pinned = "repo/.claude/ai-dev-kit/run-logs/r1/plan.json";
    let text = env.read(pinned);
    std::fs::remove_file(env.path(pinned)).expect("the pinned plan");
    for (arguments, code) in [(&["doctor", "r1"][..], 6), (&["doctor", "r1", "--fix"], 0)] {
        let shown = env.lanewright(arguments).exits(code).stdout;
        assert!(shown.contains("plan-missing") && !shown.contains("`retry` gave"), "{shown}");
    }
    assert_eq!(env.read(pinned), text);
    env.write("scratch/fixed", "");
    env.resume(&[]).exits(0);
}

#[test]
fn doctor_writes_no_plan_that_contradicts_the_log() {
    let env = TestEnv::new();
    let runner = |name: &str, then: &str| format!("[runners.{name}]\ncommand = ['sh', '-c', '{then}']\n");
    let works = "echo $LANEWRIGHT_AGENT > $LANEWRIGHT_AGENT.txt; test -e $SCRATCH/fixed";
    let runners = [("one", "false"), ("two", "false"), ("three", works), ("four", works)];
    env.write("repo/lanewright.toml", runners.map(|(name, then)| runner(name, then)).concat());
    let agents = "[[lane.agent]]\nrunner = \"one\"\n[[lane.agent]]\nrunner = \"two\"\n";
    env.plan(&format!("[[lane]]\nid = \"A\"\nretries = 0\n{agents}[[lane.task]]\nid = \"1\"\nprompt = \"work\"\n"));
    env.execute(&[]).exits(1);
    change_plan(&env, "\"one\"", "\"three\"");
    change_plan(&env, "\"two\"", "\"four\"");
    env.resume(&["--accept-plan-change"]).exits(1);
    std::fs::remove_file(env.path("repo/.claude/ai-dev-kit/run-logs/r1/plan.json")).expect("the pinned plan");
    // Nothing shows which of the two is which; the example is the one that the log has first.
    let shown = env.lanewright(&["doctor", "r1", "--fix"]).exits(6).stdout;
    let example = ["one", "two"].iter().any(|name| shown.contains(&format!("such as `name = \"{name}\"`")));
    assert!(shown.contains("plan-missing") && example, "{shown}");
    env.write("scratch/fixed", "");
    env.resume(&["--accept-plan-change"]).exits(6);
    change_plan(&env, "runner = \"three\"", "name = \"one\"\nrunner = \"three\"");
    change_plan(&env, "runner = \"four\"", "name = \"two\"\nrunner = \"four\"");
    env.resume(&["--accept-plan-change"]).exits(0);
    assert!(env.holds("main", "one.txt") && env.holds("main", "two.txt"));
}

#[test]
fn retry_override_of_a_removed_task_is_named() {
    let env = TestEnv::new();
    env.program("mine", "#!/bin/sh\ncat > \"$SCRATCH/prompt\"; test -e \"$SCRATCH/fixed\" && echo a > a.txt\n");
    env.write("better.md", "do it in small steps\n");
    let task = "[[lane]]\nid = \"A\"\nretries = 0\ncommand = ['mine']\n[[lane.task]]\nid = \"one\"\n";
    env.plan(&format!("{task}prompt = \"as planned\"\n"));
    env.execute(&[]).exits(1);
    let better = env.path("better.md");
    env.lanewright(&["retry", "A", "--prompt-file", better.to_str().expect("UTF-8")]).exits(1);
    env.write("scratch/fixed", "");
    change_plan(&env, "id = \"one\"", "id = \"uno\"");
    let gone = "lane A: the prompt of task one that `retry` replaced is not in the plan file";
    env.resume(&[]).exits(2).says(&[gone]);
    env.resume(&["--accept-plan-change"]).exits(0).says(&[gone]);
}
