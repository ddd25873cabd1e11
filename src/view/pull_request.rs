//! What a pull request says: made of the run alone, so that the same run says the same.

use super::cells::clean;
use super::commands::Commands;
use super::lane_view::{JobView, LaneView};
use super::run_view::RunView;
use crate::model::must_haves::tally;
use crate::model::text::{counted, headline, shell_line};
use crate::model::time::short;
use crate::model::{Agent, CommandLine, JobRole, Lane, PullRequest, Stage, Timestamp, Verdict};

/// The title and the text of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequestText {
    /// One line.
    pub title: String,
    /// Markdown.
    pub body: String,
}

/// What the text is made of.
#[derive(Debug, Clone, Copy)]
pub struct PullRequestContext<'a> {
    /// The run.
    pub view: &'a RunView,
    /// The lane, as the plan has it.
    pub plan: &'a Lane,
    /// The checkpoints that it reached, each with its moment, oldest first.
    pub checkpoints: &'a [(Stage, Timestamp)],
    /// The pull requests that have to be merged before this one.
    pub before: &'a [PullRequest],
    /// How Lanekeeper is called for the run.
    pub commands: Commands<'a>,
}

/// The longest title; GitHub takes 256 characters.
const LONGEST_TITLE: usize = 120;

/// The longest text, in bytes; GitHub takes 65,536 characters.
const LONGEST_BODY: usize = 60_000;

/// The longest line that stands for a task, a command or a verdict.
const LONGEST_LINE: usize = 200;

/// What the pull request of a lane says.
pub fn pull_request_text(context: &PullRequestContext<'_>) -> PullRequestText {
    let plan = context.plan;
    let name = plan.name.as_deref().map(|name| format!(": {}", clean(name))).unwrap_or_default();
    let title = headline(&format!("{}{name}", plan.id), LONGEST_TITLE);
    let mut body = introduction(context);
    if let Some(lane) = context.view.lane(&plan.id) {
        section(&mut body, "Work", plan.agents.iter().map(|agent| work(agent, lane)));
        section(&mut body, "Tests", tests(plan, lane));
        section(&mut body, "Must-haves", must_haves(&lane.must_haves));
    }
    let checkpoint = |(stage, at): &(Stage, Timestamp)| format!("- {} `{stage}`", at.0.format("%Y-%m-%d %H:%M:%S UTC"));
    section(&mut body, "Checkpoints", context.checkpoints.iter().map(checkpoint));
    section(&mut body, "How to continue", commands(context));
    PullRequestText { title, body: cut(body) }
}

fn introduction(context: &PullRequestContext<'_>) -> String {
    let facts = &context.view.run;
    let phase = facts.phase.as_ref().map(ToString::to_string).unwrap_or_default();
    let title = facts.title.as_deref().map(|title| format!(" ({})", prose(title))).unwrap_or_default();
    let run = &context.commands.run;
    let mut text =
        format!("Lane {} of phase {phase}{title}, run {}.\n", code(context.plan.id.as_str()), code(run.as_str()));
    if !context.before.is_empty() {
        let before: Vec<&str> = context.before.iter().map(|it| it.url.as_str()).collect();
        text.push_str(&format!("\nTo be merged after {}.\n", before.join(" and ")));
    }
    text
}

/// What an agent did: its tasks, and how many attempts it took.
fn work(agent: &Agent, lane: &LaneView) -> String {
    let attempts = lane.jobs().filter(|job| job.job.is_attempt() && job.job.agent() == Some(&agent.name)).count();
    let mut text = format!("- {} ({}), {}", code(agent.name.as_str()), agent.round, counted(attempts, "attempt"));
    for task in &agent.tasks {
        let what = task.name.as_deref().unwrap_or(&task.prompt);
        let what = prose(&headline(what, LONGEST_LINE));
        let what = if what.is_empty() { String::new() } else { format!(": {what}") };
        text.push_str(&format!("\n  - task {}{what}", code(task.id.as_str())));
    }
    text
}

/// The lane's tests and how the last run of them ended.
fn tests(plan: &Lane, lane: &LaneView) -> Vec<String> {
    let last = lane.ended.iter().rev().find(|job| job.job.role == JobRole::Tests);
    let commands = plan.tests.iter().map(|command| format!("- {}", code(&shown(command))));
    match last.and_then(told) {
        Some(end) => commands.chain([format!("\n{end}")]).collect(),
        None => vec!["The lane has no tests.".to_owned()],
    }
}

fn told(job: &JobView) -> Option<String> {
    let exit = job.exit.as_ref()?;
    let took = short(exit.finished_at.since(exit.started_at));
    Some(format!("Exit code {} after {took}.", exit.exit_code))
}

fn must_haves(verdicts: &[Verdict]) -> Vec<String> {
    if verdicts.is_empty() {
        return Vec::new();
    }
    let sign = |verdict: &Verdict| match verdict.holds {
        Some(true) => "- [x]",
        Some(false) => "- [ ]",
        None => "- (to be read)",
    };
    let line = |verdict: &Verdict| format!("{} {}", sign(verdict), prose(&headline(&verdict.told(), LONGEST_LINE)));
    verdicts.iter().map(line).chain([format!("\n{}", prose(&tally(verdicts)))]).collect()
}

fn commands(context: &PullRequestContext<'_>) -> Vec<String> {
    let line = |what: &str, words: Vec<String>| format!("- {what}: {}", code(&shell_line(words)));
    vec![
        line("how the run stands", context.commands.status()),
        line("resume the run", context.commands.resume()),
        line("put the lane back", context.commands.rollback(Some(&context.plan.id))),
    ]
}

fn section(body: &mut String, heading: &str, lines: impl IntoIterator<Item = String>) {
    let lines: Vec<String> = lines.into_iter().collect();
    if !lines.is_empty() {
        body.push_str(&format!("\n## {heading}\n\n{}\n", lines.join("\n")));
    }
}

fn shown(command: &CommandLine) -> String {
    headline(&command.to_string(), LONGEST_LINE)
}

/// Text of others as it stands in a sentence: nothing in it is markup, calls anybody or leads anywhere.
fn prose(text: &str) -> String {
    let mut safe = String::new();
    for c in clean(text).chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' => safe.extend(['\\', c]),
            // A word joiner that nobody sees keeps names and numbers from becoming mentions.
            '@' | '#' => safe.extend([c, '\u{2060}']),
            _ => safe.push(c),
        }
    }
    safe
}

/// `text` as code, whatever backticks it holds.
fn code(text: &str) -> String {
    let text = clean(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

fn cut(mut body: String) -> String {
    if body.len() > LONGEST_BODY {
        let end = (0..=LONGEST_BODY).rev().find(|&at| body.is_char_boundary(at)).unwrap_or(0);
        body.truncate(end);
        body.push_str("\n\n… the rest is in the run log.\n");
    }
    body
}

#[cfg(test)]
mod tests;
