//! `execute-phase`, `execute-lane`, `resume` and `rollback`: from a plan or a run to an exit code.

mod chain;
mod claims;
mod execute;
mod existing_run;
mod external_changes;
mod forge;
mod lock_refusal;
mod locked_run;
mod locks;
mod phase_sequence;
mod phases;
mod pinned_plan;
mod plan_changes;
mod plan_file;
mod preflight;
mod prompts;
mod request;
mod resume;
mod retry;
mod rollback;
mod run_intent;
mod skip;
mod start;
mod switches;

pub(super) use external_changes::{refuse_unjudged, settle_switches};
pub(super) use locked_run::{LockedRun, Reach, adopt};
pub(super) use locks::lock_phase;
pub(super) use phase_sequence::phase_sequence;
pub(super) use phases::{execute_lane, execute_phase, resume_claimed, resume_run, resume_with, retry_lane};
pub(super) use plan_file::{PlanText, invalid, report};
pub(super) use preflight::check as preflight;
pub(super) use request::Adoption;
pub(super) use resume::complete_files;
pub(super) use rollback::{refusal as rollback_refusal, rollback};
pub(super) use skip::skip_lane;
