//! What the runs of a repository do, what stops them and what to type, from `checkpoints.json` alone:
//! `cargo run -p lanewright-model --example run_states -- FILE`.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a program, which reads and prints")]

use std::collections::BTreeMap;

use lanewright_model::{CheckpointRecord, CheckpointStatus, LaneId, RunId};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| ".claude/ai-dev-kit/run-logs/checkpoints.json".to_owned());
    let text = std::fs::read_to_string(path)?;
    for (run, subjects) in states(&text)? {
        for (lane, record) in subjects {
            println!("{}", line(&run, lane.as_ref(), &record));
        }
    }
    Ok(())
}

/// The records that say where things stand.
pub type States = BTreeMap<RunId, BTreeMap<Option<LaneId>, CheckpointRecord>>;

/// Where each lane and each phase stands, which its newest record says; `None` is the phase. What others wrote into the file is left out.
///
/// # Errors
/// The text is no JSON array.
pub fn states(text: &str) -> Result<States, serde_json::Error> {
    let mut states = States::new();
    for element in serde_json::from_str::<Vec<serde_json::Value>>(text)? {
        let Ok(record) = serde_json::from_value::<CheckpointRecord>(element) else { continue };
        let newest = states.entry(record.run_id.clone()).or_default().entry(record.lane.clone());
        let newest = newest.or_insert_with(|| record.clone());
        if newest.timestamp < record.timestamp {
            *newest = record;
        }
    }
    Ok(states)
}

/// `r1 SL-1: blocked at pre_pr: waits for approval …`, and what to type where a person has to.
pub fn line(run: &RunId, lane: Option<&LaneId>, record: &CheckpointRecord) -> String {
    let CheckpointRecord { stage, status, notes, resume_hint, .. } = record;
    let lane = lane.map_or("phase", LaneId::as_str);
    let hint = match status {
        CheckpointStatus::Failed | CheckpointStatus::Blocked | CheckpointStatus::Ready => {
            format!("\n    to go on: {resume_hint}")
        }
        _ => String::new(),
    };
    format!("{run} {lane}: {status} at {stage}: {notes}{hint}")
}
