//! Columns of text that fit into a width.

use lanewright_model::cells::{cut, pad, width};

use crate::status::styles::{Styles, Tone};

pub(crate) type Cell = (String, Tone);

/// A column: its heading, the fewest cells it is cut down to, how many it has at least where there is room, and when it
/// is left out: the lowest number first, without a number never.
pub struct Column {
    pub(crate) heading: &'static str,
    pub(crate) least: usize,
    pub(crate) usual: usize,
    pub(crate) dispensable: Option<u8>,
    pub(crate) holds: Holds,
}

#[derive(PartialEq, Eq)]
pub(crate) enum Holds {
    /// There to be copied: whole as long as 3/5 of the width suffice for it.
    Id,
    Words,
    /// Is cut before an id is, and left out before little is left of it.
    Note,
}

/// A note that is cut to less than this says nothing.
const SHORTEST_NOTE: usize = 8;

const GAP: &str = "  ";

/// Lines of at most `limit` cells: headings, then a line a row. Empty columns are left out. Where the width does not
/// suffice, others are, then the widest column that may still be cut is cut, then the line is.
pub(crate) fn lines(columns: &[Column], rows: &[Vec<Cell>], limit: usize, styles: Styles) -> Vec<String> {
    let headings: Vec<Cell> = columns.iter().map(|column| (column.heading.to_owned(), Tone::Strong)).collect();
    let is_used = |at: &usize| rows.is_empty() || rows.iter().any(|row| !row[*at].0.is_empty());
    let used = (0..columns.len()).filter(is_used).collect();
    render(columns, used, &[&[headings], rows].concat(), limit, styles)
}

/// The same without headings.
pub fn rows(columns: &[Column], rows: &[Vec<Cell>], limit: usize, styles: Styles) -> Vec<String> {
    render(columns, (0..columns.len()).collect(), rows, limit, styles)
}

fn render(columns: &[Column], used: Vec<usize>, rows: &[Vec<Cell>], limit: usize, styles: Styles) -> Vec<String> {
    let longest: Vec<usize> =
        (0..columns.len()).map(|at| rows.iter().map(|row| width(&row[at].0)).max().unwrap_or_default()).collect();
    let fitting = Fitting { columns, longest, limit };
    let shown = fitting.shown(used);
    let widths = fitting.widths(&shown);
    rows.iter().map(|row| line(row, &shown, &widths, limit, styles)).collect()
}

/// Columns, how wide the longest cell of each is, and the cells that there are for all.
struct Fitting<'a> {
    columns: &'a [Column],
    longest: Vec<usize>,
    limit: usize,
}

impl Fitting<'_> {
    fn shown(&self, mut shown: Vec<usize>) -> Vec<usize> {
        while self.is_too_wide(shown.iter().map(|&at| self.least(at))) {
            let dispensable = shown.iter().filter_map(|&at| self.columns[at].dispensable.map(|rank| (rank, at)));
            let Some((_, first)) = dispensable.min() else { break };
            shown.retain(|&at| at != first);
        }
        if self.is_too_wide(shown.iter().map(|&at| self.shortest(at))) {
            shown.retain(|&at| self.columns[at].holds != Holds::Note);
        }
        shown
    }

    fn is_too_wide(&self, widths: impl ExactSizeIterator<Item = usize>) -> bool {
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        widths.sum::<usize>() + gaps > self.limit
    }

    fn least(&self, at: usize) -> usize {
        match self.columns[at].holds {
            Holds::Id => self.longest[at].min((self.limit * 3).div_ceil(5)),
            Holds::Words | Holds::Note => self.longest[at].min(self.columns[at].least),
        }
    }

    /// The same where ids need what notes have.
    fn shortest(&self, at: usize) -> usize {
        match self.columns[at].holds {
            Holds::Note => self.least(at).min(SHORTEST_NOTE),
            Holds::Id | Holds::Words => self.least(at),
        }
    }

    fn widths(&self, shown: &[usize]) -> Vec<usize> {
        let mut widths: Vec<usize> = shown.iter().map(|&at| self.longest[at].max(self.columns[at].usual)).collect();
        self.shrink(shown, &mut widths, |at| self.least(at));
        self.shrink(shown, &mut widths, |at| self.shortest(at));
        self.shrink(shown, &mut widths, |at| self.columns[at].least.min(self.least(at)));
        widths
    }

    fn shrink(&self, shown: &[usize], widths: &mut [usize], least: impl Fn(usize) -> usize) {
        while self.is_too_wide(widths.iter().copied()) {
            let shrinkable = (0..widths.len()).filter(|&at| widths[at] > least(shown[at]));
            let Some(widest) = shrinkable.max_by_key(|&at| widths[at]) else { break };
            widths[widest] -= 1;
        }
    }
}

fn line(row: &[Cell], shown: &[usize], widths: &[usize], limit: usize, styles: Styles) -> String {
    let mut text = String::new();
    let mut used = 0;
    for (&at, &cells) in shown.iter().zip(widths) {
        let (cell, tone) = &row[at];
        let gap = if used == 0 { "" } else { GAP };
        let room = limit.saturating_sub(used + gap.len()).min(cells);
        if room == 0 {
            break;
        }
        let visible = cut(cell, room);
        text.push_str(gap);
        text.push_str(&styles.paint(*tone, &visible));
        text.push_str(&pad("", room - width(&visible)));
        used += gap.len() + room;
    }
    text.trim_end().to_owned()
}
