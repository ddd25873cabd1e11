//! The pure core: events into state, state into what is wanted next.
//!
//! [`RunState::apply`] folds facts; [`decide`] says what follows from them. Neither has a clock, randomness or I/O: the
//! same log gives the same state and the same wishes, which is why a resume is nothing special and why the simulator
//! can run thousands of phases a second. What carries the decisions out is not known here, nor where the log is kept.
//!
//! Begin with [`RunLoop`], which turns a batch of events into records and actions, and [`decide`].

#![allow(missing_docs, reason = "names that say it all; only Lanewright's other crates use it")]

mod action;
mod apply;
mod completion;
mod decide;
pub mod lane_log;
mod next_lane;
mod run_loop;
#[cfg(test)]
mod sample_plans;
mod state;

pub use action::Action;
pub use apply::Fault;
pub use completion::{Completion, Standing};
pub use decide::{Decisions, Finish, decide};
pub use next_lane::{Blocker, Claim, NextLane, blocker, contention, next_lane};
pub use run_loop::{RunLoop, RunLoopError, Step};
pub use state::agent::{AgentState, AgentStep, RestartFrom};
pub use state::gate::{FailedGate, Gate};
pub use state::lane::candidates::Unpickable;
pub use state::lane::merge::Rebuild;
pub use state::lane::proposal::ProposalState;
pub use state::lane::recovery::Recovery;
pub use state::lane::{LaneEnd, LaneState, approval_at};
pub use state::{RunState, StopState};
