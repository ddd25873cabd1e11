//! Phase plans in Markdown (SPEC §3.3): lanes, their order, and interface freeze gates.
//!
//! `index`, `body` and `gates` read the sections of a document, `lane_text` joins what they say of each lane; `edges`
//! orders the lanes and `lane` makes their drafts, both of a `Context`.

mod body;
mod context;
mod edges;
mod gates;
mod header;
mod index;
mod lane;
mod lane_text;
mod names;
mod not_a_plan;
mod owned;
mod paths;
mod phase_wide;
mod policy;
mod prompt;
mod references;
mod sequence;
mod table;
mod task_drafts;
mod tasks;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;

use lanewright_model::plan::SharedFiles;

use crate::Source;
use crate::command::root;
use crate::dependencies::Dependencies;
use crate::draft::{LaneDraft, Overlaps, PlanDraft};
use crate::faults::{Faults, quoted};
use crate::markdown::Document;
use crate::source_text::{At, File};
use crate::validate::Runners;
use context::Context;
use lane_text::{Label, LaneText};
use lanewright_model::ownership::Ownership;
use lanewright_model::{CommandLine, Gates};
pub(crate) use not_a_plan::not_a_plan;
use phase_wide::PhaseWide;
use tasks::{RawTask, tasks};

/// The most lanes of a phase plan in Markdown.
const MAX_LANES: usize = 500;

/// The most tasks of all its lanes together.
const MAX_TASKS: usize = 10_000;

/// How many wrong names get a suggestion.
const MAX_SUGGESTIONS: usize = 50;

/// Whether the text is a phase plan with lanes.
pub(super) fn is_plan(text: &str) -> bool {
    if !text.contains("SL-") {
        return false;
    }
    let document = Document::new(text);
    let has_section = |title: &str| title.starts_with("lane index") || title.contains("swim lanes") || title == "lanes";
    let is_roadmap = document.sections(has_section).is_empty() && not_a_plan::is_roadmap(&document);
    !is_roadmap && (!index::index(&document).is_empty() || !body::bodies(&document).is_empty())
}

pub(super) fn plan<'a>(source: &Source<'_>, faults: &'a Faults<'a>, runners: &Runners<'_>) -> Option<PlanDraft> {
    let file = faults.source.files()[0];
    if let [_, second, ..] = faults.source.files() {
        faults.error_with(second.span(0..0), "a phase plan in Markdown is one file", "name one file");
        return None;
    }
    let text = without_nul(&file, faults);
    let document = Document::new(&text);
    let header = header::header(&document, file.path, faults);
    let index = index::index(&document);
    let indexed = index.len();
    let (lanes, names) = lane_text::join(index, body::bodies(&document), &header.phase.value);
    let mut context = Context {
        document: &document,
        faults,
        options: source.options,
        runners,
        fallbacks: source.fallbacks,
        gates: gates::gates(&document),
        policies: policy::policies(&document),
        phase: PhaseWide::new(&document, &names),
        header,
        names,
        lanes,
        dependencies: Dependencies::new(&[]),
        suggestions: Cell::new(MAX_SUGGESTIONS),
    };
    if !can_be_run(&context) {
        return None;
    }
    check_index(&context, indexed);
    let root = read_tasks(&mut context);
    let all_tasks = context.lanes.iter().flat_map(|lane| &lane.tasks.list);
    if let Some(task) = all_tasks.clone().nth(MAX_TASKS) {
        let message = format!("a phase plan in Markdown has at most {MAX_TASKS} tasks");
        faults.error_with(task.at.start..task.at.start, message, "cut it into several phases");
        return None;
    }
    Some(draft(&mut context, root))
}

/// The text with spaces for NUL characters, which no command, path or prompt can hold.
fn without_nul<'t>(file: &File<'t>, faults: &Faults<'_>) -> Cow<'t, str> {
    let Some(at) = file.text.find('\0') else { return file.text.into() };
    faults.warning(at..at + 1, "this text holds NUL characters", "remove them; they are taken as spaces");
    file.text.replace('\0', " ").into()
}

/// Notes what keeps a plan from being run at all.
fn can_be_run(context: &Context<'_>) -> bool {
    let faults = context.faults;
    if context.lanes.is_empty() {
        let why = not_a_plan(context.document.text);
        let message = why.map_or("this plan has no lanes", |why| why.message);
        let help = "write a `## Lane Index & Dependencies` and a section for each lane, like `### SL-1 - Name`";
        faults.error_with(0..0, message, why.map_or(help, |why| why.help));
        return false;
    }
    if let Some(lane) = context.lanes.get(MAX_LANES) {
        let message = format!("a phase plan in Markdown has at most {MAX_LANES} lanes");
        faults.error_with(lane.at.clone(), message, "cut it into several phases, or write it in TOML");
        return false;
    }
    let retired = context.header.status.as_ref().filter(|status| status.value.eq_ignore_ascii_case("retired"));
    if let Some(status) = retired {
        let help = "run the plan that replaces it; with --force this one is run all the same";
        context.report(!context.options.force, status.span, "this plan is retired", help);
    }
    retired.is_none() || context.options.force
}

/// Notes where the index and the sections of lanes disagree.
fn check_index(context: &Context<'_>, indexed: usize) {
    if indexed == 0 {
        let message = "this plan has no lane index; its lanes are those that have a section";
        let help = "write a `## Lane Index & Dependencies` that orders the lanes";
        return context.faults.warning(context.lanes[0].at.clone(), message, help);
    }
    for lane in &context.lanes[indexed..] {
        let message = format!("lane {} has a section and does not stand in the lane index", quoted(&lane.id));
        let help = "add it to the index; as it is, it runs with the order that its section gives";
        context.faults.warning(lane.at.clone(), message, help);
    }
}

/// Reads the tasks of all lanes. Gives the directory that their commands take for the repository's root.
fn read_tasks<'a>(context: &mut Context<'a>) -> Option<&'a str> {
    let read = |lane: &LaneText| tasks(context.document.text, lane.field(Label::Tasks));
    let mut found: Vec<_> = context.lanes.iter().map(read).collect();
    let files = |task: &'_ RawTask| task.files.iter().map(|file| file.value.clone()).collect::<Vec<_>>();
    let owned: Vec<String> = found.iter().flat_map(|tasks| &tasks.list).flat_map(files).collect();
    let root = root(context.faults.source.files(), &owned.iter().map(String::as_str).collect::<Vec<_>>());
    for task in found.iter_mut().flat_map(|tasks| &mut tasks.list) {
        task.commands.relocate(root);
    }
    context.lanes.iter_mut().zip(found).for_each(|(lane, tasks)| lane.tasks = tasks);
    root
}

fn draft(context: &mut Context<'_>, root: Option<&str>) -> PlanDraft {
    let edges = edges::edges(context);
    context.dependencies = edges.dependencies;
    let context = &*context;
    let is_first_version = is_first_version(context);
    check_phase(context, is_first_version);
    let orders = edges.lanes.into_iter().enumerate();
    let mut lanes: Vec<LaneDraft> =
        orders.map(|(lane, order)| lane::lane(context, lane, order, is_first_version)).collect();
    keep_from_single_writers(context, &mut lanes);
    let mut last = phase_wide::final_commands(context.document);
    last.relocate(root);
    let header = &context.header;
    last.warn(header.phase.span, context.faults);
    PlanDraft {
        phase: Some(header.phase.clone()),
        title: header.title.clone(),
        base_branch: header.base_branch.clone(),
        gates: Gates { last: last.gates.into_iter().map(CommandLine::Shell).collect(), ..Gates::default() },
        lanes,
        interfaces: edges.interfaces,
        overlaps: Overlaps::Shared(SharedFiles::Exclude),
        ..PlanDraft::default()
    }
}

/// Whether the plan was written for the first tool: it has swim lanes, and tasks that name their tests.
fn is_first_version(context: &Context<'_>) -> bool {
    !context.header.has_loop_version && !context.document.sections(|title| title == "swim lanes").is_empty()
}

/// Notes what the plan as a whole should say and does not.
fn check_phase(context: &Context<'_>, is_first_version: bool) {
    let phase = &context.header.phase;
    if context.header.is_nameless {
        let help = "begin the plan with `# P1: Name`";
        context.faults.warning(phase.span, "this plan does not say which phase it is", help);
    }
    if is_first_version && !phase_wide::has_test_plan(context.document) {
        let help = "add `## H. Test Execution Plan` with the commands that run across lanes";
        context.report(context.options.strict, phase.span, "this plan has no test execution plan", help);
    }
    for (name, policy) in &context.policies.lanes {
        if context.names.find(name).is_none() {
            let message = format!("the execution policy is about {}, but this plan has no such lane", quoted(name));
            context.faults.warning(policy.at.clone(), message, "name a lane of this plan, or leave the line out");
        }
    }
}

/// Keeps lanes that own a file which another lane alone writes apart from that lane.
fn keep_from_single_writers(context: &Context<'_>, lanes: &mut [LaneDraft]) {
    let mut apart: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (at, lane) in lanes.iter().enumerate() {
        let globs: Vec<&str> = lane.owns.iter().flatten().map(|glob| glob.value.as_str()).collect();
        let Some(owned) = Ownership::new(&globs).ok().filter(|_| !globs.is_empty()) else { continue };
        let theirs = context.phase.single_writers.iter().filter(|writer| writer.lane != at);
        let touched = theirs.filter(|writer| globs.contains(&writer.path.as_str()) || owned.allows(&writer.path));
        apart.extend(touched.map(|writer| (at, writer.lane)));
    }
    for (lane, writer) in apart {
        let writer_id = &context.lanes[writer].id;
        if lanes[lane].excludes.iter().any(|other| other.value == *writer_id) {
            continue;
        }
        let text = &context.lanes[lane];
        let message = format!("lane {} owns files that {} alone writes", quoted(&text.id), quoted(writer_id));
        let help = "they run one after the other; leave the files to that lane";
        context.faults.warning(text.at.clone(), message, help);
        if !context.dependencies.ordered(lane, writer) {
            let span = lanes[lane].span;
            lanes[lane].excludes.push(At::new(writer_id.clone(), span));
        }
    }
}
