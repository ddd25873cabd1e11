use std::fs;

use lanewright_git::{
    GitError, Repository, delete_branch_if_merged, move_branch, publish, remove_dead_reference_locks,
};

use crate::support::*;

pinned_tests! {
    fn discover_from_subdirectory_and_linked_worktree() {
        let world = World::new();
        let linked = world.main.with_file_name("linked");
        git(&world.main, &["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
        for (from, branch) in [(world.main.join("src"), "main"), (linked, "side")] {
            let repository = Repository::discover(&from).unwrap();
            assert_eq!(repository.main_worktree(), world.main);
            assert_eq!(repository.common_dir(), world.main.join(".git"));
            assert_eq!(repository.current_branch().unwrap().as_deref(), Some(branch));
        }
        let inside = Repository::discover(&world.main.join(".git/refs")).unwrap();
        assert_eq!(inside.main_worktree(), world.main);
    }

    fn discover_errors_distinguish_unusable_repositories() {
        let world = World::new();
        let at = |name: &str| {
            let path = world.main.with_file_name(name);
            fs::create_dir(&path).unwrap();
            path
        };
        let nowhere = at("nowhere");
        assert!(matches!(Repository::discover(&nowhere), Err(GitError::NotARepository { from }) if from == nowhere));
        let bare = at("bare.git");
        git(&bare, &["init", "-q", "--bare"]);
        assert!(matches!(Repository::discover(&bare), Err(GitError::Bare { path }) if path == bare));
        let unborn = at("unborn");
        git(&unborn, &["init", "-q"]);
        assert!(matches!(Repository::discover(&unborn), Err(GitError::UnbornHead { path }) if path == unborn));
        assert_eq!(Repository::locate(&unborn).unwrap().main_worktree(), unborn);
        git(&world.main, &["checkout", "-q", "--detach"]);
        assert_eq!(world.repository().current_branch().unwrap(), None);
    }

    fn discover_with_separate_git_directory() {
        let world = World::new();
        let (files, store, linked) =
            (world.main.with_file_name("files"), world.main.with_file_name("store"), world.main.with_file_name("linked"));
        fs::create_dir(&files).unwrap();
        git(&files, &["init", "-q", "--separate-git-dir", store.to_str().unwrap()]);
        commit(&files, "first");
        assert_eq!(Repository::discover(&files).unwrap().main_worktree(), files);
        git(&files, &["worktree", "add", "-q", linked.to_str().unwrap()]);
        assert!(matches!(Repository::discover(&linked), Err(GitError::NoMainWorktree { common }) if common == store));
    }

    fn sha256_repository_is_supported() {
        let world = World::with(&["--object-format=sha256"]);
        let (repository, base) = (world.repository(), world.head());
        assert_eq!(base.as_str().len(), 64);
        let pool = world.pool(2);
        let slot = pool.open(&holder("A", None), &fresh("lane/P1/A", &base)).unwrap();
        write(&slot.path.join("new"), "x");
        let request = lanewright_git::CommitRequest {
            worktree: &slot.path, branch: &slot.branch, message: "work", trailers: &[], since: &base,
        };
        let head = lanewright_git::commit_all(&repository, &request).unwrap().head;
        assert_eq!(repository.changed_paths(&base, &head).unwrap(), ["new"]);
        assert!(repository.is_ancestor(&base, &head).unwrap() && !repository.is_ancestor(&head, &base).unwrap());
        let other = lanewright_git::publish(&repository, "main", &base, &head).unwrap();
        assert_eq!(other, lanewright_git::Publication::Published);
        assert_eq!(repository.branch_commit("main").unwrap(), Some(head.clone()));
        pool.release(&holder("A", None), &[head]).unwrap();
        assert_eq!(pool.empty(&run_id("r1"), None).unwrap(), []);
    }

    fn ancestry_of_missing_commit_is_an_error() {
        let world = World::new();
        let (repository, first) = (world.repository(), world.head());
        fs::rename(world.main.join("a.txt"), world.main.join("b.txt")).unwrap();
        let second = commit(&world.main, "rename");
        assert_eq!(repository.changed_paths(&first, &second).unwrap(), ["a.txt", "b.txt"]);
        assert!(repository.is_ancestor(&first, &first).unwrap());
        assert!(!repository.is_ancestor(&second, &first).unwrap());
        let absent = lanewright_model::CommitId::new(&"1".repeat(40)).unwrap();
        assert!(repository.is_ancestor(&first, &absent).is_err());
        assert_eq!(repository.branch_commit("absent").unwrap(), None);
        assert_eq!(repository.branch_commit("main").unwrap(), Some(second));
    }

    fn exclude_patterns_are_added_once() {
        let world = World::new();
        let exclude = world.main.join(".git/info/exclude");
        write(&exclude, "mine\n# no newline at the end");
        for _ in 0..2 {
            world.repository().ensure_excluded(&["/.claude/", "mine"]).unwrap();
        }
        assert_eq!(fs::read_to_string(&exclude).unwrap(), "mine\n# no newline at the end\n/.claude/\n");
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&exclude).unwrap().permissions().mode() & 0o777, 0o644);
    }

    fn where_checked_out_finds_branch_during_rebase() {
        let world = World::new();
        let base = world.head();
        git(&world.main, &["branch", "side"]);
        assert_eq!(world.repository().where_checked_out("side").unwrap(), None);
        git(&world.main, &["checkout", "-q", "side"]);
        write(&world.main.join("a.txt"), "side\n");
        commit(&world.main, "side");
        git(&world.main, &["checkout", "-q", "-b", "other", base.as_str()]);
        write(&world.main.join("a.txt"), "other\n");
        commit(&world.main, "other");
        assert!(!git_output(&world.main, &["rebase", "side"]).status.success());
        assert_eq!(world.repository().where_checked_out("other").unwrap(), Some(world.main.clone()));
        assert_eq!(world.repository().where_checked_out("side").unwrap(), None);
    }

    fn branches_change_by_compare_and_set() {
        let world = World::new();
        let (repository, first) = (world.repository(), world.head());
        git(&world.main, &["branch", "lane/P1/A"]);
        let second = commit(&world.main, "second");
        let third = commit(&world.main, "third");
        for _ in 0..2 {
            move_branch(&repository, "lane/P1/A", &first, &second).unwrap();
        }
        let late = move_branch(&repository, "lane/P1/A", &first, &third).unwrap_err();
        assert!(matches!(late, GitError::ReferenceMoved { found: Some(found), .. } if found == second));
        let delete = |into| delete_branch_if_merged(&repository, "lane/P1/A", std::slice::from_ref(into));
        assert!(matches!(delete(&first), Err(GitError::Unmerged { .. })));
        let main = delete_branch_if_merged(&repository, "main", std::slice::from_ref(&third));
        assert!(matches!(main, Err(GitError::BranchInTheWay { place: Some(_), .. })));
        for _ in 0..2 {
            delete(&third).unwrap();
        }
        assert_eq!(world.branches(), ["main"]);
    }

    fn unfinished_files_of_dead_process_are_removed() {
        let world = World::new();
        let halves = ["lanewright", "info"].map(|directory| world.main.join(".git").join(directory).join(".half.01900000000070008000000000000001.tmp"));
        halves.iter().for_each(|half| write(half, "half"));
        let repository = world.repository();
        repository.ensure_excluded(&["/.claude/"]).unwrap();
        git(&world.main, &["branch", "lane/P1/A"]);
        publish(&repository, "lane/P1/A", &world.head(), &commit(&world.main, "second")).unwrap();
        assert!(!halves.iter().any(|half| half.exists()));
    }

    fn dead_branch_lock_is_removed_others_stay() {
        let world = World::new();
        let lock = |name: &str| world.main.join(".git/refs").join(format!("{name}.lock"));
        let dead = ["heads/lane/P1/A", "lanewright/checkpoint/P1-A/1", "tags/checkpoint/P1-A/2"];
        let alive = ["heads/lane/P1/B", "heads/lane-agent/P1/A/e", "heads/lanes", "tags/v1"];
        dead.iter().chain(&alive).for_each(|name| write(&lock(name), ""));
        remove_dead_reference_locks(&world.repository()).unwrap();
        delete_branch_if_merged(&world.repository(), "lane/P1/A", &[]).unwrap();
        assert_eq!(dead.iter().filter(|name| lock(name).exists()).collect::<Vec<_>>(), [&""; 0]);
        assert_eq!(alive.iter().filter(|name| !lock(name).exists()).collect::<Vec<_>>(), [&""; 0]);
    }

}

#[test]
fn git_variables_of_hooks_are_ignored() {
    fn body() {
        let world = World::new();
        let pool = world.pool(1);
        let slot = pool.open(&holder("A", None), &fresh("lane/P1/A", &world.head())).unwrap();
        assert_eq!(status(&slot.path), "");
        assert_eq!(contents(&slot.path), contents(&world.main));
    }
    let elsewhere =
        [("GIT_DIR", "/nonexistent/.git"), ("GIT_INDEX_FILE", "/nonexistent/index"), ("GIT_WORK_TREE", "/")];
    pinned(concat!(module_path!(), "::git_variables_of_hooks_are_ignored"), &elsewhere, body);
}

/// The author and the committer of a commit by Lanewright, where git has this configuration.
fn committed_with(config: &str) -> String {
    let settings = std::env::var_os("GIT_CONFIG_GLOBAL").unwrap();
    fs::write(&settings, "[user]\nname = Tester\nemail = tester@localhost\n[init]\ndefaultBranch = main\n").unwrap();
    let world = World::new();
    fs::write(&settings, config).unwrap();
    write(&world.main.join("a.txt"), "b\n");
    let base = world.head();
    let request = lanewright_git::CommitRequest {
        worktree: &world.main,
        branch: "main",
        message: "work",
        trailers: &[("Run", "r1")],
        since: &base,
    };
    lanewright_git::commit_all(&world.repository(), &request).unwrap();
    let shown = git(&world.main, &["show", "-s", "--format=%an <%ae> %cn <%ce>%n%(trailers)"]);
    let roles: Vec<&str> =
        lanewright_git::roles_without_identity(&world.repository()).into_iter().map(|role| role.word()).collect();
    format!("{shown} {}", roles.join(" "))
}

#[test]
fn commit_without_identity_uses_lanewright() {
    fn body() {
        let disallowed = "[user]\nname = <>\nemail = a@x\n";
        for config in ["", "[user]\nname = \"\"\nemail = \"\"\n", "[user]\nname = \"\"\nemail = a@x\n", disallowed] {
            let shown = committed_with(config);
            let lanewright = "Lanewright <lanewright@localhost> Lanewright <lanewright@localhost>\nRun: r1";
            assert_eq!(shown, format!("{lanewright} author committer"), "{config}");
        }
        let committer = committed_with("[committer]\nname = C\nemail = c@x\n");
        assert_eq!(committer, "Lanewright <lanewright@localhost> C <c@x>\nRun: r1 author");
    }
    pinned(concat!(module_path!(), "::commit_without_identity_uses_lanewright"), &[], body);
}

#[test]
fn commit_keeps_the_identity_of_variables() {
    fn body() {
        let shown = committed_with("");
        assert_eq!(shown, "A <a@x> Lanewright <e@x>\nRun: r1 committer");
    }
    let variables = [("GIT_AUTHOR_NAME", "A"), ("GIT_AUTHOR_EMAIL", "a@x"), ("EMAIL", "e@x")];
    pinned(concat!(module_path!(), "::commit_keeps_the_identity_of_variables"), &variables, body);
}
