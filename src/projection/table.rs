//! Columns of text that fit into a width.

use super::cells::{cut, pad, width};
use super::styles::{Styles, Tone};

pub(crate) type Cell = (String, Tone);

/// A column: its heading, the fewest cells it is cut down to, how many it has at least where there is room, and when it
/// is left out: the lowest number first, without a number never.
pub(crate) struct Column {
    pub(super) heading: &'static str,
    pub(super) least: usize,
    pub(super) usual: usize,
    pub(super) dispensable: Option<u8>,
}

const GAP: &str = "  ";

/// Lines of at most `limit` cells: headings, then a line a row. Where the width does not suffice, columns are left out,
/// then the widest column that may still be cut is cut, then the line is.
pub(crate) fn lines(columns: &[Column], rows: &[Vec<Cell>], limit: usize, styles: Styles) -> Vec<String> {
    let headings: Vec<Cell> = columns.iter().map(|column| (column.heading.to_owned(), Tone::Strong)).collect();
    self::rows(columns, &[&[headings], rows].concat(), limit, styles)
}

/// The same without headings.
pub(crate) fn rows(columns: &[Column], rows: &[Vec<Cell>], limit: usize, styles: Styles) -> Vec<String> {
    let shown = shown(columns, limit);
    let widths = fit(columns, &shown, rows, limit);
    rows.iter().map(|row| line(row, &shown, &widths, limit, styles)).collect()
}

fn shown(columns: &[Column], limit: usize) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    while shown.iter().map(|&at| columns[at].least).sum::<usize>() + gaps(shown.len()) > limit {
        let dispensable = shown.iter().filter_map(|&at| columns[at].dispensable.map(|rank| (rank, at)));
        let Some((_, first)) = dispensable.min() else { break };
        shown.retain(|&at| at != first);
    }
    shown
}

fn gaps(columns: usize) -> usize {
    GAP.len() * columns.saturating_sub(1)
}

fn fit(columns: &[Column], shown: &[usize], rows: &[Vec<Cell>], limit: usize) -> Vec<usize> {
    let natural = |at: usize| rows.iter().map(|row| width(&row[at].0)).chain([columns[at].usual]).max();
    let mut widths: Vec<usize> = shown.iter().map(|&at| natural(at).unwrap_or_default()).collect();
    while widths.iter().sum::<usize>() + gaps(shown.len()) > limit {
        let shrinkable = (0..widths.len()).filter(|&at| widths[at] > columns[shown[at]].least);
        let Some(widest) = shrinkable.max_by_key(|&at| widths[at]) else { break };
        widths[widest] -= 1;
    }
    widths
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
