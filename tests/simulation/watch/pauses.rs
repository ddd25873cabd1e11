//! Attempts of a paused runner: none begins before the pause ends, and then one. Another runner takes its place only while it
//! is paused for long.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lanewright_model::event::{Event, Reading, Record};
use lanewright_model::{JobId, JobRole, Plan, Timestamp};

#[derive(Default)]
pub struct Pauses {
    paused: BTreeMap<String, Pause>,
    /// The account of each attempt, and those whose limit one reported that no pause tells of yet.
    accounts: BTreeMap<JobId, String>,
    limited: BTreeSet<String>,
    fallback_after: Duration,
    /// The run has ended since it was last resumed.
    has_ended: bool,
}

struct Pause {
    since: Timestamp,
    until: Option<Timestamp>,
    probe: Option<JobId>,
}

impl Pauses {
    pub fn see(&mut self, plan: &Plan, record: &Record) -> Option<String> {
        match &record.event {
            Event::RunStarted(started) => self.fallback_after = started.options.fallback_after,
            Event::RunnerPaused { account, since, until, .. } => {
                let probe = self.paused.remove(shared(account)).and_then(|known| known.probe);
                self.limited.remove(shared(account));
                self.paused.insert(shared(account).to_owned(), Pause { since: *since, until: *until, probe });
            }
            Event::RunnerContinued { account } => drop(self.paused.remove(shared(account))),
            Event::RunFinished { .. } => self.has_ended = true,
            Event::RunResumed { .. } => {
                for pause in self.paused.values_mut().filter(|pause| self.has_ended || pause.until.is_none()) {
                    pause.until = Some(record.at);
                }
                self.has_ended = false;
            }
            Event::JobExited { job, reading, transcript, .. } => {
                let account = self.accounts.remove(job);
                let is_out = matches!(reading.as_deref(), Some(Reading::Outage(_)));
                let is_limited = transcript.as_ref().and_then(|it| it.limited_until).is_some_and(|it| it > record.at);
                let ends = |pause: &Pause| transcript.as_ref().and_then(|it| it.limited_until) > pause.until;
                let lasts = |account: &String| {
                    self.paused.get(account).is_some_and(|pause| pause.until.is_none() || !ends(pause))
                };
                let limited = account.filter(|it| is_limited && !is_out && !lasts(it));
                self.limited.extend(limited);
                for pause in self.paused.values_mut() {
                    pause.probe.take_if(|probe| probe == job);
                }
            }
            Event::JobPlanned { job, made_with } => {
                let runner = made_with.as_ref().and_then(|made_with| made_with.fallback());
                let own = own_account(plan, job)?;
                if let Some(runner) = runner {
                    let pause = self.paused.get(&own);
                    let is_long =
                        |pause: &Pause| pause.until.is_none_or(|until| until.since(pause.since) > self.fallback_after);
                    if !pause.is_some_and(is_long) {
                        return Some(format!("{job} was planned with {runner} while its own runner can work soon"));
                    }
                }
                let account = runner.cloned().unwrap_or(own);
                if self.limited.contains(&account) {
                    return Some(format!("{job} was planned although the limit of its account is used up"));
                }
                self.accounts.insert(job.clone(), account.clone());
                let pause = self.paused.get_mut(&account)?;
                if pause.until.is_none_or(|until| record.at < until) {
                    return Some(format!("{job} was planned while its runner is paused"));
                }
                if let Some(probe) = pause.probe.replace(job.clone()) {
                    return Some(format!("{job} was planned while {probe} finds out whether the pause is over"));
                }
            }
            _ => {}
        }
        None
    }
}

/// What `Bug::ProbesTogether` makes an account of.
fn shared(account: &str) -> &str {
    account.split(" of ").next().unwrap_or(account)
}

fn own_account(plan: &Plan, job: &JobId) -> Option<String> {
    let JobRole::Attempt { agent, .. } = &job.role else { return None };
    let lane = plan.lane(plan.find(job.lane.as_ref()?)?);
    Some(lane.agents.iter().find(|known| known.name == *agent)?.command.to_string())
}
