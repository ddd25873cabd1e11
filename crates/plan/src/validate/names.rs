//! Names: valid, unique, and known where they are referred to.

use std::collections::{HashMap, HashSet};

use lanewright_model::id::InvalidId;
use lanewright_model::{LaneId, LaneIndex};

use crate::draft::LaneDraft;
use crate::faults::{Faults, nearest, quoted};
use crate::source_text::At;

/// The lanes' ids, each with its span.
pub(super) struct LaneIds<'a> {
    /// `None`: the id is missing or at fault.
    pub(super) known: Vec<Option<LaneId>>,
    /// By what the plan writes, valid or not, so that a bad id is reported once.
    pub(super) at: HashMap<&'a str, LaneIndex>,
}

pub(super) fn lane_ids<'a>(lanes: &'a [LaneDraft], faults: &Faults<'_>) -> LaneIds<'a> {
    let mut at = HashMap::new();
    for (index, lane) in LaneIndex::first(lanes.len()).zip(lanes) {
        if let Some(id) = &lane.id {
            at.entry(id.value.as_str()).or_insert(index);
        }
    }
    unique(lanes.iter().filter_map(|lane| lane.id.as_ref()), "a lane", true, faults);
    let known = lanes.iter().map(|lane| id(lane.id.as_ref()?, LaneId::new, "a lane", faults));
    LaneIds { known: known.collect(), at }
}

/// The id that `written` is; one that is none is a fault.
pub(super) fn id<T>(
    written: &At<String>,
    make: fn(&str) -> Result<T, InvalidId>,
    what: &str,
    faults: &Faults<'_>,
) -> Option<T> {
    match make(&written.value) {
        Ok(id) => Some(id),
        Err(error) => {
            let message = format!("{} cannot name {what}: {error}", quoted(&written.value));
            faults.error_with(written.span, message, "an id becomes part of paths and branch names");
            None
        }
    }
}

/// Notes names that stand twice, and with `as_files` those that differ by case only.
pub(super) fn unique<'a>(names: impl Iterator<Item = &'a At<String>>, what: &str, as_files: bool, faults: &Faults<'_>) {
    let mut seen = HashSet::new();
    let mut as_written: HashMap<String, &str> = HashMap::new();
    for name in names {
        if !seen.insert(&name.value) {
            let message = format!("there is already {what} {}", quoted(&name.value));
            faults.error_with(name.span, message, "names must be unique");
            continue;
        }
        let before = as_written.insert(name.value.to_lowercase(), &name.value);
        if let Some(before) = before.filter(|_| as_files) {
            let message = format!("{} and {} differ by case only", quoted(before), quoted(&name.value));
            faults.warning(name.span, message, "they share a directory on file systems that ignore case");
        }
    }
}

pub(super) fn unknown<'k>(
    name: &At<String>,
    message: &str,
    known: impl IntoIterator<Item = &'k str>,
    faults: &Faults<'_>,
) {
    // Every comparison takes time, and two hundred suggestions are useless.
    let near = if faults.full() { None } else { nearest(&name.value, known) };
    match near {
        Some(near) => faults.error_with(name.span, message, format!("did you mean `{near}`?")),
        None => faults.error(name.span, message),
    }
}
