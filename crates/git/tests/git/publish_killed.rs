//! Publications that a killed Lanewright left half-way.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Duration;

use lanewright_git::{Publication, changes_where_checked_out, publish};
use lanewright_model::CommitId;

use crate::publish::files_of_git;
use crate::support::*;

/// The lock that a Lanewright leaves which dies while it moves the checkout from `onto` to `commit`.
fn left_lock(world: &World, onto: &CommitId, commit: &CommitId) {
    let lock = serde_json::json!({"lanewright": "", "branch": "main", "onto": onto, "commit": commit});
    fs::write(world.main.join(".git/index.lock"), lock.to_string()).unwrap();
}

/// What a dead Lanewright left in the checkout, given the commit it was moving to.
type Leave = fn(&World, &CommitId);

fn move_some(world: &World) {
    write(&world.main.join("a.txt"), "new\n");
    fs::write(world.main.join("new"), "").unwrap();
    fs::remove_dir_all(world.main.join("src")).unwrap();
}

fn move_all(world: &World, to: &CommitId) {
    let own = world.main.join(".git/lanewright.index");
    fs::copy(world.main.join(".git/index"), &own).unwrap();
    let mut command = std::process::Command::new("git");
    command.arg("-C").arg(&world.main).env("GIT_INDEX_FILE", own).args(["read-tree", "-m", "-u", "HEAD", to.as_str()]);
    assert!(command.status().unwrap().success());
}

const DEATHS: [(&str, Leave); 9] = [
    ("with nothing but the lock", |_, _| {}),
    ("with an index of its own", |world, _| write(&world.main.join(".git/lanewright.index"), "cut sh")),
    ("among the files", |world, _| move_some(world)),
    ("in the middle of a file", |world, _| {
        move_some(world);
        write(&world.main.join("a.txt"), "ne");
    }),
    ("after the files", move_all),
    ("with a lock on the branch", |world, to| {
        move_all(world, to);
        write(&world.main.join(".git/refs/heads/main.lock"), "");
    }),
    ("with a lock on the branch that is written", |world, to| {
        move_all(world, to);
        write(&world.main.join(".git/refs/heads/main.lock"), format!("{to}\n"));
    }),
    ("after the branch", |world, to| {
        move_all(world, to);
        git(&world.main, &["update-ref", "refs/heads/main", to.as_str()]);
    }),
    ("after the index", |world, to| {
        move_all(world, to);
        git(&world.main, &["update-ref", "refs/heads/main", to.as_str()]);
        fs::rename(world.main.join(".git/lanewright.index"), world.main.join(".git/index")).unwrap();
    }),
];

pinned_tests! {
    fn killed_publication_is_finished_by_the_next() {
        for (death, leave) in DEATHS {
            let world = World::new();
            let (base, next) = (world.head(), many_kinds(&world));
            publish(&world.repository(), "main", &base, &base).unwrap();
            let before = files_of_git(&world);
            left_lock(&world, &base, &next);
            leave(&world, &next);
            let outcome = publish(&world.repository(), "main", &base, &next).unwrap();
            assert!(matches!(outcome, Publication::Published | Publication::AlreadyThere), "{death}: {outcome:?}");
            assert_eq!((world.head(), status(&world.main).as_str()), (next, ""), "{death}");
            assert_eq!(files_of_git(&world), before, "{death}");
        }
    }

    fn killed_publication_keeps_user_changes() {
        for (death, leave) in DEATHS {
            for (name, deed) in BESIDE {
                for somebody_else in [false, true] {
                    let world = world_with_files_beside();
                    let (base, next) = (world.head(), many_kinds(&world));
                    deed(&world);
                    let before = status(&world.main);
                    left_lock(&world, &base, &next);
                    leave(&world, &next);
                    if somebody_else {
                        changes_where_checked_out(&world.repository(), "main", None).unwrap();
                    } else {
                        let outcome = publish(&world.repository(), "main", &base, &next).unwrap();
                        let done = matches!(outcome, Publication::Published | Publication::AlreadyThere);
                        assert!(done, "{death}, {name}: {outcome:?}");
                        assert_eq!(world.head(), next, "{death}, {name}");
                    }
                    assert_eq!(status(&world.main), before, "{death}, {name}, {somebody_else}");
                }
            }
        }
    }

    fn killed_publication_is_rolled_back_by_reader() {
        for (death, leave) in DEATHS {
            let world = World::new();
            let (base, next) = (world.head(), many_kinds(&world));
            left_lock(&world, &base, &next);
            leave(&world, &next);
            let moved = world.head() == next;
            git(&world.main, &["symbolic-ref", "HEAD", "refs/heads/main"]);
            let changes = changes_where_checked_out(&world.repository(), "main", None).unwrap().unwrap().1;
            assert_eq!(changes, [""; 0], "{death}");
            assert_eq!(world.head() == next, moved, "{death}");
            assert_eq!(status(&world.main), "", "{death}");
        }
    }

    fn killed_publication_reports_later_user_changes() {
        for (death, leave) in DEATHS {
            let world = World::new();
            let (base, next) = (world.head(), many_kinds(&world));
            left_lock(&world, &base, &next);
            leave(&world, &next);
            write(&world.main.join("new"), "mine\n");
            write(&world.main.join("notes"), "mine\n");
            let outcome = publish(&world.repository(), "main", &base, &next).unwrap();
            assert_eq!(dirty(outcome), ["new"], "{death}");
            assert_eq!(fs::read_to_string(world.main.join("new")).unwrap(), "mine\n", "{death}");
            assert_eq!(fs::read_to_string(world.main.join("notes")).unwrap(), "mine\n", "{death}");
            assert!(!world.main.join(".git/index.lock").exists(), "{death}: the person cannot fix it");
        }
    }

    fn killed_publication_follows_switch_of_branch() {
        for (death, leave) in DEATHS {
            let world = World::new();
            let (base, next) = (world.head(), many_kinds(&world));
            left_lock(&world, &base, &next);
            leave(&world, &next);
            git(&world.main, &["branch", "desk"]);
            git(&world.main, &["symbolic-ref", "HEAD", "refs/heads/desk"]);
            let there = world.head();
            let outcome = publish(&world.repository(), "main", &base, &next).unwrap();
            assert!(matches!(outcome, Publication::Published | Publication::AlreadyThere), "{death}: {outcome:?}");
            assert_eq!((world.head(), status(&world.main).as_str()), (there, ""), "{death}");
            assert_eq!(git(&world.main, &["rev-parse", "main"]), next.as_str(), "{death}");
        }
    }
}

/// Lanewright and its gits are killed at many moments of a publication; the next one finishes it.
#[test]
fn publication_killed_at_any_moment_is_finished() {
    const NAME: &str = concat!(module_path!(), "::publication_killed_at_any_moment_is_finished");
    const SAYS: &str = "LANEWRIGHT_GIT_TEST_VICTIM";
    fn body() {
        if let Some(words) = std::env::var_os(SAYS) {
            let words = words.into_string().unwrap();
            let [main, base, next] = words.split('\n').collect::<Vec<_>>().try_into().unwrap();
            let repository = lanewright_git::Repository::discover(std::path::Path::new(main)).unwrap();
            fs::write(std::path::Path::new(main).with_file_name("begun"), "").unwrap();
            let [base, next] = [base, next].map(|name| CommitId::new(name).unwrap());
            assert_eq!(publish(&repository, "main", &base, &next).unwrap(), Publication::Published);
            return;
        }
        let (mut delay, mut finished) = (Duration::ZERO, false);
        while !finished {
            let world = World::new();
            let base = world.head();
            let next = made_elsewhere(&world, |path| {
                (0..200).for_each(|number| write(&path.join(format!("dir/{number}")), "new\n"));
                write(&path.join("a.txt"), "new\n");
            });
            let words = [world.main.to_str().unwrap(), base.as_str(), next.as_str()].join("\n");
            let mut victim = command_for(NAME, world.directory.path(), &[(SAYS, &words)]);
            let mut victim = victim.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
            wait_until("the victim to begin", || world.main.with_file_name("begun").exists());
            std::thread::sleep(delay);
            finished = victim.try_wait().unwrap().is_some();
            if !finished {
                let group = rustix::process::Pid::from_child(&victim);
                rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
            }
            victim.wait().unwrap();
            let outcome = publish(&world.repository(), "main", &base, &next).unwrap();
            assert!(matches!(outcome, Publication::Published | Publication::AlreadyThere), "{delay:?}: {outcome:?}");
            assert_eq!((world.head(), status(&world.main).as_str()), (next, ""), "killed after {delay:?}");
            delay += Duration::from_millis(7);
        }
    }
    pinned(NAME, &[], body);
}
