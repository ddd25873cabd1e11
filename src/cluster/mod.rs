//! Clusters: engines that run one command on some machine. What the command did is never asked of them, only whether
//! there is still hope that it does something.
//!
//! Nothing here asks a person, and nothing takes longer than its time limit.

mod error;
mod slurm;
mod squeue;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

use crate::model::digest::sha256;
use crate::model::{ExecutorKind, ExecutorSettings};

pub(crate) use error::ClusterError;

/// An engine. Every call may be repeated.
pub(crate) trait Cluster: Send + Sync {
    /// Starts a job for each order, unless there is one of that name: so it is harmless if repeated.
    fn submit(&self, orders: &[Order]) -> Vec<Result<Ticket, ClusterError>>;
    /// The jobs of these names; one that is absent is unknown to the engine, or was forgotten.
    fn survey(&self, names: &[OrderName]) -> Result<HashMap<OrderName, Job>, ClusterError>;
    /// Ends jobs: their command is asked first. One that is over is no error.
    fn cancel(&self, tickets: &[Ticket]) -> Result<(), ClusterError>;
    /// Where the output of a job is; a path on the machine that ran it.
    fn output_file(&self, name: &OrderName) -> PathBuf;
    /// Whether jobs like `order` can be submitted; nothing is.
    fn check(&self, order: &Order) -> Vec<Check>;
}

/// The engine that `settings` describe; its jobs get `variables`.
pub(crate) fn open(settings: &ExecutorSettings, variables: Vec<(String, String)>) -> Box<dyn Cluster> {
    match settings.kind {
        ExecutorKind::Slurm => Box::new(slurm::Slurm::new(settings.clone(), variables)),
    }
}

/// The name of a job, by which it is found again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct OrderName(String);

impl OrderName {
    /// The same for the same parts.
    pub(crate) fn of(parts: &[&str]) -> Self {
        Self(format!("lk-{}", &sha256(parts.join("\0"))[..16]))
    }
}

impl fmt::Display for OrderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is to be run.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) name: OrderName,
    /// What it is for, for people who look at the engine's queue.
    pub(crate) comment: String,
    pub(crate) command: Vec<String>,
    pub(crate) cpus: u32,
    pub(crate) memory_mib: u32,
    pub(crate) minutes: u64,
}

/// The engine's own name of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ticket(pub(crate) String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) ticket: Ticket,
    pub(crate) sighting: Sighting,
}

/// What an engine says of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sighting {
    /// With the engine's reason.
    Waiting(String),
    Running {
        node: String,
    },
    Over(Ending),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With the exit code; 128 and the signal's number where one ended it.
    Exited(i32),
    OutOfMemory,
    TimeLimit,
    Preempted,
    NodeLost,
    Cancelled,
    /// With the engine's reason.
    NeverStarted(String),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "ended with exit code {code}"),
            Self::OutOfMemory => f.write_str("used more memory than it may"),
            Self::TimeLimit => f.write_str("reached the engine's time limit"),
            Self::Preempted => f.write_str("was preempted"),
            Self::NodeLost => f.write_str("was lost with its node"),
            Self::Cancelled => f.write_str("was cancelled"),
            Self::NeverStarted(reason) => write!(f, "could not be started: {reason}"),
        }
    }
}

/// One thing that must be right for jobs to be submitted.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    /// What was seen, or what is wrong.
    pub(crate) outcome: Result<String, ClusterError>,
}
