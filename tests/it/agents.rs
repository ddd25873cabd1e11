//! What agents do wrong, and what they say of themselves.

use crate::support::{RUN, TestEnv};

/// Runs a lane with one retry whose first attempt does `mistake`, which must fail with `complaint`, and whose second
/// does `fix`.
fn mistaken(mistake: &str, complaint: &str, fix: &str) -> TestEnv {
    let env = TestEnv::new();
    env.plan(&format!(
        "[[lane]]\nid = \"L\"\nowns = [\"src/**\"]\nretries = 1\ncommand = '''\n\
         if [ $LANEWRIGHT_ATTEMPT = 1 ]; then {mistake}\nelse {fix}\nfi\n'''\n"
    ));
    env.execute(&[]).exits(0);
    let failures = env.events("failure_noted");
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0]["failure"].to_string().contains(complaint), "{}", failures[0]["failure"]);
    assert!(env.attempt_file("L", "agent", 2, "prompt.md").contains(complaint), "the retry was not told");
    assert!(env.holds("main", "src/a.txt"));
    env.assert_nothing_left(&["main"]);
    env
}

const GOOD: &str = "mkdir -p src; echo a > src/a.txt";

#[test]
fn files_that_the_lane_does_not_own_fail_the_attempt() {
    let env = mistaken(&format!("{GOOD}; echo x > outside.txt"), "outside.txt", GOOD);
    assert!(!env.holds("main", "outside.txt"));
}

#[test]
fn commit_outside_owns_fails_the_attempt() {
    let commits = format!("{GOOD}; echo x > outside.txt; git add --all; git commit --quiet -m mine");
    let env = mistaken(&commits, "outside.txt", GOOD);
    assert!(!env.holds("main", "outside.txt"));
}

#[test]
fn deleting_file_outside_owns_fails_attempt() {
    let env = mistaken(&format!("{GOOD}; rm README.md"), "README.md", GOOD);
    assert!(env.holds("main", "README.md"));
}

#[test]
fn a_nested_repository_fails_the_attempt() {
    let nests = format!("{GOOD}; git init --quiet src/inner; git -C src/inner commit --quiet --allow-empty -m x");
    let env = mistaken(&nests, "src/inner", &format!("rm -rf src/inner; {GOOD}"));
    assert!(!env.files("main").iter().any(|file| file.contains("inner")));
}

#[test]
fn committing_a_nested_repository_fails_the_attempt() {
    let nests = format!(
        "{GOOD}; git init --quiet src/inner; git -C src/inner commit --quiet --allow-empty -m x; \
         git add --all 2>/dev/null; git commit --quiet -m nested"
    );
    let env = mistaken(&nests, "src/inner", &format!("rm -rf src/inner; {GOOD}"));
    assert!(!env.files("main").iter().any(|file| file.contains("inner")));
}

#[test]
fn a_merge_left_in_progress_fails_the_attempt() {
    let merges = "mkdir -p src; git switch --quiet --create side; echo side > src/a.txt; git add --all; git commit --quiet -m side; \
         git switch --quiet -; mkdir -p src; echo own > src/a.txt; git add --all; git commit --quiet -m own; git merge side; true";
    mistaken(merges, "merge", "git merge --abort 2>/dev/null; git branch -D side").holds("main", "src/a.txt");
}

#[test]
fn switching_to_orphan_branch_fails_attempt() {
    let strays = "git switch --quiet --orphan elsewhere; mkdir -p src; echo b > src/b.txt; git add --all; git commit --quiet -m b";
    let env = mistaken(
        strays,
        "does not continue its branch",
        &format!("git switch --quiet \"lane/P1/L\"; git branch -D elsewhere; {GOOD}"),
    );
    assert!(env.holds("main", "README.md"));
}

/// Runs a lane with an agent that ends somewhere else than on its branch, with work that continues it.
fn wanders(command: &str) {
    let env = TestEnv::new();
    env.plan(&format!("[[lane]]\nid = \"L\"\nretries = 0\ncommand = '{command}'\n"));
    env.execute(&[]).exits(0);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "committed.txt", "left.txt"]);
}

const COMMITS_AND_LEAVES: &str = "echo x > committed.txt; git add --all; git commit --quiet -m mine; echo y > left.txt";

#[test]
fn work_on_a_branch_of_the_agents_own_is_taken_in() {
    wanders(&format!("git switch --quiet --create my-idea; {COMMITS_AND_LEAVES}"));
}

#[test]
fn work_on_a_detached_head_is_taken_in() {
    wanders(&format!("git switch --quiet --detach; {COMMITS_AND_LEAVES}"));
}

/// Runs a lane whose agent says something of itself and exits with `code`.
fn says(file: &str, text: &str, code: i32, expected: i32) -> TestEnv {
    let env = TestEnv::new();
    env.plan(&format!(
        "[[lane]]\nid = \"L\"\nretries = 0\ncommand = '''\necho x > x.txt; printf %s '{text}' > \"${file}\"; exit {code}\n'''\n"
    ));
    env.execute(&[]).exits(expected);
    env
}

const STATUS: &str = "LANEWRIGHT_STATUS_FILE";
const RESULT: &str = "LANEWRIGHT_RESULT_FILE";

fn failed_with(env: &TestEnv, text: &str) {
    let failures = env.events("lane_failed");
    assert!(failures[0]["failure"].to_string().contains(text), "{failures:?}");
    assert!(!env.holds("main", "x.txt"));
}

#[test]
fn error_status_fails_attempt_despite_zero_exit() {
    let env = says(STATUS, r#"{"status": "ERROR", "error_message": "no such table"}"#, 0, 1);
    failed_with(&env, "no such table");
}

#[test]
fn an_agent_whose_status_is_half_written_has_failed() {
    failed_with(&says(STATUS, r#"{"status": "COMP"#, 0, 1), "half written");
}

#[test]
fn an_agent_whose_status_is_empty_has_failed() {
    failed_with(&says(STATUS, "", 0, 1), "empty");
}

#[test]
fn complete_status_fails_attempt_on_nonzero_exit() {
    failed_with(&says(STATUS, r#"{"status": "COMPLETE"}"#, 1, 1), "code 1");
}

#[test]
fn an_agent_that_reports_a_word_that_is_none_has_failed() {
    failed_with(&says(STATUS, r#"{"status": "FINE"}"#, 0, 1), "FINE");
}

#[test]
fn an_agent_whose_result_says_failed_has_failed() {
    failed_with(&says(RESULT, r#"{"status": "failed", "error": "tests are red"}"#, 0, 1), "tests are red");
}

#[test]
fn an_agent_that_is_blocked_blocks_its_lane() {
    let env = says(STATUS, r#"{"status": "BLOCKED", "blocked_by": "the API key"}"#, 0, 3);
    assert!(env.events("lane_blocked")[0]["reason"].as_str().expect("a reason").contains("the API key"));
    assert!(!env.holds("main", "x.txt"));
}

#[test]
fn an_agent_whose_result_says_blocked_blocks_its_lane() {
    let env = says(RESULT, r#"{"status": "blocked", "blocking_reason": "no quota"}"#, 0, 3);
    assert!(env.events("lane_blocked")[0]["reason"].as_str().expect("a reason").contains("no quota"));
}

#[test]
fn an_agent_that_cannot_be_started_blocks_its_lane() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\nretries = 1\ncommand = [\"no-such-program-here\"]\n");
    env.execute(&[]).exits(3).says(&["no-such-program-here", "then resume"]);
    assert_eq!(env.events("job_planned").len(), 1, "no other attempt finds it");
}

/// Runs a lane whose agent leads its worktree into the user's checkout, where there is uncommitted work.
fn leads_astray(command: &str) {
    let env = TestEnv::with_user_elsewhere();
    env.plan(&format!("[[lane]]\nid = \"L\"\nretries = 0\ncommand = '{command}'\n"));
    let before = env.users_checkout().without_refs();
    env.execute(&["--base", "main"]).exits(1).says(&["removed, or replaced by something else"]);
    assert_eq!(env.users_checkout().without_refs(), before);
}

#[test]
fn a_git_link_into_the_users_checkout_is_never_followed() {
    leads_astray("echo x > a; echo \"gitdir: $(realpath \"$SCRATCH/../repo\")/.git\" > .git");
}

#[test]
fn worktree_linked_to_the_users_checkout_is_not_used() {
    leads_astray(
        "main=$(realpath \"$SCRATCH/../repo\"); cd /; rm -rf $LANEWRIGHT_WORKTREE; ln -s $main $LANEWRIGHT_WORKTREE",
    );
}

#[test]
fn complete_status_without_changes_fails_attempt() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\nretries = 1\ncommand = '''\n\
         [ $LANEWRIGHT_ATTEMPT = 1 ] || echo done > done.txt\n\
         echo \"{\\\"status\\\": \\\"COMPLETE\\\"}\" > \"$LANEWRIGHT_STATUS_FILE\"\n'''\n\
         [[lane]]\nid = \"M\"\nallow_empty = true\ncommand = 'true'\n",
    );
    env.execute(&[]).exits(0).says(&["committed nothing"]);
    assert!(env.holds("main", "done.txt"));
}

#[test]
fn complete_report_with_error_exit_fails() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\nretries = 0\ncommand = '''\n\
         echo x > x.txt; echo \"{\\\"status\\\": \\\"COMPLETE\\\"}\" > \"$LANEWRIGHT_STATUS_FILE\"; exit 1\n'''\n",
    );
    env.execute(&[]).exits(1).says(&["exited with code 1"]);
    assert!(!env.holds("main", "x.txt"));
}

#[test]
fn flagged_files_that_an_agent_changed_are_committed() {
    let env = TestEnv::new();
    env.write("repo/other.txt", "before\n");
    env.write("repo/gone.txt", "before\n");
    env.commit("more");
    env.plan(
        "[[lane]]\nid = \"L\"\ncommand = \"git update-index --assume-unchanged README.md gone.txt; \
         git update-index --skip-worktree other.txt; echo work > README.md; echo work > other.txt; rm gone.txt\"\n",
    );
    env.execute(&[]).exits(0);
    assert_eq!((env.file_at("main", "README.md"), env.file_at("main", "other.txt")), ("work".into(), "work".into()));
    assert!(!env.holds("main", "gone.txt"));
    env.assert_nothing_left(&["main"]);
}

#[test]
fn flagged_files_are_in_the_snapshot_not_the_next_lane() {
    let env = TestEnv::new();
    env.plan(
        "max_parallel = 1\n\
         [[lane]]\nid = \"L\"\nretries = 1\ncommand = '''\n\
         if [ $LANEWRIGHT_ATTEMPT = 1 ]; then git update-index --assume-unchanged README.md; echo lost > README.md; exit 1; fi\n\
         cat README.md > seen.txt\n'''\n",
    );
    env.execute(&[]).exits(0);
    let kept = env.events("snapshot_taken").into_iter().find(|event| event["reason"] == "failure").expect("a snapshot");
    assert_eq!(env.file_at(kept["commit"].as_str().unwrap(), "README.md"), "lost");
}

#[test]
fn tasks_with_commands_need_no_runner() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\nretries = 0\n[[lane.agent]]\nname = \"eng\"\n\
         [[lane.agent.task]]\nid = \"one\"\nprompt = \"Write one.\"\n\
         command = 'cat > one; cmp one \"$LANEWRIGHT_PROMPT_FILE\"'\n\
         [[lane.agent.task]]\nid = \"two\"\n\
         command = [\"sh\", \"-c\", \"echo $LANEWRIGHT_TASK > two; test -e $SCRATCH/fixed\"]\n",
    );
    env.execute(&[]).exits(1);
    env.lanewright(&["retry", RUN, "L", "--runner", "claude"])
        .exits(7)
        .says(&["task two of lane L has a command of its own"])
        .hints("--accept-plan-change");
    env.write("scratch/fixed", "");
    env.lanewright(&["retry", RUN, "L"]).exits(0);
    assert!(env.file_at("main", "one").contains("Write one."));
    assert_eq!(env.file_at("main", "two").trim(), "two");
    let attempts = env.log().iter().filter(|event| event["event"] == "job_planned").count();
    assert_eq!(attempts, 3, "the first task ran once, the second twice");
}
