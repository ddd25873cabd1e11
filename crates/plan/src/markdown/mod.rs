//! Markdown as plans are written in it: lines, code fences, list items, headings, and texts made of them.
//!
//! This is not CommonMark: a fence that nothing closes is text, tags of plans count inside of HTML blocks, and every
//! part keeps its place in the source.

mod document;
pub(super) mod inline;
mod text;

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

pub(super) use document::{Document, section_title};
pub(super) use text::{as_code, clean, first_words, list_items, paragraph, section};

/// A line without its end, and the byte at which it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) start: usize,
    pub(super) text: &'a str,
}

impl Line<'_> {
    pub(super) fn range(&self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }
}

/// The lines of `text`, which end with `\n` or `\r\n`.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut next = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = next;
        next += line.len();
        Line { start, text: line.trim_end_matches(['\n', '\r']) }
    })
}

/// `range` without white space at both ends.
pub(super) fn trim(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + (part.len() - part.trim_start().len());
    start..start + part.trim().len()
}

/// The columns of white space that a line begins with.
pub(super) fn indent(line: &str) -> usize {
    let white = line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t'));
    white.map(|byte| if byte == b'\t' { 4 } else { 1 }).sum()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fence {
    Outside,
    /// Opens or closes one.
    Mark,
    Inside,
}

/// The characters that open or close a fence.
#[derive(Debug, Clone, Copy)]
pub(super) struct FenceMark<'a> {
    kind: u8,
    length: usize,
    /// The text after them.
    pub(super) info: &'a str,
}

impl FenceMark<'_> {
    pub(super) fn of(line: &str) -> Option<FenceMark<'_>> {
        let text = line.trim();
        let kind = text.bytes().next().filter(|byte| matches!(byte, b'`' | b'~'))?;
        let length = text.bytes().take_while(|&byte| byte == kind).count();
        (length >= 3).then(|| FenceMark { kind, length, info: text[length..].trim_start() })
    }

    fn opens(&self) -> bool {
        self.kind == b'~' || !self.info.contains('`')
    }

    /// A tag may be closed on the same line.
    fn is_bare(&self) -> bool {
        self.info.is_empty() || self.info.starts_with("</")
    }

    pub(super) fn closes(&self, open: &Self) -> bool {
        self.is_bare() && self.kind == open.kind && self.length >= open.length
    }
}

/// The lines that can close a fence, by kind of mark: where each begins, and the longest mark on it or a later one.
pub(super) struct Closers([Vec<(usize, usize)>; 2]);

impl Closers {
    pub(super) fn new(text: &str) -> Self {
        let mut closers = [Vec::new(), Vec::new()];
        for line in lines(text) {
            if let Some(mark) = FenceMark::of(line.text).filter(FenceMark::is_bare) {
                closers[usize::from(mark.kind == b'~')].push((line.start, mark.length));
            }
        }
        for list in &mut closers {
            let mut longest = 0;
            for (_, length) in list.iter_mut().rev() {
                longest = longest.max(*length);
                *length = longest;
            }
        }
        Self(closers)
    }

    /// The mark of the fence that `line` opens. One that no later line closes is text.
    pub(super) fn opened<'t>(&self, line: Line<'t>) -> Option<FenceMark<'t>> {
        let mark = FenceMark::of(line.text).filter(FenceMark::opens)?;
        let list = &self.0[usize::from(mark.kind == b'~')];
        let later = list.get(list.partition_point(|(start, _)| *start <= line.start));
        later.is_some_and(|(_, longest)| *longest >= mark.length).then_some(mark)
    }
}

/// Each line of `text` with how it relates to fences. What begins before byte `from` is outside of all.
pub(super) fn fenced_lines(text: &str, from: usize) -> Vec<(Line<'_>, Fence)> {
    let closers = Closers::new(text);
    let mut open: Option<FenceMark<'_>> = None;
    let mut found = Vec::new();
    for line in lines(text) {
        let fence = match open {
            _ if line.start < from => Fence::Outside,
            Some(mark) if FenceMark::of(line.text).is_some_and(|own| own.closes(&mark)) => {
                open = None;
                Fence::Mark
            }
            Some(_) => Fence::Inside,
            None => {
                open = closers.opened(line);
                if open.is_some() { Fence::Mark } else { Fence::Outside }
            }
        };
        found.push((line, fence));
    }
    found
}

pub(super) fn unfenced_lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    fenced_lines(text, 0).into_iter().filter(|(_, fence)| *fence == Fence::Outside).map(|(line, _)| line)
}

static ITEM: LazyLock<Regex> = pattern!(r"^(?:[-*+•]|[0-9]{1,9}[.)])[ \t]\s*(?:\[([ xX])\])?");

/// A list item without its marker, its check box and white space, and whether the box is ticked.
pub(super) fn list_item(text: &str, range: Range<usize>) -> Option<(Range<usize>, Option<bool>)> {
    let range = trim(text, range);
    let found = ITEM.captures(&text[range.clone()])?;
    let ticked = found.get(1).map(|mark| mark.as_str() != " ");
    Some((trim(text, range.start + found[0].len()..range.end), ticked))
}

/// A line without the marker of a list, if it has one.
pub(super) fn without_marker(line: &str) -> &str {
    list_item(line, 0..line.len()).map_or(line.trim(), |(item, _)| &line[item])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_items_lose_their_markers() {
        let item = |line: &str| list_item(line, 0..line.len()).map(|(range, ticked)| (line[range].to_owned(), ticked));
        assert_eq!(item("  - [x] a "), Some(("a".to_owned(), Some(true))));
        assert_eq!(item("* [ ] b"), Some(("b".to_owned(), Some(false))));
        assert_eq!(item("12) c"), Some(("c".to_owned(), None)));
        assert_eq!(item("• d"), Some(("d".to_owned(), None)));
        assert_eq!([item("**e**"), item("1.2 f"), item("-")], [None, None, None]);
    }

    #[test]
    fn fence_ends_at_its_closing_line() {
        let marks = |text: &str| -> String {
            let letter = |(_, fence): &(Line<'_>, Fence)| match fence {
                Fence::Outside => '.',
                Fence::Mark => '#',
                Fence::Inside => '+',
            };
            fenced_lines(text, 0).iter().map(letter).collect()
        };
        assert_eq!(marks("a\n```sh\nb\n~~~\n```\nc"), ".#++#.");
        assert_eq!(marks("````\n```\n````\n```\nnever closed"), "#+#..");
        assert_eq!(marks("```a`b\n```\nx\n```"), ".#+#");
        assert_eq!(marks("```\nx\n```</action>\ny"), "#+#.");
    }
}
