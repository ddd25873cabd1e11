//! A lane as a draft, and what its section should say and does not.

use std::collections::HashSet;

use lanewright_model::CommandLine;
use lanewright_model::text::{counted, headline};

use super::context::Context;
use super::edges::Order;
use super::owned::owned_files;
use super::policy::{environment, program};
use super::prompt::lane_brief;
use super::sequence::other_lanes;
use super::task_drafts::task_drafts;
use super::tasks::{Kind, RawTask};
use crate::draft::{LaneDraft, PromptDraft};
use crate::faults::quoted;
use crate::source_text::At;

/// The draft of lane number `lane`. `is_first_version`: the plan must describe its tasks in full.
pub(super) fn lane(context: &Context<'_>, lane: usize, order: Order, is_first_version: bool) -> LaneDraft {
    let text = &context.lanes[lane];
    check_tasks(context, lane, is_first_version);
    let files = owned_files(context, lane);
    let tests = lane_tests(&text.tasks.list);
    let brief = lane_brief(context, lane, files.rule, &tests);
    let id = At::new(text.id.clone(), text.at.clone());
    let policy = context.policies.of(lane, &context.names);
    let (program, another) = program(context, &policy, &text.id);
    let name = Some(headline(&text.name, 200)).filter(|name| !name.is_empty());
    LaneDraft {
        span: id.span,
        name: name.map(|name| At::new(name, id.span)),
        depends_on: order.depends_on,
        also_after: order.also_after,
        excludes: order.excludes,
        tests: Some(tests).filter(|tests| !tests.is_empty()),
        env: environment(&policy, another),
        tasks: Some(task_drafts(context, lane, &files, &brief)).filter(|tasks| !tasks.is_empty()),
        prompt: PromptDraft::here(brief, id.span),
        ownership: Some(At::new(files.rule, id.span)),
        owns: Some(files.owns),
        program,
        id: Some(id),
        ..LaneDraft::default()
    }
}

/// The commands that the lane must pass: those of its verifying tasks.
fn lane_tests(list: &[RawTask]) -> Vec<CommandLine> {
    let mut seen = HashSet::new();
    let gates = list.iter().filter(|task| task.kind == Some(Kind::Verify)).flat_map(|task| &task.commands.gates);
    gates.filter(|gate| seen.insert(gate.as_str())).map(|gate| CommandLine::Shell(gate.clone())).collect()
}

fn check_tasks(context: &Context<'_>, lane: usize, is_first_version: bool) {
    let (text, faults) = (&context.lanes[lane], context.faults);
    let (own, tasks) = (quoted(&text.id), &text.tasks);
    for (at, written, width) in &tasks.odd_rows {
        let message = format!("this row has {}, the table has {width} columns", counted(*written, "cell"));
        faults.warning(at.clone(), message, "write a `|` within a cell as `\\|`");
    }
    if !text.has_section {
        let message = format!("lane {own} is in the index but has no section");
        faults.warning(text.at.clone(), message, "describe it under `## Lanes`: its agent is given only its name");
    } else if tasks.list.is_empty() {
        let message = format!("lane {own} has no tasks");
        faults.warning(text.at.clone(), message, "list them: its agent is given only the text of its section");
    }
    tasks.list.iter().for_each(|task| task.commands.warn(task.at.start..task.at.start, faults));
    for (other, at) in other_lanes(context.document.text, lane, &tasks.list, &context.names) {
        if !context.dependencies.waits(lane, other) {
            let other = quoted(&context.lanes[other].id);
            let message = format!("a task of lane {own} depends on {other}, but the lane does not wait for it");
            faults.warning(at, message, format!("add {other} to `Depends on` of the lane"));
        }
    }
    let ticked: Vec<&RawTask> = tasks.list.iter().filter(|task| task.ticked).collect();
    if let Some(first) = ticked.first() {
        let message = format!("lane {own} has {}, done again all the same", counted(ticked.len(), "ticked task"));
        faults.warning(first.at.start..first.at.start, message, "leave out what need not be done");
    }
    if is_first_version {
        check_completeness(context, &own, &tasks.list);
    }
}

/// Whether a task does not say something.
type Lacks = fn(&RawTask) -> bool;

/// Notes what a plan of the first version must say of each task.
fn check_completeness(context: &Context<'_>, own: &str, list: &[RawTask]) {
    let lacks: [(&str, Lacks); 3] = [
        ("type", |task| task.kind_word.is_empty()),
        ("tests", |task| !task.names_tests && task.kind != Some(Kind::Verify)),
        ("test command", |task| !task.names_command),
    ];
    let Some(first) = list.iter().find(|task| lacks.iter().any(|(_, lacks)| lacks(task))) else { return };
    let count = |(what, lacks): &(&str, Lacks)| {
        let count = list.iter().filter(|task| lacks(task)).count();
        (count > 0).then(|| format!("{count} without {what}"))
    };
    let parts: Vec<String> = lacks.iter().filter_map(count).collect();
    let message = format!("the tasks of lane {own} are not described in full: {}", parts.join(", "));
    let help = "a complete plan names the type, the tests and the test command of every task";
    context.report(context.options.strict, first.at.start..first.at.start, message, help);
}
