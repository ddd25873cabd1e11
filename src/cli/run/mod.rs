//! `execute-phase`, `execute-lane`, `resume` and `rollback`: from a plan or a run to an exit code.
//!
//! The folders import each other in one direction: `phase` decides what happens to each plan, by `execute` and `rollback`;
//! these work on runs that `lock` locks, with plans that `intent` reads.

mod execute;
mod intent;
mod lock;
mod phase;
mod power_cut;
mod rollback;

pub(super) use execute::external_changes::{refuse_unjudged, sync_after_switches};
pub(super) use execute::forge::{branch_remote, forge_settings};
pub(super) use execute::preflight::check as preflight;
pub(super) use execute::resume::{complete_files, complete_files_of};
pub(super) use execute::start::PhaseRest;
pub(super) use intent::{
    Adoption, PlanText, Replacement, ResumeReach, RunRequest, invalid, phase_sequence, report, single_plan,
};
pub(super) use lock::{LockedRun, Reach, adopt, left_to_do, lock_phase, lock_resting_run, undo_of_skip};
pub(super) use phase::phases::{
    execute_lane, execute_phase, execute_plans, follow_run, resume_claimed, resume_run, resume_with,
};
pub(super) use phase::planned::{PlanReader, PlannedPhase};
pub(super) use rollback::{refusal as rollback_refusal, rollback};
