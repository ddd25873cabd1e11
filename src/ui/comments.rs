//! Comments on lines of a diff, and the text that they become for the agent.

use super::diff::{Diff, Kind};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) file: String,
    /// Of the last line.
    pub(crate) kind: Kind,
    /// The first and the last line in the file.
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
        let (start, end) = (rows.first()?, rows.last()?);
        Some(Self {
            file: diff.files.get(file)?.clone(),
            kind: end.kind,
            lines: (start.number?, end.number?),
            quoted: rows.iter().map(|row| row.text.clone()).collect(),
            text: text.trim().to_owned(),
        })
    }

    /// `src/a.rs:12`, `src/a.rs:12-14`.
    pub(crate) fn place(&self) -> String {
        let Self { file, lines: (first, last), .. } = self;
        if first == last { format!("{file}:{last}") } else { format!("{file}:{first}-{last}") }
    }

    /// The row below which it is shown, as long as the diff has its line.
    pub(crate) fn row(&self, diff: &Diff) -> Option<usize> {
        diff.rows.iter().position(|row| {
            let is_there = row.number == Some(self.lines.1) && row.kind == self.kind;
            is_there && diff.files.get(row.file) == Some(&self.file)
        })
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
    fn a_rejection_names_file_and_line_and_quotes_what_it_is_about() {
        let diff = Diff::parse(TEXT);
        let one = Comment::on(&diff, 5, 5, " Why? ").unwrap();
        let range = Comment::on(&diff, 0, 7, "Shorter.").unwrap();
        assert_eq!(
            message(" Not yet. ", [&one, &range]),
            "Not yet.\n\na.rs:2: Why?\n> -two\n\na.rs:1-3: Shorter.\n>  one\n> -two\n> +2\n> +3"
        );
        assert_eq!(message("", [&one]), "a.rs:2: Why?\n> -two");
        assert_eq!((one.row(&diff), range.row(&diff)), (Some(5), Some(7)));
        assert_eq!(one.row(&Diff::default()), None);
        assert_eq!(Comment::on(&diff, 0, 3, "x"), None, "no line of a file");
    }
}
