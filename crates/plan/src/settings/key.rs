//! What is known of a setting besides its value.

use std::borrow::Cow;
use std::fmt;

use toml::de::DeValue;

/// One setting, as it is documented.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its name in files.
    pub name: &'static str,
    pub kind: Kind,
    /// Environment variables that count where its own is not set, strongest first.
    pub aliases: &'static [&'static str],
    /// Options of the command line.
    pub flags: &'static [&'static str],
    /// The value of a setting that no source names.
    pub default: &'static str,
    pub doc: &'static str,
}

impl Key {
    /// Its environment variables, strongest first; its own is its name in capitals behind `LANEWRIGHT_`.
    pub fn variables(&self) -> Vec<String> {
        let own = format!("LANEWRIGHT_{}", self.name.to_ascii_uppercase());
        [own].into_iter().chain(self.aliases.iter().map(|&alias| alias.to_owned())).collect()
    }
}

/// What a setting holds, and so what may be written for it in a TOML file.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Text,
    Path,
    Count,
    /// A whole number, or `none`.
    CountLimit,
    /// An amount of US dollars, or `none`.
    Dollars,
    Boolean,
    /// `90s`, `1h 30m`, or a number of seconds.
    Duration,
    /// `512MiB`, `1GiB`, a number of bytes, or `none`.
    Size,
    /// Strings; as a variable, one a line.
    List,
    /// Strings with names that are globs; as a variable, one `GLOB = TEXT` a line.
    Table,
    Choice(fn() -> Vec<&'static str>),
}

impl Kind {
    /// What `value` says, as it would be typed on a command line; `None` where it has the wrong type.
    pub(super) fn text_of<'v>(self, value: &'v DeValue<'_>) -> Option<Cow<'v, str>> {
        match (self, value) {
            (Self::Boolean, DeValue::Boolean(value)) => Some(value.to_string().into()),
            (Self::Count | Self::CountLimit | Self::Dollars | Self::Duration | Self::Size, DeValue::Integer(value)) => {
                i64::from_str_radix(value.as_str(), value.radix()).ok().map(|number| number.to_string().into())
            }
            (Self::Dollars, DeValue::Float(value)) => Some(value.as_str().into()),
            (Self::Count | Self::Boolean | Self::List | Self::Table, DeValue::String(_)) => None,
            (_, DeValue::String(value)) => Some(value.as_ref().into()),
            (Self::List, DeValue::Array(values)) => {
                let lines: Option<Vec<&str>> = values.iter().map(|value| line(value.get_ref())).collect();
                lines.map(|lines| lines.join("\n").into())
            }
            (Self::Table, DeValue::Table(entries)) => {
                let entry = |(key, value): (&str, &DeValue<'_>)| Some(format!("{key} = {}", line(value)?));
                let entries = entries.iter().map(|(key, value)| (key.get_ref().as_ref(), value.get_ref()));
                let lines: Option<Vec<String>> = entries.map(entry).collect();
                lines.map(|lines| lines.join("\n").into())
            }
            _ => None,
        }
    }
}

/// A string of one line.
fn line<'v>(value: &'v DeValue<'_>) -> Option<&'v str> {
    value.as_str().filter(|text| !text.is_empty() && !text.contains('\n'))
}

impl fmt::Display for Kind {
    /// With its article: `a number`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("a string"),
            Self::Path => f.write_str("a path"),
            Self::Count => f.write_str("a number"),
            Self::CountLimit => f.write_str("a number or none"),
            Self::Dollars => f.write_str("an amount of US dollars or none"),
            Self::Boolean => f.write_str("true or false"),
            Self::Duration => f.write_str("a duration"),
            Self::Size => f.write_str("a size or none"),
            Self::List => f.write_str("a list of strings"),
            Self::Table => f.write_str("a table of strings"),
            Self::Choice(words) => write!(f, "one of {}", words().join(", ")),
        }
    }
}
