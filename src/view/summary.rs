//! The table at the end of a run and of `status`, and what to type next.

use std::time::Duration;

use serde::Serialize;

use super::cells::{clean, cut};
use super::commands::Commands;
use super::escalation::{Escalation, escalations};
use super::interfaces::{self, InterfaceView, interfaces};
use super::lane_view::{LaneState, LaneView, RetryView, SnapshotView, WaitingFor};
use super::next_steps::{NextStep, next_steps};
use super::run_view::RunView;
use super::styles::{Styles, Tone};
use super::table::{Cell, Column, lines};
use crate::event::{LaneStage, RunOutcome};
use crate::model::must_haves::{any_broken, tally};
use crate::model::time::{optional_millis, short};
use crate::model::{AgentName, CommitId, LaneId, PhaseId, PullRequest, RunId, TaskId, Timestamp, Usage, Verdict};

/// What a summary needs to know that no event says.
#[derive(Debug, Clone, Copy)]
pub struct SummaryContext<'a> {
    /// Up to when times of what still runs are counted.
    pub now: Timestamp,
    /// The words before a command, normally `lanekeeper` alone.
    pub program: &'a [String],
    /// Whether a live process works on the run.
    pub held: bool,
}

/// How a run stands: the data of the table, and its JSON form.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The run.
    pub run_id: Option<RunId>,
    /// Its phase.
    pub phase: Option<PhaseId>,
    /// What the phase is called.
    pub title: Option<String>,
    /// The integration branch.
    pub base_branch: String,
    /// Where it stands, as far as this run moved it.
    pub integration: Option<CommitId>,
    /// How the run ended; `None` while it goes on or was interrupted.
    pub outcome: Option<RunOutcome>,
    /// Whether it was asked to stop and has not ended.
    pub stopping: bool,
    /// Whether a live process works on it.
    pub held: bool,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub finished: Option<Timestamp>,
    /// How long it took or has taken, in milliseconds.
    #[serde(rename = "elapsed_ms", with = "optional_millis")]
    pub elapsed: Option<Duration>,
    /// How often it was resumed.
    pub resumes: u32,
    /// The lanes, in the order of the plan.
    pub lanes: Vec<LaneSummary>,
    /// What its agents used, all lanes together.
    pub usage: Usage,
    /// Its interface freeze gates.
    pub interfaces: Vec<InterfaceView>,
    /// What may be done now.
    pub next_steps: Vec<NextStep>,
    /// What a person has to decide, once nobody works on the run.
    pub escalations: Vec<Escalation>,
}

/// How a lane stands.
#[derive(Debug, Clone, Serialize)]
pub struct LaneSummary {
    /// The lane.
    pub lane: LaneId,
    /// What people call it.
    pub name: Option<String>,
    /// How it stands, in one or a few words.
    pub state: LaneState,
    /// Where it stands in its life.
    pub stage: LaneStage,
    /// The agents that work now; when none does, those that did.
    pub agents: Vec<AgentName>,
    /// What runs now.
    pub running: Vec<RunningSummary>,
    /// How many attempts of agents were started.
    pub attempts: usize,
    /// What its agents used.
    pub usage: Usage,
    /// Retries so far.
    pub retries: Vec<RetryView>,
    /// When it left the queue.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub finished: Option<Timestamp>,
    /// How long it took or has taken, in milliseconds.
    #[serde(rename = "elapsed_ms", with = "optional_millis")]
    pub elapsed: Option<Duration>,
    /// What it waits for.
    pub waiting_for: Option<WaitingFor>,
    /// Why it failed or is blocked.
    pub reason: Option<String>,
    /// Its branch.
    pub branch: Option<String>,
    /// Its worktree's path.
    pub worktree: Option<std::path::PathBuf>,
    /// Its branch's head.
    pub head: Option<CommitId>,
    /// The integration branch after its merge.
    pub merge_commit: Option<CommitId>,
    /// Its pull request.
    pub pull_request: Option<PullRequest>,
    /// Snapshots that were taken.
    pub snapshots: Vec<SnapshotView>,
    /// What became of its must-haves; empty before they were looked for.
    pub must_haves: Vec<Verdict>,
    /// What was kept at cleanup or rollback.
    pub kept: Vec<String>,
    /// The remark in the table.
    pub note: String,
}

/// A job that runs.
#[derive(Debug, Clone, Serialize)]
pub struct RunningSummary {
    /// The kind of work: `attempt`, `verify`, `tests`.
    pub role: &'static str,
    /// Whose.
    pub agent: Option<AgentName>,
    /// At what.
    pub task: Option<TaskId>,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Since when.
    pub since: Timestamp,
}

impl Summary {
    /// How the run of `view` stands.
    pub fn of(view: &RunView, context: SummaryContext<'_>) -> Self {
        let run = &view.run;
        // What nobody works on takes no more time.
        let now = if context.held { context.now } else { run.last.unwrap_or(context.now) };
        let until = run.until(now);
        let escalated = |run| escalations(view, &Commands { program: context.program, run });
        Self {
            run_id: run.run_id.clone(),
            phase: run.phase.clone(),
            title: run.title.clone(),
            base_branch: run.base_branch.clone(),
            integration: run.integration.clone(),
            outcome: run.outcome,
            stopping: run.stop.is_some() && run.finished.is_none(),
            held: context.held,
            started: run.started,
            finished: run.finished,
            elapsed: run.started.map(|started| until.since(started)),
            resumes: run.resumes,
            lanes: view.lanes().iter().map(|lane| lane_summary(view, lane, until)).collect(),
            usage: view.lanes().iter().map(LaneView::usage).sum(),
            interfaces: interfaces(view),
            next_steps: next_steps(view, context.program, context.held),
            escalations: run.run_id.as_ref().filter(|_| !context.held).map(escalated).unwrap_or_default(),
        }
    }

    /// The summary as text, at most `width` cells wide but for commands and words that cannot be broken.
    pub fn render(&self, width: usize, styles: Styles) -> String {
        let mut text = styles.paint(Tone::Strong, &cut(&self.headline(), width));
        text.push_str("\n\n");
        for line in lines(COLUMNS, &self.rows(), width, styles) {
            text.push_str(&line);
            text.push('\n');
        }
        if let Some(gates) = interfaces::told(&self.interfaces) {
            text.push('\n');
            push_wrapped(&mut text, &clean(&gates), width);
        }
        self.push_must_haves(&mut text, width, styles);
        if !self.usage.is_empty() {
            text.push('\n');
            push_wrapped(&mut text, &format!("used by agents: {}", self.usage), width);
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
        let all: Vec<Verdict> = self.lanes.iter().flat_map(|lane| lane.must_haves.iter().cloned()).collect();
        if all.is_empty() {
            return;
        }
        let tone = if any_broken(&all) { Tone::Warn } else { Tone::Good };
        let told = styles.paint(tone, &cut(&format!("must-haves: {}", tally(&all)), width));
        text.push_str(&format!("\n{told}\n"));
        for lane in &self.lanes {
            for verdict in lane.must_haves.iter().filter(|verdict| verdict.holds == Some(false)) {
                push_wrapped(text, &clean(&format!("- {} {}", lane.lane, verdict.told())), width);
            }
        }
    }

    fn headline(&self) -> String {
        let phase = self.phase.as_ref().map_or("run", PhaseId::as_str);
        let mut words = vec![match &self.title {
            Some(title) => format!("{phase} {}", clean(title)),
            None => phase.to_owned(),
        }];
        words.push(self.standing().to_owned());
        words.extend(self.elapsed.map(short));
        words.extend(self.run_id.as_ref().map(|run| format!("run {run}")));
        words.join(" · ")
    }

    /// How the run stands, in a word or two.
    pub fn standing(&self) -> &'static str {
        match self.outcome {
            Some(outcome) => outcome.word(),
            None if self.started.is_none() => "not begun",
            None if !self.held => "interrupted",
            None if self.stopping => "stopping",
            None => "running",
        }
    }

    fn rows(&self) -> Vec<Vec<Cell>> {
        self.lanes.iter().map(row).collect()
    }
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

fn row(lane: &LaneSummary) -> Vec<Cell> {
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let agents = lane.agents.iter().map(AgentName::as_str).collect::<Vec<_>>().join(", ");
    let attempts = if lane.attempts == 0 { String::new() } else { lane.attempts.to_string() };
    vec![
        (lane.lane.to_string(), Tone::Plain),
        (brief(lane.state).to_owned(), tone(lane.state)),
        (or_dash(agents), Tone::Plain),
        (or_dash(attempts), Tone::Plain),
        (or_dash(lane.elapsed.map(short).unwrap_or_default()), Tone::Plain),
        (lane.note.clone(), Tone::Plain),
    ]
}

/// The colour of a state.
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

fn lane_summary(view: &RunView, lane: &LaneView, until: Timestamp) -> LaneSummary {
    let waiting_for = view.waiting_for(lane);
    LaneSummary {
        lane: lane.id.clone(),
        name: lane.name.clone(),
        state: lane.state,
        stage: lane.stage,
        agents: agents(lane),
        running: lane.running.iter().map(running).collect(),
        attempts: lane.attempts(),
        usage: lane.usage(),
        retries: lane.retries.clone(),
        started: lane.started,
        finished: lane.finished,
        elapsed: lane.elapsed(until),
        reason: lane.reason().map(str::to_owned),
        branch: lane.branch().map(str::to_owned),
        worktree: lane.worktree.as_ref().map(|worktree| worktree.path.clone()),
        head: lane.head.clone(),
        merge_commit: lane.merge_commit.clone(),
        pull_request: lane.pull_request.clone(),
        snapshots: lane.snapshots.clone(),
        must_haves: lane.must_haves.clone(),
        kept: lane.kept.clone(),
        note: note(view, lane, waiting_for.as_ref()),
        waiting_for,
    }
}

fn agents(lane: &LaneView) -> Vec<AgentName> {
    let current: Vec<AgentName> = lane.running.iter().filter_map(|job| job.job.agent().cloned()).collect();
    if current.is_empty() { lane.agents.iter().map(|agent| agent.name.clone()).collect() } else { current }
}

fn running(job: &super::lane_view::JobView) -> RunningSummary {
    RunningSummary {
        role: job.job.role.word(),
        agent: job.job.agent().cloned(),
        task: job.job.task().cloned(),
        attempt: job.job.number,
        since: job.since,
    }
}

fn note(view: &RunView, lane: &LaneView, waiting_for: Option<&WaitingFor>) -> String {
    if let Some(reason) = lane.reason() {
        return clean(reason);
    }
    match (lane.state, waiting_for) {
        (_, Some(WaitingFor::Lanes(lanes))) => waits_for_lanes(view, lanes),
        (_, Some(WaitingFor::Place)) if view.run.finished.is_some() => "not begun".to_owned(),
        (_, Some(WaitingFor::Place)) => "waits for a place".to_owned(),
        (_, Some(WaitingFor::Until(moment))) => format!("tries again at {} UTC", moment.0.format("%H:%M:%S")),
        (_, Some(WaitingFor::Approval(gate))) => format!("of its {gate}"),
        (_, Some(WaitingFor::Person(tasks))) => {
            format!("for task {}", tasks.iter().map(TaskId::as_str).collect::<Vec<_>>().join(" and task "))
        }
        (LaneState::Merged | LaneState::Proposed, None) if any_broken(&lane.must_haves) => {
            format!("{}; must-haves: {}", merged_note(view, lane), tally(&lane.must_haves))
        }
        (LaneState::Merged | LaneState::Proposed, None) => merged_note(view, lane),
        (LaneState::RolledBack, None) => match lane.kept.len() {
            0 => String::new(),
            _ => format!("kept {}", clean(&lane.kept.join(", "))),
        },
        (LaneState::Stopped, None) => format!("in {}", lane.stage),
        (state, None) if state.is_active() => activity(lane),
        _ => String::new(),
    }
}

fn waits_for_lanes(view: &RunView, lanes: &[LaneId]) -> String {
    let named = lanes.iter().map(|id| match view.lane(id).map(|lane| lane.state) {
        Some(state @ (LaneState::Failed | LaneState::Blocked | LaneState::Stopped | LaneState::RolledBack)) => {
            format!("{id} ({})", state.word())
        }
        _ => id.to_string(),
    });
    format!("after {}", named.collect::<Vec<_>>().join(", "))
}

fn merged_note(view: &RunView, lane: &LaneView) -> String {
    let kept = if lane.kept.is_empty() { String::new() } else { format!("; kept {}", clean(&lane.kept.join(", "))) };
    match &lane.merge_commit {
        None => "by an earlier run".to_owned(),
        Some(_) if let Some(it) = &lane.pull_request => format!("{}{kept}", clean(&it.url)),
        Some(commit) if view.run.merges() => format!("{}{kept}", commit.short()),
        Some(_) => format!("on {}{kept}", lane.branch().unwrap_or("its branch")),
    }
}

fn activity(lane: &LaneView) -> String {
    let doing = lane.running.iter().map(|job| match job.job.task() {
        Some(task) => format!("task {task}"),
        None => job.job.role.word().to_owned(),
    });
    let mut words: Vec<String> = doing.collect();
    words.extend(lane.retries.last().map(RetryView::told));
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
