//! A word to the agents of a lane: at the next tool call, in the next prompts, in the log.

use serde_json::Value;

use crate::support::{TestEnv, wait_until};

/// An agent with two tasks, whose attempts leave their prompts; the first one waits until it is allowed to call a tool.
const PLAN: &str = "[[lane]]\nid = \"A\"\n[[lane.agent]]\nname = \"one\"\ncommand = '''\n\
     cp \"$LANEWRIGHT_PROMPT_FILE\" \"$SCRATCH/prompt.$LANEWRIGHT_TASK\"\n\
     if [ $LANEWRIGHT_TASK = 1 ]; then\n\
     call() { echo '{\"tool_name\":\"Bash\",\"tool_input\":{}}' | \"$LANEWRIGHT\" hook post-tool-use; }\n\
     call > \"$SCRATCH/first\"\ntouch \"$SCRATCH/works\"\nwait-for told\n\
     for n in 1 2 3 4 5 6 7 8; do call >> \"$SCRATCH/second\" & done; wait\n\
     call > \"$SCRATCH/third\"\nfi\n\
     echo $LANEWRIGHT_TASK > $LANEWRIGHT_TASK.txt\n'''\n\
     [[lane.agent.task]]\nid = \"1\"\nprompt = \"first\"\n[[lane.agent.task]]\nid = \"2\"\nprompt = \"second\"\n";

#[test]
fn an_agent_at_work_is_told_at_its_next_tool_call_and_later_prompts_have_it() {
    let env = TestEnv::new();
    env.plan(PLAN);
    let arguments = ["execute-phase", "../plan.toml", "--run-id", "r1"];
    let running = env.start_with(&arguments, |command| command.env("LANEWRIGHT", env!("CARGO_BIN_EXE_lanewright")));
    wait_until("the agent works", || env.path("scratch/works").exists());
    let told = env.lanewright(&["tell", "r1", "A", "-m", "use the v2 API"]).exits(0);
    assert!(told.stdout.contains("At work: one gets it at the next tool call."), "{}", told.stdout);
    env.write("scratch/told", "");
    running.wait().exits(0);
    assert_eq!(env.scratch("first"), "");
    let answer: Value = serde_json::from_str(&env.scratch("second")).unwrap();
    assert_eq!(answer["hookSpecificOutput"]["additionalContext"], "The user says: use the v2 API");
    assert_eq!(env.scratch("third"), "", "it gets it twice");
    assert!(!env.scratch("prompt.1").contains("v2 API") && env.scratch("prompt.2").contains("use the v2 API"));
    assert_eq!(env.events("message_sent")[0]["message"], "use the v2 API");
    env.lanewright(&["tell", "r1", "A", "-m", "more"]).exits(7).says(&["no agent works in lane A any more"]);
    env.lanewright(&["tell", "r1", "A", "-m", " "]).exits(2).says(&["nothing to tell"]);
}

#[test]
fn a_run_that_rests_has_the_message_in_its_next_prompt() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\ncommand = '''\ncp \"$LANEWRIGHT_PROMPT_FILE\" \"$SCRATCH/prompt\"\n\
         grep -q 'the port is 99' \"$LANEWRIGHT_PROMPT_FILE\" && echo a > a.txt'''\n",
    );
    env.execute(&[]).exits(1);
    let told = env.lanewright(&["tell", "A", "-m", "the port is 99", "--format", "json"]).exits(0).json();
    assert_eq!(
        (&told["live"], &told["now"], &told["later"], &told["elsewhere"]),
        (&false.into(), &Value::Array(vec![]), &Value::Array(vec![]), &false.into())
    );
    env.lanewright(&["retry", "r1", "A"]).exits(0);
}

#[test]
fn an_attempt_that_is_planned_gets_the_message() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'cp \"$LANEWRIGHT_PROMPT_FILE\" \"$SCRATCH/prompt\"; echo a > a.txt'\n");
    let arguments = ["execute-phase", "../plan.toml", "--run-id", "r1"];
    env.lanewright_in(&arguments, &[("LANEWRIGHT_CRASH_POINT", "before_run_job:1")]).exits(137);
    env.lanewright(&["tell", "r1", "A", "-m", "use the v2 API"]).exits(0);
    env.resume(&[]).exits(0);
    assert!(env.scratch("prompt").contains("use the v2 API"));
    assert_eq!(env.events("job_started").len(), 1);
}

#[test]
fn jobs_of_the_run_tell_its_agents_nothing() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\ncommand = '\"$LANEWRIGHT\" tell r1 B -m x; echo $? > a.txt'\n\
         [[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\ncommand = 'echo b > b.txt'\n",
    );
    let arguments = ["execute-phase", "../plan.toml", "--run-id", "r1"];
    env.lanewright_with(&arguments, |command| command.env("LANEWRIGHT", env!("CARGO_BIN_EXE_lanewright"))).exits(0);
    assert_eq!(env.events("message_sent").len(), 0);
    assert_eq!(env.file_at("main", "a.txt"), "7");
}
