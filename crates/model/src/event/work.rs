//! What is known of a job's work besides how it exited.

use serde::{Deserialize, Serialize};

use crate::{Diagnosis, Outage};

/// The interpretation of the output of a job that ended without success: an object with one member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// Something outside was unavailable.
    Outage(Outage),
    /// What a gate complained about (`diagnosis.md`).
    Diagnosis(Diagnosis),
}

crate::word_enum! {
    /// How much of the work of an agent that is to change files changed none, by the plan of that time.
    #[derive(Default)]
    Idle {
        /// The task changed something, or may change nothing, or the record is older than this field.
        #[default]
        No = "no",
        /// The task changed nothing; an earlier one of the agent changed something.
        Task = "task",
        /// Nothing has changed since the agent's worktree was opened or put onto a new base.
        Agent = "agent",
    }
}

crate::word_enum! {
    /// Why a candidate was chosen.
    ChosenBy {
        /// The user picked it.
        User = "user",
        /// The judge named it.
        Judge = "judge",
        /// No other one passed.
        Only = "only",
        /// It changed the fewest lines of those that passed; of equal ones it is the first.
        Size = "size",
    }
}

impl Idle {
    pub(super) fn is_no(&self) -> bool {
        *self == Self::No
    }
}
