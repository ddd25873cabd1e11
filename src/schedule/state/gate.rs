//! How far a list of commands is.

use crate::model::text::headline;
use crate::model::{Diagnosis, ExitCause, Failure, FailureKind, JobExit, JobId};
use crate::schedule::state::in_vain::MOST;

/// The progress of a list of commands.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Gate {
    /// Not run yet, or to be run again.
    #[default]
    Due,
    /// Runs.
    Running(JobId),
    /// Every command passed.
    Passed,
    /// A command failed.
    Failed(Box<FailedGate>),
}

/// How a gate failed.
#[derive(Debug, Clone, PartialEq)]
pub struct FailedGate {
    /// The exit of the command.
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
        Failure {
            command: Some(exit.command.clone()),
            exit_code: Some(exit.exit_code),
            log: exit.tail.clone(),
            diagnosis: self.diagnosis.clone(),
            ..Failure::new(FailureKind::Gate, message)
        }
    }
}
