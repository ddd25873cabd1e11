//! Reading heads, indexes, worktrees and commits; nothing here changes them.

pub(crate) mod commits;
pub(crate) mod differences;
pub(crate) mod head;
pub(crate) mod hook;
pub(crate) mod index;
pub(crate) mod operation;
pub(crate) mod show;
pub(crate) mod status;

pub(crate) use commits::split_tab;
pub(crate) use differences::LINK;
pub(crate) use head::{Head, head_of};
pub(crate) use hook::{as_hook_left, contents, forget_left_behind, left_something, run_post_checkout};
pub(crate) use index::{
    clear_flags, clear_flags_in, copy_index, distrust_times, has_flags, has_untracked, index_entries,
};
pub(crate) use operation::{operation_in, quit_operations, refuse_operation};
pub(crate) use status::{differing_from_head, refuse_uncommitted, refuse_unreadable_in, untracked, worktree_changes};
