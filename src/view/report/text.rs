//! The report for people at a terminal.

use std::time::Duration;

use super::{ExecutionReport, drawing};
use crate::model::time::short;
use crate::view::cells::clean;
use crate::view::styles::{Styles, Tone};

/// The summary, the timeline, the times, and what is not yet told by those.
pub(super) fn text(report: &ExecutionReport, width: usize, styles: Styles) -> String {
    let mut text = report.summary.render(width, styles);
    let mut section = |heading: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text.push_str(&format!("\n{}\n{}\n", styles.paint(Tone::Strong, heading), lines.join("\n")));
        }
    };
    section("Timeline", drawing::lines(report, width));
    section("Times", times(report));
    section("Lanes without a gate", without_gate(report));
    section("What failed on the way", failures(report));
    section("Snapshots", snapshots(report));
    text
}

/// The lanes whose work nothing judged, in a sentence.
pub(super) fn without_gate(report: &ExecutionReport) -> Vec<String> {
    let lanes: Vec<&str> =
        report.lanes.iter().filter(|lane| lane.has_gate == Some(false)).map(|lane| lane.lane.as_str()).collect();
    let line = format!("No command judged the work of {} before it was merged.", lanes.join(", "));
    if lanes.is_empty() { Vec::new() } else { vec![line] }
}

/// Where the time went, each on a line.
pub(super) fn times(report: &ExecutionReport) -> Vec<String> {
    let times = &report.times;
    if times.makespan_ms == 0 {
        return Vec::new();
    }
    let told = |ms: u64| short(Duration::from_millis(ms));
    let percent = |ms: u64| 100 * ms / times.makespan_ms;
    let mut lines = vec![
        format!(
            "Took {}; lower bound {} ({} of work, up to {} in parallel; critical path {}).",
            told(times.makespan_ms),
            told(times.lower_bound_ms),
            told(times.work_ms),
            times.max_parallel,
            told(times.critical_path_ms),
        ),
        format!(
            "Agents and gates: {} ({} %); otherwise retry delays {}, git {}, Lanekeeper {} ({} %).",
            told(times.busy_ms),
            percent(times.busy_ms),
            told(times.delayed_ms),
            told(times.git_ms),
            told(times.overhead_ms),
            percent(times.overhead_ms),
        ),
        format!(
            "Lanes: {} in all, of which {} ({} %) was neither agents and gates nor git nor waiting.",
            told(times.lanes_ms),
            told(times.lanes_overhead_ms),
            per_cent(times.lanes_overhead_ms, times.lanes_ms),
        ),
    ];
    if times.at_rest_ms > 0 {
        lines.push(format!("Idle between sessions: {}.", told(times.at_rest_ms)));
    }
    lines
}

/// A share in per cent, with a digit behind the point: `0.4`.
fn per_cent(part: u64, of: u64) -> String {
    let tenths = u64::div_ceil(1000 * part, of.max(1));
    format!("{}.{}", tenths / 10, tenths % 10)
}

fn failures(report: &ExecutionReport) -> Vec<String> {
    let all = report.lanes.iter().flat_map(|lane| lane.failures.iter().map(move |failure| (lane, failure)));
    let who = |agent: Option<&crate::model::AgentName>| agent.map(|agent| format!(" {agent}")).unwrap_or_default();
    all.map(|(lane, failure)| {
        format!("{}{}: {}", lane.lane, who(failure.agent.as_ref()), clean(&failure.failure.message))
    })
    .collect()
}

/// Those that are worth telling: what is kept on the way is part of what came after it.
fn snapshots(report: &ExecutionReport) -> Vec<String> {
    let all = report.lanes.iter().flat_map(|lane| lane.snapshots.iter().map(move |snapshot| (lane, snapshot)));
    all.filter(|(_, snapshot)| !snapshot.reason.is_on_the_way())
        .map(|(lane, snapshot)| format!("{} {}: {}", lane.lane, snapshot.reason, clean(&snapshot.reference)))
        .collect()
}
