//! What issues wait for: those that block them, or an epic that they are part of. An epic is done when its issues are.

use std::collections::{HashMap, HashSet};

use super::issue::Issue;
use crate::Source;
use crate::faults::{Faults, quoted};
use crate::formats::shared::items::{Item, Reference, Standing, come_after_children};
use crate::ids::as_id;
use crate::source_text::At;

/// The most edges between lanes that epics may stand for.
const MAX_EDGES: usize = 1_000_000;

/// How deep epics are nested at most.
const MAX_DEPTH: usize = 50;

/// The kinds of dependencies that keep an issue from being started.
const BLOCKING: [&str; 3] = ["blocks", "conditional-blocks", "waits-for"];

pub(super) struct Graph<'a> {
    issues: &'a [Issue],
    positions: HashMap<&'a str, usize>,
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
}

impl<'a> Graph<'a> {
    pub(super) fn new(issues: &'a [Issue], faults: &Faults<'_>) -> Self {
        let mut positions = HashMap::new();
        for (at, issue) in issues.iter().enumerate() {
            positions.entry(issue.id.value.as_str()).or_insert(at);
        }
        let mut graph = Self { issues, positions, parents: Vec::new(), children: vec![Vec::new(); issues.len()] };
        graph.parents = (0..issues.len()).map(|at| graph.parent_of(at)).collect();
        for (at, issue) in issues.iter().enumerate() {
            if graph.ancestors(at).len() > MAX_DEPTH {
                let message = format!("issue {} is below more than {MAX_DEPTH} others", quoted(&issue.id.value));
                faults.error_with(issue.id.span, message, "remove a `parent-child` dependency");
                graph.parents[at] = None;
            }
            if let Some(parent) = graph.parents[at] {
                graph.children[parent].push(at);
            }
        }
        graph
    }

    pub(super) fn position(&self, id: &str) -> Option<usize> {
        self.positions.get(id).copied()
    }

    /// The issue that another is below: as it says, else by its id, such as `app-7` for `app-7.2`.
    fn parent_of(&self, at: usize) -> Option<usize> {
        let issue = &self.issues[at];
        let declared = issue.dependencies.iter().find(|dependency| dependency.kind == "parent-child");
        let by_id = || issue.id.value.rsplit_once('.').and_then(|(parent, _)| self.position(parent));
        let parent = declared.and_then(|dependency| self.position(&dependency.on.value)).or_else(by_id);
        parent.filter(|&parent| parent != at)
    }

    /// What an issue is below, from the nearest.
    pub(super) fn ancestors(&self, at: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut next = self.parents[at];
        while let Some(parent) = next.filter(|parent| !found.contains(parent) && found.len() <= MAX_DEPTH) {
            found.push(parent);
            next = self.parents[parent];
        }
        found
    }

    pub(super) fn parent(&self, at: usize) -> Option<&'a Issue> {
        self.parents[at].map(|parent| &self.issues[parent])
    }

    pub(super) fn has_children(&self, at: usize) -> bool {
        !self.children[at].is_empty()
    }

    /// Whether an issue stands for those below it, and is no lane.
    fn is_epic(&self, at: usize) -> bool {
        self.issues[at].is_group() && self.has_children(at)
    }

    /// Each issue that matters as an item; `None` where epics make too many edges, which is noted.
    pub(super) fn items(&self, asked: &[bool], source: &Source<'_>, faults: &Faults<'_>) -> Option<Vec<(usize, Item)>> {
        let standings: Vec<Standing> = (0..self.issues.len()).map(|at| self.standing(at, asked, source)).collect();
        let mut budget = MAX_EDGES;
        let mut found: Vec<(usize, Item)> = Vec::new();
        let mut place: Vec<Option<usize>> = vec![None; self.issues.len()];
        let open_below: HashMap<usize, Vec<usize>> = (0..self.issues.len())
            .filter(|&at| self.is_epic(at))
            .map(|epic| {
                (
                    epic,
                    self.below(epic)
                        .into_iter()
                        .filter(|&at| !matches!(standings[at], Standing::Done(_) | Standing::Gone) && !self.is_epic(at))
                        .collect(),
                )
            })
            .collect();
        for (at, issue) in self.issues.iter().enumerate() {
            if open_below.get(&at).is_some_and(|below| !below.is_empty()) {
                continue;
            }
            let waits_for =
                if standings[at].is_open() { self.waits_for(at, &open_below, &mut budget, faults) } else { Vec::new() };
            if budget == 0 {
                let message = format!("the dependencies of epics make more than {MAX_EDGES} edges between issues");
                faults.error_with(issue.id.span, message, "name one epic with --tag");
                return None;
            }
            let ended = open_below.contains_key(&at) && standings[at].is_open();
            let standing =
                if ended { Standing::Done("all of its issues are closed".to_owned()) } else { standings[at].clone() };
            place[at] = Some(found.len());
            let id = as_id(&issue.id.value).unwrap_or_else(|| issue.id.value.clone());
            found.push((
                at,
                Item {
                    id: At::new(id, issue.id.span),
                    name: issue.title.clone(),
                    key: issue.id.value.clone(),
                    standing,
                    waits_for,
                    is_again: standings[at].is_open() && !issue.standing.is_open(),
                    rank: issue.priority,
                },
            ));
        }
        let parent = |(at, _): &(usize, Item)| {
            self.parents[*at].filter(|&parent| !self.issues[parent].is_group()).and_then(|parent| place[parent])
        };
        let parents: Vec<Option<usize>> = found.iter().map(parent).collect();
        let (positions, mut items): (Vec<usize>, Vec<Item>) = found.into_iter().unzip();
        come_after_children(&mut items, &parents);
        Some(positions.into_iter().zip(items).collect())
    }

    /// What is to be done about an issue. One that is set aside sets those below it aside.
    fn standing(&self, at: usize, asked: &[bool], source: &Source<'_>) -> Standing {
        let issue = &self.issues[at];
        let own = issue.standing.clone().unless_redone(&issue.id.value, &source.options);
        match own {
            Standing::Done(_) | Standing::Dropped(_) if !asked[at] => return Standing::Gone,
            _ if !asked[at] => return Standing::NotAsked,
            Standing::Open => {}
            own => return own,
        }
        let above = self.ancestors(at).into_iter().map(|above| &self.issues[above]);
        let aside = above.into_iter().find(|above| matches!(above.standing, Standing::Aside(_)));
        aside.map_or(Standing::Open, |above| {
            Standing::Aside(format!("it is below {}, which is left out", above.id.value))
        })
    }

    /// All that is below an issue.
    fn below(&self, at: usize) -> Vec<usize> {
        let (mut found, mut seen) = (Vec::new(), HashSet::from([at]));
        let mut next = self.children[at].clone();
        while let Some(child) = next.pop() {
            if seen.insert(child) {
                found.push(child);
                next.extend(&self.children[child]);
            }
        }
        found.sort_unstable();
        found
    }

    /// What an issue waits for: what blocks it or an issue above it. An epic stands for what is open below it.
    fn waits_for(
        &self,
        at: usize,
        open_below: &HashMap<usize, Vec<usize>>,
        budget: &mut usize,
        faults: &Faults<'_>,
    ) -> Vec<Reference> {
        let ancestors = self.ancestors(at);
        let mut found = Vec::new();
        for (nesting, &from) in std::iter::once(&at).chain(&ancestors).enumerate() {
            let blocking = |kind: &str| BLOCKING.contains(&kind);
            for dependency in self.issues[from].dependencies.iter().filter(|dependency| blocking(&dependency.kind)) {
                let on = &dependency.on;
                let target = self.position(&on.value);
                // What an issue waits for may be part of it: then it comes last, and its other parts need not wait.
                let is_part = |target: usize| self.ancestors(target).contains(&from);
                if nesting > 0 && target.is_some_and(is_part) {
                    continue;
                }
                if target.is_some_and(|target| ancestors.contains(&target)) {
                    let message = format!(
                        "{} waits for {}, which it is below",
                        quoted(&self.issues[from].id.value),
                        quoted(&on.value)
                    );
                    faults.warning(
                        on.span,
                        message,
                        "an epic is closed after its issues; this dependency does not count",
                    );
                    continue;
                }
                let Some(below) = target.and_then(|target| open_below.get(&target)) else {
                    *budget = budget.saturating_sub(1);
                    found.push(Reference { key: on.value.clone(), written: on.clone() });
                    continue;
                };
                // What an epic waits for may be part of it.
                let below = below.iter().filter(|&&below| below != at);
                let before = found.len();
                found.extend(
                    below.map(|&below| Reference { key: self.issues[below].id.value.clone(), written: on.clone() }),
                );
                *budget = budget.saturating_sub(found.len() - before);
                if *budget == 0 {
                    return found;
                }
            }
        }
        found
    }
}
