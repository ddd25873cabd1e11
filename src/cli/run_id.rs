//! Names of new runs.

use super::now;
use crate::model::RunId;
use crate::model::text::headline;

/// `P1-20260131-120000-1a2b`: the phase, the time, and digits that no other run has.
pub(super) fn new_run_id(phase: &str) -> RunId {
    let moment = now().0.format("%Y%m%d-%H%M%S");
    let unique = uuid::Uuid::now_v7().simple().to_string();
    let phase: String = phase.chars().take(40).collect();
    let phase = phase.trim_end_matches(['.', '-']);
    let id = format!("{phase}-{moment}-{}", &unique[unique.len() - 4..]);
    RunId::new(&id).unwrap_or_else(|_| {
        RunId::new(&format!("run-{}", headline(&unique, 40))).expect("hexadecimal digits make an id")
    })
}
