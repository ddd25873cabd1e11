//! One phase as a lane.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use lanewright_model::plan::OwnershipRule;
use lanewright_model::text::headline;
use lanewright_model::{Approval, CommandLine, TaskKind};
use regex::Regex;

use super::phases::{Kind, Phase, Task};
use super::{Feature, prompt};
use crate::Source;
use crate::draft::{LaneDraft, PromptDraft, TaskDraft};
use crate::faults::{Faults, quoted};
use crate::formats::shared::commands_in_text::{
    Run, commands_in_text, is_check_by_person, is_only_commands, only_checks,
};
use crate::formats::shared::paths_in_text::globs;
use crate::markdown::clean;
use crate::markdown::inline::one_line;
use crate::source_text::{At, Span};

const MAX_NAME: usize = 200;

/// A verb that a task begins with which makes a new file.
static CREATES: LazyLock<Regex> = pattern!(
    r"(?i)^\W*(?:create|scaffold|generate|initiali[sz]e|write|new)\b|(?:を|に)?(?:新規)?作成|创建|新建|生成|^\W*(?:criar|crie|crear|créer)\b"
);

/// A task that is to be done, with what its text has one run.
pub(super) struct OpenTask<'f, 'a> {
    pub(super) task: &'f Task<'a>,
    pub(super) text: &'f str,
    pub(super) run: Run,
    pub(super) kind: TaskKind,
    /// Its commands say all that it asks for.
    pub(super) is_gate: bool,
    paths: Vec<At<String>>,
}

/// The lane of phase number `at`, which waits for the phases of `waits`.
pub(super) fn lane(
    feature: &Feature<'_>,
    at: usize,
    waits: &BTreeMap<usize, Span>,
    source: &Source<'_>,
    span: &dyn Fn(Range<usize>) -> Span,
    faults: &Faults<'_>,
) -> LaneDraft {
    let phase = &feature.phases[at];
    let place = span(phase.at.clone());
    let open = open_tasks(feature, at, span);
    warn(feature, phase, &open, span, faults);
    let tests = commands(open.iter().filter(|task| task.is_gate));
    // Where there is nothing but commands, an agent sees that they succeed.
    let checks_only = open.iter().all(|task| task.is_gate);
    let work: Vec<usize> = match checks_only {
        true => vec![0],
        false => (0..open.len()).filter(|&task| !open[task].is_gate).collect(),
    };
    let common = prompt::common(feature, at, source, &tests);
    let mut drafts = Vec::with_capacity(work.len());
    for (number, &task) in work.iter().enumerate() {
        let place = prompt::Place { number, count: work.len(), is_only_check: checks_only };
        let text = prompt::task(feature, phase, &open[task], &place, &common);
        let own = std::iter::once(&open[task]).filter(|task| !task.kind.is_human() && !checks_only);
        // What is behind a person's task judges the lane, for its tests run these commands, too.
        let behind = if open[task].kind.is_human() { &[] } else { behind(&open, task) };
        let verify = commands(own.chain(behind));
        let number = open[task].task.number.filter(|_| !feature.doubled.contains(&open[task].task.check_box.line));
        drafts.push(draft(&open[task], number, text, verify, span));
    }
    let files = open.iter().flat_map(|task| task.paths.iter().cloned());
    let approval = feature.stops && matches!(phase.kind, Kind::Stories(_));
    let mut seen = HashSet::new();
    let owns: Vec<At<String>> = files.filter(|glob| seen.insert(glob.value.clone())).collect();
    LaneDraft {
        span: place,
        id: Some(At::new(phase.id.clone(), place)),
        name: Some(At::new(headline(&phase.name, MAX_NAME), place)).filter(|name| !name.value.is_empty()),
        depends_on: waits.iter().map(|(&on, &place)| At::new(feature.phases[on].id.clone(), place)).collect(),
        creates: creates(&open),
        owns: Some(owns),
        ownership: Some(At::new(OwnershipRule::Advisory, place)),
        gate_places: gate_places(&open, span),
        criteria: prompt::criteria(feature, phase).filter(|_| !phase.is_part),
        approval: approval.then(|| vec![At::new(Approval::Changes, place)]),
        tests: Some(tests).filter(|tests| !tests.is_empty()),
        tasks: Some(drafts),
        ..LaneDraft::default()
    }
}

fn open_tasks<'f, 'a>(
    feature: &'f Feature<'a>,
    at: usize,
    span: &dyn Fn(Range<usize>) -> Span,
) -> Vec<OpenTask<'f, 'a>> {
    let phase = &feature.phases[at];
    let open = phase.tasks.iter().zip(&feature.paths[at]).filter(|(task, _)| feature.is_open(task));
    let read = |(task, paths): (&'f Task<'a>, &Vec<_>)| {
        let text = &feature.document.text[task.text.clone()];
        let person = is_check_by_person(text);
        let run = if person || !only_checks(text) { Run::default() } else { commands_in_text(text) };
        OpenTask {
            task,
            text,
            is_gate: !person && is_only_commands(text, &run),
            run,
            kind: if person { TaskKind::HumanVerify } else { TaskKind::Auto },
            paths: if only_checks(text) { Vec::new() } else { globs(paths.iter(), span) },
        }
    };
    open.map(read).collect()
}

/// The gates right behind task number `at`, which judge it at its place. At the end of the lane its tests do.
fn behind<'o, 'f, 'a>(open: &'o [OpenTask<'f, 'a>], at: usize) -> &'o [OpenTask<'f, 'a>] {
    let later = &open[at + 1..];
    let count = later.iter().take_while(|task| task.is_gate).count();
    if count == later.len() { &[] } else { &later[..count] }
}

fn gate_places(open: &[OpenTask<'_, '_>], span: &dyn Fn(Range<usize>) -> Span) -> Vec<(String, Span)> {
    let gates = open.iter().filter(|task| task.is_gate);
    let of_task = |task: &OpenTask<'_, '_>| {
        let place = span(task.task.check_box.title.clone());
        task.run.commands.gates.iter().map(move |gate| (gate.clone(), place)).collect::<Vec<_>>()
    };
    gates.flat_map(of_task).collect()
}

/// Whether a task is done where its commands succeed.
pub(super) fn is_gate(text: &str) -> bool {
    only_checks(text) && !is_check_by_person(text) && is_only_commands(text, &commands_in_text(text))
}

fn commands<'o, 'f: 'o, 'a: 'f>(tasks: impl Iterator<Item = &'o OpenTask<'f, 'a>>) -> Vec<CommandLine> {
    let mut found: Vec<CommandLine> = Vec::new();
    for gate in tasks.flat_map(|task| &task.run.commands.gates) {
        let gate = CommandLine::Shell(gate.clone());
        if !found.contains(&gate) {
            found.push(gate);
        }
    }
    found
}

fn creates(open: &[OpenTask<'_, '_>]) -> BTreeSet<String> {
    let mut named: HashSet<&str> = HashSet::new();
    let mut created = BTreeSet::new();
    for task in open {
        for glob in &task.paths {
            // What a task says later is about a file that exists then.
            if named.insert(&glob.value) && CREATES.is_match(task.text) {
                created.insert(glob.value.clone());
            }
        }
    }
    created
}

fn draft(
    task: &OpenTask<'_, '_>,
    number: Option<&str>,
    text: String,
    verify: Vec<CommandLine>,
    span: &dyn Fn(Range<usize>) -> Span,
) -> TaskDraft {
    let place = span(task.task.check_box.title.clone());
    let id = number.map_or_else(|| format!("L{}", task.task.check_box.line + 1), str::to_owned);
    TaskDraft {
        span: place,
        id: Some(At::new(id, place)),
        name: Some(At::new(headline(&one_line(&clean(task.text)), MAX_NAME), place))
            .filter(|name| !name.value.is_empty()),
        kind: Some(At::new(task.kind, place)),
        prompt: PromptDraft::here(text, place),
        verify,
        files: task.paths.clone(),
        allow_empty: only_checks(task.text),
        ..TaskDraft::default()
    }
}

static TEST: LazyLock<Regex> = pattern!(r"(?i)\btests?\b|テスト|测试");

fn warn(
    feature: &Feature<'_>,
    phase: &Phase<'_>,
    open: &[OpenTask<'_, '_>],
    span: &dyn Fn(Range<usize>) -> Span,
    faults: &Faults<'_>,
) {
    let last_done = phase.tasks.iter().rfind(|task| feature.is_done(task)).map_or(0, |task| task.check_box.line);
    for task in open {
        task.run.commands.warn(span(task.task.check_box.title.clone()), faults);
        if task.task.check_box.line < last_done && TEST.is_match(task.text) && !task.is_gate {
            let message = "this test is open, but tasks behind it are ticked";
            faults.warning(span(task.task.check_box.title.clone()), message, "it is written after what it tests");
        }
    }
    // Where the numbers of `[P]` tasks are, by file.
    let mut named: BTreeMap<&str, (Span, Vec<&str>)> = BTreeMap::new();
    for task in open.iter().filter(|task| task.task.is_parallel) {
        for glob in task.paths.iter().filter(|glob| !glob.value.contains('*')) {
            named.entry(&glob.value).or_insert((glob.span, Vec::new())).1.extend(task.task.number);
        }
    }
    for (file, (place, tasks)) in named.into_iter().filter(|(_, (_, tasks))| tasks.len() > 1) {
        let message = format!("{} are marked [P], and all name {}", tasks.join(", "), quoted(file));
        faults.warning(place, message, "tasks of a lane run one after the other in any case");
    }
    let is_story = matches!(phase.kind, Kind::Stories(_));
    if is_story && open.iter().all(|task| task.paths.is_empty()) && !open.is_empty() {
        let message = format!("no open task of lane {} names a file", quoted(&phase.id));
        let help = "nothing keeps it apart from lanes that change the same files; name them in the tasks";
        faults.warning(span(phase.at.clone()), message, help);
    }
}
