//! Git: worktrees from a pool, commits, merges, refs, snapshots.
//!
//! Everything here blocks, may be called from many threads and from several Lanekeeper processes at once, and may be
//! asked again after a crash at any instant: it then finds what is done and finishes the rest. What is reported as a
//! commit or a ref is durable before it is reported. `docs/worktrees.md` tells how.

mod admin_lock;
mod along;
mod behind;
mod checkout_files;
mod claim;
mod cleanup;
mod commit;
mod configuration;
mod copy;
mod durable;
mod error;
mod examine;
mod file_system;
mod head;
mod held;
mod hook;
mod identity;
mod index_file;
mod index_flags;
mod index_note;
mod intact;
mod library;
mod links;
mod look;
mod lost;
mod mend;
mod merge;
mod move_files;
mod nearby;
mod obstacles;
mod open_index;
mod operation;
mod own_index;
mod parcel;
mod plain_commit;
mod plain_files;
mod plain_merge;
mod plain_paths;
mod plain_tree;
mod pool;
mod pristine;
mod program;
mod publish;
mod recent;
mod references;
mod remote;
mod repository;
mod reserved;
mod retire;
mod slot;
mod small_index;
mod snapshot;
mod stamp;
mod stash;
mod status;
mod tree;
mod tree_update;
mod undone;
mod upstream;
mod worktrees;

pub use claim::Holder;
pub use cleanup::{Stray, delete_branch_if_merged, stray};
pub(crate) use commit::message;
pub use commit::{CommitRequest, Committed, commit_all};
pub use copy::copy_ignored;
pub use error::GitError;
pub use examine::{Present, Prunable, Slot, SlotCheckout, Standing, is_damaged_index};
pub use head::{Head, adopt_head, head_of, is_half_updated, refuse_missing_branch, set_worktree_to};
pub use held::{HeldSlot, PoolSlot, embedded_repositories_in, uncommitted_paths};
pub use hook::{Contents, not_left_behind, note_left_behind, uncommitted};
pub use intact::{damaged, empty_index, restore_lost_objects};
pub use lost::{ClaimFound, Lost};
pub use merge::{Merge, Revert, merge, revert};
pub use nearby::Surrounding;
pub use obstacles::{Obstacles, tracked_changes_where_checked_out};
pub use parcel::{Parcel, forget_reference, pack, point_reference};
pub use pool::{Checkout, Kept, Mode, Pool};
pub use program::{ProgramError, require_version};
pub use publish::{
    Publication, changes_where_checked_out, obstacle_to_publishing, publish, settle_checkouts, settle_switches,
};
pub(crate) use references::forget_branch;
pub use references::{move_branch, remove_dead_reference_locks};
pub use remote::{Lease, PushRequest, Pushed, Remote};
pub use repository::{Repository, branch_reference};
pub use reserved::Reserved;
pub use snapshot::{
    Snapshot, SnapshotRequest, changed_since, delete_references, has_changes, keep, kept_of_phase, kept_under,
    put_back, reference_name, restore, snapshot, snapshot_of_head, trailers_of,
};
pub use stash::stashed_on;
pub use status::refuse_unreadable;
pub use undone::{Undone, undone};
pub use upstream::{upstream_remote, written_url};
