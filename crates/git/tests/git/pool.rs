use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Barrier;

use lanewright_git::{Checkout, GitError, Holder, Mode, Pool};

use crate::support::*;

fn no_locks_below(path: &Path) {
    for (name, _) in contents(path).into_iter().filter(|(name, _)| name.extension().is_some_and(|it| it == "lock")) {
        assert!(name.starts_with("lanewright") || name.ends_with("lanewright.lock"), "{} is left", name.display());
    }
}

pinned_tests! {
    fn concurrent_slots_leave_no_files() {
        let world = World::new();
        let (base, before, pool) = (world.head(), world.users_state(), world.pool(24));
        for round in 0..3 {
            // All hold a slot before the first gives its own back.
            let all_open = Barrier::new(24);
            let open = |number: usize| {
                let held_by = holder(&format!("L{number}"), None);
                let slot = pool.open(&held_by, &fresh(&format!("lane/P{round}/L{number}"), &base)).unwrap();
                assert_eq!(status(&slot.path), "");
                write(&slot.path.join("target/cache"), "built");
                all_open.wait();
                pool.release(&held_by, std::slice::from_ref(&base)).unwrap();
                slot.slot
            };
            let (number_of, open) = (0..24, &open);
            let used: BTreeSet<u32> = std::thread::scope(|scope| {
                let threads: Vec<_> = number_of.map(|number| scope.spawn(move || open(number))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(used, (1..=24).collect(), "a slot was shared, or one was made where one was free");
        }
        assert_eq!(world.branches().len(), 1 + 3 * 24);
        assert_eq!(pool.empty(&run_id("r1"), None).unwrap(), []);
        assert_eq!(world.worktrees(), [""; 0]);
        assert!(!world.root().exists());
        assert_eq!(world.users_state(), before);
        no_locks_below(&world.main.join(".git"));
        git(&world.main, &["fsck", "--strict"]);
    }

    fn emptying_pool_spares_slots_of_starting_run() {
        let world = World::new();
        let (base, ending) = (world.head(), world.pool(1));
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    assert_eq!(ending.empty(&run_id("r2"), None).unwrap(), []);
                }
            });
            let beginning = world.pool(1);
            let results: Vec<_> = (0..60)
                .map(|number| {
                    let held_by = holder(&format!("L{number}"), None);
                    let slot = beginning.open(&held_by, &detached(&base))?;
                    assert_eq!(status(&slot.path), "");
                    beginning.release(&held_by, std::slice::from_ref(&base))
                })
                .collect();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            for result in results {
                result.unwrap();
            }
        });
        assert_eq!(ending.empty(&run_id("r1"), None).unwrap(), []);
        assert!(!world.root().exists());
    }

    fn open_is_exclusive_and_repeatable() {
        let world = World::new();
        let (base, pool) = (world.head(), world.pool(3));
        let agents = ["a", "b", "c"];
        let open = |agent: &str| {
            pool.open(&holder("A", Some(agent)), &fresh(&format!("lane-agent/P1/A/{agent}"), &base)).unwrap()
        };
        let slots = agents.map(open);
        assert_eq!(slots.iter().map(|slot| slot.slot).collect::<BTreeSet<_>>().len(), 3);
        write(&slots[0].path.join("work"), "unsaved");
        commit(&slots[1].path, "work");
        // Another process, as far as files tell.
        let again = world.pool(3);
        let reopened = agents.map(|agent| {
            again.open(&holder("A", Some(agent)), &fresh(&format!("lane-agent/P1/A/{agent}"), &base)).unwrap()
        });
        assert_eq!(reopened, slots);
        assert_eq!(fs::read_to_string(slots[0].path.join("work")).unwrap(), "unsaved");
        let full = again.open(&holder("A", Some("d")), &detached(&base));
        assert!(matches!(full, Err(GitError::PoolExhausted { limit: 3 })));
        let other_run = Holder { run: run_id("r2"), ..holder("A", Some("a")) };
        let other = again.open(&other_run, &detached(&base)).unwrap();
        assert!(slots.iter().all(|slot| slot.slot != other.slot));
        let held = |run| again.held_by(&run_id(run)).unwrap().len();
        assert_eq!((held("r1"), held("r2")), (3, 1));
        assert_eq!(fs::metadata(world.root()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    fn filters_find_their_keys_in_every_worktree() {
        let world = World::new();
        write(&world.main.join(".git/git-crypt/keys/default"), "a-z A-Z");
        let filter = "tr $(cat \"$(git rev-parse --git-dir)/git-crypt/keys/default\" || echo no key)";
        for (name, value) in [("clean", filter), ("smudge", filter), ("required", "true")] {
            git(&world.main, &["config", &format!("filter.git-crypt.{name}"), value]);
        }
        write(&world.main.join(".gitattributes"), "secret filter=git-crypt\n");
        write(&world.main.join("secret"), "s");
        let base = commit(&world.main, "secret");
        let slot = world.pool(4).open(&holder("A", None), &fresh("lane/P1/A", &base)).unwrap();
        assert_eq!(fs::read_to_string(slot.path.join("secret")).unwrap(), "S");
    }

    fn reused_slot_equals_fresh_one() {
        let world = World::new();
        git(&world.main, &["config", "core.autocrlf", "true"]);
        git(&world.main, &["config", "filter.upper.clean", "tr A-Z a-z"]);
        git(&world.main, &["config", "filter.upper.smudge", "tr a-z A-Z"]);
        write(&world.main.join(".gitattributes"), "*.up filter=upper\n*.sh text eol=lf\n");
        for name in ["-dash", "new\nline", "ünïcode", "with space", "tab\t", "x.up", "y.sh", "deep/er/file"] {
            write(&world.main.join(name), "one\r\ntwo\r\n");
        }
        fs::set_permissions(world.main.join("y.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("a.txt", world.main.join("link")).unwrap();
        symlink("/nonexistent/outside", world.main.join("dangling")).unwrap();
        let base = commit(&world.main, "names");
        for name in ["-dash", "x.up", "link"] {
            fs::remove_file(world.main.join(name)).unwrap();
        }
        fs::remove_dir_all(world.main.join("deep")).unwrap();
        write(&world.main.join("deep"), "a file now\n");
        write(&world.main.join("link/inner"), "a directory now\n");
        let next = commit(&world.main, "other names");

        let pool = world.pool(4);
        let first = pool.open(&holder("A", None), &fresh("lane/P1/A", &base)).unwrap();
        assert_eq!(status(&first.path), "");
        for ignored in ["target/cache", "x.log", ".env"] {
            write(&first.path.join(ignored), "left");
        }
        git(&first.path, &["init", "-q", "target/nested"]);
        pool.release(&holder("A", None), std::slice::from_ref(&base)).unwrap();
        let taken = pool.open(&holder("B", None), &fresh("lane/P1/B", &next)).unwrap();
        let made = pool.open(&holder("C", None), &fresh("lane/P1/C", &next)).unwrap();
        assert_eq!((taken.slot, made.slot), (1, 2));
        assert_eq!(contents(&taken.path), contents(&made.path));
        assert_eq!(status(&taken.path), "");
        assert_eq!(git(&taken.path, &["ls-files", "-s"]), git(&made.path, &["ls-files", "-s"]));
    }

    fn ignored_files_stay_with_keep_caches() {
        let world = World::new();
        let pool = Pool::new(world.repository(), &world.root(), 1, true);
        let slot = pool.open(&holder("A", None), &fresh("lane/P1/A", &world.head())).unwrap();
        write(&slot.path.join("target/cache"), "built");
        pool.release(&holder("A", None), &[world.head()]).unwrap();
        let next = pool.open(&holder("B", None), &fresh("lane/P1/B", &world.head())).unwrap();
        assert_eq!(fs::read_to_string(next.path.join("target/cache")).unwrap(), "built");
    }

    fn open_refuses_foreign_branch() {
        let world = World::new();
        let (base, pool) = (world.head(), world.pool(2));
        git(&world.main, &["branch", "lane/P1/A"]);
        let held_by = holder("A", None);
        let foreign = pool.open(&held_by, &fresh("lane/P1/A", &base));
        assert!(matches!(foreign, Err(GitError::BranchInTheWay { place: None, .. })));
        let reset = Checkout { mode: Mode::Reset, ..fresh("lane/P1/A", &base) };
        assert!(matches!(pool.open(&held_by, &reset), Err(GitError::BranchInTheWay { .. })));
        assert_eq!(pool.held_by(&run_id("r1")).unwrap(), [], "a failed open holds a slot");
        let users = pool.open(&held_by, &Checkout { adopt: true, ..fresh("main", &base) });
        assert!(matches!(users, Err(GitError::BranchInTheWay { place: Some(place), .. }) if place == world.main));
        let missing = Checkout { mode: Mode::ExistingBranch, ..fresh("absent", &base) };
        assert!(matches!(pool.open(&held_by, &missing), Err(GitError::BranchMissing { .. })));
        pool.open(&held_by, &Checkout { adopt: true, ..fresh("lane/P1/A", &base) }).unwrap();
        let elsewhere = Checkout { mode: Mode::ExistingBranch, ..fresh("lane/P1/A", &base) };
        let twice = pool.open(&holder("B", None), &elsewhere);
        assert!(matches!(twice, Err(GitError::BranchInTheWay { place: Some(_), .. })));
    }

    fn fresh_mode_keeps_work_reset_mode_drops_it() {
        let world = World::new();
        let (base, pool, held_by) = (world.head(), world.pool(1), holder("A", None));
        let slot = pool.open(&held_by, &fresh("lane/P1/A", &base)).unwrap();
        let work = commit(&slot.path, "work");
        fs::remove_dir_all(&slot.path).unwrap();
        let again = pool.open(&held_by, &fresh("lane/P1/A", &base)).unwrap();
        assert_eq!((again.path.clone(), &again.head), (slot.path, &work));
        write(&again.path.join("untracked"), "x");
        write(&again.path.join("a.txt"), "changed");
        write(&again.path.join(".env"), "from setup");
        fs::write(again.path.join("../../../repo/.git/worktrees/01/index.lock"), "").unwrap();
        let reset = Checkout { mode: Mode::Reset, ..fresh("lane/P1/A", &base) };
        let reset = pool.open(&held_by, &reset).unwrap();
        assert_eq!((reset.head.clone(), head(&reset.path)), (base.clone(), base.clone()));
        assert_eq!(status(&reset.path), "");
        assert_eq!(git(&world.main, &["rev-parse", "lane/P1/A"]), base.as_str());
        assert!(reset.path.join(".env").exists(), "what setup made is gone");
    }

    fn open_refuses_slot_on_other_branch_with_work() {
        let world = World::new();
        let (base, pool, held_by) = (world.head(), world.pool(1), holder("A", None));
        let want = fresh("lane/P1/A", &base);
        let slot = pool.open(&held_by, &want).unwrap();
        git(&slot.path, &["checkout", "-q", "--detach"]);
        write(&slot.path.join("work"), "unsaved");
        assert!(matches!(pool.open(&held_by, &want), Err(GitError::Dirty { paths, .. }) if paths == ["work"]));
        let work = commit(&slot.path, "work on no branch");
        assert!(matches!(pool.open(&held_by, &want), Err(GitError::Unmerged { head, .. }) if head == work));
        git(&slot.path, &["checkout", "-q", "--detach", base.as_str()]);
        assert_eq!(pool.open(&held_by, &want).unwrap(), slot);
        assert_eq!(git(&slot.path, &["symbolic-ref", "HEAD"]), "refs/heads/lane/P1/A");
    }

    fn release_refuses_dirty_or_unmerged_slot() {
        let world = World::new();
        let (base, pool, held_by) = (world.head(), world.pool(1), holder("A", None));
        let slot = pool.open(&held_by, &fresh("lane/P1/A", &base)).unwrap();
        let release = |kept_by: &[lanewright_model::CommitId]| pool.release(&held_by, kept_by);
        write(&slot.path.join("work"), "x");
        assert!(matches!(release(std::slice::from_ref(&base)), Err(GitError::Dirty { .. })));
        let work = commit(&slot.path, "work");
        assert!(matches!(release(std::slice::from_ref(&base)), Err(GitError::Unmerged { .. })));
        assert!(git_output(&slot.path, &["bisect", "start"]).status.success());
        assert!(matches!(release(std::slice::from_ref(&work)), Err(GitError::OperationInProgress { which: "a bisect", .. })));
        git(&slot.path, &["bisect", "reset", "HEAD"]);
        assert_eq!(pool.held_by(&run_id("r1")).unwrap().len(), 1);
        for _ in 0..2 {
            release(&[base.clone(), work.clone()]).unwrap();
        }
        assert_eq!(pool.held_by(&run_id("r1")).unwrap(), []);
        git(&world.main, &["branch", "-D", "lane/P1/A"]);
    }

    fn slots_with_work_are_neither_reused_nor_removed() {
        let world = World::new();
        let (base, pool) = (world.head(), world.pool(9));
        let names = ["dirty", "unmerged", "locked", "busy", "held"];
        let slots = names.map(|name| pool.open(&holder(name, None), &fresh(&format!("lane/P1/{name}"), &base)).unwrap());
        for name in &names[..4] {
            pool.release(&holder(name, None), std::slice::from_ref(&base)).unwrap();
        }
        write(&slots[0].path.join("work"), "x");
        commit(&slots[1].path, "on no branch");
        git(&world.main, &["worktree", "lock", slots[2].path.to_str().unwrap()]);
        git(&slots[3].path, &["bisect", "start"]);
        let next = pool.open(&holder("next", None), &detached(&base)).unwrap();
        assert_eq!(next.slot, 6);
        pool.release(&holder("next", None), std::slice::from_ref(&base)).unwrap();
        let before = slots.each_ref().map(|slot| contents(&slot.path));
        let kept = pool.empty(&run_id("r1"), None).unwrap();
        let reasons = ["uncommitted work: work", "not merged", "locked", "a bisect", "still held by lane held"];
        assert_eq!(kept.len(), reasons.len(), "{kept:?}");
        for ((kept, slot), reason) in kept.iter().zip(&slots).zip(reasons) {
            assert!(kept.path == slot.path && kept.reason.contains(reason), "{kept:?}");
        }
        assert_eq!(slots.each_ref().map(|slot| contents(&slot.path)), before);
        assert!(!next.path.exists());
    }

    fn foreign_files_in_slot_are_left_alone() {
        let world = World::new();
        let (base, pool) = (world.head(), world.pool(9));
        let outside = world.main.with_file_name("outside");
        write(&outside.join("precious"), "x");
        let names = ["directory", "repository", "link", "file"];
        let slots = names.map(|name| pool.open(&holder(name, None), &fresh(&format!("lane/P1/{name}"), &base)).unwrap());
        // Two are held, two are free when the stranger comes.
        pool.release(&holder("directory", None), std::slice::from_ref(&base)).unwrap();
        pool.release(&holder("link", None), std::slice::from_ref(&base)).unwrap();
        for slot in &slots {
            fs::remove_dir_all(&slot.path).unwrap();
        }
        write(&slots[0].path.join("precious"), "x");
        fs::create_dir(&slots[1].path).unwrap();
        git(&slots[1].path, &["init", "-q"]);
        write(&slots[1].path.join("precious"), "x");
        commit(&slots[1].path, "of another repository");
        symlink(&outside, &slots[2].path).unwrap();
        fs::write(&slots[3].path, "x").unwrap();
        for (name, adopt) in [("repository", true), ("file", true), ("new", false)] {
            let want = Checkout { adopt, ..fresh(&format!("lane/P1/{name}"), &base) };
            let slot = pool.open(&holder(name, None), &want).unwrap();
            assert!(slots.iter().all(|it| it.slot != slot.slot), "{name} got {}", slot.slot);
            assert_eq!(contents(&slot.path), contents(&world.main));
            pool.release(&holder(name, None), std::slice::from_ref(&base)).unwrap();
        }
        let kept = pool.empty(&run_id("r1"), None).unwrap();
        assert_eq!(kept.iter().map(|it| &it.path).collect::<Vec<_>>(), slots.iter().map(|it| &it.path).collect::<Vec<_>>());
        for path in [&slots[0].path, &slots[1].path, &outside] {
            assert_eq!(fs::read_to_string(path.join("precious")).unwrap(), "x");
        }
        assert!(slots[2].path.is_symlink() && slots[3].path.is_file());
    }

    fn deletion_over_time_limit_is_left_in_trash() {
        let world = World::new();
        let (base, pool) = (world.head(), world.pool(1));
        let slot = pool.open(&holder("A", None), &detached(&base)).unwrap();
        pool.release(&holder("A", None), std::slice::from_ref(&base)).unwrap();
        assert_eq!(pool.empty(&run_id("r1"), Some(std::time::Duration::ZERO)).unwrap(), []);
        assert!(pool.has_trash() && !slot.path.exists());
        assert_eq!(world.worktrees(), [""; 0], "git still knows the worktree");
        assert_eq!(pool.delete_trash(None).unwrap(), []);
        assert!(!pool.has_trash());
        pool.remove_root();
        assert!(!world.root().exists());
    }

    fn damaged_claim_blocks_its_slot() {
        let world = World::new();
        let (base, pool) = (world.head(), world.pool(2));
        let slot = pool.open(&holder("A", None), &detached(&base)).unwrap();
        let claim = slot.path.with_extension("claim");
        fs::write(&claim, "{").unwrap();
        assert_eq!(pool.open(&holder("B", None), &detached(&base)).unwrap().slot, 2);
        assert!(matches!(pool.held_by(&run_id("r1")), Err(GitError::BadClaim { path, .. }) if path == claim));
        assert!(pool.empty(&run_id("r9"), None).unwrap()[0].reason.contains("damaged"));
        assert!(slot.path.join("a.txt").exists());
    }

    fn link_of_lane_leads_to_its_slot() {
        let world = World::new();
        let pool = world.pool(1);
        let (lane, agent) = (holder("A", None), holder("A", Some("engineer")));
        let slots = [world.root().join("slots/01"), world.root().join("slots/02")];
        for slot in &slots {
            pool.link(&lane, slot).unwrap();
            pool.link(&agent, slot).unwrap();
        }
        let directory = world.root().join("r1/A");
        assert_eq!(fs::read_link(directory.join("code")).unwrap(), slots[1]);
        assert_eq!(fs::read_link(directory.join("agents/engineer/code")).unwrap(), slots[1]);
        for _ in 0..2 {
            pool.unlink(&agent).unwrap();
        }
        assert!(!directory.join("agents/engineer/code").exists());
        fs::write(directory.join("agents/engineer/code"), "not a link").unwrap();
        assert!(matches!(pool.link(&agent, &slots[0]), Err(GitError::NotOurs { .. })));
        assert!(matches!(pool.unlink(&agent), Err(GitError::NotOurs { .. })));
    }

    fn removing_lane_directory_keeps_link_targets() {
        let world = World::new();
        let (pool, run, lane) = (world.pool(1), run_id("r1"), lanewright_model::LaneId::new("A").unwrap());
        let outside = world.main.with_file_name("outside");
        write(&outside.join("precious"), "x");
        let directory = world.root().join("r1/A");
        pool.link(&holder("A", None), &outside).unwrap();
        pool.link(&holder("A", Some("e")), &outside).unwrap();
        write(&directory.join("task.json"), "{}");
        write(&directory.join("agents/e/mine/file"), "x");
        assert_eq!(pool.remove_lane_directory(&run, &lane).unwrap(), [directory.join("agents/e/mine")]);
        fs::remove_dir_all(directory.join("agents")).unwrap();
        for _ in 0..2 {
            assert_eq!(pool.remove_lane_directory(&run, &lane).unwrap(), [""; 0].map(std::path::PathBuf::from));
        }
        assert!(!world.root().join("r1").exists());
        symlink(&outside, world.root().join("r1")).unwrap();
        fs::create_dir(outside.join("A")).unwrap();
        write(&outside.join("A/precious"), "x");
        assert!(matches!(pool.remove_lane_directory(&run, &lane), Err(GitError::NotOurs { .. })));
        assert!(matches!(pool.link(&holder("A", None), &outside), Err(GitError::NotOurs { .. })));
        assert!(outside.join("A/precious").exists() && outside.join("precious").exists());
    }
}
