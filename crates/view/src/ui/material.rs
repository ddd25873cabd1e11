//! What files say, as far as the screen shows it: read by the caller, bounded by what is read.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use lanewright_model::{JobId, LaneId};
use ratatui::text::Line;

use super::diff::Diff;
use super::styled;

/// Of the selected lane, but for the last words of all jobs that are seen.
#[derive(Debug, Default)]
pub struct Material {
    pub said: HashMap<JobId, String>,
    pub output: Option<Output>,
    /// What the job of a cluster prints of the lane, oldest line first.
    pub live: Option<(LaneId, Text)>,
    pub prompt: Option<Prompt>,
    pub diff: Option<(LaneId, Change)>,
    /// The graph of the lanes, as long as nothing happens.
    pub graph: Drawn,
}

/// The end of a job's output, oldest line first.
#[derive(Debug)]
pub struct Output {
    pub job: JobId,
    pub path: PathBuf,
    pub text: Text,
}

#[derive(Debug)]
pub struct Prompt {
    pub job: JobId,
    pub text: Text,
}

/// Rows of the width in which they were drawn last: it takes long to make them of a long text.
#[derive(Debug, Default)]
pub struct Drawn(RefCell<Option<(usize, Rows)>>);

pub(super) type Rows = Rc<[Line<'static>]>;

impl Drawn {
    pub(super) fn rows(&self, width: usize, make: impl FnOnce() -> Rows) -> Rows {
        let mut known = self.0.borrow_mut();
        match &*known {
            Some((of, rows)) if *of == width => Rc::clone(rows),
            _ => Rc::clone(&known.insert((width, make())).1),
        }
    }
}

#[derive(Debug, Default)]
pub struct Text {
    lines: Vec<String>,
    drawn: Drawn,
}

impl Text {
    pub fn new(lines: Vec<String>) -> Self {
        Self { lines, drawn: Drawn::default() }
    }

    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    pub(super) fn rows(&self, width: usize) -> Rows {
        let wrapped = |line: &String| styled::wrapped(&styled::cells(line), width);
        self.drawn.rows(width, || self.lines.iter().flat_map(wrapped).collect())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Shown(Diff),
    Missing(String),
}

impl Material {
    pub(crate) fn diff_of(&self, lane: &LaneId) -> Option<&Change> {
        self.diff.as_ref().filter(|(of, _)| of == lane).map(|(_, change)| change)
    }

    pub(crate) fn shown_diff(&self, lane: &LaneId) -> Option<&Diff> {
        match self.diff_of(lane)? {
            Change::Shown(diff) => Some(diff),
            Change::Missing(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_wrapped_again_for_another_width_only() {
        let text = Text::new(vec!["one two three".to_owned()]);
        let rows = |width| text.rows(width).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            (rows(8), rows(20)),
            (vec!["one two ".to_owned(), "three".to_owned()], vec!["one two three".to_owned()])
        );
        assert!(Rc::ptr_eq(&text.rows(20), &text.rows(20)));
    }
}
