//! Recovery: resume, rollback, cleaning up and the doctor.

pub mod agent_names;
pub mod changes;
pub mod clean;
pub mod completion;
pub mod doctor;
pub mod prune;
pub mod resume;
pub mod rollback;
pub mod unrecorded;
