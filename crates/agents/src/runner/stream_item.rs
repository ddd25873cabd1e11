//! What a line of an agent's stream says, and how it is shown.

use lanewright_model::Refusal;
use lanewright_model::snapshot_rules::ToolCall;
use lanewright_model::text::headline;
use serde_json::Value;

/// How much of a tool call's input is shown, in characters.
const SHOWN_INPUT: usize = 120;

/// One thing that a line of the stream says.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamItem {
    /// The agent's own words.
    Message(String),
    /// A tool call of the agent.
    Call(ToolCall),
    /// A tool call that was not allowed.
    Refused(Refusal),
    /// A tool call that failed.
    Failed { call: String, reason: String },
    /// Trouble that the program deals with itself.
    Warning(String),
    /// A failure that the program reports.
    Error(String),
    /// A line that no rule reads as an event: what the program prints besides.
    Line(String),
}

impl StreamItem {
    /// Whether the program itself says it, and not the agent in it.
    pub fn is_from_program(&self) -> bool {
        matches!(self, Self::Warning(_) | Self::Error(_) | Self::Line(_))
    }

    /// What is shown of it, without line breaks.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Message(text) => text.lines().map(str::to_owned).collect(),
            Self::Call(call) => vec![shown_call(call)],
            Self::Refused(refusal) => vec![format!("refused: {refusal}")],
            Self::Failed { call, reason } if call.is_empty() => vec![format!("failed: {reason}")],
            Self::Failed { call, reason } => vec![format!("failed: {call}: {reason}")],
            Self::Warning(text) => text.lines().map(|line| format!("warning: {line}")).collect(),
            Self::Error(text) => text.lines().map(|line| format!("error: {line}")).collect(),
            Self::Line(line) => vec![line.clone()],
        }
    }
}

/// `[Write] src/a.rs`
pub(super) fn shown_call(call: &ToolCall) -> String {
    format!("[{}] {}", call.tool, shown_input(&call.input)).trim_end().to_owned()
}

/// The one text in it, or all of it as JSON, in one line.
fn shown_input(input: &Value) -> String {
    let text = match input {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let named = ["command", "file_path", "filePath", "path", "pattern", "query", "url"];
            let value = named.iter().find_map(|name| fields.get(*name)).and_then(Value::as_str);
            value.map_or_else(|| input.to_string(), str::to_owned)
        }
        Value::Array(changes) if changes.iter().any(|change| change.get("path").is_some()) => {
            let paths = changes.iter().filter_map(|change| change.get("path").and_then(Value::as_str));
            paths.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    headline(&text, SHOWN_INPUT)
}
