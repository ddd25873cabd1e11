//! `hook post-tool-use`: passes tool calls on to the Lanewright that runs the agent. In a lane without a live Lanewright, it
//! counts them and takes a snapshot of the worktree from time to time (SPEC §5).

use std::path::{Path, PathBuf};

use lanewright_files::lock::exclusively;
use lanewright_files::{atomic, regular_file};
use lanewright_git::{EnclosingWorktree, Holder};
use lanewright_model::snapshot_rules::{Progress, SnapshotTrigger, ToolCall};
use lanewright_model::text::change_texts;
use lanewright_model::{LaneId, RunId};
use lanewright_plan::settings::{Layer, Settings};
use lanewright_programs::process::{self, Output};
use lanewright_store::lock::is_held;
use lanewright_store::{LockScope, StateDirectory, tool_calls};
use serde_json::json;

use super::input::Input;
use super::unfinished::surrounding;
use crate::cli::{Context, ExitStatus, Result, now};

/// The longest text of a tool's input that is passed on, in characters: enough to see what is risky.
const LONGEST_TEXT: usize = 4000;

/// Tells the Lanewright that runs this agent of a call.
pub(super) fn pass_on(context: &Context, input: &Input) -> Result<()> {
    let Some(path) = context.environment.get("LANEWRIGHT_TOOL_CALLS_FILE").filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let patterns = surrounding(context, input)
        .and_then(|around| settings(context, &around).ok())
        .map_or_else(Vec::new, |settings| settings.redacted_patterns().to_vec());
    let mut call = json!({"tool": input.tool_name, "input": input.tool_input, "at": now()});
    change_texts(&mut call["input"], &mut shorten);
    process::redactor([], &patterns).clean_json(&mut call);
    Ok(tool_calls::append(Path::new(path), &call)?)
}

/// What the user told this agent since its last tool call.
pub(super) fn messages(context: &Context) -> Result<Option<String>> {
    let path = |name: &str| context.environment.get(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let (Some(told), Some(calls)) = (path("LANEWRIGHT_MESSAGES_FILE"), path("LANEWRIGHT_TOOL_CALLS_FILE")) else {
        return Ok(None);
    };
    let Some(text) = regular_file::read_left(&told) else { return Ok(None) };
    let lines: Vec<String> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if lines.is_empty() {
        return Ok(None);
    }
    let counter = calls.with_file_name("messages_told");
    // Programs that call several tools at once run their hooks at once.
    let new = exclusively(&counter.with_extension("lock"), |_| -> Result<Vec<String>> {
        let known = regular_file::read_left(&counter).and_then(|count| count.trim().parse().ok()).unwrap_or(0);
        let new = lines.get(known..).unwrap_or_default().to_vec();
        if !new.is_empty() {
            atomic::write(&counter, lines.len().to_string().as_bytes())?;
        }
        Ok(new)
    })??;
    Ok((!new.is_empty()).then(|| format!("The user says: {}", new.join("\n"))))
}

fn shorten(text: &mut String) {
    text.truncate(text.char_indices().nth(LONGEST_TEXT).map_or(text.len(), |(end, _)| end));
}

/// Counts a call by hand, and has the worktree kept where it is time to.
pub(crate) fn count(context: &Context, input: &Input) -> Result<()> {
    let Some(around) = EnclosingWorktree::of(&input.cwd) else { return Ok(()) };
    let Some(holder) = around.holder() else { return Ok(()) };
    let state = StateDirectory::new(&around.main);
    let Some(lane) = &holder.lane else { return Ok(()) };
    if !rests(&state, &holder.run, lane)? {
        return Ok(());
    }
    let counted = state.run(&holder.run).count_tool_call(lane, holder.agent.as_ref())?;
    let settings = settings(context, &around)?;
    if let Some(trigger) = snapshot_trigger(&settings, input, counted)? {
        keep(&around, &holder, input, trigger)?;
    }
    Ok(())
}

/// Whether the run is unfinished and no process works on its lane. A command that holds the run's lock alone, as the one
/// that takes a snapshot does, has no lane at work.
fn rests(state: &StateDirectory, run: &RunId, lane: &LaneId) -> Result<bool> {
    let unfinished = state.unfinished_runs().into_iter().find(|summary| summary.started.run_id == *run);
    let Some(phase) = unfinished.map(|summary| summary.started.phase) else { return Ok(false) };
    if !is_held(&state.run(run).lock()) {
        return Ok(true);
    }
    let [whole, own] = [LockScope::Phase(&phase), LockScope::Lane(&phase, lane)].map(|scope| state.lock(scope));
    Ok(!is_held(&whole?) && !is_held(&own?))
}

fn settings(context: &Context, around: &EnclosingWorktree) -> Result<Settings> {
    Ok(context.layers_in(around.main.clone(), Layer::default())?.resolve(None))
}

/// Why the worktree should be saved after the call that is the `counted`-th, by the rules that hold for agents.
fn snapshot_trigger(settings: &Settings, input: &Input, counted: u64) -> Result<Option<SnapshotTrigger>> {
    let rules = settings.snapshot_rules().map_err(|error| ExitStatus::Usage.error(error.to_string()))?;
    let call = ToolCall { tool: input.tool_name.clone(), input: input.tool_input.clone() };
    let progress = Progress { kept_at: now(), counted: counted.saturating_sub(1), calls: std::slice::from_ref(&call) };
    Ok(rules.trigger(&progress, now()))
}

/// Starts a process that saves the worktree: a snapshot takes longer than a hook may.
fn keep(around: &EnclosingWorktree, holder: &Holder, input: &Input, trigger: SnapshotTrigger) -> Result<()> {
    let why = match trigger {
        SnapshotTrigger::Risky => format!("after a risky call of {}", input.tool_name),
        SnapshotTrigger::ToolCalls | SnapshotTrigger::Interval => "after many tool calls".to_owned(),
    };
    let lane = holder.lane.as_ref().map(ToString::to_string);
    let agent = holder.agent.as_ref().map(ToString::to_string);
    let words = ["checkpoints", "create", holder.run.as_str()].map(str::to_owned).into_iter();
    let message = format!("--message=by hand: {why}");
    let arguments: Vec<String> = words.chain([message]).chain(lane).chain(agent).collect();
    let session = [("LANEWRIGHT_SESSION_ID", input.session_id.as_str())];
    let started = process::current_program()
        .and_then(|program| process::start_detached(&program, &arguments, &around.main, Output::Nowhere, &session));
    Ok(started.map(drop)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_long_texts_are_shortened() {
        let long = "x".repeat(LONGEST_TEXT + 1);
        let mut short = json!({"a": [long, 1], "b": "kept"});
        change_texts(&mut short, &mut shorten);
        assert_eq!(short["a"][0].as_str().map(str::len), Some(LONGEST_TEXT));
        assert_eq!((&short["a"][1], &short["b"]), (&json!(1), &json!("kept")));
    }
}
