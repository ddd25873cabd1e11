//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::{Path, PathBuf};

use super::Origin;
use crate::diagnostic::Severity;

/// A place in a file; line and column count from 1, the column in characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePosition {
    pub path: PathBuf,
    pub line: usize,
    pub column: usize,
}

impl FilePosition {
    /// The place of the byte at `offset` of `text`, which `path` holds.
    pub(super) fn at(path: &Path, text: &str, offset: usize) -> Self {
        let before = &text[..text.floor_char_boundary(offset)];
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let column = before[line_start..].trim_start_matches('\u{feff}').chars().count() + 1;
        Self { path: path.to_owned(), line: before.matches('\n').count() + 1, column }
    }
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path.display(), self.line, self.column)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub severity: Severity,
    pub origin: Origin,
    pub message: String,
    /// What to write instead, where that can be guessed.
    pub help: Option<String>,
}

impl Fault {
    pub(super) fn error(origin: Origin, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, origin, message: message.into(), help: None }
    }

    pub(super) fn warning(origin: Origin, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(origin, message) }
    }

    pub(super) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

impl fmt::Display for Fault {
    /// The place, where there is one, and the message; not the help.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::File(place) => write!(f, "{place}: {}", self.message),
            _ => f.write_str(&self.message),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the configuration is invalid")]
pub struct Faults(pub Vec<Fault>);

/// The one of `known` that `word` was most likely meant to be: at most a third of it written differently.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let near = |other: &&str| {
        let distance = strsim::damerau_levenshtein(word, other);
        (distance <= (other.len() / 3).max(1)).then_some(distance)
    };
    known.into_iter().filter_map(|other| Some((near(&other)?, other))).min().map(|(_, other)| other)
}
