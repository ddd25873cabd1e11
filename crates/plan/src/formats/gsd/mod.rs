//! The plans of a GSD phase (SPEC §3.2): each file a lane, each `<task>` a task.
//!
//! `plan_file` and `header` read the front matter, `tokens` the marks that give the body its shape, `tasks` and `task` its
//! tasks, `verify` their gates, `body` the text around them; `prompt` joins the texts for agents and people. `names`
//! and `depends` say which plan is resolve. Real files break every rule of the format; what can be read is, with a warning.

mod body;
mod context;
mod depends;
mod detect;
mod header;
mod lane;
mod must_haves;
mod names;
mod plan_file;
mod prompt;
mod task;
mod tasks;
mod tokens;
mod user_setup;
mod verify;

use std::cell::Cell;

use lanewright_model::LaneId;
use lanewright_model::plan::{SharedFiles, Skipped};

use crate::Source;
use crate::command::root;
use crate::draft::{Overlaps, PlanDraft};
use crate::faults::{Faults, quoted};
use crate::ids::as_id;
use crate::source_text::{At, File};
use depends::PlanIndex;
use names::{file_and_directory, summary_of};
use plan_file::PlanFile;

pub use context::context_files;
pub(super) use detect::is_plan;
pub use names::{PlanBeside, is_plan_name, plan_is_done, plans_beside};

const NAMELESS_PHASE: &str = "phase";

pub(super) fn plan<'a>(source: &Source<'_>, faults: &'a Faults<'a>) -> Option<PlanDraft> {
    let files = faults.source.files();
    let names: Vec<&str> = files.iter().map(|file| file_and_directory(file.path).0).collect();
    let ids = names::lane_ids(&names);
    let mut draft = PlanDraft { overlaps: Overlaps::Shared(SharedFiles::Exclude), ..PlanDraft::default() };
    let mut plans = Vec::with_capacity(files.len());
    for (file, id) in files.iter().zip(ids) {
        match skip(file, &id, source) {
            Some(reason) => skip_plan(*file, id, reason, &mut draft, faults),
            None => plans.push(plan_file::open(*file, id, faults)),
        }
    }
    if plans.is_empty() {
        let place = files.first().map(|file| file.span(0..0)).unwrap_or_default();
        faults.error_with(place, all_done(&draft), "run them again with `--redo`");
        return None;
    }
    leave_out_empty(&mut plans, &mut draft, faults);
    let first = plans.first()?;
    draft.phase = Some(phase(first));
    draft.title = title(first);
    draft.is_partial = files.len() == 1 || !draft.skipped.is_empty();
    let done = done(source, &plans, &names);
    let known = PlanIndex::new(&plans, &done);
    let budget = Cell::new(prompt::REPEATED_TEXT);
    let owned: Vec<&str> = plans.iter().flat_map(|plan| &plan.header.files).map(|file| file.value.as_str()).collect();
    let root = root(files, &owned);
    let moved = Cell::new(None);
    for plan in &plans {
        if let Some(mut lane) = lane::lane(plan, root, &budget, &moved, faults) {
            lane.depends_on = known.lanes(plan, files.len() == 1, faults);
            draft.lanes.push(lane);
        }
    }
    if let Some((span, root)) = moved.get().zip(root) {
        let message = format!("commands go to {}, which is taken for the root of the worktree", quoted(root));
        faults.warning(span, message, "leave the `cd` out: gates run in the lane's worktree");
    }
    Some(draft)
}

fn skip(file: &File<'_>, id: &str, source: &Source<'_>) -> Option<String> {
    let unfinished = source.options.unfinished.iter().any(|lane| lane == id);
    if source.options.redo || unfinished {
        return None;
    }
    let (name, _) = file_and_directory(file.path);
    let summary = summary_of(name, id, source.beside)?;
    Some(format!("{summary} says that it is done"))
}

fn skip_plan(file: File<'_>, id: String, reason: String, draft: &mut PlanDraft, faults: &Faults<'_>) {
    // A plan that does not run needs no diagnostics.
    let silent = Faults::new(crate::source_text::SourceText::new(file.path, file.text));
    let own = silent.source.files().first().copied();
    let name = own.map(|file| plan_file::open(file, id.clone(), &silent)).and_then(|plan| plan.name());
    match LaneId::new(&id) {
        Ok(lane) => draft.skipped.push(Skipped { lane, name: name.map(|name| name.value), reason }),
        Err(error) => faults.error(file.span(0..0), format!("{} cannot name a lane: {error}", quoted(&id))),
    }
}

fn all_done(draft: &PlanDraft) -> String {
    match draft.skipped.as_slice() {
        [only] => format!("this plan is done: {}", only.reason),
        all => format!("all {} plans of this phase are done: each has a SUMMARY beside it", all.len()),
    }
}

/// A file without text is no plan, but the others are; where there is no other it is at fault.
fn leave_out_empty(plans: &mut Vec<PlanFile<'_>>, draft: &mut PlanDraft, faults: &Faults<'_>) {
    let all = plans.iter().all(PlanFile::is_empty);
    let (empty, full): (Vec<_>, Vec<_>) = std::mem::take(plans).into_iter().partition(PlanFile::is_empty);
    *plans = full;
    for plan in empty {
        let span = plan.file.span(0..0);
        let message = format!("the plan {} has no text to work on", quoted(&plan.id));
        let help = "write an objective and tasks below its front matter";
        if all {
            faults.error_with(span, message, help);
        } else {
            faults.warning(span, message, help);
            let lane = LaneId::new(&plan.id).ok();
            let reason = "it has no text to work on".to_owned();
            draft.skipped.extend(lane.map(|lane| Skipped { lane, name: None, reason }));
        }
    }
}

/// The names of plans in the same directory that are done, whether they were asked for or not.
fn done(source: &Source<'_>, plans: &[PlanFile<'_>], asked: &[&str]) -> Vec<String> {
    let runs = |name: &str| plans.iter().any(|plan| file_and_directory(plan.file.path).0 == name);
    let others = source.beside.iter().map(String::as_str).filter(|name| is_plan_name(name));
    let candidates = asked.iter().copied().chain(others.clone()).filter(|name| !runs(name));
    let is_done = |name: &&str| {
        let id = names::stem(name).unwrap_or_default();
        let short = names::canonical(&id).unwrap_or(&id);
        summary_of(name, short, source.beside).is_some()
    };
    let mut done: Vec<String> = candidates.filter(is_done).map(str::to_owned).collect();
    // A plan may be gone, and its SUMMARY still there.
    let summaries = source.beside.iter().filter_map(|name| name.strip_suffix("-SUMMARY.md"));
    // `04-SUMMARY.md` beside `04-01-PLAN.md` sums up the phase.
    let of_phase = |stem: &&str| {
        let own = format!("{stem}-");
        !stem.contains('-') && asked.iter().copied().chain(others.clone()).any(|name| name.starts_with(&own))
    };
    done.extend(
        summaries.filter(|stem| !of_phase(stem)).map(|stem| format!("{stem}-PLAN.md")).filter(|name| !runs(name)),
    );
    done
}

/// The phase's id: that of its directory, else what the first plan says.
fn phase(first: &PlanFile<'_>) -> At<String> {
    let (_, directory) = file_and_directory(first.file.path);
    let span = first.file.span(0..0);
    if let Some(id) = directory.and_then(as_id) {
        return At::new(id, span);
    }
    let declared = first.header.phase.as_ref();
    let id = declared.and_then(|phase| Some(At::new(as_id(&phase.value)?, phase.span)));
    id.unwrap_or_else(|| At::new(NAMELESS_PHASE.to_owned(), span))
}

/// What the phase is called: by its directory, else by its first plan.
fn title(first: &PlanFile<'_>) -> Option<At<String>> {
    let (_, directory) = file_and_directory(first.file.path);
    let slug = directory.or(first.header.phase.as_ref().map(|phase| phase.value.as_str()));
    let title = slug.and_then(names::title_of).map(|title| lanewright_model::text::headline(&title, 100));
    title.map(|title| At::new(title, first.file.span(0..0))).or_else(|| first.name())
}
