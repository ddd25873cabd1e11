//! Git: worktrees from a pool, commits, merges, refs, snapshots.
//!
//! Everything here blocks, may be called from many threads and from several Lanewright processes at once, and may be
//! asked again after a crash at any instant: it then detects what is done and finishes the rest. What is reported as a
//! commit or a ref is durable before it is reported. `docs/worktrees.md` describes how it is used. What a lane, an agent or
//! a run is doing is not known here, only their names.
//!
//! Begin with [`Pool`], which gives worktrees, [`integrate()`], which merges, and [`snapshot()`].

#![allow(missing_docs, reason = "names that say it all; only Lanewright's other crates use it")]

mod command;
mod fast;
mod history;
mod query;
mod repo;
mod snapshot;
mod worktree;

pub use command::error::GitError;
pub use command::program::{require_version, run_for_user, version};
pub use fast::libgit2::trailers_of;
pub use history::blockers::Blockers;
pub use history::blockers::tracked_changes_where_checked_out;
pub use history::bundle::{Bundle, write_bundle};
pub use history::commit::commit_paths;
pub use history::commit::message;
pub use history::commit::{CommitRequest, Committed, commit_all};
pub use history::integrate::{Integrated, Integration, integrate};
pub use history::left_behind::first_left_behind;
pub use history::merge::{Merge, merge};
pub use history::merge::{Revert, revert};
pub use history::publish::obstacle_to_publishing;
pub use history::publish::{Publication, changes_where_checked_out, publish, settle_checkouts, settle_switches};
pub use history::references::{
    delete_branch_if_merged, delete_references, move_branch, remove_dead_locks_on, remove_dead_reference_locks,
};
pub use history::references::{forget_branch, forget_reference, point_reference};
pub use history::remote::{PushRequest, Remote};
pub use history::reserved::Reserved;
pub use history::stash::stashed_on;
pub use history::undone::{Undone, undone};
pub use query::commits::{upstream_remote, written_url};
pub use query::head::{Head, head_of};
pub use query::hook::uncommitted;
pub use query::hook::{
    Contents, changed_by_hand, forget_uncommitted, not_left_behind, note_left_behind, note_uncommitted,
};
pub use query::show::FileChange;
pub use query::status::refuse_unreadable;
pub use query::status::uncommitted as uncommitted_paths;
pub use repo::repository::Repository;
pub use repo::repository::branch_reference;
pub use snapshot::index::present_tree;
pub use snapshot::intact::damaged;
pub use snapshot::intact::restore_lost_objects;
pub use snapshot::objects::{LostObject, lost_objects, set_damaged_objects_aside, store_objects_again};
pub use snapshot::save::{
    Snapshot, SnapshotRequest, has_changes, keep, reference_name, restore, snapshot, snapshot_of_head,
};
pub use snapshot::save::{changed_since, kept_of_phase, kept_under, put_back, snapshot_of_all_files};
pub use worktree::claim::Holder;
pub use worktree::copy_ignored::copy_ignored;
pub use worktree::examine::HeldSlot;
pub use worktree::examine::{Present, Prunable, Slot, SlotCheckout, WorktreeState, embedded_repositories_in};
pub use worktree::nearby::Surrounding;
pub use worktree::pool::{Checkout, Kept, Mode, Pool};
pub use worktree::rebuild::{Rebuilt, is_checked_out, is_on_branch};
pub use worktree::repair::ClaimFound;
pub use worktree::repair::Lost;
pub use worktree::slot::is_untouched;
pub use worktree::update::{adopt_head, head_that_continues, is_half_updated, set_worktree_to};
