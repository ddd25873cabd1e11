//! The pure core: events into state, state into what is wanted next.
//!
//! [`RunState::apply`] folds facts; [`decide`] says what follows from them. Neither has a clock, randomness or I/O: the
//! same log gives the same state and the same wishes, which is why a resume is nothing special and why the simulator
//! can run thousands of phases a second.

mod action;
mod agent_machine;
mod apply;
mod apply_agent;
mod completion;
mod decide;
mod decide_agent;
mod decide_lane;
mod decide_merge;
mod decide_proposal;
mod gate;
mod in_vain;
mod judge;
mod lane_machine;
mod lists;
mod mending;
mod next_lane;
mod people;
mod proposal;
mod soon;
mod state;

pub use action::Action;
pub use agent_machine::AgentPhase;
pub use apply::Fault;
pub use completion::{Completion, Standing};
pub use decide::{Decisions, Finish, decide};
pub use gate::{FailedGate, Gate};
pub use next_lane::{Claim, Hindrance, NextLane, hindrance, next_lane, rivalry};
pub use people::approval_at;
pub use state::{AgentState, AgentStep, LaneEnd, LaneState, Rebuild, RestartFrom, RunState, StopState};
