//! Starting and resuming a run, and following it to its end.

mod checkout_watch;
mod execution;
pub(super) mod external_changes;
pub(super) mod forge;
pub(super) mod preflight;
mod replacement;
pub(super) mod resume;
pub(super) mod start;
