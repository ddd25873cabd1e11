//! Committing what an agent left in its worktree.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use lanewright_git::{GitError, adopt_head, present_tree, uncommitted_paths};
use lanewright_model::CommitId;

use crate::support::*;

pinned_tests! {
    fn commit_takes_files_of_any_name_once() {
        let world = World::new();
        let slot = lane(&world);
        let hook = world.main.join(".git/hooks/pre-commit");
        write(&hook, "#!/bin/sh\nexit 1\n");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        git(&world.main, &["config", "core.safecrlf", "true"]);
        git(&world.main, &["config", "core.autocrlf", "input"]);
        let names = ["-dash", "new\nline", "ünï", "with space", ":(top)magic", "mixed"];
        names.iter().for_each(|name| write(&slot.path.join(name), "one\r\ntwo\n"));
        fs::remove_file(slot.path.join("a.txt")).unwrap();
        write(&slot.path.join("x.log"), "ignored");
        let before = world.users_state();
        let first = commit_in(&world, &slot).unwrap();
        assert_eq!(commit_in(&world, &slot).unwrap(), first);
        assert_eq!(status(&slot.path), "");
        assert_eq!(world.repository().changed_paths(&slot.head, &first.head).unwrap().len(), names.len() + 1);
        assert_eq!(git(&slot.path, &["show", "-s", "--format=%s|%(trailers:separator=%x2C)"]), "work|Run: r1,Lane: A");
        assert_eq!(world.users_state(), before);
    }

    fn files_that_only_new_rules_change_are_no_work() {
        let world = World::new();
        for name in ["one.txt", "two.txt", "three.txt"] {
            write(&world.main.join(name), "x\r\ny\r\n");
        }
        commit(&world.main, "with carriage returns");
        write(&world.main.join(".gitattributes"), "*.txt text eol=lf\n*.up filter=upper\n");
        write(&world.main.join("a.up"), "small");
        commit(&world.main, "attributes");
        git(&world.main, &["config", "filter.upper.clean", "tr a-z A-Z"]);
        let slot = lane(&world);
        // Git compares contents only where the times differ from the index.
        let later = SystemTime::now() + Duration::from_secs(60);
        for name in ["one.txt", "two.txt", "three.txt"] {
            fs::File::open(slot.path.join(name)).unwrap().set_modified(later).unwrap();
        }
        assert_ne!(status(&slot.path), "", "git itself sees changes");
        assert_eq!(uncommitted_paths(&world.repository(), &slot.path).unwrap(), [""; 0]);
        write(&slot.path.join("two.txt"), "changed\r\n");
        write(&slot.path.join("new.txt"), "new\r\n");
        assert_eq!(uncommitted_paths(&world.repository(), &slot.path).unwrap(), ["two.txt", "new.txt"]);
        let tree = present_tree(&world.repository(), &slot.path).unwrap();
        let committed = commit_in(&world, &slot).unwrap();
        assert_eq!(git(&slot.path, &["rev-parse", "HEAD^{tree}"]), tree);
        let changed = world.repository().changed_paths(&slot.head, &committed.head).unwrap();
        assert_eq!(changed, ["new.txt", "two.txt"]);
        assert_eq!(git(&slot.path, &["show", "HEAD:new.txt"]), "new", "what is new is stored by the rules");
    }

    fn lane_that_changes_the_rules_stores_files_by_them() {
        let world = World::new();
        write(&world.main.join("one.txt"), "x\r\n");
        write(&world.main.join("two.txt"), "x\r\n");
        commit(&world.main, "with carriage returns");
        let slot = lane(&world);
        write(&slot.path.join(".gitattributes"), "*.txt text eol=lf\n");
        let later = SystemTime::now() + Duration::from_secs(60);
        fs::File::open(slot.path.join("one.txt")).unwrap().set_modified(later).unwrap();
        let committed = commit_in(&world, &slot).unwrap();
        let changed = world.repository().changed_paths(&slot.head, &committed.head).unwrap();
        assert!(changed.contains(&"one.txt".to_owned()), "{changed:?}");
    }

    fn embedded_repositories_are_reported_not_committed() {
        let world = World::new();
        let slot = lane(&world);
        for name in ["clone", "sub dir/empty"] {
            fs::create_dir_all(slot.path.join(name)).unwrap();
            git(&slot.path.join(name), &["init", "-q"]);
        }
        write(&slot.path.join("clone/file"), "x");
        commit(&slot.path.join("clone"), "inner");
        write(&slot.path.join("work"), "x");
        let committed = commit_in(&world, &slot).unwrap();
        assert_eq!(committed.embedded, ["clone", "sub dir/empty"]);
        assert_eq!(world.repository().changed_paths(&slot.head, &committed.head).unwrap(), ["work"]);
        git(&slot.path, &["add", "clone"]);
        git(&slot.path, &["commit", "-q", "-m", "the agent did it itself"]);
        let repository = world.repository();
        let found = |to: &CommitId| repository.embedded_repositories(&slot.head, to).unwrap();
        assert_eq!(found(&head(&slot.path)), ["clone"]);
        write(&slot.path.join(".gitmodules"), "[submodule \"c\"]\npath = clone\nurl = ./clone\n");
        git(&slot.path, &["add", ".gitmodules"]);
        git(&slot.path, &["commit", "-q", "-m", "as a submodule"]);
        assert_eq!(found(&head(&slot.path)), [""; 0]);
    }

    fn commit_is_refused_during_merge_and_rebase() {
        let world = World::new();
        let slot = lane(&world);
        write(&slot.path.join("a.txt"), "ours\n");
        commit(&slot.path, "ours");
        git(&slot.path, &["checkout", "-q", "-b", "theirs", world.head().as_str()]);
        write(&slot.path.join("a.txt"), "theirs\n");
        commit(&slot.path, "theirs");
        git(&slot.path, &["checkout", "-q", "lane/P1/A"]);
        assert!(!git_output(&slot.path, &["merge", "theirs"]).status.success());
        let merging = commit_in(&world, &slot);
        assert!(matches!(merging, Err(GitError::OperationInProgress { which: "a merge", .. })));
        git(&slot.path, &["merge", "--quit"]);
        let conflicted = commit_in(&world, &slot);
        assert!(matches!(conflicted, Err(GitError::OperationInProgress { which: "resolving conflicts", .. })));
        git(&slot.path, &["reset", "-q", "--hard"]);
        assert!(!git_output(&slot.path, &["rebase", "theirs"]).status.success());
        let rebasing = commit_in(&world, &slot);
        assert!(matches!(rebasing, Err(GitError::OperationInProgress { which: "a rebase", .. })));
        assert!(adopt_head(&world.repository(), &slot.path, "lane/P1/A").is_err());
    }

    fn commit_removes_dead_index_lock() {
        let world = World::new();
        let slot = lane(&world);
        let lock = world.main.join(".git/worktrees/01/index.lock");
        fs::write(&lock, "").unwrap();
        write(&slot.path.join("work"), "x");
        commit_in(&world, &slot).unwrap();
        assert_eq!(status(&slot.path), "");
    }

    fn line_end_change_makes_no_commit() {
        let world = World::new();
        let slot = lane(&world);
        git(&slot.path, &["config", "core.autocrlf", "input"]);
        write(&slot.path.join("a.txt"), "a\r\n");
        assert_eq!(commit_in(&world, &slot).unwrap().head, slot.head);
        (0..70).for_each(|number| write(&slot.path.join(format!("many/{number}")), "x"));
        fs::remove_dir_all(slot.path.join("src")).unwrap();
        let head = commit_in(&world, &slot).unwrap().head;
        assert_eq!(world.repository().changed_paths(&slot.head, &head).unwrap().len(), 71);
        assert_eq!(status(&slot.path), "");
    }

    fn shared_repository_objects_are_group_writable() {
        let world = World::new();
        git(&world.main, &["config", "core.sharedRepository", "group"]);
        let slot = lane(&world);
        // A commit whose name begins as that of an older object is stored in the directory of that one.
        let is_new = (0..20).any(|number| {
            write(&slot.path.join("src/b.rs"), format!("shared {number}\n"));
            let there = |name: &str| world.main.join(".git/objects").join(&name[..2]);
            let before: Vec<bool> = (0..256).map(|byte| there(&format!("{byte:02x}")).exists()).collect();
            let head = commit_in(&world, &slot).unwrap().head;
            let mode = fs::metadata(there(head.as_str())).unwrap().permissions().mode();
            let is_new = !before[usize::from_str_radix(&head.as_str()[..2], 16).unwrap()];
            assert!(!is_new || mode & 0o020 != 0, "{mode:o}");
            is_new
        });
        assert!(is_new);
    }
}
