//! `list`: one line a run.

use lanewright_model::time::ago;
use lanewright_model::{PhaseId, RunId, Timestamp, Usage};
use serde::Serialize;

use crate::history::{LaneState, RunHistory};
#[cfg(feature = "schema")]
use crate::status::run_state::RunState;
use crate::status::styles::{Styles, Tone};
use crate::status::summary::state_of;
use crate::status::table::{Cell, Column, Holds, lines};

/// What `lanewright list --format json` writes.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunList {
    /// The newest first.
    pub runs: Vec<ListedRun>,
}

/// A run, as far as a list shows it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListedRun {
    #[serde(rename = "run_id")]
    pub run: RunId,
    pub phase: Option<PhaseId>,
    /// The state of the run; `unreadable`: its log cannot be read, and `damage` is the reason.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = states())))]
    pub state: &'static str,
    /// Whether a live process works on it.
    pub held: bool,
    pub started: Option<Timestamp>,
    pub lanes: LaneCounts,
    /// What its agents used.
    pub usage: Usage,
    /// What that cost, in words.
    #[serde(skip)]
    pub price: Option<String>,
    /// The first damage of its log.
    pub damage: Option<String>,
}

/// How many lanes a run has.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneCounts {
    /// Those that are merged, or proposed in a pull request.
    pub merged: usize,
    /// All, without those that are skipped.
    pub total: usize,
}

#[cfg(feature = "schema")]
fn states() -> Vec<&'static str> {
    RunState::ALL.iter().map(|state| state.word()).chain([UNREADABLE]).collect()
}

impl ListedRun {
    pub fn of(run: RunId, history: &RunHistory, held: bool) -> Self {
        let is_part = |state: LaneState| state != LaneState::Skipped;
        Self {
            run,
            phase: history.run.phase.clone(),
            state: state_of(history, held).word(),
            held,
            started: history.run.started,
            lanes: LaneCounts {
                merged: history.done(),
                total: history.lanes().iter().filter(|lane| is_part(lane.state)).count(),
            },
            usage: history.run.used,
            price: history.price(),
            damage: None,
        }
    }

    pub fn unreadable(run: RunId, held: bool, why: String) -> Self {
        Self { state: UNREADABLE, damage: Some(why), ..Self::of(run, &RunHistory::default(), held) }
    }

    /// Whether a line of a log with an event of this word decides what is shown. Most lines do not.
    pub fn is_decisive(word: &str, line: &[u8]) -> bool {
        match word {
            "pull_request_opened" | "feedback_received" | "stop_requested" | "rollback_begun" => true,
            "job_exited" => has(line, TRANSCRIPT) || has(line, ATTEMPT),
            // Whose tokens they are.
            "job_planned" => has(line, MADE_WITH),
            word => word.starts_with("run_") || word.starts_with("lane_"),
        }
    }

    fn row(&self, now: Timestamp) -> Vec<Cell> {
        let damaged = if self.damage.is_some() && self.state != UNREADABLE { " (log damaged)" } else { "" };
        let plain = |text: String| (text, Tone::Plain);
        vec![
            plain(self.run.to_string()),
            plain(self.phase.as_ref().map(PhaseId::to_string).unwrap_or_default()),
            (format!("{}{damaged}", self.state), if damaged.is_empty() { tone(self.state) } else { Tone::Bad }),
            plain(format!("{}/{}", self.lanes.merged, self.lanes.total)),
            plain(self.started.map(|started| ago(now.since(started))).unwrap_or_default()),
            plain(self.price.clone().unwrap_or_default()),
        ]
    }
}

const UNREADABLE: &str = "unreadable";

const TRANSCRIPT: &[u8] = b"\"transcript\":";

const ATTEMPT: &[u8] = b"\"attempt\":{";

const MADE_WITH: &[u8] = b"\"made_with\":";

fn has(line: &[u8], wanted: &[u8]) -> bool {
    line.windows(wanted.len()).any(|part| part == wanted)
}

fn tone(state: &str) -> Tone {
    match state {
        "done" => Tone::Good,
        "failed" | UNREADABLE => Tone::Bad,
        "running" | "stopping" => Tone::Busy,
        _ => Tone::Warn,
    }
}

const COLUMNS: &[Column] = &[
    Column { heading: "run", least: 12, usual: 0, dispensable: None, holds: Holds::Id },
    Column { heading: "phase", least: 6, usual: 0, dispensable: Some(1), holds: Holds::Words },
    Column { heading: "state", least: 11, usual: 0, dispensable: None, holds: Holds::Words },
    Column { heading: "merged", least: 6, usual: 0, dispensable: Some(3), holds: Holds::Words },
    Column { heading: "started", least: 7, usual: 0, dispensable: Some(4), holds: Holds::Words },
    Column { heading: "cost", least: 7, usual: 0, dispensable: Some(2), holds: Holds::Words },
];

/// A table of at most `width` cells.
pub fn render(runs: &[ListedRun], now: Timestamp, width: usize, styles: Styles) -> String {
    let rows: Vec<Vec<Cell>> = runs.iter().map(|run| run.row(now)).collect();
    lines(COLUMNS, &rows, width, styles).join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use lanewright_model::Dollars;
    use lanewright_model::event::{Event, Record};
    use lanewright_model::testing::{any_records, at, plan};

    fn listed(state: &'static str) -> ListedRun {
        ListedRun {
            run: RunId::new("P1-SL-AUTH-20251227").unwrap(),
            phase: PhaseId::new("P1").ok(),
            state,
            held: false,
            started: Some(at(0)),
            lanes: LaneCounts { merged: 2, total: 3 },
            usage: Usage { cost: Dollars::new(1.25), ..Usage::default() },
            price: Some("$1.25".to_owned()),
            damage: None,
        }
    }

    #[test]
    fn a_line_a_run_that_fits_the_width() {
        let damaged = ListedRun { damage: Some("line 3".to_owned()), ..listed("failed") };
        let runs = [listed("done"), damaged, ListedRun::unreadable(RunId::new("x").unwrap(), false, "no".to_owned())];
        let text = render(&runs, at(3 * 3600), 100, Styles::plain());
        assert_eq!(
            text,
            "run                  phase  state                 merged  started  cost\n\
             P1-SL-AUTH-20251227  P1     done                  2/3     3h ago   $1.25\n\
             P1-SL-AUTH-20251227  P1     failed (log damaged)  2/3     3h ago   $1.25\n\
             x                           unreadable            0/0\n"
        );
        for width in [26, 40, 60] {
            let text = render(&runs, at(0), width, Styles::plain());
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
            assert!(text.contains("P1-SL-AUTH") && text.contains("unreadabl"), "{width}:\n{text}");
            assert_eq!(text.contains("P1-SL-AUTH-20251227  "), width >= 40, "{width}:\n{text}");
        }
    }

    #[test]
    fn a_column_that_is_empty_in_every_line_is_left_out() {
        let free = ListedRun { price: None, ..listed("failed") };
        assert_eq!(
            render(&[free], at(3 * 3600), 40, Styles::plain()),
            "run                  state   started\n\
             P1-SL-AUTH-20251227  failed  3h ago\n"
        );
    }

    #[test]
    fn plans_of_attempts_that_name_a_runner_are_decisive() {
        let line = |job: &str| ListedRun::is_decisive("job_planned", job.as_bytes());
        assert!(line("{\"event\":\"job_planned\",\"job\":{},\"made_with\":{\"runner\":\"a\"},\"crc\":\"0\"}"));
        assert!(!line("{\"event\":\"job_planned\",\"job\":{\"role\":\"tests\"},\"crc\":\"0\"}"));
    }

    #[test]
    fn only_job_exits_of_attempts_are_decisive() {
        let line = |job: &str| ListedRun::is_decisive("job_exited", job.as_bytes());
        assert!(line("{\"event\":\"job_exited\",\"exit\":{},\"transcript\":{\"cost_usd\":1.5},\"crc\":\"0\"}"));
        assert!(line("{\"event\":\"job_exited\",\"job\":{\"role\":{\"attempt\":{}}},\"exit\":{},\"crc\":\"0\"}"));
        assert!(!line("{\"event\":\"job_exited\",\"job\":{\"role\":\"tests\"},\"exit\":{},\"crc\":\"0\"}"));
    }

    proptest! {
        #[test]
        fn folding_decisive_events_equals_folding_all(mut all in any_records()) {
            // In a real log no lane is complete before it is merged.
            all.retain(|record| !matches!(record.event, Event::LaneMoved { .. }));
            let is_decisive = |record: &&Record| {
                let line = serde_json::to_string(&record.event).unwrap();
                let word = serde_json::to_value(&record.event).unwrap()["event"].clone();
                ListedRun::is_decisive(word.as_str().unwrap(), line.as_bytes())
            };
            let plan = plan(&[("SL-1", &[], &[]), ("SL-2", &[], &[]), ("unknown", &[], &[])]);
            let list = |records: Vec<&Record>| {
                let history = RunHistory::for_plan(&plan).after(records);
                serde_json::to_value(ListedRun::of(RunId::new("r1").unwrap(), &history, false)).unwrap()
            };
            prop_assert_eq!(list(all.iter().filter(is_decisive).collect()), list(all.iter().collect()));
        }
    }
}
