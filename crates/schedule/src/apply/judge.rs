//! What the end of an agent's attempt means.

use lanewright_model::event::{AgentReport, Reading, SnapshotReason};
use lanewright_model::job::TAIL_LINES;
use lanewright_model::text::listed;
use lanewright_model::{Agent, ExitCause, Failure, FailureKind, JobExit, Round, Transcript};

use crate::state::agent::{AgentStep, Refusals};

/// What is known of a job's end besides its exit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'a> {
    /// What the agent said of itself.
    pub(crate) report: Option<&'a AgentReport>,
    /// What the output of a job that failed was read as.
    pub(crate) reading: Option<&'a Reading>,
    /// What its event stream came to.
    pub(crate) transcript: Option<&'a Transcript>,
}

/// What an attempt's end means for its agent.
pub(crate) fn judge(round: Round, exit: &JobExit, words: Words<'_>) -> AgentStep {
    let silent = AgentReport::default();
    let report = words.report.unwrap_or(&silent);
    let complaint = words.transcript.map_or("", |transcript| transcript.error.as_str());
    if exit.cause == ExitCause::Stopped {
        return AgentStep::Salvaging(SnapshotReason::Stop, None);
    }
    if round == Round::Review && report.rejects() {
        return AgentStep::Snapshotting;
    }
    if report.status == "BLOCKED" {
        return AgentStep::Blocked(report.message.clone());
    }
    let trouble = match report {
        _ if !exit.passed() => {
            return AgentStep::Judging(blame_outage(exit_failure(exit, report, complaint), words.reading));
        }
        AgentReport { fault, .. } if !fault.is_empty() => fault.clone(),
        AgentReport { status, message, .. } if status == "ERROR" => format!("the agent reports an error: {message}"),
        _ if !complaint.is_empty() => complaint.to_owned(),
        AgentReport { decision, .. } if round == Round::Review && decision != "APPROVED" => {
            "the reviewer gave no decision (APPROVED or REJECTED) in its status file".to_owned()
        }
        _ if round == Round::Implementation => return AgentStep::Committing,
        _ => return AgentStep::Snapshotting,
    };
    let failure = Failure { log: exit.tail.clone(), ..Failure::new(FailureKind::Report, trouble) };
    AgentStep::Judging(blame_outage(failure, words.reading))
}

/// An attempt that failed while something was out failed for that.
fn blame_outage(mut failure: Failure, reading: Option<&Reading>) -> Failure {
    if let Some(Reading::Outage(outage)) = reading {
        failure.kind = outage.kind.into();
        // What its own stream complained of stands there already.
        if !failure.message.contains(&outage.line) {
            failure.message = format!("{}: {}", failure.message, outage.line);
        }
    }
    failure
}

fn exit_failure(exit: &JobExit, report: &AgentReport, complaint: &str) -> Failure {
    let (kind, mut message) = match exit.cause {
        ExitCause::TimedOut => (FailureKind::Timeout, format!("ran out of time (exit code {})", exit.exit_code)),
        ExitCause::NotStarted => (FailureKind::Crash, format!("could not be started: {}", exit.notes)),
        ExitCause::Lost => (FailureKind::Lost, format!("its supervisor vanished: {}", exit.notes)),
        ExitCause::Exited | ExitCause::Stopped => (FailureKind::Crash, format!("exited with code {}", exit.exit_code)),
    };
    // What the supervisor wrote on the agent's behalf says nothing new.
    if !report.message.is_empty() && !report.message.contains(&exit.command) {
        message = format!("{message}: {}", report.message);
    } else if !complaint.is_empty() {
        message = format!("{message}: {complaint}");
    }
    Failure {
        command: Some(exit.command.clone()),
        exit_code: Some(exit.exit_code),
        log: exit.tail.clone(),
        ..Failure::new(kind, message)
    }
}

/// The last lines that an attempt said: in its report, in the message of its transcript, else in its output, unless that is
/// a stream for programs (`streams`), in which it said nothing then.
pub(crate) fn last_words(exit: &JobExit, words: Words<'_>, streams: bool) -> Vec<String> {
    let own = words.report.filter(|report| report.own).map(|report| report.message.as_str());
    let message = words.transcript.map(|transcript| transcript.message.as_str());
    let said = [own, message].into_iter().flatten().find(|text| !text.trim().is_empty());
    let lines: Vec<String> = match said {
        Some(text) => text.lines().map(str::to_owned).collect(),
        None if streams => Vec::new(),
        None => exit.tail.clone(),
    };
    let lines: Vec<String> = lines.into_iter().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].to_vec()
}

/// How much of the end of an agent's words the message of a failure has, in characters; its log has all of them.
const QUOTED: usize = 300;

/// How many files that git ignores it names.
const NAMED: usize = 5;

/// That the tasks of `agent` changed no file, with what it was refused, what git ignored of it, and what it said.
pub(crate) fn idle_failure(agent: &Agent, (refusals, ignored): (&Refusals, &[String]), said: &[String]) -> Failure {
    let what =
        if agent.first_own_task() == agent.last_own_task() { "changed no file" } else { "no task changed a file" };
    let what = match ignored {
        [] => what.to_owned(),
        ignored => format!("{what} but what commits leave out: {}", listed(ignored, NAMED)),
    };
    let what = refusals.lines().iter().fold(what, |what, line| format!("{what}; refused: {line}"));
    let words = said.join(" ");
    // A question comes last.
    let cut = words.char_indices().rev().nth(QUOTED - 1).map_or(0, |(at, _)| at);
    let message = match (words.as_str(), cut) {
        ("", _) => format!("{what}, and said nothing"),
        (words, 0) => format!("{what}; it said: {words}"),
        (words, cut) => format!("{what}; it said: …{}", &words[cut..]),
    };
    Failure { log: said.to_vec(), ..Failure::new(FailureKind::Idle, message) }
}

#[cfg(test)]
mod tests;
