//! Saving the state of a worktree.

pub(crate) mod index;
pub(crate) mod intact;
pub(crate) mod save;
