//! Lanes that depend on each other.

use crate::support::TestEnv;

/// Commits what it does, as agents do that know git.
const COMMITS: &str = "echo $LANEWRIGHT_LANE > $LANEWRIGHT_LANE.txt && git add --all && git commit --quiet -m work";

/// Leaves what it does in the worktree.
const LEAVES: &str = "echo $LANEWRIGHT_LANE > $LANEWRIGHT_LANE.txt";

/// `b1` depends on `a1` to `a4` and fails unless it sees what all four did.
fn diamond(command: &str) -> String {
    let lane = |number: u32| format!("[[lane]]\nid = \"a{number}\"\ncommand = '{command}'\n");
    let leaves: String = (1..=4).map(lane).collect();
    format!(
        "{leaves}[[lane]]\nid = \"b1\"\ndepends_on = [\"a1\", \"a2\", \"a3\", \"a4\"]\nretries = 0\n\
         command = 'cat a1.txt a2.txt a3.txt a4.txt > b1.txt'\n"
    )
}

fn rounds() -> u32 {
    std::env::var("LANEWRIGHT_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(3)
}

fn a_dependant_sees_what_all_its_dependencies_merged(command: &str) {
    for _ in 0..rounds() {
        let env = TestEnv::new();
        env.plan(&diamond(command));
        env.execute(&["--max-parallel", "4"]).exits(0);
        assert_eq!(env.events("lane_merged").len(), 5);
        assert_eq!(env.file_at("main", "b1.txt"), "a1\na2\na3\na4");
        assert_eq!(env.git(&["status", "--porcelain"]), "", "the clean checkout was brought along");
        assert_eq!(env.read("repo/b1.txt"), "a1\na2\na3\na4\n");
        env.assert_nothing_left(&["main"]);
    }
}

#[test]
fn a_dependant_sees_what_its_dependencies_committed() {
    a_dependant_sees_what_all_its_dependencies_merged(COMMITS);
}

#[test]
fn dependant_sees_uncommitted_work_of_dependencies() {
    a_dependant_sees_what_all_its_dependencies_merged(LEAVES);
}

#[test]
fn failed_lane_blocks_only_its_dependants() {
    let env = TestEnv::new();
    env.plan(&diamond(&format!("[ $LANEWRIGHT_LANE != a2 ] && {LEAVES}")));
    env.execute(&["--max-parallel", "4", "--retries", "1"]).exits(1);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "a1.txt", "a3.txt", "a4.txt"]);
    let failed: Vec<_> = env.events("lane_failed").into_iter().map(|event| event["lane"].clone()).collect();
    assert_eq!(failed, ["a2"]);
    let blocked = env.events("lane_blocked");
    assert_eq!(blocked.len(), 1);
    assert_eq!(blocked[0]["lane"], "b1");
    assert_eq!(env.events("job_planned").iter().filter(|event| event["lane"] == "b1").count(), 0, "b1 began");
}

#[test]
fn many_parallel_lanes_leave_no_files_behind() {
    let env = TestEnv::with_user_elsewhere();
    let lane = |number: u32| {
        let agent = |name: &str, work: &str| format!("[[lane.agent]]\nname = \"{name}\"\ncommand = '{work}'\n");
        let committed = "echo 1 > $LANEWRIGHT_LANE.one && git add --all && git commit --quiet -m one";
        let left = "echo 2 > $LANEWRIGHT_LANE.two";
        format!("[[lane]]\nid = \"L{number}\"\nretries = 0\n{}{}", agent("one", committed), agent("two", left))
    };
    env.plan(&(1..=24).map(lane).collect::<String>());
    let before = env.users_checkout();
    env.execute(&["--base", "main", "--max-parallel", "48"]).exits(0);
    assert_eq!(env.users_checkout(), before);
    assert_eq!(env.events("failure_noted"), [] as [serde_json::Value; 0]);
    assert_eq!(env.files("main").len(), 2 + 48);
    env.assert_nothing_left(&["desk", "main"]);
}
