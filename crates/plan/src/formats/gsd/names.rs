//! The names of plans: of their files, lanes and phases; and by the files beside a plan whether it is done.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use crate::ids::as_id;
use crate::roadmap::normal;

/// Whether a file of a phase's directory is one of its plans, by its name.
pub fn is_plan_name(name: &str) -> bool {
    stem(name).is_some()
}

/// What the name of a plan says beside that it is one: `01-02` for `01-02-PLAN.md` and `01-PLAN-02.md`, nothing for
/// `PLAN.md`. `None`: no plan has such a name.
pub(super) fn stem(name: &str) -> Option<String> {
    let extension = name.len().checked_sub(3).filter(|&at| name.is_char_boundary(at))?;
    let base = name[extension..].eq_ignore_ascii_case(".md").then_some(&name[..extension])?;
    let at = plan_word(base)?;
    let (before, after) = (base[..at].trim_end_matches(['-', '_', '.']), &base[at + 4..]);
    let number = after.strip_prefix(['-', '_']).unwrap_or("");
    let numbered = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match (before.is_empty(), numbered) {
        _ if !after.is_empty() && !numbered => None,
        (true, true) => Some(number.to_owned()),
        (false, true) => Some(format!("{before}-{number}")),
        (_, false) => Some(before.to_owned()),
    }
}

/// The position of the word PLAN, alone, in a file's name. In small letters it counts after a number only:
/// `test-plan.md` is a document.
fn plan_word(base: &str) -> Option<usize> {
    let upper = base.to_ascii_uppercase();
    let stands_alone = |at: usize| {
        let before = at == 0 || matches!(base.as_bytes()[at - 1], b'-' | b'_' | b'.');
        let after = base.as_bytes().get(at + 4).is_none_or(|byte| matches!(byte, b'-' | b'_'));
        let loud = &base[at..at + 4] == "PLAN" || base.starts_with(|c: char| c.is_ascii_digit());
        before && after && loud
    };
    upper.rmatch_indices("PLAN").map(|(at, _)| at).find(|&at| stands_alone(at))
}

/// Whether `path` is a file that Lanewright alone changes while a phase runs.
pub(super) fn is_kept_by_lanewright(path: &str) -> bool {
    let path = path.trim_start_matches(['@', '.', '/']);
    matches!(path, "planning/STATE.md" | "planning/ROADMAP.md" | "STATE.md" | "ROADMAP.md")
}

/// The last part of a path, and the one before it.
pub(super) fn file_and_directory(path: &str) -> (&str, Option<&str>) {
    let mut parts = path.rsplit(['/', '\\']);
    let file = parts.next().unwrap_or(path);
    (file, parts.next().filter(|directory| !matches!(*directory, "" | "." | "..")))
}

/// `01-02` of `01-02-setup`: numbers like `07`, `07.1` and `07a`. A date is no phase: `2026-04-11-cleanup`.
static CANONICAL: LazyLock<Regex> =
    pattern!(r"^([0-9]{1,3}(?:\.[0-9]+)*[A-Za-z]?-[0-9]+(?:\.[0-9]+)*[A-Za-z]?)(?:[-_]|$)");

/// The number of a plan in a stem: `01-02` for `01-02-setup`. `None`: the stem as a whole is the plan's name.
pub(super) fn canonical(stem: &str) -> Option<&str> {
    CANONICAL.captures(stem)?.get(1).map(|number| number.as_str())
}

/// The id of each plan, from the names of their files; all differ, also where case does not count.
pub(super) fn lane_ids(names: &[&str]) -> Vec<String> {
    let stems: Vec<String> = names.iter().map(|name| stem(name).unwrap_or_else(|| without_extension(name))).collect();
    let short: Vec<String> = stems.iter().map(|stem| canonical(stem).unwrap_or(stem).to_owned()).collect();
    let mut counts = HashMap::new();
    for id in &short {
        *counts.entry(normal(id)).or_insert(0) += 1;
    }
    let mut taken = HashSet::new();
    let mut ids = Vec::with_capacity(names.len());
    for (at, (short, stem)) in short.iter().zip(&stems).enumerate() {
        let full = without_extension(names[at]);
        let wished = if counts[&normal(short)] == 1 { short } else { stem };
        let numbered = (at + 1..).map(|number| format!("plan-{number}"));
        let mut tries = [wished, stem, &full].into_iter().filter_map(|name| as_id(name)).chain(numbered);
        let id = tries.find(|id| !taken.contains(&id.to_lowercase())).unwrap_or_default();
        taken.insert(id.to_lowercase());
        ids.push(id);
    }
    ids
}

fn without_extension(name: &str) -> String {
    name.rsplit_once('.').map_or(name, |(base, _)| base).to_owned()
}

/// Words for the slug of a directory: `02-xml-parser` is `Xml parser`.
pub(super) fn title_of(directory: &str) -> Option<String> {
    let slug = directory.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '_'));
    let words = slug.split(['-', '_', ' ']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let first = words.chars().next()?;
    Some(first.to_uppercase().chain(words.chars().skip(1)).collect())
}

/// A plan of a phase, from its name and the names beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanBeside {
    /// The name of its file.
    pub name: String,
    /// The id of its lane where the whole directory is read.
    pub id: String,
    /// Whether a SUMMARY of it lies beside it.
    pub is_done: bool,
}

/// The plans among the names of a directory's files, in the order of their names.
pub fn plans_beside(names: &[String]) -> Vec<PlanBeside> {
    let mut plans: Vec<&str> = names.iter().map(String::as_str).filter(|name| is_plan_name(name)).collect();
    plans.sort_unstable();
    plans.dedup();
    let ids = lane_ids(&plans);
    let is_done = |name: &str, id: &str| summary_of(name, id, names).is_some();
    let plan = |(name, id): (&str, String)| PlanBeside { name: name.to_owned(), is_done: is_done(name, &id), id };
    plans.into_iter().zip(ids).map(plan).collect()
}

/// Whether the plan called `name` has a SUMMARY among the files beside it, as a reader of the directory sees it.
pub fn plan_is_done(name: &str, beside: &[String]) -> bool {
    plans_beside(beside).iter().any(|plan| plan.name == name && plan.is_done)
}

/// The SUMMARY of the plan called `name` among the files beside it.
pub(super) fn summary_of<'a>(name: &str, id: &str, beside: &'a [String]) -> Option<&'a str> {
    let summary = |plan: &str| {
        let word = plan.to_ascii_uppercase().rfind("PLAN")?;
        Some(format!("{}SUMMARY{}", &plan[..word], &plan[word + 4..]))
    };
    let wanted = [summary(name), Some(format!("{id}-SUMMARY.md"))];
    let is_it = |file: &&String| wanted.iter().flatten().any(|wanted| wanted.eq_ignore_ascii_case(file));
    beside.iter().find(is_it).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_stem_is_read_from_file_name() {
        let cases = [
            ("01-02-PLAN.md", Some("01-02")),
            ("07.1-01-PLAN.md", Some("07.1-01")),
            ("05-PLAN.md", Some("05")),
            ("PLAN.md", Some("")),
            ("01-PLAN-03.md", Some("01-03")),
            ("PLAN-02.md", Some("02")),
            ("260411-uf3-PLAN.md", Some("260411-uf3")),
            ("auth-02b-PLAN.md", Some("auth-02b")),
            ("01-01-plan.md", Some("01-01")),
            ("09-PLAN-VERIFY.md", None),
            ("PLAN-REVIEW.md", None),
            ("01-01-PLAN.old.md", None),
            ("01-01-SUMMARY.md", None),
            ("test-plan.md", None),
            ("EXPLANATION.md", None),
            ("01-01-PLAN.txt", None),
            ("é.md", None),
            ("", None),
        ];
        for (name, expected) in cases {
            assert_eq!(stem(name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn lane_ids_are_short_valid_and_unique() {
        let ids = |names: &[&str]| lane_ids(names);
        assert_eq!(ids(&["01-01-setup-PLAN.md", "01-02-PLAN.md"]), ["01-01", "01-02"]);
        assert_eq!(ids(&["01-01-a-PLAN.md", "01-01-b-PLAN.md"]), ["01-01-a", "01-01-b"]);
        assert_eq!(ids(&["01-02-PLAN.md", "01-PLAN-02.md"]), ["01-02", "01-PLAN-02"]);
        assert_eq!(ids(&["PLAN.md"]), ["PLAN"]);
        assert_eq!(ids(&["계획-PLAN.md", "設計-PLAN.md"]), ["PLAN", "plan-2"]);
        assert_eq!(ids(&["2026-04-11-tidy-PLAN.md"]), ["2026-04-11-tidy"]);
        assert_eq!(ids(&["a..b-PLAN.md", "-x.lock-PLAN.md"]), ["a.b", "x"]);
        assert!(ids(&[&format!("{}-PLAN.md", "long-".repeat(40))])[0].len() <= 64);
    }

    #[test]
    fn summary_by_name_or_id_marks_plan_done() {
        let cases: &[(&str, &[&str], bool)] = &[
            ("01-01-PLAN.md", &["01-01-SUMMARY.md"], true),
            ("01-01-plan.md", &[], false),
            ("01-01-plan.md", &["01-01-SUMMARY.md"], true),
            ("01-01-setup-PLAN.md", &["01-01-SUMMARY.md"], true),
            ("01-01-setup-PLAN.md", &["01-01-setup-SUMMARY.md"], true),
            ("PLAN.md", &["PLAN-SUMMARY.md"], true),
            ("PLAN.md", &["SUMMARY.md"], true),
            ("01-01-a-PLAN.md", &["01-01-b-PLAN.md", "01-01-SUMMARY.md"], false),
            ("01-01-PLAN.md", &["01-02-SUMMARY.md"], false),
        ];
        for (name, others, expected) in cases {
            let beside: Vec<String> = others.iter().chain([name]).map(|&name| name.to_owned()).collect();
            assert_eq!(plan_is_done(name, &beside), *expected, "{name} beside {others:?}");
        }
    }
}
