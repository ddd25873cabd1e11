//! Commands that show runs, and change nothing of them.

pub(super) mod diff;
pub(super) mod gate;
pub(crate) mod last_output;
pub(super) mod list;
pub(super) mod logs;
pub(crate) mod proposed_plan;
pub(super) mod report;
pub(super) mod status;
pub(super) mod ui;
pub(super) mod worktree;
