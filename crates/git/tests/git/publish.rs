use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::Duration;

use lanewright_git::{GitError, Publication, changes_where_checked_out, publish};
use lanewright_model::CommitId;

use crate::support::*;

/// A commit that continues `main`, made elsewhere, by a change in a detached slot.
fn made_elsewhere(world: &World, change: impl Fn(&std::path::Path)) -> CommitId {
    let path = world.main.with_file_name("elsewhere");
    git(&world.main, &["worktree", "add", "-q", "--detach", path.to_str().unwrap()]);
    change(&path);
    let made = commit(&path, "made elsewhere");
    git(&world.main, &["worktree", "remove", "--force", path.to_str().unwrap()]);
    made
}

fn dirty(publication: Publication) -> Vec<String> {
    match publication {
        Publication::CheckedOutDirty { obstacles, .. } => {
            assert!(!obstacles.remedy.is_empty());
            obstacles.paths
        }
        other => panic!("{other:?}"),
    }
}

pinned_tests! {
    fn a_clean_checkout_moves_along_and_keeps_what_is_the_users() {
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

    fn a_checkout_with_work_of_the_users_is_left_alone() {
        type Obstacle = (&'static str, fn(&World), &'static str);
        let obstacles: [Obstacle; 9] = [
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
        for (name, obstruct, path) in obstacles {
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

    fn work_of_the_users_that_nothing_touches_is_kept_as_git_merge_would() {
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

    fn what_helps_is_said_for_each_obstacle() {
        let world = World::new();
        let base = world.head();
        let next = made_elsewhere(&world, |path| {
            write(&path.join("a.txt"), "new\n");
            write(&path.join("x.log"), "new\n");
            git(path, &["add", "--force", "x.log"]);
        });
        let remedy = || match publish(&world.repository(), "main", &base, &next).unwrap() {
            Publication::CheckedOutDirty { obstacles, .. } => obstacles.remedy,
            other => panic!("{other:?}"),
        };
        write(&world.main.join("x.log"), "ignored, so neither committed nor stashed");
        assert!(remedy().contains("move") && !remedy().contains("stash"), "{}", remedy());
        write(&world.main.join("a.txt"), "changed");
        assert!(remedy().contains("move") && remedy().contains("stash"), "{}", remedy());
        fs::remove_file(world.main.join("x.log")).unwrap();
        assert!(!remedy().contains("move") && remedy().contains("stash"), "{}", remedy());
    }

    fn a_locked_index_is_named_and_left() {
        let world = World::new();
        let base = world.head();
        let next = made_elsewhere(&world, |path| write(&path.join("new"), "new\n"));
        let lock = world.main.join(".git/index.lock");
        fs::write(&lock, "").unwrap();
        assert_eq!(dirty(publish(&world.repository(), "main", &base, &next).unwrap()), [lock.to_str().unwrap()]);
        assert!(lock.exists());
    }

    fn files_that_make_room_are_in_no_ones_way() {
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

    fn a_branch_that_is_not_checked_out_moves_by_itself() {
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

    fn of_many_publishers_one_wins_and_the_others_learn_where_the_branch_is() {
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

    fn a_directory_that_is_a_link_now_is_a_change_and_leaves_no_lock() {
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

    fn a_mode_of_an_old_history_is_no_change() {
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

/// A commit that changes, adds and removes files, and makes a file of a directory and the reverse.
fn many_kinds(world: &World) -> CommitId {
    made_elsewhere(world, |path| {
        write(&path.join("a.txt"), "new\n");
        write(&path.join("new"), "new\n");
        write(&path.join("empty"), "");
        fs::remove_dir_all(path.join("src")).unwrap();
        write(&path.join("src"), "a file now\n");
    })
}

/// What a user does to tracked files that [`many_kinds`] leaves alone.
type Beside = fn(&World);

fn world_with_files_beside() -> World {
    let world = World::new();
    for name in ["beside/one", "beside/two", "beside/three"] {
        write(&world.main.join(name), "old\n");
    }
    commit(&world.main, "more");
    world
}

const BESIDE: [(&str, Beside); 7] = [
    ("changed", |world| write(&world.main.join("beside/one"), "mine\n")),
    ("staged", |world| {
        write(&world.main.join("beside/one"), "mine\n");
        git(&world.main, &["add", "beside/one"]);
    }),
    ("staged and changed", |world| {
        write(&world.main.join("beside/one"), "mine\n");
        git(&world.main, &["add", "beside/one"]);
        write(&world.main.join("beside/one"), "more\n");
    }),
    ("staged and new", |world| {
        write(&world.main.join("beside/new"), "mine\n");
        git(&world.main, &["add", "beside/new"]);
    }),
    ("removed", |world| fs::remove_file(world.main.join("beside/two")).unwrap()),
    ("removed and staged", |world| {
        git(&world.main, &["rm", "-q", "beside/two"]);
    }),
    ("all of it", |world| {
        write(&world.main.join("beside/new"), "mine\n");
        write(&world.main.join("beside/one"), "mine\n");
        git(&world.main, &["add", "."]);
        git(&world.main, &["rm", "-q", "beside/two"]);
        write(&world.main.join("beside/three"), "mine\n");
    }),
];

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

fn files_of_git(world: &World) -> Vec<String> {
    let names = fs::read_dir(world.main.join(".git")).unwrap().flatten();
    let mut names: Vec<String> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

pinned_tests! {
    fn nothing_but_what_must_move_is_changed() {
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

    fn what_a_death_left_half_way_is_finished() {
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

    fn what_the_user_changed_beside_it_outlives_a_death() {
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
                        changes_where_checked_out(&world.repository(), "main").unwrap();
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

    fn what_a_death_left_half_way_is_undone_for_another_process() {
        for (death, leave) in DEATHS {
            let world = World::new();
            let (base, next) = (world.head(), many_kinds(&world));
            left_lock(&world, &base, &next);
            leave(&world, &next);
            let moved = world.head() == next;
            git(&world.main, &["symbolic-ref", "HEAD", "refs/heads/main"]);
            let changes = changes_where_checked_out(&world.repository(), "main").unwrap().unwrap().1;
            assert_eq!(changes, [""; 0], "{death}");
            assert_eq!(world.head() == next, moved, "{death}");
            assert_eq!(status(&world.main), "", "{death}");
        }
    }

    fn what_a_person_did_since_the_death_is_left_and_named() {
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

    fn a_switch_since_the_death_has_the_files_it_switched_to() {
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

    fn what_a_person_does_in_that_instant_is_refused_or_respected() {
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

    fn a_branch_that_moves_in_that_instant_leaves_the_checkout_as_it_was() {
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

/// Lanewright and its gits are killed at many moments of a publication; the next one finishes it.
#[test]
fn killed_at_any_moment_a_publication_is_finished() {
    const NAME: &str = concat!(module_path!(), "::killed_at_any_moment_a_publication_is_finished");
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
