//! Places in the text of a plan.

use std::ops::Range;

use super::diagnostic::{Diagnostic, Excerpt, Severity};

/// The longest plan that is read, in bytes.
pub const MAX_TEXT: usize = 16 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Span {
    pub(super) fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self::new(range.start, range.end)
    }
}

#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) span: Span,
}

impl<T> At<T> {
    pub(super) fn new(value: T, span: impl Into<Span>) -> Self {
        Self { value, span: span.into() }
    }
}

pub(super) fn value<T: Clone>(given: &Option<At<T>>) -> Option<T> {
    given.as_ref().map(|given| given.value.clone())
}

/// The text of a plan, one file after the other, with its line starts.
#[derive(Debug)]
pub(super) struct SourceText<'a> {
    pub(super) text: &'a str,
    files: Vec<File<'a>>,
    line_starts: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct File<'a> {
    /// What diagnostics call it.
    pub(super) path: &'a str,
    /// Where its text begins in the whole.
    pub(super) start: usize,
    pub(super) text: &'a str,
}

impl File<'_> {
    /// Where a stretch of the file's text is in the whole.
    pub(super) fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.start + range.start, self.start + range.end)
    }
}

impl<'a> SourceText<'a> {
    pub(super) fn new(path: &'a str, text: &'a str) -> Self {
        Self::of_files(&[(path, text.len())], text)
    }

    /// `text` is that of all `files`, each of which is given with its length in bytes; see [`joined`].
    pub(super) fn of_files(files: &[(&'a str, usize)], text: &'a str) -> Self {
        let after_newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let mut line_starts: Vec<usize> = std::iter::once(0).chain(after_newlines).collect();
        let gap = usize::from(files.len() > 1);
        let mut start = 0;
        let file = |&(path, length): &(&'a str, usize)| {
            let file = File { path, start, text: &text[start..start + length] };
            start += length + gap;
            file
        };
        let files: Vec<File<'a>> = files.iter().map(file).collect();
        line_starts.extend(files.iter().map(|file| file.start));
        line_starts.sort_unstable();
        line_starts.dedup();
        Self { text, files, line_starts }
    }

    /// The files in the order of the text; one at least.
    pub(super) fn files(&self) -> &[File<'a>] {
        &self.files
    }

    /// The text of `span`; empty where the span is no part of the text.
    pub(super) fn slice(&self, span: Span) -> &'a str {
        self.text.get(span.start..span.end).unwrap_or("")
    }

    pub(super) fn diagnostic(&self, severity: Severity, span: Span, message: &str, help: Option<&str>) -> Diagnostic {
        let start = self.text.floor_char_boundary(span.start);
        let line_at = |offset: usize| self.line_starts.partition_point(|&line| line <= offset) - 1;
        let line = line_at(start);
        let from = self.line_starts[line];
        let to = self.line_starts.get(line + 1).copied().unwrap_or(self.text.len());
        let before = self.text[from..start].chars().count();
        let excerpt = Excerpt::new(self.text[from..to].trim_end_matches(['\n', '\r']), before);
        let file = &self.files[self.files.partition_point(|file| file.start <= start).max(1) - 1];
        let line = line - line_at(file.start);
        Diagnostic::new(severity, file.path, (line + 1, before + 1), message, help, excerpt)
    }

    /// The line in which `span` begins.
    pub(super) fn line_of(&self, span: Span) -> &'a str {
        let start = self.text.floor_char_boundary(span.start);
        let from = self.line_starts[self.line_starts.partition_point(|&line| line <= start) - 1];
        self.text[from..].lines().next().unwrap_or_default()
    }

    /// The file and the line of a place, as diagnostics name them.
    pub(super) fn place(&self, span: Span) -> String {
        let found = self.diagnostic(Severity::Error, span, "", None);
        format!("{}:{}", found.path, found.line)
    }
}

/// The texts of several files, a line end behind each, so that no place is in two of them.
pub(super) fn joined<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    texts.flat_map(|text| [text, "\n"]).collect()
}

/// The text of a plan file: UTF-8 without its byte order mark. `path` is what a diagnostic calls the file.
///
/// # Errors
/// A diagnostic that points to the first byte that is not UTF-8.
pub fn decode<'a>(path: &str, bytes: &'a [u8]) -> Result<&'a str, Box<Diagnostic>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| {
        let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let end = Span::new(good.len(), good.len());
        let bad = bytes[error.valid_up_to()];
        let message = format!("byte 0x{bad:02x} at offset {} is not UTF-8", error.valid_up_to());
        let help = "save the plan as UTF-8";
        Box::new(SourceText::new(path, &good).diagnostic(Severity::Error, end, &message, Some(help)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_without_cr() {
        let source = SourceText::new("p", "a\r\nöö x\r\n");
        let found = source.diagnostic(Severity::Error, Span::new(8, 9), "m", None);
        assert_eq!((found.line, found.column, found.excerpt.text.as_str()), (2, Some(4), "öö x"));
    }

    #[test]
    fn lines_count_from_start_of_each_file() {
        let text = joined(["1\n2\n", "", "3\n4\n"].into_iter());
        let source = SourceText::of_files(&[("a", 4), ("b", 0), ("c", 4)], &text);
        let at = |offset| {
            let found = source.diagnostic(Severity::Error, Span::new(offset, offset), "m", None);
            (found.path, found.line)
        };
        assert_eq!([at(0), at(2)], [("a".to_owned(), 1), ("a".to_owned(), 2)]);
        assert_eq!([at(4), at(5)], [("a".to_owned(), 3), ("b".to_owned(), 1)]);
        assert_eq!([at(6), at(8)], [("c".to_owned(), 1), ("c".to_owned(), 2)]);
    }

    #[test]
    fn invalid_utf8_is_reported_with_its_line() {
        let error = decode("p.toml", b"phase = \"P1\"\nx = \"\xff\"\n").unwrap_err();
        assert_eq!((error.line, error.column), (2, Some(6)));
        assert!(error.message.contains("0xff"), "{error}");
    }

    #[test]
    fn byte_order_mark_is_stripped() {
        assert_eq!(decode("p", b"\xef\xbb\xbfphase"), Ok("phase"));
    }
}
