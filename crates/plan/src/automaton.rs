//! Whether two globs have a path in common, decided on finite automata.
//!
//! A glob is taken as the regular expression that the glob crate itself matches with, so that the answer is about
//! what is enforced when the plan runs.

use std::collections::{HashSet, VecDeque};

use lanewright_model::ownership::glob;
use regex_automata::nfa::thompson::{NFA, State, Transition, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_automata::util::syntax;

/// The automaton of the paths that `pattern` matches and, with `below`, of everything below them. `None`: it is not a
/// glob, or too large.
pub(super) fn automaton(pattern: &str, below: bool) -> Option<NFA> {
    let compiled = glob(pattern).ok()?;
    let end = if below { "(?:/.*)?$" } else { "$" };
    let regex = format!("{}{end}", compiled.regex().strip_suffix('$')?);
    let config = NFA::config().utf8(false).which_captures(WhichCaptures::None);
    let syntax = syntax::Config::new().unicode(false).utf8(false).dot_matches_new_line(true);
    NFA::compiler().configure(config).syntax(syntax).build(&regex).ok()
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Intersection {
    /// No path is in both.
    Empty,
    /// This path, a short one, is in both.
    Example(String),
    /// The search was given up.
    Unknown,
}

/// The state of a search: a state of each automaton, and whether a name of the path begins here.
type Pair = (StateID, StateID, bool);

/// Looks for a path that both automata match. Each step takes one of `fuel`.
///
/// Only paths as git has them count: names that are not empty, separated by single `/`. Names that begin with a dot
/// are proposed only where there is no other.
pub(super) fn intersect(left: &NFA, right: &NFA, fuel: &mut usize) -> Intersection {
    match search(left, right, false, fuel) {
        Intersection::Empty => search(left, right, true, fuel),
        found => found,
    }
}

fn search(left: &NFA, right: &NFA, hidden: bool, fuel: &mut usize) -> Intersection {
    let start = (left.start_anchored(), right.start_anchored(), true);
    let mut search = Search { seen: HashSet::from([start]), steps: vec![(start, 0, None)], queue: VecDeque::from([0]) };
    while let Some(at) = search.queue.pop_front() {
        let Some(rest) = fuel.checked_sub(1) else { return Intersection::Unknown };
        *fuel = rest;
        let (one, other, begins) = search.steps[at].0;
        match (left.state(one), right.state(other)) {
            (State::Dense(_), _) | (_, State::Dense(_)) => return Intersection::Unknown,
            (State::Match { .. }, State::Match { .. }) if !begins => return Intersection::Example(search.path(at)),
            (state, _) if is_free(state) => ways(state).for_each(|way| search.visit((way, other, begins), at, None)),
            (_, state) if is_free(state) => ways(state).for_each(|way| search.visit((one, way, begins), at, None)),
            (one, other) => {
                for (_, byte, pair) in bytes(one, other, begins, hidden) {
                    search.visit(pair, at, Some(byte));
                }
            }
        }
    }
    Intersection::Empty
}

/// Whether a state leads to others without a byte. The only assertions are the ones at both ends.
fn is_free(state: &State) -> bool {
    !matches!(state, State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) | State::Fail | State::Match { .. })
}

fn ways(state: &State) -> impl Iterator<Item = StateID> {
    match state {
        State::Look { next, .. } | State::Capture { next, .. } => vec![*next],
        State::BinaryUnion { alt1, alt2 } => vec![*alt1, *alt2],
        State::Union { alternates } => alternates.to_vec(),
        _ => Vec::new(),
    }
    .into_iter()
}

fn transitions(state: &State) -> &[Transition] {
    match state {
        State::ByteRange { trans } => std::slice::from_ref(trans),
        State::Sparse(sparse) => &sparse.transitions,
        _ => &[],
    }
}

/// The bytes that both states take and where each leads, letters first; one for each pair of transitions.
fn bytes(one: &State, other: &State, begins: bool, hidden: bool) -> Vec<(u8, u8, Pair)> {
    let rank = |byte: u8| match byte {
        b'a'..=b'z' => 0,
        b'0'..=b'9' => 1,
        b'!'.. => 2,
        _ => 3,
    };
    let mut found = Vec::new();
    for (a, b) in transitions(one).iter().flat_map(|a| transitions(other).iter().map(move |b| (a, b))) {
        let shared = a.start.max(b.start)..=a.end.min(b.end);
        if !begins && shared.contains(&b'/') {
            found.push((0, b'/', (a.next, b.next, true)));
        }
        let may_stand = |byte: &u8| !(matches!(byte, 0 | b'/') || (*byte == b'.' && begins && !hidden));
        let byte = shared.filter(may_stand).min_by_key(|byte| rank(*byte));
        found.extend(byte.map(|byte| (rank(byte), byte, (a.next, b.next, false))));
    }
    found.sort_by_key(|(rank, ..)| *rank);
    found
}

struct Search {
    seen: HashSet<Pair>,
    /// Each pair with the step before it and the byte between them.
    steps: Vec<(Pair, usize, Option<u8>)>,
    queue: VecDeque<usize>,
}

impl Search {
    fn visit(&mut self, pair: Pair, from: usize, byte: Option<u8>) {
        if !self.seen.insert(pair) {
            return;
        }
        self.steps.push((pair, from, byte));
        match byte {
            Some(_) => self.queue.push_back(self.steps.len() - 1),
            // Before any step that takes a byte: the first path found is a shortest one.
            None => self.queue.push_front(self.steps.len() - 1),
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
