//! Whether two globs have a path in common, decided on finite automata.
//!
//! A glob is taken as the regular expression that the glob crate itself matches with, so that the answer is about
//! what is enforced when the plan runs.

use std::collections::{HashSet, VecDeque};

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::model::ownership::glob;

/// A nondeterministic automaton over bytes.
#[derive(Debug)]
pub(super) struct Automaton {
    states: Vec<State>,
    start: usize,
}

#[derive(Debug)]
enum State {
    /// Goes on where the next byte is in one of the ranges.
    Bytes(Vec<(u8, u8)>, usize),
    /// Goes on in any of the states without a byte.
    Fork(Vec<usize>),
    End,
}

impl Automaton {
    /// The paths that `pattern` matches and, with `below`, everything below them.
    ///
    /// # Errors
    /// Why the pattern is no glob.
    pub(super) fn new(pattern: &str, below: bool) -> Result<Self, String> {
        let compiled = glob(pattern).map_err(|error| error.kind().to_string())?;
        let mut parser = ParserBuilder::new().unicode(false).utf8(false).dot_matches_new_line(true).build();
        let hir = parser.parse(compiled.regex()).map_err(|_| "it is nested too deep".to_owned())?;
        let mut automaton = Self { states: vec![State::End], start: 0 };
        let end = if below { automaton.add_below(0) } else { 0 };
        automaton.start = automaton.add(&hir, end);
        Ok(automaton)
    }

    fn push(&mut self, state: State) -> usize {
        self.states.push(state);
        self.states.len() - 1
    }

    /// `end`, or a separator and anything before `end`.
    fn add_below(&mut self, end: usize) -> usize {
        let anything = self.add_loop(end, |automaton, again| automaton.push(State::Bytes(vec![(0, u8::MAX)], again)));
        let separator = self.push(State::Bytes(vec![(b'/', b'/')], anything));
        self.push(State::Fork(vec![end, separator]))
    }

    /// Any number of `body` before `next`.
    fn add_loop(&mut self, next: usize, body: impl FnOnce(&mut Self, usize) -> usize) -> usize {
        let fork = self.push(State::Fork(vec![next]));
        let body = body(self, fork);
        self.states[fork] = State::Fork(vec![body, next]);
        fork
    }

    /// Adds what leads through `hir` to `next`; the state to begin in.
    fn add(&mut self, hir: &Hir, next: usize) -> usize {
        match hir.kind() {
            // The only assertions are the ones at both ends.
            HirKind::Empty | HirKind::Look(_) => next,
            HirKind::Literal(literal) => {
                literal.0.iter().rev().fold(next, |next, &byte| self.push(State::Bytes(vec![(byte, byte)], next)))
            }
            HirKind::Class(class) => {
                let ranges = byte_ranges(class);
                self.push(State::Bytes(ranges, next))
            }
            HirKind::Capture(capture) => self.add(&capture.sub, next),
            HirKind::Concat(parts) => parts.iter().rev().fold(next, |next, part| self.add(part, next)),
            HirKind::Alternation(parts) => {
                let starts = parts.iter().map(|part| self.add(part, next)).collect();
                self.push(State::Fork(starts))
            }
            HirKind::Repetition(repetition) => {
                let optional = repetition.max.map_or(0, |max| max.saturating_sub(repetition.min));
                let mut start = match repetition.max {
                    None => self.add_loop(next, |automaton, again| automaton.add(&repetition.sub, again)),
                    Some(_) => next,
                };
                for _ in 0..optional {
                    let body = self.add(&repetition.sub, start);
                    start = self.push(State::Fork(vec![body, next]));
                }
                (0..repetition.min).fold(start, |next, _| self.add(&repetition.sub, next))
            }
        }
    }
}

fn byte_ranges(class: &Class) -> Vec<(u8, u8)> {
    match class {
        Class::Bytes(class) => class.iter().map(|range| (range.start(), range.end())).collect(),
        Class::Unicode(class) => {
            let byte = |c: char| u8::try_from(u32::from(c)).unwrap_or(u8::MAX);
            class.iter().map(|range| (byte(range.start()), byte(range.end()))).collect()
        }
    }
}

/// What is known after a search.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meeting {
    /// No path is in both.
    Never,
    /// This path, a short one, is in both.
    At(String),
    /// The search was given up.
    Unknown,
}

/// Where a search stands: a state of each automaton, and whether a name of the path begins here.
type Pair = (usize, usize, bool);

/// Looks for a path that both automata match. Each step takes one of `fuel`.
///
/// Only paths as git has them count: names that are not empty, separated by single `/`. Names that begin with a dot
/// are proposed only where there is no other.
pub(super) fn meet(left: &Automaton, right: &Automaton, fuel: &mut usize) -> Meeting {
    match search(left, right, false, fuel) {
        Meeting::Never => search(left, right, true, fuel),
        found => found,
    }
}

fn search(left: &Automaton, right: &Automaton, hidden: bool, fuel: &mut usize) -> Meeting {
    let start = (left.start, right.start, true);
    let mut search = Search { seen: HashSet::from([start]), steps: vec![(start, 0, None)], queue: VecDeque::from([0]) };
    while let Some(at) = search.queue.pop_front() {
        let Some(rest) = fuel.checked_sub(1) else { return Meeting::Unknown };
        *fuel = rest;
        let pair = search.steps[at].0;
        match (&left.states[pair.0], &right.states[pair.1]) {
            (State::End, State::End) if !pair.2 => return Meeting::At(search.path(at)),
            (State::Fork(ways), _) => ways.iter().for_each(|&way| search.visit_free((way, pair.1, pair.2), at)),
            (_, State::Fork(ways)) => ways.iter().for_each(|&way| search.visit_free((pair.0, way, pair.2), at)),
            (State::Bytes(one, left), State::Bytes(other, right)) => {
                if !pair.2 && common(one, other, |byte| byte == b'/').is_some() {
                    search.visit((*left, *right, true), at, b'/');
                }
                if let Some(byte) = common(one, other, |byte| may_stand(byte, pair.2 && !hidden)) {
                    search.visit((*left, *right, false), at, byte);
                }
            }
            _ => {}
        }
    }
    Meeting::Never
}

/// Whether `byte` may stand in a name, or, with `first`, begin a name that is not hidden.
fn may_stand(byte: u8, first: bool) -> bool {
    match byte {
        0 | b'/' => false,
        b'.' => !first,
        _ => true,
    }
}

struct Search {
    seen: HashSet<Pair>,
    /// Each pair with the step before it and the byte between them.
    steps: Vec<(Pair, usize, Option<u8>)>,
    queue: VecDeque<usize>,
}

impl Search {
    /// Goes on without a byte, before any step that takes one: the first path found is a shortest one.
    fn visit_free(&mut self, pair: Pair, from: usize) {
        if self.seen.insert(pair) {
            self.steps.push((pair, from, None));
            self.queue.push_front(self.steps.len() - 1);
        }
    }

    fn visit(&mut self, pair: Pair, from: usize, byte: u8) {
        if self.seen.insert(pair) {
            self.steps.push((pair, from, Some(byte)));
            self.queue.push_back(self.steps.len() - 1);
        }
    }

    fn path(&self, mut at: usize) -> String {
        let mut bytes = Vec::new();
        while at != 0 {
            let (_, before, byte) = self.steps[at];
            bytes.extend(byte);
            at = before;
        }
        bytes.reverse();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// A byte of both sets of ranges that `wanted` likes; a letter where there is one.
fn common(one: &[(u8, u8)], other: &[(u8, u8)], wanted: impl Fn(u8) -> bool) -> Option<u8> {
    let shared = one.iter().flat_map(|a| other.iter().map(move |b| (a.0.max(b.0), a.1.min(b.1))));
    let shared: Vec<(u8, u8)> = shared.filter(|(from, to)| from <= to).collect();
    let mut nice = (b'a'..=b'z').chain(b'0'..=b'9').chain(b'!'..=u8::MAX).chain(0..=b' ');
    nice.find(|byte| wanted(*byte) && shared.iter().any(|(from, to)| (from..=to).contains(&byte)))
}
