//! Which lane of a plan a Lanewright that works on single lanes may take: of several that share the work of a phase,
//! each decides by this, one at a time, so that no two take the same lane (SPEC §9, seed 003, Multi-Instance Conflict
//! Resolution).

use std::cmp::Reverse;

use lanewright_model::{LaneIndex, Plan};

use crate::state::plan_weight;

/// Which session or run has a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// Nobody, and it is not merged.
    Free,
    /// The integration branch holds its work.
    Merged,
    /// A living session.
    Live,
    /// An unfinished run that no process works on; only a resume of that run continues it.
    Left,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blocker {
    /// A living session works on it.
    Held,
    /// It belongs to an unfinished run that no process works on.
    Left,
    /// These are to be merged first.
    Needs(Vec<LaneIndex>),
    /// It must not run beside this one, on which a living session works.
    Beside(LaneIndex),
    /// Living sessions use all of this resource pool.
    PoolInUse(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextLane {
    /// This one is ready and free.
    Lane(LaneIndex),
    AllMerged,
    /// Every lane that is not merged, in plan order, and what it waits for.
    Nothing(Vec<(LaneIndex, Blocker)>),
}

/// The first lane that may begin: `preferred` if it may, else the one with the longest remaining path, as within a run;
/// one before which the plan wants another comes last.
/// `claims` has one entry for each lane.
pub fn next_lane(plan: &Plan, claims: &[Claim], preferred: Option<LaneIndex>) -> NextLane {
    let open: Vec<LaneIndex> = plan.indices().filter(|lane| claims[lane.at()] != Claim::Merged).collect();
    if open.is_empty() {
        return NextLane::AllMerged;
    }
    let remaining = plan.dag().remaining(|lane| plan_weight(plan, lane));
    let mut blocked = Vec::new();
    let mut ready = Vec::new();
    for lane in open {
        match blocker(plan, claims, lane) {
            Some(blocker) => blocked.push((lane, blocker)),
            None => ready.push(lane),
        }
    }
    let in_its_turn = |lane: &LaneIndex| {
        let is_open = |first: &LaneIndex| claims[first.at()] != Claim::Merged;
        !plan.sequences.iter().any(|(first, then)| then == lane && is_open(first))
    };
    let rank = |lane: &LaneIndex| (preferred != Some(*lane), !in_its_turn(lane), Reverse(remaining[lane.at()]), *lane);
    ready.into_iter().min_by_key(rank).map_or(NextLane::Nothing(blocked), NextLane::Lane)
}

/// What keeps `lane` from beginning now, whether it was merged before or not.
pub fn blocker(plan: &Plan, claims: &[Claim], lane: LaneIndex) -> Option<Blocker> {
    match claims[lane.at()] {
        Claim::Live => return Some(Blocker::Held),
        Claim::Left => return Some(Blocker::Left),
        Claim::Free | Claim::Merged => {}
    }
    let dependencies = plan.dag().dependencies(lane).iter().copied();
    let missing: Vec<LaneIndex> = dependencies.filter(|lane| claims[lane.at()] != Claim::Merged).collect();
    if missing.is_empty() { contention(plan, claims, lane) } else { Some(Blocker::Needs(missing)) }
}

/// What another session has that `lane` needs for itself: a lane that excludes it, or the rest of a resource pool.
pub fn contention(plan: &Plan, claims: &[Claim], lane: LaneIndex) -> Option<Blocker> {
    let live = |other: &LaneIndex| claims[other.at()] == Claim::Live;
    let partner = |&(one, other): &(LaneIndex, LaneIndex)| match () {
        () if one == lane => Some(other),
        () if other == lane => Some(one),
        () => None,
    };
    if let Some(other) = plan.exclusions.iter().filter_map(partner).find(live) {
        return Some(Blocker::Beside(other));
    }
    let used =
        |pool: &String| plan.indices().filter(live).filter(|&other| plan.lane(other).uses.contains(pool)).count();
    let full = |pool: &&String| used(pool) >= plan.pools.get(*pool).copied().unwrap_or(1) as usize;
    plan.lane(lane).uses.iter().find(full).cloned().map(Blocker::PoolInUse)
}

#[cfg(test)]
mod tests;
