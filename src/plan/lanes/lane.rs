//! A lane as a draft.

use std::collections::HashSet;

use super::check::check_tasks;
use super::context::Context;
use super::edges::Order;
use super::label::Label;
use super::making::Making;
use super::owned::owned_files;
use super::prompt::lane_story;
use super::runner::{environment, program};
use super::task_drafts::task_drafts;
use super::tasks::{Kind, RawTask, Tasks, tasks};
use crate::model::CommandLine;
use crate::model::text::headline;
use crate::plan::draft::{LaneDraft, PromptDraft};
use crate::plan::source_text::At;

/// The draft of lane number `lane`.
pub(super) fn lane(making: &Making<'_>, lane: usize, read: &Tasks, order: Order) -> LaneDraft {
    let context = making.context;
    let text = &context.lanes[lane];
    check_tasks(making, lane, read);
    let files = owned_files(making, lane, &read.list);
    let tests = lane_tests(&read.list);
    let story = lane_story(making, lane, &read.notes, files.rule, &tests);
    let id = context.at(text.id.clone(), text.at.clone());
    let policy = making.policies.of(lane, &context.names);
    let (program, foreign) = program(making, &policy, &text.id);
    LaneDraft {
        span: id.span,
        name: Some(text.name.as_str())
            .filter(|name| !name.is_empty())
            .map(|name| At::new(headline(name, 200), id.span)),
        depends_on: order.depends_on,
        also_after: order.also_after,
        excludes: order.excludes,
        tests: Some(tests).filter(|tests| !tests.is_empty()),
        env: environment(context, &policy, foreign),
        tasks: Some(task_drafts(making, lane, &read.list, &files, &story)).filter(|tasks| !tasks.is_empty()),
        prompt: PromptDraft::here(story, id.span),
        ownership: Some(At::new(files.rule, id.span)),
        owns: Some(files.owns),
        program,
        id: Some(id),
        ..LaneDraft::default()
    }
}

pub(super) fn read_tasks(context: &Context<'_>, lane: usize) -> Tasks {
    let mut all = Tasks::default();
    for range in context.lanes[lane].field(Label::Tasks) {
        let mut found = tasks(context.document.text, range);
        all.list.append(&mut found.list);
        all.notes.append(&mut found.notes);
        all.odd_rows.append(&mut found.odd_rows);
    }
    // A table may have a field of its own.
    all.join();
    all
}

/// The commands that the lane must pass: those of its verifying tasks.
fn lane_tests(list: &[RawTask]) -> Vec<CommandLine> {
    let mut tests: Vec<CommandLine> = Vec::new();
    let mut seen = HashSet::new();
    for command in list.iter().filter(|task| task.kind == Some(Kind::Verify)).flat_map(|task| &task.commands.gates) {
        if seen.insert(command.as_str()) {
            tests.push(CommandLine::Shell(command.clone()));
        }
    }
    tests
}
