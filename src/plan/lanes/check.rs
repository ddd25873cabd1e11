//! What the section of a lane should say and does not.

use super::context::Context;
use super::making::Making;
use super::sequence::other_lanes;
use super::tasks::{Kind, RawTask, Tasks};
use crate::model::text::counted;
use crate::plan::faults::quoted;

/// Notes what the tasks of a lane should say and do not.
pub(super) fn check_tasks(making: &Making<'_>, lane: usize, read: &Tasks) {
    let (context, text) = (making.context, &making.context.lanes[lane]);
    let own = quoted(&text.id);
    for (at, written, width) in &read.odd_rows {
        let message = format!("this row has {}, the table has {width} columns", counted(*written, "cell"));
        context.warning(at.clone(), message, "write a `|` within a cell as `\\|`");
    }
    if !text.described {
        let message = format!("lane {own} stands in the index and has no section of its own");
        context.warning(text.at.clone(), message, "describe it under `## Lanes`: its agent is told its name only");
    } else if read.list.is_empty() {
        let message = format!("lane {own} has no tasks");
        context.warning(text.at.clone(), message, "list them: its agent is told what its section says");
    }
    for task in &read.list {
        for (command, why) in &task.commands.others {
            let (message, help) = why.told(command);
            context.warning(task.at.start..task.at.start, message, help);
        }
    }
    for (other, at) in other_lanes(context.document.text, lane, &read.list, &context.names) {
        if !making.before.waits(lane, other) {
            let other = quoted(&context.lanes[other].id);
            let message = format!("a task of lane {own} depends on {other}, but the lane does not wait for it");
            context.warning(at, message, format!("add {other} to `Depends on` of the lane"));
        }
    }
    let ticked: Vec<&RawTask> = read.list.iter().filter(|task| task.ticked).collect();
    if let Some(first) = ticked.first() {
        let message = format!("lane {own} has {}, done again all the same", counted(ticked.len(), "ticked task"));
        context.warning(first.at.start..first.at.start, message, "leave out what need not be done");
    }
    if making.first_version {
        lacking(context, &own, &read.list);
    }
}

/// Whether a task does not say something.
type Lacks = fn(&RawTask) -> bool;

/// What a plan of the first version must say of each task.
fn lacking(context: &Context<'_>, own: &str, list: &[RawTask]) {
    let lacks: [(&str, Lacks); 3] = [
        ("type", |task| task.kind_word.is_empty()),
        ("tests", |task| !task.names_tests && task.kind != Some(Kind::Verify)),
        ("test command", |task| !task.names_command),
    ];
    let lacking = |task: &&RawTask| lacks.iter().any(|(_, lacks)| lacks(task));
    let Some(first) = list.iter().find(lacking) else { return };
    let count = |(what, lacks): &(&str, Lacks)| {
        let count = list.iter().filter(|task| lacks(task)).count();
        (count > 0).then(|| format!("{count} without {what}"))
    };
    let parts: Vec<String> = lacks.iter().filter_map(count).collect();
    let message = format!("the tasks of lane {own} are not described in full: {}", parts.join(", "));
    let help = "a complete plan names the type, the tests and the test command of every task";
    context.lack(context.options.strict, first.at.start..first.at.start, message, help);
}
