//! The tasks of a list that orders them by their ids, such as that of an issue tracker, as lanes.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use lanewright_model::plan::{OwnershipRule, Skipped};
use lanewright_model::text::headline;
use lanewright_model::{LaneId, LaneOrder};

use crate::dependencies::{Dependencies, topological_order};
use crate::draft::{LaneDraft, PlanDraft};
use crate::faults::{Faults, nearest, quoted};
use crate::markdown::clean;
use crate::source_text::{At, Span};
use crate::tree::{Node, Value};
use crate::validate::MAX_LANES;
use crate::{ReadOptions, Source};

/// How many unknown ids get a suggestion; every comparison takes time.
const MAX_SUGGESTIONS: usize = 50;

/// The longest name of a lane.
const MAX_NAME: usize = 200;

/// A task of a list, of which only those that are open become lanes.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// The lane's id.
    pub(crate) id: At<String>,
    pub(crate) name: String,
    /// Its id in the one spelling in which references are compared.
    pub(crate) key: String,
    pub(crate) standing: Standing,
    pub(crate) waits_for: Vec<Reference>,
    /// Whether the list says that it is done, and it is to be done all the same: what it waits for may be gone by then.
    pub(crate) is_again: bool,
    /// Of lanes that may start, those of the lowest rank come first.
    pub(crate) rank: u32,
}

impl Item {
    /// Whether the list says that it is done.
    fn was_done(&self) -> bool {
        self.is_again || self.standing.is_ended()
    }
}

/// What a task waits for.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
    pub(crate) key: String,
    /// As the list has it.
    pub(crate) written: At<String>,
}

/// What is to be done about a task, and why if it is nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    Open,
    /// Those that wait for it may start.
    Done(String),
    /// The same, for it is never to be done.
    Dropped(String),
    /// It is neither done nor to be done now, so those that wait for it cannot start.
    Aside(String),
    /// Done, and not worth being listed.
    Gone,
    /// Not to be done now, and not asked for either.
    NotAsked,
}

impl Standing {
    pub(crate) fn is_open(&self) -> bool {
        *self == Self::Open
    }

    /// Whether those that wait for it may start.
    fn is_ended(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Dropped(_) | Self::Gone)
    }

    /// Open although the list says that it is done, where that is asked for.
    pub(crate) fn unless_redone(self, lane: &str, options: &ReadOptions<'_>) -> Self {
        let again = options.redo || options.unfinished.iter().any(|unfinished| unfinished == lane);
        if again && matches!(self, Self::Done(_)) { Self::Open } else { self }
    }
}

/// What a word for a status says in all of these programs; `None` for a word that none of them has.
pub(crate) fn standing_of(status: &str) -> Option<Standing> {
    let word = status.trim().to_lowercase().replace(['_', ' '], "-");
    let reason = || format!("its status is `{}`", headline(status.trim(), 40));
    Some(match word.as_str() {
        "pending" | "open" | "todo" | "to-do" | "new" | "ready" | "not-started" | "in-progress" | "started"
        | "review" | "in-review" => Standing::Open,
        "done" | "completed" | "complete" | "closed" | "resolved" => Standing::Done(reason()),
        "cancelled" | "canceled" | "obsolete" | "won't-do" | "wont-do" => Standing::Dropped(reason()),
        "deferred" | "postponed" | "on-hold" | "blocked" | "draft" => Standing::Aside(reason()),
        _ => return None,
    })
}

/// How a word for a priority ranks; what has none is in the middle.
pub(crate) fn rank_of(priority: &str) -> Option<u32> {
    let word = priority.trim().to_lowercase();
    Some(match word.trim_start_matches('p') {
        "critical" | "urgent" | "highest" | "0" => 0,
        "high" | "1" => 1,
        "medium" | "normal" | "2" => 2,
        "low" | "3" => 3,
        "lowest" | "4" => 4,
        _ => return None,
    })
}

pub(crate) const MIDDLE: u32 = 2;

/// What a reference to a task means that the list does not have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unknown<'h> {
    /// The list is at fault; with the remedy.
    Refused(&'h str),
    /// The program takes it as done.
    Met,
    /// It orders nothing, for the tasks are done in the order of the list.
    Ignored,
}

impl Unknown<'_> {
    pub(crate) fn unless_in_order(self, source: &Source<'_>) -> Self {
        if source.fallbacks.lists.order == LaneOrder::File { Self::Ignored } else { self }
    }
}

/// Lets each item come after those below it by `parents` that are not done, unless they wait for it, directly or not.
pub(crate) fn come_after_children(items: &mut [Item], parents: &[Option<usize>]) {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (at, item) in items.iter().enumerate() {
        places.entry(&item.key).or_insert(at);
    }
    let place = |reference: &Reference| places.get(reference.key.as_str()).copied();
    let open = |item: &Item| match item.standing.is_open() {
        true => item.waits_for.iter().filter_map(place).collect(),
        false => Vec::new(),
    };
    let mut waits: Vec<Vec<usize>> = items.iter().map(open).collect();
    for (child, parent) in parents.iter().enumerate().filter_map(|(child, parent)| Some((child, (*parent)?))) {
        let remains = matches!(items[child].standing, Standing::Open | Standing::Aside(_) | Standing::NotAsked);
        if child != parent && remains && !leads_to(&waits, child, parent) {
            waits[parent].push(child);
            let reference = Reference { key: items[child].key.clone(), written: items[child].id.clone() };
            items[parent].waits_for.push(reference);
        }
    }
}

/// Whether `from` waits for `to`, directly or not.
fn leads_to(waits: &[Vec<usize>], from: usize, to: usize) -> bool {
    let mut seen = HashSet::from([from]);
    let mut next = vec![from];
    while let Some(at) = next.pop() {
        if waits[at].contains(&to) {
            return true;
        }
        next.extend(waits[at].iter().filter(|on| seen.insert(**on)));
    }
    false
}

/// The text of a value, a list of texts as a list in Markdown.
pub(crate) fn text_of(node: Option<&Node>, faults: &Faults<'_>) -> String {
    let Some(node) = node else { return String::new() };
    let text = match &node.value {
        Value::List(items) => {
            let items = items.iter().map(|item| text_of(Some(item), faults)).filter(|item| !item.trim().is_empty());
            items.map(|item| format!("- {item}\n")).collect()
        }
        _ => node.as_written(faults).unwrap_or_default(),
    };
    clean(&text).trim().to_owned()
}

/// Adds the lanes of the open items to `draft`, in the order in which they may start: by their edges, then by rank. What
/// is done or set aside is listed as skipped. `make` gives the lane of an item without its id, name and edges.
pub(crate) fn add_lanes(
    items: &[Item],
    unknown: Unknown<'_>,
    draft: &mut PlanDraft,
    faults: &Faults<'_>,
    make: impl Fn(usize) -> LaneDraft,
) {
    let known = index(items, faults);
    let mut waits = resolve(items, &known, unknown, faults);
    let standings = set_aside(items, &waits);
    let open = |at: usize| standings[at].is_open();
    waits.iter_mut().enumerate().for_each(|(at, on)| on.retain(|(on, _)| open(at) && open(*on)));
    forget_finished_circles(items, &mut waits, faults);
    // A second task of an id is reported, and no lane.
    let is_first = |at: usize| known.get(items[at].key.as_str()) == Some(&at);
    for (at, (item, standing)) in items.iter().zip(&standings).enumerate() {
        let (Standing::Done(reason) | Standing::Dropped(reason) | Standing::Aside(reason)) = standing else { continue };
        let name = Some(headline(&item.name, MAX_NAME)).filter(|name| !name.is_empty());
        let skipped = |lane| Skipped { lane, name, reason: reason.clone() };
        draft.skipped.extend(LaneId::new(&item.id.value).ok().filter(|_| is_first(at)).map(skipped));
    }
    let asked: Vec<usize> = (0..items.len()).filter(|&at| open(at) && is_first(at)).collect();
    if let Some(&beyond) = asked.get(MAX_LANES) {
        let help = "name a part of it with --tag, or close what is not to be done";
        faults.error_with(items[beyond].id.span, format!("this list has more than {MAX_LANES} open tasks"), help);
        return;
    }
    if asked.is_empty() {
        return nothing_to_do(items, &standings, faults);
    }
    let edges = without_redundant(&asked, &waits);
    let plain: Vec<Vec<usize>> = edges.iter().map(|edges| edges.iter().map(|(on, _)| *on).collect()).collect();
    let (order, circular) = match unknown {
        Unknown::Ignored => ((0..asked.len()).collect(), Vec::new()),
        _ => topological_order(&plain, |at| items[asked[at]].rank),
    };
    for at in order.into_iter().chain(circular) {
        let item = &items[asked[at]];
        let depends_on = edges[at].iter().map(|(on, span)| At::new(items[asked[*on]].id.value.clone(), *span));
        let name = Some(headline(&item.name, MAX_NAME)).filter(|name| !name.is_empty());
        draft.lanes.push(LaneDraft {
            span: item.id.span,
            id: Some(item.id.clone()),
            name: name.map(|name| At::new(name, item.id.span)),
            depends_on: depends_on.collect(),
            ownership: Some(At::new(OwnershipRule::Advisory, item.id.span)),
            ..make(asked[at])
        });
    }
}

/// The items by their keys. Two of one key are a fault.
fn index<'i>(items: &'i [Item], faults: &Faults<'_>) -> HashMap<&'i str, usize> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (at, item) in items.iter().enumerate() {
        let first = *known.entry(&item.key).or_insert(at);
        let is_listed = |item: &Item| !matches!(item.standing, Standing::Gone | Standing::NotAsked);
        if first != at && is_listed(item) && is_listed(&items[first]) {
            let place = faults.source.place(items[first].id.span);
            let message = format!("there are two tasks {}, the first in {place}", quoted(&item.id.value));
            let help = "give one of them another id, or remove it";
            // Which one a reference means does not matter where both are done.
            match item.was_done() && items[first].was_done() {
                true => faults.warning(item.id.span, message, help),
                false => faults.error_with(item.id.span, message, help),
            }
        }
    }
    known
}

/// For each item those that it waits for, each once, with the place that says so.
fn resolve(
    items: &[Item],
    known: &HashMap<&str, usize>,
    unknown: Unknown<'_>,
    faults: &Faults<'_>,
) -> Vec<Vec<(usize, Span)>> {
    let mut suggestions = MAX_SUGGESTIONS;
    let mut waits = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let mut own: Vec<(usize, Span)> = Vec::new();
        let mut seen = HashSet::new();
        for reference in item.waits_for.iter().filter(|_| item.standing.is_open()) {
            let span = reference.written.span;
            match known.get(reference.key.as_str()) {
                Some(&on) if on == at => {
                    let message = format!("task {} depends on itself", quoted(&item.id.value));
                    match unknown {
                        Unknown::Ignored => faults.warning(span, message, "leave it out"),
                        _ => faults.error_with(span, message, "leave it out"),
                    }
                }
                Some(&on) => own.extend(seen.insert(on).then_some((on, span))),
                None if item.is_again => {}
                None => {
                    let others = known.keys().copied().filter(|key| *key != item.key);
                    let near = if suggestions == 0 { None } else { nearest(&reference.key, others) };
                    suggestions = suggestions.saturating_sub(1);
                    let near = near.map(|near| items[known[near]].id.value.as_str());
                    report_unknown(item, reference, near, unknown, faults);
                }
            }
        }
        waits.push(own);
    }
    waits
}

fn report_unknown(item: &Item, reference: &Reference, near: Option<&str>, unknown: Unknown<'_>, faults: &Faults<'_>) {
    let (own, other) = (quoted(&item.id.value), quoted(&reference.written.value));
    let message = format!("task {own} depends on {other}, but there is no such task");
    match unknown {
        Unknown::Refused(help) => {
            let near = near.map_or_else(String::new, |near| format!("did you mean {}? Otherwise, ", quoted(near)));
            faults.error_with(reference.written.span, message, format!("{near}{help}"));
        }
        Unknown::Met => {
            let help = "it is taken as closed; remove the dependency if it is";
            faults.warning(reference.written.span, message, help);
        }
        Unknown::Ignored => faults.warning(reference.written.span, message, "remove the dependency"),
    }
}

/// What becomes of each item: those that wait for one that is set aside are set aside, too.
fn set_aside(items: &[Item], waits: &[Vec<(usize, Span)>]) -> Vec<Standing> {
    let mut standings: Vec<Standing> = items.iter().map(|item| item.standing.clone()).collect();
    let plain: Vec<Vec<usize>> = waits.iter().map(|waits| waits.iter().map(|(on, _)| *on).collect()).collect();
    let (order, circular) = topological_order(&plain, |at| at);
    for at in order.into_iter().chain(circular).filter(|&at| items[at].standing.is_open()) {
        let why = waits[at].iter().find_map(|(on, _)| match &standings[*on] {
            Standing::Aside(_) => Some((*on, "which is left out")),
            Standing::NotAsked => Some((*on, "which is not part of this plan and not done")),
            _ => None,
        });
        if let Some((on, why)) = why {
            standings[at] = Standing::Aside(format!("it waits for {}, {why}", items[on].id.value));
        }
    }
    standings
}

/// Removes the edges between done tasks that wait for each other: they keep nothing from being done.
fn forget_finished_circles(items: &[Item], waits: &mut [Vec<(usize, Span)>], faults: &Faults<'_>) {
    let plain: Vec<Vec<usize>> = waits.iter().map(|waits| waits.iter().map(|(on, _)| *on).collect()).collect();
    let behind: HashSet<usize> = topological_order(&plain, |at| at).1.into_iter().collect();
    let mut reversed = vec![Vec::new(); plain.len()];
    plain.iter().enumerate().for_each(|(at, on)| on.iter().for_each(|&on| reversed[on].push(at)));
    let circle: Vec<usize> = topological_order(&reversed, |at| at).1;
    let circle: HashSet<usize> = circle.into_iter().filter(|at| behind.contains(at) && items[*at].is_again).collect();
    let mut first: Option<usize> = None;
    for (at, own) in waits.iter_mut().enumerate().filter(|(at, _)| circle.contains(at)) {
        let count = own.len();
        own.retain(|(on, _)| !circle.contains(on));
        first = first.or((own.len() < count).then_some(at));
    }
    if let Some(first) = first {
        let message = format!("{} and other tasks that are done wait for each other", quoted(&items[first].id.value));
        faults.warning(items[first].id.span, message, "this order does not count; remove one of the dependencies");
    }
}

/// The edges between the lanes of `asked`, by their places in it, without those that follow from others.
fn without_redundant(asked: &[usize], waits: &[Vec<(usize, Span)>]) -> Vec<Vec<(usize, Span)>> {
    let lane: HashMap<usize, usize> = asked.iter().enumerate().map(|(lane, at)| (*at, lane)).collect();
    let edge = |(on, span): &(usize, Span)| Some((*lane.get(on)?, *span));
    let edges: Vec<Vec<(usize, Span)>> = asked.iter().map(|&at| waits[at].iter().filter_map(edge).collect()).collect();
    let plain: Vec<Vec<usize>> = edges.iter().map(|edges| edges.iter().map(|(on, _)| *on).collect()).collect();
    // On a cycle everything follows from everything, and it is reported with its edges.
    if !topological_order(&plain, |at| at).1.is_empty() {
        return edges;
    }
    let order = Dependencies::new(&plain);
    let kept = |(from, on): (Vec<(usize, Span)>, &Vec<usize>)| {
        let follows = order.behind(on);
        from.into_iter().filter(|(on, _)| !follows(*on)).collect()
    };
    edges.into_iter().zip(&plain).map(kept).collect()
}

fn nothing_to_do(items: &[Item], standings: &[Standing], faults: &Faults<'_>) {
    let is_done = |standing: &&Standing| standing.is_ended() && **standing != Standing::Gone;
    let done = standings.iter().filter(is_done).count();
    let aside = items.iter().zip(standings).filter_map(|(item, standing)| match standing {
        Standing::Aside(reason) => Some((item, reason)),
        _ => None,
    });
    let place = items.first().map_or(Span::default(), |item| item.id.span);
    match (done, aside.clone().next()) {
        (0, None) => faults.error_with(place, "this list has no tasks", "add a task, or name another list"),
        (_, None) => faults.error_with(place, "all tasks of this list are done", "run them again with `--redo`"),
        (done, Some((first, reason))) => {
            let count = aside.count();
            let message = format!("no task of this list can start: {done} are done, {count} are left out");
            faults.error_with(first.id.span, message, format!("{}: {reason}", first.id.value));
        }
    }
}

/// How much text all prompts of a plan may repeat.
pub(crate) struct Repeated(Cell<usize>);

impl Repeated {
    pub(crate) fn new() -> Self {
        Self(Cell::new(8 * 1024 * 1024))
    }

    /// `text`, as long as prompts may still repeat that much; else its beginning.
    pub(crate) fn of(&self, text: &str) -> String {
        let left = self.0.get();
        self.0.set(left.saturating_sub(text.len()));
        if text.len() <= left { text.to_owned() } else { headline(text, 500) }
    }
}

#[cfg(test)]
mod tests;
