//! The JSON Schemas in `docs/schemas` and the tables of `docs/run-log.md` are made of the types and their comments.

mod document;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};

use lanewright_model::CheckpointRecord;
use lanewright_model::event::{Columns, Event, LogColumns};
use lanewright_view::graph::GraphJson;
use lanewright_view::report::RunReport;
use lanewright_view::status::run_list::RunList;
use lanewright_view::status::{LaneDetails, RunStatus};
use schemars::JsonSchema;
use serde_json::Value;

use super::super::error::{ErrorLine, WarningLine};
use document::schema_of;

/// One line of `<run-id>.jsonl`, format 1.0 (`docs/run-log.md`).
#[derive(JsonSchema)]
#[allow(dead_code, reason = "lines are made of a record")]
struct LogLine {
    #[schemars(flatten)]
    columns: LogColumns<'static>,
    #[schemars(flatten)]
    event: Event,
    /// The CRC-32 of every byte of the line before `,"crc":`.
    #[schemars(regex(pattern = "^[0-9a-f]{8}$"))]
    crc: String,
}

/// One line of `--progress json`: columns of the run log, and the event's own fields (`docs/run-log.md`).
#[derive(JsonSchema)]
#[allow(dead_code, reason = "lines are made of a record")]
struct ProgressLine {
    #[schemars(flatten)]
    columns: Columns<'static>,
    #[schemars(flatten)]
    event: Event,
}

/// What is written to standard error with `--format json`.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[allow(dead_code, reason = "only its form is of interest")]
enum ErrorOutput {
    Error(ErrorLine<'static>),
    Warning(WarningLine<'static>),
}

fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("run-log", schema_of::<LogLine>("A line of Lanewright's run log")),
        ("progress", schema_of::<ProgressLine>("A line of Lanewright's progress")),
        ("report", schema_of::<RunReport<'_>>("Lanewright execution report")),
        ("status", schema_of::<RunStatus<'_>>("Lanewright status")),
        ("lane-status", schema_of::<LaneDetails<'_>>("Lanewright status of a lane")),
        ("list", schema_of::<RunList>("Lanewright runs")),
        ("graph", schema_of::<GraphJson<'_>>("Lanewright graph")),
        ("error", schema_of::<ErrorOutput>("An error of Lanewright's")),
        ("checkpoint", schema_of::<CheckpointRecord>("A checkpoint record of Lanewright's")),
    ]
}

/// What is generated, by the file's path.
fn generated() -> Vec<(PathBuf, String)> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let schemas = schemas();
    let run_log = docs.join("run-log.md");
    let text = tables::filled(&fs::read_to_string(&run_log).unwrap(), &schemas[0].1);
    let file = |(name, schema)| (docs.join(format!("schemas/{name}.schema.json")), format!("{schema:#}\n"));
    schemas.into_iter().map(file).chain([(run_log, text)]).collect()
}

/// `UPDATE_EXPECTED=1` writes them.
#[test]
fn schemas_and_tables_of_the_docs_match_the_types() {
    let mut outdated = Vec::new();
    for (path, text) in generated() {
        if fs::read_to_string(&path).is_ok_and(|found| found == text) {
            continue;
        }
        if std::env::var("UPDATE_EXPECTED").is_ok_and(|wish| wish == "1") {
            fs::write(&path, text).unwrap();
        } else {
            outdated.push(path.display().to_string());
        }
    }
    let hint = "to write them: UPDATE_EXPECTED=1 cargo test -p lanewright --lib schemas";
    assert!(outdated.is_empty(), "differ from the types: {}\n{hint}", outdated.join(", "));
}
