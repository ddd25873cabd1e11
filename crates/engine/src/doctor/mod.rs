//! The doctor: state that is damaged, found and, where that is certain, repaired (SPEC §9; seed 003, Recovery Procedure
//! 4).
//!
//! [`scan()`] looks at the store, at git and at the processes, and writes nothing. [`diagnose`] turns what it saw into
//! findings and looks at nothing. Each finding says what can be done: nothing has to be, a `Repair` can, a person has to
//! act, or a person has to choose. The command takes the locks, carries out the repairs, and scans again until
//! nothing is left to repair.

mod diagnosis;
mod error;
mod escalation;
mod expected;
mod facts;
mod finding;
mod repair;
mod scan;

use std::path::Path;

use lanewright_git::{Pool, Repository};

pub use diagnosis::diagnose;
pub use error::DoctorError;
pub use expected::{Expected, Holding, Owned};
pub(crate) use facts::{
    Claimed, DamagedLane, HoldingSeen, IndexTrouble, LogSeen, RunTraces, SharedFacts, StatusSeen, TaskSeen, differing,
    is_same_record,
};
pub use facts::{Facts, RunFacts};
pub use finding::{Cure, Escalation, Finding, Kind};
pub(crate) use finding::{RecoveryOption, Severity};
pub use repair::Tools;
pub(crate) use repair::{Repair, Target};
pub use scan::{Scope, Source, scan};

/// The pool at `root`, of which nothing is made.
fn pool(repository: &Repository, root: &Path) -> Pool {
    Pool::new(repository.clone(), root, u32::MAX, true)
}
