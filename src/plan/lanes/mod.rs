//! Phase plans in Markdown (SPEC §3.3): lanes, their order, and interface freeze gates.
//!
//! The way of a text: `document` finds lines, fences and headings; `index`, `body` and `gates` take its sections apart;
//! `join` brings together what is said of each lane; `edges` orders the lanes and `lane` makes their drafts.

mod body;
mod check;
mod commands;
mod context;
mod edges;
mod gates;
mod header;
mod index;
mod join;
mod label;
mod lane;
mod making;
mod names;
mod owned;
mod paths;
mod phase_wide;
mod policy;
mod prompt;
mod references;
mod runner;
mod sequence;
mod table;
mod task_drafts;
mod tasks;
mod why_not;

use std::cell::Cell;
use std::collections::BTreeSet;

use super::Source;
use super::command::root;
use super::draft::{LaneDraft, Overlaps, PlanDraft};
use super::faults::{Faults, quoted};
use super::validate::Runners;
use crate::model::ownership::Ownership;
use crate::model::{CommandLine, Gates};
use crate::plan::Fallbacks;
use crate::plan::markdown::Document;
use context::Context;
use edges::{Edges, edges};
use header::Header;
use making::Making;
use tasks::Tasks;
pub(super) use why_not::why_not;

/// The most lanes of a phase plan in Markdown.
const MAX_LANES: usize = 500;

/// The most tasks of all its lanes together.
const MAX_TASKS: usize = 10_000;

/// How many bytes all prompts may have together, besides what each task says itself.
const MAX_TOLD: usize = 64 * 1024 * 1024;

/// How many wrong names get a suggestion.
const MAX_SUGGESTIONS: usize = 50;

/// Whether the text is a phase plan with lanes.
pub(super) fn is_plan(text: &str) -> bool {
    if !text.contains("SL-") {
        return false;
    }
    let document = Document::new(text);
    let has_section = |title: &str| title.starts_with("lane index") || title.contains("swim lanes") || title == "lanes";
    let is_roadmap = document.sections(has_section).is_empty() && why_not::is_roadmap(&document);
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
    let entries = index::index(&document);
    let bodies = body::bodies(&document);
    let indexed = entries.len();
    let (lanes, names) = join::join(entries, bodies, &header.phase.0);
    let gates = gates::gates(&document);
    let suggestions = Cell::new(MAX_SUGGESTIONS);
    let context =
        Context { document: &document, file, faults, options: source.options, names, gates, lanes, suggestions };
    if !can_be_run(&context, &header) {
        return None;
    }
    check_index(&context, indexed);
    let mut tasks: Vec<Tasks> = (0..context.lanes.len()).map(|at| lane::read_tasks(&context, at)).collect();
    let owned: Vec<&str> = tasks
        .iter()
        .flat_map(|tasks| &tasks.list)
        .flat_map(|task| &task.files)
        .map(|file| file.path.as_str())
        .collect();
    let root = root(faults.source.files(), &owned);
    tasks.iter_mut().flat_map(|tasks| &mut tasks.list).for_each(|task| task.commands.relocate(root));
    if let Some(task) = tasks.iter().flat_map(|tasks| &tasks.list).nth(MAX_TASKS) {
        let message = format!("a phase plan in Markdown has at most {MAX_TASKS} tasks");
        faults.error_with(context.span(task.at.start..task.at.start), message, "cut it into several phases");
        return None;
    }
    Some(draft(&context, &header, &tasks, root, (runners, source.fallbacks)))
}

/// The text with spaces for NUL characters, which no command, path or prompt can hold.
fn without_nul<'t>(file: &super::source_text::File<'t>, faults: &Faults<'_>) -> std::borrow::Cow<'t, str> {
    let Some(at) = file.text.find('\0') else { return file.text.into() };
    faults.warning(file.span(at..at + 1), "this text holds NUL characters", "remove them; they are taken as spaces");
    file.text.replace('\0', " ").into()
}

/// Notes what keeps a plan from being run at all.
fn can_be_run(context: &Context<'_>, header: &Header) -> bool {
    let faults = context.faults;
    if context.lanes.is_empty() {
        let why = why_not(context.document.text);
        let message = why.map_or("this plan has no lanes", |why| why.message);
        let help = "write a `## Lane Index & Dependencies` and a section for each lane, like `### SL-1 - Name`";
        faults.error_with(context.span(0..0), message, why.map_or(help, |why| why.help));
        return false;
    }
    if let Some(lane) = context.lanes.get(MAX_LANES) {
        let message = format!("a phase plan in Markdown has at most {MAX_LANES} lanes");
        faults.error_with(context.span(lane.at.clone()), message, "cut it into several phases, or write it in TOML");
        return false;
    }
    let retired = header.status.as_ref().filter(|(status, _)| status.eq_ignore_ascii_case("retired"));
    if let Some((_, at)) = retired {
        let help = "run the plan that replaces it; with --force this one is run all the same";
        context.lack(!context.options.force, at.clone(), "this plan is retired", help);
        return context.options.force;
    }
    true
}

/// Notes where the index and the sections of lanes disagree.
fn check_index(context: &Context<'_>, indexed: usize) {
    if indexed == 0 {
        let at = context.lanes[0].at.clone();
        let message = "this plan has no lane index; its lanes are those that have a section";
        context.warning(at, message, "write a `## Lane Index & Dependencies` that orders the lanes");
        return;
    }
    for lane in &context.lanes[indexed..] {
        let message = format!("lane {} has a section and does not stand in the lane index", quoted(&lane.id));
        context.warning(
            lane.at.clone(),
            message,
            "add it to the index; as it is, it runs with the order that its section gives",
        );
    }
}

fn draft(
    context: &Context<'_>,
    header: &Header,
    tasks: &[Tasks],
    root: Option<&str>,
    (runners, fallbacks): (&Runners<'_>, Fallbacks<'_>),
) -> PlanDraft {
    let document = context.document;
    let Edges { lanes: orders, before, interfaces } = edges(context);
    let notes = phase_wide::with_lanes(phase_wide::notes(document), &context.names);
    let single_writers = phase_wide::single_writers(&notes, &context.names);
    let title = header.title.as_ref().map(|(title, _)| title.as_str());
    let policies = policy::policies(document);
    let prompts = tasks.iter().map(|tasks| tasks.list.len() + 1).sum::<usize>();
    let making = Making {
        context,
        policies: &policies,
        runners,
        fallbacks,
        first_version: is_first_version(document, header),
        story_limit: MAX_TOLD / prompts,
        before,
        phase: title.map_or_else(|| header.phase.0.clone(), |title| format!("{} ({title})", header.phase.0)),
        notes,
        hints: policy::hints(document),
        single_writers,
        specifications: phase_wide::specifications(document, &context.names),
        introduction: phase_wide::section(document, "context"),
        acceptance: phase_wide::section(document, "acceptance criteria"),
        verification: phase_wide::section(document, "verification"),
    };
    check_phase(&making, header);
    let lane = |(at, order)| lane::lane(&making, at, &tasks[at], order);
    let mut lanes: Vec<LaneDraft> = orders.into_iter().enumerate().map(lane).collect();
    keep_from_single_writers(&making, &mut lanes);
    let mut last = phase_wide::final_commands(document);
    last.relocate(root);
    for (command, why) in &last.others {
        let (message, help) = why.told(command);
        context.warning(header.phase.1.clone(), message, help);
    }
    PlanDraft {
        phase: Some(context.at(header.phase.0.clone(), header.phase.1.clone())),
        title: header.title.as_ref().map(|(title, at)| context.at(title.clone(), at.clone())),
        base_branch: header.base_branch.as_ref().map(|(name, at)| context.at(name.clone(), at.clone())),
        gates: Gates { last: last.gates.into_iter().map(CommandLine::Shell).collect(), ..Gates::default() },
        lanes,
        interfaces,
        overlaps: Overlaps::KeptApart,
        ..PlanDraft::default()
    }
}

/// Whether the plan was written for the first tool: it has swim lanes, and tasks that name their tests.
fn is_first_version(document: &Document<'_>, header: &Header) -> bool {
    !header.has_loop_version && !document.sections(|title| title == "swim lanes").is_empty()
}

/// Notes what the plan as a whole should say and does not.
fn check_phase(making: &Making<'_>, header: &Header) {
    let context = making.context;
    if header.nameless {
        let help = "begin the plan with `# P1: Name`";
        context.warning(header.phase.1.clone(), "this plan does not say which phase it is", help);
    }
    if making.first_version && !phase_wide::has_test_plan(context.document) {
        let help = "add `## H. Test Execution Plan` with the commands that run across lanes";
        context.lack(context.options.strict, header.phase.1.clone(), "this plan has no test execution plan", help);
    }
    for (name, policy) in &making.policies.lanes {
        if context.names.find(name).is_none() {
            let message = format!("the execution policy is about {}, which is no lane of this plan", quoted(name));
            context.warning(policy.at.clone(), message, "name a lane of this plan, or leave the line out");
        }
    }
}

/// Keeps lanes that own a file which another lane alone writes apart from that lane.
fn keep_from_single_writers(making: &Making<'_>, lanes: &mut [LaneDraft]) {
    let context = making.context;
    let mut apart: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (at, lane) in lanes.iter().enumerate() {
        let globs: Vec<&str> = lane.owns.iter().flatten().map(|glob| glob.value.as_str()).collect();
        let Some(owned) = Ownership::new(&globs).ok().filter(|_| !globs.is_empty()) else { continue };
        let theirs = making.single_writers.iter().filter(|writer| writer.lane != at);
        let touched = theirs.filter(|writer| globs.contains(&writer.path.as_str()) || owned.allows(&writer.path));
        apart.extend(touched.map(|writer| (at, writer.lane)));
    }
    for (lane, writer) in apart {
        let writer_id = &context.lanes[writer].id;
        if lanes[lane].excludes.iter().any(|other| other.value == *writer_id) {
            continue;
        }
        let message =
            format!("lane {} owns files that {} alone writes", quoted(&context.lanes[lane].id), quoted(writer_id));
        context.warning(
            context.lanes[lane].at.clone(),
            message,
            "they run one after the other; leave the files to that lane",
        );
        if !making.before.ordered(lane, writer) {
            let span = lanes[lane].span;
            lanes[lane].excludes.push(super::source_text::At::new(writer_id.clone(), span));
        }
    }
}
