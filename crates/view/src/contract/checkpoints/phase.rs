//! The records of the phase itself, those with lane `-`: from its base to the final gate and the end.

use lanewright_model::event::{Event, RunOutcome};
use lanewright_model::text::counted;
use lanewright_model::{Checkpoint, CheckpointStatus, ExitCause, JobExit, JobRole, Stage};

use super::Groups;
use super::standing::Standing;
use crate::answers::commands::Commands;
use crate::answers::next_steps::{NextStep, next_steps, questions};
use crate::history::{LaneHistory, LaneState, RunHistory, StateGroup};

/// How many things to do are named.
const NAMED: usize = 5;

/// Whether an event about no lane may change where lanes stand.
pub(super) fn concerns_all_lanes(event: &Event) -> bool {
    matches!(
        event,
        Event::RunStarted(_)
            | Event::RunResumed { .. }
            | Event::RunFinished { .. }
            | Event::StopRequested { .. }
            | Event::RunnerPaused { .. }
            | Event::RunnerContinued { .. }
    )
}

/// Whether an event may change where the phase stands, although no lane's state changes.
pub(super) fn concerns(event: &Event) -> bool {
    event.lane().is_none() || matches!(event, Event::PersonAsked { .. } | Event::GateAnswered { .. })
}

/// The stage that the phase has reached by an event, which is part of `history`.
pub(super) fn checkpoint(history: &RunHistory, event: &Event) -> Option<Checkpoint> {
    use CheckpointStatus::{Complete, Failed, InProgress, Retrying};
    let head_sha = history.run.integration.clone();
    match event {
        Event::RunStarted(_) => Some(Checkpoint { head_sha, ..Checkpoint::new(Stage::BeforeLaneStart, InProgress) }),
        Event::JobPlanned { job, .. } if job.role == JobRole::Final => {
            let failed: Vec<&JobExit> = failed_gates(history).collect();
            let number = u32::try_from(failed.len()).ok().filter(|number| *number > 0)?;
            let context = |(at, exit): (usize, &&JobExit)| format!("Attempt {}: {}", at + 1, in_short(exit));
            let failure_context = failed.iter().enumerate().map(context).collect();
            let retry = Checkpoint::new(Stage::RetryAttempt, Retrying);
            Some(Checkpoint { head_sha, retry_attempt: Some(number), failure_context, ..retry })
        }
        Event::JobExited { job, exit, .. } if job.role == JobRole::Final && is_verdict(exit) => {
            let status = if exit.passed() { Complete } else { Failed };
            let context = if exit.passed() { "the final gate passed".to_owned() } else { in_short(exit) };
            let (command, exit_code) = (Some(exit.command.clone()), Some(exit.exit_code));
            let tests = Checkpoint::new(Stage::AfterLaneTests, status);
            Some(Checkpoint { head_sha, context, command, exit_code, ..tests })
        }
        Event::RunFinished { outcome: RunOutcome::Done, .. } => {
            let target_branch = Some(history.run.base_branch().to_owned());
            Some(Checkpoint { head_sha, target_branch, ..Checkpoint::new(Stage::PrePr, Complete) })
        }
        _ => None,
    }
}

fn failed_gates(history: &RunHistory) -> impl Iterator<Item = &JobExit> {
    let exits = history.run.jobs.ended.iter().filter(|job| job.job.role == JobRole::Final);
    exits.filter_map(|job| job.exit.as_ref()).filter(|exit| is_verdict(exit) && !exit.passed())
}

/// Whether the gate ended by itself.
fn is_verdict(exit: &JobExit) -> bool {
    !matches!(exit.cause, ExitCause::Stopped | ExitCause::Lost | ExitCause::NotStarted)
}

fn in_short(exit: &JobExit) -> String {
    format!("the final gate failed: {} (exit {})", exit.command, exit.exit_code)
}

pub(super) fn standing(
    history: &RunHistory,
    groups: &Groups,
    commands: &Commands<'_>,
    is_interrupted: bool,
) -> Standing {
    let steps = || to_do(&next_steps(history, commands.program, false));
    let (status, notes) = match history.run.outcome {
        None if is_interrupted => (Some(CheckpointStatus::Ready), steps()),
        None => running(history, groups, commands),
        Some(outcome) => {
            let status = match outcome {
                RunOutcome::Done => CheckpointStatus::Complete,
                RunOutcome::Failed => CheckpointStatus::Failed,
                RunOutcome::Blocked if history.run.failed_final_gate().is_some() => CheckpointStatus::Failed,
                RunOutcome::Blocked => CheckpointStatus::Blocked,
                RunOutcome::Stopped => CheckpointStatus::Ready,
                RunOutcome::RolledBack => CheckpointStatus::RolledBack,
            };
            let lacks = if outcome == RunOutcome::Done { history.lacks() } else { Vec::new() };
            (Some(status), lacks.into_iter().chain([steps()]).collect::<Vec<_>>().join("; "))
        }
    };
    Standing { status, notes, ..Standing::default() }
}

/// Of a run that goes on: how far it is, and what waits for a person. It is blocked where nothing else can go on.
fn running(history: &RunHistory, groups: &Groups, commands: &Commands<'_>) -> (Option<CheckpointStatus>, String) {
    let count = |group: StateGroup| groups.get(&group).copied().unwrap_or_default();
    let all: usize = groups.values().sum::<usize>() - count(StateGroup::Skipped);
    let mut notes = format!("{} of {} merged", history.done(), counted(all, "lane"));
    if count(StateGroup::Failed) > 0 {
        notes.push_str(&format!(", {} failed", count(StateGroup::Failed)));
    }
    let asked = questions(history, commands);
    if asked.is_empty() {
        return (None, notes);
    }
    notes.push_str(&format!("; {}", to_do(&asked)));
    let may_begin = |lane: &LaneHistory| lane.state == LaneState::Waiting && history.has_all_dependencies(lane);
    let goes_on = count(StateGroup::Working) > 0 || history.lanes().iter().any(may_begin);
    ((!goes_on).then_some(CheckpointStatus::Blocked), notes)
}

/// Each step with the commands for it, on one line.
fn to_do(steps: &[NextStep]) -> String {
    let step = |step: &NextStep| {
        let reason = step.reason.split_whitespace().collect::<Vec<_>>().join(" ");
        let commands: Vec<String> = step.shell_lines().collect();
        if commands.is_empty() { reason } else { format!("{reason} {}", commands.join(" | ")) }
    };
    let mut texts: Vec<String> = steps.iter().take(NAMED).map(step).collect();
    if steps.len() > NAMED {
        texts.push(format!("and {} more", steps.len() - NAMED));
    }
    texts.join("; ")
}
