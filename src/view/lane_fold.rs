//! How one event changes what is known of a lane.

use super::lane_view::{Ending, FailureView, JobView, LaneState, LaneView, RetryView, SnapshotView};
use super::run_view::RunFacts;
use crate::event::{Event, LaneStage, Record};
use crate::model::{AgentName, Approval, CommitId, Failure, HumanGate, JobId, RetryLevel, Timestamp};

/// How the lane stands: what ended it, else whether the run stopped, else its stage.
pub(super) fn state_of(lane: &LaneView, run: &RunFacts) -> LaneState {
    match &lane.ending {
        Some(Ending::Failed(_)) => return LaneState::Failed,
        Some(Ending::Blocked(_)) => return LaneState::Blocked,
        Some(Ending::RolledBack) => return LaneState::RolledBack,
        None => {}
    }
    if lane.merge_commit.is_some() || lane.merged_before {
        return if lane.pull_request.is_some() { LaneState::Proposed } else { LaneState::Merged };
    }
    if lane.skipped {
        return LaneState::Skipped;
    }
    let halted = run.finished.is_some() || ((run.stop.is_some() || lane.stopping) && lane.running.is_empty());
    match state_by_stage(lane) {
        // A question stays a question, whether or not somebody waits for the answer.
        LaneState::NeedsApproval(gate) if !lane.stopping => LaneState::NeedsApproval(gate),
        LaneState::NeedsPerson if !lane.stopping => LaneState::NeedsPerson,
        LaneState::Waiting if !lane.stopping => LaneState::Waiting,
        _ if halted => LaneState::Stopped,
        state => state,
    }
}

fn state_by_stage(lane: &LaneView) -> LaneState {
    let open = |gate: Approval| lane.approval.contains(&gate) && !lane.approved.contains(&gate);
    match lane.stage {
        LaneStage::Waiting => LaneState::Waiting,
        LaneStage::Init | LaneStage::Classified => LaneState::Starting,
        LaneStage::Synthesis if open(Approval::Plan) => LaneState::NeedsApproval(Approval::Plan),
        LaneStage::Requirements | LaneStage::Implementation | LaneStage::Review
            if !lane.asking.is_empty() && lane.running.is_empty() =>
        {
            LaneState::NeedsPerson
        }
        LaneStage::Requirements | LaneStage::Synthesis | LaneStage::Implementation => LaneState::Running,
        LaneStage::Validation => LaneState::Testing,
        LaneStage::Review => LaneState::Reviewing,
        LaneStage::AwaitingUserApproval if lane.testing_the_merge() => LaneState::Testing,
        LaneStage::AwaitingUserApproval if open(Approval::Changes) && !lane.merging => {
            LaneState::NeedsApproval(Approval::Changes)
        }
        LaneStage::AwaitingUserApproval => LaneState::Merging,
        LaneStage::Complete | LaneStage::Cleanup => LaneState::Merged,
    }
}

/// Takes in a record that is about the lane.
pub(super) fn apply_to_lane(lane: &mut LaneView, record: &Record) {
    let at = record.at;
    match &record.event {
        Event::StopRequested { .. } => lane.stopping = true,
        Event::PersonAsked { agent, task, .. } => {
            lane.asking.retain(|(asking, _)| asking != agent);
            lane.asking.push((agent.clone(), task.clone()));
        }
        Event::GateAnswered { gate: HumanGate::Approval(gate), approved, .. } => {
            lane.approved.retain(|answered| answered != gate);
            lane.approved.extend(approved.then_some(*gate));
        }
        Event::GateAnswered { gate: HumanGate::Task(task), approved, .. } => {
            let (answered, open) = std::mem::take(&mut lane.asking).into_iter().partition(|(_, asked)| asked == task);
            lane.asking = open;
            lane.refused = if *approved { Vec::new() } else { answered };
        }
        Event::LaneMoved { to, .. } => move_lane(lane, *to, at),
        Event::LaneBased { base, .. } => {
            lane.base = Some(base.clone());
            lane.head = Some(base.clone());
        }
        Event::WorktreeOpened { agent: None, worktree, .. } => {
            lane.head = Some(worktree.head.clone());
            lane.worktree = Some(worktree.clone());
        }
        Event::WorktreeOpened { agent: Some(agent), worktree, .. } => {
            let agent = lane.agent(agent);
            agent.head = Some(worktree.head.clone());
            agent.worktree = Some(worktree.clone());
        }
        Event::WorktreeReleased { agent, .. } => lane.agent(agent).worktree = None,
        Event::WorkCommitted { agent, head, .. } => committed(lane, agent, head),
        Event::AgentMerged { agent, head, .. } => {
            lane.agent(agent).merged = true;
            lane.head = Some(head.clone());
            lane.asking.retain(|(asking, _)| asking != agent);
        }
        Event::SnapshotTaken { agent, reason, commit, reference, .. } => lane.snapshots.push(SnapshotView {
            agent: agent.clone(),
            reason: *reason,
            commit: commit.clone(),
            reference: reference.clone(),
            at,
        }),
        Event::JobPlanned { job } => {
            if job.is_attempt() {
                lane.delayed_until = None;
                lane.asking.retain(|(asking, _)| Some(asking) != job.agent());
                lane.refused.clear();
            }
            apply_to_jobs(&mut lane.running, &mut lane.ended, &record.event, at);
        }
        Event::JobStarted { .. } | Event::JobExited { .. } => {
            apply_to_jobs(&mut lane.running, &mut lane.ended, &record.event, at);
        }
        Event::FailureNoted { agent, task, failure, .. } => {
            let job = lane.failed_job(agent.as_ref()).map(|job| job.job.clone());
            let failure = failure.clone();
            lane.last_failure = Some(FailureView { agent: agent.clone(), task: task.clone(), job, failure, at });
        }
        Event::RetryPlanned { agent, level, not_before, checkpoint, .. } => {
            if *level != RetryLevel::Wait {
                retry(lane, agent, *level, (checkpoint.retry_attempt, checkpoint.max_retries), at);
            }
            lane.delayed_until = Some(*not_before);
        }
        Event::AgentReset { agent, head, .. } => {
            let agent = lane.agent(agent);
            agent.head = Some(head.clone());
            agent.merged = false;
        }
        Event::LaneReset { base, .. } => {
            lane.base = Some(base.clone());
            lane.head = Some(base.clone());
            lane.approved.clear();
            lane.merging = false;
        }
        Event::MergeStaged { .. } => lane.merging = true,
        Event::LaneMerged { commit, .. } => {
            lane.merge_commit = Some(commit.clone());
            lane.ending = None;
            lane.finished = Some(at);
        }
        Event::PullRequestOpened { pull_request, .. } => lane.pull_request = Some(pull_request.clone()),
        Event::MustHavesChecked { verdicts, .. } => lane.must_haves = verdicts.clone(),
        Event::LaneCleaned { kept, .. } => lane.kept = kept.clone(),
        Event::LaneFailed { failure, .. } => fail(lane, failure, at),
        Event::LaneBlocked { reason, .. } => {
            lane.ending = Some(Ending::Blocked(reason.clone()));
            lane.finished = Some(at);
        }
        Event::LaneRolledBack { kept, .. } => roll_back(lane, kept, at),
        Event::CheckpointReached { .. }
        | Event::RollbackBegun { .. }
        | Event::SnapshotFailed { .. }
        | Event::SnapshotDamaged { .. }
        | Event::MergeSuperseded { .. }
        | Event::MergesBisected { .. }
        | Event::WorktreeLost { .. }
        | Event::BranchPushed { .. }
        | Event::ForgeUnavailable { .. }
        | Event::Noted { .. }
        | Event::RunStarted(_)
        | Event::RunResumed { .. }
        | Event::FinalOpened { .. }
        | Event::RunMoved(_)
        | Event::PoolEmptied { .. }
        | Event::WorktreeMadeAhead { .. }
        | Event::PhaseBlocked { .. }
        | Event::GitWorked { .. }
        | Event::RunFinished { .. } => {}
    }
}

fn move_lane(lane: &mut LaneView, to: LaneStage, at: Timestamp) {
    // What a person approved was what the lane held then: going back to work asks again.
    if to < lane.stage {
        lane.approved.retain(|&gate| gate == Approval::Plan && to > LaneStage::Synthesis);
        lane.merging = false;
    }
    if to != LaneStage::Waiting {
        lane.started.get_or_insert(at);
        if lane.ending == Some(Ending::RolledBack) {
            lane.ending = None;
            lane.finished = None;
        }
    }
    lane.stage = to;
}

fn committed(lane: &mut LaneView, agent: &AgentName, head: &CommitId) {
    let agent = lane.agent(agent);
    agent.head = Some(head.clone());
    // An agent without a worktree of its own works on the lane's branch.
    if agent.worktree.is_none() {
        lane.head = Some(head.clone());
    }
}

fn retry(
    lane: &mut LaneView,
    agent: &AgentName,
    level: RetryLevel,
    (attempt, max): (Option<u32>, Option<u32>),
    at: Timestamp,
) {
    lane.agent(agent).retries += u32::from(level == RetryLevel::Retry);
    let counted = lane.agent(agent).retries;
    lane.retries.push(RetryView {
        agent: agent.clone(),
        level,
        attempt: attempt.unwrap_or(counted),
        max: max.unwrap_or_default(),
        reason: lane.last_failure.as_ref().map(|last| last.failure.message.clone()).unwrap_or_default(),
        at,
    });
}

fn fail(lane: &mut LaneView, failure: &Failure, at: Timestamp) {
    // What was noted before may be another failure, long mended.
    let noted = lane.last_failure.take().filter(|noted| noted.failure.kind == failure.kind);
    let failed_job = lane.failed_job(None).filter(|_| failure.command.is_some() || failure.exit_code.is_some());
    let job = noted.as_ref().and_then(|noted| noted.job.clone()).or(failed_job.map(|view| view.job.clone()));
    let (agent, task) = match noted {
        Some(noted) => (noted.agent, noted.task),
        None => (job.as_ref().and_then(JobId::agent).cloned(), job.as_ref().and_then(JobId::task).cloned()),
    };
    lane.last_failure = Some(FailureView { agent, task, job, failure: failure.clone(), at });
    lane.ending = Some(Ending::Failed(failure.clone()));
    lane.finished = Some(at);
}

fn roll_back(lane: &mut LaneView, kept: &[String], at: Timestamp) {
    lane.ending = Some(Ending::RolledBack);
    lane.finished = Some(at);
    lane.kept = kept.to_vec();
    lane.must_haves.clear();
    lane.stage = LaneStage::Waiting;
    lane.merge_commit = None;
    lane.pull_request = None;
    lane.worktree = None;
    lane.head = None;
    lane.base = None;
    lane.delayed_until = None;
    lane.merging = false;
    lane.approved.clear();
    lane.asking.clear();
    lane.agents.clear();
    lane.ended.append(&mut lane.running);
}

/// The life of jobs: planned, running, ended. An end is the last word, whatever comes later.
pub(super) fn apply_to_jobs(running: &mut Vec<JobView>, ended: &mut Vec<JobView>, event: &Event, at: Timestamp) {
    let (job, supervised, end) = match event {
        Event::JobPlanned { job } => (job, false, None),
        Event::JobStarted { job, .. } => (job, true, None),
        Event::JobExited { job, exit, transcript, .. } => (job, true, Some((exit, transcript))),
        _ => return,
    };
    if ended.iter().rev().any(|view| view.job == *job) {
        return;
    }
    let known = running.iter().position(|view| view.job == *job);
    match (known, end) {
        (None, None) => {
            let view = JobView { job: job.clone(), since: at, running: supervised, exit: None, transcript: None };
            running.push(view);
        }
        (Some(at_index), None) if supervised && !running[at_index].running => {
            running[at_index].since = at;
            running[at_index].running = true;
        }
        (Some(_), None) => {}
        (known, Some((exit, transcript))) => {
            let since = known.map_or(exit.started_at, |known| running.remove(known).since);
            let transcript = transcript.as_deref().cloned();
            ended.push(JobView { job: job.clone(), since, running: false, exit: Some(exit.clone()), transcript });
        }
    }
}
