//! Settings that `init` enters into a configuration file.

use toml::{Table, Value};

pub(super) struct SettingLine {
    pub(super) key: &'static str,
    pub(super) value: Value,
    /// What stands above it.
    pub(super) comment: Option<String>,
}

/// The configuration file `old` with those settings that it does not have at its beginning, before all tables.
pub(super) fn entered(lines: &[SettingLine], old: &str) -> Result<String, String> {
    let known: Table = old.parse().map_err(|error| format!("it is not valid TOML: {error}"))?;
    let new = lines.iter().filter(|line| !known.contains_key(line.key));
    let written = new.map(|SettingLine { key, value, comment }| {
        let comment = comment.as_ref().map_or_else(String::new, |comment| format!("# {comment}\n"));
        format!("{comment}{key} = {value}\n")
    });
    Ok(written.collect::<String>() + old)
}
