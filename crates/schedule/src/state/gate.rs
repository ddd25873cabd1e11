//! How far a list of commands is.

use lanewright_model::dependencies::DEPENDENCIES;
use lanewright_model::event::Reading;
use lanewright_model::text::headline;
use lanewright_model::{CommitId, Diagnosis, ExitCause, Failure, FailureClass, FailureKind, JobExit, JobId};

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
        let (kind, mut message) = match self.lacks_program() {
            true => (FailureKind::Environment, format!("{message}: {}", self.program_problem())),
            false => (FailureKind::Gate, message),
        };
        if let Some(base) = self.in_base() {
            message.push_str(&format!("; it fails in the same way without the lane's changes (base {})", base.short()));
        }
        Failure {
            command: Some(exit.command.clone()),
            exit_code: Some(exit.exit_code),
            log: exit.tail.clone(),
            diagnosis: self.diagnosis.clone(),
            ..Failure::new(kind, message)
        }
    }

    fn in_base(&self) -> Option<&CommitId> {
        self.diagnosis.as_ref()?.in_base.as_ref()
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
        match could_not_run {
            true => !words.any(|word| is_path_of_work(word) && is_missing(word)),
            // One that the gate starts in turn: then the exit code is the gate's own.
            false => self.in_base().is_some() && self.lacks_program_of_its_own(),
        }
    }

    /// Whether the output names a program that was not found, and no file that an agent may have to write.
    fn lacks_program_of_its_own(&self) -> bool {
        let problems = || self.exit.tail.iter().filter(|line| names_problem(line));
        problems().any(|line| names_missing_program(line))
            && !problems().flat_map(|line| line.split_whitespace()).any(is_path_of_work)
    }

    /// What the shell printed about the program, if it is known.
    fn program_problem(&self) -> String {
        let exit = &self.exit;
        let line = exit.tail.iter().rev().find(|line| names_problem(line)).unwrap_or(&exit.notes);
        let what = if exit.exit_code == NOT_EXECUTABLE { "cannot be run" } else { "was not found" };
        let line = if line.is_empty() { String::new() } else { format!(" ({})", headline(line, 200)) };
        format!("a program that it needs {what}{line}")
    }
}

/// Exit codes of shells: a program was found and could not be run, or was not found.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// The words of shells for these.
const PROBLEMS: &[&str] = &["not found", "No such file", "ermission denied", "annot execute", "No module named"];

/// Programs that gates run as modules of Python, and that no lane writes.
const PYTHON_TOOLS: &[&str] = &[
    "black", "build", "coverage", "flake8", "isort", "mypy", "nox", "pip", "pylint", "pyright", "pytest", "ruff", "tox",
];

fn names_problem(line: &str) -> bool {
    PROBLEMS.iter().any(|problem| line.contains(problem))
}

/// Whether a shell, or Python, prints with `line` that a program is not installed.
fn names_missing_program(line: &str) -> bool {
    let line = line.trim_end();
    let is_shell = |word: &str| word.strip_suffix(':').is_some_and(|name| name.ends_with("sh"));
    let is_python = |path: &str| path.rsplit('/').next().is_some_and(|name| name.starts_with("python"));
    let lacks_tool = |(path, module): (&str, &str)| is_python(path) && PYTHON_TOOLS.contains(&module);
    line.ends_with(": command not found")
        || line.ends_with(": not found") && line.split_whitespace().next().is_some_and(is_shell)
        || line.split_once(": No module named ").is_some_and(lacks_tool)
}

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
