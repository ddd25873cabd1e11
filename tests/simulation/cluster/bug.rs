//! Bugs that are planted in what places lanes.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacingBug {
    /// A job pushes over what others pushed.
    PushWithoutLease,
    /// A job claims the state that is there, not the one that it was given.
    ClaimWhateverIsThere,
    /// A lane is given to another job without having been taken from the first.
    CloseWithoutCompare,
    /// A job is submitted without a look whether it was before.
    SubmitAgain,
    /// A job that is lost counts as a failure of its lane.
    LossIsFailure,
    /// A lane is offered over the state that is there.
    OfferWithoutCompare,
    /// Records that were copied before are copied again.
    CopyAgain,
}

impl PlacingBug {
    pub const ALL: &[Self] = &[
        Self::PushWithoutLease,
        Self::ClaimWhateverIsThere,
        Self::CloseWithoutCompare,
        Self::SubmitAgain,
        Self::LossIsFailure,
        Self::OfferWithoutCompare,
        Self::CopyAgain,
    ];
}
