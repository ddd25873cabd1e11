//! Decisions that made no progress and are made again, and when that ends.
//!
//! Most decisions either bring the lane further or use up a retry. Some outcomes do neither: a gate whose supervisor died
//! runs again, and a merge that the integration branch refused is made again. Whatever the cause, the same decision may
//! make no progress [`MOST`] times in a row; then the gate has failed, or the lane is blocked.
//!
//! A decision about something new is another one: merging into a branch that others move all the time has no limit.

use std::collections::BTreeMap;

use lanewright_model::{CommitId, JobRole};

/// How often in a row the same decision may make no progress.
pub(crate) const MOST: u32 = 3;

/// A decision that costs no retry when it makes no progress.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Decision {
    /// To run a gate.
    Gate(JobRole),
    /// To merge into the integration branch as it is at that commit.
    Merge(CommitId),
}

/// How often in a row decisions made no progress.
#[derive(Debug, Clone, Default)]
pub(crate) struct NoProgress(BTreeMap<Decision, u32>);

impl NoProgress {
    /// Counts a decision that made no progress.
    pub(crate) fn count(&mut self, decision: Decision) {
        if matches!(decision, Decision::Merge(_)) {
            // Merges with an earlier commit of the branch are over.
            self.0.retain(|known, _| !matches!(known, Decision::Merge(_)) || *known == decision);
        }
        *self.0.entry(decision).or_default() += 1;
    }

    /// Forgets what a decision that made progress counted before.
    pub(crate) fn forget(&mut self, decision: &Decision) {
        self.0.remove(decision);
    }

    pub(crate) fn forget_all(&mut self) {
        self.0.clear();
    }

    /// Whether the decision may not be made again.
    pub(crate) fn is_used_up(&self, decision: &Decision) -> bool {
        self.0.get(decision).is_some_and(|&times| times >= MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(commit: u32) -> Decision {
        Decision::Merge(CommitId::new(&format!("{commit:040x}")).expect("a commit"))
    }

    #[test]
    fn repeated_decision_is_limited() {
        let mut no_progress = NoProgress::default();
        for commit in 0..10 * MOST {
            no_progress.count(merge(commit));
            assert!(!no_progress.is_used_up(&merge(commit)), "the branch moves each time");
        }
        let gate = Decision::Gate(JobRole::Tests);
        for _ in 0..MOST {
            assert!(!no_progress.is_used_up(&merge(7)) && !no_progress.is_used_up(&gate));
            no_progress.count(merge(7));
            no_progress.count(gate.clone());
        }
        assert!(no_progress.is_used_up(&merge(7)) && no_progress.is_used_up(&gate));
        no_progress.forget(&gate);
        assert!(no_progress.is_used_up(&merge(7)) && !no_progress.is_used_up(&gate));
    }
}
