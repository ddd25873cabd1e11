//! Saving the state of a worktree.

pub(crate) mod index;
pub(crate) mod save;

pub(crate) use index::{Extent, Start, tree_of};
