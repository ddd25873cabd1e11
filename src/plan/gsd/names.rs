//! What plans are called: files, lanes, phases, and the ways in which a plan names another.

use crate::plan::ids::as_id;
use crate::plan::roadmap::normal;

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

/// Where the word PLAN stands, alone, in a file's name. In small letters it counts after a number only:
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

/// Whether `path` is a file that Lanekeeper alone changes while a phase runs.
pub(super) fn is_kept_by_lanekeeper(path: &str) -> bool {
    let path = path.trim_start_matches(['@', '.', '/']);
    matches!(path, "planning/STATE.md" | "planning/ROADMAP.md" | "STATE.md" | "ROADMAP.md")
}

/// The last part of a path, and the one before it.
pub(super) fn file_and_directory(path: &str) -> (&str, Option<&str>) {
    let mut parts = path.rsplit(['/', '\\']);
    let file = parts.next().unwrap_or(path);
    (file, parts.next().filter(|directory| !matches!(*directory, "" | "." | "..")))
}

/// The number of a plan in a stem: `01-02` for `01-02-setup`. `None`: the stem as a whole is the plan's name.
pub(super) fn canonical(stem: &str) -> Option<&str> {
    let phase = numeral(stem)?;
    let plan = stem[phase..].strip_prefix('-')?;
    let end = phase + 1 + numeral(plan)?;
    // A date is no phase: `2026-04-11-cleanup`.
    let digits = stem.bytes().take_while(u8::is_ascii_digit).count();
    let whole = stem.len() == end || stem[end..].starts_with(['-', '_']);
    (whole && digits < 4).then_some(&stem[..end])
}

/// How long a number like `07`, `07.1` or `07a` at the beginning of `text` is.
fn numeral(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits(0);
    if end == 0 {
        return None;
    }
    while bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    let lettered = bytes.get(end).is_some_and(u8::is_ascii_alphabetic);
    let alone = bytes.get(end + 1).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    Some(if lettered && alone { end + 1 } else { end })
}

/// The id of each plan, from the names of their files; all differ, also where case does not count.
pub(super) fn lane_ids(names: &[&str]) -> Vec<String> {
    let stems: Vec<String> = names.iter().map(|name| stem(name).unwrap_or_else(|| without_extension(name))).collect();
    let short: Vec<String> = stems.iter().map(|stem| canonical(stem).unwrap_or(stem).to_owned()).collect();
    let mut counts = std::collections::HashMap::new();
    for id in &short {
        *counts.entry(normal(id)).or_insert(0) += 1;
    }
    let mut taken = std::collections::HashSet::new();
    let mut ids = Vec::with_capacity(names.len());
    for (at, (short, stem)) in short.iter().zip(&stems).enumerate() {
        let full = without_extension(names[at]);
        let wished = if counts[&normal(short)] == 1 { short } else { stem };
        let mut tries = [wished, stem, &full].into_iter().filter_map(|name| as_id(name));
        let id = tries.find(|id| !taken.contains(&id.to_lowercase()));
        let id = id.unwrap_or_else(|| numbered(at, &taken));
        taken.insert(id.to_lowercase());
        ids.push(id);
    }
    ids
}

fn without_extension(name: &str) -> String {
    let base = name.rsplit_once('.').map_or(name, |(base, _)| base);
    base.to_owned()
}

/// An id for a plan whose name gives none.
fn numbered(at: usize, taken: &std::collections::HashSet<String>) -> String {
    let mut number = at + 1;
    while taken.contains(&format!("plan-{number}")) {
        number += 1;
    }
    format!("plan-{number}")
}

/// Words for the slug of a directory: `02-xml-parser` is `Xml parser`.
pub(super) fn title_of(directory: &str) -> Option<String> {
    let slug = directory.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '_'));
    let words = slug.split(['-', '_', ' ']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let first = words.chars().next()?;
    Some(first.to_uppercase().chain(words.chars().skip(1)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_say_which_plan_they_are() {
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
    fn lanes_get_ids_that_are_short_valid_and_different() {
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
}
