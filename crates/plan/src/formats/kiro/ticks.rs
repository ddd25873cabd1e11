//! Ticks the boxes of tasks, or opens them again.

use std::collections::HashSet;
use std::ops::Range;

use super::id_of;
use super::lanes::lanes;
use super::list::List;
use crate::formats::shared::boxes::with_ticks;
use crate::ticks::Tick;

/// The list with the boxes of the lane's tasks ticked, and of what they are the last open parts of; `None`: it is another
/// specification's.
pub(crate) fn ticked(tick: &Tick<'_>) -> Option<String> {
    let list = List::new(tick.text);
    let (lanes, _) = lanes(&id_of(tick.path), &list);
    let lane = lanes.into_iter().find(|lane| lane.id == tick.lane)?;
    let is_asked = |item: usize| tick.tasks.contains(&list.items[item].id.as_str());
    let members: Vec<usize> =
        lane.tasks.into_iter().filter(|task| is_asked(task.item)).flat_map(|task| task.members).collect();
    let mut done: Vec<bool> = list.items.iter().map(|item| item.state.is_done()).collect();
    members.iter().for_each(|member| done[*member] = tick.done);
    let mut changed: HashSet<usize> = members.iter().copied().collect();
    // What is deeper stands behind what it is a part of.
    for at in (0..list.items.len()).rev() {
        let item = &list.items[at];
        let mut parts = list.required(item).peekable();
        if parts.peek().is_none() || members.contains(&at) || !item.children.iter().any(|child| changed.contains(child))
        {
            continue;
        }
        let is_done = parts.all(|part| done[part]);
        if is_done == tick.done {
            done[at] = is_done;
            changed.insert(at);
        }
    }
    let ticks: Vec<Range<usize>> = changed.into_iter().flat_map(|item| list.items[item].ticks.clone()).collect();
    Some(with_ticks(tick.text, ticks, tick.done))
}
