//! What the forge of the simulated world says of open pull requests.

use lanewright_model::event::Event;
use lanewright_model::{ChecksState, CommitId, LaneIndex, PullRequestState, PullRequestStatus, Remark, ReviewState};
use lanewright_schedule::RunState;

use super::super::bugs::Bug;
use super::super::run::BY_HAND;
use super::World;

impl World {
    /// Reviewers make one remark after another, and then approve.
    pub(super) fn check_pull_requests(&mut self, state: &RunState) -> Vec<Event> {
        let mut events = Vec::new();
        for lane in self.plan.indices().filter(|lane| state.lane(*lane).is_followed()) {
            let (id, proposal) = (self.id(lane), state.lane(lane).proposal().clone());
            let remark = |number: u32| format!("comment:{id}/{number}");
            let open = (0..self.script.remarks(&id)).find(|number| !proposal.is_answered(&remark(*number)));
            let status = status(if self.merged_there.contains(&lane) {
                (PullRequestState::Merged, ReviewState::Approved)
            } else if open.is_some() {
                (PullRequestState::Open, ReviewState::ChangesRequested)
            } else {
                (PullRequestState::Open, ReviewState::Approved)
            });
            if proposal.status() != Some(&status) {
                events.push(Event::PullRequestChanged { lane: id.clone(), status });
            }
            if let Some(number) = open {
                let head = self.pushed_by_person(lane, number, state);
                let (by, text) = ("reviewer".to_owned(), "hm".to_owned());
                let remarks = vec![Remark { id: remark(number), by, path: None, line: None, text }];
                events.push(Event::FeedbackReceived { lane: id, head, remarks });
            }
        }
        let error = if self.dice.roll(4) == 0 { "HTTP 502" } else { "" };
        if !error.is_empty() {
            events.clear();
        }
        events.push(Event::PullRequestsChecked { error: error.to_owned() });
        events
    }

    /// What the lane's branch holds there, and from now on here.
    fn pushed_by_person(&mut self, lane: LaneIndex, number: u32, state: &RunState) -> CommitId {
        let own = state.lane(lane).head().cloned().unwrap();
        let piece = format!("{}{BY_HAND}pushed {number}", self.id(lane));
        let there = self.remote.get(&lane).cloned().unwrap_or_else(|| own.clone());
        if self.script.person_pushes(&self.id(lane), number) && !self.content(&there).contains(&piece) {
            let mut content = (*self.content(&there)).clone();
            content.insert(piece.clone());
            let commit = self.git.commit(&[&there], content);
            self.remote.insert(lane, commit);
            self.by_hand.entry(lane).or_default().insert(piece);
        }
        if self.bug == Some(Bug::PushOverwritten) {
            return own;
        }
        let head = self.remote.get(&lane).cloned().unwrap_or(own);
        self.lane_branches.insert(lane, head.clone());
        head
    }

    pub(super) fn merge_pull_request(&mut self, lane: LaneIndex, state: &RunState) -> Event {
        let id = self.id(lane);
        let left = (0..self.script.remarks(&id))
            .any(|number| !state.lane(lane).proposal().is_answered(&format!("comment:{id}/{number}")));
        if left {
            self.complain(format!("the pull request of {id} is merged before its reviewers approved it"));
        }
        if state.proposal_target(lane) != state.lane(lane).proposal().pull_request().unwrap().base {
            return self.open_pull_request(lane, state);
        }
        if self.dice.roll(3) == 0 {
            return Event::PullRequestRefused { lane: id, reason: "HTTP 405".to_owned() };
        }
        self.merged_there.insert(lane);
        Event::PullRequestChanged { lane: id, status: status((PullRequestState::Merged, ReviewState::Approved)) }
    }
}

fn status((state, review): (PullRequestState, ReviewState)) -> PullRequestStatus {
    let checks = ChecksState::Passed;
    PullRequestStatus { state, checks, review, retargeted: None, moved_to: None, failed: Vec::new(), unanswered: 0 }
}
