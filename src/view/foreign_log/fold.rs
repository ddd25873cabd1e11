//! Where a run of another writer stands: what each of its lanes said last.

use serde::Serialize;

use super::{ForeignDamage, ForeignLog, ForeignRecord, Standing};
use crate::model::Timestamp;

/// A log of another writer, as it is listed and shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForeignRun {
    /// The run that most of its records name, else what its file is called.
    pub run_id: String,
    /// The phase that most of its records name.
    pub phase: Option<String>,
    /// Its file, as it was found.
    pub path: String,
    /// When the first record was written.
    pub first: Option<Timestamp>,
    /// When the last one was.
    pub last: Option<Timestamp>,
    /// What the phase itself said last.
    pub phase_said: Option<ForeignLane>,
    /// Its lanes, in the order in which they first said something.
    pub lanes: Vec<ForeignLane>,
    /// Every record.
    pub records: Vec<ForeignRecord>,
    /// What could not be read.
    pub damaged: Vec<ForeignDamage>,
}

/// What a lane said last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForeignLane {
    /// The lane; `-`: the phase.
    pub lane: String,
    /// How many records are about it.
    pub records: usize,
    /// When it said its last word.
    pub last: Option<Timestamp>,
    /// The event.
    pub event: String,
    /// How that went, in its writer's word.
    pub status: Option<String>,
    /// What that word means.
    pub standing: Standing,
    /// The last message.
    pub notes: Option<String>,
}

impl ForeignRun {
    /// What `log` tells; it was read from `path`, whose name without its ending is `stem`.
    pub fn new(log: ForeignLog, path: &str, stem: &str) -> Self {
        let ForeignLog { records, damage } = log;
        let times = || records.iter().filter_map(|record| record.ts);
        Self {
            run_id: most_named(records.iter().map(|record| &record.run_id)).unwrap_or_else(|| stem.to_owned()),
            phase: most_named(records.iter().map(|record| &record.phase)),
            path: path.to_owned(),
            first: times().min(),
            last: times().max(),
            phase_said: said_last(&records, None),
            lanes: lanes(&records).into_iter().filter_map(|lane| said_last(&records, Some(lane))).collect(),
            damaged: damage,
            records,
        }
    }

    /// How many lines could not be read.
    pub fn damaged_lines(&self) -> usize {
        self.damaged.iter().map(|damage| damage.lines).sum()
    }
}

/// Lanes of which a log of any length is told.
const MOST_LANES: usize = 500;

fn lanes(records: &[ForeignRecord]) -> Vec<&str> {
    let mut known = std::collections::HashSet::new();
    let named = records.iter().filter_map(|record| record.lane.as_deref());
    named.filter(|lane| known.insert(*lane)).take(MOST_LANES).collect()
}

fn said_last(records: &[ForeignRecord], lane: Option<&str>) -> Option<ForeignLane> {
    let about = || records.iter().filter(|record| record.lane.as_deref() == lane);
    let last = about().next_back()?;
    Some(ForeignLane {
        lane: lane.unwrap_or("-").to_owned(),
        records: about().count(),
        last: last.ts,
        event: last.event.clone(),
        status: last.status.clone(),
        standing: last.standing,
        notes: last.notes.clone(),
    })
}

/// The name that stands most often; of several the one that came first.
fn most_named<'r>(names: impl Iterator<Item = &'r Option<String>>) -> Option<String> {
    let mut counts: std::collections::HashMap<&str, (usize, usize)> = std::collections::HashMap::new();
    for (at, name) in names.enumerate() {
        if let Some(name) = name {
            counts.entry(name).or_insert((0, at)).0 += 1;
        }
    }
    let most = counts.into_iter().max_by_key(|(_, (count, first))| (*count, std::cmp::Reverse(*first)));
    most.map(|(name, _)| name.to_owned())
}
