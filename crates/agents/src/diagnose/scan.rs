//! Applies the rules to lines.

use lanewright_model::Finding;
use regex::Regex;

use super::rules::{PatternRole, Rule, Rules};

/// How many lines of a message are read after its first.
const MESSAGE_LINES: usize = 100;

/// How many bytes of a message a finding keeps.
const MESSAGE_BYTES: usize = 300;

/// A place in an output where a rule applies.
#[derive(Debug)]
pub(super) struct Hit<'r> {
    pub(super) rule: &'r Rule,
    /// What it complains about; absent where the rule only tells the class.
    pub(super) finding: Option<Finding>,
    /// How many complaints the tool says there are.
    pub(super) count: Option<usize>,
}

/// Every place in `sections` where a rule applies; no line counts for two rules.
pub(super) fn scan<'r>(rules: &'r Rules, sections: &[Vec<String>]) -> Vec<Hit<'r>> {
    let roles_in = |lines: &Vec<String>| lines.iter().map(|line| rules.roles_in(line)).collect();
    let roles: Vec<Vec<Vec<PatternRole>>> = sections.iter().map(roles_in).collect();
    let mut seen = vec![false; rules.rules.len()];
    for found in roles.iter().flatten().flatten() {
        if let PatternRole::Seen(number) = found {
            seen[*number] = true;
        }
    }
    let in_section = |(lines, roles): (&Vec<String>, &Vec<Vec<PatternRole>>)| scan_section(rules, &seen, lines, roles);
    let mut hits: Vec<Hit> = sections.iter().zip(&roles).flat_map(in_section).collect();
    let others_spoke = hits.iter().any(|hit| !rules.counts_alone_only(hit.rule));
    hits.retain(|hit| !(others_spoke && rules.counts_alone_only(hit.rule)));
    hits
}

fn scan_section<'r>(rules: &'r Rules, seen: &[bool], lines: &[String], roles: &[Vec<PatternRole>]) -> Vec<Hit<'r>> {
    let mut scan = Scan { rules, lines, roles, seen, above: vec![None; rules.rules.len()], region: None, free_from: 0 };
    (0..lines.len()).filter_map(|at| scan.step(at)).collect()
}

struct Scan<'r, 'l> {
    rules: &'r Rules,
    lines: &'l [String],
    roles: &'l [Vec<PatternRole>],
    /// For each rule whether what it wants somewhere is there.
    seen: &'l [bool],
    /// For each rule the last line that it wants above, until a blank one.
    above: Vec<Option<usize>>,
    /// The region of captured output that is being read.
    region: Option<usize>,
    /// The first line that no hit has taken yet.
    free_from: usize,
}

impl<'r, 'l> Scan<'r, 'l> {
    fn step(&mut self, at: usize) -> Option<Hit<'r>> {
        let found = &self.roles[at];
        self.region = self.region.filter(|region| !found.contains(&PatternRole::To(*region)));
        if self.lines[at].is_empty() {
            self.above.fill(None);
        }
        let mut hit = None;
        for &role in found {
            match role {
                PatternRole::From(region) if self.region.is_none() => self.region = Some(region),
                PatternRole::Above(number) if self.may_apply(number) => self.above[number] = Some(at),
                PatternRole::Line(number) if hit.is_none() && at >= self.free_from => hit = self.apply(number, at),
                _ => {}
            }
        }
        hit
    }

    /// Output that a tool captured holds anything; only that tool's own words count in it.
    fn may_apply(&self, number: usize) -> bool {
        let rule = &self.rules.rules[number];
        self.region.is_none_or(|region| self.rules.regions[region] == rule.tool)
            && (!rule.needs_seen() || self.seen[number])
    }

    fn apply(&mut self, number: usize, at: usize) -> Option<Hit<'r>> {
        let rule = &self.rules.rules[number];
        let message = self.message(number, at);
        let is_with = |found: &Vec<PatternRole>| found.contains(&PatternRole::With(number));
        let applies = self.may_apply(number)
            && !rule.excepts(&message[0])
            && (rule.above.is_none() || self.above[number].is_some())
            && (!rule.needs_with() || self.roles[at..at + message.len()].iter().any(is_with));
        if !applies {
            return None;
        }
        let (mut parts, mut used) = Parts::of_message(rule, message);
        if let (Some(pattern), Some(above)) = (&rule.above, self.above[number]) {
            parts.add(pattern, &self.lines[above]);
        }
        if rule.run {
            used += message[used..].iter().take_while(|line| rule.line.is_match(line)).count();
        }
        self.free_from = at + used;
        Some(Hit { rule, count: parts.number("count"), finding: parts.finding() })
    }

    /// The lines from `at` until what ends the rule's message: a blank one, unless the rule says otherwise.
    fn message(&self, number: usize, at: usize) -> &'l [String] {
        let until_blank = self.rules.rules[number].is_until_blank();
        let ends = |line: &usize| match until_blank {
            true => self.lines[*line].is_empty(),
            false => self.roles[*line].contains(&PatternRole::Until(number)),
        };
        let limit = self.lines.len().min(at + 1 + MESSAGE_LINES);
        &self.lines[at..(at + 1..limit).find(ends).unwrap_or(limit)]
    }
}

/// What the named groups of a rule's patterns hold; of those with the same name the first counts.
#[derive(Default)]
struct Parts(Vec<(String, String)>);

impl Parts {
    /// What the first line and those that the rule wants below it hold, and how many lines that took.
    fn of_message(rule: &Rule, message: &[String]) -> (Self, usize) {
        let (mut parts, mut used) = (Self::default(), 1);
        parts.add(&rule.line, &message[0]);
        for pattern in &rule.below {
            let is_meant = |line: &String| pattern.is_match(line) && !rule.excepts(line);
            let Some(below) = message[used..].iter().position(is_meant) else { continue };
            parts.add(pattern, &message[used + below]);
            used += below + 1;
        }
        (parts, used)
    }

    fn add(&mut self, pattern: &Regex, line: &str) {
        let Some(captures) = pattern.captures(line) else { return };
        for name in pattern.capture_names().flatten() {
            if let Some(part) = captures.name(name).filter(|_| self.get(name).is_none()) {
                self.0.push((name.to_owned(), part.as_str().trim().to_owned()));
            }
        }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, part)| part.as_str())
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.get(name)?.parse().ok()
    }

    fn finding(&self) -> Option<Finding> {
        let (file, message) = (self.get("file"), self.get("message"));
        let is_one = file.is_some() || message.is_some();
        let message = message.unwrap_or_default();
        is_one.then(|| Finding {
            file: file.map(str::to_owned),
            line: self.number("line"),
            column: self.number("column"),
            message: message[..message.floor_char_boundary(MESSAGE_BYTES)].to_owned(),
        })
    }
}
