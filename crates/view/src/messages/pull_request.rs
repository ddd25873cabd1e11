//! The title and the text of a lane's pull request; they depend on the run alone, so the same run gives the same text.

use lanewright_model::cells::clean;
use lanewright_model::event::Record;
use lanewright_model::must_haves::tally;
use lanewright_model::text::{counted, headline, shell_line};
use lanewright_model::time::short;
use lanewright_model::{Agent, CommandLine, JobRole, Lane, LaneIndex, Plan, PullRequest, RunId, Stage, Verdict};

use crate::answers::commands::Commands;
use crate::history::{FailureView, LaneHistory, RunHistory};

struct Context<'a> {
    history: &'a RunHistory,
    plan: &'a Lane,
    /// The pull requests that have to be merged before this one.
    before: &'a [PullRequest],
    commands: Commands<'a>,
}

/// The longest title; GitHub takes 256 characters.
const LONGEST_TITLE: usize = 120;

/// The longest text, in bytes; GitHub takes 65,536 characters.
const LONGEST_BODY: usize = 60_000;

/// The longest line for a task, a command or a verdict, in characters.
const LONGEST_LINE: usize = 200;

/// The title and the Markdown text of the pull request of a lane, after the records of its run. The pull requests in
/// `before` have to be merged before it.
pub fn pull_request(
    plan: &Plan,
    run: &RunId,
    lane: LaneIndex,
    records: &[Record],
    before: &[PullRequest],
) -> (String, String) {
    let history = RunHistory::for_plan(plan).after(records);
    let commands = Commands { program: &["lanewright".to_owned()], run };
    text(&Context { history: &history, plan: plan.lane(lane), before, commands })
}

fn text(context: &Context<'_>) -> (String, String) {
    let plan = context.plan;
    let name = plan.name.as_deref().map(|name| format!(": {}", clean(name))).unwrap_or_default();
    let title = headline(&format!("{}{name}", plan.id), LONGEST_TITLE);
    let mut body = introduction(context);
    if let Some(lane) = context.history.lane(&plan.id) {
        section(&mut body, "Work", plan.agents.iter().map(|agent| work(agent, lane)));
        section(&mut body, "Tests", tests(plan, lane));
        section(&mut body, "Must-haves", must_haves(&lane.must_haves));
        section(&mut body, "What failed on the way", failures(lane));
        section(&mut body, "Checkpoints", checkpoints(lane));
    }
    section(&mut body, "How to continue", commands(context));
    (title, cut(body))
}

fn introduction(context: &Context<'_>) -> String {
    let facts = &context.history.run;
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

/// What was tried again, the oldest first.
fn failures(lane: &LaneHistory) -> Vec<String> {
    let line = |view: &FailureView| {
        let agent = view.agent.as_ref().map(|agent| format!("{}: ", code(agent.as_str()))).unwrap_or_default();
        format!("- {agent}{}", prose(&headline(view.failure.headline(), LONGEST_LINE)))
    };
    lane.failures.iter().map(line).collect()
}

/// Without those of retries.
fn checkpoints(lane: &LaneHistory) -> Vec<String> {
    let reached = lane.checkpoints.iter().filter(|checkpoint| checkpoint.stage != Stage::RetryAttempt);
    reached.map(|it| format!("- {} `{}`", it.at.0.format("%Y-%m-%d %H:%M:%S UTC"), it.stage)).collect()
}

/// The tasks of an agent, and how many attempts it took.
fn work(agent: &Agent, lane: &LaneHistory) -> String {
    let attempts = lane.jobs.all().filter(|job| job.job.is_attempt() && job.job.agent() == Some(&agent.name)).count();
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
fn tests(plan: &Lane, lane: &LaneHistory) -> Vec<String> {
    let last = lane.jobs.last_ended(|job| job.job.role == JobRole::Tests).and_then(|job| job.exit.as_ref());
    let Some(exit) = last else { return vec!["The lane has no tests.".to_owned()] };
    let command = |command: &CommandLine| format!("- {}", code(&headline(&command.to_string(), LONGEST_LINE)));
    let took = short(exit.finished_at.since(exit.started_at));
    plan.tests.iter().map(command).chain([format!("\nExit code {} after {took}.", exit.exit_code)]).collect()
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
    let line = |verdict: &Verdict| format!("{} {}", sign(verdict), prose(&headline(&verdict.describe(), LONGEST_LINE)));
    verdicts.iter().map(line).chain([format!("\n{}", prose(&tally(verdicts)))]).collect()
}

fn commands(context: &Context<'_>) -> Vec<String> {
    let line = |what: &str, words: Vec<String>| format!("- {what}: {}", code(&shell_line(words)));
    vec![
        line("status of the run", context.commands.status()),
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

/// External text within a sentence, without markup, mentions and links.
fn prose(text: &str) -> String {
    let mut safe = String::new();
    for c in clean(text).chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' => safe.extend(['\\', c]),
            // An invisible word joiner keeps names and numbers from becoming mentions.
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
        body.truncate(body.floor_char_boundary(LONGEST_BODY));
        body.push_str("\n\n… the rest is in the run log.\n");
    }
    body
}

#[cfg(test)]
mod tests;
