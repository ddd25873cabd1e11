//! Which runner makes an agent's next attempt, and whether it is paused.

use lanewright_model::outage::{PauseTimes, next_runner};
use lanewright_model::retry::FALLBACK_AFTER;
use lanewright_model::text::headline;
use lanewright_model::{LaneIndex, OutageKind, Task, Timestamp};

use crate::state::RunState;
use crate::state::agent::AgentStep;
use crate::state::lane::attempts::REFUSED_REMEDY;
use crate::state::pauses::Pause;

/// The runner of an attempt.
#[derive(Debug, Clone)]
pub(crate) struct NextRunner<'a> {
    /// Its name, where it is one of the agent's `fallback`.
    pub(crate) name: Option<&'a str>,
    /// Of which a pause holds: its account, or what of it is refused.
    pub(crate) account: String,
    pub(crate) pause: Option<&'a Pause>,
    /// Why no more attempts begin with it, if its budget is used up.
    pub(crate) exhausted: Option<String>,
}

impl RunState {
    /// The runners that may make the agent's next attempt: its own, then its `fallback`.
    pub(crate) fn runners(&self, lane: LaneIndex, agent: usize) -> impl Iterator<Item = NextRunner<'_>> {
        let (who, task) = (&self.plan.lane(lane).agents[agent], self.next_task(lane, agent));
        let names = std::iter::once(None).chain(self.plan.fallback(who, task).map(Some));
        names.map(move |name| {
            let exhausted = self.exhausted(name.unwrap_or(&who.runner)).filter(|_| task.command.is_none());
            let who = self.plan.with_runner(who, name);
            let (account, refusable) = (self.plan.account(&who, task), self.plan.refusable(&who, task));
            let (account, pause) = self.pauses.of_either(account, refusable);
            NextRunner { name, account: account.into_owned(), pause, exhausted }
        })
    }

    fn exhausted(&self, runner: &str) -> Option<String> {
        let budget = self.plan.runners.get(runner)?.budget;
        let exhausted = budget.exhausted_by(self.used_by.get(runner)?)?;
        let remedy = format!("raise `max_cost` or `max_tokens` of `[runners.{runner}]`, then resume");
        Some(format!("{exhausted} of {runner}; to continue, {remedy}"))
    }

    fn next_task(&self, lane: LaneIndex, agent: usize) -> &Task {
        &self.plan.lane(lane).agents[agent].tasks[self.lane(lane).agents()[agent].task]
    }

    /// The runner of the agent's next attempt, behind those that would be better if they were not paused.
    pub(crate) fn runners_up_to_next(&self, lane: LaneIndex, agent: usize) -> Vec<NextRunner<'_>> {
        let mut all: Vec<NextRunner<'_>> = self.runners(lane, agent).collect();
        let times = |runner: &NextRunner<'_>| match (runner.pause, &runner.exhausted) {
            (_, Some(_)) => Some(PauseTimes { since: Timestamp::from_unix_millis(0), until: None }),
            (pause, None) => pause.map(|pause| PauseTimes { since: pause.since, until: pause.until }),
        };
        let pauses: Vec<Option<PauseTimes>> = all.iter().map(times).collect();
        let fallback_after = self.started().map_or(FALLBACK_AFTER, |started| started.options.fallback_after);
        all.truncate(next_runner(&pauses, fallback_after) + 1);
        all
    }

    /// The runner of the agent's next attempt.
    pub(crate) fn next_runner(&self, lane: LaneIndex, agent: usize) -> Option<NextRunner<'_>> {
        self.runners_up_to_next(lane, agent).pop()
    }

    /// The pause that keeps the agent's next attempt from beginning.
    pub fn pause_of(&self, lane: LaneIndex, agent: usize) -> Option<&Pause> {
        if self.pauses.is_empty() { None } else { self.next_runner(lane, agent)?.pause }
    }

    /// Why the agent's next attempt does not begin before a person has done something.
    pub(crate) fn unavailable(&self, lane: LaneIndex, agent: usize) -> Option<String> {
        if self.pauses.is_empty() {
            return None;
        }
        let runner = self.next_runner(lane, agent)?;
        let pause = runner.pause.filter(|pause| pause.needs_user())?;
        let (worker, plan) = (&self.lane(lane).agents()[agent], &self.plan.lane(lane).agents[agent]);
        let begins = matches!(worker.step, AgentStep::Ready | AgentStep::Retrying(_));
        if !begins || plan.tasks[worker.task].kind.is_human() {
            return None;
        }
        let (account, said) = (headline(&runner.account, 60), &pause.outage.line);
        Some(match pause.outage.kind {
            OutageKind::Refused => format!("{account} cannot work: {said}; {REFUSED_REMEDY}"),
            _ => format!("{account} is still unavailable: {said}; resume when it is available again"),
        })
    }

    /// Whether all that is left to do in the lane now are attempts whose runners are paused.
    pub(crate) fn is_paused(&self, lane: LaneIndex) -> bool {
        if self.pauses.is_empty() {
            return false;
        }
        let (state, plan) = (self.lane(lane), self.plan.lane(lane));
        let Some(round) = self.round_at_work(lane).filter(|_| state.end.is_none() && state.is_quiet()) else {
            return false;
        };
        let wants = |agent: &usize| state.agents()[*agent].wants_a_place(&plan.agents[*agent]);
        let mut waiting = state.attempts.in_turn(plan, round).filter(wants).peekable();
        waiting.peek().is_some() && waiting.all(|agent| self.pause_of(lane, agent).is_some())
    }

    /// The agents whose attempts could begin in the lane now, or as soon as its worktrees are open and what the last ones
    /// did is saved.
    pub(crate) fn wanting(&self, lane: LaneIndex) -> impl Iterator<Item = usize> {
        let (state, plan) = (self.lane(lane), self.plan.lane(lane));
        let is_over = state.end.is_some() || state.stopping.is_some() || self.executor(lane).is_some();
        let round = self.current_round(lane).filter(|_| !is_over);
        let wants = |agent: &usize| state.agents()[*agent].wants_a_place(&plan.agents[*agent]);
        round.into_iter().flat_map(|round| plan.round(round)).filter(wants)
    }

    /// The runners of their next attempts.
    pub(crate) fn runners_wanted(&self, lane: LaneIndex) -> impl Iterator<Item = NextRunner<'_>> {
        self.wanting(lane).filter_map(move |agent| self.next_runner(lane, agent))
    }
}
