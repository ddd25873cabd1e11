//! The lane of a task: what its agent reads, its gates, and the files that it names.

use std::collections::HashMap;

use lanewright_model::CommandLine;

use super::task::{Task, key_of};
use crate::Source;
use crate::draft::{LaneDraft, PromptDraft, TaskDraft};
use crate::faults::Faults;
use crate::formats::shared::commands_in_text::{commands_in_text, only_checks};
use crate::formats::shared::companions::{add_paths, companions};
use crate::formats::shared::items::{Repeated, Standing, text_of};
use crate::formats::shared::paths_in_text::{NamedPath, complete, globs, paths_in_text, retain_sure};
use crate::ids::as_id;
use crate::markdown::{list_items, paragraph, section};
use crate::source_text::{At, Span};

/// How many other tasks a prompt names.
const MAX_NAMED: usize = 50;

const MAX_DOCUMENTS: usize = 10;

pub(super) struct Writer<'a, 'n> {
    source: &'a Source<'a>,
    tasks: &'a [Task<'n>],
    known: &'a HashMap<&'a str, &'a Task<'n>>,
    faults: &'a Faults<'a>,
    /// The paths that each open task names.
    paths: Vec<Vec<NamedPath>>,
    repeated: Repeated,
}

impl<'a, 'n> Writer<'a, 'n> {
    pub(super) fn new(
        source: &'a Source<'a>,
        tasks: &'a [Task<'n>],
        known: &'a HashMap<&'a str, &'a Task<'n>>,
        faults: &'a Faults<'a>,
    ) -> Self {
        let named = |task: &Task<'_>| match task.standing.is_open() || source.options.redo {
            true => paths_in_text(&files_text(task, faults)),
            false => Vec::new(),
        };
        let mut paths: Vec<Vec<NamedPath>> = tasks.iter().map(named).collect();
        complete(paths.iter_mut().flatten());
        paths.iter_mut().for_each(|paths| retain_sure(paths, ".taskmaster/"));
        Self { source, tasks, known, faults, paths, repeated: Repeated::new() }
    }

    /// The lane of task number `at`, without its id, name and edges.
    pub(super) fn lane(&self, at: usize) -> LaneDraft {
        let task = &self.tasks[at];
        let span = task.id.span;
        let about = self.about(task);
        let judged = Judged::of(task, self.faults);
        let steps = task.order(self.faults);
        let mut given = HashMap::new();
        let tasks = if steps.is_empty() {
            let text = closed(about.clone(), &self.subtasks(task, None));
            vec![self.draft(task, task.id.value.clone(), text, &judged, Vec::new())]
        } else {
            let step = |(step, subtask): (usize, &&Task<'_>)| {
                let id = unique(format!("{}.{}", task.id.value, subtask.id.value), &mut given);
                self.step(task, subtask, id, &about, (step, steps.len()))
            };
            steps.iter().enumerate().map(step).collect()
        };
        LaneDraft {
            owns: Some(globs(self.paths[at].iter(), |_| span)),
            tests: Some(judged.gates).filter(|gates| !gates.is_empty()),
            criteria: Some(judged.criteria.join("\n")).filter(|text| !text.is_empty()),
            prompt: PromptDraft::here(about, span),
            tasks: Some(tasks),
            ..LaneDraft::default()
        }
    }

    fn draft(
        &self,
        task: &Task<'_>,
        id: String,
        prompt: String,
        judged: &Judged,
        verify: Vec<CommandLine>,
    ) -> TaskDraft {
        let span = task.id.span;
        let criteria = judged.criteria.iter().map(|text| At::new(text.clone(), span));
        TaskDraft {
            span,
            id: as_id(&id).map(|id| At::new(id, span)),
            name: Some(At::new(task.title.clone(), span)).filter(|name| !name.value.is_empty()),
            prompt: PromptDraft::here(prompt, span),
            verify,
            acceptance_criteria: criteria.collect(),
            allow_empty: only_checks(&task.title),
            ..TaskDraft::default()
        }
    }

    /// A subtask as a task of the lane.
    fn step(
        &self,
        task: &Task<'_>,
        subtask: &Task<'_>,
        id: String,
        about: &str,
        (step, count): (usize, usize),
    ) -> TaskDraft {
        let judged = Judged::of(subtask, self.faults);
        let mut text = self.repeated.of(about);
        paragraph(&mut text, &self.subtasks(task, Some(subtask)));
        paragraph(&mut text, &format!("# Subtask {id}: {}", subtask.title));
        if count > 1 {
            let rule = "Do this subtask only: each of the others is done by itself.";
            paragraph(&mut text, &format!("This is part {} of {count}. {rule}", step + 1));
        }
        self.add_fields(&mut text, subtask);
        self.draft(subtask, id, closed(text, ""), &judged, judged.gates.clone())
    }

    /// What the list says of a task, without its subtasks.
    fn about(&self, task: &Task<'_>) -> String {
        let mut text = format!("# Task {}: {}", task.id.value, task.title);
        self.add_fields(&mut text, task);
        section(&mut text, "Tasks that it builds on", &self.before(task));
        let is_document = |path: &str| path.contains(".taskmaster/docs/");
        let is_prd = |path: &str| is_document(path) && path.to_lowercase().contains("prd");
        let has_prd = companions(self.source, is_prd).next().is_some();
        let documents = companions(self.source, |path| if has_prd { is_prd(path) } else { is_document(path) });
        add_paths(&mut text, "Documents of the project", documents.take(MAX_DOCUMENTS));
        text
    }

    fn add_fields(&self, text: &mut String, task: &Task<'_>) {
        let field = |name: &str| text_of(task.node.get(name), self.faults);
        paragraph(text, &field("description"));
        section(text, "Details", &field("details"));
    }

    /// The tasks that a task depends on.
    fn before(&self, task: &Task<'_>) -> String {
        let line = |on: &At<String>| {
            let key = key_of(&on.value);
            let other = self.known.get(key.as_str())?;
            let ended = match &other.standing {
                Standing::Done(_) => " (done)",
                _ => "",
            };
            Some(format!("- {}: {}{ended}", other.id.value, other.title))
        };
        task.waits_for.iter().filter_map(line).take(MAX_NAMED).collect::<Vec<_>>().join("\n")
    }

    /// The subtasks of a task but `own`, with what became of them.
    fn subtasks(&self, task: &Task<'_>, own: Option<&Task<'_>>) -> String {
        let others = task.subtasks.iter().filter(|subtask| own.is_none_or(|own| own.key != subtask.key));
        let line = |subtask: &Task<'_>| {
            let ended = match &subtask.standing {
                Standing::Done(_) => " (done)",
                Standing::Aside(_) | Standing::Dropped(_) => " (not to be done)",
                _ => "",
            };
            format!("- {}.{}: {}{ended}", task.id.value, subtask.id.value, subtask.title)
        };
        let lines: Vec<String> = others.take(MAX_NAMED).map(line).collect();
        let mut text = String::new();
        section(&mut text, if own.is_some() { "Other subtasks" } else { "Subtasks" }, &lines.join("\n"));
        text
    }
}

/// What says how a task is judged: its test strategy, and criteria that some lists have.
struct Judged {
    criteria: Vec<String>,
    gates: Vec<CommandLine>,
}

impl Judged {
    fn of(task: &Task<'_>, faults: &Faults<'_>) -> Self {
        let mut text = text_of(task.node.get("acceptanceCriteria"), faults);
        paragraph(&mut text, &text_of(task.node.get("testStrategy"), faults));
        let run = commands_in_text(&text);
        let span: Span = task.id.span;
        run.commands.warn(span, faults);
        let gates = run.commands.gates.into_iter().map(CommandLine::Shell).collect();
        Self { criteria: list_items(&text), gates }
    }
}

/// `id`, with a number behind it where it was given before.
fn unique(id: String, given: &mut HashMap<String, usize>) -> String {
    let count = given.entry(id.clone()).or_default();
    *count += 1;
    if *count == 1 { id } else { format!("{id}-{count}") }
}

/// What names the files of a task.
fn files_text(task: &Task<'_>, faults: &Faults<'_>) -> String {
    let mut text = String::new();
    for task in std::iter::once(task).chain(task.subtasks.iter().filter(|subtask| subtask.standing.is_open())) {
        for name in ["description", "details", "files"] {
            paragraph(&mut text, &text_of(task.node.get(name), faults));
        }
    }
    text
}

fn closed(mut text: String, more: &str) -> String {
    paragraph(&mut text, more);
    let rule =
        "Do not change files below `.taskmaster/`: Lanewright sets the status of the task when the work is merged.";
    paragraph(&mut text, rule);
    text
}
