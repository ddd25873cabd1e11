//! Work that does not fit together (SPEC §7, merge conflict).

use crate::support::{TestEnv, wait_until};

/// Makes the file, or adds to it where it is there.
const SHARED: &str = "echo \"$LANEWRIGHT_LANE $LANEWRIGHT_AGENT\" >> shared.txt";

fn sorted_lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn later_of_two_conflicting_agents_works_again() {
    let env = TestEnv::new();
    env.plan(&format!(
        "[[lane]]\nid = \"L\"\n[[lane.agent]]\nname = \"one\"\ncommand = '{SHARED}'\n\
         [[lane.agent]]\nname = \"two\"\ncommand = '{SHARED}'\n"
    ));
    env.execute(&["--max-parallel", "2"]).exits(0);
    assert_eq!(sorted_lines(&env.file_at("main", "shared.txt")), ["L one", "L two"]);
    let conflicts = env.events("failure_noted");
    assert_eq!(conflicts.len(), 1);
    assert_eq!(conflicts[0]["failure"]["kind"], "conflict");
    assert_eq!(conflicts[0]["failure"]["paths"][0], "shared.txt");
    let later = conflicts[0]["agent"].as_str().expect("an agent");
    let first = if later == "one" { "two" } else { "one" };
    assert!(env.attempt_file("L", later, 2, "prompt.md").contains("shared.txt"));
    assert!(!env.attempt_file("L", later, 1, "prompt.md").contains("shared.txt"));
    let attempts_of_first =
        env.events("job_planned").iter().filter(|job| job["job"]["role"]["attempt"]["agent"] == first).count();
    assert_eq!(attempts_of_first, 1, "the work of the first was done again");
    env.assert_nothing_left(&["main"]);
}

#[test]
fn later_of_two_conflicting_lanes_works_again() {
    let env = TestEnv::new();
    let lane = |own: &str, other: &str| {
        format!("[[lane]]\nid = \"{own}\"\ncommand = 'touch \"$SCRATCH/{own}\" && wait-for {other} && {SHARED}'\n")
    };
    env.plan(&(lane("A", "B") + &lane("B", "A")));
    env.execute(&["--max-parallel", "2"]).exits(0);
    assert_eq!(sorted_lines(&env.file_at("main", "shared.txt")), ["A agent", "B agent"]);
    let conflicts = env.events("failure_noted");
    assert_eq!(conflicts.len(), 1);
    assert_eq!(conflicts[0]["failure"]["paths"][0], "shared.txt");
    let later = conflicts[0]["lane"].as_str().expect("a lane");
    assert!(env.attempt_file(later, "agent", 2, "failure_context.json").contains("shared.txt"));
    let prompt = env.attempt_file(later, "agent", 2, "prompt.md");
    assert!(!prompt.contains("changed in it"), "the lane is built again, without its files:\n{prompt}");
    assert!(prompt.contains("is kept in git as `refs/lanewright/checkpoint/P1-"), "{prompt}");
    env.assert_nothing_left(&["main"]);
}

#[test]
fn unresolved_conflict_fails_lane_and_keeps_branch() {
    let env = TestEnv::new();
    // It insists on what it has, whatever is there.
    let lane = |own: &str, other: &str| {
        format!(
            "[[lane]]\nid = \"{own}\"\nretries = 0\n\
             command = 'touch \"$SCRATCH/{own}\" && wait-for {other} && echo {own} > shared.txt'\n"
        )
    };
    env.plan(&(lane("A", "B") + &lane("B", "A")));
    env.execute(&["--max-parallel", "2"]).exits(1).says(&["shared.txt"]);
    let merged = env.file_at("main", "shared.txt");
    let failed = if merged == "A" { "B" } else { "A" };
    assert_eq!(env.events("lane_failed")[0]["lane"], failed);
    assert_eq!(env.file_at(&format!("lane/P1/{failed}"), "shared.txt"), failed, "the loser's work is gone");
}

/// `A` merges while `B` works, so `B` was tested without `A`.
fn overtaken(tests: &str) -> TestEnv {
    let env = TestEnv::new();
    env.plan(&format!(
        "[[lane]]\nid = \"A\"\ncommand = 'wait-for b-started && echo a > a.txt'\n\
         [[lane]]\nid = \"B\"\ntests = '{tests}'\ncommand = '''\n\
         touch \"$SCRATCH/b-started\"\n\
         while [ -d \"$SCRATCH\" ] && ! git -C $SCRATCH/../repo cat-file -e main:a.txt 2>/dev/null; do sleep 0.02; done\n\
         echo b > b.txt; [ $LANEWRIGHT_ATTEMPT = 1 ] || echo fixed > fixed.txt\n'''\n"
    ));
    env.execute(&["--max-parallel", "2"]).exits(0);
    env
}

fn merged_tests(env: &TestEnv) -> usize {
    env.events("job_exited").iter().filter(|job| job["job"]["role"] == "merged_tests").count()
}

#[test]
fn overtaken_lane_is_tested_again_after_the_merge() {
    let env = overtaken("ls >> \"$SCRATCH/tested\"");
    assert_eq!(merged_tests(&env), 1);
    let tested = env.scratch("tested");
    assert!(tested.contains("b.txt") && tested.contains("a.txt"), "{tested}");
    assert_eq!(env.events("failure_noted").len(), 0);
}

#[test]
fn failed_tests_on_merged_result_are_fixed_by_retry() {
    let env = overtaken("[ ! -e a.txt ] || [ -e fixed.txt ] || { echo they clash; exit 5; }");
    assert!(env.holds("main", "fixed.txt") && env.holds("main", "a.txt"));
    let failures = env.events("failure_noted");
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0]["failure"]["exit_code"], 5);
    let context = env.attempt_file("B", "agent", 2, "failure_context.json");
    assert!(context.contains("they clash") && context.contains("merged"), "{context}");
    assert!(!env.events("noted").iter().any(|note| note.to_string().contains("changed by hand")));
    env.assert_nothing_left(&["main"]);
}

/// Says that the reset of lane B is under way, which comes to its end once that lane was asked to stop.
const RESETTING: &str = "#!/bin/sh\nif [ -e \"$SCRATCH/worked\" ] && [ \"$(git symbolic-ref HEAD)\" = refs/heads/lane/P1/B ] \\\n\
    && [ \"$(git rev-parse HEAD)\" = \"$(git rev-parse main)\" ]; then\n\
    touch \"$SCRATCH/resetting\"; until [ -e \"$SCRATCH/stopped\" ]; do sleep 0.02; done; fi\n";

#[test]
fn unrecorded_reset_of_stopped_lane_is_no_work() {
    let env = TestEnv::new();
    let hook = env.path("repo/.git/hooks/post-checkout");
    env.write("repo/.git/hooks/post-checkout", RESETTING);
    std::fs::set_permissions(hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("permissions");
    let after_a =
        "until git -C $SCRATCH/../repo cat-file -e main:shared.txt; do sleep 0.02; done; touch \"$SCRATCH/worked\"";
    env.plan(&format!(
        "[[lane]]\nid = \"A\"\ncommand = '{SHARED}'\n[[lane]]\nid = \"B\"\ncommand = '{SHARED}; {after_a}'\n"
    ));
    let arguments = ["execute-phase", "../plan.toml", "--run-id", "r1", "--max-parallel", "2"];
    let running = env.start_with(&arguments, |command| command.env("LANEWRIGHT_CRASH_POINT", "after_reset_lane:1"));
    wait_until("lane B is reset", || env.path("scratch/resetting").exists());
    env.lanewright(&["stop", "r1", "B"]).exits(0);
    wait_until("the stop is recorded", || !env.events("stop_requested").is_empty());
    env.write("scratch/stopped", "");
    assert!(running.wait().was_killed());
    env.resume(&[]).exits(0);
    assert_eq!(sorted_lines(&env.file_at("main", "shared.txt")), ["A agent", "B agent"]);
    assert!(env.events("branch_moved").is_empty(), "nobody else moved the branch");
}
