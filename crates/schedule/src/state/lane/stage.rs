//! The stages of a lane and the ways between them (SPEC §6).

use lanewright_model::event::LaneStage;

/// Whether a lane may go from `from` to `to`: one step forward, back to the round that must fix a failure, or, by a
/// rollback, back to the start.
pub(crate) fn may_move(from: LaneStage, to: LaneStage) -> bool {
    use LaneStage::*;
    let forward = LaneStage::ALL.iter().position(|&stage| stage == from).map(|at| at + 1)
        == LaneStage::ALL.iter().position(|&stage| stage == to);
    let back =
        matches!((from, to), (Synthesis, Requirements) | (Validation | Review | AwaitingUserApproval, Implementation));
    forward || back
}

#[cfg(test)]
mod tests {
    use super::*;
    use LaneStage::*;

    #[test]
    fn lane_stage_transitions() {
        assert!(may_move(Waiting, Init) && may_move(Complete, Cleanup));
        assert!(may_move(Validation, Implementation) && may_move(Synthesis, Requirements));
        assert!(!may_move(Init, Implementation), "a stage was skipped");
        assert!(!may_move(Complete, Implementation), "merged work was reopened");
        assert!(!may_move(Cleanup, Waiting) && !may_move(Init, Init));
    }
}
