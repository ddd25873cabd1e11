//! When things happened, and how long a run could have taken at least.

use serde::Serialize;

use super::clock::{Clock, Span, covered};
use super::lane::{JobReport, LaneReport};
use crate::model::{AgentName, Dag, LaneId, LaneIndex, TaskId, Timestamp};

/// What was done when. All times are milliseconds on the run's own clock, which stands still while nobody works on it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Timeline {
    /// A bar for each lane that began, followed by those of its jobs; the final gate's last.
    pub bars: Vec<Bar>,
    /// The lanes of the longest way through the plan, as long as they took, first lane first.
    pub critical_path: Vec<LaneId>,
}

/// A stretch of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bar {
    /// Whose; `None`: the phase's.
    pub lane: Option<LaneId>,
    /// `lane`, or the kind of the job.
    pub kind: &'static str,
    /// Whose job.
    pub agent: Option<AgentName>,
    /// At what.
    pub task: Option<TaskId>,
    /// The job's number; 0 for lanes.
    pub number: u32,
    /// When it began.
    pub start_ms: u64,
    /// When it ended.
    pub end_ms: u64,
    /// Whether a job passed.
    pub passed: Option<bool>,
    /// Whether it is of a lane on the critical path.
    pub critical: bool,
}

/// Where the time of a run went, in milliseconds. Time at rest is between the last word of a Lanekeeper that was stopped,
/// had ended or died and the resume after it; all others are without it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    /// From the run's beginning to its end, or until now.
    pub makespan_ms: u64,
    /// How long nobody worked on it; not part of the makespan.
    pub at_rest_ms: u64,
    /// All attempts of agents together.
    pub work_ms: u64,
    /// How many agents worked at once at most.
    pub max_parallel: u32,
    /// The agents and gates along the critical path.
    pub critical_path_ms: u64,
    /// No order of the same attempts takes less: the critical path, or the work by so many at once.
    pub lower_bound_ms: u64,
    /// While at least one agent or gate ran.
    pub busy_ms: u64,
    /// While none ran and a retry was put off.
    pub delayed_ms: u64,
    /// While neither was so and git worked.
    pub git_ms: u64,
    /// All the rest: Lanekeeper itself, and the disk.
    pub overhead_ms: u64,
    /// How long lanes were under way, all of them together.
    pub lanes_ms: u64,
    /// What of that was overhead, all lanes together.
    pub lanes_overhead_ms: u64,
}

/// What a timeline is made of.
pub(super) struct Timed<'a> {
    pub(super) clock: &'a Clock,
    pub(super) until: Timestamp,
    pub(super) lanes: &'a [LaneReport],
    pub(super) final_gate: &'a [JobReport],
    pub(super) delays: &'a [(Timestamp, Timestamp)],
    pub(super) git: &'a [(Timestamp, Timestamp)],
    pub(super) parallelism: u32,
}

/// The timeline of a run, and where its time went.
pub(super) fn of(timed: &Timed<'_>) -> (Timeline, Times) {
    let (critical_path, along) = timed.critical_path();
    let bars = timed.bars(&critical_path);
    let times = timed.times(along);
    (Timeline { bars, critical_path }, times)
}

impl Timed<'_> {
    fn span(&self, job: &JobReport) -> Span {
        self.clock.span(job.span(self.until))
    }

    /// How long at least one job of a lane ran.
    fn busy(&self, jobs: impl IntoIterator<Item = impl std::borrow::Borrow<JobReport>>) -> u64 {
        covered(jobs.into_iter().map(|job| self.span(job.borrow())).collect())
    }

    fn critical_path(&self) -> (Vec<LaneId>, u64) {
        let places: Vec<LaneIndex> = LaneIndex::first(self.lanes.len()).collect();
        let place = |id: &LaneId| self.lanes.iter().position(|lane| lane.lane == *id).map(|at| places[at]);
        let edges = self.lanes.iter().map(|lane| lane.depends_on.iter().filter_map(place).collect()).collect();
        let last = self.busy(self.final_gate);
        // A plan has no cycle; a log that is damaged may tell of no plan.
        let Ok(dag) = Dag::new(edges) else { return (Vec::new(), last) };
        let weight = |lane: LaneIndex| self.lanes[lane.at()].busy_ms;
        let path: Vec<LaneIndex> = dag.critical_path(weight).into_iter().filter(|&lane| weight(lane) > 0).collect();
        let along: u64 = path.iter().map(|&lane| weight(lane)).sum();
        (path.into_iter().map(|lane| self.lanes[lane.at()].lane.clone()).collect(), along + last)
    }

    fn bars(&self, critical: &[LaneId]) -> Vec<Bar> {
        let of_lane = |lane: &LaneReport| {
            let critical = critical.contains(&lane.lane);
            let end = |started: Timestamp| self.clock.span((started, lane.finished.unwrap_or(self.until)));
            let own = lane.started.map(end).map(|(start_ms, end_ms)| Bar {
                lane: Some(lane.lane.clone()),
                kind: "lane",
                agent: None,
                task: None,
                number: 0,
                start_ms,
                end_ms,
                passed: None,
                critical,
            });
            let jobs = lane.jobs();
            own.into_iter().chain(jobs.into_iter().map(|job| self.bar(Some(&lane.lane), job, critical))).collect()
        };
        let lanes = self.lanes.iter().flat_map::<Vec<Bar>, _>(of_lane);
        lanes.chain(self.final_gate.iter().map(|job| self.bar(None, job, true))).collect()
    }

    fn bar(&self, lane: Option<&LaneId>, job: &JobReport, critical: bool) -> Bar {
        let (start_ms, end_ms) = self.span(job);
        let JobReport { kind, agent, task, number, passed, .. } = job;
        Bar {
            lane: lane.cloned(),
            kind,
            agent: agent.clone(),
            task: task.clone(),
            number: *number,
            start_ms,
            end_ms,
            passed: *passed,
            critical,
        }
    }

    fn times(&self, critical_path_ms: u64) -> Times {
        let makespan_ms = self.clock.at(self.until);
        let attempts = self.lanes.iter().flat_map(|lane| &lane.attempts);
        let work_ms = attempts.map(|job| self.span(job)).map(|(from, to)| to - from).sum();
        let jobs = self.lanes.iter().flat_map(LaneReport::jobs).chain(self.final_gate);
        let mut spans: Vec<Span> = jobs.map(|job| self.span(job)).collect();
        let busy_ms = covered(spans.clone());
        spans.extend(self.delays.iter().map(|&(from, to)| self.clock.span((from, to.min(self.until)))));
        let delayed = covered(spans.clone());
        spans.extend(self.git.iter().map(|&span| self.clock.span(span)));
        let accounted = covered(spans);
        let of_lanes = |told: fn(&LaneReport) -> u64| self.lanes.iter().map(told).sum();
        Times {
            makespan_ms,
            at_rest_ms: self.clock.rested(self.until),
            work_ms,
            max_parallel: self.parallelism,
            critical_path_ms,
            lower_bound_ms: critical_path_ms.max(u64::div_ceil(work_ms, u64::from(self.parallelism.max(1)))),
            busy_ms,
            delayed_ms: delayed - busy_ms,
            git_ms: accounted - delayed,
            overhead_ms: makespan_ms.saturating_sub(accounted),
            lanes_ms: of_lanes(|lane| lane.times.active_ms),
            lanes_overhead_ms: of_lanes(|lane| lane.times.overhead_ms),
        }
    }
}
