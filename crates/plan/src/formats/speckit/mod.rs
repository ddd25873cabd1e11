//! The task list of a feature of Spec Kit: each phase a lane, each `- [ ] T012 …` a task.
//!
//! `phases` reads the structure, `references` what a text names, `order` what waits for what, `lane` makes the lanes and
//! `prompt` their texts. Headings may be in any language: where they say nothing, the labels of tasks and the places of
//! phases do.

mod lane;
mod order;
mod phases;
mod prompt;
mod references;
mod split;
mod ticks;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::LazyLock;

use lanewright_model::plan::Skipped;
use lanewright_model::text::{counted, headline};
use lanewright_model::{LaneId, LaneSplit};
use regex::Regex;

use super::shared::boxes::CheckBox;
use super::shared::commands_in_text::{ASK_PERSON, is_check_by_person, manual_left_out};
use super::shared::companions::{companion, warn_of_placeholders};
use super::shared::paths_in_text::{NamedPath, complete, paths_in_text};
use crate::Source;
use crate::dependencies::Dependencies;
use crate::draft::{Overlaps, PlanDraft};
use crate::faults::{Faults, quoted};
use crate::ids::as_id;
use crate::markdown::Document;
use crate::source_text::{At, Span};
use phases::{Phase, Task, phases};
use split::Split;
pub(crate) use ticks::ticked;

const NAMELESS: &str = "feature";

static TASK: LazyLock<Regex> = pattern!(r"(?m)^[ \t]*[-*+] \[[ xX]?\] (?:\*\*|`)?T\d{3}[a-z]?\b");

/// Whether the file is one of this format's: it has a task with a number below a phase.
pub(super) fn is_plan(_path: &str, text: &str) -> bool {
    if text.len() > crate::source_text::MAX_TEXT || !TASK.is_match(text) {
        return false;
    }
    let (phases, _) = phases(&Document::new(text));
    phases.iter().any(|phase| phase.number.is_some() && phase.tasks.iter().any(|task| task.number.is_some()))
}

/// What is read of a feature.
struct Feature<'a> {
    document: Document<'a>,
    title: String,
    phases: Vec<Phase<'a>>,
    /// The files that each task of each phase names.
    paths: Vec<Vec<Vec<NamedPath>>>,
    /// Whether tasks that are done are done again (`--redo`).
    redo: bool,
    /// The lines of tasks that are part of the plan although they are done.
    kept: BTreeSet<usize>,
    /// The lines of tasks whose number another one has.
    doubled: BTreeSet<usize>,
    /// The lines of open tasks that only a person can do, where these are left out (`--skip-manual`).
    left_out: BTreeSet<usize>,
    /// Whether a person approves what each story changes (`--stop-at-checkpoints`).
    stops: bool,
    /// How much text prompts may still repeat.
    budget: Cell<usize>,
}

impl Feature<'_> {
    fn is_open(&self, task: &Task<'_>) -> bool {
        let line = &task.check_box.line;
        let is_kept = self.redo || !task.check_box.state.is_done() || self.kept.contains(line);
        is_kept && !self.left_out.contains(line)
    }

    fn is_done(&self, task: &Task<'_>) -> bool {
        !self.is_open(task) && !self.left_out.contains(&task.check_box.line)
    }

    /// Whether the phase is a lane: it has a task to do.
    fn runs(&self, phase: usize) -> bool {
        self.phases[phase].tasks.iter().any(|task| self.is_open(task))
    }
}

pub(super) fn plan<'a>(source: &Source<'_>, faults: &'a Faults<'a>) -> Option<PlanDraft> {
    let file = *faults.source.files().first()?;
    if let Some(second) = faults.source.files().get(1) {
        let message = "a run works on the tasks of one feature";
        faults.error_with(second.span(0..0), message, "name one `tasks.md`");
        return None;
    }
    let document = Document::new(file.text);
    let span = |range: Range<usize>| file.span(range);
    let (phases, outside) = phases(&document);
    if is_template(file.text) {
        let message = "this is Spec Kit's template of a task list";
        faults.error_with(file.span(0..0), message, "make the tasks of a feature with `/speckit.tasks`");
        return None;
    }
    let title = document.title().map(|title| (feature_title(title.title), title.at.clone()));
    let lists = source.fallbacks.lists;
    let mut feature = Feature {
        title: title.as_ref().map_or_else(String::new, |(title, _)| title.clone()),
        paths: paths(&document, &phases),
        left_out: if lists.skip_manual { manual(&document, &phases) } else { BTreeSet::new() },
        kept: BTreeSet::new(),
        document,
        phases,
        redo: source.options.redo,
        doubled: BTreeSet::new(),
        stops: lists.stop_at_checkpoints,
        budget: Cell::new(prompt::REPEATED_TEXT),
    };
    feature.doubled = check_numbers(&feature, &span, faults);
    warn_of_outside(&feature, &outside, &span, faults);
    if feature.phases.iter().all(|phase| phase.tasks.is_empty()) {
        let message = "this task list has no tasks";
        faults.error_with(file.span(0..0), message, "a task is `- [ ] T001 …` below a heading `## Phase 1: …`");
        return None;
    }
    let split =
        (lists.split == LaneSplit::Parallel).then(|| Split::new(&feature.document, &feature.phases, &feature.paths));
    let lanes = split.as_ref().map_or(&feature.phases, |split| &split.phases);
    feature.kept = kept(lanes, source.options.unfinished, &feature.left_out);
    if !(0..feature.phases.len()).any(|phase| feature.runs(phase)) {
        let count: usize = feature.phases.iter().map(|phase| phase.tasks.len()).sum();
        let (message, help) = match feature.left_out.is_empty() {
            true => {
                (format!("all {} of this feature are ticked", counted(count, "task")), "run them again with `--redo`")
            }
            false => ("only tasks that a person does are open in this feature".to_owned(), ASK_PERSON),
        };
        faults.error_with(file.span(0..0), message, help);
        return None;
    }
    let runs = |phase| feature.runs(phase);
    let mut order = order::order(&feature.document, &feature.phases, &runs, lists.order, &span, faults);
    if let Some(split) = split {
        order = split.order(&order, &span);
        (feature.phases, feature.paths) = (split.phases, split.paths);
    }
    let waits = among_lanes(&feature, &order);
    for name in ["spec.md", "plan.md", "constitution.md"] {
        if let Some(file) = companion(source, name) {
            warn_of_placeholders(file, span(0..0), source.options.strict, faults);
        }
    }
    let phase = phase_id(file.path, file.text);
    let mut draft = PlanDraft {
        phase: Some(At::new(phase.clone(), span(0..0))),
        title: title.map(|(title, at)| At::new(headline(&title, 100), span(at))),
        overlaps: Overlaps::AUTO,
        ..PlanDraft::default()
    };
    for (at, waits) in waits.iter().enumerate() {
        if feature.runs(at) {
            draft.lanes.push(lane::lane(&feature, at, waits, source, &span, faults));
        } else if !feature.phases[at].tasks.is_empty() {
            draft.skipped.extend(skipped(&feature, &feature.phases[at]));
        }
    }
    let left_out = feature
        .phases
        .iter()
        .flat_map(|phase| &phase.tasks)
        .filter(|task| feature.left_out.contains(&task.check_box.line));
    draft.skipped.extend(manual_left_out(&phase, left_out.filter_map(|task| task.number)));
    draft.existing = existing(&feature);
    Some(draft)
}

/// The lines of open tasks that only a person can do.
fn manual(document: &Document<'_>, phases: &[Phase<'_>]) -> BTreeSet<usize> {
    let open = phases.iter().flat_map(|phase| &phase.tasks).filter(|task| !task.check_box.state.is_done());
    open.filter(|task| is_check_by_person(&document.text[task.text.clone()])).map(|task| task.check_box.line).collect()
}

/// The lines of the tasks of the `unfinished` lanes of which all tasks are ticked or `left_out`.
fn kept(phases: &[Phase<'_>], unfinished: &[String], left_out: &BTreeSet<usize>) -> BTreeSet<usize> {
    let is_ended = |task: &Task<'_>| task.check_box.state.is_done() || left_out.contains(&task.check_box.line);
    let is_done = |phase: &Phase<'_>| phase.tasks.iter().all(is_ended);
    let kept = phases.iter().filter(|phase| unfinished.contains(&phase.id) && is_done(phase));
    kept.flat_map(|phase| &phase.tasks).map(|task| task.check_box.line).collect()
}

/// `Tasks: Voice chat` as `Voice chat`.
fn feature_title(title: &str) -> String {
    static PREFIX: LazyLock<Regex> =
        pattern!(r"(?i)^(?:tasks?|タスク|任务|tarefas|tareas|tâches)(?: list)?\s*[:：–—-]\s*");
    PREFIX.replace(title.trim(), "").replace(['*', '`', '\0'], "").trim().to_owned()
}

/// The feature's directory, by the path of the file or by what it says of itself.
fn phase_id(path: &str, text: &str) -> String {
    static INPUT: LazyLock<Regex> = pattern!(r"/?specs/([0-9A-Za-z][0-9A-Za-z._-]*)/");
    let path = path.replace('\\', "/");
    let directory = path.rsplit('/').nth(1).filter(|name| name.starts_with(|c: char| c.is_ascii_digit()));
    let head = &text[..text.floor_char_boundary(2000)];
    let said = || INPUT.captures(head).map(|found| found[1].to_owned());
    let name = directory.map(str::to_owned).or_else(said).or_else(|| path.rsplit('/').nth(1).map(str::to_owned));
    name.as_deref().and_then(as_id).unwrap_or_else(|| NAMELESS.to_owned())
}

fn is_template(text: &str) -> bool {
    text.contains("[FEATURE NAME]") && (text.contains("SAMPLE TASKS") || text.contains("[Brief description"))
}

/// The files that each task names; `main.py` alone is the one that another task names with its directory.
fn paths(document: &Document<'_>, phases: &[Phase<'_>]) -> Vec<Vec<Vec<NamedPath>>> {
    let of_task = |task: &Task<'_>| {
        let mut named = paths_in_text(&document.text[task.text.clone()]);
        named.retain(|named| !is_of_feature(&named.path));
        for named in &mut named {
            named.range = named.range.start + task.text.start..named.range.end + task.text.start;
        }
        named
    };
    let mut all: Vec<Vec<Vec<NamedPath>>> =
        phases.iter().map(|phase| phase.tasks.iter().map(of_task).collect()).collect();
    complete(all.iter_mut().flatten().flatten());
    all
}

/// Whether a path is one of the feature's documents, which are not work.
fn is_of_feature(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let documents = ["tasks.md", "plan.md", "spec.md", "research.md", "data-model.md", "quickstart.md"];
    documents.contains(&name) && (!path.contains('/') || path.starts_with("specs/")) || path.starts_with("contracts/")
}

/// Every number stands for one task. Returns the lines of those that have the number of another one.
fn check_numbers(feature: &Feature<'_>, span: &dyn Fn(Range<usize>) -> Span, faults: &Faults<'_>) -> BTreeSet<usize> {
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut doubled = BTreeSet::new();
    for task in feature.phases.iter().flat_map(|phase| &phase.tasks) {
        let Some(number) = task.number else { continue };
        let line = task.check_box.line;
        if let Some(first) = known.insert(number.to_lowercase(), line) {
            let message = format!("the task {} is in line {} already", quoted(number), first + 1);
            faults.error_with(span(task.check_box.title.clone()), message, "give it a number of its own");
            doubled.insert(line);
        }
    }
    doubled
}

fn warn_of_outside(
    feature: &Feature<'_>,
    outside: &[CheckBox],
    span: &dyn Fn(Range<usize>) -> Span,
    faults: &Faults<'_>,
) {
    let open: Vec<&CheckBox> = outside.iter().filter(|check_box| !check_box.state.is_done()).collect();
    if let Some(first) = open.first() {
        let boxes =
            if open.len() == 1 { "an open box is".to_owned() } else { format!("{} open boxes are", open.len()) };
        let message = format!("{boxes} outside of phases and without a task number, and left out");
        faults.warning(span(first.title.clone()), message, "move what is to be done below a phase");
    }
    for phase in feature.phases.iter().filter(|phase| phase.number.is_none()) {
        let message = format!("the section {} is not a phase, but has tasks", quoted(&phase.name));
        let help = "it is a lane that comes after all before it; call it `Phase N: …`";
        faults.warning(span(phase.at.clone()), message, help);
    }
}

/// What each phase that is a lane waits for among lanes. What a phase without anything to do waits for, those wait for
/// that wait for it.
fn among_lanes(feature: &Feature<'_>, order: &order::Order) -> order::Order {
    let mut waits: order::Order = vec![BTreeMap::new(); order.len()];
    for at in (0..order.len()).filter(|&at| feature.runs(at)) {
        let mut seen = BTreeSet::from([at]);
        let mut ahead: Vec<(usize, Span)> = order[at].iter().map(|(&on, &place)| (on, place)).collect();
        while let Some((on, place)) = ahead.pop() {
            if feature.runs(on) {
                waits[at].entry(on).or_insert(place);
            } else if seen.insert(on) {
                ahead.extend(order[on].keys().map(|&further| (further, place)));
            }
        }
        // A circle through a phase that is done.
        if !order[at].contains_key(&at) {
            waits[at].remove(&at);
        }
    }
    without_implied(waits)
}

/// `waits` without what others of the same phase wait for anyway.
fn without_implied(mut waits: order::Order) -> order::Order {
    let lists: Vec<Vec<usize>> = waits.iter().map(|waits| waits.keys().copied().collect()).collect();
    let order = Dependencies::new(&lists);
    for (at, own) in waits.iter_mut().enumerate() {
        let is_implied = |on: usize| lists[at].iter().any(|&other| order.waits(other, on) && !order.waits(on, other));
        own.retain(|&on, _| !is_implied(on));
    }
    waits
}

fn skipped(feature: &Feature<'_>, phase: &Phase<'_>) -> Option<Skipped> {
    let reason = match phase.tasks.len() {
        _ if !phase.tasks.iter().all(|task| feature.is_done(task)) => "only a person does its open tasks".to_owned(),
        1 => "its task is ticked".to_owned(),
        count => format!("all {count} tasks are ticked"),
    };
    Some(Skipped { lane: LaneId::new(&phase.id).ok()?, name: Some(phase.name.clone()), reason })
}

/// The files that tasks name which are done: they exist.
fn existing(feature: &Feature<'_>) -> BTreeSet<String> {
    let phases = feature.phases.iter().zip(&feature.paths);
    let tasks = phases.flat_map(|(phase, paths)| phase.tasks.iter().zip(paths));
    let done = tasks.filter(|(task, _)| feature.is_done(task)).flat_map(|(_, paths)| paths);
    done.filter_map(|named| crate::path::as_glob(&named.path).ok()).collect()
}

#[cfg(test)]
mod tests;
