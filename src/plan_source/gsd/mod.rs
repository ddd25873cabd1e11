//! The plans of a GSD phase (SPEC §3.2): each file a lane, each `<task>` a task.

use super::Source;
use super::draft::PlanDraft;
use super::faults::Faults;

/// Whether a file that stands alone is a GSD plan.
pub(super) fn is_plan(_path: &str, _text: &str) -> bool {
    false
}

/// Reads all plans of a phase, or one.
pub(super) fn plan<'a>(_source: &Source<'_>, _faults: &'a Faults<'a>) -> Option<PlanDraft> {
    None
}

/// Whether a file of a phase's directory is one of its plans.
pub fn is_plan_name(name: &str) -> bool {
    name.ends_with("PLAN.md")
}
