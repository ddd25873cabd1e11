//! What a list of dependencies names: lanes, gates, and things that are neither.

use std::ops::Range;

use super::names::{Meaning, Mention, Names, gate_mentions, lane_mentions};
use crate::command::is_in;
use crate::markdown::inline::{bare, is_nothing, parts, without_parentheses};
use crate::markdown::trim;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reference {
    /// A lane, by its place in the plan.
    Lane(usize),
    /// Something like a lane that the plan does not have.
    Unknown,
    Gate,
    /// Another phase, its acceptance, or words.
    Foreign,
}

/// How many names a range or a list with slashes may have.
const MAX_RANGE: usize = 100;

/// What the value at `range` names, and where. `own` is the lane that it belongs to: `all prior lanes` are those before
/// it. Parentheses name nothing.
pub(super) fn references(text: &str, range: Range<usize>, own: usize, names: &Names) -> Vec<(Reference, Range<usize>)> {
    let value = &text[range.clone()];
    if is_nothing(value) {
        return Vec::new();
    }
    let visible = without_parentheses(value);
    let mut found = Vec::new();
    for part in parts(&visible, &[',', ';']) {
        let start = range.start + part.start;
        let place = |(reference, at): (_, Range<usize>)| (reference, start + at.start..start + at.end);
        found.extend(part_references(&visible[part], own, names).into_iter().map(place));
    }
    found
}

fn part_references(part: &str, own: usize, names: &Names) -> Vec<(Reference, Range<usize>)> {
    if is_nothing(part) {
        return Vec::new();
    }
    let mentions = lane_mentions(part);
    let mut found: Vec<_> = gate_mentions(part).into_iter().map(|range| (Reference::Gate, range)).collect();
    for (number, mention) in mentions.iter().enumerate() {
        let at = mention.range.clone();
        found.push(match names.meaning(part, mention) {
            Meaning::Lane(lane) => (Reference::Lane(lane), at),
            Meaning::OtherPhase => {
                let start = mention.prefix.as_ref().map_or(at.start, |prefix| prefix.start);
                (Reference::Foreign, start..at.end)
            }
            Meaning::Unknown => (Reference::Unknown, at),
        });
        let more = between(part, mention, mentions.get(number + 1), names).into_iter();
        found.extend(more.map(|lane| (Reference::Lane(lane), mention.range.clone())));
    }
    if found.is_empty() {
        let inside = trim(part, 0..part.len());
        found = match all_lanes(&part[inside.clone()], own, names.ids.len()) {
            Some(lanes) => lanes.map(|lane| (Reference::Lane(lane), inside.clone())).collect(),
            None => vec![(Reference::Foreign, inside)],
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
        return range_to(part, mention.range.end, &next.range, stem, first).filter_map(lane).collect();
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
fn all_lanes(text: &str, own: usize, count: usize) -> Option<impl Iterator<Item = usize>> {
    const BEFORE: &str = "prior previous preceding earlier above upstream";
    const AFTER: &str = "downstream later following subsequent remaining";
    let lower = bare(text).trim_end_matches('.').to_lowercase();
    let (first, rest) = lower.split_once(' ').unwrap_or((&lower, ""));
    let says = |list: &str| rest.split_whitespace().any(|word| is_in(list, word));
    let known = |word: &str| is_in("lane lanes other others producer the of work", word) || is_in(BEFORE, word);
    if !is_in("all every each", first) || !rest.split_whitespace().all(|word| known(word) || is_in(AFTER, word)) {
        return None;
    }
    let lanes = match (says(BEFORE), says(AFTER)) {
        (true, _) => 0..own,
        (_, true) => own + 1..count,
        _ => 0..count,
    };
    Some(lanes.filter(move |&lane| lane != own))
}

/// The names of gates in `text` with their places, those between the ends of a range included.
pub(super) fn gates_named(text: &str) -> Vec<(String, Range<usize>)> {
    let mentions = gate_mentions(text);
    let mut found = Vec::new();
    for (number, range) in mentions.iter().enumerate() {
        let name = &text[range.clone()];
        found.push((name.to_owned(), range.clone()));
        let Some((stem, first)) = numbered(name) else { continue };
        let more = mentions.get(number + 1).map_or(0..0, |next| range_to(text, range.end, next, stem, first));
        found.extend(more.map(|number| (format!("{stem}{number}"), range.clone())));
    }
    found
}

/// The numbers between `first` and that of the name at `next`, where the text from `end` says that it is a range.
fn range_to(text: &str, end: usize, next: &Range<usize>, stem: &str, first: usize) -> Range<usize> {
    let joined = bare(&text[end..next.start]).to_lowercase();
    let is_range = is_in("through thru to .. ... – — - until", &joined);
    let last = numbered(&text[next.clone()]).filter(|(other, _)| *other == stem && is_range);
    last.map_or(0..0, |(_, last)| first + 1..last.min(first + MAX_RANGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes(text: &str) -> Vec<String> {
        let mut names = Names::of_phase("P6");
        ["SL-0", "SL-1", "SL-2", "SL-3", "SL-docs"].iter().for_each(|id| names.add(id));
        let found = references(text, 0..text.len(), 2, &names);
        let shown = |(reference, at): (Reference, Range<usize>)| match reference {
            Reference::Lane(lane) => names.ids[lane].clone(),
            Reference::Unknown => format!("?{}", &text[at]),
            Reference::Gate => text[at].to_owned(),
            Reference::Foreign => format!("!{}", &text[at]),
        };
        found.into_iter().map(shown).collect()
    }

    #[test]
    fn parenthesized_dependencies_are_ignored() {
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
    fn gate_range_includes_gates_between() {
        let names: Vec<String> =
            gates_named("IF-0-A-1 through IF-0-A-3, IF-0-B").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["IF-0-A-1", "IF-0-A-2", "IF-0-A-3", "IF-0-B"]);
    }
}
