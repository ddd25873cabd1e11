//! What a run's events mean for users and for other programs: one fold, [`RunHistory`], and views of it.

pub(crate) mod approvals;
pub(crate) use lanewright_model::cells;
pub(crate) mod changes;
pub(crate) mod checkpoints;
pub(crate) mod clock;
pub(crate) mod commands;
pub(crate) mod ending;
pub(crate) mod escalation;
mod eta;
mod findings;
pub(crate) mod header;
pub(crate) mod history;
mod interfaces;
pub mod lane_graph;
pub(crate) mod lane_page;
pub(crate) mod lane_row;
pub(crate) mod line;
mod next_steps;
pub(crate) mod notification;
pub(crate) mod pull_request;
pub(crate) mod report;
pub(crate) mod run_list;
pub(crate) mod snapshots;
pub(crate) mod styles;
pub(crate) mod summary;
pub(crate) mod table;
pub(crate) mod tasks;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod times;

pub use history::RunHistory;
