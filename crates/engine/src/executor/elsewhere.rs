//! The door to lanes that work on a cluster: what is to be done for one, and whom to answer.

use lanewright_model::event::Incoming;
use lanewright_model::{CommitId, LaneId};
use lanewright_schedule::{Action, RunState};

use super::Executor;

/// Where lanes work that do not work here. It is given errands and answers each in its own time; no thread waits.
pub trait Elsewhere: Send + Sync {
    fn take(&self, errand: Errand, answer: Answer);

    /// The stop of the run was forced: every errand is answered soon, even if nothing is known. A lane whose errand ended
    /// without an end of its placement is left alone until a resume.
    fn stop_waiting(&self);
}

/// Takes what became known, and whether the errand is over.
pub(crate) type Answer = Box<dyn Fn(Vec<Incoming>, bool) + Send>;

#[derive(Debug, Clone)]
pub struct Errand {
    pub lane: LaneId,
    pub executor: String,
    pub number: u32,
    /// The last record of the lane's own log that the run log has.
    pub seen: u64,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
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
    /// Has what is known of a lane elsewhere removed, now that its work is where it belongs.
    pub(super) fn forget_elsewhere(&self, lane: &LaneId, number: u32) {
        let executor = self.plan.find(lane).and_then(|lane| self.plan.lane(lane).executor.clone());
        if let Some((elsewhere, executor)) = self.elsewhere.as_ref().zip(executor).filter(|_| number > 0) {
            let errand = Errand { lane: lane.clone(), executor, number, seen: 0, what: What::Forget };
            elsewhere.take(errand, Box::new(|_, _| ()));
        }
    }

    /// The errand that an action is; `None`: it is carried out here.
    pub(crate) fn errand(&self, action: &Action, state: &RunState) -> Option<Errand> {
        let (Action::PlaceLane(lane) | Action::FollowLane(lane) | Action::StopPlacement { lane, .. }) = *action else {
            return None;
        };
        let placement = state.lane(lane).placement();
        let current = placement.current()?;
        let what = match (action, &current.job) {
            (Action::StopPlacement { force, .. }, _) => What::Stop { force: *force },
            (Action::FollowLane(_), Some((offer, ticket))) => {
                What::Follow { offer: offer.clone(), ticket: ticket.clone() }
            }
            _ => What::Place,
        };
        let (lane, executor) = (self.plan.lane(lane).id.clone(), current.executor.clone());
        Some(Errand { lane, executor, number: placement.number(), seen: placement.seen(), what })
    }
}
