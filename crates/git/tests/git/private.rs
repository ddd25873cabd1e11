//! The git directory that an agent has of its own while it works.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use lanewright_git::{
    GitError, Head, LeftBehind, Mode, Repository, SnapshotRequest, TakenOver, adopt_head, bring_over, changed_since,
    head_of, make_private, private_git_directory, restore_link, snapshot, take_over, uncommitted_paths,
};
use lanewright_model::CommitId;
use lanewright_model::event::Worktree;

use crate::support::*;

/// A slot of lane `A` whose agent is about to work in a git directory of its own.
pub(crate) fn given(world: &World) -> Worktree {
    let slot = lane(world);
    make_private(&world.repository(), &slot.path).unwrap();
    slot
}

/// What becomes of it after the agent, whose worktree leads to the repository again.
pub(crate) fn taken(world: &World, slot: &Worktree) -> TakenOver {
    let taken = take_over(&world.repository(), &slot.path).unwrap().unwrap();
    restore_link(&world.repository(), &slot.path).unwrap();
    assert_eq!(private_git_directory(&slot.path), None);
    taken
}

/// The refs of the repository, the branch of the lane left out.
pub(crate) fn refs(world: &World) -> Vec<String> {
    let all = lines(&git(&world.main, &["for-each-ref", "--format=%(refname) %(objectname)"]));
    all.into_iter().filter(|line| !line.starts_with("refs/heads/lane/")).collect()
}

pub(crate) fn branch(world: &World, slot: &Worktree) -> CommitId {
    world.repository().branch_commit(&slot.branch).unwrap().unwrap()
}

pub(crate) fn assert_whole(world: &World) {
    git(&world.main, &["fsck", "--full", "--strict"]);
}

pub(crate) fn home(slot: &Worktree) -> PathBuf {
    private_git_directory(&slot.path).unwrap()
}

pinned_tests! {
    fn nothing_that_an_agent_does_with_git_reaches_the_repository_but_its_branch() {
        let world = World::new();
        git(&world.main, &["remote", "add", "origin", "https://example.com/x.git"]);
        git(&world.main, &["tag", "-a", "v1", "-m", "one"]);
        git(&world.main, &["branch", "other"]);
        write(&world.main.join("a.txt"), "the user's\n");
        git(&world.main, &["stash", "--quiet"]);
        let slot = given(&world);
        let (before, user) = (refs(&world), world.users_state());
        let agent = |arguments: &[&str]| git(&slot.path, arguments);
        assert_eq!(status(&slot.path), "");
        assert_eq!(agent(&["remote", "get-url", "origin"]), "https://example.com/x.git");
        assert_eq!(agent(&["stash", "list"]), "");
        assert_eq!(agent(&["rev-parse", "--abbrev-ref", "HEAD"]), slot.branch);
        assert_eq!(agent(&["rev-parse", "v1^{commit}"]), world.head().as_str());
        write(&slot.path.join("a.txt"), "one\n");
        commit(&slot.path, "one");
        commit(&slot.path, "two");
        agent(&["rebase", "--quiet", "--force-rebase", "HEAD~1"]);
        write(&slot.path.join("b.txt"), "stashed\n");
        agent(&["stash", "--quiet", "--include-untracked"]);
        agent(&["tag", "mine"]);
        agent(&["checkout", "--quiet", "-b", "side", "HEAD~1"]);
        write(&slot.path.join("side.txt"), "side\n");
        let side = commit(&slot.path, "side");
        agent(&["checkout", "--quiet", &slot.branch]);
        agent(&["merge", "--quiet", "--no-edit", "--no-ff", "side"]);
        agent(&["checkout", "--quiet", "-b", "unmerged"]);
        write(&slot.path.join("unmerged.txt"), "x\n");
        let unmerged = commit(&slot.path, "unmerged");
        agent(&["checkout", "--quiet", &slot.branch]);
        agent(&["commit", "--quiet", "--amend", "-m", "amended"]);
        agent(&["branch", "--quiet", "-D", "other"]);
        agent(&["update-ref", "refs/heads/main", "HEAD"]);
        agent(&["config", "core.bare", "true"]);
        agent(&["config", "--unset", "core.bare"]);
        agent(&["config", "alias.x", "!false"]);
        agent(&["update-ref", "-d", "refs/tags/v1"]);
        agent(&["notes", "add", "-m", "note"]);
        agent(&["gc", "--quiet", "--prune=now"]);
        write(&home(&slot).join("hooks/pre-commit"), "#!/bin/sh\nfalse\n");
        agent(&["worktree", "prune"]);
        let end = head(&slot.path);
        assert_eq!(branch(&world, &slot), slot.head, "not before it is brought over");
        let taken = taken(&world, &slot);
        assert_eq!(taken.lost, None);
        let left: Vec<(&str, &CommitId)> = taken.left.iter().map(|it| (it.name.as_str(), &it.commit)).collect();
        assert!(left.contains(&("refs/heads/unmerged", &unmerged)), "{left:?}");
        assert!(left.iter().any(|(name, _)| *name == "refs/stash"), "{left:?}");
        assert!(!left.iter().any(|(_, commit)| **commit == side), "{left:?}");
        for LeftBehind { commit, .. } in &taken.left {
            git(&world.main, &["cat-file", "-e", &format!("{commit}^{{tree}}")]);
        }
        assert_eq!(branch(&world, &slot), end);
        assert_eq!(refs(&world), before);
        assert_eq!(world.users_state(), user);
        assert_eq!(status(&slot.path), "");
        assert_eq!(head(&slot.path), end);
        assert_whole(&world);
        assert!(!world.main.join(".git/lanewright/private/01/git").exists());
    }

    fn commits_are_brought_over_while_the_agent_works() {
        let world = World::new();
        let slot = given(&world);
        let repository = world.repository();
        write(&slot.path.join("one"), "1\n");
        let one = commit(&slot.path, "one");
        write(&slot.path.join("two"), "2\n");
        git(&slot.path, &["add", "two"]);
        bring_over(&repository, &slot.path).unwrap();
        let at = repository.head_at(&slot.path).unwrap();
        assert_eq!(at, Head { branch: Some(slot.branch.clone()), commit: one.clone() });
        assert_eq!(head_of(&slot.path).unwrap(), at);
        let request = SnapshotRequest {
            worktree: &slot.path,
            reference: "refs/lanewright/checkpoint/P1-A/1",
            message: "Snapshot",
            head: &one,
            since: &slot.head,
        };
        let kept = snapshot(&repository, &request).unwrap();
        assert_eq!(git(&world.main, &["rev-parse", &format!("{}^", kept.commit)]), one.as_str());
        assert!(tree(&world, &kept.commit).contains(&"two".to_owned()));
        assert_eq!(uncommitted_paths(&repository, &slot.path).unwrap(), ["two"]);
        assert_eq!(status(&slot.path), "A  two", "the agent's own index");
        write(&slot.path.join("three"), "3\n");
        let three = commit(&slot.path, "three");
        assert_eq!(taken(&world, &slot), TakenOver::default());
        assert_eq!(branch(&world, &slot), three);
        assert_eq!(repository.last_head(&slot.path), Some(three));
        assert_whole(&world);
    }

    fn agents_see_what_tags_lead_to() {
        let world = World::new();
        let format = ["for-each-ref", "--format=%(refname) %(objectname) %(*objectname)", "refs/tags"];
        for packed in [false, true] {
            let name = if packed { "packed" } else { "loose" };
            git(&world.main, &["tag", "-a", name, "-m", "annotated"]);
            git(&world.main, &["tag", "-a", &format!("nested/{name}"), name, "-m", "a tag of a tag"]);
            git(&world.main, &["tag", &format!("light-{name}")]);
            if !packed {
                git(&world.main, &["pack-refs", "--all"]);
            }
        }
        let slot = given(&world);
        assert_eq!(git(&slot.path, &format), git(&world.main, &format));
        // GitPython, by which aider reads a repository, refuses any other.
        let text = fs::read_to_string(home(&slot).join("packed-refs")).unwrap();
        assert!(text.starts_with("# pack-refs with: peeled "), "{text}");
        assert_eq!(taken(&world, &slot), TakenOver::default());
    }

    fn what_is_staged_and_not_committed_stays_staged() {
        let world = World::new();
        let slot = given(&world);
        write(&slot.path.join("a.txt"), "staged\n");
        git(&slot.path, &["add", "a.txt"]);
        write(&slot.path.join("a.txt"), "present\n");
        git(&slot.path, &["commit", "--quiet", "-m", "x"]);
        git(&slot.path, &["reset", "--quiet", "--soft", "HEAD~1"]);
        taken(&world, &slot);
        assert_eq!(git(&slot.path, &["show", ":a.txt"]), "staged");
        assert_eq!(status(&slot.path), "MM a.txt");
        let committed = commit_in(&world, &slot).unwrap();
        assert_eq!(git(&world.main, &["show", &format!("{}:a.txt", committed.head)]), "present");
        assert_whole(&world);
    }

    fn a_conflict_stays_a_conflict() {
        let world = World::new();
        let slot = given(&world);
        write(&slot.path.join("a.txt"), "ours\n");
        commit(&slot.path, "ours");
        git(&slot.path, &["checkout", "--quiet", "-b", "theirs", "HEAD~1"]);
        write(&slot.path.join("a.txt"), "theirs\n");
        commit(&slot.path, "theirs");
        git(&slot.path, &["checkout", "--quiet", &slot.branch]);
        assert!(!git_output(&slot.path, &["merge", "theirs"]).status.success());
        taken(&world, &slot);
        assert_eq!(status(&slot.path), "UU a.txt");
        let refused = commit_in(&world, &slot).map(drop);
        assert!(matches!(adopt_head(&world.repository(), &slot.path, &slot.branch),
            Err(GitError::OperationInProgress { .. })), "{refused:?}");
        git(&slot.path, &["merge", "--abort"]);
        assert_whole(&world);
    }

    fn a_directory_that_others_removed_with_its_record_is_given_again() {
        let world = World::new();
        let slot = given(&world);
        write(&slot.path.join("x"), "x\n");
        commit(&slot.path, "x");
        fs::remove_dir_all(world.main.join(".git/lanewright")).unwrap();
        assert_eq!(taken(&world, &slot), TakenOver { removed: true, ..TakenOver::default() });
        assert_eq!(status(&slot.path), "?? x");
        make_private(&world.repository(), &slot.path).unwrap();
        let made = commit(&slot.path, "x");
        assert_eq!(taken(&world, &slot), TakenOver::default());
        assert_eq!(branch(&world, &slot), made);
    }

    fn a_pipe_among_the_objects_is_not_waited_for() {
        let pipe = |path: &Path| {
            let _ = fs::remove_file(path);
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        };
        let world = World::new();
        let slot = given(&world);
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        let objects = home(&slot).join("objects");
        pipe(&objects.join("info/alternates"));
        pipe(&home(&slot).join("index.lock"));
        assert_eq!(taken(&world, &slot), TakenOver::default());
        assert_eq!(branch(&world, &slot), made);

        make_private(&world.repository(), &slot.path).unwrap();
        git(&slot.path, &["sparse-checkout", "set", "src"]);
        for name in ["sharedindex.1", "info/sparse-checkout", "MERGE_MSG"] {
            pipe(&home(&slot).join(name));
        }
        assert_eq!(taken(&world, &slot), TakenOver::default());

        make_private(&world.repository(), &slot.path).unwrap();
        let objects = home(&slot).join("objects");
        write(&slot.path.join("y"), "y\n");
        let name = commit(&slot.path, "y").to_string();
        pipe(&objects.join(&name[..2]).join(&name[2..]));
        assert!(taken(&world, &slot).lost.unwrap().contains("neither a file nor a directory"));
        assert_eq!(branch(&world, &slot), made);
    }

    fn commits_on_a_fetch_of_limited_depth_are_refused_with_that_reason() {
        let world = World::new();
        let other = World::new();
        for text in ["one\n", "two\n"] {
            write(&other.main.join("z"), text);
            commit(&other.main, "z");
        }
        let slot = given(&world);
        let url = format!("file://{}", other.main.display());
        git(&slot.path, &["fetch", "--quiet", "--depth=1", &url, "main"]);
        git(&slot.path, &["merge", "--quiet", "--no-edit", "--allow-unrelated-histories", "-X", "theirs", "FETCH_HEAD"]);
        assert!(taken(&world, &slot).lost.unwrap().contains("`--depth`"));
        assert_whole(&world);
    }

    fn passwords_of_the_repositorys_settings_are_not_the_agents() {
        let world = World::new();
        let user = |arguments: &[&str]| git(&world.main, arguments);
        user(&["remote", "add", "origin", "https://me:hunter2@example.com/x.git"]);
        user(&["config", "--add", "remote.origin.url", "git@example.com:x.git"]);
        user(&["config", "http.https://example.com/.extraheader", "AUTHORIZATION: basic aHVudGVyMg=="]);
        user(&["config", "url.https://me:hunter2@example.com/.insteadOf", "gh:"]);
        user(&["config", "alias.say", "!echo \"a \\\\ b\"; echo '#c'"]);
        user(&["config", "core.quotePath", "false"]);
        let slot = given(&world);
        let agent = |arguments: &[&str]| git(&slot.path, arguments);
        assert_eq!(agent(&["config", "--get-all", "remote.origin.url"]), "https://example.com/x.git\ngit@example.com:x.git");
        let all = agent(&["config", "--list"]);
        assert!(!all.contains("hunter2") && !all.contains("basic"), "{all}");
        for name in ["alias.say", "core.quotepath", "remote.origin.fetch"] {
            assert_eq!(agent(&["config", name]), user(&["config", name]));
        }
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        assert_eq!(taken(&world, &slot), TakenOver::default());
        assert_eq!(branch(&world, &slot), made);
    }

    fn one_password_of_a_setting_with_several_values_is_enough() {
        for (name, values) in [
            ("remote.origin.pushurl", ["https://me:hunter2@example.com/x", "https://example.com/y"]),
            ("http.extraHeader", ["AUTHORIZATION: basic hunter2", ""]),
            ("remote.origin.url", ["https://hunter2hunter2hunter2@example.com/x", "git@example.com:x"]),
            ("sendemail.smtpPass", ["hunter2", "hunter2"]),
            ("credential.helper", ["!echo password=hunter2", "store"]),
        ] {
            let world = World::new();
            values.iter().for_each(|value| drop(git(&world.main, &["config", "--add", name, value])));
            let slot = given(&world);
            let all = git(&slot.path, &["config", "--list"]);
            assert!(!all.contains("hunter2"), "{name}: {all}");
        }
    }

    fn heads_elsewhere_are_taken_as_detached() {
        let world = World::new();
        let repository = world.repository();
        let slot = given(&world);
        git(&slot.path, &["checkout", "--quiet", "-b", "mine"]);
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        let taken_over = taken(&world, &slot);
        assert_eq!(repository.head_at(&slot.path).unwrap(), Head { branch: None, commit: made.clone() });
        assert!(taken_over.left.iter().all(|left| left.commit == made));
        assert!(!world.branches().contains(&"mine".to_owned()));
        assert_eq!(adopt_head(&repository, &slot.path, &slot.branch).unwrap(), made);
        assert_eq!(branch(&world, &slot), made);

        make_private(&repository, &slot.path).unwrap();
        git(&slot.path, &["checkout", "--quiet", "--orphan", "empty"]);
        taken(&world, &slot);
        assert!(matches!(repository.head_at(&slot.path), Err(GitError::UnbornHead { .. })));
    }

    fn a_branch_deleted_below_its_worktree_is_where_it_last_was() {
        let world = World::new();
        let slot = given(&world);
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        git(&slot.path, &["update-ref", "-d", &format!("refs/heads/{}", slot.branch)]);
        taken(&world, &slot);
        assert_eq!(branch(&world, &slot), made);
        assert_eq!(status(&slot.path), "");
    }

    fn a_branch_that_another_program_moved_stays() {
        let world = World::new();
        let elsewhere = made_elsewhere(&world, |path| write(&path.join("theirs"), "x\n"));
        let slot = given(&world);
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        git(&world.main, &["update-ref", &format!("refs/heads/{}", slot.branch), elsewhere.as_str()]);
        assert_eq!(taken(&world, &slot).left.iter().map(|left| &left.commit).collect::<Vec<_>>(), [&made]);
        assert_eq!(branch(&world, &slot), elsewhere);
        git(&world.main, &["cat-file", "-e", &format!("{made}^{{tree}}")]);
    }

    fn each_step_may_be_interrupted_and_asked_again() {
        let world = World::new();
        let repository = world.repository();
        let slot = given(&world);
        make_private(&repository, &slot.path).unwrap();
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        write(&slot.path.join("y"), "y\n");
        git(&slot.path, &["stash", "--quiet", "--include-untracked"]);
        let first = take_over(&repository, &slot.path).unwrap();
        assert_eq!(first.as_ref().unwrap().left.len(), 1);
        assert_eq!(take_over(&repository, &slot.path).unwrap(), first);
        restore_link(&repository, &slot.path).unwrap();
        restore_link(&repository, &slot.path).unwrap();
        assert_eq!(take_over(&repository, &slot.path).unwrap(), first, "until the next agent");
        assert_eq!(branch(&world, &slot), made);
        make_private(&repository, &slot.path).unwrap();
        assert_eq!(head(&slot.path), made);
        assert_eq!(taken(&world, &slot), TakenOver::default());
        // Without a record, as after a power cut.
        make_private(&repository, &slot.path).unwrap();
        write(&home(&slot).with_file_name("record.json"), "");
        let made = commit(&slot.path, "more");
        assert_eq!(taken(&world, &slot).lost, None);
        assert_eq!((head(&slot.path), branch(&world, &slot)), (made.clone(), made.clone()));
        world.pool(4).release(&holder("A", None), std::slice::from_ref(&made)).unwrap();
        assert!(!world.main.join(".git/lanewright/private/01").exists());
    }

    fn a_released_slot_takes_its_agents_commits_along() {
        let world = World::new();
        let slot = given(&world);
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        let refused = world.pool(4).release(&holder("A", None), std::slice::from_ref(&slot.head));
        assert!(matches!(refused, Err(GitError::Unmerged { .. })), "{refused:?}");
        assert_eq!(branch(&world, &slot), made);
        world.pool(4).release(&holder("A", None), &[made]).unwrap();
        world.pool(4).empty(&run_id("r1"), None).unwrap();
        assert!(!world.main.join(".git/lanewright/private").exists());
    }

    fn a_removed_git_directory_is_reported_and_the_files_stay() {
        let world = World::new();
        let repository = world.repository();
        type Damage = (&'static str, fn(&Path));
        let damages: [Damage; 6] = [
            ("removed", |git| fs::remove_dir_all(git).unwrap()),
            ("emptied", |git| {
                fs::remove_dir_all(git).unwrap();
                fs::create_dir(git).unwrap();
            }),
            ("objects removed", |git| fs::remove_dir_all(git.join("objects")).unwrap()),
            ("a link", |git| {
                let main = git.ancestors().nth(4).unwrap();
                fs::remove_dir_all(git).unwrap();
                symlink(main, git).unwrap();
            }),
            ("a file", |git| {
                fs::remove_dir_all(git).unwrap();
                fs::write(git, "x").unwrap();
            }),
            ("a head that is a pipe", |git| {
                fs::remove_file(git.join("HEAD")).unwrap();
                let made = std::process::Command::new("mkfifo").arg(git.join("HEAD")).status().unwrap();
                assert!(made.success());
            }),
        ];
        let slot = lane(&world);
        for (name, damage) in damages {
            make_private(&repository, &slot.path).unwrap();
            write(&slot.path.join("x"), name);
            commit(&slot.path, "x");
            let user = world.users_state();
            damage(&home(&slot));
            assert!(matches!(bring_over(&repository, &slot.path), Err(GitError::PrivateLost { .. })), "{name}");
            let lost = taken(&world, &slot);
            assert!(lost.lost.is_some() && lost.left.is_empty(), "{name}: {lost:?}");
            assert_eq!(take_over(&repository, &slot.path).unwrap(), Some(lost), "{name}");
            assert_eq!(branch(&world, &slot), slot.head, "{name}");
            assert_eq!(status(&slot.path), "?? x", "{name}");
            assert_eq!(world.users_state(), user, "{name}");
            assert_whole(&world);
        }
    }

    fn a_git_directory_without_permissions_is_removed() {
        let world = World::new();
        let slot = given(&world);
        let objects = home(&slot).join("objects");
        fs::create_dir(objects.join("00")).unwrap();
        fs::write(objects.join("00/x"), "x").unwrap();
        for path in [objects.join("00"), objects, home(&slot)] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o0)).unwrap();
        }
        take_over(&world.repository(), &slot.path).unwrap();
        restore_link(&world.repository(), &slot.path).unwrap();
        let left = fs::read_dir(world.main.join(".git/lanewright/private")).unwrap().count();
        assert_eq!(left, 1, "its record");
        assert_eq!(status(&slot.path), "");
    }

    fn a_replaced_link_is_not_lanewrights() {
        let world = World::new();
        let repository = world.repository();
        let slot = given(&world);
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        fs::write(slot.path.join(".git"), format!("gitdir: {}\n", world.main.join(".git").display())).unwrap();
        assert!(matches!(repository.refuse_foreign_worktree(&slot.path), Err(GitError::NotOurs { .. })));
        assert_eq!(take_over(&repository, &slot.path).unwrap().unwrap(), TakenOver::default());
        restore_link(&repository, &slot.path).unwrap();
        assert_eq!(branch(&world, &slot), made);
        assert!(matches!(repository.refuse_foreign_worktree(&slot.path), Err(GitError::NotOurs { .. })));
    }

    fn git_of_lanewright_runs_no_program_that_an_agent_names() {
        let world = World::new();
        let repository = world.repository();
        write(&world.main.join(".gitattributes"), "*.txt filter=evil diff=evil merge=evil\n");
        commit(&world.main, "attributes");
        git(&world.main, &["config", "extensions.worktreeConfig", "true"]);
        let slot = given(&world);
        let marks = world.main.with_file_name("marks");
        fs::create_dir(&marks).unwrap();
        let ran = || fs::read_dir(&marks).unwrap().flatten().map(|it| it.file_name()).collect::<Vec<_>>();
        let settings = |file: &Path| {
            for (at, key) in KEYS.iter().enumerate() {
                let program = format!("touch {}/{at}-{}; cat", marks.display(), key.replace('.', "-"));
                git(&world.main, &["config", "--file", file.to_str().unwrap(), key, &program]);
            }
            let hooks = marks.with_file_name("hooks");
            for hook in HOOKS {
                write(&hooks.join(hook), format!("#!/bin/sh\ntouch {}/{hook}\n", marks.display()));
                fs::set_permissions(hooks.join(hook), fs::Permissions::from_mode(0o755)).unwrap();
            }
            git(&world.main, &["config", "--file", file.to_str().unwrap(), "core.hooksPath", hooks.to_str().unwrap()]);
        };
        write(&slot.path.join("a.txt"), "changed\n");
        let made = commit(&slot.path, "before");
        let entry = world.main.join(".git/worktrees/01");
        settings(&home(&slot).join("config"));
        settings(&entry.join("config.worktree"));
        // A repository of the agent's, for a common directory.
        let evil = world.main.with_file_name("evil");
        git(&world.main, &["clone", "--quiet", "--bare", ".", evil.to_str().unwrap()]);
        settings(&evil.join("config"));
        write(&entry.join("commondir"), format!("{}\n", evil.display()));
        write(&slot.path.join("a.txt"), "changed again\n");
        let _ = git_output(&slot.path, &["status"]);
        assert!(!ran().is_empty(), "the settings are real");
        ran().iter().for_each(|mark| fs::remove_file(marks.join(mark)).unwrap());

        let everything = |repository: &Repository| {
            bring_over(repository, &slot.path).unwrap();
            let head = repository.head_at(&slot.path).unwrap().commit;
            assert_eq!(head_of(&slot.path).unwrap().commit, head);
            uncommitted_paths(repository, &slot.path).unwrap();
            changed_since(repository, &slot.path, &slot.head).unwrap();
            let request = SnapshotRequest {
                worktree: &slot.path,
                reference: "refs/lanewright/checkpoint/P1-A/1",
                message: "Snapshot",
                head: &head,
                since: &slot.head,
            };
            snapshot(repository, &request).unwrap();
        };
        everything(&repository);
        assert_eq!(ran(), [""; 0], "while it works");
        write(&entry.join("commondir"), format!("{}\n", evil.display()));
        settings(&entry.join("config.worktree"));
        taken(&world, &slot);
        assert_eq!(branch(&world, &slot), made);
        assert_eq!(fs::read_to_string(entry.join("commondir")).unwrap(), "../..\n");
        assert!(!entry.join("config.worktree").exists());
        everything(&repository);
        write(&slot.path.join("a.txt"), "more\n");
        commit_in(&world, &slot).unwrap();
        let want = lanewright_git::Checkout { mode: Mode::Reset, adopt: true, ..fresh(&slot.branch, &slot.head) };
        world.pool(4).open(&holder("A", None), &want).unwrap();
        assert_eq!(ran(), [""; 0], "afterwards");
    }

    fn sha256_repositories_have_private_directories() {
        let world = World::with(&["--object-format=sha256"]);
        let slot = given(&world);
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        write(&slot.path.join("y"), "y\n");
        git(&slot.path, &["stash", "--quiet", "--include-untracked"]);
        write(&slot.path.join("z"), "z\n");
        git(&slot.path, &["add", "z"]);
        let taken = taken(&world, &slot);
        assert_eq!(taken.left.len(), 1, "{taken:?}");
        assert_eq!(branch(&world, &slot), made);
        assert_eq!(status(&slot.path), "A  z");
        assert_whole(&world);
    }

    fn shared_repositories_have_private_directories() {
        let world = World::with(&["--shared=group"]);
        let slot = given(&world);
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        assert_eq!(taken(&world, &slot).lost, None);
        assert_eq!(branch(&world, &slot), made);
        assert_whole(&world);
    }

    fn shallow_and_partial_clones_have_private_directories() {
        let world = World::new();
        for number in 0..4 {
            write(&world.main.join("src/b.rs"), format!("{number}\n"));
            commit(&world.main, "more");
        }
        git(&world.main, &["config", "uploadpack.allowFilter", "true"]);
        git(&world.main, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
        let url = format!("file://{}", world.main.display());
        for kind in ["--depth=2", "--filter=blob:none", "--filter=tree:0"] {
            let main = world.main.with_file_name(kind.trim_start_matches('-'));
            git(&world.main, &["clone", "--quiet", kind, &url, main.to_str().unwrap()]);
            let clone = World { directory: tempfile::TempDir::new().unwrap(), main: main.clone() };
            let pool = lanewright_git::Pool::new(clone.repository(), &main.with_extension("lanes"), 4, false);
            let slot = pool.open(&holder("A", None), &fresh("lane/P1/A", &clone.head())).unwrap();
            make_private(&clone.repository(), &slot.path).unwrap();
            write(&slot.path.join("x"), "x\n");
            let made = commit(&slot.path, "x");
            assert_eq!(taken(&clone, &slot), TakenOver::default(), "{kind}");
            assert_eq!(branch(&clone, &slot), made, "{kind}");
            assert_eq!(status(&slot.path), "", "{kind}");
            git(&main, &["log", "--oneline", &slot.branch]);
        }
    }

    fn sparse_checkouts_submodules_and_hooks_work_in_private_directories() {
        let world = World::new();
        let inner = world.main.with_file_name("inner");
        git(&world.main, &["clone", "--quiet", ".", inner.to_str().unwrap()]);
        let allowed = ["-c", "protocol.file.allow=always"];
        git(&world.main, &[&allowed[..], &["submodule", "--quiet", "add", inner.to_str().unwrap(), "sub"]].concat());
        commit(&world.main, "submodule");
        let hooks = world.main.join(".git/hooks");
        write(&hooks.join("pre-commit"), "#!/bin/sh\ntouch hooked\n");
        fs::set_permissions(hooks.join("pre-commit"), fs::Permissions::from_mode(0o755)).unwrap();
        let slot = given(&world);
        git(&slot.path, &[&allowed[..], &["submodule", "--quiet", "update", "--init"]].concat());
        write(&slot.path.join("sub/new"), "new\n");
        commit(&slot.path.join("sub"), "in the submodule");
        write(&slot.path.join("x"), "x\n");
        let made = commit(&slot.path, "x");
        assert!(slot.path.join("hooked").exists());
        git(&slot.path, &["sparse-checkout", "set", "--no-cone", "/src/"]);
        assert!(!slot.path.join("a.txt").exists());
        taken(&world, &slot);
        assert_eq!(branch(&world, &slot), made);
        assert_eq!(git(&slot.path.join("sub"), &["rev-parse", "HEAD:new"]).len(), 40);
    }

    fn objects_that_only_large_file_storage_has_are_copied() {
        let world = World::new();
        let slot = given(&world);
        let name = lanewright_model::digest::sha256(b"large");
        for (name, text) in [(name.clone(), "large"), ("0".repeat(64), "not of that name")] {
            write(&home(&slot).join("lfs/objects").join(&name[..2]).join(&name[2..4]).join(&name), text);
        }
        taken(&world, &slot);
        let stored = world.main.join(".git/lfs/objects");
        assert_eq!(fs::read(stored.join(&name[..2]).join(&name[2..4]).join(&name)).unwrap(), b"large");
        assert!(!stored.join("00").exists());
    }

    fn a_repository_of_the_agents_is_found_from_below_its_worktree() {
        let world = World::new();
        let slot = given(&world);
        let inside = slot.path.join("src");
        assert_eq!(Repository::locate(&inside).unwrap().main_worktree(), world.main);
        let around = lanewright_git::EnclosingWorktree::of(&inside).unwrap();
        assert_eq!((around.worktree, around.main), (slot.path, world.main));
    }
}

/// The settings by which git runs a program.
const KEYS: &[&str] = &[
    "filter.evil.clean",
    "filter.evil.smudge",
    "filter.evil.process",
    "core.fsmonitor",
    "core.sshCommand",
    "core.gitProxy",
    "core.askPass",
    "core.editor",
    "core.pager",
    "core.alternateRefsCommand",
    "sequence.editor",
    "diff.external",
    "diff.evil.command",
    "diff.evil.textconv",
    "merge.evil.driver",
    "interactive.diffFilter",
    "gpg.program",
    "gpg.ssh.program",
    "credential.helper",
    "uploadpack.packObjectsHook",
    "trailer.evil.command",
    "alias.status",
];

const HOOKS: &[&str] = &[
    "pre-commit",
    "post-commit",
    "commit-msg",
    "prepare-commit-msg",
    "post-checkout",
    "post-merge",
    "post-rewrite",
    "post-index-change",
    "reference-transaction",
    "pre-rebase",
    "pre-auto-gc",
    "fsmonitor-watchman",
];
