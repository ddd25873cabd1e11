//! Moving the integration branch and the user's checkout of it.

use std::fs;
use std::os::unix::fs::symlink;

use lanewright_git::{GitError, Publication, publish};
use lanewright_model::CommitId;

use crate::support::*;

pinned_tests! {
    fn publish_fast_forwards_clean_checkout() {
        let world = World::new();
        let base = world.head();
        let next = made_elsewhere(&world, |path| {
            write(&path.join("a.txt"), "new\n");
            write(&path.join("src/new.rs"), "new\n");
            fs::remove_file(path.join("src/b.rs")).unwrap();
        });
        write(&world.main.join("untracked"), "mine");
        write(&world.main.join(".env"), "mine");
        let hook = world.main.join(".git/hooks/post-merge");
        write(&hook, "#!/bin/sh\ntouch hook-ran\n");
        fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let publish = || publish(&world.repository(), "main", &base, &next).unwrap();
        assert_eq!(publish(), Publication::Published);
        assert_eq!(git(&world.main, &["symbolic-ref", "HEAD"]), "refs/heads/main");
        assert_eq!((world.head(), status(&world.main).as_str()), (next.clone(), "?? untracked"));
        assert_eq!(fs::read_to_string(world.main.join("a.txt")).unwrap(), "new\n");
        assert!(!world.main.join("src/b.rs").exists() && !world.main.join("hook-ran").exists());
        assert_eq!(fs::read_to_string(world.main.join(".env")).unwrap(), "mine");
        assert_eq!(publish(), Publication::AlreadyThere);
    }

    fn publish_is_blocked_by_conflicting_user_changes() {
        type Obstacle = (&'static str, fn(&World), &'static str);
        let blockers: [Obstacle; 9] = [
            ("changed", |world| write(&world.main.join("a.txt"), "mine"), "a.txt"),
            ("staged", |world| { write(&world.main.join("s"), "mine"); git(&world.main, &["add", "s"]); }, "s"),
            (
                "staged where a directory goes",
                |world| { write(&world.main.join("dir"), "mine"); git(&world.main, &["add", "dir"]); },
                "dir",
            ),
            ("untracked in the way", |world| write(&world.main.join("new"), "mine"), "new"),
            ("ignored in the way", |world| write(&world.main.join("x.log"), "mine"), "x.log"),
            ("a file where a directory goes", |world| write(&world.main.join("dir"), "mine"), "dir"),
            ("a link where a directory goes", |world| symlink("src", world.main.join("dir")).unwrap(), "dir"),
            ("a directory where a file goes", |world| write(&world.main.join("new/x"), "mine"), "new"),
            ("an operation", |world| { git(&world.main, &["bisect", "start"]); }, "in the middle of a bisect"),
        ];
        for (name, obstruct, path) in blockers {
            let world = World::new();
            let base = world.head();
            let next = made_elsewhere(&world, |path| {
                write(&path.join("a.txt"), "new\n");
                write(&path.join("s"), "new\n");
                write(&path.join("new"), "new\n");
                write(&path.join("dir/file"), "new\n");
                write(&path.join("x.log"), "new\n");
                git(path, &["add", "--force", "x.log"]);
            });
            obstruct(&world);
            let (before, files) = (world.users_state(), contents(&world.main));
            assert_eq!(dirty(publish(&world.repository(), "main", &base, &next).unwrap()), [path], "{name}");
            assert_eq!((world.users_state(), contents(&world.main)), (before, files), "{name}");
            assert_eq!(world.head(), base, "{name}");
        }
    }

    fn publish_keeps_unrelated_user_changes() {
        for (name, deed) in BESIDE {
            let world = world_with_files_beside();
            let (base, next) = (world.head(), many_kinds(&world));
            deed(&world);
            let copy = world.main.with_file_name("copy");
            let copied = std::process::Command::new("cp").arg("-a").arg(&world.main).arg(&copy).status().unwrap();
            assert!(copied.success());
            git(&copy, &["merge", "--quiet", "--ff-only", next.as_str()]);
            let outcome = publish(&world.repository(), "main", &base, &next).unwrap();
            assert_eq!(outcome, Publication::Published, "{name}");
            assert_eq!((status(&world.main), world.head()), (status(&copy), next), "{name}");
            assert_eq!(contents(&world.main), contents(&copy), "{name}");
            let staged = |path| git(path, &["ls-files", "--stage"]);
            assert_eq!(staged(&world.main), staged(&copy), "{name}");
        }
    }

    fn publish_blocker_has_matching_remedy() {
        let world = World::new();
        let base = world.head();
        let next = made_elsewhere(&world, |path| {
            write(&path.join("a.txt"), "new\n");
            write(&path.join("x.log"), "new\n");
            git(path, &["add", "--force", "x.log"]);
        });
        let remedy = || match publish(&world.repository(), "main", &base, &next).unwrap() {
            Publication::CheckedOutDirty { blockers, .. } => blockers.remedy,
            other => panic!("{other:?}"),
        };
        write(&world.main.join("x.log"), "ignored, so neither committed nor stashed");
        assert!(remedy().contains("move") && !remedy().contains("stash"), "{}", remedy());
        write(&world.main.join("a.txt"), "changed");
        assert!(remedy().contains("move") && remedy().contains("stash"), "{}", remedy());
        fs::remove_file(world.main.join("x.log")).unwrap();
        assert!(!remedy().contains("move") && remedy().contains("stash"), "{}", remedy());
    }

    fn publish_reports_locked_index() {
        let world = World::new();
        let base = world.head();
        let next = made_elsewhere(&world, |path| write(&path.join("new"), "new\n"));
        let lock = world.main.join(".git/index.lock");
        fs::write(&lock, "").unwrap();
        assert_eq!(dirty(publish(&world.repository(), "main", &base, &next).unwrap()), [lock.to_str().unwrap()]);
        assert!(lock.exists());
    }

    fn publish_replaces_directory_by_file_and_back() {
        let world = World::new();
        let base = world.head();
        let next = made_elsewhere(&world, |path| {
            fs::remove_dir_all(path.join("src")).unwrap();
            write(&path.join("src"), "a file now\n");
            fs::remove_file(path.join("a.txt")).unwrap();
            write(&path.join("a.txt/inner"), "a directory now\n");
        });
        assert_eq!(publish(&world.repository(), "main", &base, &next).unwrap(), Publication::Published);
        assert_eq!(status(&world.main), "");
    }

    fn publish_moves_branch_without_checkout() {
        let world = World::new();
        let base = world.head();
        let next = made_elsewhere(&world, |path| write(&path.join("new"), "new\n"));
        git(&world.main, &["branch", "release"]);
        let before = world.users_state();
        assert_eq!(publish(&world.repository(), "release", &base, &next).unwrap(), Publication::Published);
        assert_eq!(git(&world.main, &["rev-parse", "release"]), next.as_str());
        assert_eq!(world.users_state(), before);
        let missing = publish(&world.repository(), "absent", &base, &next);
        assert!(matches!(missing, Err(GitError::BranchMissing { .. })));
        let backwards = publish(&world.repository(), "release", &next, &base);
        assert!(matches!(backwards, Err(GitError::NotAFastForward { .. })));
    }

    fn concurrent_publishers_one_wins() {
        let world = World::new();
        let base = world.head();
        let made: Vec<CommitId> =
            (0..6).map(|number| made_elsewhere(&world, |path| write(&path.join(format!("n{number}")), "x"))).collect();
        for branch in ["main", "release"] {
            git(&world.main, &["branch", "--force", "release", base.as_str()]);
            let outcomes: Vec<Publication> = std::thread::scope(|scope| {
                let publishers: Vec<_> = made
                    .iter()
                    .map(|next| scope.spawn(|| publish(&world.repository(), branch, &base, next).unwrap()))
                    .collect();
                publishers.into_iter().map(|publisher| publisher.join().unwrap()).collect()
            });
            let winner = outcomes.iter().position(|it| *it == Publication::Published).unwrap();
            for (number, outcome) in outcomes.iter().enumerate().filter(|(number, _)| *number != winner) {
                assert_eq!(*outcome, Publication::Moved(made[winner].clone()), "{branch} {number}");
            }
        }
        assert_eq!(status(&world.main), "");
    }

    fn publish_is_blocked_by_directory_replaced_by_link() {
        let world = World::new();
        let base = world.head();
        let next = made_elsewhere(&world, |path| write(&path.join("src/b.rs"), "new\n"));
        let aside = world.main.with_file_name("aside");
        fs::rename(world.main.join("src"), &aside).unwrap();
        symlink(&aside, world.main.join("src")).unwrap();
        let publication = publish(&world.repository(), "main", &base, &next).unwrap();
        assert!(dirty(publication).iter().any(|path| path.starts_with("src")));
        assert!(!world.main.join(".git/index.lock").exists());
        assert_eq!(fs::read_to_string(aside.join("b.rs")).unwrap(), "b\n");
    }

    fn publish_ignores_legacy_file_modes() {
        let world = World::new();
        let blob = git(&world.main, &["hash-object", "-w", "a.txt"]);
        let raw = world.main.join("raw");
        let mut tree = b"100664 old.txt\0".to_vec();
        tree.extend((0..20).map(|at| u8::from_str_radix(&blob[2 * at..2 * at + 2], 16).unwrap()));
        fs::write(&raw, tree).unwrap();
        let tree = git(&world.main, &["hash-object", "-t", "tree", "-w", "--literally", "raw"]);
        fs::remove_file(&raw).unwrap();
        let old = git(&world.main, &["commit-tree", &tree, "-m", "old"]);
        git(&world.main, &["reset", "-q", "--hard", &old]);
        assert_eq!(status(&world.main), "");
        let next = made_elsewhere(&world, |path| write(&path.join("new.txt"), "new\n"));
        let base = CommitId::new(&old).unwrap();
        assert_eq!(publish(&world.repository(), "main", &base, &next).unwrap(), Publication::Published);
        assert_eq!(status(&world.main), "");
    }
}

pub(crate) fn files_of_git(world: &World) -> Vec<String> {
    let names = fs::read_dir(world.main.join(".git")).unwrap().flatten();
    let mut names: Vec<String> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pinned_tests! {
    fn publish_changes_no_other_git_file() {
        let world = World::new();
        let (base, next) = (world.head(), many_kinds(&world));
        publish(&world.repository(), "main", &base, &base).unwrap();
        let files = [".git/HEAD", ".git/config"];
        let before = (files.map(|file| fs::read(world.main.join(file)).unwrap()), files_of_git(&world));
        assert_eq!(publish(&world.repository(), "main", &base, &next).unwrap(), Publication::Published);
        assert_eq!((files.map(|file| fs::read(world.main.join(file)).unwrap()), files_of_git(&world)), before);
        assert_eq!(status(&world.main), "");
        assert!(git(&world.main, &["reflog", "-1", "HEAD"]).contains("lanewright: publish"));
    }

    fn user_commands_during_publish_are_respected() {
        // What is done while the first file is moved; whether the checkout moves along.
        let deeds = [
            ("git switch --quiet other", true),
            ("git commit --quiet --allow-empty -m mine", true),
            ("git switch --quiet --create desk", false),
            ("git symbolic-ref HEAD refs/heads/other-name", false),
        ];
        for (deed, along) in deeds {
            let world = World::new();
            write(&world.main.join(".gitattributes"), "*.slow filter=slow\n");
            write(&world.main.join("x.slow"), "old\n");
            let base = commit(&world.main, "slow");
            git(&world.main, &["branch", "other", "HEAD~"]);
            git(&world.main, &["branch", "other-name"]);
            let next = made_elsewhere(&world, |path| write(&path.join("x.slow"), "new\n"));
            let at = world.main.with_file_name("deed");
            let meanwhile = format!("(unset GIT_INDEX_FILE; cd '{}'; {deed}) >'{}' 2>&1; cat", world.main.display(), at.display());
            git(&world.main, &["config", "filter.slow.clean", "cat"]);
            git(&world.main, &["config", "filter.slow.smudge", &meanwhile]);
            assert_eq!(publish(&world.repository(), "main", &base, &next).unwrap(), Publication::Published, "{deed}");
            assert_eq!(git(&world.main, &["rev-parse", "main"]), next.as_str(), "{deed}");
            let text = fs::read_to_string(world.main.join("x.slow")).unwrap();
            assert_eq!((text.as_str(), world.head()), if along { ("new\n", next) } else { ("old\n", base) }, "{deed}");
            assert_eq!(status(&world.main), "", "{deed}");
            assert_eq!(fs::read_to_string(at).unwrap().contains("index.lock"), along, "{deed}");
        }
    }

    fn branch_moved_during_publish_leaves_checkout() {
        let world = World::new();
        write(&world.main.join(".gitattributes"), "*.slow filter=slow\n");
        let base = commit(&world.main, "slow");
        let mine = made_elsewhere(&world, |path| write(&path.join("mine"), "mine\n"));
        let next = made_elsewhere(&world, |path| write(&path.join("x.slow"), "new\n"));
        git(&world.main, &["config", "filter.slow.clean", "cat"]);
        let deed = format!("git -C '{}' update-ref refs/heads/main {mine}; cat", world.main.display());
        git(&world.main, &["config", "filter.slow.smudge", &deed]);
        assert_eq!(publish(&world.repository(), "main", &base, &next).unwrap(), Publication::Moved(mine));
        assert!(!world.main.join("x.slow").exists());
        assert!(!world.main.join(".git/index.lock").exists());
    }
}
