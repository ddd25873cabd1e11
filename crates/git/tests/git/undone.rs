//! Which commits take the work of a merge out of the branch that it was published on.

use std::fs;

use lanewright_git::{Undone, undone};
use lanewright_model::CommitId;

use crate::support::*;

/// The commit before the merge of a lane that brought `one` and `two`, and that merge, which is checked out.
fn merged(world: &World) -> [CommitId; 2] {
    let base = world.head();
    git(&world.main, &["switch", "-q", "--create", "lane"]);
    ["one", "two"].iter().for_each(|name| write(&world.main.join(name), name));
    commit(&world.main, "work");
    git(&world.main, &["switch", "-q", "main"]);
    git(&world.main, &["merge", "-q", "--no-ff", "-m", "Merge lane L\n\nLane: L", "lane"]);
    [base, world.head()]
}

fn found(world: &World, [onto, merge]: &[CommitId; 2]) -> Option<Undone> {
    undone(&world.repository(), [onto, merge], &world.head()).unwrap()
}

fn remove(world: &World, name: &str, message: &str) -> CommitId {
    fs::remove_file(world.main.join(name)).unwrap();
    commit(&world.main, message)
}

pinned_tests! {
    fn undoing_commit_is_named_despite_later_commits() {
        let world = World::new();
        let merge = merged(&world);
        ["one", "two"].iter().for_each(|name| fs::remove_file(world.main.join(name)).unwrap());
        let culprit = commit(&world.main, "a stale index");
        assert_eq!(found(&world, &merge), Some(Undone::By(culprit.clone())));
        write(&world.main.join("three"), "of the user's");
        commit(&world.main, "more");
        assert_eq!(found(&world, &merge), Some(Undone::By(culprit)));
    }

    fn commit_undoing_rest_after_later_lanes_is_named() {
        let world = World::new();
        let merge = merged(&world);
        remove(&world, "one", "Merge lane M\n\nLane: M");
        let culprit = remove(&world, "two", "a stale index");
        assert_eq!(found(&world, &merge), Some(Undone::By(culprit)));
    }

    fn work_changed_by_lanes_or_users_is_not_undone() {
        let world = World::new();
        let merge = merged(&world);
        remove(&world, "one", "Merge lane M\n\nLane: M");
        assert_eq!(found(&world, &merge), None);
        write(&world.main.join("two"), "changed by the user");
        commit(&world.main, "an edit");
        assert_eq!(found(&world, &merge), None);
        remove(&world, "two", "Merge lane N\n\nLane: N");
        assert_eq!(found(&world, &merge), None);
    }

    fn reset_undoes_work_but_recommitted_merge_does_not() {
        let world = World::new();
        let merge = merged(&world);
        git(&world.main, &["reset", "-q", "--hard", merge[0].as_str()]);
        assert_eq!(found(&world, &merge), Some(Undone::Rewritten));
        git(&world.main, &["merge", "-q", "--no-ff", "-m", "reworded", "lane"]);
        assert_eq!(found(&world, &merge), None);
    }
}
