//! When things happened, and how long a run could have taken at least.

use lanewright_model::{AgentName, Dag, LaneId, LaneIndex, Stage, TaskId, Timestamp};
use serde::Serialize;

use super::lanes::{JobReport, LaneReport, Reporter};
use crate::history::clock::{Span, covered};
use crate::history::{self, LaneHistory, RunHistory, WaitReason};

/// When things happened, in milliseconds on the run's clock, which stops while no process works on it.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Timeline {
    /// A bar for each lane that began, followed by those of its jobs; the final gate's last.
    pub bars: Vec<Bar>,
    /// What lanes waited for, those that still wait for a person included.
    pub waits: Vec<WaitBar>,
    pub merges: Vec<MergeBar>,
    /// The lanes of the longest path through the plan, by the time they took, first lane first.
    pub critical_path: Vec<LaneId>,
}

/// A lane or a job on the timeline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bar {
    /// The lane; null: the phase.
    pub lane: Option<LaneId>,
    /// `lane`, or the kind of the job.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = bar_kinds())))]
    pub kind: &'static str,
    pub agent: Option<AgentName>,
    pub task: Option<TaskId>,
    /// The job's number; 0 for lanes.
    pub number: u32,
    pub start_ms: u64,
    pub end_ms: u64,
    pub passed: Option<bool>,
    /// Whether it is of a lane on the critical path.
    pub critical: bool,
}

/// A wait of a lane, or of one of its agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitBar {
    pub lane: LaneId,
    pub agent: Option<AgentName>,
    pub reason: WaitReason,
    pub start_ms: u64,
    pub end_ms: u64,
}

/// A merge: from the moment that nothing was before it in the merge queue; of an agent's work only the moment of the
/// merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MergeBar {
    pub lane: LaneId,
    /// Whose work was merged into the lane; null: the lane's into the integration branch.
    pub agent: Option<AgentName>,
    pub start_ms: u64,
    pub end_ms: u64,
}

/// Where the time of a run went, in milliseconds (`docs/report.md`). All but the time at rest are without it.
// `history::times::Times` defines the first four.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Times {
    /// From the start to the end, or until now.
    pub makespan_ms: u64,
    /// While no process worked on the run.
    pub at_rest_ms: u64,
    /// All attempts of agents together.
    pub work_ms: u64,
    /// While at least one lane waited for a person.
    pub waiting_ms: u64,
    /// The most agents that worked at once.
    pub max_parallel: u32,
    /// The agents and gates along the critical path.
    pub critical_path_ms: u64,
    /// No order of the same attempts takes less: the critical path, or the work at full parallelism.
    pub lower_bound_ms: u64,
    /// While at least one agent or gate ran.
    pub busy_ms: u64,
    /// While none ran and a retry was delayed.
    pub delayed_ms: u64,
    /// While none ran, no retry was delayed and a lane waited for a paused runner.
    pub paused_ms: u64,
    /// While none ran, no retry was delayed, no lane waited for a paused runner and git worked.
    pub git_ms: u64,
    /// The rest: Lanewright itself, and the disk.
    pub overhead_ms: u64,
    /// How long lanes were active, all of them together.
    pub lanes_ms: u64,
    /// The overhead of all lanes together.
    pub lanes_overhead_ms: u64,
}

#[cfg(feature = "schema")]
fn bar_kinds() -> Vec<&'static str> {
    let jobs = lanewright_model::job::JobKind::ALL.iter().map(|kind| kind.word());
    std::iter::once("lane").chain(jobs).collect()
}

/// The timeline of a run, and where its time went.
pub(super) fn of(
    history: &RunHistory,
    reporter: &Reporter<'_>,
    lanes: &[LaneReport<'_>],
    final_gate: &[JobReport<'_>],
) -> (Timeline, Times) {
    let timed = Timed { history, reporter, lanes, final_gate };
    let (critical_path, along) = timed.critical_path();
    let bars = timed.bars(&critical_path);
    let timeline = Timeline { bars, waits: timed.waits(), merges: timed.merges(), critical_path };
    (timeline, timed.times(along))
}

struct Timed<'a> {
    history: &'a RunHistory,
    reporter: &'a Reporter<'a>,
    lanes: &'a [LaneReport<'a>],
    final_gate: &'a [JobReport<'a>],
}

impl Timed<'_> {
    fn critical_path(&self) -> (Vec<LaneId>, u64) {
        let places: Vec<LaneIndex> = LaneIndex::first(self.lanes.len()).collect();
        let place = |id: &LaneId| self.lanes.iter().position(|lane| lane.lane.id == *id).map(|at| places[at]);
        let edges = self.lanes.iter().map(|lane| lane.lane.depends_on.iter().filter_map(place).collect()).collect();
        let last = covered(self.final_gate.iter().map(|job| job.span).collect());
        // A plan has no cycle; a damaged log may describe no plan.
        let Ok(dag) = Dag::new(edges) else { return (Vec::new(), last) };
        let weight = |lane: LaneIndex| self.lanes[lane.at()].busy_ms;
        let path: Vec<LaneIndex> = dag.critical_path(weight).into_iter().filter(|&lane| weight(lane) > 0).collect();
        let along: u64 = path.iter().map(|&lane| weight(lane)).sum();
        (path.into_iter().map(|lane| self.lanes[lane.at()].lane.id.clone()).collect(), along + last)
    }

    fn bars(&self, critical: &[LaneId]) -> Vec<Bar> {
        let of_lane = |report: &LaneReport<'_>| {
            let lane = report.lane;
            let critical = critical.contains(&lane.id);
            let end = |started: Timestamp| (started, lane.finished.unwrap_or(self.reporter.until));
            let own =
                lane.started.map(|started| self.reporter.clock.span(end(started))).map(|(start_ms, end_ms)| Bar {
                    lane: Some(lane.id.clone()),
                    kind: "lane",
                    agent: None,
                    task: None,
                    number: 0,
                    start_ms,
                    end_ms,
                    passed: None,
                    critical,
                });
            own.into_iter().chain(report.jobs().into_iter().map(|job| bar(Some(&lane.id), job, critical))).collect()
        };
        let lanes = self.lanes.iter().flat_map::<Vec<Bar>, _>(of_lane);
        lanes.chain(self.final_gate.iter().map(|job| bar(None, job, true))).collect()
    }

    fn waits(&self) -> Vec<WaitBar> {
        let bar = |wait: history::Wait| {
            let (start_ms, end_ms) = self.reporter.clock.span((wait.from, wait.until));
            WaitBar { lane: wait.lane, agent: wait.agent, reason: wait.reason, start_ms, end_ms }
        };
        self.history.waits(self.reporter.until).map(bar).collect()
    }

    fn merges(&self) -> Vec<MergeBar> {
        let of_lane = |lane: &LaneHistory| -> Vec<MergeBar> {
            let bar = |merge: &history::MergeView| {
                let begun = if merge.agent.is_some() { merge.at } else { self.merge_begun(lane, merge.at) };
                let (start_ms, end_ms) = self.reporter.clock.span((begun, merge.at));
                MergeBar { lane: lane.id.clone(), agent: merge.agent.clone(), start_ms, end_ms }
            };
            lane.merges.iter().map(bar).collect()
        };
        self.history.lanes().iter().flat_map(of_lane).collect()
    }

    /// When the lane that was merged `at` this moment was queued, or was the first in the queue.
    fn merge_begun(&self, lane: &LaneHistory, at: Timestamp) -> Timestamp {
        let queued = lane.checkpoints.iter().filter(|it| it.stage == Stage::PrePr).map(|it| it.at);
        let waits = self.history.run.waits.iter().filter(|wait| wait.lane == lane.id);
        let waited = waits.filter(|wait| wait.reason == WaitReason::Merge).map(|wait| wait.until);
        queued.chain(waited).filter(|begun| *begun <= at).max().unwrap_or(at)
    }

    fn times(&self, critical_path_ms: u64) -> Times {
        let (run, Reporter { until, clock }) = (&self.history.run, self.reporter);
        let of_run = self.history.times(*until);
        let (makespan_ms, work_ms) = (of_run.elapsed, of_run.work);
        let max_parallel = run.start.as_ref().map_or(1, |start| start.options.max_parallel);
        let jobs = self.lanes.iter().flat_map(LaneReport::jobs).chain(self.final_gate);
        let mut spans: Vec<Span> = jobs.map(|job| job.span).collect();
        let busy_ms = covered(spans.clone());
        let retries = self.history.lanes().iter().flat_map(|lane| &lane.retries);
        spans.extend(retries.map(|retry| clock.span((retry.planned, retry.not_before.min(*until)))));
        let delayed = covered(spans.clone());
        let waits = self.history.waits(*until).filter(|wait| wait.reason == WaitReason::Runner);
        spans.extend(waits.map(|wait| clock.span((wait.from, wait.until))));
        let paused = covered(spans.clone());
        let git = self.history.lanes().iter().flat_map(|lane| &lane.git).chain(&run.git);
        spans.extend(git.map(|&span: &history::Span| clock.span(span)));
        let accounted = covered(spans);
        Times {
            makespan_ms,
            at_rest_ms: of_run.idle,
            work_ms,
            waiting_ms: of_run.waiting,
            max_parallel,
            critical_path_ms,
            lower_bound_ms: critical_path_ms.max(u64::div_ceil(work_ms, u64::from(max_parallel.max(1)))),
            busy_ms,
            delayed_ms: delayed - busy_ms,
            paused_ms: paused - delayed,
            git_ms: accounted - paused,
            overhead_ms: makespan_ms.saturating_sub(accounted),
            lanes_ms: self.lanes.iter().map(|lane| lane.times.active_ms).sum(),
            lanes_overhead_ms: self.lanes.iter().map(|lane| lane.times.overhead_ms).sum(),
        }
    }
}

fn bar(lane: Option<&LaneId>, report: &JobReport<'_>, critical: bool) -> Bar {
    let job = &report.job.job;
    Bar {
        lane: lane.cloned(),
        kind: job.role.word(),
        agent: job.agent().cloned(),
        task: job.task().cloned(),
        number: job.number,
        start_ms: report.span.0,
        end_ms: report.span.1,
        passed: report.job.passed(),
        critical,
    }
}
