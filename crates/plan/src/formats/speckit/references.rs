//! What a text about order names: phases, user stories, tasks.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reference {
    /// By its number, as it is written: `3`, `3.1`, `N`.
    Phase(String),
    /// `Phase 3+`
    PhasesFrom(u32),
    Story(u32),
    Task(String),
    Setup,
    Foundation,
    Polish,
    AllStories,
}

static REFERENCE: LazyLock<Regex> = pattern!(concat!(
    r"(?i)(?P<all>\b(?:all|any|every|each)\s+(?:(?:of|the|desired|required|planned|other|previous|prior|preceding|selected|core|needed)\s+)*",
    r"(?:user[\s-]+stor(?:ies|y)|stor(?:ies|y)|features?|phases?)\b|\b(?:all|everything)(?:\s+(?:of\s+the\s+)?above)?\s*\.?\s*$",
    r"|\b(?:selected|desired|targeted|chosen|implemented|whichever)\s+(?:user\s+)?stories\b",
    r"|すべてのユーザーストーリー|全ての?ユーザーストーリー|所有\s*(?:user\s+stories|用[户戶]故事|使用者故事)|todas as hist[oó]rias|todas las historias)",
    r"|(?P<phase>\bphases?|\bfases?|フェーズ|阶段)(?:\s*#?(?P<number>\d+(?:\.\d+)?)(?P<more>\+)?|\s+(?P<letter>(?-i:[A-Z])\b))",
    r"|(?P<story>\b(?:user\s+)?stor(?:y|ies)|\bus|ユーザーストーリー|用户故事|hist[oó]rias?(?: de usu[aá]rio)?)\s*[-#]?(?P<which>\d+)",
    r"|(?P<setup>\bset-?up\b|セットアップ|\bconfigura(?:ção|ción)\b)",
    r"|(?P<foundation>\bfoundation(?:al|s)?\b|基盤|基础|基礎|\bfunda(?:cional|mentos?)\b)",
    r"|(?P<polish>\bpolish\b|仕上げ|打磨)",
    r"|\b(?P<task>T\d{3,5}[a-z]?)\b",
));

static RANGE: LazyLock<Regex> = pattern!(r"(?i)^(?:\s?[–~〜-]\s?|\s+(?:to|through)\s+)(?:us|phase\s*)?(\d{1,4})\b");
static LIST: LazyLock<Regex> =
    pattern!(r"(?i)^(?:\s*(?:[,/&+、]|\band\b|\bor\b|と|和))+\s*(?:us|(?:user )?story|phase)?\s*(\d{1,4})\b");

/// The longest range of numbers that is taken for one.
const MAX_RANGE: u32 = 200;

/// What `text` names, in its order.
pub(super) fn references(text: &str) -> Vec<Reference> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(captures) = REFERENCE.captures_at(text, at) {
        let whole = captures.get_match();
        at = whole.end().max(at + 1);
        let named = |name: &str| captures.name(name).map(|part| part.as_str());
        if let Some(number) = named("number") {
            let mut from = number.parse().ok().filter(|_| named("more").is_some());
            // `2+3` names two.
            if from.is_some() && text[at..].starts_with(|c: char| c.is_ascii_digit()) {
                from = None;
                at -= 1;
            }
            found.push(from.map_or_else(|| Reference::Phase(number.to_owned()), Reference::PhasesFrom));
            at = more(text, at, number, &mut found, |number| Reference::Phase(number.to_string()));
        } else if let Some(letter) = named("letter") {
            found.push(Reference::Phase(letter.to_owned()));
        } else if let Some(number) = named("which") {
            found.extend(number.parse().map(Reference::Story));
            at = more(text, at, number, &mut found, Reference::Story);
        } else if let Some(task) = named("task") {
            found.push(Reference::Task(task.to_owned()));
        } else {
            let words = [
                ("all", Reference::AllStories),
                ("setup", Reference::Setup),
                ("foundation", Reference::Foundation),
                ("polish", Reference::Polish),
            ];
            found.extend(words.into_iter().find(|(name, _)| named(name).is_some()).map(|(_, word)| word));
        }
        while !text.is_char_boundary(at.min(text.len())) {
            at += 1;
        }
        if at >= text.len() {
            break;
        }
    }
    found
}

/// Adds the numbers behind a first one: `1-3`, `1, 2 and 4`. Returns where they end.
fn more(
    text: &str,
    mut at: usize,
    first: &str,
    found: &mut Vec<Reference>,
    reference: impl Fn(u32) -> Reference,
) -> usize {
    let mut last: Option<u32> = first.parse().ok();
    while let Some(from) = last {
        let rest = &text[at..];
        let (next, is_range) = match (RANGE.captures(rest), LIST.captures(rest)) {
            (Some(range), _) => (range, true),
            (None, Some(list)) => (list, false),
            _ => break,
        };
        let number: u32 = next[1].parse().unwrap_or(0);
        let numbers = if is_range { from + 1..=number.min(from + MAX_RANGE) } else { number..=number };
        found.extend(numbers.map(&reference));
        at += next[0].len();
        last = Some(number);
    }
    at
}

/// The user stories that a title names.
pub(super) fn stories(title: &str) -> BTreeSet<u32> {
    let story = |reference| match reference {
        Reference::Story(number) => Some(number),
        _ => None,
    };
    references(title).into_iter().filter_map(story).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_lists_and_ranges_are_read() {
        use Reference::{AllStories, Foundation, Phase, PhasesFrom, Setup, Story, Task};
        let phase = |number: &str| Phase(number.to_owned());
        let cases = [
            ("US1 (Sidebar) and US3", vec![Story(1), Story(3)]),
            ("User Stories 2-4", vec![Story(2), Story(3), Story(4)]),
            ("User Story 1 & 2 — x", vec![Story(1), Story(2)]),
            ("US1/US2, US4", vec![Story(1), Story(2), Story(4)]),
            ("Phases 3 to 5", vec![phase("3"), phase("4"), phase("5")]),
            ("Phase 1/2", vec![phase("1"), phase("2")]),
            ("Phase 3+", vec![PhasesFrom(3)]),
            ("Phases 2+3", vec![phase("2"), phase("3")]),
            ("all user-story phases", vec![AllStories]),
            ("all.", vec![AllStories]),
            ("all of it", vec![]),
            ("whichever user stories are implemented", vec![AllStories]),
            ("其他所有 User Stories", vec![AllStories]),
            ("Phase N, Phase 3.2", vec![phase("N"), phase("3.2")]),
            ("all desired user stories", vec![AllStories]),
            ("Setup, then Foundational", vec![Setup, Foundation]),
            ("after US1 T018", vec![Story(1), Task("T018".to_owned())]),
            ("ユーザーストーリー2 と 基盤", vec![Story(2), Foundation]),
            ("status, bus 3, phased", vec![]),
        ];
        for (text, expected) in cases {
            assert_eq!(references(text), expected, "{text}");
        }
    }

    #[test]
    fn huge_ranges_are_bounded() {
        assert!(references("US1-9999").len() < 300);
        assert_eq!(references("US99999999999"), []);
    }
}
