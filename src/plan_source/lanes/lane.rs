//! A lane as a draft: its files, its tasks, who does it.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use super::body::Label;
use super::context::Context;
use super::edges::{Order, interface_items};
use super::inline::{bare, dedent, is_nothing, without_parentheses};
use super::names::id_of;
use super::paths::{Named, as_glob, in_cell, owned};
use super::policy::{Policies, Policy};
use super::prompt::{LaneStory, lane_story, task_prompt};
use super::sequence::{other_lanes, sequence};
use super::tasks::{Kind, RawTask, Tasks, tasks};
use crate::model::CommandLine;
use crate::model::ownership::Ownership;
use crate::model::plan::OwnershipRule;
use crate::model::text::{counted, headline};
use crate::plan_source::draft::{LaneDraft, ProgramDraft, PromptDraft, TaskDraft};
use crate::plan_source::faults::quoted;
use crate::plan_source::lower::Runners;
use crate::plan_source::source_text::At;

/// What all lanes are made with.
pub(super) struct Making<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) policies: &'a Policies,
    pub(super) runners: &'a Runners<'a>,
    pub(super) story: &'a LaneStory,
    /// Written for the first tool, whose plans say more of each task.
    pub(super) first_version: bool,
}

/// The files of a lane.
pub(super) struct Files {
    pub(super) owns: Vec<At<String>>,
    pub(super) rule: OwnershipRule,
    globs: HashSet<String>,
    allowed: Option<Ownership>,
}

/// The draft of lane number `lane`.
pub(super) fn lane(making: &Making<'_>, lane: usize, order: Order, written: &[(String, Range<usize>)]) -> LaneDraft {
    let context = making.context;
    let text = &context.lanes[lane];
    let read = read_tasks(context, lane);
    check_tasks(making, lane, &read);
    let files = files(context, lane, &read.list, written);
    let story = lane_story(making, lane, &read.notes, files.rule);
    let id = context.at(text.id.clone(), text.at.clone());
    let policy = Lookup { own: own_policy(making, lane), defaults: &making.policies.defaults };
    let (program, foreign) = program(making, &policy, &text.id);
    LaneDraft {
        span: id.span,
        name: Some(text.name.as_str())
            .filter(|name| !name.is_empty())
            .map(|name| At::new(headline(name, 200), id.span)),
        depends_on: order.depends_on,
        also_after: order.also_after,
        excludes: order.excludes,
        tests: Some(lane_tests(&read.list)).filter(|tests| !tests.is_empty()),
        env: environment(context, &policy, foreign),
        tasks: Some(task_drafts(making, lane, &read.list, &files, &story)).filter(|tasks| !tasks.is_empty()),
        prompt: PromptDraft { text: Some(At::new(story, id.span)), file: None },
        ownership: Some(At::new(files.rule, id.span)),
        owns: Some(files.owns),
        program,
        id: Some(id),
        ..LaneDraft::default()
    }
}

/// The tasks of all fields of the lane.
fn read_tasks(context: &Context<'_>, lane: usize) -> Tasks {
    let mut all = Tasks::default();
    for range in context.lanes[lane].field(Label::Tasks) {
        let mut found = tasks(context.document.text, range);
        all.list.append(&mut found.list);
        all.notes.append(&mut found.notes);
        all.odd_rows.append(&mut found.odd_rows);
    }
    all
}

/// Notes what the tasks of a lane should say and do not.
fn check_tasks(making: &Making<'_>, lane: usize, read: &Tasks) {
    let (context, text) = (making.context, &making.context.lanes[lane]);
    let own = quoted(&text.id);
    for (at, written, width) in &read.odd_rows {
        let message = format!("this row has {}, the table has {width} columns", counted(*written, "cell"));
        context.warning(at.clone(), message, "write a `|` within a cell as `\\|`");
    }
    if !text.described {
        let message = format!("lane {own} stands in the index and has no section of its own");
        context.warning(text.at.clone(), message, "describe it under `## Lanes`: its agent is told its name only");
    } else if read.list.is_empty() {
        let message = format!("lane {own} has no tasks");
        context.warning(text.at.clone(), message, "list them: its agent is told what its section says");
    }
    for (other, at) in other_lanes(context.document.text, lane, &read.list, &context.names) {
        if !making.story.before.waits(lane, other) {
            let other = quoted(&context.lanes[other].id);
            let message = format!("a task of lane {own} depends on {other}, but the lane does not wait for it");
            context.warning(at, message, format!("add {other} to `Depends on` of the lane"));
        }
    }
    let ticked: Vec<&RawTask> = read.list.iter().filter(|task| task.ticked).collect();
    if let Some(first) = ticked.first() {
        let message = format!("{} of lane {own} are ticked and done again", counted(ticked.len(), "task"));
        context.warning(first.at.start..first.at.start, message, "leave out what need not be done");
    }
    if making.first_version {
        lacking(context, &own, &read.list);
    }
}

/// What a plan of the first version must say of each task.
fn lacking(context: &Context<'_>, own: &str, list: &[RawTask]) {
    let lacks: [(&str, fn(&RawTask) -> bool); 3] = [
        ("type", |task| task.kind_word.is_empty()),
        ("tests", |task| !task.names_tests && task.kind != Some(Kind::Verify)),
        ("test command", |task| !task.names_command),
    ];
    for (what, lacks) in lacks {
        let lacking: Vec<&RawTask> = list.iter().filter(|task| lacks(task)).collect();
        if let Some(first) = lacking.first() {
            let message = format!("{} of lane {own} without {what}", counted(lacking.len(), "task"));
            let help = "a complete plan names the type, the tests and the test command of every task";
            context.lack(context.options.strict, first.at.start..first.at.start, message, help);
        }
    }
}

/// What the lane owns: the files that it declares, and those that its tasks say they make.
fn files(context: &Context<'_>, lane: usize, list: &[RawTask], written: &[(String, Range<usize>)]) -> Files {
    let text = &context.lanes[lane];
    let fields: Vec<Range<usize>> = text.field(Label::Owned).collect();
    let found: Vec<Option<Vec<Named>>> =
        fields.iter().map(|range| owned(context.document.text, range.clone())).collect();
    let declared: Vec<Named> = found.iter().flatten().flatten().cloned().collect();
    let owns_nothing = !found.is_empty() && found.iter().all(Option::is_none);
    let making = list.iter().filter(|task| task.kind != Some(Kind::Verify));
    let by_tasks: Vec<&Named> = making
        .flat_map(|task| task.files.iter().chain(if owns_nothing { &[] } else { task.tests.as_slice() }))
        .collect();
    let rule = match (declared.is_empty(), by_tasks.is_empty()) {
        (false, _) => OwnershipRule::Enforced,
        (true, true) if owns_nothing => OwnershipRule::Nothing,
        (true, false) if owns_nothing => OwnershipRule::Enforced,
        _ => OwnershipRule::Advisory,
    };
    if let (Some(range), true, false) = (fields.first(), declared.is_empty(), owns_nothing) {
        let message = format!("no path can be told from the owned files of lane {}", quoted(&text.id));
        context.warning(
            range.start..range.start,
            message,
            "write each path in backticks: as it is, the lane may change any file",
        );
    }
    let mut files = Files { owns: Vec::new(), rule, globs: HashSet::new(), allowed: None };
    for named in declared.iter().chain(by_tasks) {
        files.add(context, named);
    }
    for (path, at) in written.iter().filter(|_| rule == OwnershipRule::Enforced) {
        files.add(context, &Named { path: path.clone(), at: at.clone() });
    }
    let globs: Vec<&str> = files.owns.iter().map(|glob| glob.value.as_str()).collect();
    files.allowed = Some(globs).filter(|globs| !globs.is_empty()).and_then(|globs| Ownership::new(&globs).ok());
    files
}

impl Files {
    fn add(&mut self, context: &Context<'_>, named: &Named) {
        match as_glob(&named.path) {
            Ok(glob) => {
                if self.globs.insert(glob.clone()) {
                    self.owns.push(context.at(glob, named.at.clone()));
                }
            }
            Err(reason) => {
                let message = format!("{} can be nobody's file: {reason}", quoted(&named.path));
                context.warning(
                    named.at.clone(),
                    message,
                    "name files relative to the repository's root; this one is left out",
                );
            }
        }
    }

    /// Whether the lane owns what `path` names.
    pub(super) fn own(&self, path: &str) -> bool {
        let is_own = |glob: &String| self.globs.contains(glob);
        as_glob(path).is_ok_and(|glob| {
            is_own(&glob) || self.allowed.as_ref().is_some_and(|allowed| allowed.allows(path.trim_start_matches("./")))
        })
    }
}

/// The commands that the lane must pass: those of its verifying tasks.
fn lane_tests(list: &[RawTask]) -> Vec<CommandLine> {
    let mut tests: Vec<CommandLine> = Vec::new();
    let mut seen = HashSet::new();
    for command in list.iter().filter(|task| task.kind == Some(Kind::Verify)).flat_map(|task| &task.commands) {
        if seen.insert(command.as_str()) {
            tests.push(CommandLine::Shell(command.clone()));
        }
    }
    tests
}

fn task_drafts(making: &Making<'_>, lane: usize, list: &[RawTask], files: &Files, story: &str) -> Vec<TaskDraft> {
    let context = making.context;
    let (order, circular) = sequence(context.document.text, list);
    if circular {
        let at = list.first().map_or(0, |task| task.at.start);
        let message = format!("tasks of lane {} wait for each other", quoted(&context.lanes[lane].id));
        context.warning(at..at, message, "remove one of their dependencies; they are done in the order of the text");
    }
    let provided = context.lanes[lane].field(Label::Provided).flat_map(|range| {
        let items = interface_items(context.text(range.clone()));
        items.into_iter().map(move |item| (item, range.clone()))
    });
    let provided: Vec<At<String>> = provided.map(|(item, range)| context.at(item, range)).collect();
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
            prompt: PromptDraft {
                text: Some(At::new(task_prompt(&context.lanes[lane].id, id, task, story), span)),
                file: None,
            },
            verify: task.commands.iter().filter(|_| gates).map(|line| CommandLine::Shell(line.clone())).collect(),
            files: task_files(context, task, files),
            interfaces: provided.clone(),
            acceptance_criteria: acceptance.collect(),
            ..TaskDraft::default()
        }
    };
    order.into_iter().map(draft).collect()
}

/// What people call a task.
fn name(task: &RawTask) -> String {
    let acceptance = task.acceptance.as_ref().map(|(text, _)| text.as_str());
    let said = headline(bare(acceptance.unwrap_or(&task.text)), 80);
    if task.kind_word.is_empty() { said } else { format!("{}: {said}", task.kind_word) }
}

/// Ids that are valid and unique, as they are written where that can be.
fn task_ids(context: &Context<'_>, list: &[RawTask]) -> Vec<(String, Range<usize>)> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut id = |task: &RawTask| {
        let at = task.id.as_ref().map_or(task.at.start..task.at.start, |(_, at)| at.clone());
        let written = task.id.as_ref().and_then(|(id, _)| id_of(id));
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
        let stem = written.or_else(|| id_of(&task.kind_word.to_lowercase())).unwrap_or_else(|| "task".to_owned());
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

/// The files that a task is about: those that its row names, else those that its text names, of which the lane is
/// allowed to change all.
fn task_files(context: &Context<'_>, task: &RawTask, files: &Files) -> Vec<At<String>> {
    let named: Vec<Named> = if task.files.is_empty() && task.tests.is_empty() {
        in_cell(context.text(task.at.clone()), task.at.start, true)
    } else {
        task.files.iter().chain(&task.tests).cloned().collect()
    };
    let mut seen = HashSet::new();
    let own = named.into_iter().filter(|named| files.own(&named.path) && seen.insert(named.path.clone()));
    own.map(|named| context.at(named.path, named.at)).collect()
}

/// A policy of a lane's own over the one of all.
struct Lookup<'a> {
    own: Option<&'a Policy>,
    defaults: &'a Policy,
}

impl Lookup<'_> {
    fn get(&self, key: &str) -> Option<&(String, Range<usize>)> {
        self.own.and_then(|own| own.get(key)).or_else(|| self.defaults.get(key)).filter(|(value, _)| !value.is_empty())
    }
}

fn own_policy<'a>(making: &'a Making<'_>, lane: usize) -> Option<&'a Policy> {
    making
        .policies
        .lanes
        .iter()
        .rev()
        .find(|(name, _)| making.context.names.find(name) == Some(lane))
        .map(|(_, policy)| policy)
}

/// Who does the lane, and whether that is somebody else than the policy asks for.
fn program(making: &Making<'_>, policy: &Lookup<'_>, id: &str) -> (ProgramDraft, bool) {
    let (context, nobody) = (making.context, ProgramDraft::default());
    let Some((name, at)) = policy.get("executor") else { return (nobody, false) };
    if let Some(runner) = known_runner(name, making.runners) {
        return (ProgramDraft { runner: Some(context.at(runner, at.clone())), ..nobody }, false);
    }
    let message = format!("lane {} is for {}, and there is no such runner", quoted(id), quoted(name));
    let help = format!("describe it under `[runners.{}]` in lanekeeper.toml", id_of(name).unwrap_or_default());
    if policy.get("unsupported").is_some_and(|(value, _)| value.eq_ignore_ascii_case("block")) {
        context.faults.error_with(
            context.span(at.clone()),
            message,
            format!("{help}, or write `unsupported=inherit_default`"),
        );
        return (ProgramDraft { faulty: true, ..nobody }, true);
    }
    context.warning(at.clone(), message, format!("{help}; until then the default runner does the lane"));
    (nobody, true)
}

/// The runner that is meant by the name of an executor.
fn known_runner(name: &str, runners: &Runners<'_>) -> Option<String> {
    let lower = name.to_lowercase();
    let other = match lower.replace('_', "-").as_str() {
        "claude-code" | "anthropic" => "claude",
        "openai" | "codex-cli" => "codex",
        "gemini-cli" | "google" => "gemini",
        _ => lower.as_str(),
    };
    [name, lower.as_str(), other].into_iter().find(|name| runners(name).is_some()).map(str::to_owned)
}

/// What the policy tells the runner. A model is the executor's own: another runner would not know it.
fn environment(context: &Context<'_>, policy: &Lookup<'_>, foreign: bool) -> Vec<(At<String>, String)> {
    let keys = [("model", "LANEKEEPER_MODEL"), ("effort", "LANEKEEPER_EFFORT"), ("work-unit", "LANEKEEPER_WORK_UNIT")];
    let told = keys.iter().filter(|(key, _)| !(foreign && *key == "model"));
    let pair = |(key, name): &(&str, &str)| {
        let (value, at) = policy.get(key)?;
        Some((context.at((*name).to_owned(), at.clone()), value.clone()))
    };
    told.filter_map(pair).collect()
}

/// The values of a field that say something, one below the other.
pub(super) fn said(context: &Context<'_>, lane: usize, label: Label) -> Option<String> {
    let values = context.lanes[lane].field(label).map(|range| dedent(context.text(range)));
    let values: Vec<String> =
        values.filter(|value| !without_parentheses(value).trim().is_empty() && !is_nothing(value)).collect();
    (!values.is_empty()).then(|| values.join("\n"))
}
