//! Pauses of runners: an outage is of the account that attempts share, not of the lane that meets it first.
//!
//! While an account is paused no attempt of it begins. At the end of the pause one attempt, the probe, finds out whether it is
//! over; the others wait for it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use lanewright_model::event::Event;
use lanewright_model::retry::backoff;
use lanewright_model::{JobId, Outage, OutageKind, Timestamp};

/// The accounts whose attempts wait, by name.
#[derive(Debug, Clone, Default)]
pub struct Pauses {
    accounts: BTreeMap<String, Pause>,
    /// The run has ended since it was last resumed, whatever opened it again.
    run_ended: bool,
}

/// Why and until when the attempts of an account wait.
#[derive(Debug, Clone)]
pub struct Pause {
    /// Of the last attempt that failed for it.
    pub outage: Outage,
    /// Since when attempts have failed for it, one after another.
    pub since: Timestamp,
    /// When the probe begins; `None`: after a person changed something.
    pub until: Option<Timestamp>,
    /// How many probes have failed.
    failures: u32,
    probe: Option<Probe>,
    /// Its probe ran for long, so that attempts begin again. None has ended without the outage yet.
    is_lifted: bool,
    /// A limit of the account that was reported besides a refusal, and when: it still holds where nothing is refused after all.
    limit: Option<(Outage, Timestamp)>,
    /// What the log does not have yet.
    unrecorded: Option<Change>,
}

#[derive(Debug, Clone)]
pub(crate) struct Probe {
    pub(crate) job: JobId,
    since: Timestamp,
    /// The pause began while it ran, so that its end says nothing about that.
    is_outdated: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// It begins, or goes on for longer.
    Pause {
        at: Timestamp,
    },
    Continue,
}

/// How an attempt ended that no outage kept from its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptEnd {
    Passed,
    Failed,
    /// Which says nothing about the service.
    Stopped,
}

/// How long an attempt runs that came through: longer than programs try again by themselves before they give up.
const CAME_THROUGH: Duration = Duration::from_secs(5 * 60);

/// By how much ends differ that are the same, told by attempts that failed one after another.
const LATER: Duration = Duration::from_secs(60);

impl Pauses {
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    pub fn of(&self, account: &str) -> Option<&Pause> {
        self.accounts.get(account).filter(|pause| !pause.is_lifted)
    }

    /// The pause of an account, or else that of what its service refuses; with the name that it has here.
    pub(crate) fn of_either<'n>(
        &self,
        account: Cow<'n, str>,
        refusable: Cow<'n, str>,
    ) -> (Cow<'n, str>, Option<&Pause>) {
        let is_refusal = |pause: &&Pause| pause.outage.kind == OutageKind::Refused;
        if let Some(pause) = self.of(&account).filter(|pause| !is_refusal(pause)) {
            return (account, Some(pause));
        }
        match self.of(&refusable).filter(is_refusal) {
            Some(pause) => (refusable, Some(pause)),
            None => (account, None),
        }
    }

    /// An attempt of the account failed because of `outage`.
    pub(crate) fn failed(&mut self, account: &str, job: &JobId, outage: &Outage, at: Timestamp) {
        let unrecorded = Some(Change::Pause { at });
        let Some(pause) = self.accounts.get_mut(account) else {
            let (outage, until) = (outage.clone(), Some(at));
            let pause =
                Pause { outage, since: at, until, failures: 0, probe: None, is_lifted: false, limit: None, unrecorded };
            self.accounts.insert(account.to_owned(), pause);
            return;
        };
        let was_probe = pause.probe.take_if(|probe| probe.job == *job).is_some();
        let was_lifted = std::mem::take(&mut pause.is_lifted);
        // What began before the pause says nothing new, unless it names a later end than the time between the two.
        let is_later = pause.until.is_some_and(|until| outage.end(at) > Some(until.plus(LATER)));
        if was_probe || was_lifted || is_later || outage.kind == OutageKind::Refused {
            pause.failures += u32::from(was_probe || was_lifted);
            // One that runs since before it was known to last longer says nothing about that.
            pause.probe.iter_mut().for_each(|probe| probe.is_outdated = true);
            let last = std::mem::replace(&mut pause.outage, outage.clone());
            pause.keep_limit(&last, at);
            pause.unrecorded = unrecorded;
        } else {
            pause.keep_limit(outage, at);
        }
    }

    /// An attempt of the account ended otherwise.
    pub(crate) fn ended(&mut self, account: &str, job: &JobId, end: AttemptEnd) {
        let Some(pause) = self.accounts.get_mut(account) else { return };
        let probe = pause.probe.take_if(|probe| probe.job == *job);
        let was_probe = probe.is_some_and(|probe| !probe.is_outdated);
        // What works for one attempt is not refused to the account.
        let is_refuted = pause.outage.kind == OutageKind::Refused && end == AttemptEnd::Passed;
        match end {
            AttemptEnd::Stopped => {}
            _ if pause.is_lifted => drop(self.accounts.remove(account)),
            _ if was_probe || is_refuted => {
                // One that still runs says nothing about what may follow.
                pause.probe.iter_mut().for_each(|probe| probe.is_outdated = true);
                pause.unrecorded = Some(Change::Continue);
                if let Some((limit, at)) = pause.limit.take().filter(|_| !was_probe) {
                    (pause.outage, pause.unrecorded) = (limit, Some(Change::Pause { at }));
                }
            }
            _ => {}
        }
    }

    /// An attempt of the account that ended otherwise reports that its limit is used up until `outage` ends.
    pub(crate) fn limited(&mut self, account: &str, outage: &Outage, at: Timestamp) {
        let is_over = |pause: &Pause| pause.is_lifted || pause.unrecorded == Some(Change::Continue);
        let lasts = |pause: &Pause| pause.until.is_none_or(|until| Some(until) >= outage.end(at));
        if let Some(pause) = self.accounts.get_mut(account).filter(|pause| !is_over(pause) && lasts(pause)) {
            pause.keep_limit(outage, at);
            return;
        }
        let known = self.accounts.remove(account).and_then(|known| known.probe);
        let probe = known.map(|probe| Probe { is_outdated: true, ..probe });
        let (unrecorded, until) = (Some(Change::Pause { at }), Some(at));
        let (outage, failures, is_lifted, limit) = (outage.clone(), 0, false, None);
        let pause = Pause { outage, since: at, until, failures, probe, is_lifted, limit, unrecorded };
        self.accounts.insert(account.to_owned(), pause);
    }

    /// An attempt of the account begins. What works with something else of it begins in a pause, too, and finds out nothing.
    pub(crate) fn probe(&mut self, account: &str, job: &JobId, at: Timestamp) {
        let is_due = |pause: &&mut Pause| !pause.is_lifted && pause.until.is_some_and(|until| until <= at);
        if let Some(pause) = self.accounts.get_mut(account).filter(is_due) {
            pause.probe = Some(Probe { job: job.clone(), since: at, is_outdated: false });
        }
    }

    pub(crate) fn paused(&mut self, account: &str, outage: &Outage, since: Timestamp, until: Option<Timestamp>) {
        let known = self.accounts.remove(account);
        let (failures, probe, limit) =
            known.map_or((0, None, None), |known| (known.failures, known.probe, known.limit));
        let (outage, is_lifted, unrecorded) = (outage.clone(), false, None);
        let pause = Pause { outage, since, until, failures, probe, is_lifted, limit, unrecorded };
        self.accounts.insert(account.to_owned(), pause);
    }

    /// Its attempts begin again. Where the probe still runs, what it ends with decides whether the outage is over.
    pub(crate) fn continued(&mut self, account: &str) {
        if let Some(pause) = self.accounts.get_mut(account)
            && pause.probe.take().is_some_and(|probe| !probe.is_outdated)
        {
            (pause.is_lifted, pause.unrecorded) = (true, None);
        } else {
            self.accounts.remove(account);
        }
    }

    pub(crate) fn run_finished(&mut self) {
        self.run_ended = true;
    }

    /// Another life of the run. A user who resumes one that had ended has changed something perhaps: the probe begins at once.
    pub(crate) fn resume(&mut self, at: Timestamp) {
        let had_ended = std::mem::take(&mut self.run_ended);
        for pause in self.accounts.values_mut() {
            pause.since = at;
            if had_ended || pause.until.is_none() {
                pause.until = Some(at);
                pause.failures = 0;
            }
        }
    }

    /// It slept until now. An end that a program named is a time of day, asleep or not.
    pub(crate) fn sleep(&mut self, duration: Duration) {
        for pause in self.accounts.values_mut() {
            pause.since = pause.since.plus(duration);
            if let Some(probe) = &mut pause.probe {
                probe.since = probe.since.plus(duration);
            }
        }
    }

    /// What the log does not have yet. `first`: the delay before a first probe whose time no program named; `limit`: how long an
    /// account is waited for.
    pub(crate) fn unrecorded(&self, first: Duration, limit: Duration) -> Vec<Event> {
        let event = |(account, pause): (&String, &Pause)| {
            let account = account.clone();
            Some(match pause.unrecorded? {
                Change::Continue => Event::RunnerContinued { account },
                Change::Pause { at } => {
                    let until = pause.end(&account, at, first, limit);
                    Event::RunnerPaused { account, outage: pause.outage.clone(), since: pause.since, until }
                }
            })
        };
        self.accounts.iter().filter_map(event).collect()
    }

    /// When probes may begin that have not.
    pub(crate) fn ends(&self, runs: impl Fn(&JobId) -> bool) -> Vec<Timestamp> {
        let waiting = self.accounts.values().filter(|pause| !pause.is_lifted && !pause.is_probed(&runs));
        waiting.filter_map(|pause| pause.until).collect()
    }

    /// The accounts with a probe that `runs`, each with the moment from which it has come through.
    pub(crate) fn probes(&self, runs: impl Fn(&JobId) -> bool) -> Vec<(String, Timestamp)> {
        let probe = |(account, pause): (&String, &Pause)| {
            let probe = pause.probe.as_ref().filter(|probe| !probe.is_outdated && runs(&probe.job))?;
            Some((account.clone(), probe.since.plus(CAME_THROUGH)))
        };
        self.accounts.iter().filter_map(probe).collect()
    }
}

impl Pause {
    /// Whether it was waited for long enough, or waiting helps nothing.
    pub fn needs_user(&self) -> bool {
        self.until.is_none()
    }

    /// Keeps in mind that the account's limit is used up, where that is not why it is paused.
    fn keep_limit(&mut self, outage: &Outage, at: Timestamp) {
        let is_limit = outage.kind != OutageKind::Refused && outage.end(at).is_some_and(|end| end > at);
        if is_limit && self.outage.kind == OutageKind::Refused {
            self.limit = Some((outage.clone(), at));
        }
    }

    /// Whether its probe may begin: `runs` tells of an attempt whether it does.
    pub(crate) fn is_due(&self, now: Timestamp, runs: impl Fn(&JobId) -> bool) -> bool {
        self.until.is_some_and(|until| until <= now) && !self.is_probed(runs)
    }

    /// Whether `runs` of its probe.
    pub(crate) fn is_probed(&self, runs: impl Fn(&JobId) -> bool) -> bool {
        self.probe.as_ref().is_some_and(|probe| runs(&probe.job))
    }

    /// The end that the program named, if that is still to come, else one after the failures so far; the last probe begins when
    /// the limit is over.
    fn end(&self, account: &str, at: Timestamp, first: Duration, limit: Duration) -> Option<Timestamp> {
        let last = self.since.plus(limit);
        if self.outage.kind == OutageKind::Refused || at >= last {
            return None;
        }
        let tried = at.plus(backoff(first, account, self.failures + 1));
        let named = self.outage.end(at).unwrap_or(tried);
        Some(named.max(tried).min(last))
    }
}

#[cfg(test)]
mod tests;
