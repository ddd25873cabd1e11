//! The execution report (SPEC §11): everything that a run's log says, once more and in order, as one value, and the forms
//! in which it is written. What the fields mean to others is told in `docs/report.md` and fixed in
//! `docs/schemas/report.schema.json`.
//!
//! [`ReportFormat`] names the forms; [`ExecutionReport::render`] is the one place that a new one is added to.

mod annotations;
mod assemble;
mod clock;
mod code_quality;
mod drawing;
mod escape;
mod history;
mod junit;
mod lane;
mod markdown;
mod text;
mod timeline;

use std::io;
use std::path::PathBuf;

use serde::Serialize;

use super::escalation::Escalation;
use super::interfaces::InterfaceView;
use super::lane_view::LaneState;
use super::next_steps::NextStep;
use super::run_view::RunView;
use super::styles::Styles;
use super::summary::{Summary, SummaryContext};
use crate::event::{Record, RunOutcome, StopReason};
use crate::model::safe_text;
use crate::model::{Budget, CommitId, LaneId, MergeMode, PhaseId, Redactor, ReportFormat, RunId, Timestamp, Usage};

pub use annotations::{Annotation, Severity, annotations};
pub use lane::{
    AnswerReport, CheckpointReport, FailureReport, JobReport, LaneReport, LaneTimes, MergeReport, RetryReport,
};
pub use markdown::markdown;
pub use timeline::{Bar, Timeline, Times};

/// The version of the JSON form, `major.minor`: fields may be added with a minor one.
pub const VERSION: &str = "1.0";

/// The longest Markdown, in bytes: a CI job summary holds 1 MiB, and others may write into it as well.
pub const MARKDOWN_LIMIT: usize = 1_000_000;

/// What happened in a run, and where it stands.
#[derive(Debug, Clone, Serialize)]
pub struct ExecutionReport {
    /// The version of this form.
    pub version: &'static str,
    /// The version of the Lanekeeper that began the run.
    pub lanekeeper: Option<String>,
    /// The run.
    pub run_id: Option<RunId>,
    /// Its phase.
    pub phase: Option<PhaseId>,
    /// What the phase is called.
    pub title: Option<String>,
    /// Where the plan was read.
    pub plan_path: Option<PathBuf>,
    /// What was read there.
    pub plan_sha256: Option<String>,
    /// The integration branch.
    pub base_branch: String,
    /// Where it stood when the run began.
    pub base_commit: Option<CommitId>,
    /// Where it stands, as far as this run moved it.
    pub integration: Option<CommitId>,
    /// What the command line and the settings decided.
    pub options: Option<OptionsReport>,
    /// How the run ended; `None` while it goes on or was interrupted.
    pub outcome: Option<RunOutcome>,
    /// How it stands, in a word or two.
    pub standing: &'static str,
    /// The exit code that says so.
    pub exit_code: Option<u8>,
    /// Why it was asked to stop.
    pub stop: Option<StopReason>,
    /// The machine that worked on it last.
    pub host: Option<String>,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub finished: Option<Timestamp>,
    /// How often it was resumed.
    pub resumes: u32,
    /// Where its time went, in milliseconds.
    pub times: Times,
    /// The lanes, in the order of the plan.
    pub lanes: Vec<LaneReport>,
    /// Every run of the final gate.
    pub final_gate: Vec<JobReport>,
    /// Its interface freeze gates.
    pub interfaces: Vec<InterfaceView>,
    /// What its agents used, all lanes together.
    pub usage: Usage,
    /// What was done when.
    pub timeline: Timeline,
    /// What is not done.
    pub left: Vec<Left>,
    /// What may be typed now.
    pub next_steps: Vec<NextStep>,
    /// What a person has to decide.
    pub escalations: Vec<Escalation>,
    /// What else was worth telling.
    pub notes: Vec<Note>,
    /// Lines of the run log that are damaged and therefore not in here.
    pub damaged_lines: usize,
    /// The same in short, as `status` shows it.
    #[serde(skip)]
    pub summary: Summary,
}

/// What the command line and the settings decided.
#[derive(Debug, Clone, Serialize)]
pub struct OptionsReport {
    /// How many agents worked at once at most.
    pub max_parallel: u32,
    /// How lanes reach the integration branch.
    pub merge: MergeMode,
    /// Whether the first failed lane stops all others.
    pub fail_fast: bool,
    /// Only these lanes and what they depend on; empty: all.
    pub lanes: Vec<LaneId>,
    /// Where the worktrees are.
    pub worktree_root: PathBuf,
    /// The time limit that the run began with, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// What the agents might use.
    #[serde(flatten)]
    pub budget: Budget,
}

/// A lane that is not done.
#[derive(Debug, Clone, Serialize)]
pub struct Left {
    /// The lane.
    pub lane: LaneId,
    /// How it stands.
    pub state: LaneState,
    /// Why, or what it waits for.
    pub note: String,
}

/// Something that was worth telling.
#[derive(Debug, Clone, Serialize)]
pub struct Note {
    /// When.
    pub at: Timestamp,
    /// About which lane.
    pub lane: Option<LaneId>,
    /// What.
    pub message: String,
}

/// What a report needs to know that no event says.
#[derive(Debug, Clone, Copy)]
pub struct ReportContext<'a> {
    /// The same as for the summary.
    pub summary: SummaryContext<'a>,
    /// What keeps the secrets of the plan out of the report.
    pub redactor: &'a Redactor,
    /// How many lines of the log are damaged.
    pub damaged_lines: usize,
}

impl ExecutionReport {
    /// The report of the run that `beginning` is before its first event, and of which `records` tell.
    pub fn of(beginning: RunView, records: &[Record], context: ReportContext<'_>) -> Self {
        assemble::assemble(beginning, records, context)
    }

    /// The report in `format`. Text is at most `width` cells wide where it can be broken.
    ///
    /// # Errors
    /// What the writers of JSON and XML say.
    pub fn render(&self, format: ReportFormat, width: usize, styles: Styles) -> io::Result<String> {
        Ok(match format {
            ReportFormat::Text => text::text(self, width, styles),
            ReportFormat::Json => safe_text::json(&serde_json::to_string_pretty(self)?).into_owned() + "\n",
            ReportFormat::Markdown => markdown(self, MARKDOWN_LIMIT),
            ReportFormat::Junit => junit::junit(self)?,
            ReportFormat::CodeQuality => {
                safe_text::json(&serde_json::to_string_pretty(&code_quality::issues(self))?).into_owned() + "\n"
            }
        })
    }

    /// `P1 Billing`.
    pub(super) fn subject(&self) -> String {
        let phase = self.phase.as_ref().map_or("run", PhaseId::as_str);
        self.title.as_ref().map_or_else(|| phase.to_owned(), |title| format!("{phase} {title}"))
    }
}

#[cfg(test)]
mod tests;
