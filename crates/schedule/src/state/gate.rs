//! How far a list of commands is.

use lanewright_model::dependencies::DEPENDENCIES;
use lanewright_model::event::Reading;
use lanewright_model::text::headline;
use lanewright_model::{Diagnosis, ExitCause, Failure, FailureClass, FailureKind, JobExit, JobId};

use crate::state::no_progress::{Decision, MOST, NoProgress};

/// The progress of a list of commands.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Gate {
    /// Not run yet, or to be run again.
    #[default]
    Due,
    Running(JobId),
    /// Every command passed.
    Passed,
    Failed(Box<FailedGate>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct FailedGate {
    pub exit: JobExit,
    /// What its output says.
    pub diagnosis: Option<Box<Diagnosis>>,
}

impl Gate {
    /// The job, while it runs.
    pub fn job(&self) -> Option<&JobId> {
        match self {
            Self::Running(job) => Some(job),
            _ => None,
        }
    }

    /// Takes the job's end in, if it is the job that is waited for. A stopped gate is due again, and so is one whose
    /// supervisor died, which is not a word about the work: until it has died too often.
    pub(crate) fn record_exit(
        &mut self,
        job: &JobId,
        exit: &JobExit,
        reading: Option<&Reading>,
        no_progress: &mut NoProgress,
    ) {
        if self.job() != Some(job) {
            return;
        }
        let decision = Decision::Gate(job.role.clone());
        if exit.cause == ExitCause::Lost {
            no_progress.count(decision.clone());
        }
        *self = match exit.cause {
            ExitCause::Stopped => Self::Due,
            ExitCause::Lost if !no_progress.is_used_up(&decision) => Self::Due,
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
            no_progress.forget(&decision);
        }
    }

    /// Whether it failed with output that no rule reads.
    pub(crate) fn is_misunderstood(&self) -> bool {
        matches!(self, Self::Failed(gate) if is_unknown(gate.diagnosis.as_deref()))
    }

    /// Makes a gate that passed due again.
    pub(crate) fn run_again(&mut self) {
        if *self == Self::Passed {
            *self = Self::Due;
        }
    }

    /// Makes a gate due again that has not passed.
    pub(crate) fn start_again(&mut self) {
        if *self != Self::Passed {
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

impl FailedGate {
    /// The failure that its exit is; the message begins with `what`.
    pub(crate) fn failure(&self, what: &str) -> Failure {
        let exit = &self.exit;
        let command = headline(&exit.command, 120);
        let message = match exit.cause {
            ExitCause::Lost => format!("{what}: the supervisor of `{command}` died {MOST} times: {}", exit.notes),
            _ => format!("{what}: `{command}` exited with code {}", exit.exit_code),
        };
        let (kind, message) = match self.lacks_program() {
            true => (FailureKind::Environment, format!("{message}: {}", self.program_problem())),
            false => (FailureKind::Gate, message),
        };
        Failure {
            command: Some(exit.command.clone()),
            exit_code: Some(exit.exit_code),
            log: exit.tail.clone(),
            diagnosis: self.diagnosis.clone(),
            ..Failure::new(kind, message)
        }
    }

    /// Whether a program was not found or cannot be run that no agent could have written. A path in the repository that the
    /// command names is the agent's to create.
    fn lacks_program(&self) -> bool {
        let exit = &self.exit;
        let could_not_run = match exit.cause {
            ExitCause::NotStarted => true,
            ExitCause::Exited => matches!(exit.exit_code, NOT_EXECUTABLE | NOT_FOUND),
            _ => false,
        };
        let is_missing = |path: &str| {
            exit.tail.iter().any(|line| line.contains(path))
                || exit.cause == ExitCause::NotStarted && exit.command.starts_with(path)
        };
        let between = |character: char| character.is_whitespace() || ";&|()<>'\"`".contains(character);
        let mut words = exit.command.split(between);
        could_not_run && !words.any(|word| is_path_of_work(word) && is_missing(word))
    }

    /// What the shell printed about the program, if it is known.
    fn program_problem(&self) -> String {
        let exit = &self.exit;
        let names_it = |line: &&String| PROBLEMS.iter().any(|problem| line.contains(problem));
        let line = exit.tail.iter().rev().find(names_it).unwrap_or(&exit.notes);
        let what = if exit.exit_code == NOT_EXECUTABLE { "cannot be run" } else { "was not found" };
        let line = if line.is_empty() { String::new() } else { format!(" ({})", headline(line, 200)) };
        format!("a program that it needs {what}{line}")
    }
}

/// Exit codes of shells: a program was found and could not be run, or was not found.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// The words of shells for these.
const PROBLEMS: &[&str] = &["not found", "No such file", "ermission denied", "annot execute"];

/// Whether `word` is a path to a file that an agent may write, and not one of installed dependencies.
fn is_path_of_work(word: &str) -> bool {
    let is_installed = |part: &str| DEPENDENCIES.iter().any(|known| known.places.contains(&part));
    // `bash check.sh` names a file, `python3.11` a program.
    let is_script = word.rsplit_once('.').is_some_and(|(name, suffix)| {
        !name.is_empty() && !suffix.is_empty() && suffix.chars().all(|it| it.is_ascii_alphabetic())
    });
    (word.contains('/') || is_script) && !word.starts_with(['/', '~', '$']) && !word.split('/').any(is_installed)
}

/// Whether nothing is known of why a gate failed.
pub(crate) fn is_unknown(diagnosis: Option<&Diagnosis>) -> bool {
    diagnosis.is_some_and(|diagnosis| diagnosis.class == FailureClass::Unknown)
}

#[cfg(test)]
mod tests;
