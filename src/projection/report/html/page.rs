//! The values of the page: those of `report.json`, and the words that other formats have for them.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::super::lanes::{JobReport, LaneReport};
use super::super::{ExecutionReport, json};
use super::changes::ChangesView;
use super::chart::Chart;
use crate::model::LaneId;
use crate::model::must_haves::tally;
use crate::projection::commands::Commands;
use crate::projection::header;
use crate::projection::history::{JobHistory, LaneState, Retry};
use crate::projection::lane_page::class;
use crate::projection::lane_row::{rank, tone};
use crate::projection::styles::Tone;

/// How much of each text is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The characters of a text.
    text: usize,
    /// The lines of an output, and how much is listed of what a lane has many of.
    lines: usize,
    /// The bytes of the changes of a lane.
    changes: usize,
}

impl Limits {
    pub(super) fn for_lanes(lanes: usize) -> Self {
        Self { text: 4000, lines: 40, changes: (2_000_000 / lanes.max(1)).min(100_000) }
    }

    /// `None`: less would say nothing.
    pub(super) fn halved(self) -> Option<Self> {
        let Self { text, lines, changes } = self;
        (text > 60).then_some(Self { text: text / 2, lines: lines.div_ceil(2), changes: changes / 2 })
    }
}

pub(super) fn page(report: &ExecutionReport<'_>, limits: Limits) -> Value {
    let mut page = json::report(report);
    let (history, summary) = (report.history, &report.summary);
    let mut notes: HashMap<&LaneId, Vec<&str>> = HashMap::new();
    for note in &history.run.notes {
        note.lane.iter().for_each(|lane| notes.entry(lane).or_default().push(&note.message));
    }
    each(&mut page["lanes"], &report.lanes, |value, it| {
        value["notes"] = json!(notes.get(&it.lane.id).into_iter().flatten().collect::<Vec<_>>())
    });
    each(&mut page["lanes"], &report.lanes, |value, lane| add_to_lane(value, report, lane, limits));
    each(&mut page["final_gate"], &report.final_gate, add_to_job);
    each(&mut page["escalations"], &summary.escalations, |value, it| value["stage"] = it.stage().into());
    let counts = header::standing(history.lanes().iter(), history);
    page["counts"] = counts.iter().map(|((rank, word), count)| json!([word, count, word_of_rank(*rank)])).collect();
    page["subject"] = report.subject().into();
    page["tone"] = tone_of_run(summary.standing()).into();
    page["until"] = json!(summary.until);
    page["used"] = summary.usage().to_string().into();
    page["tokens"] = summary.usage().tokens().into();
    page["chart"] = json!(Chart::of(report));
    cut(&mut page, limits);
    page
}

fn each<T>(values: &mut Value, of: &[T], add: impl Fn(&mut Value, &T)) {
    for (value, of) in values.as_array_mut().into_iter().flatten().zip(of) {
        add(value, of);
    }
}

fn add_to_lane(value: &mut Value, report: &ExecutionReport<'_>, of: &LaneReport<'_>, limits: Limits) {
    let (lane, history, until) = (of.lane, report.history, report.summary.until);
    each(&mut value["attempts"], &of.attempts, add_to_job);
    each(&mut value["gates"], &of.gates, add_to_job);
    each(&mut value["must_haves"], &lane.must_haves, |value, verdict| value["text"] = verdict.describe().into());
    value["must_have_tally"] = tally(&lane.must_haves).into();
    value["tone"] = word_of(tone(lane.state)).into();
    value["rank"] = rank(lane.state).into();
    value["open"] = (rank(lane.state) <= rank(LaneState::Stopped) && lane.started.is_some()).into();
    value["critical"] = report.timeline.critical_path.contains(&lane.id).into();
    each(&mut value["placements"], &of.placements, |value, it| value["fate"] = it.placement.fate().into());
    value["executor"] = json!(lane.elsewhere().map(ToString::to_string));
    let times = history.lane_times(lane, until);
    value["work_ms"] = times.work.into();
    value["waiting_ms"] = times.waiting.into();
    value["used"] = lane.usage().to_string().into();
    value["tokens"] = lane.usage().tokens().into();
    value["retries"] = json!(lane.counted_retries().next_back().map(Retry::used));
    value["diagnosis"] = json!(of.failure().and_then(|it| it.failure.diagnosis.as_deref()).map(class));
    value["changes"] = json!(report.changes.get(&lane.id).map(|it| ChangesView::of(it, limits.changes)));
    let commands = history.run.run_id().map(|run| Commands { program: &report.program, run });
    value["commands"] = json!(commands.map(|it| [it.lane_status(&lane.id), it.logs(&lane.id), it.diff(&lane.id)]));
}

fn add_to_job(value: &mut Value, of: &JobReport<'_>) {
    let job = of.job;
    value["label"] = job.label().into();
    value["result"] = if job.running { "running".to_owned() } else { job.ending() }.into();
    value["tone"] = tone_of_job(job).into();
    value["wrong"] = json!(job.rejected.as_deref().or(job.blocked()));
    value["because"] = json!(job.retry.as_deref().map(|retry| format!("{} after: {}", retry.describe(), retry.reason)));
    value["used"] = job.transcript.as_ref().map(|it| it.usage.to_string()).unwrap_or_default().into();
    value["found"] = json!(job.diagnosis().map(class));
}

pub(super) fn tone_of_job(job: &JobHistory) -> &'static str {
    match job.passed() {
        _ if job.running => "busy",
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

pub(super) fn word_of(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Bad => "bad",
        Tone::Warn => "warn",
        Tone::Busy => "busy",
        _ => "faint",
    }
}

/// The tone of the states that have a rank.
fn word_of_rank(of: u8) -> &'static str {
    use LaneState::{Blocked, Failed, Merged, NeedsPerson, Running, Stopped};
    let states = [NeedsPerson, Failed, Blocked, Stopped, Running, Merged];
    states.into_iter().find(|state| rank(*state) == of).map_or("faint", |state| word_of(tone(state)))
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
