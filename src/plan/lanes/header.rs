//! What a plan says of itself: its front matter, its phase and title, its base branch.

use std::ops::Range;

use crate::model::PhaseId;
use crate::plan::faults::Faults;
use crate::plan::front_matter::{self, scalar};
use crate::plan::ids::as_id;
use crate::plan::markdown::inline::bare;
use crate::plan::markdown::{Document, trim};
use crate::plan::source_text::At;
use crate::plan::tree::Value;

#[derive(Debug)]
pub(super) struct Header {
    /// Always a valid id, with the place that it was found at.
    pub(super) phase: (String, Range<usize>),
    pub(super) title: Option<(String, Range<usize>)>,
    pub(super) base_branch: Option<(String, Range<usize>)>,
    /// The value of `status`.
    pub(super) status: Option<(String, Range<usize>)>,
    /// Written for the later tools whose plans have no test execution plan.
    pub(super) has_loop_version: bool,
    /// The id is made up.
    pub(super) nameless: bool,
}

pub(super) fn header(document: &Document<'_>, path: &str, faults: &Faults<'_>) -> Header {
    let fields = front_matter(document, faults);
    let field = |key: &str| {
        let (_, found) = fields.iter().find(|(name, _)| name == key)?;
        Some((found.value.clone(), found.span.start..found.span.end))
    };
    let named = document.title().map(|heading| split_title(heading.title));
    let at = document.title().map_or(0..0, |heading| heading.at.clone());
    let (id, title) = named.unwrap_or_default();
    let declared = field("phase").filter(|(value, _)| PhaseId::new(value).is_ok());
    let from_title = id.map(|id| (id, at.clone()));
    let known = declared.or(from_title).or_else(|| Some((of_path(path)?, at.clone())));
    let nameless = known.is_none();
    Header {
        phase: known.unwrap_or_else(|| ("phase".to_owned(), at.clone())),
        title: title.map(|title| (title, at)).or_else(|| field("title")),
        base_branch: field("base_branch").or_else(|| field("base")).or_else(|| base_branch(document)),
        status: field("status"),
        has_loop_version: field("phase_loop_plan_version").is_some(),
        nameless,
    }
}

fn front_matter(document: &Document<'_>, faults: &Faults<'_>) -> Vec<(String, At<String>)> {
    let found = front_matter::locate(document.text).filter(|found| found.closed && document.front_matter > 0);
    let root =
        found.and_then(|found| front_matter::read(&document.text[found.inner.clone()], found.inner.start, faults));
    let Some(At { value: Value::Table(entries), .. }) = root else { return Vec::new() };
    entries.into_iter().filter_map(|entry| Some((entry.key.value, scalar(&entry.value, faults)?))).collect()
}

/// `P1: Name`, `Phase 2 — Name`, `Phase Plan v1 — CONFIG: Name` as an id and a name.
fn split_title(title: &str) -> (Option<String>, Option<String>) {
    let mut rest = title.trim();
    loop {
        let (head, tail) = split_at_separator(rest);
        if let Some(id) = phase_word(head) {
            let name = tail.map(str::trim).filter(|name| !name.is_empty());
            return (Some(id), name.map(|name| bare(name).to_owned()));
        }
        match tail {
            Some(tail) if head.to_lowercase().contains("plan") => rest = tail.trim(),
            _ => return (None, Some(bare(title).to_owned()).filter(|title| !title.is_empty())),
        }
    }
}

fn split_at_separator(text: &str) -> (&str, Option<&str>) {
    let dashes = [" — ", " – ", " -- ", " - "].iter().filter_map(|dash| Some((text.find(dash)?, dash.len())));
    let colon = text.find(':').map(|at| (at, 1));
    match dashes.chain(colon).min() {
        Some((at, length)) => (&text[..at], Some(&text[at + length..])),
        None => (text, None),
    }
}

/// `P1` of `P1`, `Phase P1`, `Phase 1`, `Phase Plan: P1`'s last part.
fn phase_word(text: &str) -> Option<String> {
    let text = bare(text);
    let lower = text.to_lowercase();
    let word = if lower.starts_with("phase ") { text[6..].trim() } else { text };
    if lower.starts_with("phase ") && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return PhaseId::new(&format!("P{word}")).ok().map(String::from);
    }
    let looks_like_id = word.bytes().any(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    PhaseId::new(word).ok().filter(|_| looks_like_id).map(String::from)
}

/// `CONCURR` of `plans/phase-plan-v7-CONCURR.md`, `P1` of `P1-setup.md`.
fn of_path(path: &str) -> Option<String> {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let rest = stem.strip_prefix("phase-plan-").map(|rest| rest.split_once('-').map_or(rest, |(_, rest)| rest));
    as_id(rest.unwrap_or(stem))
}

/// `> **Base Branch**: main` before the first section.
fn base_branch(document: &Document<'_>) -> Option<(String, Range<usize>)> {
    let end = document.headings.iter().find(|heading| heading.level > 1).map_or(document.len(), |heading| heading.line);
    (document.front_matter..end).find_map(|at| {
        let range = document.trimmed(at);
        let line = &document.text[range.clone()];
        let (key, value) = line.split_once(':')?;
        let key: String = key.chars().filter(|c| c.is_alphabetic()).collect::<String>().to_lowercase();
        let start = range.start + line.len() - value.len();
        let value = value.split(['(', ',', ';']).next().unwrap_or(value);
        let at = start..start + value.len();
        let name = bare(value);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
        let valid = !name.is_empty() && name.bytes().all(plain) && !name.starts_with(['-', '.', '/']);
        let valid =
            valid && !name.ends_with(['.', '/']) && !["..", "//", "/.", ".lock"].iter().any(|bad| name.contains(bad));
        ((key == "basebranch" || key == "base") && valid).then(|| (name.to_owned(), trim(document.text, at)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::source_text::SourceText;

    fn read(text: &str) -> Header {
        let faults = Faults::new(SourceText::new("p", text));
        header(&Document::new(text), "plans/phase-plan-v7-STORE.md", &faults)
    }

    #[test]
    fn the_phase_comes_from_title_front_matter_or_file_name() {
        let cases = [
            ("# P1: Name", "P1", Some("Name")),
            ("# P1 — Name: more", "P1", Some("Name: more")),
            ("# Phase 2 - Name", "P2", Some("Name")),
            ("# Phase P3: Name", "P3", Some("Name")),
            ("# Phase Plan v1 — AUTH: Name", "AUTH", Some("Name")),
            ("# `SEARCH`", "SEARCH", None),
            ("# The plan of the week", "STORE", Some("The plan of the week")),
            ("---\nphase: 'P9' # ninth\n---\n# P1: Name", "P9", Some("Name")),
            ("---\nphase: a b\n---\n# P1: Name", "P1", Some("Name")),
            ("no title", "STORE", None),
        ];
        for (text, phase, title) in cases {
            let read = read(text);
            assert_eq!(
                (read.phase.0.as_str(), read.title.as_ref().map(|title| title.0.as_str())),
                (phase, title),
                "{text}"
            );
        }
    }

    #[test]
    fn a_base_branch_is_a_branch_and_stands_in_the_head() {
        assert_eq!(read("# P1: A\n> **Base Branch**: `main` (today)\n").base_branch.unwrap().0, "main");
        assert_eq!(read("# P1: A\n- Base branch: the usual one\n").base_branch, None);
        assert_eq!(read("# P1: A\n## B\nBase branch: main\n").base_branch, None);
    }
}
