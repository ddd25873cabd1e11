//! Where lanes waited for something that is no fault of Lanekeeper's, as the run log tells it.
//!
//! Whatever can be done is decided in the moment in which it can be done. So the time between the last word about a lane
//! and the plan of an attempt is one in which it waited: for a place, or for the moment of its retry.

use std::collections::{HashMap, VecDeque};

use crate::event::{Event, LaneStage, Record};
use crate::model::{AgentName, JobId, LaneId, Stage, Timestamp};

/// A lane waited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Which lane.
    pub lane: LaneId,
    /// Whose attempt had to wait; `None`: the lane itself.
    pub agent: Option<AgentName>,
    /// What for.
    pub reason: WaitReason,
    /// From when.
    pub from: Timestamp,
    /// Until when.
    pub until: Timestamp,
}

crate::model::word_enum! {
    /// What a lane waited for.
    WaitReason {
        /// A place among those that work, or in a pool.
        Place = "waiting for a place",
        /// The moment of a retry.
        Retry = "waiting for a retry",
        /// An answer.
        Person = "waiting for a person",
        /// The lanes before it in the merge queue.
        Merge = "waiting to be merged",
    }
}

/// Finds the waits of a run; [`WaitFold::apply`] takes all of its records, in their order.
#[derive(Debug, Default)]
pub struct WaitFold {
    dependencies: HashMap<LaneId, Vec<LaneId>>,
    /// When a lane could begin at the earliest.
    begun: Option<Timestamp>,
    lanes: HashMap<LaneId, LaneWaits>,
    /// The lanes that are to be merged, with the moment since which each stands there.
    queue: VecDeque<(LaneId, Timestamp)>,
}

#[derive(Debug, Default)]
struct LaneWaits {
    /// The last word about it.
    last: Option<Timestamp>,
    merged: Option<Timestamp>,
    not_before: Option<Timestamp>,
}

impl WaitFold {
    /// A run whose lanes wait for each other like this.
    pub fn new(dependencies: impl IntoIterator<Item = (LaneId, Vec<LaneId>)>) -> Self {
        Self { dependencies: dependencies.into_iter().collect(), ..Self::default() }
    }

    /// Takes a record in; the waits that ended with it.
    pub fn apply(&mut self, record: &Record) -> Vec<Wait> {
        let at = record.at;
        if let Event::RunStarted(_) | Event::RunResumed { .. } = record.event {
            self.begun = Some(at);
        }
        let Some(lane) = record.event.lane() else { return Vec::new() };
        let mut waits = self.ended(lane, &record.event, at);
        waits.extend(self.queued(lane, &record.event, at));
        self.note(lane, &record.event, at);
        waits.retain(|wait| wait.from < wait.until);
        waits
    }

    /// What the lane itself has waited for until now.
    fn ended(&self, lane: &LaneId, event: &Event, at: Timestamp) -> Vec<Wait> {
        let known = self.lanes.get(lane);
        let wait = |agent: Option<&AgentName>, reason, from, until| Wait {
            lane: lane.clone(),
            agent: agent.cloned(),
            reason,
            from,
            until,
        };
        let last = known.and_then(|known| known.last);
        match event {
            Event::LaneMoved { from: LaneStage::Waiting, .. } => {
                self.ready(lane).map(|ready| wait(None, WaitReason::Place, ready, at)).into_iter().collect()
            }
            Event::GateAnswered { .. } => {
                last.map(|last| wait(None, WaitReason::Person, last, at)).into_iter().collect()
            }
            Event::JobPlanned { job } if job.is_attempt() => {
                let Some(last) = last else { return Vec::new() };
                let put_off = known.and_then(|known| known.not_before).map_or(last, |moment| moment.min(at).max(last));
                let agent = job.agent();
                vec![wait(agent, WaitReason::Retry, last, put_off), wait(agent, WaitReason::Place, put_off, at)]
            }
            _ => Vec::new(),
        }
    }

    /// Since when a lane could have begun: the run works, and what it depends on is merged.
    fn ready(&self, lane: &LaneId) -> Option<Timestamp> {
        let merged = self.dependencies.get(lane).into_iter().flatten();
        let merged = merged.filter_map(|lane| self.lanes.get(lane)?.merged);
        merged.chain(self.begun).max()
    }

    /// Whose turn it is to be merged now, and how long that lane stood in the queue.
    fn queued(&mut self, lane: &LaneId, event: &Event, at: Timestamp) -> Option<Wait> {
        let before = self.queue.front().map(|(first, _)| first.clone());
        match event {
            Event::CheckpointReached { checkpoint, .. }
                if checkpoint.stage == Stage::PrePr && self.queue.iter().all(|(queued, _)| queued != lane) =>
            {
                self.queue.push_back((lane.clone(), at));
            }
            Event::LaneMerged { .. }
            | Event::LaneFailed { .. }
            | Event::LaneBlocked { .. }
            | Event::LaneRolledBack { .. }
            | Event::LaneMoved { to: LaneStage::Implementation, .. } => {
                self.queue.retain(|(queued, _)| queued != lane);
            }
            _ => {}
        }
        let (first, since) = self.queue.front().filter(|(first, _)| Some(first) != before.as_ref())?;
        Some(Wait { lane: first.clone(), agent: None, reason: WaitReason::Merge, from: *since, until: at })
    }

    fn note(&mut self, lane: &LaneId, event: &Event, at: Timestamp) {
        let known = self.lanes.entry(lane.clone()).or_default();
        known.last = Some(at);
        match event {
            Event::LaneMerged { .. } => known.merged = Some(at),
            Event::RetryPlanned { not_before, .. } => known.not_before = Some(*not_before),
            Event::JobPlanned { job } if JobId::is_attempt(job) => known.not_before = None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RunOutcome;
    use crate::model::{Approval, Checkpoint, CheckpointStatus};
    use crate::view::testing::*;

    fn waits(story: &Story) -> Vec<(String, WaitReason, i64, i64)> {
        let mut fold = WaitFold::new([(lane("SL-2"), vec![lane("SL-1")])]);
        let all = story.records.iter().flat_map(|record| fold.apply(record));
        let second = |moment: Timestamp| moment.unix_millis() / 1000 - at(0).unix_millis() / 1000;
        all.map(|wait| (wait.lane.to_string(), wait.reason, second(wait.from), second(wait.until))).collect()
    }

    fn told(story: &Story, reason: WaitReason) -> Vec<(String, i64)> {
        let of = waits(story).into_iter().filter(|wait| wait.1 == reason);
        of.map(|(lane, _, from, until)| (lane, until - from)).collect()
    }

    #[test]
    fn an_attempt_waits_for_its_retry_and_then_for_a_place() {
        let second = attempt("SL-1", "engineer", 2);
        // The retry is put off by five seconds and planned after twelve.
        let story = Story::begun().opened("SL-1", 1).retried("SL-1", 1, 3).wait(11).job(&second);
        assert_eq!(told(&story, WaitReason::Retry), [("SL-1".to_owned(), 5)]);
        assert_eq!(told(&story, WaitReason::Place).last().map(|wait| wait.1), Some(7));
    }

    #[test]
    fn a_lane_is_ready_once_what_it_depends_on_is_merged() {
        let story = Story::begun().opened("SL-1", 1).merged("SL-1", 'd').wait(30).opened("SL-2", 1);
        let ready = told(&story, WaitReason::Place);
        assert!(ready.iter().any(|(lane, seconds)| lane == "SL-2" && (30..40).contains(seconds)), "{ready:?}");
    }

    #[test]
    fn a_lane_waits_for_those_before_it_in_the_merge_queue() {
        let queued = || Checkpoint::new(Stage::PrePr, CheckpointStatus::InProgress);
        let story = Story::begun().reached("SL-1", queued()).reached("SL-2", queued()).wait(20);
        let story = story.then(Event::LaneMerged { lane: lane("SL-1"), commit: commit('d'), onto: commit('a') });
        assert_eq!(told(&story, WaitReason::Merge), [("SL-2".to_owned(), 21)], "the first has nobody before it");
    }

    #[test]
    fn a_person_is_waited_for_until_the_answer() {
        let story = Story::begun().opened("SL-1", 1).wait(99).then(Event::GateAnswered {
            lane: lane("SL-1"),
            gate: Approval::Plan.into(),
            approved: true,
            message: String::new(),
        });
        assert_eq!(told(&story, WaitReason::Person), [("SL-1".to_owned(), 100)]);
    }

    #[test]
    fn a_run_that_ended_leaves_no_wait_open() {
        assert_eq!(waits(&Story::begun().finished(RunOutcome::Done, 0)), []);
    }
}
