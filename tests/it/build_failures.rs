//! Gates that fail after agents were merged: who fixes what (SPEC §8; seed 003, Recovery Procedure 3).

use crate::support::TestEnv;

/// Two agents, each with a file, and a third called `test`; the gate prints what `$SCRATCH/gate` holds until it is fixed.
fn plan(gate: &str) -> String {
    let agent = |name: &str, before: &str, file: &str| {
        let wait = if before.is_empty() { String::new() } else { format!("wait-for-merge {before}; ") };
        format!(
            "[[lane.agent]]\nname = \"{name}\"\ncommand = '''\n\
             {wait}echo {name} >> \"$SCRATCH/began\"; cp \"$LANEWRIGHT_PROMPT_FILE\" \"$SCRATCH/prompt.{name}.$LANEWRIGHT_ATTEMPT\"\n\
             if [ $LANEWRIGHT_ATTEMPT -gt 1 ]; then echo fixed > fixed; fi\n\
             mkdir -p src; echo $LANEWRIGHT_ATTEMPT > src/{file}\n'''\n"
        )
    };
    let agents =
        [agent("first", "", "first.c"), agent("test", "first", "test.c"), agent("last", "test", "last.c")].concat();
    format!("{gate}[[lane]]\nid = \"L\"\nagent_worktrees = \"on\"\nMORE{agents}")
}

/// A lane whose own tests print that, until an agent was told to fix it.
fn tests_print(output: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("scratch/output", output);
    let tests = "tests = ['[ -e fixed ] || { cat \"$SCRATCH/output\"; exit 1; }']\n";
    env.plan(&plan("").replace("MORE", tests));
    env
}

fn who_fixed(env: &TestEnv) -> String {
    let began = env.scratch("began");
    let fixed: Vec<&str> = began.lines().skip(3).collect();
    fixed.join(" ")
}

#[test]
fn compile_error_retries_last_agent_of_failing_file() {
    let env = tests_print("src/first.c:3:5: error: 'x' undeclared (first use in this function)\n");
    env.execute(&["--max-parallel", "1"]).exits(0);
    assert_eq!(who_fixed(&env), "first");
    let prompt = env.scratch("prompt.first.2");
    assert!(prompt.contains("src/first.c:3:5: 'x' undeclared"), "{prompt}");
    let failure = &env.events("failure_noted")[0]["failure"];
    assert_eq!(failure["diagnosis"]["class"], "compilation");
    assert_eq!(failure["diagnosis"]["findings"][0]["line"], 3);
    assert!(failure["message"].as_str().expect("text").contains("(merged: first, test, last)"), "{failure}");
}

#[test]
fn failed_tests_without_output_go_to_the_test_agent() {
    for output in ["FAILED tests/test_a.py::test_b - assert 1 == 2\n=== 1 failed in 0.01s ===\n", "hm\n"] {
        let env = tests_print(output);
        env.execute(&["--max-parallel", "1"]).exits(0);
        assert_eq!(who_fixed(&env), "test", "{output}");
    }
}

#[test]
fn a_few_violations_of_style_are_fixed_by_who_came_last() {
    let env = tests_print("src/last.py:1:1: F401 [*] `os` imported but unused\nFound 1 error.\n");
    env.execute(&["--max-parallel", "1"]).exits(0);
    assert_eq!(who_fixed(&env), "last");
}

#[test]
fn unknown_failure_is_retried_once_then_escalated() {
    let env = TestEnv::new();
    let gate = "[gates]\ncheckpoint = ['echo >> $SCRATCH/gate; echo gibberish; exit 9']\n";
    env.plan(&plan(gate).replace("MORE", "retries = 5\n"));
    let ended = env.execute(&["--max-parallel", "1"]).exits(1);
    ended.says(&["  gibberish\n  lanewright status r1 L\n"]);
    let page = env.lanewright(&["status", "r1", "L"]).exits(0).stdout;
    for said in ["| gibberish", "output.log", "Lane L needs a decision.", "Options:"] {
        assert!(page.contains(said), "{said} is not in {page}");
    }
    // Who comes in while the first one fixes it changes nothing about that one try.
    let mut began: Vec<String> = env.scratch("began").lines().map(str::to_owned).collect();
    began.sort_unstable();
    assert_eq!(began, ["first", "first", "last", "test"], "one try, though there are five retries");
}

#[test]
fn gate_fixed_by_another_agent_is_judged_again() {
    let env = TestEnv::new();
    // What the first agent brought does not compile once the last one's file is there.
    let gate = "[gates]\ncheckpoint = ['''\n\
        [ -e fixed ] || [ ! -e src/last.c ] || { echo \"src/first.c:1:1: error: conflicting types\"; exit 1; }\n''']\n";
    env.plan(&plan(gate).replace("MORE", ""));
    env.execute(&["--max-parallel", "1"]).exits(0);
    assert_eq!(env.scratch("began"), "first\ntest\nlast\nfirst\n");
    assert!(env.holds("main", "fixed") && env.holds("main", "src/last.c"));
    env.assert_nothing_left(&["main"]);
}

/// Four agents, the third of which breaks what the tests look at; a line is noted for every run of the tests.
fn broken_by_the_third(more: &str) -> TestEnv {
    let env = TestEnv::new();
    let agent = |number: u32| {
        format!(
            "[[lane.agent]]\nname = \"a{number}\"\ncommand = '''\n\
             [ {number} = 1 ] || wait-for-merge a{before}; echo a{number} >> \"$SCRATCH/began\"\n\
             if [ $LANEWRIGHT_ATTEMPT -gt 1 ]; then rm -f broken; else [ {number} != 3 ] || echo x > broken; fi\n\
             echo $LANEWRIGHT_ATTEMPT > f{number}\n'''\n",
            before = number - 1
        )
    };
    let agents: String = (1..=4).map(agent).collect();
    let tests = "tests = 'git rev-parse HEAD >> \"$SCRATCH/tested\"; [ ! -e broken ] || { echo hm; exit 1; }'\n";
    env.plan(&format!("[[lane]]\nid = \"L\"\n{more}{tests}{agents}"));
    env
}

#[test]
fn bisected_merge_is_fixed_by_its_agent() {
    let env = broken_by_the_third("");
    let ended = env.execute(&["--bisect-merges", "--max-parallel", "1"]).exits(0);
    ended.says(&["L: tests: first failing with the merge of a3"]);
    assert_eq!(env.scratch("began"), "a1\na2\na3\na4\na3\n");
    env.assert_nothing_left(&["main"]);
}

#[test]
fn killed_bisect_resumes_without_repeating_steps() {
    for point in ["before_bisect_merges:1", "after_bisect_merges:1"] {
        let env = broken_by_the_third("");
        let plan = env.path("plan.toml");
        let start =
            ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id=r1", "--bisect-merges", "--max-parallel=1"];
        env.lanewright_with(&start, |command| command.env("LANEWRIGHT_CRASH_POINT", point));
        env.resume(&[]).exits(0);
        assert_eq!(env.scratch("began"), "a1\na2\na3\na4\na3\n");
        // The lane, which the resume tests again; its base, once; two of its merges; the lane once it is fixed.
        let tested = env.scratch("tested");
        let (first, base) = (tested.lines().next().expect("a test"), env.git(&["rev-parse", "main^1"]));
        assert_eq!(tested.lines().filter(|commit| *commit == base).count(), 1, "{point}: {tested}");
        let mut commits: Vec<&str> = tested.lines().filter(|commit| ![first, &base].contains(commit)).collect();
        assert_eq!(commits.len(), 3, "{point}: {tested}");
        commits.sort_unstable();
        let all = commits.len();
        commits.dedup();
        assert_eq!(commits.len(), all, "{point}: {tested}");
    }
}

#[test]
fn the_lane_that_broke_the_final_gate_is_named() {
    let env = TestEnv::new();
    let lane = |id: &str, after: &str| {
        format!("[[lane]]\nid = \"{id}\"\ndepends_on = [{after}]\ncommand = 'echo {id} > {id}.txt'\n")
    };
    let lanes = [lane("A", ""), lane("B", "\"A\""), lane("C", "\"B\"")].concat();
    env.plan(&format!("[gates]\nfinal = '[ ! -e B.txt ]'\n{lanes}"));
    let ended = env.execute(&["--bisect-merges"]).exits(3);
    ended.says(&["final gate: first failing with the merge of B", "lanewright rollback r1 --lane B"]);
    let env = TestEnv::new();
    env.plan(&format!("[gates]\nfinal = 'exit 1'\n{lanes}"));
    env.execute(&["--bisect-merges"]).exits(3).says(&["final gate: no merge is to blame"]);
}
