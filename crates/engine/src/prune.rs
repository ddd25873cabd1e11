//! Which snapshots may go (SPEC §4: kept while the lane's work is not merged). Pure.
//!
//! A snapshot of an agent that continued its work is superseded by any later readable one of the same agent. Any other
//! snapshot holds work that was set aside afterwards, and nothing else holds it; those of candidates stay also when their
//! lane is merged.

use std::time::Duration;

use lanewright_model::event::SnapshotReason;
use lanewright_model::{AgentName, LaneId, Timestamp};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub lane: LaneId,
    pub agent: Option<AgentName>,
    pub reason: SnapshotReason,
    pub at: Timestamp,
    pub intact: bool,
    pub merged: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PruneOptions {
    /// Keep the newest N readable ones of each lane.
    pub keep: Option<u32>,
    /// Only what is older than this; `None`: all.
    pub older_than: Option<Duration>,
    /// Also remove the only copies of unmerged work.
    pub force: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Goes,
    NotMeant,
    LastOfLane,
    OnlyHolder,
}

impl Fate {
    pub fn words(self) -> &'static str {
        match self {
            Self::Goes => "another one has its work",
            Self::NotMeant => "not meant",
            Self::LastOfLane => "the last of its lane that can be read",
            Self::OnlyHolder => "the only holder of work that is not merged",
        }
    }
}

/// The fate of each of `snapshots`, which are in the order in which they were taken.
pub fn fates(snapshots: &[Candidate], options: &PruneOptions, now: Timestamp) -> Vec<Fate> {
    (0..snapshots.len()).map(|at| fate(snapshots, at, options, now)).collect()
}

fn fate(snapshots: &[Candidate], at: usize, options: &PruneOptions, now: Timestamp) -> Fate {
    let (it, later) = (&snapshots[at], &snapshots[at + 1..]);
    let newer = later.iter().filter(|other| other.lane == it.lane && other.intact).count();
    let old_enough = options.older_than.is_none_or(|age| now.since(it.at) > age);
    let enough_newer = options.keep.is_none_or(|keep| newer >= keep as usize);
    if !old_enough || !enough_newer {
        return Fate::NotMeant;
    }
    // The merge of a lane removes what it holds. What it leaves may be nowhere else.
    let outlives = matches!(it.reason, SnapshotReason::Candidate | SnapshotReason::External | SnapshotReason::Rollback);
    if it.merged && !outlives {
        return Fate::Goes;
    }
    if it.intact && newer == 0 {
        return Fate::LastOfLane;
    }
    let superseded = later.iter().any(|other| (&other.lane, &other.agent) == (&it.lane, &it.agent) && other.intact);
    if options.force || (it.reason.is_routine() && superseded) { Fate::Goes } else { Fate::OnlyHolder }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(lane: &str, agent: &str, reason: SnapshotReason, at: i64) -> Candidate {
        Candidate {
            lane: LaneId::new(lane).unwrap(),
            agent: Some(AgentName::new(agent).unwrap()),
            reason,
            at: Timestamp::from_unix_millis(at * 1000),
            intact: true,
            merged: false,
        }
    }

    fn fates_of(snapshots: &[Candidate], keep: Option<u32>, older_than: Option<u64>, force: bool) -> Vec<Fate> {
        let options = PruneOptions { keep, older_than: older_than.map(Duration::from_secs), force };
        fates(snapshots, &options, Timestamp::from_unix_millis(100_000))
    }

    use Fate::*;
    use SnapshotReason::{Failure, Interval, Risky, Task};

    #[test]
    fn newest_of_each_lane_are_kept() {
        let all = [
            taken("A", "x", Interval, 1),
            taken("B", "x", Interval, 2),
            taken("A", "x", Interval, 3),
            taken("A", "x", Task, 4),
        ];
        assert_eq!(fates_of(&all, Some(2), None, false), [Goes, NotMeant, NotMeant, NotMeant]);
        assert_eq!(fates_of(&all, Some(1), None, false), [Goes, NotMeant, Goes, NotMeant]);
        assert_eq!(fates_of(&all, None, Some(96), false), [Goes, LastOfLane, Goes, NotMeant]);
        assert_eq!(fates_of(&all, Some(2), Some(99), false), [NotMeant; 4]);
    }

    #[test]
    fn set_aside_work_is_removed_by_force_only() {
        let all = [taken("A", "x", Failure, 1), taken("A", "x", Risky, 2), taken("A", "x", Task, 3)];
        assert_eq!(fates_of(&all, Some(1), None, false), [OnlyHolder, OnlyHolder, NotMeant]);
        assert_eq!(fates_of(&all, Some(1), None, true), [Goes, Goes, NotMeant]);
    }

    #[test]
    fn snapshot_of_another_agent_supersedes_none() {
        let all = [taken("A", "x", Task, 1), taken("A", "y", Task, 2)];
        assert_eq!(fates_of(&all, Some(1), None, false), [OnlyHolder, NotMeant]);
    }

    #[test]
    fn last_readable_snapshot_survives_force() {
        let damaged = Candidate { intact: false, ..taken("A", "x", Task, 2) };
        let all = [taken("A", "x", Task, 1), damaged];
        assert_eq!(fates_of(&all, None, Some(0), false), [LastOfLane, OnlyHolder]);
        assert_eq!(fates_of(&all, None, Some(0), true), [LastOfLane, Goes]);
    }

    #[test]
    fn merged_snapshots_are_removed() {
        let merged = |reason, at| Candidate { merged: true, ..taken("A", "x", reason, at) };
        let all = [merged(Failure, 1)];
        assert_eq!(fates_of(&all, None, Some(0), false), [Goes]);
        let all = [merged(SnapshotReason::External, 1), merged(SnapshotReason::Rollback, 2), merged(Failure, 3)];
        assert_eq!(fates_of(&all, None, Some(0), false), [OnlyHolder, OnlyHolder, Goes]);
    }
}
