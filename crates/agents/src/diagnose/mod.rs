//! What the output of a job that failed means, and whether a lane's work has what it must have: pure, by patterns.

mod alike;
mod excerpt;
mod exports;
mod gate;
mod must_haves;
mod outage;
mod rules;
mod scan;

pub use alike::FailedRun;
pub use excerpt::EXCERPT_BYTES;
pub use gate::diagnose;
pub use must_haves::{FileText, MAX_FILE_BYTES, check as check_must_haves};
pub use outage::{of_wrong_version, outage, outage_in};
