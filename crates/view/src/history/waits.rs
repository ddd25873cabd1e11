//! When lanes waited for something other than Lanewright.
//!
//! Everything that can start is started at once. So the time between the last event of a lane and the plan of an attempt is
//! one in which it waited: for capacity, for its runner, or for the moment of its retry.

use std::collections::VecDeque;

use lanewright_model::event::{Event, LaneStage};
use lanewright_model::{AgentName, LaneId, Stage, Timestamp};

use super::lane::LaneHistory;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    pub lane: LaneId,
    /// Whose attempt had to wait; `None`: the lane itself.
    pub agent: Option<AgentName>,
    pub reason: WaitReason,
    pub from: Timestamp,
    pub until: Timestamp,
}

lanewright_model::word_enum! {
    /// Why a lane waits.
    WaitReason {
        /// Capacity: the number of agents, or a pool.
        Place = "waiting for a place",
        /// The moment of a retry.
        Retry = "waiting for a retry",
        /// The end of a runner's pause.
        Runner = "waiting for a runner",
        /// An answer of the user.
        Person = "waiting for a person",
        /// A job of a cluster that begins to work on it.
        Executor = "waiting for an executor",
        /// The lanes before it in the merge queue.
        Merge = "waiting to be merged",
    }
}

/// What `lane`, before the event is applied, has waited for until now. `ready`: since when it could have begun; `pause`: since when
/// and until when the runner for which it waited last was paused; `is_paused`: it is until now.
pub(super) fn ended_waits(
    event: &Event,
    lane: &LaneHistory,
    ready: Option<Timestamp>,
    (pause, is_paused): (Option<(Timestamp, Timestamp)>, bool),
    until: Timestamp,
) -> Vec<Wait> {
    let wait = |agent: Option<&AgentName>, reason, from: Option<Timestamp>, until| {
        Some(Wait { lane: lane.id.clone(), agent: agent.cloned(), reason, from: from?, until })
    };
    // Before the pause of its runner, and once that is over, it waits for a place.
    let paused = |since: Timestamp| {
        let (from, to) = pause.unwrap_or((since, since));
        (from.min(until).max(since), to.min(until).max(since))
    };
    let waits_of = |agent: Option<&AgentName>, ready: Timestamp| {
        let (from, to) = paused(ready);
        [
            wait(agent, WaitReason::Place, Some(ready), from),
            wait(agent, WaitReason::Runner, Some(from), to),
            wait(agent, WaitReason::Place, Some(to), until),
        ]
    };
    let retry = |last: Timestamp| lane.delayed_until.map_or(last, |moment| moment.min(until).max(last));
    let waits = match event {
        Event::LaneMoved { from: LaneStage::Waiting, .. } => ready.map(|ready| waits_of(None, ready).to_vec()),
        Event::LaneClaimed { .. } | Event::PlacementEnded { .. } => {
            let awaited = lane.elsewhere().filter(|placement| placement.claimed.is_none());
            Some(vec![wait(None, WaitReason::Executor, awaited.map(|placement| placement.offered), until)])
        }
        Event::GateAnswered { .. } => Some(vec![wait(None, WaitReason::Person, lane.last, until)]),
        Event::JobPlanned { job, .. } if job.is_attempt() => lane.last.map(|last| {
            let retried = [wait(job.agent(), WaitReason::Retry, Some(last), retry(last))];
            [&retried[..], &waits_of(job.agent(), retry(last))].concat()
        }),
        Event::StopRequested { .. }
        | Event::LaneFailed { .. }
        | Event::LaneBlocked { .. }
        | Event::LaneSkipped { .. }
        | Event::LaneRolledBack { .. }
            if is_paused =>
        {
            lane.last.map(|last| {
                let (from, to) = paused(retry(last));
                vec![wait(None, WaitReason::Runner, Some(from), to)]
            })
        }
        _ => None,
    };
    waits.into_iter().flatten().flatten().collect()
}

/// The lanes that are to be merged, each with the moment since which it is queued.
#[derive(Debug, Clone, Default)]
pub(super) struct MergeQueue(VecDeque<(LaneId, Timestamp)>);

impl MergeQueue {
    /// The wait of the lane that is the first one now and was not before.
    pub(super) fn apply(&mut self, lane: &LaneId, event: &Event, at: Timestamp) -> Option<Wait> {
        let before = self.0.front().map(|(first, _)| first.clone());
        match event {
            Event::CheckpointReached { checkpoint, .. }
                if checkpoint.stage == Stage::PrePr && self.0.iter().all(|(queued, _)| queued != lane) =>
            {
                self.0.push_back((lane.clone(), at));
            }
            Event::LaneMerged { .. }
            | Event::LaneFailed { .. }
            | Event::LaneBlocked { .. }
            | Event::LaneSkipped { .. }
            | Event::LaneRolledBack { .. }
            | Event::LaneMoved { to: LaneStage::Implementation, .. } => self.0.retain(|(queued, _)| queued != lane),
            _ => {}
        }
        let (first, since) = self.0.front().filter(|(first, _)| Some(first) != before.as_ref())?;
        Some(Wait { lane: first.clone(), agent: None, reason: WaitReason::Merge, from: *since, until: at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunHistory;
    use lanewright_model::event::RunOutcome;
    use lanewright_model::testing::*;
    use lanewright_model::{Approval, Checkpoint, CheckpointStatus};

    fn waits(story: &Story) -> Vec<(String, WaitReason, i64, i64)> {
        let plan = plan(&[("SL-1", &[], &[]), ("SL-2", &["SL-1"], &[])]);
        let all = RunHistory::for_plan(&plan).after(&story.records).run.waits.into_iter();
        let second = |moment: Timestamp| moment.unix_millis() / 1000 - at(0).unix_millis() / 1000;
        all.map(|wait| (wait.lane.to_string(), wait.reason, second(wait.from), second(wait.until))).collect()
    }

    fn waits_for(story: &Story, reason: WaitReason) -> Vec<(String, i64)> {
        let of = waits(story).into_iter().filter(|wait| wait.1 == reason);
        of.map(|(lane, _, from, until)| (lane, until - from)).collect()
    }

    #[test]
    fn attempt_waits_for_retry_then_for_place() {
        let second = attempt("SL-1", "engineer", 2);
        // The retry is put off by five seconds and planned after twelve.
        let story = Story::begun().opened("SL-1", 1).retried("SL-1", 1, 3).wait(11).job(&second);
        assert_eq!(waits_for(&story, WaitReason::Retry), [("SL-1".to_owned(), 5)]);
        assert_eq!(waits_for(&story, WaitReason::Place).last().map(|wait| wait.1), Some(7));
    }

    #[test]
    fn a_lane_is_ready_once_what_it_depends_on_is_merged() {
        let story = Story::begun().opened("SL-1", 1).merged("SL-1", 'd').wait(30).opened("SL-2", 1);
        let ready = waits_for(&story, WaitReason::Place);
        assert!(ready.iter().any(|(lane, seconds)| lane == "SL-2" && (30..40).contains(seconds)), "{ready:?}");
    }

    #[test]
    fn lane_waits_in_merge_queue() {
        let queued = || Checkpoint::new(Stage::PrePr, CheckpointStatus::InProgress);
        let story = Story::begun().reached("SL-1", queued()).reached("SL-2", queued()).wait(20);
        let story =
            story.then(Event::LaneMerged { lane: lane("SL-1"), commit: commit('d'), onto: commit('a'), plan: None });
        assert_eq!(waits_for(&story, WaitReason::Merge), [("SL-2".to_owned(), 21)], "the first has nobody before it");
    }

    #[test]
    fn a_person_is_waited_for_until_the_answer() {
        let story = Story::begun().opened("SL-1", 1).wait(99).then(Event::GateAnswered {
            lane: lane("SL-1"),
            gate: Approval::Plan.into(),
            approved: true,
            message: String::new(),
        });
        assert_eq!(waits_for(&story, WaitReason::Person), [("SL-1".to_owned(), 100)]);
    }

    #[test]
    fn executor_wait_ends_with_claim_or_end_of_job() {
        let id = || lane("SL-1");
        let offered =
            |number| Event::LaneOffered { lane: id(), number, executor: "main".into(), budget: Default::default() };
        let claimed = |host: &str| Event::LaneClaimed { lane: id(), host: host.into(), moved: false };
        let ended = Event::PlacementEnded { lane: id(), number: 1, outcome: None, reason: "its node is gone".into() };
        let story = Story::begun().then(offered(1)).wait(9).then(claimed("n1")).wait(50).then(ended.clone());
        let story = story.then(offered(2)).wait(19).then(ended).then(offered(3)).wait(29);
        let expected = |waits: &[i64]| waits.iter().map(|seconds| ("SL-1".to_owned(), *seconds)).collect::<Vec<_>>();
        assert_eq!(waits_for(&story, WaitReason::Executor), expected(&[10, 20]), "work is not waited for");
        let history = RunHistory::for_plan(&plan(&[("SL-1", &[], &[])])).after(&story.records);
        let open = history.waits(story.now()).last().unwrap();
        assert_eq!((open.reason, open.until.since(open.from).as_secs()), (WaitReason::Executor, 30));
        let claimed = history.after(&story.then(claimed("n2")).records[6..]);
        assert_eq!(claimed.lanes()[0].elsewhere().unwrap().to_string(), "waits for executor main");
    }

    #[test]
    fn a_run_that_ended_leaves_no_wait_open() {
        assert_eq!(waits(&Story::begun().finished(RunOutcome::Done, 0)), []);
    }
}
