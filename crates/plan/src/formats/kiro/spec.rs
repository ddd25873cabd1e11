//! One specification as lanes.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::LazyLock;

use lanewright_model::plan::OwnershipRule;
use lanewright_model::text::headline;
use lanewright_model::{Approval, CommandLine, ListOptions, TaskKind};
use regex::Regex;

use super::id_of;
use super::lanes::{Lane, lanes};
use super::list::{List, Task};
use super::prompt::{Position, prompt};
use super::waves::Graph;
use crate::draft::{LaneDraft, PromptDraft, TaskDraft};
use crate::faults::{Faults, quoted};
use crate::formats::shared::commands_in_text::{commands_in_text, is_tested_by_hand, named, only_checks, tests_of};
use crate::formats::shared::companions::{companions, warn_of_placeholders};
use crate::formats::shared::documents::Documents;
use crate::formats::shared::paths_in_text::{NamedPath, complete, globs, paths_in_text};
use crate::source_text::{At, File, Span};
use crate::{Source, SourceFile};

const MAX_NAME: usize = 80;

/// How many optional tasks a message names.
const MAX_NAMED: usize = 8;

pub(super) struct Spec<'a> {
    file: File<'a>,
    /// The name of its directory.
    pub(super) id: String,
    list: List<'a>,
    lanes: Vec<Lane>,
    graph: Option<Graph>,
    /// Its own documents, then the steering files of all.
    documents: Vec<(String, &'a SourceFile<'a>)>,
    /// Steering files that Kiro does not have every task read.
    on_demand: Vec<&'a SourceFile<'a>>,
    record: Option<&'a SourceFile<'a>>,
    options: ListOptions,
}

/// A task after which Kiro stops to see whether all is well.
static CHECKPOINT: LazyLock<Regex> =
    pattern!(r"(?i)\bcheckpoint\b|检查点|檢查點|チェックポイント|punto de control|ponto de (?:verificação|controle)");

impl<'a> Spec<'a> {
    pub(super) fn new(file: File<'a>, source: &Source<'a>) -> Self {
        let id = id_of(file.path);
        let list = List::new(file.text);
        let (lanes, graph) = lanes(&id, &list);
        let is_own = |path: &str| {
            let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
            file.path
                .strip_suffix("/tasks.md")
                .and_then(|own| own.strip_suffix(directory))
                .is_some_and(|before| before.is_empty() || before.ends_with('/'))
        };
        let own = companions(source, |path| is_own(path) && path.ends_with(".md"));
        let steering: Vec<_> = companions(source, |path| path.contains(".kiro/steering/")).collect();
        let (steering, on_demand): (Vec<_>, Vec<_>) = steering.into_iter().partition(|file| is_for_all(file.text));
        let documents = own.chain(steering).map(|file| (title_of(file.path), file)).collect();
        let record = companions(source, |path| is_own(path) && path.ends_with("/spec.json")).next();
        let options = source.fallbacks.lists;
        Self { file, id, list, lanes, graph, documents, on_demand, record, options }
    }

    pub(super) fn start(&self) -> Span {
        self.file.span(0..0)
    }

    /// How many tasks it has.
    pub(super) fn count(&self) -> usize {
        self.lanes.iter().map(|lane| lane.tasks.len()).sum()
    }

    pub(super) fn is_without_boxes(&self) -> bool {
        self.list.items.is_empty()
    }

    /// Why it has no lane to run.
    pub(super) fn why_empty(&self) -> &'static str {
        if self.is_without_boxes() {
            "has no task: its list has no check box"
        } else if self.lanes.is_empty() {
            "has optional tasks only, which are left out"
        } else if self.left_out().next().is_some() {
            "has only open tasks that a person does, which are left out"
        } else {
            "is done: the boxes of all its tasks are ticked"
        }
    }

    /// The optional tasks that are left out: an id for all of them, and which they are.
    pub(super) fn optional(&self) -> Option<(String, String)> {
        let is_outer = |parent: Option<usize>| parent.is_none_or(|parent| !self.list.items[parent].is_optional);
        let left =
            self.list.items.iter().filter(|item| item.is_optional && is_outer(item.parent) && !item.state.is_done());
        let ids: Vec<&str> = left.map(|item| item.id.as_str()).collect();
        let reason = format!("tasks marked with `*` are optional: {}; remove the `*` to have them done", named(&ids));
        (!ids.is_empty()).then(|| (format!("{}-optional", &self.id[..self.id.len().min(50)]), reason))
    }

    /// The ids of the open tasks that are left out because a person does them.
    pub(super) fn left_out(&self) -> impl Iterator<Item = &str> {
        let tasks = self.lanes.iter().flat_map(|lane| &lane.tasks).filter(|task| self.is_left_out(task));
        tasks.map(|task| self.list.items[task.item].id.as_str())
    }

    fn is_left_out(&self, task: &Task) -> bool {
        self.options.skip_manual && !self.list.is_done(task) && is_tested_by_hand(self.list.title(task.item))
    }

    pub(super) fn warn(&self, source: &Source<'_>, faults: &Faults<'_>) {
        for (_, file) in &self.documents {
            warn_of_placeholders(file, self.start(), source.options.strict, faults);
        }
        for item in self.list.items.iter().filter(|item| item.is_repeated) {
            let message = format!("another task has the number of this one, which is called {} here", quoted(&item.id));
            faults.warning(self.file.span(item.title.clone()), message, "give each task a number of its own");
        }
        let untickable: Vec<&str> = self.list.without_boxes().map(|item| item.id.as_str()).collect();
        if let Some(first) = self.list.without_boxes().next() {
            let message = format!("nothing in the list records that these tasks are done: {}", named(&untickable));
            let help =
                "write what they have one do as `- [ ] …`; without boxes, only runs of Lanewright know what is done";
            faults.warning(self.file.span(first.title.clone()), message, help);
        }
        let Some(graph) = &self.graph else { return };
        let place = self.file.span(self.list.document.trimmed(graph.line));
        if let Some(fault) = &graph.fault {
            let message =
                format!("the graph of the tasks cannot be read, so they are done one after the other: {fault}");
            faults.warning(place, message, "correct the JSON, or have Kiro write the graph again");
        }
        let known: HashSet<&str> = self.list.items.iter().map(|item| item.id.as_str()).collect();
        let named = graph.waves.iter().flatten().map(String::as_str);
        let unknown: Vec<&str> = named.filter(|id| !known.contains(id)).take(MAX_NAMED).collect();
        if !unknown.is_empty() {
            let message = format!("the graph names tasks that the list does not have: {}", unknown.join(", "));
            faults.warning(place, message, "correct the numbers, or have Kiro write the graph again");
        }
    }

    /// The lanes with something to do.
    pub(super) fn lanes(&self, source: &Source<'_>, budget: &Cell<usize>, faults: &Faults<'_>) -> Vec<LaneDraft> {
        let is_asked = |lane: &Lane| source.options.redo || source.options.unfinished.contains(&lane.id);
        let is_open = |task: &Task| !self.list.is_done(task) && !self.is_left_out(task);
        let is_run = |lane: &&Lane| match is_asked(lane) {
            true => !lane.tasks.iter().all(|task| self.is_left_out(task)),
            false => lane.tasks.iter().any(is_open),
        };
        let open: Vec<&Lane> = self.lanes.iter().filter(is_run).collect();
        let documents = Documents { listed: self.documents.clone(), budget };
        let approval = self.approval(faults);
        let mut drafts = Vec::with_capacity(open.len());
        for lane in &open {
            // All of it, where it is run although all of it is done.
            let all = source.options.redo || !lane.tasks.iter().any(is_open);
            let is_taken = |task: &&Task| is_open(task) || all && !self.is_left_out(task);
            let tasks: Vec<&Task> = lane.tasks.iter().filter(is_taken).collect();
            let before = open.iter().map(|other| other.group).filter(|group| *group < lane.group).max();
            let place = tasks.first().map_or(self.start(), |task| self.span(task));
            let after = open.iter().filter(|other| Some(other.group) == before);
            let drafted: Vec<TaskDraft> = tasks
                .iter()
                .flat_map(|task| std::iter::once(self.task(task, &documents, faults)).chain(self.stop(task)))
                .collect();
            drafts.push(LaneDraft {
                span: place,
                id: Some(At::new(lane.id.clone(), place)),
                name: self.name(&tasks, place),
                depends_on: after.map(|other| At::new(other.id.clone(), place)).collect(),
                ownership: Some(At::new(OwnershipRule::Advisory, place)),
                owns: Some(self.owns(&tasks)),
                approval: approval.clone().filter(|_| before.is_none()),
                tests: tests_of(&drafted),
                tasks: Some(drafted),
                ..LaneDraft::default()
            });
        }
        drafts
    }

    /// The first task's title where the specification has several lanes, else its own.
    fn name(&self, tasks: &[&Task], place: Span) -> Option<At<String>> {
        let first = tasks.first().map_or("", |task| self.list.title(task.item));
        let name = match (self.lanes.len(), tasks.len()) {
            (1, _) => self.list.document.title()?.title.to_owned(),
            (_, 0 | 1) => first.to_owned(),
            (_, count) => format!("{first} and {} more", count - 1),
        };
        Some(At::new(headline(&name, MAX_NAME), place)).filter(|name| !name.value.is_empty())
    }

    /// A person is asked where the record of the specification says that its tasks are not approved.
    fn approval(&self, faults: &Faults<'_>) -> Option<Vec<At<Approval>>> {
        let record = self.record?;
        let value: serde_json::Value = serde_json::from_str(record.text).ok()?;
        let approved = value.get("approvals")?.get("tasks")?.get("approved")?.as_bool()?;
        if approved {
            return None;
        }
        let message =
            format!("{} says that these tasks are not approved, so a person is asked before they start", record.path);
        faults.warning(self.start(), message, "approve the tasks in the program that wrote them");
        Some(vec![At::new(Approval::Plan, self.start())])
    }

    fn span(&self, task: &Task) -> Span {
        self.file.span(self.list.items[task.item].title.clone())
    }

    fn owns(&self, tasks: &[&Task]) -> Vec<At<String>> {
        let members = tasks.iter().flat_map(|task| &task.members);
        let mut named: Vec<NamedPath> = members.flat_map(|member| self.paths(*member)).collect();
        named.retain(|named| !named.path.starts_with(".kiro/"));
        complete(named.iter_mut());
        globs(named.iter(), |range| self.file.span(range))
    }

    fn paths(&self, item: usize) -> Vec<NamedPath> {
        let own = &self.list.items[item].own;
        // `_Files: src/a.ts_`: the underscores are no part of the name.
        let mut text = String::with_capacity(own.len());
        for line in self.list.text(own).split_inclusive('\n') {
            let inner = line.trim_end();
            let is_emphasis = inner.ends_with('_') && inner.trim_start_matches([' ', '\t', '-', '*']).starts_with('_');
            let blank = |(at, c): (usize, char)| {
                let first = inner.find('_').unwrap_or(0);
                if is_emphasis && (at == first || at + 1 == inner.len()) && c == '_' { ' ' } else { c }
            };
            text.extend(line.char_indices().map(blank));
        }
        let shifted =
            |named: NamedPath| NamedPath { range: named.range.start + own.start..named.range.end + own.start, ..named };
        paths_in_text(&text).into_iter().map(shifted).collect()
    }

    /// What a person is asked behind a checkpoint.
    fn stop(&self, task: &Task) -> Option<TaskDraft> {
        let title = self.list.title(task.item);
        let is_asked = self.options.stop_at_checkpoints && CHECKPOINT.is_match(title) && !is_tested_by_hand(title);
        let (span, id) = (self.span(task), &self.list.items[task.item].id);
        is_asked.then(|| TaskDraft {
            span,
            id: Some(At::new(format!("{id}-approval"), span)),
            name: Some(At::new(headline(title, MAX_NAME), span)),
            kind: Some(At::new(TaskKind::HumanVerify, span)),
            prompt: PromptDraft::here(format!("{id}: {title}\n\nLook at what was done so far."), span),
            ..TaskDraft::default()
        })
    }

    fn task(&self, task: &Task, documents: &Documents<'_, '_>, faults: &Faults<'_>) -> TaskDraft {
        let span = self.span(task);
        let title = self.list.title(task.item);
        let text: String = task
            .members
            .iter()
            .map(|member| format!("- {}\n", self.list.text(&self.list.items[*member].own)))
            .collect();
        let is_manual = is_tested_by_hand(title);
        let run = commands_in_text(&text);
        if !is_manual {
            run.commands.warn(span, faults);
        }
        let done = self.list.items.iter().filter(|item| item.state.is_done() && item.children.is_empty());
        let position = Position { spec: &self.id, list: &self.list, task, done: done.count() };
        TaskDraft {
            span,
            id: Some(At::new(self.list.items[task.item].id.clone(), span)),
            name: Some(At::new(headline(title, MAX_NAME), span)),
            kind: Some(At::new(if is_manual { TaskKind::HumanVerify } else { TaskKind::Auto }, span)),
            allow_empty: CHECKPOINT.is_match(title) || only_checks(title),
            verify: run.commands.gates.into_iter().filter(|_| !is_manual).map(CommandLine::Shell).collect(),
            prompt: PromptDraft::here(prompt(&position, is_manual, documents, &self.on_demand), span),
            ..TaskDraft::default()
        }
    }
}

/// Whether a steering file is for all tasks: its front matter may say `inclusion: manual` or `inclusion: fileMatch`.
fn is_for_all(text: &str) -> bool {
    let Some(front) = text.strip_prefix("---") else { return true };
    let mut lines = front.lines().take_while(|line| line.trim_end() != "---");
    !lines.any(|line| {
        line.strip_prefix("inclusion:").is_some_and(|said| said.trim().trim_matches(['"', '\'']) != "always")
    })
}

/// What prompts call a document: `Requirements`, `Steering: tech`.
fn title_of(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".md");
    if path.contains(".kiro/steering/") {
        return format!("Steering: {name}");
    }
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
