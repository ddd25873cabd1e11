//! What the newest record of a lane says: its status, why, and where the work is.

use std::sync::Arc;

use lanewright_model::event::{LaneStage, stage_in_words};
use lanewright_model::text::{headline, shell_line};
use lanewright_model::{
    AgentName, Checkpoint, CheckpointRecord, CheckpointStatus, Failure, FailureKind, GitState, HumanGate, Stage, TaskId,
};

use super::StageRecord;
use crate::answers::approvals::{effect_of_resume, subject_of};
use crate::answers::commands::Commands;
use crate::answers::next_steps::with_ends;
use crate::history::{
    Ending, FailureView, JobHistory, LaneHistory, LaneState, RunHistory, StateGroup, WaitingFor, Workplace,
};

/// How many lanes are named that a lane waits for.
const NAMED: usize = 5;

/// Where a lane or the phase stands.
#[derive(Debug, Clone, Default)]
pub(super) struct Standing {
    /// `None`: as the stage was reached.
    pub(super) status: Option<CheckpointStatus>,
    pub(super) notes: String,
    /// How it failed, and the `failure_context` of every attempt at that, across resumes.
    pub(super) failure: Option<(Failure, Vec<String>)>,
    /// The worktree where the work is.
    pub(super) git: Option<GitState>,
}

impl Standing {
    /// The index of the record that says it: the newest, but `retry_attempt` where no retry is left (seed 004, Failure
    /// Scenarios).
    pub(super) fn stage(&self, written: &[StageRecord]) -> usize {
        let newest = written.len().saturating_sub(1);
        let is_last_retry = |stage: &StageRecord| {
            stage.reached.stage == Stage::RetryAttempt && stage.reached.retry_attempt >= stage.reached.max_retries
        };
        match &self.failure {
            Some((failure, _)) if failure.kind != FailureKind::State => {
                written.iter().position(is_last_retry).unwrap_or(newest)
            }
            _ => newest,
        }
    }

    /// Writes into `record` what it says of the stage that was `reached` last.
    pub(super) fn show(&self, reached: &Checkpoint, record: &mut CheckpointRecord) {
        record.status = self.status.unwrap_or(reached.status);
        record.notes = match (self.notes.as_str(), reached.context.as_str()) {
            ("", said) => said.to_owned(),
            (notes, "") => notes.to_owned(),
            // Why it failed, or why it waits, is what counts.
            (notes, _) if self.status.is_some() => notes.to_owned(),
            (notes, said) => format!("{said}; {notes}"),
        };
        record.retry_attempt = reached.retry_attempt;
        record.failure_context.clone_from(&reached.failure_context);
        record.command.clone_from(&reached.command);
        record.exit_code = reached.exit_code;
        if let Some((failure, attempts)) = &self.failure {
            record.retry_attempt = record.retry_attempt.map(|retry| retry.min(record.max_retries.unwrap_or(retry)));
            record.failure_context.clone_from(attempts);
            record.command = failure.command.clone().or(record.command.take());
            record.exit_code = failure.exit_code.or(record.exit_code);
        }
        if record.notes.is_empty() {
            record.notes = said_of(reached);
        }
    }
}

/// Writes into `record` what it says of a stage that is over. One that failed says so until it is reached again.
pub(super) fn show_passed(reached: &Checkpoint, rolled_back: bool, is_merged: bool, record: &mut CheckpointRecord) {
    let was_sent_back = reached.stage == Stage::PrePr && !is_merged;
    record.status = match reached.status {
        _ if rolled_back => CheckpointStatus::RolledBack,
        CheckpointStatus::Failed => CheckpointStatus::Failed,
        _ if was_sent_back => CheckpointStatus::Failed,
        _ => CheckpointStatus::Complete,
    };
    record.notes = match reached.context.as_str() {
        _ if was_sent_back && !rolled_back => "the lane was sent back, and not merged".to_owned(),
        "" => said_of(reached),
        said => said.to_owned(),
    };
    record.failure_context.clone_from(&reached.failure_context);
    record.command.clone_from(&reached.command);
    record.exit_code = reached.exit_code;
    record.retry_attempt = reached.retry_attempt;
}

/// What a stage was reached with.
fn said_of(reached: &Checkpoint) -> String {
    let at = reached.head_sha.as_ref().map(|head| format!(" at {}", head.short())).unwrap_or_default();
    match reached.stage {
        Stage::BeforeLaneStart => format!("the preconditions hold{at}"),
        Stage::AfterLaneStart => format!("worktrees are checked out{at}"),
        Stage::AfterLaneTests => "the tests ran".to_owned(),
        Stage::PrePr => format!("ready to be merged{at}"),
        Stage::RetryAttempt => "another attempt".to_owned(),
    }
}

pub(super) fn of_lane(
    history: &RunHistory,
    lane: &LaneHistory,
    commands: &Commands<'_>,
    is_interrupted: bool,
) -> Standing {
    let git = git_of(work_of(lane));
    let (status, notes) = match &lane.ending {
        _ if lane.is_half_rolled_back => {
            let finish =
                shell_line(commands.finish_rollback([&lane.id], lane.point.as_deref(), lane.merge_commit.is_some()));
            (Some(CheckpointStatus::Blocked), format!("its rollback is not finished: {finish}"))
        }
        Some(Ending::Failed(failure)) => {
            let (status, notes) = (Some(CheckpointStatus::Failed), failure.message.clone());
            return Standing { status, notes, failure: Some((failure.clone(), attempts_of(lane, failure))), git };
        }
        Some(Ending::Blocked(reason)) => (Some(CheckpointStatus::Blocked), reason.clone()),
        _ if is_interrupted && lane.state.group() == StateGroup::Working => {
            let was_rejected = lane.answers.last().is_some_and(|answer| !answer.approved);
            let how = match lane.stage {
                LaneStage::Synthesis | LaneStage::AwaitingUserApproval if was_rejected => {
                    "rejected, resume to rework it".to_owned()
                }
                LaneStage::Synthesis => "interrupted before its implementation; a resume goes on".to_owned(),
                LaneStage::AwaitingUserApproval => "interrupted before its merge; a resume goes on".to_owned(),
                stage => format!("interrupted in {}; a resume goes on from there", stage_in_words(stage.word())),
            };
            (Some(CheckpointStatus::Ready), how)
        }
        _ => status_and_notes(history, lane, commands),
    };
    Standing { status, notes, failure: None, git }
}

/// The entries of `failure_context` for all failures of the work in which the lane failed, `last` included: each with the
/// number of its attempt, which a resume continues.
fn attempts_of(lane: &LaneHistory, last: &Failure) -> Vec<String> {
    let of_last = |view: &&FailureView| {
        lane.last_failure.as_ref().is_none_or(|last| (&view.agent, &view.task) == (&last.agent, &last.task))
    };
    let noted: Vec<&FailureView> = lane.failures.iter().filter(of_last).collect();
    let mut number = 0;
    let mut entries = Vec::new();
    for view in noted.iter().filter(|view| !view.failure.kind.is_outage()) {
        let attempt = view.job.as_ref().filter(|job| job.agent().is_some()).map(|job| job.number);
        number = attempt.unwrap_or(0).max(number + 1);
        entries.extend(view.failure.context(number));
    }
    // Each retry followed a failure; another one ended the lane.
    if lane.retries.len() >= noted.len() || noted.last().is_none_or(|view| view.failure != *last) {
        entries.extend(last.context(number + 1));
    }
    entries
}

fn status_and_notes(
    history: &RunHistory,
    lane: &LaneHistory,
    commands: &Commands<'_>,
) -> (Option<CheckpointStatus>, String) {
    use CheckpointStatus::{Blocked, Complete, Ready, RolledBack};
    let ask =
        |what: String, gate: HumanGate| format!("waits for {what}: {}", shell_line(commands.approve(&lane.id, &gate)));
    let has_not_begun = lane.stage == LaneStage::Waiting;
    if matches!(lane.state, LaneState::Waiting | LaneState::Stopped)
        && has_not_begun
        && let WaitingFor::Lanes(lanes) = history.missing_dependencies(lane)
    {
        return (Some(Blocked), format!("waits for lane {}", with_ends(history, &lanes, NAMED)));
    }
    match (lane.state, history.waiting_for(lane)) {
        (LaneState::Waiting, _) if history.run.finished.is_some() => (Some(Ready), "a resume starts it".to_owned()),
        (_, Some(WaitingFor::Runner { account, until })) => {
            let until = until.map(|until| format!(" until {until}")).unwrap_or_default();
            (Some(Blocked), format!("waits for {}{until}", headline(&account, 40)))
        }
        (LaneState::Waiting, _) => (Some(Ready), "waits for a place".to_owned()),
        (LaneState::NeedsApproval(gate), _) => {
            (Some(Blocked), ask(format!("approval of its {gate}{}", subject_of(lane, gate)), gate.into()))
        }
        (LaneState::NeedsPerson, Some(WaitingFor::Person(tasks))) => {
            let names = tasks.iter().map(TaskId::as_str).collect::<Vec<_>>().join(" and task ");
            let gate = tasks.first().map(|task| HumanGate::Task(task.clone()));
            let question = gate.map(|gate| ask(format!("a person, for task {names}"), gate));
            (Some(Blocked), question.unwrap_or_default())
        }
        (LaneState::Merged | LaneState::Proposed, _) => (Some(Complete), merged(history, lane)),
        (LaneState::RolledBack, _) => {
            let to = lane.point.as_ref().map(|point| format!(" to {point}")).unwrap_or_default();
            let kept = if lane.kept.is_empty() { String::new() } else { format!("; kept {}", lane.kept.join(", ")) };
            (Some(RolledBack), format!("rolled back{to}{kept}"))
        }
        (LaneState::Skipped, _) => {
            let reason = lane.left_out.as_deref().filter(|reason| !reason.is_empty()).unwrap_or("a person skipped it");
            let back = shell_line(commands.rollback([&lane.id]));
            (Some(Ready), format!("left out: {reason}; to take it in again: {back}"))
        }
        (LaneState::Stopped, _) => match effect_of_resume(history, lane) {
            Some(effect) => (Some(Ready), effect),
            None if has_not_begun => (Some(Ready), "stopped before it began".to_owned()),
            None => (Some(Ready), format!("stopped in {}", stage_in_words(lane.stage.word()))),
        },
        (_, Some(WaitingFor::Until(moment))) => (None, format!("tries again at {moment}")),
        (_, _) => (None, activity(lane)),
    }
}

/// Where the work of a lane is that this run has nothing left to do for.
fn merged(history: &RunHistory, lane: &LaneHistory) -> String {
    let mut text = match (&lane.merge_commit, &lane.pull_request) {
        (None, _) => "merged by an earlier run".to_owned(),
        (Some(_), Some(pull_request)) => format!("pull request {}", pull_request.url),
        (Some(commit), None) if history.run.merges() => {
            format!("merged as {commit} into {}", history.run.base_branch())
        }
        (Some(commit), None) => format!("done; its work is on its branch, at {commit}"),
    };
    if !lane.kept.is_empty() {
        text.push_str(&format!("; kept {}", lane.kept.join(", ")));
    }
    text
}

/// What runs in the lane, or what ran last.
fn activity(lane: &LaneHistory) -> String {
    if let Some(placement) = lane.elsewhere() {
        return placement.to_string();
    }
    let running = lane.jobs.running.iter().map(|job| match (job.job.agent(), job.job.task()) {
        (Some(agent), Some(task)) if job.job.is_attempt() => {
            format!("{agent} works on task {task}, attempt {}", job.job.number)
        }
        _ => format!("runs: {}", job.job.role.title()),
    });
    let running: Vec<String> = running.collect();
    if !running.is_empty() {
        return running.join(", ");
    }
    let last = |job: &JobHistory| {
        let exit = job.exit.as_ref()?;
        Some(format!("last command: {} (exit {})", exit.command, exit.exit_code))
    };
    lane.jobs.ended.last().and_then(last).unwrap_or_default()
}

/// Where the lane's work is: with the agent that works in a worktree of its own, else with the last one that left changes
/// there, else in the lane's.
fn work_of(lane: &LaneHistory) -> &Workplace {
    let working = lane.jobs.running.iter().filter_map(|job| lane.works_in(&job.job)).next_back();
    let is_dirty = |agent: &&AgentName| lane.agent(agent).is_some_and(|agent| !agent.workplace.dirty.is_empty());
    let left = || lane.snapshots.iter().filter_map(|snapshot| snapshot.agent.as_ref()).rfind(is_dirty);
    working.or_else(left).and_then(|agent| lane.agent(agent)).map_or(&lane.workplace, |agent| &agent.workplace)
}

/// Its branch and commit, and the files that were in no commit when it was saved last: it is not looked at for a record.
pub(super) fn git_of(workplace: &Workplace) -> Option<GitState> {
    workplace.worktree.as_ref()?;
    let (branch, head) = (workplace.branch().map(Arc::from), workplace.checkpoint_head.clone());
    Some(GitState { branch, head, dirty_files: workplace.dirty.clone() })
}

/// Whether the lane's worktree is no longer its own.
pub(super) fn has_left_its_worktree(lane: &LaneHistory) -> bool {
    let ended = lane.is_cleaned || lane.is_merged() || lane.ending == Some(Ending::RolledBack);
    ended && (lane.is_cleaned || lane.workplace.worktree.is_none())
}
