//! Repositories within a worktree, whose settings an agent wrote.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lanewright_git::{Mode, SnapshotRequest, changed_since, snapshot, uncommitted_paths};

use crate::private::{given, taken};
use crate::support::*;

/// Makes git run a program for the file `s` in the repository `place`. Returns the file that the program writes.
fn with_filter(world: &World, place: &Path) -> PathBuf {
    let (program, mark) = (world.main.with_file_name("program"), world.main.with_file_name("mark"));
    write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", mark.display()));
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    for key in ["filter.x.clean", "filter.x.smudge", "core.fsmonitor"] {
        git(place, &["config", key, program.to_str().unwrap()]);
    }
    let own = PathBuf::from(git(place, &["rev-parse", "--absolute-git-dir"]));
    write(&own.join("info/attributes"), "s filter=x\n");
    write(&place.join("s"), "changed\n");
    mark
}

fn repository_in(place: &Path) {
    fs::create_dir_all(place).unwrap();
    git(place, &["init", "--quiet"]);
    write(&place.join("s"), "s\n");
    commit(place, "s");
}

/// A lane of a repository with the submodule `sub`, which is filled.
fn with_submodule() -> (World, lanewright_model::event::Worktree) {
    let world = World::new();
    let other = world.main.with_file_name("other");
    repository_in(&other);
    let local = ["-c", "protocol.file.allow=always", "submodule", "--quiet"];
    git(&world.main, &[&local[..], &["add", other.to_str().unwrap(), "sub"]].concat());
    commit(&world.main, "submodule");
    let slot = given(&world);
    git(&slot.path, &[&local[..], &["update", "--init"]].concat());
    (world, slot)
}

pinned_tests! {
    fn settings_of_repositories_within_start_nothing() {
        for is_submodule in [false, true] {
            let (world, slot) = if is_submodule {
                with_submodule()
            } else {
                let world = World::new();
                let slot = given(&world);
                (world, slot)
            };
            let place = slot.path.join(if is_submodule { "sub" } else { "inside" });
            if !is_submodule {
                repository_in(&place);
                git(&slot.path, &["add", "inside"]);
                commit(&slot.path, "a link");
            }
            let mark = with_filter(&world, &place);
            git(&slot.path, &["status"]);
            assert!(mark.exists(), "the program is real");
            fs::remove_file(&mark).unwrap();
            write(&place.join("s"), "again\n");
            let repository = world.repository();
            let look = |when: &str| {
                let head = repository.head_at(&slot.path).unwrap().commit;
                let paths = uncommitted_paths(&repository, &slot.path).unwrap();
                assert_eq!(paths, [place.file_name().unwrap().to_str().unwrap()], "{when}");
                changed_since(&repository, &slot.path, &slot.head).unwrap();
                let request = SnapshotRequest {
                    worktree: &slot.path,
                    reference: "refs/lanewright/checkpoint/P1-A/1",
                    message: "Snapshot",
                    head: &head,
                    since: &slot.head,
                };
                snapshot(&repository, &request).unwrap();
                assert!(!mark.exists(), "{when}: {}", fs::read_to_string(&mark).unwrap());
            };
            lanewright_git::bring_over(&repository, &slot.path).unwrap();
            look("while it works");
            taken(&world, &slot);
            look("afterwards");
            commit_in(&world, &slot).unwrap();
            repository.keep_submodules(&slot.path, &slot.head, &repository.head_at(&slot.path).unwrap().commit).unwrap();
            let want = lanewright_git::Checkout { mode: Mode::Reset, adopt: true, ..fresh(&slot.branch, &slot.head) };
            world.pool(4).open(&holder("A", None), &want).unwrap();
            assert!(!mark.exists(), "at last: {}", fs::read_to_string(&mark).unwrap());
        }
    }

    fn a_commit_holds_what_is_checked_out_in_a_submodule() {
        let (world, slot) = with_submodule();
        write(&slot.path.join("sub/t"), "t\n");
        let made = commit(&slot.path.join("sub"), "t");
        taken(&world, &slot);
        let tree = |commit: &str| git(&world.main, &["rev-parse", &format!("{commit}:sub")]);
        commit_in(&world, &slot).unwrap();
        assert_eq!(tree(&slot.branch), made.as_str());
        fs::remove_dir_all(slot.path.join("sub")).unwrap();
        fs::create_dir(slot.path.join("sub")).unwrap();
        commit_in(&world, &slot).unwrap();
        assert_eq!(tree(&slot.branch), made.as_str(), "one that is not filled is not changed");
        fs::remove_dir_all(slot.path.join("sub")).unwrap();
        commit_in(&world, &slot).unwrap();
        assert_eq!(git(&world.main, &["ls-tree", &slot.branch, "sub"]), "");
    }
}
