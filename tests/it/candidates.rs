//! Candidates: several agents do the same, and one of them is merged.

use serde_json::Value;

use crate::support::{TestEnv, wait_until};

/// Three candidates: what the first makes fails the tests, the third changes less than the second. Each start is counted.
const SIZES: &str = "[[lane]]\nid = \"A\"\nretries = 0\ncandidates = 3\ntests = [\"test -e a.txt\"]\ncommand = '''\n\
     echo $LANEWRIGHT_AGENT >> \"$SCRATCH/starts\"\n\
     case $LANEWRIGHT_AGENT in\nagent-1) echo no > b.txt;;\nagent-2) seq 5 > a.txt;;\nagent-3) echo one > a.txt;;\nesac'''\n";

/// Two candidates, of which the second changes less, and a person who approves.
const APPROVED: &str = "[[lane]]\nid = \"A\"\ncandidates = 2\napproval = [\"changes\"]\ncommand = '''\n\
     echo $LANEWRIGHT_AGENT >> \"$SCRATCH/starts\"\n\
     if [ $LANEWRIGHT_AGENT = agent-1 ]; then seq 5; else echo one; fi > a.txt'''\n";

fn starts(env: &TestEnv) -> Vec<String> {
    let mut starts: Vec<String> = env.scratch("starts").lines().map(str::to_owned).collect();
    starts.sort();
    starts
}

fn chosen(env: &TestEnv) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    env.events("candidate_chosen").iter().map(|event| (text(&event["agent"]), text(&event["by"]))).collect()
}

/// The ref that keeps what was changed by hand.
fn by_hand(env: &TestEnv) -> String {
    let taken = env.events("snapshot_taken");
    let kept = taken.iter().find(|event| event["reason"] == "external").expect("a snapshot");
    kept["reference"].as_str().expect("a reference").to_owned()
}

/// The refs that keep the candidates that were not chosen, with their agents.
fn kept(env: &TestEnv) -> Vec<(String, String)> {
    let is_kept = |event: &&Value| event["reason"] == "candidate";
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let taken = env.events("snapshot_taken");
    taken.iter().filter(is_kept).map(|event| (text(&event["agent"]), text(&event["reference"]))).collect()
}

#[test]
fn the_smallest_change_is_merged_and_the_others_kept() {
    let env = TestEnv::new();
    env.plan(SIZES);
    env.execute(&[]).exits(0);
    assert_eq!(starts(&env), ["agent-1", "agent-2", "agent-3"]);
    assert_eq!(chosen(&env), [("agent-3".to_owned(), "size".to_owned())]);
    assert_eq!((env.file_at("main", "a.txt"), env.holds("main", "b.txt")), ("one".to_owned(), false));
    let mut others = kept(&env);
    others.sort();
    assert_eq!(others.iter().map(|(agent, _)| agent.as_str()).collect::<Vec<_>>(), ["agent-1", "agent-2"]);
    assert_eq!(env.git(&["show", &format!("{}:b.txt", others[0].1)]).trim(), "no");
    assert!(!env.branches().contains("agent-"), "{}", env.branches());
    let diff = env.lanewright(&["diff", "A", "--candidate", "2"]).exits(0);
    assert!(diff.stdout.contains("+5"), "{}", diff.stdout);
    env.lanewright(&["diff", "A", "--candidate", "4"]).exits(2).says(&["no candidate 4"]).hints("1 to 3");
    env.lanewright(&["pick", "A", "2"]).exits(7).says(&["lane A is merged"]).hints("rollback r1 --lane A");
    let status = env.lanewright(&["status", "r1", "A"]).exits(0);
    assert!(status.stdout.contains("agent-2, agent-3 (chosen)"), "{}", status.stdout);
    for format in ["text", "md", "html"] {
        let report = env.lanewright(&["report", "--format", format]).exits(0).stdout.replace('\\', "");
        assert!(report.contains("best of"), "{report}");
        assert!(report.contains("agent-1, agent-2, agent-3 (chosen)"), "{report}");
    }
    env.lanewright(&["diff", "A", "agent-1", "--candidate", "2"]).exits(2).hints("name one of them");
    env.lanewright(&["clean", "--yes"]).exits(0);
    assert!(!env.refs().iter().any(|name| name.contains("lanewright")), "{:?}", env.refs());
}

#[test]
fn a_pick_has_the_other_candidate_merged() {
    let env = TestEnv::new();
    env.plan(APPROVED);
    env.execute(&[]).exits(3);
    assert_eq!(chosen(&env), [("agent-2".to_owned(), "size".to_owned())]);
    env.lanewright(&["pick", "A", "3"]).exits(2).says(&["no candidate 3"]);
    env.lanewright(&["pick", "A"]).exits(2).says(&["number of a candidate"]);
    let again = env.lanewright(&["pick", "A", "2"]).exits(0);
    assert!(again.stdout.contains("is chosen already"), "{}", again.stdout);
    let picked = env.lanewright(&["pick", "A", "1", "--format", "json"]).exits(0).json();
    assert_eq!((&picked["agent"], &picked["live"]), (&"agent-1".into(), &false.into()));
    let listed = || env.lanewright(&["status", "A"]).exits(0).stdout;
    assert!(listed().contains("agent-1 (picked), agent-2 (chosen)"), "{}", listed());
    let status = env.lanewright(&["status"]).exits(0).stdout;
    assert!(status.contains("agent-1 picked"), "{status}");
    assert!(!status.contains("needs approval") && !status.contains("lanewright approve"), "{status}");
    for answer in [&["approve", "A"][..], &["reject", "A", "-m", "no"]] {
        env.lanewright(answer).exits(7).says(&["another candidate of lane A is picked"]).hints("lanewright resume r1");
    }
    env.resume(&[]).exits(3);
    assert_eq!(chosen(&env)[1], ("agent-1".to_owned(), "user".to_owned()));
    let diff = env.lanewright(&["diff", "A", "--candidate", "1"]).exits(0).stdout;
    assert!(diff.contains("+5") && !diff.contains("-one"), "{diff}");
    env.lanewright(&["pick", "A", "2"]).exits(0);
    env.lanewright(&["pick", "A", "1"]).exits(0);
    assert!(listed().contains("agent-1 (chosen), agent-2\n"), "{}", listed());
    env.lanewright(&["approve", "A", "--resume"]).exits(0);
    assert_eq!(env.file_at("main", "a.txt"), "1\n2\n3\n4\n5");
    assert_eq!(starts(&env), ["agent-1", "agent-2"], "an agent was paid again");
    let agents: Vec<String> = kept(&env).into_iter().map(|(agent, _)| agent).collect();
    assert_eq!(agents, ["agent-1", "agent-2"], "the one that was chosen first is kept as well");
}

#[test]
fn a_pick_is_heard_by_the_run_that_waits() {
    let env = TestEnv::new();
    env.plan(APPROVED);
    let running = env.start(&["--wait"]);
    wait_until("a candidate is chosen", || env.log_file().exists() && chosen(&env).len() == 1);
    env.lanewright(&["pick", "A", "1"]).exits(0);
    wait_until("the other one is", || chosen(&env).len() == 2);
    wait_until("the user is asked", || env.events("changes_measured").len() == 2);
    env.lanewright(&["approve", "A"]).exits(0);
    running.wait().exits(0);
    assert_eq!(env.file_at("main", "a.txt"), "1\n2\n3\n4\n5");
}

#[test]
fn a_pick_keeps_what_was_changed_by_hand() {
    // While the run waits for the approval, and after a crash of the resume that builds the lane again.
    for crash in [false, true] {
        let env = TestEnv::new();
        env.plan(APPROVED);
        let change = || {
            let worktree = env.lanewright(&["path", "A"]).exits(0).stdout;
            std::fs::write(std::path::Path::new(worktree.trim()).join("hand.txt"), "hand").unwrap();
        };
        if crash {
            env.execute(&[]).exits(3);
            env.lanewright(&["pick", "A", "1"]).exits(0);
            env.lanewright_in(&["resume"], &[("LANEWRIGHT_CRASH_POINT", "before_reset_lane:1")]).exits(137);
            change();
            env.resume(&[]).exits(3);
        } else {
            let running = env.start(&["--wait"]);
            wait_until("the question", || env.lanewright(&["status"]).stdout.contains("needs approval"));
            change();
            env.lanewright(&["pick", "A", "1"]).exits(0);
            wait_until("the lane to be built again", || !env.events("lane_reset").is_empty());
            env.lanewright(&["stop"]).exits(0);
            running.wait().exits(143);
        }
        assert_eq!(env.git(&["show", &format!("{}:hand.txt", by_hand(&env))]), "hand", "crash: {crash}");
    }
}

#[test]
fn a_skipped_lane_has_nothing_to_pick() {
    let env = TestEnv::new();
    env.plan(APPROVED);
    env.execute(&[]).exits(3);
    env.lanewright(&["skip", "A"]).exits(0);
    env.lanewright(&["pick", "A", "1"]).exits(7).says(&["lane A is skipped"]).hints("rollback r1 --lane A");
}

#[test]
fn a_rollback_shows_the_choice_of_its_point() {
    let env = TestEnv::new();
    env.plan(APPROVED);
    env.execute(&[]).exits(3);
    env.lanewright(&["approve", "A", "--resume"]).exits(0);
    env.lanewright(&["rollback", "r1", "--lane", "A", "--to", "after_lane_tests", "--yes"]).exits(0);
    let status = env.lanewright(&["status", "r1", "A"]).exits(0).stdout;
    assert!(status.contains("agent-1, agent-2 (chosen)"), "{status}");
    env.lanewright(&["rollback", "r1", "--lane", "A", "--yes"]).exits(0);
    let status = env.lanewright(&["status", "r1", "A"]).exits(0).stdout;
    assert!(!status.contains("chosen"), "{status}");
}

/// Two candidates, of which the judge, who looks at both, names what `VERDICT` says.
fn judged(verdict: &str) -> String {
    let plan = "[[lane]]\nid = \"A\"\ncandidates = 2\n[[lane.agent]]\nname = \"maker\"\n\
         command = 'if [ $LANEWRIGHT_AGENT = maker-1 ]; then seq 5; else echo one; fi > a.txt'\n\
         [[lane.agent]]\nname = \"chooser\"\nround = \"judge\"\ncommand = '''\n\
         cp \"$LANEWRIGHT_PROMPT_FILE\" \"$SCRATCH/prompt\"\n\
         grep -o 'git diff --stat .*' \"$LANEWRIGHT_PROMPT_FILE\" | sh > \"$SCRATCH/seen\"\n\
         echo '{\"status\": \"COMPLETE\", \"decision\": VERDICT}' > \"$LANEWRIGHT_STATUS_FILE\"'''\n";
    plan.replace("VERDICT", verdict)
}

#[test]
fn the_judge_sees_the_candidates_and_its_answer_decides() {
    let env = TestEnv::new();
    env.plan(&judged("\"Candidate #1\""));
    env.execute(&[]).exits(0);
    assert_eq!(chosen(&env), [("maker-1".to_owned(), "judge".to_owned())]);
    let (prompt, seen) = (env.scratch("prompt"), env.scratch("seen"));
    assert!(prompt.contains("### Candidate 1") && prompt.contains("1 file changed, +5 -0"), "{prompt}");
    assert!(seen.contains("5 +") && seen.contains("1 +"), "{seen}");
}

#[test]
fn a_judge_that_names_no_candidate_is_reported() {
    let env = TestEnv::new();
    env.plan(&judged("\"7\""));
    env.execute(&[]).exits(0);
    assert_eq!(chosen(&env), [("maker-2".to_owned(), "size".to_owned())]);
    assert_eq!(env.file_at("main", "a.txt"), "one");
    let said = |event: &Value| event["message"].as_str().is_some_and(|text| text.contains("it named 7, which is none"));
    assert!(env.events("noted").iter().any(said));
}

#[test]
fn the_answer_of_a_judge_that_failed_does_not_count() {
    let env = TestEnv::new();
    let plan = judged("1").replace("LANEWRIGHT_STATUS_FILE\"'''", "LANEWRIGHT_STATUS_FILE\"; exit 4'''");
    env.plan(&plan.replace("candidates = 2", "candidates = 2\nretries = 0"));
    env.execute(&[]).exits(0);
    assert_eq!(chosen(&env), [("maker-2".to_owned(), "size".to_owned())]);
}

#[test]
fn diff_shows_what_a_failed_candidate_left_while_the_lane_waits() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\ncandidates = 2\napproval = [\"changes\"]\ncommand = \'\'\'\necho $LANEWRIGHT_AGENT > a.txt\n\
         case $LANEWRIGHT_AGENT in *-1) exit 1;; esac\n\'\'\'\n",
    );
    env.execute(&[]).exits(3);
    let diff = env.lanewright(&["diff", "A", "--candidate", "1"]).exits(0).stdout;
    assert!(diff.contains("+agent-1"), "{diff}");
}

#[test]
fn a_lane_fails_when_all_of_its_candidates_do() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\nretries = 0\ncandidates = 2\ncommand = 'echo > a.txt; exit 1'\n");
    env.execute(&[]).exits(1);
    assert_eq!(chosen(&env), []);
    env.lanewright(&["pick", "A", "1"]).exits(7).says(&["candidate 1 of A failed"]).hints("--candidate 1");
}

#[test]
fn a_death_at_any_step_of_the_choice_costs_no_attempt() {
    let points = ["after_commit_work:3", "after_run_job:6", "before_snapshot:4", "kept:4", "after_snapshot:4"];
    let more = ["before_release_agent:1", "after_release_agent:2", "after_merge_agent:1", "before_clean_lane:1"];
    for point in points.iter().chain(&more) {
        let env = TestEnv::new();
        env.plan(SIZES);
        let arguments = ["execute-phase", "../plan.toml", "--run-id", "r1"];
        let ended = env.lanewright_in(&arguments, &[("LANEWRIGHT_CRASH_POINT", point)]);
        assert!(ended.was_killed(), "no run comes to {point}");
        env.resume(&[]).exits(0);
        assert_eq!(starts(&env), ["agent-1", "agent-2", "agent-3"], "{point}");
        assert_eq!(env.file_at("main", "a.txt"), "one", "{point}");
        assert_eq!(chosen(&env).len(), 1, "{point}");
        for (agent, reference) in kept(&env) {
            assert!(env.try_git(&["rev-parse", "--verify", &reference]), "{point}: {agent} is not kept");
        }
        assert!(!env.branches().contains("agent-"), "{point}: {}", env.branches());
    }
}
