//! How long a run will take from now on, as far as that can be said.
//!
//! The rule: every lane that is left takes as long as the median of the lanes that this run has merged, without the
//! time in which they waited for a person. The run then takes the longest chain of lanes that depend on each other, or
//! all of them divided by the places, whichever is longer. Nothing is said before [`SAMPLES`] lanes are merged, while a
//! lane waits for a person or the run stops, and once a lane at work takes longer than the median.

use std::collections::HashMap;
use std::time::Duration;

use lanewright_model::{Dag, LaneId, LaneIndex, Timestamp};

use crate::history::{LaneHistory, LaneState, RunHistory};

const SAMPLES: usize = 3;

/// `None`: nothing can be said.
pub(crate) fn time_left(history: &RunHistory, now: Timestamp) -> Option<Duration> {
    let run = &history.run;
    let asks = |lane: &LaneHistory| lane.state.needs_person();
    if run.stop.is_some() || run.finished.is_some() || history.done() < SAMPLES || history.active().any(asks) {
        return None;
    }
    let took = LaneDurations::of(history, now);
    let median = took.median()?;
    let left: Vec<u64> = history.lanes().iter().map(|lane| took.left(lane, median)).collect::<Option<_>>()?;
    let places = run.start.as_ref().map_or(1, |start| u64::from(start.options.max_parallel.max(1)));
    let shared = left.iter().sum::<u64>() / places;
    Some(Duration::from_millis(longest_chain(history, &left).max(shared))).filter(|left| !left.is_zero())
}

struct LaneDurations<'h> {
    history: &'h RunHistory,
    /// In milliseconds, while they waited for a person.
    waited: HashMap<&'h LaneId, u64>,
    now: Timestamp,
}

impl<'h> LaneDurations<'h> {
    fn of(history: &'h RunHistory, now: Timestamp) -> Self {
        let (clock, mut waited) = (history.clock(now), HashMap::new());
        for (lane, span) in history.answered() {
            let (from, to) = clock.span(span);
            *waited.entry(lane).or_default() += to - from;
        }
        Self { history, waited, now }
    }

    fn lane(&self, lane: &LaneHistory) -> u64 {
        let elapsed = self.history.lane_elapsed(lane, self.now).unwrap_or_default().as_millis();
        let waited = self.waited.get(&lane.id).copied().unwrap_or_default();
        u64::try_from(elapsed).unwrap_or(u64::MAX).saturating_sub(waited)
    }

    /// The median time of the lanes that this run merged.
    fn median(&self) -> Option<u64> {
        let merged = self.history.lanes().iter().filter(|lane| lane.merge_commit.is_some());
        let mut took: Vec<u64> = merged.map(|lane| self.lane(lane)).collect();
        took.sort_unstable();
        (took.len() >= SAMPLES).then(|| took[took.len() / 2])
    }

    /// What is left of a lane; `None` if it takes longer than usual.
    fn left(&self, lane: &LaneHistory, median: u64) -> Option<u64> {
        match lane.state {
            LaneState::Waiting => Some(if can_begin(self.history, lane) { median } else { 0 }),
            state if state.is_active() => median.checked_sub(self.lane(lane)),
            _ => Some(0),
        }
    }
}

/// Whether nothing that ended without a merge is in the way.
fn can_begin(history: &RunHistory, lane: &LaneHistory) -> bool {
    let states = lane.depends_on.iter().filter_map(|id| history.lane(id)).map(|lane| lane.state);
    states.into_iter().all(|state| state.is_active() || state.is_done() || state == LaneState::Waiting)
}

/// The longest path through the dependencies; 0 where a damaged log describes no plan.
fn longest_chain(history: &RunHistory, left: &[u64]) -> u64 {
    let indexes: Vec<LaneIndex> = LaneIndex::first(left.len()).collect();
    let places: HashMap<&LaneId, LaneIndex> =
        history.lanes().iter().map(|lane| &lane.id).zip(indexes.iter().copied()).collect();
    let needs = |lane: &LaneHistory| lane.depends_on.iter().filter_map(|id| places.get(id).copied()).collect();
    let Ok(dag) = Dag::new(history.lanes().iter().map(needs).collect()) else { return 0 };
    let weight = |lane: LaneIndex| left[lane.at()];
    dag.critical_path(weight).into_iter().map(weight).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanewright_model::testing::*;

    fn left_of(story: &Story) -> Option<Duration> {
        let plan = plan(&[
            ("A", &[], &[]),
            ("B", &[], &[]),
            ("C", &[], &[]),
            ("D", &["C"], &[]),
            ("E", &["D"], &[]),
            ("F", &["E"], &[]),
        ]);
        time_left(&RunHistory::for_plan(&plan).after(&story.records), story.now())
    }

    /// Each lane takes 73 seconds until its merge.
    fn merged(story: Story, id: &str) -> Story {
        let job = attempt(id, "engineer", 1);
        story.opened(id, 1).job(&job).exited(&job, 0).merged(id, 'd')
    }

    #[test]
    fn no_estimate_before_enough_lanes_merged() {
        let two = merged(merged(Story::begun(), "A"), "B");
        assert_eq!(left_of(&two), None);
        let three = merged(two, "C");
        let chain = left_of(&three).expect("three lanes are merged");
        // D, E and F depend on each other.
        assert!((210..235).contains(&chain.as_secs()), "{chain:?}");
        let begun = left_of(&three.opened("D", 1).wait(30)).expect("D is not late");
        assert!(begun < chain - Duration::from_secs(30), "{begun:?}");
    }

    #[test]
    fn no_estimate_for_slow_or_stuck_lanes() {
        let three = || merged(merged(merged(Story::begun(), "A"), "B"), "C");
        assert_eq!(left_of(&three().opened("D", 1).wait(500)), None);
        assert!(left_of(&three().opened("D", 1).failed("D")).is_some_and(|left| left.as_secs() < 200));
    }
}
