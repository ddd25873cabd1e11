//! Worktrees, branches and git's own files, while the run stands still.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::way_out::{GARBAGE, leads_out};
use crate::commands::doctor::patient::Patient;

macro_rules! ways {
    ($($name:ident: $way:literal, $damage:expr;)*) => {
        $(#[test] fn $name() { leads_out($way, $damage); })*
    };
}

ways! {
    a_worktree_is_deleted: "resumed", |it| fs::remove_dir_all(it.slot()).unwrap();
    a_worktree_is_moved: "resumed", |it| fs::rename(it.slot(), it.scratch.path("repo.lanes/mine")).unwrap();
    a_worktree_is_another_repository: "chosen: worktree-foreign", |it| {
        let slot = away(it);
        fs::create_dir(&slot).unwrap();
        it.scratch.git_in(&slot, &["init", "--quiet"]);
    };
    a_worktree_is_a_directory: "resumed", |it| {
        let slot = away(it);
        fs::create_dir(&slot).unwrap();
        fs::write(slot.join("theirs"), "precious\n").unwrap();
    };
    a_worktree_is_a_link: "resumed", |it| {
        let slot = it.slot();
        fs::rename(&slot, it.scratch.path("far")).unwrap();
        symlink(it.scratch.path("far"), slot).unwrap();
    };
    a_worktree_is_a_file: "resumed", |it| {
        fs::write(away(it), "a file\n").unwrap();
    };
    a_worktree_lost_its_git_file: "resumed", |it| fs::remove_file(it.slot().join(".git")).unwrap();
    a_git_file_is_garbage: "resumed", |it| fs::write(it.slot().join(".git"), GARBAGE).unwrap();
    a_git_file_is_another_worktrees: "resumed", |it| {
        fs::copy(it.lane_slot().join(".git"), it.slot().join(".git")).unwrap();
    };
    a_lanes_worktree_is_deleted: "resumed", |it| fs::remove_dir_all(it.lane_slot()).unwrap();
    all_worktrees_are_deleted: "resumed", |it| fs::remove_dir_all(it.scratch.path("repo.lanes")).unwrap();
    worktrees_are_pruned: "resumed", |it| {
        fs::remove_dir_all(it.slot()).unwrap();
        it.scratch.git(&["worktree", "prune"]);
    };
    the_code_links_are_gone: "resumed", |it| {
        fs::remove_file(it.lane_file("code")).unwrap();
        fs::remove_file(it.lane_file("agents/engineer/code")).unwrap();
    };

    an_agents_branch_is_deleted: "resumed", |it| it.scratch.git(&["update-ref", "-d", AGENTS]).clear();
    an_agents_branch_is_moved_back: "resumed", |it| it.scratch.git(&["update-ref", AGENTS, "main~1"]).clear();
    an_agents_branch_is_moved_forward: "resumed", |it| {
        let more = it.scratch.git(&["commit-tree", "-p", AGENTS, "-m", "more", &format!("{AGENTS}^{{tree}}")]);
        it.scratch.git(&["update-ref", AGENTS, &more]);
    };
    a_lanes_branch_is_deleted: "resumed", |it| it.scratch.git(&["update-ref", "-d", LANES]).clear();
    a_lanes_branch_is_moved_back: "resumed", |it| it.scratch.git(&["update-ref", LANES, "main~1"]).clear();
    a_lanes_branch_is_moved_forward: "resumed", |it| {
        let more = it.scratch.git(&["commit-tree", "-p", LANES, "-m", "more", &format!("{LANES}^{{tree}}")]);
        it.scratch.git(&["update-ref", LANES, &more]);
    };
    a_branch_is_empty: "resumed", |it| fs::write(it.scratch.path("repo/.git").join(AGENTS), "").unwrap();

    a_branch_is_garbage: "resumed", |it| {
        fs::write(it.scratch.path("repo/.git").join(AGENTS), GARBAGE).unwrap();
    };

    a_head_is_detached: "resumed", |it| it.scratch.git_in(&it.slot(), &["checkout", "--quiet", "--detach"]).clear();
    a_head_is_on_another_branch: "resumed", |it| {
        it.scratch.git_in(&it.slot(), &["checkout", "--quiet", "-b", "other"]);
    };
    a_head_is_garbage: "fixed: worktree-forgotten", |it| fs::write(it.entry(&it.slot()).join("HEAD"), GARBAGE).unwrap();

    an_index_is_locked: "resumed", |it| fs::write(it.entry(&it.slot()).join("index.lock"), "").unwrap();
    an_index_is_locked_in_the_lanes_worktree: "resumed", |it| {
        fs::write(it.entry(&it.lane_slot()).join("index.lock"), "").unwrap();
    };
    an_index_is_gone: "resumed", |it| fs::remove_file(it.entry(&it.slot()).join("index")).unwrap();
    an_index_is_empty: "resumed", |it| fs::write(it.entry(&it.slot()).join("index"), "").unwrap();
    an_index_is_garbage: "resumed", |it| fs::write(it.entry(&it.slot()).join("index"), GARBAGE).unwrap();
    a_lanes_index_is_garbage: "resumed", |it| {
        fs::write(it.entry(&it.lane_slot()).join("index"), GARBAGE).unwrap();
    };
    the_users_index_is_garbage: "told: index-damaged", |it| {
        fs::write(it.scratch.path("repo/.git/index"), GARBAGE).unwrap();
    };

    everything_loose_is_collected: "resumed", |it| {
        it.scratch.git(&["reflog", "expire", "--expire=now", "--all"]);
        it.scratch.git(&["gc", "--quiet", "--prune=now"]);
        it.scratch.git(&["worktree", "prune"]);
    };
    a_claim_is_gone: "resumed", |it| fs::remove_file(it.slot().with_extension("claim")).unwrap();
    a_claim_is_garbage: "resumed", |it| fs::write(it.slot().with_extension("claim"), GARBAGE).unwrap();
    the_snapshots_are_gone: "resumed", |it| it.scratch.kept().iter().for_each(|name| {
        it.scratch.git(&["update-ref", "-d", name]);
    });
    the_main_checkout_is_on_another_branch: "resumed", |it| it.scratch.git(&["checkout", "--quiet", "-b", "mine"]).clear();
    the_main_checkout_is_detached: "resumed", |it| it.scratch.git(&["checkout", "--quiet", "--detach"]).clear();
    main_went_on: "resumed", |it| it.scratch.git(&["commit", "--quiet", "--allow-empty", "--message=mine"]).clear();
}

const AGENTS: &str = "refs/heads/lane-agent/P1/SL-2/engineer";
const LANES: &str = "refs/heads/lane/P1/SL-2";

/// Moves the agent's worktree far away, and answers where it stood.
fn away(patient: &Patient) -> PathBuf {
    let slot = patient.slot();
    fs::rename(&slot, patient.scratch.path("far")).unwrap();
    slot
}
