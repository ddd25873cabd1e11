//! Lanes that share files without an order between them, and how many run side by side for it.

use std::collections::BTreeSet;
use std::fmt;

use lanewright_model::plan::SharedFiles;
use lanewright_model::text::counted;
use lanewright_model::{LaneId, LaneIndex, Plan};
use serde::Serialize;

use super::source_text::Span;

/// What becomes of two lanes that share files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Treatment {
    /// They run side by side; what both changed is merged.
    Merged,
    /// They run one after the other, as asked.
    Excluded,
    /// They run one after the other: not both have tests that judge what is merged.
    Untested,
    /// They run one after the other: one creates this file, and the other has it too.
    Created(String),
}

impl Treatment {
    pub fn is_apart(&self) -> bool {
        *self != Self::Merged
    }

    /// Why they are kept apart, where that is not simply asked for.
    pub(super) fn reason(&self) -> Option<String> {
        match self {
            Self::Merged | Self::Excluded => None,
            Self::Untested => Some("no `tests` judge what is merged of them".to_owned()),
            Self::Created(file) => Some(format!("one of them creates `{file}`")),
        }
    }
}

/// Two lanes without an order that share files, the one that comes first first.
pub(crate) struct Pair {
    pub(crate) lanes: (LaneIndex, LaneIndex),
    /// What they share, as messages say it: `own …`.
    pub(crate) files: String,
    pub(crate) place: Span,
    pub(crate) treatment: Treatment,
    /// Whether they could run at the same time if they shared nothing.
    pub(crate) meets: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SharedPair {
    /// In the order in which they run where they are kept apart.
    pub lanes: (LaneId, LaneId),
    /// What they share: `own `a.rs``.
    pub files: String,
    pub treatment: Treatment,
}

/// The lanes that share files, and how many lanes run side by side.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sharing {
    /// The rule that holds; absent: lanes that may meet share nothing.
    pub rule: Option<SharedFiles>,
    pub pairs: Vec<SharedPair>,
    /// How many lanes run side by side at most, where all take the same time.
    pub side_by_side: usize,
    /// The same if no lanes were kept apart for their files.
    pub by_order: usize,
    /// The same with each rule.
    pub with_merge: usize,
    pub with_exclude: usize,
}

/// `2 lanes at most; 3 by their order alone, 3 with --shared-files merge`
impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at most", counted(self.side_by_side, "lane"))?;
        let others = [
            (self.by_order, "by their order alone"),
            (self.with_merge, "with --shared-files merge"),
            (self.with_exclude, "with --shared-files exclude"),
        ];
        let mut between = "; ";
        for (number, what) in others.into_iter().filter(|(number, _)| *number != self.side_by_side) {
            write!(f, "{between}{number} {what}")?;
            between = ", ";
        }
        Ok(())
    }
}

impl Sharing {
    pub(super) fn new(plan: &Plan, rule: Option<SharedFiles>, pairs: Vec<Pair>) -> Self {
        let known = |lanes: (LaneIndex, LaneIndex)| (lanes.0.min(lanes.1), lanes.0.max(lanes.1));
        let met: BTreeSet<_> = pairs.iter().filter(|pair| pair.meets).map(|pair| known(pair.lanes)).collect();
        // A plan keeps those apart for other reasons that do not meet.
        let others: BTreeSet<_> = plan.exclusions.iter().copied().filter(|pair| !met.contains(pair)).collect();
        let with = |is_apart: &dyn Fn(&Pair) -> bool| {
            let apart = pairs.iter().filter(|pair| pair.meets && is_apart(pair)).map(|pair| known(pair.lanes));
            side_by_side(plan, &others.iter().copied().chain(apart).collect())
        };
        let with_merge = with(&|pair| matches!(pair.treatment, Treatment::Created(_)));
        let (now, by_order, with_exclude) =
            (with(&|pair| pair.treatment.is_apart()), with(&|_| false), with(&|_| true));
        let shared = |pair: Pair| SharedPair {
            lanes: (plan.lane(pair.lanes.0).id.clone(), plan.lane(pair.lanes.1).id.clone()),
            files: pair.files,
            treatment: pair.treatment,
        };
        let pairs = pairs.into_iter().filter(|pair| pair.meets).map(shared).collect();
        Self { rule, pairs, side_by_side: now, by_order, with_merge, with_exclude }
    }
}

/// How many lanes run side by side at most where each takes the same time and starts as soon as it may.
fn side_by_side(plan: &Plan, apart: &BTreeSet<(LaneIndex, LaneIndex)>) -> usize {
    let count = plan.lanes.len();
    let mut kept_apart: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (one, other) in apart {
        kept_apart[one.at()].push(other.at());
        kept_apart[other.at()].push(one.at());
    }
    let mut missing: Vec<usize> = plan.indices().map(|lane| plan.dag().dependencies(lane).len()).collect();
    let mut dependants: Vec<Vec<usize>> = vec![Vec::new(); count];
    for lane in plan.indices() {
        plan.dag().dependencies(lane).iter().for_each(|on| dependants[on.at()].push(lane.at()));
    }
    let mut ready: BTreeSet<usize> = (0..count).filter(|&lane| missing[lane] == 0).collect();
    let mut most = 0;
    while !ready.is_empty() {
        let mut running: BTreeSet<usize> = BTreeSet::new();
        for &lane in &ready {
            if !kept_apart[lane].iter().any(|other| running.contains(other)) {
                running.insert(lane);
            }
        }
        most = most.max(running.len());
        for lane in running {
            ready.remove(&lane);
            for &next in &dependants[lane] {
                missing[next] -= 1;
                if missing[next] == 0 {
                    ready.insert(next);
                }
            }
        }
    }
    most
}
