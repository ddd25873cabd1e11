//! The indexes by their plain definition, which goes over all lanes: what the quick ones are held against.

use std::collections::BTreeSet;

use lanewright_model::LaneIndex;
use lanewright_model::event::LaneStage;

use crate::state::RunState;
use crate::state::indexes::LaneIndexes;
use crate::state::lane::{LaneEnd, LaneState};

/// Plans of more lanes are not looked at: with every event that would cost too much even for debug builds.
const MOST_LANES: usize = 64;

impl RunState {
    /// Panics unless the indexes say what a look at every lane says.
    pub(crate) fn check_indexes(&self) {
        if self.started().is_none() || self.lanes.len() > MOST_LANES {
            return;
        }
        let indexes = &self.indexes;
        assert_eq!(ready(indexes), self.those(|lane| self.is_ready(lane)), "ready lanes");
        assert_eq!(indexes.holding, self.those(|lane| holds(self.lane(lane))), "lanes that hold something");
        assert_eq!(indexes.active, self.those(|lane| self.is_active(lane)), "active lanes");
        assert_eq!(indexes.moved(), &self.those(|lane| self.lane(lane).has_moves_to_record()), "agents that moved");
        assert_eq!(indexes.followed(), &self.those(|lane| self.lane(lane).is_followed()), "lanes that are followed");
        self.check_held_back();
        let failed = self.lanes.iter().filter(|lane| matches!(lane.end, Some(LaneEnd::Failed(_))));
        assert_eq!(indexes.failed(), failed.count());
        assert_eq!(indexes.all_complete(), self.lanes.iter().all(LaneState::is_complete));
    }

    fn those(&self, are: impl Fn(LaneIndex) -> bool) -> BTreeSet<LaneIndex> {
        self.plan.indices().filter(|&lane| are(lane)).collect()
    }

    fn is_ready(&self, index: LaneIndex) -> bool {
        let lane = self.lane(index);
        let waits = lane.stage == LaneStage::Waiting && lane.end.is_none() && lane.stopping.is_none();
        let over = |lane: LaneIndex| self.lane(lane).is_over();
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
        goes_on && !lane.is_complete() && !lane.is_parked(self.plan.lane(index))
    }

    /// Lanes that are not held back may run at once, and each of those held back must not run beside them.
    fn check_held_back(&self) {
        let (held_back, granted): (Vec<LaneIndex>, Vec<LaneIndex>) =
            self.indexes.holding.iter().partition(|lane| self.indexes.is_held_back(**lane));
        assert_eq!(held_back.len(), self.indexes.held_back.len(), "held back, but not begun");
        assert!(self.may_run_at_once(&granted), "lanes that must not run at once: {granted:?}");
        for lane in held_back {
            let together: Vec<LaneIndex> = granted.iter().copied().chain([lane]).collect();
            assert!(!self.may_run_at_once(&together), "held back for nothing: {lane:?}");
        }
    }

    fn may_run_at_once(&self, lanes: &[LaneIndex]) -> bool {
        let both = |(one, other): &(LaneIndex, LaneIndex)| lanes.contains(one) && lanes.contains(other);
        let users = |pool: &String| {
            lanes.iter().flat_map(|&lane| &self.plan.lane(lane).uses).filter(|used| *used == pool).count()
        };
        let overused = |(pool, size): (&String, &u32)| users(pool) > *size as usize;
        !self.plan.exclusions.iter().chain(&self.plan.sequences).any(both) && !self.plan.pools.iter().any(overused)
    }
}

fn ready(indexes: &LaneIndexes) -> BTreeSet<LaneIndex> {
    indexes.ready.iter().flatten().map(|&(_, lane)| lane).collect()
}

fn holds(lane: &LaneState) -> bool {
    lane.stage != LaneStage::Waiting && !(lane.is_over() && lane.is_quiet())
}
