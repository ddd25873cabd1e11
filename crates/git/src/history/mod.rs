//! Writing commits, merges and refs, and moving branches with the checkouts that are on them.

pub(crate) mod blockers;
pub(crate) mod bundle;
pub(crate) mod checkout_files;
pub(crate) mod checkout_sync;
pub(crate) mod commit;
pub(crate) mod identity;
pub(crate) mod integrate;
pub(crate) mod merge;
pub(crate) mod merged_lanes;
pub(crate) mod moved_branches;
pub(crate) mod own_commits;
pub(crate) mod publish;
pub(crate) mod references;
pub(crate) mod remote;
pub(crate) mod reserved;
pub(crate) mod signing;
pub(crate) mod stale_checkouts;
pub(crate) mod stash;
pub(crate) mod undone;

pub(crate) use blockers::{Blockers, blockers, in_the_way, meets, moving};
pub(crate) use checkout_files::Ready;
pub(crate) use checkout_sync::{Advance, Checkout, MAX_PUBLICATION_TIME, SyncOutcome, advance_checkout, finish};
pub(crate) use commit::{add_everything, embedded_in, message, unstage};
pub(crate) use identity::{Author, IDENTITY, make_commit, make_commit_of, make_own_commit, run_identified};
pub(crate) use references::{
    SNAPSHOTS, detach_head, index_lock, move_branch, reference_lock, remove_dead_locks, set_own_reference,
    set_reference,
};
pub(crate) use reserved::{Reserved, with_reserved};
