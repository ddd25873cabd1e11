//! Which agents of a round are complete (seed 003, Recovery Procedure 2).

use std::fmt;
use std::time::Duration;

use lanewright_model::text::counted;
use lanewright_model::time::short;
use lanewright_model::{AgentName, Failure, FailureKind, Lane, Round};

use crate::state::agent::{AgentState, AgentStep};
use crate::state::lane::LaneState;

/// How far an agent is, in the words of the seed, each with what was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Its work is in the lane, or its word is given.
    Complete,
    Error(String),
    /// It ran out of time, or gave no sign of life for too long.
    Timeout(String),
    Working(String),
    /// Its attempt has run for that long.
    Running(Duration),
    /// It was never begun, or its `status.json` is gone.
    Missing(String),
    /// What it says of itself makes no sense.
    Unknown(String),
}

/// The agents of a round, in the order of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    pub agents: Vec<(AgentName, Standing)>,
}

impl Completion {
    /// How far the agents of `round` are, as the run log has it, but for candidates that were not chosen.
    pub fn of(lane: &LaneState, plan: &Lane, round: Round) -> Self {
        let standing = |agent: usize| (plan.agents[agent].name.clone(), standing(&lane.agents()[agent]));
        let counts = |agent: &usize| !lane.agents()[*agent].is_unchosen();
        Self { agents: plan.round(round).filter(counts).map(standing).collect() }
    }

    pub fn is_complete(&self) -> bool {
        self.agents.iter().all(|(_, standing)| *standing == Standing::Complete)
    }
}

impl fmt::Display for Completion {
    /// The seed's summary line: `2/3 complete, 1 error, 0 timeouts, 0 missing`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |is: fn(&Standing) -> bool| self.agents.iter().filter(|(_, standing)| is(standing)).count();
        let complete = count(|standing| *standing == Standing::Complete);
        let errors = count(|standing| matches!(standing, Standing::Error(_) | Standing::Unknown(_)));
        let timeouts = count(|standing| matches!(standing, Standing::Timeout(_)));
        let missing = count(|standing| matches!(standing, Standing::Missing(_)));
        let all = self.agents.len();
        let (errors, timeouts) = (counted(errors, "error"), counted(timeouts, "timeout"));
        write!(f, "{complete}/{all} complete, {errors}, {timeouts}, {missing} missing")
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete => f.write_str("COMPLETE"),
            Self::Error(what) => write!(f, "ERROR - {what}"),
            Self::Timeout(what) => write!(f, "TIMEOUT - {what}"),
            Self::Working(what) => write!(f, "WORKING - {what}"),
            Self::Running(age) => write!(f, "WORKING for {}", in_minutes(*age)),
            Self::Missing(why) => write!(f, "MISSING - {why}"),
            Self::Unknown(what) => write!(f, "UNKNOWN - {what}"),
        }
    }
}

/// `12m`, as the seed shows it; below a minute `34s`.
fn in_minutes(age: Duration) -> String {
    match age.as_secs() / 60 {
        0 => short(age),
        minutes => format!("{minutes}m"),
    }
}

fn standing(worker: &AgentState) -> Standing {
    match &worker.step {
        AgentStep::Done => Standing::Complete,
        AgentStep::Failed(failure)
        | AgentStep::PermanentlyFailed(failure)
        | AgentStep::Judging(failure)
        | AgentStep::Salvaging(_, Some(failure)) => failed(failure),
        AgentStep::Retrying(_) if let Some(past) = worker.past.last() => failed(&past.failure),
        AgentStep::Blocked(reason) => Standing::Error(reason.clone()),
        AgentStep::Ready if worker.attempt == 0 => Standing::Missing("it was never begun".to_owned()),
        _ => Standing::Working("its work is not taken yet".to_owned()),
    }
}

fn failed(failure: &Failure) -> Standing {
    match failure.kind {
        FailureKind::Timeout => Standing::Timeout(failure.message.clone()),
        _ => Standing::Error(failure.message.clone()),
    }
}

#[cfg(test)]
mod tests;
