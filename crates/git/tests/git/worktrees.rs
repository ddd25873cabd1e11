//! Worktrees that follow their branch, their changes, and copies of ignored files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use lanewright_git::{
    GitError, adopt_head, changes_where_checked_out, clean_checkout, copy_ignored, head_of, move_branch,
    set_worktree_to,
};

use crate::support::*;

pinned_tests! {
    fn adopt_head_moves_branch_to_descendant_head() {
        let world = World::new();
        let (repository, slot) = (world.repository(), lane(&world));
        let adopt = || adopt_head(&repository, &slot.path, "lane/P1/A");
        assert_eq!(adopt().unwrap(), slot.head);
        git(&slot.path, &["checkout", "-q", "-b", "my-own"]);
        let work = commit(&slot.path, "work");
        write(&slot.path.join("unsaved"), "x");
        let on_another = commit_in(&world, &slot);
        assert!(matches!(on_another, Err(GitError::Astray { on: Some(branch), .. }) if branch == "my-own"));
        for _ in 0..2 {
            assert_eq!(adopt().unwrap(), work);
        }
        let now = head_of(&slot.path).unwrap();
        assert_eq!((now.branch.as_deref(), now.commit), (Some("lane/P1/A"), work));
        assert_eq!(status(&slot.path), "?? unsaved");
        git(&slot.path, &["checkout", "-q", "--detach", slot.head.as_str()]);
        assert!(matches!(adopt(), Err(GitError::Astray { on: None, .. })));
        git(&world.main, &["update-ref", "-d", "refs/heads/lane/P1/A"]);
        assert!(matches!(adopt(), Err(GitError::BranchMissing { .. })));
    }

    fn last_head_is_found_behind_a_long_message() {
        let world = World::new();
        let (repository, slot) = (world.repository(), lane(&world));
        write(&slot.path.join("work.txt"), "x");
        let work = commit(&slot.path, &"x".repeat(70_000));
        git(&world.main, &["update-ref", "-d", "refs/heads/lane/P1/A"]);
        assert_eq!(repository.last_head(&slot.path), Some(work.clone()));
        assert_eq!(repository.last_head_on(&slot.path, "lane/P1/A"), Some(work));
    }

    fn worktree_update_is_repeatable_after_crash() {
        let world = World::new();
        let (repository, slot) = (world.repository(), lane(&world));
        git(&world.main, &["checkout", "-q", "--detach"]);
        write(&world.main.join("a.txt"), "merged\n");
        fs::remove_file(world.main.join("src/b.rs")).unwrap();
        let merged = commit(&world.main, "merged");
        move_branch(&repository, "lane/P1/A", &slot.head, &merged).unwrap();
        write(&slot.path.join("target/cache"), "built");
        write(&slot.path.join("untracked"), "x");
        let follow = || set_worktree_to(&repository, &slot.path, "lane/P1/A", [&slot.head, &merged]);
        write(&slot.path.join("src/b.rs"), "formatted by a gate");
        assert!(matches!(follow(), Err(GitError::Dirty { paths, .. }) if paths.contains(&"src/b.rs".to_owned())));
        assert_eq!(fs::read_to_string(slot.path.join("a.txt")).unwrap(), "a\n");
        write(&slot.path.join("src/b.rs"), "b\n");
        for _ in 0..2 {
            follow().unwrap();
            assert_eq!(status(&slot.path), "?? untracked");
        }
        assert!(slot.path.join("target/cache").exists());
        // A crash in the middle: some files are the new ones, the index is not.
        git(&slot.path, &["read-tree", slot.head.as_str()]);
        write(&slot.path.join("src/b.rs"), "b\n");
        fs::write(world.main.join(".git/worktrees/01/lanewright.update"), merged.as_str()).unwrap();
        fs::write(world.main.join(".git/worktrees/01/index.lock"), "").unwrap();
        follow().unwrap();
        assert_eq!(status(&slot.path), "?? untracked");
        let other = set_worktree_to(&repository, &slot.path, "lane/P1/B", [&slot.head, &merged]);
        assert!(matches!(other, Err(GitError::Astray { .. })));
    }

    fn changes_of_checkout_include_commits_and_untracked() {
        let world = World::new();
        let slot = lane(&world);
        write(&slot.path.join("committed"), "x");
        commit(&slot.path, "work");
        write(&slot.path.join("a.txt"), "changed");
        write(&slot.path.join("dir/untracked"), "x");
        write(&slot.path.join("x.log"), "ignored");
        git(&slot.path, &["switch", "--quiet", "--create", "compared"]);
        git(&slot.path, &["reset", "--quiet", "--soft", slot.head.as_str()]);
        let (place, changes) = changes_where_checked_out(&world.repository(), "compared", None).unwrap().unwrap();
        assert_eq!((place, changes), (slot.path.clone(), lines("a.txt\ncommitted\ndir/untracked")));
        assert_eq!(changes_where_checked_out(&world.repository(), "main", None).unwrap().unwrap().1, [""; 0]);
        assert_eq!(changes_where_checked_out(&world.repository(), "lane/P1/A", None).unwrap(), None);
    }

    fn clean_checkout_is_looked_at_again_only_at_another_commit() {
        let world = World::new();
        let repository = world.repository();
        let clean = clean_checkout(&repository, "main").unwrap();
        let changes = || changes_where_checked_out(&repository, "main", clean.as_ref()).unwrap().unwrap().1;
        write(&world.main.join("dir/untracked"), "x");
        assert_eq!(clean_checkout(&repository, "main").unwrap(), None);
        assert_eq!(changes(), [""; 0]);
        git(&world.main, &["commit", "--quiet", "--allow-empty", "-m", "another"]);
        assert_eq!(changes(), ["dir/untracked"]);
    }

    fn copy_ignored_copies_only_matching_ignored_files() {
        let world = World::new();
        let slot = lane(&world);
        for (name, text) in [(".env", "secret"), ("target/deep/cache", "built"), ("other.log", "no"), ("plain", "untracked")] {
            write(&world.main.join(name), text);
        }
        write(&world.main.join("target/tool"), "tool");
        fs::set_permissions(world.main.join("target/tool"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("tool", world.main.join("target/link")).unwrap();
        write(&slot.path.join("target/deep/cache"), "newer");
        let copy = |patterns: &[&str]| {
            let copied = copy_ignored(&world.repository(), &slot.path, patterns, &|_| ()).unwrap();
            copied.files.into_iter().map(|path| path.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(copy(&[]), [""; 0]);
        assert_eq!(copy(&[".env", "target", "plain", "a.txt"]), [".env", "target/link", "target/tool"]);
        assert_eq!(copy(&[".env", "target"]), [""; 0]);
        assert_eq!(fs::read_link(slot.path.join("target/link")).unwrap(), Path::new("tool"));
        assert_eq!(fs::metadata(slot.path.join("target/tool")).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_to_string(slot.path.join("target/deep/cache")).unwrap(), "newer");
        assert_eq!(status(&slot.path), "");
        fs::remove_dir_all(slot.path.join("target")).unwrap();
        let outside = world.main.with_file_name("outside");
        fs::create_dir(&outside).unwrap();
        symlink(&outside, slot.path.join("target")).unwrap();
        assert_eq!(copy(&["target"]), [""; 0]);
        assert_eq!(fs::read_dir(outside).unwrap().count(), 0);
        assert!(matches!(copy_ignored(&world.repository(), &slot.path, &["{"], &|_| ()), Err(GitError::BadPattern { .. })));
    }

    fn include_file_names_ignored_files_for_worktrees() {
        let world = World::new();
        let slot = lane(&world);
        for name in [".env", "target/cache", "target/keep", "other.log", "plain"] {
            write(&world.main.join(name), name);
        }
        let include = world.main.join(".worktreeinclude");
        let copy = || copy_ignored(&world.repository(), &slot.path, &[], &|_| ());
        write(&include, "# comment ../x\n/.env\ntarget/*\n!target/keep\nplain\n");
        let copied = copy().unwrap();
        let names: Vec<&str> = copied.files.iter().filter_map(|path| path.to_str()).collect();
        assert_eq!((names.as_slice(), copied.not_ignored.as_slice()), ([".env", "target/cache"].as_slice(), [].as_slice()));
        assert_eq!(status(&slot.path), "");
        for (line, reason) in [("a/../../x", ".."), ("/etc/hosts", "absolute"), ("!~/x", "absolute")] {
            write(&include, format!("\n{line}\n"));
            let error = copy().unwrap_err().to_string();
            assert!(error.contains(".worktreeinclude:2: ") && error.contains(reason), "{error}");
        }
        fs::remove_file(&include).unwrap();
        symlink("/etc/hosts", &include).unwrap();
        copy().unwrap_err();
    }
}
