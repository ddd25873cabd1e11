//! Commands that keep, restore, repair and remove state.

pub(super) mod checkpoints;
pub(super) mod clean;
pub(super) mod doctor;
pub(super) mod log_error;
pub(super) mod log_event;
