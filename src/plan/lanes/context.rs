//! What the parts of a plan are read with.

use std::cell::Cell;
use std::ops::Range;

use super::gates::Gates;
use super::join::LaneText;
use super::label::Label;
use super::names::Names;
use crate::plan::ReadOptions;
use crate::plan::faults::{Faults, nearest};
use crate::plan::markdown::Document;
use crate::plan::markdown::inline::{dedent, is_nothing};
use crate::plan::source_text::{At, File, Span};

/// A plan whose lanes are found.
pub(super) struct Context<'a> {
    pub(super) document: &'a Document<'a>,
    pub(super) file: File<'a>,
    pub(super) faults: &'a Faults<'a>,
    pub(super) options: ReadOptions<'a>,
    pub(super) names: Names,
    pub(super) gates: Gates,
    pub(super) lanes: Vec<LaneText>,
    /// How many more suggestions are made; each one takes time.
    pub(super) suggestions: Cell<usize>,
}

impl Context<'_> {
    pub(super) fn text(&self, range: Range<usize>) -> &str {
        &self.document.text[range]
    }

    pub(super) fn span(&self, range: Range<usize>) -> Span {
        self.file.span(range)
    }

    pub(super) fn at<T>(&self, value: T, range: Range<usize>) -> At<T> {
        At::new(value, self.span(range))
    }

    pub(super) fn warning(&self, range: Range<usize>, message: impl AsRef<str>, help: impl AsRef<str>) {
        self.faults.warning(self.span(range), message, help);
    }

    /// A warning, or an error where the caller asked for strictness.
    pub(super) fn lack(&self, strict: bool, range: Range<usize>, message: impl AsRef<str>, help: impl AsRef<str>) {
        if strict {
            self.faults.error_with(self.span(range), message, help);
        } else {
            self.warning(range, message, help);
        }
    }

    /// The values of a field that say something, one below the other.
    pub(super) fn said(&self, lane: usize, label: Label) -> Option<String> {
        let values = self.lanes[lane].field(label).map(|range| dedent(self.text(range)));
        let values: Vec<String> = values.filter(|value| !is_nothing(value)).collect();
        (!values.is_empty()).then(|| values.join("\n"))
    }

    /// The lane that `name` was probably meant to be.
    pub(super) fn nearest(&self, name: &str) -> Option<&str> {
        let left = self.suggestions.get().checked_sub(1)?;
        self.suggestions.set(left);
        nearest(name, self.names.ids.iter().map(String::as_str))
    }
}
