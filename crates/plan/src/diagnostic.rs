//! What is wrong with a plan, where, and what to do about it.

use std::fmt;

use lanewright_model::safe_text::visible_line;
use serde::Serialize;

use super::source_text::{SourceText, Span};

lanewright_model::word_enum! {
    Severity {
        /// The plan, or the configuration, cannot be used.
        Error = "error",
        /// It can be used, but something is probably not meant as it is written.
        Warning = "warning",
    }
}

/// One fault of a plan file.
///
/// Unsafe characters of the plan are spelt out in all texts, so that they can be shown on a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    pub severity: Severity,
    /// The file, as the caller named it.
    pub path: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// What is wrong, with the offending text.
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The line, or the part of it around the place.
    pub excerpt: Excerpt,
}

impl Diagnostic {
    /// A fault at `place`, a line and a column that both count from 1.
    pub(super) fn new(
        severity: Severity,
        path: &str,
        place: (usize, usize),
        message: &str,
        help: Option<&str>,
        excerpt: Excerpt,
    ) -> Self {
        let (path, message, help) = (path.to_owned(), visible_line(message), help.map(visible_line));
        Self { severity, path, line: place.0, column: Some(place.1), message, help, excerpt }
    }

    /// That `gate` is at fault, at the first place where one of `files`, each with its path and its text, holds its first
    /// line.
    pub fn of_gate(severity: Severity, files: &[(String, String)], gate: &str, message: &str, help: &str) -> Self {
        let wanted = gate.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or(gate);
        let place = |(path, text): &(String, String)| {
            let (at, line) = text.lines().enumerate().find(|(_, line)| line.contains(wanted))?;
            let before = line[..line.find(wanted)?].chars().count();
            let excerpt = Excerpt::new(line, before);
            Some(Self::new(severity, path, (at + 1, before + 1), message, Some(help), excerpt))
        };
        files.iter().find_map(place).unwrap_or_else(|| {
            let path = files.first().map_or("", |(path, _)| path);
            Self::new(severity, path, (1, 1), message, Some(help), Excerpt::new("", 0))
        })
    }

    /// A fault of the file at `path`, which holds `text`, in `line`, which counts from 1.
    pub fn at_line(severity: Severity, path: &str, text: &str, line: usize, message: &str, help: &str) -> Self {
        let excerpt = Excerpt::new(text.lines().nth(line - 1).unwrap_or_default(), 0);
        Self { column: None, ..Self::new(severity, path, (line, 1), message, Some(help), excerpt) }
    }

    /// The same at the byte `offset` of `text`.
    pub fn at_offset(severity: Severity, path: &str, text: &str, offset: usize, message: &str, help: &str) -> Self {
        SourceText::new(path, text).diagnostic(severity, Span::new(offset, offset), message, Some(help))
    }

    /// Sorts by line within each file; the files stay in the order in which they come first.
    pub fn sort(all: &mut [Self]) {
        let mut files: Vec<String> = Vec::new();
        for fault in all.iter() {
            if !files.contains(&fault.path) {
                files.push(fault.path.clone());
            }
        }
        all.sort_by_key(|fault| (files.iter().position(|file| *file == fault.path), fault.line));
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// `plan.toml:12:5: error: …`, the line with a caret below where the column is known, and the help on a line of its own.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, path, line, column, message, help, excerpt } = self;
        write!(f, "{path}:{line}:")?;
        column.map_or(Ok(()), |column| write!(f, "{column}:"))?;
        write!(f, " {severity}: {message}")?;
        if !excerpt.text.trim().is_empty() {
            write!(f, "\n    {}", excerpt.text)?;
            column.map_or(Ok(()), |_| write!(f, "\n    {}^", excerpt.indent()))?;
        }
        help.as_ref().map_or(Ok(()), |help| write!(f, "\n  help: {help}"))
    }
}

/// The part of a line that a diagnostic shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Excerpt {
    /// One line without its end, cut to a readable length.
    pub text: String,
    /// How many of its characters stand before the place.
    pub caret: usize,
}

/// How many characters of a line are shown before and after a place.
const BEFORE: usize = 80;
const AFTER: usize = 80;

impl Excerpt {
    /// Cuts `line` to the text around the place behind `before` characters.
    pub(super) fn new(line: &str, before: usize) -> Self {
        let cut = before.saturating_sub(BEFORE);
        let mut rest = line.chars().skip(cut);
        let [left, right] =
            [before - cut, AFTER].map(|count| visible_line(&rest.by_ref().take(count).collect::<String>()));
        let [start, end] = [cut > 0, rest.next().is_some()].map(|left_out| if left_out { "…" } else { "" });
        let caret = start.chars().count() + left.chars().count();
        Self { text: format!("{start}{left}{right}{end}"), caret }
    }

    /// White space as wide as the text before the caret.
    fn indent(&self) -> String {
        self.text
            .chars()
            .map(|c| if c == '\t' { c } else { ' ' })
            .chain(std::iter::repeat(' '))
            .take(self.caret)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(line: &str, before: usize) -> Diagnostic {
        let excerpt = Excerpt::new(line, before);
        Diagnostic::new(Severity::Error, "p.toml", (3, before + 1), "no `x`", Some("try `y`"), excerpt)
    }

    #[test]
    fn diagnostic_shows_position_line_caret_and_help() {
        let shown = diagnostic("\tkey = x", 7).to_string();
        assert_eq!(shown, "p.toml:3:8: error: no `x`\n    \tkey = x\n    \t      ^\n  help: try `y`");
    }

    #[test]
    fn excerpt_is_cut_around_the_caret() {
        let line = format!("{}X{}", "a".repeat(500), "b".repeat(500));
        let excerpt = Excerpt::new(&line, 500);
        assert_eq!(excerpt.text.chars().nth(excerpt.caret), Some('X'));
        assert!(excerpt.text.chars().count() < 170);
    }

    #[test]
    fn diagnostic_escapes_control_characters() {
        let shown = diagnostic("a\u{202e}me = \u{1b}[2J", 4).to_string();
        assert!(shown.contains("\n    a⟨U+202E⟩me = ␛[2J\n               ^\n"), "{shown:?}");
    }
}
