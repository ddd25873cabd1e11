//! The report for a terminal.

use std::time::Duration;

use lanewright_model::LaneId;
use lanewright_model::cells::{clean, cut};
use lanewright_model::time::short;

use super::lanes::{LaneReport, PlacementReport};
use super::{ExecutionReport, drawing};
use crate::answers::escalation::Escalation;
use crate::history::snapshots::decisions;
use crate::history::{FailureView, JobHistory, LaneHistory, SnapshotView};
use crate::status::styles::{Styles, Tone};

/// The summary, the timeline, the times, and what those leave out.
pub(super) fn text(report: &ExecutionReport<'_>, width: usize, styles: Styles) -> String {
    let mut text = report.summary.render(width, styles);
    let mut section = |heading: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text.push_str(&format!("\n{}\n{}\n", styles.paint(Tone::Strong, heading), lines.join("\n")));
        }
    };
    let mut timeline = drawing::lines(report, width);
    if !timeline.is_empty() {
        timeline.push(cut(drawing::LEGEND, width));
    }
    section("Timeline", timeline);
    section("Times", times(report));
    section("To decide", report.summary.escalations.iter().map(Escalation::render).collect());
    section("Decisions", decisions_of(report).map(|(lane, said)| clean(&format!("{lane} {said}"))).collect());
    section("Candidates", candidates(report));
    section("Lanes without a gate", without_gate(report));
    section("Files beyond the plans", beyond_plans(report));
    section("Protected files", protected(report));
    section("Refused tool calls", refused(report));
    section("Jobs on clusters", placements(report));
    section("What failed on the way", failures(report));
    section("Snapshots", snapshots(report));
    text
}

/// What was decided, each with its lane.
pub(super) fn decisions_of<'h>(report: &ExecutionReport<'h>) -> impl Iterator<Item = (&'h LaneId, String)> + use<'h> {
    let history = report.history;
    history.lanes().iter().flat_map(|lane| decisions(lane).into_iter().map(|said| (&lane.id, said)))
}

/// The lanes whose work no gate judged, in a sentence.
pub(super) fn without_gate(report: &ExecutionReport<'_>) -> Vec<String> {
    let lanes = report.lanes.iter().map(|lane| lane.lane).filter(|lane| lane.has_gate == Some(false));
    let lanes: Vec<&str> = lanes.map(|lane| lane.id.as_str()).collect();
    let line = format!("No command judged the work of {} before it was merged.", lanes.join(", "));
    if lanes.is_empty() { Vec::new() } else { vec![line] }
}

/// The candidates of lanes, with which was chosen and what each used, a line for each lane.
pub(super) fn candidates(report: &ExecutionReport<'_>) -> Vec<String> {
    let lanes = report.lanes.iter().map(|lane| lane.lane).filter(|lane| !lane.candidates().is_empty());
    lanes.map(|lane| clean(&format!("{}: best of {}.", lane.id, lane.candidates_line()))).collect()
}

/// The files that lanes changed beyond those that their plans name, a line for each lane.
pub(super) fn beyond_plans(report: &ExecutionReport<'_>) -> Vec<String> {
    let lanes = report.lanes.iter().map(|lane| lane.lane);
    lanes.filter_map(|lane| Some(format!("{} {}.", lane.id, clean(&lane.beyond_plan_line()?)))).collect()
}

/// The protected files that lanes changed, a line for each lane.
pub(super) fn protected(report: &ExecutionReport<'_>) -> Vec<String> {
    let lanes = report.lanes.iter().map(|lane| lane.lane).filter(|lane| !lane.protected.is_empty());
    lanes.map(|lane| format!("{} changes protected files: {}.", lane.id, clean(&lane.protected.join(", ")))).collect()
}

/// What attempts were refused since they wrote a file for the last time, a line for each attempt.
fn refused(report: &ExecutionReport<'_>) -> Vec<String> {
    let line = |lane: &LaneReport<'_>, job: &JobHistory| {
        Some(clean(&format!("{} {}: {}", lane.lane.id, job.label(), job.refused()?)))
    };
    let attempts = report.lanes.iter().flat_map(|lane| lane.attempts.iter().map(move |attempt| (lane, attempt.job)));
    attempts.filter_map(|(lane, job)| line(lane, job)).collect()
}

/// Where the time went, each on a line.
pub(super) fn times(report: &ExecutionReport<'_>) -> Vec<String> {
    let times = &report.times;
    if times.makespan_ms == 0 {
        return Vec::new();
    }
    let time = |ms: u64| short(Duration::from_millis(ms));
    let percent = |ms: u64| 100 * ms / times.makespan_ms;
    let mut lines = vec![
        format!(
            "Took {}; lower bound {} ({} of work, up to {} in parallel; critical path {}).",
            time(times.makespan_ms),
            time(times.lower_bound_ms),
            time(times.work_ms),
            times.max_parallel,
            time(times.critical_path_ms),
        ),
        format!(
            "Agents and gates: {} ({} %); otherwise retry delays {}, waiting for runners {}, git {}, Lanewright {} ({} %).",
            time(times.busy_ms),
            percent(times.busy_ms),
            time(times.delayed_ms),
            time(times.paused_ms),
            time(times.git_ms),
            time(times.overhead_ms),
            percent(times.overhead_ms),
        ),
        format!(
            "Lanes: {} in all, of which {} ({} %) was neither agents and gates nor git nor waiting.",
            time(times.lanes_ms),
            time(times.lanes_overhead_ms),
            per_cent(times.lanes_overhead_ms, times.lanes_ms),
        ),
    ];
    if times.waiting_ms > 0 {
        lines.push(format!("Waiting for you: {}.", time(times.waiting_ms)));
    }
    if times.at_rest_ms > 0 {
        lines.push(format!("Idle: {}, in which no process worked on the run.", time(times.at_rest_ms)));
    }
    lines
}

/// A share in per cent, with one decimal: `0.4`.
fn per_cent(part: u64, of: u64) -> String {
    let tenths = u64::div_ceil(1000 * part, of.max(1));
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// The jobs of clusters that had lanes, each on a line.
fn placements(report: &ExecutionReport<'_>) -> Vec<String> {
    let line = |lane: &LaneReport<'_>, report: &PlacementReport<'_>| {
        let it = report.placement;
        let job = it.job.as_ref().map_or_else(|| "no job".to_owned(), |job| format!("job {job}"));
        let host = it.host.as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
        let waited = short(Duration::from_millis(report.waited_ms));
        clean(&format!("{} {job} of {}{host}: waited {waited}; {}", lane.lane.id, it.executor, it.result()))
    };
    report.lanes.iter().flat_map(|lane| lane.placements.iter().map(move |it| line(lane, it))).collect()
}

fn failures(report: &ExecutionReport<'_>) -> Vec<String> {
    let line = |lane: &LaneHistory, failure: &FailureView| {
        let agent = failure.agent.as_ref().map(|agent| format!(" {agent}")).unwrap_or_default();
        format!("{}{agent}: {}", lane.id, clean(failure.failure.headline()))
    };
    report.history.lanes().iter().flat_map(|lane| lane.failures.iter().map(move |it| line(lane, it))).collect()
}

fn snapshots(report: &ExecutionReport<'_>) -> Vec<String> {
    let line =
        |(lane, it): (&LaneHistory, &SnapshotView)| format!("{} {}: {}", lane.id, it.reason, clean(&it.reference));
    report.history.lasting_snapshots().map(line).collect()
}
