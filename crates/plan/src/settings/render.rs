//! Settings as a table for people and for programs.

use serde::Serialize;
use serde_json::{Value, json};

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

    /// All that is said of a runner or an executor, or only its command where nothing else is said.
    pub(super) fn described(key: String, text: &Setting<impl Serialize>) -> Self {
        let mut value = json!(text.value);
        if let Value::Object(said) = &mut value {
            said.retain(|_, value| !value.is_null());
            if said.keys().all(|key| key == "command") {
                value = said.remove("command").unwrap_or_default();
            }
        }
        Self { key, value, default: "", origin: text.origin.clone() }
    }

    fn shown(&self) -> String {
        match &self.value {
            // A source can set a limit to none.
            Value::Null if self.origin != Origin::Default => "none".to_owned(),
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
