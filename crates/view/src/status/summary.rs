//! `status`: the table that also ends a run, its JSON form, and what to type next.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::answers::commands::Commands;
use crate::answers::escalation::{Escalation, escalation_of, final_gate};
use crate::answers::next_steps::{NextStep, next_steps};
use crate::history::{LaneHistory, RunHistory};
pub use crate::status::context::SummaryContext;
use crate::status::header;
use crate::status::interfaces::{self, interfaces};
pub use crate::status::lane_row::LaneSummary;
use crate::status::lane_row::{COLUMNS, LastSaid};
use crate::status::run_state::RunState;
use crate::status::styles::{Styles, Tone};
use crate::status::table::{Cell, lines};
use lanewright_model::cells::{clean, cut, wrapped};
use lanewright_model::event::RunOutcome;
use lanewright_model::must_haves::{any_broken, tally};
use lanewright_model::text::{LEFT_OUT, SAME_NUMBER};
use lanewright_model::time::LocalTime;
use lanewright_model::{LaneId, Timestamp, Usage, Verdict};

#[derive(Debug, Clone)]
pub struct Summary<'h> {
    pub history: &'h RunHistory,
    pub held: bool,
    /// Up to when times are counted.
    pub until: Timestamp,
    pub(crate) now: LocalTime,
    pub lanes: Vec<LaneSummary<'h>>,
    pub next_steps: Vec<NextStep>,
    /// Empty while a process works on the run.
    pub escalations: Vec<Escalation>,
}

impl<'h> Summary<'h> {
    pub fn of(history: &'h RunHistory, context: SummaryContext<'_>) -> Self {
        Self::of_lanes(history, context, history.lanes())
    }

    /// The same with only some of the lanes, and what there is to decide about them.
    pub(crate) fn of_lanes(
        history: &'h RunHistory,
        context: SummaryContext<'_>,
        lanes: impl IntoIterator<Item = &'h LaneHistory> + Clone,
    ) -> Self {
        let until = context.until(history);
        let escalated = |run| {
            let commands = Commands { program: context.program, run };
            let of_lanes = lanes.clone().into_iter().filter_map(|lane| escalation_of(history, lane, &commands));
            of_lanes.chain(final_gate(history, &commands)).collect()
        };
        Self {
            history,
            held: context.held,
            until,
            now: context.now,
            lanes: lanes.clone().into_iter().map(|lane| LaneSummary::of(history, lane, context)).collect(),
            next_steps: next_steps(history, context.program, context.held),
            escalations: history.run.run_id().filter(|_| !context.held).map(escalated).unwrap_or_default(),
        }
    }

    pub fn usage(&self) -> Usage {
        self.lanes.iter().map(|lane| lane.lane.usage()).sum()
    }

    #[must_use]
    pub fn with_said(mut self, last_said: &LastSaid<'_>) -> Self {
        self.lanes = self.lanes.into_iter().map(|lane| lane.with_said(last_said)).collect();
        self
    }

    pub fn elapsed(&self) -> Option<Duration> {
        self.history.elapsed(self.until)
    }

    pub(super) fn stopping(&self) -> bool {
        stopping(self.history)
    }

    pub fn json(&self) -> Value {
        json!(self.status())
    }

    /// The summary as text, at most `width` cells wide but for commands and words that cannot be broken.
    pub fn render(&self, width: usize, styles: Styles) -> String {
        let mut text = styles.paint(Tone::Strong, &self.headline(width));
        text.push_str("\n\n");
        let mut lanes: Vec<&LaneSummary<'_>> = self.lanes.iter().collect();
        lanes.sort_by_key(|summary| summary.lane.state.group());
        let rows: Vec<Vec<Cell>> = lanes.into_iter().map(LaneSummary::row).collect();
        for line in lines(COLUMNS, &rows, width, styles) {
            text.push_str(&line);
            text.push('\n');
        }
        if let Some(gates) = interfaces::summary(&interfaces(self.history)) {
            text.push('\n');
            push_wrapped(&mut text, &clean(&gates), width);
        }
        self.push_must_haves(&mut text, width, styles);
        self.push_notes(&mut text, width);
        if self.history.run.started.is_some() {
            text.push('\n');
            push_wrapped(&mut text, &self.history.times(self.until).describe(), width);
        }
        let used = self.history.used();
        if !used.is_empty() {
            push_wrapped(&mut text, &format!("used by agents: {used}"), width);
        }
        let mut shown: HashSet<String> = HashSet::new();
        for step in &self.next_steps {
            text.push('\n');
            push_wrapped(&mut text, &step.reason, width);
            for line in step.shell_lines().filter(|line| shown.insert(line.clone())) {
                // Never cut: a command is there to be copied.
                text.push_str(&format!("  {}\n", styles.paint(Tone::Busy, &line)));
            }
        }
        text
    }

    /// What became of the must-haves of all lanes, and those that do not hold.
    fn push_must_haves(&self, text: &mut String, width: usize, styles: Styles) {
        let all: Vec<Verdict> = self.lanes.iter().flat_map(|lane| lane.lane.must_haves.iter().cloned()).collect();
        if all.is_empty() {
            return;
        }
        let tone = if any_broken(&all) { Tone::Warn } else { Tone::Good };
        let line = styles.paint(tone, &cut(&format!("must-haves: {}", tally(&all)), width));
        text.push_str(&format!("\n{line}\n"));
        for lane in &self.lanes {
            for verdict in lane.lane.must_haves.iter().filter(|verdict| verdict.holds == Some(false)) {
                push_wrapped(text, &clean(&format!("- {} {}", lane.lane.id, verdict.describe())), width);
            }
        }
    }

    /// What the work of the lanes leaves out, with the settings that change it, and files of one number; once, also where a
    /// resume found it again.
    fn push_notes(&self, text: &mut String, width: usize) {
        let is_shown = |id: &LaneId| self.lanes.iter().any(|shown| shown.lane.id == *id);
        let is_meant = |message: &str| message.starts_with(LEFT_OUT) || message.ends_with(SAME_NUMBER);
        let notes = self.history.run.notes.iter().filter(|note| is_meant(&note.message));
        let lines: BTreeSet<String> = notes
            .filter_map(|note| Some((note.lane.as_ref().filter(|id| is_shown(id))?, &note.message)))
            .map(|(id, message)| format!("{id}: {message}"))
            .collect();
        for (number, line) in lines.iter().enumerate() {
            text.push_str(if number == 0 { "\n" } else { "" });
            push_wrapped(text, &clean(line), width);
        }
    }

    fn headline(&self, width: usize) -> String {
        header::fitting(&headline(self.history, self.held, (self.until, self.now), width), width)
    }

    pub(crate) fn state(&self) -> RunState {
        state_of(self.history, self.held)
    }

    pub fn standing(&self) -> &'static str {
        self.state().word()
    }

    /// The state with what qualifies it: `done, 2 must-haves unmet, 1 lane without a gate`.
    pub fn qualified(&self) -> String {
        qualified(self.history, self.held)
    }
}

/// The state of the run; of one that is done also what its lanes were merged without.
pub(crate) fn qualified(history: &RunHistory, held: bool) -> String {
    let state = state_of(history, held);
    let lacks = if state == RunState::Done { history.lacks() } else { Vec::new() };
    [vec![state.to_string()], lacks].concat().join(", ")
}

/// What a run's first line says, the most important first. The title is cut to what the state and the number of lanes
/// leave of `width`. Times are counted up to `until`.
pub(crate) fn headline(
    history: &RunHistory,
    held: bool,
    (until, now): (Timestamp, LocalTime),
    width: usize,
) -> Vec<String> {
    let mut words = vec![qualified(history, held)];
    words.extend(header::progress(history, held, until, now));
    words.insert(0, header::subject(history, &words[..2.min(words.len())], width));
    words.extend(header::left(history, until).filter(|_| held));
    words.extend(history.run.run_id().map(|run| format!("run {run}")));
    words
}

/// The state of the run. `held`: whether a live process works on it.
pub(crate) fn state_of(history: &RunHistory, held: bool) -> RunState {
    let is_half_rolled_back = history.half_rolled_back().next().is_some();
    match history.run.outcome {
        _ if is_half_rolled_back && held => RunState::RollingBack,
        _ if is_half_rolled_back => RunState::HalfRolledBack,
        Some(RunOutcome::RolledBack) => RunState::RolledBack,
        Some(RunOutcome::Done) => RunState::Done,
        Some(RunOutcome::Failed) => RunState::Failed,
        Some(RunOutcome::Blocked) => RunState::Blocked,
        Some(RunOutcome::Stopped) => RunState::Stopped,
        None if history.run.started.is_none() => RunState::NotBegun,
        None if !held => RunState::Interrupted,
        None if stopping(history) => RunState::Stopping,
        None => RunState::Running,
    }
}

fn stopping(history: &RunHistory) -> bool {
    history.run.stop.is_some() && history.run.finished.is_none()
}

impl Serialize for Summary<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.status().serialize(serializer)
    }
}

pub(crate) fn milliseconds(duration: Option<Duration>) -> Option<u64> {
    duration.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

pub(crate) fn push_wrapped(text: &mut String, sentence: &str, width: usize) {
    text.push_str(&(wrapped(sentence, width, "", usize::MAX).join("\n") + "\n"));
}

#[cfg(test)]
mod tests;
