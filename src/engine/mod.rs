//! The engine: owns the state and the inbox, journals, and has actions carried out.

mod clock;
pub mod crash;
mod driver;
pub mod mirror;
pub mod ports;
pub mod reconcile;
mod signals;
pub mod spine;

pub use clock::RunClock;
pub use driver::{DriverError, Sight, drive};

use crate::event::{Event, SnapshotReason, StopReason};
use crate::schedule::RunState;
use crate::store::Request;

/// What a request of another command means as an event.
pub fn requested(request: Request) -> Event {
    match request {
        Request::Stop { lane, force } => Event::StopRequested { lane, reason: StopReason::Request, force },
        Request::Record { lane, agent, commit, reference } => {
            Event::SnapshotTaken { lane, agent, reason: SnapshotReason::Request, commit, reference }
        }
        Request::Answer { lane, gate, approved, message } => Event::GateAnswered { lane, gate, approved, message },
    }
}

/// Whether the run has the lane, and the lane the agent, that a request is about.
pub fn names_what_is_known(state: &RunState, event: &Event) -> bool {
    let Some(lane) = event.lane() else { return true };
    let Some(index) = state.find(lane) else { return false };
    match event {
        Event::SnapshotTaken { agent: Some(agent), .. } => {
            state.plan().lane(index).agents.iter().any(|known| known.name == *agent)
        }
        _ => true,
    }
}
