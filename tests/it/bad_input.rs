//! Plans and places that cannot be used: each message names the place and the remedy, and nothing is made.

use crate::support::{Ended, TestEnv};

const LANE: &str = "[[lane]]\nid = \"A\"\ncommand = 'touch \"$SCRATCH/began\"'\n";

#[track_caller]
fn assert_untouched(env: &TestEnv) {
    for made in ["repo/.claude", "repo.lanes", "scratch/began"] {
        assert!(!env.path(made).exists(), "{made} was made");
    }
}

/// Runs a plan that must be refused.
#[track_caller]
fn refused(plan: &str) -> Ended {
    let env = TestEnv::new();
    env.plan(plan);
    let (checkout, refs) = (env.users_checkout(), env.refs());
    let ended = env.execute(&[]).exits(2);
    assert_eq!((env.users_checkout(), env.refs()), (checkout, refs));
    assert_untouched(&env);
    ended
}

#[test]
fn a_cycle_is_named() {
    let lane = |id: &str, on: &str| format!("[[lane]]\nid = \"{id}\"\ndepends_on = [\"{on}\"]\ncommand = 'true'\n");
    refused(&(lane("A", "C") + &lane("B", "A") + &lane("C", "B"))).says(&["plan.toml:", "A -> C -> B -> A"]);
    refused(&lane("A", "A")).says(&["plan.toml:", "A"]);
}

#[test]
fn unknown_reference_is_named_with_a_suggestion() {
    refused(&format!("{LANE}[[lane]]\nid = \"B\"\ndepends_on = [\"a\"]\ncommand = 'true'\n")).says(&[
        "plan.toml:7:",
        "`a`",
        "did you mean `A`?",
    ]);
}

#[test]
fn ids_that_could_leave_their_place_are_refused() {
    let long = "x".repeat(65);
    for id in ["../x", "-x", &long, "a/b", "", "a b", "..", "a..b", ".git", "é"] {
        refused(&format!("[[lane]]\nid = \"{id}\"\ncommand = 'true'\n")).says(&["plan.toml:3:"]);
    }
    for flag in ["../x", "-x", &long] {
        let env = TestEnv::new();
        env.plan(LANE);
        env.execute(&[&format!("--run-id={flag}")]).exits(2).says(&["--run-id"]);
        assert_untouched(&env);
    }
}

#[test]
fn all_faults_are_reported_at_once() {
    refused("[[lane]]\nid = \"A\"\ndepends_on = [\"Q\"]\ntimeout = \"soon\"\n[[lane]]\nid = \"A\"\nretries = -1\ncommand = ''\n")
        .says(&["plan.toml:4:", "plan.toml:5:", "plan.toml:7:", "plan.toml:8:"]);
}

#[test]
fn a_plan_with_nothing_in_it_is_refused() {
    refused("").says(&["plan.toml", "lane"]);
    let env = TestEnv::new();
    env.write("plan.toml", "");
    env.execute(&[]).exits(2).says(&["plan.toml"]);
    assert_untouched(&env);
}

#[test]
fn a_plan_that_cannot_be_read_is_named() {
    let env = TestEnv::new();
    std::fs::create_dir(env.path("plan.toml")).expect("a directory");
    env.execute(&[]).exits(2).says(&["plan.toml", "directory"]);
    std::fs::remove_dir(env.path("plan.toml")).expect("a directory");
    env.execute(&[]).exits(2).says(&["plan.toml"]);
    env.write("plan.toml", [0xff, 0xfe, 0x00, 0x80]);
    env.execute(&[]).exits(2).says(&["plan.toml"]);
    assert_untouched(&env);
}

/// Runs a good plan at a place where it cannot be run.
#[track_caller]
fn nowhere(env: &TestEnv, flags: &[&str], code: i32) -> Ended {
    env.plan(LANE);
    let ended = env.execute(flags).exits(code);
    assert_untouched(env);
    ended
}

#[test]
fn no_repository() {
    let env = TestEnv::without_repository();
    nowhere(&env, &[], 2).says(&["repo", "git init"]);
    assert_eq!(std::fs::read_dir(env.path("repo")).expect("a listing").count(), 0);
}

#[test]
fn a_bare_repository() {
    let env = TestEnv::without_repository();
    env.git(&["init", "--quiet", "--bare"]);
    nowhere(&env, &[], 2).says(&["repo", "clone"]);
}

#[test]
fn a_repository_without_a_commit() {
    let env = TestEnv::without_repository();
    env.git(&["init", "--quiet"]);
    let ended = nowhere(&env, &[], 2);
    assert!(ended.stderr.contains("commit") && ended.stderr.contains("--allow-empty"), "{}", ended.stderr);
}

#[test]
fn a_head_whose_commit_cannot_be_read_is_damage() {
    let env = TestEnv::new();
    env.git(&["gc", "--quiet", "--prune=now"]);
    let packs = std::fs::read_dir(env.path("repo/.git/objects/pack")).expect("a directory");
    let pack = packs.flatten().map(|entry| entry.path()).find(|path| path.extension().is_some_and(|it| it == "pack"));
    let pack = pack.expect("a pack");
    std::fs::remove_file(&pack).expect("removed");
    std::fs::write(&pack, "").expect("a file");
    let ended = nowhere(&env, &[], 3).says(&["which git cannot read"]);
    assert!(!ended.stderr.contains("no commit yet"), "{}", ended.stderr);
    ended.hints("`git fsck` lists what is damaged");
}

#[test]
fn a_detached_head_needs_a_base() {
    let env = TestEnv::new();
    env.git(&["switch", "--quiet", "--detach"]);
    nowhere(&env, &[], 2).says(&["detached"]).hints("--base");
    env.plan(&format!("{LANE}allow_empty = true\n"));
    env.execute(&["--base", "main"]).exits(0);
}

#[test]
fn a_base_that_is_no_branch() {
    let env = TestEnv::new();
    nowhere(&env, &["--base", "nowhere"], 2).says(&["nowhere"]).hints("--base");
    nowhere(&env, &["--base=-x"], 2);
}

#[test]
fn a_worktree_root_where_nothing_can_be_made() {
    let env = TestEnv::new();
    env.write("file", "in the way\n");
    nowhere(&env, &["--worktree-root", "../file/lanes"], 3).says(&["file/lanes"]).hints("--worktree-root");
    assert_eq!(env.read("file"), "in the way\n");
}

#[test]
fn settings_under_the_former_name_are_refused() {
    let env = TestEnv::new();
    // In two parts, so that a search for the former name finds only where it has a meaning.
    let former = concat!("lane", "keeper.toml");
    env.plan(LANE);
    env.write(&format!("repo/{former}"), "merge = \"none\"\n");
    env.execute(&[]).exits(2).says(&[former, "rename it to lanewright.toml"]);
    assert_untouched(&env);
}

#[test]
fn settings_that_cannot_be_understood() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "retries = \"many\"\nmax_paralel = 3\n");
    nowhere(&env, &[], 2).says(&["lanewright.toml", "retries"]);
}

#[test]
fn used_run_id_is_refused_despite_other_log_path() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'echo x > x.txt'\n");
    env.execute(&["--log-path=../one.jsonl"]).exits(0);
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'echo y > y.txt'\n");
    env.execute(&["--log-path=../two.jsonl"]).exits(2).says(&["there was a run r1 already"]).hints("--run-id");
    assert!(!env.path("two.jsonl").exists());
    env.execute(&["--run-id=r2"]).exits(0);
    assert!(env.holds("main", "y.txt"));
}

#[test]
fn findings_come_in_the_order_of_the_lines() {
    let env = TestEnv::new();
    let lane = |id: &str, key: &str| format!("[[lane]]\nid = \"{id}\"\n{key}\ncommand = 'true'\n");
    env.plan(&format!("{}{}", lane("A", "effort = \"high\""), lane("B", "tests = [\"ls || true\"]")));
    let plan = env.path("plan.toml");
    let told = env.lanewright(&["plan", "check", plan.to_str().expect("UTF-8")]).exits(0).stderr;
    let place = |place: &str| told.find(&format!("plan.toml:{place}: warning"));
    assert!(place("4").is_some() && place("4") < place("8:11"), "{told}");
}
