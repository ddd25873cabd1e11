//! What a person, or another program, removes or prunes beside a run: it is repaired, and no finished work is done again.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Ended, TestEnv};

/// Two tasks, the first of which leaves a commit of its agent's own and uncommitted work; the second does `deed` in its
/// first attempt. What ran is written down.
fn at_work(deed: &str) -> TestEnv {
    let env = TestEnv::new().trusting();
    env.plan(&format!(
        r#"
[[lane]]
id = "A"
agent_worktrees = "on"
tests = "test -s one.txt && test -s own.txt && test -s two.txt"
command = '''
echo "$LANEWRIGHT_TASK $LANEWRIGHT_ATTEMPT" >> "$SCRATCH/ran"
REPO="$SCRATCH/../repo"; SLOTS="$SCRATCH/../repo.lanes/slots"; SLOT=$(basename "$(pwd -P)")
if [ $LANEWRIGHT_TASK = 1 ]; then
  echo own > own.txt; git add own.txt; git commit --quiet -m own; echo one > one.txt; exit 0
fi
echo two > two.txt; echo staged > staged.txt; git add staged.txt
{deed}
'''
[[lane.task]]
id = "1"
prompt = "one"
[[lane.task]]
id = "2"
prompt = "two"
"#
    ));
    env
}

const MERGED: [&str; 6] = [".gitignore", "README.md", "one.txt", "own.txt", "staged.txt", "two.txt"];

/// Asserts that the lane was merged with all of its work, each attempt of `ran` having run once, and that nothing is left.
#[track_caller]
fn assert_done(env: &TestEnv, ended: Ended, ran: &str) {
    ended.exits(0);
    assert_eq!(env.files("main"), MERGED);
    assert_eq!(env.scratch("ran").split_whitespace().collect::<Vec<_>>().join(" "), ran);
    env.assert_nothing_left(&["main"]);
    assert_eq!(env.git(&["status", "--porcelain", "--untracked-files=no"]), "");
}

/// A deed beside an agent at work, after which the run continues as if nothing had happened.
#[track_caller]
fn beside_an_agent(deed: &str) -> TestEnv {
    let env = at_work(deed);
    let ended = env.execute(&[]);
    assert_done(&env, ended, "1 1 2 1");
    env
}

#[test]
fn objects_of_an_agent_at_work_outlive_a_prune() {
    beside_an_agent("git -C \"$REPO\" gc --quiet --prune=now");
}

#[test]
fn deleted_agent_branch_is_restored_with_its_commits() {
    beside_an_agent(
        "git add --all; git commit --quiet -m more; git -C \"$REPO\" update-ref -d refs/heads/lane-agent/P1/A/agent",
    );
}

/// A commit in a worktree whose branch is gone has no parent, and could be merged nowhere.
#[test]
fn commit_after_branch_deletion_continues_its_history() {
    let env = at_work(
        "git -C \"$REPO\" update-ref -d refs/heads/lane-agent/P1/A/agent; git add --all; git commit --quiet -m rootless",
    );
    let ended = env.execute(&["--merge", "none"]);
    ended.exits(0);
    assert_eq!(env.files("lane/P1/A"), MERGED);
    let subjects = env.git(&["log", "--format=%s", "main..lane/P1/A"]);
    assert!(subjects.contains("own"), "what was committed before is no part of the history: {subjects}");
}

#[test]
fn a_branch_of_a_lane_that_is_deleted_is_made_again() {
    beside_an_agent("git -C \"$REPO\" update-ref -d refs/heads/lane/P1/A");
}

#[test]
fn run_continues_after_its_snapshots_are_deleted() {
    beside_an_agent(
        "git -C \"$REPO\" for-each-ref --format='delete %(refname)' refs/lanewright | git -C \"$REPO\" update-ref --stdin; \
         git -C \"$REPO\" gc --quiet --prune=now",
    );
}

#[test]
fn packed_refs_are_refs() {
    beside_an_agent("git -C \"$REPO\" pack-refs --all --prune");
}

#[test]
fn claims_that_are_removed_beside_an_agent_are_restored() {
    beside_an_agent("rm -f \"$SLOTS\"/*.claim");
}

#[test]
fn worktree_without_git_entry_keeps_files_and_commits() {
    beside_an_agent("rm -rf \"$REPO/.git/worktrees/$SLOT\"");
}

#[test]
fn deleted_lanewright_directory_is_created_again() {
    beside_an_agent("rm -rf \"$REPO/.git/lanewright\"");
}

#[test]
fn toggling_autocrlf_during_run_changes_nothing() {
    beside_an_agent(
        "git -C \"$REPO\" config core.autocrlf true; git status --porcelain > /dev/null; git -C \"$REPO\" config --unset core.autocrlf",
    );
}

/// As git writes files while `core.autocrlf` is set, and leaves them when it is not any more.
#[test]
fn line_endings_in_the_checkout_do_not_block_a_merge() {
    let env = TestEnv::new().trusting();
    env.plan("[[lane]]\nid = \"A\"\nagent_worktrees = \"on\"\ncommand = 'echo a > a.txt'\n");
    env.write("repo/README.md", "A project.\r\n");
    env.execute(&[]).exits(0);
    assert_eq!((env.read("repo/README.md").as_str(), env.read("repo/a.txt").as_str()), ("A project.\r\n", "a\n"));
    // Nothing is written over it, and a change of more than line ends is one.
    let change = |run: &str, plan: &str| {
        env.plan(plan);
        env.execute(&["--new-run", &format!("--run-id={run}")])
    };
    change("r2", "[[lane]]\nid = \"B\"\nagent_worktrees = \"on\"\ncommand = 'echo b > README.md'\n")
        .exits(3)
        .says(&["README.md"]);
    assert_eq!(env.read("repo/README.md"), "A project.\r\n");
    env.write("repo/README.md", "Another project.\r\n");
    change("r3", "[[lane]]\nid = \"C\"\nagent_worktrees = \"on\"\ncommand = 'echo c > README.md'\n")
        .exits(3)
        .says(&["README.md"]);
    // It is in the way of lanes that change the same file only.
    change("r4", "[[lane]]\nid = \"D\"\nagent_worktrees = \"on\"\ncommand = 'echo d > d.txt'\n").exits(0);
    assert_eq!(env.read("repo/README.md"), "Another project.\r\n");
}

#[test]
fn slot_removed_under_a_running_agent_is_opened_again() {
    let env = beside_an_agent("rm -rf \"$(cd -P \"$SCRATCH/../repo.lanes/r1/A/code\" && pwd)\"");
    assert_eq!(env.events("worktree_lost").len(), 1);
}

/// The agent's own slot goes with what it had not committed; the first task stays done.
#[test]
fn removed_agent_worktree_costs_one_attempt() {
    let env = at_work("[ $LANEWRIGHT_ATTEMPT = 2 ] || rm -rf \"$(pwd -P)\"");
    let ended = env.execute(&[]);
    assert_done(&env, ended, "1 1 2 1 2 2");
}

#[test]
fn removed_worktree_root_costs_one_attempt() {
    let env = at_work("[ $LANEWRIGHT_ATTEMPT = 2 ] || rm -rf \"$SCRATCH/../repo.lanes\"");
    let ended = env.execute(&[]);
    assert_done(&env, ended, "1 1 2 1 2 2");
}

/// A run that was killed at a crash point.
fn killed_at(point: &str) -> TestEnv {
    let env = at_work("true");
    let plan = env.path("plan.toml");
    let start = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id=r1"];
    env.lanewright_with(&start, |command| command.env("LANEWRIGHT_CRASH_POINT", point)).exits(137);
    env
}

/// The slots, with their claims.
fn slots(env: &TestEnv) -> Vec<PathBuf> {
    let entries = fs::read_dir(env.path("repo.lanes/slots")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn gc(env: &TestEnv) {
    env.git(&["gc", "--quiet", "--prune=now"]);
}

fn delete_refs(env: &TestEnv, below: &str) {
    for name in env.git(&["for-each-ref", "--format=%(refname)", below]).lines() {
        env.git(&["update-ref", "-d", name]);
    }
}

/// After each of these points all tasks are done, and no attempt runs again whatever is removed.
const POINTS: [&str; 5] =
    ["after_commit_work:2", "after_snapshot:2", "after_merge_agent:1", "after_stage_merge:1", "before_publish_merge:1"];

#[track_caller]
fn after_each_point(deed: impl Fn(&TestEnv)) {
    for point in POINTS {
        let env = killed_at(point);
        deed(&env);
        let ended = env.resume(&[]);
        assert_eq!(ended.code, 0, "{point}: {}{}", ended.stdout, ended.stderr);
        assert_done(&env, ended, "1 1 2 1");
    }
}

#[test]
fn a_run_that_died_outlives_a_prune() {
    after_each_point(gc);
}

#[test]
fn a_run_that_died_has_its_branches_made_again() {
    after_each_point(|env| {
        delete_refs(env, "refs/heads/lane");
        delete_refs(env, "refs/heads/lane-agent");
    });
}

#[test]
fn a_run_that_died_needs_no_claim_to_find_its_slots() {
    after_each_point(|env| {
        for claim in slots(env).iter().filter(|path| path.is_file()) {
            fs::remove_file(claim).expect("removed");
        }
    });
}

/// An agent or a power cut may leave an index empty.
#[test]
fn an_index_that_git_cannot_read_is_made_again() {
    beside_an_agent(": > \"$(git rev-parse --git-dir)/index\"");
    for point in ["before_commit_work:2"].iter().chain(&POINTS[..3]) {
        let env = killed_at(point);
        let worktrees = fs::read_dir(env.path("repo/.git/worktrees")).expect("worktrees").flatten();
        for index in worktrees.map(|entry| entry.path().join("index")).filter(|index| index.exists()) {
            fs::write(index, "").expect("written");
        }
        let ended = env.resume(&[]);
        assert_eq!(ended.code, 0, "{point}: {}{}", ended.stdout, ended.stderr);
        assert_done(&env, ended, "1 1 2 1");
    }
}

/// Later, one of the slots is free: nothing says what is in a free slot that git does not know, so it stays.
#[test]
fn a_run_that_died_has_its_worktrees_registered_again() {
    for point in &POINTS[..3] {
        let env = killed_at(point);
        fs::remove_dir_all(env.path("repo/.git/worktrees")).expect("removed");
        let ended = env.resume(&[]);
        assert_eq!(ended.code, 0, "{point}: {}{}", ended.stdout, ended.stderr);
        assert_done(&env, ended, "1 1 2 1");
    }
}

#[test]
fn killed_run_resumes_without_its_committed_worktrees() {
    for point in ["after_snapshot:2", "after_merge_agent:1", "after_stage_merge:1", "before_publish_merge:1"] {
        let env = killed_at(point);
        fs::remove_dir_all(env.path("repo.lanes")).expect("removed");
        let ended = env.resume(&[]);
        assert_eq!(ended.code, 0, "{point}: {}{}", ended.stdout, ended.stderr);
        assert_done(&env, ended, "1 1 2 1");
    }
}

/// What was not committed is gone with the slot, so its task is done again, and no other.
#[test]
fn slot_removed_before_the_commit_costs_one_attempt() {
    let env = killed_at("before_commit_work:2");
    let opened = env.events("worktree_opened");
    let place = opened.iter().find(|event| event["agent"] == "agent").expect("a worktree");
    fs::remove_dir_all(place["worktree"]["path"].as_str().expect("a path")).expect("removed");
    let ended = env.resume(&[]);
    assert_done(&env, ended, "1 1 2 1 2 2");
}

/// A branch at a time is gone, with all that only it held but for a snapshot.
#[test]
fn pruned_branch_is_restored_from_the_recorded_head() {
    let env = killed_at("after_snapshot:2");
    delete_refs(&env, "refs/heads/lane-agent");
    gc(&env);
    let ended = env.resume(&[]);
    assert_done(&env, ended, "1 1 2 1");
}

#[test]
fn the_newest_snapshot_of_a_lane_is_set_again() {
    let env = TestEnv::new().trusting();
    env.plan("[[lane]]\nid = \"A\"\nagent_worktrees = \"on\"\nretries = 0\ncommand = 'echo half > half.txt; [ -e \"$SCRATCH/fixed\" ]'\n");
    env.execute(&[]).exits(1);
    let kept = env.events("snapshot_taken")[0]["reference"].as_str().expect("a ref").to_owned();
    env.git(&["update-ref", "-d", &kept]);
    env.resume(&[]).exits(1);
    assert_eq!(env.file_at(&kept, "half.txt"), "half");
}

/// Its worktree then stands at the merge that is tested, which is no commit of the lane's.
#[test]
fn branch_deleted_during_merge_tests_is_restored() {
    let env = TestEnv::new().trusting();
    env.plan(
        r#"
[[lane]]
id = "A"
agent_worktrees = "on"
tests = 'git symbolic-ref -q HEAD || git -C "$SCRATCH/../repo" update-ref -d refs/heads/lane/P1/A; test -s a.txt'
command = 'git -C "$SCRATCH/../repo" commit --quiet --allow-empty -m meanwhile; echo a > a.txt'
"#,
    );
    let plan = env.path("plan.toml");
    let start = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id=r1"];
    env.lanewright_with(&start, |command| command.env("LANEWRIGHT_CRASH_POINT", "before_publish_merge:1")).exits(137);
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "a.txt"));
    env.assert_nothing_left(&["main"]);
}

/// What an agent staged is stored again from its files, although git lost it before anything named it.
#[test]
fn a_file_whose_staged_content_was_lost_is_stored_again() {
    let lose = "blob=$(git rev-parse :staged.txt); rm -f \"$REPO/.git/objects/$(echo $blob | cut -c1-2)/$(echo $blob | cut -c3-)\"";
    beside_an_agent(lose);
}

/// The same for what the agent committed by itself, as an unlucky prune beside `git commit` leaves it.
#[test]
fn lost_object_of_agent_commit_is_stored_again() {
    let lose = "git commit --quiet -m staged; for name in HEAD:staged.txt HEAD^{tree}; do object=$(git rev-parse $name); \
                rm -f \"$REPO/.git/objects/$(echo $object | cut -c1-2)/$(echo $object | cut -c3-)\"; done";
    beside_an_agent(lose);
}

/// A prune that looked before a ref was set removes what the ref leads to. Here the lane's tests do it, right after the
/// merge of its agent.
#[test]
fn pruned_new_objects_are_stored_again() {
    let env = TestEnv::new().trusting();
    env.plan(
        r#"
[[lane]]
id = "A"
agent_worktrees = "on"
tests = """
for name in HEAD HEAD^{tree}; do
  object=$(git rev-parse $name); rm -f "$SCRATCH/../repo/.git/objects/$(echo $object | cut -c1-2)/$(echo $object | cut -c3-)"
done
test -s a.txt
"""
command = 'echo a >> a.txt; echo ran >> "$SCRATCH/ran"'
"#,
    );
    env.execute(&[]).exits(0);
    assert_eq!((env.file_at("main", "a.txt"), env.scratch("ran").as_str()), ("a".to_owned(), "ran\n"));
    let notes: Vec<String> = env.events("noted").iter().map(Value::to_string).collect();
    assert!(notes.iter().any(|note| note.contains("just made")), "{notes:?}");
    env.assert_nothing_left(&["main"]);
}

/// One lane that is hurt beyond repair blocks itself; the others are merged, and a rollback of it alone is enough.
#[test]
fn unrepairable_lane_does_not_block_other_merges() {
    let env = TestEnv::new().trusting();
    env.plan(
        "[[lane]]\nid = \"A\"\nagent_worktrees = \"on\"\napproval = [\"changes\"]\ncommand = 'echo a > a.txt'\n\
         [[lane]]\nid = \"B\"\nagent_worktrees = \"on\"\napproval = [\"changes\"]\ncommand = 'echo b > b.txt'\n",
    );
    env.execute(&[]).exits(3);
    delete_refs(&env, "refs/heads/lane/P1/A");
    delete_refs(&env, "refs/heads/lane-agent/P1/A");
    delete_refs(&env, "refs/lanewright/checkpoint/P1-A");
    let opened = env.events("worktree_opened");
    for place in opened.iter().filter(|event| event["lane"] == "A") {
        let path = Path::new(place["worktree"]["path"].as_str().expect("a path"));
        fs::remove_dir_all(path).expect("removed");
    }
    env.git(&["worktree", "prune", "--expire=now"]);
    gc(&env);
    for lane in ["A", "B"] {
        env.lanewright(&["approve", "r1", lane, "--gate", "changes"]).exits(0);
    }
    env.resume(&[]).exits(3).says(&["A blocked:", "lanewright status r1 A"]);
    let page = env.lanewright(&["status", "r1", "A"]).exits(0).stdout;
    assert!(page.contains("rollback r1 --lane A"), "{page}");
    assert_eq!(env.files("main"), [".gitignore", "README.md", "b.txt"]);
    env.lanewright(&["rollback", "r1", "--lane", "A", "--yes"]).exits(0);
    env.resume(&[]).exits(3);
    env.lanewright(&["approve", "r1", "A", "--gate", "changes"]).exits(0);
    env.resume(&[]).exits(0);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "a.txt", "b.txt"]);
    env.assert_nothing_left(&["main"]);
}
