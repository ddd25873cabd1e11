//! Reading heads, indexes, worktrees and commits; nothing here changes them.

pub(crate) mod commits;
pub(crate) mod differences;
pub(crate) mod generated_files;
pub(crate) mod head;
pub(crate) mod ignored;
pub(crate) mod index;
pub(crate) mod left_out;
pub(crate) mod name_clashes;
pub(crate) mod nested;
pub(crate) mod operation;
pub(crate) mod shared_state;
pub(crate) mod show;
pub(crate) mod status;

pub(crate) use commits::split_tab;
pub(crate) use generated_files::{
    copied_in_commits, copies_in, forget_generated, has_hook_files, note_copied, run_post_checkout, unchanged,
    unchanged_hook_files, without_known,
};
pub(crate) use head::{Head, head_of};
pub(crate) use ignored::each_once;
pub(crate) use index::{
    clear_flags, clear_flags_in, copy_index, distrust_times, entries_in, has_flags, has_untracked, index_entries,
    is_untouched, restore_untouched,
};
pub(crate) use left_out::{LeftOut, LeftOutReason};
pub(crate) use nested::LINK;
pub(crate) use operation::{OPERATION_FILES, operation_in, quit_operations, refuse_operation};
pub(crate) use status::{
    differing_from_head, has_real_parents, ignored_if_new, ignored_there, is_surely_committed, listed,
    refuse_uncommitted, refuse_unreadable_in, untracked, worktree_changes,
};
