//! What is asked for: the request, the plans that a name means, and the plan of a run, from its file or as it was pinned.

pub(super) mod phase_sequence;
pub(super) mod pinned_plan;
mod plan_changes;
pub(super) mod plan_file;
mod prompts;
pub(super) mod replaced_parts;
pub(super) mod request;
