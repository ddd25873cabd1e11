//! Decides by its text whether a single file is a GSD plan.

use crate::front_matter::{self, key_of, normal};

use super::names::{file_and_directory, is_plan_name};
use super::tokens::{Kind, tokens};

/// Keys that no other document of GSD has.
const OWN_KEYS: [&str; 5] = ["wave", "depends_on", "files_modified", "must_haves", "autonomous"];

/// Words in the names of documents that are about plans and are none.
const OTHER_DOCUMENTS: &str = "\
    SUMMARY ROADMAP STATE CONTEXT RESEARCH README VERIFICATION VALIDATION REVIEW PATTERNS DISCUSSION REQUIREMENTS VERIFY \
    OUTLINE";

const LOOKED_AT: usize = 1024 * 1024;

pub(crate) fn is_plan(path: &str, text: &str) -> bool {
    let (name, _) = file_and_directory(path);
    let upper = name.to_ascii_uppercase();
    let data = [".TOML", ".YAML", ".YML", ".JSON"].iter().any(|extension| upper.ends_with(extension));
    let named = is_plan_name(name);
    let other = OTHER_DOCUMENTS.split(' ').any(|word| upper.contains(word)) || upper.starts_with("DETAILED-");
    if data || (other && !named) || text.trim().is_empty() {
        return false;
    }
    let text = &text[..text.floor_char_boundary(LOOKED_AT)];
    if is_lanes(text) {
        return false;
    }
    let markdown = upper.ends_with(".MD") || upper.ends_with(".MARKDOWN");
    let front = front_matter::locate(text).filter(|front| front.closed || markdown);
    let header = front.as_ref().map_or("", |front| &text[front.inner.clone()]);
    let has = |wanted: &str| header.lines().filter_map(key_of).any(|key| normal(key) == wanted);
    if OWN_KEYS.iter().any(|key| has(key)) {
        return true;
    }
    if !named && ["completed", "verified", "duration", "subsystem", "status"].iter().any(|key| has(key)) {
        return false;
    }
    let begin = front.as_ref().map_or(0, |front| front.outer.end);
    let marks = tokens(text, begin..text.len());
    let tags = marks.iter().any(|token| token.opens("task"));
    let shaped = marks.iter().any(|token| token.opens("tasks") || token.opens("objective")) || has("phase") || named;
    let typed = marks.iter().any(|token| token.opens("task") && token.inside.contains("type="));
    let headings = marks.iter().any(|token| matches!(token.kind, Kind::TaskHeading(_)));
    (tags && (shaped || typed))
        || (headings && markdown)
        || (has("phase") && has("plan"))
        || (named && (numbered(name) || path.contains(".planning")))
}

/// Whether the text has what only phase plans with lanes have.
fn is_lanes(text: &str) -> bool {
    let is_mark = |line: &str| {
        let words = line.trim_start_matches('#');
        words.len() < line.len()
            && (words.trim().starts_with("Lane Index") || words.trim().starts_with("Interface Freeze Gates"))
    };
    text.lines().any(is_mark)
}

fn numbered(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_digit())
}
