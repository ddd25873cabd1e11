//! A finished lane on its way into the integration branch (SPEC §6, step 7).

use lanewright_model::event::{ChosenBy, Event, LaneStage};
use lanewright_model::{
    Approval, Checkpoint, CheckpointStatus, CommitId, Failure, FailureKind, JobRole, LaneIndex, MergeMode, Stage,
};

use crate::action::Action;
use crate::decide::deciding::{Deciding, choose, leave_branch, move_on, reach, run_gate};
use crate::decide::failure_routing::{search_first, send_back, tests_failed};
use crate::decide::follow::answer;
use crate::decide::proposal::propose;
use crate::state::no_progress::{Decision, MOST};

pub(crate) fn decide_merge(deciding: &mut Deciding, lane: LaneIndex) {
    let state = deciding.state;
    let lane_state = state.lane(lane);
    if lane_state.merged().is_some() {
        return move_on(deciding, lane, LaneStage::Complete);
    }
    if !lane_state.proposal.feedback.is_empty() {
        return answer(deciding, lane, &lane_state.proposal.feedback);
    }
    if state.is_lane_run() {
        if let Some(head) = lane_state.head().cloned() {
            deciding.note(Event::LaneReturned { lane: deciding.id(lane), head });
        }
        return;
    }
    if lane_state.rebuild().is_some() {
        return move_on(deciding, lane, LaneStage::Implementation);
    }
    if let Some(picked) = lane_state.attempts.picked().filter(|_| !lane_state.checkpoints.contains(&Stage::PrePr)) {
        return choose(deciding, lane, picked, ChosenBy::User);
    }
    if let Some(said) = lane_state.approvals.rejection(&Approval::Changes.into()) {
        let message = format!("a person rejected the changes: {said}");
        return send_back(deciding, lane, Failure::new(FailureKind::Rejected, message));
    }
    if state.has_changes_to_measure(lane) {
        // Its head is another one than at its review.
        return deciding.want(Action::MeasureChanges(lane));
    }
    if !lane_state.checkpoints.contains(&Stage::PrePr) {
        return announce(deciding, lane);
    }
    match state.merge_mode() {
        Some(MergeMode::None) | None => leave_branch(deciding, lane),
        _ if state.merge_queue.front() != Some(&lane) => {}
        Some(MergeMode::Local) => merge(deciding, lane),
        Some(MergeMode::Pr) => propose(deciding, lane),
    }
}

fn announce(deciding: &mut Deciding, lane: LaneIndex) {
    let state = deciding.state;
    let base = state.started().map_or("", |started| started.base_branch.as_str());
    let (context, target_branch) = match state.merge_mode() {
        Some(MergeMode::Local) => (format!("to be merged into {base}"), None),
        Some(MergeMode::Pr) => {
            let target = state.proposal_target(lane);
            (format!("to be proposed for {target}"), Some(target))
        }
        _ => ("the branch is left".to_owned(), None),
    };
    let checkpoint = Checkpoint::new(Stage::PrePr, CheckpointStatus::InProgress);
    let head_sha = state.lane(lane).head().cloned();
    reach(deciding, lane, Checkpoint { head_sha, target_branch, context, ..checkpoint });
}

/// Blocks the lane: the branch does not take what was made for the commit where it is.
fn refused(deciding: &mut Deciding, lane: LaneIndex, onto: &CommitId) {
    let branch = deciding.state.started().map_or("the integration branch", |started| started.base_branch.as_str());
    let reason = format!(
        "{branch} refused {MOST} merges, although it is still at {}; look for a git operation in progress in a checkout of \
         {branch}, finish or abort it, then resume",
        onto.short()
    );
    deciding.block(lane, reason);
}

fn merge(deciding: &mut Deciding, lane: LaneIndex) {
    let (lane_state, plan) = deciding.lane(lane);
    if lane_state.worktree().is_none() && !plan.tests.is_empty() {
        // It was built elsewhere, and the merge is tested here.
        return deciding.want(Action::OpenWorktree { lane, agent: None });
    }
    let Some(staged) = lane_state.staged() else {
        return deciding.want(Action::StageMerge(lane));
    };
    if lane_state.no_progress.is_used_up(&Decision::Merge(staged.onto.clone())) {
        return refused(deciding, lane, &staged.onto);
    }
    if lane_state.merge_under_test(plan).is_none() {
        return deciding.want(Action::PublishMerge(lane));
    }
    match run_gate(deciding, lane, &lane_state.validation.merged_tests, || JobRole::MergedTests) {
        None => {}
        Some(Ok(())) => deciding.want(Action::PublishMerge(lane)),
        Some(Err(_)) if search_first(deciding, lane) => {}
        Some(Err(gate)) => tests_failed(deciding, lane, "the lane's tests failed on the merged result", gate),
    }
}
