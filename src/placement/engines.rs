//! Asks the engines whether there is hope for a job, stops jobs, and takes lanes back that have none.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::Engine;
use super::watch::{Followed, Watch};
use crate::cluster::{Cancel, Job, OrderName, Sighting, Ticket};
use crate::event::{Event, Incoming};
use crate::model::LaneId;
use crate::model::cells::clean;
use crate::model::text::last_lines;
use crate::schedule::RunState;
use crate::state_sync::lane_run::fetch_one;
use crate::state_sync::{Claim, ReceivedState, StateSyncError, close, lost_job};

/// So long an engine must not know a job before there is no hope for it.
const ABSENT: Duration = Duration::from_secs(30);

/// So long a job must wait for a reason before that is noted.
const WAITS: Duration = Duration::from_secs(10);

/// How many of the last lines of a job are kept with its end.
const LAST_LINES: usize = 3;

impl Followed {
    /// Why its job waits, if that has been the same for a while.
    fn lasting_wait(&mut self, sighting: Option<&Sighting>) -> Option<String> {
        let Some(Sighting::Waiting(reason)) = sighting else {
            self.waits = None;
            return None;
        };
        let (_, since) = match &mut self.waits {
            Some(waits) if waits.0 == *reason => waits,
            other => other.insert((reason.clone(), Instant::now())),
        };
        (since.elapsed() >= WAITS).then(|| reason.clone())
    }
}

impl Watch {
    pub(super) fn look_at_engines(&mut self) {
        if self.followed.values().any(|followed| !followed.stops.is_empty()) {
            // Another clone may have the run, and the jobs.
            self.collect();
        }
        if self.is_taken {
            return;
        }
        let executors: HashSet<String> =
            self.followed.values().map(|followed| followed.errand.executor.clone()).collect();
        for executor in executors {
            let names = self.followed.values().filter(|followed| followed.errand.executor == executor);
            let names: Vec<OrderName> = names.map(|followed| followed.name.clone()).collect();
            let Ok(engine) = self.engine(&executor) else { continue };
            let jobs = engine.cluster.survey(&names).map_err(anyhow::Error::from);
            if let Some(jobs) = self.tolerate(&format!("executor {executor}"), jobs) {
                self.judge(&executor, &jobs);
            }
        }
    }

    fn judge(&mut self, executor: &str, jobs: &HashMap<OrderName, Job>) {
        let lanes: Vec<LaneId> = self.followed.keys().cloned().collect();
        for lane in lanes {
            let Some(followed) = self.followed.get_mut(&lane).filter(|it| it.errand.executor == executor) else {
                continue;
            };
            let name = followed.name.clone();
            let sighting = jobs.get(&name).map(|job| job.sighting.clone());
            followed.absent = followed.absent.or(Some(Instant::now())).filter(|_| sighting.is_none());
            let stop = followed.stops.iter().map(|(force, _)| *force).max();
            if let Some(reason) = followed.lasting_wait(sighting.as_ref())
                && self.noted.insert((executor.to_owned(), reason.clone()))
            {
                let message = format!("job {} waits: {reason}", followed.ticket.0);
                (followed.answer)(vec![Event::Noted { lane: Some(lane.clone()), message }.into()], false);
            }
            let waits = matches!(sighting, Some(Sighting::Waiting(_)));
            let over = match &sighting {
                Some(Sighting::Over(ending)) => Some(format!("its job {ending}")),
                None if followed.absent.is_some_and(|since| since.elapsed() >= ABSENT) => {
                    Some("its executor does not know its job any more".to_owned())
                }
                _ => None,
            };
            let ticket = followed.ticket.clone();
            if let Some(mut why) = over {
                if matches!(sighting, Some(Sighting::Over(_))) {
                    why.push_str(&self.printed(executor, &name));
                }
                self.ask_engines_soon();
                self.close(&lane, &why);
            } else if stop == Some(true) || (stop.is_some() && waits) {
                self.close(&lane, "it was stopped");
                if !self.is_taken {
                    self.cancel(executor, &ticket, Cancel::Kill);
                }
            } else if stop.is_some() {
                self.cancel(executor, &ticket, Cancel::Ask);
            }
        }
    }

    /// What a job printed last, or where that is: it may have ended before it could push anything.
    fn printed(&self, executor: &str, name: &OrderName) -> String {
        let Ok(engine) = self.engine(executor) else { return String::new() };
        let Some(bytes) = engine.cluster.output(name, 0).ok().flatten() else {
            return format!("; its output: {}", engine.cluster.by_hand(name).output);
        };
        let said = last_lines(&String::from_utf8_lossy(&bytes), LAST_LINES).join("; ");
        if said.is_empty() { said } else { format!("; it printed: {}", clean(&said)) }
    }

    pub(super) fn cancel(&mut self, executor: &str, ticket: &Ticket, how: Cancel) {
        let cancel = |engine: &Engine| engine.cluster.cancel(std::slice::from_ref(ticket), how);
        let cancelled = self.engine(executor).and_then(|engine| Ok(cancel(engine)?));
        self.tolerate(&format!("job {}", ticket.0), cancelled);
    }

    /// Takes the lane back. A job that was quicker, or works on although its engine has lost it, is fenced by it, or its
    /// work is collected.
    fn close(&mut self, lane: &LaneId, reason: &str) {
        self.collect();
        let Some(mut followed) = self.followed.remove(lane) else { return };
        let closed = self.closed(&mut followed);
        if let Some(reason) = closed.as_ref().err().and_then(|error| self.unusable(&followed.run, error)) {
            return self.refuse(followed, &reason);
        }
        match self.tolerate(&format!("lane {lane}"), closed).flatten() {
            Some(news) => self.end(followed, news, None, reason),
            None => drop(self.followed.insert(lane.clone(), followed)),
        }
    }

    /// `None`: somebody moved the state meanwhile. Where it was removed there is nothing to take back.
    fn closed(&mut self, followed: &mut Followed) -> Result<Option<Vec<Incoming>>> {
        let (repository, exchange) = (self.placing.repository.clone(), self.placing.exchange.clone());
        let state = match followed.state.take() {
            Some(state) => state,
            None if !self.ownership.runs()?.iter().any(|(run, _)| *run == followed.run) => return Ok(Some(Vec::new())),
            None => fetch_one(&repository, &exchange, &followed.run)?,
        };
        let ours = Claim {
            id: format!("closed-{}", followed.errand.number),
            host: self.placing.host.clone(),
            at: state.manifest.at,
        };
        let closed = match state.manifest.claim.as_ref().is_some_and(|claim| claim.id == ours.id) {
            true => Ok(state.clone()),
            false => close(&mut self.ownership, &state, &ours),
        };
        match closed {
            Ok(closed) => {
                let (mut news, own) = self.copy(followed, &closed, true)?;
                news.extend(lost_jobs(&followed.errand.lane, &closed, &own));
                followed.state = Some(closed);
                Ok(Some(news))
            }
            Err(error) => {
                let fenced = matches!(error.downcast_ref(), Some(StateSyncError::Fenced { .. }));
                if fenced { Ok(None) } else { Err(error) }
            }
        }
    }

    /// The ends of the jobs of a lane that were running in a state which was copied before.
    pub(super) fn cut_off(&self, lane: &LaneId, before: &ReceivedState) -> Vec<Incoming> {
        let examined = self.examined(lane, before, false);
        examined.map(|(_, own)| lost_jobs(lane, before, &own)).unwrap_or_default()
    }
}

/// The ends of the jobs of a lane that were running in its own run, which was taken back.
fn lost_jobs(lane: &LaneId, closed: &ReceivedState, own: &RunState) -> Vec<Incoming> {
    let running = own.running_jobs().filter(|job| job.lane.as_ref() == Some(lane));
    running.map(|job| lost_job(job, &closed.manifest, closed.manifest.at).into()).collect()
}
