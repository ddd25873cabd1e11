//! Roadmaps: which phases follow each other. Every phase has a plan of its own; a roadmap says in which order.

use std::sync::LazyLock;

use regex::Regex;

use super::markdown::unfenced_lines;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoadmapPhase {
    /// For example `3` or `24.1`.
    pub number: String,
    pub title: String,
    /// The short name in parentheses behind the title, for example `BOOTCORE`.
    pub alias: Option<String>,
    /// Whether it has a ticked box.
    pub done: bool,
}

/// The phases of a roadmap in its order; empty where the text is none: its heading says `roadmap`, and it names phases
/// in headings or in a list with boxes. A phase that is named again counts once, as it is named last with a box.
pub fn phases(text: &str) -> Vec<RoadmapPhase> {
    let heading = text.lines().map(str::trim).find(|line| line.starts_with("# "));
    if !heading.is_some_and(|line| line.to_lowercase().contains("roadmap")) {
        return Vec::new();
    }
    let mut found: Vec<RoadmapPhase> = Vec::new();
    for (phase, boxed) in unfenced_lines(text).filter_map(|line| phase(line.text.trim())) {
        match found.iter_mut().find(|known| known.number == phase.number) {
            Some(known) if boxed => *known = RoadmapPhase { alias: phase.alias.or(known.alias.take()), ..phase },
            Some(known) => known.alias = known.alias.take().or(phase.alias),
            None => found.push(phase),
        }
    }
    found
}

/// A heading or a list item with a box that names a phase: what the box holds, the number, and what follows it.
static PHASE: LazyLock<Regex> = pattern!(r"^(?:##+|[-*] \[(.)\])\s*[*_]*[Pp]hase \s*([0-9][A-Za-z0-9.]*)[ :—–*-]*(.*)");

/// The phase that a line names, and whether it has a box.
fn phase(line: &str) -> Option<(RoadmapPhase, bool)> {
    let found = PHASE.captures(line)?;
    let mark = found.get(1).map(|mark| mark.as_str());
    let title = found[3].split("**").next().unwrap_or_default().trim();
    let phase = RoadmapPhase {
        number: found[2].trim_end_matches('.').to_owned(),
        title: title.to_owned(),
        alias: alias(title),
        done: mark.is_some_and(|mark| mark.eq_ignore_ascii_case("x")),
    };
    Some((phase, mark.is_some()))
}

/// A name that is the same in every spelling of its numbers: `1-2` and `01-02`, `02.1` and `2.1`.
pub fn normal(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        let begins = !normal.ends_with(|c: char| c.is_ascii_digit());
        if c != '0' || !begins || !rest.peek().is_some_and(char::is_ascii_digit) {
            normal.extend(c.to_lowercase());
        }
    }
    normal
}

/// `24.1` of a directory's name like `24.1-user-forms`, as it is written.
pub fn number_of(directory: &str) -> Option<&str> {
    let end = directory.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(directory.len());
    directory.starts_with(|c: char| c.is_ascii_digit()).then(|| directory[..end].trim_end_matches('.'))
}

/// How many words of a phase's title the name of a directory has, and how many more the name has: the directory of the
/// phase is the one with the most of the first and the least of the second.
pub fn resemblance(directory: &str, title: &str) -> (usize, usize) {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let slug = directory.strip_prefix(number_of(directory).unwrap_or_default()).unwrap_or(directory);
    let (slug, title) = (words(slug), words(title));
    let common = slug.iter().filter(|word| title.contains(word)).count();
    (common, slug.len() - common)
}

/// `BOOTCORE` of `Bootstrap And Core Contracts (BOOTCORE)`.
fn alias(title: &str) -> Option<String> {
    let inside = title.strip_suffix(')')?.rsplit_once('(')?.1;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let says_name = !inside.is_empty() && inside.chars().all(is_name) && inside.chars().any(|c| c.is_ascii_uppercase());
    says_name.then(|| inside.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases_of(text: &str) -> Vec<String> {
        let word = |phase: &RoadmapPhase| {
            let (alias, done) = (phase.alias.as_deref().unwrap_or("-"), if phase.done { "done" } else { "open" });
            format!("{} {} {alias} {done}", phase.number, phase.title)
        };
        phases(text).iter().map(word).collect()
    }

    #[test]
    fn roadmap_phases_are_headings_or_boxes() {
        let list =
            "# Roadmap: X\n- [x] **Phase 1: Base** - all of it\n- [ ] Phase 2.1: More (1/2 plans)\n- Phase 3: no\n";
        assert_eq!(phases_of(list), ["1 Base - done", "2.1 More (1/2 plans) - open"]);
        let headings = "# Phase roadmap v1\n### Phase 1 — First Things (FIRST)\n## Phase 2 - Then\n#### Phases\n";
        assert_eq!(phases_of(headings), ["1 First Things (FIRST) FIRST open", "2 Then - open"]);
    }

    #[test]
    fn leading_zeros_are_normalized() {
        for (one, other) in
            [("01-02", "1-2"), ("07.1-01", "7.1-1"), ("AUTH-02b", "auth-2B"), ("00", "0"), ("010", "10")]
        {
            assert_eq!(normal(one), normal(other));
        }
        assert_ne!(normal("10-1"), normal("1-1"));
        assert_ne!(normal("01-10"), normal("01-1"));
    }

    #[test]
    fn repeated_phase_counts_once_with_last_box() {
        let text = "# Roadmap\n- [ ] Phase 1: A\n- [x] **Phase 1: B**\n### Phase 1: C (ALIAS)\n";
        assert_eq!(phases_of(text), ["1 B ALIAS done"]);
    }

    #[test]
    fn resemblance_compares_directory_with_title() {
        let numbers = ["07-q", "02.1-x", "3", "12_a", "4a-x", "5.-x", "x-1", ""].map(number_of);
        let expected = [Some("07"), Some("02.1"), Some("3"), Some("12"), Some("4a"), Some("5"), None, None];
        assert_eq!(numbers, expected);
        assert_eq!(resemblance("03-user-forms", "User forms & more (UF)"), (2, 0));
        assert_eq!(resemblance("03-old-forms", "User Forms"), (1, 1));
        assert_eq!(resemblance("03", "Forms 03"), (0, 0));
    }

    #[test]
    fn fenced_or_foreign_text_names_no_phase() {
        assert!(phases("# P1: Name\n### Phase 1: A\n").is_empty());
        assert!(phases("# Roadmap\n```\n## Phase 1: A\n```\n").is_empty());
        assert!(phases("# Roadmap\n- [").is_empty() && phases("# Roadmap\n- [é").is_empty());
    }
}
