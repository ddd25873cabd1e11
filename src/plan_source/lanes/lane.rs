//! A lane as a draft.

use std::collections::HashSet;
use std::ops::Range;

use super::body::Label;
use super::check::check_tasks;
use super::context::Context;
use super::edges::Order;
use super::owned::owned_files;
use super::policy::Policies;
use super::prompt::{LaneStory, lane_story};
use super::runner::{Lookup, environment, program};
use super::task_drafts::task_drafts;
use super::tasks::{Kind, RawTask, Tasks, tasks};
use crate::model::CommandLine;
use crate::model::text::headline;
use crate::plan_source::Fallbacks;
use crate::plan_source::draft::{LaneDraft, PromptDraft};
use crate::plan_source::inline::{dedent, is_nothing, without_parentheses};
use crate::plan_source::lower::Runners;
use crate::plan_source::source_text::At;

/// What all lanes are made with.
pub(super) struct Making<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) policies: &'a Policies,
    pub(super) runners: &'a Runners<'a>,
    pub(super) fallbacks: Fallbacks<'a>,
    pub(super) story: &'a LaneStory,
    /// Written for the first tool, whose plans say more of each task.
    pub(super) first_version: bool,
    /// The most bytes that every agent of a lane is told beside its task: all prompts together stay within a limit.
    pub(super) story_limit: usize,
}

/// The draft of lane number `lane`.
pub(super) fn lane(
    making: &Making<'_>,
    lane: usize,
    read: &Tasks,
    order: Order,
    written: &[(String, Range<usize>)],
) -> LaneDraft {
    let context = making.context;
    let text = &context.lanes[lane];
    check_tasks(making, lane, read);
    let files = owned_files(context, lane, &read.list, written);
    let tests = lane_tests(&read.list);
    let story = lane_story(making, lane, &read.notes, files.rule, &tests);
    let id = context.at(text.id.clone(), text.at.clone());
    let policy = Lookup::of(making, lane);
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
        prompt: PromptDraft { text: Some(At::new(story, id.span)), file: None },
        ownership: Some(At::new(files.rule, id.span)),
        owns: Some(files.owns),
        program,
        id: Some(id),
        ..LaneDraft::default()
    }
}

/// The tasks of all fields of the lane.
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

/// The values of a field that say something, one below the other.
pub(super) fn said(context: &Context<'_>, lane: usize, label: Label) -> Option<String> {
    let values = context.lanes[lane].field(label).map(|range| dedent(context.text(range)));
    let values: Vec<String> =
        values.filter(|value| !without_parentheses(value).trim().is_empty() && !is_nothing(value)).collect();
    (!values.is_empty()).then(|| values.join("\n"))
}
