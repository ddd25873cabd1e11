//! Lanes on their way into the integration branch (SPEC §6, step 7).

use std::sync::Arc;

use super::{PortError, Ports, Task};
use crate::event::Event;
use crate::git::{self, Checkout, Merge, Mode, Publication};
use crate::model::LaneIndex;
use crate::schedule::RunState;

impl Ports {
    /// Makes the merge with the integration branch as it is now; nobody sees it yet.
    pub(super) fn stage_merge(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Result<Task, PortError> {
        let head = state.lane(lane).head.clone().ok_or(PortError::Missing("where the lane stands"))?;
        let (moment, worktree) = (self.moment(lane, state), state.lane(lane).worktree.clone());
        let base = state.lane(lane).base.clone().ok_or(PortError::Missing("what the lane stands on"))?;
        Ok(self.task(lane, move |ports| {
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
                if let Some(worktree) = worktree {
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
        Ok(self.task(lane, move |ports| {
            let id = ports.id(lane);
            let branch = &ports.facts.base_branch;
            let merged =
                Event::LaneMerged { lane: id.clone(), commit: staged.commit.clone(), onto: staged.onto.clone() };
            match git::publish(&ports.repository, branch, &staged.onto, &staged.commit)? {
                Publication::Published | Publication::AlreadyThere => Ok(vec![merged]),
                Publication::Moved(_) => Ok(vec![Event::MergeSuperseded { lane: id }]),
                Publication::CheckedOutDirty { worktree, obstacles } => Err(PortError::Precondition(format!(
                    "{branch} is checked out in {} and cannot be moved along because of {}; {}, then resume",
                    worktree.display(),
                    obstacles.paths.join(", "),
                    obstacles.remedy
                ))),
            }
        }))
    }
}
