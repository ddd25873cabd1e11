//! Restoring what another program, a power cut or a bad disk took of Lanewright's worktrees, claims, branches and objects.
//! Each file says when it is called. Nothing here is discarded, and every step that is repeated detects that it is done.

pub(crate) mod branches;
pub(crate) mod claims;
pub(crate) mod lost_objects;
pub(crate) mod missing_worktrees;
pub(crate) mod power_cut;
pub(crate) mod registrations;
pub(crate) mod unreadable_commits;
