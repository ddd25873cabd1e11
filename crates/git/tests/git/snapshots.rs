//! Snapshots: taken, kept under refs, restored.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use lanewright_git::{Snapshot, SnapshotRequest, delete_references, reference_name, restore, snapshot};
use lanewright_model::{CommitId, LaneId, PhaseId, Timestamp};

use crate::support::*;

const REFERENCE: &str = "refs/lanewright/checkpoint/P1-A/1";

fn snapshot_of(world: &World, worktree: &Path, head: &CommitId) -> Snapshot {
    let request = SnapshotRequest { worktree, reference: REFERENCE, message: "kept", head, since: head };
    let kept = snapshot(&world.repository(), &request).unwrap();
    let index = git(worktree, &["rev-parse", "--git-path", "lanewright.snapshot"]);
    assert!(!worktree.join(index).exists(), "the private index stays");
    kept
}

pinned_tests! {
    fn snapshot_holds_all_files_and_changes_none() {
        let world = World::new();
        let slot = lane(&world);
        write(&slot.path.join("a.txt"), "unstaged");
        write(&slot.path.join("staged"), "staged");
        write(&slot.path.join("forced.log"), "tracked although ignored");
        git(&slot.path, &["add", "--force", "staged", "forced.log"]);
        write(&slot.path.join("staged"), "changed since");
        write(&slot.path.join("untracked"), "x");
        write(&slot.path.join("ignored.log"), "x");
        fs::remove_file(slot.path.join("src/b.rs")).unwrap();
        git(&slot.path, &["init", "-q", "nested"]);
        let entry = world.main.join(".git/worktrees/01");
        let state = || (fs::read(entry.join("index")).unwrap(), fs::read(entry.join("HEAD")).unwrap(), contents(&slot.path));
        let before = state();
        let kept = snapshot_of(&world, &slot.path, &slot.head);
        assert_eq!(state(), before);
        assert_eq!(tree(&world, &kept.commit), [".gitignore", "a.txt", "forced.log", "staged", "untracked"]);
        let shown = |path: &str| git(&world.main, &["show", &format!("{}:{path}", kept.commit)]);
        assert_eq!((shown("a.txt").as_str(), shown("staged").as_str()), ("unstaged", "changed since"));
        assert_eq!(git(&world.main, &["rev-parse", REFERENCE]), kept.commit.as_str());
        assert_eq!(git(&world.main, &["rev-parse", &format!("{REFERENCE}^")]), slot.head.as_str());
        git(&world.main, &["fsck", "--strict"]);

        assert_eq!(snapshot_of(&world, &slot.path, &slot.head), kept, "asked again");
        // The index is kept: what happens between two snapshots must not be missed.
        write(&slot.path.join("later.log"), "x");
        git(&slot.path, &["add", "--force", "later.log"]);
        git(&slot.path, &["rm", "-q", "--cached", "forced.log"]);
        fs::remove_file(slot.path.join("untracked")).unwrap();
        let second = snapshot_of(&world, &slot.path, &slot.head);
        assert_eq!(second.reference, format!("{REFERENCE}-2"));
        assert!(tree(&world, &second.commit).contains(&"later.log".to_owned()));
        assert!(!tree(&world, &second.commit).contains(&"untracked".to_owned()));
    }

    fn later_snapshot_with_filters_equals_first() {
        let world = World::new();
        for (name, text) in [(".gitattributes", "*.up filter=up\n"), ("crlf", "1\r\n2\r\n"), ("x.up", "low\n"), ("deep/er/one", "1"), ("link-to-be", "1")] {
            write(&world.main.join(name), text);
        }
        commit(&world.main, "more");
        git(&world.main, &["config", "filter.up.clean", "tr a-z A-Z"]);
        git(&world.main, &["config", "core.autocrlf", "input"]);
        later_snapshots_are_like_first_ones(&world);
    }

    fn later_snapshot_without_filters_equals_first() {
        let world = World::new();
        for (name, text) in [("crlf", "1\r\n2\r\n"), ("x.up", "low\n"), ("deep/er/one", "1"), ("link-to-be", "1")] {
            write(&world.main.join(name), text);
        }
        commit(&world.main, "more");
        later_snapshots_are_like_first_ones(&world);
    }

    fn edit_during_snapshot_is_in_the_next_one() {
        let world = World::new();
        let slot = lane(&world);
        git(&slot.path, &["config", "core.trustctime", "false"]);
        git(&slot.path, &["config", "core.checkStat", "minimal"]);
        // The filter of one file edits another that was read, and lets the second pass in which that was.
        let moment = std::time::SystemTime::now() + std::time::Duration::from_secs(3);
        let second = moment.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let edit = format!(
            "printf '2\\n' >a.txt; touch -d @{second} a.txt; while test $(date +%s) -le {second}; do :; done; cat"
        );
        write(&slot.path.join("z.slow"), "1");
        // So many that the index of ours is written after them.
        (0..70).for_each(|number| write(&slot.path.join(format!("many/{number}")), "1"));
        write(&slot.path.join("a.txt"), "1\n");
        let then = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(second);
        fs::File::options().write(true).open(slot.path.join("a.txt")).unwrap().set_modified(then).unwrap();
        write(&world.main.join(".git/info/attributes"), "*.slow filter=slow\n");
        git(&slot.path, &["config", "filter.slow.clean", &edit]);
        snapshot_of(&world, &slot.path, &slot.head);
        git(&slot.path, &["config", "filter.slow.clean", "cat"]);
        let kept = snapshot_of(&world, &slot.path, &slot.head);
        assert_eq!(git(&world.main, &["show", &format!("{}:a.txt", kept.commit)]), "2");
    }

    fn snapshot_sees_edit_of_same_size_and_second() {
        let world = World::new();
        let slot = lane(&world);
        let file = slot.path.join("a.txt");
        write(&file, "1\n");
        git(&slot.path, &["add", "a.txt"]);
        write(&file, "2\n");
        // As if all of it had happened within one second, a while ago.
        let then = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
        let index = world.main.join(".git/worktrees/01/index");
        write(&file, "1\n");
        let at = |path: &Path| fs::File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
        at(&file);
        git(&slot.path, &["-c", "core.trustctime=false", "update-index", "--refresh"]);
        git(&slot.path, &["config", "core.trustctime", "false"]);
        git(&slot.path, &["config", "core.checkStat", "minimal"]);
        fs::write(&file, "2\n").unwrap();
        at(&file);
        at(&index);
        let kept = snapshot_of(&world, &slot.path, &slot.head);
        assert_eq!(git(&world.main, &["show", &format!("{}:a.txt", kept.commit)]), "2");
    }

    fn snapshot_and_commit_include_files_outside_sparse() {
        let world = World::new();
        write(&world.main.join("other/file"), "x");
        commit(&world.main, "more");
        let slot = lane(&world);
        git(&slot.path, &["sparse-checkout", "set", "src"]);
        write(&slot.path.join("other/new"), "x");
        let kept = snapshot_of(&world, &slot.path, &slot.head);
        assert!(["other/file", "other/new"].iter().all(|name| tree(&world, &kept.commit).contains(&name.to_string())));
        let head = commit_in(&world, &slot).unwrap().head;
        assert_eq!(world.repository().changed_paths(&slot.head, &head).unwrap(), ["other/new"]);
        restore(&slot.path, &head).unwrap();
        assert_eq!(status(&slot.path), "");
    }

    fn dead_snapshot_lock_is_ignored() {
        let world = World::new();
        let slot = lane(&world);
        write(&world.directory.path().join("indexes/A.lock"), "");
        write(&slot.path.join("work"), "x");
        assert!(tree(&world, &snapshot_of(&world, &slot.path, &slot.head).commit).contains(&"work".to_owned()));
    }

    fn concurrent_snapshots_get_numbered_refs() {
        let world = World::new();
        let pool = world.pool(6);
        let taken: Vec<Snapshot> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..6).map(|number| {
                let (pool, world) = (&pool, &world);
                scope.spawn(move || {
                    let slot = pool.open(&holder(&format!("L{number}"), None), &detached(&world.head())).unwrap();
                    write(&slot.path.join("work"), format!("{number}"));
                    snapshot_of(world, &slot.path, &slot.head)
                })
            }).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let references: Vec<_> = taken.iter().map(|it| (it.reference.clone(), it.commit.clone())).collect();
        for (name, at) in &references {
            assert_eq!(git(&world.main, &["rev-parse", name]), at.as_str());
        }
        let mut asked = references.clone();
        asked[0].1 = world.head();
        assert_eq!(delete_references(&world.repository(), &asked).unwrap(), [references[0].0.clone()]);
        assert_eq!(delete_references(&world.repository(), &references).unwrap(), [""; 0]);
        assert_eq!(git(&world.main, &["for-each-ref", "refs/lanewright"]), "");
    }

    fn ref_packed_during_delete_stays_deleted() {
        let world = World::new();
        let (head, name) = (world.head(), "refs/lanewright/checkpoint/P1-L/1");
        git(&world.main, &["update-ref", name, head.as_str()]);
        let (lock, loose) = (world.main.join(".git/packed-refs.lock"), world.main.join(".git").join(name));
        fs::write(&lock, format!("# pack-refs with: peeled fully-peeled sorted \n{head} {name}\n")).unwrap();
        std::thread::scope(|scope| {
            // What `git pack-refs` does between reading the ref and removing its file.
            scope.spawn(|| {
                wait_until("the ref's file to be deleted", || !loose.exists());
                fs::rename(&lock, world.main.join(".git/packed-refs")).unwrap();
            });
            delete_references(&world.repository(), &[(name.to_owned(), head.clone())]).unwrap();
        });
        assert_eq!(git(&world.main, &["for-each-ref", "refs/lanewright"]), "");
    }

    fn restore_returns_worktree_to_snapshot() {
        let world = World::new();
        let slot = lane(&world);
        write(&slot.path.join("a.txt"), "kept");
        write(&slot.path.join("untracked"), "kept");
        fs::remove_file(slot.path.join("src/b.rs")).unwrap();
        let (kept, state) = (snapshot_of(&world, &slot.path, &slot.head), status(&slot.path));
        let before = contents(&slot.path);
        let outside = world.main.with_file_name("outside");
        write(&outside.join("b.rs"), "precious");
        write(&slot.path.join("a.txt"), "spoilt");
        write(&slot.path.join("more/spoilt"), "x");
        write(&slot.path.join(".env"), "ignored");
        fs::remove_dir_all(slot.path.join("src")).ok();
        symlink(&outside, slot.path.join("src")).unwrap();
        commit(&slot.path, "spoilt");
        git(&slot.path, &["bisect", "start"]);
        git(&slot.path, &["update-ref", "refs/heads/lane/P1/A", slot.head.as_str()]);
        for _ in 0..2 {
            restore(&slot.path, &kept.commit).unwrap();
            assert_eq!(status(&slot.path), state);
        }
        fs::remove_file(slot.path.join(".env")).unwrap();
        assert_eq!(contents(&slot.path), before);
        assert_eq!(fs::read_to_string(outside.join("b.rs")).unwrap(), "precious");
    }
}

#[test]
fn reference_name_is_valid_for_git() {
    let (phase, lane) = (PhaseId::new("P1").unwrap(), LaneId::new("SL-1").unwrap());
    let at = Timestamp::from_unix_millis(1_769_860_800_000);
    let ours = reference_name(&phase, lane.as_str(), at, false);
    assert_eq!(ours, "refs/lanewright/checkpoint/P1-SL-1/20260131T120000.000Z");
    assert_eq!(reference_name(&phase, lane.as_str(), at, true), "refs/tags/checkpoint/P1-SL-1/20260131T120000.000Z");
    assert!(git_output(Path::new("/"), &["check-ref-format", &ours]).status.success());
}

/// Takes snapshots with one index while much happens, each beside one with an index of its own.
fn later_snapshots_are_like_first_ones(world: &World) {
    let slot = lane(world);
    write(&slot.path.join("notes"), "untracked from the first");
    snapshot_of(world, &slot.path, &slot.head);
    let at = |name: &str| slot.path.join(name);
    let remove = |name: &str| fs::remove_file(at(name)).unwrap();
    let steps: &[(&str, &dyn Fn())] = &[
        ("nothing", &|| {}),
        ("edits", &|| {
            write(&at("crlf"), "1\r\n2\r\n3\r\n");
            write(&at("x.up"), "lower\n");
            write(&at("notes"), "more");
        }),
        ("as many bytes", &|| write(&at("notes"), "less")),
        ("new ones", &|| {
            write(&at("new/deep/er"), "1");
            write(&at("src/new\nline"), "1");
            write(&at("no.log"), "1");
        }),
        ("ignored before", &|| write(&at(".gitignore"), "target/\n")),
        ("a mode", &|| fs::set_permissions(at("a.txt"), fs::Permissions::from_mode(0o755)).unwrap()),
        ("the last in a directory", &|| remove("deep/er/one")),
        ("a file that is a directory", &|| {
            remove("a.txt");
            write(&at("a.txt/inner"), "1");
        }),
        ("a directory that is a file", &|| {
            fs::remove_dir_all(at("new")).unwrap();
            write(&at("new"), "1");
        }),
        ("a directory that is a link", &|| {
            fs::remove_dir_all(at("src")).unwrap();
            symlink("/", at("src")).unwrap();
        }),
        ("a file that is a link", &|| {
            remove("link-to-be");
            symlink("crlf", at("link-to-be")).unwrap();
        }),
        ("intended", &|| {
            write(&at("intended"), "1");
            git(&slot.path, &["add", "--intent-to-add", "intended"]);
        }),
        ("forced", &|| {
            write(&at("target/forced"), "1");
            git(&slot.path, &["add", "--force", "target/forced"]);
        }),
        ("forced and edited", &|| write(&at("target/forced"), "2")),
        ("forced and away", &|| remove("target/forced")),
        ("forced and back", &|| write(&at("target/forced"), "3")),
        ("untracked, ignored and edited", &|| {
            git(&slot.path, &["rm", "-q", "--cached", "crlf"]);
            write(&at(".gitignore"), "target/\ncrlf\n");
            write(&at("crlf"), "a secret");
        }),
        ("forced and a directory", &|| {
            remove("target/forced");
            write(&at("target/forced/inner"), "1");
        }),
        ("assumed unchanged and edited", &|| {
            git(&slot.path, &["update-index", "--assume-unchanged", "x.up"]);
            write(&at("x.up"), "unseen\n");
        }),
        ("watched again", &|| drop(git(&slot.path, &["update-index", "--no-assume-unchanged", "x.up"]))),
        ("left out", &|| drop(git(&slot.path, &["sparse-checkout", "set", "--no-cone", "/*", "!deep/"]))),
        ("no longer left out", &|| drop(git(&slot.path, &["sparse-checkout", "disable"]))),
        ("an odd name", &|| write(&at(":(top)x"), "1")),
        ("a repository", &|| {
            git(&slot.path, &["init", "-q", "inner"]);
            write(&at("inner/x"), "1");
            commit(&at("inner"), "in it");
        }),
        ("attributes", &|| {
            write(&at(".gitattributes"), "*.up -filter\n");
            write(&at("x.up"), "lower still\n");
        }),
        ("attributes only in the index", &|| remove(".gitattributes")),
        ("staged and removed", &|| {
            write(&at("gone"), "1");
            git(&slot.path, &["add", "gone"]);
            remove("gone");
        }),
        ("committed by the agent", &|| {
            git(&slot.path, &["commit", "-q", "-m", "own"]);
            write(&at("x.up"), "after\n");
        }),
        ("many", &|| (0..70).for_each(|number| write(&at(&format!("many/{number}")), "1"))),
        ("after many", &|| remove("many/7")),
        ("many that are ignored", &|| write(&at(".gitignore"), "target/\ncrlf\nmany/\n")),
    ];
    for (what, step) in steps {
        step();
        let shown = |kept: Snapshot| git(&world.main, &["ls-tree", "-r", "-t", kept.commit.as_str()]);
        let first = shown(snapshot_of(world, &slot.path, &slot.head));
        assert_eq!(shown(snapshot_of(world, &slot.path, &slot.head)), first, "{what}");
    }
    git(&world.main, &["fsck", "--strict"]);
}
