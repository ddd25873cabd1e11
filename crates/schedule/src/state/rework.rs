//! What failed on a lane as a whole, and which agent fixes it.

/// How often a lane was sent back to its agents.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rework {
    pub(crate) rounds: u32,
    /// How often a gate failed on the lane as a whole and its output was not understood.
    pub(crate) misunderstood: u32,
    /// The agent that is to fix that, until its work is in the lane again.
    pub(crate) assignee: Option<usize>,
}
