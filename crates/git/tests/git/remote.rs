use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lanewright_git::{GitError, PushRequest, Remote};
use lanewright_model::CommitId;

use crate::support::*;

/// A bare repository that is the remote `origin` of the world.
fn origin(world: &World) -> PathBuf {
    let path = world.main.with_file_name("origin.git");
    git(&world.main, &["init", "--quiet", "--bare", path.to_str().unwrap()]);
    git(&world.main, &["remote", "add", "origin", path.to_str().unwrap()]);
    path
}

fn remote(world: &World) -> Remote {
    Remote::named(&world.repository(), "origin").unwrap()
}

const STATE: &str = "refs/lanewright/state/r1";

fn push(world: &World, commit: &CommitId, expected: Option<&CommitId>) -> Result<bool, GitError> {
    remote(world).push(&PushRequest {
        reference: STATE,
        commit: Some(commit),
        expected,
        hooks: false,
        worktree: None,
        is_similar: true,
    })
}

fn hook(repository: &Path, name: &str, text: &str) {
    write(&repository.join("hooks").join(name), format!("#!/bin/sh\n{text}\n"));
    fs::set_permissions(repository.join("hooks").join(name), fs::Permissions::from_mode(0o755)).unwrap();
}

pinned_tests! {
    fn push_overwrites_only_expected_ref() {
        let world = World::new();
        origin(&world);
        let first = world.head();
        let second = commit(&world.main, "second");
        git(&world.main, &["checkout", "-q", "-b", "aside", first.as_str()]);
        let aside = commit(&world.main, "aside");
        assert!(push(&world, &first, None).unwrap());
        assert!(!push(&world, &second, None).unwrap(), "another push was there before");
        assert!(push(&world, &second, Some(&first)).unwrap());
        assert!(!push(&world, &aside, Some(&first)).unwrap());
        assert!(push(&world, &aside, Some(&second)).unwrap(), "it need not be a fast-forward");
        let listed = remote(&world).references(&["refs/lanewright/"]).unwrap();
        assert_eq!(listed, [(STATE.to_owned(), aside)]);
    }

    fn push_of_similar_commit_sends_only_new_files() {
        let world = World::new();
        let origin = origin(&world);
        git(&origin, &["config", "receive.unpackLimit", "1"]);
        (0..50).for_each(|number| write(&world.main.join(format!("dir/{number}")), format!("{number}\n")));
        let state = |message: &str| {
            git(&world.main, &["add", "--all"]);
            let tree = git(&world.main, &["write-tree"]);
            CommitId::new(&git(&world.main, &["commit-tree", "-p", "HEAD", "-m", message, &tree])).unwrap()
        };
        let in_packs = || {
            let counts = git(&origin, &["count-objects", "-v"]);
            let count = counts.lines().find_map(|line| line.strip_prefix("in-pack: "));
            count.unwrap().parse::<u32>().unwrap()
        };
        let first = state("first");
        assert!(push(&world, &first, None).unwrap());
        let before = in_packs();
        assert!(before > 50);
        write(&world.main.join("dir/7"), "other\n");
        let second = state("second");
        assert!(push(&world, &second, Some(&first)).unwrap());
        let sent = in_packs() - before;
        assert!((4..8).contains(&sent), "a commit, two trees, a file, and what they are stored as differences of: {sent}");
        git(&origin, &["fsck", "--connectivity-only"]);
        assert_eq!(git(&origin, &["rev-list", "--count", STATE]), "2", "its parents are its own");
    }

    fn push_and_fetch_transfer_only_named_refs() {
        let world = World::new();
        let origin = origin(&world);
        git(&world.main, &["tag", "-a", "v1", "-m", "v1"]);
        for (key, value) in [("push.followTags", "true"), ("push.gpgSign", "false"), ("push.default", "matching")] {
            git(&world.main, &["config", key, value]);
        }
        push(&world, &world.head(), None).unwrap();
        assert_eq!(git(&origin, &["for-each-ref", "--format=%(refname)"]), STATE);
        let before = git(&world.main, &["for-each-ref"]);
        remote(&world).fetch(&[format!("{STATE}:refs/lanewright/fetched")]).unwrap();
        let after = git(&world.main, &["for-each-ref"]);
        assert_eq!(after.lines().filter(|line| !before.contains(line)).count(), 1, "{after}");
        assert!(!world.main.join(".git/FETCH_HEAD").exists());
    }

    fn pre_push_hook_runs_only_on_request() {
        let world = World::new();
        origin(&world);
        hook(&world.main.join(".git"), "pre-push", "exit 1");
        assert!(push(&world, &world.head(), None).unwrap());
        let (reference, commit) = ("refs/heads/x", Some(&world.head()));
        let request = PushRequest { reference, commit, expected: None, hooks: true, worktree: None, is_similar: false };
        let error = remote(&world).push(&request).unwrap_err();
        assert!(error.to_string().ends_with("hooks/pre-push) refuses the push") && !error.is_outage(), "{error}");
    }

    fn overtaken_push_is_reported_as_moved() {
        let world = World::new();
        let origin = origin(&world);
        let first = world.head();
        let second = commit(&world.main, "second");
        push(&world, &second, None).unwrap();
        push(&world, &first, Some(&second)).unwrap();
        // Somebody else is quicker, after the server has said where the ref is.
        hook(&origin, "update", &format!("git update-ref {STATE} {}", git(&world.main, &["rev-parse", "HEAD"])));
        let third = commit(&world.main, "third");
        assert!(!push(&world, &third, Some(&first)).unwrap());
    }

    fn push_refusal_quotes_the_server() {
        let world = World::new();
        hook(&origin(&world), "pre-receive", "echo 'only on weekdays' >&2; exit 1");
        let error = push(&world, &world.head(), None).unwrap_err().to_string();
        for part in ["origin", STATE, "pre-receive hook declined", "only on weekdays"] {
            assert!(error.contains(part), "{error}");
        }
    }

    fn unknown_remote_error_has_remedy() {
        let world = World::new();
        let nowhere = Remote::named(&world.repository(), "origin").unwrap_err().with_remedy();
        assert!(nowhere.contains("git remote add origin"), "{nowhere}");
        let origin = origin(&world);
        let wrong = Remote::named(&world.repository(), "--upload-pack=x").unwrap_err().with_remedy();
        assert!(wrong.contains("the remotes are origin"), "{wrong}");
        fs::remove_dir_all(origin).unwrap();
        let gone = remote(&world).references(&["refs/"]).unwrap_err().with_remedy();
        let ends = "does not appear to be a git repository; see that its address is right (`git remote -v`)";
        assert!(gone.starts_with("remote `origin`: fatal: ") && gone.ends_with(ends), "{gone}");
    }

    fn silent_remote_times_out() {
        let world = World::new();
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("git://{}/x", silent.local_addr().unwrap());
        git(&world.main, &["remote", "add", "origin", &url]);
        let error = remote(&world).within(Duration::from_millis(300)).references(&["refs/"]).unwrap_err().with_remedy();
        assert!(error.contains("git ls-remote") && error.contains("stopped after 300ms"), "{error}");
    }
}
