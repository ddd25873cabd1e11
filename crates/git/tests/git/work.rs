//! Commits, heads, merges, snapshots, copies.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use lanewright_git::{
    CommitRequest, Committed, GitError, Merge, Reserved, Snapshot, SnapshotRequest, adopt_head,
    changes_where_checked_out, commit_all, copy_ignored, delete_references, head_of, merge, move_branch,
    reference_name, restore, set_worktree_to, snapshot,
};
use lanewright_model::event::Worktree;
use lanewright_model::{CommitId, LaneId, PhaseId, Timestamp};

use crate::support::*;

fn lane(world: &World) -> Worktree {
    world.pool(4).open(&holder("A", None), &fresh("lane/P1/A", &world.head())).unwrap()
}

fn commit_in(world: &World, slot: &Worktree) -> Result<Committed, GitError> {
    let request = CommitRequest {
        worktree: &slot.path,
        branch: &slot.branch,
        message: "work",
        trailers: &[("Run", "r1"), ("Lane", "A")],
        since: &slot.head,
    };
    commit_all(&world.repository(), &request)
}

const REFERENCE: &str = "refs/lanewright/checkpoint/P1-A/1";

fn snapshot_of(world: &World, worktree: &Path, head: &CommitId) -> Snapshot {
    let request = SnapshotRequest { worktree, reference: REFERENCE, message: "kept", head, since: head };
    let kept = snapshot(&world.repository(), &request).unwrap();
    let index = git(worktree, &["rev-parse", "--git-path", "lanewright.snapshot"]);
    assert!(!worktree.join(index).exists(), "the private index stays");
    kept
}

fn tree(world: &World, commit: &CommitId) -> Vec<String> {
    lines(&git(&world.main, &["ls-tree", "-r", "--name-only", commit.as_str()]))
}

pinned_tests! {
    fn everything_left_is_committed_once_whatever_its_name() {
        let world = World::new();
        let slot = lane(&world);
        let hook = world.main.join(".git/hooks/pre-commit");
        write(&hook, "#!/bin/sh\nexit 1\n");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        git(&world.main, &["config", "commit.gpgSign", "true"]);
        git(&world.main, &["config", "core.safecrlf", "true"]);
        git(&world.main, &["config", "core.autocrlf", "input"]);
        let names = ["-dash", "new\nline", "ünï", "with space", ":(top)magic", "mixed"];
        names.iter().for_each(|name| write(&slot.path.join(name), "one\r\ntwo\n"));
        fs::remove_file(slot.path.join("a.txt")).unwrap();
        write(&slot.path.join("x.log"), "ignored");
        let before = world.users_state();
        let first = commit_in(&world, &slot).unwrap();
        assert_eq!(commit_in(&world, &slot).unwrap(), first);
        assert_eq!(status(&slot.path), "");
        assert_eq!(world.repository().changed_paths(&slot.head, &first.head).unwrap().len(), names.len() + 1);
        assert_eq!(git(&slot.path, &["show", "-s", "--format=%s|%(trailers:separator=%x2C)"]), "work|Run: r1,Lane: A");
        assert_eq!(world.users_state(), before);
    }

    fn repositories_in_the_worktree_are_named_and_not_committed() {
        let world = World::new();
        let slot = lane(&world);
        for name in ["clone", "sub dir/empty"] {
            fs::create_dir_all(slot.path.join(name)).unwrap();
            git(&slot.path.join(name), &["init", "-q"]);
        }
        write(&slot.path.join("clone/file"), "x");
        commit(&slot.path.join("clone"), "inner");
        write(&slot.path.join("work"), "x");
        let committed = commit_in(&world, &slot).unwrap();
        assert_eq!(committed.embedded, ["clone", "sub dir/empty"]);
        assert_eq!(world.repository().changed_paths(&slot.head, &committed.head).unwrap(), ["work"]);
        git(&slot.path, &["add", "clone"]);
        git(&slot.path, &["commit", "-q", "-m", "the agent did it itself"]);
        let repository = world.repository();
        let found = |to: &CommitId| repository.embedded_repositories(&slot.head, to).unwrap();
        assert_eq!(found(&head(&slot.path)), ["clone"]);
        write(&slot.path.join(".gitmodules"), "[submodule \"c\"]\npath = clone\nurl = ./clone\n");
        git(&slot.path, &["add", ".gitmodules"]);
        git(&slot.path, &["commit", "-q", "-m", "as a submodule"]);
        assert_eq!(found(&head(&slot.path)), [""; 0]);
    }

    fn work_left_half_way_is_not_declared_done() {
        let world = World::new();
        let slot = lane(&world);
        write(&slot.path.join("a.txt"), "ours\n");
        commit(&slot.path, "ours");
        git(&slot.path, &["checkout", "-q", "-b", "theirs", world.head().as_str()]);
        write(&slot.path.join("a.txt"), "theirs\n");
        commit(&slot.path, "theirs");
        git(&slot.path, &["checkout", "-q", "lane/P1/A"]);
        assert!(!git_output(&slot.path, &["merge", "theirs"]).status.success());
        let merging = commit_in(&world, &slot);
        assert!(matches!(merging, Err(GitError::OperationInProgress { which: "a merge", .. })));
        git(&slot.path, &["merge", "--quit"]);
        let conflicted = commit_in(&world, &slot);
        assert!(matches!(conflicted, Err(GitError::OperationInProgress { which: "resolving conflicts", .. })));
        git(&slot.path, &["reset", "-q", "--hard"]);
        assert!(!git_output(&slot.path, &["rebase", "theirs"]).status.success());
        let rebasing = commit_in(&world, &slot);
        assert!(matches!(rebasing, Err(GitError::OperationInProgress { which: "a rebase", .. })));
        assert!(adopt_head(&world.repository(), &slot.path, "lane/P1/A").is_err());
    }

    fn a_lock_that_a_dead_git_left_on_the_index_is_removed() {
        let world = World::new();
        let slot = lane(&world);
        let lock = world.main.join(".git/worktrees/01/index.lock");
        fs::write(&lock, "").unwrap();
        write(&slot.path.join("work"), "x");
        commit_in(&world, &slot).unwrap();
        assert_eq!(status(&slot.path), "");
    }

    fn a_head_that_left_its_branch_is_brought_back_where_it_continues_it() {
        let world = World::new();
        let (repository, slot) = (world.repository(), lane(&world));
        let adopt = || adopt_head(&repository, &slot.path, "lane/P1/A");
        assert_eq!(adopt().unwrap(), slot.head);
        git(&slot.path, &["checkout", "-q", "-b", "my-own"]);
        let work = commit(&slot.path, "work");
        write(&slot.path.join("unsaved"), "x");
        let on_another = commit_in(&world, &slot);
        assert!(matches!(on_another, Err(GitError::Astray { on: Some(branch), .. }) if branch == "my-own"));
        for _ in 0..2 {
            assert_eq!(adopt().unwrap(), work);
        }
        let now = head_of(&slot.path).unwrap();
        assert_eq!((now.branch.as_deref(), now.commit), (Some("lane/P1/A"), work));
        assert_eq!(status(&slot.path), "?? unsaved");
        git(&slot.path, &["checkout", "-q", "--detach", slot.head.as_str()]);
        assert!(matches!(adopt(), Err(GitError::Astray { on: None, .. })));
        git(&world.main, &["update-ref", "-d", "refs/heads/lane/P1/A"]);
        assert!(matches!(adopt(), Err(GitError::BranchMissing { .. })));
    }

    fn a_lanes_worktree_follows_its_branch() {
        let world = World::new();
        let (repository, slot) = (world.repository(), lane(&world));
        git(&world.main, &["checkout", "-q", "--detach"]);
        write(&world.main.join("a.txt"), "merged\n");
        fs::remove_file(world.main.join("src/b.rs")).unwrap();
        let merged = commit(&world.main, "merged");
        move_branch(&repository, "lane/P1/A", &slot.head, &merged).unwrap();
        write(&slot.path.join("target/cache"), "built");
        write(&slot.path.join("untracked"), "x");
        let follow = || set_worktree_to(&repository, &slot.path, "lane/P1/A", [&slot.head, &merged]);
        write(&slot.path.join("src/b.rs"), "formatted by a gate");
        assert!(matches!(follow(), Err(GitError::Dirty { paths, .. }) if paths.contains(&"src/b.rs".to_owned())));
        assert_eq!(fs::read_to_string(slot.path.join("a.txt")).unwrap(), "a\n");
        write(&slot.path.join("src/b.rs"), "b\n");
        for _ in 0..2 {
            follow().unwrap();
            assert_eq!(status(&slot.path), "?? untracked");
        }
        assert!(slot.path.join("target/cache").exists());
        // A crash in the middle: some files are the new ones, the index is not.
        git(&slot.path, &["read-tree", slot.head.as_str()]);
        write(&slot.path.join("src/b.rs"), "b\n");
        fs::write(world.main.join(".git/worktrees/01/lanewright.update"), merged.as_str()).unwrap();
        fs::write(world.main.join(".git/worktrees/01/index.lock"), "").unwrap();
        follow().unwrap();
        assert_eq!(status(&slot.path), "?? untracked");
        let other = set_worktree_to(&repository, &slot.path, "lane/P1/B", [&slot.head, &merged]);
        assert!(matches!(other, Err(GitError::Astray { .. })));
    }

    fn changes_count_whether_or_not_they_are_committed() {
        let world = World::new();
        let slot = lane(&world);
        write(&slot.path.join("committed"), "x");
        commit(&slot.path, "work");
        write(&slot.path.join("a.txt"), "changed");
        write(&slot.path.join("dir/untracked"), "x");
        write(&slot.path.join("x.log"), "ignored");
        git(&slot.path, &["switch", "--quiet", "--create", "compared"]);
        git(&slot.path, &["reset", "--quiet", "--soft", slot.head.as_str()]);
        let (place, changes) = changes_where_checked_out(&world.repository(), "compared").unwrap().unwrap();
        assert_eq!((place, changes), (slot.path.clone(), lines("a.txt\ncommitted\ndir/untracked")));
        assert_eq!(changes_where_checked_out(&world.repository(), "main").unwrap().unwrap().1, [""; 0]);
        assert_eq!(changes_where_checked_out(&world.repository(), "lane/P1/A").unwrap(), None);
    }

    fn a_snapshot_holds_everything_and_touches_nothing() {
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

    fn a_later_snapshot_holds_what_a_first_one_would() {
        let world = World::new();
        for (name, text) in [(".gitattributes", "*.up filter=up\n"), ("crlf", "1\r\n2\r\n"), ("x.up", "low\n"), ("deep/er/one", "1"), ("link-to-be", "1")] {
            write(&world.main.join(name), text);
        }
        commit(&world.main, "more");
        git(&world.main, &["config", "filter.up.clean", "tr a-z A-Z"]);
        git(&world.main, &["config", "core.autocrlf", "input"]);
        later_snapshots_are_like_first_ones(&world);
    }

    fn so_does_one_that_starts_no_git_for_its_files() {
        let world = World::new();
        for (name, text) in [("crlf", "1\r\n2\r\n"), ("x.up", "low\n"), ("deep/er/one", "1"), ("link-to-be", "1")] {
            write(&world.main.join(name), text);
        }
        commit(&world.main, "more");
        later_snapshots_are_like_first_ones(&world);
    }

    fn an_edit_while_a_snapshot_is_made_is_in_the_next() {
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

    fn what_git_takes_for_no_change_makes_no_commit() {
        let world = World::new();
        let slot = lane(&world);
        git(&slot.path, &["config", "core.autocrlf", "input"]);
        write(&slot.path.join("a.txt"), "a\r\n");
        assert_eq!(commit_in(&world, &slot).unwrap().head, slot.head);
        (0..70).for_each(|number| write(&slot.path.join(format!("many/{number}")), "x"));
        fs::remove_dir_all(slot.path.join("src")).unwrap();
        let head = commit_in(&world, &slot).unwrap().head;
        assert_eq!(world.repository().changed_paths(&slot.head, &head).unwrap().len(), 71);
        assert_eq!(status(&slot.path), "");
    }

    fn an_edit_of_the_same_size_in_the_same_second_is_not_missed() {
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

    fn work_outside_a_sparse_selection_is_work_too() {
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

    fn a_dead_snapshots_lock_blocks_no_other() {
        let world = World::new();
        let slot = lane(&world);
        write(&world.directory.path().join("indexes/A.lock"), "");
        write(&slot.path.join("work"), "x");
        assert!(tree(&world, &snapshot_of(&world, &slot.path, &slot.head).commit).contains(&"work".to_owned()));
    }

    fn snapshots_at_once_under_one_name_are_all_kept() {
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

    fn a_ref_that_is_packed_while_it_is_deleted_does_not_come_back() {
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

    fn a_snapshot_is_restored_as_it_was() {
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

    fn merges_need_no_worktree_and_name_their_conflicts() {
        let world = World::new();
        let (repository, base, pool) = (world.repository(), world.head(), world.pool(3));
        let change = |lane: &str, name: &str, text: &str| {
            let slot = pool.open(&holder(lane, None), &fresh(&format!("lane/P1/{lane}"), &base)).unwrap();
            write(&slot.path.join(name), text);
            commit(&slot.path, lane)
        };
        let (one, two, three) = (change("A", "one\n", "1"), change("B", "a.txt", "2"), change("C", "a.txt", "3"));
        let before = world.users_state();
        let join = |ours: &CommitId, theirs: &CommitId| merge(&repository, ours, theirs, "merge", &[("Lane", "A")], &[]).unwrap();
        let Merge::Done(joined) = join(&base, &one) else { panic!("no merge commit") };
        assert_eq!(git(&world.main, &["show", "-s", "--format=%P|%(trailers:key=Lane)", joined.as_str()]),
            format!("{base} {one}|Lane: A"));
        assert_eq!(join(&joined, &one), Merge::AlreadyIn);
        let Merge::Done(both) = join(&joined, &two) else { panic!("no merge commit") };
        assert_eq!(tree(&world, &both).len(), 4);
        assert_eq!(join(&both, &three), Merge::Conflict(vec!["a.txt".to_owned()]));
        git(&world.main, &["checkout", "-q", "--orphan", "alone"]);
        let alone = commit(&world.main, "alone");
        git(&world.main, &["checkout", "-q", "main"]);
        assert!(matches!(merge(&repository, &both, &alone, "m", &[], &[]), Err(GitError::Unrelated { .. })));
        assert_eq!(world.users_state()[1..3], before[1..3]);
        git(&world.main, &["fsck", "--strict"]);
    }

    fn in_a_reserved_file_the_merged_side_has_no_say() {
        let world = World::new();
        let (repository, base, pool) = (world.repository(), world.head(), world.pool(2));
        let change = |lane: &str, files: &[(&str, &str)]| {
            let slot = pool.open(&holder(lane, None), &fresh(&format!("lane/P1/{lane}"), &base)).unwrap();
            files.iter().for_each(|(name, text)| write(&slot.path.join(name), text));
            commit(&slot.path, lane)
        };
        let ours = change("A", &[("a.txt", "ours"), ("work-a", "a")]);
        let theirs = change("B", &[("a.txt", "theirs"), ("new , file", "theirs"), ("work-b", "b")]);
        let reserved = |text: Option<&str>| {
            let file = |path: &str| Reserved { path: path.to_owned(), text: text.map(|text| text.as_bytes().to_vec()) };
            [file("a.txt"), file("new , file"), file("nowhere")]
        };
        let joined = |reserved: &[Reserved]| match merge(&repository, &ours, &theirs, "m", &[], reserved).unwrap() {
            Merge::Done(commit) => commit,
            other => panic!("{other:?}"),
        };
        let shown = |commit: &CommitId, name: &str| repository.file_in(commit, name).unwrap();
        let kept = joined(&reserved(None));
        assert_eq!(shown(&kept, "a.txt"), Some(b"ours".to_vec()));
        assert_eq!((shown(&kept, "new , file"), shown(&kept, "nowhere")), (None, None));
        assert!(shown(&kept, "work-a").is_some() && shown(&kept, "work-b").is_some());
        let written = joined(&reserved(Some("text")));
        for name in ["a.txt", "new , file", "nowhere"] {
            assert_eq!(shown(&written, name), Some(b"text".to_vec()), "{name}");
        }
        git(&world.main, &["fsck", "--strict"]);
    }

    fn merging_obeys_the_attributes_of_the_branch_not_of_the_checkout() {
        let world = World::new();
        git(&world.main, &["checkout", "-q", "-b", "work"]);
        write(&world.main.join(".gitattributes"), "list merge=union\n");
        write(&world.main.join("list"), "0\n");
        let base = commit(&world.main, "list");
        let [one, two] = ["1", "2"].map(|line| {
            git(&world.main, &["checkout", "-q", "--detach", base.as_str()]);
            write(&world.main.join("list"), format!("0\n{line}\n"));
            commit(&world.main, line)
        });
        git(&world.main, &["checkout", "-q", "main"]);
        assert!(matches!(merge(&world.repository(), &one, &two, "m", &[], &[]), Ok(Merge::Done(_))));
    }

    fn ignored_files_are_copied_and_nothing_else() {
        let world = World::new();
        let slot = lane(&world);
        for (name, text) in [(".env", "secret"), ("target/deep/cache", "built"), ("other.log", "no"), ("plain", "untracked")] {
            write(&world.main.join(name), text);
        }
        write(&world.main.join("target/tool"), "tool");
        fs::set_permissions(world.main.join("target/tool"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("tool", world.main.join("target/link")).unwrap();
        write(&slot.path.join("target/deep/cache"), "newer");
        let copy = |patterns: &[&str]| {
            let copied = copy_ignored(&world.repository(), &slot.path, patterns).unwrap();
            copied.into_iter().map(|path| path.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(copy(&[]), [""; 0]);
        assert_eq!(copy(&[".env", "target", "plain", "a.txt"]), [".env", "target/link", "target/tool"]);
        assert_eq!(copy(&[".env", "target"]), [""; 0]);
        assert_eq!(fs::read_link(slot.path.join("target/link")).unwrap(), Path::new("tool"));
        assert_eq!(fs::metadata(slot.path.join("target/tool")).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_to_string(slot.path.join("target/deep/cache")).unwrap(), "newer");
        assert_eq!(status(&slot.path), "");
        fs::remove_dir_all(slot.path.join("target")).unwrap();
        let outside = world.main.with_file_name("outside");
        fs::create_dir(&outside).unwrap();
        symlink(&outside, slot.path.join("target")).unwrap();
        assert_eq!(copy(&["target"]), [""; 0]);
        assert_eq!(fs::read_dir(outside).unwrap().count(), 0);
        assert!(matches!(copy_ignored(&world.repository(), &slot.path, &["{"]), Err(GitError::BadPattern { .. })));
    }

    fn what_others_are_to_write_to_as_well_gets_its_permissions_from_git() {
        let world = World::new();
        git(&world.main, &["config", "core.sharedRepository", "group"]);
        let slot = lane(&world);
        // A commit whose name begins as that of an older object is stored in the directory of that one.
        let is_new = (0..20).any(|number| {
            write(&slot.path.join("src/b.rs"), format!("shared {number}\n"));
            let there = |name: &str| world.main.join(".git/objects").join(&name[..2]);
            let before: Vec<bool> = (0..256).map(|byte| there(&format!("{byte:02x}")).exists()).collect();
            let head = commit_in(&world, &slot).unwrap().head;
            let mode = fs::metadata(there(head.as_str())).unwrap().permissions().mode();
            let is_new = !before[usize::from_str_radix(&head.as_str()[..2], 16).unwrap()];
            assert!(!is_new || mode & 0o020 != 0, "{mode:o}");
            is_new
        });
        assert!(is_new);
    }
}

#[test]
fn a_reference_name_is_one_that_git_accepts() {
    let (phase, lane) = (PhaseId::new("P1").unwrap(), LaneId::new("SL-1").unwrap());
    let at = Timestamp::from_unix_millis(1_769_860_800_000);
    let ours = reference_name(&phase, &lane, at, false);
    assert_eq!(ours, "refs/lanewright/checkpoint/P1-SL-1/20260131T120000.000Z");
    assert_eq!(reference_name(&phase, &lane, at, true), "refs/tags/checkpoint/P1-SL-1/20260131T120000.000Z");
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
