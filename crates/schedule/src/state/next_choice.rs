//! What comes next for the candidates of a lane.

use lanewright_model::event::{ChosenBy, Event};
use lanewright_model::{LaneIndex, Round};

use crate::state::RunState;
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
        let is_settled = |candidate: usize| {
            let runs = || state.running().iter().any(|job| job.agent() == Some(&plan.agents[candidate].name));
            passed.contains(&candidate) || has_ended(candidate) && !runs()
        };
        let failed = |chosen| matches!(attempts.end_of(plan, chosen), Some(Event::LaneFailed { .. }));
        match attempts.chosen() {
            Some(chosen) if !failed(chosen) => return None,
            None if !plan.candidates().all(is_settled) => return None,
            _ if passed.is_empty() => return None,
            _ => {}
        }
        if let [only] = passed[..] {
            return Some(NextChoice::Choose(only, ChosenBy::Only));
        }
        let judge = plan.round(Round::Judge).next();
        let is_over = |judge: usize| state.agents()[judge].is_over(plan.shares_worktree(judge)) || has_ended(judge);
        if judge.is_some_and(|judge| !is_over(judge)) {
            // Also where the user picked meanwhile: a step of it may be under way.
            return Some(NextChoice::Judge);
        }
        if let Some(picked) = attempts.wanted().filter(|picked| passed.contains(picked)) {
            return Some(NextChoice::Choose(picked, ChosenBy::User));
        }
        let verdict = judge.and_then(|judge| state.agents()[judge].verdict);
        let named = |candidate: &usize| verdict.is_some() && plan.agents[*candidate].candidate == verdict;
        if let Some(named) = passed.iter().copied().find(named) {
            return Some(NextChoice::Choose(named, ChosenBy::Judge));
        }
        let lines = |candidate: &usize| {
            let size = state.agents()[*candidate].size.unwrap_or_default();
            (size.added + size.removed, size.files)
        };
        passed.into_iter().min_by_key(lines).map(|least| NextChoice::Choose(least, ChosenBy::Size))
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

    use lanewright_model::{Agent, ChangeSize, Failure, FailureKind};

    use super::*;
    use crate::sample_plans::{lane, plan};
    use crate::state::agent::AgentStep;

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
        assert_eq!(next([Some(5), None, None], None, None), chosen(0, ChosenBy::Only));
        assert_eq!(
            next([Some(5), None, None], None, Some(1)),
            chosen(0, ChosenBy::Only),
            "one that failed is not picked"
        );
        assert_eq!(next([None, None, None], None, None), None);
    }
}
