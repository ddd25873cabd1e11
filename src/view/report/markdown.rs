//! The report as Markdown: a CI job summary.

use std::time::Duration;

use super::escape::{fenced, html, inline};
use super::lane::{FailureReport, JobReport, LaneReport, last_runs};
use super::{ExecutionReport, drawing, text};
use crate::model::must_haves::tally;
use crate::model::text::counted;
use crate::model::time::short;
use crate::model::{Finding, Verdict};

/// How wide the timeline is drawn.
const DRAWING: usize = 100;

/// The report in at most `limit` bytes. What does not fit is left out from the end of each table, and that is said.
pub fn markdown(report: &ExecutionReport, limit: usize) -> String {
    let mut page = Page { text: String::new(), limit: limit.saturating_sub(CUT.len()), cut: false };
    page.block(&head(report));
    lanes(&mut page, report);
    next_steps(&mut page, report);
    failures(&mut page, report);
    must_haves(&mut page, report);
    gates(&mut page, report);
    timeline(&mut page, report);
    attempts(&mut page, report);
    snapshots(&mut page, report);
    notes(&mut page, report);
    page.finish()
}

/// What stands at the end of a report that did not fit.
const CUT: &str = "\n*More did not fit in here: `lanekeeper report --format json` tells everything.*\n";

/// A page that grows block by block up to its limit.
struct Page {
    text: String,
    limit: usize,
    cut: bool,
}

impl Page {
    /// Adds a block as a whole, or not at all.
    fn block(&mut self, block: &str) -> bool {
        let fits = self.text.len() + block.len() <= self.limit;
        if fits {
            self.text.push_str(block);
        }
        self.cut |= !fits;
        fits
    }

    /// Adds a table, row by row as long as there is room; none without rows.
    fn table(&mut self, heading: &str, columns: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
        let mut rows = rows.into_iter().peekable();
        if rows.peek().is_none() {
            return;
        }
        let rule = "|---".repeat(columns.len());
        let mut room = self.block(&format!("\n### {heading}\n\n| {} |\n{rule}|\n", columns.join(" | ")));
        for row in rows {
            room = room && self.block(&format!("| {} |\n", row.join(" | ")));
        }
    }

    fn finish(mut self) -> String {
        if self.cut {
            self.text.push_str(CUT);
        }
        self.text
    }
}

fn told(ms: u64) -> String {
    short(Duration::from_millis(ms))
}

fn head(report: &ExecutionReport) -> String {
    let mut words = vec![report.standing.to_owned(), told(report.times.makespan_ms)];
    words.extend(report.exit_code.map(|code| format!("exit code {code}")));
    words.extend(report.stop.map(|reason| format!("stopped by {}", reason.word().replace('_', "-"))));
    words.extend((report.resumes > 0).then(|| counted(report.resumes as usize, "resume")));
    words.extend(Some(report.usage).filter(|usage| !usage.is_empty()).map(|usage| inline(&usage.to_string())));
    words.extend(report.run_id.as_ref().map(|run| format!("run `{run}`")));
    words.push(format!("base {}", inline(&report.base_branch)));
    let mut text = format!("## {}\n\n{}\n", inline(&report.subject()), words.join(" · "));
    if report.damaged_lines > 0 {
        let damaged = counted(report.damaged_lines, "line");
        text.push_str(&format!("\n**{damaged} of the run log cannot be read; what they said is missing here.**\n"));
    }
    text
}

fn lanes(page: &mut Page, report: &ExecutionReport) {
    let row = |lane: &LaneReport| {
        vec![
            inline(lane.lane.as_str()),
            lane.name.as_deref().map(inline).unwrap_or_default(),
            lane.state.word().to_owned(),
            lane.attempts.len().to_string(),
            lane.elapsed_ms.map(told).unwrap_or_default(),
            inline(&lane.usage.to_string()),
            inline(&lane.note),
        ]
    };
    page.table("Lanes", &["lane", "name", "state", "attempts", "time", "used", "note"], report.lanes.iter().map(row));
    for line in text::without_gate(report) {
        page.block(&format!("\n{}\n", inline(&line)));
    }
}

fn next_steps(page: &mut Page, report: &ExecutionReport) {
    for (at, step) in report.next_steps.iter().enumerate() {
        let heading = if at == 0 { "\n### What comes next\n" } else { "" };
        let commands: Vec<String> = step.shell_lines().collect();
        let commands = if commands.is_empty() { String::new() } else { fenced(&commands.join("\n"), "sh") };
        page.block(&format!("{heading}\n{}\n\n{commands}", inline(&step.reason)));
    }
}

fn failures(page: &mut Page, report: &ExecutionReport) {
    let of_lanes = report.lanes.iter().filter_map(|lane| Some((lane, lane.failure.as_ref()?)));
    let blocks = of_lanes.map(|(lane, failure)| of_lane(lane, failure));
    let failed_gate = report.final_gate.last().filter(|gate| gate.passed == Some(false));
    let blocks: Vec<String> = blocks.chain(failed_gate.map(of_final_gate)).collect();
    if !blocks.is_empty() {
        page.block("\n### What failed\n");
    }
    for block in &blocks {
        page.block(block);
    }
}

fn of_lane(lane: &LaneReport, failure: &FailureReport) -> String {
    let what = &failure.failure;
    let facts = [
        ("agent", failure.agent.as_ref().map(ToString::to_string)),
        ("task", failure.task.as_ref().map(ToString::to_string)),
        ("command", what.command.clone()),
        ("exit code", what.exit_code.map(|code| code.to_string())),
        ("files", Some(what.paths.join("\n")).filter(|paths| !paths.is_empty())),
    ];
    let findings = what.diagnosis.iter().flat_map(|diagnosis| &diagnosis.findings);
    let summary = format!("{} failed: {}", lane.lane, what.message);
    let job = lane.jobs().into_iter().rfind(|job| job.passed == Some(false));
    let tail = if what.log.is_empty() { job.map(|job| job.tail.as_slice()).unwrap_or_default() } else { &what.log };
    details(&summary, &facts, findings, tail)
}

fn of_final_gate(gate: &JobReport) -> String {
    let facts = [("command", gate.command.clone()), ("exit code", gate.exit_code.map(|code| code.to_string()))];
    let findings = gate.diagnosis.iter().flat_map(|diagnosis| &diagnosis.findings);
    details(&format!("The final gate failed: {}", gate.ending()), &facts, findings, &gate.tail)
}

fn details<'a>(
    summary: &str,
    facts: &[(&str, Option<String>)],
    findings: impl Iterator<Item = &'a Finding>,
    tail: &[String],
) -> String {
    let mut text = format!("\n<details>\n<summary>{}</summary>\n\n", html(summary));
    for (name, value) in facts {
        text.push_str(&value.as_ref().map(|value| format!("- {name}: {}\n", inline(value))).unwrap_or_default());
    }
    findings.for_each(|finding| text.push_str(&format!("- found: {}\n", inline(&finding.to_string()))));
    if !tail.is_empty() {
        text.push_str(&format!("\n{}", fenced(&tail.join("\n"), "text")));
    }
    text + "\n</details>\n"
}

fn must_haves(page: &mut Page, report: &ExecutionReport) {
    let row = |lane: &LaneReport, verdict: &Verdict| {
        let holds = verdict.holds.map_or("not checked", |holds| if holds { "holds" } else { "missing" });
        vec![inline(lane.lane.as_str()), inline(&verdict.told()), holds.to_owned()]
    };
    let all: Vec<Verdict> = report.lanes.iter().flat_map(|lane| lane.must_haves.iter().cloned()).collect();
    let rows = report.lanes.iter().flat_map(|lane| lane.must_haves.iter().map(move |verdict| row(lane, verdict)));
    page.table(&format!("Must-haves: {}", tally(&all)), &["lane", "what", "verdict"], rows);
}

fn gates(page: &mut Page, report: &ExecutionReport) {
    let row = |lane: &str, (gate, runs): (&JobReport, usize)| {
        vec![
            inline(lane),
            inline(&gate.label()),
            gate.command.as_deref().map(inline).unwrap_or_default(),
            gate.ending(),
            runs.to_string(),
            told(gate.elapsed_ms),
        ]
    };
    let of_lanes = report
        .lanes
        .iter()
        .flat_map(|lane| lane.last_gates().into_iter().map(|gate| row(lane.lane.as_str(), gate)).collect::<Vec<_>>());
    let last = last_runs(&report.final_gate).into_iter().map(|gate| row("", gate));
    page.table("Gates", &["lane", "gate", "command", "last run", "runs", "time"], of_lanes.chain(last));
}

fn timeline(page: &mut Page, report: &ExecutionReport) {
    let lines = drawing::lines(report, DRAWING);
    if lines.is_empty() {
        return;
    }
    let told = text::times(report).join("\n");
    page.block(&format!(
        "\n### Timeline\n\n{}\n{}\n\n{told}\n",
        fenced(&lines.join("\n"), "text"),
        inline(drawing::LEGEND)
    ));
}

fn attempts(page: &mut Page, report: &ExecutionReport) {
    let row = |lane: &LaneReport, attempt: &JobReport| {
        let because = attempt.retry.as_ref().map(|retry| format!("{} after: {}", retry.level, retry.reason));
        vec![
            inline(lane.lane.as_str()),
            inline(&attempt.label()),
            attempt.ending(),
            told(attempt.elapsed_ms),
            attempt.transcript.as_ref().map(|it| inline(&it.usage.to_string())).unwrap_or_default(),
            inline(&because.unwrap_or_default()),
        ]
    };
    let rows = report.lanes.iter().flat_map(|lane| lane.attempts.iter().map(move |attempt| row(lane, attempt)));
    page.table("Attempts", &["lane", "attempt", "ending", "time", "used", "why"], rows);
}

fn snapshots(page: &mut Page, report: &ExecutionReport) {
    let all = report.lanes.iter().flat_map(|lane| lane.snapshots.iter().map(move |snapshot| (lane, snapshot)));
    let rows = all.filter(|(_, snapshot)| !snapshot.reason.is_on_the_way()).map(|(lane, snapshot)| {
        vec![inline(lane.lane.as_str()), snapshot.reason.to_string().replace('_', " "), inline(&snapshot.reference)]
    });
    page.table("Snapshots of work in progress", &["lane", "taken at", "ref"], rows);
}

fn notes(page: &mut Page, report: &ExecutionReport) {
    let of_run = report.notes.iter().map(|note| (note.lane.as_ref(), note.message.clone()));
    let kept =
        report.lanes.iter().flat_map(|lane| lane.kept.iter().map(|kept| (Some(&lane.lane), format!("kept {kept}"))));
    let of_people = report.lanes.iter().flat_map(|lane| {
        lane.answers.iter().map(|answer| {
            let word = if answer.approved { "approved" } else { "rejected" };
            (Some(&lane.lane), format!("{} {word}: {}", answer.gate, answer.message))
        })
    });
    let rows = of_people
        .chain(kept)
        .chain(of_run)
        .map(|(lane, message)| vec![lane.map(|lane| inline(lane.as_str())).unwrap_or_default(), inline(&message)]);
    page.table("Notes", &["lane", "note"], rows);
}
