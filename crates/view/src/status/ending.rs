//! How a run ended, on one screen: what failed or needs the user, what became of the rest, and what to type next.

use std::collections::BTreeSet;

use lanewright_model::cells::{self, clean, cut};
use lanewright_model::event::RunOutcome;
use lanewright_model::must_haves::{any_broken, tally};
use lanewright_model::text::{SAME_NUMBER, counted, shell_line};
use lanewright_model::{Approval, LaneId};

use crate::answers::commands::Commands;
use crate::answers::escalation::Escalation;
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

/// How many decisions are shown, the last with its options; of more, only the reasons fit a screen.
const DECISIONS: usize = 2;

/// How many lines of a plan that waits for approval are shown.
const PLAN_LINES: usize = 8;

struct Item {
    tone: Tone,
    what: Vec<String>,
    /// Never cut: a command is there to be copied.
    commands: Vec<Vec<String>>,
    /// What the user has to decide about it.
    decision: Option<Escalation>,
}

/// A part of the plan of a lane that waits for its approval.
#[derive(Debug, Clone)]
pub struct PlanPart {
    /// Who wrote it: an agent, or the plan of the run.
    pub from: String,
    pub lines: Vec<String>,
    /// The command that prints all of it.
    pub whole: Vec<String>,
}

/// The plan of a lane that waits for its approval.
pub type PlanOf<'a> = dyn Fn(&LaneHistory) -> Vec<PlanPart> + 'a;

/// The end of a run as text, at most `width` cells wide but for commands and addresses.
pub fn ending(summary: &Summary<'_>, program: &[String], plan_of: &PlanOf<'_>, width: usize, styles: Styles) -> String {
    let Some(run) = summary.history.run.run_id() else { return String::new() };
    let commands = Commands { program, run };
    let items = |lines| Items { summary, commands, plan_of, width, lines }.all();
    let (whole, brief) = (items(REASON_LINES), items(1));
    let end = [totals(summary, width, styles), next(summary, &commands, &whole, width, styles)].concat();
    // A line says how many there are besides, or sets them apart.
    let room = SCREEN.saturating_sub(end.len() + 1);
    let (shown, hidden) =
        Some(fitting(&whole, room)).filter(|(_, hidden)| *hidden == 0).unwrap_or(fitting(&brief, room));
    let mut lines: Vec<String> = shown.iter().flat_map(|item| item.lines(width, styles)).collect();
    if hidden > 0 {
        lines.push(format!("and {hidden} more: {}", shell_line(commands.status())));
    } else if !lines.is_empty() {
        lines.push(String::new());
    }
    [lines, end].concat().join("\n")
}

impl Item {
    fn lines(&self, width: usize, styles: Styles) -> Vec<String> {
        let first = self.what.first().map(|line| styles.paint(self.tone, line));
        let more = self.what.iter().skip(1).cloned();
        let commands = self.commands.iter().map(|command| command_line(command, styles));
        let decision = self.decision.iter().flat_map(|decision| decision_lines(decision, width, styles));
        first.into_iter().chain(more).chain(commands).chain(decision).collect()
    }

    fn shows(&self, command: &Vec<String>) -> bool {
        let options = self.decision.iter().flat_map(|decision| &decision.options);
        self.commands.contains(command) || options.map(|choice| &choice.command).any(|known| known == command)
    }
}

/// The facts and the options under the headings of the seed, between blank lines.
fn decision_lines(decision: &Escalation, width: usize, styles: Styles) -> Vec<String> {
    let whole = |text: &str| wrapped_on(usize::MAX, text, width);
    let mut lines = vec![String::new(), decision.title()];
    lines.extend(decision.facts().iter().flat_map(|(name, value)| whole(&format!("{name}: {value}"))));
    if !decision.options.is_empty() {
        lines.push("Options:".to_owned());
    }
    for (number, choice) in (1..).zip(&decision.options) {
        lines.extend(whole(&format!("{number}. {}", choice.what)));
        let judgement = wrapped_on(usize::MAX, &choice.judgement(), width.saturating_sub(2));
        lines.extend(judgement.iter().map(|line| format!("  {line}")));
        lines.push(command_line(&choice.command, styles));
    }
    lines
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
    plan_of: &'s PlanOf<'s>,
    width: usize,
    lines: usize,
}

impl Items<'_, '_> {
    fn all(&self) -> Vec<Item> {
        let history = self.summary.history;
        let mut lanes: Vec<&LaneHistory> = history.lanes().iter().collect();
        lanes.sort_by_key(|lane| lane.state.group());
        let asked = questions(history, &self.commands).into_iter().map(|step| self.question(step));
        let plans = lanes.iter().filter(|lane| lane.state == LaneState::NeedsApproval(Approval::Plan));
        let asked = asked.chain(plans.flat_map(|lane| (self.plan_of)(lane)).map(|part| self.plan(part)));
        let failed = lanes.iter().filter_map(|lane| self.failed(lane));
        let mut items: Vec<Item> = asked.chain(failed).chain(self.final_gate()).collect();
        items.extend(self.blocked(&lanes));
        items.extend(lanes.iter().filter_map(|lane| self.broken_must_haves(lane)));
        let mut decisions: Vec<&mut Option<Escalation>> =
            items.iter_mut().map(|item| &mut item.decision).filter(|decision| decision.is_some()).collect();
        if decisions.len() > DECISIONS {
            decisions.into_iter().for_each(|decision| *decision = None);
        } else if let Some((_, others)) = decisions.split_last_mut() {
            // The options of all lanes are alike.
            others.iter_mut().flat_map(|decision| decision.as_mut()).for_each(|decision| decision.options.clear());
        }
        items.extend(self.files_of_one_number());
        items.extend(lanes.iter().filter_map(|lane| self.beyond_plan(lane)));
        items
    }

    fn question(&self, step: NextStep) -> Item {
        let what = wrapped(&step.reason, self.width);
        Item { tone: Tone::Warn, what, commands: step.commands, decision: None }
    }

    /// The beginning of a plan, and where the rest is.
    fn plan(&self, part: PlanPart) -> Item {
        let line = |line: &String| cut(&format!("  | {}", clean(line)), self.width);
        let mut what = vec![cut(&format!("{}:", part.from), self.width)];
        what.extend(part.lines.iter().take(PLAN_LINES).map(line));
        let more = part.lines.len().saturating_sub(PLAN_LINES);
        what.extend((more > 0).then(|| format!("  and {}:", counted(more, "more line"))));
        let commands = if more > 0 { vec![part.whole] } else { Vec::new() };
        Item { tone: Tone::Strong, what, commands, decision: None }
    }

    /// What has to be decided about a lane, or the phase; of lanes that the last resume left out, nothing new.
    fn decision(&self, lane: Option<&LaneId>) -> Option<Escalation> {
        let resumed = &self.summary.history.run.resumed_lanes;
        if lane.is_some_and(|lane| !resumed.is_empty() && !resumed.contains(lane)) {
            return None;
        }
        self.summary.escalations.iter().find(|escalation| escalation.lane.as_ref() == lane).cloned()
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
        let decision = self.decision(Some(&lane.id));
        Some(self.failure(&format!("{} failed: {}", lane.id, failure.message), found, commands, decision))
    }

    fn failure(
        &self,
        what: &str,
        found: Option<String>,
        commands: Vec<Vec<String>>,
        decision: Option<Escalation>,
    ) -> Item {
        let mut lines = wrapped_on(self.lines, what, self.width);
        let found = found.map(|found| wrapped_on(self.lines, &found, self.width.saturating_sub(2)));
        lines.extend(found.into_iter().flatten().map(|line| format!("  {line}")));
        Item { tone: Tone::Bad, what: lines, commands, decision }
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
        Some(self.failure(&what, found.filter(|found| !found.is_empty()), Vec::new(), self.decision(None)))
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
            decision: None,
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
            decision: None,
        })
    }

    /// Files that lanes added beside others of the same number.
    fn files_of_one_number(&self) -> Option<Item> {
        let notes = self.summary.history.run.notes.iter().filter(|note| note.message.ends_with(SAME_NUMBER));
        let lines: BTreeSet<String> =
            notes.filter_map(|note| Some(format!("{}: {}", note.lane.as_ref()?, note.message))).collect();
        let what: Vec<String> =
            lines.iter().flat_map(|line| wrapped_on(self.lines, &clean(line), self.width)).collect();
        (!what.is_empty()).then_some(Item { tone: Tone::Warn, what, commands: Vec::new(), decision: None })
    }

    /// A lane that is merged and changed more files than its plan names.
    fn beyond_plan(&self, lane: &LaneHistory) -> Option<Item> {
        let line = lane.beyond_plan_line().filter(|_| lane.state.is_done())?;
        let line = format!("{} {line}", lane.id);
        let what = wrapped_on(self.lines, &clean(&line), self.width);
        Some(Item { tone: Tone::Plain, what, decision: None, commands: Vec::new() })
    }
}

/// What became of the lanes, and what it took.
fn totals(summary: &Summary<'_>, width: usize, styles: Styles) -> Vec<String> {
    let history = summary.history;
    let done = history.done_without_others();
    let tone = match history.run.outcome {
        _ if done.is_some() => Tone::Good,
        Some(RunOutcome::Done) => Tone::Good,
        Some(RunOutcome::Failed) => Tone::Bad,
        _ => Tone::Warn,
    };
    let counts = header::state_counts(history.lanes().iter(), history, summary.held);
    let mut words: Vec<String> = counts.iter().map(|((_, word), count)| format!("{count} {word}")).collect();
    let state = summary.qualified();
    let room = width.saturating_sub(state.len() + 1);
    words.insert(0, format!("{} {state}", header::subject(history, &words, room)));
    if let Some(done) = done {
        words[0] = format!("{} done, {} is not complete", names(&done), header::subject(history, &[], 0));
    }
    let mut took = vec![history.times(summary.until).describe()];
    took.extend(history.spent());
    let mut lines: Vec<String> = header::folded(&words, width).iter().map(|line| styles.paint(tone, line)).collect();
    lines.extend(wrapped(&took.join(header::GAP), width));
    lines.extend(history.awaited_runners(summary.now, summary.held).map(|(_, words)| cut(&words, width)));
    lines.extend(interfaces::summary(&interfaces(history)).iter().flat_map(|gates| wrapped(gates, width)));
    lines
}

/// Where the work is, and the commands that no item has shown.
fn next(summary: &Summary<'_>, commands: &Commands<'_>, items: &[Item], width: usize, styles: Styles) -> Vec<String> {
    let history = summary.history;
    let step = whole_run(history, commands, true).filter(|_| history.run.failed_final_gate().is_none());
    let mut lines = step.map(|step| reason(history, &step, width)).unwrap_or_default();
    let is_shown = |command: &Vec<String>| items.iter().any(|item| item.shows(command));
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
