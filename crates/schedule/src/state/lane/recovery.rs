//! The levels of recovery for a lane that ended (seed 000).

/// What to do next about a lane that ended, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// Level 1: its agent tries again.
    Retry(String),
    /// Level 2: the same from its last state that passed, with a different approach.
    Rollback(String),
    /// Level 3: only a person can help.
    Escalate(String),
}
