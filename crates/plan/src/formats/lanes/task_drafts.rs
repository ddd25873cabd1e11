//! The tasks of a lane as drafts: in their order, with ids, files and gates.

use std::collections::{BTreeMap, HashSet};

use lanewright_model::CommandLine;
use lanewright_model::text::headline;

use super::context::Context;
use super::lane_text::Label;
use super::owned::Files;
use super::paths::in_cell;
use super::prompt::task_prompt;
use super::sequence::sequence;
use super::tasks::{Kind, RawTask};
use crate::draft::{PromptDraft, TaskDraft};
use crate::faults::{Faults, quoted};
use crate::ids::as_id;
use crate::markdown::inline::{is_nothing, one_line, parts, without_code};
use crate::source_text::{At, Span};

/// The drafts of all tasks, in the order in which they are done.
pub(super) fn task_drafts(context: &Context<'_>, lane: usize, files: &Files, brief: &str) -> Vec<TaskDraft> {
    let text = &context.lanes[lane];
    let list = &text.tasks.list;
    let (order, circular) = sequence(context.document.text, list);
    if circular {
        let at = list.first().map_or(0, |task| task.at.start);
        let message = format!("tasks of lane {} wait for each other", quoted(&text.id));
        let help = "remove one of their dependencies; they are done in the order of the text";
        context.faults.warning(at..at, message, help);
    }
    let provided = provided(context, lane);
    let ids = task_ids(list, context.faults);
    let draft = |at: usize| {
        let (task, id) = (&list[at], &ids[at]);
        let span = Span::from(task.at.clone());
        let verify = task.commands.gates.iter().filter(|_| task.kind != Some(Kind::Test));
        TaskDraft {
            span,
            id: Some(id.clone()),
            name: Some(name(task)).filter(|name| !name.is_empty()).map(|name| At::new(name, span)),
            prompt: PromptDraft::here(task_prompt(&text.id, &id.value, task, brief), span),
            verify: verify.map(|line| CommandLine::Shell(line.clone())).collect(),
            files: task_files(context, task, files),
            interfaces: provided.clone(),
            acceptance_criteria: task.acceptance.iter().cloned().collect(),
            allow_empty: task.kind == Some(Kind::Verify),
            ..TaskDraft::default()
        }
    };
    // What the lane's tests run anyway needs no agent, where another task has one.
    let all = list.iter().all(RawTask::runs_gates_only);
    order.into_iter().filter(|at| all || !list[*at].runs_gates_only()).map(draft).collect()
}

/// The interfaces that the lane provides, as long as the prompt of each of its tasks contains them.
fn provided(context: &Context<'_>, lane: usize) -> Vec<At<String>> {
    let items = context.lanes[lane].field(Label::Provided).flat_map(|range| {
        let items = interface_items(context.text(range.clone()));
        items.into_iter().map(move |item| At::new(item, range.clone()))
    });
    let mut left = context.brief_limit();
    let fits = |item: &At<String>| {
        let fits = item.value.len() <= left;
        left = left.saturating_sub(item.value.len());
        fits
    };
    items.take_while(fits).collect()
}

fn interface_items(value: &str) -> Vec<String> {
    if is_nothing(value) {
        return Vec::new();
    }
    let bulleted = value.lines().any(|line| line.trim_start().starts_with("- "));
    let separator = match without_code(value).contains(';') {
        _ if bulleted => '\n',
        true => ';',
        false => ',',
    };
    let items = parts(value, &[separator]).into_iter().map(|range| one_line(&value[range]));
    let items = items.map(|item| item.trim_start_matches("- ").trim_end_matches('.').to_owned());
    items.filter(|item| !is_nothing(item)).collect()
}

fn name(task: &RawTask) -> String {
    let first = task.title.split("\n\n").next().unwrap_or("");
    // A later prompt repeats the names of finished tasks, which are not to be taken for commands.
    let said = headline(&one_line(first).replace(['`', '*'], ""), 80);
    if task.kind_word.is_empty() { said } else { format!("{}: {said}", task.kind_word) }
}

/// Ids that are valid and unique, as they are written where that can be.
fn task_ids(list: &[RawTask], faults: &Faults<'_>) -> Vec<At<String>> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let id = |task: &RawTask| {
        let span = task.id.as_ref().map_or_else(|| Span::from(task.at.start..task.at.start), |id| id.span);
        let written = task.id.as_ref().and_then(|id| as_id(&id.value));
        if let Some(id) = &written {
            if taken.insert(id.clone()) {
                return At::new(id.clone(), span);
            }
            faults.warning(span, format!("there is a task {} already", quoted(id)), "give each task an id of its own");
        }
        let stem = written.or_else(|| as_id(&task.kind_word.to_lowercase())).unwrap_or_else(|| "task".to_owned());
        let stem: String = stem.chars().take(48).collect();
        loop {
            let number = numbers.entry(stem.clone()).or_default();
            *number += 1;
            let id = format!("{stem}-{number}");
            if taken.insert(id.clone()) {
                return At::new(id, span);
            }
        }
    };
    list.iter().map(id).collect()
}

/// The files that a task is about: those that its row names, else those that its text names, else those that the lane
/// declares. The lane is allowed to change all of them.
fn task_files(context: &Context<'_>, task: &RawTask, files: &Files) -> Vec<At<String>> {
    let mut named: Vec<At<String>> = task.files.iter().chain(&task.tests).cloned().collect();
    if named.is_empty() {
        named = in_cell(context.text(task.at.clone()), task.at.start, true);
    }
    let own = own_files(&named, files);
    if !own.is_empty() || task.kind == Some(Kind::Verify) {
        return own;
    }
    let is_test = |path: &At<String>| {
        let path = path.value.to_lowercase();
        ["test", "spec", "fixture"].iter().any(|word| path.contains(word))
    };
    let tests_only = task.kind == Some(Kind::Test) && files.declared.iter().any(is_test);
    own_files(files.declared.iter().filter(|path| !tests_only || is_test(path)), files)
}

/// Those of `paths` that the lane owns, each once.
fn own_files<'p>(paths: impl IntoIterator<Item = &'p At<String>>, files: &Files) -> Vec<At<String>> {
    let mut seen = HashSet::new();
    paths.into_iter().filter(|path| files.own(&path.value) && seen.insert(&path.value)).cloned().collect()
}
