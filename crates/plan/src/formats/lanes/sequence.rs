//! The order of a lane's tasks: tests first, then the work, then the looking; what depends on something comes after it.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::names::{Meaning, Names, lane_mentions};
use super::tasks::{Kind, RawTask};
use crate::dependencies::topological_order;
use crate::markdown::inline::without_parentheses;

/// The places of `tasks` in the order in which they are done, and whether they wait for each other in a circle.
pub(super) fn sequence(text: &str, tasks: &[RawTask]) -> (Vec<usize>, bool) {
    let (mut order, circle) =
        topological_order(&waits(text, tasks), |task| tasks[task].kind.unwrap_or(Kind::Implement));
    let is_circular = !circle.is_empty();
    order.extend(circle);
    (order, is_circular)
}

/// The tasks that each task waits for, by their ids.
fn waits(text: &str, tasks: &[RawTask]) -> Vec<Vec<usize>> {
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    for (at, task) in tasks.iter().enumerate() {
        if let Some(id) = &task.id {
            by_id.entry(id.value.as_str()).or_insert(at);
        }
    }
    let of = |(at, task): (usize, &RawTask)| {
        let said = task.depends_on.clone().map_or("", |range| &text[range]);
        let words = said.split(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)));
        let named = words.filter_map(|word| by_id.get(word.trim_end_matches('.')).copied()).filter(|&on| on != at);
        named.collect::<BTreeSet<usize>>().into_iter().collect()
    };
    tasks.iter().enumerate().map(of).collect()
}

/// The other lanes whose tasks the tasks of `lane` wait for, and where that is said.
pub(super) fn other_lanes(text: &str, lane: usize, tasks: &[RawTask], names: &Names) -> Vec<(usize, Range<usize>)> {
    let mut found: Vec<(usize, Range<usize>)> = Vec::new();
    for range in tasks.iter().filter_map(|task| task.depends_on.clone()) {
        let said = without_parentheses(&text[range.clone()]);
        for mention in lane_mentions(&said) {
            let at = range.start + mention.range.start..range.start + mention.range.end;
            match names.meaning(&said, &mention) {
                Meaning::Lane(other) if other != lane && !found.iter().any(|(known, _)| *known == other) => {
                    found.push((other, at))
                }
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::super::tasks::tasks;
    use super::*;

    fn order(rows: &str) -> (Vec<String>, bool) {
        let text = format!("| ID | Type | Depends on | Files |\n|---|---|---|---|\n{rows}");
        let tasks = tasks(&text, iter::once(0..text.len())).list;
        let (order, circular) = sequence(&text, &tasks);
        (order.into_iter().map(|at| tasks[at].id.as_ref().unwrap().value.clone()).collect(), circular)
    }

    #[test]
    fn dependencies_outrank_task_kinds() {
        let (found, circular) = order(
            "| a | verify | - | |\n| b | impl | - | |\n| c | impl | b | |\n| d | test | - | |\n| e | test | c | |\n",
        );
        assert_eq!((found, circular), (["d", "b", "c", "e", "a"].map(str::to_owned).to_vec(), false));
    }

    #[test]
    fn task_cycle_is_broken() {
        let (found, circular) = order("| a | impl | b | |\n| b | test | a | |\n| c | impl | - | |\n");
        assert_eq!((found, circular), (["c", "b", "a"].map(str::to_owned).to_vec(), true));
    }
}
