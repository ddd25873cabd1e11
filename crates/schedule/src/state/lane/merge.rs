//! A lane's merge into the integration branch.

use lanewright_model::event::LaneStage;
use lanewright_model::{CommitId, Failure, FailureKind};

/// How far the merge is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Merge {
    /// A merge that is made and not published.
    pub(super) staged: Option<StagedMerge>,
    /// The merge that was made last, where its tests may have left the lane's worktree.
    pub(super) last_staged: Option<CommitId>,
    /// What the lane must be put onto before its agents continue.
    pub(super) rebuild: Option<Rebuild>,
    /// The integration branch with its work in it; with `--merge none` and `pr` the lane's own head.
    pub(super) merged: Option<CommitId>,
}

/// A merge that is made and not published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedMerge {
    /// The integration branch it was made for.
    pub onto: CommitId,
    /// The merge.
    pub commit: CommitId,
    /// Whether the lane's tests have not seen all that it holds.
    pub moved: bool,
}

/// What a lane is put onto before its agents continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rebuild {
    /// The integration branch alone: the lane's work does not merge and is done again.
    OnIntegration,
    /// What the lane was built on at first: another candidate continues.
    OnFirstBase,
    /// The lane's own work merged with the integration branch: it merges, and its tests fail.
    OnMerge(CommitId),
}

impl Merge {
    pub(crate) fn stage(&mut self, onto: &CommitId, commit: &CommitId, moved: bool) {
        self.last_staged = Some(commit.clone());
        self.staged = Some(StagedMerge { onto: onto.clone(), commit: commit.clone(), moved });
    }

    /// Nothing of it is merged or about to be.
    pub(super) fn start_again(&mut self) {
        (self.staged, self.merged) = (None, None);
    }

    /// The merge that was made is not to be published.
    pub(super) fn drop_staged(&mut self) -> Option<StagedMerge> {
        self.staged.take()
    }

    /// The lane was put onto what was decided, or needs not be any more.
    pub(super) fn take_rebuild(&mut self) -> Option<Rebuild> {
        self.rebuild.take()
    }

    /// A person moved the lane's branch, where its agents continue; but what another candidate brought still leaves the lane.
    pub(super) fn continue_by_hand(&mut self) {
        self.rebuild.take_if(|rebuild| *rebuild != Rebuild::OnFirstBase);
    }

    /// A failure at the merge queue decides what the lane has to be put onto.
    pub(crate) fn fail(&mut self, stage: LaneStage, failure: &Failure) {
        if stage == LaneStage::AwaitingUserApproval {
            self.rebuild = match (failure.kind, &self.staged) {
                (FailureKind::Conflict, _) => Some(Rebuild::OnIntegration),
                (FailureKind::Gate | FailureKind::Environment, Some(staged)) => {
                    Some(Rebuild::OnMerge(staged.commit.clone()))
                }
                _ => None,
            };
        }
    }

    /// Records where the lane was merged; whether that is new.
    pub(crate) fn finish(&mut self, commit: &CommitId) -> bool {
        let is_new = self.merged.replace(commit.clone()).is_none();
        self.staged.take_if(|_| is_new);
        is_new
    }
}

#[cfg(test)]
mod tests;
