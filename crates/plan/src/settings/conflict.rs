//! What to do about other sessions and other changes.

lanewright_model::word_enum! {
    /// What to do when a live session holds the run, the lane or the plan.
    OnLockConflict {
        /// Report who holds it and exit with 4.
        Fail = "fail",
        /// `execute-lane`: work on another lane that is ready; everywhere else as `fail`.
        Next = "next",
        /// Wait until it is free.
        Wait = "wait",
    }
}

lanewright_model::word_enum! {
    /// What a resume does about files that were changed while nothing of the run was at work.
    #[derive(Default)]
    OnConflict {
        /// Refuse, and list them.
        #[default]
        Fail = "fail",
        /// Save them as snapshots and resume with them.
        Override = "override",
    }
}
