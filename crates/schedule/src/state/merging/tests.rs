use super::*;
use crate::sample_plans::commit;

#[test]
fn what_fails_at_the_queue_decides_what_the_lane_is_put_onto() {
    let rebuild = |stage, kind| {
        let staged = StagedMerge { onto: commit(1), commit: commit(2), moved: true };
        let mut merging = Merging { staged: Some(staged), ..Merging::default() };
        merging.fail(stage, &Failure::new(kind, "why"));
        merging.rebuild
    };
    let queue = LaneStage::AwaitingUserApproval;
    assert_eq!(rebuild(queue, FailureKind::Conflict), Some(Rebuild::OnIntegration));
    assert_eq!(rebuild(queue, FailureKind::Gate), Some(Rebuild::OnMerge(commit(2))));
    assert_eq!(rebuild(queue, FailureKind::Rejected), None);
    assert_eq!(rebuild(LaneStage::Validation, FailureKind::Conflict), None);
}
