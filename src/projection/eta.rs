//! How long a run will take from now on, as far as that can be said.
//!
//! The rule: every lane that is left takes as long as the median of the lanes that this run has merged, without the time
//! in which they waited for a person. The run then takes the longest chain of lanes that depend on each other, or all of
//! them divided by the places, whichever is longer. Nothing is said before [`SAMPLES`] lanes are merged, while a lane
//! waits for a person or the run stops, and once lanes at work take longer than the median.

use std::time::Duration;

use super::history::{LaneHistory, LaneState, RunHistory};
use crate::model::{LaneId, Timestamp};

/// How many merged lanes a guess needs.
const SAMPLES: usize = 3;

/// `None`: nothing can be said.
pub(super) fn time_left(history: &RunHistory, now: Timestamp) -> Option<Duration> {
    let run = &history.run;
    let asks = |lane: &LaneHistory| matches!(lane.state, LaneState::NeedsApproval(_) | LaneState::NeedsPerson);
    if run.stop.is_some() || run.finished.is_some() || history.lanes().iter().any(asks) {
        return None;
    }
    let typical = typical(history, now)?;
    let left: Vec<u64> = history.lanes().iter().map(|lane| left(history, lane, typical, now)).collect::<Option<_>>()?;
    let places = run.start.as_ref().map_or(1, |start| u64::from(start.options.max_parallel.max(1)));
    let longest = longest_chain(history, &left);
    let shared = left.iter().sum::<u64>() / places;
    Some(Duration::from_millis(longest.max(shared))).filter(|left| !left.is_zero())
}

/// The median time of the lanes that this run merged.
fn typical(history: &RunHistory, now: Timestamp) -> Option<u64> {
    let merged = history.lanes().iter().filter(|lane| lane.merge_commit.is_some());
    let mut took: Vec<u64> =
        merged.map(|lane| history.lane_times(lane, now)).map(|it| it.elapsed.saturating_sub(it.waiting)).collect();
    took.sort_unstable();
    (took.len() >= SAMPLES).then(|| took[took.len() / 2])
}

/// What is left of a lane; `None` if it takes longer than usual.
fn left(history: &RunHistory, lane: &LaneHistory, typical: u64, now: Timestamp) -> Option<u64> {
    match lane.state {
        LaneState::Waiting => Some(if can_begin(history, lane) { typical } else { 0 }),
        state if state.is_active() => {
            let times = history.lane_times(lane, now);
            typical.checked_sub(times.elapsed.saturating_sub(times.waiting))
        }
        _ => Some(0),
    }
}

/// Whether nothing that ended without a merge is in the way.
fn can_begin(history: &RunHistory, lane: &LaneHistory) -> bool {
    let states = lane.depends_on.iter().filter_map(|id| history.lane(id)).map(|lane| lane.state);
    states.into_iter().all(|state| state.is_active() || state.is_done() || state == LaneState::Waiting)
}

/// The longest path through the dependencies. Lanes of a plan come in any order, so it is settled in rounds.
fn longest_chain(history: &RunHistory, left: &[u64]) -> u64 {
    let lanes = history.lanes();
    let place = |id: &LaneId| lanes.iter().position(|lane| lane.id == *id);
    let needs: Vec<Vec<usize>> = lanes.iter().map(|lane| lane.depends_on.iter().filter_map(place).collect()).collect();
    let mut until = left.to_vec();
    for _ in lanes {
        let next: Vec<u64> = (0..lanes.len())
            .map(|lane| left[lane] + needs[lane].iter().map(|&before| until[before]).max().unwrap_or_default())
            .collect();
        if next == until {
            break;
        }
        until = next;
    }
    until.into_iter().max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projection::testing::*;

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
    fn nothing_is_guessed_before_some_lanes_are_merged() {
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
    fn what_takes_longer_than_usual_or_cannot_begin_is_not_guessed_at() {
        let three = || merged(merged(merged(Story::begun(), "A"), "B"), "C");
        assert_eq!(left_of(&three().opened("D", 1).wait(500)), None);
        assert!(left_of(&three().opened("D", 1).failed("D")).is_some_and(|left| left.as_secs() < 200));
    }
}
