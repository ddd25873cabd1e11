//! How far a list of commands is.

use crate::model::{Diagnosis, JobExit, JobId};

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
