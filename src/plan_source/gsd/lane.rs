//! One plan of a phase as a lane.

use std::cell::Cell;
use std::ops::Range;

use crate::model::plan::OwnershipRule;
use crate::model::text::headline;
use crate::model::{Approval, TaskKind};
use crate::plan_source::command::Why;
use crate::plan_source::draft::{LaneDraft, PromptDraft, TaskDraft};
use crate::plan_source::faults::{Faults, quoted};
use crate::plan_source::source_text::{At, File, Span};

use super::body::{Surroundings, surroundings};
use super::front_matter;
use super::header::{self, Header};
use super::lenient;
use super::must_haves;
use super::owned;
use super::prompt;
use super::task::{self, ReadTask};
use super::tasks::{RawTask, tasks};
use super::text::{clean, first_words, paragraph};
use super::tokens::{MAX_TASKS, tokens};

/// The longest name of a lane, in characters.
const MAX_NAME: usize = 100;

/// A plan's file with what its front matter says.
pub(super) struct PlanFile<'a> {
    pub(super) file: File<'a>,
    pub(super) id: String,
    pub(super) header: Header,
    /// The front matter with its marks; empty where there is none.
    front: Range<usize>,
}

/// Reads the front matter of a plan.
pub(super) fn open<'a>(file: File<'a>, id: String, faults: &Faults<'_>) -> PlanFile<'a> {
    let Some(found) = front_matter::locate(file.text) else {
        return PlanFile { file, id, header: Header::default(), front: 0..0 };
    };
    if !found.closed {
        let message = "the front matter that begins here has no end";
        let help = "close it with a line `---`; it is taken to end where Markdown begins";
        faults.warning(file.span(found.outer.start..found.outer.start), message, help);
    }
    let inner = &file.text[found.inner.clone()];
    let root = lenient::read(inner, file.start + found.inner.start, faults);
    let header = root.map(|root| header::read(root, faults)).unwrap_or_default();
    PlanFile { file, id, header, front: found.outer }
}

impl PlanFile<'_> {
    /// Whether there is anything to do.
    pub(super) fn is_empty(&self) -> bool {
        let rest = [&self.file.text[..self.front.start], &self.file.text[self.front.end..]];
        rest.iter()
            .all(|text| text.trim_matches(|c: char| c.is_whitespace() || c == '\0' || c == '\u{feff}').is_empty())
    }

    /// What people call the plan: its title, else the first words of its objective, else its heading.
    pub(super) fn name(&self) -> Option<At<String>> {
        if let Some(title) = &self.header.title {
            return Some(At::new(headline(&clean(&title.value), MAX_NAME), title.span));
        }
        let text = &self.file.text[self.front.end..];
        let objective = text.find("<objective>").map(|at| at + "<objective>".len());
        let words = objective.and_then(|at| first_words(until_tag(&text[at..]), MAX_NAME));
        let words = words.or_else(|| heading_objective(text)).or_else(|| self.heading());
        words.map(|words| At::new(words, self.file.span(0..0)))
    }

    fn heading(&self) -> Option<String> {
        let heading = |line: &&str| line.starts_with("# ") && line.len() > 2;
        let line = self.file.text.lines().take(200).find(heading)?;
        let words = first_words(line, MAX_NAME)?;
        // `Plan 05-01: Ability data` is about ability data.
        let after = words.strip_prefix("Plan").and_then(|rest| rest.split_once([':', '—']));
        let after = after.filter(|(number, _)| number.len() < 12).map(|(_, words)| words.trim().to_owned());
        after.filter(|words| !words.is_empty()).or(Some(words))
    }
}

fn until_tag(text: &str) -> &str {
    text.find("</objective>").map_or(text, |end| &text[..end])
}

/// The first words below a heading `Objective`.
fn heading_objective(text: &str) -> Option<String> {
    let at = text
        .lines()
        .take(2_000)
        .position(|line| line.trim_matches(['#', ' ', ':']).eq_ignore_ascii_case("objective"))?;
    let below = text.lines().skip(at + 1).take(20).find(|line| !line.trim().is_empty() && !line.starts_with('#'))?;
    first_words(below, MAX_NAME)
}

/// The lane of a plan; what it depends on is added by who knows the other plans. `root` is where its commands think
/// that the repository is, `budget` how much text may still be repeated, and `moved` the phase's first task with commands
/// that go there. `None`: it has too many tasks to be run.
pub(super) fn lane(
    plan: &PlanFile<'_>,
    root: Option<&str>,
    budget: &Cell<usize>,
    moved: &Cell<Option<Span>>,
    faults: &Faults<'_>,
) -> Option<LaneDraft> {
    let file = &plan.file;
    let begin = if plan.front.start == 0 { plan.front.end } else { 0 };
    let body = begin..file.text.len();
    note_nul(file, faults);
    let tokens = tokens(file.text, body.clone());
    let raw = tasks(file.text, &tokens, &body);
    if too_many(file, &raw, faults) {
        return None;
    }
    let around = surroundings(file, &body, &plan.front, &tokens, &raw);
    let mut read: Vec<ReadTask> = raw.iter().map(|raw| task::read(file, raw, faults)).collect();
    moved.set(moved.get().or(move_commands(&mut read, root, faults)));
    let attended = read.iter().any(|task| task.kind.value.is_human());
    let drafts =
        if raw.is_empty() { vec![whole_body(plan, &body, faults)] } else { told(plan, &raw, read, &around, budget) };
    let mut lane = LaneDraft {
        span: file.span(0..0),
        id: Some(At::new(plan.id.clone(), file.span(0..0))),
        name: plan.name(),
        wave: plan.header.wave.clone(),
        ownership: Some(At::new(OwnershipRule::Advisory, file.span(0..0))),
        must_haves: plan.header.must_haves.clone(),
        tasks: Some(drafts),
        ..LaneDraft::default()
    };
    if lane.name.is_none() {
        lane.name = lane.tasks.iter().flatten().find_map(|task| task.name.clone());
    }
    let files = owned::files(plan, lane.tasks.as_deref().unwrap_or_default(), faults);
    lane.owns = Some(owned::globs(&files));
    let files: Vec<String> = files.into_iter().map(|file| file.value).collect();
    must_haves::complete(&mut lane.must_haves, &files);
    lane.approval = plan.header.attended.filter(|_| !attended).map(|span| approval(span, faults));
    Some(lane)
}

fn too_many(file: &File<'_>, tasks: &[RawTask<'_>], faults: &Faults<'_>) -> bool {
    let beyond = tasks.get(MAX_TASKS);
    if let Some(task) = beyond {
        let message = format!("a plan has at most {MAX_TASKS} tasks");
        faults.error_with(file.span(task.range.start..task.head_end), message, "split it into several plans");
    }
    beyond.is_some()
}

/// What a lane waits for that cannot be done without a person and does not say where one is needed.
fn approval(span: Span, faults: &Faults<'_>) -> Vec<At<Approval>> {
    let message = "`autonomous` is false, but no task is a checkpoint";
    let help = "add a checkpoint task, or leave it out; a person approves the changes of this lane";
    faults.warning(span, message, help);
    vec![At::new(Approval::Changes, span)]
}

/// Has the gates look at the lane's worktree instead of the repository of who wrote the plan. Gives the first task that
/// has such gates.
fn move_commands(tasks: &mut [ReadTask], root: Option<&str>, faults: &Faults<'_>) -> Option<Span> {
    let mut first = None;
    for task in tasks {
        let (moved, foreign) = task.move_commands(root);
        if moved {
            first = first.or(Some(task.span));
        }
        if let Some(script) = foreign {
            // `set -e` is Lanekeeper's own.
            let (message, help) = Why::Elsewhere.told(script.strip_prefix("set -e\n").unwrap_or(&script));
            faults.warning(task.span, message, help);
        }
    }
    first
}

fn note_nul(file: &File<'_>, faults: &Faults<'_>) {
    if let Some(at) = file.text.find('\0') {
        let message = "this text holds a NUL character";
        faults.warning(file.span(at..at + 1), message, "remove it; it is left out");
    }
}

/// The only task of a plan that names none.
fn whole_body(plan: &PlanFile<'_>, body: &Range<usize>, faults: &Faults<'_>) -> TaskDraft {
    let raw = RawTask {
        range: body.clone(),
        head_end: body.start,
        head: "",
        is_heading: true,
        children: Vec::new(),
        loose: Vec::new(),
        unclosed: Vec::new(),
    };
    let around = surroundings(&plan.file, body, &plan.front, &[], &[]);
    let mut text = String::new();
    paragraph(&mut text, &setup(plan));
    paragraph(&mut text, &around.common);
    prompt::add_closing(&mut text, "", &plan.header.must_haves.truths);
    prompt::add_tracking(&mut text);
    let span = plan.file.span(raw.range.start..raw.range.start);
    if text.trim().is_empty() {
        let message = format!("the plan {} says nothing that could be done", quoted(&plan.id));
        faults.warning(span, message, "write an objective and tasks");
    }
    let name = plan.name().or_else(|| Some(At::new(first_words(&around.common, MAX_NAME)?, span)));
    TaskDraft { span, name, prompt: said(text, span), ..TaskDraft::default() }
}

/// The tasks with their prompts.
fn told(
    plan: &PlanFile<'_>,
    raw: &[RawTask<'_>],
    read: Vec<ReadTask>,
    around: &Surroundings,
    budget: &Cell<usize>,
) -> Vec<TaskDraft> {
    let mut around =
        Surroundings { common: String::new(), closing: around.closing.clone(), before: around.before.clone() }
            .with_common(setup(plan), &around.common);
    let is_auto = |task: &ReadTask| task.kind.value == TaskKind::Auto;
    let first = read.iter().position(is_auto).unwrap_or(0);
    let last = read.iter().rposition(is_auto).unwrap_or(read.len() - 1);
    let ids = task::ids(&read);
    let count = read.len();
    let mut drafts = Vec::with_capacity(count);
    for (at, (raw, read)) in raw.iter().zip(read).enumerate() {
        let auto = is_auto(&read);
        let affordable = at == first || budget.get() >= around.common.len();
        let common = affordable && (auto || at == first);
        if common && at != first {
            budget.set(budget.get() - around.common.len());
        }
        let mut text = read.prompt(&plan.file, raw, &plan.id, (at, count), &around, common);
        if at == last {
            let closing = std::mem::take(&mut around.closing);
            prompt::add_closing(&mut text, &closing, &plan.header.must_haves.truths);
        }
        if auto {
            prompt::add_tracking(&mut text);
        }
        drafts.push(read.draft(text, ids.as_ref().map(|ids| ids[at].clone())));
    }
    drafts
}

impl Surroundings {
    fn with_common(mut self, setup: String, common: &str) -> Self {
        self.common = setup;
        paragraph(&mut self.common, common);
        self
    }
}

/// What the front matter says that a person sets up, as it is written.
fn setup(plan: &PlanFile<'_>) -> String {
    let Some(span) = plan.header.user_setup else { return String::new() };
    let written = plan.file.text.get(span.start - plan.file.start..span.end - plan.file.start).unwrap_or("");
    let mut text = String::new();
    super::text::section(&mut text, "What a person sets up for this plan", &super::text::dedented(&clean(written)));
    text
}

pub(super) fn said(text: String, span: Span) -> PromptDraft {
    PromptDraft { text: Some(At::new(text, span)), file: None }
}
