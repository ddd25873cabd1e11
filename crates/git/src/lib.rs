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
mod recovery;
mod repo;
mod snapshot;
mod worktree;

pub use command::error::GitError;
pub use command::program::{merges_with_drivers, require_version, run_for_user, version};
pub use fast::libgit2::trailers_of;
pub use history::blockers::{Blockers, tracked_changes_where_checked_out};
pub use history::bundle::{Bundle, write_bundle};
pub use history::commit::{CommitRequest, Committed, commit_all, commit_paths, message};
pub use history::identity::{Role, fallback_identity, roles_without_identity};
pub use history::integrate::{Integrated, Integration, integrate};
pub use history::merge::{Merge, Revert, make_again, merge, revert, try_merge};
pub use history::merged_lanes::{MergedLane, MergedLanes};
pub use history::moved_branches::first_stale_checkout;
pub use history::publish::{
    CleanCheckout, Publication, changes_where_checked_out, clean_checkout, publish, publish_blocker,
    sync_after_switches, sync_checkouts,
};
pub use history::references::{
    delete_branch_if_merged, delete_references, force_reference, forget_branch, forget_reference, move_branch,
    remove_dead_locks_on, remove_dead_reference_locks, sync_deleted,
};
pub use history::remote::{PushRequest, Remote};
pub use history::reserved::Reserved;
pub use history::stash::stashed_on;
pub use history::undone::{Undone, undone};
pub use query::commits::{upstream_remote, written_url};
pub use query::generated_files::{
    Contents, changed_by_hand, forget_uncommitted, note_generated, note_uncommitted, noting_generated, uncommitted,
    unsaved, without_generated,
};
pub use query::head::{Head, attach_head, head_of};
pub use query::index::tracked_links;
pub use query::left_out::{LeftOut, LeftOutReason, is_link_out};
pub use query::name_clashes::{Clash, NameClashes};
pub use query::shared_state::SharedState;
pub use query::show::FileChange;
pub use query::status::{is_ignored, refuse_unreadable};
pub use query::status::{uncommitted as uncommitted_paths, untracked_below};
pub use recovery::branches::{Rebuilt, is_checked_out, is_on_branch};
pub use recovery::claims::ClaimFound;
pub use recovery::lost_objects::{
    LostObject, lost_objects, restore_lost_objects, set_damaged_objects_aside, store_objects_again,
};
pub use recovery::missing_worktrees::Lost;
pub use recovery::power_cut::{AfterBoot, Outage, restore_published_files};
pub use recovery::unreadable_commits::damaged;
pub use repo::commit_rules::CommitRules;
pub use repo::commit_settings::ChangedSetting;
pub use repo::configuration::ConfigurationEntry;
pub use repo::git_dir::{WrittenByCommits, came_by_checkout, git_directory, is_directory_of, last_move_of_head};
pub use repo::left_out_rules::LeftOutRules;
pub use repo::repository::{JobVariables, Repository, branch_reference};
pub use snapshot::index::present_tree;
pub use snapshot::save::{
    Snapshot, SnapshotRequest, changed_since, has_changes, keep, reference_name, reset_to_head, restore,
    saved_of_phase, saved_under, snapshot, snapshot_of_all_files, snapshot_of_commit, snapshot_of_head,
    snapshot_of_work,
};
pub use worktree::claim::Holder;
pub use worktree::copy_ignored::{
    Copied, CopyReport, INCLUDE_FILE, check_include_file, copy_ignored, in_words as size_in_words,
    wanted as files_to_copy,
};
pub use worktree::enclosing::EnclosingWorktree;
pub use worktree::examine::{HeldSlot, Present, Prunable, Slot, SlotCheckout, WorktreeState, embedded_repositories_in};
pub use worktree::pool::{Checkout, Kept, Mode, Pool};
pub use worktree::private::{
    KeptOfRemoved, LeftBehind, Rescued, TakenOver, agent_git_directories, bring_over, bring_over_all, kept_of_removed,
    make_private, private_git_directory, rescue, restore_link, settings_have_credentials, take_over,
};
pub use worktree::slot::is_untouched;
pub use worktree::submodules::SubmoduleWork;
pub use worktree::update::{adopt_head, head_that_continues, is_half_updated, set_worktree_to};
