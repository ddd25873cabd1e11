//! Names in running text: lanes (`SL-1`), their tasks (`SL-1.2`, `P1-SL-1-T2`) and gates (`IF-0-P1-NAME`).

use std::collections::HashMap;
use std::ops::Range;

/// A name of a lane or a task of one, as the text has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mention {
    /// From `SL-` on.
    pub(super) range: Range<usize>,
    /// The text right before it, for example the phase in `P1-SL-2`.
    pub(super) prefix: Option<Range<usize>>,
}

/// Every mention of a lane in `text`.
pub(super) fn lane_mentions(text: &str) -> Vec<Mention> {
    let mention = |range: Range<usize>| {
        let before = text[..range.start].trim_end_matches(['-', '/', '.']);
        let start = before.len() - before.bytes().rev().take_while(u8::is_ascii_alphanumeric).count();
        let joined = before.len() < range.start && start < before.len();
        Mention { prefix: joined.then_some(start..before.len()), range }
    };
    names(text, LANES).into_iter().map(mention).collect()
}

/// Every name of a gate in `text`.
pub(super) fn gate_mentions(text: &str) -> Vec<Range<usize>> {
    names(text, GATES)
}

/// What the names of lanes begin with.
pub(super) const LANES: &[&str] = &["SL-"];

/// What the names of gates begin with: of interfaces, of tests.
pub(super) const GATES: &[&str] = &["IF-", "TG-"];

/// The name of one of `kinds` that `text` begins with.
pub(super) fn name_at_start<'t>(text: &'t str, kinds: &[&str]) -> Option<&'t str> {
    let is_name = kinds.iter().any(|start| text.starts_with(start));
    is_name.then(|| &text[..name_length(text)]).filter(|name| name.len() > 3)
}

/// The name of one of `kinds` that the text at `range` begins with, bold or backticked, and what follows it.
pub(super) fn leading_name<'t>(text: &'t str, range: Range<usize>, kinds: &[&str]) -> Option<(Range<usize>, &'t str)> {
    let marks = |c: char| "*`_ ".contains(c);
    let plain = text[range.clone()].trim_start_matches(marks);
    let name = name_at_start(plain, kinds)?;
    let start = range.end - plain.len();
    Some((start..start + name.len(), plain[name.len()..].trim_start_matches(['*', '`', '_'])))
}

/// The names of `kinds` in `text` that are no part of a longer word or name.
fn names(text: &str, kinds: &[&str]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for kind in kinds {
        let mut end = 0;
        for (at, _) in text.match_indices(kind) {
            let inside_word = text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let length = name_length(&text[at..]);
            if at >= end && !inside_word && length > kind.len() {
                end = at + length;
                found.push(at..end);
            }
        }
    }
    found.sort_by_key(|range| range.start);
    found
}

fn name_length(text: &str) -> usize {
    let in_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let mut length = text.bytes().take_while(in_name).count();
    // `SL-1..SL-4` and `SL-1-SL-4` are ranges, `SL-1--SL-2` is an edge.
    for stop in ["..", "--", "-SL-"] {
        length = text[..length].find(stop).unwrap_or(length);
    }
    text[..length].trim_end_matches(['-', '.', '_']).len()
}

/// The lanes of a plan by all names that the text gives them.
#[derive(Debug, Default)]
pub(super) struct Names {
    at: HashMap<String, usize>,
    /// The lanes' ids in the order of the plan.
    pub(super) ids: Vec<String>,
    /// The phase, which may stand before a name.
    pub(super) phase: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Lane(usize),
    OtherPhase,
    Unknown,
}

impl Names {
    pub(super) fn of_phase(phase: &str) -> Self {
        Self { phase: phase.to_owned(), ..Self::default() }
    }

    /// Adds the next lane.
    pub(super) fn add(&mut self, id: &str) {
        self.ids.push(id.to_owned());
        self.alias(id, self.ids.len() - 1);
    }

    /// Lets `name` mean a lane too.
    pub(super) fn alias(&mut self, name: &str, lane: usize) {
        self.at.entry(name.to_lowercase()).or_insert(lane);
    }

    /// The lane of exactly that name, whatever its capitals.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.at.get(&name.to_lowercase()).copied()
    }

    /// The lane that `mention` means, by its own name or that of one of its tasks.
    pub(super) fn meaning(&self, text: &str, mention: &Mention) -> Meaning {
        let prefix = mention.prefix.clone().map(|range| &text[range]);
        if prefix.is_some_and(|prefix| looks_like_phase(prefix) && !prefix.eq_ignore_ascii_case(&self.phase)) {
            return Meaning::OtherPhase;
        }
        let name = &text[mention.range.clone()];
        let lane = self.find(name).or_else(|| self.find(without_task(name)?));
        lane.map_or(Meaning::Unknown, Meaning::Lane)
    }
}

/// `SL-1` of `SL-1.2`, `SL-1-T2`, `SL-API-03`.
fn without_task(name: &str) -> Option<&str> {
    let (lane, task) = name.rsplit_once(['.', '-'])?;
    let number = task.strip_prefix(['T', 't']).unwrap_or(task).trim_end_matches(|c: char| c.is_ascii_lowercase());
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) && lane.len() > 3).then_some(lane)
}

/// `P20`, `SEMANALYSIS`: words in a sentence do not look like this.
fn looks_like_phase(word: &str) -> bool {
    word.len() > 1
        && word.bytes().any(|byte| byte.is_ascii_uppercase())
        && !word.bytes().any(|b| b.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mentions(text: &str) -> Vec<&str> {
        lane_mentions(text).into_iter().map(|mention| &text[mention.range]).collect()
    }

    #[test]
    fn lane_names_end_at_word_boundaries() {
        assert_eq!(mentions("SL-1, SL-docs. `SL-A_b-2` XSL-3 SL-"), ["SL-1", "SL-docs", "SL-A_b-2"]);
        assert_eq!(mentions("SL-1..SL-4 SL-1.2 SL-0-T3"), ["SL-1", "SL-4", "SL-1.2", "SL-0-T3"]);
    }

    #[test]
    fn task_name_resolves_to_its_lane() {
        let mut names = Names::of_phase("P6");
        ["SL-1", "SL-12", "SL-API"].iter().for_each(|id| names.add(id));
        names.alias("SL-docs", 2);
        let cases = [
            ("SL-1", Meaning::Lane(0)),
            ("sl-api is no mention, SL-API is", Meaning::Lane(2)),
            ("SL-12.3", Meaning::Lane(1)),
            ("SL-1-T2", Meaning::Lane(0)),
            ("P6-SL-API-06", Meaning::Lane(2)),
            ("SL-DOCS", Meaning::Lane(2)),
            ("P5-SL-API", Meaning::OtherPhase),
            ("P5/SL-1", Meaning::OtherPhase),
            ("SL-2", Meaning::Unknown),
            ("SL-API-X", Meaning::Unknown),
        ];
        for (text, meaning) in cases {
            assert_eq!(names.meaning(text, &lane_mentions(text)[0]), meaning, "{text}");
        }
    }
}
