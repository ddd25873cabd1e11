//! The collection of a plan's faults: reading never stops at the first.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use super::diagnostic::{Diagnostic, Severity};
use super::settings;
use super::source_text::{SourceText, Span};

/// How many faults of each severity are listed; a plan with more has one cause for most of them.
const MAX_LISTED: usize = 200;

/// The message about a key that resembles no known one.
const NEWER: &str = "keys that begin with `x-` are yours; --allow-unknown ignores keys of newer versions";

pub(super) struct Faults<'a> {
    pub(super) source: SourceText<'a>,
    unknown_keys: Severity,
    found: RefCell<Found>,
    /// The lanes that a matrix stands for and its values, each with what the text has in its place.
    copies: RefCell<HashMap<String, String>>,
}

#[derive(Default)]
struct Found {
    /// With the place in the whole text.
    listed: Vec<(usize, Diagnostic)>,
    /// Place and message of everything so far: a default may be at fault once for every lane.
    seen: HashSet<(usize, String)>,
    errors: usize,
    warnings: usize,
}

impl<'a> Faults<'a> {
    pub(super) fn new(source: SourceText<'a>) -> Self {
        Self { source, unknown_keys: Severity::Error, found: RefCell::default(), copies: RefCell::default() }
    }

    /// Keys that are not known are ignored with a warning (`--allow-unknown`).
    pub(super) fn allowing_unknown(self, allow: bool) -> Self {
        Self { unknown_keys: if allow { Severity::Warning } else { Severity::Error }, ..self }
    }

    /// Notes an error that has no better remedy than its message.
    pub(super) fn error(&self, span: impl Into<Span>, message: impl AsRef<str>) {
        self.add(Severity::Error, span.into(), message.as_ref(), None);
    }

    pub(super) fn error_with(&self, span: impl Into<Span>, message: impl AsRef<str>, help: impl AsRef<str>) {
        self.add(Severity::Error, span.into(), message.as_ref(), Some(help.as_ref()));
    }

    pub(super) fn warning(&self, span: impl Into<Span>, message: impl AsRef<str>, help: impl AsRef<str>) {
        self.add(Severity::Warning, span.into(), message.as_ref(), Some(help.as_ref()));
    }

    /// Notes a key that `owner` does not have; the help suggests one of `known`.
    pub(super) fn unknown_key(
        &self,
        span: Span,
        owner: &str,
        key: &str,
        (known, setting): (&[&str], Option<&settings::Key>),
    ) {
        let ignored = if self.unknown_keys == Severity::Warning { "; it is ignored" } else { "" };
        let message = format!("{owner} has no key {}{ignored}", quoted(key));
        let help = match (setting, nearest(key, known.iter().copied())) {
            (Some(setting), _) => {
                let flag = setting.flags.first().map(|flag| format!(", or use {flag}")).unwrap_or_default();
                format!("it is a setting: write it in lanewright.toml{flag}")
            }
            (None, Some(name)) => format!("did you mean `{name}`?"),
            (None, None) => format!("known keys: {}; {NEWER}", known.join(", ")),
        };
        self.add(self.unknown_keys, span, &message, Some(&help));
    }

    /// Whether the plan cannot be used.
    pub(super) fn any_error(&self) -> bool {
        self.errors() > 0
    }

    pub(super) fn errors(&self) -> usize {
        self.found.borrow().errors
    }

    /// Whether no further error would be listed.
    pub(super) fn full(&self) -> bool {
        self.errors() >= MAX_LISTED
    }

    /// From now on a fault whose message differs only in these words, as it is one of each copy of a lane, is noted once.
    pub(super) fn note_copies<'w>(&self, in_text: &str, words: impl IntoIterator<Item = &'w String>) {
        self.copies.borrow_mut().extend(words.into_iter().map(|word| (word.clone(), in_text.to_owned())));
    }

    /// The words of the message, as they are in the text.
    fn without_copies(&self, message: &str) -> String {
        let copies = self.copies.borrow();
        let words = message.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_' | '-'));
        words.map(|word| copies.get(word).map_or(word, String::as_str)).collect::<Vec<_>>().join(" ")
    }

    fn add(&self, severity: Severity, span: Span, message: &str, help: Option<&str>) {
        let found = &mut *self.found.borrow_mut();
        if !found.seen.insert((span.start, self.without_copies(message))) {
            return;
        }
        let count = if severity == Severity::Error { &mut found.errors } else { &mut found.warnings };
        *count += 1;
        if *count <= MAX_LISTED {
            found.listed.push((span.start, self.source.diagnostic(severity, span, message, help)));
        }
    }

    /// All of them, in the order of the text.
    pub(super) fn into_diagnostics(self) -> Vec<Diagnostic> {
        let Found { mut listed, errors, warnings, .. } = self.found.into_inner();
        listed.sort_by_cached_key(|(start, fault)| (*start, fault.severity, fault.message.clone()));
        let mut listed: Vec<Diagnostic> = listed.into_iter().map(|(_, fault)| fault).collect();
        let more = errors.saturating_sub(MAX_LISTED) + warnings.saturating_sub(MAX_LISTED);
        if more > 0 {
            let end = Span::new(self.source.text.len(), self.source.text.len());
            let message = format!("{more} more faults are not listed");
            listed.push(self.source.diagnostic(Severity::Warning, end, &message, None));
        }
        listed
    }
}

/// The name among `known` that `word` was probably meant to be.
pub(super) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let lower = word.to_lowercase();
    let allowed = (word.chars().count() / 3).clamp(1, 4);
    let close = known.into_iter().filter(|name| name.len().abs_diff(word.len()) <= allowed);
    let distances = close.map(|name| (strsim::osa_distance(&lower, &name.to_lowercase()), name));
    distances.filter(|(distance, _)| *distance <= allowed).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// `text` as a message quotes it: one line, not too long.
pub(super) fn quoted(text: &str) -> String {
    format!("`{}`", lanewright_model::text::headline(text, 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_suggests_only_close_names() {
        let known = ["depends_on", "owns", "tests"];
        assert_eq!(nearest("depend_on", known), Some("depends_on"));
        assert_eq!(nearest("Owns", known), Some("owns"));
        assert_eq!(nearest("colour", known), None);
    }

    #[test]
    fn many_warnings_do_not_hide_an_error() {
        let faults = Faults::new(SourceText::new("p", "text"));
        (0..1000).for_each(|at| faults.warning(Span::default(), format!("w{at}"), "h"));
        faults.error(Span::default(), "e");
        let listed = faults.into_diagnostics();
        assert!(listed.iter().any(|fault| fault.message == "e"));
        assert_eq!(listed.last().unwrap().message, "800 more faults are not listed");
    }
}
