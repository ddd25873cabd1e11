crate::word_enum! {
    // SPEC §6.
    /// The stage of a lane.
    #[derive(Default)]
    LaneStage {
        /// Not started: waits for dependencies or for capacity.
        #[default]
        Waiting = "WAITING",
        /// Preconditions are checked.
        Init = "INIT",
        /// Agents and their order are fixed; worktrees are opened.
        Classified = "CLASSIFIED",
        /// Requirements agents write reports.
        Requirements = "REQUIREMENTS",
        /// The plan is presented.
        Synthesis = "SYNTHESIS",
        /// Implementation agents work.
        Implementation = "IMPLEMENTATION",
        /// The lane's tests run.
        Validation = "VALIDATION",
        /// Reviewers decide.
        Review = "REVIEW",
        /// The changes are presented to the user, then merged.
        AwaitingUserApproval = "AWAITING_USER_APPROVAL",
        /// Merged.
        Complete = "COMPLETE",
        /// What is no longer needed is removed.
        Cleanup = "CLEANUP",
    }
}

/// The word of a stage in prose: `AWAITING_USER_APPROVAL` as `awaiting user approval`.
pub fn stage_in_words(stage: &str) -> String {
    stage.to_lowercase().replace('_', " ")
}
