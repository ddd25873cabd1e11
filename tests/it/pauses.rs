//! Runners whose service takes no more requests: all their lanes wait, and one attempt finds out when that is over.

use serde_json::Value;

use crate::support::{TestEnv, wait_until};

/// Lanes of one program, which `script` is of.
fn lanes(env: &TestEnv, names: &[&str], script: &str) {
    env.write("config/lanewright/config.toml", "backoff = \"10ms\"\n[runners.x]\ncommand = \"sh $SCRATCH/x.sh\"\n");
    env.write("scratch/x.sh", script);
    let lane = |name: &&str| format!("[[lane]]\nid = \"{name}\"\nprompt = \"do\"\n");
    env.plan(&format!("[defaults]\nrunner = \"x\"\n{}", names.iter().map(lane).collect::<String>()));
}

/// Each lane begins before the first of `A` and `B` fails, as it might not where its worktree takes longer.
const TOGETHER: &str = "touch $SCRATCH/$LANEWRIGHT_LANE; wait-for A; wait-for B\n";

const WORK: &str = "echo done > $LANEWRIGHT_LANE.txt\n";

/// The attempts that began while the runner was paused.
fn probes(env: &TestEnv) -> usize {
    let mut paused = false;
    let mut is_probe = |event: &Value| {
        match event["event"].as_str() {
            Some("runner_paused") => paused = true,
            Some("runner_continued") => paused = false,
            _ => {}
        }
        paused && event["event"] == "job_planned" && event["job"]["role"]["attempt"].is_object()
    };
    env.log().iter().filter(|event| is_probe(event)).count()
}

#[test]
fn one_attempt_finds_out_for_all_lanes_that_a_service_is_available_again() {
    let env = TestEnv::new();
    // The first six and two of those that find out are refused.
    let all = "for lane in A B C D E F; do wait-for $lane; done";
    let begun = format!("touch $SCRATCH/$LANEWRIGHT_LANE; {all}\n");
    let closed = "mkdir $SCRATCH/start.$LANEWRIGHT_LANE.$LANEWRIGHT_ATTEMPT\n\
                  [ $(ls -d $SCRATCH/start.* | wc -l) -le 8 ] && { echo 'HTTP 429, retry after 1 ms'; exit 1; }\n";
    lanes(&env, &["A", "B", "C", "D", "E", "F"], &format!("{begun}{closed}{WORK}"));
    env.execute(&["--max-parallel", "6"]).exits(0).says(&["waiting for x until", "x is available again"]);
    assert_eq!(probes(&env), 3);
    assert_eq!(env.events("retry_planned").len(), 8, "none of them counts as a retry");
    assert!(env.events("lane_failed").is_empty());
}

#[test]
fn a_pause_outlives_the_process_and_is_shown() {
    let env = TestEnv::new();
    lanes(
        &env,
        &["A", "B"],
        &format!(
            "{TOGETHER}[ -e $SCRATCH/open ] || {{ echo \"You've hit your usage limit. Try again in 5 hours.\"; exit 1; }}\n{WORK}"
        ),
    );
    let mut run = env.start(&["--max-parallel", "2"]);
    wait_until("both lanes wait", || env.log_file().exists() && env.events("retry_planned").len() == 2);
    run.kill();
    let until = env.events("runner_paused")[0]["until"].clone();

    let run = env.start_with(&["resume"], |command| command);
    wait_until("the run is resumed", || env.events("run_resumed").len() == 1);
    let status = env.lanewright(&["status", "--format", "json"]).exits(0).json();
    assert_eq!(status["pauses"][0]["account"], "x");
    assert_eq!(status["pauses"][0]["until"], until);
    assert_eq!(status["lanes"][1]["waiting_for"]["runner"]["until"], until);
    let shown = env.lanewright(&["status"]).exits(0).stdout;
    assert!(shown.contains("waiting for x until ") && shown.contains("m), 2 lanes"), "{shown}");
    wait_until("the record says it", || env.checkpoint("A", "retry_attempt")["status"] == "blocked");
    env.lanewright(&["stop"]).exits(0);
    run.wait().exits(143);
    assert_eq!(env.events("job_planned").len(), 2, "none began in the pause");
    env.lanewright(&["retry", "r1", "A", "--runner", "x"]).exits(7).says(&["set `fallback` of the runner"]);

    env.write("scratch/open", "");
    env.resume(&[]).exits(0).says(&["x is available again"]);
}

#[test]
fn a_limit_that_a_passing_attempt_reports_is_waited_for() {
    let env = TestEnv::new();
    let says = "echo \"{\\\"type\\\":\\\"limit\\\",\\\"until\\\":$(($(date +%s) + 3600))}\"\n";
    lanes(&env, &["A", "B"], &format!("{says}{WORK}"));
    let rule = "[[runners.x.event]]\nwhen = { \"/type\" = \"limit\" }\nlimited_until = \"/until\"\n";
    let config = env.read("config/lanewright/config.toml");
    env.write("config/lanewright/config.toml", format!("{config}{rule}"));
    let run = env.start(&["--max-parallel", "1"]);
    wait_until("the lane is merged", || env.log_file().exists() && env.events("lane_merged").len() == 1);
    env.lanewright(&["stop"]).exits(0);
    run.wait().exits(143).says(&["the limit of the account is used up"]);
    assert_eq!(env.events("job_planned").len(), 1, "the other began in the pause");
    assert!(env.events("retry_planned").is_empty());
}

#[test]
fn lanes_of_other_runners_go_on() {
    let env = TestEnv::new();
    lanes(&env, &["A", "B"], "echo 'HTTP 429, retry after 3600'; exit 1\n");
    let more = "[[lane]]\nid = \"OTHER\"\ncommand = \"echo done > other.txt\"\n";
    env.plan(&format!("{}{more}", env.read("plan.toml").replace("phase = \"P1\"\n", "")));
    let run = env.start(&["--max-parallel", "1"]);
    wait_until("the other lane is merged", || env.log_file().exists() && env.events("lane_merged").len() == 1);
    env.lanewright(&["stop"]).exits(0);
    run.wait().exits(143);
    assert_eq!(env.events("job_planned").iter().filter(|event| event["job"]["lane"] != "OTHER").count(), 1);
}

#[test]
fn a_runner_is_waited_for_until_the_limit() {
    let env = TestEnv::new();
    lanes(&env, &["A", "B"], "echo 'HTTP 429, retry after 1 ms'; exit 1\n");
    let config = env.read("config/lanewright/config.toml");
    env.write("config/lanewright/config.toml", format!("outage_limit = \"1s\"\n{config}"));
    env.execute(&["--max-parallel", "1"]).exits(1).says(&["x is not waited for any longer", "lanewright resume r1"]);
    assert_eq!(env.events("lane_failed").len() + env.events("lane_blocked").len(), 2);
}

/// Two runners, of which `first` names the other as its fallback, and a lane with `keys`.
fn with_fallback(env: &TestEnv, settings: &str, keys: &str, first: &str) {
    let runner = |name: &str| format!("[runners.{name}]\ncommand = \"sh $SCRATCH/{name}.sh\"\n");
    let config =
        format!("backoff = \"10ms\"\n{settings}{}fallback = [\"second\"]\n{}", runner("first"), runner("second"));
    env.write("config/lanewright/config.toml", config);
    env.write("scratch/first.sh", first);
    env.write(
        "scratch/second.sh",
        "cp \"$LANEWRIGHT_PROMPT_FILE\" $SCRATCH/prompt.$LANEWRIGHT_TASK\necho second >> $LANEWRIGHT_TASK.txt\n",
    );
    env.plan(&format!("[defaults]\nrunner = \"first\"\n[[lane]]\nid = \"A\"\nprompt = \"do\"\n{keys}"));
}

/// The runners of the attempts, where they are not the agent's own.
fn runners(env: &TestEnv) -> Vec<Option<String>> {
    let attempts = env.events("job_planned").into_iter().filter(|event| event["job"]["role"]["attempt"].is_object());
    let fallback = |event: Value| {
        event["made_with"]
            .as_object()
            .filter(|it| it.contains_key("is_fallback"))
            .map(|it| it["runner"].as_str().expect("a name").to_owned())
    };
    attempts.map(fallback).collect()
}

#[test]
fn another_runner_takes_over_while_one_is_paused_for_long() {
    for merge in ["merge", "squash"] {
        let env = TestEnv::new();
        let limited = "echo half > half.txt\necho \"You've hit your usage limit. Try again in 5 hours.\"\nexit 1\n";
        with_fallback(&env, "", "retries = 0\n", limited);
        let ended = env.execute(&["--merge", merge]).exits(0);
        ended.says(&["first is paused until", "attempt 2 started with second"]);
        assert_eq!(runners(&env), [None, Some("second".to_owned())]);
        assert!(env.holds("main", "half.txt"), "what was done stays");
        let prompt = env.scratch("prompt.1");
        assert!(prompt.contains("This is attempt 2") && !prompt.contains("usage limit"), "{prompt}");
        let message = env.git(&["log", "--format=%B", "main"]);
        assert!(message.contains("Runner: second"), "{merge}: {message}");
        let report = env.lanewright(&["report", "--format", "json"]).exits(0).json();
        assert_eq!(report["lanes"][0]["attempts"][1]["runner"], "second");
        let shown = env.lanewright(&["status", "r1", "A"]).exits(0).stdout;
        assert!(shown.contains("attempt 2 of first at task 1 with sec"), "{shown}");
    }
}

#[test]
fn work_returns_to_a_runner_that_is_available_again() {
    let env = TestEnv::new();
    let limited = "[ -e $SCRATCH/open ] || { echo \"HTTP 429, try again in 1 second\"; exit 1; }\n\
                   echo first > $LANEWRIGHT_TASK.txt\n";
    let tasks = "[[lane.task]]\nid = \"t1\"\nverify = \"touch $SCRATCH/open; sleep 1\"\n[[lane.task]]\nid = \"t2\"\n";
    with_fallback(&env, "fallback_after = \"1ms\"\n", tasks, limited);
    env.execute(&[]).exits(0).says(&["first is available again"]);
    assert_eq!(runners(&env), [None, Some("second".to_owned()), None]);
    assert_eq!(
        (env.file_at("main", "t1.txt"), env.file_at("main", "t2.txt")),
        ("second".to_owned(), "first".to_owned())
    );
}

#[test]
fn a_refused_key_is_no_end_where_another_runner_can_work() {
    let env = TestEnv::new();
    with_fallback(&env, "", "", "exec missing-program\n");
    let config = env.read("config/lanewright/config.toml").replace("sh $SCRATCH/first.sh", "missing-program");
    env.write("config/lanewright/config.toml", config);
    env.execute(&[]).exits(0);
    assert_eq!(runners(&env), [None, Some("second".to_owned())]);
    let env = TestEnv::new();
    with_fallback(&env, "", "fallback = []\n", "");
    let config = env.read("config/lanewright/config.toml").replace("sh $SCRATCH/first.sh", "missing-program");
    env.write("config/lanewright/config.toml", config);
    env.execute(&[]).exits(3).says(&["missing-program"]);
    assert_eq!(runners(&env), [None]);
}

#[test]
fn a_fallback_that_is_unknown_or_cannot_work_is_named_before_the_start() {
    let env = TestEnv::new();
    with_fallback(&env, "", "fallback = [\"secnd\"]\n", "echo a > a.txt\n");
    env.execute(&[]).exits(2).says(&["there is no runner `secnd`"]);
    with_fallback(&env, "", "", "echo a > a.txt\n");
    let config = env.read("config/lanewright/config.toml");
    env.write("config/lanewright/config.toml", config.replace("[\"second\"]", "[\"third\"]"));
    env.execute(&[]).exits(2).says(&["config.toml:4:13: `fallback` names `third`"]);
    env.write("config/lanewright/config.toml", config.replace("\"sh $SCRATCH/second.sh\"", "[\"missing-program\"]"));
    env.execute(&[]).exits(0).says(&["`missing-program`, which is not on the PATH; it cannot take the place of first"]);
}

#[test]
fn useless_fallback_is_named_before_the_start() {
    let env = TestEnv::new();
    with_fallback(&env, "", "", "echo a > a.txt\n");
    let config = env.read("config/lanewright/config.toml").replace("[\"second\"]", "[\"first\", \"second\"]");
    env.write("config/lanewright/config.toml", config + "account = \"first\"\n");
    env.execute(&[])
        .exits(0)
        .says(&["names itself, which has no effect", "names `second`, whose account is the same"])
        .hints("name a runner with another account");
}

#[test]
fn a_model_that_does_not_exist_stops_only_those_that_ask_for_it() {
    let env = TestEnv::new();
    let runner = "command = [\"sh\", \"x.sh\"]\noptions = { model = [\"{value}\"] }\n\
                  [[runners.x.event]]\nwhen = { \"/type\" = \"error\" }\nerror = \"/message\"\n";
    env.write("config/lanewright/config.toml", format!("backoff = \"10ms\"\n[runners.x]\n{runner}"));
    let wrong = "{\"type\": \"error\", \"message\": \"model_not_found: wrong\"}";
    let script = format!(
        "echo $1 >> $SCRATCH/starts\n[ $1 != wrong ] || {{ echo '{wrong}'; exit 1; }}\necho $1 > $LANEWRIGHT_LANE.txt\n"
    );
    env.write("repo/x.sh", script);
    env.commit("the program");
    let lane = |(id, model): (&str, &str)| format!("[[lane]]\nid = \"{id}\"\nmodel = \"{model}\"\nprompt = \"do\"\n");
    let lanes: String = [("A", "wrong"), ("B", "wrong"), ("C", "right"), ("D", "right")].map(lane).concat();
    env.plan(&format!("[defaults]\nrunner = \"x\"\n{lanes}"));
    env.execute(&["--max-parallel", "1"])
        .exits(3)
        .says(&["B: blocked: x:wrong cannot work: model_not_found: wrong; set `model` to one that it offers;"]);
    assert!(env.holds("main", "C.txt") && env.holds("main", "D.txt"));
    assert_eq!(env.scratch("starts").lines().filter(|model| *model == "wrong").count(), 1);
}

#[test]
fn an_outage_stays_with_the_runner_that_had_it() {
    let env = TestEnv::new();
    let limited = "echo \"You've hit your usage limit. Try again in 5 hours.\"; exit 1\n";
    with_fallback(&env, "", "fallback = []\n", limited);
    let mut run = env.start(&[]);
    wait_until("the lane waits", || env.log_file().exists() && env.events("retry_planned").len() == 1);
    run.kill();
    run.wait();
    // The natural cure: another runner.
    env.write("plan.toml", env.read("plan.toml").replace("runner = \"first\"", "runner = \"second\""));
    env.resume(&["--accept-plan-change"]).exits(0);
    assert!(env.holds("main", "1.txt"));
}

#[test]
fn a_fallback_that_is_available_again_comes_before_a_later_one() {
    let env = TestEnv::new();
    let limited = "echo \"You've hit your usage limit. Try again in 5 hours.\"; exit 1\n";
    let tasks = "[[lane.task]]\nid = \"t1\"\nverify = \"sleep 1.1\"\n[[lane.task]]\nid = \"t2\"\n";
    with_fallback(&env, "", tasks, limited);
    let config = env.read("config/lanewright/config.toml").replace("[\"second\"]", "[\"short\", \"second\"]");
    let short = "[runners.short]\ncommand = \"sh $SCRATCH/short.sh\"\n";
    env.write("config/lanewright/config.toml", format!("{config}{short}"));
    env.write(
        "scratch/short.sh",
        "mkdir $SCRATCH/once 2>/dev/null && { echo 'HTTP 429, try again in 1 second'; exit 1; }\necho short > $LANEWRIGHT_TASK.txt\n",
    );
    env.execute(&[]).exits(0);
    assert_eq!(runners(&env)[1..], ["short", "second", "short"].map(|name| Some(name.to_owned())));
}

#[test]
fn a_lane_that_waits_with_a_later_task_or_beside_a_done_agent_says_for_what() {
    let env = TestEnv::new();
    let limited = "echo \"You've hit your usage limit. Try again in 5 hours.\"; exit 1\n";
    let agents =
        "[[lane.agent]]\nname = \"done\"\nrunner = \"second\"\n[[lane.agent]]\nname = \"waits\"\nrunner = \"first\"\n";
    with_fallback(&env, "", &format!("fallback = []\n{agents}"), limited);
    let run = env.start(&[]);
    let is_done = || env.log_file().exists() && !env.events("agent_merged").is_empty();
    wait_until("one agent is done and the other waits", || is_done() && env.events("retry_planned").len() == 1);
    let status = || env.lanewright(&["status", "r1", "--format", "json"]).exits(0).json();
    wait_until("it is said", || status()["lanes"][0]["waiting_for"]["runner"]["account"] == "first");
    env.lanewright(&["stop"]).exits(0);
    run.wait().exits(143);
}
