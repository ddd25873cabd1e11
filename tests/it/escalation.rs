//! What a person is told when Lanewright can do no more by itself (seed 003, Recovery Escalation Policy and Procedure 2).

use crate::support::TestEnv;

/// Three agents of one round: one passes, one fails, one runs out of time.
const THREE: &str = "[[lane]]\nid = \"L\"\nretries = 0\n\
    [[lane.agent]]\nname = \"good\"\ncommand = 'echo good >> \"$SCRATCH/began\"; echo g > g.txt'\n\
    [[lane.agent]]\nname = \"bad\"\ncommand = 'echo bad >> \"$SCRATCH/began\"; [ -e \"$SCRATCH/fixed\" ] && echo b > b.txt'\n\
    [[lane.agent]]\nname = \"slow\"\ntimeout = \"100ms\"\n\
    command = 'echo slow >> \"$SCRATCH/began\"; [ -e \"$SCRATCH/fixed\" ] || sleep 60; echo s > s.txt'\n\
    [[lane]]\nid = \"M\"\ndepends_on = [\"L\"]\ncommand = 'echo m > m.txt'\n";

#[test]
fn only_incomplete_agents_of_a_round_run_again() {
    let env = TestEnv::new();
    env.plan(THREE);
    let ended = env.execute(&[]).exits(1).says(&["1/3 complete, 1 error, 1 timeout, 0 missing"]);
    ended.says(&["lanewright status r1 L", "lanewright resume r1", "lanewright rollback r1 --lane L"]);
    let page = env.lanewright(&["status", "L"]).exits(0).stdout;
    for said in [
        "Issue: ",
        "Current State: ",
        "Recovery Attempts: ",
        "Impact: M depends on it",
        "lanewright rollback r1 --lane L",
    ] {
        assert!(page.contains(said), "{said} is not in {page}");
    }
    let kept = env.read("repo/.claude/ai-dev-kit/run-logs/r1/escalations.md");
    assert!(kept.contains("Lane L needs a decision") && !kept.contains("Lane M"), "{kept}");
    env.write("scratch/fixed", "");
    env.write("scratch/began", "");
    env.resume(&[]).exits(0).says(&["1/3 complete"]);
    let mut again: Vec<String> = env.scratch("began").lines().map(str::to_owned).collect();
    again.sort();
    assert_eq!(again, ["bad", "slow"], "only incomplete agents are invoked again");
    assert_eq!(env.files("main"), [".gitignore", "README.md", "b.txt", "g.txt", "m.txt", "s.txt"]);
    assert!(!env.path("repo/.claude/ai-dev-kit/run-logs/r1/escalations.md").exists(), "nothing is left to decide");
}

#[test]
fn failed_final_gate_names_last_merged_lanes() {
    let env = TestEnv::new();
    env.plan("[gates]\nfinal = ['exit 3']\n[[lane]]\nid = \"L\"\ncommand = 'echo l > l.txt'\n");
    let ended = env.execute(&[]).exits(3);
    ended.says(&["the final gate failed on main (exit code 3): exit 3", "lanewright rollback r1 --lane L"]);
    let kept = env.read("repo/.claude/ai-dev-kit/run-logs/r1/escalations.md");
    for said in ["The phase needs a decision", "`exit 3` exited with code 3", "merged last: L"] {
        assert!(kept.contains(said), "{said} is not in {kept}");
    }
}
