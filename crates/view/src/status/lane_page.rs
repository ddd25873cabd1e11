//! Everything about one lane: `status RUN LANE`.

use std::path::PathBuf;

use lanewright_model::cells::{clean, cut};
use lanewright_model::event::stage_in_words;
use lanewright_model::must_haves::tally;
use lanewright_model::text::counted;
use lanewright_model::time::short;
use lanewright_model::{Diagnosis, Failure, FailureClass, FailureKind, JobId, user_setup};
use serde_json::{Value, json};

use crate::answers::commands::Commands;
use crate::answers::escalation::Escalation;
use crate::history::{JobHistory, LaneHistory, Retry};
use crate::status::lane_row::LaneSummary;
use crate::status::styles::{Styles, Tone};
use crate::status::summary::{Summary, push_wrapped};
use crate::status::table::{Cell, Column, Holds, lines};

/// Where the output of a job is, and its last lines.
pub(crate) type OutputOf<'a> = dyn Fn(&JobId) -> (PathBuf, Vec<String>) + 'a;

pub struct LanePage<'s, 'h> {
    pub summary: &'s Summary<'h>,
    pub lane: &'s LaneSummary<'h>,
    pub program: &'s [String],
    pub output_of: &'s OutputOf<'s>,
    /// How a command is shown: as a shell takes it, or as the key that does the same.
    pub how: &'s dyn Fn(&[String]) -> String,
}

const JOBS: &[Column] = &[
    Column { heading: "what", least: 24, usual: 0, dispensable: None, holds: Holds::Words },
    Column { heading: "result", least: 8, usual: 0, dispensable: None, holds: Holds::Words },
    Column { heading: "elapsed", least: 7, usual: 0, dispensable: Some(2), holds: Holds::Words },
    Column { heading: "note", least: 12, usual: 0, dispensable: Some(1), holds: Holds::Note },
];

const FACTS: usize = 10;

/// The facts that an escalation has in its lines.
const ESCALATED: [&str; 6] = ["stage", "note", "retries", "branch", "worktree", "snapshot"];

const FINDINGS: usize = 5;

impl LanePage<'_, '_> {
    /// As text, at most `width` cells wide but for commands and words that cannot be broken.
    pub fn render(&self, width: usize, styles: Styles) -> String {
        let mut text = self.head(width, styles);
        let rows: Vec<Vec<Cell>> = self.lane.lane.jobs.all().map(|job| self.row(job)).collect();
        if !rows.is_empty() {
            text.push_str(&format!("\n{}\n", lines(JOBS, &rows, width, styles).join("\n")));
        }
        self.push_findings(&mut text, width);
        self.push_output(&mut text, width, styles);
        self.push_must_haves(&mut text, width, styles);
        self.push_commands(&mut text, width, styles);
        text
    }

    pub fn json(&self) -> Value {
        json!(self.details())
    }

    fn head(&self, width: usize, styles: Styles) -> String {
        let lane = self.lane.lane;
        let name = lane.name.as_deref().map(|name| format!(" {}", clean(name))).unwrap_or_default();
        let state = styles.paint(self.lane.tone, self.lane.word);
        let mut text =
            format!("{} · {state}\n", styles.paint(Tone::Strong, &cut(&format!("{}{name}", lane.id), width)));
        for (name, value) in self.facts() {
            let mut lines = String::new();
            push_wrapped(&mut lines, &clean(&value), width.saturating_sub(FACTS));
            let lines = lines.trim_end().replace('\n', &format!("\n{:FACTS$}", ""));
            text.push_str(&format!("{:FACTS$}{lines}\n", name));
        }
        text
    }

    /// Without those that an escalation below has as well.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let (lane, history) = (self.lane.lane, self.summary.history);
        let times = lane.started.map(|_| history.lane_times(lane, self.summary.until).describe());
        let retries = lane.counted_retries().next_back().map(Retry::used);
        let exists = |name: &&str| history.still_has(lane, name);
        let kept = lane
            .snapshots
            .iter()
            .rev()
            .filter(|it| !it.unchanged)
            .map(|snapshot| snapshot.reference.as_str())
            .find(exists);
        let executor = lane.elsewhere().map(ToString::to_string);
        let note = Some(&self.lane.note).filter(|note| executor.as_ref() != Some(note));
        let all = [
            ("run", history.run.run_id().map(ToString::to_string)),
            ("executor", executor.clone()),
            ("stage", Some(stage_in_words(lane.stage.word()))),
            ("note", note.cloned()),
            ("set up", Some(user_setup::to_do(&lane.user_setup, |_| true).join("; "))),
            ("after", Some(lane.depends_on.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(", "))),
            ("times", times),
            ("best of", Some(lane.candidates_line())),
            ("used", Some(lane.usage().to_string())),
            ("retries", retries),
            ("branch", lane.workplace.branch().filter(exists).map(str::to_owned)),
            ("worktree", self.lane.worktree.clone()),
            ("snapshot", kept.map(str::to_owned)),
        ];
        let known = all.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let is_below = |name: &str| self.escalation().is_some() && ESCALATED.contains(&name);
        known.filter(|(name, value)| !value.is_empty() && !is_below(name)).collect()
    }

    fn row(&self, job: &JobHistory) -> Vec<Cell> {
        let (from, to) = job.ran(self.summary.until);
        let wrong = job.rejected.as_deref().or(job.blocked()).map(clean);
        let result = match job.passed() {
            _ if job.running && self.summary.held => ("running".to_owned(), Tone::Busy),
            Some(true) if wrong.is_some() => (job.ending(), Tone::Bad),
            Some(true) => (job.ending(), Tone::Good),
            Some(false) => (job.ending(), Tone::Bad),
            None => (job.ending(), Tone::Plain),
        };
        let command = job.exit.as_ref().filter(|_| !job.job.is_attempt()).map(|exit| clean(&exit.command));
        let retry = job.retry.as_deref().map(|retry| format!("{} after: {}", retry.describe(), clean(&retry.reason)));
        let refused = job.refused().map(|text| clean(&text));
        let used = job.transcript.as_ref().map(|transcript| transcript.usage.to_string());
        let note = [wrong, refused, retry, command, used]
            .into_iter()
            .flatten()
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>();
        vec![(job.label(), Tone::Plain), result, (short(to.since(from)), Tone::Plain), (note.join(", "), Tone::Plain)]
    }

    fn push_findings(&self, text: &mut String, width: usize) {
        let failure = self.lane.lane.last_failure.as_ref();
        let Some(failure) = failure.map(|failure| &failure.failure) else { return };
        let (heading, findings) = match failure.diagnosis.as_deref() {
            Some(diagnosis) => (class(diagnosis), diagnosis.findings.iter().map(ToString::to_string).collect()),
            None => (files_of(failure), failure.paths.clone()),
        };
        if findings.is_empty() {
            return;
        }
        text.push_str(&format!("\n{heading}\n"));
        for finding in findings.iter().take(FINDINGS) {
            text.push_str(&format!("{}\n", cut(&format!("  {}", clean(finding)), width)));
        }
        if findings.len() > FINDINGS {
            text.push_str(&format!("  and {} more\n", findings.len() - FINDINGS));
        }
    }

    /// The end of what runs, else of what failed last, wrote.
    fn push_output(&self, text: &mut String, width: usize, styles: Styles) {
        let Some(job) = job_of_interest(self.lane.lane) else { return };
        let (path, tail) = (self.output_of)(job);
        text.push_str(&format!("\n{}\n", path.display()));
        for line in tail {
            let line = cut(&clean(&line), width.saturating_sub(4));
            text.push_str(&format!("  {} {line}\n", styles.paint(Tone::Faint, "|")));
        }
    }

    fn push_must_haves(&self, text: &mut String, width: usize, styles: Styles) {
        let verdicts = &self.lane.lane.must_haves;
        if verdicts.is_empty() {
            return;
        }
        text.push_str(&format!("\nmust-haves: {}\n", tally(verdicts)));
        for verdict in verdicts {
            let (word, tone) = match verdict.holds {
                Some(true) => ("holds", Tone::Good),
                Some(false) => ("missing", Tone::Bad),
                None => ("not checked", Tone::Faint),
            };
            let line = format!("{word:<12}{}", clean(&verdict.describe()));
            text.push_str(&format!("  {}\n", styles.paint(tone, &cut(&line, width.saturating_sub(2)))));
        }
    }

    /// What the user can decide, else where to read on.
    fn push_commands(&self, text: &mut String, width: usize, styles: Styles) {
        text.push('\n');
        if let Some(escalation) = self.escalation() {
            return text.push_str(&escalation.render_with(self.how));
        }
        let lane = self.lane.lane;
        let asked = |command: &&Vec<String>| command.iter().any(|word| word == lane.id.as_str());
        let steps = self.summary.next_steps.iter().filter(|step| step.commands.iter().any(|it| asked(&it)));
        for step in steps {
            push_wrapped(text, &step.reason, width);
            for line in step.commands.iter().map(|command| (self.how)(command)) {
                text.push_str(&format!("  {}\n", styles.paint(Tone::Busy, &line)));
            }
        }
        let Some(run) = self.summary.history.run.run_id() else { return };
        let logs = (self.how)(&Commands { program: self.program, run }.logs(&lane.id));
        text.push_str(&format!("  {}\n", styles.paint(Tone::Busy, &logs)));
    }

    pub(super) fn escalation(&self) -> Option<&Escalation> {
        self.summary.escalations.iter().find(|escalation| escalation.lane.as_ref() == Some(&self.lane.lane.id))
    }
}

/// What runs, else what failed last.
pub(crate) fn job_of_interest(lane: &LaneHistory) -> Option<&JobId> {
    let failed = lane.last_failure.as_ref().and_then(|failure| failure.job.as_ref()).filter(|_| !lane.is_merged());
    lane.jobs.running.last().map(|job| &job.job).or(failed)
}

/// `compilation (rustc), 3 in all`.
pub(crate) fn class(diagnosis: &Diagnosis) -> String {
    let tool = diagnosis.tool.as_ref().map(|tool| format!(" ({tool})")).unwrap_or_default();
    let count = if diagnosis.count > 1 { format!(", {} in all", diagnosis.count) } else { String::new() };
    match diagnosis.class {
        FailureClass::Unknown => format!("found in the output{tool}{count}"),
        class => format!("{class}{tool}{count}"),
    }
}

fn files_of(failure: &Failure) -> String {
    let what = if failure.kind == FailureKind::Conflict { "conflict" } else { "not allowed" };
    format!("{what} in {}", counted(failure.paths.len(), "file"))
}

#[cfg(test)]
mod tests;
