//! What happens to each plan, one after another.

mod chain;
mod existing_run;
pub(super) mod phases;
pub(super) mod planned;
mod run_intent;
