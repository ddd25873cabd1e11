//! Which of the candidates of a lane continues.

/// Which candidate continues as the agent of its lane.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choice {
    pub(super) chosen: Option<usize>,
    /// The one that the user wants.
    pub(super) picked: Option<usize>,
    /// The run was resumed since, so that nothing is under way in the lane that the pick would cut across.
    pub(super) is_due: bool,
}
