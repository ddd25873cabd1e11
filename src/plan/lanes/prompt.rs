//! What the agents of a lane are told.

use std::fmt::Write;
use std::ops::Range;

use super::label::Label;
use super::making::Making;
use super::phase_wide::{SingleWriter, notes_for};
use super::references::gates_named;
use super::tasks::{Kind, RawTask};
use crate::model::CommandLine;
use crate::model::plan::OwnershipRule;
use crate::plan::faults::quoted;
use crate::plan::markdown::inline::{dedent, is_nothing};
use crate::plan::markdown::{as_code, section};

/// What every agent of a lane is told beside its task.
pub(super) fn lane_story(
    making: &Making<'_>,
    lane: usize,
    task_notes: &[Range<usize>],
    rule: OwnershipRule,
    tests: &[CommandLine],
) -> String {
    let mut told = whole_story(making, lane, task_notes, tests);
    if rule == OwnershipRule::Nothing {
        told.push_str("\n\nThis lane owns no file: what is to be recorded goes into the result, not into a file.");
    }
    if told.len() > making.story_limit {
        let text = &making.context.lanes[lane];
        told.truncate(told.floor_char_boundary(making.story_limit));
        told.push_str("\n\nThe plan says more than can be told here: read it in the plan's file.");
        let message = format!("lane {} says more than every one of its agents can be told", quoted(&text.id));
        making.context.warning(text.at.clone(), message, "shorten what stands beside its tasks");
    }
    told
}

fn whole_story(making: &Making<'_>, lane: usize, task_notes: &[Range<usize>], tests: &[CommandLine]) -> String {
    let context = making.context;
    let text = &context.lanes[lane];
    let mut told = format!("# Lane {}", text.id);
    if !text.name.is_empty() {
        let _ = write!(told, ": {}", text.name);
    }
    let _ = write!(told, "\n\nIt is a part of {}; other lanes do the rest.", making.phase);
    let mut section = |title: &str, body: Option<String>| section(&mut told, title, &body.unwrap_or_default());
    section("Context of the phase", making.introduction.clone());
    section("Scope", context.said(lane, Label::Scope));
    section("Owned files", context.said(lane, Label::Owned));
    section("Interfaces provided", context.said(lane, Label::Provided));
    section("Interfaces consumed", context.said(lane, Label::Consumed));
    section("Interface gates of the lane", Some(gates(making, lane)));
    let passing = || format!("The lane is merged once these succeed:\n\n{}", as_code(tests));
    section("Commands that the lane must pass", (!tests.is_empty()).then(passing));
    section("Acceptance criteria of the lane", context.said(lane, Label::Acceptance));
    let notes = text.notes.iter().chain(task_notes).map(|range| dedent(context.text(range.clone())));
    section("Notes", Some(notes.collect::<Vec<_>>().join("\n\n")));
    section("Hints", Some(hints(making, lane)));
    section("Files that one lane alone writes", single_writers(making, lane));
    section("Execution notes", Some(execution_notes(making, lane)));
    let specified = making.specifications.iter().filter(|(owner, _)| *owner == lane).map(|(_, text)| text.as_str());
    section("Specification of its files", Some(specified.collect::<Vec<_>>().join("\n\n")));
    let is_last = (0..context.lanes.len()).all(|other| !making.before.waits(other, lane));
    let acceptance = making.acceptance.as_ref().filter(|text| is_last && text.len() < making.story_limit);
    section("Acceptance criteria of the phase", acceptance.cloned());
    section(
        "Verification of the phase",
        making.verification.clone().filter(|text| is_last && text.len() < making.story_limit),
    );
    told
}

/// What is agreed in the gates that the lane provides, needs or consumes.
fn gates(making: &Making<'_>, lane: usize) -> String {
    let context = making.context;
    let text = &context.lanes[lane];
    let fields = [Label::Provided, Label::Consumed].into_iter().flat_map(|label| text.field(label));
    let mut named = std::collections::BTreeSet::new();
    for range in fields.chain(text.field(Label::DependsOn)) {
        named.extend(gates_named(context.text(range)).iter().filter_map(|(name, _)| context.gates.find(name)));
    }
    let told = |gate: usize| {
        let gate = &context.gates.list[gate];
        Some(format!("- {}: {}", gate.id, gate.text)).filter(|_| !gate.text.is_empty())
    };
    named.into_iter().filter_map(told).collect::<Vec<_>>().join("\n")
}

/// The hints of the index and of the dispatch hints.
fn hints(making: &Making<'_>, lane: usize) -> String {
    let context = making.context;
    let own = |(name, hint): &(String, String)| (context.names.find(name) == Some(lane)).then(|| hint.clone());
    let keys = context.lanes[lane].field(Label::Hint).map(|range| context.text(range).to_owned());
    let keys = keys.filter(|hint| !is_nothing(hint));
    keys.chain(making.hints.iter().filter_map(own)).collect::<Vec<_>>().join("\n")
}

/// The execution notes that matter to the lane, as many as can be told.
fn execution_notes(making: &Making<'_>, lane: usize) -> String {
    let mut left = making.story_limit;
    let fits = |note: &&str| {
        left = left.saturating_sub(note.len());
        left > 0
    };
    notes_for(lane, &making.notes).take_while(fits).collect::<Vec<_>>().join("\n")
}

/// The single-writer files, and whose each is.
fn single_writers(making: &Making<'_>, lane: usize) -> Option<String> {
    let context = making.context;
    let line = |writer: &SingleWriter| {
        let owner = &context.lanes[writer.lane].id;
        let who = if writer.lane == lane {
            "this lane alone".to_owned()
        } else {
            format!("{owner} alone; leave it to that lane")
        };
        format!("- `{}`: {who}", writer.path)
    };
    Some(making.single_writers.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// What an agent is told for a task. What stands in the task's files, interfaces and criteria is told elsewhere.
pub(super) fn task_prompt(lane: &str, id: &str, task: &RawTask, story: &str) -> String {
    let kind = if task.kind_word.is_empty() { String::new() } else { format!(" ({})", task.kind_word) };
    let mut told = format!("Task {id}{kind} of lane {lane}.");
    if !task.text.is_empty() {
        let _ = write!(told, "\n\n{}", task.text);
    }
    let advice = match task.kind {
        Some(Kind::Test) => Some(
            "Tests come before the implementation: what this task writes may fail until the implementation is there.",
        ),
        Some(Kind::Implement) if !task.commands.gates.is_empty() => {
            Some("The test command must pass when this task is done.")
        }
        Some(Kind::Verify) if !task.commands.gates.is_empty() => Some("Run it and see that it passes."),
        _ => None,
    };
    if let Some(advice) = advice {
        let _ = write!(told, "\n\n{advice}");
    }
    let _ = write!(told, "\n\n{story}");
    told
}
