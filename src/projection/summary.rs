//! `status`: the table that also ends a run, its JSON form, and what to type next.

use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::cells::{clean, cut};
use super::commands::Commands;
use super::escalation::{Escalation, escalations};
use super::history::{JobHistory, LaneHistory, LaneState, Retry, RunHistory, WaitingFor};
use super::interfaces::{self, interfaces};
use super::next_steps::{NextStep, next_steps};
use super::styles::{Styles, Tone};
use super::table::{Cell, Column, lines};
use crate::model::must_haves::{any_broken, tally};
use crate::model::time::short;
use crate::model::{AgentName, LaneId, PhaseId, TaskId, Timestamp, Usage, Verdict};

/// What a summary needs besides events.
#[derive(Debug, Clone, Copy)]
pub struct SummaryContext<'a> {
    /// Up to when times of what still runs are counted.
    pub now: Timestamp,
    /// The words before a command, normally `lanekeeper` alone.
    pub program: &'a [String],
    /// Whether a live process works on the run.
    pub held: bool,
}

#[derive(Debug, Clone)]
pub struct Summary<'h> {
    pub history: &'h RunHistory,
    pub held: bool,
    /// Up to when times are counted.
    pub until: Timestamp,
    pub lanes: Vec<LaneSummary<'h>>,
    pub next_steps: Vec<NextStep>,
    /// Empty while a process works on the run.
    pub escalations: Vec<Escalation>,
}

#[derive(Debug, Clone)]
pub struct LaneSummary<'h> {
    pub lane: &'h LaneHistory,
    pub elapsed: Option<Duration>,
    pub waiting_for: Option<WaitingFor>,
    pub note: String,
}

impl<'h> Summary<'h> {
    pub fn of(history: &'h RunHistory, context: SummaryContext<'_>) -> Self {
        let run = &history.run;
        // The clock of a run that no process works on stops.
        let now = if context.held { context.now } else { run.last.unwrap_or(context.now) };
        let until = run.until(now);
        let escalated = |run| escalations(history, &Commands { program: context.program, run });
        Self {
            history,
            held: context.held,
            until,
            lanes: history.lanes().iter().map(|lane| LaneSummary::of(history, lane, until)).collect(),
            next_steps: next_steps(history, context.program, context.held),
            escalations: run.run_id().filter(|_| !context.held).map(escalated).unwrap_or_default(),
        }
    }

    pub fn usage(&self) -> Usage {
        self.lanes.iter().map(|lane| lane.lane.usage()).sum()
    }

    pub fn elapsed(&self) -> Option<Duration> {
        self.history.elapsed(self.until)
    }

    fn stopping(&self) -> bool {
        self.history.run.stop.is_some() && self.history.run.finished.is_none()
    }

    pub fn json(&self) -> Value {
        let run = &self.history.run;
        json!({
            "run_id": run.run_id(),
            "phase": run.phase,
            "title": run.title,
            "base_branch": run.base_branch(),
            "integration": run.integration,
            "outcome": run.outcome,
            "stopping": self.stopping(),
            "held": self.held,
            "started": run.started,
            "finished": run.finished,
            "elapsed_ms": milliseconds(self.elapsed()),
            "resumes": run.resumes,
            "lanes": self.lanes.iter().map(LaneSummary::json).collect::<Vec<_>>(),
            "usage": self.usage(),
            "interfaces": interfaces(self.history),
            "next_steps": self.next_steps,
            "escalations": self.escalations,
        })
    }

    /// The summary as text, at most `width` cells wide but for commands and words that cannot be broken.
    pub fn render(&self, width: usize, styles: Styles) -> String {
        let mut text = styles.paint(Tone::Strong, &cut(&self.headline(), width));
        text.push_str("\n\n");
        let rows: Vec<Vec<Cell>> = self.lanes.iter().map(LaneSummary::row).collect();
        for line in lines(COLUMNS, &rows, width, styles) {
            text.push_str(&line);
            text.push('\n');
        }
        if let Some(gates) = interfaces::summary(&interfaces(self.history)) {
            text.push('\n');
            push_wrapped(&mut text, &clean(&gates), width);
        }
        self.push_must_haves(&mut text, width, styles);
        if !self.usage().is_empty() {
            text.push('\n');
            push_wrapped(&mut text, &format!("used by agents: {}", self.usage()), width);
        }
        for step in &self.next_steps {
            text.push('\n');
            push_wrapped(&mut text, &step.reason, width);
            for line in step.shell_lines() {
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

    fn headline(&self) -> String {
        let run = &self.history.run;
        let phase = run.phase.as_ref().map_or("run", PhaseId::as_str);
        let title = run.title.as_ref().map(|title| format!(" {}", clean(title))).unwrap_or_default();
        let mut words = vec![format!("{phase}{title}"), self.standing().to_owned()];
        words.extend(self.elapsed().map(short));
        words.extend(run.run_id().map(|run| format!("run {run}")));
        words.join(" · ")
    }

    pub fn standing(&self) -> &'static str {
        match self.history.run.outcome {
            Some(outcome) => outcome.word(),
            None if self.history.run.started.is_none() => "not begun",
            None if !self.held => "interrupted",
            None if self.stopping() => "stopping",
            None => "running",
        }
    }
}

impl Serialize for Summary<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

pub(super) fn milliseconds(duration: Option<Duration>) -> Option<u64> {
    duration.map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

const COLUMNS: &[Column] = &[
    Column { heading: "lane", least: 8, dispensable: None },
    Column { heading: "state", least: 10, dispensable: None },
    Column { heading: "agents", least: 8, dispensable: Some(2) },
    Column { heading: "attempts", least: 8, dispensable: Some(1) },
    Column { heading: "elapsed", least: 7, dispensable: Some(3) },
    Column { heading: "note", least: 12, dispensable: None },
];

/// The word for a state in the table, where room is scarce.
fn brief(state: LaneState) -> &'static str {
    match state {
        LaneState::NeedsApproval(_) => "needs approval",
        LaneState::NeedsPerson => "needs you",
        state => state.word(),
    }
}

impl<'h> LaneSummary<'h> {
    fn of(history: &'h RunHistory, lane: &'h LaneHistory, until: Timestamp) -> Self {
        let waiting_for = history.waiting_for(lane);
        let note = note(history, lane, waiting_for.as_ref());
        Self { lane, elapsed: history.lane_elapsed(lane, until), waiting_for, note }
    }

    pub fn worktree(&self) -> Option<String> {
        self.lane.workplace.worktree.as_ref().map(|worktree| worktree.path.to_string_lossy().into_owned())
    }

    fn json(&self) -> Value {
        let lane = self.lane;
        json!({
            "lane": lane.id,
            "name": lane.name,
            "state": lane.state,
            "stage": lane.stage,
            "agents": agents(lane),
            "running": lane.jobs.running.iter().map(running).collect::<Vec<_>>(),
            "attempts": lane.attempts(),
            "usage": lane.usage(),
            "retries": lane.counted_retries().map(retry).collect::<Vec<_>>(),
            "started": lane.started,
            "finished": lane.finished,
            "elapsed_ms": milliseconds(self.elapsed),
            "waiting_for": self.waiting_for,
            "reason": lane.reason(),
            "branch": lane.workplace.branch(),
            "worktree": self.worktree(),
            "head": lane.workplace.head,
            "merge_commit": lane.merge_commit,
            "pull_request": lane.pull_request,
            "snapshots": lane.snapshots,
            "must_haves": lane.must_haves,
            "kept": lane.kept,
            "note": self.note,
        })
    }

    fn row(&self) -> Vec<Cell> {
        let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
        let agents = agents(self.lane).into_iter().map(AgentName::as_str).collect::<Vec<_>>().join(", ");
        let attempts = Some(self.lane.attempts()).filter(|count| *count > 0).map(|count| count.to_string());
        vec![
            (self.lane.id.to_string(), Tone::Plain),
            (brief(self.lane.state).to_owned(), tone(self.lane.state)),
            (or_dash(agents), Tone::Plain),
            (or_dash(attempts.unwrap_or_default()), Tone::Plain),
            (or_dash(self.elapsed.map(short).unwrap_or_default()), Tone::Plain),
            (self.note.clone(), Tone::Plain),
        ]
    }
}

fn retry(retry: &Retry) -> Value {
    let Retry { agent, level, of, reason, planned, .. } = retry;
    let (attempt, max) = (retry.attempt(), of.unwrap_or_default());
    json!({ "agent": agent, "level": level, "attempt": attempt, "max": max, "reason": reason, "at": planned })
}

fn running(job: &JobHistory) -> Value {
    let JobHistory { job, since, .. } = job;
    json!({
        "role": job.role.word(), "agent": job.agent(), "task": job.task(), "attempt": job.number, "since": since,
    })
}

pub fn tone(state: LaneState) -> Tone {
    match state {
        LaneState::Merged | LaneState::Proposed => Tone::Good,
        LaneState::Failed => Tone::Bad,
        LaneState::Blocked | LaneState::Stopped | LaneState::NeedsApproval(_) | LaneState::NeedsPerson => Tone::Warn,
        LaneState::RolledBack => Tone::Warn,
        LaneState::Waiting | LaneState::Skipped => Tone::Faint,
        LaneState::Starting | LaneState::Running | LaneState::Testing => Tone::Busy,
        LaneState::Reviewing | LaneState::Merging => Tone::Busy,
    }
}

/// The agents that work now; when none does, those that have done something.
fn agents(lane: &LaneHistory) -> Vec<&AgentName> {
    let current: Vec<&AgentName> = lane.jobs.running.iter().filter_map(|job| job.job.agent()).collect();
    if current.is_empty() { lane.agents.iter().map(|agent| &agent.name).collect() } else { current }
}

fn note(history: &RunHistory, lane: &LaneHistory, waiting_for: Option<&WaitingFor>) -> String {
    if let Some(reason) = lane.reason() {
        return clean(reason);
    }
    match (lane.state, waiting_for) {
        (_, Some(WaitingFor::Lanes(lanes))) => waits_for_lanes(history, lanes),
        (_, Some(WaitingFor::Place)) if history.run.finished.is_some() => "not begun".to_owned(),
        (_, Some(WaitingFor::Place)) => "waits for a place".to_owned(),
        (_, Some(WaitingFor::Until(moment))) => format!("tries again at {} UTC", moment.0.format("%H:%M:%S")),
        (_, Some(WaitingFor::Approval(gate))) => format!("of its {gate}"),
        (_, Some(WaitingFor::Person(tasks))) => {
            format!("for task {}", tasks.iter().map(TaskId::as_str).collect::<Vec<_>>().join(" and task "))
        }
        (LaneState::Merged | LaneState::Proposed, None) if any_broken(&lane.must_haves) => {
            format!("{}; must-haves: {}", merged_note(history, lane), tally(&lane.must_haves))
        }
        (LaneState::Merged | LaneState::Proposed, None) => merged_note(history, lane),
        (LaneState::RolledBack, None) => match lane.kept.len() {
            0 => String::new(),
            _ => format!("kept {}", clean(&lane.kept.join(", "))),
        },
        (LaneState::Stopped, None) => format!("in {}", lane.stage),
        (state, None) if state.is_active() => activity(lane),
        _ => String::new(),
    }
}

fn waits_for_lanes(history: &RunHistory, lanes: &[LaneId]) -> String {
    let named = lanes.iter().map(|id| match history.lane(id).map(|lane| lane.state) {
        Some(state @ (LaneState::Failed | LaneState::Blocked | LaneState::Stopped | LaneState::RolledBack)) => {
            format!("{id} ({})", state.word())
        }
        _ => id.to_string(),
    });
    format!("after {}", named.collect::<Vec<_>>().join(", "))
}

fn merged_note(history: &RunHistory, lane: &LaneHistory) -> String {
    let kept = if lane.kept.is_empty() { String::new() } else { format!("; kept {}", clean(&lane.kept.join(", "))) };
    match &lane.merge_commit {
        None => "by an earlier run".to_owned(),
        Some(_) if let Some(it) = &lane.pull_request => format!("{}{kept}", clean(&it.url)),
        Some(commit) if history.run.merges() => format!("{}{kept}", commit.short()),
        Some(_) => format!("on {}{kept}", lane.workplace.branch().unwrap_or("its branch")),
    }
}

fn activity(lane: &LaneHistory) -> String {
    let doing = lane.jobs.running.iter().map(|job| match job.job.task() {
        Some(task) => format!("task {task}"),
        None => job.job.role.word().to_owned(),
    });
    let mut words: Vec<String> = doing.collect();
    words.extend(lane.counted_retries().next_back().map(Retry::describe));
    words.join(", ")
}

fn push_wrapped(text: &mut String, sentence: &str, width: usize) {
    let mut used = 0;
    for word in sentence.split_whitespace() {
        let cells = super::cells::width(word);
        if used > 0 && used + 1 + cells > width {
            text.push('\n');
            used = 0;
        } else if used > 0 {
            text.push(' ');
            used += 1;
        }
        text.push_str(word);
        used += cells;
    }
    text.push('\n');
}

#[cfg(test)]
mod tests;
