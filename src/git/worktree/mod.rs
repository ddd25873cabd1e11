//! Worktrees: a pool of slots, who holds them, what is checked out in them, and their removal.

pub(crate) mod claim;
pub(crate) mod cleanup;
pub(crate) mod condition;
pub(crate) mod copy_ignored;
pub(crate) mod creation_queue;
pub(crate) mod examine;
pub(crate) mod links;
pub(crate) mod lost;
pub(crate) mod nearby;
pub(crate) mod pool;
pub(crate) mod provision;
pub(crate) mod repair;
pub(crate) mod retire;
pub(crate) mod slot;
pub(crate) mod survey;
pub(crate) mod update;

pub use claim::Holder;
pub use copy_ignored::copy_ignored;
pub use pool::{Checkout, Kept, Mode, Pool};
pub(crate) use survey::embedded_repositories_in;
pub use survey::{HeldSlot, uncommitted_paths};
pub use update::{adopt_head, is_half_updated, set_worktree_to};
