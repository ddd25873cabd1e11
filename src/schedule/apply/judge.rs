//! What the end of a job means: of an agent's attempt, and of a gate.

use crate::event::{AgentReport, Reading, SnapshotReason};
use crate::model::job::TAIL_LINES;
use crate::model::{
    Agent, Diagnosis, ExitCause, Failure, FailureClass, FailureKind, JobExit, JobId, Round, Transcript,
};
use crate::schedule::state::agent::AgentStep;
use crate::schedule::state::gate::{FailedGate, Gate};
use crate::schedule::state::in_vain::{Decision, InVain};

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
        _ if !exit.passed() => return AgentStep::Judging(exit_failure(exit, report, complaint)),
        AgentReport { fault, .. } if !fault.is_empty() => fault.clone(),
        AgentReport { status, message, .. } if status == "ERROR" => format!("the agent reports an error: {message}"),
        _ if !complaint.is_empty() => complaint.to_owned(),
        AgentReport { decision, .. } if round == Round::Review && decision != "APPROVED" => {
            "the reviewer gave no decision (APPROVED or REJECTED) in its status file".to_owned()
        }
        _ if round == Round::Implementation => return AgentStep::Committing,
        _ => return AgentStep::Snapshotting,
    };
    AgentStep::Judging(Failure { log: exit.tail.clone(), ..Failure::new(FailureKind::Report, trouble) })
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

/// That the tasks of `agent` changed no file, with what it said.
pub(crate) fn idle_failure(agent: &Agent, said: &[String]) -> Failure {
    let what =
        if agent.first_own_task() == agent.last_own_task() { "changed no file" } else { "no task changed a file" };
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

pub(crate) fn is_unknown(diagnosis: Option<&Diagnosis>) -> bool {
    diagnosis.is_some_and(|diagnosis| diagnosis.class == FailureClass::Unknown)
}

impl Gate {
    /// Takes the job's end in, if it is the job that is waited for. A stopped gate is due again, and so is one whose
    /// supervisor died, which is not a word about the work: until it has died too often.
    pub(crate) fn settle(&mut self, job: &JobId, exit: &JobExit, reading: Option<&Reading>, in_vain: &mut InVain) {
        if self.job() != Some(job) {
            return;
        }
        let decision = Decision::Gate(job.role.clone());
        if exit.cause == ExitCause::Lost {
            in_vain.count(decision.clone());
        }
        *self = match exit.cause {
            ExitCause::Stopped => Self::Due,
            ExitCause::Lost if !in_vain.is_used_up(&decision) => Self::Due,
            _ if exit.passed() => Self::Passed,
            _ => {
                let diagnosis = match reading {
                    Some(Reading::Diagnosis(diagnosis)) => Some(Box::new(diagnosis.clone())),
                    _ => None,
                };
                Self::Failed(Box::new(FailedGate { exit: exit.clone(), diagnosis }))
            }
        };
        if *self != Self::Due {
            in_vain.forget(&decision);
        }
    }

    /// Whether it failed with an output that nobody understands.
    pub(crate) fn is_misunderstood(&self) -> bool {
        matches!(self, Self::Failed(gate) if is_unknown(gate.diagnosis.as_deref()))
    }

    /// Makes a gate that passed due again.
    pub(crate) fn run_again(&mut self) {
        if *self == Self::Passed {
            *self = Self::Due;
        }
    }

    /// Makes a failed gate due again.
    pub(crate) fn retry(&mut self) {
        if matches!(self, Self::Failed(_)) {
            *self = Self::Due;
        }
    }
}
