//! Commits of uncommitted work, and the commands that they take.

use std::fs;
use std::path::{Path, PathBuf};

use lanewright_git::{CommitRequest, Committed, Repository, SnapshotRequest, commit_all, snapshot_of_head};
use lanewright_model::event::Worktree;

use crate::support::*;

fn lane(world: &World) -> Worktree {
    let slot = world.pool(4).open(&holder("A", None), &fresh("lane/P1/A", &world.head())).unwrap();
    write(&slot.path.join("new/text.txt"), "one\r\ntwo\n");
    slot
}

fn commit_in(repository: &Repository, slot: &Worktree) -> Committed {
    let (worktree, branch, since) = (&slot.path, &slot.branch, &slot.head);
    let request = CommitRequest { worktree, branch, message: "work", trailers: &[("Run", "r1")], since };
    commit_all(repository, &request).unwrap()
}

fn home() -> PathBuf {
    std::env::home_dir().unwrap()
}

/// Has git write down every command of its own from now on.
fn traced() -> PathBuf {
    let (trace, settings) = (home().join("trace"), std::env::var_os("GIT_CONFIG_GLOBAL").unwrap());
    let known = fs::read_to_string(&settings).unwrap();
    fs::write(settings, format!("{known}[trace2]\nnormalTarget = {}\n", trace.display())).unwrap();
    trace
}

/// The commands that git was given.
fn commands(trace: &Path) -> Vec<String> {
    let text = fs::read_to_string(trace).unwrap();
    text.lines().filter_map(|line| line.split_once(" start ")).map(|(_, command)| command.to_owned()).collect()
}

pinned_tests! {
    fn commit_starts_one_git_process_snapshot_none() {
        let world = World::new();
        let (slot, repository) = (lane(&world), world.repository());
        let trace = traced();
        let committed = commit_in(&repository, &slot);
        let reference = "refs/lanewright/checkpoint/P1-A/1";
        let keep = |head| {
            let request = SnapshotRequest { worktree: &slot.path, reference, message: "kept", head, since: head };
            snapshot_of_head(&repository, &request).unwrap()
        };
        let kept = keep(&committed.head).unwrap();
        // And once for all lanes what the settings say.
        let (expected, commands) = ([" add ", " config "], commands(&trace));
        let as_expected = |(command, word): (&String, &&str)| command.contains(*word);
        assert!(commands.len() == 2 && commands.iter().zip(&expected).all(as_expected), "{commands:#?}");
        assert_eq!(keep(&committed.head).unwrap().reference, kept.reference);
        assert_eq!(status(&slot.path), "");
        let shown = git(&world.main, &["show", "-s", "--format=%T %P %an", kept.commit.as_str()]);
        let tree = git(&world.main, &["rev-parse", &format!("{}^{{tree}}", committed.head)]);
        assert_eq!(shown, format!("{tree} {} Tester", committed.head));
        let worktree = &slot.path;
        assert_eq!(git(worktree, &["log", "-1", "--walk-reflogs", "--format=%gs"]), "commit: work");
        assert_eq!(git(worktree, &["show", "HEAD:new/text.txt"]), "one\r\ntwo");
        // Something else is there by now, or another commit is meant.
        write(&world.main.join(".git/worktrees/01/lanewright.hook"), "0123 file\0");
        assert_eq!(keep(&committed.head), None);
        fs::remove_file(world.main.join(".git/worktrees/01/lanewright.hook")).unwrap();
        assert_eq!(keep(&world.head()), None);
    }

    fn commit_ignores_identity_of_a_slot() {
        let world = World::new();
        let (slot, repository) = (lane(&world), world.repository());
        git(&world.main, &["config", "extensions.worktreeConfig", "true"]);
        git(&slot.path, &["config", "--worktree", "user.name", "Agent"]);
        let head = commit_in(&repository, &slot).head;
        let (worktree, reference) = (&slot.path, "refs/lanewright/checkpoint/P1-A/1");
        let request = SnapshotRequest { worktree, reference, message: "kept", head: &head, since: &head };
        let kept = snapshot_of_head(&repository, &request).unwrap().unwrap();
        for commit in [&head, &kept.commit] {
            assert_eq!(git(&world.main, &["show", "-s", "--format=%an %cn", commit.as_str()]), "Tester Tester");
        }
    }

    fn attributes_apply_from_every_source() {
        let everywhere = home().join("elsewhere");
        let places = ["main/.gitattributes", ".git/info/attributes", "user", "named"];
        for place in places {
            let world = World::new();
            let file = match place {
                "main/.gitattributes" => world.main.join(".gitattributes"),
                "user" => PathBuf::from(std::env::var_os("XDG_CONFIG_HOME").unwrap()).join("git/attributes"),
                "named" => everywhere.clone(),
                _ => world.main.join(place),
            };
            write(&file, "*.txt text\n");
            match place {
                "main/.gitattributes" => drop(commit(&world.main, "attributes")),
                "named" => drop(git(&world.main, &["config", "core.attributesFile", &everywhere.to_string_lossy()])),
                _ => {}
            }
            let slot = lane(&world);
            commit_in(&world.repository(), &slot);
            assert_eq!(status(&slot.path), "");
            assert_eq!(git(&slot.path, &["show", "HEAD:new/text.txt"]), "one\ntwo", "{place}");
            fs::remove_file(file).unwrap();
        }
    }

    fn commit_interrupted_before_ref_is_completed() {
        let world = World::new();
        let (slot, repository) = (lane(&world), world.repository());
        // What it left: the index, and locks on it and on the branch.
        git(&slot.path, &["add", "new"]);
        fs::write(world.main.join(".git/worktrees/01/index.lock"), "").unwrap();
        fs::write(world.main.join(".git/refs/heads/lane/P1/A.lock"), "").unwrap();
        let first = commit_in(&repository, &slot);
        assert_eq!(commit_in(&repository, &slot), first);
        // Or the branch, but not the index.
        git(&slot.path, &["read-tree", slot.head.as_str()]);
        assert_eq!(commit_in(&repository, &slot), first);
        assert_eq!(status(&slot.path), "");
    }
}
