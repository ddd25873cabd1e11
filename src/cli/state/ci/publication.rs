//! What a job does when the phase is done: the work goes to the remote's branch, and states that are not needed any more go.

use lanewright_engine::state_sync::{Offer, unpublished};
use lanewright_model::event::RunOutcome;
use lanewright_model::{MergeMode, RunId};

use super::branch::{publish_lanes, update};
use super::{Job, bases};
use crate::cli::run::{PhaseRest, PlanReader, PlannedPhase};
use crate::cli::runs::{last_outcome, started};
use crate::cli::state::drop;
use crate::cli::state::publish::publish;
use crate::cli::{CliError, ExitStatus, Result};

impl Job<'_> {
    /// Publishes the runs that are done, and removes the states that are not needed any more. Where the forge takes no push,
    /// the work is proposed, and the state stays until that is merged.
    pub(super) fn publish(&self, plans: &PlanReader, phases: &[PlannedPhase]) -> Result<ExitStatus> {
        let mut status = ExitStatus::Done;
        let offers = self.offers()?;
        let done = self.done_here(phases, &offers)?;
        for base in bases(phases) {
            update(&self.within, &self.remote, &base).map_err(|error| self.in_conflict(error, None))?;
            // The branch holds the work of the runs before.
            if let Some((run, _)) = done.iter().find(|(_, of)| *of == base) {
                let published = publish(&self.within, run)?;
                self.note(&published);
                status = if published.status() == ExitStatus::Done { status } else { published.status() };
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
        Ok(status)
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

    /// Removes the state of a run that is done, or whose phase is complete without it, if the remote's branches have its work.
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
        let is_over = is_over && unpublished(&self.within.repository, &self.remote, pushed)?.is_empty();
        if is_abandoned || is_over {
            drop::remove(&self.within, &self.remote, &offer.run, &offer.commit)?;
            self.note(format!("Removed the state of run {} from {}.", offer.run, self.remote.name()));
        }
        Ok(())
    }
}
