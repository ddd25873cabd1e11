use super::*;
use crate::sample_plans::commit;

#[test]
fn failure_at_merge_queue_selects_rebuild() {
    let rebuild = |stage, kind| {
        let staged = StagedMerge { onto: commit(1), commit: commit(2), moved: true };
        let mut merge = Merge { staged: Some(staged), ..Merge::default() };
        merge.fail(stage, &Failure::new(kind, "why"));
        merge.rebuild
    };
    let queue = LaneStage::AwaitingUserApproval;
    assert_eq!(rebuild(queue, FailureKind::Conflict), Some(Rebuild::OnIntegration));
    assert_eq!(rebuild(queue, FailureKind::Gate), Some(Rebuild::OnMerge(commit(2))));
    assert_eq!(rebuild(queue, FailureKind::Rejected), None);
    assert_eq!(rebuild(LaneStage::Validation, FailureKind::Conflict), None);
}
