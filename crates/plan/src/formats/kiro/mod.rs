//! The task lists of the specifications of Kiro, and of programs that write the same files.
//!
//! A specification is a lane, and its numbered boxes are its tasks, one after the other as Kiro does them. Where the list
//! says what may be done at the same time, by its graph or by `(P)`, such tasks are lanes of their own.

mod headings;
mod lanes;
mod list;
mod prompt;
mod spec;
mod ticks;
mod waves;

use std::sync::LazyLock;

use lanewright_model::LaneId;
use lanewright_model::plan::Skipped;
use regex::Regex;

use super::shared::commands_in_text::{ASK_PERSON, manual_left_out};
use super::shared::documents;
use crate::Source;
use crate::draft::{Overlaps, PlanDraft};
use crate::faults::{Faults, quoted};
use crate::ids::as_id;
use crate::source_text::At;
use spec::Spec;
pub(crate) use ticks::ticked;

/// The phase of a plan of several specifications.
const PHASE: &str = "kiro";

/// How many tasks a plan has at most.
const MAX_TASKS: usize = 1000;

static NUMBERED: LazyLock<Regex> = pattern!(r"(?m)^\s*[-*] \[[ xX~-]\]\*? \d+(?:\.\d+)*\.? ");
static REQUIREMENTS: LazyLock<Regex> = pattern!(r"(?m)^\s*[-*] _(?:Requirements?|需求|要件)\s*[:：]");

/// Whether the file is one of this format's: `.kiro/specs/NAME/tasks.md`, or a list elsewhere that refers to requirements as
/// Kiro does.
pub(super) fn is_plan(path: &str, text: &str) -> bool {
    let mut parts = path.rsplit(['/', '\\']);
    let is_list = parts.next() == Some("tasks.md");
    let is_in_place = parts.nth(1) == Some("specs") && parts.next() == Some(".kiro");
    is_list && (is_in_place || NUMBERED.is_match(text) && REQUIREMENTS.is_match(text))
}

pub(super) fn plan(source: &Source<'_>, faults: &Faults<'_>) -> Option<PlanDraft> {
    let files = faults.source.files();
    let specs: Vec<Spec<'_>> = files.iter().map(|file| Spec::new(*file, source)).collect();
    let first = specs.first()?;
    let tasks: usize = specs.iter().map(|spec| spec.count()).sum();
    if tasks > MAX_TASKS {
        let message = format!("a plan has at most {MAX_TASKS} tasks, and this one has {tasks}");
        faults.error_with(first.start(), message, "run the specifications one by one, or split the list");
        return None;
    }
    let mut draft = PlanDraft { overlaps: Overlaps::AUTO, ..PlanDraft::default() };
    let budget = documents::budget();
    for spec in &specs {
        spec.warn(source, faults);
        let lanes = spec.lanes(source, &budget, faults);
        if lanes.is_empty() {
            if spec.is_without_boxes() && specs.len() > 1 {
                let message = format!("the specification {} {}", quoted(&spec.id), spec.why_empty());
                faults.warning(spec.start(), message, "write what is to be done as `- [ ] 1. …`");
            }
            draft.skipped.extend(skipped(&spec.id, spec.why_empty()));
        }
        draft.skipped.extend(spec.optional().and_then(|(id, reason)| skipped(&id, &reason)));
        draft.skipped.extend(manual_left_out(&spec.id, spec.left_out()));
        draft.lanes.extend(lanes);
    }
    if draft.lanes.is_empty() {
        let message = match specs.as_slice() {
            [only] => format!("the specification {} {}", quoted(&only.id), only.why_empty()),
            all => format!("none of the {} specifications has anything to do", all.len()),
        };
        let help = match specs.iter().any(|spec| spec.left_out().next().is_some()) {
            true => ASK_PERSON,
            false => "open a box to have its task done; --redo runs all again",
        };
        faults.error_with(first.start(), message, help);
        return None;
    }
    let id = if files.len() == 1 { first.id.clone() } else { PHASE.to_owned() };
    draft.phase = Some(At::new(id, first.start()));
    Some(draft)
}

fn skipped(id: &str, reason: &str) -> Option<Skipped> {
    Some(Skipped { lane: LaneId::new(id).ok()?, name: None, reason: reason.to_owned() })
}

/// The id of the specification whose list is at `path`: its directory.
fn id_of(path: &str) -> String {
    let directory = path.rsplit(['/', '\\']).nth(1).unwrap_or_default();
    as_id(directory).unwrap_or_else(|| "spec".to_owned())
}

#[cfg(test)]
mod tests;
