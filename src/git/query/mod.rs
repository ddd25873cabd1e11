//! Reading heads, indexes, worktrees and commits; nothing here changes them.

pub(crate) mod differences;
pub(crate) mod file_system;
pub(crate) mod head;
pub(crate) mod history;
pub(crate) mod hook;
pub(crate) mod index_copy;
pub(crate) mod index_flags;
pub(crate) mod operation;
pub(crate) mod settings;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod tree;
