//! What a run's events mean for users and for other programs: one fold, [`RunHistory`], and views of it: the lines of a
//! running command, `status`, `list`, `logs`, the report in each format, `checkpoints.json` and `task.json`, the lanes as a
//! [`graph`], and the interface in the terminal ([`ui`]).
//!
//! Pure: it makes text and data of a history at a moment. Who reads the log, draws on the terminal or writes the file is
//! not known here, and nothing here decides what a run does.
//!
//! Begin with [`RunHistory`].

#![allow(missing_docs, reason = "names that say it all; only Lanewright's other crates use it")]

pub mod approvals;
pub mod changes;
pub mod checkpoints;
pub(crate) mod clock;
pub mod commands;
pub mod ending;
pub mod escalation;
mod eta;
mod findings;
pub mod graph;
pub mod header;
pub mod history;
mod interfaces;
pub mod lane_graph;
pub mod lane_page;
pub mod lane_row;
pub mod line;
mod next_steps;
pub mod notification;
pub mod pull_request;
pub mod report;
pub mod run_list;
pub mod snapshots;
pub mod styles;
pub mod summary;
pub mod table;
pub mod tasks;
pub(crate) mod times;
pub mod ui;

pub use history::RunHistory;
