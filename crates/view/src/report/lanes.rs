//! The lanes of a report and their jobs, on the clock of the run.

use std::collections::HashMap;

use lanewright_model::{LaneId, Timestamp};

use crate::history::clock::{Clock, Span, covered, milliseconds};
use crate::history::{self, FailureView, JobHistory, LaneHistory, PlacementView, RunHistory};
use crate::status::summary::LaneSummary;

#[derive(Debug, Clone)]
pub struct LaneReport<'h> {
    pub lane: &'h LaneHistory,
    pub summary: LaneSummary<'h>,
    /// In the order in which they began.
    pub attempts: Vec<JobReport<'h>>,
    /// Runs of gates, tests and set-up commands, in the same order.
    pub gates: Vec<JobReport<'h>>,
    pub placements: Vec<PlacementReport<'h>>,
    /// How long at least one of its jobs ran, in milliseconds.
    pub busy_ms: u64,
    pub times: LaneTimes,
}

/// A lane's job on a cluster.
#[derive(Debug, Clone)]
pub struct PlacementReport<'h> {
    pub placement: &'h PlacementView,
    /// How long the lane waited for it to begin, in milliseconds.
    pub waited_ms: u64,
}

/// An attempt of an agent, or one run of a gate.
#[derive(Debug, Clone)]
pub struct JobReport<'h> {
    pub job: &'h JobHistory,
    pub started: Timestamp,
    pub elapsed_ms: u64,
    /// On the clock of the run.
    pub span: Span,
}

/// Where the time of a lane went, in milliseconds, from its beginning to its end or until now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LaneTimes {
    pub active_ms: u64,
    /// While git worked for it.
    pub git_ms: u64,
    /// While it waited for something other than Lanewright.
    pub waited_ms: u64,
    /// While no job of it ran, git did not work for it, and it waited for nothing.
    pub overhead_ms: u64,
}

/// Makes the reports of lanes and jobs; times are counted up to `until`.
pub(super) struct Reporter<'a> {
    pub(super) until: Timestamp,
    pub(super) clock: &'a Clock,
}

impl Reporter<'_> {
    pub(super) fn lanes<'h>(&self, history: &'h RunHistory, summaries: &[LaneSummary<'h>]) -> Vec<LaneReport<'h>> {
        let mut waits: HashMap<LaneId, Vec<history::Span>> = HashMap::new();
        for wait in history.waits(self.until) {
            waits.entry(wait.lane).or_default().push((wait.from, wait.until));
        }
        let report = |summary: &LaneSummary<'h>| {
            self.lane(summary, waits.get(&summary.lane.id).map(Vec::as_slice).unwrap_or_default())
        };
        summaries.iter().map(report).collect()
    }

    fn lane<'h>(&self, summary: &LaneSummary<'h>, waits: &[history::Span]) -> LaneReport<'h> {
        let lane = summary.lane;
        let jobs = self.jobs(lane.jobs.all());
        let busy: Vec<Span> = jobs.iter().map(|job| job.span).collect();
        let times = self.times(lane, &busy, waits);
        let (attempts, gates) = jobs.into_iter().partition(|job| job.job.job.is_attempt());
        let placements = lane.placements.iter().map(|placement| self.placement(placement)).collect();
        LaneReport { lane, summary: summary.clone(), attempts, gates, placements, busy_ms: covered(busy), times }
    }

    fn placement<'h>(&self, placement: &'h PlacementView) -> PlacementReport<'h> {
        let (from, to) = self.clock.span((placement.offered, placement.awaited_until().unwrap_or(self.until)));
        PlacementReport { placement, waited_ms: to - from }
    }

    fn times(&self, lane: &LaneHistory, busy: &[Span], waits: &[history::Span]) -> LaneTimes {
        let Some(started) = lane.started else { return LaneTimes::default() };
        let (from, to) = self.clock.span((started, lane.finished.unwrap_or(self.until)));
        let within = |span: Span| (span.0.clamp(from, to), span.1.clamp(from, to));
        let on_clock = |spans: &[history::Span]| -> Vec<Span> {
            spans.iter().map(|&span| within(self.clock.span(span))).collect()
        };
        let (git, waits) = (on_clock(&lane.git), on_clock(waits));
        let accounted = busy.iter().copied().map(within).chain(git.clone()).chain(waits.clone()).collect();
        LaneTimes {
            active_ms: to - from,
            git_ms: covered(git),
            waited_ms: covered(waits),
            overhead_ms: (to - from).saturating_sub(covered(accounted)),
        }
    }

    pub(super) fn jobs<'h>(&self, jobs: impl Iterator<Item = &'h JobHistory>) -> Vec<JobReport<'h>> {
        let report = |job: &'h JobHistory| {
            let (started, ended) = job.ran(self.until);
            JobReport {
                job,
                started,
                elapsed_ms: milliseconds(started, ended),
                span: self.clock.span((started, ended)),
            }
        };
        let mut reports: Vec<JobReport<'h>> = jobs.map(report).collect();
        reports.sort_by_key(|job| job.started);
        reports
    }
}

impl<'h> LaneReport<'h> {
    /// Attempts and gates, in the order in which they began.
    pub fn jobs(&self) -> Vec<&JobReport<'h>> {
        let mut jobs: Vec<&JobReport<'h>> = self.attempts.iter().chain(&self.gates).collect();
        jobs.sort_by_key(|job| job.started);
        jobs
    }

    /// What ended the lane, if it failed.
    pub fn failure(&self) -> Option<&'h FailureView> {
        let failed = matches!(self.lane.ending, Some(history::Ending::Failed(_)));
        self.lane.last_failure.as_ref().filter(|_| failed)
    }
}

/// Of each gate the last run, and how often it ran, in the order in which they first ran.
pub(super) fn last_runs<'r, 'h>(gates: &'r [JobReport<'h>]) -> Vec<(&'r JobReport<'h>, usize)> {
    let name = |gate: &JobReport<'h>| {
        let job = &gate.job.job;
        (job.role.word(), job.agent(), job.task())
    };
    let mut last: Vec<(&JobReport<'h>, usize)> = Vec::new();
    for gate in gates {
        match last.iter_mut().find(|(known, _)| name(known) == name(gate)) {
            Some((known, runs)) => (*known, *runs) = (gate, *runs + 1),
            None => last.push((gate, 1)),
        }
    }
    last
}
