//! What a person can do next: the questions that wait, and the commands to type.

pub mod approvals;
pub mod commands;
pub mod escalation;
pub(crate) mod next_steps;
