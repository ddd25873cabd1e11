//! What keeps changes apart: the same capability or namespace, or an order that a proposal declares.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use super::change::Change;
use super::proposal::affected_capabilities;
use crate::draft::LaneDraft;
use crate::markdown::inline::{codes, sentences};
use crate::source_text::At;

/// Words by which a proposal says that another change comes first.
static AFTER: LazyLock<Regex> = pattern!(
    r"(?i)\b(?:depends? (?:up)?on|dependent on|blocked by|after|requires?|builds? on|follows)\b|依赖|前置|依存|基于"
);

/// `Modulus.Core.Runtime`, which is the directory `Modulus.Core/Runtime`.
static NAMESPACE: LazyLock<Regex> = pattern!(r"^[A-Z][A-Za-z0-9_]*(?:\.[A-Z][A-Za-z0-9_]*)+$");

/// How many paths of a change are compared with namespaces.
const MAX_PATHS: usize = 2000;

/// How many parts of a path may make up a namespace.
const MAX_PARTS: usize = 6;

/// Adds to each lane what it depends on and what it may not meet; lanes are in the order of `changes`.
pub(super) fn relate(changes: &[&Change<'_>], lanes: &mut [LaneDraft]) {
    let after = declared_order(changes);
    let mut apart: BTreeSet<(usize, usize)> = BTreeSet::new();
    for group in shared(changes) {
        for (at, one) in group.iter().enumerate() {
            apart.extend(group[at + 1..].iter().map(|other| (*one, *other)));
        }
    }
    for (one, other) in &after {
        let place = lanes[*one].span;
        lanes[*one].depends_on.push(At::new(changes[*other].id.clone(), place));
    }
    for (one, other) in apart {
        if !after.contains(&(one, other)) && !after.contains(&(other, one)) {
            let place = lanes[other].span;
            lanes[other].excludes.push(At::new(changes[one].id.clone(), place));
        }
    }
}

/// Pairs of changes of which the first comes after the second.
fn declared_order(changes: &[&Change<'_>]) -> BTreeSet<(usize, usize)> {
    let ids: HashMap<&str, usize> = changes.iter().enumerate().map(|(at, change)| (change.id.as_str(), at)).collect();
    let mut found = BTreeSet::new();
    for (at, change) in changes.iter().enumerate() {
        let text = change.proposal.unwrap_or_default();
        for sentence in sentences(text).into_iter().map(|range| &text[range]).filter(|text| AFTER.is_match(text)) {
            let words = sentence.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'));
            let others = words.filter_map(|word| ids.get(word.trim_matches('.'))).filter(|other| **other != at);
            found.extend(others.map(|other| (at, *other)));
        }
    }
    found
}

/// The changes that each capability or namespace is of, where there are several.
fn shared(changes: &[&Change<'_>]) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    let stretches: Vec<HashSet<String>> = changes.iter().map(|change| directories(change)).collect();
    let mut by_stretch: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, own) in stretches.iter().enumerate() {
        own.iter().for_each(|stretch| by_stretch.entry(stretch).or_default().push(at));
    }
    for (at, change) in changes.iter().enumerate() {
        let capabilities = change.capabilities().chain(change.proposal.map(affected_capabilities).unwrap_or_default());
        for capability in capabilities {
            groups.entry(format!("spec {capability}")).or_default().insert(at);
        }
        for namespace in namespaces(change) {
            let others = by_stretch.get(namespace.as_str()).into_iter().flatten();
            groups.entry(format!("namespace {namespace}")).or_default().extend(others.copied().chain([at]));
        }
    }
    groups.into_values().filter(|group| group.len() > 1).map(|group| group.into_iter().collect()).collect()
}

/// The namespaces that a change names in code.
fn namespaces(change: &Change<'_>) -> BTreeSet<String> {
    let in_code =
        change.texts().into_iter().flat_map(|text| codes(text).into_iter().map(move |code| &text[code.inner]));
    in_code.filter(|name| NAMESPACE.is_match(name)).map(str::to_lowercase).collect()
}

/// The stretches of the paths that a change names in code, with dots between their parts.
fn directories(change: &Change<'_>) -> HashSet<String> {
    let in_code =
        change.texts().into_iter().flat_map(|text| codes(text).into_iter().map(move |code| &text[code.inner]));
    let mut found = HashSet::new();
    for path in in_code.filter(|path| path.contains('/') && !path.contains(' ')).take(MAX_PATHS) {
        let path = path.to_lowercase();
        let parts: Vec<&str> = path.split(['/', '.']).filter(|part| !part.is_empty()).take(64).collect();
        for from in 0..parts.len() {
            for to in from + 2..=parts.len().min(from + MAX_PARTS) {
                found.insert(parts[from..to].join("."));
            }
        }
    }
    found
}
