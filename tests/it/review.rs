//! The rounds before and after the implementation.

use crate::support::{RUN, STATE, TestEnv};

fn lane(command: &str, reviewer: &str, retries: u32) -> String {
    format!(
        "[[lane]]\nid = \"L\"\nretries = {retries}\n[[lane.agent]]\nname = \"engineer\"\ncommand = '''\n{command}\n'''\n\
         [[lane.agent]]\nname = \"critic\"\nround = \"review\"\ncommand = '''\n{reviewer}\n'''\n"
    )
}

const WORKS: &str = "echo \"draft $LANEWRIGHT_ATTEMPT\" > work.txt";

#[test]
fn rejected_work_returns_with_feedback_until_approved() {
    let env = TestEnv::new();
    let reviewer = r#"
cat work.txt >> "$SCRATCH/reviewed"
if grep -q "draft 1" work.txt; then decision=REJECTED; else decision=APPROVED; fi
printf '{"status": "COMPLETE", "decision": "%s", "feedback": "name the columns"}' $decision > "$LANEWRIGHT_STATUS_FILE""#;
    env.plan(&lane(WORKS, reviewer, 3));
    env.execute(&[]).exits(0);
    assert_eq!(env.scratch("reviewed"), "draft 1\ndraft 2\n");
    assert_eq!(env.file_at("main", "work.txt"), "draft 2");
    let prompt = env.attempt_file("L", "engineer", 2, "prompt.md");
    assert!(prompt.contains("name the columns") && prompt.contains("critic"), "{prompt}");
    env.assert_nothing_left(&["main"]);
}

#[test]
fn reviewer_reads_the_earlier_rejection() {
    let env = TestEnv::new();
    let reviewer = r#"
if [ $LANEWRIGHT_ATTEMPT = 1 ]; then decision=REJECTED; else decision=APPROVED; fi
printf '{"status": "COMPLETE", "decision": "%s", "feedback": "name the columns"}' $decision > "$LANEWRIGHT_STATUS_FILE""#;
    env.plan(&lane(WORKS, reviewer, 3).replace("retries", "approval = [\"changes\"]\nretries"));
    env.execute(&[]).exits(3);
    env.lanewright(&["reject", "r1", "L", "-m", "too long"]).exits(0);
    env.resume(&[]).exits(3);
    let directory = format!("repo/{STATE}/{RUN}/lanes/L/agents/critic/tasks/review");
    let prompts = [1, 2, 3].map(|attempt| env.read(&format!("{directory}/attempt-{attempt}/prompt.md")));
    assert!(!prompts[0].contains("attempt"), "{}", prompts[0]);
    let told = "## This is attempt 3\n\nThe work was sent back, or its review failed, for these reasons. Judge whether the \
                work settles them.\n\n\
                - Attempt 1: critic rejected the work: name the columns\n\
                - Attempt 2: a person rejected the changes: too long\n";
    assert!(prompts[2].ends_with(told), "{}", prompts[2]);
    assert!(prompts[1].contains("name the columns") && !prompts[1].contains("interrupted"), "{}", prompts[1]);
    let engineer = env.attempt_file("L", "engineer", 3, "prompt.md");
    assert!(engineer.contains("a person rejected the changes: too long"), "{engineer}");
}

#[test]
fn work_that_is_rejected_for_ever_fails_the_lane() {
    let env = TestEnv::new();
    let reviewer =
        r#"printf '{"status": "COMPLETE", "decision": "REJECTED", "feedback": "never"}' > "$LANEWRIGHT_STATUS_FILE""#;
    env.plan(&lane(WORKS, reviewer, 1));
    env.execute(&[]).exits(1).says(&["never"]);
    let attempts =
        env.events("job_exited").iter().filter(|job| job["job"]["role"]["attempt"]["agent"] == "engineer").count();
    assert_eq!(attempts, 2);
    assert!(!env.holds("main", "work.txt"));
}

fn undecided(reviewer: &str) {
    let env = TestEnv::new();
    env.plan(&lane(WORKS, reviewer, 0));
    env.execute(&[]).exits(1).says(&["decision"]);
    assert!(!env.holds("main", "work.txt"));
}

#[test]
fn a_reviewer_that_says_nothing_approves_nothing() {
    undecided("true");
}

#[test]
fn review_without_a_decision_is_no_approval() {
    undecided(r#"printf '{"status": "COMPLETE"}' > "$LANEWRIGHT_STATUS_FILE""#);
}

#[test]
fn reviewer_sees_merged_work_and_cannot_change_it() {
    let env = TestEnv::new();
    let reviewer = r#"echo graffiti > graffiti.txt; rm work.txt
printf '{"status": "COMPLETE", "decision": "APPROVED"}' > "$LANEWRIGHT_STATUS_FILE""#;
    env.plan(&lane(WORKS, reviewer, 0));
    env.execute(&[]).exits(0);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "work.txt"]);
    let kept = env.refs().into_iter().find(|name| name.starts_with("refs/lanewright/")).expect("a snapshot of it");
    assert!(env.holds(&kept, "graffiti.txt"), "it is neither merged nor kept");
}

#[test]
fn files_of_unfinished_review_are_removed_with_the_lane() {
    let env = TestEnv::new();
    let reviewer = r#"[ $LANEWRIGHT_ATTEMPT = 1 ] && { echo notes > notes.txt; exit 1; }
printf '{"status": "COMPLETE", "decision": "APPROVED"}' > "$LANEWRIGHT_STATUS_FILE""#;
    env.plan(&lane(WORKS, reviewer, 1));
    env.execute(&[]).exits(0);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "work.txt"]);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn changes_of_an_approving_reviewer_are_saved_each_time() {
    let env = TestEnv::new();
    let reviewer = r#"echo notes > notes.txt; [ $LANEWRIGHT_ATTEMPT = 1 ] && exit 1
printf '{"status": "COMPLETE", "decision": "APPROVED"}' > "$LANEWRIGHT_STATUS_FILE""#;
    env.plan(&lane(WORKS, reviewer, 1));
    env.execute(&[]).exits(0);
    let kept = env.refs().into_iter().find(|name| name.starts_with("refs/lanewright/")).expect("a snapshot of it");
    assert!(env.holds(&kept, "notes.txt"));
}

#[test]
fn requirements_report_reaches_the_implementation() {
    let env = TestEnv::new();
    env.plan(
        r#"
[[lane]]
id = "L"
[[lane.agent]]
name = "analyst"
round = "requirements"
command = 'echo "The ledger has two sides." > "$LANEWRIGHT_REPORT_FILE"'
[[lane.agent]]
name = "historian"
round = "requirements"
command = 'echo "It was tried before."'
[[lane.agent]]
name = "engineer"
command = 'cp "$LANEWRIGHT_PROMPT_FILE" "$SCRATCH/prompt"; echo x > x.txt'
"#,
    );
    env.execute(&[]).exits(0);
    let prompt = env.scratch("prompt");
    for text in ["analyst", "The ledger has two sides.", "historian", "It was tried before."] {
        assert!(prompt.contains(text), "{prompt}");
    }
}
