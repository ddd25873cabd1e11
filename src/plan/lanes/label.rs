//! The labelled parts of what is said of a lane, in the index and in its own section.

use std::ops::Range;

use crate::plan::markdown::inline::bare;
use crate::plan::markdown::trim;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Label {
    Scope,
    Owned,
    Provided,
    Consumed,
    Tasks,
    Acceptance,
    DependsOn,
    Blocks,
    ParallelSafe,
    Hint,
}

impl Label {
    /// Whether the index says it.
    pub(super) fn is_of_index(self) -> bool {
        matches!(self, Self::DependsOn | Self::Blocks | Self::ParallelSafe | Self::Hint)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) label: Label,
    /// The bytes of its value, which may begin on the label's line.
    pub(super) value: Range<usize>,
}

/// The field that a paragraph begins: `**Scope**: x`, `**Scope:** x`, `Scope: x`, `**Scope**`.
pub(super) fn labelled(text: &str, range: Range<usize>) -> Option<Field> {
    let line = &text[range.clone()];
    let bold = || {
        let (word, rest) = line.strip_prefix("**")?.split_once("**")?;
        let begun = rest.trim_start();
        let ends = begun.is_empty() || begun.starts_with([':', '-', '—', '–', '(']) || word.trim().ends_with(':');
        Some((label(word).filter(|_| ends)?, begun.trim_start_matches([':', '—', '–'])))
    };
    let plain = || {
        let (word, rest) = line.split_once(':').filter(|(word, _)| word.len() < 40)?;
        Some((label(word)?, rest.trim_start_matches('*')))
    };
    let (label, rest) = bold().or_else(plain)?;
    Some(Field { label, value: trim(text, range.end - rest.len()..range.end) })
}

pub(super) fn label(word: &str) -> Option<Label> {
    let word = bare(word).trim_end_matches(':').replace(['-', '_'], " ").to_lowercase();
    let word = word.split(" (").next().unwrap_or(&word);
    Some(match word.trim() {
        "scope" | "goal" | "objective" => Label::Scope,
        "owned files" | "files owned" | "files" | "owns" | "owned paths" | "file ownership" => Label::Owned,
        "interfaces provided" | "interface provided" | "provides" | "provided interfaces" => Label::Provided,
        "interfaces consumed" | "interface consumed" | "consumes" | "consumed interfaces" => Label::Consumed,
        "tasks" | "task list" | "task table" | "atomic tasks" => Label::Tasks,
        "acceptance criteria" | "acceptance" => Label::Acceptance,
        "depends on" | "depends" | "dependencies" | "dependency" | "blocked by" => Label::DependsOn,
        "blocks" | "unblocks" => Label::Blocks,
        "parallel safe" | "parallel safety" | "parallel" => Label::ParallelSafe,
        "execution hint" | "execution hints" => Label::Hint,
        _ => return None,
    })
}
