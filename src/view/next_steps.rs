//! What a person may type next, for every way a run can stand.

use serde::Serialize;

use super::cells::clean;
use super::commands::Commands;
use super::lane_view::{LaneState, LaneView};
use super::run_view::RunView;
use crate::event::RunOutcome;
use crate::model::text::{counted, shell_line};
use crate::model::{AgentName, HumanGate, TaskId};

/// A reason and the commands that answer it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NextStep {
    /// What is the matter, on one line.
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

/// What may be done now. `held`: whether a live process works on the run.
pub fn next_steps(view: &RunView, program: &[String], held: bool) -> Vec<NextStep> {
    let Some(run) = &view.run.run_id else { return Vec::new() };
    let commands = Commands { program, run };
    let mut steps = questions(view, &commands);
    if held && view.run.finished.is_none() {
        return steps;
    }
    steps.extend(failed_lanes(view, &commands));
    steps.extend(blocked_lanes(view, &commands));
    steps.extend(whole_run(view, &commands, steps.is_empty()));
    steps
}

/// What waits for a person's answer: approvals of lanes, and tasks.
fn questions(view: &RunView, commands: &Commands<'_>) -> Vec<NextStep> {
    let mut steps = Vec::new();
    for lane in view.active() {
        let mut ask = |reason: String, gate: &HumanGate| {
            let commands = vec![commands.approve(&lane.id, gate), commands.reject(&lane.id, gate)];
            steps.push(NextStep { reason, commands });
        };
        match lane.state {
            LaneState::NeedsApproval(gate) => {
                ask(format!("{} waits for your approval of its {gate}.", lane.id), &gate.into());
            }
            LaneState::NeedsPerson => {
                let mut tasks: Vec<&TaskId> = lane.asking.iter().map(|(_, task)| task).collect();
                tasks.dedup();
                for task in tasks {
                    ask(question(lane, task), &HumanGate::Task(task.clone()));
                }
            }
            _ => {}
        }
    }
    steps
}

/// What the task asks, and where the person can look at what there is.
fn question(lane: &LaneView, task: &TaskId) -> String {
    let asked = lane.people.iter().find(|(id, _)| id == task).map(|(_, question)| format!(" ({})", clean(question)));
    let of_agent = |name: &AgentName| lane.agents.iter().find(|agent| agent.name == *name)?.worktree.as_ref();
    let asking = lane.asking.iter().find(|(_, asked)| asked == task).and_then(|(agent, _)| of_agent(agent));
    let place = asking.or(lane.worktree.as_ref()).map(|worktree| format!(" Its work: {}.", worktree.path.display()));
    let (lane, asked, place) = (&lane.id, asked.unwrap_or_default(), place.unwrap_or_default());
    format!("{lane} waits for you: task {task}{asked}.{place} What you say with -m reaches the agent.")
}

fn failed_lanes(view: &RunView, commands: &Commands<'_>) -> Option<NextStep> {
    let failed = lanes_that(view, LaneState::Failed);
    let first = failed.first()?;
    let mut choices: Vec<Vec<String>> = failed.iter().take(NAMED).map(|lane| commands.logs(&lane.id)).collect();
    choices.push(view.resume(commands));
    choices.push(commands.rollback(Some(&first.id)));
    Some(NextStep {
        reason: format!("{} failed. See why, then retry or roll back:", names(&failed)),
        commands: choices,
    })
}

/// Lanes that wait for the same thing are answered once.
fn blocked_lanes(view: &RunView, commands: &Commands<'_>) -> Vec<NextStep> {
    let mut reasons: Vec<(String, Vec<&LaneView>)> = Vec::new();
    for lane in lanes_that(view, LaneState::Blocked) {
        let reason = clean(lane.reason().unwrap_or_default());
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, lanes)) => lanes.push(lane),
            None => reasons.push((reason, vec![lane])),
        }
    }
    let step = |(reason, lanes): (String, Vec<&LaneView>)| NextStep {
        reason: format!("{}: blocked: {reason}", names(&lanes)),
        commands: vec![view.resume(commands)],
    };
    reasons.into_iter().map(step).collect()
}

fn whole_run(view: &RunView, commands: &Commands<'_>, nothing_else: bool) -> Option<NextStep> {
    match view.run.outcome {
        Some(RunOutcome::Done) => Some(NextStep { reason: where_the_work_is(view), commands: Vec::new() }),
        Some(RunOutcome::Stopped) => Some(NextStep {
            reason: "The run is stopped; no work is lost. Resume it, or roll it back:".to_owned(),
            commands: vec![view.resume(commands), commands.rollback(None)],
        }),
        Some(RunOutcome::Blocked) if view.lanes().iter().any(|lane| lane.state == LaneState::Stopped) => {
            Some(NextStep {
                reason: "Lanes were stopped; no work is lost. Resume the run, or roll it back:".to_owned(),
                commands: vec![view.resume(commands), commands.rollback(None)],
            })
        }
        Some(RunOutcome::Failed | RunOutcome::Blocked) => view.run.failed_final_gate().map(|exit| NextStep {
            reason: format!("The final gate failed on {}: {}", view.run.base_branch, clean(&exit.command)),
            commands: vec![view.resume(commands), commands.rollback(None)],
        }),
        None => nothing_else.then(|| NextStep {
            reason: "The run was interrupted; no work is lost. Resume it, or roll it back:".to_owned(),
            commands: vec![view.resume(commands), commands.rollback(None)],
        }),
    }
}

fn where_the_work_is(view: &RunView) -> String {
    let count = counted(view.done(), "lane");
    let proposed = |lane: &LaneView| Some(format!("{} {}", lane.id, clean(&lane.pull_request.as_ref()?.url)));
    let proposed: Vec<String> = view.lanes().iter().filter_map(proposed).collect();
    if !proposed.is_empty() {
        return format!("{count} done. For you to merge:\n  {}", proposed.join("\n  "));
    }
    if !view.run.merges() {
        return format!("{count} done; each lane's work is on its own branch, nothing was merged.");
    }
    let place = view.run.integration.as_ref().map(|commit| format!(" at {}", commit.short())).unwrap_or_default();
    format!("{count} merged into {}{place}.", view.run.base_branch)
}

fn lanes_that(view: &RunView, state: LaneState) -> Vec<&LaneView> {
    view.lanes().iter().filter(|lane| lane.state == state).collect()
}

/// How many lanes are called by name where many may be meant.
const NAMED: usize = 3;

fn names(lanes: &[&LaneView]) -> String {
    let mut names: Vec<String> = lanes.iter().take(NAMED).map(|lane| lane.id.to_string()).collect();
    if lanes.len() > NAMED {
        names.push(format!("{} more", lanes.len() - NAMED));
    }
    names.join(", ")
}
