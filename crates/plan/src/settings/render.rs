//! Settings as a table for people and for programs.

use lanewright_model::ExecutorSettings;
use lanewright_model::runner::RunnerText;
use serde_json::{Map, Value, json};

use super::{Key, Origin, Setting, Settings};

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The setting's name, `runners.NAME` for a runner, `executors.NAME` for an executor.
    pub key: String,
    /// Its value; null where there is none.
    pub value: Value,
    /// What holds where nothing is set, in words.
    pub default: &'static str,
    pub origin: Origin,
}

impl Row {
    pub(super) fn new(key: &Key, value: Value, origin: &Origin) -> Self {
        Self { key: key.name.to_owned(), value, default: key.default, origin: origin.clone() }
    }

    /// A runner's command where nothing else is said of it, else all that is said.
    pub(super) fn runner(name: &str, text: &Setting<RunnerText>) -> Self {
        let mut said = match json!(text.value) {
            Value::Object(said) => said,
            _ => Map::new(),
        };
        said.retain(|_, value| !value.is_null());
        let only_command = said.keys().all(|key| key == "command");
        let value = if only_command { said.remove("command").unwrap_or_default() } else { Value::Object(said) };
        Self { key: format!("runners.{name}"), value, default: "", origin: text.origin.clone() }
    }

    /// All that is said of an executor.
    pub(super) fn executor(name: &str, text: &Setting<ExecutorSettings>) -> Self {
        let mut value = json!(text.value);
        if let Value::Object(said) = &mut value {
            said.retain(|_, value| !value.is_null());
        }
        Self { key: format!("executors.{name}"), value, default: "", origin: text.origin.clone() }
    }

    fn shown(&self) -> String {
        match &self.value {
            Value::Null => format!("({})", self.default.replace('`', "")),
            Value::String(text) => text.clone(),
            Value::Array(words) => lanewright_model::text::shell_line(words.iter().filter_map(Value::as_str)),
            other => other.to_string(),
        }
    }

    /// Where the value comes from; of a default that depends on the invocation, how it comes about.
    fn source(&self, shown: &str) -> String {
        match self.origin {
            Origin::Default if !self.value.is_null() && shown != self.default => {
                format!("default: {}", self.default.replace('`', ""))
            }
            _ => self.origin.to_string(),
        }
    }
}

/// Key, value and origin in columns, a line each.
pub fn table(settings: &Settings) -> String {
    let rows: Vec<_> = settings.rows().into_iter().map(|row| (row.shown(), row)).collect();
    let widest = |width: &dyn Fn(&(String, Row)) -> usize| rows.iter().map(width).max().unwrap_or(0);
    let key_width = widest(&|(_, row)| row.key.chars().count());
    // One long path must not push every origin out of sight.
    let value_width = widest(&|(shown, _)| shown.chars().count()).min(48);
    let line =
        |(shown, row): &(String, Row)| format!("{:key_width$}  {shown:value_width$}  {}\n", row.key, row.source(shown));
    rows.iter().map(line).collect()
}

/// `[{key, value, layer, origin}]`; the layer is `flag`, `environment`, `plan`, `file` or `default`.
pub fn json(settings: &Settings) -> Value {
    let rows = settings.rows();
    let object = |row: Row| {
        json!({
            "key": row.key,
            "value": row.value,
            "layer": row.origin.layer(),
            "origin": row.origin.to_string(),
        })
    };
    rows.into_iter().map(object).collect()
}
