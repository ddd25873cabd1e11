//! What a run's events mean for users and for other programs: one fold, [`RunHistory`] in [`history`], and views of it.
//!
//! - [`status`]: what a terminal shows, of a run, a lane or all runs; [`answers`]: what a person can do about it;
//! - [`messages`]: the line of an event, a notification, a pull request;
//! - [`report`]: the execution report in each format; [`graph`]: the lanes as a picture;
//! - [`contract`]: `checkpoints.json` and `task.json`; [`ui`]: the interface in the terminal.
//!
//! Pure: it makes text and data of a history at a moment. Who reads the log, draws on the terminal or writes the file is
//! not known here, and nothing here decides what a run does.
//!
//! Begin with [`RunHistory`].

#![allow(missing_docs, reason = "names that say it all; only Lanewright's other crates use it")]

pub mod answers;
pub mod contract;
pub mod graph;
pub mod history;
pub mod messages;
pub mod report;
pub mod status;
pub mod ui;

pub use history::RunHistory;
