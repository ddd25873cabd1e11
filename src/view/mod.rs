//! What every reporter shows: folds over events, without state of their own.

pub mod cells;
pub mod checkpoint_fold;
pub mod commands;
pub mod escalation;
pub mod failures;
mod interfaces;
mod lane_fold;
pub mod lane_view;
pub mod line;
pub mod next_steps;
pub mod pull_request;
pub mod report;
pub mod run_view;
pub mod snapshots;
pub mod styles;
pub mod summary;
mod table;
pub mod task_fold;
#[cfg(test)]
pub(crate) mod testing;
pub mod waits;

pub use checkpoint_fold::{CheckpointFold, RunPlaces};
pub use interfaces::InterfaceView;
pub use lane_view::{AgentView, Ending, JobView, LaneState, LaneView, RetryView, SnapshotView, WaitingFor};
pub use report::ExecutionReport;
pub use run_view::{RunFacts, RunView};
pub use styles::{Styles, Tone};
pub use summary::{Summary, SummaryContext};
pub use task_fold::TaskFold;
