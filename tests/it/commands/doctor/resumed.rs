//! What the doctor repaired in a worktree is no change by the user: the next resume continues.

use std::fs;

use super::damages::change_middle;
use crate::support::TestEnv;

/// The failed attempt has committed nothing, so all of its work is uncommitted; it staged an ignored file.
const PLAN: &str = r#"
[[lane]]
id = "A"
agent_worktrees = "on"
retries = 0
owns = ["a/**"]
[[lane.agent]]
name = "eng"
command = "mkdir -p a; echo 1 > a/eng; echo x > a/kept.log; git add -f a; [ -e $SCRATCH/may-pass ] || exit 3"
"#;

struct Stopped {
    env: TestEnv,
    slot: std::path::PathBuf,
}

impl Stopped {
    fn entry(&self) -> std::path::PathBuf {
        let link = fs::read_to_string(self.slot.join(".git")).unwrap();
        link.trim().strip_prefix("gitdir: ").unwrap().into()
    }
}

/// Damages a stopped run, has the doctor repair it, and resumes without any flag.
#[track_caller]
fn resumes(kind: &str, damage: impl FnOnce(&Stopped)) {
    let env = TestEnv::new();
    env.write("repo/.gitignore", "*.log\n");
    env.commit("ignored");
    env.plan(PLAN);
    env.execute(&["--retries", "1"]).exits(1);
    let slot = fs::canonicalize(env.path("repo.lanes/r1/A/agents/eng/code")).unwrap();
    let stopped = Stopped { env, slot };
    damage(&stopped);
    let env = stopped.env;
    let fixed = env.lanewright(&["doctor", "--fix"]).exits(0).stdout;
    assert!(fixed.contains(kind), "{fixed}");
    env.lanewright(&["doctor"]).exits(0);
    fs::write(env.path("scratch/may-pass"), "").unwrap();
    env.resume(&[]).exits(0);
    assert_eq!(env.git(&["show", "main:a/eng"]), "1");
}

macro_rules! rows {
    ($($name:ident: $kind:literal, $damage:expr;)*) => {
        $(#[test] fn $name() { resumes($kind, $damage); })*
    };
}

const BRANCH: &str = "refs/heads/lane-agent/P1/A/eng";

rows! {
    removed_worktree_that_is_made_again_is_no_change: "worktree-missing", |it| fs::remove_dir_all(&it.slot).unwrap();
    worktree_that_is_moved_back_is_no_change: "worktree-moved", |it| {
        fs::rename(&it.slot, it.env.path("repo.lanes/mine")).unwrap();
    };
    worktree_that_is_registered_again_is_no_change: "worktree-forgotten", |it| fs::remove_dir_all(it.entry()).unwrap();
    index_that_is_made_again_is_no_change: "index-damaged", |it| change_middle(&it.entry().join("index"));
    branch_that_is_made_again_is_no_change: "branch-missing", |it| drop(it.env.git(&["update-ref", "-d", BRANCH]));
    worktree_that_is_put_back_on_its_branch_is_no_change: "worktree-wrong-branch", |it| {
        it.env.git_in(&it.slot, &["checkout", "--quiet", "--detach"]);
    };
    claim_that_is_written_again_is_no_change: "claim-missing", |it| {
        fs::remove_file(it.slot.with_extension("claim")).unwrap();
    };
    plan_that_is_written_again_is_no_change: "plan-missing", |it| {
        fs::remove_file(it.env.path("repo/.claude/ai-dev-kit/run-logs/r1/plan.json")).unwrap();
    };
    removed_worktree_and_branch_are_no_change: "branch-missing", |it| {
        fs::remove_dir_all(&it.slot).unwrap();
        it.env.git(&["update-ref", "-d", BRANCH]);
    };
}

/// What the user changed is still reported after a repair of something else.
#[test]
fn change_by_the_user_is_reported_after_a_repair() {
    let env = TestEnv::new();
    env.plan(PLAN);
    env.execute(&[]).exits(1);
    let slot = fs::canonicalize(env.path("repo.lanes/r1/A/agents/eng/code")).unwrap();
    fs::write(slot.join("a/eng"), "by the user\n").unwrap();
    fs::remove_file(slot.with_extension("claim")).unwrap();
    env.lanewright(&["doctor", "--fix"]).exits(0);
    env.resume(&[]).exits(5).says(&["a/eng"]);
}
