//! The small files of a lane that others read and write too: `task.json`, an agent's `status.json`, its result file
//! (SPEC §4 and §6).
//!
//! What an agent wrote, or half wrote, never becomes an error: it becomes
//! a report that names the fault.

use std::path::{Path, PathBuf};

use lanewright_files::FileError;
use lanewright_files::atomic::{exchange_below, rename, replace_below};
use lanewright_files::directory::create_directories;
use lanewright_files::lock::exclusively;
use lanewright_files::regular_file::read_foreign;
use lanewright_model::event::{AgentReport, Decision, GivenContext};
use lanewright_model::text::headline;
use lanewright_model::{Interruption, TaskFile, TaskId, Timestamp};
use serde_json::{Map, Value};

use super::json::to_object;
use super::layout::LaneDirectory;

#[derive(Debug, thiserror::Error)]
pub enum LaneFileError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{} cannot be read: {reason}", .path.display())]
    Unreadable { path: PathBuf, reason: String },
}

/// Reads a `task.json`; `None` where there is none.
pub fn read_task(path: &Path) -> Result<Option<TaskFile>, LaneFileError> {
    let unreadable = |reason| LaneFileError::Unreadable { path: path.to_owned(), reason };
    let Some(text) = read_foreign(path).map_err(unreadable)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| unreadable(error.to_string()))
}

/// Brings a lane's `task.json` up to date, and makes it if there is none.
///
/// Fields of others, and interruptions that hooks added, stay. A file that is no JSON object is set aside as
/// `task.json.bad`: the run log has all that was in it.
///
/// Without waiting for the disk: a resume writes what a power cut takes.
pub fn write_task(lane: &LaneDirectory, task: &TaskFile) -> Result<(), LaneFileError> {
    let new = to_object(task).map_err(|error| not_written(lane.task_file(), error))?;
    edit_task(lane, replace_below, |old| {
        let mut merged = old.unwrap_or_default();
        merge(&mut merged, new);
        Some(merged)
    })
}

/// Adds an interruption to a lane's `task.json` and changes nothing else; without such a file there is nothing to do.
pub fn add_interruption(lane: &LaneDirectory, interruption: &Interruption) -> Result<(), LaneFileError> {
    // A hook waits for it, and a note that a power cut takes is no loss.
    edit_task(lane, exchange_below, |old| {
        let mut task = old?;
        let added = serde_json::to_value([interruption]).ok()?;
        merge(&mut task, Map::from_iter([(INTERRUPTIONS.to_owned(), added)]));
        Some(task)
    })
}

/// Changes the object in `task.json` under its lock and writes it by `replace`; `None` leaves the file alone.
fn edit_task(
    lane: &LaneDirectory,
    replace: impl FnOnce(&Path, &Path, &[u8]) -> Result<(), FileError>,
    edit: impl FnOnce(Option<Map<String, Value>>) -> Option<Map<String, Value>>,
) -> Result<(), LaneFileError> {
    create_directories(&lane.root, &lane.relative)?;
    let path = lane.task_file();
    exclusively(&path.with_extension("json.lock"), |_| {
        // What cannot be read as text is no JSON either.
        let text = read_foreign(&path).unwrap_or_else(Some);
        // A power cut may have emptied it.
        let text = text.filter(|text| !text.is_empty());
        let old = text.as_deref().map(serde_json::from_str::<Map<String, Value>>).transpose();
        if old.is_err() {
            rename(&path, &path.with_extension("json.bad"))?;
        }
        match edit(old.ok().flatten()) {
            Some(new) => {
                let text = serde_json::to_string_pretty(&new).map_err(|error| not_written(path, error))?;
                Ok(replace(&lane.root, &lane.relative.join("task.json"), format!("{text}\n").as_bytes())?)
            }
            None => Ok(()),
        }
    })?
}

const INTERRUPTIONS: &str = "interruptions";

/// Puts `new` into `old`, field by field; lists of interruptions are joined.
fn merge(old: &mut Map<String, Value>, new: Map<String, Value>) {
    for (name, value) in new {
        match (old.get_mut(&name), value) {
            (Some(Value::Object(there)), Value::Object(fields)) => merge(there, fields),
            (Some(Value::Array(there)), Value::Array(more)) if name == INTERRUPTIONS => {
                let unknown: Vec<Value> = more.into_iter().filter(|one| !there.contains(one)).collect();
                there.extend(unknown);
            }
            (_, value) => drop(old.insert(name, value)),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentStatus {
    /// Status and decision in capitals; `fault` where the file or a word in it cannot be understood.
    pub report: AgentReport,
    /// When the agent last said something, if it said when.
    pub updated_at: Option<Timestamp>,
}

/// Reads an agent's `status.json`; `None` where there is none.
pub fn read_status(path: &Path) -> Option<AgentStatus> {
    let object = match read_object(path)? {
        Ok(object) => object,
        Err(fault) => return Some(AgentStatus { report: faulty(fault), updated_at: None }),
    };
    let capitals = |name| text(&object, name).to_ascii_uppercase();
    let (status, decision) = (capitals("status"), capitals("decision"));
    let number = number_of_candidate(&decision);
    let fault = check_word("status", &status, &STATUS_WORDS).or_else(|| {
        let needs_no_word = decision.is_empty() || number.is_some();
        let fault = check_word("decision", &decision, &DECISION_WORDS).filter(|_| !needs_no_word);
        fault.map(|fault| format!("{fault}, nor the number of a candidate"))
    });
    let decision = number.unwrap_or(decision);
    let report = AgentReport {
        fault: fault.unwrap_or_default(),
        message: reason(&object, ["error_message", "blocked_by"], &status, &STATUS_KEYS),
        feedback: text(&object, "feedback"),
        decisions: decisions(&object),
        blockers: texts(&object, "blockers"),
        status,
        decision,
        own: false,
    };
    let updated_at = object.get("updated_at").and_then(|value| serde_json::from_value(value.clone()).ok());
    Some(AgentStatus { report, updated_at })
}

/// The number in `2`, `#2` or `CANDIDATE 2`, as judges write it.
fn number_of_candidate(decision: &str) -> Option<String> {
    let number = decision.strip_prefix("CANDIDATE").unwrap_or(decision).trim_start();
    number.strip_prefix('#').unwrap_or(number).parse::<u32>().ok().map(|number| number.to_string())
}

/// Reads an agent's result file as a report, `success` as `COMPLETE` and so on; `None` where there is none.
pub fn read_result(path: &Path) -> Option<AgentReport> {
    let object = match read_object(path)? {
        Ok(object) => object,
        Err(fault) => return Some(faulty(fault)),
    };
    let word = text(&object, "status").to_ascii_lowercase();
    let status = RESULT_WORDS.iter().position(|known| *known == word).map(|index| RESULT_MEANINGS[index]);
    Some(AgentReport {
        status: status.map_or_else(|| word.clone(), str::to_owned),
        message: reason(&object, ["error", "blocking_reason"], status.unwrap_or_default(), &RESULT_KEYS),
        fault: check_word("status", &word, &RESULT_WORDS).unwrap_or_default(),
        decisions: decisions(&object),
        blockers: texts(&object, "blockers"),
        ..AgentReport::default()
    })
}

/// Reads what is given along with a snapshot: `decisions`, `blockers` and `next_task`, each in the forms that agents may
/// write.
///
/// # Errors
/// It is not an object, has another key, or more or longer texts than are kept.
pub fn read_context(value: &Value) -> Result<GivenContext, String> {
    let object = value.as_object().ok_or("is not a JSON object")?;
    if let Some(unknown) = object.keys().find(|key| !CONTEXT_KEYS.contains(&key.as_str())) {
        return Err(format!("has the unknown key `{unknown}`; it may have {}", CONTEXT_KEYS.join(", ")));
    }
    for name in ["decisions", "blockers"] {
        let items = items(object, name);
        if items.len() > MOST_KEPT {
            return Err(format!("has {} {name}, and at most {MOST_KEPT} are kept", items.len()));
        }
        let texts =
            items.iter().flat_map(|item| item.as_object().map_or_else(|| vec![item], |it| it.values().collect()));
        if texts.into_iter().any(|text| as_text(text).chars().count() > LONGEST_KEPT) {
            return Err(format!("has text in `{name}` that is longer than {LONGEST_KEPT} characters"));
        }
    }
    items(object, "decisions").iter().try_for_each(check_decision)?;
    if items(object, "blockers").iter().any(|blocker| !blocker.is_string() || short_line(blocker).is_empty()) {
        return Err("has one of the `blockers` that is not a text".to_owned());
    }
    let next = text(object, "next_task");
    let next_task = (!next.is_empty()).then(|| TaskId::new(&next)).transpose();
    let next_task = next_task.map_err(|error| format!("has a `next_task` that is not a task: {error}"))?;
    Ok(GivenContext { decisions: decisions(object), blockers: texts(object, "blockers"), next_task })
}

/// Refuses a decision of which a part would not be kept.
fn check_decision(decision: &Value) -> Result<(), String> {
    let keys = DECISION_KEYS.concat();
    let unknown = decision.as_object().and_then(|object| object.keys().find(|key| !keys.contains(&key.as_str())));
    if let Some(unknown) = unknown {
        return Err(format!("has a decision with the unknown key `{unknown}`; it may have {}", keys.join(", ")));
    }
    let is_scalar = |value: &Value| !value.is_object() && !value.is_array() && !value.is_null();
    let [texts, reasons] = DECISION_KEYS;
    let has_text = match decision {
        Value::Object(object) => {
            let said = |names: &[&str]| names.iter().filter(|name| object.contains_key(**name)).count();
            object.values().all(is_scalar) && said(&texts) == 1 && said(&reasons) < 2
        }
        other => is_scalar(other),
    };
    if !has_text || decision_of(decision).text.is_empty() {
        return Err(
            "has one of the `decisions` that is neither a text nor {\"decision\": TEXT, \"reason\": TEXT}".to_owned()
        );
    }
    Ok(())
}

/// The fields of a decision: what, and why, each under two names.
const DECISION_KEYS: [[&str; 2]; 2] = [["decision", "text"], ["reason", "why"]];

/// The fields of what is given along with a snapshot.
const CONTEXT_KEYS: [&str; 3] = ["decisions", "blockers", "next_task"];

/// The fields of `status.json` (SPEC §4).
const STATUS_KEYS: [&str; 13] = [
    "agent",
    "task",
    "status",
    "decision",
    "round",
    "retry_count",
    "error_message",
    "work_remaining",
    "blocked_by",
    "feedback",
    "decisions",
    "blockers",
    "updated_at",
];
/// The fields of a result file (seed 003).
const RESULT_KEYS: [&str; 7] =
    ["status", "error", "blocking_reason", "files_modified", "logs", "decisions", "blockers"];
const STATUS_WORDS: [&str; 5] = ["WORKING", "IN_PROGRESS", "COMPLETE", "ERROR", "BLOCKED"];
const DECISION_WORDS: [&str; 3] = ["APPROVED", "REJECTED", "PENDING"];
const RESULT_WORDS: [&str; 3] = ["success", "failed", "blocked"];
const RESULT_MEANINGS: [&str; 3] = ["COMPLETE", "ERROR", "BLOCKED"];

/// The object in a file of an agent's, or what is wrong with it; `None` without a file.
fn read_object(path: &Path) -> Option<Result<Map<String, Value>, String>> {
    let at = |reason: String| format!("{}: {reason}", path.display());
    let text = match read_foreign(path) {
        Ok(text) => text?,
        Err(reason) => return Some(Err(at(reason))),
    };
    Some(serde_json::from_str(&text).map_err(|error| match error.classify() {
        serde_json::error::Category::Eof => at(format!("it is empty or half written: {error}")),
        serde_json::error::Category::Data => at("it holds no JSON object".to_owned()),
        _ => at(format!("it is no JSON: {error}")),
    }))
}

fn faulty(fault: String) -> AgentReport {
    AgentReport { fault, ..AgentReport::default() }
}

fn check_word(field: &str, word: &str, known: &[&str]) -> Option<String> {
    match word {
        _ if known.contains(&word) => None,
        "" => Some(format!("it has no {field}")),
        _ => Some(format!("its {field} `{word}` is none of {}", known.join(", "))),
    }
}

/// A field as text, whatever its type: agents write lists and numbers where a sentence is meant.
fn text(object: &Map<String, Value>, name: &str) -> String {
    object.get(name).map(as_text).unwrap_or_default()
}

fn as_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.trim().to_owned(),
        Value::Array(items) => items.iter().map(as_text).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}

/// How many decisions and blockers of a report are kept: the first ones.
const MOST_KEPT: usize = 20;

/// How many characters of each are kept.
const LONGEST_KEPT: usize = 500;

/// The text on one line, without control characters, and cut.
fn short_line(value: &Value) -> String {
    let line = as_text(value).split_whitespace().collect::<Vec<_>>().join(" ");
    headline(&line.chars().filter(|character| !character.is_control()).collect::<String>(), LONGEST_KEPT)
}

/// The items of a list; one value is a list of one.
fn items<'o>(object: &'o Map<String, Value>, name: &str) -> &'o [Value] {
    match object.get(name) {
        Some(Value::Array(items)) => items.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    }
}

fn texts(object: &Map<String, Value>, name: &str) -> Vec<String> {
    items(object, name).iter().map(short_line).filter(|text| !text.is_empty()).take(MOST_KEPT).collect()
}

/// Decisions with their reasons, or texts alone.
fn decisions(object: &Map<String, Value>) -> Vec<Decision> {
    let decisions = items(object, "decisions").iter().map(decision_of);
    decisions.filter(|decision| !decision.text.is_empty()).take(MOST_KEPT).collect()
}

fn decision_of(item: &Value) -> Decision {
    let Value::Object(object) = item else { return Decision { text: short_line(item), reason: String::new() } };
    let [text, reason] = DECISION_KEYS.map(|names| {
        let named = names.iter().filter_map(|name| object.get(*name));
        named.map(short_line).find(|text| !text.is_empty()).unwrap_or_default()
    });
    Decision { text, reason }
}

/// Why the work failed or is blocked: under its own names, else under one that means the same. Where there is neither,
/// unknown keys are named, because one of them may hold the reason.
fn reason(object: &Map<String, Value>, own: [&str; 2], status: &str, known: &[&str]) -> String {
    let wants_reason = matches!(status, "ERROR" | "BLOCKED");
    let others: &[&str] = if wants_reason { &SYNONYMS } else { &[] };
    let found = own.iter().chain(others).map(|name| text(object, name)).find(|text| !text.is_empty());
    let unknown = object.keys().map(String::as_str).filter(|key| wants_reason && !known.contains(key));
    let unknown: Vec<&str> = unknown.collect();
    found.unwrap_or_else(|| match unknown.as_slice() {
        [] => String::new(),
        unknown => format!("no reason under `{}`, but unknown keys: {}", own.join("` or `"), unknown.join(", ")),
    })
}

/// Keys under which agents give the reason, besides those of the format.
const SYNONYMS: [&str; 8] =
    ["reason", "message", "error", "error_message", "blocked_by", "blocking_reason", "blocked_reason", "details"];

fn not_written(path: PathBuf, error: serde_json::Error) -> FileError {
    FileError::Io { action: "write", path, source: error.into() }
}

#[cfg(test)]
mod tests;
