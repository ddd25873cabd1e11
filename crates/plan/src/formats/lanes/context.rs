//! A plan whose lanes are found, with everything that their drafts are made of.

use std::cell::Cell;
use std::ops::Range;

use super::gates::Gates;
use super::header::Header;
use super::lane_text::{Label, LaneText};
use super::names::Names;
use super::phase_wide::PhaseWide;
use super::policy::Policies;
use crate::dependencies::Dependencies;
use crate::faults::{Faults, nearest};
use crate::markdown::Document;
use crate::markdown::inline::{dedent, is_nothing};
use crate::source_text::Span;
use crate::validate::Runners;
use crate::{Fallbacks, ReadOptions};

pub(super) struct Context<'a> {
    pub(super) document: &'a Document<'a>,
    pub(super) faults: &'a Faults<'a>,
    pub(super) options: ReadOptions<'a>,
    pub(super) runners: &'a Runners<'a>,
    pub(super) fallbacks: Fallbacks<'a>,
    pub(super) header: Header,
    pub(super) names: Names,
    pub(super) gates: Gates,
    pub(super) lanes: Vec<LaneText>,
    pub(super) policies: Policies,
    pub(super) phase: PhaseWide,
    /// Which lane waits for which; empty until the edges are read.
    pub(super) dependencies: Dependencies,
    /// How many more suggestions are made; each one takes time.
    pub(super) suggestions: Cell<usize>,
}

impl Context<'_> {
    pub(super) fn text(&self, range: Range<usize>) -> &str {
        &self.document.text[range]
    }

    /// A warning, or with `strict` an error.
    pub(super) fn report(&self, strict: bool, place: impl Into<Span>, message: impl AsRef<str>, help: impl AsRef<str>) {
        if strict {
            self.faults.error_with(place, message, help);
        } else {
            self.faults.warning(place, message, help);
        }
    }

    /// The values of a field that say something, one below the other.
    pub(super) fn said(&self, lane: &LaneText, label: Label) -> String {
        let values = lane.field(label).map(|range| dedent(self.text(range))).filter(|value| !is_nothing(value));
        values.collect::<Vec<_>>().join("\n")
    }

    /// The most bytes that the prompt of every agent of a lane contains besides its task: all prompts together stay within a
    /// limit.
    pub(super) fn brief_limit(&self) -> usize {
        MAX_BRIEFS / self.lanes.iter().map(|lane| lane.tasks.list.len() + 1).sum::<usize>()
    }

    /// The lane that `name` was probably meant to be.
    pub(super) fn nearest(&self, name: &str) -> Option<&str> {
        self.suggestions.set(self.suggestions.get().checked_sub(1)?);
        nearest(name, self.names.ids.iter().map(String::as_str))
    }
}

/// How many bytes all prompts may have together, besides what each task says itself.
const MAX_BRIEFS: usize = 64 * 1024 * 1024;
