//! `plan new`: a plan to start from.

use crate::support::TestEnv;

#[test]
fn the_plan_is_valid_and_says_what_the_flags_say() {
    let env = TestEnv::new();
    let lanes = ["--lane", "Ledger schema", "--lane", "SL-API", "--phase", "P7"];
    let flags = ["--runner", "codex", "--test", "make \"test\""];
    env.lanekeeper(&[&["plan", "new", "new.toml"], lanes.as_slice(), &flags].concat()).exits(0);
    let shown = env.lanekeeper(&["plan", "show", "new.toml", "--format", "json"]).exits(0).json();
    assert_eq!(shown["phase"], "P7");
    let ids: Vec<_> = shown["lanes"].as_array().expect("lanes").iter().map(|it| it["lane"]["id"].clone()).collect();
    assert_eq!(ids, ["ledger-schema", "SL-API"]);
    let lane = &shown["lanes"][0]["lane"];
    assert_eq!((&lane["name"], &lane["tests"][0]), (&"Ledger schema".into(), &"make \"test\"".into()));
    assert_eq!(lane["agents"][0]["runner"], "codex");
    // What is commented out is right, too.
    let all = env.read("repo/new.toml").replace("# depends_on", "depends_on").replace("# [gates]", "[gates]");
    let all =
        all.replace("# final", "final").replace("# merge", "merge").replace("# max_", "max_").replace("# owns", "owns");
    env.write("repo/all.toml", all.replace("# approval", "approval"));
    env.lanekeeper(&["plan", "check", "all.toml"]).exits(0);
}

#[test]
fn without_a_terminal_nothing_is_asked_and_nothing_replaced() {
    let env = TestEnv::new();
    let told = env.lanekeeper(&["plan", "new"]).exits(0);
    assert!(told.stdout.contains("lanekeeper run plan.toml"), "{}", told.stdout);
    env.lanekeeper(&["plan", "check", "plan.toml"]).exits(0);
    let before = env.read("repo/plan.toml");
    env.lanekeeper(&["plan", "new", "--phase", "P2"]).exits(2).says(&["exists already"]).hints("--force");
    assert_eq!(env.read("repo/plan.toml"), before);
    env.lanekeeper(&["plan", "new", "--phase", "P2", "--force"]).exits(0);
    assert!(env.read("repo/plan.toml").contains("phase = \"P2\""));
}

#[test]
fn what_makes_no_plan_is_refused_and_writes_nothing() {
    let env = TestEnv::new();
    env.lanekeeper(&["plan", "new", "--lane", "a b", "--lane", "A-B"]).exits(0);
    env.lanekeeper(&["plan", "new", "x.toml", "--lane", "a b", "--lane", "a  b"]).exits(2).says(&["the id `a-b`"]);
    env.lanekeeper(&["plan", "new", "x.toml", "--lane", "?"]).exits(2).says(&["no id"]);
    env.lanekeeper(&["plan", "new", "x.toml", "--runner", "claud"]).exits(2).says(&["there is no runner `claud`"]);
    assert!(!env.path("repo/x.toml").exists());
}
