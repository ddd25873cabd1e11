//! One plan of a phase as a lane.

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Range;

use lanewright_model::plan::OwnershipRule;
use lanewright_model::{Approval, TaskKind};

use super::body::{BodyText, split_body};
use super::must_haves;
use super::plan_file::{MAX_NAME, PlanFile};
use super::prompt::{self, TaskPosition};
use super::task::{self, ReadTask};
use super::tasks::{RawTask, tasks};
use super::tokens::{MAX_TASKS, tokens};
use crate::draft::{LaneDraft, PromptDraft, TaskDraft};
use crate::faults::{Faults, quoted};
use crate::markdown::{first_words, paragraph};
use crate::path::{as_glob, items, listed};
use crate::source_text::{At, File, Span};

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
    let mut around = split_body(file, &body, &plan.front, &tokens, &raw);
    let criteria = Some(std::mem::take(&mut around.judged_by)).filter(|text| !text.is_empty());
    let mut read: Vec<ReadTask> = raw.iter().map(|raw| task::read(file, raw, faults)).collect();
    for task in &mut read {
        if task.relocate(root, faults) {
            moved.set(moved.get().or(Some(task.span)));
        }
    }
    let attended = read.iter().any(|task| task.kind.value.is_human());
    let drafts =
        if raw.is_empty() { vec![whole_body(plan, &body, faults)] } else { tasks_of(plan, &raw, read, around, budget) };
    let mut lane = LaneDraft {
        span: file.span(0..0),
        id: Some(At::new(plan.id.clone(), file.span(0..0))),
        name: plan.name(),
        wave: plan.header.wave.clone(),
        ownership: Some(At::new(OwnershipRule::Advisory, file.span(0..0))),
        must_haves: plan.header.must_haves.clone(),
        user_setup: plan.header.setup.clone(),
        criteria,
        tasks: Some(drafts),
        ..LaneDraft::default()
    };
    if lane.name.is_none() {
        lane.name = lane.tasks.iter().flatten().find_map(|task| task.name.clone());
    }
    let files = files(plan, lane.tasks.as_deref().unwrap_or_default(), faults);
    lane.owns = Some(globs(&files));
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

fn note_nul(file: &File<'_>, faults: &Faults<'_>) {
    if let Some(at) = file.text.find('\0') {
        let message = "this text holds a NUL character";
        faults.warning(file.span(at..at + 1), message, "remove it; it is left out");
    }
}

/// The only task of a plan that names none.
fn whole_body(plan: &PlanFile<'_>, body: &Range<usize>, faults: &Faults<'_>) -> TaskDraft {
    let around = split_body(&plan.file, body, &plan.front, &[], &[]);
    let mut text = String::new();
    paragraph(&mut text, &plan.setup());
    paragraph(&mut text, &around.common);
    prompt::add_closing(&mut text, "", &plan.header.must_haves.truths);
    prompt::add_reference(&mut text, &around.reference);
    prompt::add_tracking(&mut text);
    let span = plan.file.span(body.start..body.start);
    if text.trim().is_empty() {
        let message = format!("the plan {} says nothing that could be done", quoted(&plan.id));
        faults.warning(span, message, "write an objective and tasks");
    }
    let name = plan.name().or_else(|| Some(At::new(first_words(&around.common, MAX_NAME)?, span)));
    TaskDraft { span, name, prompt: PromptDraft::here(text, span), ..TaskDraft::default() }
}

fn tasks_of(
    plan: &PlanFile<'_>,
    raw: &[RawTask<'_>],
    read: Vec<ReadTask>,
    mut around: BodyText,
    budget: &Cell<usize>,
) -> Vec<TaskDraft> {
    let common = std::mem::replace(&mut around.common, plan.setup());
    paragraph(&mut around.common, &common);
    let is_auto = |task: &ReadTask| task.kind.value == TaskKind::Auto;
    let first = read.iter().position(is_auto).unwrap_or(0);
    let last = read.iter().rposition(is_auto).unwrap_or(read.len() - 1);
    let ids = task::ids(&read);
    let count = read.len();
    let mut drafts = Vec::with_capacity(count);
    for (at, (raw, read)) in raw.iter().zip(read).enumerate() {
        let auto = is_auto(&read);
        let affordable = at == first || budget.get() >= around.common.len() + around.reference.len();
        let is_repeated = affordable && (auto || at == first);
        if is_repeated && at != first {
            budget.set(budget.get() - around.common.len() - around.reference.len());
        }
        let common = if is_repeated { around.common.as_str() } else { "" };
        let place = TaskPosition { lane: &plan.id, at, count, before: &around.before[at], common };
        let human = read.kind.value.is_human();
        let prompt = if human { prompt::for_person } else { prompt::for_agent };
        let mut text = prompt(&plan.file, raw, &read, &place);
        if at == last {
            let closing = std::mem::take(&mut around.closing);
            prompt::add_closing(&mut text, &closing, &plan.header.must_haves.truths);
        }
        if auto {
            if is_repeated {
                prompt::add_reference(&mut text, &around.reference);
            }
            prompt::add_tracking(&mut text);
        }
        drafts.push(read.draft(text, ids.as_ref().map(|ids| ids[at].clone())));
    }
    drafts
}

/// The globs of all files of a plan, so that no two plans work on one at once. Files below `.planning/` are not owned:
/// every plan writes there.
fn globs(files: &[At<String>]) -> Vec<At<String>> {
    let mut seen = HashSet::new();
    let foreign = |file: &&At<String>| file.value != ".planning" && !file.value.starts_with(".planning/");
    let globs = files.iter().filter(foreign).filter_map(|file| Some(At::new(as_glob(&file.value).ok()?, file.span)));
    globs.filter(|glob| seen.insert(glob.value.clone())).collect()
}

/// Everything that the front matter and the tasks name, as it is written there.
fn files(plan: &PlanFile<'_>, tasks: &[TaskDraft], faults: &Faults<'_>) -> Vec<At<String>> {
    let mut files: Vec<At<String>> = Vec::new();
    let mut bad: Vec<(&At<String>, &str)> = Vec::new();
    for written in &plan.header.files {
        for item in named(&written.value) {
            match listed(item) {
                Ok(path) => files.extend(path.map(|path| At::new(path, written.span))),
                Err(why) => bad.push((written, why)),
            }
        }
    }
    files.extend(tasks.iter().flat_map(|task| task.files.iter().cloned()));
    if let [(first, why), rest @ ..] = bad.as_slice() {
        let more = if rest.is_empty() { String::new() } else { format!(", and {} more are left out", rest.len()) };
        let message = format!("{} in `files_modified` is taken for no file: {why}{more}", quoted(&first.value));
        faults.warning(first.span, message, "name one file below the repository's root in each item");
    }
    files
}

fn named(text: &str) -> Vec<&str> {
    if text.contains(", ") { items(text).into_iter().map(|(_, item)| item).collect() } else { vec![text] }
}
