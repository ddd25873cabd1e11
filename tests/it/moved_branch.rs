//! Another program moves the integration branch by plumbing: nothing is merged on top of a checkout that was left behind,
//! or over merged work that is gone, and the printed command puts things right without losing anything.

use std::fs;
use std::process::Command;

use crate::support::{Ended, Running, TestEnv, wait_until};

/// A lane whose agent waits.
const WAITS: &str = "[[lane]]\nid = \"L\"\ncommand = 'echo l > l.txt; touch \"$SCRATCH/began\"; wait-for go'\n";

/// Commits `file` on top of `main` in another worktree, and moves `main` there: its checkout does not follow.
pub(crate) fn move_branch_alone(env: &TestEnv, file: &str) {
    let other = env.path("other");
    env.git(&["worktree", "add", "--quiet", "--detach", other.to_str().expect("UTF-8"), "main"]);
    fs::write(other.join(file), "by another program\n").expect("a file");
    env.git_in(&other, &["add", "--all"]);
    env.git_in(&other, &["commit", "--quiet", "--message=by another program"]);
    env.git_in(&other, &["update-ref", "refs/heads/main", "HEAD"]);
}

/// Runs the command that `said` has in backticks after the last `label`; whether git did not refuse.
pub(crate) fn carry_out(env: &TestEnv, said: &str, label: &str) -> bool {
    let command = said.rsplit_once(label).and_then(|(_, rest)| rest.split('`').nth(1));
    let command = command.unwrap_or_else(|| panic!("no command after `{label}`: {said}"));
    let mut shell = Command::new("sh");
    env.pin(&mut shell).args(["-c", command]).status().expect("sh").success()
}

const CURE: &str = "uncommitted changes: ";

fn started(env: &TestEnv) -> Running {
    env.plan(WAITS);
    let run = env.start(&[]);
    wait_until("the agent", || env.path("scratch/began").exists());
    run
}

/// The run has ended without a merge, and says so wherever a user looks.
fn is_blocked(env: &TestEnv, ended: &Ended, main: &str) {
    assert_eq!(env.git(&["rev-parse", "main"]), main, "nothing was merged");
    let status = env.lanewright(&["status", "r1"]).exits(0).stdout;
    for said in [&ended.stderr, &status] {
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("update-ref --no-deref HEAD") && said.contains("do not commit there"), "{said}");
    }
}

fn resumes_to_the_end(env: &TestEnv, uncommitted: &str) {
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "l.txt") && env.holds("main", "new.txt"));
    assert_eq!(env.git(&["status", "--porcelain"]), uncommitted);
    assert!(env.path("repo/l.txt").exists() && env.path("repo/new.txt").exists());
}

#[test]
fn update_ref_beneath_a_clean_checkout_blocks_the_merge() {
    let env = TestEnv::new().trusting();
    let run = started(&env);
    move_branch_alone(&env, "new.txt");
    let main = env.git(&["rev-parse", "main"]);
    env.write("scratch/go", "");
    let ended = run.wait().exits(3);
    is_blocked(&env, &ended, &main);
    env.lanewright(&["resume", "r1"]).exits(3).says(&["no lane can be merged into main", "do not commit there"]);
    assert!(carry_out(&env, &ended.stderr, CURE));
    resumes_to_the_end(&env, "");
}

#[test]
fn cure_keeps_all_uncommitted_changes() {
    let env = TestEnv::new().trusting();
    env.write("repo/edited.txt", "one\n");
    env.commit("a file to edit");
    let run = started(&env);
    env.write("repo/edited.txt", "two\n");
    env.write("repo/staged.txt", "staged\n");
    env.git(&["add", "staged.txt"]);
    env.write("repo/untracked.txt", "untracked\n");
    let uncommitted = env.git(&["status", "--porcelain"]);
    move_branch_alone(&env, "new.txt");
    let main = env.git(&["rev-parse", "main"]);
    env.write("scratch/go", "");
    let ended = run.wait().exits(3);
    is_blocked(&env, &ended, &main);
    let again = env.resume(&[]).exits(3);
    assert!(!again.stderr.contains("or stash"), "a commit would undo what came in:\n{}", again.stderr);
    assert!(carry_out(&env, &ended.stderr, CURE));
    assert_eq!(env.git(&["status", "--porcelain"]), uncommitted);
    resumes_to_the_end(&env, &uncommitted);
    for (file, content) in [("edited.txt", "two"), ("staged.txt", "staged"), ("untracked.txt", "untracked")] {
        assert_eq!(env.read(&format!("repo/{file}")).trim(), content);
    }
}

#[test]
fn lane_that_owns_a_changed_file_advises_no_commit() {
    let env = TestEnv::new().trusting();
    env.write("repo/edited.txt", "one\n");
    env.commit("a file to edit");
    move_branch_alone(&env, "new.txt");
    env.write("repo/edited.txt", "two\n");
    env.plan(&WAITS.replace("id = \"L\"", "id = \"L\"\nowns = [\"edited.txt\"]"));
    let ended = env.execute(&[]).exits(3);
    is_blocked(&env, &ended, &env.git(&["rev-parse", "main"]));
    assert!(!ended.stderr.contains("or stash"), "a commit would undo what came in:\n{}", ended.stderr);
}

#[test]
fn cure_does_not_overwrite_a_changed_file() {
    for file in ["edited.txt", "new.txt"] {
        let env = TestEnv::new().trusting();
        env.write("repo/edited.txt", "one\n");
        env.commit("a file to edit");
        let run = started(&env);
        env.write(&format!("repo/{file}"), "the user's\n");
        move_branch_alone(&env, file);
        env.write("scratch/go", "");
        let ended = run.wait().exits(3);
        assert!(!carry_out(&env, &ended.stderr, CURE), "git refuses to overwrite {file}");
        assert_eq!(env.read(&format!("repo/{file}")), "the user's\n");
        assert_eq!(env.git(&["status", "--porcelain"]).lines().count(), 1, "nothing but the user's change is left");
        let said = ended.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("if git refuses the switch: `git stash -u`, switch again, `git stash pop`"), "{said}");
        env.git(&["stash", "--quiet", "-u"]);
        env.git(&["switch", "--quiet", "main"]);
        env.resume(&[]).exits(0);
        assert_eq!(env.git(&["status", "--porcelain"]), "");
        assert!(env.git(&["stash", "show", "--include-untracked", "-p"]).contains("+the user's"));
    }
}

#[test]
fn push_into_the_repository_blocks_the_merge() {
    let env = TestEnv::new().trusting();
    env.git(&["config", "receive.denyCurrentBranch", "ignore"]);
    let run = started(&env);
    env.git(&["clone", "--quiet", ".", "../clone"]);
    env.write("clone/new.txt", "pushed\n");
    env.git_at("clone", &["add", "."]);
    env.git_at("clone", &["commit", "--quiet", "--message=pushed"]);
    env.git_at("clone", &["push", "--quiet", "origin", "HEAD:main"]);
    let main = env.git_at("clone", &["rev-parse", "HEAD"]);
    env.write("scratch/go", "");
    let ended = run.wait().exits(3);
    is_blocked(&env, &ended, &main);
    assert!(carry_out(&env, &ended.stderr, CURE));
    resumes_to_the_end(&env, "");
}

#[test]
fn branch_moved_after_merge_blocks_next_merge() {
    let env = TestEnv::new().trusting();
    let foreign = "export GIT_DIR=$SCRATCH/../repo/.git; until git log -1 --format=%s main | grep -q 'Merge lane A'; do :; done; \
                   blob=$(echo other | git hash-object -w --stdin); \
                   tree=$({ git ls-tree main; printf \"100644 blob $blob\\tnew.txt\\n\"; } | git mktree); \
                   git update-ref refs/heads/main $(git commit-tree -p main -m other $tree); echo b > b.txt";
    env.plan(&format!(
        "base_branch = \"main\"\n[[lane]]\nid = \"A\"\ncommand = 'wait-for b; echo a > a.txt'\n\
         [[lane]]\nid = \"B\"\ncommand = '''touch \"$SCRATCH/b\"; {foreign}'''\n"
    ));
    let ended = env.execute(&[]).exits(3);
    let main = env.git(&["rev-parse", "main"]);
    assert_eq!(env.git(&["log", "-1", "--format=%s", "main"]), "other", "nothing is merged on top");
    is_blocked(&env, &ended, &main);
    assert!(env.path("repo/a.txt").exists() && !env.path("repo/new.txt").exists(), "the checkout stays where it was");
    assert!(carry_out(&env, &ended.stderr, CURE));
    env.resume(&[]).exits(0);
    assert!(["a.txt", "b.txt", "new.txt"].iter().all(|file| env.holds("main", file)));
    assert_eq!(env.git(&["status", "--porcelain"]), "");
}

#[test]
fn branch_moved_after_last_merge_blocks_run_end() {
    let env = TestEnv::new().trusting();
    env.plan(&format!(
        "[gates]\nfinal = 'touch \"$SCRATCH/judged\"; wait-for end'\n{}",
        WAITS.replace("wait-for go", "true")
    ));
    let run = env.start(&[]);
    wait_until("the final gate", || env.path("scratch/judged").exists());
    // Until then a checkout that is behind may be so by the publication itself, and is brought into step.
    wait_until("the end of the publication", || !env.path("repo/.git/lanewright/published.json").exists());
    move_branch_alone(&env, "new.txt");
    let main = env.git(&["rev-parse", "main"]);
    env.write("scratch/end", "");
    let ended = run.wait().exits(3);
    is_blocked(&env, &ended, &main);
    assert!(carry_out(&env, &ended.stderr, CURE));
    resumes_to_the_end(&env, "");
}

#[test]
fn branch_that_is_moved_back_by_an_agent_gets_no_merge() {
    let env = TestEnv::new().trusting();
    env.plan(
        "base_branch = \"main\"\n[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n[[lane]]\nid = \"B\"\n\
         depends_on = [\"A\"]\ncommand = 'echo b > b.txt; git --git-dir $SCRATCH/../repo/.git branch --quiet --force main main~1'\n",
    );
    let base = env.git(&["rev-parse", "main"]);
    env.git(&["switch", "--quiet", "--create", "side"]);
    let ended = env.execute(&[]).exits(3).says(&["no longer has the work of A"]);
    assert_eq!(env.git(&["rev-parse", "main"]), base, "nothing was merged without it");
    env.git(&["switch", "--quiet", "main"]);
    assert!(carry_out(&env, &ended.stderr, "to restore it, on main: "));
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "a.txt") && env.holds("main", "b.txt"));
}

#[test]
fn branch_that_is_moved_back_at_the_end_is_no_success() {
    let env = TestEnv::new().trusting();
    env.plan(
        "base_branch = \"main\"\n[gates]\nfinal = 'git branch --quiet --force main main~1'\n\
         [[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n",
    );
    env.git(&["switch", "--quiet", "--create", "side"]);
    let ended = env.execute(&[]).exits(3).says(&["no longer has the work of A"]);
    env.git(&["switch", "--quiet", "main"]);
    assert!(carry_out(&env, &ended.stderr, "to restore it, on main: "));
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "a.txt"));
}

#[test]
fn user_commits_and_soft_resets_do_not_block_merges() {
    let env = TestEnv::new().trusting();
    let run = started(&env);
    env.write("repo/one.txt", "one\n");
    env.commit("one");
    env.write("repo/two.txt", "two\n");
    env.commit("two");
    env.git(&["reset", "--quiet", "--soft", "HEAD~1"]);
    env.git(&["revert", "--no-commit", "HEAD~0"]);
    let staged = env.git(&["status", "--porcelain"]);
    env.git(&["revert", "--quit"]);
    env.write("scratch/go", "");
    run.wait().exits(0);
    assert_eq!(env.git(&["status", "--porcelain"]), staged, "what is staged stays");
    assert!(env.holds("main", "l.txt") && env.holds("main", "one.txt"));
}

/// `updateInstead` moves index and files along with the branch: what is staged then is the user's.
#[test]
fn push_that_updates_the_checkout_is_not_a_moved_branch() {
    let env = TestEnv::new().trusting();
    env.write("repo/edited.txt", "one\n");
    env.commit("a file to edit");
    env.git(&["config", "receive.denyCurrentBranch", "updateInstead"]);
    let run = started(&env);
    env.git(&["clone", "--quiet", ".", env.path("clone").to_str().expect("UTF-8")]);
    env.write("clone/edited.txt", "two\n");
    env.write("clone/new.txt", "new\n");
    env.git_at("clone", &["add", "--all"]);
    env.git_at("clone", &["commit", "--quiet", "--message=elsewhere"]);
    env.git_at("clone", &["push", "--quiet", "origin", "HEAD:main"]);
    env.git(&["checkout", "--quiet", "HEAD~1", "--", "edited.txt"]);
    env.write("scratch/go", "");
    run.wait().exits(0);
    assert!(env.holds("main", "l.txt") && env.holds("main", "new.txt"));
    assert_eq!(env.git(&["status", "--porcelain"]), "M  edited.txt");
}
