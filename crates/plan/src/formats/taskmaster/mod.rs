//! The task list of Task Master: a lane for each task, in the order of their dependencies.
//!
//! `lists` chooses the list of a tag, `task` reads its tasks, `prompt` writes what agents read, and `tick` records what is
//! done.

mod lists;
mod prompt;
mod task;
mod tick;

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::native::json;
use super::shared::items::{Item, Unknown, add_lanes};
use crate::Source;
use crate::draft::{Overlaps, PlanDraft};
use crate::faults::Faults;
use crate::ids::as_id;
use crate::source_text::At;
use crate::tree::refuse_nul;
use lanewright_model::text::headline;
use prompt::Writer;
use task::Task;
pub(crate) use tick::{ticked, unticked};

/// The most subtasks of all tasks together.
const MAX_SUBTASKS: usize = 10_000;

/// A list of tasks as the program writes it, of which other lists called `tasks` have something else.
static LIST: LazyLock<Regex> =
    pattern!(r#""tasks"\s*:\s*\[\s*\{[^{}]*?"(?:title|dependencies|testStrategy|subtasks)"\s*:"#);

/// Whether the file is one of this format's, by its path and its text.
pub(super) fn is_plan(path: &str, text: &str) -> bool {
    let is_json = path.ends_with(".json") && text.trim_start_matches('\u{feff}').trim_start().starts_with('{');
    let named = path.replace('\\', "/").contains(".taskmaster/tasks/");
    is_json && (named || LIST.is_match(text))
}

pub(super) fn plan(source: &Source<'_>, faults: &Faults<'_>) -> Option<PlanDraft> {
    let files = faults.source.files();
    let file = files[0];
    if let [_, second, ..] = files {
        faults.error_with(second.span(0..0), "a task list of Task Master is one file", "name one file");
        return None;
    }
    let root = json::parse(file.text, faults)?;
    refuse_nul(&root, faults);
    let list = lists::chosen(&root, source, faults)?;
    let tasks: Vec<Task<'_>> = list.tasks.iter().filter_map(|node| Task::read(node, faults)).collect();
    if let Some(task) = too_many(&tasks) {
        let message = format!("the tasks of this list have more than {MAX_SUBTASKS} subtasks");
        faults.error_with(task.id.span, message, "split the list into several tags");
        return None;
    }
    let phase = as_id(&list.name).unwrap_or_else(|| "taskmaster".to_owned());
    let mut draft = PlanDraft {
        phase: Some(At::new(phase, list.span)),
        title: Some(At::new(headline(&list.title, 100), list.span)),
        overlaps: Overlaps::AUTO,
        ..PlanDraft::default()
    };
    let known: HashMap<&str, &Task<'_>> = tasks.iter().map(|task| (task.key.as_str(), task)).collect();
    let items: Vec<Item> = tasks.iter().map(|task| task.item(&known, source, faults)).collect();
    let writer = Writer::new(source, &tasks, &known, faults);
    let help = "remove it from `dependencies`, or run `task-master fix-dependencies`";
    add_lanes(&items, Unknown::Refused(help).unless_in_order(source), &mut draft, faults, |at| writer.lane(at));
    Some(draft)
}

fn too_many<'t, 'n>(tasks: &'t [Task<'n>]) -> Option<&'t Task<'n>> {
    let mut count = 0;
    tasks.iter().find(|task| {
        count += task.subtasks.len();
        count > MAX_SUBTASKS
    })
}
