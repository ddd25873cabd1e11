//! Phase plans in Markdown (SPEC §3.3): lanes, their order, and interface freeze gates.

use super::Source;
use super::draft::PlanDraft;
use super::faults::Faults;

/// Whether the text is a phase plan with lanes.
pub(super) fn is_plan(_text: &str) -> bool {
    false
}

/// Reads a phase plan.
pub(super) fn plan<'a>(_source: &Source<'_>, _faults: &'a Faults<'a>) -> Option<PlanDraft> {
    None
}
