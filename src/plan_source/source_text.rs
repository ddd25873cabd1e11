//! Places in the text of a plan.

use super::diagnostic::{Diagnostic, Excerpt, Severity};

/// The longest plan that is read, in bytes.
pub const MAX_TEXT: usize = 16 * 1024 * 1024;

/// A stretch of the text, in bytes.
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

/// A value and where the plan gives it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) span: Span,
}

impl<T> At<T> {
    pub(super) fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }
}

/// The text of a plan with its line starts.
#[derive(Debug)]
pub(super) struct SourceText<'a> {
    pub(super) path: &'a str,
    pub(super) text: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> SourceText<'a> {
    pub(super) fn new(path: &'a str, text: &'a str) -> Self {
        let after_newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { path, text, line_starts: std::iter::once(0).chain(after_newlines).collect() }
    }

    /// The text of `span`; empty where the span is no part of the text.
    pub(super) fn slice(&self, span: Span) -> &'a str {
        self.text.get(span.start..span.end).unwrap_or("")
    }

    /// A diagnostic that points to the start of `span`.
    pub(super) fn diagnostic(&self, severity: Severity, span: Span, message: &str, help: Option<&str>) -> Diagnostic {
        let start = self.text.floor_char_boundary(span.start);
        let line = self.line_starts.partition_point(|&line| line <= start) - 1;
        let from = self.line_starts[line];
        let to = self.line_starts.get(line + 1).copied().unwrap_or(self.text.len());
        let before = self.text[from..start].chars().count();
        let excerpt = Excerpt::new(self.text[from..to].trim_end_matches(['\n', '\r']), before);
        Diagnostic::new(severity, self.path, (line + 1, before + 1), message, help, excerpt)
    }

    /// The byte offset of a line and a column that both count from 1, the column in bytes.
    pub(super) fn offset(&self, line: usize, column: usize) -> usize {
        let from = self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len());
        (from + column.saturating_sub(1)).min(self.text.len())
    }
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
    fn columns_count_characters_and_lines_end_before_cr() {
        let source = SourceText::new("p", "a\r\nöö x\r\n");
        let found = source.diagnostic(Severity::Error, Span::new(8, 9), "m", None);
        assert_eq!((found.line, found.column, found.excerpt.text.as_str()), (2, 4, "öö x"));
    }

    #[test]
    fn a_place_behind_the_end_is_the_end() {
        let found = SourceText::new("p", "ab").diagnostic(Severity::Error, Span::new(99, 99), "m", None);
        assert_eq!((found.line, found.column), (1, 3));
    }

    #[test]
    fn bytes_that_are_no_text_are_named_with_their_line() {
        let error = decode("p.toml", b"phase = \"P1\"\nx = \"\xff\"\n").unwrap_err();
        assert_eq!((error.line, error.column), (2, 6));
        assert!(error.message.contains("0xff"), "{error}");
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        assert_eq!(decode("p", b"\xef\xbb\xbfphase"), Ok("phase"));
    }
}
