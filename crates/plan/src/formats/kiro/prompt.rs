//! The prompts of tasks.

use super::list::{List, Task};
use crate::SourceFile;
use crate::formats::shared::companions::add_paths;
use crate::formats::shared::documents::Documents;
use crate::markdown::inline::dedent;
use crate::markdown::{paragraph, section};

/// The longest text of an item that the prompts of all its parts repeat, in bytes, and how many such items one prompt has.
const MAX_PART: usize = 8 * 1024;
const MAX_PARTS: usize = 3;

pub(super) struct Position<'l, 'a> {
    pub(super) spec: &'l str,
    pub(super) list: &'l List<'a>,
    pub(super) task: &'l Task,
    /// How many items of the list are done.
    pub(super) done: usize,
}

pub(super) fn prompt(
    position: &Position<'_, '_>,
    is_manual: bool,
    documents: &Documents<'_, '_>,
    on_demand: &[&SourceFile<'_>],
) -> String {
    let Position { spec, list, task, done } = position;
    let item = &list.items[task.item];
    let mut text = String::new();
    paragraph(&mut text, &format!("Specification `{spec}` of Kiro."));
    let heading = format!("Your task: {} {}", item.id, list.title(task.item));
    section(&mut text, &heading, &what_to_do(list, task));
    let above = std::iter::successors(item.parent, |above| list.items[*above].parent);
    for part_of in above.take(MAX_PARTS).map(|above| &list.items[above]) {
        let whole = part_of.title.start..part_of.own.end;
        let said = if whole.len() > MAX_PART { &part_of.title } else { &whole };
        section(&mut text, &format!("Part of {}", part_of.id), &dedent(list.text(said)));
    }
    if is_manual {
        return text;
    }
    documents.add(&mut text);
    add_paths(&mut text, "Steering for some tasks", on_demand.iter().copied());
    let done = if *done > 0 {
        format!(" {done} of its tasks are done: see the boxes that are ticked.")
    } else {
        String::new()
    };
    paragraph(
        &mut text,
        &format!(
            "The whole list is `tasks.md` of the specification.{done} Do this task only, without tasks that are marked with `*`. Do not \
             edit `tasks.md`: Lanewright ticks it when your work is merged."
        ),
    );
    text
}

/// The texts of the task and of its parts that are not nested in it, these with their boxes.
fn what_to_do(list: &List<'_>, task: &Task) -> String {
    let mut text = String::new();
    let mut end = 0;
    for item in task.members.iter().map(|member| &list.items[*member]) {
        if item.body.start < end {
            continue;
        }
        let mark = if item.state.is_done() { "x" } else { " " };
        let title = if end == 0 { String::new() } else { format!("[{mark}] {} ", item.id) };
        paragraph(&mut text, &format!("{title}{}", dedent(list.text(&(item.title.start..item.body.end)))));
        end = item.body.end;
    }
    text
}
