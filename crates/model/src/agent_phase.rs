//! The states of an agent's work: exactly the table of seed 000, State Machine.

crate::word_enum! {
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

    /// Whether a move to `next` can be on record: an arrow of the table, or the beginning of new work, as after a rollback.
    pub fn may_record(self, next: Self) -> bool {
        self.may_become(next) || (next == Self::Initialized && self != next)
    }

    /// The phases from the beginning of the work to this one, both included, along arrows of the table.
    pub fn way(self) -> Vec<Self> {
        use AgentPhase::*;
        let mut way = vec![self];
        loop {
            let before = match way[way.len() - 1] {
                Initialized => break,
                Planning => Initialized,
                Planned => Planning,
                Executing => Planned,
                Validating | Failed => Executing,
                Checkpointing => Validating,
                Completed => Checkpointing,
                RollingBack | Abandoned => Failed,
            };
            way.push(before);
        }
        way.reverse();
        way
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

    #[test]
    fn each_phase_is_reached_from_the_beginning_by_arrows() {
        for &to in AgentPhase::ALL {
            let way = to.way();
            assert_eq!((way[0], way[way.len() - 1]), (Initialized, to));
            assert!(way.windows(2).all(|step| step[0].may_become(step[1])), "{way:?}");
        }
    }

    #[test]
    fn only_new_work_leaves_the_table_on_record() {
        for &from in AgentPhase::ALL {
            for &to in AgentPhase::ALL {
                let begins = to == Initialized && from != to;
                assert_eq!(from.may_record(to), begins || ARROWS.contains(&(from, to)), "{from} -> {to}");
            }
        }
    }
}
