//! What is found after a crash, and what keeps a slot from being taken over as it is.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use lanewright_git::{Checkout, ClaimFound, CommitRequest, Pool, Repository, SnapshotRequest, commit_all, snapshot};
use lanewright_model::CommitId;
use lanewright_model::event::Worktree;

use crate::support::*;

/// What leaves a slot and its entry in some state.
type Leave<'a> = Box<dyn Fn(&Path, &Path) + 'a>;

/// The states in which an interrupted `git worktree add` leaves a slot, oldest first.
fn interrupted_adds(world: &World) -> [(&'static str, Leave<'_>); 5] {
    let locked = |entry: &Path| write(&entry.join("locked"), "initializing\n");
    let named = move |slot: &Path, entry: &Path| {
        locked(entry);
        write(&entry.join("gitdir"), format!("{}\n", slot.join(".git").display()));
    };
    let linked = move |slot: &Path, entry: &Path| {
        named(slot, entry);
        write(&slot.join(".git"), format!("gitdir: {}\n", entry.display()));
    };
    [
        ("an entry without a place", Box::new(move |_, entry| locked(entry))),
        ("an entry whose place is missing", Box::new(named)),
        (
            "a link that is not written yet",
            Box::new(move |slot, entry| {
                named(slot, entry);
                write(&slot.join(".git"), "");
            }),
        ),
        ("a link to an entry without a head", Box::new(linked)),
        (
            "a worktree that is all there but locked",
            Box::new(move |slot, entry| {
                linked(slot, entry);
                write(&entry.join("HEAD"), format!("{}\n", world.head()));
                write(&entry.join("commondir"), "../..\n");
            }),
        ),
    ]
}

pinned_tests! {
    fn interrupted_worktree_add_is_repaired() {
        let world = World::new();
        let users = world.main.with_file_name("users");
        git(&world.main, &["worktree", "add", "-q", "--detach", users.to_str().unwrap()]);
        fs::remove_dir_all(&users).unwrap();
        for (state, leave) in interrupted_adds(&world) {
            let pool = world.pool(1);
            fs::create_dir_all(world.root().join("slots")).unwrap();
            leave(&world.root().join("slots/01"), &world.main.join(".git/worktrees/01"));
            let slot = pool.open(&holder("A", None), &detached(&world.head())).unwrap();
            assert_eq!((slot.slot, status(&slot.path).as_str()), (1, ""), "{state}");
            assert_eq!(world.worktrees().len(), 2, "{state}");
            pool.release(&holder("A", None), &[world.head()]).unwrap();
            assert_eq!(pool.empty(&run_id("r1"), None).unwrap(), [], "{state}");
            assert_eq!(fs::read_dir(world.main.join(".git/worktrees")).unwrap().count(), 1, "the user's entry: {state}");
        }
    }

    fn interrupted_slot_removal_is_finished() {
        let world = World::new();
        let pool = world.pool(1);
        let slot = pool.open(&holder("A", None), &detached(&world.head())).unwrap();
        pool.release(&holder("A", None), &[world.head()]).unwrap();
        write(&world.root().join("trash/01900000-0000-7000-8000-000000000001/file"), "half deleted");
        fs::rename(&slot.path, world.root().join("trash/01900000-0000-7000-8000-000000000002")).unwrap();
        write(&world.root().join("slots/.01.claim.01900000000070008000000000000001.tmp"), "half written");
        assert_eq!(pool.empty(&run_id("r1"), None).unwrap(), []);
        assert!(!world.root().exists());
        assert_eq!(world.worktrees(), [""; 0]);
    }

    fn restore_claim_spares_claim_of_other_holder() {
        let world = World::new();
        let (pool, first) = (world.pool(1), holder("A", None));
        let slot = pool.open(&first, &fresh("lane/P1/A", &world.head())).unwrap();
        let worktree = Worktree {
            slot: slot.slot, path: slot.path.clone(), branch: "lane/P1/A".to_owned(), head: world.head(),
        };
        assert_eq!(pool.restore_claim(&first, &worktree).unwrap(), ClaimFound::Held);
        let claim = world.root().join("slots/01.claim");
        let of_first = fs::read(&claim).unwrap();
        fs::remove_file(&claim).unwrap();
        assert_eq!(pool.restore_claim(&first, &worktree).unwrap(), ClaimFound::Restored);
        assert_eq!(fs::read(&claim).unwrap(), of_first);
        // Given back by a run that died before it recorded that, and taken by the next holder.
        pool.release(&first, &[world.head()]).unwrap();
        let second = holder("B", None);
        assert_eq!(pool.open(&second, &fresh("lane/P1/B", &world.head())).unwrap().slot, slot.slot);
        assert_eq!(pool.restore_claim(&first, &worktree).unwrap(), ClaimFound::Released);
        assert_eq!(pool.restore_claim(&second, &worktree).unwrap(), ClaimFound::Held);
    }

    fn interrupted_checkout_is_finished() {
        let world = World::new();
        let (base, pool, held_by) = (world.head(), world.pool(1), holder("A", None));
        let want = fresh("lane/P1/A", &base);
        let slot = pool.open(&held_by, &want).unwrap();
        // As a killed `checkout -b` leaves it: the branch made, the head not yet on it, files missing, the index locked.
        git(&slot.path, &["checkout", "-q", "--detach"]);
        fs::remove_file(slot.path.join("a.txt")).unwrap();
        write(&slot.path.join("src/b.rs"), "half");
        fs::write(world.main.join(".git/worktrees/01/index.lock"), "").unwrap();
        set_state(&slot.path, "started");
        assert_eq!(world.pool(1).open(&held_by, &want).unwrap(), slot);
        assert_eq!(status(&slot.path), "");
        assert_eq!(git(&slot.path, &["symbolic-ref", "HEAD"]), "refs/heads/lane/P1/A");
    }

    fn incomplete_checkout_is_removed_user_file_is_kept() {
        let world = World::new();
        let (base, pool) = (world.head(), world.pool(3));
        let names = ["half", "empty", "claimed"];
        let slots = names.map(|name| pool.open(&holder(name, None), &fresh(&format!("lane/P1/{name}"), &base)).unwrap());
        let [half, empty, claimed] = slots.each_ref().map(|slot| &slot.path);
        write(&half.join("src/b.rs"), "half");
        git(half, &["checkout", "-q", "--detach"]);
        let entry = world.main.join(".git/worktrees/01");
        fs::write(entry.join("index.lock"), "").unwrap();
        git(empty, &["rm", "-q", "-r", "."]);
        fs::remove_file(empty.join(".gitignore")).unwrap_or_default();
        fs::remove_file(world.main.join(".git/worktrees/02/index")).unwrap();
        write(&claimed.join("of-the-user"), "unsaved");
        for (path, state) in [(half, "started"), (empty, "started"), (claimed, "claimed")] {
            set_state(path, state);
        }
        assert!(pool.held_by(&run_id("r1")).unwrap().iter().all(|slot| !slot.provisioned));
        names.iter().for_each(|name| pool.release(&holder(name, None), &[]).unwrap());
        assert_eq!(pool.held_by(&run_id("r1")).unwrap(), []);
        assert!(!half.exists() && !entry.exists() && !empty.exists());
        assert_eq!(fs::read_to_string(claimed.join("of-the-user")).unwrap(), "unsaved");
        assert_eq!(pool.empty(&run_id("r1"), None).unwrap().len(), 1, "the slot with the work of the user");
        git(&world.main, &["branch", "-D", "lane/P1/half", "lane/P1/empty"]);
    }

    fn a_slot_with_submodules_or_sparse_files_is_made_anew() {
        let world = World::new();
        let other = World::new();
        git(&world.main, &["-c", "protocol.file.allow=always", "submodule", "-q", "add", other.main.to_str().unwrap(), "sub"]);
        write(&world.main.join("other/file"), "x");
        let base = commit(&world.main, "with a submodule");
        let pool = world.pool(1);
        let slot = pool.open(&holder("A", None), &detached(&base)).unwrap();
        git(&slot.path, &["-c", "protocol.file.allow=always", "submodule", "-q", "update", "--init"]);
        assert!(slot.path.join("sub/a.txt").exists());
        pool.release(&holder("A", None), std::slice::from_ref(&base)).unwrap();
        let slot = pool.open(&holder("B", None), &detached(&base)).unwrap();
        assert!(!slot.path.join("sub/a.txt").exists() && slot.path.join("sub").is_dir());
        assert_eq!((slot.slot, status(&slot.path).as_str()), (1, ""));
        git(&slot.path, &["sparse-checkout", "set", "src"]);
        assert!(!slot.path.join("other").exists());
        pool.release(&holder("B", None), std::slice::from_ref(&base)).unwrap();
        let slot = pool.open(&holder("C", None), &detached(&base)).unwrap();
        assert!(slot.path.join("other/file").exists());
    }

    fn users_sparse_selection_holds_in_slots() {
        let world = World::new();
        git(&world.main, &["sparse-checkout", "set", "src"]);
        write(&world.main.join("other/file"), "x");
        git(&world.main, &["add", "--sparse", "other/file"]);
        git(&world.main, &["commit", "-q", "-m", "more"]);
        let slot = world.pool(1).open(&holder("A", None), &detached(&world.head())).unwrap();
        assert!(slot.path.join("src/b.rs").exists() && !slot.path.join("other").exists());
    }
}

/// Writes the claim of the slot at `path` as a Lanewright leaves it that is killed before the checkout is complete.
fn set_state(path: &std::path::Path, state: &str) {
    let claim = path.with_extension("claim");
    let mut record: serde_json::Value = serde_json::from_str(&fs::read_to_string(&claim).unwrap()).unwrap();
    record["state"] = state.into();
    record["keep_ignored"] = false.into();
    fs::write(&claim, record.to_string()).unwrap();
}

/// A Lanewright is killed while its git checks out; that git goes on. Whoever asks next has to wait for it.
#[test]
fn orphaned_git_keeps_slot_lock() {
    const NAME: &str = concat!(module_path!(), "::orphaned_git_keeps_slot_lock");
    fn victim(main: &Path) {
        let repository = lanewright_git::Repository::discover(main).unwrap();
        let start = head(main);
        let pool = Pool::new(repository, &main.with_file_name("repo.lanes"), 1, false);
        pool.open(&holder("A", None), &fresh("lane/P1/A", &start)).unwrap();
    }
    fn body() {
        if let Some(main) = std::env::var_os("LANEWRIGHT_GIT_TEST_VICTIM") {
            return victim(Path::new(&main));
        }
        let world = World::new();
        let at = |name: &str| world.main.with_file_name(name);
        // The first smudge says that it runs, and waits for the word to go on.
        let filter = format!(
            "touch {0}; while ! test -e {1}; do sleep 0.01; done; cat",
            at("running").display(),
            at("go").display()
        );
        git(&world.main, &["config", "filter.slow.clean", "cat"]);
        git(&world.main, &["config", "filter.slow.smudge", &filter]);
        write(&world.main.join(".gitattributes"), "*.slow filter=slow\n");
        write(&world.main.join("x.slow"), "x\n");
        let base = commit(&world.main, "slow");
        let more = [("LANEWRIGHT_GIT_TEST_VICTIM", world.main.to_str().unwrap())];
        let mut victim = command_for(NAME, world.directory.path(), &more);
        let mut victim = victim.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_until("the checkout to begin", || at("running").exists());
        victim.kill().unwrap();
        victim.wait().unwrap();
        let pool = world.pool(1);
        std::thread::scope(|scope| {
            let opened = scope.spawn(|| pool.open(&holder("A", None), &fresh("lane/P1/A", &base)));
            let lock = world.main.join(".git/worktrees/01/index.lock");
            let begun = std::time::Instant::now();
            while begun.elapsed() < std::time::Duration::from_millis(300) {
                assert!(lock.exists() && !opened.is_finished(), "the other git's checkout was cut in upon");
            }
            write(&at("go"), "");
            let slot = opened.join().unwrap().unwrap();
            assert_eq!(status(&slot.path), "");
            assert_eq!(git(&slot.path, &["symbolic-ref", "HEAD"]), "refs/heads/lane/P1/A");
        });
    }
    pinned(NAME, &[], body);
}

/// The life of two slots' worth of work, every step of which may be asked for again.
fn whole_life(main: &Path, base: &CommitId) {
    let repository = Repository::discover(main).unwrap();
    let pool = Pool::new(repository.clone(), &main.with_file_name("repo.lanes"), 2, false);
    for name in ["A", "B"] {
        let (held_by, branch) = (holder(name, None), format!("lane/P1/{name}"));
        let want = Checkout { adopt: true, ..fresh(&branch, base) };
        let slot = pool.open(&held_by, &want).unwrap();
        write(&slot.path.join("work"), name);
        let reference = "refs/lanewright/checkpoint/P1-A/1";
        let request = SnapshotRequest { worktree: &slot.path, reference, message: "kept", head: base, since: base };
        snapshot(&repository, &request).unwrap();
        let (worktree, branch) = (&slot.path, &slot.branch);
        let request = CommitRequest { worktree, branch, message: "work", trailers: &[], since: base };
        let head = commit_all(&repository, &request).unwrap().head;
        assert_eq!(repository.changed_paths(base, &head).unwrap(), ["work"]);
        pool.release(&held_by, &[head]).unwrap();
    }
    assert_eq!(pool.empty(&run_id("r1"), None).unwrap(), []);
}

/// Lanewright and every git of its own are killed at many moments; whoever asks again gets it all done.
#[test]
fn open_killed_at_any_moment_is_repeatable() {
    const NAME: &str = concat!(module_path!(), "::open_killed_at_any_moment_is_repeatable");
    fn body() {
        if let Some(main) = std::env::var_os("LANEWRIGHT_GIT_TEST_VICTIM") {
            let base = CommitId::new(&std::env::var("LANEWRIGHT_GIT_TEST_BASE").unwrap()).unwrap();
            return whole_life(Path::new(&main), &base);
        }
        let (mut delay, mut finished) = (Duration::ZERO, false);
        while !finished {
            let world = World::new();
            let (base, before) = (world.head(), world.users_state());
            let more = [
                ("LANEWRIGHT_GIT_TEST_VICTIM", world.main.to_str().unwrap()),
                ("LANEWRIGHT_GIT_TEST_BASE", base.as_str()),
            ];
            let mut victim = command_for(NAME, world.directory.path(), &more);
            let mut victim = victim.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
            std::thread::sleep(delay);
            finished = victim.try_wait().unwrap().is_some();
            // The group is there until its leader is waited for.
            if !finished {
                rustix::process::kill_process_group(
                    rustix::process::Pid::from_child(&victim),
                    rustix::process::Signal::KILL,
                )
                .unwrap();
            }
            victim.wait().unwrap();
            whole_life(&world.main, &base);
            assert_eq!(world.worktrees(), [""; 0], "killed after {delay:?}");
            assert!(!world.root().exists(), "killed after {delay:?}");
            assert_eq!(world.users_state(), before);
            git(&world.main, &["fsck", "--strict"]);
            delay += Duration::from_millis(43);
        }
    }
    pinned(NAME, &[], body);
}
