//! Ticks the boxes of sections, or opens them again.

use super::id_of;
use super::sections::List;
use crate::formats::shared::boxes::with_ticks;
use crate::ticks::Tick;

/// The list with all boxes of the lane's tasks ticked, those nested in others, too; `None`: it is another change's.
pub(crate) fn ticked(tick: &Tick<'_>) -> Option<String> {
    if id_of(tick.path) != tick.lane {
        return None;
    }
    let list = List::new(tick.text);
    let sections = list.sections.iter().filter(|section| tick.tasks.contains(&section.id.as_str()));
    let boxes = sections.flat_map(|section| &section.boxes);
    Some(with_ticks(tick.text, boxes.map(|at| list.boxes[*at].tick.clone()).collect(), tick.done))
}
