//! What judges the work of a lane as a whole.

use lanewright_model::must_haves::any_broken;
use lanewright_model::{ChangeSize, CommitId, Verdict};

use crate::state::gate::Gate;

/// The tests and the must-haves of a lane since it last came from its agents.
#[derive(Debug, Clone, Default)]
pub(crate) struct Validation {
    /// Its tests, on its branch.
    pub(crate) tests: Gate,
    /// Its tests, on the merged result.
    pub(crate) merged_tests: Gate,
    pub(crate) search: Search,
    must_haves: Option<(CommitId, Vec<Verdict>)>,
    changes: Option<Measured>,
}

/// What the lane changed up to a head.
#[derive(Debug, Clone)]
struct Measured {
    head: CommitId,
    changes: ChangeSize,
    /// The protected files among them.
    protected: Vec<String>,
}

/// The search for the merge of an agent that broke the tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Search {
    #[default]
    Due,
    FoundNothing,
    /// The merge of this agent.
    Found(usize),
}

impl Validation {
    /// What became of the must-haves at that head.
    pub(crate) fn must_haves(&self, head: Option<&CommitId>) -> Option<&[Verdict]> {
        let (at, verdicts) = self.must_haves.as_ref()?;
        (Some(at) == head).then_some(verdicts)
    }

    pub(crate) fn check(&mut self, head: &CommitId, verdicts: &[Verdict]) {
        self.must_haves = Some((head.clone(), verdicts.to_vec()));
    }

    /// How much the lane changed up to that head, as far as that was measured.
    pub(crate) fn changes(&self, head: Option<&CommitId>) -> Option<ChangeSize> {
        self.measured(head).map(|measured| measured.changes)
    }

    /// The protected files that it changed up to that head, as far as that was measured.
    pub(crate) fn protected(&self, head: Option<&CommitId>) -> &[String] {
        self.measured(head).map_or(&[], |measured| &measured.protected)
    }

    fn measured(&self, head: Option<&CommitId>) -> Option<&Measured> {
        self.changes.as_ref().filter(|measured| Some(&measured.head) == head)
    }

    /// Returns whether it has protected files that were not known before.
    pub(crate) fn measure(&mut self, head: &CommitId, changes: ChangeSize, protected: &[String]) -> bool {
        let measured = Measured { head: head.clone(), changes, protected: protected.to_vec() };
        let before = self.changes.replace(measured).map(|before| before.protected).unwrap_or_default();
        protected.iter().any(|path| !before.contains(path))
    }

    /// What has not passed on the lane's branch is done again. Nothing is merged.
    pub(super) fn start_again(&mut self) {
        self.tests.start_again();
        self.merged_tests = Gate::Due;
        self.must_haves.take_if(|(_, verdicts)| any_broken(verdicts));
    }

    /// What failed is tried again.
    pub(crate) fn retry(&mut self) {
        self.tests.retry();
        self.merged_tests.retry();
        self.must_haves.take_if(|(_, verdicts)| any_broken(verdicts));
    }
}
