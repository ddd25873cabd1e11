//! Marks in the plans of other programs what is done: in each text exactly the bytes that say so change.

use std::borrow::Cow;

use lanewright_model::PlanFormat;
pub use lanewright_model::Tick;

use super::formats::{backlog, beads, kiro, openspec, speckit, taskmaster, without_ticks};

/// The text of the file afterwards; `None` where nothing of it changes.
pub fn ticked(tick: &Tick<'_>) -> Option<String> {
    let changed = match tick.format {
        PlanFormat::SpecKit => Some(speckit::ticked(tick)),
        PlanFormat::OpenSpec => openspec::ticked(tick),
        PlanFormat::TaskMaster => taskmaster::ticked(tick),
        PlanFormat::Kiro => kiro::ticked(tick),
        PlanFormat::Backlog => backlog::ticked(tick),
        _ => None,
    }?;
    (changed != tick.text).then_some(changed)
}

/// The text of a plan's file without the marks of what is done, by which plans are compared.
pub(super) fn unticked(format: PlanFormat, text: &str) -> Cow<'_, str> {
    match format {
        PlanFormat::SpecKit | PlanFormat::OpenSpec | PlanFormat::Kiro => without_ticks(text).into(),
        PlanFormat::TaskMaster => taskmaster::unticked(text),
        PlanFormat::Backlog => backlog::unticked(text).into(),
        PlanFormat::Beads => beads::unticked(text),
        _ => text.into(),
    }
}

/// The program and its arguments that record that a lane is done where the plan's files are only an export of another store.
pub fn recording_command(format: PlanFormat, lane: &str) -> Option<Vec<String>> {
    match format {
        PlanFormat::Beads => Some(beads::recording_command(lane)),
        _ => None,
    }
}
