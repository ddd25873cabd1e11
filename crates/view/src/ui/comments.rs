//! Comments on lines of a diff, and the text that they become for the agent.

use super::diff::{Diff, Kind, Row};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) file: String,
    /// Of the last line.
    pub(crate) kind: Kind,
    /// The number of the last line.
    pub(crate) number: u32,
    /// The first and the last line in the new file; if all of them were removed, in the old one.
    pub(crate) lines: (u32, u32),
    /// The lines, each with its sign.
    pub(crate) quoted: Vec<String>,
    pub(crate) text: String,
}

impl Comment {
    /// A comment on the rows from `first` to `last`, within the file of `last`; `None`: none of them is a line of it.
    pub(crate) fn on(diff: &Diff, first: usize, last: usize, text: &str) -> Option<Self> {
        let file = diff.rows.get(last)?.file;
        let rows = diff.rows.get(first..=last)?.iter().filter(|row| row.file == file && row.is_line());
        let rows: Vec<_> = rows.collect();
        let end = rows.last()?;
        let in_new: Vec<u32> =
            rows.iter().filter(|row| row.kind != Kind::Removed).filter_map(|row| row.number).collect();
        let numbers = if in_new.is_empty() { rows.iter().filter_map(|row| row.number).collect() } else { in_new };
        Some(Self {
            file: diff.files.get(file)?.clone(),
            kind: end.kind,
            number: end.number?,
            lines: (*numbers.first()?, *numbers.last()?),
            quoted: rows.iter().map(|row| row.text.clone()).collect(),
            text: text.trim().to_owned(),
        })
    }

    /// `src/a.rs:12`, `src/a.rs:12-14`, `src/a.rs:12 (removed)`.
    pub(crate) fn place(&self) -> String {
        let Self { file, lines: (first, last), .. } = self;
        let last_line = if first == last { String::new() } else { format!("-{last}") };
        let are_removed = self.quoted.iter().all(|line| line.starts_with('-'));
        format!("{file}:{first}{last_line}{}", if are_removed { " (removed)" } else { "" })
    }

    /// The row below which it is shown: its last line; of an outdated comment the last row of its file, else of the diff.
    pub(crate) fn shown_at(&self, diff: &Diff) -> usize {
        let in_file = || diff.rows.iter().rposition(|row| diff.files.get(row.file) == Some(&self.file));
        self.row(diff).or_else(in_file).unwrap_or(diff.rows.len().saturating_sub(1))
    }

    /// The row of its last line, as long as the diff has the lines that it is about.
    pub(crate) fn row(&self, diff: &Diff) -> Option<usize> {
        let is_of_file = |row: &Row| diff.files.get(row.file) == Some(&self.file);
        let is_last = |row: &Row| row.number == Some(self.number) && row.kind == self.kind && is_of_file(row);
        let are_same = |last: usize| {
            let lines = diff.rows[..=last].iter().rev().filter(|row| row.is_line()).take(self.quoted.len());
            lines.map(|row| is_of_file(row).then_some(&row.text)).eq(self.quoted.iter().rev().map(Some))
        };
        let mut rows = diff.rows.iter().enumerate();
        rows.find_map(|(at, row)| (is_last(row) && are_same(at)).then_some(at))
    }
}

/// What a rejection says: what was typed, then each comment with its place and the lines that it is about.
pub(crate) fn message<'c>(typed: &str, comments: impl IntoIterator<Item = &'c Comment>) -> String {
    let typed = Some(typed.trim().to_owned()).filter(|typed| !typed.is_empty());
    let about = |comment: &Comment| {
        let quoted: String = comment.quoted.iter().map(|line| format!("> {line}\n")).collect();
        format!("{}: {}\n{}", comment.place(), comment.text, quoted.trim_end())
    };
    typed.into_iter().chain(comments.into_iter().map(about)).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3\n";

    #[test]
    fn rejection_quotes_commented_lines() {
        let diff = Diff::parse(TEXT);
        let one = Comment::on(&diff, 5, 5, " Why? ").unwrap();
        let range = Comment::on(&diff, 0, 7, "Shorter.").unwrap();
        assert_eq!(
            message(" Not yet. ", [&one, &range]),
            "Not yet.\n\na.rs:2 (removed): Why?\n> -two\n\na.rs:1-3: Shorter.\n>  one\n> -two\n> +2\n> +3"
        );
        assert_eq!(message("", [&one]), "a.rs:2 (removed): Why?\n> -two");
        assert_eq!((one.row(&diff), range.row(&diff)), (Some(5), Some(7)));
        assert_eq!(one.row(&Diff::default()), None);
        let changed = Diff::parse(&TEXT.replace("-two", "-deux"));
        assert_eq!((one.row(&changed), range.row(&changed)), (None, None), "another line has the number");
        assert_eq!(one.shown_at(&changed), 7);
        let mixed = Comment::on(&diff, 4, 5, "").map(|comment| comment.place());
        assert_eq!(mixed.as_deref(), Some("a.rs:1"), "no number of the old file");
        assert_eq!(Comment::on(&diff, 0, 3, "x"), None, "no line of a file");
    }
}
