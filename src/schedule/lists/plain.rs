//! The lists by their plain definition, which goes over all lanes: what the quick ones are held against.

use std::collections::BTreeSet;

use super::Lists;
use crate::event::LaneStage;
use crate::model::LaneIndex;
use crate::schedule::state::{LaneEnd, LaneState, RunState};

/// Plans of more lanes are not looked at: with every event that would cost too much even for debug builds.
const MOST_LANES: usize = 64;

impl RunState {
    /// Panics unless the lists say what a look at every lane says.
    pub(in crate::schedule) fn check_lists(&self) {
        if self.started().is_none() || self.lanes.len() > MOST_LANES {
            return;
        }
        let lists = &self.lists;
        assert_eq!(ready(lists), self.those(|lane| self.is_ready(lane)), "ready lanes");
        assert_eq!(lists.holding, self.those(|lane| holds(self.lane(lane))), "lanes that hold something");
        assert_eq!(lists.active, self.those(|lane| self.is_active(lane)), "active lanes");
        assert_eq!(lists.has_conflicts(), self.any_conflict(), "conflicts");
        assert_eq!(lists.any_failed(), self.lanes.iter().any(|lane| matches!(lane.end, Some(LaneEnd::Failed(_)))));
        assert_eq!(lists.all_complete(), self.lanes.iter().all(is_complete));
    }

    fn those(&self, are: impl Fn(LaneIndex) -> bool) -> BTreeSet<LaneIndex> {
        self.plan.indices().filter(|&lane| are(lane)).collect()
    }

    fn is_ready(&self, index: LaneIndex) -> bool {
        let lane = self.lane(index);
        let waits = lane.stage == LaneStage::Waiting && lane.end.is_none() && lane.stopping.is_none();
        let over = |lane: LaneIndex| self.lane(lane).end.is_some() || self.lane(lane).merged.is_some();
        let preceded = self.plan.sequences.iter().any(|&(first, then)| then == index && !over(first));
        waits && lane.missing == 0 && !preceded && !self.excluders(index).any(|other| holds(self.lane(other)))
    }

    fn excluders(&self, index: LaneIndex) -> impl Iterator<Item = LaneIndex> {
        let partner = move |&(one, other): &(LaneIndex, LaneIndex)| match () {
            () if one == index => Some(other),
            () if other == index => Some(one),
            () => None,
        };
        self.plan.exclusions.iter().filter_map(partner)
    }

    fn is_active(&self, index: LaneIndex) -> bool {
        let lane = self.lane(index);
        let goes_on = lane.stage != LaneStage::Waiting && (lane.end.is_none() || !lane.is_quiet());
        goes_on && !is_complete(lane) && !lane.is_parked(self.plan.lane(index))
    }

    fn any_conflict(&self) -> bool {
        let excluded = |&(one, other): &(LaneIndex, LaneIndex)| holds(self.lane(one)) && holds(self.lane(other));
        let users = |pool: &String| {
            let uses = |lane: &LaneIndex| self.plan.lane(*lane).uses.iter().filter(|used| *used == pool).count();
            self.plan.indices().filter(|lane| holds(self.lane(*lane))).map(|lane| uses(&lane)).sum::<usize>()
        };
        let overused = |(pool, size): (&String, &u32)| users(pool) > *size as usize;
        self.plan.exclusions.iter().any(excluded) || self.plan.pools.iter().any(overused)
    }
}

fn ready(lists: &Lists) -> BTreeSet<LaneIndex> {
    lists.ready.iter().flatten().map(|&(_, lane)| lane).collect()
}

fn holds(lane: &LaneState) -> bool {
    lane.stage != LaneStage::Waiting && lane.end.is_none() && lane.merged.is_none()
}

fn is_complete(lane: &LaneState) -> bool {
    matches!(lane.end, Some(LaneEnd::Merged | LaneEnd::MergedBefore | LaneEnd::Left))
}
