//! Which lane waits for which, directly or not.

/// A bit for each pair of lanes.
#[derive(Debug)]
pub(super) struct Before {
    bits: Vec<Vec<u64>>,
}

impl Before {
    /// From the lanes that each lane waits for directly. Lanes on a cycle wait for what they name, no more.
    pub(super) fn new(waits: &[Vec<usize>]) -> Self {
        let count = waits.len();
        let mut before = Self { bits: vec![vec![0; count.div_ceil(64)]; count] };
        let mut missing = vec![0usize; count];
        let mut dependants: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (lane, on) in waits.iter().enumerate() {
            for &other in on {
                dependants[other].push(lane);
                missing[lane] += 1;
                before.bits[lane][other / 64] |= 1 << (other % 64);
            }
        }
        let mut ready: Vec<usize> = (0..count).filter(|&lane| missing[lane] == 0).collect();
        while let Some(lane) = ready.pop() {
            for &next in &dependants[lane] {
                before.join(next, lane);
                missing[next] -= 1;
                if missing[next] == 0 {
                    ready.push(next);
                }
            }
        }
        before
    }

    /// Whether `lane` waits for `on`.
    pub(super) fn waits(&self, lane: usize, on: usize) -> bool {
        self.bits[lane][on / 64] >> (on % 64) & 1 == 1
    }

    /// Whether one of the two waits for the other.
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
    fn waiting_is_transitive_whatever_the_order_of_the_text() {
        let mut before = Before::new(&[vec![1], vec![2], vec![], vec![]]);
        assert!(before.waits(0, 2) && !before.waits(2, 0) && !before.ordered(3, 0));
        before.add(2, 3);
        assert!(before.waits(0, 3) && before.waits(1, 3));
    }

    #[test]
    fn a_cycle_ends() {
        let before = Before::new(&[vec![1], vec![0], vec![0]]);
        assert!(before.waits(0, 1) && before.waits(1, 0));
    }
}
