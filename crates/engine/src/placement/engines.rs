//! Asks the engines whether there is hope for a job, stops jobs, and takes lanes back that have none.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use lanewright_model::LaneId;
use lanewright_model::cells::clean;
use lanewright_model::event::{Event, Incoming, RunOutcome};
use lanewright_model::text::last_lines;
use lanewright_programs::cluster::{Cancel, Cause, Ending, Job, OrderName, Sighting, Ticket};
use lanewright_schedule::RunState;

use super::Engine;
use super::error::{PlacementError, Result};
use super::watch::{Followed, Watch};
use crate::state_sync::exchange::lane_run::fetch_one;
use crate::state_sync::{Claim, ReceivedState, StateSyncError, close, lost_job};

/// How long a job must be unknown to its engine before its lane is taken back.
const ABSENT: Duration = Duration::from_secs(30);

/// How long a job must wait for one reason before that is noted.
const WAITS: Duration = Duration::from_secs(10);

/// How many of the last lines of a job are kept with its end.
const LAST_LINES: usize = 3;

impl Followed {
    /// Why its job waits, if that has been the same for a while.
    fn lasting_wait(&mut self, sighting: Option<&Sighting>) -> Option<String> {
        let Some(reason) = sighting.and_then(Sighting::waits_for) else {
            self.waits = None;
            return None;
        };
        let (_, since) = match &mut self.waits {
            Some(waits) if waits.0 == reason => waits,
            other => other.insert((reason.to_owned(), Instant::now())),
        };
        (since.elapsed() >= WAITS).then(|| reason.to_owned())
    }

    /// What is to be noted about the wait of its job. Many jobs of an executor wait for the same that comes by itself: that
    /// is noted of one of them. What keeps a job permanently is noted of each, and so is that it is over.
    fn note(&mut self, reason: &str, stuck: Option<&Cause>, known: &mut HashSet<(String, String)>) -> Option<String> {
        let is_new = known.insert((self.task.executor.clone(), reason.to_owned()));
        let before = self.stuck.take();
        self.stuck = stuck.map(|cause| cause.said.clone());
        let is_notable = is_notable(before.as_deref(), self.stuck.as_deref(), is_new);
        let advice = stuck.map(|cause| format!("; that may last until somebody acts: {}", cause.remedy));
        is_notable.then(|| format!("job {} waits: {reason}{}", self.ticket.0, advice.unwrap_or_default()))
    }
}

/// Whether the wait of a job is noted: what it was stuck in `before` and is `now`, and whether its reason `is_new`.
fn is_notable(before: Option<&str>, now: Option<&str>, is_new: bool) -> bool {
    match now {
        Some(_) => before != now,
        None => is_new || before.is_some(),
    }
}

impl Watch {
    pub(super) fn poll_engines(&mut self) {
        if self.followed.values().any(|followed| !followed.stops.is_empty()) {
            // Another clone may have the run, and the jobs.
            self.collect();
        }
        if self.is_taken {
            return;
        }
        let executors: HashSet<String> =
            self.followed.values().map(|followed| followed.task.executor.clone()).collect();
        for executor in executors {
            let names = self.followed.values().filter(|followed| followed.task.executor == executor);
            let names: Vec<OrderName> = names.map(|followed| followed.name.clone()).collect();
            let Ok(engine) = self.engine(&executor) else { continue };
            let jobs = engine.cluster.survey(&names).map_err(PlacementError::from);
            if let Some(jobs) = self.tolerate(&format!("executor {executor}"), jobs) {
                self.assess_jobs(&executor, &jobs);
            }
        }
    }

    fn assess_jobs(&mut self, executor: &str, jobs: &HashMap<OrderName, Job>) {
        let lanes: Vec<LaneId> = self.followed.keys().cloned().collect();
        for lane in lanes {
            let Some(followed) = self.followed.get_mut(&lane).filter(|it| it.task.executor == executor) else {
                continue;
            };
            let name = followed.name.clone();
            let sighting = jobs.get(&name).map(|job| job.sighting.clone());
            followed.absent = followed.absent.or(Some(Instant::now())).filter(|_| sighting.is_none());
            let stop = followed.stops.iter().map(|(force, _)| *force).max();
            let stuck = sighting.as_ref().and_then(Sighting::stuck);
            let reason = followed.lasting_wait(sighting.as_ref());
            if let Some(message) = reason.and_then(|reason| followed.note(&reason, stuck, &mut self.noted)) {
                (followed.answer)(vec![Event::Noted { lane: Some(lane.clone()), message }.into()], false);
            }
            let waits = sighting.as_ref().is_some_and(|sighting| sighting.waits_for().is_some());
            if let Some(Sighting::Over(ending @ Ending::Impossible(cause))) = &sighting {
                self.close(&lane, &format!("its job {ending}; {}", cause.remedy), Some(RunOutcome::Blocked));
                continue;
            }
            let over = match &sighting {
                Some(Sighting::Over(ending)) => Some(format!("its job {ending}")),
                None if followed.absent.is_some_and(|since| since.elapsed() >= ABSENT) => {
                    Some("its executor does not know its job any more".to_owned())
                }
                _ => None,
            };
            let ticket = followed.ticket.clone();
            if let Some(mut why) = over {
                if let Some(sighting @ Sighting::Over(ending)) = &sighting {
                    why.push_str(&match ending {
                        Ending::NeverStarted(_) => self.advice(executor, &name, sighting),
                        _ => self.printed(executor, &name),
                    });
                }
                self.poll_engines_earlier();
                self.close(&lane, &why, None);
            } else if stop == Some(true) || (stop.is_some() && waits) {
                self.close(&lane, "it was stopped", None);
                if !self.is_taken {
                    self.cancel(executor, &ticket, Cancel::Kill);
                }
            } else if stop.is_some() {
                self.cancel(executor, &ticket, Cancel::Ask);
            }
        }
    }

    fn advice(&self, executor: &str, name: &OrderName, sighting: &Sighting) -> String {
        self.engine(executor)
            .map_or_else(|_| String::new(), |it| format!("; {}", it.cluster.remedy(name, Some(sighting))))
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
    /// work is collected. With the outcome `Blocked` the lane is not offered again before a resume.
    fn close(&mut self, lane: &LaneId, reason: &str, outcome: Option<RunOutcome>) {
        self.collect();
        let Some(mut followed) = self.followed.remove(lane) else { return };
        let closed = self.closed(&mut followed);
        if let Some(reason) = closed.as_ref().err().and_then(|error| self.unusable(&followed.run, error)) {
            return self.refuse(followed, &reason);
        }
        match self.tolerate(&format!("lane {lane}"), closed).flatten() {
            Some(mut news) => {
                if outcome == Some(RunOutcome::Blocked) {
                    news.push(Event::LaneBlocked { lane: lane.clone(), reason: reason.to_owned() }.into());
                }
                self.end(followed, news, outcome, reason);
            }
            None => drop(self.followed.insert(lane.clone(), followed)),
        }
    }

    /// `None`: another process moved the state meanwhile. Where it was removed there is nothing to take back.
    fn closed(&mut self, followed: &mut Followed) -> Result<Option<Vec<Incoming>>> {
        let (repository, exchange) = (self.placing.repository.clone(), self.placing.exchange.clone());
        let state = match followed.state.take() {
            Some(state) => state,
            None if !self.ownership.runs()?.iter().any(|(run, _)| *run == followed.run) => return Ok(Some(Vec::new())),
            None => fetch_one(&repository, &exchange, &followed.run)?,
        };
        let ours = Claim {
            id: format!("closed-{}", followed.task.number),
            host: self.placing.host.clone(),
            at: state.manifest.at,
        };
        let closed = match state.manifest.claim.as_ref().is_some_and(|claim| claim.id == ours.id) {
            true => state,
            false => match close(&mut self.ownership, &state, &ours) {
                Err(StateSyncError::Fenced { .. }) => return Ok(None),
                closed => closed?,
            },
        };
        let (mut news, own) = self.copy(followed, &closed, true)?;
        news.extend(lost_jobs(&followed.task.lane, &closed, &own));
        followed.state = Some(closed);
        Ok(Some(news))
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

#[cfg(test)]
mod tests {
    use super::is_notable;

    #[test]
    fn stuck_job_is_noted_at_each_change() {
        // Of each lane, also where another one was noted with the same reason.
        assert!(is_notable(None, Some("held"), false));
        assert!(is_notable(Some("held"), Some("down"), false));
        assert!(!is_notable(Some("held"), Some("held"), true));
        // What was noted does not hold any more.
        assert!(is_notable(Some("held"), None, false));
        assert!(!is_notable(None, None, false));
        assert!(is_notable(None, None, true));
    }
}
