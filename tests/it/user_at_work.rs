//! A user at work in the same repository while a run publishes: nothing of theirs is lost, merged work stays in the
//! branch, and `git status` shows nothing but what they changed.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{TestEnv, wait_until};

/// Runs the command line that follows in the user's checkout while the agent is at work.
const IN_CHECKOUT: &str = "#!/bin/sh
cd \"$SCRATCH/../repo\" && exec sh -c \"$1\" >\"$SCRATCH/act\" 2>&1
";

/// A repository with three commits on `main`, each of which adds a file.
fn env_with_history() -> TestEnv {
    let env = TestEnv::new().trusting();
    for name in ["two", "three"] {
        env.write(&format!("repo/{name}.txt"), format!("{name}\n"));
        env.commit(name);
    }
    env.program("in-checkout", IN_CHECKOUT);
    env
}

/// One lane that adds `a.txt` after the user has done `act` in the checkout.
fn plan_with(env: &TestEnv, act: &str) {
    env.write("scratch/act.sh", act);
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'in-checkout \"$(cat \"$SCRATCH/act.sh\")\"; echo a > a.txt'\n");
}

fn reason(env: &TestEnv) -> String {
    let blocked = env.events("lane_blocked");
    blocked.last().expect("a blocked lane")["reason"].as_str().expect("a reason").to_owned()
}

/// `git status`, without the files that no test cares about.
fn status(env: &TestEnv) -> String {
    env.git(&["--no-optional-locks", "status", "--porcelain"])
}

/// Asserts that the run is over, its work is in `main` and in the checkout, and nothing else differs.
#[track_caller]
fn assert_published(env: &TestEnv) {
    assert!(env.holds("main", "a.txt"), "{:?}", env.files("main"));
    assert_eq!(env.read("repo/a.txt"), "a\n");
    assert_eq!(status(env), "");
    assert_eq!(env.events("job_planned").len(), 1, "the work was done again");
    env.git(&["fsck", "--no-dangling"]);
}

/// The lane is blocked by what the user did, with `words`, and published once the user has done `undo`.
fn blocks_until(act: &str, words: &[&str], undo: &[&[&str]]) -> TestEnv {
    let env = env_with_history();
    plan_with(&env, act);
    let main = env.git(&["rev-parse", "main"]);
    env.execute(&[]).exits(3);
    let reason = reason(&env);
    assert!(words.iter().all(|word| reason.contains(word)), "{reason}");
    assert_eq!(env.git(&["rev-parse", "main"]), main, "the branch moved");
    assert_eq!(env.events("merge_superseded").len(), 0, "staged again without progress");
    for command in undo {
        env.git(command);
    }
    env.resume(&[]).exits(0);
    env
}

/// The lane is published beside what the user did.
fn is_published_beside(act: &str) -> TestEnv {
    let env = env_with_history();
    plan_with(&env, act);
    env.execute(&[]).exits(0);
    env
}

/// Three files on two commits of the user's, which no test may lose.
#[track_caller]
fn assert_history(env: &TestEnv, branch: &str) {
    for name in ["two", "three"] {
        assert_eq!(env.file_at(branch, &format!("{name}.txt")), name);
    }
}

const STOP_REBASE: &str = "GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase --quiet --interactive HEAD~2";

#[test]
fn a_stopped_rebase_blocks_until_it_is_aborted() {
    let env = blocks_until(STOP_REBASE, &["a rebase", "finish or abort it"], &[&["rebase", "--abort"]]);
    assert_history(&env, "main");
    assert_published(&env);
}

#[test]
fn a_stopped_rebase_blocks_until_it_is_finished() {
    let finish: &[&str] = &["-c", "core.editor=true", "rebase", "--continue"];
    let env = blocks_until(STOP_REBASE, &["a rebase", "finish or abort it"], &[finish]);
    assert_history(&env, "main");
    assert_published(&env);
}

#[test]
fn stopped_patches_block_until_they_are_aborted() {
    let act = "git format-patch --quiet -1 --stdout >../patch; git am --quiet ../patch";
    let env = blocks_until(act, &["an apply of patches", "finish or abort it"], &[&["am", "--abort"]]);
    assert_history(&env, "main");
    assert_published(&env);
}

#[test]
fn a_bisect_blocks_on_the_branch_and_not_away_from_it() {
    let reset: &[&str] = &["bisect", "reset", "--quiet"];
    let env = blocks_until("git bisect start", &["a bisect"], &[&reset[..2]]);
    assert_published(&env);
    let env = is_published_beside("git bisect start HEAD HEAD~2");
    env.git(&reset[..2]);
    assert_published(&env);
}

/// A side branch that conflicts with `main` in `three.txt`.
const SIDE: &str = "git switch --quiet --create side HEAD~1; echo side >three.txt; git add .; git commit --quiet -m side; git switch --quiet main; ";

#[test]
fn a_merge_in_progress_blocks() {
    let act = format!("{SIDE} git merge side");
    let env = blocks_until(&act, &["a merge", "finish or abort it"], &[&["merge", "--abort"]]);
    assert_history(&env, "main");
    assert_published(&env);
}

#[test]
fn a_cherry_pick_in_progress_blocks() {
    let act = format!("{SIDE} git cherry-pick side");
    let env = blocks_until(&act, &["a cherry-pick", "finish or abort it"], &[&["cherry-pick", "--abort"]]);
    assert_published(&env);
}

#[test]
fn user_edit_blocks_only_lanes_that_change_the_file() {
    let env = env_with_history();
    plan_with(&env, "echo mine >two.txt");
    env.execute(&[]).exits(0);
    assert_eq!((env.read("repo/two.txt").as_str(), status(&env).as_str()), ("mine\n", " M two.txt"));
    assert_eq!(env.read("repo/a.txt"), "a\n");

    let env = env_with_history();
    plan_with(&env, "echo mine >two.txt");
    env.plan(&env.read("plan.toml").replace("phase = \"P1\"\n", "").replace("echo a >", "echo a | tee two.txt >"));
    env.execute(&[]).exits(3);
    let told = reason(&env);
    assert!(told.contains("two.txt") && told.contains("commit or stash"), "{told}");
    assert_eq!(env.read("repo/two.txt"), "mine\n");
    env.git(&["stash", "--quiet"]);
    env.resume(&[]).exits(0);
    assert_published(&env);
    assert_eq!((env.read("repo/two.txt").as_str(), env.file_at("stash@{0}", "two.txt").as_str()), ("a\n", "mine"));
}

#[test]
fn untracked_file_in_merge_path_blocks_and_is_kept() {
    let act = "echo mine >a.txt";
    let env = blocks_until(act, &["a.txt", "move what is in the way"], &[&["stash", "--quiet", "--include-untracked"]]);
    assert_published(&env);
    assert_eq!(env.file_at("stash@{0}^3", "a.txt"), "mine");
}

#[test]
fn a_lock_on_the_index_blocks_and_stays() {
    let env = env_with_history();
    plan_with(&env, "touch .git/index.lock");
    env.execute(&[]).exits(3);
    assert!(reason(&env).contains("index.lock"), "{}", reason(&env));
    std::fs::remove_file(env.path("repo/.git/index.lock")).expect("the user's lock");
    env.resume(&[]).exits(0);
    assert_published(&env);
}

#[test]
fn locked_branch_blocks_and_keeps_the_checkout() {
    let env = env_with_history();
    plan_with(&env, "touch .git/refs/heads/main.lock");
    env.execute(&[]).exits(3);
    assert!(reason(&env).contains("main.lock"), "{}", reason(&env));
    assert_eq!(status(&env), "");
    assert!(!env.path("repo/.git/index.lock").exists());
    std::fs::remove_file(env.path("repo/.git/refs/heads/main.lock")).expect("the user's lock");
    env.resume(&[]).exits(0);
    assert_published(&env);
}

#[test]
fn a_stash_stays_a_stash() {
    let env = is_published_beside("echo mine >two.txt; git stash --quiet");
    assert_published(&env);
    env.git(&["stash", "pop", "--quiet"]);
    assert_eq!(env.read("repo/two.txt"), "mine\n");
}

#[test]
fn an_amended_tip_and_a_finished_rebase_are_merged_with() {
    let reorder = "GIT_SEQUENCE_EDITOR='sed -i 1{h;d};2G' git rebase --quiet --interactive HEAD~2";
    for act in ["git commit --quiet --amend --message amended", reorder, "git reset --quiet --hard HEAD"] {
        let env = is_published_beside(act);
        assert_history(&env, "main");
        assert_published(&env);
    }
}

#[test]
fn an_amended_merge_is_not_taken_for_lost_work() {
    let env = env_with_history();
    env.plan(
        "[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n[[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\nretries = 0\n\
         command = 'in-checkout \"git commit --quiet --amend --message mine\"; echo b > b.txt; test -e \"$SCRATCH/go\"'\n",
    );
    env.execute(&[]).exits(1);
    env.write("scratch/go", "");
    let resumed = env.resume(&[]).exits(0);
    assert!(!resumed.stderr.contains("no longer has"), "{}", resumed.stderr);
    assert!(env.holds("main", "a.txt") && env.holds("main", "b.txt"));
    assert_eq!(status(&env), "");
}

#[test]
fn commit_between_staging_and_publication_is_merged() {
    let env = env_with_history();
    plan_with(&env, "true");
    let plan = env.path("plan.toml");
    let run = ["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1"];
    env.lanewright_with(&run, |command| command.env("LANEWRIGHT_CRASH_POINT", "before_publish_merge:1")).exits(137);
    env.write("repo/mine.txt", "mine\n");
    env.commit("mine");
    env.resume(&[]).exits(0);
    assert_published(&env);
    assert_eq!(env.file_at("main", "mine.txt"), "mine");
}

#[test]
fn the_branch_in_a_second_worktree_is_moved_along_there() {
    let env = env_with_history();
    env.git(&["switch", "--quiet", "--create", "desk"]);
    env.git(&["worktree", "add", "--quiet", "../second", "main"]);
    env.plan("base_branch = \"main\"\n[[lane]]\nid = \"A\"\ncommand = 'echo mine > \"$SCRATCH/../second/two.txt\"; echo a > a.txt; echo a > two.txt'\n");
    env.execute(&[]).exits(3);
    assert!(reason(&env).contains("second"), "{}", reason(&env));
    env.git_at("second", &["checkout", "--quiet", "two.txt"]);
    env.resume(&[]).exits(0);
    assert_eq!(env.read("second/a.txt"), "a\n");
    assert_eq!(env.git_at("second", &["status", "--porcelain"]), "");
    assert_eq!((env.git(&["symbolic-ref", "--short", "HEAD"]).as_str(), status(&env).as_str()), ("desk", ""));
}

/// Holds a git of the user's that has written index and files and has not moved the head yet.
const POST_INDEX_CHANGE: &str = "#!/bin/sh
# Lanewright's worktrees have a file of that name.
[ -d .git ] && rm \"$SCRATCH/hold\" 2>/dev/null || exit 0
touch \"$SCRATCH/switching\"
wait-for release
";

/// A user away from `main`, who switches to it: A is published between the moment at which `git switch` looks the branch
/// up and the one at which it moves the head. B waits for `more`.
struct SwitchDuringPublication {
    env: TestEnv,
    switch: Child,
}

impl SwitchDuringPublication {
    /// `away` leads from `main` to where the user is before that; A also does `command`.
    fn begin(env: &TestEnv, away: &[&str], command: &str) {
        env.git(away);
        env.write("repo/.git/hooks/post-index-change", POST_INDEX_CHANGE);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(env.path("repo/.git/hooks/post-index-change"), mode).expect("an executable hook");
        env.plan(&format!(
            "base_branch = \"main\"\n[[lane]]\nid = \"A\"\ncommand = 'touch \"$SCRATCH/began\"; wait-for go; echo a > a.txt; {command}'\n\
             [[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\ncommand = 'touch \"$SCRATCH/b-began\"; wait-for more; echo b > b.txt'\n"
        ));
    }

    fn held(env: TestEnv) -> Self {
        wait_until("A", || env.path("scratch/began").exists());
        env.write("scratch/hold", "");
        let mut switch = Command::new("git");
        env.pin(&mut switch).args(["switch", "--quiet", "main"]).stdout(Stdio::null()).stderr(Stdio::null());
        let switch = switch.spawn().expect("git");
        wait_until("the switch", || env.path("scratch/switching").exists());
        env.write("scratch/go", "");
        wait_until("B", || env.path("scratch/b-began").exists());
        wait_until("A's end", || !env.events("lane_cleaned").is_empty());
        // Checkouts are looked at for 0.2 s after a publication, and nothing tells when that is over.
        let cleaned = Instant::now();
        wait_until("the looks at checkouts", || cleaned.elapsed() > Duration::from_secs(1));
        Self { env, switch }
    }

    /// The head moves. The checkout is behind `main` now: a commit would revert A.
    fn end(mut self) -> TestEnv {
        self.env.write("scratch/release", "");
        assert!(self.switch.wait().expect("its end").success());
        assert_eq!(self.env.git(&["symbolic-ref", "--short", "HEAD"]), "main");
        self.env
    }
}

#[test]
fn switch_during_publication_syncs_at_the_next_one() {
    for away in [&["switch", "--quiet", "--create", "desk", "HEAD~1"][..], &["switch", "--quiet", "--detach"]] {
        let env = env_with_history();
        SwitchDuringPublication::begin(&env, away, "true");
        let run = env.start(&[]);
        let env = SwitchDuringPublication::held(env).end();
        assert_eq!(status(&env), "D  a.txt", "the moment was missed");
        env.write("scratch/more", "");
        run.wait().exits(0);
        assert!(env.holds("main", "a.txt") && env.holds("main", "b.txt"));
        assert_eq!((env.read("repo/a.txt").as_str(), env.read("repo/b.txt").as_str()), ("a\n", "b\n"));
        assert_eq!(status(&env), "");
    }
}

#[test]
fn switch_during_last_publication_syncs_at_resume() {
    let env = env_with_history();
    SwitchDuringPublication::begin(&env, &["switch", "--quiet", "--create", "desk"], "true");
    env.write("scratch/more", "");
    let run = env.start(&[]);
    let held = SwitchDuringPublication::held(env);
    run.wait().exits(0);
    let env = held.end();
    assert!(status(&env).contains("D  a.txt"), "the moment was missed");
    env.resume(&[]).exits(7);
    assert_eq!(status(&env), "");
    assert_eq!((env.read("repo/a.txt").as_str(), env.read("repo/b.txt").as_str()), ("a\n", "b\n"));
}

#[test]
fn edit_in_a_stale_checkout_is_never_advised_to_commit() {
    let env = env_with_history();
    env.write("repo/both.txt", "first\n\n\n\n\n\nlast\n");
    env.commit("both");
    SwitchDuringPublication::begin(&env, &["switch", "--quiet", "--create", "desk"], "sed -i s/first/lane/ both.txt");
    env.write("repo/both.txt", "first\n\n\n\n\n\nmine\n");
    let run = env.start(&[]);
    let env = SwitchDuringPublication::held(env).end();
    env.write("scratch/more", "");
    run.wait().exits(3);
    let reason = reason(&env);
    assert!(reason.contains("both.txt") && reason.contains("do not commit"), "{reason}");
    assert!(!reason.contains("a.txt") && !reason.contains("commit or stash"), "{reason}");
    // The advice, as it is printed.
    let advice = reason.split('`').nth(1).expect("a command").to_owned();
    let mut shell = Command::new("sh");
    let done = env.pin(&mut shell).args(["-c", &advice]).output().expect("sh");
    assert!(done.status.success(), "{advice}: {}", String::from_utf8_lossy(&done.stderr));
    assert_eq!((env.read("repo/both.txt").as_str(), status(&env).as_str()), ("lane\n\n\n\n\n\nmine\n", " M both.txt"));
    env.commit("mine");
    env.resume(&[]).exits(0);
    assert_eq!(env.file_at("main", "both.txt"), "lane\n\n\n\n\n\nmine");
    assert!(env.holds("main", "a.txt") && env.holds("main", "b.txt"));
    assert_eq!(status(&env), "");
}

/// A has been merged and B is at work when the run dies; then the user does `act`.
fn dead_after_a(act: &[&[&str]]) -> TestEnv {
    let env = env_with_history();
    env.plan(
        "[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n[[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\n\
         command = 'touch \"$SCRATCH/began\"; wait-for more; echo b > b.txt'\n",
    );
    let run = env.start(&[]);
    wait_until("B", || env.path("scratch/began").exists());
    env.lanewright(&["stop", "r1"]).exits(0);
    run.wait().exits(143);
    for command in act {
        env.git(command);
    }
    env.write("scratch/more", "");
    env
}

#[test]
fn resume_reports_merged_work_that_was_removed() {
    let acts: [&[&[&str]]; 2] = [
        &[&["rm", "--quiet", "a.txt"], &["commit", "--quiet", "--message", "what git status showed"]],
        &[&["reset", "--quiet", "--hard", "HEAD~1"]],
    ];
    for act in acts {
        let env = dead_after_a(act);
        let refused = env.resume(&[]).exits(5);
        let said = refused.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("no longer has the work of A"), "{said}");
        let (_, restore) = said.split_once("git cherry-pick -m 1 ").expect("how to restore it");
        let merge = restore.split(' ').next().expect("a commit");
        env.git(&["cherry-pick", "-m", "1", merge]);
        env.resume(&[]).exits(0);
        assert!(env.holds("main", "a.txt") && env.holds("main", "b.txt"));
        assert_eq!(status(&env), "");
    }
}

#[test]
fn resume_continues_without_removed_work_on_request() {
    let env = dead_after_a(&[&["revert", "--no-edit", "-m", "1", "HEAD"]]);
    env.resume(&[]).exits(5);
    env.resume(&["--on-conflict", "override"]).exits(0);
    assert!(!env.holds("main", "a.txt") && env.holds("main", "b.txt"));
    let noted = env.events("noted");
    assert!(noted.iter().any(|noted| noted["message"].as_str().is_some_and(|it| it.contains("work of A"))));
}
