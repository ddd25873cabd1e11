//! Repairs what the run log names and another program removed: claims, branches, git's records of worktrees, objects, snapshots.
//!
//! An action that git refuses is tried again after such a repair. Objects need no refs of their own for that: what no ref
//! leads to yet can be made again from what is recorded and from the files (decision 21).

pub mod damaged_objects;
mod power_cut;
mod reopen;

use lanewright_git::{self as git, ClaimFound, GitError};
use lanewright_model::event::Event;
use lanewright_model::{CommitId, LaneIndex};
use lanewright_schedule::RunState;

use super::held_worktrees::HeldWorktree;
use super::{Answer, Executor, ExecutorError, LaneContext, Result};
use damaged_objects::{LostHead, Restored};

/// How often an action is tried that git refuses.
const TRIES: u32 = 4;

impl Executor {
    /// Carries out `work`. Where git refuses, what the run log names and is missing is restored, and it is tried again.
    pub(super) fn retry_with_repairs<T>(
        &self,
        context: &LaneContext,
        emit: &dyn Fn(Event),
        work: impl Fn() -> Result<T>,
    ) -> Result<T> {
        for tried in 1..TRIES {
            match work() {
                Err(error @ (ExecutorError::Git(_) | ExecutorError::File(_))) => {
                    let repaired = self.repair(context, true);
                    // What was just made may have been removed before a ref led to it.
                    if repaired.is_empty() && (tried > 1 || !may_be_transient(&error)) {
                        return Err(error);
                    }
                    repaired.into_iter().for_each(emit);
                }
                done => return done,
            }
        }
        work()
    }

    /// Restores what is missing of a lane, and returns what was. With `reopen` worktrees that are gone are opened again,
    /// unless a job is recorded as running there.
    fn repair(&self, context: &LaneContext, reopen: bool) -> Vec<Event> {
        let mut events = Vec::new();
        let mut note = |answer: Answer| match answer {
            Ok(found) => events.extend(found),
            Err(error) => tracing::debug!("a repair failed: {error}"),
        };
        note(Ok(self.restore_recent(Some(context.lane)).into_iter().collect()));
        note(self.restore_damaged(context).map(|(events, _)| events));
        for holding in &context.holdings {
            note(self.restore_holding(holding, context, reopen && !holding.busy && !holding.unsaved));
            if !holding.busy {
                note(self.restore_index(holding, context));
                note(self.restore_objects(holding, context));
            }
        }
        note(self.restore_snapshot(context));
        events
    }

    /// The same for every lane that has something left to do, as a resume begins.
    pub fn repair_all(&self, state: &RunState) -> Vec<Event> {
        let lanes = self.plan.indices().filter(|&lane| state.lane(lane).is_left_to_do());
        lanes.flat_map(|lane| self.repair(&self.lane_context(lane, state), true)).collect()
    }

    /// The same for a lane that is about to be rolled back, whose worktrees that are gone need not be opened again.
    pub(crate) fn repair_for_rollback(&self, lane: LaneIndex, state: &RunState) -> Vec<Event> {
        let restored = self.restore_lane(lane, state, LostHead::FallBack).unwrap_or_else(|error| {
            tracing::debug!("a repair failed: {error}");
            Restored::default()
        });
        [restored.events, self.repair(&self.lane_context(lane, state), false)].concat()
    }

    pub(super) fn restore_recent(&self, lane: Option<LaneIndex>) -> Option<Event> {
        let restored = self.repository.restore_recent_objects();
        let message = format!("git had lost {restored} objects that were just made; they were stored again");
        (restored > 0).then(|| Event::Noted { lane: lane.map(|lane| self.id(lane)), message })
    }

    /// Makes sure that the holder's claim, its branch and its worktree exist; `reopen`: a worktree that is gone is opened
    /// again, else only what is still there is made known to git again.
    pub(super) fn restore_holding(&self, holding: &HeldWorktree, context: &LaneContext, reopen: bool) -> Answer {
        let HeldWorktree { holder, worktree, .. } = holding;
        let mut events = Vec::new();
        let place = self.pool.shown(holder, &worktree.path);
        let place = place.display();
        match self.pool.restore_claim(holder, worktree)? {
            ClaimFound::Held => {}
            ClaimFound::Restored => events.push(self.note(context.lane, format!("the claim on {place} was restored"))),
            ClaimFound::Released => return Ok(events),
        }
        events.extend(self.restore_branch(holding, context)?);
        if self.pool.register_again(worktree)? {
            let message = format!("git had lost track of the worktree {place}; it was registered again");
            events.push(self.note(context.lane, message));
        } else if reopen {
            events.extend(self.reopen(holding, context)?);
        }
        Ok(events)
    }

    /// Makes a branch again that was deleted: where its worktree last stood, if that continues the last recorded head,
    /// else at that head, else where it was opened.
    fn restore_branch(&self, holding: &HeldWorktree, context: &LaneContext) -> Answer {
        let Some((branch, recorded)) = &holding.branch else { return Ok(Vec::new()) };
        // One that leads to a damaged commit is there.
        if !matches!(self.repository.branch_commit(branch), Ok(None)) {
            return Ok(Vec::new());
        }
        let last = self.repository.last_head_on(&holding.worktree.path, branch);
        let continues = |last: &CommitId| {
            *last == *recorded || self.repository.is_ancestor(recorded, last).is_ok_and(|continues| continues)
        };
        let candidates = last.filter(continues).into_iter().chain([recorded.clone(), holding.worktree.head.clone()]);
        for commit in candidates {
            if self.repository.has_commit(&commit)? {
                self.repository.make_branch(branch, &commit)?;
                let message = format!("branch {branch} was gone; it was made again at {}", commit.short());
                return Ok(vec![self.note(context.lane, message)]);
            }
        }
        Ok(Vec::new())
    }

    /// Makes an index again that git cannot read, as the head has it. No file changes.
    fn restore_index(&self, holding: &HeldWorktree, context: &LaneContext) -> Answer {
        let worktree = &holding.worktree.path;
        let is_ours = self.repository.refuse_foreign_worktree(worktree).is_ok();
        if !is_ours || !self.repository.make_unreadable_index(worktree)? {
            return Ok(Vec::new());
        }
        let place = self.pool.shown(&holding.holder, worktree);
        let message = format!("git could not read the index of {}; it was made again", place.display());
        Ok(vec![self.note(context.lane, message)])
    }

    /// Stores objects again, from the files of the worktree, that git has lost.
    pub(super) fn restore_objects(&self, holding: &HeldWorktree, context: &LaneContext) -> Answer {
        let worktree = &holding.worktree;
        if self.repository.refuse_foreign_worktree(&worktree.path).is_err() {
            return Ok(Vec::new());
        }
        let base = &self.facts.base_commit;
        let restored = git::restore_lost_objects(&self.repository, &worktree.path, base)?;
        if restored == 0 {
            return Ok(Vec::new());
        }
        let message = format!(
            "git had lost {restored} objects of {}; they were stored again from its files",
            self.pool.shown(&holding.holder, &worktree.path).display()
        );
        Ok(vec![self.note(context.lane, message)])
    }

    /// Sets the ref of the lane's newest snapshot again, which Lanewright never removes before the lane is merged.
    fn restore_snapshot(&self, context: &LaneContext) -> Answer {
        let Some((reference, commit)) = context.known.last().filter(|_| !context.landed) else { return Ok(Vec::new()) };
        if self.repository.target_of(reference)?.is_some() || !self.repository.has_commit(commit)? {
            return Ok(Vec::new());
        }
        let kept = git::keep(&self.repository, reference, commit.clone())?;
        Ok(vec![self.note(context.lane, format!("the snapshot {} was gone; it was set again", kept.reference))])
    }
}

/// Whether the same may succeed a moment later although nothing was missing.
fn may_be_transient(error: &ExecutorError) -> bool {
    let ExecutorError::Git(error) = error else { return true };
    matches!(
        error,
        GitError::Program(_)
            | GitError::File(_)
            | GitError::LostObject { .. }
            | GitError::BadClaim { .. }
            | GitError::NotOurs { .. }
    )
}
