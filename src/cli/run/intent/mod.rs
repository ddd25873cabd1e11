//! What is asked for: the request, the plans that a name means, and the plan of a run, from its file or as it was pinned.

mod phase_sequence;
mod pinned_plan;
mod places;
mod plan_changes;
mod plan_file;
mod prompts;
pub(super) mod replaced_parts;
mod request;
mod required_gates;

pub(crate) use phase_sequence::{phase_sequence, single_plan};
pub(super) use pinned_plan::{Pinned, Pinning, plan_text};
pub(super) use plan_file::PlanFile;
pub(crate) use plan_file::{PlanText, invalid, report};
pub(crate) use request::{Adoption, Replacement, ResumeReach, RunRequest};
pub(super) use request::{Alone, Consent, follow};
