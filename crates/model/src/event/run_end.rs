//! Why a run is asked to stop, and how it ended.

crate::word_enum! {
    /// Why a stop was requested.
    StopReason {
        /// The user pressed Ctrl-C.
        Interrupt = "interrupt",
        /// SIGTERM or SIGHUP.
        Terminate = "terminate",
        /// `lanewright stop`.
        Request = "request",
        /// `--timeout` passed.
        Timeout = "timeout",
        /// `--fail-fast` and a failed lane.
        FailFast = "fail_fast",
    }
}

crate::word_enum! {
    /// How a run ended.
    RunOutcome {
        /// Every lane is merged and the final gate passed.
        Done = "done",
        /// At least one lane failed.
        Failed = "failed",
        /// A person must act.
        Blocked = "blocked",
        /// A stop was requested.
        Stopped = "stopped",
        /// Every lane that had begun was rolled back.
        RolledBack = "rolled_back",
    }
}

impl RunOutcome {
    /// Whether nothing of the run waits to be resumed.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::RolledBack)
    }
}
