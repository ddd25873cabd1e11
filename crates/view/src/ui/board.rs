//! What the interface shows of a run: views of the one fold, in the order of what they need from the user.

use std::path::Path;

use lanewright_model::event::RunOutcome;
use lanewright_model::text::shell_line;
use lanewright_model::{JobId, LaneId, Timestamp};

use super::material::{Material, Output};
use super::state::{State, Tab};
use crate::RunHistory;
use crate::answers::commands::Commands;
use crate::graph::TextForm;
use crate::history::{JobHistory, LaneHistory};
use crate::report::ExecutionReport;
use crate::status::header::{folded, state_counts};
use crate::status::lane_graph::lane_graph;
use crate::status::lane_page::{LanePage, job_of_interest};
use crate::status::lane_row::{COLUMNS, LaneSummary, shown};
use crate::status::styles::Styles;
use crate::status::summary::{Summary, SummaryContext, headline};
use crate::status::table::{Cell, lines};

/// A run as it is now, and which of its lanes are listed.
#[derive(Debug, Clone)]
pub struct Board<'h> {
    history: &'h RunHistory,
    context: SummaryContext<'h>,
    until: Timestamp,
    lanes: Vec<&'h LaneHistory>,
}

impl<'h> Board<'h> {
    /// The lanes whose id, name or state contains `filter`, those that need the user first.
    pub fn of(history: &'h RunHistory, context: SummaryContext<'h>, filter: &str) -> Self {
        let filter = filter.to_lowercase();
        let matches = |text: &str| text.to_lowercase().contains(&filter);
        let is_wanted = |lane: &&LaneHistory| {
            let name = lane.name.as_deref().unwrap_or_default();
            let states = [lane.state.word(), shown(history, lane, context.held).0];
            filter.is_empty() || matches(lane.id.as_str()) || matches(name) || states.into_iter().any(matches)
        };
        let mut lanes: Vec<&LaneHistory> = history.lanes().iter().filter(is_wanted).collect();
        lanes.sort_by_key(|lane| lane.state.group());
        Self { history, context, until: context.until(history), lanes }
    }

    pub fn lanes(&self) -> &[&'h LaneHistory] {
        &self.lanes
    }

    pub fn held(&self) -> bool {
        self.context.held
    }

    /// The place of `lane` in the list; of one that is not listed the first.
    pub fn position(&self, lane: Option<&LaneId>) -> usize {
        self.lanes.iter().position(|listed| Some(&listed.id) == lane).unwrap_or_default()
    }

    /// The lane that is meant by `selected`: itself if it is listed, else the first.
    pub fn lane(&self, selected: Option<&LaneId>) -> Option<&'h LaneHistory> {
        self.lanes.get(self.position(selected)).copied()
    }

    /// The first lines: the state of the run, and how to resume it if no process works on it.
    pub(crate) fn header(&self, width: usize, most: usize) -> Vec<String> {
        let words = headline(self.history, self.context.held, (self.until, self.context.now), width);
        let resume = self.can_be_resumed().then(|| "not active; R resumes it".to_owned());
        let room = most.saturating_sub(usize::from(resume.is_some())).max(1);
        folded(&words, width).into_iter().take(room).chain(resume).collect()
    }

    fn can_be_resumed(&self) -> bool {
        let is_over = self.context.held || self.history.run.outcome.is_some_and(RunOutcome::is_over);
        !is_over && self.history.run.run_id().is_some()
    }

    /// The key that does what `command` does, else the command.
    fn key_or_command(&self, command: &[String]) -> String {
        key_of(command.get(self.context.program.len()..).unwrap_or_default())
            .map_or_else(|| shell_line(command), str::to_owned)
    }

    /// `text` of a command, in which keys stand for the commands on lines of their own.
    pub(crate) fn with_keys(&self, text: &str) -> String {
        let program = shell_line(self.context.program);
        let line = |line: &str| {
            let words = line.trim().strip_prefix(&program).map(|rest| rest.split_whitespace().map(str::to_owned));
            let key = words.and_then(|words| key_of(&words.collect::<Vec<_>>()));
            key.map_or_else(|| line.to_owned(), |key| format!("  {key}"))
        };
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    /// How many of the listed lanes are in which state, each as `1 failed`.
    pub(crate) fn counts(&self) -> Vec<String> {
        let counts = state_counts(self.lanes.iter().copied(), self.history, self.context.held);
        counts.iter().map(|((_, word), count)| format!("{count} {word}")).collect()
    }

    /// The heading and the lines of the lanes from `first`, at most `most` of them.
    pub(crate) fn rows(&self, first: usize, most: usize, width: usize, material: &Material) -> Vec<String> {
        let last_said = |job: &JobId| material.said.get(job).cloned();
        let shown = self.lanes.iter().skip(first).take(most);
        let row = |lane: &&'h LaneHistory| -> Vec<Cell> {
            LaneSummary::of(self.history, lane, self.context).with_said(&last_said).row()
        };
        let rows: Vec<Vec<Cell>> = shown.map(row).collect();
        lines(COLUMNS, &rows, width, Styles::coloured())
    }

    /// The page of `lane`, as `status` shows it.
    pub(crate) fn overview(&self, lane: &LaneHistory, width: usize, material: &Material) -> String {
        let summary = Summary::of_lanes(self.history, self.context, self.history.lane(&lane.id));
        let output_of = |job: &JobId| match material.output.as_ref().filter(|output| output.job == *job) {
            Some(Output { path, text, .. }) => {
                (path.clone(), text.lines()[text.lines().len().saturating_sub(LINES)..].to_vec())
            }
            None => (Path::new("").to_owned(), Vec::new()),
        };
        let program = self.context.program;
        let how = |command: &[String]| self.key_or_command(command);
        let page = summary.lanes.first();
        let page = page.map(|lane| LanePage { summary: &summary, lane, program, output_of: &output_of, how: &how });
        page.map(|page| page.render(width, Styles::coloured())).unwrap_or_default()
    }

    /// The command that a person most likely types next about `lane`.
    pub(crate) fn next_command(&self, lane: &LaneHistory) -> Option<Vec<String>> {
        let summary = Summary::of_lanes(self.history, self.context, self.history.lane(&lane.id));
        let of_lane = summary.escalations.iter().filter(|escalation| escalation.lane.as_ref() == Some(&lane.id));
        let choices = of_lane.flat_map(|escalation| &escalation.options).map(|choice| &choice.command);
        let steps = summary.next_steps.iter().flat_map(|step| &step.commands);
        let about = steps.filter(|command| command.iter().any(|word| word == lane.id.as_str()));
        let first = choices.chain(about).next().cloned();
        let run = self.history.run.run_id()?;
        Some(first.unwrap_or_else(|| Commands { program: self.context.program, run }.logs(&lane.id)))
    }

    /// The lanes by wave, with their states and the critical path, as `plan graph --as text` draws them.
    pub(crate) fn graph(&self, width: usize) -> String {
        let report = ExecutionReport::of(self.history, self.context, 0);
        let graph = lane_graph(self.history, self.context.held, &report.timeline.critical_path, |_| None);
        graph.text(TextForm { width, ascii: false })
    }

    pub fn history(&self) -> &'h RunHistory {
        self.history
    }
}

/// The key for a command of the selected lane or the run, without the words of the program; one with flags that the key
/// does not have stays a command.
fn key_of(words: &[String]) -> Option<&'static str> {
    let flags: Vec<&str> = words.iter().map(String::as_str).filter(|word| word.starts_with("--")).collect();
    let is_plain = flags.is_empty();
    // The key asks whether to raise the budget.
    let only_raises = flags.iter().all(|flag| ["--max-cost", "--max-tokens"].contains(flag));
    match words.first()?.as_str() {
        "approve" => Some("key a: approve"),
        "reject" => Some("key r: reject"),
        "retry" if is_plain => Some("key t: retry"),
        "resume" if only_raises => Some("key R: resume"),
        "diff" => Some("key 4: diff"),
        "logs" => Some("key 2: tail"),
        _ => None,
    }
}

/// The end of a job's output on its lane's page.
const LINES: usize = 6;

/// Whether the tail is what the job of a cluster prints of the lane, and not a file that came back.
pub fn is_live(lane: &LaneHistory, state: &State) -> bool {
    lane.elsewhere().is_some() && state.tab == Tab::Output && state.back == 0
}

/// The job whose output is shown: `back` jobs before the newest, of which the one of interest counts as the newest.
pub fn job_to_show(lane: &LaneHistory, back: usize) -> Option<&JobId> {
    let of_interest = job_of_interest(lane).filter(|_| back == 0);
    of_interest.or_else(|| nth_from_end(lane, back, |_| true))
}

/// The attempt whose prompt is shown: `back` attempts before the newest.
pub fn attempt_to_show(lane: &LaneHistory, back: usize) -> Option<&JobId> {
    nth_from_end(lane, back, |job| job.job.is_attempt())
}

fn nth_from_end(lane: &LaneHistory, back: usize, wanted: impl Fn(&JobHistory) -> bool) -> Option<&JobId> {
    let jobs: Vec<&JobHistory> = lane.jobs.all().filter(|job| wanted(job)).collect();
    jobs.get(jobs.len().checked_sub(1)?.saturating_sub(back)).map(|job| &job.job)
}
