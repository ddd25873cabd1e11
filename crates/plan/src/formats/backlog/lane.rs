//! The lane of a task: what its agent reads, its gates, and the files that it names.

use lanewright_model::CommandLine;

use super::task_file::TaskFile;
use crate::draft::{LaneDraft, PromptDraft, TaskDraft};
use crate::faults::Faults;
use crate::formats::shared::commands_in_text::{commands_in_text, only_checks};
use crate::formats::shared::paths_in_text::globs;
use crate::ids::as_id;
use crate::markdown::{clean, paragraph, section};
use crate::source_text::At;

/// The lane without its id, name and edges. One whose task has subtasks may find everything done.
pub(super) fn lane(task: &TaskFile, has_subtasks: bool, faults: &Faults<'_>) -> LaneDraft {
    let span = task.id.span;
    let listed: String = task.criteria.iter().map(|text| format!("- {text}\n")).collect();
    let run = commands_in_text(&listed);
    run.commands.warn(span, faults);
    let gates: Vec<CommandLine> = run.commands.gates.into_iter().map(CommandLine::Shell).collect();
    let draft = TaskDraft {
        span,
        id: as_id(&task.id.value).map(|id| At::new(id, span)),
        name: Some(At::new(task.title.clone(), span)).filter(|name| !name.value.is_empty()),
        prompt: PromptDraft::here(prompt(task, has_subtasks), span),
        acceptance_criteria: task.criteria.iter().map(|text| At::new(text.clone(), span)).collect(),
        allow_empty: has_subtasks || only_checks(&task.title),
        ..TaskDraft::default()
    };
    LaneDraft {
        owns: Some(globs(task.paths.iter(), |_| span)),
        tests: Some(gates).filter(|gates| !gates.is_empty()),
        criteria: Some(task.criteria.join("\n")).filter(|text| !text.is_empty()),
        tasks: Some(vec![draft]),
        ..LaneDraft::default()
    }
}

fn prompt(task: &TaskFile, has_subtasks: bool) -> String {
    let mut text = format!("# {}: {}", task.id.value, task.title);
    paragraph(&mut text, &clean(&task.body));
    let list = |items: &[String]| items.iter().map(|item| format!("- {item}\n")).collect::<String>();
    section(&mut text, "What holds already", &clean(&list(&task.met)));
    section(&mut text, "Documents", &clean(&list(&task.documents)));
    if has_subtasks {
        paragraph(&mut text, "Its subtasks are done. Do what is missing of this task, and check the whole.");
    }
    let rule =
        "Do not change the file of this task: Lanewright sets its status and ticks its boxes when the work is merged.";
    paragraph(&mut text, rule);
    text
}
