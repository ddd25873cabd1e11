//! What the user may type next, for every state of a run.

use lanewright_model::cells::clean;
use lanewright_model::event::RunOutcome;
use lanewright_model::text::{counted, listed, shell_line};
use lanewright_model::{AgentName, Approval, HumanGate, LaneId, TaskId};
use serde::Serialize;

use crate::answers::approvals::{commit_of, effect_of_resume, subject_of, word};
use crate::answers::commands::Commands;
use crate::answers::escalation;
use crate::history::{LaneHistory, LaneState, RunHistory, WaitingFor};

/// What the user can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NextStep {
    /// Why, on one line.
    pub reason: String,
    /// Argument vectors, each a choice, the likeliest first.
    pub commands: Vec<Vec<String>>,
}

impl NextStep {
    /// The commands as they can be pasted into a POSIX shell.
    pub fn shell_lines(&self) -> impl Iterator<Item = String> {
        self.commands.iter().map(shell_line)
    }
}

/// `held`: whether a live process works on the run.
pub fn next_steps(history: &RunHistory, program: &[String], held: bool) -> Vec<NextStep> {
    let Some(run) = history.run.run_id() else { return Vec::new() };
    let commands = Commands { program, run };
    let mut steps = questions(history, &commands);
    let is_rolled_back_now = || history.half_rolled_back().next().is_some();
    if held && (history.run.finished.is_none() || is_rolled_back_now()) {
        return steps;
    }
    let nothing_asked = steps.is_empty();
    steps.extend(run_steps(history, &commands, nothing_asked));
    steps
}

/// What the user may type about a run that no process works on. Every step has its commands, also those of another.
fn run_steps(history: &RunHistory, commands: &Commands<'_>, nothing_asked: bool) -> Vec<NextStep> {
    if let Some(first) = half_rolled_back(history, commands) {
        return vec![first];
    }
    let failed = failed_lanes(history, commands);
    let mut reasons: Vec<NextStep> = answered_lanes(history, commands).into_iter().collect();
    reasons.extend(blocked_lanes(history, commands));
    // An answer alone does not continue a run that was cut off.
    let nothing_asked = nothing_asked || history.run.outcome.is_none();
    let nothing_else = nothing_asked && failed.is_none() && reasons.is_empty();
    let first = failed.or_else(|| whole_run(history, commands, nothing_else));
    first.into_iter().chain(reasons).collect()
}

/// The commands of [`run_steps`], each once, for where the reasons are shown in another form.
pub(crate) fn run_commands(history: &RunHistory, commands: &Commands<'_>) -> Vec<Vec<String>> {
    let steps = run_steps(history, commands, true);
    let mut all: Vec<Vec<String>> = Vec::new();
    for command in steps.into_iter().flat_map(|step| step.commands) {
        if !all.contains(&command) {
            all.push(command);
        }
    }
    all
}

/// What waits for the user: approvals of lanes, and tasks.
pub(crate) fn questions(history: &RunHistory, commands: &Commands<'_>) -> Vec<NextStep> {
    let mut steps = Vec::new();
    for lane in history.active() {
        let mut ask = |reason: String, gate: &HumanGate| {
            let look = (*gate == Approval::Changes.into()).then(|| commands.diff(&lane.id));
            let answers = [commands.approve(&lane.id, gate), commands.reject(&lane.id, gate)];
            steps.push(NextStep { reason, commands: look.into_iter().chain(answers).collect() });
        };
        match lane.state {
            LaneState::NeedsApproval(gate) => {
                let (subject, commit) = (subject_of(lane, gate), commit_of(lane, gate));
                ask(format!("{} waits for your approval of its {gate}{subject}{commit}.", lane.id), &gate.into());
            }
            LaneState::NeedsPerson => {
                let mut tasks: Vec<&TaskId> = lane.asking.iter().map(|(_, task)| task).collect();
                tasks.dedup();
                for task in tasks {
                    ask(question(history, lane, task), &HumanGate::Task(task.clone()));
                }
            }
            _ => {}
        }
    }
    steps
}

/// What the task asks, and where its work is.
fn question(history: &RunHistory, lane: &LaneHistory, task: &TaskId) -> String {
    let asked =
        lane.human_tasks.iter().find(|(id, _)| id == task).map(|(_, question)| format!(" ({})", clean(question)));
    let has_own = |name: &AgentName| lane.agent(name).is_some_and(|agent| agent.workplace.worktree.is_some());
    let asking = lane.asking.iter().find(|(agent, asked)| asked == task && has_own(agent)).map(|(agent, _)| agent);
    let is_there = asking.is_some() || lane.workplace.worktree.is_some();
    let link = history.run.link(&lane.id, asking).filter(|_| is_there);
    let place = link.map(|link| format!(" Its work: {}.", link.display()));
    let (lane, asked, place) = (&lane.id, asked.unwrap_or_default(), place.unwrap_or_default());
    format!("{lane} waits for you: task {task}{asked}.{place} What you say with -m reaches the agent.")
}

fn answered_lanes(history: &RunHistory, commands: &Commands<'_>) -> Option<NextStep> {
    let answered = |lane: &LaneHistory| Some(format!("{}: {}", lane.id, effect_of_resume(history, lane)?));
    let answered: Vec<String> = history.lanes().iter().filter_map(answered).collect();
    let again = || vec![commands.resume_of(&history.run)];
    (!answered.is_empty()).then(|| NextStep { reason: answered.join("; "), commands: again() })
}

fn half_rolled_back(history: &RunHistory, commands: &Commands<'_>) -> Option<NextStep> {
    let lanes: Vec<&LaneHistory> = history.half_rolled_back().collect();
    let reason = format!("The rollback of {} was interrupted. Finish it first:", names(&lanes));
    let to = lanes.first().and_then(|lane| lane.point.as_deref());
    let undoes = lanes.iter().any(|lane| lane.merge_commit.is_some());
    let finish = || commands.finish_rollback(lanes.iter().map(|lane| &lane.id), to, undoes);
    (!lanes.is_empty()).then(|| NextStep { reason, commands: vec![finish()] })
}

fn failed_lanes(history: &RunHistory, commands: &Commands<'_>) -> Option<NextStep> {
    let failed = lanes_that(history, LaneState::Failed);
    let first = failed.first()?;
    let has_advice = escalation::can_use_advice(first);
    let again = if has_advice { "retry, resume" } else { "resume" };
    let reason = format!("{} failed. See why, then {again} or roll back:", names(&failed));
    let retry = has_advice.then(|| commands.retry_of(&first.id, &history.run));
    let looked = std::iter::once(commands.lane_status(&first.id)).chain(retry);
    let rest = [commands.resume_of(&history.run), commands.rollback(Some(&first.id))];
    Some(NextStep { reason, commands: looked.chain(rest).collect() })
}

/// Lanes that wait for the same thing are answered once, and one that waits for a lane with that lane.
fn blocked_lanes(history: &RunHistory, commands: &Commands<'_>) -> Vec<NextStep> {
    let waits_for_lane =
        |lane: &LaneHistory| lane.depends_on.iter().filter_map(|id| history.lane(id)).any(|on| on.is_given_up());
    let blocked = lanes_that(history, LaneState::Blocked).into_iter().filter(|lane| !waits_for_lane(lane));
    let step = |(reason, lanes): (String, Vec<&LaneHistory>)| NextStep {
        reason: format!("{}: blocked: {reason}", names(&lanes)),
        commands: vec![commands.lane_status(&lanes[0].id), escalation::resume_after(lanes[0], &history.run, commands)],
    };
    by_reason(blocked.map(|lane| (lane, clean(lane.reason().unwrap_or_default())))).into_iter().map(step).collect()
}

/// The lanes of each reason, in the order in which the reasons first occur.
pub(crate) fn by_reason<'h>(
    lanes: impl Iterator<Item = (&'h LaneHistory, String)>,
) -> Vec<(String, Vec<&'h LaneHistory>)> {
    let mut reasons: Vec<(String, Vec<&LaneHistory>)> = Vec::new();
    for (lane, reason) in lanes {
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, lanes)) => lanes.push(lane),
            None => reasons.push((reason, vec![lane])),
        }
    }
    reasons
}

/// What the user may type about the run as a whole, and where its work is.
pub(crate) fn whole_run(history: &RunHistory, commands: &Commands<'_>, nothing_else: bool) -> Option<NextStep> {
    let stopped = |lane: &LaneHistory| lane.state == LaneState::Stopped && effect_of_resume(history, lane).is_none();
    let was_stopped = || history.lanes().iter().any(stopped);
    let reason = match history.run.outcome {
        Some(RunOutcome::Done) => return Some(NextStep { reason: where_the_work_is(history), commands: Vec::new() }),
        Some(RunOutcome::RolledBack) => return Some(rolled_back(commands)),
        Some(RunOutcome::Stopped) if history.run.code.is_none() => ready_lanes(history),
        Some(RunOutcome::Stopped) => "The run is stopped; no work is lost. Resume it, or roll it back:".to_owned(),
        Some(RunOutcome::Blocked) if was_stopped() => {
            "Lanes were stopped; no work is lost. Resume the run, or roll it back:".to_owned()
        }
        Some(RunOutcome::Blocked) if nothing_else && only_waits(history) => ready_lanes(history),
        Some(RunOutcome::Failed | RunOutcome::Blocked) => {
            return final_gate(history, commands).or_else(|| phase_blocked(history, commands));
        }
        None if nothing_else => "The run was interrupted; no work is lost. Resume it, or roll it back:".to_owned(),
        None => return None,
    };
    Some(NextStep { reason, commands: vec![commands.resume_of(&history.run), commands.rollback(None)] })
}

fn phase_blocked(history: &RunHistory, commands: &Commands<'_>) -> Option<NextStep> {
    let reason = format!("The run is blocked: {}", clean(history.run.blocked.as_ref()?));
    Some(NextStep { reason, commands: vec![commands.resume_of(&history.run)] })
}

fn rolled_back(commands: &Commands<'_>) -> NextStep {
    let reason = "The run is rolled back. List its saved work, run its lanes again, or remove what is left of it:";
    NextStep { reason: reason.to_owned(), commands: vec![commands.snapshots(), commands.resume(), commands.clean()] }
}

/// Whether every lane that is left could begin: what it waited for was merged in a resume of other lanes.
fn only_waits(history: &RunHistory) -> bool {
    let is_over = |lane: &LaneHistory| lane.state.is_done() || lane.state == LaneState::Skipped;
    let mut left = history.lanes().iter().filter(|lane| !is_over(lane)).peekable();
    left.peek().is_some() && left.all(|lane| lane.state == LaneState::Waiting)
}

fn final_gate(history: &RunHistory, commands: &Commands<'_>) -> Option<NextStep> {
    let exit = history.run.failed_final_gate()?;
    let reason = format!("The final gate failed on {}: {}", history.run.base_branch(), clean(&exit.command));
    let choices = escalation::final_gate(history, commands)?.options;
    Some(NextStep { reason, commands: choices.into_iter().map(|choice| choice.command).collect() })
}

/// What a resume starts, after lanes of an ended run were skipped or rolled back.
fn ready_lanes(history: &RunHistory) -> String {
    let is_ready = |lane: &&LaneHistory| history.waiting_for(lane) == Some(WaitingFor::Place);
    let ready: Vec<&LaneHistory> = history.lanes().iter().filter(is_ready).collect();
    match ready.len() {
        0 => "The run is not complete. Resume it, or roll it back:".to_owned(),
        1 => format!("{} is ready. Resume the run, or roll it back:", names(&ready)),
        _ => format!("{} are ready. Resume the run, or roll it back:", names(&ready)),
    }
}

fn where_the_work_is(history: &RunHistory) -> String {
    let count = counted(history.done(), "lane");
    let proposed = |lane: &LaneHistory| {
        let status = lane.pull_request_status.as_ref().map(|status| format!(": {}", clean(&status.to_string())));
        Some(format!("{} {}{}", lane.id, clean(&lane.pull_request.as_ref()?.url), status.unwrap_or_default()))
    };
    let proposed: Vec<String> = history.lanes().iter().filter_map(proposed).collect();
    if !proposed.is_empty() {
        let is_open = |lane: &LaneHistory| lane.pull_request_status.as_ref().is_none_or(|status| !status.is_closed());
        let any_open = history.lanes().iter().any(|lane| lane.pull_request.is_some() && is_open(lane));
        let what = if any_open { "For you to merge" } else { "Their pull requests" };
        return format!("{count} done. {what}:\n  {}", proposed.join("\n  "));
    }
    if !history.run.merges() {
        return format!("{count} done; each lane's work is on its own branch, nothing was merged.");
    }
    let place = history.run.integration.as_ref().map(|commit| format!(" at {}", commit.short())).unwrap_or_default();
    format!("{count} merged into {}{place}.", history.run.base_branch())
}

fn lanes_that(history: &RunHistory, state: LaneState) -> Vec<&LaneHistory> {
    history.lanes().iter().filter(|lane| lane.state == state).collect()
}

const NAMED: usize = 3;

pub(crate) fn names(lanes: &[&LaneHistory]) -> String {
    let names: Vec<String> = lanes.iter().map(|lane| lane.id.to_string()).collect();
    listed(&names, NAMED)
}

/// The first `most` lanes, those that ended without a merge with their state, and how many more there are.
pub(crate) fn with_ends(history: &RunHistory, lanes: &[LaneId], most: usize) -> String {
    let ended =
        |state| matches!(state, LaneState::Failed | LaneState::Blocked | LaneState::Stopped | LaneState::RolledBack);
    let named = lanes.iter().take(most).map(|id| match history.lane(id) {
        Some(lane) if ended(lane.state) => format!("{id} ({})", word(history, lane)),
        _ => id.to_string(),
    });
    let more = lanes.len().saturating_sub(most);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.collect::<Vec<_>>().join(", "))
}
