//! What a machine that was started again may have left: everything that the run log does not name may be empty, as it was
//! before, or gone.

use std::collections::HashSet;

use lanewright_git::AfterBoot;
use lanewright_model::text::listed;
use lanewright_schedule::RunState;

use crate::executor::held_worktrees::HeldWorktree;
use crate::executor::{Answer, Executor, LaneContext};

/// How many files are named.
const NAMED: usize = 10;

impl Executor {
    /// Brings what the lanes that are left hold to what the run log says.
    pub fn recover_after_boot(&self, state: &RunState) -> Answer {
        self.repository.remove_torn_objects()?;
        let contexts: Vec<LaneContext> = self.plan.indices().map(|lane| self.lane_context(lane, state)).collect();
        let holdings = || contexts.iter().flat_map(|context| context.holdings.iter().map(move |held| (context, held)));
        let slots = holdings().map(|(_, holding)| holding.worktree.slot);
        let held: Vec<u32> = slots.chain(state.final_worktree().map(|worktree| worktree.slot)).collect();
        self.pool.recover_unheld(&self.facts.run_id, &held, self.clock.now())?;
        let mut events = Vec::new();
        for (context, holding) in holdings() {
            // The branches of a merged lane are deleted one after the other.
            if state.lane(context.lane).is_left_to_do() {
                events.extend(self.recover_branch(holding, context)?);
            }
            events.extend(self.recover_worktree(holding, context)?);
        }
        Ok(events)
    }

    /// Sets a branch that is gone, garbled or behind to the recorded head.
    fn recover_branch(&self, holding: &HeldWorktree, context: &LaneContext) -> Answer {
        let Some((branch, recorded)) = &holding.branch else { return Ok(Vec::new()) };
        let is_behind = match self.repository.branch_commit(branch) {
            Ok(Some(tip)) => tip != *recorded && self.repository.is_ancestor(&tip, recorded)?,
            Ok(None) | Err(_) => true,
        };
        if !is_behind || !self.repository.has_commit(recorded)? {
            return Ok(Vec::new());
        }
        self.repository.make_branch(branch, recorded)?;
        Ok(vec![self.note(context.lane, format!("branch {branch} was set to {} again", recorded.short()))])
    }

    fn recover_worktree(&self, holding: &HeldWorktree, context: &LaneContext) -> Answer {
        let HeldWorktree { holder, worktree, .. } = holding;
        let place = self.pool.shown(holder, &worktree.path);
        let place = place.display();
        let found = match self.pool.after_boot(holder, worktree, context.at)? {
            AfterBoot::Sound => {
                let torn = self.repository.restore_torn_files(&worktree.path, &[], &HashSet::new())?;
                (!torn.is_empty()).then(|| format!("{} of {place} were restored", listed(&torn, NAMED)))
            }
            AfterBoot::SetAside(aside) => {
                Some(format!("{place} cannot be read; what was there is now {}", aside.display()))
            }
            AfterBoot::Gone => None,
        };
        let note = |found| self.note(context.lane, format!("the machine was started again: {found}"));
        Ok(found.map(note).into_iter().collect())
    }
}
