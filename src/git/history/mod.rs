//! Commits, merges, refs, publishing and remotes.

pub(crate) mod behind;
pub(crate) mod blockers;
pub(crate) mod bundle;
pub(crate) mod checkout_files;
pub(crate) mod checkout_sync;
pub(crate) mod commit;
pub(crate) mod dead_locks;
pub(crate) mod identity;
pub(crate) mod merge;
pub(crate) mod publish;
pub(crate) mod references;
pub(crate) mod remote;
pub(crate) mod reserved;
pub(crate) mod stash;
pub(crate) mod undone;
