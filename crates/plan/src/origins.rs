//! Where a plan says what became of it: each lane, what it waits for, and its gates, with file and line.

use std::fmt;

use lanewright_model::safe_text::visible_line;
use lanewright_model::text::headline;
use serde::Serialize;

use super::draft::{LaneDraft, PlanDraft};
use super::faults::Faults;
use super::source_text::Span;

const MAX_TEXT: usize = 120;

/// What follows from a line of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Origin {
    pub lane: String,
    /// `lane`, `after US1`, `gate npm test`.
    pub what: String,
    /// The file and the line.
    pub place: String,
    /// What the line says.
    pub text: String,
}

/// `tasks.md:52: US1 after FOUND: - **User Story 1**: Depends on Foundational`
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lane, what, place, text } = self;
        write!(f, "{place}: {} {}: {}", visible_line(lane), visible_line(what), visible_line(text))
    }
}

pub(super) fn origins(draft: &PlanDraft, faults: &Faults<'_>) -> Vec<Origin> {
    draft.lanes.iter().flat_map(|lane| of_lane(lane, faults)).collect()
}

fn of_lane(lane: &LaneDraft, faults: &Faults<'_>) -> Vec<Origin> {
    let id = lane.id.as_ref().map_or("", |id| &id.value);
    let origin = |what: String, span: Span| {
        let text = headline(faults.source.line_of(span), MAX_TEXT);
        Origin { lane: id.to_owned(), what, place: faults.source.place(span), text }
    };
    let mut found = vec![origin("is a lane".to_owned(), lane.span)];
    let own = lane.span;
    let after = lane.depends_on.iter().chain(lane.also_after.iter().map(|(on, _)| on));
    found.extend(after.map(|on| {
        let by_place = if on.span == own { ", by its place" } else { "" };
        origin(format!("after {}{by_place}", on.value), on.span)
    }));
    found.extend(lane.excludes.iter().map(|other| origin(format!("kept apart from {}", other.value), other.span)));
    found.extend(
        lane.gate_places.iter().map(|(gate, span)| origin(format!("gate `{}`", headline(gate, MAX_TEXT)), *span)),
    );
    for task in lane.tasks.iter().flatten() {
        for gate in &task.verify {
            let known = lane.gate_places.iter().any(|(known, _)| *known == gate.to_string());
            found.extend(
                (!known).then(|| origin(format!("gate `{}`", headline(&gate.to_string(), MAX_TEXT)), task.span)),
            );
        }
    }
    found
}
