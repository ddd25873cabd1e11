//! The values of the page: those of `report.json`, and the words that other formats have for them.

use std::collections::HashMap;

use lanewright_model::LaneId;
use lanewright_model::must_haves::tally;
use serde_json::{Value, json};

use super::super::lanes::{JobReport, LaneReport};
use super::super::{ExecutionReport, json};
use super::changes::changes_json;
use super::chart::chart;
use crate::answers::commands::Commands;
use crate::history::snapshots::decisions;
use crate::history::{JobHistory, Retry, StateGroup};
use crate::status::header;
use crate::status::lane_page::class;
use crate::status::styles::Tone;

#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    text: usize,
    /// The lines of an output, and how much is listed of what a lane has many of.
    lines: usize,
    /// The bytes of the changes of a lane.
    changes: usize,
}

impl Limits {
    /// From those that show most to those that show least.
    pub(super) fn for_lanes(lanes: usize) -> Vec<Self> {
        let most = Self { text: 4000, lines: 40, changes: (2_000_000 / lanes.max(1)).min(100_000) };
        std::iter::successors(Some(most), |limits| limits.halved()).collect()
    }

    /// `None`: less would say nothing.
    fn halved(self) -> Option<Self> {
        let Self { text, lines, changes } = self;
        (text > 60).then_some(Self { text: text / 2, lines: lines.div_ceil(2), changes: changes / 2 })
    }
}

pub(super) fn page(report: &ExecutionReport<'_>, limits: Limits) -> Value {
    let mut page = json!(json::report(report));
    let (history, summary) = (report.history, &report.summary);
    let mut notes: HashMap<&LaneId, Vec<&str>> = HashMap::new();
    for note in &history.run.notes {
        note.lane.iter().for_each(|lane| notes.entry(lane).or_default().push(&note.message));
    }
    each(&mut page["lanes"], &report.lanes, |value, it| {
        value["notes"] = json!(notes.get(&it.lane.id).into_iter().flatten().collect::<Vec<_>>());
        add_to_lane(value, report, it, limits);
    });
    each(&mut page["final_gate"], &report.final_gate, |value, it| add_to_job(value, it, summary.held));
    each(&mut page["escalations"], &summary.escalations, |value, it| value["stage"] = it.stage().into());
    page["needed"] = needed(&page, report);
    let listed: Vec<&LaneReport<'_>> = in_order(report).filter(|it| needs_attention(it)).take(OPEN).collect();
    each(&mut page["lanes"], &report.lanes, |value, it| {
        value["open"] = listed.iter().any(|listed| listed.lane.id == it.lane.id).into();
    });
    let counts = header::state_counts(history.lanes().iter(), history, summary.held);
    let tone_of =
        |word| report.lanes.iter().find(|lane| lane.summary.word == word).map(|lane| word_of(lane.summary.tone));
    page["counts"] = counts.iter().map(|((_, word), count)| json!([word, count, tone_of(*word)])).collect();
    page["subject"] = report.subject().into();
    page["qualified"] = summary.qualified().into();
    page["tone"] = tone_of_run(summary.standing()).into();
    page["until"] = json!(summary.until);
    page["used"] = report.history.used().into();
    page["cost"] = report.history.price().into();
    page["tokens"] = summary.usage().tokens().into();
    page["chart"] = chart(report);
    cut(&mut page, limits);
    page
}

/// How many of the lanes that need attention are shown in full before their sections are opened by hand, and how many have a
/// card of their own beside what there is to do.
const OPEN: usize = 10;

fn needs_attention(report: &LaneReport<'_>) -> bool {
    report.lane.state.group() <= StateGroup::Stopped && report.lane.started.is_some()
}

fn in_order<'r, 'h>(report: &'r ExecutionReport<'h>) -> impl Iterator<Item = &'r LaneReport<'h>> {
    let mut lanes: Vec<&LaneReport<'h>> = report.lanes.iter().collect();
    lanes.sort_by_key(|lane| lane.lane.state.group());
    lanes.into_iter()
}

/// What failed or needs a decision, with the findings; while a process works on the run there is nothing to decide.
fn needed(page: &Value, report: &ExecutionReport<'_>) -> Value {
    let lanes = || page["lanes"].as_array().into_iter().flatten();
    let with_failure = |decision: &Value| {
        let lane = lanes().find(|lane| lane["lane"] == decision["lane"]);
        let mut decision = decision.clone();
        for name in ["failure", "diagnosis", "tone"] {
            decision[name] = lane.map(|lane| lane[name].clone()).unwrap_or_default();
        }
        decision
    };
    let decisions = page["escalations"].as_array().into_iter().flatten();
    let failed = lanes().filter(|lane| report.summary.held && !lane["failure"].is_null());
    let failed = failed.map(|lane| json!({ "lane": lane["lane"], "issue": lane["reason"] }));
    let all: Vec<Value> = decisions.cloned().chain(failed).map(|it| with_failure(&it)).collect();
    let (first, others) = all.split_at(all.len().min(OPEN));
    json!({ "first": first, "others": others })
}

fn each<T>(values: &mut Value, of: &[T], add: impl Fn(&mut Value, &T)) {
    for (value, of) in values.as_array_mut().into_iter().flatten().zip(of) {
        add(value, of);
    }
}

fn add_to_lane(value: &mut Value, report: &ExecutionReport<'_>, of: &LaneReport<'_>, limits: Limits) {
    let (lane, history, until) = (of.lane, report.history, report.summary.until);
    let held = report.summary.held;
    each(&mut value["attempts"], &of.attempts, |value, it| add_to_job(value, it, held));
    each(&mut value["gates"], &of.gates, |value, it| add_to_job(value, it, held));
    each(&mut value["must_haves"], &lane.must_haves, |value, verdict| value["text"] = verdict.describe().into());
    value["decided"] = decisions(lane).into();
    value["best_of"] = lane.candidates_line().into();
    value["beyond_plan"] = json!(lane.beyond_plan_line());
    value["must_have_tally"] = tally(&lane.must_haves).into();
    value["word"] = of.summary.word.into();
    value["tone"] = word_of(of.summary.tone).into();
    value["rank"] = (lane.state.group() as u8).into();
    value["critical"] = report.timeline.critical_path.contains(&lane.id).into();
    each(&mut value["placements"], &of.placements, |value, it| value["result"] = it.placement.result().into());
    value["executor"] = json!(lane.elsewhere().map(ToString::to_string));
    let times = history.lane_times(lane, until);
    value["work_ms"] = times.work.into();
    value["waiting_ms"] = times.waiting.into();
    value["used"] = lane.usage().to_string().into();
    value["tokens"] = lane.usage().tokens().into();
    value["retries"] = json!(lane.counted_retries().next_back().map(Retry::used));
    value["diagnosis"] = json!(of.failure().and_then(|it| it.failure.diagnosis.as_deref()).map(class));
    value["changes"] = json!(report.changes.get(&lane.id).map(|it| changes_json(it, limits.changes)));
    let commands = history.run.run_id().map(|run| Commands { program: &report.program, run });
    value["commands"] = json!(commands.map(|it| [it.lane_status(&lane.id), it.logs(&lane.id), it.diff(&lane.id)]));
}

fn add_to_job(value: &mut Value, of: &JobReport<'_>, held: bool) {
    let job = of.job;
    value["label"] = job.label().into();
    value["result"] = result_of(job, held).into();
    value["tone"] = tone_of_job(job, held).into();
    value["wrong"] = json!(job.rejected.as_deref().or(job.blocked()));
    value["because"] = json!(job.retry.as_deref().map(|retry| format!("{} after: {}", retry.describe(), retry.reason)));
    value["used"] = job.transcript.as_ref().map(|it| it.usage.to_string()).unwrap_or_default().into();
    value["refused"] = json!(job.refused());
    value["found"] = json!(job.diagnosis().map(class));
}

/// How a job ended, or that it runs. `held`: whether a live process works on the run, and would see its end.
pub(super) fn result_of(job: &JobHistory, held: bool) -> String {
    if job.running && held { "running".to_owned() } else { job.ending() }
}

pub(super) fn tone_of_job(job: &JobHistory, held: bool) -> &'static str {
    match job.passed() {
        _ if job.running && held => "busy",
        Some(true) if job.rejected.is_none() && job.blocked().is_none() => "good",
        Some(_) => "bad",
        None => "faint",
    }
}

fn tone_of_run(standing: &str) -> &'static str {
    match standing {
        "done" => "good",
        "failed" => "bad",
        "running" => "busy",
        "not begun" => "faint",
        _ => "warn",
    }
}

fn word_of(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Warn => "warn",
        Tone::Busy => "busy",
        _ => "faint",
    }
}

/// Cuts all texts but commands to type, and the beginnings of outputs.
fn cut(value: &mut Value, limits: Limits) {
    match value {
        Value::String(text) => {
            if let Some((at, _)) = text.char_indices().nth(limits.text) {
                let more = text[at..].chars().count();
                text.replace_range(at.., &format!("… ({more} more characters)"));
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|value| cut(value, limits)),
        Value::Object(members) => {
            for (name, value) in members {
                if let ("tail" | "log", Value::Array(lines)) = (name.as_str(), &mut *value) {
                    lines.drain(..lines.len().saturating_sub(limits.lines));
                }
                if let ("findings" | "paths", Value::Array(lines)) = (name.as_str(), &mut *value) {
                    lines.truncate(limits.lines);
                }
                // Commands are there to be copied; changes are cut already.
                let stays = value.is_array() && ["commands", "command"].contains(&name.as_str());
                if !stays && name != "changes" {
                    cut(value, limits);
                }
            }
        }
        _ => {}
    }
}
