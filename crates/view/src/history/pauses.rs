//! Runners whose attempts wait, and the lanes that wait for them.

use std::collections::BTreeMap;

use lanewright_model::event::{Event, LaneStage, Record};
use lanewright_model::outage::{PauseTimes, next_runner};
use lanewright_model::retry::FALLBACK_AFTER;
use lanewright_model::text::headline;
use lanewright_model::{OutageKind, Round, Timestamp};
use serde::Serialize;

use super::RunHistory;
use super::job::AgentStatus;
use super::lane::{AgentAccounts, LaneHistory};

/// Why and until when no attempt with an account begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PauseView {
    /// The account of its runners, else their name, else the command.
    pub account: String,
    pub kind: OutageKind,
    /// The line of output that reports it.
    pub line: String,
    /// Since when attempts have failed for it.
    pub since: Timestamp,
    /// When one attempt finds out whether it is over; null: a person has to change something first.
    pub until: Option<Timestamp>,
}

impl PauseView {
    /// The account on one line, for people.
    pub fn name(&self) -> String {
        headline(&self.account, 40)
    }
}

/// The pauses of a run, by account.
#[derive(Debug, Clone, Default)]
pub struct Pauses {
    accounts: BTreeMap<String, PauseView>,
    /// See the state of a run.
    run_ended: bool,
}

impl Pauses {
    pub fn iter(&self) -> impl Iterator<Item = &PauseView> {
        self.accounts.values()
    }

    pub(super) fn apply(&mut self, record: &Record) {
        match &record.event {
            Event::RunnerPaused { account, outage, since, until } => {
                let (kind, line) = (outage.kind, outage.line.clone());
                let pause = PauseView { account: account.clone(), kind, line, since: *since, until: *until };
                self.accounts.insert(account.clone(), pause);
            }
            Event::RunnerContinued { account } => drop(self.accounts.remove(account)),
            Event::RunFinished { .. } => self.run_ended = true,
            Event::RunResumed { .. } => {
                let had_ended = std::mem::take(&mut self.run_ended);
                for pause in self.accounts.values_mut().filter(|pause| had_ended || pause.until.is_none()) {
                    pause.until = Some(record.at);
                }
            }
            _ => {}
        }
    }
}

/// The accounts for the agent's next attempt: at the task of its last one, or after that, if it passed.
fn next_accounts<'l>(lane: &LaneHistory, agent: &'l AgentAccounts) -> Option<&'l [[String; 2]]> {
    let last = lane.jobs.last_ended(|job| job.job.is_attempt() && job.job.agent() == Some(&agent.agent));
    let at = last.and_then(|last| {
        let at = agent.tasks.iter().position(|(task, _)| Some(task) == last.job.task())?;
        Some(at + usize::from(last.passed() == Some(true)))
    });
    agent.tasks.get(at.unwrap_or(0)).map(|(_, accounts)| accounts.as_slice())
}

impl RunHistory {
    /// The pause for which all attempts of the lane wait that could begin now.
    pub(crate) fn pause_of(&self, lane: &LaneHistory) -> Option<&PauseView> {
        if self.run.pauses.accounts.is_empty() || !lane.jobs.running.is_empty() {
            return None;
        }
        let first = lane.accounts.iter().map(|agent| agent.round).min();
        let round = match lane.stage {
            LaneStage::Waiting | LaneStage::Init | LaneStage::Classified => first?,
            LaneStage::Requirements => Round::Requirements,
            LaneStage::Implementation => Round::Implementation,
            LaneStage::Review => Round::Review,
            _ => return None,
        };
        let is_at_work =
            |agent: &&AgentAccounts| agent.round == round && lane.status_of(&agent.agent) != AgentStatus::Complete;
        let agents = lane.accounts.iter().filter(is_at_work);
        let mut pauses =
            agents.filter_map(|agent| next_accounts(lane, agent)).map(|accounts| self.pause_among(accounts));
        let latest = |a: &'_ PauseView, b: &'_ PauseView| (a.until.is_none(), a.until) > (b.until.is_none(), b.until);
        let first = pauses.next()??;
        pauses.try_fold(first, |known, pause| pause.map(|pause| if latest(pause, known) { pause } else { known }))
    }

    /// The pause of the runner that would make the next attempt of an agent with these accounts.
    fn pause_among(&self, accounts: &[[String; 2]]) -> Option<&PauseView> {
        let of = |name: &String, refused: bool| {
            let known = self.run.pauses.accounts.get(name);
            known.filter(|pause| (pause.kind == OutageKind::Refused) == refused)
        };
        let either = |[account, refusable]: &[String; 2]| of(account, false).or_else(|| of(refusable, true));
        let all: Vec<Option<&PauseView>> = accounts.iter().map(either).collect();
        let times = |pause: &PauseView| PauseTimes { since: pause.since, until: pause.until };
        let pauses: Vec<Option<PauseTimes>> = all.iter().map(|pause| pause.map(times)).collect();
        let fallback_after = self.run.start.as_ref().map_or(FALLBACK_AFTER, |start| start.options.fallback_after);
        all.get(next_runner(&pauses, fallback_after)).copied().flatten()
    }

    /// How many lanes wait for the account.
    pub fn waiting_for_runner(&self, account: &str) -> usize {
        let waits = |lane: &&LaneHistory| matches!(self.waiting_for(lane), Some(super::WaitingFor::Runner { account: of, .. }) if of == account);
        self.lanes().iter().filter(waits).count()
    }
}
