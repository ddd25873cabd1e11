//! Checkouts that are behind their branch: the head is at a published tip, index and files are at an earlier one.

use std::fs;
use std::path::Path;

use lanewright_git::{Publication, publish, sync_after_switches, sync_checkouts};
use lanewright_model::CommitId;

use crate::support::*;

/// A commit on top of `onto`, made elsewhere by `change`.
fn made_on(world: &World, onto: &CommitId, change: impl Fn(&Path)) -> CommitId {
    let path = world.main.with_file_name("elsewhere");
    git(&world.main, &["worktree", "add", "-q", "--detach", path.to_str().unwrap(), onto.as_str()]);
    change(&path);
    let made = commit(&path, "made elsewhere");
    git(&world.main, &["worktree", "remove", "--force", path.to_str().unwrap()]);
    made
}

/// `main` is published twice while the user is on `desk`, both at the same commit before. Returns the tips.
fn published_alone(world: &World) -> [CommitId; 3] {
    let base = world.head();
    git(&world.main, &["switch", "-q", "--create", "desk"]);
    let first = made_on(world, &base, |path| write(&path.join("new.txt"), "new\n"));
    let second = made_on(world, &first, |path| {
        write(&path.join("new.txt"), "newer\n");
        fs::remove_file(path.join("src/b.rs")).unwrap();
    });
    // A `git switch` is under way meanwhile.
    write(&world.main.join(".git/index.lock"), "");
    for [from, to] in [[&base, &first], [&first, &second]] {
        assert_eq!(publish(&world.repository(), "main", from, to).unwrap(), Publication::Published);
    }
    fs::remove_file(world.main.join(".git/index.lock")).unwrap();
    [base, first, second]
}

/// What a `git switch` leaves that looked `main` up before it was published.
fn end_switch(world: &World) {
    git(&world.main, &["symbolic-ref", "HEAD", "refs/heads/main"]);
}

fn note(world: &World) -> bool {
    world.main.join(".git/lanewright/published.json").exists()
}

pinned_tests! {
    fn stale_checkout_is_synced_by_every_query() {
        for earlier in [0, 1] {
            let world = World::new();
            let tips = published_alone(&world);
            if earlier == 1 {
                git(&world.main, &["reset", "-q", "--hard", tips[1].as_str()]);
            }
            end_switch(&world);
            assert_ne!(status(&world.main), "");
            write(&world.main.join("a.txt"), "mine\n");
            write(&world.main.join("untracked"), "mine\n");
            assert_eq!(sync_checkouts(&world.repository(), "main").unwrap(), None);
            assert_eq!(status(&world.main), " M a.txt\n?? untracked");
            assert_eq!(fs::read_to_string(world.main.join("new.txt")).unwrap(), "newer\n");
            assert_eq!(world.head(), tips[2]);
            assert!(!world.main.join(".git/index.lock").exists());
        }
    }

    fn branch_created_in_stale_checkout_is_synced() {
        let world = World::new();
        let tips = published_alone(&world);
        end_switch(&world);
        git(&world.main, &["branch", "taken-along"]);
        git(&world.main, &["symbolic-ref", "HEAD", "refs/heads/taken-along"]);
        assert_eq!(sync_checkouts(&world.repository(), "main").unwrap(), None);
        assert_eq!((world.head(), status(&world.main).as_str()), (tips[2].clone(), ""));
        assert_eq!(git(&world.main, &["rev-parse", "main"]), tips[2].as_str());
    }

    fn next_publish_syncs_stale_checkout() {
        let world = World::new();
        let tips = published_alone(&world);
        end_switch(&world);
        let next = made_on(&world, &tips[2], |path| write(&path.join("next"), "next\n"));
        assert_eq!(publish(&world.repository(), "main", &tips[2], &next).unwrap(), Publication::Published);
        assert_eq!((world.head(), status(&world.main).as_str()), (next, ""));
    }

    fn change_in_stale_checkout_is_reported_with_remedy() {
        type Change = (&'static str, fn(&World), &'static str);
        let changes: [Change; 2] = [
            ("an untracked file in the way", |world| write(&world.main.join("new.txt"), "mine\n"), "new.txt"),
            ("a changed file that goes", |world| write(&world.main.join("src/b.rs"), "mine\n"), "src/b.rs"),
        ];
        for (name, change, path) in changes {
            let world = World::new();
            let tips = published_alone(&world);
            end_switch(&world);
            change(&world);
            let (before, files) = (world.users_state(), contents(&world.main));
            let look = || sync_checkouts(&world.repository(), "main").unwrap();
            for _ in 0..2 {
                let Some(Publication::CheckedOutDirty { blockers, .. }) = look() else { panic!("{name}") };
                assert_eq!(blockers.paths, [path], "{name}");
                assert!(blockers.remedy.contains("do not commit"), "{name}: {}", blockers.remedy);
                let detach = format!("git switch --detach {} && git stash", tips[0].short());
                assert!(blockers.remedy.contains(&detach), "{name}: {}", blockers.remedy);
            }
            assert!(sync_after_switches(&world.repository(), "main").unwrap().is_some(), "{name}: the search does not end");
            assert_eq!((world.users_state(), contents(&world.main)), (before, files), "{name}");
        }
    }

    fn unrelated_staged_change_does_not_block_sync() {
        let world = World::new();
        let tips = published_alone(&world);
        end_switch(&world);
        write(&world.main.join("s"), "mine\n");
        git(&world.main, &["add", "s"]);
        assert_eq!(sync_checkouts(&world.repository(), "main").unwrap(), None);
        assert_eq!((world.head(), status(&world.main).as_str()), (tips[2].clone(), "A  s"));
    }

    fn staged_change_on_diverged_branch_is_kept() {
        let world = World::new();
        let base = world.head();
        git(&world.main, &["switch", "-q", "--create", "desk"]);
        write(&world.main.join("mine.txt"), "mine\n");
        commit(&world.main, "mine");
        let next = made_on(&world, &base, |path| write(&path.join("new.txt"), "new\n"));
        assert_eq!(publish(&world.repository(), "main", &base, &next).unwrap(), Publication::Published);
        // The index holds just what the tip before the publication holds.
        git(&world.main, &["rm", "-q", "mine.txt"]);
        for look in [sync_checkouts, sync_after_switches] {
            assert_eq!(look(&world.repository(), "main").unwrap(), None);
            assert_eq!(status(&world.main), "D  mine.txt");
        }
    }

    fn unborn_branch_does_not_block_publish() {
        let world = World::new();
        let base = world.head();
        let next = made_on(&world, &base, |path| write(&path.join("new.txt"), "new\n"));
        let repository = world.repository();
        git(&world.main, &["switch", "-q", "--orphan", "pages"]);
        assert_eq!(publish(&repository, "main", &base, &next).unwrap(), Publication::Published);
        assert_eq!(sync_after_switches(&repository, "main").unwrap(), None);
    }

    fn branch_created_from_earlier_tip_is_synced() {
        let world = World::new();
        let base = world.head();
        let next = made_on(&world, &base, |path| write(&path.join("new.txt"), "new\n"));
        assert_eq!(publish(&world.repository(), "main", &base, &next).unwrap(), Publication::Published);
        // `git switch --create desk main` looks `main` up twice: for the files, and for the branch.
        git(&world.main, &["reset", "-q", "--hard", base.as_str()]);
        git(&world.main, &["update-ref", "refs/heads/main", next.as_str()]);
        git(&world.main, &["branch", "desk", "main"]);
        git(&world.main, &["symbolic-ref", "HEAD", "refs/heads/desk"]);
        assert_eq!(sync_checkouts(&world.repository(), "main").unwrap(), None);
        assert_eq!((world.head(), status(&world.main).as_str()), (next, ""));
    }

    fn staged_change_on_synced_branch_is_kept() {
        let world = World::new();
        let base = world.head();
        let next = made_on(&world, &base, |path| write(&path.join("new.txt"), "new\n"));
        assert_eq!(publish(&world.repository(), "main", &base, &next).unwrap(), Publication::Published);
        assert_eq!(sync_after_switches(&world.repository(), "main").unwrap(), None);
        // The index holds just what the earlier tip holds.
        git(&world.main, &["rm", "-q", "new.txt"]);
        assert_eq!(sync_checkouts(&world.repository(), "main").unwrap(), None);
        assert_eq!(status(&world.main), "D  new.txt");
    }

    fn checkout_of_branch_moved_by_others_is_not_synced() {
        let world = World::new();
        let base = world.head();
        let next = made_on(&world, &base, |path| write(&path.join("new.txt"), "new\n"));
        let foreign = made_on(&world, &next, |path| write(&path.join("foreign.txt"), "foreign\n"));
        let merge = made_on(&world, &foreign, |path| write(&path.join("merged.txt"), "merged\n"));
        let repository = world.repository();
        assert_eq!(publish(&repository, "main", &base, &next).unwrap(), Publication::Published);
        git(&world.main, &["update-ref", "refs/heads/main", foreign.as_str()]);
        assert!(note(&world), "the publication has just been");
        let left = git(&world.main, &["status", "--porcelain"]);
        assert_eq!(sync_checkouts(&repository, "main").unwrap(), None);
        let published = publish(&repository, "main", &foreign, &merge).unwrap();
        let is_named = |paths: &[String]| paths[0].contains("by another program");
        assert!(matches!(published, Publication::CheckedOutDirty { blockers, .. } if is_named(&blockers.paths)));
        assert_eq!((world.head(), git(&world.main, &["status", "--porcelain"])), (foreign, left));
    }

    fn published_note_of_older_version_is_read() {
        let world = World::new();
        let tips = published_alone(&world);
        let older = format!("{{\"main\":\"{}\"}}", tips[0]);
        write(&world.main.join(".git/lanewright/published.json"), &older);
        end_switch(&world);
        assert_eq!(sync_checkouts(&world.repository(), "main").unwrap(), None);
        assert_eq!((world.head(), status(&world.main).as_str()), (tips[2].clone(), ""));
    }

    fn current_checkout_removes_published_note() {
        let world = World::new();
        published_alone(&world);
        assert!(note(&world));
        git(&world.main, &["switch", "-q", "main"]);
        git(&world.main, &["rm", "-q", "new.txt"]);
        assert_eq!(sync_after_switches(&world.repository(), "main").unwrap(), None);
        assert!(!note(&world));
        assert_eq!(status(&world.main), "D  new.txt");
    }
}
