//! Dependencies between lanes: a graph that cannot hold a cycle.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LaneIndex(pub u32);

impl LaneIndex {
    /// As an index into a slice of lanes.
    pub fn at(self) -> usize {
        self.0 as usize
    }

    fn from_usize(index: usize) -> Self {
        Self(u32::try_from(index).expect("a plan has fewer than 2^32 lanes"))
    }

    /// The first `count` indices.
    pub fn first(count: usize) -> impl DoubleEndedIterator<Item = Self> {
        (0..count).map(Self::from_usize)
    }
}

/// A cycle, as the lanes on it in the order of "depends on"; the first is not repeated at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle(pub Vec<LaneIndex>);

/// An acyclic graph of lanes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dag {
    dependencies: Vec<Vec<LaneIndex>>,
    dependants: Vec<Vec<LaneIndex>>,
    order: Vec<LaneIndex>,
}

impl Dag {
    /// Builds the graph from each lane's dependencies. Duplicates count once.
    ///
    /// # Errors
    /// One [`Cycle`]: that of the first lane, in plan order, that is on a cycle or depends on one.
    pub fn new(mut dependencies: Vec<Vec<LaneIndex>>) -> Result<Self, Cycle> {
        for list in &mut dependencies {
            list.sort_unstable();
            list.dedup();
        }
        let mut dependants = vec![Vec::new(); dependencies.len()];
        for (lane, list) in dependencies.iter().enumerate() {
            for dependency in list {
                dependants[dependency.at()].push(LaneIndex::from_usize(lane));
            }
        }
        let order = topological_order(&dependencies, &dependants);
        if order.len() < dependencies.len() {
            return Err(find_cycle(&dependencies, &order));
        }
        Ok(Self { dependencies, dependants, order })
    }

    pub fn len(&self) -> usize {
        self.dependencies.len()
    }

    pub fn is_empty(&self) -> bool {
        self.dependencies.is_empty()
    }

    /// The lanes that `lane` waits for, in plan order.
    pub fn dependencies(&self, lane: LaneIndex) -> &[LaneIndex] {
        &self.dependencies[lane.at()]
    }

    /// The lanes that wait for `lane`, in plan order.
    pub fn dependants(&self, lane: LaneIndex) -> &[LaneIndex] {
        &self.dependants[lane.at()]
    }

    /// Every lane after all its dependencies; plan order where the edges leave it open.
    pub fn order(&self) -> &[LaneIndex] {
        &self.order
    }

    /// The wave of each lane: 1 where nothing is waited for, else one more than its latest dependency.
    pub fn waves(&self) -> Vec<u32> {
        let mut waves = vec![1; self.len()];
        for &lane in &self.order {
            let after = self.dependencies(lane).iter().map(|d| waves[d.at()] + 1).max();
            waves[lane.at()] = after.unwrap_or(1);
        }
        waves
    }

    /// For each lane, the largest sum of `weight` on a path from it to the end, itself included.
    pub fn remaining(&self, weight: impl Fn(LaneIndex) -> u64) -> Vec<u64> {
        let mut remaining = vec![0u64; self.len()];
        for &lane in self.order.iter().rev() {
            let after = self.dependants(lane).iter().map(|d| remaining[d.at()]).max().unwrap_or(0);
            remaining[lane.at()] = after.saturating_add(weight(lane));
        }
        remaining
    }

    /// The path with the largest sum of weights, first lane first.
    pub fn critical_path(&self, weight: impl Fn(LaneIndex) -> u64) -> Vec<LaneIndex> {
        let remaining = self.remaining(weight);
        let heaviest = |lanes: &mut dyn Iterator<Item = LaneIndex>| {
            lanes.max_by_key(|lane| (remaining[lane.at()], std::cmp::Reverse(*lane)))
        };
        let mut path = Vec::new();
        let mut next = heaviest(&mut LaneIndex::first(self.len()));
        while let Some(lane) = next {
            path.push(lane);
            next = heaviest(&mut self.dependants(lane).iter().copied());
        }
        path
    }

    /// Every lane that `lanes` wait for, directly or not, and `lanes` themselves.
    pub fn with_dependencies(&self, lanes: impl IntoIterator<Item = LaneIndex>) -> Vec<LaneIndex> {
        self.reach(lanes, |lane| self.dependencies(lane))
    }

    /// Every lane that waits for one of `lanes`, directly or not, and `lanes` themselves.
    pub fn with_dependants(&self, lanes: impl IntoIterator<Item = LaneIndex>) -> Vec<LaneIndex> {
        self.reach(lanes, |lane| self.dependants(lane))
    }

    fn reach<'a>(
        &'a self,
        lanes: impl IntoIterator<Item = LaneIndex>,
        next: impl Fn(LaneIndex) -> &'a [LaneIndex],
    ) -> Vec<LaneIndex> {
        let mut seen = vec![false; self.len()];
        let mut stack: Vec<LaneIndex> = lanes.into_iter().collect();
        while let Some(lane) = stack.pop() {
            if !std::mem::replace(&mut seen[lane.at()], true) {
                stack.extend(next(lane));
            }
        }
        LaneIndex::first(self.len()).filter(|lane| seen[lane.at()]).collect()
    }
}

fn topological_order(dependencies: &[Vec<LaneIndex>], dependants: &[Vec<LaneIndex>]) -> Vec<LaneIndex> {
    let mut missing: Vec<usize> = dependencies.iter().map(Vec::len).collect();
    let mut ready: std::collections::BTreeSet<LaneIndex> =
        LaneIndex::first(missing.len()).filter(|lane| missing[lane.at()] == 0).collect();
    let mut order = Vec::with_capacity(missing.len());
    while let Some(lane) = ready.pop_first() {
        order.push(lane);
        for &dependant in &dependants[lane.at()] {
            missing[dependant.at()] -= 1;
            if missing[dependant.at()] == 0 {
                ready.insert(dependant);
            }
        }
    }
    order
}

/// Follows dependencies from the first lane without a place in the order; every such lane depends on another one.
fn find_cycle(dependencies: &[Vec<LaneIndex>], order: &[LaneIndex]) -> Cycle {
    let mut settled = vec![false; dependencies.len()];
    for lane in order {
        settled[lane.at()] = true;
    }
    let mut path: Vec<LaneIndex> = Vec::new();
    let mut next = LaneIndex::first(dependencies.len()).find(|lane| !settled[lane.at()]);
    while let Some(lane) = next {
        if let Some(start) = path.iter().position(|&seen| seen == lane) {
            return Cycle(path.split_off(start));
        }
        path.push(lane);
        next = dependencies[lane.at()].iter().copied().find(|d| !settled[d.at()]);
    }
    Cycle(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dag(edges: &[&[u32]]) -> Result<Dag, Cycle> {
        Dag::new(edges.iter().map(|list| list.iter().copied().map(LaneIndex).collect()).collect())
    }

    fn numbers(lanes: &[LaneIndex]) -> Vec<u32> {
        lanes.iter().map(|lane| lane.0).collect()
    }

    #[test]
    fn waves_and_order_follow_the_edges() {
        let dag = dag(&[&[2], &[], &[1], &[]]).unwrap();
        assert_eq!(numbers(dag.order()), [1, 2, 0, 3]);
        assert_eq!(dag.waves(), [3, 1, 2, 1]);
    }

    #[test]
    fn a_cycle_is_named_without_the_lanes_that_lead_to_it() {
        let Cycle(lanes) = dag(&[&[1], &[2], &[3], &[1]]).unwrap_err();
        assert_eq!(numbers(&lanes), [1, 2, 3]);
    }

    #[test]
    fn a_lane_that_waits_for_itself_is_a_cycle() {
        assert_eq!(dag(&[&[0]]).unwrap_err(), Cycle(vec![LaneIndex(0)]));
    }

    #[test]
    fn the_critical_path_is_the_heaviest_not_the_longest() {
        let dag = dag(&[&[], &[0], &[1], &[]]).unwrap();
        let weight = |lane: LaneIndex| if lane.0 == 3 { 100 } else { 10 };
        assert_eq!(numbers(&dag.critical_path(weight)), [3]);
        assert_eq!(dag.remaining(weight), [30, 20, 10, 100]);
    }

    #[test]
    fn reach_goes_both_ways() {
        let dag = dag(&[&[], &[0], &[1], &[]]).unwrap();
        assert_eq!(numbers(&dag.with_dependencies([LaneIndex(2)])), [0, 1, 2]);
        assert_eq!(numbers(&dag.with_dependants([LaneIndex(1)])), [1, 2]);
    }
}
