//! What an attempt leaves in its git directory besides its branch, and the next one finds.

use std::fs;
use std::process::Command;

use lanewright_git::{TakenOver, agent_git_directories, make_private};
use lanewright_model::event::Worktree;

use crate::private::{assert_whole, branch, given, home, taken};
use crate::support::*;

/// Makes a branch `theirs` and a commit of the lane's that conflicts with it.
fn two_branches(slot: &Worktree) {
    git(&slot.path, &["checkout", "--quiet", "-b", "theirs"]);
    write(&slot.path.join("a.txt"), "theirs\n");
    commit(&slot.path, "theirs");
    git(&slot.path, &["checkout", "--quiet", &slot.branch]);
    write(&slot.path.join("a.txt"), "ours\n");
    commit(&slot.path, "ours");
}

pinned_tests! {
    fn a_rebase_that_an_attempt_left_is_finished_by_the_next() {
        for knows_the_attempt_before in [true, false] {
            let world = World::new();
            let slot = given(&world);
            two_branches(&slot);
            assert!(!git_output(&slot.path, &["rebase", "theirs"]).status.success());
            taken(&world, &slot);
            if !knows_the_attempt_before {
                fs::remove_dir_all(world.main.join(".git/lanewright/private")).unwrap();
            }
            make_private(&world.repository(), &slot.path).unwrap();
            write(&slot.path.join("a.txt"), "both\n");
            git(&slot.path, &["add", "a.txt"]);
            git(&slot.path, &["-c", "core.editor=true", "rebase", "--continue"]);
            let tip = head(&slot.path);
            assert_eq!(taken(&world, &slot), TakenOver::default());
            assert_eq!(branch(&world, &slot), tip);
            assert_eq!(git(&slot.path, &["symbolic-ref", "--short", "HEAD"]), slot.branch);
            assert_whole(&world);
        }
    }

    fn the_branch_is_the_agents_own_after_an_attempt_that_detached_it() {
        let world = World::new();
        let slot = given(&world);
        git(&slot.path, &["checkout", "--quiet", "--detach"]);
        taken(&world, &slot);
        make_private(&world.repository(), &slot.path).unwrap();
        git(&slot.path, &["checkout", "--quiet", &slot.branch]);
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        assert_eq!(taken(&world, &slot), TakenOver::default());
        assert_eq!(branch(&world, &slot), made);
    }

    fn a_long_list_of_commits_to_do_crowds_nothing_out() {
        let world = World::new();
        let slot = given(&world);
        let agent = |arguments: &[&str]| git(&slot.path, arguments);
        let mut history = String::new();
        for at in 1..=620 {
            let data = format!("data 1\n{}\n", at % 10);
            history += &format!("commit refs/heads/{}\ncommitter N <e@x> {at} +0000\n{data}", slot.branch);
            history += &(if at == 1 { format!("from {}\n", world.head()) } else { String::new() });
            history += &format!("M 644 inline f{at}\n{data}");
        }
        let list = world.main.join("history");
        write(&list, &history);
        let line = format!("git fast-import --quiet <'{}' && git reset --quiet --hard", list.display());
        assert!(Command::new("sh").arg("-c").arg(line).current_dir(&slot.path).status().unwrap().success());
        fs::remove_file(list).unwrap();
        write(&slot.path.join("a.txt"), "stashed\n");
        agent(&["stash", "--quiet"]);
        agent(&["checkout", "--quiet", "-b", "side"]);
        write(&slot.path.join("side.txt"), "side\n");
        commit(&slot.path, "side");
        agent(&["checkout", "--quiet", &slot.branch]);
        write(&slot.path.join("a.txt"), "put aside by the rebase\n");
        let editor = "sequence.editor=sed -i 1s/pick/edit/";
        let base = world.head().to_string();
        git_output(&slot.path, &["-c", editor, "rebase", "--quiet", "-i", "--autostash", &base]);
        let taken = taken(&world, &slot);
        let names: Vec<&str> = taken.left.iter().map(|left| left.name.as_str()).collect();
        assert_eq!(names.iter().filter(|name| **name == "refs/stash").count(), 2, "{names:?}");
        assert!(names.contains(&"refs/heads/side"), "{names:?}");
        assert_eq!((taken.kept, taken.lost), (None, None));
        assert_whole(&world);
    }

    fn refs_without_number_are_kept_with_the_directory() {
        let world = World::new();
        let slot = given(&world);
        for at in 0..60 {
            let made = git(&slot.path, &["commit-tree", "HEAD^{tree}", "-m", &at.to_string()]);
            git(&slot.path, &["branch", &format!("b{at}"), &made]);
        }
        let last = git(&slot.path, &["rev-parse", "b9"]);
        let taken = taken(&world, &slot);
        assert_eq!(taken.left.len(), 50);
        let (kept, _) = taken.kept.unwrap();
        assert_eq!(git(&kept, &["rev-parse", "b9"]), last);
        assert_eq!(git(&kept, &["cat-file", "-t", &last]), "commit");
    }

    fn a_submodule_that_an_agent_adds_outlives_its_directory() {
        let world = World::new();
        let other = World::new();
        let slot = given(&world);
        let from = other.main.to_str().unwrap();
        git(&slot.path, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from, "lib"]);
        let made = commit(&slot.path, "a submodule");
        assert_eq!(taken(&world, &slot), TakenOver::default());
        assert_eq!(branch(&world, &slot), made);
        assert_eq!(status(&slot.path), "");
        assert_eq!(head(&slot.path.join("lib")), other.head());
    }

    fn a_sparse_checkout_is_the_next_attempts_and_not_the_next_lanes() {
        let world = World::new();
        let slot = given(&world);
        git(&slot.path, &["sparse-checkout", "set", "src"]);
        assert!(!slot.path.join("docs").exists());
        let patterns = git(&slot.path, &["sparse-checkout", "list"]);
        taken(&world, &slot);
        make_private(&world.repository(), &slot.path).unwrap();
        assert_eq!(git(&slot.path, &["sparse-checkout", "list"]), patterns);
        write(&slot.path.join("src/new.rs"), "new\n");
        let made = commit(&slot.path, "new");
        assert_eq!(taken(&world, &slot), TakenOver::default());
        world.pool(9).release(&holder("A", None), &[made]).unwrap();
        let next = world.pool(9).open(&holder("B", None), &fresh("lane/P1/B", &world.head())).unwrap();
        assert_eq!(status(&next.path), "");
        assert_eq!(lines(&git(&next.path, &["ls-files"])).len(), lines(&git(&next.path, &["ls-files", "-t"])).iter().filter(|line| line.starts_with('H')).count());
    }

    fn an_operation_in_progress_keeps_what_only_it_names() {
        let world = World::new();
        let repository = world.repository();
        let slot = given(&world);
        let resolve = |text: &str| {
            write(&slot.path.join("a.txt"), text);
            git(&slot.path, &["add", "a.txt"]);
        };
        two_branches(&slot);
        write(&slot.path.join("src/b.rs"), "not committed\n");
        assert!(!git_output(&slot.path, &["rebase", "--autostash", "theirs"]).status.success());
        let left = taken(&world, &slot).left;
        assert!(left.iter().any(|left| left.name == "refs/stash"), "{left:?}");
        make_private(&repository, &slot.path).unwrap();
        resolve("both\n");
        git(&slot.path, &["-c", "core.editor=true", "rebase", "--continue"]);
        assert_eq!(std::fs::read_to_string(slot.path.join("src/b.rs")).unwrap(), "not committed\n");

        // From a repository that is no remote.
        let other = World::new();
        write(&other.main.join("a.txt"), "of another\n");
        let theirs = commit(&other.main, "of another");
        git(&slot.path, &["checkout", "--quiet", "--", "src/b.rs"]);
        git(&slot.path, &["fetch", "--quiet", other.main.to_str().unwrap()]);
        let merge = ["merge", "--allow-unrelated-histories", theirs.as_str()];
        assert!(!git_output(&slot.path, &merge).status.success());
        assert!(taken(&world, &slot).left.iter().any(|left| left.commit == theirs));
        make_private(&repository, &slot.path).unwrap();
        resolve("all\n");
        git(&slot.path, &["add", "--all"]);
        git(&slot.path, &["commit", "--quiet", "-m", "merged"]);
        assert_whole(&world);
    }

    fn what_one_attempt_left_the_next_one_finds() {
        let world = World::new();
        let repository = world.repository();
        let slot = given(&world);
        write(&slot.path.join("y"), "y\n");
        git(&slot.path, &["stash", "--quiet", "--include-untracked"]);
        write(&slot.path.join("z"), "z\n");
        git(&slot.path, &["stash", "--quiet", "--include-untracked"]);
        git(&slot.path, &["checkout", "--quiet", "-b", "side"]);
        let side = commit(&slot.path, "side");
        git(&slot.path, &["checkout", "--quiet", &slot.branch]);
        assert_eq!(taken(&world, &slot).left.len(), 3);
        for _ in 0..2 {
            make_private(&repository, &slot.path).unwrap();
            assert_eq!(lines(&git(&slot.path, &["stash", "list"])).len(), 2);
            assert_eq!(git(&slot.path, &["rev-parse", "side"]), side.as_str());
            assert_eq!(taken(&world, &slot), TakenOver::default(), "it was reported before");
        }
        make_private(&repository, &slot.path).unwrap();
        git(&slot.path, &["stash", "pop", "--quiet"]);
        assert_eq!(status(&slot.path), "?? z");
        git(&slot.path, &["branch", "--quiet", "-D", "side"]);
        assert_eq!(taken(&world, &slot), TakenOver::default());
        make_private(&repository, &slot.path).unwrap();
        assert_eq!(lines(&git(&slot.path, &["stash", "list"])).len(), 1);
        assert!(!git_output(&slot.path, &["rev-parse", "--verify", "side"]).status.success());
        let writes = agent_git_directories(&repository, &slot.path).unwrap();
        assert_eq!(writes, [home(&slot), world.main.join(".git/worktrees/01/modules")]);
    }
}
