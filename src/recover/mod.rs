//! Recovery: what a resume or a rollback finds, and what follows from it.

pub mod changes;
pub mod clean;
pub mod completion;
pub mod doctor;
pub mod prune;
pub mod resume;
pub mod rollback;
pub mod untold;
