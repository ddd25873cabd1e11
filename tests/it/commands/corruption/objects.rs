//! Objects that a bad disk emptied, changed or took away, while the run stands still: the work goes on from the worktree,
//! else from what was saved before, and what is lost is named.

use std::fs;
use std::path::PathBuf;

use super::way_out::GARBAGE;
use crate::support::TestEnv;

/// The first attempt leaves a commit and an uncommitted file, and fails; the next one writes them again where they are gone.
/// What each file holds is the number of the attempt that wrote it.
const WORKS: &str = r#"
[[lane]]
id = "L"
agent_worktrees = "on"
retries = 0
command = '''
echo x >> $SCRATCH/ran; n=$(wc -l < $SCRATCH/ran)
[ -e L/half ] || { mkdir -p L; echo "half $n" > L/half; git add L; git commit --quiet -m half; }
[ -e L/sub/new ] || { mkdir -p L/sub; echo "new $n" > L/sub/new; }
[ $n != 1 ]
'''
"#;

/// One agent's work is in the lane, the other's attempt failed.
const MERGED: &str = r#"
[[lane]]
id = "L"
agent_worktrees = "on"
retries = 0
[[lane.agent]]
name = "one"
command = "mkdir -p one; echo one > one/file"
[[lane.agent]]
name = "two"
command = "until [ -e $SCRATCH/may-pass ] || git -C $SCRATCH/../repo cat-file -e lane/P1/L:one/file 2> /dev/null; do sleep 0.1; done; mkdir -p two; echo two > two/file; [ -e $SCRATCH/may-pass ]"
"#;

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Resume,
    Doctor,
    Rollback,
}

fn stopped(plan: &str) -> TestEnv {
    let env = TestEnv::new();
    env.plan(plan);
    env.execute(&[]).exits(1);
    fs::write(env.path("scratch/may-pass"), "").unwrap();
    env
}

/// The file of a loose object that `name` leads to.
fn object(env: &TestEnv, name: &str) -> PathBuf {
    let id = env.git(&["rev-parse", name]);
    env.path(&format!("repo/.git/objects/{}/{}", &id[..2], &id[2..]))
}

fn overwrite(path: PathBuf, bytes: &[u8]) {
    fs::remove_file(&path).unwrap();
    fs::write(path, bytes).unwrap();
}

/// A file of a loose object that is no more what it was.
const DAMAGE: [Option<&[u8]>; 3] = [Some(GARBAGE), Some(b""), None];

fn damage(path: PathBuf, how: Option<&[u8]>) {
    fs::remove_file(&path).unwrap();
    how.into_iter().for_each(|bytes| fs::write(&path, bytes).unwrap());
}

fn newest_snapshot(env: &TestEnv) -> String {
    let name = env.events("snapshot_taken").pop().unwrap()["reference"].as_str().unwrap().to_owned();
    assert!(env.holds(&name, "L/sub/new"));
    name
}

/// The worktree of the lane's agent.
fn worktree(env: &TestEnv) -> PathBuf {
    let opened = env.events("worktree_opened").into_iter().find(|event| event["agent"] == "agent").unwrap();
    PathBuf::from(opened["worktree"]["path"].as_str().unwrap())
}

/// Damages a stopped run, and has it go on each way. Asserts which attempts wrote what is merged, and that the damage is
/// named by the doctor, which finds nothing at the end.
#[track_caller]
fn goes_on(is_whole: bool, wrote: [&str; 2], damage: impl Fn(&TestEnv)) {
    for way in [Way::Resume, Way::Doctor, Way::Rollback] {
        let env = stopped(WORKS);
        damage(&env);
        if !is_whole {
            fs::remove_dir_all(worktree(&env)).unwrap();
        }
        let mut wrote = wrote;
        match way {
            Way::Resume => {}
            Way::Doctor => {
                let found = env.lanewright(&["doctor"]).exits(6).stdout;
                assert!(found.contains("objects-damaged") && found.contains("cannot be read"), "{found}");
                env.lanewright(&["doctor", "--fix"]).exits(0);
                env.lanewright(&["doctor"]).exits(0);
            }
            Way::Rollback => {
                env.lanewright(&["rollback", "r1"]).exits(0);
                let has = |name: &String| env.try_git(&["cat-file", "-e", &format!("{name}:L/sub/new")]);
                assert_eq!(env.kept().iter().any(has), wrote[1] == "new 1", "{wrote:?}");
                wrote = ["half 2", "new 2"];
            }
        }
        env.resume(&[]).exits(0);
        let merged = ["L/half", "L/sub/new"].map(|file| env.git(&["show", &format!("main:{file}")]));
        assert_eq!(merged, wrote, "{}", env.lanewright(&["status", "r1", "L"]).stdout);
        env.lanewright(&["doctor"]).exits(0);
        env.git(&["rev-list", "--objects", "main"]);
    }
}

fn empty_the_newest_blob(env: &TestEnv) {
    overwrite(object(env, &format!("{}:L/sub/new", newest_snapshot(env))), b"");
}

fn remove_the_newest_tree(env: &TestEnv) {
    fs::remove_file(object(env, &format!("{}:L/sub", newest_snapshot(env)))).unwrap();
}

fn garble_the_agents_head(env: &TestEnv) {
    overwrite(object(env, "refs/heads/lane-agent/P1/L/agent"), GARBAGE);
}

/// Nothing that can be read leads to the objects below them.
fn empty_the_newest_snapshot_and_its_trees(env: &TestEnv) {
    let snapshot = newest_snapshot(env);
    for name in [":L/sub/new", ":L/sub", ":L", "^{tree}", ""] {
        overwrite(object(env, &format!("{snapshot}{name}")), b"");
    }
}

#[test]
fn emptied_snapshot_is_taken_again_from_worktree() {
    goes_on(true, ["half 1", "new 1"], empty_the_newest_snapshot_and_its_trees);
}

#[test]
fn emptied_snapshot_blob_is_restored_from_worktree() {
    goes_on(true, ["half 1", "new 1"], empty_the_newest_blob);
}

#[test]
fn emptied_blob_without_worktree_is_redone_by_agent() {
    goes_on(false, ["half 1", "new 2"], empty_the_newest_blob);
}

#[test]
fn missing_snapshot_tree_is_restored_from_worktree() {
    goes_on(true, ["half 1", "new 1"], remove_the_newest_tree);
}

#[test]
fn missing_tree_without_worktree_is_redone_by_agent() {
    goes_on(false, ["half 1", "new 2"], remove_the_newest_tree);
}

#[test]
fn garbled_head_of_agent_is_rebuilt_from_worktree() {
    goes_on(true, ["half 1", "new 1"], garble_the_agents_head);
}

#[test]
fn garbled_head_of_agent_is_rebuilt_from_snapshot() {
    goes_on(false, ["half 1", "new 1"], garble_the_agents_head);
}

#[test]
fn lost_snapshot_is_named_once_with_what_it_held() {
    let env = stopped(WORKS);
    let snapshot = newest_snapshot(&env);
    empty_the_newest_blob(&env);
    fs::remove_dir_all(worktree(&env)).unwrap();
    let fixed = env.lanewright(&["doctor", "--fix"]).exits(0);
    assert!(fixed.stdout.contains(&snapshot) && fixed.stdout.contains("L/sub/new"), "{}", fixed.stdout);
    env.resume(&[]).exits(0);
    let named = env.events("snapshot_damaged");
    assert_eq!(named.len(), 1, "{named:?}");
    assert_eq!(named[0]["reference"], snapshot);
}

/// Its worktree is there, but does not hold any more what the snapshot lost.
#[test]
fn snapshot_that_stays_lost_is_not_found_again() {
    let env = stopped(WORKS);
    empty_the_newest_blob(&env);
    fs::write(worktree(&env).join("L/sub/new"), "changed by the user\n").unwrap();
    env.lanewright(&["doctor", "--fix"]).exits(0);
    env.lanewright(&["doctor"]).exits(0);
    env.resume(&["--on-conflict", "override"]).exits(0);
    assert_eq!(env.events("snapshot_damaged").len(), 1);
    assert_eq!(env.git(&["show", "main:L/sub/new"]), "changed by the user");
}

/// Git writes no object whose file exists, whatever is in it.
#[test]
fn emptied_object_is_written_by_the_next_attempt() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\nagent_worktrees = \"on\"\ncommand = 'echo precious > l.txt'\n");
    env.write("precious", "precious\n");
    let id = env.git(&["hash-object", env.path("precious").to_str().unwrap()]);
    env.write(&format!("repo/.git/objects/{}/{}", &id[..2], &id[2..]), "");
    env.execute(&[]).exits(0);
    assert_eq!(env.git(&["show", "main:l.txt"]), "precious");
    let kept = fs::read_dir(env.path("repo/.git/lanewright/damaged")).unwrap().flatten().next().unwrap();
    assert!(kept.file_name().to_string_lossy().starts_with(&id), "{kept:?}");
}

#[test]
fn damaged_lane_object_is_restored_from_worktree() {
    for emptied in ["lane/P1/L:one/file", "lane/P1/L:one", "lane/P1/L^{tree}"] {
        let env = stopped(MERGED);
        overwrite(object(&env, emptied), b"");
        env.resume(&[]).exits(0);
        assert_eq!(env.git(&["show", "main:one/file"]), "one");
        env.lanewright(&["doctor"]).exits(0);
    }
}

#[test]
fn damaged_head_of_lane_is_rebuilt_from_worktree() {
    for (how, by_doctor) in DAMAGE.into_iter().flat_map(|how| [(how, false), (how, true)]) {
        let env = stopped(MERGED);
        damage(object(&env, "lane/P1/L"), how);
        if by_doctor {
            env.lanewright(&["doctor", "--fix"]).exits(0);
        }
        env.resume(&[]).exits(0);
        assert_eq!(env.git(&["show", "main:one/file"]), "one");
        assert_eq!(env.git(&["show", "main:two/file"]), "two");
    }
}

/// The log of heads of the lane's worktree does not have where Lanewright moved the branch.
#[test]
fn missing_lane_branch_is_restored_by_doctor() {
    for emptied in [false, true] {
        let env = stopped(MERGED);
        let head = env.git(&["rev-parse", "lane/P1/L"]);
        let file = env.path("repo/.git/refs/heads/lane/P1/L");
        if emptied { fs::write(file, "") } else { fs::remove_file(file) }.unwrap();
        env.lanewright(&["doctor", "--fix"]).exits(0);
        assert_eq!(env.git(&["rev-parse", "lane/P1/L"]), head);
        env.resume(&[]).exits(0);
        assert_eq!(env.git(&["show", "main:one/file"]), "one");
    }
}

/// The lane must not be merged without what its head held.
#[track_caller]
fn is_blocked_until_rolled_back(damage: impl Fn(&TestEnv)) {
    let env = stopped(MERGED);
    damage(&env);
    let lane = env.events("worktree_opened").into_iter().find(|event| event["agent"].is_null()).unwrap();
    fs::remove_dir_all(lane["worktree"]["path"].as_str().unwrap()).unwrap();
    let fixed = env.lanewright(&["doctor", "--fix"]).exits(6).stdout;
    assert!(fixed.contains("rollback r1 --lane L"), "{fixed}");
    for _ in 0..2 {
        env.resume(&[]).exits(3).says(&["rollback r1 --lane L"]);
    }
    env.lanewright(&["rollback", "r1", "--lane", "L"]).exits(0);
    env.lanewright(&["doctor"]).exits(0);
    env.resume(&[]).exits(0);
    assert_eq!(env.git(&["show", "main:one/file"]), "one");
}

#[test]
fn lost_file_without_worktree_blocks_until_rollback() {
    is_blocked_until_rolled_back(|env| overwrite(object(env, "lane/P1/L:one/file"), b""));
}

#[test]
fn lost_lane_head_without_worktree_requires_rollback() {
    for how in DAMAGE {
        is_blocked_until_rolled_back(|env| damage(object(env, "lane/P1/L"), how));
    }
}

#[test]
fn lost_lane_head_blocks_until_rollback() {
    is_blocked_until_rolled_back(|env| {
        damage(object(env, "lane/P1/L"), None);
        fs::remove_file(env.path("repo/.git/refs/heads/lane/P1/L")).unwrap();
    });
}

/// `git gc` refuses a repository with a ref that leads to nothing.
#[test]
fn ref_of_lost_snapshot_is_removed_with_its_run() {
    let env = stopped(WORKS);
    let snapshot = newest_snapshot(&env);
    overwrite(object(&env, &snapshot), b"");
    fs::remove_dir_all(worktree(&env)).unwrap();
    env.resume(&[]).exits(0);
    env.lanewright(&["clean", "r1", "--yes"]).exits(0);
    assert!(!env.kept().contains(&snapshot), "{snapshot}");
    env.git(&["gc", "--quiet"]);
}
