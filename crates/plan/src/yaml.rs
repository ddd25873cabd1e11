//! YAML text into the tree; the only file that knows the YAML crate.

use serde::Deserialize;
use serde_saphyr::{DuplicateKeyPolicy, Spanned};

use super::faults::{Faults, quoted};
use super::raw::Raw;
use super::source_text::{At, Span};
use super::tree::{MAX_DEPTH, Node, TableEntry, Value, last_entries, unique_entries};

/// Reads `text`. A syntax error, which ends reading, and repeated keys are faults.
pub(super) fn parse(text: &str, faults: &Faults<'_>) -> Option<Node> {
    let part = Part { text, start: 0, strict: true, faults };
    part.parse().map_err(|(span, message)| faults.error(span, format!("invalid YAML: {message}"))).ok()
}

/// Reads `text`, which begins at byte `start` of the plan's text. A repeated key is worth a warning only.
///
/// # Errors
/// Where and why it is no YAML.
pub(super) fn parse_part(text: &str, start: usize, faults: &Faults<'_>) -> Result<Node, (Span, String)> {
    Part { text, start, strict: false, faults }.parse()
}

struct Part<'a, 'f> {
    text: &'a str,
    /// Where it begins in the plan's text.
    start: usize,
    /// Whether a repeated key is an error.
    strict: bool,
    faults: &'a Faults<'f>,
}

impl Part<'_, '_> {
    fn parse(&self) -> Result<Node, (Span, String)> {
        match serde_saphyr::from_str_with_options::<Spanned<RawYaml>>(self.text, options()) {
            Ok(root) => Ok(self.convert(root)),
            Err(error) => {
                let error = error.without_snippet();
                let here = Span::new(self.start, self.start);
                let span = error.location().map_or(here, |location| self.place(&location));
                Err((span, message(error)))
            }
        }
    }

    fn place(&self, location: &serde_saphyr::Location) -> Span {
        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        let span = location.span();
        match (span.byte_offset(), span.byte_len()) {
            (Some(start), Some(length)) => {
                let start = self.start.saturating_add(number(start));
                Span::new(start, start.saturating_add(number(length)))
            }
            _ => {
                let line = number(location.line()).saturating_sub(1);
                let before: usize = self.text.split_inclusive('\n').take(line).map(str::len).sum();
                let start = self.start + before + number(location.column()).saturating_sub(1);
                Span::new(start, start)
            }
        }
    }

    fn convert(&self, node: Spanned<RawYaml>) -> Node {
        let span = self.place(&node.defined);
        let value = match node.value.0 {
            Raw::Scalar(value) => value,
            Raw::List(items) => Value::List(items.into_iter().map(|item| self.convert(item)).collect()),
            Raw::Table(entries) => {
                let entry = |(key, value): (Spanned<String>, _)| TableEntry {
                    key: At::new(key.value, self.place(&key.defined)),
                    value: self.convert(value),
                };
                self.unique(entries.into_iter().map(entry).collect())
            }
        };
        At::new(value, span)
    }

    fn unique(&self, entries: Vec<TableEntry>) -> Value {
        if self.strict {
            return unique_entries(entries, self.faults);
        }
        last_entries(entries, |key| repeated(key, self.faults))
    }
}

/// Reports a duplicate key where the last one counts.
pub(super) fn repeated(key: &At<String>, faults: &Faults<'_>) {
    let message = format!("duplicate key {}; the last one counts", quoted(&key.value));
    faults.warning(key.span, message, "keep one of them");
}

/// A value of YAML, whose parts have their places.
#[derive(Deserialize)]
#[serde(transparent)]
struct RawYaml(Raw<Spanned<String>, Spanned<RawYaml>>);

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_events: 4_000_000,
            max_nodes: 1_000_000,
        },
        // An alias bomb stops here; an honest plan repeats a few hundred nodes.
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        // `agent_worktrees: on` is a word, not true.
        strict_booleans: true,
        with_snippet: false,
    }
}

/// The message of the parser without the position, which the diagnostic shows.
fn message(error: &serde_saphyr::Error) -> String {
    if matches!(error, serde_saphyr::Error::MultipleDocuments { .. }) {
        return "a plan is one document, and this is the second".to_owned();
    }
    let text = error.to_string();
    let line = text.lines().next().unwrap_or("");
    let place = line.find(" at line ").or_else(|| line.find(" (line "));
    place.map_or(line, |at| &line[..at]).trim_end_matches(':').to_owned()
}
