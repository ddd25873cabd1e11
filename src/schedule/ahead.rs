//! Worktrees made ahead: while agents work, for the lanes that begin once theirs are merged.
//!
//! Lanes that begin when others end take their worktrees over. Where more begin than end, after the one lane on which all
//! others wait, say, the rest would have to be made, one after the other, while nobody works.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::action::Action;
use super::decide::Deciding;
use super::decide_lane::current_round;
use super::state::RunState;
use crate::event::LaneStage;
use crate::model::LaneIndex;

/// What is known of worktrees that were made ahead.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ahead {
    /// How many worktrees there were when one was last made, those that lanes held included.
    pub(super) at_hand: u32,
    /// One could not be made: no more are tried.
    pub(super) failed: bool,
}

/// Wants one made where making one takes long, nobody waits for one now, and the lanes that come need more than there are.
pub(super) fn make_ahead(deciding: &mut Deciding) {
    let state = deciding.state;
    if state.ahead.failed || !state.pace.is_worth_making_ahead() {
        return;
    }
    let is_open = |action: &Action| matches!(action, Action::OpenWorktree { .. });
    let at_work = |lane: &LaneIndex| !state.lane(*lane).running.is_empty();
    if deciding.out.actions.iter().any(is_open) || !state.lists.active().iter().any(at_work) {
        return;
    }
    let held: u32 = state.lists.holding().iter().map(|&lane| state.worktrees_held(lane)).sum();
    if state.worktrees_ahead() > held.max(state.ahead.at_hand) {
        deciding.want(Action::MakeAhead);
    }
}

impl RunState {
    /// How many worktrees the lanes need that have begun, or, if that is more, those that will have begun once every lane
    /// is merged that another one waits for.
    pub fn worktrees_ahead(&self) -> u32 {
        let coming = self.coming_next();
        let dependencies = coming.iter().flat_map(|&(_, lane)| self.plan.dag().dependencies(lane));
        let waited_for: BTreeSet<&LaneIndex> = dependencies.collect();
        let (ending, mut then): (Vec<LaneIndex>, Vec<LaneIndex>) =
            self.lists.active().iter().partition(|lane| waited_for.contains(lane));
        let need = |lanes: &[LaneIndex]| lanes.iter().map(|&lane| self.worktrees_of(lane)).sum::<u32>();
        let now = need(&ending) + need(&then);
        let mut places = self.places().saturating_sub(then.iter().map(|&lane| self.agents_of(lane)).sum());
        for (_, lane) in coming {
            if places > 0 && self.lists.fits_beside(lane, &then) {
                places = places.saturating_sub(self.agents_of(lane).max(1));
                then.push(lane);
            }
        }
        now.max(need(&then))
    }

    /// Lanes that wait for nothing but lanes that have begun, the longest remaining path first.
    fn coming_next(&self) -> BTreeSet<(Reverse<u64>, LaneIndex)> {
        let active = self.lists.active();
        let dependants: BTreeSet<LaneIndex> =
            active.iter().flat_map(|&lane| self.plan.dag().dependants(lane)).copied().collect();
        let is_next = |lane: &LaneIndex| {
            let it = self.lane(*lane);
            let may_begin = it.stage == LaneStage::Waiting && it.end.is_none() && it.stopping.is_none();
            let missing = |on: &&LaneIndex| active.contains(on);
            may_begin
                && it.missing <= active.len()
                && it.missing == self.plan.dag().dependencies(*lane).iter().filter(missing).count()
        };
        dependants.into_iter().filter(is_next).map(|lane| (Reverse(self.lists.path(lane)), lane)).collect()
    }

    fn places(&self) -> usize {
        self.started.as_ref().map_or(0, |started| started.options.max_parallel as usize)
    }

    /// The agents of a lane that work side by side.
    fn agents_of(&self, lane: LaneIndex) -> usize {
        let plan = self.plan.lane(lane);
        current_round(plan, self.lane(lane).stage).map_or(0, |round| plan.round(round).count())
    }

    /// How many worktrees the lane needs, for itself and for agents that have their own.
    fn worktrees_of(&self, lane: LaneIndex) -> u32 {
        let plan = self.plan.lane(lane);
        let round = current_round(plan, self.lane(lane).stage);
        let own = round.into_iter().flat_map(|round| plan.round(round)).filter(|&agent| !plan.shares_worktree(agent));
        let own = own.count().min(self.places());
        1 + u32::try_from(own).unwrap_or(u32::MAX)
    }

    fn worktrees_held(&self, lane: LaneIndex) -> u32 {
        let (plan, state) = (self.plan.lane(lane), self.lane(lane));
        let own = (0..plan.agents.len()).filter(|&agent| !plan.shares_worktree(agent));
        let of_agents = own.filter(|&agent| state.agents[agent].worktree.is_some()).count();
        u32::from(state.worktree.is_some()) + u32::try_from(of_agents).unwrap_or(u32::MAX)
    }
}
