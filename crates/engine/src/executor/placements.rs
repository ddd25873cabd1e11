//! What the executor asks of lanes that work on clusters, and how it is answered.

use lanewright_model::event::Incoming;
use lanewright_model::{CommitId, LaneId};
use lanewright_schedule::{Action, RunState};

use super::Executor;

/// Where lanes work that do not work here. It takes tasks and answers each in its own time; no thread waits.
pub trait Placements: Send + Sync {
    fn take(&self, task: PlacementTask, answer: Answer);

    /// The stop of the run was forced: every task is answered soon, even if nothing is known. A lane whose task ended
    /// without an end of its placement is left alone until a resume.
    fn stop_waiting(&self);
}

/// Takes what became known, and whether the task is over.
pub(crate) type Answer = Box<dyn Fn(Vec<Incoming>, bool) + Send>;

#[derive(Debug, Clone)]
pub struct PlacementTask {
    pub lane: LaneId,
    pub executor: String,
    pub number: u32,
    /// The last record of the lane's own log that the run log has.
    pub seen: u64,
    pub operation: Operation,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Offer it, and have a job started.
    Place,
    Follow {
        offer: CommitId,
        ticket: String,
    },
    /// Have the job stopped; with `force` its work is cut off.
    Stop {
        force: bool,
    },
    /// Remove what its jobs left on the engine and its run on the exchange. No answer is awaited.
    Forget,
}

impl Executor {
    /// Has what engines and the exchange keep of a lane removed, now that its work is where it belongs.
    pub(super) fn forget_placement(&self, lane: &LaneId, number: u32) {
        let executor = self.plan.find(lane).and_then(|lane| self.plan.lane(lane).executor.clone());
        if let Some((placements, executor)) = self.placements.as_ref().zip(executor).filter(|_| number > 0) {
            let task = PlacementTask { lane: lane.clone(), executor, number, seen: 0, operation: Operation::Forget };
            placements.take(task, Box::new(|_, _| ()));
        }
    }

    /// The task that an action is; `None`: it is carried out here.
    pub(crate) fn placement_task(&self, action: &Action, state: &RunState) -> Option<PlacementTask> {
        let (Action::PlaceLane(lane) | Action::FollowLane(lane) | Action::StopPlacement { lane, .. }) = *action else {
            return None;
        };
        let placement = state.lane(lane).placement();
        let current = placement.current()?;
        let operation = match (action, &current.job) {
            (Action::StopPlacement { force, .. }, _) => Operation::Stop { force: *force },
            (Action::FollowLane(_), Some((offer, ticket))) => {
                Operation::Follow { offer: offer.clone(), ticket: ticket.clone() }
            }
            _ => Operation::Place,
        };
        let (lane, executor) = (self.plan.lane(lane).id.clone(), current.executor.clone());
        Some(PlacementTask { lane, executor, number: placement.number(), seen: placement.seen(), operation })
    }
}
