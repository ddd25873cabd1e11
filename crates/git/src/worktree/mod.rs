//! Worktrees: a pool of slots, who holds them, what is checked out in them, and their removal.

pub(crate) mod claim;
pub(crate) mod copy_ignored;
pub(crate) mod creation_queue;
pub(crate) mod deletion;
pub(crate) mod enclosing;
pub(crate) mod examine;
pub(crate) mod links;
pub(crate) mod pool;
pub(crate) mod private;
pub(crate) mod provision;
pub(crate) mod retire;
pub(crate) mod slot;
pub(crate) mod submodules;
pub(crate) mod update;

pub(crate) use claim::{Claim, Holder, Progress};
pub(crate) use creation_queue::{CreationQueue, Turn};
pub(crate) use examine::{HeldSlot, WorktreeState};
pub(crate) use pool::{Checkout, Kept, Mode, Pool, branch_of};
pub(crate) use private::{forget_private, remove_private_leftovers, remove_private_of, rescue};
pub(crate) use retire::ASIDE;
pub(crate) use slot::{
    Occupant, RELEASED, SET_ASIDE, blocker, clear_half_made, forget, has_only_link, is_locked, is_untouched, make,
    occupant, unchanged_since_release,
};
pub(crate) use update::{adopt_head, forget_update};
