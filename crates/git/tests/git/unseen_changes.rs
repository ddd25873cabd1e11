//! Changes that hide from git: behind flags in the index, and behind file times that were set back.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use lanewright_git::{
    Checkout, CommitRequest, GitError, Mode, SnapshotRequest, commit_all, has_changes, snapshot, uncommitted_paths,
};
use lanewright_model::CommitId;

use crate::support::*;

/// What a snapshot of `worktree` holds at `path`.
fn kept(world: &World, worktree: &Path, head: &CommitId, path: &str) -> String {
    let request = SnapshotRequest {
        worktree,
        reference: "refs/lanewright/checkpoint/P1-A/1",
        message: "kept",
        head,
        since: head,
    };
    let kept = snapshot(&world.repository(), &request).unwrap();
    git(&world.main, &["cat-file", "-p", &format!("{}:{path}", kept.commit)])
}

fn set_back(path: &Path) {
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    File::open(path).unwrap().set_modified(long_ago).unwrap();
}

fn on_tmpfs(path: &Path) -> bool {
    let found = Command::new("stat").args(["-f", "-c", "%T"]).arg(path).output().unwrap();
    found.stdout.starts_with(b"tmpfs")
}

pinned_tests! {
    fn new_file_found_despite_old_directory_mtime() {
        for settings in [&["core.trustctime=false"][..], &["core.trustctime=false", "core.untrackedCache=true"]] {
            let world = World::new();
            for setting in settings {
                let (name, value) = setting.split_once('=').unwrap();
                git(&world.main, &["config", name, value]);
            }
            let slot = world.pool(1).open(&holder("A", None), &fresh("lane/P1/A", &world.head())).unwrap();
            write(&slot.path.join("new/one"), "1");
            set_back(&slot.path.join("new"));
            for _ in 0..2 {
                assert_eq!(kept(&world, &slot.path, &slot.head, "new/one"), "1");
            }
            write(&slot.path.join("new/two"), "2");
            set_back(&slot.path.join("new"));
            assert_eq!(kept(&world, &slot.path, &slot.head, "new/two"), "2", "{settings:?}");
        }
    }

    fn edit_found_despite_old_file_mtime() {
        let world = World::new();
        for setting in ["core.trustctime=false", "core.checkStat=minimal", "core.ignoreStat=true"] {
            let (name, value) = setting.split_once('=').unwrap();
            git(&world.main, &["config", name, value]);
        }
        let slot = world.pool(1).open(&holder("A", None), &fresh("lane/P1/A", &world.head())).unwrap();
        let file = slot.path.join("a.txt");
        set_back(&file);
        git(&slot.path, &["update-index", "--no-assume-unchanged", "a.txt"]);
        git(&slot.path, &["update-index", "--refresh"]);
        assert_eq!(kept(&world, &slot.path, &slot.head, "a.txt"), "a");
        // Another file: git sees no more of a change within a second than its number.
        let other = slot.path.join("other");
        write(&other, "b\n");
        set_back(&other);
        fs::rename(&other, &file).unwrap();
        assert_eq!(kept(&world, &slot.path, &slot.head, "a.txt"), "b");
    }

    fn write_through_memory_is_committed() {
        let world = World::new();
        let slot = world.pool(1).open(&holder("A", None), &fresh("lane/P1/A", &world.head())).unwrap();
        let script = "import mmap, sys\nfile = open('a.txt', 'r+b')\nshared = mmap.mmap(file.fileno(), 0)\n\
                      for line in sys.stdin:\n    shared[0:1] = line[0:1].encode()\n    print(flush=True)\n";
        let mut agent = Command::new("python3");
        let agent = agent.args(["-c", script]).current_dir(&slot.path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut agent = agent.spawn().unwrap();
        let (mut told, mut said) = (agent.stdin.take().unwrap(), BufReader::new(agent.stdout.take().unwrap()));
        // Where files are on a disk, a second write changes their times once the first one is there.
        let writes = if on_tmpfs(&slot.path) { ["1", "2", "3"].as_slice() } else { &["1"] };
        for byte in writes {
            writeln!(told, "{byte}").unwrap();
            said.read_line(&mut String::new()).unwrap();
            commit_in(&world, &slot).unwrap();
            assert!(git(&slot.path, &["show", "HEAD:a.txt"]).starts_with(byte), "{byte}");
            // Git reads a file again that was written in the same second as the index.
            let index = File::open(world.main.join(".git/worktrees/01/index")).unwrap();
            index.set_modified(SystemTime::now() + Duration::from_secs(10)).unwrap();
        }
        drop(told);
        assert!(agent.wait().unwrap().success());
    }

    fn untracked_link_is_saved_as_file_without_symlinks() {
        let world = World::new();
        std::os::unix::fs::symlink("a.txt", world.main.join("link")).unwrap();
        commit(&world.main, "a link");
        git(&world.main, &["config", "core.symlinks", "false"]);
        let slot = world.pool(1).open(&holder("A", None), &fresh("lane/P1/A", &world.head())).unwrap();
        assert_eq!(kept(&world, &slot.path, &slot.head, "link"), "a.txt");
        git(&slot.path, &["rm", "--quiet", "--cached", "link"]);
        write(&slot.path.join("link"), "work\n");
        assert_eq!(kept(&world, &slot.path, &slot.head, "link"), "work");
        let snapshots = git(&world.main, &["for-each-ref", "--format=%(objectname)", "refs/lanewright/checkpoint"]);
        let modes: Vec<String> =
            snapshots.lines().map(|name| git(&world.main, &["ls-tree", name, "link"])[..6].to_owned()).collect();
        assert!(modes.contains(&"100644".to_owned()), "{modes:?}");
    }

    fn edits_of_flagged_files_are_found_in_any_index() {
        for init in [&[][..], &["--object-format=sha256"]] {
            for how in ["--index-version=2", "--index-version=4", "--split-index"] {
                let world = World::with(init);
                let slot = world.pool(1).open(&holder("A", None), &fresh("lane/P1/A", &world.head())).unwrap();
                git(&slot.path, &["update-index", how]);
                kept(&world, &slot.path, &slot.head, "a.txt");
                git(&slot.path, &["update-index", "--assume-unchanged", "a.txt"]);
                git(&slot.path, &["update-index", "--skip-worktree", "src/b.rs"]);
                write(&slot.path.join("a.txt"), "work\n");
                write(&slot.path.join("src/b.rs"), "work\n");
                assert_eq!(status(&slot.path), "", "git does not look");
                assert_eq!(uncommitted_paths(&world.repository(), &slot.path).unwrap(), ["a.txt", "src/b.rs"], "{init:?} {how}");
                assert_eq!(status(&slot.path), "", "the flags are the agent's as long as it works");
                let release = world.pool(1).release(&holder("A", None), std::slice::from_ref(&slot.head));
                assert!(matches!(&release, Err(GitError::Dirty { paths, .. }) if paths.len() == 2), "{release:?}");
                for path in ["a.txt", "src/b.rs"] {
                    assert_eq!(kept(&world, &slot.path, &slot.head, path), "work", "{init:?} {how} {path}");
                }
                let request = CommitRequest {
                    worktree: &slot.path,
                    branch: &slot.branch,
                    message: "work",
                    trailers: &[],
                    since: &slot.head,
                };
                commit_all(&world.repository(), &request).unwrap();
                assert_eq!(git(&slot.path, &["show", "HEAD:a.txt", "HEAD:src/b.rs"]), "work\nwork");
                git(&slot.path, &["update-index", "--assume-unchanged", "a.txt"]);
                write(&slot.path.join("a.txt"), "more\n");
                assert!(has_changes(&slot.path).unwrap());
            }
        }
    }

    fn slot_reuse_discards_edits_of_flagged_files() {
        let world = World::new();
        let pool = world.pool(1);
        let slot = pool.open(&holder("A", None), &fresh("lane/P1/A", &world.head())).unwrap();
        git(&slot.path, &["update-index", "--skip-worktree", "a.txt"]);
        write(&slot.path.join("a.txt"), "work\n");
        let again = Checkout { mode: Mode::Reset, adopt: true, ..fresh("lane/P1/A", &world.head()) };
        pool.open(&holder("A", None), &again).unwrap();
        assert_eq!(fs::read_to_string(slot.path.join("a.txt")).unwrap(), "a\n");
    }

    fn sparse_checkout_keeps_excluded_files_in_commits() {
        let world = World::new();
        let slot = world.pool(1).open(&holder("A", None), &fresh("lane/P1/A", &world.head())).unwrap();
        git(&slot.path, &["sparse-checkout", "set", "--no-cone", "/a.txt"]);
        assert!(!slot.path.join("src").exists());
        write(&slot.path.join("a.txt"), "work\n");
        assert_eq!(kept(&world, &slot.path, &slot.head, "src/b.rs"), "b");
        assert_eq!(kept(&world, &slot.path, &slot.head, "a.txt"), "work");
        let (worktree, branch, since) = (&slot.path, &slot.branch, &slot.head);
        let request = CommitRequest { worktree, branch, message: "work", trailers: &[], since };
        commit_all(&world.repository(), &request).unwrap();
        assert_eq!(git(&slot.path, &["show", "HEAD:src/b.rs"]), "b");
        assert!(!slot.path.join("src").exists());
    }
}
