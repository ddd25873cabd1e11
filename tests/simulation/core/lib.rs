//! Lanewright's scheduler and what it needs, compiled once more for the simulator.

#![allow(dead_code, reason = "other modules of Lanewright use the rest")]

pub use lanewright_model as model;
pub use lanewright_model::event;
pub use sources::*;

#[path = "../../../src"]
mod sources {
    pub mod diagnose;
    pub mod schedule;

    pub mod engine {
        pub mod run_loop;
    }

    pub mod placement {
        pub mod lane_log;
    }
}
