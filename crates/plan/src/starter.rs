//! The prompts of the plan that `plan new` writes, which no agent can work with.

const BEFORE: &str = "Describe here what `";
const AFTER: &str = "` is to do, and how one sees that it is done.";

/// The prompt of the lane `name` before the user writes one.
pub fn starter_prompt(name: &str) -> String {
    format!("{BEFORE}{name}{AFTER}")
}

/// Whether a prompt is still the one of the starter.
pub(crate) fn is_starter_prompt(prompt: &str) -> bool {
    prompt.trim().strip_prefix(BEFORE).and_then(|rest| rest.strip_suffix(AFTER)).is_some()
}
