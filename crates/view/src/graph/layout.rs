//! Where lanes and lines are drawn, in pixels.

use std::collections::BTreeMap;

use lanewright_model::LaneIndex;

use super::Graph;
use super::layers::{Layers, Slot};
use super::placing::{Wanted, mean, place};

pub(super) const BOX_HEIGHT: f64 = 44.0;
const MARGIN: f64 = 12.0;
/// Between two boxes of a layer, a box and a passing line, and two such lines.
const GAPS: [f64; 3] = [14.0, 10.0, 8.0];
/// Between layers; it is wider where many lines have to pass.
const LAYER_GAP: f64 = 52.0;
const WIDEST_LAYER_GAP: f64 = 140.0;
/// How often boxes are moved towards their neighbours. More sweeps gain nothing that can be seen.
const SWEEPS: usize = 8;
/// How many lines are drawn for each lane of the graph; more are a black area, and megabytes.
const LINES_PER_LANE: usize = 8;
const FEWEST_LINES: usize = 2000;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

/// The box of a lane: its corner at the top left, and its width.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct LaneBox {
    pub(super) corner: Point,
    pub(super) width: f64,
}

/// A curve between two points, and from its end straight on to `until`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    pub(super) from: Point,
    pub(super) to: Point,
    pub(super) until: f64,
    pub(super) is_critical: bool,
}

#[derive(Debug, Default)]
pub(super) struct Layout {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) boxes: Vec<LaneBox>,
    pub(super) lines: Vec<Line>,
    /// Where lines meet of which all on the left lead to all on the right.
    pub(super) joints: Vec<Point>,
    /// Lines that are too many to be drawn.
    pub(super) left_out: usize,
}

impl Layout {
    /// The layout of `graph`, with boxes as wide as `width_of` their lanes.
    pub(super) fn of(graph: &Graph, width_of: impl Fn(LaneIndex) -> f64) -> Self {
        let layers = Layers::of(graph);
        let mut drawing = Drawing::new(graph, &layers, &width_of);
        drawing.place_slots();
        let mut layout = Self { boxes: vec![LaneBox::default(); graph.nodes.len()], ..Self::default() };
        for (at, layer) in layers.layers.iter().enumerate() {
            let (x, width) = (drawing.left[at], drawing.right[at] - drawing.left[at]);
            for &slot in layer {
                if let Slot::Lane(lane) = layers.slots[slot] {
                    let corner = Point { x, y: drawing.y[slot] - BOX_HEIGHT / 2.0 };
                    layout.boxes[lane.at()] = LaneBox { corner, width };
                }
                layout.height = layout.height.max(drawing.y[slot] + BOX_HEIGHT / 2.0 + MARGIN);
            }
        }
        layout.width = drawing.right.last().map_or(0.0, |right| right + MARGIN);
        layout.joints = drawing.joints();
        layout.lines = drawing.lines(&layout.joints);
        // The critical ones first: they are the last to be left out.
        layout.lines.sort_by_key(|line| !line.is_critical);
        let most = FEWEST_LINES.max(LINES_PER_LANE * graph.nodes.len());
        layout.left_out = layout.lines.len().saturating_sub(most);
        layout.lines.truncate(most);
        layout.add_grid(&layers.single, width_of);
        layout
    }

    /// Lanes without edges, in rows below the others.
    fn add_grid(&mut self, lanes: &[LaneIndex], width_of: impl Fn(LaneIndex) -> f64) {
        let width = lanes.iter().map(|&lane| width_of(lane)).fold(0.0, f64::max);
        let step = Point { x: width + GAPS[0], y: BOX_HEIGHT + GAPS[0] };
        let columns = (1..=lanes.len()).take_while(|count| *count as f64 * step.x + MARGIN <= self.width).last();
        let columns = columns.unwrap_or_default().max(lanes.len().min(4));
        let top = self.height.max(MARGIN);
        for (at, lane) in lanes.iter().enumerate() {
            let (column, row) = ((at % columns) as f64, (at / columns) as f64);
            let corner = Point { x: MARGIN + column * step.x, y: top + row * step.y };
            self.boxes[lane.at()] = LaneBox { corner, width };
            self.width = self.width.max(corner.x + width + MARGIN);
            self.height = self.height.max(corner.y + BOX_HEIGHT + MARGIN);
        }
    }
}

/// Lines of which all of `from` lead to all of `to`; drawn through one point.
struct Bundle {
    layer: usize,
    from: Vec<usize>,
    to: Vec<usize>,
}

struct Drawing<'a> {
    graph: &'a Graph,
    layers: &'a Layers,
    layer_of: Vec<usize>,
    /// The edges of each layer.
    left: Vec<f64>,
    right: Vec<f64>,
    /// The middle of each slot.
    y: Vec<f64>,
    bundles: Vec<Bundle>,
}

impl<'a> Drawing<'a> {
    fn new(graph: &'a Graph, layers: &'a Layers, width_of: &impl Fn(LaneIndex) -> f64) -> Self {
        let mut layer_of = vec![0; layers.slots.len()];
        for (at, layer) in layers.layers.iter().enumerate() {
            layer.iter().for_each(|&slot| layer_of[slot] = at);
        }
        let bundles = bundles(layers, &layer_of);
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let mut x = MARGIN;
        for (at, layer) in layers.layers.iter().enumerate() {
            let width = |&slot: &usize| match layers.slots[slot] {
                Slot::Lane(lane) => width_of(lane),
                Slot::Bend(_) => 0.0,
            };
            let lines: usize = layer.iter().map(|&slot| layers.before[slot].len()).sum();
            let joints = bundles.iter().any(|bundle| bundle.layer == at);
            let gap = LAYER_GAP + lines as f64 + if joints { LAYER_GAP / 2.0 } else { 0.0 };
            x += if at == 0 { 0.0 } else { gap.min(WIDEST_LAYER_GAP) };
            left.push(x);
            x += layer.iter().map(width).fold(0.0, f64::max);
            right.push(x);
        }
        Self { graph, layers, layer_of, left, right, y: vec![0.0; layers.slots.len()], bundles }
    }

    /// Moves the slots towards their neighbours, back and forth, and the whole to the top.
    fn place_slots(&mut self) {
        let count = self.layers.layers.len();
        (0..count).for_each(|layer| self.place_layer(layer, |_, _| 0.0));
        for sweep in 0..SWEEPS {
            for step in 0..count {
                let forward = sweep % 2 == 0;
                let layer = if forward { step } else { count - 1 - step };
                self.place_layer(layer, |drawing, slot| {
                    let neighbours = if forward { &drawing.layers.before } else { &drawing.layers.after };
                    mean(&neighbours[slot], &drawing.y).unwrap_or(drawing.y[slot])
                });
            }
        }
        let top = self.y.iter().copied().fold(f64::INFINITY, f64::min) - BOX_HEIGHT / 2.0 - MARGIN;
        self.y.iter_mut().for_each(|y| *y = (*y - top).round());
    }

    fn place_layer(&mut self, layer: usize, middle: impl Fn(&Self, usize) -> f64) {
        let slots = &self.layers.layers[layer];
        let is_bend = |slot: usize| matches!(self.layers.slots[slot], Slot::Bend(_));
        let distance = |at: usize| {
            let bends = usize::from(is_bend(slots[at - 1])) + usize::from(is_bend(slots[at]));
            GAPS[bends] + BOX_HEIGHT / 2.0 * (2 - bends) as f64
        };
        let wanted = |(at, &slot): (usize, &usize)| Wanted {
            middle: middle(self, slot),
            // Long lines are to be straight.
            weight: if is_bend(slot) { 2.0 } else { 1.0 },
            distance: if at == 0 { 0.0 } else { distance(at) },
        };
        let row: Vec<Wanted> = slots.iter().enumerate().map(wanted).collect();
        for (&slot, y) in slots.iter().zip(place(&row)) {
            self.y[slot] = y;
        }
    }

    fn lines(&self, joints: &[Point]) -> Vec<Line> {
        let critical = self.critical_bends();
        let is_critical = |from: usize, to: usize| match self.layers.slots[to] {
            Slot::Lane(lane) => self.graph.is_critical(self.lane(from), lane),
            Slot::Bend(_) => critical[to],
        };
        let mut is_bundled = vec![false; self.layers.slots.len()];
        self.bundles.iter().flat_map(|bundle| &bundle.to).for_each(|&to| is_bundled[to] = true);
        let mut lines = Vec::new();
        for to in (0..self.layers.slots.len()).filter(|&to| !is_bundled[to]) {
            let line = |&from: &usize| self.line(self.out_of(from), to, is_critical(from, to));
            lines.extend(self.layers.before[to].iter().map(line));
        }
        for (bundle, joint) in self.bundles.iter().zip(joints) {
            for &from in &bundle.from {
                let is_critical = bundle.to.iter().any(|&to| is_critical(from, to));
                lines.push(Line { from: self.out_of(from), to: *joint, until: joint.x, is_critical });
            }
            for &to in &bundle.to {
                let is_critical = bundle.from.iter().any(|&from| is_critical(from, to));
                lines.push(self.line(*joint, to, is_critical));
            }
        }
        lines
    }

    /// The lane whose edges leave `slot`.
    fn lane(&self, slot: usize) -> LaneIndex {
        match self.layers.slots[slot] {
            Slot::Lane(lane) | Slot::Bend(lane) => lane,
        }
    }

    fn out_of(&self, slot: usize) -> Point {
        Point { x: self.right[self.layer_of[slot]], y: self.y[slot] }
    }

    fn line(&self, from: Point, to: usize, is_critical: bool) -> Line {
        let layer = self.layer_of[to];
        let end = Point { x: self.left[layer], y: self.y[to] };
        let until = if matches!(self.layers.slots[to], Slot::Bend(_)) { self.right[layer] } else { end.x };
        Line { from, to: end, until, is_critical }
    }

    /// For each slot, whether it is a bend that the critical path takes.
    fn critical_bends(&self) -> Vec<bool> {
        let mut critical = vec![false; self.layers.slots.len()];
        for &slot in self.layers.layers.iter().rev().flatten() {
            let Slot::Bend(from) = self.layers.slots[slot] else { continue };
            critical[slot] = self.layers.after[slot].iter().any(|&to| match self.layers.slots[to] {
                Slot::Lane(lane) => self.graph.is_critical(from, lane),
                Slot::Bend(_) => critical[to],
            });
        }
        critical
    }

    /// The point of each bundle: in the middle of what it joins, and apart from others of the same layer.
    fn joints(&self) -> Vec<Point> {
        let middle = |bundle: &Bundle| {
            let of = |slots: &[usize]| mean(slots, &self.y).unwrap_or_default();
            f64::midpoint(of(&bundle.from), of(&bundle.to))
        };
        let mut order: Vec<(usize, f64, usize)> =
            self.bundles.iter().enumerate().map(|(at, bundle)| (bundle.layer, middle(bundle), at)).collect();
        order.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        let mut joints = vec![Point::default(); self.bundles.len()];
        for of_layer in order.chunk_by(|one, other| one.0 == other.0) {
            let wanted = of_layer.iter().map(|&(_, middle, _)| Wanted { middle, weight: 1.0, distance: GAPS[0] });
            for (&(layer, _, at), y) in of_layer.iter().zip(place(&wanted.collect::<Vec<_>>())) {
                let x = f64::midpoint(self.right[layer - 1], self.left[layer]);
                joints[at] = Point { x, y: y.round() };
            }
        }
        joints
    }
}

/// Where at least two lanes wait for the same lanes, and lines through one point are fewer.
fn bundles(layers: &Layers, layer_of: &[usize]) -> Vec<Bundle> {
    let mut waiting: BTreeMap<(usize, Vec<usize>), Vec<usize>> = BTreeMap::new();
    for (to, before) in layers.before.iter().enumerate() {
        let mut from = before.clone();
        from.sort_unstable();
        // Long lines that pass no bends have to pass the lanes between, not a point before the last layer.
        if from.iter().all(|&slot| layer_of[slot] + 1 == layer_of[to]) {
            waiting.entry((layer_of[to], from)).or_default().push(to);
        }
    }
    let bundles = waiting.into_iter().map(|((layer, from), to)| Bundle { layer, from, to });
    bundles.filter(|bundle| bundle.from.len() * bundle.to.len() > bundle.from.len() + bundle.to.len()).collect()
}
