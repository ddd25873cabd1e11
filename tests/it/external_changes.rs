//! Files, heads and branches that somebody changed while nothing of the run was at work (SPEC §9; seed 001).

use crate::support::{TestEnv, wait_until};

/// Two agents; the run is stopped while both are at work, each with something half done.
fn stopped() -> TestEnv {
    let env = TestEnv::new();
    let agent = |name: &str| {
        format!(
            "[[lane.agent]]\nname = \"{name}\"\ncommand = '''\n\
             cp \"$LANEWRIGHT_PROMPT_FILE\" \"$SCRATCH/prompt.{name}.$LANEWRIGHT_ATTEMPT\"\n\
             echo \"half of {name}\" > {name}.txt; echo \"last words of {name}\"; touch \"$SCRATCH/{name}\"; wait-for go\n'''\n"
        )
    };
    env.plan(&format!("[[lane]]\nid = \"L\"\nagent_worktrees = \"on\"\n{}{}", agent("a"), agent("b")));
    let run = env.start(&["--max-parallel", "2"]);
    wait_until("both agents", || env.path("scratch/a").exists() && env.path("scratch/b").exists());
    env.lanewright(&["stop", "r1"]).exits(0);
    run.wait().exits(143);
    env.write("scratch/go", "");
    env
}

fn worktree(env: &TestEnv, agent: &str) -> String {
    let opened = env.events("worktree_opened");
    let of_agent = opened.iter().find(|event| event["agent"] == agent).expect("a worktree");
    of_agent["worktree"]["path"].as_str().expect("a path").to_owned()
}

#[test]
fn an_untouched_run_resumes_without_a_warning() {
    let env = stopped();
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "a.txt") && env.holds("main", "b.txt"));
    assert!(env.events("snapshot_taken").iter().all(|taken| taken["reason"] != "external"));
    let prompt = env.scratch("prompt.a.2");
    assert!(prompt.contains("last words of a"), "{prompt}");
}

#[test]
fn changed_files_are_listed_and_nothing_is_begun() {
    let env = stopped();
    let place = worktree(&env, "a");
    std::fs::write(format!("{place}/a.txt"), "by somebody else\n").expect("a file");
    std::fs::write(format!("{place}/new.txt"), "new\n").expect("a file");
    let log = env.read("repo/.claude/ai-dev-kit/run-logs/r1.jsonl");
    let refused = env.resume(&[]).exits(5);
    refused.says(&["L a: a.txt, new.txt in ", "r1/L/a", "--on-conflict override"]);
    assert_eq!(env.read("repo/.claude/ai-dev-kit/run-logs/r1.jsonl"), log);
    assert_eq!(std::fs::read_to_string(format!("{place}/a.txt")).expect("text"), "by somebody else\n");
    std::fs::write(format!("{place}/a.txt"), "half of a\n").expect("a file");
    std::fs::remove_file(format!("{place}/new.txt")).expect("removed");
    env.resume(&[]).exits(0);
}

#[test]
fn an_override_keeps_them_first_and_goes_on_with_them() {
    let env = stopped();
    let place = worktree(&env, "a");
    std::fs::write(format!("{place}/new.txt"), "new\n").expect("a file");
    env.resume(&["--on-conflict", "override"]).exits(0);
    let taken = env.events("snapshot_taken");
    let external = taken.iter().find(|taken| taken["reason"] == "external").expect("a snapshot");
    let commit = external["commit"].as_str().expect("a commit");
    assert_eq!(env.file_at(commit, "new.txt"), "new");
    assert_eq!(env.file_at("main", "new.txt"), "new");
}

#[test]
fn a_branch_that_moved_is_a_warning() {
    let env = stopped();
    let place = worktree(&env, "b");
    env.git_at(&place, &["commit", "--quiet", "--allow-empty", "--message", "by somebody else"]);
    env.write("repo/other.txt", "other\n");
    env.commit("on main");
    env.resume(&[]).exits(0).says(&["lane-agent/P1/L/b moved from", "main moved from"]);
    assert!(env.holds("main", "other.txt") && env.holds("main", "b.txt"));
}

#[test]
fn execute_phase_resume_has_the_same_choice() {
    let env = stopped();
    std::fs::write(format!("{}/new.txt", worktree(&env, "a")), "new\n").expect("a file");
    let plan = env.path("plan.toml");
    let resume = ["execute-phase", plan.to_str().expect("UTF-8"), "--resume"];
    env.lanewright(&resume).exits(5);
    env.lanewright(&[&resume[..], &["--on-conflict", "override"]].concat()).exits(0);
}
