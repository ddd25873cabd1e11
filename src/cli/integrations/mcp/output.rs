//! What the tools answer, as the protocol's `outputSchema`. Pure.
//!
//! No field is required: a client may hold an error, which is structured content as well, against the same schema.

use std::sync::Arc;

use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};

/// Fields of an answer: the name, the JSON types, what it is.
type Fields = &'static [(&'static str, &'static [&'static str], &'static str)];

const STRING: &[&str] = &["string"];
const OPTIONAL: &[&str] = &["string", "null"];
const BOOLEAN: &[&str] = &["boolean"];
const INTEGER: &[&str] = &["integer", "null"];
const LIST: &[&str] = &["array"];
const OBJECT: &[&str] = &["object", "null"];
const ANY: &[&str] = &[];

/// Those of an error.
const ERROR: Fields = &[
    ("code", STRING, "of an error: USAGE, HELD, …"),
    ("exitCode", INTEGER, "of an error: the exit code of the command"),
    ("message", STRING, "why it was refused, or what it printed"),
    ("hints", LIST, "of an error: what to do"),
];

/// Those of an answer about a run.
const RUN: Fields = &[("run_id", OPTIONAL, "the run"), ("lane", ANY, "the lane, if one is meant")];

/// Those of a run that was started or resumed.
const STARTED: Fields = &[
    ("begun", BOOLEAN, "whether the run log has the beginning; the run works in the background"),
    ("resume", INTEGER, "which resume of the run it is"),
    ("output", STRING, "the file that the run prints to"),
    ("next", LIST, "the tools to look at it with"),
];

const ANSWERED: Fields = &[
    ("approved", BOOLEAN, "what was answered"),
    ("gate", STRING, "the gate that was answered"),
    ("live", BOOLEAN, "whether a process that works on the run got the answer"),
];

const STATUS: Fields = &[
    ("phase", STRING, "the phase"),
    ("outcome", OPTIONAL, "how the run ended; null while it is active or after it was interrupted"),
    ("held", BOOLEAN, "whether a live process works on it"),
    ("lanes", LIST, "each lane with its state, its attempts and what it waits for"),
    ("next_steps", LIST, "what the user can do, with the commands"),
    ("escalations", LIST, "what the user has to decide"),
];

const LOGS: Fields =
    &[("lines", LIST, "the last lines, each with its job"), ("omitted", INTEGER, "how many came before")];

const DIFF: Fields = &[
    ("agent", OPTIONAL, "the agent, if one is meant"),
    ("diff", OBJECT, "`files`, and `patch` unless `stat` was asked for"),
];

const ROLLBACK: Fields = &[
    ("lanes", LIST, "the lanes, each with the refs that keep its work"),
    ("resume_hint", OPTIONAL, "the command that continues the run"),
];

const CHECKPOINTS: Fields = &[
    ("checkpoints", LIST, "the stages that lanes reached"),
    ("snapshots", LIST, "saved worktrees, with the names that restore them"),
];

const CREATED: Fields = &[
    ("name", STRING, "the name that restores it"),
    ("reference", STRING, "the ref that keeps it"),
    ("commit", STRING, "its commit"),
];

const DOCTOR: Fields = &[
    ("clean", BOOLEAN, "whether nothing has to be done"),
    ("findings", LIST, "what is wrong, each with `kind`, `evidence` and `remedy`"),
    ("credentials", OBJECT, "with what agents could push"),
    ("sandbox", OBJECT, "which sandbox can be built; null: none is wanted"),
];

const TOLD: Fields = &[
    ("live", BOOLEAN, "whether a process works on the run"),
    ("now", LIST, "the agents at work that get it at their next tool call"),
    ("later", LIST, "those that get it with their next attempt"),
    (
        "elsewhere",
        BOOLEAN,
        "whether a job on a cluster has the lane: its agents get it only if the lane is offered again",
    ),
];

const PICKED: Fields = &[
    ("candidate", INTEGER, "the number of the candidate"),
    ("agent", STRING, "its name among the lane's agents"),
    ("live", BOOLEAN, "whether a process works on the run; if not, ResumeTask acts upon the pick"),
];

const GATE: Fields = &[
    ("gate", STRING, "the gate"),
    ("passed", BOOLEAN, "whether it passed"),
    ("exit_code", INTEGER, "of the last command"),
    ("command", STRING, "the last command"),
    ("output", STRING, "the end of what it printed"),
    ("diagnosis", OBJECT, "its findings, with files and lines"),
];

/// The schema of what the tool called `name` answers.
pub(super) fn output(name: &str) -> Arc<JsonObject> {
    let own: &[Fields] = match name {
        "ExecutePhase" | "ResumeTask" | "Retry" => &[RUN, STARTED],
        "Approve" | "Reject" => &[RUN, STARTED, ANSWERED],
        "Tell" => &[RUN, TOLD],
        "Pick" => &[RUN, PICKED],
        "RunStatus" => &[RUN, STATUS],
        "ReadLogs" => &[RUN, LOGS],
        "ReadDiff" => &[RUN, DIFF],
        "Rollback" | "RollbackLane" => &[RUN, ROLLBACK],
        "ListCheckpoints" => &[RUN, CHECKPOINTS],
        "CreateCheckpoint" => &[RUN, CREATED],
        "Doctor" => &[DOCTOR],
        "Gate" => &[RUN, GATE],
        _ => &[],
    };
    let field = |(name, types, about): &(&str, &[&str], &str)| {
        let mut schema = json!({"description": about});
        match types {
            [] => {}
            [only] => schema["type"] = json!(only),
            several => schema["type"] = json!(several),
        }
        ((*name).to_owned(), schema)
    };
    let properties: Map<String, Value> =
        own.iter().chain([&ERROR]).flat_map(|fields| fields.iter()).map(field).collect();
    Arc::new(Map::from_iter([("type".to_owned(), json!("object")), ("properties".to_owned(), properties.into())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_admits_answers_and_errors() {
        for name in ["ExecutePhase", "Approve", "RunStatus", "Doctor", "Gate"] {
            let schema = output(name);
            assert_eq!(schema["type"], "object");
            assert!(
                schema["properties"]["hints"].is_object()
                    && schema["properties"].as_object().unwrap().len() > ERROR.len()
            );
            assert!(!schema.contains_key("required"));
        }
    }
}
