//! Clusters: engines that run one command on some machine. What the command did is never asked of them, only whether
//! there is still hope that it does something.
//!
//! Nothing here asks a person, and nothing takes longer than its time limit.

#[cfg(feature = "kubernetes")]
mod api_server;
mod error;
#[cfg(feature = "kubernetes")]
mod kubernetes;
#[cfg(feature = "kubernetes")]
mod kubernetes_checks;
mod open;
#[cfg(feature = "kubernetes")]
mod pod;
#[cfg(feature = "kubernetes")]
mod pod_status;
mod slurm;
mod slurm_reasons;
mod squeue;

use std::collections::HashMap;
use std::fmt;

use lanewright_model::Resources;
use lanewright_model::digest::sha256;

pub use error::ClusterError;
pub use open::open;

/// An engine. Every call may be repeated.
pub trait Cluster: Send + Sync {
    /// Starts a job for each order, unless there is one of that name: so it is harmless if repeated.
    fn submit(&self, orders: &[Order]) -> Vec<Result<Ticket, ClusterError>>;
    /// The jobs of these names; one that is absent is unknown to the engine, or was forgotten.
    fn survey(&self, names: &[OrderName]) -> Result<HashMap<OrderName, Job>, ClusterError>;
    /// Ends jobs. One that is over is no error.
    fn cancel(&self, tickets: &[Ticket], how: Cancel) -> Result<(), ClusterError>;
    /// What a job has printed, without its first `from` bytes; `None`: it cannot be read from here.
    fn output(&self, name: &OrderName, from: u64) -> Result<Option<Vec<u8>>, ClusterError>;
    /// Removes what jobs that are over left, as far as it can be reached from here.
    fn forget(&self, names: &[OrderName]) -> Result<(), ClusterError>;
    /// What a person can do about a job in this state, or one that the engine does not know.
    fn remedy(&self, name: &OrderName, sighting: Option<&Sighting>) -> String;
    fn by_hand(&self, name: &OrderName) -> ByHand;
    /// Whether jobs like `order` can be submitted; nothing is.
    fn check(&self, order: &Order) -> Vec<Check>;
}

/// How a job is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancel {
    /// Its command gets SIGTERM and time to push.
    Ask,
    Kill,
}

/// What a person can run or read about a job.
#[derive(Debug)]
pub struct ByHand {
    /// Where its output is: a path on the machine that ran it, or a command.
    pub output: String,
    /// The command that ends it.
    pub end: String,
}

/// The name of a job, by which it is found again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OrderName(String);

impl OrderName {
    /// The same for the same parts.
    pub fn of(parts: &[&str]) -> Self {
        Self(format!("lw-{}", &sha256(parts.join("\0"))[..16]))
    }
}

impl fmt::Display for OrderName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is to be run.
#[derive(Debug, Clone)]
pub struct Order {
    pub name: OrderName,
    /// What it is for, for people who look at the engine's queue.
    pub comment: String,
    pub command: Vec<String>,
    pub resources: Resources,
}

/// The engine's own name of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket(pub String);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub ticket: Ticket,
    pub sighting: Sighting,
}

/// What an engine says of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighting {
    /// For something that comes by itself, or for what is not known; with the engine's reason.
    Waiting(String),
    /// It waits, perhaps for ever, until what prevents it is changed.
    Stuck(Cause),
    Running {
        node: String,
    },
    Over(Ending),
}

impl Sighting {
    pub fn stuck(&self) -> Option<&Cause> {
        if let Self::Stuck(cause) = self { Some(cause) } else { None }
    }

    /// Why it has not begun.
    pub fn waits_for(&self) -> Option<&str> {
        match self {
            Self::Waiting(reason) => Some(reason),
            Self::Stuck(cause) => Some(&cause.said),
            Self::Running { .. } | Self::Over(_) => None,
        }
    }
}

/// What keeps a job from running, in words, and what a person can do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    pub said: String,
    pub remedy: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// With the exit code; 128 and the signal's number where one ended it.
    Exited(i32),
    OutOfMemory,
    TimeLimit,
    Preempted,
    NodeLost,
    Cancelled,
    /// With the engine's reason.
    NeverStarted(String),
    /// It never had a node, and another job like it would not get one either.
    Impossible(Cause),
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
            Self::Impossible(cause) => write!(f, "cannot run on this cluster: {}", cause.said),
        }
    }
}

/// One thing that must be right for jobs to be submitted.
#[derive(Debug)]
pub struct Check {
    pub name: &'static str,
    /// What was seen, or what is wrong.
    pub outcome: Result<String, ClusterError>,
}
