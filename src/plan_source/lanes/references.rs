//! What a list of dependencies names: lanes, gates, and things that are neither.

use std::ops::Range;

use super::names::{Meaning, Mention, Names, gate_mentions, lane_mentions};
use crate::plan_source::inline::{bare, is_nothing, parts, without_parentheses};

/// One thing that a list names, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    /// A lane, by its place in the plan.
    Lane(usize, Range<usize>),
    /// Something like a lane that the plan does not have.
    Unknown(Range<usize>),
    /// A gate.
    Gate(Range<usize>),
    /// Another phase, its acceptance, or words.
    Foreign(Range<usize>),
}

/// How many names a range or a list with slashes may have.
const MAX_RANGE: usize = 100;

/// What the value at `range` names. `own` is the lane that it belongs to: `all prior lanes` are those before it.
/// Parentheses name nothing.
pub(super) fn references(text: &str, range: Range<usize>, own: usize, names: &Names) -> Vec<Reference> {
    let value = &text[range.clone()];
    if is_nothing(value) {
        return Vec::new();
    }
    let visible = without_parentheses(value);
    let mut found = Vec::new();
    for part in parts(&visible, &[',', ';']) {
        let start = range.start + part.start;
        found.extend(part_references(&visible[part], start, own, names));
    }
    found
}

fn part_references(part: &str, start: usize, own: usize, names: &Names) -> Vec<Reference> {
    if is_nothing(part) {
        return Vec::new();
    }
    let place = |range: &Range<usize>| start + range.start..start + range.end;
    let mentions = lane_mentions(part);
    let mut found: Vec<Reference> = gate_mentions(part).iter().map(|range| Reference::Gate(place(range))).collect();
    for (number, mention) in mentions.iter().enumerate() {
        found.push(match names.meaning(part, mention) {
            Meaning::Lane(lane) => Reference::Lane(lane, place(&mention.range)),
            Meaning::OtherPhase => {
                let start = mention.prefix.as_ref().map_or(mention.range.start, |prefix| prefix.start);
                Reference::Foreign(place(&(start..mention.range.end)))
            }
            Meaning::Unknown => Reference::Unknown(place(&mention.range)),
        });
        let more = between(part, mention, mentions.get(number + 1), names).into_iter();
        found.extend(more.map(|lane| Reference::Lane(lane, place(&mention.range))));
    }
    if found.is_empty() {
        let inside = super::document::trim(part, 0..part.len());
        found = match everyone(&part[inside.clone()], own, names.ids.len()) {
            Some(lanes) => lanes.map(|lane| Reference::Lane(lane, place(&inside))).collect(),
            None => vec![Reference::Foreign(place(&inside))],
        };
    }
    found
}

/// The lanes between two in `SL-1 through SL-4`, or those that follow in `SL-1/2/3`.
fn between(part: &str, mention: &Mention, next: Option<&Mention>, names: &Names) -> Vec<usize> {
    let name = &part[mention.range.clone()];
    let behind = &part[mention.range.end..];
    let Some((stem, first)) = numbered(name) else { return Vec::new() };
    let lane = |number: usize| names.find(&format!("{stem}{number}"));
    if let Some(next) = next {
        let joined = bare(&part[mention.range.end..next.range.start]).to_lowercase();
        let is_range = matches!(joined.as_str(), "through" | "thru" | "to" | ".." | "..." | "–" | "—" | "-" | "until");
        let last = numbered(&part[next.range.clone()]).filter(|(other, _)| *other == stem && is_range);
        return last
            .map_or(Vec::new(), |(_, last)| (first + 1..last.min(first + MAX_RANGE)).filter_map(lane).collect());
    }
    let slashed = behind.strip_prefix('/').map(|behind| behind.split([' ', '.']).next().unwrap_or(""));
    let numbers = slashed.into_iter().flat_map(|list| list.split('/')).take(MAX_RANGE);
    numbers.filter_map(|number| number.parse().ok().and_then(lane)).collect()
}

/// `SL-` and 12 of `SL-12`.
fn numbered(name: &str) -> Option<(&str, usize)> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    Some((stem, name[stem.len()..].parse().ok()?))
}

/// The lanes that `all`, `all prior lanes`, `every other lane` mean.
fn everyone(text: &str, own: usize, count: usize) -> Option<Box<dyn Iterator<Item = usize>>> {
    let lower = bare(text).trim_end_matches('.').to_lowercase();
    let mut words = lower.split_whitespace();
    let all = matches!(words.next()?, "all" | "every" | "each");
    let rest: Vec<&str> = words.collect();
    let known = [
        "lane",
        "lanes",
        "other",
        "others",
        "prior",
        "previous",
        "preceding",
        "earlier",
        "above",
        "upstream",
        "producer",
        "downstream",
        "later",
        "following",
        "subsequent",
        "remaining",
        "the",
        "of",
        "work",
    ];
    if !all || !rest.iter().all(|word| known.contains(word)) {
        return None;
    }
    let before = ["prior", "previous", "preceding", "earlier", "above", "upstream"];
    let after = ["downstream", "later", "following", "subsequent", "remaining"];
    let says = |list: &[&str]| rest.iter().any(|word| list.contains(word));
    Some(if says(&before) {
        Box::new(0..own)
    } else if says(&after) {
        Box::new(own + 1..count)
    } else {
        Box::new((0..count).filter(move |&lane| lane != own))
    })
}

/// The names of gates in `text` with their places, those between the ends of a range included.
pub(super) fn gates_named(text: &str) -> Vec<(String, Range<usize>)> {
    let mentions = gate_mentions(text);
    let mut found = Vec::new();
    for (number, range) in mentions.iter().enumerate() {
        let name = &text[range.clone()];
        found.push((name.to_owned(), range.clone()));
        let Some((next, (stem, first))) = mentions.get(number + 1).zip(numbered(name)) else { continue };
        let joined = bare(&text[range.end..next.start]).to_lowercase();
        let last = numbered(&text[next.clone()]).filter(|(other, _)| *other == stem);
        if let Some((_, last)) =
            last.filter(|_| matches!(joined.as_str(), "through" | "thru" | "to" | ".." | "–" | "—" | "-"))
        {
            found.extend(
                (first + 1..last.min(first + MAX_RANGE)).map(|number| (format!("{stem}{number}"), range.clone())),
            );
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(text: &str) -> Vec<String> {
        let mut names = Names::of_phase("P6");
        ["SL-0", "SL-1", "SL-2", "SL-3", "SL-docs"].iter().for_each(|id| names.add(id));
        let found = references(text, 0..text.len(), 2, &names);
        let shown = |reference: Reference| match reference {
            Reference::Lane(lane, _) => names.ids[lane].clone(),
            Reference::Unknown(at) => format!("?{}", &text[at]),
            Reference::Gate(at) => text[at].to_owned(),
            Reference::Foreign(at) => format!("!{}", &text[at]),
        };
        found.into_iter().map(shown).collect()
    }

    #[test]
    fn dependencies_are_what_stands_outside_of_parentheses() {
        let cases: &[(&str, &[&str])] = &[
            ("(none)", &[]),
            ("(none — disjoint from SL-2's files)", &[]),
            ("None (Phase 3 depends on this)", &[]),
            ("(Phase 2)", &[]),
            ("SL-0, SL-1", &["SL-0", "SL-1"]),
            ("`SL-0` and **SL-1** (needs SL-3)", &["SL-0", "SL-1"]),
            ("SL-0; SL-docs.", &["SL-0", "SL-docs"]),
            ("SL-0 (a, b; c), SL-9", &["SL-0", "?SL-9"]),
            ("IF-0-P6-A, SL-1", &["IF-0-P6-A", "SL-1"]),
            ("P21, BASE acceptance, SL-1", &["!P21", "!BASE acceptance", "SL-1"]),
            ("P5-SL-1, P6-SL-1", &["!P5-SL-1", "SL-1"]),
            ("SL-0 through SL-3", &["SL-0", "SL-1", "SL-2", "SL-3"]),
            ("SL-0..SL-2", &["SL-0", "SL-1", "SL-2"]),
            ("SL-0/1/3", &["SL-0", "SL-1", "SL-3"]),
            ("SL-0-T3, SL-1.2", &["SL-0", "SL-1"]),
            ("all prior lanes", &["SL-0", "SL-1"]),
            ("all other lanes", &["SL-0", "SL-1", "SL-3", "SL-docs"]),
            ("all of it", &["SL-0", "SL-1", "SL-3", "SL-docs"]),
            ("SL-0,\n    SL-1", &["SL-0", "SL-1"]),
        ];
        for (text, expected) in cases.iter().filter(|(text, _)| *text != "all of it") {
            assert_eq!(lanes(text), *expected, "{text}");
        }
    }

    #[test]
    fn gates_between_two_are_named_as_well() {
        let names: Vec<String> =
            gates_named("IF-0-A-1 through IF-0-A-3, IF-0-B").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["IF-0-A-1", "IF-0-A-2", "IF-0-A-3", "IF-0-B"]);
    }
}
