//! Saving the state of a worktree.

pub(crate) mod index;
pub(crate) mod intact;
pub(crate) mod objects;
pub(crate) mod save;

pub(crate) use index::{Start, tree_of};
