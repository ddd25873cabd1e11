//! The prompts of a lane's agents.

use std::fmt::Write;

use lanewright_model::CommandLine;
use lanewright_model::plan::OwnershipRule;

use super::context::Context;
use super::lane_text::Label;
use super::phase_wide::SingleWriter;
use super::references::gates_named;
use super::tasks::{Kind, RawTask};
use crate::faults::quoted;
use crate::markdown::inline::{dedent, is_nothing};
use crate::markdown::{as_code, paragraph, section};

/// What the prompt of every agent of a lane contains besides its task.
pub(super) fn lane_brief(context: &Context<'_>, lane: usize, rule: OwnershipRule, tests: &[CommandLine]) -> String {
    let mut prompt = full_brief(context, lane, tests);
    if rule == OwnershipRule::Nothing {
        prompt.push_str("\n\nThis lane owns no file: what is to be recorded goes into the result, not into a file.");
    }
    let limit = context.brief_limit();
    if prompt.len() > limit {
        let text = &context.lanes[lane];
        prompt.truncate(prompt.floor_char_boundary(limit));
        prompt.push_str("\n\nThe plan has more text than fits here: read it in the plan's file.");
        let message = format!("the text of lane {} is too long for the prompts of all its agents", quoted(&text.id));
        context.faults.warning(text.at.clone(), message, "shorten the text beside its tasks");
    }
    prompt
}

fn full_brief(context: &Context<'_>, lane: usize, tests: &[CommandLine]) -> String {
    let (text, phase) = (&context.lanes[lane], &context.phase);
    let mut prompt = format!("# Lane {}", text.id);
    if !text.name.is_empty() {
        let _ = write!(prompt, ": {}", text.name);
    }
    let title = context.header.title.as_ref().map(|title| format!(" ({})", title.value)).unwrap_or_default();
    let _ = write!(prompt, "\n\nIt is a part of {}{title}; other lanes do the rest.", context.header.phase.value);
    let mut add = |title: &str, body: &str| section(&mut prompt, title, body);
    add("Context of the phase", &phase.introduction);
    add("Scope", &context.said(text, Label::Scope));
    add("Owned files", &context.said(text, Label::Owned));
    add("Interfaces provided", &context.said(text, Label::Provided));
    add("Interfaces consumed", &context.said(text, Label::Consumed));
    add("Interface gates of the lane", &gates(context, lane));
    if !tests.is_empty() {
        let passing = format!("The lane is merged once these succeed:\n\n{}", as_code(tests));
        add("Commands that the lane must pass", &passing);
    }
    add("Acceptance criteria of the lane", &context.said(text, Label::Acceptance));
    let notes = text.notes.iter().chain(&text.tasks.notes).map(|range| dedent(context.text(range.clone())));
    add("Notes", &notes.collect::<Vec<_>>().join("\n\n"));
    add("Hints", &hints(context, lane));
    add("Files that one lane alone writes", &single_writers(context, lane));
    add("Execution notes", &execution_notes(context, lane));
    let specified = phase.specifications.iter().filter(|(owner, _)| *owner == lane).map(|(_, text)| text.as_str());
    add("Specification of its files", &specified.collect::<Vec<_>>().join("\n\n"));
    if (0..context.lanes.len()).all(|other| !context.dependencies.waits(other, lane)) {
        let limit = context.brief_limit();
        let fits = |text: &&String| text.len() < limit;
        add("Acceptance criteria of the phase", Some(&phase.acceptance).filter(fits).map_or("", |text| text));
        add("Verification of the phase", Some(&phase.verification).filter(fits).map_or("", |text| text));
    }
    prompt
}

/// What is agreed in the gates that the lane provides, needs or consumes.
fn gates(context: &Context<'_>, lane: usize) -> String {
    let fields = [Label::Provided, Label::Consumed, Label::DependsOn];
    let mut named = std::collections::BTreeSet::new();
    for range in fields.into_iter().flat_map(|label| context.lanes[lane].field(label)) {
        named.extend(gates_named(context.text(range)).iter().filter_map(|(name, _)| context.gates.find(name)));
    }
    let gates = named.into_iter().map(|gate| &context.gates.list[gate]).filter(|gate| !gate.text.is_empty());
    gates.map(|gate| format!("- {}: {}", gate.id.value, gate.text)).collect::<Vec<_>>().join("\n")
}

/// The hints of the index and of the dispatch hints.
fn hints(context: &Context<'_>, lane: usize) -> String {
    let keys = context.lanes[lane].field(Label::Hint).map(|range| context.text(range)).filter(|hint| !is_nothing(hint));
    let own = context.phase.hints.iter().filter(|(name, _)| context.names.find(name) == Some(lane));
    keys.chain(own.map(|(_, hint)| hint.as_str())).collect::<Vec<_>>().join("\n")
}

/// The execution notes that matter to the lane, as many as fit.
fn execution_notes(context: &Context<'_>, lane: usize) -> String {
    let mut left = context.brief_limit();
    let fits = |note: &&str| {
        left = left.saturating_sub(note.len());
        left > 0
    };
    context.phase.notes_for(lane).take_while(fits).collect::<Vec<_>>().join("\n")
}

fn single_writers(context: &Context<'_>, lane: usize) -> String {
    let line = |writer: &SingleWriter| {
        let owner = &context.lanes[writer.lane].id;
        let who = match writer.lane == lane {
            true => "this lane alone".to_owned(),
            false => format!("{owner} alone; leave it to that lane"),
        };
        format!("- `{}`: {who}", writer.path)
    };
    context.phase.single_writers.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The prompt for a task, without its files, interfaces and criteria, which have sections of their own.
pub(super) fn task_prompt(lane: &str, id: &str, task: &RawTask, brief: &str) -> String {
    let kind = if task.kind_word.is_empty() { String::new() } else { format!(" ({})", task.kind_word) };
    let mut prompt = format!("Task {id}{kind} of lane {lane}.");
    paragraph(&mut prompt, &task.text);
    let gated = !task.commands.gates.is_empty();
    let advice = match task.kind {
        Some(Kind::Test) => {
            "Tests come before the implementation: what this task writes may fail until the implementation is there."
        }
        Some(Kind::Implement) if gated => "The test command must pass when this task is done.",
        Some(Kind::Verify) if gated => "Run it and see that it passes.",
        _ => "",
    };
    paragraph(&mut prompt, advice);
    paragraph(&mut prompt, brief);
    prompt
}
