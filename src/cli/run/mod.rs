//! `execute-phase`, `execute-lane`, `resume` and `rollback`: from a plan or a run to an exit code.
//!
//! The folders import each other in one direction: `phase` decides what happens to each plan, by `execute` and `rollback`;
//! these work on runs that `lock` locks, with plans that `intent` reads.

mod execute;
mod intent;
mod lock;
mod phase;
mod rollback;

pub(super) use execute::external_changes::{refuse_unjudged, settle_switches};
pub(super) use execute::preflight::check as preflight;
pub(super) use execute::resume::complete_files;
pub(super) use intent::phase_sequence::phase_sequence;
pub(super) use intent::plan_file::{PlanText, invalid, report};
pub(super) use intent::request::Adoption;
pub(super) use lock::left_to_do::{left_to_do, undo_of_skip};
pub(super) use lock::locked_run::{LockedRun, Reach, adopt};
pub(super) use lock::locks::lock_phase;
pub(super) use phase::phases::{execute_lane, execute_phase, resume_claimed, resume_run, resume_with};
pub(super) use rollback::{refusal as rollback_refusal, rollback};
