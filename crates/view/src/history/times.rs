//! How long a run and its lanes took: the one definition of each time that is shown.

use std::collections::HashSet;
use std::time::Duration;

use lanewright_model::time::short;
use lanewright_model::{LaneId, Timestamp};

use crate::history::clock::{Clock, covered};
use crate::history::{LaneHistory, RunHistory, Wait, WaitReason};

/// In milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// From the start to the end, or until now, without idle time.
    pub elapsed: u64,
    /// All attempts of agents, added up.
    pub work: u64,
    /// While at least one lane waited for a person: an approval, or a task.
    pub waiting: u64,
    /// While no process worked on the run: from the last event before a stop, an end or a crash, or from the end of the
    /// last job that outlived it, to the resume; and while the machine slept.
    pub idle: u64,
}

impl Times {
    /// `1h 02m elapsed, 3m 05s of work`, without what is zero but for the first.
    pub fn describe(&self) -> String {
        let others = [(self.work, "of work"), (self.waiting, "waiting for you"), (self.idle, "idle")];
        let others = others.into_iter().filter(|(ms, _)| *ms >= 1000);
        let words = std::iter::once((self.elapsed, "elapsed")).chain(others);
        words.map(|(ms, what)| format!("{} {what}", short(Duration::from_millis(ms)))).collect::<Vec<_>>().join(", ")
    }
}

impl RunHistory {
    /// The clock of the run, which stops while no process works on it, and while the machine sleeps.
    pub(crate) fn clock(&self, until: Timestamp) -> Clock {
        let rests = self.run.rests.iter().chain(&self.run.sleeps).copied().collect();
        Clock::new(self.run.started.unwrap_or(until), rests)
    }

    /// How long the run has taken until `until`; `None` before it began.
    pub(crate) fn elapsed(&self, until: Timestamp) -> Option<Duration> {
        self.run.started.map(|_| Duration::from_millis(self.clock(until).at(until)))
    }

    /// How long a lane has taken until `until`, or took; `None` before it began.
    pub(crate) fn lane_elapsed(&self, lane: &LaneHistory, until: Timestamp) -> Option<Duration> {
        let (from, to) = self.clock(until).span((lane.started?, lane.finished.unwrap_or(until)));
        Some(Duration::from_millis(to.saturating_sub(from)))
    }

    pub(crate) fn times(&self, until: Timestamp) -> Times {
        self.times_of(self.lanes(), (self.run.started.unwrap_or(until), until), until)
    }

    pub(crate) fn lane_times(&self, lane: &LaneHistory, until: Timestamp) -> Times {
        let Some(started) = lane.started else { return Times::default() };
        self.times_of(std::slice::from_ref(lane), (started, lane.finished.unwrap_or(until)), until)
    }

    fn times_of(&self, lanes: &[LaneHistory], span: (Timestamp, Timestamp), until: Timestamp) -> Times {
        let clock = self.clock(until);
        let (from, to) = clock.span(span);
        let ids: HashSet<&LaneId> = lanes.iter().map(|lane| &lane.id).collect();
        let answered = self.answered().filter(|(asking, _)| ids.contains(asking));
        let questions = answered.chain(lanes.iter().filter_map(|lane| open_question(lane, until)));
        Times {
            elapsed: to - from,
            work: lanes.iter().map(|lane| work(lane, &clock, until)).sum(),
            waiting: covered(questions.map(|(_, asked)| clock.span(clipped(asked, until))).collect()),
            idle: clock.rested(span.1).saturating_sub(clock.rested(span.0)),
        }
    }

    /// What lanes waited for, and what outside of Lanewright they still wait for until `until`.
    pub(crate) fn waits(&self, until: Timestamp) -> impl Iterator<Item = Wait> {
        let open = move |lane: &LaneHistory| {
            let question = open_question(lane, until).map(|(_, span)| (WaitReason::Person, span));
            let job = lane.elsewhere().filter(|placement| placement.claimed.is_none());
            let job = job.map(|placement| (WaitReason::Executor, clipped((placement.offered, until), until)));
            let runner = self.pause_ahead_of(lane).and(lane.started).and(lane.last);
            let runner = runner.map(|last| {
                let from = lane.delayed_until.map_or(last, |moment| moment.max(last));
                (WaitReason::Runner, clipped((from, until), until))
            });
            let wait = |(reason, (from, until))| Wait { lane: lane.id.clone(), agent: None, reason, from, until };
            question.into_iter().chain(job).chain(runner).map(wait).collect::<Vec<_>>()
        };
        let answered = self.run.waits.iter().cloned().map(move |wait| {
            let (from, until) = clipped((wait.from, wait.until), until);
            Wait { from, until, ..wait }
        });
        answered.chain(self.lanes().iter().flat_map(open))
    }

    /// When lanes waited for a person, who has answered.
    pub(crate) fn answered(&self) -> impl Iterator<Item = (&LaneId, (Timestamp, Timestamp))> {
        let asked = self.run.waits.iter().filter(|wait| wait.reason == WaitReason::Person);
        asked.map(|wait| (&wait.lane, (wait.from, wait.until)))
    }
}

/// What of a span was before `until`. A question may be answered after the run has ended.
fn clipped((from, to): (Timestamp, Timestamp), until: Timestamp) -> (Timestamp, Timestamp) {
    (from.min(until), to.min(until))
}

/// Since when a lane waits for a person, if it does.
fn open_question(lane: &LaneHistory, until: Timestamp) -> Option<(&LaneId, (Timestamp, Timestamp))> {
    lane.last.filter(|_| lane.state.needs_person()).map(|since| (&lane.id, (since, until)))
}

fn work(lane: &LaneHistory, clock: &Clock, until: Timestamp) -> u64 {
    let attempts = lane.jobs.all().filter(|job| job.job.is_attempt());
    attempts.map(|job| clock.span(job.ran(until))).map(|(from, to)| to.saturating_sub(from)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewright_model::event::{Event, LaneStage, RunOutcome};
    use lanewright_model::testing::*;
    use lanewright_model::{Approval, ExitCause, JobExit, JobId};

    fn history(story: &Story) -> RunHistory {
        RunHistory::for_plan(&plan(&[("SL-1", &[], &[Approval::Changes])])).after(&story.records)
    }

    fn ended_at(job: &JobId, started: i64, finished: i64, cause: ExitCause) -> Event {
        let exit = JobExit {
            cause,
            exit_code: 0,
            command: String::new(),
            started_at: at(started),
            finished_at: at(finished),
            tail: Vec::new(),
            notes: String::new(),
        };
        Event::JobExited { job: job.clone(), exit, report: None, reading: None, transcript: None }
    }

    #[test]
    fn time_between_sessions_is_idle() {
        let job = attempt("SL-1", "engineer", 1);
        // The job is planned and started in seconds 9 and 10; nine hours later the run is resumed.
        let story = Story::begun().opened("SL-1", 1).job(&job).wait(32_400).resumed();
        let story = story.then(ended_at(&job, 10, 32_411, ExitCause::Lost)).wait(60);
        let (now, history) = (story.now(), history(&story));
        let times = history.times(now);
        assert_eq!((times.elapsed, times.idle), (72_000, 32_401_000));
        assert!(times.work < 2_000, "{times:?}");
        assert_eq!(history.lane_times(&history.lanes()[0], now).elapsed, 71_000);
        assert_eq!(history.elapsed(now), Some(Duration::from_secs(72)));
        assert_eq!(times.describe(), "1m 12s elapsed, 9h 00m idle");
    }

    #[test]
    fn surviving_agent_shortens_idle_time() {
        let job = attempt("SL-1", "engineer", 1);
        let story = Story::begun().opened("SL-1", 1).job(&job).wait(32_400).resumed();
        let story = story.then(ended_at(&job, 10, 3610, ExitCause::Exited));
        let times = history(&story).times(story.now());
        assert_eq!((times.work, times.idle), (3_600_000, 28_801_000));
        assert_eq!(times.elapsed + times.idle, 32_413_000);
    }

    #[test]
    fn time_asleep_is_idle_and_no_work() {
        let job = attempt("SL-1", "engineer", 1);
        // The job is planned and started in seconds 9 and 10, and the sleep is noted in second 32,411.
        let slept = || {
            let begun = Story::begun().opened("SL-1", 1).job(&job).wait(32_400);
            begun.then(Event::Slept { duration: Duration::from_secs(32_000) })
        };
        let through = slept().then(ended_at(&job, 10, 32_412, ExitCause::Exited));
        let times = history(&through).times(through.now());
        assert_eq!((times.idle, times.work, times.elapsed), (32_000_000, 402_000, 413_000));
        // Lanewright alone was stopped while the job went on, and ended.
        let beside = slept().then(ended_at(&job, 10, 10_411, ExitCause::Exited));
        assert_eq!(history(&beside).times(beside.now()).idle, 22_000_000);
    }

    #[test]
    fn a_question_is_waited_for_until_it_is_answered() {
        let story = Story::begun().opened("SL-1", 1);
        let story = story.moved("SL-1", LaneStage::Implementation, LaneStage::AwaitingUserApproval).wait(99);
        assert_eq!(history(&story).times(story.now()).waiting, 100_000);
        let answered = story.then(Event::GateAnswered {
            lane: lane("SL-1"),
            gate: Approval::Changes.into(),
            approved: true,
            message: String::new(),
        });
        assert_eq!(history(&answered).times(answered.wait(50).now()).waiting, 100_000);
    }

    #[test]
    fn answer_does_not_end_idle_time() {
        let answer = Event::GateAnswered {
            lane: lane("SL-1"),
            gate: Approval::Changes.into(),
            approved: true,
            message: String::new(),
        };
        let story = Story::begun().opened("SL-1", 1);
        let story = story.moved("SL-1", LaneStage::Implementation, LaneStage::AwaitingUserApproval);
        // The process that had it died, or it ended.
        for story in [story.clone(), story.finished(RunOutcome::Blocked, 3)] {
            let before = history(&story).times(story.now()).elapsed;
            let rolled_back = [
                Event::RollbackBegun { lane: lane("SL-1"), to: String::new() },
                Event::Noted { lane: Some(lane("SL-1")), message: "its work was saved".to_owned() },
                Event::LaneRolledBack { lane: lane("SL-1"), integration: None, kept: Vec::new(), point: None },
            ];
            for meanwhile in [vec![answer.clone()], rolled_back.to_vec()] {
                let story = meanwhile.into_iter().fold(story.clone().wait(600), Story::then).resumed();
                let times = history(&story).times(story.now());
                assert!(times.idle >= 600_000 && times.elapsed <= before + 3_000, "{times:?}");
            }
        }
    }

    #[test]
    fn the_answer_to_a_run_that_has_ended_adds_no_time() {
        let story = Story::begun().opened("SL-1", 1);
        let story = story.moved("SL-1", LaneStage::Implementation, LaneStage::AwaitingUserApproval).wait(9);
        let ended = story.finished(RunOutcome::Blocked, 3);
        let until = ended.now();
        let answer = Event::GateAnswered {
            lane: lane("SL-1"),
            gate: Approval::Changes.into(),
            approved: true,
            message: String::new(),
        };
        let history = history(&ended.wait(600).then(answer));
        let times = history.times(until);
        assert!(times.waiting <= times.elapsed && times.waiting <= 11_000, "{times:?}");
        assert!(history.lane_times(&history.lanes()[0], until).waiting <= 11_000);
        assert!(history.waits(until).all(|wait| wait.until <= until));
    }
}
