//! Lanes on their way into the integration branch (SPEC §6, step 7).

use std::sync::Arc;

use super::{PortError, Ports, Task};
use crate::event::Event;
use crate::git::{self, Checkout, Merge, Mode, Publication};
use crate::model::{CommitId, LaneIndex};
use crate::schedule::RunState;

impl Ports {
    fn is_lost(&self, commit: &CommitId) -> Result<bool, PortError> {
        Ok(!git::damaged(&self.repository, std::slice::from_ref(commit))?.is_empty())
    }

    /// The merge of the lane with the integration branch, which failed the lane's tests; made again if git has lost it.
    pub(super) fn merge_again(
        &self,
        lane: LaneIndex,
        commit: &CommitId,
        head: &CommitId,
    ) -> Result<CommitId, PortError> {
        if !self.is_lost(commit)? {
            return Ok(commit.clone());
        }
        let (id, onto) = (self.id(lane), self.integration()?);
        let reserved = self.reserved(lane, (&onto, head))?;
        match git::merge(&self.repository, &onto, head, &format!("Merge lane {id}"), &self.trailers(&id), &reserved)? {
            Merge::Done(merge) => Ok(merge),
            Merge::AlreadyIn | Merge::Conflict(_) => Ok(onto),
        }
    }

    /// Makes the merge with the integration branch as it is now; nobody sees it yet.
    pub(super) fn stage_merge(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Result<Task, PortError> {
        let head = state.lane(lane).head.clone().ok_or(PortError::Missing("where the lane stands"))?;
        let (moment, worktree) = (self.moment(lane, state), state.lane(lane).worktree.clone());
        let base = state.lane(lane).base.clone().ok_or(PortError::Missing("what the lane stands on"))?;
        Ok(self.task(lane, state, move |ports| {
            let (id, plan) = (ports.id(lane), ports.plan.lane(lane));
            let onto = ports.integration()?;
            let name = plan.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
            let message = format!("Merge lane {id}{name}");
            let reserved = ports.reserved(lane, (&onto, &head))?;
            let trailers = ports.trailers(&id);
            let commit = match git::merge(&ports.repository, &onto, &head, &message, &trailers, &reserved)? {
                Merge::AlreadyIn => return Ok(vec![Event::LaneMerged { lane: id, commit: onto.clone(), onto }]),
                Merge::Conflict(paths) => {
                    let mender = plan.last_worker();
                    let with = format!("what was merged into {} meanwhile", ports.facts.base_branch);
                    return Ok(vec![ports.conflict(lane, mender, paths, &with)]);
                }
                Merge::Done(commit) => commit,
            };
            let moved = !ports.repository.is_ancestor(&onto, &head)?;
            let mut events = Vec::new();
            if moved && !plan.tests.is_empty() {
                if let Some(worktree) = &worktree {
                    events = ports.reopen_if_lost(&worktree.path, &moment)?;
                }
                let want = Checkout { branch: None, start: commit.clone(), mode: Mode::Reset, adopt: true };
                ports.pool.open(&ports.holder(lane, None), &want)?;
            }
            events.extend(ports.left_out(lane, (&base, &head), &reserved)?);
            events.push(Event::MergeStaged { lane: id, onto, commit, moved });
            Ok(events)
        }))
    }

    /// Moves the integration branch, by compare-and-set.
    pub(super) fn publish_merge(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Result<Task, PortError> {
        let staged = state.lane(lane).staged.clone().ok_or(PortError::Missing("what is to be merged"))?;
        Ok(self.task(lane, state, move |ports| {
            let id = ports.id(lane);
            let branch = &ports.facts.base_branch;
            let merged =
                Event::LaneMerged { lane: id.clone(), commit: staged.commit.clone(), onto: staged.onto.clone() };
            let published = match git::publish(&ports.repository, branch, &staged.onto, &staged.commit) {
                // No ref leads to a staged merge. It holds nothing that the lane and the branch do not.
                Err(_) if ports.is_lost(&staged.commit)? => return Ok(vec![Event::MergeSuperseded { lane: id }]),
                published => published?,
            };
            match published {
                Publication::Published | Publication::AlreadyThere => Ok(vec![merged]),
                Publication::Moved(_) => Ok(vec![Event::MergeSuperseded { lane: id }]),
                Publication::CheckedOutDirty { worktree, obstacles } => {
                    Err(PortError::Precondition(obstacles.cannot_move(branch, &worktree)))
                }
            }
        }))
    }
}
