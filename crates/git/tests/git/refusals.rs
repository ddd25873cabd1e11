//! Git commands that fail, and other gits at the same moment.

use std::fs;
use std::path::Path;

use lanewright_git::{CommitRequest, commit_all, is_half_updated, move_branch, set_worktree_to};

use crate::support::*;

pinned_tests! {
    fn failed_filter_is_not_run_again() {
        let world = World::new();
        let slot = world.pool(1).open(&holder("A", None), &fresh("lane/P1/A", &world.head())).unwrap();
        let runs = world.main.with_file_name("runs");
        write(&world.main.join(".git/info/attributes"), "*.txt filter=broken\n");
        git(&world.main, &["config", "filter.broken.clean", &format!("echo >>{}; exit 1", runs.display())]);
        git(&world.main, &["config", "filter.broken.required", "true"]);
        write(&slot.path.join("work.txt"), "x");
        let (worktree, branch, since) = (&slot.path, &slot.branch, &slot.head);
        let request = CommitRequest { worktree, branch, message: "work", trailers: &[], since };
        let error = commit_all(&world.repository(), &request).unwrap_err().to_string();
        assert!(error.contains("clean filter 'broken' failed"), "{error}");
        assert_eq!(fs::read_to_string(runs).unwrap(), "\n");
    }

    fn refused_update_leaves_no_intent() {
        let world = World::new();
        let (repository, base) = (world.repository(), world.head());
        let slot = world.pool(1).open(&holder("A", None), &fresh("lane/P1/A", &base)).unwrap();
        git(&world.main, &["checkout", "-q", "--detach"]);
        write(&world.main.join("new"), "merged\n");
        write(&world.main.join("a.txt"), "merged\n");
        let merged = commit(&world.main, "merged");
        move_branch(&repository, "lane/P1/A", &base, &merged).unwrap();
        let follow = || set_worktree_to(&repository, &slot.path, "lane/P1/A", [&base, &merged]);
        for in_the_way in ["new", "new/inner"] {
            write(&slot.path.join(in_the_way), "untracked\n");
            follow().unwrap_err();
            assert!(!is_half_updated(&slot.path).unwrap(), "{in_the_way}");
            assert_eq!(fs::read_to_string(slot.path.join(in_the_way)).unwrap(), "untracked\n");
            assert_eq!(fs::read_to_string(slot.path.join("a.txt")).unwrap(), "a\n");
            fs::remove_file(slot.path.join(in_the_way)).unwrap();
        }
        follow().unwrap();
        assert_eq!(status(&slot.path), "");
    }

    fn references_include_refs_packed_meanwhile() {
        let world = World::new();
        let (repository, head) = (world.repository(), world.head());
        let names: Vec<String> = (0..20).map(|number| format!("refs/lanewright/checkpoint/P1-A/{number:02}")).collect();
        let (loose, packed) = (|name: &String| world.main.join(".git").join(name), world.main.join(".git/packed-refs"));
        let replace = |path: &Path, text: String| {
            write(&path.with_extension("lock"), text);
            fs::rename(path.with_extension("lock"), path).unwrap();
        };
        let unpack = || names.iter().for_each(|name| replace(&loose(name), format!("{head}\n")));
        // Each time with another size: several changes have the same time here.
        let pack = |round: usize, listed: &[String]| {
            let lines: String = listed.iter().map(|name| format!("{head} {name}\n")).collect();
            let other = format!("{head} refs/other/{}\n", "x".repeat(1 + round % 200));
            replace(&packed, format!("# pack-refs with: peeled fully-peeled sorted \n{lines}{other}"));
        };
        for round in 0..50 {
            unpack();
            pack(round, &[]);
            std::thread::scope(|scope| {
                // As `git pack-refs` does it.
                let packer = scope.spawn(|| {
                    pack(round, &names);
                    names.iter().for_each(|name| fs::remove_file(loose(name)).unwrap());
                });
                while !packer.is_finished() {
                    let found = repository.references("refs/lanewright/checkpoint").unwrap();
                    assert_eq!(found.len(), names.len(), "round {round}");
                }
            });
        }
    }
}
