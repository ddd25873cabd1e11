//! The tasks of a lane as drafts: in their order, with ids, files and gates.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use super::context::Context;
use super::edges::interface_items;
use super::label::Label;
use super::making::Making;
use super::owned::Files;
use super::paths::{Named, in_cell};
use super::prompt::task_prompt;
use super::sequence::sequence;
use super::tasks::{Kind, RawTask};
use crate::model::CommandLine;
use crate::model::text::headline;
use crate::plan::draft::{PromptDraft, TaskDraft};
use crate::plan::faults::quoted;
use crate::plan::ids::as_id;
use crate::plan::markdown::inline::one_line;
use crate::plan::source_text::At;

/// The drafts of all tasks, in the order in which they are done.
pub(super) fn task_drafts(
    making: &Making<'_>,
    lane: usize,
    list: &[RawTask],
    files: &Files,
    story: &str,
) -> Vec<TaskDraft> {
    let context = making.context;
    let (order, circular) = sequence(context.document.text, list);
    if circular {
        let at = list.first().map_or(0, |task| task.at.start);
        let message = format!("tasks of lane {} wait for each other", quoted(&context.lanes[lane].id));
        context.warning(at..at, message, "remove one of their dependencies; they are done in the order of the text");
    }
    let provided = provided(making, lane);
    let ids = task_ids(context, list);
    let draft = |at: usize| {
        let task = &list[at];
        let (id, id_at) = &ids[at];
        let span = context.span(task.at.clone());
        let gates = task.kind != Some(Kind::Test);
        let acceptance = task.acceptance.iter().map(|(text, at)| context.at(text.clone(), at.clone()));
        TaskDraft {
            span,
            id: Some(context.at(id.clone(), id_at.clone())),
            name: Some(name(task)).filter(|name| !name.is_empty()).map(|name| At::new(name, span)),
            prompt: PromptDraft::here(task_prompt(&context.lanes[lane].id, id, task, story), span),
            verify: task.commands.gates.iter().filter(|_| gates).map(|line| CommandLine::Shell(line.clone())).collect(),
            files: task_files(context, task, files),
            interfaces: provided.clone(),
            acceptance_criteria: acceptance.collect(),
            allow_empty: task.kind == Some(Kind::Verify),
            ..TaskDraft::default()
        }
    };
    // What the lane's tests run anyway needs no agent, where another task has one.
    let needs_agent = |at: &usize| !list[*at].runs_gates_only();
    let all = !list.iter().any(|task| !task.runs_gates_only());
    order.into_iter().filter(|at| all || needs_agent(at)).map(draft).collect()
}

/// The interfaces that the lane provides, as long as they are told to each of its tasks.
fn provided(making: &Making<'_>, lane: usize) -> Vec<At<String>> {
    let context = making.context;
    let items = context.lanes[lane].field(Label::Provided).flat_map(|range| {
        let items = interface_items(context.text(range.clone()));
        items.into_iter().map(move |item| context.at(item, range.clone()))
    });
    let mut left = making.story_limit;
    let fits = |item: &At<String>| {
        let fits = item.value.len() <= left;
        left = left.saturating_sub(item.value.len());
        fits
    };
    items.take_while(fits).collect()
}

fn name(task: &RawTask) -> String {
    let first = task.title.split("\n\n").next().unwrap_or("");
    // What a later prompt tells of finished tasks is not to be taken for the task itself.
    let plain = one_line(first).replace(['`', '*'], "");
    let said = headline(&plain, 80);
    if task.kind_word.is_empty() { said } else { format!("{}: {said}", task.kind_word) }
}

/// Ids that are valid and unique, as they are written where that can be.
fn task_ids(context: &Context<'_>, list: &[RawTask]) -> Vec<(String, Range<usize>)> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut id = |task: &RawTask| {
        let at = task.id.as_ref().map_or(task.at.start..task.at.start, |(_, at)| at.clone());
        let written = task.id.as_ref().and_then(|(id, _)| as_id(id));
        if let Some(id) = written.as_ref().filter(|id| taken.contains(*id)) {
            context.warning(
                at.clone(),
                format!("there is a task {} already", quoted(id)),
                "give each task an id of its own",
            );
        }
        if let Some(id) = written.clone().filter(|id| taken.insert(id.clone())) {
            return (id, at);
        }
        let stem = written.or_else(|| as_id(&task.kind_word.to_lowercase())).unwrap_or_else(|| "task".to_owned());
        let stem: String = stem.chars().take(48).collect();
        loop {
            let number = numbers.entry(stem.clone()).or_default();
            *number += 1;
            let id = format!("{stem}-{number}");
            if taken.insert(id.clone()) {
                return (id, at);
            }
        }
    };
    list.iter().map(&mut id).collect()
}

/// The files that a task is about: those that its row names, else those that its text names, else those that the lane
/// declares. The lane is allowed to change all of them.
fn task_files(context: &Context<'_>, task: &RawTask, files: &Files) -> Vec<At<String>> {
    let of_row: Vec<Named> = task.files.iter().chain(&task.tests).cloned().collect();
    let of_text = || in_cell(context.text(task.at.clone()), task.at.start, true);
    let named = if of_row.is_empty() { of_text() } else { of_row };
    let mut own = own_files(context, &named, files);
    if own.is_empty() && task.kind != Some(Kind::Verify) {
        let is_test =
            |named: &&Named| ["test", "spec", "fixture"].iter().any(|word| named.path.to_lowercase().contains(word));
        let tests: Vec<Named> = files.declared.iter().filter(is_test).cloned().collect();
        let tests_only = task.kind == Some(Kind::Test) && !tests.is_empty();
        own = own_files(context, if tests_only { &tests } else { &files.declared }, files);
    }
    own
}

/// Those of `named` that the lane owns, each once.
fn own_files(context: &Context<'_>, named: &[Named], files: &Files) -> Vec<At<String>> {
    let mut seen = HashSet::new();
    let own = named.iter().filter(|named| files.own(&named.path) && seen.insert(named.path.as_str()));
    own.map(|named| context.at(named.path.clone(), named.at.clone())).collect()
}
