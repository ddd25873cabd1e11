//! A Markdown text as lines, with its headings and the sections below them.

use std::ops::Range;

use super::{Fence, Line, fenced_lines, indent, lines, trim};
use crate::markdown::inline::bare;

#[derive(Debug)]
pub(crate) struct Document<'a> {
    pub(crate) text: &'a str,
    lines: Vec<(Line<'a>, Fence)>,
    pub(crate) headings: Vec<Heading<'a>>,
    /// How many lines the front matter has, with its two marks.
    pub(crate) front_matter: usize,
}

/// A heading outside of code fences.
#[derive(Debug, Clone)]
pub(crate) struct Heading<'a> {
    pub(crate) line: usize,
    pub(crate) level: usize,
    pub(crate) title: &'a str,
    pub(crate) at: Range<usize>,
}

impl<'a> Document<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let (front_matter, from) = measure_front_matter(text);
        let lines = fenced_lines(text, from);
        let mut document = Self { text, lines, headings: Vec::new(), front_matter };
        document.headings = (front_matter..document.len()).filter_map(|at| document.heading(at)).collect();
        document
    }

    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(crate) fn line(&self, line: usize) -> &'a str {
        self.lines[line].0.text
    }

    pub(crate) fn fence(&self, line: usize) -> Fence {
        self.lines[line].1
    }

    pub(crate) fn is_blank(&self, line: usize) -> bool {
        self.line(line).trim().is_empty()
    }

    /// The bytes of a line without its end.
    pub(crate) fn range(&self, line: usize) -> Range<usize> {
        self.lines[line].0.range()
    }

    /// The bytes of a line without white space at both ends.
    pub(crate) fn trimmed(&self, line: usize) -> Range<usize> {
        trim(self.text, self.range(line))
    }

    pub(crate) fn bytes(&self, lines: Range<usize>) -> Range<usize> {
        if lines.is_empty() {
            return 0..0;
        }
        self.range(lines.start).start..self.range(lines.end - 1).end
    }

    pub(crate) fn heading_at(&self, line: usize) -> Option<&Heading<'a>> {
        self.headings.binary_search_by_key(&line, |heading| heading.line).ok().map(|at| &self.headings[at])
    }

    pub(crate) fn title(&self) -> Option<&Heading<'a>> {
        self.headings.iter().find(|heading| heading.level == 1)
    }

    /// The lines below heading number `at`, to the next one that is not deeper.
    pub(crate) fn below(&self, at: usize) -> Range<usize> {
        let heading = &self.headings[at];
        let next = self.headings[at + 1..].iter().find(|next| next.level <= heading.level);
        heading.line + 1..next.map_or(self.len(), |next| next.line)
    }

    /// The lines of every section whose title `is_wanted`, which sees it as [`section_title`] gives it.
    pub(crate) fn sections(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<Range<usize>> {
        let wanted = |at: &usize| is_wanted(&section_title(self.headings[*at].title));
        let mut found: Vec<Range<usize>> = Vec::new();
        for lines in (0..self.headings.len()).filter(wanted).map(|at| self.below(at)) {
            if found.last().is_none_or(|last| last.end <= lines.start) {
                found.push(lines);
            }
        }
        found
    }

    fn heading(&self, line: usize) -> Option<Heading<'a>> {
        if self.fence(line) != Fence::Outside || indent(self.line(line)) > 3 {
            return None;
        }
        let range = self.trimmed(line);
        let text = &self.text[range.clone()];
        let level = text.bytes().take_while(|&byte| byte == b'#').count();
        let rest = &text[level..];
        if !(1..=6).contains(&level) || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
            return None;
        }
        let closed = rest.trim_end_matches('#');
        let length = if closed.ends_with([' ', '\t']) { closed.len() } else { rest.len() };
        let at = trim(self.text, range.start + level..range.start + level + length);
        Some(Heading { line, level, title: &self.text[at.clone()], at })
    }
}

/// How many lines front matter at the beginning has, and where it ends. A heading in it says that the marks are rulers.
fn measure_front_matter(text: &str) -> (usize, usize) {
    let is_mark = |line: &Line<'_>| line.text.trim_end() == "---";
    if !lines(text).find(|line| !line.text.trim().is_empty()).is_some_and(|first| is_mark(&first)) {
        return (0, 0);
    }
    let mut marks = 0;
    for (number, line) in lines(text).take_while(|line| !line.text.starts_with("##")).enumerate() {
        marks += usize::from(is_mark(&line));
        if marks == 2 {
            return (number + 1, line.range().end + 1);
        }
    }
    (0, 0)
}

/// `D. Swim Lanes` as `swim lanes`: without number, emphasis and capitals.
pub(crate) fn section_title(title: &str) -> String {
    let title = bare(title);
    let numbered = title.split_once(['.', ')', ':']).filter(|(number, rest)| {
        let number = number.trim();
        let is_letter = number.len() == 1 && number.bytes().all(|byte| byte.is_ascii_alphabetic());
        rest.starts_with(' ') && (is_letter || number.bytes().all(|byte| byte.is_ascii_digit()))
    });
    numbered.map_or(title, |(_, rest)| rest).trim().trim_end_matches(':').to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(text: &str) -> Vec<&str> {
        Document::new(text).headings.iter().map(|heading| heading.title).collect()
    }

    #[test]
    fn headings_in_a_fence_are_ignored() {
        let text = "# A\n```bash\n# no\n```\n## B ##\n~~~~\n# no\n~~~\n# no\n~~~~\n### C\n#no\n";
        assert_eq!(titles(text), ["A", "B", "C"]);
    }

    #[test]
    fn unclosed_fence_hides_no_heading() {
        assert_eq!(titles("# A\n```bash\nls\n## B\n"), ["A", "B"]);
        assert_eq!(titles("````\n# no\n```\n````\n## B\n```\n## C\n"), ["B", "C"]);
    }

    #[test]
    fn headings_in_front_matter_are_ignored() {
        let document = Document::new("---\n# comment\nphase: P1\n---\r\n# P1: A\r\n");
        assert_eq!(document.front_matter, 4);
        assert_eq!(document.headings.len(), 1);
        assert_eq!(titles("---\nwords\n## A\n---\n# B\n"), ["A", "B"]);
    }

    #[test]
    fn section_title_drops_numbering() {
        for (title, plain) in [
            ("D. Swim Lanes", "swim lanes"),
            ("4. Lanes", "lanes"),
            ("**Lanes:**", "lanes"),
            ("v1. Lanes", "v1. lanes"),
        ] {
            assert_eq!(section_title(title), plain);
        }
    }
}
