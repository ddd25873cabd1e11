//! Saving the state of a worktree.

pub(crate) mod index;
pub(crate) mod save;

pub(crate) use index::{Start, tree_of};
