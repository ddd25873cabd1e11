//! The states of an agent's work: exactly the table of seed 000, State Machine.

lanewright_model::word_enum! {
    /// Where an agent's work stands.
    #[derive(Default)]
    AgentPhase {
        /// Nothing was done.
        #[default]
        Initialized = "INITIALIZED",
        /// Its worktree and prompt are made.
        Planning = "PLANNING",
        /// It can be started.
        Planned = "PLANNED",
        /// It runs.
        Executing = "EXECUTING",
        /// Its work is committed and its gates run.
        Validating = "VALIDATING",
        /// Its work is saved.
        Checkpointing = "CHECKPOINTING",
        /// All its tasks are done.
        Completed = "COMPLETED",
        /// An attempt failed.
        Failed = "FAILED",
        /// A retry is prepared.
        RollingBack = "ROLLING_BACK",
        /// No retry is left.
        Abandoned = "ABANDONED",
    }
}

impl AgentPhase {
    /// Whether the table has an arrow from this phase to `next`.
    pub fn may_become(self, next: Self) -> bool {
        use AgentPhase::*;
        match self {
            Initialized => matches!(next, Planning),
            Planning => matches!(next, Planned | Failed),
            Planned => matches!(next, Executing),
            Executing => matches!(next, Validating | Failed),
            Validating => matches!(next, Checkpointing | Failed),
            Checkpointing => matches!(next, Executing | Completed),
            Failed => matches!(next, RollingBack | Abandoned),
            RollingBack => matches!(next, Executing | Abandoned),
            Completed | Abandoned => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AgentPhase::{self, *};

    /// The table as the seed writes it; everything else is an error.
    const ARROWS: &[(AgentPhase, AgentPhase)] = &[
        (Initialized, Planning),
        (Planning, Planned),
        (Planning, Failed),
        (Planned, Executing),
        (Executing, Validating),
        (Executing, Failed),
        (Validating, Checkpointing),
        (Validating, Failed),
        (Checkpointing, Executing),
        (Checkpointing, Completed),
        (Failed, RollingBack),
        (Failed, Abandoned),
        (RollingBack, Executing),
        (RollingBack, Abandoned),
    ];

    #[test]
    fn only_the_arrows_of_the_seed_exist() {
        for &from in AgentPhase::ALL {
            for &to in AgentPhase::ALL {
                assert_eq!(from.may_become(to), ARROWS.contains(&(from, to)), "{from} -> {to}");
            }
        }
    }
}
