//! Which lanes are drawn in which column and in which order, and the ways of the edges between them.

use lanewright_model::LaneIndex;

use super::Graph;
use super::placing;

/// How many bends an edge may take around lanes for each lane of the graph; with more, edges go straight.
const BENDS_PER_LANE: usize = 8;

/// How often the order within the layers is improved. More sweeps gain nothing that can be seen.
const SWEEPS: usize = 8;

/// In how many lanes edges are searched that follow from others; the memory for it grows with the square.
const MOST_REDUCED: usize = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Lane(LaneIndex),
    /// Where the edges of a lane pass a layer on their way.
    Bend(LaneIndex),
}

/// Slots by layer, from left to right, each in its order from top to bottom, and the segments of edges between them.
#[derive(Debug, Default)]
pub(super) struct Layers {
    pub(super) slots: Vec<Slot>,
    pub(super) layers: Vec<Vec<usize>>,
    /// For each slot, the slots in layers before it that a line connects it with.
    pub(super) before: Vec<Vec<usize>>,
    pub(super) after: Vec<Vec<usize>>,
    /// Lanes without any edge, which need no place among the others.
    pub(super) single: Vec<LaneIndex>,
}

impl Layers {
    pub(super) fn of(graph: &Graph) -> Self {
        let edges = without_implied(graph);
        let waves = graph.dag.waves();
        let layer = |lane: LaneIndex| waves[lane.at()] as usize - 1;
        let has_edge =
            |lane: &LaneIndex| !graph.dag.dependencies(*lane).is_empty() || !graph.dag.dependants(*lane).is_empty();
        let (joined, single): (Vec<LaneIndex>, Vec<LaneIndex>) = graph.indices().partition(has_edge);
        let mut layers = Self { single, ..Self::default() };
        let mut slot_of = vec![usize::MAX; graph.nodes.len()];
        for &lane in &joined {
            slot_of[lane.at()] = layers.add(Slot::Lane(lane), layer(lane));
        }
        let mut targets: Vec<Vec<LaneIndex>> = vec![Vec::new(); graph.nodes.len()];
        edges.iter().for_each(|&(from, to)| targets[from.at()].push(to));
        let last = |from: &LaneIndex| targets[from.at()].iter().map(|&to| layer(to)).max().unwrap_or_default();
        let bends: usize = joined.iter().map(|from| last(from).saturating_sub(layer(*from) + 1)).sum();
        let bends_fit = bends <= BENDS_PER_LANE * joined.len();
        for &from in &joined {
            // One chain of bends for all edges of a lane: they part where their targets are.
            let mut chain = vec![slot_of[from.at()]];
            if bends_fit {
                for at in layer(from) + 1..last(&from) {
                    let bend = layers.add(Slot::Bend(from), at);
                    layers.connect(chain[chain.len() - 1], bend);
                    chain.push(bend);
                }
            }
            for &to in &targets[from.at()] {
                let at = (layer(to) - layer(from) - 1).min(chain.len() - 1);
                layers.connect(chain[at], slot_of[to.at()]);
            }
        }
        layers.reduce_crossings();
        layers
    }

    fn add(&mut self, slot: Slot, layer: usize) -> usize {
        if self.layers.len() <= layer {
            self.layers.resize(layer + 1, Vec::new());
        }
        self.layers[layer].push(self.slots.len());
        self.slots.push(slot);
        self.before.push(Vec::new());
        self.after.push(Vec::new());
        self.slots.len() - 1
    }

    fn connect(&mut self, from: usize, to: usize) {
        self.after[from].push(to);
        self.before[to].push(from);
    }

    /// Orders each layer by where the neighbours of its slots are on average, back and forth, and keeps the best order.
    fn reduce_crossings(&mut self) {
        let mut best = (self.crossings(), self.layers.clone());
        for sweep in 0..SWEEPS {
            let mut at = self.middles();
            let forward = sweep % 2 == 0;
            let count = self.layers.len();
            for step in 0..count {
                let layer = if forward { step } else { count - 1 - step };
                let neighbours = if forward { &self.before } else { &self.after };
                let key = |slot: usize, at: &[f64]| placing::mean(&neighbours[slot], at).unwrap_or(at[slot]);
                let mut order: Vec<(f64, usize)> =
                    self.layers[layer].iter().map(|&slot| (key(slot, &at), slot)).collect();
                order.sort_by(|one, other| one.0.total_cmp(&other.0));
                self.layers[layer] = order.into_iter().map(|(_, slot)| slot).collect();
                set_middles(&self.layers[layer], &mut at);
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.layers.clone());
            }
        }
        self.layers = best.1;
    }

    /// The position of each slot in its layer, measured from the middle of the layer.
    fn middles(&self) -> Vec<f64> {
        let mut at = vec![0.0; self.slots.len()];
        self.layers.iter().for_each(|layer| set_middles(layer, &mut at));
        at
    }

    /// How many pairs of segments between neighbouring layers cross.
    pub(super) fn crossings(&self) -> usize {
        let mut position = vec![0; self.slots.len()];
        for layer in &self.layers {
            layer.iter().enumerate().for_each(|(at, &slot)| position[slot] = at);
        }
        let of_layer = |layer: &Vec<usize>| {
            let targets = layer.iter().flat_map(|&slot| {
                let mut after: Vec<usize> = self.after[slot].iter().map(|&to| position[to]).collect();
                after.sort_unstable();
                after
            });
            inversions(&targets.collect::<Vec<_>>())
        };
        self.layers.iter().map(of_layer).sum()
    }
}

fn set_middles(layer: &[usize], at: &mut [f64]) {
    let middle = (layer.len() as f64 - 1.0) / 2.0;
    layer.iter().enumerate().for_each(|(position, &slot)| at[slot] = position as f64 - middle);
}

/// How many pairs of `numbers` are in falling order, by counts of those seen in a Fenwick tree.
pub(super) fn inversions(numbers: &[usize]) -> usize {
    let size = numbers.iter().max().map_or(0, |most| most + 1);
    let mut counts = vec![0; size + 1];
    let mut found = 0;
    for (seen, &number) in numbers.iter().enumerate() {
        let (mut not_above, mut at) = (0, number + 1);
        while at > 0 {
            not_above += counts[at];
            at &= at - 1;
        }
        found += seen - not_above;
        at = number + 1;
        while at <= size {
            counts[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    found
}

/// The edges of the graph, without those that follow from others: where C waits for B and B for A, that C waits for A.
pub(super) fn without_implied(graph: &Graph) -> Vec<(LaneIndex, LaneIndex)> {
    if graph.nodes.len() > MOST_REDUCED {
        return graph.edges().collect();
    }
    let words = graph.nodes.len().div_ceil(64);
    let mut ancestors = vec![0u64; words * graph.nodes.len()];
    let mut edges = Vec::new();
    for &to in graph.dag.order() {
        let mut implied = vec![0u64; words];
        for on in graph.dag.dependencies(to) {
            let of_dependency = &ancestors[on.at() * words..][..words];
            implied.iter_mut().zip(of_dependency).for_each(|(all, some)| *all |= some);
        }
        for &on in graph.dag.dependencies(to) {
            let (word, bit) = (on.at() / 64, 1 << (on.at() % 64));
            if implied[word] & bit == 0 {
                edges.push((on, to));
            }
        }
        for on in graph.dag.dependencies(to) {
            implied[on.at() / 64] |= 1 << (on.at() % 64);
        }
        ancestors[to.at() * words..][..words].copy_from_slice(&implied);
    }
    edges
}
