//! A Markdown text as lines: which stand in code fences, and where headings and sections begin and end.

use std::ops::Range;

/// A text and its lines.
#[derive(Debug)]
pub(super) struct Document<'a> {
    pub(super) text: &'a str,
    lines: Vec<Line>,
    /// In the order of the text.
    pub(super) headings: Vec<Heading>,
    /// How many lines the front matter has, with its two marks.
    pub(super) front_matter: usize,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    start: u32,
    end: u32,
    fence: Fence,
}

/// How a line relates to code fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fence {
    /// Outside.
    No,
    /// Opens or closes one.
    Mark,
    /// Inside.
    Inside,
}

/// A heading outside of code fences.
#[derive(Debug, Clone)]
pub(super) struct Heading {
    pub(super) line: usize,
    /// How many `#`.
    pub(super) level: usize,
    /// The bytes of what it says.
    pub(super) title: Range<usize>,
}

impl<'a> Document<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut document = Self { text, lines: lines(text), headings: Vec::new(), front_matter: 0 };
        document.front_matter = document.measure_front_matter();
        document.mark_fences();
        document.headings = (document.front_matter..document.len()).filter_map(|at| document.heading(at)).collect();
        document
    }

    /// How many lines there are.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// The bytes of a line without its end.
    pub(super) fn range(&self, line: usize) -> Range<usize> {
        self.lines[line].start as usize..self.lines[line].end as usize
    }

    /// A line without its end.
    pub(super) fn line(&self, line: usize) -> &'a str {
        &self.text[self.range(line)]
    }

    pub(super) fn fence(&self, line: usize) -> Fence {
        self.lines[line].fence
    }

    pub(super) fn is_blank(&self, line: usize) -> bool {
        self.line(line).trim().is_empty()
    }

    /// The bytes of a line without white space at both ends.
    pub(super) fn trimmed(&self, line: usize) -> Range<usize> {
        trim(self.text, self.range(line))
    }

    /// The bytes from the first to the last of `lines`; the last is not part of them.
    pub(super) fn bytes(&self, lines: Range<usize>) -> Range<usize> {
        if lines.is_empty() {
            return 0..0;
        }
        self.range(lines.start).start..self.range(lines.end - 1).end
    }

    /// The lines below heading number `at`, to the next one that is not deeper.
    pub(super) fn below(&self, at: usize) -> Range<usize> {
        let heading = &self.headings[at];
        let next = self.headings[at + 1..].iter().find(|next| next.level <= heading.level);
        heading.line + 1..next.map_or(self.len(), |next| next.line)
    }

    /// The lines of every section whose title `is_wanted`, which sees it without number, marks and capitals.
    pub(super) fn sections(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Range<usize>> {
        let wanted = |at: &usize| is_wanted(&section_title(&self.text[self.headings[*at].title.clone()]));
        let mut found: Vec<Range<usize>> = Vec::new();
        for at in (0..self.headings.len()).filter(wanted) {
            let lines = self.below(at);
            if found.last().is_none_or(|last| last.end <= lines.start) {
                found.push(lines);
            }
        }
        found
    }

    fn heading(&self, line: usize) -> Option<Heading> {
        if self.fence(line) != Fence::No || indent(self.line(line)) > 3 {
            return None;
        }
        let range = self.trimmed(line);
        let text = &self.text[range.clone()];
        let level = text.bytes().take_while(|&byte| byte == b'#').count();
        let rest = &text[level..];
        if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
            return None;
        }
        let closed = text.trim_end_matches('#');
        let end = if closed.ends_with([' ', '\t']) && closed.len() > level { closed.len() } else { text.len() };
        let title = trim(self.text, range.start + level..range.start + end.max(level));
        Some(Heading { line, level, title })
    }

    fn measure_front_matter(&self) -> usize {
        let is_mark = |line: &usize| self.line(*line).trim_end() == "---";
        let first = (0..self.len()).find(|&line| !self.is_blank(line)).filter(is_mark);
        let last = first.and_then(|first| (first + 1..self.len()).find(is_mark));
        let is_text = |line: usize| self.line(line).starts_with("##");
        let last = last.filter(|&last| !(0..last).any(is_text));
        last.map_or(0, |last| last + 1)
    }

    /// A fence that nothing closes is no fence: what follows it is worth more as text.
    fn mark_fences(&mut self) {
        let closers = self.longest_closer_below();
        let mut open: Option<(u8, usize)> = None;
        for at in self.front_matter..self.len() {
            let mark = fence_mark(self.line(at));
            let fence = match (open, mark) {
                (Some((kind, length)), Some(mark)) if mark.closes && mark.kind == kind && mark.length >= length => {
                    open = None;
                    Fence::Mark
                }
                (Some(_), _) => Fence::Inside,
                (None, Some(mark)) if mark.opens && closers(at, &mark) => {
                    open = Some((mark.kind, mark.length));
                    Fence::Mark
                }
                (None, _) => Fence::No,
            };
            self.lines[at].fence = fence;
        }
    }

    /// Tells whether some line below one could close the fence that it opens.
    fn longest_closer_below(&self) -> impl Fn(usize, &FenceMark) -> bool + use<> {
        let mut below: Vec<(usize, [usize; 2])> = Vec::new();
        let mut longest = [0, 0];
        for at in (0..self.len()).rev() {
            if let Some(mark) = fence_mark(self.line(at)) {
                below.push((at, longest));
                if mark.closes {
                    let side = usize::from(mark.kind == b'~');
                    longest[side] = longest[side].max(mark.length);
                }
            }
        }
        below.reverse();
        move |at, mark| {
            let found = below.binary_search_by_key(&at, |(line, _)| *line);
            found.is_ok_and(|found| below[found].1[usize::from(mark.kind == b'~')] >= mark.length)
        }
    }
}

struct FenceMark {
    kind: u8,
    length: usize,
    opens: bool,
    closes: bool,
}

fn fence_mark(line: &str) -> Option<FenceMark> {
    let text = line.trim();
    let kind = text.bytes().next().filter(|byte| matches!(byte, b'`' | b'~'))?;
    let length = text.bytes().take_while(|&byte| byte == kind).count();
    let info = &text[length..];
    let opens = kind == b'~' || !info.contains('`');
    (length >= 3).then_some(FenceMark { kind, length, opens, closes: info.is_empty() })
}

fn lines(text: &str) -> Vec<Line> {
    let mut start = 0;
    let mut lines = Vec::with_capacity(text.len() / 32);
    for line in text.split_inclusive('\n') {
        let kept = line.trim_end_matches(['\n', '\r']).len();
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        lines.push(Line { start: place(start), end: place(start + kept), fence: Fence::No });
        start += line.len();
    }
    lines
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

/// `D. Swim Lanes` as `swim lanes`.
pub(super) fn section_title(title: &str) -> String {
    let title = title.trim_matches(['*', '`', '_', ' ']);
    let numbered = title.split_once(['.', ')', ':']).filter(|(number, rest)| {
        let number = number.trim();
        let is_letter = number.len() == 1 && number.bytes().all(|byte| byte.is_ascii_alphabetic());
        rest.starts_with(' ') && (is_letter || number.bytes().all(|byte| byte.is_ascii_digit()))
    });
    numbered.map_or(title, |(_, rest)| rest).trim().trim_end_matches(':').to_lowercase()
}

/// A line without its list marker, its check box and white space, and whether the box is ticked; `None` for a line
/// that is no list item.
pub(super) fn list_item(text: &str, range: Range<usize>) -> Option<(Range<usize>, Option<bool>)> {
    let range = trim(text, range);
    let line = &text[range.clone()];
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let marker = match line.as_bytes() {
        [b'-' | b'*' | b'+', b' ' | b'\t', ..] => 1,
        bytes if (1..10).contains(&digits) && matches!(bytes.get(digits), Some(b'.' | b')')) => digits + 1,
        _ => return None,
    };
    if !line[marker..].starts_with([' ', '\t']) {
        return None;
    }
    let item = trim(text, range.start + marker..range.end);
    let ticked = match text[item.clone()].as_bytes() {
        [b'[', b' ', b']', ..] => Some(false),
        [b'[', b'x' | b'X', b']', ..] => Some(true),
        _ => return Some((item, None)),
    };
    Some((trim(text, item.start + 3..item.end), ticked))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(text: &str) -> Vec<String> {
        let document = Document::new(text);
        document.headings.iter().map(|heading| text[heading.title.clone()].to_owned()).collect()
    }

    #[test]
    fn what_looks_like_a_heading_in_a_fence_is_none() {
        let text = "# A\n```bash\n# no\n```\n## B ##\n~~~~\n# no\n~~~\n# no\n~~~~\n### C\n#no\n";
        assert_eq!(titles(text), ["A", "B", "C"]);
    }

    #[test]
    fn an_unclosed_fence_hides_nothing() {
        assert_eq!(titles("# A\n```bash\nls\n## B\n"), ["A", "B"]);
        assert_eq!(titles("````\n# no\n```\n````\n## B\n```\n## C\n"), ["B", "C"]);
    }

    #[test]
    fn front_matter_holds_no_heading() {
        let document = Document::new("---\n# comment\nphase: P1\n---\r\n# P1: A\r\n");
        assert_eq!(document.front_matter, 4);
        assert_eq!(document.headings.len(), 1);
    }

    #[test]
    fn titles_lose_their_numbers() {
        for (title, plain) in [
            ("D. Swim Lanes", "swim lanes"),
            ("4. Lanes", "lanes"),
            ("**Lanes:**", "lanes"),
            ("v1. Lanes", "v1. lanes"),
        ] {
            assert_eq!(section_title(title), plain);
        }
    }

    #[test]
    fn list_items_come_without_marker_and_box() {
        let item = |line: &str| list_item(line, 0..line.len()).map(|(range, ticked)| (line[range].to_owned(), ticked));
        assert_eq!(item("  - [x] done "), Some(("done".to_owned(), Some(true))));
        assert_eq!(item("12. twelfth"), Some(("twelfth".to_owned(), None)));
        assert_eq!(item("-no"), None);
        assert_eq!(item("3 things"), None);
    }
}
