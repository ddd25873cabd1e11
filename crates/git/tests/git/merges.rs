//! Merges in the object store.

use lanewright_git::{GitError, Merge, Reserved, merge, merges_with_drivers};
use lanewright_model::CommitId;

use crate::support::*;

pinned_tests! {
    fn merge_in_object_store_reports_conflicts() {
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

    fn merge_keeps_reserved_files_of_ours() {
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

    fn merge_uses_attributes_of_the_branch() {
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
        // An older git cannot be told whose attributes count.
        if merges_with_drivers().unwrap() {
            assert!(matches!(merge(&world.repository(), &one, &two, "m", &[], &[]), Ok(Merge::Done(_))));
        }
    }
}
