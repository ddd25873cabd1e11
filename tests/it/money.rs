//! What agents cost: sums say what is not in them, and budgets of lanes and runners hold before the next attempt.

use crate::support::{TestEnv, wait_until};

/// A program that tells what it used, and its cost where it knows one, and a lane for each line of `lanes`.
fn env(runners: &[(&str, &str)], lanes: &str) -> TestEnv {
    let env = TestEnv::new();
    set_runners(&env, runners);
    for name in ["dear", "plain"] {
        let cost = if name == "dear" { ",\"usd\":0.01" } else { "" };
        let script = format!(
            "echo $LANEWRIGHT_LANE.$LANEWRIGHT_TASK >> $SCRATCH/starts\necho {name} >> $LANEWRIGHT_LANE.$LANEWRIGHT_TASK\n\
             echo '{{\"in\":150{cost}}}'\n"
        );
        env.write(&format!("scratch/{name}.sh"), script);
    }
    env.plan(&format!("[defaults]\nrunner = \"dear\"\nprompt = \"do\"\n{lanes}"));
    env
}

fn set_runners(env: &TestEnv, runners: &[(&str, &str)]) {
    let event =
        |name: &str| format!("[[runners.{name}.event]]\ntotals = true\ninput_tokens = \"/in\"\ncost = \"/usd\"\n");
    let runner = |(name, keys): &(&str, &str)| {
        format!("[runners.{name}]\ncommand = \"sh $SCRATCH/{name}.sh\"\n{keys}{}", event(name))
    };
    env.write("config/lanewright/config.toml", runners.iter().map(runner).collect::<String>());
}

const TASKS: &str = "[[lane.task]]\nid = \"t1\"\n[[lane.task]]\nid = \"t2\"\n";

#[test]
fn a_sum_says_what_has_no_price() {
    let lanes = "[[lane]]\nid = \"A\"\n[[lane]]\nid = \"B\"\nrunner = \"plain\"\n";
    let env = env(&[("dear", ""), ("plain", "")], lanes);
    let ended = env.execute(&[]).exits(0);
    assert!(!ended.stderr.contains("max_cost"), "{}", ended.stderr);
    let price = "$0.0100 + plain 150 tokens (no price)";
    ended.says(&[&format!("300 tokens · {price}")]);
    for command in [&["status"][..], &["list"], &["report", "--format", "md"], &["report", "--format", "html"]] {
        let shown = env.lanewright(command).exits(0).stdout.replace('\\', "");
        assert!(shown.contains(price), "{command:?}: {shown}");
    }
    let report = env.lanewright(&["report", "--format", "json"]).exits(0).json();
    assert_eq!(report["usage"]["unpriced_tokens"], 150);
    assert_eq!(report["usage"]["cost_usd"], 0.01);
    assert!(report["lanes"][1]["usage"]["cost_usd"].is_null(), "{}", report["lanes"][1]["usage"]);
}

#[test]
fn an_attempt_that_a_rollback_stops_is_in_the_sum() {
    let env = env(&[("dear", "")], "[[lane]]\nid = \"A\"\n");
    env.write("scratch/dear.sh", "echo '{\"in\":150,\"usd\":0.01}'\ntouch $SCRATCH/works\nsleep 600\n");
    let mut run = env.start(&[]);
    wait_until("the agent works", || env.path("scratch/works").exists());
    run.kill();
    run.wait();
    env.lanewright(&["rollback", "r1", "--yes"]).exits(0);
    let report = env.lanewright(&["report", "r1", "--format", "json"]).exits(0).json();
    assert_eq!(report["usage"]["cost_usd"], 0.01);
}

#[test]
fn runner_that_reports_nothing_is_named_in_the_sum() {
    // Of a task that a command does nothing is to be reported.
    let lanes = "[[lane]]\nid = \"A\"\n[[lane]]\nid = \"B\"\nrunner = \"plain\"\n\
                 [[lane]]\nid = \"C\"\n[[lane.task]]\nid = \"t1\"\ncommand = \"echo > c.txt\"\n";
    let env = env(&[("dear", ""), ("plain", "")], lanes);
    env.write("scratch/plain.sh", "echo plain > $LANEWRIGHT_LANE.$LANEWRIGHT_TASK\n");
    env.execute(&[]).exits(0).says(&["150 tokens · $0.0100 + plain (not reported)"]);
    let listed = env.lanewright(&["list"]).exits(0).stdout;
    assert!(listed.contains("$0.0100 + plain (not reported)"), "{listed}");
}

#[test]
fn limit_in_dollars_that_a_runner_does_not_report_is_named_at_the_start() {
    let lanes = "[[lane]]\nid = \"A\"\nrunner = \"plain\"\n";
    let env = env(&[("dear", ""), ("plain", "")], lanes);
    let config = env.read("config/lanewright/config.toml");
    let (priced, plain) = config.split_once("[runners.plain]").expect("both");
    let plain = plain.replace("cost = \"/usd\"\n", "");
    env.write("config/lanewright/config.toml", format!("{priced}[runners.plain]{plain}"));
    let warning = "`max_cost` does not limit runners that report no cost: plain";
    env.execute(&["--max-cost", "1"]).exits(0).says(&[warning, "`max_tokens`"]);
    let limited = env.execute(&["--max-cost", "1", "--max-tokens", "1000", "--new-run"]);
    assert!(!limited.stderr.contains(warning), "{}", limited.stderr);
}

#[test]
fn the_budget_of_a_lane_stops_it_alone() {
    let lanes =
        format!("[[lane]]\nid = \"A\"\nmax_tokens = 100\n{TASKS}[[lane]]\nid = \"B\"\nmax_cost = 0.02\n{TASKS}");
    let env = env(&[("dear", "")], &lanes);
    env.execute(&[])
        .exits(3)
        .says(&["budget reached: 150 of 100 tokens of the lane", "raise its `max_cost` or `max_tokens`"])
        .says(&["lanewright resume r1 --accept-plan-change\n"]);
    assert_eq!(env.scratch("starts").lines().filter(|line| line.starts_with('A')).count(), 1);
    assert!(env.holds("main", "B.t2") && !env.holds("main", "A.t1"));
    env.resume(&[]).exits(3);
    env.write("plan.toml", env.read("plan.toml").replace("max_tokens = 100", "max_tokens = 1000"));
    env.resume(&["--accept-plan-change"]).exits(0);
    assert_eq!(env.scratch("starts").lines().count(), 4, "nothing was paid for twice");
}

#[test]
fn the_budget_of_a_runner_stops_all_its_lanes_until_it_is_raised() {
    let lanes = format!("[[lane]]\nid = \"A\"\n{TASKS}[[lane]]\nid = \"B\"\nrunner = \"plain\"\n{TASKS}");
    let env = env(&[("dear", "max_cost = 0.01\n"), ("plain", "")], &lanes);
    env.execute(&[]).exits(3).says(&["budget reached: $0.0100 of $0.0100 of dear", "`[runners.dear]`"]);
    assert!(env.holds("main", "B.t2") && !env.holds("main", "A.t1"));
    set_runners(&env, &[("dear", "max_cost = 0.03\n"), ("plain", "")]);
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "A.t2"));
}

#[test]
fn a_fallback_works_once_the_budget_of_a_runner_is_used_up() {
    let env = env(
        &[("dear", "max_cost = 0.01\nfallback = [\"plain\"]\n"), ("plain", "max_tokens = 150\n")],
        &format!("[[lane]]\nid = \"A\"\n{TASKS}[[lane.task]]\nid = \"t3\"\n"),
    );
    env.execute(&[]).exits(3).says(&["attempt 1 started with plain (task t2)", "budget reached"]);
    assert_eq!(env.scratch("starts"), "A.t1\nA.t2\n");
}

#[test]
fn what_a_runner_used_stays_its_own() {
    let runners = [("dear", "max_cost = 0.01\n"), ("plain", "max_tokens = 100\n")];
    let env = env(&runners, &format!("[[lane]]\nid = \"A\"\nretries = 0\n{TASKS}"));
    env.execute(&[]).exits(3).says(&["$0.0100 of $0.0100 of dear"]);
    // What was used before is not charged to the one that a retry names, and its own limit is that of the settings.
    env.lanewright(&["retry", "r1", "A", "--runner", "plain"]).exits(0);
    assert_eq!(env.scratch("starts"), "A.t1\nA.t2\n");
}
