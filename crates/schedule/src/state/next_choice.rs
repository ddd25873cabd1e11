//! What comes next for the candidates of a lane.

use lanewright_model::event::{ChosenBy, Event};
use lanewright_model::{ChangeSize, LaneIndex, Round};

use crate::state::RunState;
use crate::state::agent::AgentStep;
use crate::state::lane::current_round;

/// What comes next for the candidates of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextChoice {
    /// The judge is asked.
    Judge,
    Choose(usize, ChosenBy),
}

impl RunState {
    /// What comes next for the candidates of a lane at its implementation; `None` while they work, and once one is chosen that
    /// may still succeed.
    pub(crate) fn next_choice(&self, lane: LaneIndex) -> Option<NextChoice> {
        let (state, plan) = (self.lane(lane), self.plan.lane(lane));
        plan.candidates().next()?;
        let attempts = &state.attempts;
        let passed: Vec<usize> = state.passed_candidates(plan).collect();
        // A worktree that is being opened is waited for: it is to be returned.
        let has_ended = |agent: usize| {
            let is_open = state.workplace(plan, agent).is_some();
            attempts.end_of(plan, agent).is_some() || is_open && self.unavailable(lane, agent).is_some()
        };
        let has_come_to_rest = |candidate: usize| {
            passed.contains(&candidate) || has_ended(candidate) && !attempts.has_job_of(plan, candidate)
        };
        let failed = |chosen| matches!(attempts.end_of(plan, chosen), Some(Event::LaneFailed { .. }));
        match attempts.chosen() {
            Some(chosen) if !failed(chosen) => return None,
            None if !plan.candidates().all(has_come_to_rest) => return None,
            _ if passed.is_empty() => return None,
            _ => {}
        }
        let picked = attempts.wanted().filter(|picked| passed.contains(picked));
        if let [only] = passed[..] {
            return Some(NextChoice::Choose(only, if picked.is_some() { ChosenBy::User } else { ChosenBy::Only }));
        }
        let judge = plan.round(Round::Judge).next();
        let is_over = |judge: usize| state.agents()[judge].is_over(plan.shares_worktree(judge)) || has_ended(judge);
        if judge.is_some_and(|judge| !is_over(judge)) {
            // Also where the user picked meanwhile: a step of it may be under way.
            return Some(NextChoice::Judge);
        }
        if let Some(picked) = picked {
            return Some(NextChoice::Choose(picked, ChosenBy::User));
        }
        let verdict = judge.map(|judge| &state.agents()[judge]).filter(|judge| judge.step == AgentStep::Done);
        let verdict = verdict.and_then(|judge| judge.verdict);
        let named = |candidate: &usize| verdict.is_some() && plan.agents[*candidate].candidate == verdict;
        if let Some(named) = passed.iter().copied().find(named) {
            return Some(NextChoice::Choose(named, ChosenBy::Judge));
        }
        let size = |candidate: &usize| {
            let size = state.agents()[*candidate].size.unwrap_or_default();
            // One that changed nothing did not do the work.
            (size == ChangeSize::default(), size.added + size.removed)
        };
        passed.into_iter().min_by_key(size).map(|least| NextChoice::Choose(least, ChosenBy::Size))
    }

    /// Why the judge of the lane, if it has one, chose none of the candidates that passed. At another choice nothing is new.
    pub(crate) fn silence_of_judge(&self, lane: LaneIndex) -> Option<String> {
        let (state, judge) = (self.lane(lane), self.plan.lane(lane).round(Round::Judge).next()?);
        let judge = state.chosen().is_none().then(|| &state.agents()[judge])?;
        Some(match &judge.step {
            AgentStep::Blocked(reason) => format!("it is blocked: {reason}"),
            AgentStep::Failed(failure) | AgentStep::PermanentlyFailed(failure) => failure.message.clone(),
            AgentStep::Done => match judge.verdict {
                Some(number) => format!("it named {number}, which is none of those that passed"),
                None => "it wrote no number".to_owned(),
            },
            _ => "its runner is not available".to_owned(),
        })
    }

    /// The round whose agents work in the lane now, or are about to.
    pub(crate) fn current_round(&self, lane: LaneIndex) -> Option<Round> {
        match current_round(self.plan.lane(lane), self.lane(lane).stage) {
            Some(Round::Implementation) if self.next_choice(lane) == Some(NextChoice::Judge) => Some(Round::Judge),
            round => round,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lanewright_model::{Agent, Failure, FailureKind};

    use super::*;
    use crate::sample_plans::{lane, plan};

    /// What follows for three candidates that changed so many lines, or failed, and a judge that named one, or works.
    fn next(lines: [Option<u64>; 3], verdict: Option<Option<u32>>, picked: Option<usize>) -> Option<NextChoice> {
        let mut of_lane = lane("A", &[], 1, &[]);
        let one = of_lane.agents.remove(0);
        let candidate =
            |number: u32| Agent { name: format!("c{number}").parse().unwrap(), candidate: Some(number), ..one.clone() };
        of_lane.agents = (1..=3).map(candidate).collect();
        of_lane.agents.push(Agent { name: "judge".parse().unwrap(), round: Round::Judge, ..one });
        let mut state = RunState::new(Arc::new(plan(vec![of_lane], &[])));
        let agents = state.lanes[0].attempts.agents_mut();
        for (agent, lines) in agents.iter_mut().zip(lines) {
            let failed = || AgentStep::PermanentlyFailed(Failure::new(FailureKind::Crash, "why"));
            agent.step = lines.map_or_else(failed, |_| AgentStep::Merging);
            agent.size = lines.map(|added| ChangeSize { added, ..ChangeSize::default() });
        }
        if let Some(verdict) = verdict {
            agents[3].step = AgentStep::Done;
            agents[3].verdict = verdict;
        }
        picked.into_iter().for_each(|picked| state.lanes[0].pick(picked));
        state.next_choice(LaneIndex(0))
    }

    #[test]
    fn the_user_decides_then_the_judge_then_the_size() {
        let chosen = |candidate, by| Some(NextChoice::Choose(candidate, by));
        let sizes = [Some(5), Some(2), Some(2)];
        assert_eq!(next(sizes, None, None), Some(NextChoice::Judge));
        assert_eq!(next(sizes, None, Some(2)), Some(NextChoice::Judge));
        assert_eq!(next(sizes, Some(Some(1)), Some(2)), chosen(2, ChosenBy::User));
        assert_eq!(next(sizes, Some(Some(1)), None), chosen(0, ChosenBy::Judge));
        assert_eq!(next(sizes, Some(Some(9)), None), chosen(1, ChosenBy::Size), "of equal ones the first");
        assert_eq!(next(sizes, Some(None), None), chosen(1, ChosenBy::Size));
        assert_eq!(next([Some(5), None, Some(1)], Some(Some(2)), None), chosen(2, ChosenBy::Size), "2 failed");
        assert_eq!(next([Some(0), Some(5), None], Some(None), None), chosen(1, ChosenBy::Size), "1 changed nothing");
        assert_eq!(next([Some(5), None, None], None, None), chosen(0, ChosenBy::Only));
        assert_eq!(next([Some(5), None, None], None, Some(0)), chosen(0, ChosenBy::User));
        assert_eq!(
            next([Some(5), None, None], None, Some(1)),
            chosen(0, ChosenBy::Only),
            "one that failed is not picked"
        );
        assert_eq!(next([None, None, None], None, None), None);
    }
}
