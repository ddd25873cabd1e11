lanewright_model::word_enum! {
    /// The state of a run.
    RunState {
        /// Every lane is merged and the final gate passed.
        Done = "done",
        /// At least one lane failed.
        Failed = "failed",
        /// A person must act.
        Blocked = "blocked",
        /// A stop was requested.
        Stopped = "stopped",
        /// Every lane that had begun was rolled back.
        RolledBack = "rolled back",
        /// Lanes are being rolled back.
        RollingBack = "rolling back",
        /// A rollback was interrupted.
        HalfRolledBack = "half rolled back",
        /// It has not started.
        NotBegun = "not begun",
        /// No process works on it, and it has not ended.
        Interrupted = "interrupted",
        /// A stop was requested, and it has not ended.
        Stopping = "stopping",
        /// A process works on it.
        Running = "running",
    }
}
