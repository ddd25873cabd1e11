//! Tasks that are a person's: the lane waits, others go on, and what the person says reaches the agent.

use crate::support::{TestEnv, wait_until};

/// An agent that notes each task it is given, with what it was told.
const AGENT: &str = "command = '''\n\
    echo \"$LANEWRIGHT_TASK\" >> \"$SCRATCH/began\"\n\
    cp \"$LANEWRIGHT_PROMPT_FILE\" \"$SCRATCH/prompt.$LANEWRIGHT_TASK.$LANEWRIGHT_ATTEMPT\"\n\
    echo \"$LANEWRIGHT_ATTEMPT\" > \"task-$LANEWRIGHT_TASK\"\n'''\n";

fn lane(kind: &str, more: &str) -> String {
    format!(
        "[[lane]]\nid = \"L\"\n{AGENT}{more}\
         [[lane.task]]\nid = \"make\"\nprompt = \"Make it.\"\n\
         [[lane.task]]\nid = \"ask\"\ntype = \"checkpoint:{kind}\"\nprompt = \"Which database?\"\n\
         [[lane.task]]\nid = \"use\"\nprompt = \"Use it.\"\n"
    )
}

fn waiting(kind: &str, more: &str) -> TestEnv {
    let env = TestEnv::new();
    env.plan(&format!("{}[[lane]]\nid = \"M\"\ncommand = 'echo m > m.txt'\n", lane(kind, more)));
    let ended = env.execute(&["--max-parallel", "1"]).exits(3);
    ended.says(&["Which database?", "lanewright approve r1 L --gate task:ask"]);
    assert_eq!(env.scratch("began"), "make\n", "a person's task was given to the agent");
    assert_eq!(env.files("main"), [".gitignore", "README.md", "m.txt"], "the lane took the only place");
    env
}

#[test]
fn decision_is_passed_to_agent_and_no_task_repeats() {
    for more in ["", "agent_worktrees = \"off\"\n"] {
        let env = waiting("decision", more);
        env.resume(&[]).exits(3);
        env.lanewright(&["approve", "r1", "L", "--gate", "ask", "-m", "PostgreSQL"]).exits(0);
        env.resume(&[]).exits(0);
        assert_eq!(env.scratch("began"), "make\nuse\n");
        assert!(env.scratch("prompt.use.1").contains("PostgreSQL"));
        assert!(env.holds("main", "task-make") && env.holds("main", "task-use"));
        env.assert_nothing_left(&["main"]);
    }
}

#[test]
fn rejection_repeats_the_task_and_the_question() {
    let env = waiting("human-verify", "");
    env.lanewright(&["reject", "r1", "L", "-m", "too slow"]).exits(0);
    env.resume(&[]).exits(3).says(&["--gate task:ask"]);
    assert_eq!(env.scratch("began"), "make\nmake\n");
    assert!(env.scratch("prompt.make.2").contains("too slow"));
    env.lanewright(&["approve", "r1", "L"]).exits(0);
    env.resume(&[]).exits(0);
    assert_eq!(env.scratch("began"), "make\nmake\nuse\n");
    assert_eq!(env.file_at("main", "task-make"), "2");
}

#[test]
fn a_no_to_a_first_task_blocks_the_lane_until_a_yes() {
    let env = TestEnv::new();
    env.plan(&format!(
        "[[lane]]\nid = \"L\"\n{AGENT}[[lane.task]]\nid = \"key\"\ntype = \"checkpoint:human-action\"\n\
         prompt = \"Create the key.\"\n[[lane.task]]\nid = \"use\"\nprompt = \"Use it.\"\n"
    ));
    env.execute(&[]).exits(3);
    env.lanewright(&["reject", "r1", "L", "-m", "no account"]).exits(0);
    env.resume(&[]).exits(3).says(&["no account"]);
    env.resume(&[]).exits(3).says(&["lanewright approve r1 L --gate task:key"]);
    env.lanewright(&["approve", "r1", "L"]).exits(0);
    env.resume(&[]).exits(0);
    assert_eq!(env.scratch("began"), "use\n");
}

#[test]
fn an_answer_to_a_live_run_is_acted_upon_at_once() {
    let env = TestEnv::new();
    let busy = "[[lane]]\nid = \"M\"\ncommand = 'wait-for go; echo m > m.txt'\n";
    env.plan(&format!("{}{busy}", lane("decision", "")));
    let running = env.start(&[]);
    wait_until("the first task", || env.path("scratch/began").exists());
    wait_until("the question", || !env.events("person_asked").is_empty());
    env.lanewright(&["approve", "r1", "L", "--gate", "changes"]).exits(7).says(&["task ask"]);
    env.lanewright(&["approve", "r1", "L", "-m", "SQLite"]).exits(0);
    wait_until("the merge", || !env.events("lane_merged").is_empty());
    env.write("scratch/go", "");
    running.wait().exits(0);
    assert_eq!(env.scratch("began"), "make\nuse\n");
}

#[test]
fn redone_work_needs_a_new_approval() {
    let env = TestEnv::new();
    let tests = "tests = ['grep -q 2 task-use']\n";
    env.plan(&lane("human-verify", tests).replace("echo \"$LANEWRIGHT_ATTEMPT\" > ", "echo $LANEWRIGHT_ATTEMPT > "));
    env.execute(&[]).exits(3);
    env.lanewright(&["approve", "r1", "L"]).exits(0);
    env.resume(&[]).exits(0);
    assert_eq!(env.scratch("began"), "make\nuse\nuse\n", "only what comes after the look was done again");
}

#[test]
fn verify_commands_on_decision_task_are_plan_error() {
    let env = TestEnv::new();
    env.plan(&lane("decision", "").replace("type =", "verify = [\"true\"]\ntype ="));
    env.execute(&[]).exits(2).says(&["`ask`", "would never run"]);
}
