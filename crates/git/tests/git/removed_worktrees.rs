//! What agents did in git directories of their own whose worktrees were removed meanwhile.

use std::fs;
use std::process::Command;

use lanewright_git::{Rescued, TakenOver, make_private, private_git_directory, rescue, take_over};

use lanewright_model::RunId;

use crate::private::{assert_whole, branch, given, refs, taken};
use crate::support::*;

pinned_tests! {
    fn commits_outlive_worktrees_that_are_removed_while_agents_work() {
        for prune in [false, true] {
            let world = World::new();
            let repository = world.repository();
            let slot = given(&world);
            write(&slot.path.join("x"), "x\n");
            let made = commit(&slot.path, "x");
            fs::remove_dir_all(&slot.path).unwrap();
            if prune {
                git(&world.main, &["worktree", "prune"]);
            }
            rescue(&repository).unwrap();
            assert_eq!(branch(&world, &slot), made);
            rescue(&repository).unwrap();
            assert_eq!(refs(&world), [format!("refs/heads/main {}", world.head())]);
            assert_whole(&world);
        }
    }

    fn a_later_worktree_of_the_same_name_is_another_ones() {
        let world = World::new();
        let repository = world.repository();
        let slot = given(&world);
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        git(&world.main, &["update-ref", "-d", &format!("refs/heads/{}", slot.branch)]);
        fs::remove_dir_all(world.root()).unwrap();
        git(&world.main, &["worktree", "prune"]);

        let later = world.pool(9).open(&holder("B", None), &fresh("lane/P1/B", &world.head())).unwrap();
        assert_eq!(later.path, slot.path);
        make_private(&repository, &later.path).unwrap();
        assert_eq!(status(&later.path), "");
        assert_eq!(head(&later.path), world.head());
        let rescued = format!("refs/lanewright/rescued/{made} {made}");
        assert!(refs(&world).contains(&rescued), "{:?}", refs(&world));
        assert_eq!(taken(&world, &later), TakenOver::default());
        assert_eq!(branch(&world, &later), world.head());
        assert_whole(&world);
    }

    fn what_no_branch_has_is_kept_and_named() {
        let world = World::new();
        let slot = given(&world);
        let agent = |arguments: &[&str]| git(&slot.path, arguments);
        write(&slot.path.join("a.txt"), "stashed\n");
        agent(&["stash", "--quiet"]);
        agent(&["checkout", "--quiet", "-b", "side"]);
        write(&slot.path.join("side.txt"), "side\n");
        let side = commit(&slot.path, "side");
        agent(&["checkout", "--quiet", &slot.branch]);
        write(&slot.path.join("a.txt"), "staged\n");
        agent(&["add", "a.txt"]);
        fs::remove_dir_all(&slot.path).unwrap();
        git(&world.main, &["worktree", "prune"]);
        let rescued = rescue(&world.repository()).unwrap();
        let name_of = |kept: &Rescued| match kept {
            Rescued::Kept { name, .. } => name.clone(),
            Rescued::Aside { reason, .. } | Rescued::NotYet { reason, .. } => panic!("{reason}"),
        };
        let names: Vec<String> = rescued.iter().map(name_of).collect();
        assert_eq!(names, ["refs/stash", "refs/heads/side", "index"]);
        let shown = |kept: &Rescued, path: &str| match kept {
            Rescued::Kept { reference, .. } => git(&world.main, &["show", &format!("{reference}:{path}")]),
            Rescued::Aside { .. } | Rescued::NotYet { .. } => unreachable!(),
        };
        assert!(refs(&world).contains(&format!("refs/lanewright/rescued/{side} {side}")));
        assert_eq!(shown(&rescued[0], "a.txt"), "stashed");
        assert_eq!(shown(&rescued[2], "a.txt"), "staged");
        assert_eq!(rescue(&world.repository()).unwrap(), []);
        assert_whole(&world);
    }

    fn what_is_staged_is_kept_where_the_worktree_is_made_again() {
        let world = World::new();
        let slot = given(&world);
        write(&slot.path.join("a.txt"), "staged\n");
        git(&slot.path, &["add", "a.txt"]);
        fs::remove_dir_all(&slot.path).unwrap();
        assert_eq!(rescue(&world.repository()).unwrap(), []);
        let taken = take_over(&world.repository(), &slot.path).unwrap().unwrap();
        let [left] = taken.left.as_slice() else { panic!("{taken:?}") };
        assert_eq!((left.name.as_str(), git(&world.main, &["show", &format!("{}:a.txt", left.commit)])), ("index", "staged".into()));
    }

    fn another_view_of_the_repository_leaves_an_agent_alone() {
        let world = World::new();
        let slot = given(&world);
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        // As in a container: the repository is at another place, and the worktrees are not there.
        let (main, elsewhere) = (&world.main, world.root().with_file_name("elsewhere"));
        let moved = [(main.clone(), main.with_file_name("view")), (slot.path.clone(), elsewhere)];
        moved.iter().for_each(|(from, to)| fs::rename(from, to).unwrap());
        let seen = lanewright_git::Repository::locate(&moved[0].1).unwrap();
        assert_eq!(rescue(&seen).unwrap(), []);
        moved.iter().for_each(|(from, to)| fs::rename(to, from).unwrap());
        git(&slot.path, &["log", "--oneline"]);
        let later = commit(&slot.path, "later");
        assert_ne!(later, made);
        assert_eq!(taken(&world, &slot), TakenOver::default());
        assert_eq!(branch(&world, &slot), later);
    }

    fn a_branch_that_the_user_has_checked_out_is_not_moved() {
        let world = World::new();
        let slot = given(&world);
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        fs::remove_dir_all(&slot.path).unwrap();
        git(&world.main, &["worktree", "prune"]);
        git(&world.main, &["checkout", "--quiet", &slot.branch]);
        let rescued = rescue(&world.repository()).unwrap();
        assert!(matches!(rescued.as_slice(), [Rescued::Kept { reference, .. }] if reference.ends_with(made.as_str())), "{rescued:?}");
        assert_eq!(git(&world.main, &["status", "--porcelain"]), "");
    }

    fn one_directory_that_cannot_be_read_holds_up_no_other() {
        let world = World::new();
        let slot = given(&world);
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        fs::remove_dir_all(&slot.path).unwrap();
        git(&world.main, &["worktree", "prune"]);
        fs::create_dir_all(world.main.join(".git/lanewright/private/00/record.json")).unwrap();
        let rescued = rescue(&world.repository()).unwrap();
        assert!(matches!(rescued.as_slice(), [Rescued::NotYet { .. }]), "{rescued:?}");
        assert_eq!(branch(&world, &slot), made);
    }

    fn a_directory_whose_record_is_damaged_is_kept() {
        let world = World::new();
        let slot = given(&world);
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        write(&world.main.join(".git/lanewright/private/01/record.json"), "{");
        fs::remove_dir_all(&slot.path).unwrap();
        git(&world.main, &["worktree", "prune"]);
        let repository = world.repository();
        let again = world.pool(9).open(&holder("A", None), &fresh(&slot.branch, &world.head())).unwrap();
        make_private(&repository, &again.path).unwrap();
        let told = repository.take_notices();
        let kept = fs::read_dir(world.main.join(".git/lanewright/kept")).unwrap().next().unwrap().unwrap().path();
        assert_eq!(git(&kept, &["cat-file", "-t", made.as_str()]), "commit", "{told:?}");
    }

    fn an_index_with_conflicts_is_kept_with_the_directory() {
        let world = World::new();
        let slot = given(&world);
        let agent = |arguments: &[&str]| git(&slot.path, arguments);
        agent(&["checkout", "--quiet", "-b", "side"]);
        write(&slot.path.join("a.txt"), "side\n");
        commit(&slot.path, "side");
        agent(&["checkout", "--quiet", &slot.branch]);
        write(&slot.path.join("a.txt"), "own\n");
        commit(&slot.path, "own");
        let merged = Command::new("git").current_dir(&slot.path).args(["merge", "--quiet", "side"]).output().unwrap();
        assert!(!merged.status.success());
        fs::remove_dir_all(&slot.path).unwrap();
        git(&world.main, &["worktree", "prune"]);
        let rescued = rescue(&world.repository()).unwrap();
        let Some(Rescued::Aside { place, reason }) = rescued.last() else { panic!("{rescued:?}") };
        assert_eq!(reason, "what is staged in it has conflicts");
        assert!(place.join("index").exists());
    }

    fn a_branch_that_is_made_anew_is_left_alone() {
        for removed_in_between in [false, true] {
            let world = World::new();
            let repository = world.repository();
            let slot = given(&world);
            write(&slot.path.join("x"), "x\n");
            commit(&slot.path, "x");
            fs::remove_dir_all(&slot.path).unwrap();
            git(&world.main, &["worktree", "prune"]);
            git(&world.main, &["update-ref", "-d", &format!("refs/heads/{}", slot.branch)]);
            if removed_in_between {
                rescue(&repository).unwrap();
            }
            let again = world.pool(9).open(&holder("A", None), &fresh(&slot.branch, &world.head())).unwrap();
            make_private(&repository, &again.path).unwrap();
            assert_eq!((status(&again.path), head(&again.path)), (String::new(), world.head()));
            assert_eq!(taken(&world, &again), TakenOver::default());
            assert_eq!(branch(&world, &again), world.head());
        }
    }

    fn a_worktree_that_is_listed_and_not_seen_keeps_its_directory() {
        let world = World::new();
        let slot = given(&world);
        git(&slot.path, &["branch", "side"]);
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        let elsewhere = world.root().join("elsewhere");
        fs::rename(&slot.path, &elsewhere).unwrap();
        assert_eq!(rescue(&world.repository()).unwrap(), []);
        assert_eq!(branch(&world, &slot), made);
        fs::rename(&elsewhere, &slot.path).unwrap();
        let later = commit(&slot.path, "later");
        assert_eq!(taken(&world, &slot), TakenOver::default());
        assert_eq!(branch(&world, &slot), later);
    }

    fn what_was_taken_over_and_not_noted_is_kept() {
        let world = World::new();
        let slot = given(&world);
        write(&slot.path.join("a.txt"), "stashed\n");
        git(&slot.path, &["stash", "--quiet"]);
        take_over(&world.repository(), &slot.path).unwrap().unwrap();
        fs::remove_dir_all(&slot.path).unwrap();
        git(&world.main, &["worktree", "prune"]);
        let rescued = rescue(&world.repository()).unwrap();
        assert!(matches!(rescued.as_slice(), [Rescued::Kept { name, .. }] if name == "refs/stash"), "{rescued:?}");
        assert_eq!(rescue(&world.repository()).unwrap(), []);
    }

    fn the_end_of_another_run_moves_the_branch_as_a_resume_does() {
        let world = World::new();
        let slot = given(&world);
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        fs::remove_dir_all(&slot.path).unwrap();
        git(&world.main, &["worktree", "prune"]);
        world.pool(9).empty(&RunId::new("other").unwrap(), None).unwrap();
        assert_eq!(branch(&world, &slot), made);
        assert!(!world.main.join(".git/lanewright/private").exists());
    }

    fn an_agent_at_work_keeps_its_directory_while_another_run_ends() {
        let world = World::new();
        let slot = given(&world);
        let entry = world.main.join(".git/worktrees").join(slot.path.file_name().unwrap());
        fs::remove_dir_all(entry).unwrap();
        world.pool(9).empty(&RunId::new("other").unwrap(), None).unwrap();
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        assert!(private_git_directory(&slot.path).unwrap().join("HEAD").exists());
        assert_eq!(head(&slot.path), made);
    }

    fn a_directory_that_is_damaged_is_kept_with_what_can_be_read() {
        let world = World::new();
        let slot = given(&world);
        write(&slot.path.join("x"), "one\n");
        let whole = commit(&slot.path, "whole");
        git(&slot.path, &["branch", "whole"]);
        write(&slot.path.join("x"), "two\n");
        commit(&slot.path, "damaged");
        let blob = git(&slot.path, &["rev-parse", "HEAD:x"]);
        let git_directory = private_git_directory(&slot.path).unwrap();
        fs::remove_file(git_directory.join("objects").join(&blob[..2]).join(&blob[2..])).unwrap();
        fs::remove_dir_all(&slot.path).unwrap();
        git(&world.main, &["worktree", "prune"]);
        let rescued = rescue(&world.repository()).unwrap();
        assert!(refs(&world).contains(&format!("refs/lanewright/rescued/{whole} {whole}")), "{:?}", refs(&world));
        let Some(Rescued::Aside { place, .. }) = rescued.last() else { panic!("{rescued:?}") };
        assert!(place.join("HEAD").exists());
        assert_eq!(branch(&world, &slot), world.head());
        assert_whole(&world);
    }
}
