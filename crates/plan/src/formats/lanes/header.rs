//! What a plan says of itself: its front matter, its phase and title, its base branch.

use lanewright_model::PhaseId;

use crate::faults::Faults;
use crate::front_matter::{self, scalar};
use crate::ids::as_id;
use crate::markdown::Document;
use crate::markdown::inline::bare;
use crate::source_text::At;
use crate::tree::Value;
use crate::validate::is_branch_name;

#[derive(Debug)]
pub(super) struct Header {
    /// A valid id.
    pub(super) phase: At<String>,
    /// Nothing names the phase; its id is made up.
    pub(super) is_nameless: bool,
    pub(super) title: Option<At<String>>,
    pub(super) base_branch: Option<At<String>>,
    pub(super) status: Option<At<String>>,
    /// Written for the later tools whose plans have no test execution plan.
    pub(super) has_loop_version: bool,
}

pub(super) fn header(document: &Document<'_>, path: &str, faults: &Faults<'_>) -> Header {
    let fields = front_matter(document, faults);
    let field = |key: &str| fields.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
    let heading = document.title();
    let at = heading.map_or(0..0, |heading| heading.at.clone());
    let (id, title) = heading.map(|heading| split_title(heading.title)).unwrap_or_default();
    let declared = field("phase").filter(|phase| PhaseId::new(&phase.value).is_ok());
    let named = declared.or_else(|| Some(At::new(id.or_else(|| of_path(path))?, at.clone())));
    Header {
        is_nameless: named.is_none(),
        phase: named.unwrap_or_else(|| At::new("phase".to_owned(), at.clone())),
        title: title.map(|title| At::new(title, at)).or_else(|| field("title")),
        base_branch: field("base_branch").or_else(|| field("base")).or_else(|| base_branch(document)),
        status: field("status"),
        has_loop_version: field("phase_loop_plan_version").is_some(),
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
    let separators = [" — ", " – ", " -- ", " - ", ":"];
    let first = separators.iter().filter_map(|separator| Some((text.find(separator)?, separator.len()))).min();
    first.map_or((text, None), |(at, length)| (&text[..at], Some(&text[at + length..])))
}

/// `P1` of `P1`, `Phase P1` and `Phase 1`.
fn phase_word(text: &str) -> Option<String> {
    let text = bare(text);
    let number = text.get(..6).filter(|word| word.eq_ignore_ascii_case("phase ")).map(|_| text[6..].trim());
    if let Some(number) = number.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')) {
        return PhaseId::new(&format!("P{number}")).ok().map(String::from);
    }
    let word = number.unwrap_or(text);
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
fn base_branch(document: &Document<'_>) -> Option<At<String>> {
    let end = document.headings.iter().find(|heading| heading.level > 1).map_or(document.len(), |heading| heading.line);
    (document.front_matter..end).find_map(|at| {
        let (key, value) = document.line(at).split_once(':')?;
        let key: String = key.chars().filter(|c| c.is_alphabetic()).collect::<String>().to_lowercase();
        let name = bare(value.split(['(', ',', ';']).next()?);
        let is_base = matches!(key.as_str(), "basebranch" | "base") && is_branch_name(name);
        is_base.then(|| At::new(name.to_owned(), document.trimmed(at)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source_text::SourceText;

    fn read(text: &str) -> Header {
        let faults = Faults::new(SourceText::new("p", text));
        header(&Document::new(text), "plans/phase-plan-v7-STORE.md", &faults)
    }

    #[test]
    fn phase_id_comes_from_title_header_or_file_name() {
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
                (read.phase.value.as_str(), read.title.as_ref().map(|title| title.value.as_str())),
                (phase, title),
                "{text}"
            );
        }
    }

    #[test]
    fn base_branch_is_read_from_the_head() {
        assert_eq!(read("# P1: A\n> **Base Branch**: `main` (today)\n").base_branch.unwrap().value, "main");
        assert_eq!(read("# P1: A\n- Base branch: the usual one\n").base_branch, None);
        assert_eq!(read("# P1: A\n## B\nBase branch: main\n").base_branch, None);
    }
}
