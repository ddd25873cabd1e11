//! What a job does when the phase is done: the work goes to the remote's branch, and states that are not needed any more go.

use lanewright_engine::state_sync::{Offer, is_all_in_base};
use lanewright_model::event::RunOutcome;
use lanewright_model::{MergeMode, RunId};

use super::branch::{publish_lanes, update};
use super::{Job, bases};
use crate::cli::run::{PhaseRest, PlanReader, PlannedPhase};
use crate::cli::runs::{last_outcome, started};
use crate::cli::state::drop;
use crate::cli::state::publish::{Published, publish};
use crate::cli::{CliError, ExitStatus, Result};

impl Job<'_> {
    /// Publishes the runs that are done, and removes the states that are not needed any more. Where the forge takes no push,
    /// the work is proposed, and the state stays until that is merged.
    pub(super) fn publish(&self, plans: &PlanReader, phases: &[PlannedPhase]) -> Result<ExitStatus> {
        let offers = self.offers()?;
        let done = self.done_here(phases, &offers)?;
        for base in bases(phases) {
            update(&self.within, &self.remote, &base).map_err(|error| self.in_conflict(error, None))?;
            // The branch holds the work of the runs before.
            if let Some((run, _)) = done.iter().find(|(_, of)| *of == base)
                && !self.published.borrow().contains_key(run)
            {
                let published = publish(&self.within, run)?;
                self.note(&published);
                self.published.borrow_mut().insert(run.clone(), published);
            }
        }
        let of = |phase: &PlannedPhase, offer: &Offer| {
            offer.manifest.as_ref().is_ok_and(|pushed| phase.is_phase_of(pushed) && pushed.placed_by.is_none())
        };
        for phase in phases {
            let is_complete = plans.left_of(phase)? == PhaseRest::Nothing;
            for offer in self.offers()?.iter().filter(|offer| of(phase, offer)) {
                if let Err(error) = self.remove_published(offer, is_complete) {
                    let error = CliError::from(error);
                    self.context.printer.warning(error.message, &error.hints);
                }
            }
        }
        let incomplete = |published: &&Published| published.status() != ExitStatus::Done;
        Ok(self.published.borrow().values().find(incomplete).map_or(ExitStatus::Done, Published::status))
    }

    /// The runs that are done and that this job worked on or of which the remote has a state, the newest first, with the
    /// branches that they are merged into.
    fn done_here(&self, phases: &[PlannedPhase], offers: &[Offer]) -> Result<Vec<(RunId, String)>> {
        let mut done = Vec::new();
        for phase in phases.iter().rev() {
            for (run, records) in self.runs_of(phase)? {
                let is_wanted = self.is_of_this_job(&records) || offers.iter().any(|offer| offer.run == run);
                let started = started(&records).filter(|started| started.options.merge == MergeMode::Local);
                let is_done = last_outcome(&records) == Some(RunOutcome::Done);
                if let Some(started) = started.filter(|_| is_wanted && is_done) {
                    done.push((run, started.base_branch.clone()));
                }
            }
        }
        Ok(done)
    }

    /// Removes the state of a run that is done, or whose phase is complete without it, if the remote's branch has everything
    /// that it holds and says so. Until then a later job learns from it what is done.
    fn remove_published(&self, offer: &Offer, is_complete: bool) -> Result<()> {
        let Ok(pushed) = &offer.manifest else { return Ok(()) };
        if pushed.is_done() {
            for branch in publish_lanes(&self.within, &self.remote, pushed)? {
                let message = format!("{branch} has other commits on {}, so it was not pushed", self.remote.name());
                self.context.printer.warning(message, &[]);
            }
        }
        // What was rolled back was given up by a user, and another run has done it since.
        let is_abandoned = is_complete && pushed.outcome == Some(RunOutcome::RolledBack);
        let is_over = pushed.is_done() || is_complete;
        let is_over = is_over && is_all_in_base(&self.within.repository, &self.remote, pushed)?;
        let (run, remote) = (&offer.run, self.remote.name());
        if is_abandoned || is_over {
            drop::remove(&self.within, &self.remote, run, &offer.commit)?;
            self.note(format!("Removed the state of run {run} from {remote}."));
        } else if is_complete && !pushed.is_done() {
            let drop = format!("lanewright state drop {run} --remote {remote} --force");
            self.note(format!(
                "Kept the state of run {run}: it holds work that {} does not. To remove it, on your machine: {drop}",
                pushed.base_branch
            ));
        }
        Ok(())
    }
}
