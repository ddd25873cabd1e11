//! The report as Markdown: a CI job summary.

use std::time::Duration;

use lanewright_model::must_haves::tally;
use lanewright_model::text::{counted, shell_line};
use lanewright_model::time::short;
use lanewright_model::{Finding, Verdict};

use super::escape::{fenced, html, inline};
use super::lanes::{JobReport, LaneReport, PlacementReport, last_runs};
use super::{ExecutionReport, drawing, text};
use crate::answers::approvals::answer_word;
use crate::answers::escalation::Choice;
use crate::history::{FailureView, JobHistory, LaneHistory};

const DRAWING: usize = 100;

/// The report in at most `limit` bytes. What does not fit is left out from the end of each table, with a note.
pub fn markdown(report: &ExecutionReport<'_>, limit: usize) -> String {
    let mut page = Page { text: String::new(), limit: limit.saturating_sub(CUT.len()), cut: false };
    page.block(&head(report));
    lanes(&mut page, report);
    next_steps(&mut page, report);
    decisions(&mut page, report);
    failures(&mut page, report);
    let decided = text::decisions_of(report).map(|(lane, said)| vec![inline(lane.as_str()), inline(&said)]);
    page.table("Decisions", &["lane", "decision"], decided);
    must_haves(&mut page, report);
    gates(&mut page, report);
    timeline(&mut page, report);
    attempts(&mut page, report);
    placements(&mut page, report);
    snapshots(&mut page, report);
    notes(&mut page, report);
    page.finish()
}

/// The end of a report that did not fit.
const CUT: &str = "\n*More did not fit in here: `lanewright report --format json` tells everything.*\n";

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

fn rounded(ms: u64) -> String {
    short(Duration::from_millis(ms))
}

fn head(report: &ExecutionReport<'_>) -> String {
    let (run, used) = (&report.history.run, report.history.used());
    let mut words = vec![report.summary.qualified(), rounded(report.times.makespan_ms)];
    words.extend(run.code.map(|code| format!("exit code {code}")));
    words.extend(run.stop.map(|reason| format!("stopped by {}", reason.word().replace('_', "-"))));
    words.extend((run.resumes > 0).then(|| counted(run.resumes as usize, "resume")));
    words.extend((!used.is_empty()).then(|| inline(&used)));
    words.extend(run.run_id().map(|run| format!("run `{run}`")));
    words.push(format!("base {}", inline(run.base_branch())));
    let mut text = format!("## {}\n\n{}\n", inline(&report.subject()), words.join(" · "));
    if report.damaged_lines > 0 {
        let damaged = counted(report.damaged_lines, "line");
        text.push_str(&format!("\n**{damaged} of the run log cannot be read; some events are missing here.**\n"));
    }
    text
}

fn lanes(page: &mut Page, report: &ExecutionReport<'_>) {
    let row = |report: &LaneReport<'_>| {
        let lane = report.lane;
        vec![
            inline(lane.id.as_str()),
            lane.name.as_deref().map(inline).unwrap_or_default(),
            report.summary.word.to_owned(),
            report.attempts.len().to_string(),
            report.summary.elapsed.map(short).unwrap_or_default(),
            inline(&lane.usage().to_string()),
            inline(&report.summary.note),
        ]
    };
    page.table("Lanes", &["lane", "name", "state", "attempts", "time", "used", "note"], report.lanes.iter().map(row));
    let lines = [text::candidates, text::without_gate, text::beyond_plans, text::protected];
    for line in lines.iter().flat_map(|lines| lines(report)) {
        page.block(&format!("\n{}\n", inline(&line)));
    }
}

fn next_steps(page: &mut Page, report: &ExecutionReport<'_>) {
    for (at, step) in report.summary.next_steps.iter().enumerate() {
        let heading = if at == 0 { "\n### What comes next\n" } else { "" };
        let commands: Vec<String> = step.shell_lines().collect();
        let commands = if commands.is_empty() { String::new() } else { fenced(&commands.join("\n"), "sh") };
        page.block(&format!("{heading}\n{}\n\n{commands}", inline(&step.reason)));
    }
}

/// What only the user can decide, folded; the commands are those of [`next_steps`] and more.
fn decisions(page: &mut Page, report: &ExecutionReport<'_>) {
    for escalation in &report.summary.escalations {
        let subject = escalation.lane.as_ref().map_or("the phase", |lane| lane.as_str());
        let facts = escalation.facts().map(|(name, value)| (name, Some(value)));
        let option =
            |choice: &Choice| format!("# {}\n# {}\n{}", choice.what, choice.judgement(), shell_line(&choice.command));
        let options: Vec<String> = escalation.options.iter().map(option).collect();
        page.block(&details(&format!("To decide: {subject}"), &facts, std::iter::empty(), &options));
    }
}

fn failures(page: &mut Page, report: &ExecutionReport<'_>) {
    let of_lanes = report.lanes.iter().filter_map(|lane| Some((lane, lane.failure()?)));
    let blocks = of_lanes.map(|(lane, failure)| of_lane(lane, failure));
    let failed_gate = report.final_gate.last().filter(|gate| gate.job.passed() == Some(false));
    let blocks: Vec<String> = blocks.chain(failed_gate.map(|gate| of_final_gate(gate.job))).collect();
    if !blocks.is_empty() {
        page.block("\n### What failed\n");
    }
    for block in &blocks {
        page.block(block);
    }
}

fn of_lane(report: &LaneReport<'_>, failure: &FailureView) -> String {
    let what = &failure.failure;
    let facts = [
        ("agent", failure.agent.as_ref().map(ToString::to_string)),
        ("task", failure.task.as_ref().map(ToString::to_string)),
        ("command", what.command.clone()),
        ("exit code", what.exit_code.map(|code| code.to_string())),
        ("files", Some(what.paths.join("\n")).filter(|paths| !paths.is_empty())),
    ];
    let findings = what.diagnosis.iter().flat_map(|diagnosis| &diagnosis.findings);
    let summary = format!("{} failed: {}", report.lane.id, what.headline());
    let job = report.jobs().into_iter().rfind(|job| job.job.passed() == Some(false));
    let tail = if what.log.is_empty() { job.map(|job| job.job.failed_tail()).unwrap_or_default() } else { &what.log };
    details(&summary, &facts, findings, tail)
}

fn of_final_gate(gate: &JobHistory) -> String {
    let exit = gate.exit.as_ref();
    let facts = [
        ("command", exit.map(|exit| exit.command.clone())),
        ("exit code", exit.map(|exit| exit.exit_code.to_string())),
    ];
    let findings = gate.diagnosis().into_iter().flat_map(|diagnosis| &diagnosis.findings);
    details(&format!("The final gate failed: {}", gate.ending()), &facts, findings, gate.failed_tail())
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

fn must_haves(page: &mut Page, report: &ExecutionReport<'_>) {
    let row = |lane: &LaneHistory, verdict: &Verdict| {
        let holds = verdict.holds.map_or("not checked", |holds| if holds { "holds" } else { "missing" });
        vec![inline(lane.id.as_str()), inline(&verdict.describe()), holds.to_owned()]
    };
    let lanes = report.history.lanes();
    let all: Vec<Verdict> = lanes.iter().flat_map(|lane| lane.must_haves.iter().cloned()).collect();
    let rows = lanes.iter().flat_map(|lane| lane.must_haves.iter().map(move |verdict| row(lane, verdict)));
    page.table(&format!("Must-haves: {}", tally(&all)), &["lane", "what", "verdict"], rows);
}

fn gates(page: &mut Page, report: &ExecutionReport<'_>) {
    let row = |lane: &str, (gate, runs): (&JobReport<'_>, usize)| {
        vec![
            inline(lane),
            inline(&gate.job.label()),
            gate.job.exit.as_ref().map(|exit| inline(&exit.command)).unwrap_or_default(),
            gate.job.ending(),
            runs.to_string(),
            rounded(gate.elapsed_ms),
        ]
    };
    let of_lane = |lane: &LaneReport<'_>| -> Vec<_> {
        last_runs(&lane.gates).into_iter().map(|gate| row(lane.lane.id.as_str(), gate)).collect()
    };
    let of_lanes = report.lanes.iter().flat_map(of_lane);
    let last = last_runs(&report.final_gate).into_iter().map(|gate| row("", gate));
    page.table("Gates", &["lane", "gate", "command", "last run", "runs", "time"], of_lanes.chain(last));
}

fn timeline(page: &mut Page, report: &ExecutionReport<'_>) {
    let lines = drawing::lines(report, DRAWING);
    if lines.is_empty() {
        return;
    }
    let times = text::times(report).join("\n");
    page.block(&format!(
        "\n### Timeline\n\n{}\n{}\n\n{times}\n",
        fenced(&lines.join("\n"), "text"),
        inline(drawing::LEGEND)
    ));
}

fn attempts(page: &mut Page, report: &ExecutionReport<'_>) {
    let row = |lane: &LaneReport<'_>, attempt: &JobReport| {
        let job = attempt.job;
        let because = job.retry.as_ref().map(|retry| format!("{} after: {}", retry.level, retry.reason));
        let why: Vec<String> = because.into_iter().chain(job.refused()).collect();
        vec![
            inline(lane.lane.id.as_str()),
            inline(&job.label()),
            job.ending(),
            rounded(attempt.elapsed_ms),
            job.transcript.as_ref().map(|it| inline(&it.usage.to_string())).unwrap_or_default(),
            inline(&why.join("; ")),
        ]
    };
    let rows = report.lanes.iter().flat_map(|lane| lane.attempts.iter().map(move |attempt| row(lane, attempt)));
    page.table("Attempts", &["lane", "attempt", "ending", "time", "used", "why"], rows);
}

fn placements(page: &mut Page, report: &ExecutionReport<'_>) {
    let row = |lane: &LaneReport<'_>, report: &PlacementReport<'_>| {
        let it = report.placement;
        vec![
            inline(lane.lane.id.as_str()),
            inline(&it.executor),
            inline(it.job.as_deref().unwrap_or_default()),
            inline(it.host.as_deref().unwrap_or_default()),
            rounded(report.waited_ms),
            inline(&it.result()),
        ]
    };
    let rows = report.lanes.iter().flat_map(|lane| lane.placements.iter().map(move |it| row(lane, it)));
    page.table("Jobs on clusters", &["lane", "executor", "job", "host", "waited", "result"], rows);
}

fn snapshots(page: &mut Page, report: &ExecutionReport<'_>) {
    let rows = report.history.lasting_snapshots().map(|(lane, snapshot)| {
        vec![inline(lane.id.as_str()), snapshot.reason.to_string().replace('_', " "), inline(&snapshot.reference)]
    });
    page.table("Snapshots of work in progress", &["lane", "taken at", "ref"], rows);
}

fn notes(page: &mut Page, report: &ExecutionReport<'_>) {
    let lanes = report.history.lanes();
    let of_run = report.history.run.notes.iter().map(|note| (note.lane.as_ref(), note.message.clone()));
    let kept = lanes.iter().flat_map(|lane| lane.kept.iter().map(|kept| (Some(&lane.id), format!("kept {kept}"))));
    let answers = lanes.iter().flat_map(|lane| {
        lane.answers.iter().map(|answer| {
            (Some(&lane.id), format!("{} {}: {}", answer.gate, answer_word(answer.approved), answer.message))
        })
    });
    let rows = answers
        .chain(kept)
        .chain(of_run)
        .map(|(lane, message)| vec![lane.map(|lane| inline(lane.as_str())).unwrap_or_default(), inline(&message)]);
    page.table("Notes", &["lane", "note"], rows);
}
