//! Which globs have a path in common.
//!
//! A name without wildcard owns itself and, unless it looks like a file, what is below it, as
//! [`lanewright_model::ownership::Ownership`] says.

use std::collections::HashMap;

use regex_automata::nfa::thompson::NFA;

use super::automaton::{Intersection, automaton, intersect};

/// Steps that all searches of one plan may take together; a second or two.
const FUEL: usize = 4_000_000;

#[derive(Debug, Clone, Copy)]
pub(super) struct Owned<'a> {
    pub(super) lane: usize,
    pub(super) glob: &'a str,
}

/// Two globs of different lanes that have a path in common, as positions in the list that was asked about.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Overlap {
    pub(super) one: usize,
    pub(super) other: usize,
    /// A path that both match; `None`: the search was given up, and there may be none.
    pub(super) example: Option<String>,
}

/// The first overlap of each pair of lanes that `matters`, at most `limit` of them. Globs that cannot be read
/// overlap with nothing.
///
/// Globs can only intersect where one's text before its first wildcard begins with the other's. Sorted by that text, the
/// globs that one of them may intersect stand right behind it, so that lanes in directories of their own cost nothing.
pub(super) fn overlaps(owned: &[Owned<'_>], limit: usize, matters: impl Fn(usize, usize) -> bool) -> Vec<Overlap> {
    let shapes: Vec<Shape<'_>> = owned.iter().map(|owned| Shape::of(owned.glob)).collect();
    let mut sorted: Vec<usize> = (0..owned.len()).collect();
    sorted.sort_by_key(|&at| shapes[at].prefix);
    let mut search = Search { shapes: &shapes, automata: HashMap::new(), fuel: FUEL };
    let mut found: HashMap<(usize, usize), Overlap> = HashMap::new();
    for (position, &before) in sorted.iter().enumerate() {
        let near = |&&after: &&usize| shapes[after].prefix.starts_with(shapes[before].prefix);
        for &after in sorted[position + 1..].iter().take_while(near) {
            let (one, other) = (before.min(after), before.max(after));
            let lanes = (owned[one].lane.min(owned[other].lane), owned[one].lane.max(owned[other].lane));
            if lanes.0 == lanes.1 || found.contains_key(&lanes) || !matters(lanes.0, lanes.1) {
                continue;
            }
            match search.intersection(one, other) {
                Intersection::Empty => continue,
                Intersection::Example(path) => found.insert(lanes, Overlap { one, other, example: Some(path) }),
                Intersection::Unknown => found.insert(lanes, Overlap { one, other, example: None }),
            };
            if found.len() == limit {
                return in_plan_order(found);
            }
        }
    }
    in_plan_order(found)
}

fn in_plan_order(found: HashMap<(usize, usize), Overlap>) -> Vec<Overlap> {
    let mut list: Vec<Overlap> = found.into_values().collect();
    list.sort_by_key(|overlap| (overlap.one, overlap.other));
    list
}

struct Search<'a> {
    shapes: &'a [Shape<'a>],
    /// By glob, and whether what is below it counts. Made when they are first needed, which is never for most globs
    /// of a well-cut plan.
    automata: HashMap<(usize, bool), Option<NFA>>,
    fuel: usize,
}

impl Search<'_> {
    fn intersection(&mut self, one: usize, other: usize) -> Intersection {
        let (left, right) = (&self.shapes[one], &self.shapes[other]);
        let keys = [(one, left.owns_below(right)), (other, right.owns_below(left))];
        let (left, right) = (left.ending(keys[0].1), right.ending(keys[1].1));
        if !left.ends_with(right) && !right.ends_with(left) {
            return Intersection::Empty;
        }
        for (at, below) in keys {
            let text = self.shapes[at].text;
            self.automata.entry((at, below)).or_insert_with(|| automaton(text, below));
        }
        match keys.map(|key| self.automata[&key].as_ref()) {
            [Some(left), Some(right)] => intersect(left, right, &mut self.fuel),
            _ => Intersection::Empty,
        }
    }
}

/// What is known of a glob from its text alone.
struct Shape<'a> {
    text: &'a str,
    /// Everything it matches begins with this.
    prefix: &'a str,
    /// Everything it matches ends with this.
    suffix: &'a str,
    kind: Kind,
}

#[derive(PartialEq)]
enum Kind {
    Pattern,
    /// A name that looks like one of a file: `README.md`.
    File,
    /// Any other name.
    Name,
}

impl<'a> Shape<'a> {
    fn of(glob: &'a str) -> Self {
        let special = ['*', '?', '[', ']', '{', '}', '\\'];
        let text = glob.trim_start_matches("./");
        if let (Some(first), Some(last)) = (text.find(special), text.rfind(special)) {
            // `**/x` matches `x`; after a backslash nothing is what it looks like.
            let end = text[last + 1..].trim_start_matches('/');
            let suffix = if text.contains('\\') { "" } else { end };
            return Self { text, prefix: &text[..first], suffix, kind: Kind::Pattern };
        }
        let name = text.trim_end_matches('/');
        let last = name.rsplit('/').next().unwrap_or(name);
        let is_file = name == text && last.trim_start_matches('.').contains('.');
        Self { text: name, prefix: name, suffix: name, kind: if is_file { Kind::File } else { Kind::Name } }
    }

    /// Whether what is below this name counts as its own beside `other`. Below a file there is nothing, and
    /// `README.md` does not intersect `**/*.rs`; unless the other glob says that it is a directory.
    fn owns_below(&self, other: &Self) -> bool {
        match self.kind {
            Kind::Pattern => false,
            Kind::File => other.prefix.strip_prefix(self.text).is_some_and(|rest| rest.starts_with('/')),
            Kind::Name => true,
        }
    }

    /// What every path ends with that it owns, with or without what is below it.
    fn ending(&self, below: bool) -> &'a str {
        if below { "" } else { self.suffix }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use lanewright_model::ownership::glob;

    fn example(one: &str, other: &str) -> Option<String> {
        let owned = [Owned { lane: 0, glob: one }, Owned { lane: 1, glob: other }];
        overlaps(&owned, 10, |_, _| true).pop().map(|overlap| overlap.example.unwrap())
    }

    #[test]
    fn overlapping_globs_give_an_example() {
        let pairs = [
            ("src/**", "src/a.rs", "src/a.rs"),
            ("src", "src/a/*.rs", "src/a/a.rs"),
            ("./src/", "src/**", "src/a"),
            ("**/*.md", "docs/**", "docs/a.md"),
            ("**/.*", ".a?", ".aa"),
            ("src/{a,b}/*", "src/[b-c]/x", "src/b/x"),
            ("*.toml", "Cargo.*", "Cargo.toml"),
            ("a/**/z", "a/z", "a/z"),
            ("a?c", "*bc", "abc"),
            ("app/(group)/[[]slug]/x", "app/*/[[]slug]/*", "app/(group)/[slug]/x"),
            ("**", "x", "x"),
            ("v1.2", "v1.2/*.md", "v1.2/a.md"),
            ("v1.2/", "**/*.md", "v1.2/a.md"),
            (".github", "**/*.yml", ".github/.yml"),
        ];
        for (one, other, path) in pairs {
            assert_eq!(example(one, other).as_deref(), Some(path), "{one} {other}");
            assert!(example(other, one).is_some(), "{other} {one}");
        }
    }

    #[test]
    fn disjoint_globs_do_not_overlap() {
        let pairs = [
            ("src/ledger/**", "src/ledger2/**"),
            ("src/*", "src/a/b"),
            ("**/*.md", "**/*.rs"),
            ("src/[a-m]*", "src/[n-z]*"),
            ("src/{a,b}", "src/{c,d}/**"),
            ("docs", "docs2"),
            ("README.md", "**/*.rs"),
            ("README.md", "*/a"),
            // Only `a//b` is in both, and that is no path.
            ("a[!x]/b", "a/*/b"),
            ("src/**", "src"),
            ("a\\*", "ab"),
        ];
        for (one, other) in pairs {
            let met = example(one, other);
            if (one, other) == ("src/**", "src") {
                assert_eq!(met.as_deref(), Some("src/a"), "a name owns what is below it");
            } else {
                assert_eq!(met, None, "{one} {other}");
            }
        }
    }

    #[test]
    fn many_wildcards_stay_within_fuel() {
        let globs: Vec<String> =
            (0..1000).flat_map(|at| [format!("**/file_{at}_x.rs"), format!("docs/{at}.md")]).collect();
        let owned: Vec<Owned<'_>> = globs.iter().enumerate().map(|(at, glob)| Owned { lane: at / 2, glob }).collect();
        let shapes: Vec<Shape<'_>> = globs.iter().map(|glob| Shape::of(glob)).collect();
        let mut search = Search { shapes: &shapes, automata: HashMap::new(), fuel: 0 };
        assert_eq!(search.intersection(0, 2), Intersection::Empty);
        assert_eq!(search.intersection(0, 3), Intersection::Empty);
        assert_eq!(overlaps(&owned, 10, |_, _| true), []);
    }

    /// The rule of ownership, by trying: a glob matches, or is a name that the path lies below.
    fn owner(pattern: &str, beside: &str) -> impl Fn(&str) -> bool {
        let shape = Shape::of(pattern);
        let (below, start) = (shape.owns_below(&Shape::of(beside)), format!("{}/", shape.text));
        let matcher = glob(shape.text).unwrap().compile_matcher();
        move |path| matcher.is_match(path) || (below && path.starts_with(&start))
    }

    fn all_paths() -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for one in ["a", "b", ".", "c"] {
            names.push(one.into());
            names.extend(["a", "b", "."].iter().map(|two| format!("{one}{two}")));
        }
        names.retain(|name| !name.trim_start_matches('.').is_empty());
        let two: Vec<String> = names.iter().flat_map(|a| names.iter().map(move |b| format!("{a}/{b}"))).collect();
        let three = two.iter().flat_map(|a| ["a", "b", "ab"].iter().map(move |b| format!("{a}/{b}")));
        names.iter().cloned().chain(two.iter().cloned()).chain(three).collect()
    }

    fn any_glob() -> impl Strategy<Value = String> {
        let part = prop::sample::select(vec!["a", "b", ".", "*", "?", "[ab]", "[!a]", "{a,b}", "{a,b/a}", "**", "\\*"]);
        let segment = prop::collection::vec(part, 1..3).prop_map(|parts| parts.concat());
        prop::collection::vec(segment, 1..4).prop_map(|segments| segments.join("/"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn overlap_agrees_with_brute_force(one in any_glob(), other in any_glob()) {
            prop_assume!(glob(&one).is_ok() && glob(&other).is_ok());
            let (left, right) = (owner(&one, &other), owner(&other, &one));
            match example(&one, &other) {
                Some(path) => prop_assert!(left(&path) && right(&path), "{path}"),
                None => for path in all_paths() {
                    prop_assert!(!(left(&path) && right(&path)), "{path}");
                },
            }
        }
    }
}
