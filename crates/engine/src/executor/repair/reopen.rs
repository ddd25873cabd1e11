//! Opens worktrees again that were removed or replaced.

use std::path::Path;

use lanewright_git::{Checkout, Lost, Mode, Snapshot};
use lanewright_model::event::{Event, SnapshotReason};

use crate::executor::held_worktrees::HeldWorktree;
use crate::executor::{Answer, Executor, LaneContext, Result};

impl Executor {
    /// Makes sure that the worktree at `path`, which the lane or an agent of it holds, is there, with its claim and its
    /// branch. Where it was removed or replaced, what is in its place is moved aside, and it is opened again as it was,
    /// without what was neither committed nor saved. Returns what was found.
    pub(crate) fn reopen_if_lost(&self, path: &Path, context: &LaneContext) -> Answer {
        context.holding(path).map_or(Ok(Vec::new()), |holding| self.restore_holding(holding, context, true))
    }

    /// Opens a worktree again that was removed or replaced, and completes a checkout that was interrupted.
    pub(crate) fn reopen(&self, holding: &HeldWorktree, context: &LaneContext) -> Answer {
        let HeldWorktree { holder, worktree, .. } = holding;
        let is_half_checked_out = self.pool.is_half_checked_out(holder, worktree)?;
        let lost = match self.pool.set_lost_aside(holder, &worktree.path, context.at)? {
            None if !is_half_checked_out => self.pool.never_checked_out(worktree)?,
            lost => lost,
        };
        if lost.is_none() && !is_half_checked_out {
            return Ok(Vec::new());
        }
        let mut events = match &lost {
            Some(lost) => self.keep_head_of(lost, holding, context)?,
            None => Vec::new(),
        };
        let branch = Some(worktree.branch.clone()).filter(|branch| !branch.is_empty());
        let tip = branch.as_deref().map(|branch| self.repository.branch_commit(branch)).transpose()?.flatten();
        let start = tip.unwrap_or_else(|| worktree.head.clone());
        let head = Some(start.clone());
        let want = Checkout { branch, start, mode: Mode::FreshBranch, adopt: true };
        self.open(holder, &want, context.lane).inspect_err(|_| {
            // The next try finds it missing, as this one did.
            if lost.is_some()
                && let Err(error) = self.pool.discard_unfinished(&worktree.path)
            {
                tracing::debug!("a worktree that was half made stays: {error}");
            }
        })?;
        let Some(lost) = lost else { return Ok(Vec::new()) };
        events.push(Event::WorktreeLost { lane: self.id(context.lane), agent: holder.agent.clone(), head });
        events.push(self.note(context.lane, self.reopened_message(&lost, holding)));
        Ok(events)
    }

    /// Keeps the commit at which the worktree stood, where its branch does not hold that.
    fn keep_head_of(&self, lost: &Lost, holding: &HeldWorktree, context: &LaneContext) -> Result<Vec<Event>> {
        let Some(head) = &lost.head else { return Ok(Vec::new()) };
        let branch = Some(&holding.worktree.branch).filter(|branch| !branch.is_empty());
        let tip = branch.map(|branch| self.repository.branch_commit(branch)).transpose()?.flatten();
        if self.repository.is_ancestor(head, tip.as_ref().unwrap_or(&holding.worktree.head))? {
            return Ok(Vec::new());
        }
        let Snapshot { commit, reference } = self.keep_commit(context.lane, head, context.at)?;
        // It may be nowhere else, so it outlives the merge.
        let (lane, reason) = (self.id(context.lane), SnapshotReason::External);
        Ok(vec![Event::snapshot(lane, None, reason, commit, reference)])
    }

    fn reopened_message(&self, lost: &Lost, holding: &HeldWorktree) -> String {
        let whose = match &holding.holder.agent {
            Some(agent) => format!("the worktree of {agent}"),
            None => "the lane's worktree".to_owned(),
        };
        let found = match &lost.aside {
            Some(aside) => format!("was replaced or damaged; what was there is now {}", aside.display()),
            None => "was removed".to_owned(),
        };
        let place = self.pool.shown(&holding.holder, &holding.worktree.path);
        let place = place.display();
        format!("{whose} ({place}) {found}; it was opened again, and set-up commands were not run again")
    }
}
