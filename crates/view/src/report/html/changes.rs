//! What lanes changed, as the page shows it.

use serde::Serialize;
use serde_json::{Value, json};

/// What a lane changed between two commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneChanges {
    pub files: Vec<ChangedFile>,
    /// How many files changed besides.
    pub others: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    pub path: String,
    /// How many lines were added and removed; `None`: it is not text.
    pub lines: Option<(usize, usize)>,
    /// A unified diff, or its first lines.
    pub text: String,
    /// Whether the text is all of it.
    pub whole: bool,
}

/// How many bytes of diffs are worth reading for a page, all lanes together.
pub const MOST_CHANGES: usize = 3_000_000;

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Part<'c> {
    /// `add`, `remove`, `place` (which lines follow), `head` (what git says of the file) or `same`.
    kind: &'static str,
    text: &'c str,
}

/// The changes in the values of a page, with texts of at most `limit` bytes; `cut`: something is left out.
pub(super) fn changes_json(changes: &LaneChanges, mut limit: usize) -> Value {
    let (mut added, mut removed, mut is_cut) = (0, 0, changes.others > 0);
    let mut file = |file: &ChangedFile| {
        let text = first_lines(&file.text, limit);
        limit -= text.len();
        let lines = file.lines.unwrap_or_default();
        (added, removed) = (added + lines.0, removed + lines.1);
        let is_whole = file.whole && text.len() == file.text.len();
        is_cut |= !is_whole;
        json!({ "path": file.path, "lines": file.lines, "parts": parts(text), "whole": is_whole })
    };
    let files: Vec<Value> = changes.files.iter().map(&mut file).collect();
    json!({ "files": files, "others": changes.others, "added": added, "removed": removed, "cut": is_cut })
}

fn first_lines(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let start = &text[..text.floor_char_boundary(limit)];
    &start[..start.rfind('\n').map_or(0, |end| end + 1)]
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    let (mut from, mut to, mut inside) = (0, 0, false);
    for line in text.split_inclusive('\n') {
        inside |= line.starts_with("@@");
        let kind = match line.as_bytes().first() {
            _ if !inside => "head",
            Some(b'@') => "place",
            Some(b'+') => "add",
            Some(b'-') => "remove",
            _ => "same",
        };
        if parts.last().is_none_or(|last| last.kind != kind) {
            parts.push(Part { kind, text: "" });
            from = to;
        }
        to += line.len();
        if let Some(last) = parts.last_mut() {
            last.text = &text[from..to];
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n---- dashes\n++++ plus\n+new\n";

    fn file(text: &str) -> LaneChanges {
        let file = ChangedFile { path: "x".to_owned(), lines: Some((2, 1)), text: text.to_owned(), whole: true };
        LaneChanges { files: vec![file], others: 0 }
    }

    #[test]
    fn diff_lines_are_classified_by_first_character() {
        let kinds: Vec<_> = parts(DIFF).iter().map(|part| (part.kind, part.text)).collect();
        let head = "diff --git a/x b/x\n--- a/x\n+++ b/x\n";
        let place = "@@ -1,2 +1,2 @@\n";
        let rest = [("same", " same\n"), ("remove", "---- dashes\n"), ("add", "++++ plus\n+new\n")];
        assert_eq!(kinds, [&[("head", head), ("place", place)], &rest[..]].concat());
    }

    #[test]
    fn long_diffs_are_cut_between_lines() {
        let changes = file("@@ 1 @@\n+é\n+b\n");
        assert_eq!(changes_json(&changes, 99)["cut"], false);
        let cut = changes_json(&changes, 10);
        assert_eq!(cut["cut"], true);
        assert_eq!(cut["files"][0]["parts"], json!([{ "kind": "place", "text": "@@ 1 @@\n" }]));
    }
}
