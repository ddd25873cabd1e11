//! Repairs what a power cut may have left of the worktrees of a run (decision 50).

use lanewright_git::{AfterBoot, Outage};
use lanewright_model::event::Event;
use lanewright_model::text::listed;
use lanewright_programs::process::{self, Observation};
use lanewright_schedule::RunState;

use crate::executor::held_worktrees::HeldWorktree;
use crate::executor::{Answer, Executor, LaneContext};

/// How many files a message names.
const NAMED: usize = 10;

impl Executor {
    /// Repairs the worktrees and branches of all lanes, except where a job is alive. What cannot be repaired is noted; the
    /// job that needs it says why it cannot run.
    pub fn recover_after_boot(&self, state: &RunState, outage: Outage) -> Vec<Event> {
        let mut events = Vec::new();
        let mut note = |answer: Answer| match answer {
            Ok(found) => events.extend(found),
            Err(error) => events.push(Event::Noted {
                lane: None,
                message: format!("not all is repaired after a restart of the machine: {error}"),
            }),
        };
        let contexts: Vec<LaneContext> = self.plan.indices().map(|lane| self.lane_context(lane, state)).collect();
        let holdings = || contexts.iter().flat_map(|context| context.holdings.iter().map(move |held| (context, held)));
        let slots = holdings().map(|(_, holding)| holding.worktree.slot);
        let held: Vec<u32> = slots.chain(state.final_worktree().map(|worktree| worktree.slot)).collect();
        note(self.repository.remove_torn_objects().map(|()| Vec::new()).map_err(Into::into));
        let unheld = self.pool.recover_unheld(&self.facts.run_id, &held, (outage, self.clock.now()));
        note(unheld.map(|()| Vec::new()).map_err(Into::into));
        for (context, holding) in holdings().filter(|(context, _)| !self.has_live_job(context, state)) {
            if let Some((branch, _)) = &holding.branch {
                note(self.repository.remove_dead_branch_lock(branch, outage).map(|()| Vec::new()).map_err(Into::into));
            }
            // The branches of a merged lane are deleted one after the other.
            if state.lane(context.lane).is_left_to_do() {
                note(self.recover_branch(holding, context));
            }
            note(self.recover_worktree(holding, context, outage));
        }
        events
    }

    fn has_live_job(&self, context: &LaneContext, state: &RunState) -> bool {
        let lane = self.id(context.lane);
        let mut jobs = state.running_jobs().filter(|job| job.lane.as_ref() == Some(&lane));
        let is_alive = |seen| matches!(seen, Observation::Starting | Observation::Running(_));
        jobs.any(|job| process::observe(&self.run.job(job)).is_ok_and(is_alive))
    }

    /// Makes a branch again, at the recorded head, that is gone or cannot be read.
    fn recover_branch(&self, holding: &HeldWorktree, context: &LaneContext) -> Answer {
        let Some((branch, recorded)) = &holding.branch else { return Ok(Vec::new()) };
        if matches!(self.repository.branch_commit(branch), Ok(Some(_))) || !self.repository.has_commit(recorded)? {
            return Ok(Vec::new());
        }
        self.repository.make_branch(branch, recorded)?;
        Ok(vec![self.note(context.lane, format!("made branch {branch} again at {}", recorded.short()))])
    }

    fn recover_worktree(&self, holding: &HeldWorktree, context: &LaneContext, outage: Outage) -> Answer {
        let HeldWorktree { holder, worktree, .. } = holding;
        let place = self.pool.shown(holder, &worktree.path);
        let place = place.display();
        let found = match self.pool.after_boot(holder, worktree, context.at)? {
            // What an agent left may be meant so; its next attempt starts from a commit.
            AfterBoot::Sound if holding.busy || holding.is_worked_on => None,
            AfterBoot::Sound => {
                let torn = self.repository.restore_torn_files(&worktree.path, outage)?;
                let names = listed(&torn, NAMED);
                (!torn.is_empty()).then(|| format!("restored {names} in {place} after a restart of the machine"))
            }
            AfterBoot::SetAside(aside) => {
                let aside = aside.display();
                Some(format!("git cannot read {place} after a restart of the machine; moved what was there to {aside}"))
            }
            AfterBoot::Missing => None,
        };
        Ok(found.map(|message| self.note(context.lane, message)).into_iter().collect())
    }
}
