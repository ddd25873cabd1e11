//! How a lane's state follows from its history and the run's.

use lanewright_model::event::LaneStage;
use lanewright_model::{Approval, JobRole, user_setup};

use super::lane::{Ending, LaneHistory};
use super::run::RunFacts;
use super::state::LaneState;

/// The state of the lane: what ended it, else whether the run stopped, else its stage. Of one that is half rolled back
/// nothing is certain, not even whether it is merged.
pub(super) fn state_of(lane: &LaneHistory, run: &RunFacts) -> LaneState {
    if lane.is_half_rolled_back {
        return LaneState::Stopped;
    }
    match &lane.ending {
        Some(Ending::Failed(_)) => return LaneState::Failed,
        Some(Ending::Blocked(_)) => return LaneState::Blocked,
        Some(Ending::RolledBack) => return LaneState::RolledBack,
        None => {}
    }
    if lane.is_merged() {
        return if lane.pull_request.is_some() { LaneState::Proposed } else { LaneState::Merged };
    }
    if lane.skipped || lane.left_out.is_some() {
        return LaneState::Skipped;
    }
    let halted = run.finished.is_some() || ((run.stop.is_some() || lane.stopping) && lane.jobs.running.is_empty());
    match state_by_stage(lane) {
        // A question stays open, whether or not Lanewright still runs.
        LaneState::NeedsApproval(gate) if !lane.stopping => LaneState::NeedsApproval(gate),
        LaneState::NeedsPerson if !lane.stopping => LaneState::NeedsPerson,
        LaneState::Waiting if !lane.stopping => LaneState::Waiting,
        _ if halted => LaneState::Stopped,
        state => state,
    }
}

fn state_by_stage(lane: &LaneHistory) -> LaneState {
    let is_answered = |gate: Approval| lane.approved.contains(&gate) || lane.rejected.contains(&gate);
    let changes_protected = !lane.protected.is_empty();
    let needs = |gate: Approval| lane.approval.contains(&gate) || (gate == Approval::Changes && changes_protected);
    let open = |gate: Approval| needs(gate) && !is_answered(gate);
    let is_empty = || lane.changes.is_some_and(|changes| changes.is_empty());
    let tests_merge = lane.jobs.running.iter().any(|job| job.job.role == JobRole::MergedTests);
    let is_setup_due = |missing: &Vec<String>| {
        lane.approval.contains(&Approval::Setup) || user_setup::is_due(&lane.user_setup, missing)
    };
    match lane.stage {
        LaneStage::Classified if !is_answered(Approval::Setup) && lane.missing.as_ref().is_some_and(is_setup_due) => {
            LaneState::NeedsApproval(Approval::Setup)
        }
        LaneStage::Waiting => LaneState::Waiting,
        LaneStage::Init | LaneStage::Classified => LaneState::Starting,
        LaneStage::Synthesis if open(Approval::Plan) => LaneState::NeedsApproval(Approval::Plan),
        LaneStage::Requirements | LaneStage::Implementation | LaneStage::Review
            if !lane.asking.is_empty() && lane.jobs.running.is_empty() =>
        {
            LaneState::NeedsPerson
        }
        LaneStage::Requirements | LaneStage::Synthesis | LaneStage::Implementation => LaneState::Running,
        LaneStage::Validation => LaneState::Testing,
        LaneStage::Review => LaneState::Reviewing,
        LaneStage::AwaitingUserApproval if tests_merge => LaneState::Testing,
        LaneStage::AwaitingUserApproval
            if open(Approval::Changes) && !lane.merging && !is_empty() && lane.replacement().is_none() =>
        {
            LaneState::NeedsApproval(Approval::Changes)
        }
        LaneStage::AwaitingUserApproval if lane.rejected.contains(&Approval::Changes) => LaneState::Running,
        LaneStage::AwaitingUserApproval => LaneState::Merging,
        LaneStage::Complete | LaneStage::Cleanup => LaneState::Merged,
    }
}
