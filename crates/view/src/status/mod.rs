//! What a terminal shows of runs and lanes: `status`, `list`, the end of a run, and what works while one is in progress.

mod context;
pub mod ending;
mod eta;
pub(crate) mod findings;
pub mod header;
pub(crate) mod interfaces;
mod json;
pub mod lane_graph;
pub mod lane_page;
pub mod lane_row;
pub mod run_list;
pub(crate) mod run_state;
pub mod styles;
pub mod summary;
pub mod table;

pub use json::{LaneDetails, RunStatus};
