//! Where agents work, what they find there, and who may work at the same time.

use std::path::{Path, PathBuf};

use crate::state::lanewright_in;
use crate::support::TestEnv;

/// One lane with an implementation agent and a reviewer, which say where they are.
fn places(mode: &str) -> Vec<String> {
    let env = TestEnv::new();
    env.plan(&format!(
        r#"
[[lane]]
id = "L"
agent_worktrees = "{mode}"
tests = 'pwd >> "$SCRATCH/places"; test -e a.txt'
[[lane.agent]]
name = "engineer"
command = 'pwd >> "$SCRATCH/places"; test "$(pwd -P)" = "$LANEWRIGHT_WORKTREE"; echo a > a.txt'
[[lane.agent]]
name = "critic"
round = "review"
command = '''
pwd >> "$SCRATCH/places"; test -e a.txt || exit 1
printf '{{"status": "COMPLETE", "decision": "APPROVED"}}' > "$LANEWRIGHT_STATUS_FILE"
'''
"#
    ));
    env.execute(&[]).exits(0);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "a.txt"]);
    env.assert_nothing_left(&["main"]);
    env.scratch("places").lines().map(str::to_owned).collect()
}

#[test]
fn branches_have_the_prefix_that_the_run_began_with() {
    let env = TestEnv::new();
    env.write("repo/lanewright.toml", "branch_prefix = \"bot/x-\"\n");
    env.commit("settings");
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\nagent_worktrees = \"on\"\n\
         command = 'git branch --show-current > a; [ -e \"$SCRATCH/passes\" ]'\n",
    );
    env.git(&["branch", "bot"]);
    env.execute(&[]).exits(3).says(&["the branch `bot` is in the way", "git branch -m bot"]);
    env.git(&["branch", "--delete", "bot"]);
    env.execute(&["--merge", "none"]).exits(1);
    env.write("repo/lanewright.toml", "");
    env.write("scratch/passes", "");
    env.resume(&[]).exits(0);
    assert_eq!(env.file_at("bot/x-lane/P1/A", "a"), "bot/x-lane-agent/P1/A/agent");
    env.lanewright(&["doctor"]).exits(0);
}

#[test]
fn bare_repository_has_worktrees_beside_it() {
    let env = TestEnv::new();
    let plan = "phase = \"P1\"\n[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n\
                [[lane]]\nid = \"B\"\nretries = 0\ncommand = '[ -e \"$SCRATCH/passes\" ] && echo b > b.txt'\n";
    env.write("plan.toml", plan);
    env.git_at("", &["clone", "--quiet", "--bare", "repo", "shop/.bare"]);
    env.write("shop/.git", "gitdir: ./.bare\n");
    let at = |below: &str, arguments: &[&str]| lanewright_in(&env, below, arguments);
    at("shop", &["execute-phase", "../plan.toml"])
        .exits(2)
        .says(&["is a bare repository"])
        .hints("worktree add PLACE BRANCH");
    env.git_at("shop", &["worktree", "add", "--quiet", "main", "main"]);
    env.git_at("shop", &["worktree", "add", "--quiet", "-b", "other", "feature"]);
    at("shop/main", &["execute-phase", "../../plan.toml", "--run-id", "r1"]).exits(1);
    assert_eq!(env.read("shop/main/a.txt"), "a\n", "the checkout follows");
    env.write("scratch/passes", "");
    for below in ["shop", "shop/feature"] {
        assert!(at(below, &["status"]).exits(0).stdout.contains("r1"), "{below}");
    }
    // Neither another branch nor another HEAD hides the run, and its state is not removed by the way.
    env.git_at("shop/main", &["switch", "--quiet", "--detach"]);
    env.git_at("shop", &["symbolic-ref", "HEAD", "refs/heads/other"]);
    assert!(at("shop/feature", &["status"]).exits(0).stdout.contains("r1"));
    let removed = env.git_output(&env.path("shop"), &["worktree", "remove", "main"]);
    assert!(!removed.status.success() && String::from_utf8_lossy(&removed.stderr).contains("Lanewright"));
    env.git_at("shop", &["symbolic-ref", "HEAD", "refs/heads/main"]);
    env.git_at("shop/main", &["switch", "--quiet", "main"]);
    at("shop/feature", &["resume", "r1"]).exits(0);
    assert_eq!(env.read("shop/main/b.txt"), "b\n");
    assert_eq!(env.git_at("shop/main", &["status", "--porcelain"]), "");
    at("shop/main", &["doctor"]).exits(0);
    at("shop/main", &["rollback", "r1", "--lane", "B", "--yes"]).exits(0);
    assert!(!env.path("shop/main/b.txt").exists());
    at("shop/main", &["clean", "--yes"]).exits(0);
    let worktrees = env.git_at("shop", &["worktree", "list"]);
    assert_eq!(worktrees.lines().count(), 3, "{worktrees}");
}

#[test]
fn every_agent_has_a_worktree_of_its_own() {
    let places = places("on");
    assert!(places[0] != places[1], "the engineer worked in the lane's worktree: {places:?}");
}

#[test]
fn the_status_names_the_links_to_the_worktrees_by_lane() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\nretries = 0\ncommand = 'exit 1'\n[[lane]]\nid = \"B\"\ncommand = 'echo b > b.txt'\n",
    );
    env.execute(&[]).exits(1);
    let status = env.lanewright(&["status", "--format", "json"]).exits(0).json();
    let link = PathBuf::from(status["lanes"][0]["worktree"].as_str().expect("a link"));
    assert!(link.ends_with("r1/A/code") && link.is_symlink(), "{}", link.display());
    assert_eq!(
        link.canonicalize().expect("a worktree"),
        env.path(env.lanewright(&["path", "A"]).stdout.trim()).canonicalize().unwrap()
    );
    assert!(link.join(".git").exists() && status["lanes"][1]["worktree"].is_null(), "{status}");
}

/// As Go's module cache and Bazel leave them: ignored, and without write permission.
#[test]
fn directories_without_write_permission_are_removed() {
    let env = TestEnv::new();
    let command = "mkdir -p ignored/m; echo x > ignored/m/x; chmod -R a-w ignored; mkdir $LANEWRIGHT_LANE; \
                   echo x > $LANEWRIGHT_LANE/x; chmod a-w $LANEWRIGHT_LANE";
    let lane = |name: &str| format!("[[lane]]\nid = \"{name}\"\ncommand = '{command}'\n");
    env.plan(&format!("max_parallel = 1\n{}", ["A", "B", "C"].map(lane).concat()));
    let plan = env.path("plan.toml");
    env.lanewright_unprivileged(&["execute-phase", plan.to_str().expect("UTF-8"), "--run-id", "r1"]).exits(0);
    assert_eq!(env.files("main"), [".gitignore", "A/x", "B/x", "C/x", "README.md"]);
    env.assert_nothing_left(&["main"]);
}

#[test]
fn branch_in_the_way_is_named_before_an_agent_starts() {
    for taken in ["lane", "lane/P1", "lane-agent"] {
        let env = TestEnv::new();
        env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a.txt'\n");
        env.git(&["branch", taken]);
        let refused = env.execute(&[]).exits(3).hints(&format!("git branch -m {taken} NEW-NAME"));
        assert!(refused.stderr.contains(&format!("branch `{taken}` is in the way")), "{}", refused.stderr);
        env.git(&["branch", "-m", taken, "mine"]);
        env.execute(&[]).exits(0);
    }
}

#[test]
fn trash_is_deleted_by_a_process_of_its_own() {
    let env = TestEnv::new();
    env.write("repo.lanes/trash/01900000-0000-7000-8000-000000000001/src/file", "of a worktree");
    env.write("elsewhere/file", "of the user");
    std::os::unix::fs::symlink(
        env.path("elsewhere"),
        env.path("repo.lanes/trash/01900000-0000-7000-8000-000000000001/link"),
    )
    .unwrap();
    let root = env.path("repo.lanes");
    env.lanewright(&["detached", "delete-trash", root.to_str().unwrap()]).exits(0);
    assert!(!root.exists() && env.read("elsewhere/file") == "of the user");
}

#[test]
fn single_agent_of_a_round_uses_the_lane_worktree() {
    let places = places("auto");
    assert_eq!(places, [places[0].clone(), places[0].clone(), places[0].clone()]);
}

#[test]
fn agents_share_the_lanes_worktree_where_that_is_wanted() {
    let places = places("off");
    assert_eq!(places, [places[0].clone(), places[0].clone(), places[0].clone()]);
}

#[test]
fn several_agents_of_a_round_in_one_worktree_take_turns() {
    let env = TestEnv::new();
    let agent = |name: &str| {
        format!(
            "[[lane.agent]]\nname = \"{name}\"\ncommand = 'mkdir \"$SCRATCH/busy\" && echo {name} >> both.txt && rmdir \"$SCRATCH/busy\"'\n"
        )
    };
    env.plan(&format!(
        "[[lane]]\nid = \"L\"\nretries = 0\nagent_worktrees = \"off\"\n{}{}",
        agent("one"),
        agent("two")
    ));
    env.execute(&["--max-parallel", "2"]).exits(0);
    assert_eq!(env.file_at("main", "both.txt"), "one\ntwo");
}

#[test]
fn setup_files_env_and_ports_are_ready_for_agent() {
    let env = TestEnv::new();
    env.write("repo/.env", "KEY=secret\n");
    let lane = |id: &str| {
        format!(
            r#"
[[lane]]
id = "{id}"
retries = 0
copy = [".env"]
setup = ["echo set up > ready.log", "test -e .env"]
env = {{ COLOUR = "blue", LEVEL = 3 }}
command = '''
test "$(cat .env)" = KEY=secret && test -e ready.log && test "$COLOUR$LEVEL" = blue3 || exit 1
echo $LANEWRIGHT_PORT > $LANEWRIGHT_LANE.port
test "$LANEWRIGHT_RUN_ID $LANEWRIGHT_PHASE $LANEWRIGHT_AGENT $LANEWRIGHT_TASK $LANEWRIGHT_ATTEMPT $LANEWRIGHT_MAX_RETRIES" = "r1 P1 agent 1 1 0" || exit 2
test "$(git rev-parse HEAD)" = "$LANEWRIGHT_BASE_COMMIT" || exit 3
grep -q '"lane_id": "{id}"' "$LANEWRIGHT_TASK_FILE" || exit 4
'''
"#
        )
    };
    env.plan(&(lane("A") + &lane("B")));
    env.execute(&["--max-parallel", "2"]).exits(0);
    assert_eq!(env.files("main"), [".gitignore", "A.port", "B.port", "README.md"], "ignored files were committed");
    let port = |lane: &str| env.file_at("main", &format!("{lane}.port")).parse::<u16>().expect("a port");
    assert!(port("A").abs_diff(port("B")) >= 10, "the blocks of ports overlap");
}

/// Three lanes that fail when two of them run at once.
fn one_at_a_time(keys: impl Fn(&str) -> String, head: &str) {
    let env = TestEnv::new();
    let lane = |id: &str| {
        format!(
            "[[lane]]\nid = \"{id}\"\nretries = 0\n{}\ncommand = 'mkdir \"$SCRATCH/busy\" && echo x > {id}.txt && rmdir \"$SCRATCH/busy\"'\n",
            keys(id)
        )
    };
    env.plan(&format!("{head}{}{}{}", lane("A"), lane("B"), lane("C")));
    env.execute(&["--max-parallel", "3"]).exits(0);
    assert_eq!(env.events("lane_merged").len(), 3);
}

#[test]
fn lanes_that_use_a_pool_of_one_run_one_at_a_time() {
    one_at_a_time(|_| "uses = [\"heavy\"]".to_owned(), "[pools]\nheavy = 1\n");
}

#[test]
fn lanes_that_exclude_each_other_run_one_at_a_time() {
    let others = |id: &str| match id {
        "A" => "excludes = [\"B\", \"C\"]".to_owned(),
        "B" => "excludes = [\"C\"]".to_owned(),
        _ => String::new(),
    };
    one_at_a_time(others, "");
}

#[test]
fn no_more_agents_run_at_once_than_allowed() {
    one_at_a_time(|_| String::new(), "max_parallel = 3\n[pools]\nx = 1\n[defaults]\nuses = [\"x\"]\n");
    let env = TestEnv::new();
    let lane = |id: u32| {
        format!(
            "[[lane]]\nid = \"L{id}\"\nretries = 0\nallow_empty = true\ncommand = 'mkdir \"$SCRATCH/busy\" && rmdir \"$SCRATCH/busy\"'\n"
        )
    };
    env.plan(&(1..=5).map(lane).collect::<String>());
    env.execute(&["--max-parallel", "1"]).exits(0);
}

#[test]
fn parallel_lanes_with_the_same_owns_are_refused() {
    let env = TestEnv::new();
    let lane = |id: &str| format!("[[lane]]\nid = \"{id}\"\nowns = [\"src/**\"]\ncommand = 'true'\n");
    env.plan(&(lane("A") + &lane("B")));
    env.execute(&[]).exits(2).says(&["src/**", "plan.toml:"]);
    assert!(!env.path("repo/.claude").exists() && !env.path("repo.lanes").exists());
}

#[test]
fn worktrees_inside_repository_are_not_in_git_status() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\ncommand = 'git -C \"$SCRATCH/../repo\" status --porcelain > \"$SCRATCH/status\"; echo x > x.txt'\n");
    env.execute(&["--worktree-root", ".worktrees"]).exits(0);
    assert_eq!(env.scratch("status"), "");
    assert_eq!(env.files("main"), [".gitignore", "README.md", "x.txt"]);
}

/// What was moved aside, of one run in one repository.
fn set_aside(env: &TestEnv) -> Vec<PathBuf> {
    let slots = std::fs::read_dir(env.path("repo.lanes/slots")).into_iter().flatten().flatten();
    slots.map(|entry| entry.path()).filter(|path| path.to_string_lossy().contains(".aside-")).collect()
}

fn assert_nothing_prunable(env: &TestEnv) {
    let worktrees = env.git(&["worktree", "list", "--porcelain"]);
    assert!(!worktrees.contains("prunable"), "{worktrees}");
}

/// A lane whose agent's first attempt ruins its worktree; the second one works.
fn ruined_by_its_agent(mode: &str, deed: &str) -> TestEnv {
    let env = TestEnv::new();
    env.plan(&format!(
        r#"
[[lane]]
id = "L"
retries = 1
agent_worktrees = "{mode}"
tests = "test -e kept.txt"
command = '''
if [ $LANEWRIGHT_TASK = 1 ]; then echo kept > kept.txt; exit 0; fi
test -e kept.txt || exit 9
if [ $LANEWRIGHT_ATTEMPT = 1 ]; then echo precious > precious.txt; {deed}; exit 0; fi
echo x > x.txt
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

#[test]
fn ruined_worktree_fails_the_attempt_and_is_replaced() {
    let deeds = [
        ("removed", "cd /; rm -rf \"$LANEWRIGHT_WORKTREE\"; exit 0", false),
        ("removed, and failed", "cd /; rm -rf \"$LANEWRIGHT_WORKTREE\"; exit 1", false),
        ("its link removed", "rm .git", true),
        ("another repository", "rm -rf .git; git init --quiet .", true),
        ("a file", "cd /; rm -rf \"$LANEWRIGHT_WORKTREE\"; echo precious > \"$LANEWRIGHT_WORKTREE\"; exit 0", true),
    ];
    for (name, deed, leaves) in deeds {
        for mode in ["on", "off"] {
            let env = ruined_by_its_agent(mode, deed);
            env.execute(&[]).exits(0);
            assert_eq!(env.files("main"), [".gitignore", "README.md", "kept.txt", "x.txt"], "{name} {mode}");
            let failures = env.events("failure_noted");
            assert_eq!(failures.len(), 1, "{name} {mode}: {failures:?}");
            let aside = set_aside(&env);
            assert_eq!(aside.len(), usize::from(leaves), "{name} {mode}");
            let notes: Vec<String> = env.events("noted").iter().map(ToString::to_string).collect();
            for path in &aside {
                let holds = |at: &Path| std::fs::read_to_string(at).is_ok_and(|text| text == "precious\n");
                assert!(holds(path) || holds(&path.join("precious.txt")), "{name} {mode}: it was not kept");
                let path = path.to_str().expect("UTF-8");
                assert!(notes.iter().any(|note| note.contains(path)), "{name} {mode}: {notes:?}");
                let cleaned = env.lanewright(&["clean", "--yes", "--logs"]).exits(0);
                assert!(cleaned.stdout.contains(path), "{name} {mode}: {cleaned:?}");
            }
            assert_nothing_prunable(&env);
            assert_eq!(set_aside(&env), aside, "{name} {mode}: clean removed it");
        }
    }
}

#[test]
fn missing_worktree_is_opened_again() {
    let env = TestEnv::new();
    env.plan(
        r#"
[gates]
checkpoint = ["test -e one.txt"]
[[lane]]
id = "L"
retries = 0
copy = ["*.log"]
tests = ["test -e one.txt && test -e two.txt && test -e copied.log"]
[[lane.agent]]
name = "one"
command = 'echo x > one.txt; rm -rf "$SCRATCH/../repo.lanes/r1/L/code/"* "$SCRATCH/../repo.lanes/r1/L/code/.git"; echo x > "$SCRATCH/../repo.lanes/r1/L/code/stray"'
[[lane.agent]]
name = "two"
command = 'wait-for-merge one; echo x > two.txt'
"#,
    );
    env.write("repo/copied.log", "x\n");
    env.execute(&["--max-parallel", "1"]).exits(0);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "one.txt", "two.txt"]);
    let aside = set_aside(&env);
    assert!(aside.len() == 1 && aside[0].join("stray").exists(), "{aside:?}");
    assert_nothing_prunable(&env);
}

/// Another program empties or removes the worktree between its reset and the start of the next attempt, in the user's hook.
#[test]
fn emptied_worktree_is_checked_out_again() {
    let deeds = [
        ("emptied", "find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +"),
        ("removed, and the next checkout fails", "touch \"$SCRATCH/failing\"; cd ..; rm -rf \"$OLDPWD\""),
    ];
    for (name, deed) in deeds {
        for mode in ["on", "off"] {
            let env = emptied_after_its_reset(mode, deed);
            env.execute(&[]).exits(0);
            let files = [".gitattributes", ".gitignore", "README.md", "kept.txt", "x.txt"];
            assert_eq!(env.files("main"), files, "{name} {mode}");
            assert!(!env.path("scratch/ready").exists() && !env.path("scratch/failing").exists(), "{name} {mode}");
            let notes: Vec<String> = env.events("noted").iter().map(ToString::to_string).collect();
            assert!(notes.iter().any(|note| note.contains("again")), "{name} {mode}: {notes:?}");
        }
    }
}

/// A lane whose first attempt fails, and a hook that does `deed` in the worktree once it was reset.
fn emptied_after_its_reset(mode: &str, deed: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("repo/.gitattributes", "kept.txt filter=failing\n");
    env.write("repo/kept.txt", "kept\n");
    env.git(&["add", "."]);
    env.git(&["commit", "--quiet", "-m", "files"]);
    let smudge = "if [ -e \"$SCRATCH/failing\" ]; then rm \"$SCRATCH/failing\"; exit 1; fi; cat";
    for (name, value) in [("required", "true"), ("clean", "cat"), ("smudge", smudge)] {
        env.git(&["config", &format!("filter.failing.{name}"), value]);
    }
    let hook = env.path("repo/.git/hooks/post-checkout");
    let script = format!("#!/bin/sh\nif [ -e \"$SCRATCH/ready\" ]; then rm \"$SCRATCH/ready\"; {deed}; fi\n");
    env.write("repo/.git/hooks/post-checkout", script);
    std::fs::set_permissions(hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("permissions");
    let command = "if [ $LANEWRIGHT_ATTEMPT = 1 ]; then touch \"$SCRATCH/ready\" y.txt; exit 9; fi; echo x > x.txt";
    env.plan(&format!(
        "[[lane]]\nid = \"L\"\nretries = 1\nresume = \"fresh\"\nagent_worktrees = \"{mode}\"\ncommand = '''\n{command}\n'''\n"
    ));
    env
}

#[test]
fn worktree_without_checkout_is_no_manual_change() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\nretries = 0\ncommand = 'echo x > x.txt; test -e \"$SCRATCH/ready\"'\n");
    env.execute(&[]).exits(1);
    let slot = std::fs::canonicalize(env.path("repo.lanes/r1/L/code")).expect("the lane's worktree");
    let (slot, claim) = (slot.to_str().expect("UTF-8"), slot.with_extension("claim"));
    env.git(&["worktree", "remove", "--force", slot]);
    env.git(&["worktree", "add", "--quiet", "--detach", "--no-checkout", slot, "main"]);
    std::fs::remove_file(claim).expect("the claim");
    env.write("scratch/ready", "");
    env.resume(&[]).exits(0);
    assert_eq!(env.files("main"), [".gitignore", "README.md", "x.txt"]);
}

#[test]
fn a_rollback_names_what_is_in_the_place_of_a_worktree() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"L\"\nretries = 0\ntests = \"false\"\ncommand = 'echo x > x.txt'\n");
    env.execute(&[]).exits(1);
    let slot = std::fs::canonicalize(env.path("repo.lanes/r1/L/code")).expect("the lane's worktree");
    std::fs::remove_dir_all(&slot).expect("a removal");
    std::fs::create_dir(&slot).expect("a directory");
    std::fs::write(slot.join("precious.txt"), "precious\n").expect("a file");
    let ended = env.lanewright(&["rollback", "r1", "--yes"]).exits(0);
    let aside = set_aside(&env);
    assert_eq!(std::fs::read_to_string(aside[0].join("precious.txt")).expect("a file"), "precious\n");
    assert!(ended.stdout.contains(aside[0].to_str().expect("UTF-8")), "{ended:?}");
    assert_eq!(env.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
}

#[test]
fn snapshot_of_lost_worktree_outlives_the_merge() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"L\"\nretries = 0\ncommand = '''\n\
         [ -e \"$SCRATCH/fixed\" ] && { echo a > a.txt; exit 0; }\necho b > b.txt; exit 1\n'''\n",
    );
    env.execute(&[]).exits(1);
    let kept = env.events("snapshot_taken")[0]["reference"].as_str().expect("a ref").to_owned();
    let opened = env.events("worktree_opened");
    let place = opened.last().expect("a worktree");
    std::fs::remove_dir_all(place["worktree"]["path"].as_str().expect("a path")).expect("removed");
    env.write("scratch/fixed", "");
    env.resume(&[]).exits(0);
    assert!(env.holds("main", "a.txt"));
    assert_eq!(env.file_at(&kept, "b.txt"), "b");
}

#[test]
fn files_of_another_user_stop_no_later_lane() {
    let env = TestEnv::new();
    env.plan(
        "[[lane]]\nid = \"A\"\ncommand = 'echo build/ >> .gitignore; mkdir build; touch build/x; chown -R 4711 build; true'\n\
         [[lane]]\nid = \"B\"\ndepends_on = [\"A\"]\ncommand = 'test ! -e build && echo b > b.txt'\n",
    );
    let plan = env.path("plan.toml");
    let ended = env.lanewright_unprivileged(&["execute-phase", plan.to_str().expect("UTF-8")]).exits(0);
    let kept = env.path("repo.lanes/trash");
    // Only root can give a file to another user.
    if kept.exists() {
        assert!(ended.stderr.contains("that cannot be deleted: Permission denied"), "{}", ended.stderr);
        env.lanewright_unprivileged(&["clean", "--yes"]);
        assert!(kept.exists());
        env.lanewright(&["clean", "--yes"]);
    }
    assert!(!kept.exists());
}

/// As when the process that deletes it at the end of a run dies.
#[test]
fn trash_that_a_run_left_is_cleaned() {
    let env = TestEnv::new();
    env.plan("[[lane]]\nid = \"A\"\ncommand = 'echo a > a'\n");
    env.execute(&[]).exits(0);
    env.assert_nothing_left(&["main"]);
    let left = "repo.lanes/trash/01900000-0000-7000-8000-000000000001";
    env.write(&format!("{left}/file"), "left\n");
    env.write("repo.lanes/trash/photos/1.jpg", "of the user\n");
    let found = env.lanewright(&["doctor"]).exits(0).stdout;
    assert!(found.contains(left) && found.contains("lanewright clean"), "{found}");
    env.lanewright(&["clean"]).exits(0);
    assert!(!env.path(left).exists() && env.path("repo.lanes/trash/photos/1.jpg").exists());
}
