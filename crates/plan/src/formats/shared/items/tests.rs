//! Lists whose items wait for each other, are done, or are not there.

use super::*;
use crate::source_text::SourceText;

fn item(id: &str, standing: Standing, waits_for: &[&str]) -> Item {
    let reference = |on: &&str| Reference { key: (*on).to_owned(), written: At::new((*on).to_owned(), 0..0) };
    Item {
        id: At::new(id.to_owned(), 0..0),
        name: String::new(),
        key: id.to_owned(),
        standing,
        waits_for: waits_for.iter().map(reference).collect(),
        is_again: false,
        rank: MIDDLE,
    }
}

fn read(items: &[Item], unknown: Unknown<'_>) -> (Vec<String>, Vec<String>, Vec<String>) {
    let faults = Faults::new(SourceText::new("list", "x"));
    let mut draft = PlanDraft::default();
    add_lanes(items, unknown, &mut draft, &faults, |_| LaneDraft::default());
    let lane = |lane: &LaneDraft| {
        let on: Vec<&str> = lane.depends_on.iter().map(|on| on.value.as_str()).collect();
        format!("{}<{}", lane.id.as_ref().unwrap().value, on.join(","))
    };
    let skipped = draft.skipped.iter().map(|skipped| format!("{}: {}", skipped.lane, skipped.reason)).collect();
    let messages = faults.into_diagnostics().into_iter().map(|fault| fault.message).collect();
    (draft.lanes.iter().map(lane).collect(), skipped, messages)
}

#[test]
fn edges_lead_to_open_tasks_only() {
    let done = Standing::Done("d".to_owned());
    let open = Standing::Open;
    let items = [
        item("a", open.clone(), &["gone", "done"]),
        item("b", open.clone(), &["a"]),
        item("c", open.clone(), &["a", "b", "a"]),
        item("done", done, &["nowhere"]),
        item("gone", Standing::Gone, &[]),
    ];
    let (lanes, skipped, messages) = read(&items, Unknown::Refused("h"));
    assert_eq!(lanes, ["a<", "b<a", "c<b"]);
    assert_eq!((skipped, messages), (vec!["done: d".to_owned()], Vec::new()));
}

#[test]
fn parents_come_after_children_that_do_not_wait_for_them() {
    let below_first = [None, Some(0), Some(0), Some(0), Some(0)];
    let mut items = [
        item("top", Standing::Open, &[]),
        item("early", Standing::Open, &["top"]),
        item("late", Standing::Open, &["early"]),
        item("free", Standing::Open, &[]),
        item("over", Standing::Done("d".to_owned()), &[]),
    ];
    come_after_children(&mut items, &below_first);
    assert_eq!(read(&items, Unknown::Met).0, ["free<", "top<free", "early<top", "late<early"]);
}

#[test]
fn finished_tasks_may_share_an_id() {
    let done = || Standing::Done("d".to_owned());
    let mut items = [item("a", done(), &[]), item("a", done(), &[]), item("b", Standing::Open, &["a"])];
    let twins = "there are two tasks `a`, the first in list:1".to_owned();
    assert_eq!(read(&items, Unknown::Met), (vec!["b<".to_owned()], vec!["a: d".to_owned()], vec![twins.clone()]));
    for again in [true, false] {
        items.iter_mut().take(2).for_each(|item| (item.standing, item.is_again) = (Standing::Open, again));
        assert_eq!(severities(&items), [(again, twins.clone())], "{again}");
    }
}

/// The messages, each with whether it is a warning.
fn severities(items: &[Item]) -> Vec<(bool, String)> {
    let faults = Faults::new(SourceText::new("list", "x"));
    add_lanes(items, Unknown::Met, &mut PlanDraft::default(), &faults, |_| LaneDraft::default());
    let faults = faults.into_diagnostics().into_iter();
    faults.map(|fault| (!fault.is_error(), fault.message)).collect()
}

#[test]
fn circles_of_finished_tasks_do_not_count() {
    let mut items = [
        item("a", Standing::Open, &["b"]),
        item("b", Standing::Open, &["a"]),
        item("c", Standing::Open, &["b"]),
        item("d", Standing::Open, &["c"]),
    ];
    items.iter_mut().take(3).for_each(|item| item.is_again = true);
    let (lanes, _, messages) = read(&items, Unknown::Met);
    assert_eq!(lanes, ["a<", "b<", "c<b", "d<c"]);
    assert_eq!(messages, ["`a` and other tasks that are done wait for each other"]);
    items[1].is_again = false;
    assert_eq!(read(&items, Unknown::Met).0, ["a<b", "b<a", "c<b", "d<c"]);
}

#[test]
fn tasks_waiting_for_one_aside_are_left_out() {
    let items = [
        item("c", Standing::Open, &["b"]),
        item("b", Standing::Open, &["a"]),
        item("a", Standing::Aside("on ice".to_owned()), &[]),
        item("d", Standing::Open, &["x"]),
        item("x", Standing::NotAsked, &[]),
    ];
    let (lanes, skipped, messages) = read(&items, Unknown::Met);
    assert_eq!(lanes, Vec::<String>::new());
    assert_eq!(
        skipped[..3],
        ["c: it waits for b, which is left out", "b: it waits for a, which is left out", "a: on ice"]
    );
    assert_eq!(skipped[3..], ["d: it waits for x, which is not part of this plan and not done"]);
    assert_eq!(messages, ["no task of this list can start: 0 are done, 4 are left out"]);
}

#[test]
fn unknown_doubled_and_own_ids_are_faults() {
    let items =
        [item("aa", Standing::Open, &["ab", "bb"]), item("bb", Standing::Open, &[]), item("bb", Standing::Open, &[])];
    let (_, _, messages) = read(&items, Unknown::Refused("h"));
    assert_eq!(
        messages[..2],
        ["task `aa` depends on `ab`, but there is no such task", "there are two tasks `bb`, the first in list:1"]
    );
    let (_, _, messages) = read(&[item("a", Standing::Open, &["a"])], Unknown::Met);
    assert_eq!(messages, ["task `a` depends on itself"]);
}

#[test]
fn lanes_follow_edges_then_rank() {
    let mut items =
        [item("slow", Standing::Open, &[]), item("last", Standing::Open, &["slow"]), item("fast", Standing::Open, &[])];
    items[2].rank = 0;
    assert_eq!(read(&items, Unknown::Met).0, ["fast<", "slow<", "last<slow"]);
}

#[test]
fn cycles_keep_their_edges() {
    let items =
        [item("a", Standing::Open, &["b", "c"]), item("b", Standing::Open, &["c"]), item("c", Standing::Open, &["b"])];
    assert_eq!(read(&items, Unknown::Met).0, ["a<b,c", "b<c", "c<b"]);
}

#[test]
fn words_for_statuses_and_priorities() {
    assert_eq!(standing_of("In Progress"), Some(Standing::Open));
    assert_eq!(standing_of("Cancelled"), Some(Standing::Dropped("its status is `Cancelled`".to_owned())));
    assert!(matches!(standing_of("deferred"), Some(Standing::Aside(_))));
    assert_eq!(standing_of("Awaiting Merge"), None);
    assert_eq!(["P0", "High", "2", "low", "?"].map(rank_of), [Some(0), Some(1), Some(2), Some(3), None]);
}

#[test]
fn list_order_ignores_ranks_and_unknown_tasks() {
    let high = Item { rank: 0, ..item("c", Standing::Open, &["c"]) };
    let items = [item("a", Standing::Open, &["b", "x"]), item("b", Standing::Open, &[]), high];
    let (lanes, _, messages) = read(&items, Unknown::Ignored);
    assert_eq!(lanes.iter().map(|lane| &lane[..1]).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(messages, ["task `a` depends on `x`, but there is no such task", "task `c` depends on itself"]);
}
