//! How a run ended, on one screen: what failed or needs the user, what became of the rest, and what to type next.

use lanewright_model::cells::{self, clean, cut};
use lanewright_model::event::RunOutcome;
use lanewright_model::must_haves::{any_broken, tally};
use lanewright_model::text::shell_line;

use crate::answers::commands::Commands;
use crate::answers::next_steps::{NextStep, by_reason, names, questions, run_commands, whole_run};
use crate::history::{Ending, LaneHistory, LaneState, RunHistory};
use crate::status::findings::{complaint, finding};
use crate::status::header;
use crate::status::interfaces::{self, interfaces};
use crate::status::styles::{Styles, Tone};
use crate::status::summary::Summary;

/// What a screen has room for.
const SCREEN: usize = 24;

/// How many lines a reason may have that says what to do.
const REASON_LINES: usize = 3;

struct Item {
    tone: Tone,
    what: Vec<String>,
    /// Never cut: a command is there to be copied.
    commands: Vec<Vec<String>>,
}

/// The end of a run as text, at most `width` cells wide but for commands and addresses.
pub fn ending(summary: &Summary<'_>, program: &[String], width: usize, styles: Styles) -> String {
    let Some(run) = summary.history.run.run_id() else { return String::new() };
    let commands = Commands { program, run };
    let items = |lines| Items { summary, commands, width, lines }.all();
    let (whole, brief) = (items(REASON_LINES), items(1));
    let end = [totals(summary, width, styles), next(summary, &commands, &whole, width, styles)].concat();
    // A line says how many there are besides, or sets them apart.
    let room = SCREEN.saturating_sub(end.len() + 1);
    let (shown, hidden) =
        Some(fitting(&whole, room)).filter(|(_, hidden)| *hidden == 0).unwrap_or(fitting(&brief, room));
    let mut lines: Vec<String> = shown.iter().flat_map(|item| item.lines(styles)).collect();
    if hidden > 0 {
        lines.push(format!("and {hidden} more: {}", shell_line(commands.status())));
    } else if !lines.is_empty() {
        lines.push(String::new());
    }
    [lines, end].concat().join("\n")
}

impl Item {
    fn lines(&self, styles: Styles) -> Vec<String> {
        let first = self.what.first().map(|line| styles.paint(self.tone, line));
        let more = self.what.iter().skip(1).cloned();
        let commands = self.commands.iter().map(|command| command_line(command, styles));
        first.into_iter().chain(more).chain(commands).collect()
    }
}

fn command_line(command: &[String], styles: Styles) -> String {
    format!("  {}", styles.paint(Tone::Busy, &shell_line(command)))
}

/// The items that there is room for, and how many others there are.
fn fitting(items: &[Item], mut room: usize) -> (&[Item], usize) {
    let fits = |item: &&Item| {
        let left = room.checked_sub(item.what.len() + item.commands.len());
        room = left.unwrap_or_default();
        left.is_some()
    };
    let shown = items.iter().take_while(fits).count();
    (&items[..shown], items.len() - shown)
}

struct Items<'s, 'h> {
    summary: &'s Summary<'h>,
    commands: Commands<'s>,
    width: usize,
    lines: usize,
}

impl Items<'_, '_> {
    fn all(&self) -> Vec<Item> {
        let history = self.summary.history;
        let mut lanes: Vec<&LaneHistory> = history.lanes().iter().collect();
        lanes.sort_by_key(|lane| lane.state.group());
        let asked = questions(history, &self.commands).into_iter().map(|step| self.question(step));
        let failed = lanes.iter().filter_map(|lane| self.failed(lane));
        let mut items: Vec<Item> = asked.chain(failed).chain(self.final_gate()).collect();
        items.extend(self.blocked(&lanes));
        items.extend(lanes.iter().filter_map(|lane| self.broken_must_haves(lane)));
        items
    }

    fn question(&self, step: NextStep) -> Item {
        Item { tone: Tone::Warn, what: wrapped(&step.reason, self.width), commands: step.commands }
    }

    /// What failed, the first thing that was found, and where to read on.
    fn failed(&self, lane: &LaneHistory) -> Option<Item> {
        let Some(Ending::Failed(failure)) = &lane.ending else { return None };
        let log = failure.log.last().or_else(|| lane.last_failure.as_ref()?.failure.log.last());
        let job = lane.last_failure.as_ref().and_then(|last| last.job.as_ref());
        let exit = job.and_then(|job| lane.jobs.last_ended(|ended| ended.job == *job)?.exit.as_ref());
        let last_line = log.or_else(|| exit?.tail.last());
        let found = Some(finding(failure)).filter(|found| !found.is_empty()).or_else(|| Some(clean(last_line?)));
        let found = found.filter(|found| !found.is_empty() && !failure.message.ends_with(found.as_str()));
        let commands = vec![self.commands.lane_status(&lane.id)];
        Some(self.failure(&format!("{} failed: {}", lane.id, failure.message), found, commands))
    }

    fn failure(&self, what: &str, found: Option<String>, commands: Vec<Vec<String>>) -> Item {
        let mut lines = wrapped_on(self.lines, what, self.width);
        let found = found.map(|found| wrapped_on(self.lines, &found, self.width.saturating_sub(2)));
        lines.extend(found.into_iter().flatten().map(|line| format!("  {line}")));
        Item { tone: Tone::Bad, what: lines, commands }
    }

    fn final_gate(&self) -> Option<Item> {
        let history = self.summary.history;
        let exit = history.run.failed_final_gate()?;
        let culprit = history.run.culprit.as_ref().map(|lane| format!(", since the merge of {lane}"));
        let what = format!(
            "the final gate failed on {}{} (exit code {}): {}",
            history.run.base_branch(),
            culprit.unwrap_or_default(),
            exit.exit_code,
            clean(&exit.command)
        );
        let gate = history.run.jobs.last_ended(|_| true);
        let found =
            complaint(gate.and_then(|gate| gate.diagnosis())).or_else(|| exit.tail.last().map(|line| clean(line)));
        Some(self.failure(&what, found.filter(|found| !found.is_empty()), Vec::new()))
    }

    /// Lanes that wait for the same thing are named together; those that wait for another lane are only counted.
    fn blocked(&self, lanes: &[&LaneHistory]) -> Vec<Item> {
        let blocked = self.summary.escalations.iter().filter_map(|escalation| {
            let lane = lanes.iter().find(|lane| Some(&lane.id) == escalation.lane.as_ref())?;
            (lane.state == LaneState::Blocked).then(|| (*lane, escalation.issue.clone()))
        });
        let item = |(reason, lanes): (String, Vec<&LaneHistory>)| Item {
            tone: Tone::Warn,
            what: wrapped(&format!("{} blocked: {reason}", names(&lanes)), self.width),
            commands: vec![self.commands.lane_status(&lanes[0].id)],
        };
        by_reason(blocked).into_iter().map(item).collect()
    }

    /// A lane that is merged and lacks what it must have.
    fn broken_must_haves(&self, lane: &LaneHistory) -> Option<Item> {
        let is_broken = lane.state.is_done() && any_broken(&lane.must_haves);
        is_broken.then(|| Item {
            tone: Tone::Warn,
            what: vec![cut(&format!("{}: must-haves: {}", lane.id, tally(&lane.must_haves)), self.width)],
            commands: vec![self.commands.lane_status(&lane.id)],
        })
    }
}

/// What became of the lanes, and what it took.
fn totals(summary: &Summary<'_>, width: usize, styles: Styles) -> Vec<String> {
    let history = summary.history;
    let tone = match history.run.outcome {
        Some(RunOutcome::Done) => Tone::Good,
        Some(RunOutcome::Failed) => Tone::Bad,
        _ => Tone::Warn,
    };
    let counts = header::state_counts(history.lanes().iter(), history, summary.held);
    let mut words: Vec<String> = counts.iter().map(|((_, word), count)| format!("{count} {word}")).collect();
    let room = width.saturating_sub(summary.standing().len() + 1);
    words.insert(0, format!("{} {}", header::subject(history, &words, room), summary.standing()));
    let mut took = vec![history.times(summary.until).describe()];
    took.extend(history.run.used.spent());
    let mut lines: Vec<String> = header::folded(&words, width).iter().map(|line| styles.paint(tone, line)).collect();
    lines.extend(wrapped(&took.join(header::GAP), width));
    lines.extend(interfaces::summary(&interfaces(history)).iter().flat_map(|gates| wrapped(gates, width)));
    lines
}

/// Where the work is, and the commands that no item has shown.
fn next(summary: &Summary<'_>, commands: &Commands<'_>, items: &[Item], width: usize, styles: Styles) -> Vec<String> {
    let history = summary.history;
    let step = whole_run(history, commands, true).filter(|_| history.run.failed_final_gate().is_none());
    let mut lines = step.map(|step| reason(history, &step, width)).unwrap_or_default();
    let is_shown = |command: &Vec<String>| items.iter().any(|item| item.commands.contains(command));
    let choices = run_commands(history, commands).into_iter().filter(|command| !is_shown(command));
    lines.extend(choices.map(|command| command_line(&command, styles)));
    lines
}

/// Addresses of pull requests are never cut.
fn reason(history: &RunHistory, step: &NextStep, width: usize) -> Vec<String> {
    match history.run.outcome {
        Some(RunOutcome::Done) => step.reason.lines().map(str::to_owned).collect(),
        _ => wrapped(&step.reason, width),
    }
}

/// `text` on at most [`REASON_LINES`] lines.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    wrapped_on(REASON_LINES, text, width)
}

fn wrapped_on(most: usize, text: &str, width: usize) -> Vec<String> {
    // A command is not cut, either.
    let lines = cells::wrapped(&clean(text), width, "  ", most);
    lines.into_iter().map(|line| if has_command(&line) { line } else { cut(&line, width) }).collect()
}

/// Whether something in backticks has several words; names of types and files are one.
fn has_command(line: &str) -> bool {
    line.split('`').skip(1).step_by(2).any(|quoted| quoted.contains(' '))
}

#[cfg(test)]
mod tests;
