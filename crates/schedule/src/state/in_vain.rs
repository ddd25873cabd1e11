//! Decisions that are made again although nothing new is known, and when that ends.
//!
//! Most of what comes of a decision either brings the lane further or uses up a retry. Some outcomes do neither: a gate
//! whose supervisor died is run again, and a merge that the integration branch refused is made again. Whatever the cause,
//! the same decision may come to nothing [`MOST`] times in a row; then the gate has failed, or the lane is blocked.
//!
//! A decision about something new is another one: merging into a branch that other people move all the time has no limit.

use std::collections::BTreeMap;

use lanewright_model::{CommitId, JobRole};

/// How often the same decision may come to nothing in a row.
pub(crate) const MOST: u32 = 3;

/// A decision that costs no retry when it comes to nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Decision {
    /// To run a gate.
    Gate(JobRole),
    /// To merge into the integration branch as it is at that commit.
    Merge(CommitId),
}

/// How often in a row decisions came to nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct InVain(BTreeMap<Decision, u32>);

impl InVain {
    /// Counts a decision that came to nothing.
    pub(crate) fn count(&mut self, decision: Decision) {
        if matches!(decision, Decision::Merge(_)) {
            // Merges with an earlier commit of the branch are over.
            self.0.retain(|known, _| !matches!(known, Decision::Merge(_)) || *known == decision);
        }
        *self.0.entry(decision).or_default() += 1;
    }

    /// Forgets what a decision that came to something counted before.
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
    fn the_same_decision_is_limited_and_one_about_something_new_is_not() {
        let mut in_vain = InVain::default();
        for commit in 0..10 * MOST {
            in_vain.count(merge(commit));
            assert!(!in_vain.is_used_up(&merge(commit)), "the branch moves each time");
        }
        let gate = Decision::Gate(JobRole::Tests);
        for _ in 0..MOST {
            assert!(!in_vain.is_used_up(&merge(7)) && !in_vain.is_used_up(&gate));
            in_vain.count(merge(7));
            in_vain.count(gate.clone());
        }
        assert!(in_vain.is_used_up(&merge(7)) && in_vain.is_used_up(&gate));
        in_vain.forget(&gate);
        assert!(in_vain.is_used_up(&merge(7)) && !in_vain.is_used_up(&gate));
    }
}
