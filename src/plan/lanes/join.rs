//! The lanes of a plan: what the index says of each, and the section that describes it.

use std::ops::Range;

use super::body::Body;
use super::index::Entry;
use super::label::{Field, Label};
use super::names::Names;

/// Everything that the text says of a lane.
#[derive(Debug, Default)]
pub(super) struct LaneText {
    pub(super) id: String,
    pub(super) at: Range<usize>,
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
    /// What stands in its section besides.
    pub(super) notes: Vec<Range<usize>>,
    pub(super) described: bool,
}

impl LaneText {
    /// The values of a field, in the index and in the lane's own section.
    pub(super) fn field(&self, label: Label) -> impl Iterator<Item = Range<usize>> {
        self.fields.iter().filter(move |field| field.label == label).map(|field| field.value.clone())
    }

    fn describe(&mut self, body: Body) {
        self.fields.extend(body.fields);
        self.notes.extend(body.notes);
        self.described = true;
        if self.name.is_empty() {
            self.name = body.name;
        }
    }
}

/// Brings the index and the sections together: the lanes in the order of the index, then those that it leaves out.
pub(super) fn join(index: Vec<Entry>, bodies: Vec<Body>, phase: &str) -> (Vec<LaneText>, Names) {
    let mut names = Names::of_phase(phase);
    let mut lanes = Vec::new();
    for Entry { id, at, name, fields } in index {
        names.add(&id);
        lanes.push(LaneText { id, at, name, fields, ..LaneText::default() });
    }
    let (known, unknown): (Vec<Body>, Vec<Body>) = bodies.into_iter().partition(|body| names.find(&body.id).is_some());
    for body in known {
        let lane = names.find(&body.id).unwrap_or(0);
        lanes[lane].describe(body);
    }
    let mut undescribed: Vec<usize> = (0..lanes.len()).filter(|&lane| !lanes[lane].described).collect();
    for body in unknown {
        let alias = undescribed.iter().position(|&lane| is_alias(&lanes[lane], &body));
        let found = names.find(&body.id).or_else(|| alias.map(|at| undescribed.swap_remove(at)));
        let lane = found.unwrap_or_else(|| {
            names.add(&body.id);
            lanes.push(LaneText { id: body.id.clone(), at: body.at.clone(), ..LaneText::default() });
            lanes.len() - 1
        });
        names.alias(&body.id, lane);
        lanes[lane].describe(body);
    }
    (lanes, names)
}

/// Whether a section without a lane in the index describes a lane of it without a section: the index names its id in
/// the lane's title, or both have the same title.
fn is_alias(lane: &LaneText, body: &Body) -> bool {
    let mentions = || {
        super::names::lane_mentions(&lane.name)
            .iter()
            .any(|mention| lane.name[mention.range.clone()].eq_ignore_ascii_case(&body.id))
    };
    mentions() || (!body.name.is_empty() && lane.name.eq_ignore_ascii_case(&body.name))
}
