//! The task lists of the changes of OpenSpec: each change a lane, each section of its list a task.
//!
//! The format has no order within a change; its sections build on each other. Changes run side by side unless their
//! proposals name the same code or capability, or each other.

mod change;
mod proposal;
mod relations;
mod sections;
mod ticks;

use lanewright_model::LaneId;
use lanewright_model::plan::Skipped;

use super::shared::commands_in_text::{ASK_PERSON, manual_left_out};
use super::shared::documents;
use crate::Source;
use crate::draft::{Overlaps, PlanDraft};
use crate::faults::{Faults, quoted};
use crate::ids::as_id;
use crate::source_text::At;
use change::Change;
pub(crate) use ticks::ticked;

/// The phase of a plan of several changes.
const PHASE: &str = "openspec";

/// What to do about a list that is a table or prose.
const NO_BOXES: &str = "write what is to be done as `- [ ] …`";

/// How many tasks a plan has at most.
const MAX_TASKS: usize = 1000;

/// Whether the file is one of this format's, by its path: `openspec/changes/NAME/tasks.md`.
pub(super) fn is_plan(path: &str, _text: &str) -> bool {
    let mut parts = path.rsplit(['/', '\\']);
    parts.next() == Some("tasks.md") && {
        let above: Vec<&str> = parts.by_ref().take(4).collect();
        let below_changes = |at: usize| above.get(at) == Some(&"changes") && above.get(at + 1) == Some(&PHASE);
        below_changes(1) || above.get(1) == Some(&"archive") && below_changes(2)
    }
}

pub(super) fn plan(source: &Source<'_>, faults: &Faults<'_>) -> Option<PlanDraft> {
    let files = faults.source.files();
    let changes: Vec<Change<'_>> = files.iter().map(|file| Change::new(*file, source)).collect();
    let first = changes.first()?;
    let tasks: usize = changes.iter().map(Change::count).sum();
    if tasks > MAX_TASKS {
        let message = format!("a plan has at most {MAX_TASKS} tasks, and this one has {tasks}");
        faults.error_with(first.start(), message, "run the changes one by one, or split the list");
        return None;
    }
    let mut draft = PlanDraft { overlaps: Overlaps::AUTO, ..PlanDraft::default() };
    let mut open = Vec::new();
    for change in &changes {
        match change.reason_to_skip(source) {
            None => open.push(change),
            Some(_) if change.is_archived() => {
                let message = format!("the change {} is archived, so it is done", quoted(&change.id));
                faults.error_with(
                    change.start(),
                    message,
                    "name a change below `openspec/changes`; --redo runs this one",
                );
            }
            Some(reason) => {
                if change.is_without_boxes() && changes.len() > 1 {
                    faults.warning(change.start(), format!("the change {} {reason}", quoted(&change.id)), NO_BOXES);
                }
                draft.skipped.extend(skipped(change, reason));
            }
        }
    }
    let has_manual = changes.iter().any(|change| change.left_out().next().is_some());
    if open.is_empty() {
        let message = match draft.skipped.as_slice() {
            [] => return None,
            [only] => format!("the change {} {}", quoted(only.lane.as_str()), only.reason),
            all => format!("none of the {} changes has anything to do", all.len()),
        };
        let help = if changes.iter().any(Change::is_without_boxes) {
            NO_BOXES
        } else if has_manual {
            ASK_PERSON
        } else {
            "archive what is done: `openspec archive NAME`; --redo runs it again"
        };
        faults.error_with(first.start(), message, help);
        return None;
    }
    let id = if files.len() == 1 { first.id.clone() } else { PHASE.to_owned() };
    draft.phase = Some(At::new(id, first.start()));
    draft.title = if files.len() == 1 { first.title() } else { None };
    let budget = documents::budget();
    draft.lanes = open.iter().map(|change| change.lane(source, &budget, faults)).collect();
    relations::relate(&open, &mut draft.lanes);
    draft.skipped.extend(open.iter().filter_map(|change| manual_left_out(&change.id, change.left_out())));
    Some(draft)
}

fn skipped(change: &Change<'_>, reason: &str) -> Option<Skipped> {
    let name = change.title().map(|title| title.value);
    Some(Skipped { lane: LaneId::new(&change.id).ok()?, name, reason: reason.to_owned() })
}

/// The id of the change whose list is at `path`: its directory.
fn id_of(path: &str) -> String {
    let directory = path.rsplit(['/', '\\']).nth(1).unwrap_or_default();
    as_id(directory).unwrap_or_else(|| "change".to_owned())
}

#[cfg(test)]
mod tests;
