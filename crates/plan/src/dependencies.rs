//! Which lane waits for which, directly or not, and what comes first.

use std::collections::BTreeSet;

/// The numbers of `waits`, which has for each what it waits for, in an order in which nothing comes before what it waits
/// for: of those that may come next always the first by `rank`. Then those that wait for each other in a circle, or for
/// such.
pub(super) fn topological_order<K: Ord>(waits: &[Vec<usize>], rank: impl Fn(usize) -> K) -> (Vec<usize>, Vec<usize>) {
    let mut missing: Vec<usize> = waits.iter().map(Vec::len).collect();
    let mut dependants: Vec<Vec<usize>> = vec![Vec::new(); waits.len()];
    for (at, waits) in waits.iter().enumerate() {
        waits.iter().for_each(|&on| dependants[on].push(at));
    }
    let ranked = |at: usize| (rank(at), at);
    let mut ready: BTreeSet<(K, usize)> = (0..waits.len()).filter(|&at| missing[at] == 0).map(ranked).collect();
    let mut order = Vec::with_capacity(waits.len());
    while let Some((_, at)) = ready.pop_first() {
        order.push(at);
        for &next in &dependants[at] {
            missing[next] -= 1;
            if missing[next] == 0 {
                ready.insert(ranked(next));
            }
        }
    }
    let mut rest: Vec<(K, usize)> = (0..waits.len()).filter(|&at| missing[at] > 0).map(ranked).collect();
    rest.sort_unstable();
    (order, rest.into_iter().map(|(_, at)| at).collect())
}

/// A bit for each pair of lanes.
#[derive(Debug)]
pub(super) struct Dependencies {
    bits: Vec<Vec<u64>>,
}

impl Dependencies {
    /// From the lanes that each lane waits for directly. Lanes on a cycle wait for what they name, no more.
    pub(super) fn new(waits: &[Vec<usize>]) -> Self {
        let mut found = Self { bits: vec![vec![0; waits.len().div_ceil(64)]; waits.len()] };
        let (order, rest) = topological_order(waits, |lane| lane);
        for lane in order.into_iter().chain(rest) {
            for &on in &waits[lane] {
                found.join(lane, on);
                found.bits[lane][on / 64] |= 1 << (on % 64);
            }
        }
        found
    }

    /// Whether `lane` waits for `on`.
    pub(super) fn waits(&self, lane: usize, on: usize) -> bool {
        self.bits[lane][on / 64] >> (on % 64) & 1 == 1
    }

    /// Whether a lane is among what any of `lanes` waits for.
    pub(super) fn behind(&self, lanes: &[usize]) -> impl Fn(usize) -> bool + use<> {
        let mut all = vec![0; self.bits.len().div_ceil(64)];
        for &lane in lanes {
            all.iter_mut().zip(&self.bits[lane]).for_each(|(all, own)| *all |= own);
        }
        move |on| all[on / 64] >> (on % 64) & 1 == 1
    }

    pub(super) fn ordered(&self, one: usize, other: usize) -> bool {
        self.waits(one, other) || self.waits(other, one)
    }

    /// Lets `lane` wait for `on`, which must not wait for it.
    pub(super) fn add(&mut self, lane: usize, on: usize) {
        if self.waits(lane, on) {
            return;
        }
        for other in 0..self.bits.len() {
            if other == lane || self.waits(other, lane) {
                self.join(other, on);
                self.bits[other][on / 64] |= 1 << (on % 64);
            }
        }
    }

    /// Lets `lane` wait for everything that `other` waits for.
    fn join(&mut self, lane: usize, other: usize) {
        if lane != other {
            let theirs = self.bits[other].clone();
            self.bits[lane].iter_mut().zip(theirs).for_each(|(own, theirs)| *own |= theirs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reachability_is_transitive_in_any_order() {
        let mut all = Dependencies::new(&[vec![1], vec![2], vec![], vec![]]);
        assert!(all.waits(0, 2) && !all.waits(2, 0) && !all.ordered(3, 0));
        all.add(2, 3);
        assert!(all.waits(0, 3) && all.waits(1, 3));
    }

    #[test]
    fn reachability_terminates_on_cycles() {
        let all = Dependencies::new(&[vec![1], vec![0], vec![0]]);
        assert!(all.waits(0, 1) && all.waits(1, 0));
    }
}
