//! What a Markdown document is that is no plan, for those who tried to run it.

use crate::markdown::Document;

/// What a document seems to be, and what to do instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotAPlan {
    pub(crate) message: &'static str,
    pub(crate) help: &'static str,
}

const ROADMAP: NotAPlan = NotAPlan {
    message: "this seems to be a roadmap of several phases, not the plan of one",
    help: "name the plan of a phase, for example plans/P1-setup.md: a document with a lane index and a section for each lane",
};

const DETAILED: NotAPlan = NotAPlan {
    message: "this seems to be a detailed plan of one change: it has no lanes",
    help: "let one agent do it, or write a plan with a `## Lane Index & Dependencies` and a section for each lane",
};

const DOCUMENT: NotAPlan = NotAPlan {
    message: "this is a Markdown document without lanes",
    help: "a phase plan has a `## Lane Index & Dependencies` and a section for each lane, like `### SL-1 - Name`",
};

/// What `text` is, where it is a Markdown document that is no phase plan; `None` where it may be something else.
pub(crate) fn not_a_plan(text: &str) -> Option<NotAPlan> {
    let document = Document::new(text);
    if !is_markdown(&document) {
        return None;
    }
    if document.title().is_some_and(|heading| heading.title.to_lowercase().starts_with("detailed")) {
        return Some(DETAILED);
    }
    Some(if is_roadmap(&document) { ROADMAP } else { DOCUMENT })
}

/// Whether the headings are those of a roadmap: two phases or more.
pub(super) fn is_roadmap(document: &Document<'_>) -> bool {
    let is_phase = |title: &str| {
        let rest = title.trim_start_matches(['*', ' ']).strip_prefix("phase ").unwrap_or("");
        rest.trim_start_matches('p').starts_with(|c: char| c.is_ascii_digit())
    };
    let phases = document.headings.iter().filter(|heading| is_phase(&heading.title.to_lowercase()));
    document.title().is_some_and(|heading| heading.title.to_lowercase().contains("roadmap"))
        || phases.take(2).count() == 2
}

/// Whether there is a heading with prose below it, and no key of a native plan at the beginning of a line.
fn is_markdown(document: &Document<'_>) -> bool {
    let native = |line: &str| {
        ["lane:", "lanes:", "[[lane", "[lane", "\"lane\"", "lane =", "lane=", "lanes =", "phase =", "phase=", "{", "[["]
            .iter()
            .any(|key| line.starts_with(key))
    };
    let body = || (document.front_matter..document.len()).filter(|&line| !document.is_blank(line));
    let is_heading = |line: usize| document.heading_at(line).is_some();
    let begins = body().next().is_some_and(is_heading);
    let is_key = |line: usize| native(document.line(line)) || is_native_phase(document.line(line));
    begins && body().any(|line| !is_heading(line)) && !body().any(is_key)
}

/// `phase: P1` at the beginning of a line outside of front matter: a key, not a sentence.
fn is_native_phase(line: &str) -> bool {
    line.strip_prefix("phase:").is_some_and(|rest| rest.split_whitespace().count() == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_plan_documents_are_recognized() {
        let cases = [
            ("# ROADMAP: A\n\nWords.\n\n## Phase 1: B\n", Some(ROADMAP)),
            ("# Phases v1\n\nWords.\n\n### Phase 1 — A (B)\n\n### Phase 2 — C (D)\n", Some(ROADMAP)),
            ("# Detailed plan: change it\n\n## Task\n\nWords.\n", Some(DETAILED)),
            ("---\na: b\n---\n\n# Notes\n\nWords.\n", Some(DOCUMENT)),
            ("# a comment\nphase = \"P1\"\n[[lane]]\n", None),
            ("# a comment\n## another\nphase: P1\nlanes: []\n", None),
            ("---\nphase: P1\nlanes: []\n", None),
            ("just words", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(not_a_plan(text), expected, "{text:?}");
        }
    }
}
