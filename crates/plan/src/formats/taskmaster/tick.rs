//! Sets the statuses of a task and its subtasks in the text of a list, and changes nothing else of it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::lists::lists;
use super::task::{Task, lane_id};
use crate::faults::Faults;
use crate::formats::native::json;
use crate::formats::shared::items::Standing;
use crate::ids::as_id;
use crate::source_text::SourceText;
use crate::ticks::Tick;
use crate::tree::Value;

pub(crate) fn ticked(tick: &Tick<'_>) -> Option<String> {
    let text = tick.text.trim_start_matches('\u{feff}');
    let faults = Faults::new(SourceText::new(tick.path, text));
    let root = json::parse(text, &faults)?;
    let lists = lists(&root);
    let (_, list) = lists.iter().find(|(name, _)| as_id(name).as_deref() == Some(tick.phase)).or(match &lists[..] {
        [only] => Some(only),
        _ => None,
    })?;
    let node = list.get("tasks")?.list().iter().find(|node| {
        let task = Task::read(node, &faults);
        task.is_some_and(|task| lane_id(&task.id.value).as_deref() == Some(tick.lane))
    })?;
    let task = Task::read(node, &faults)?;
    let is_own = |subtask: &Task<'_>| {
        let id = as_id(&format!("{}.{}", task.id.value, subtask.id.value));
        id.is_some_and(|id| tick.tasks.contains(&id.as_str()))
    };
    let is_done = |task: &Task<'_>| matches!(task.standing, Standing::Done(_) | Standing::Dropped(_));
    let changes = |task: &&Task<'_>| is_done(task) != tick.done;
    let own = task.subtasks.iter().filter(|own| is_own(own)).filter(changes);
    let mut places: Vec<Range<usize>> = own.filter_map(status).collect();
    // A subtask that was left out keeps its task open.
    let remains = |subtask: &Task<'_>| !is_done(subtask) && !is_own(subtask);
    if !tick.done || !task.subtasks.iter().any(remains) {
        places.extend(Some(&task).filter(changes).and_then(status));
    }
    places.sort_unstable_by_key(|place| place.start);
    let mut changed = text.to_owned();
    for place in places.into_iter().rev() {
        changed.replace_range(place, if tick.done { "\"done\"" } else { "\"pending\"" });
    }
    let mark = &tick.text[..tick.text.len() - text.len()];
    Some(format!("{mark}{changed}"))
}

static STATUS: LazyLock<Regex> = pattern!(r#"("status"\s*:\s*)"(?:done|completed?|pending|in-progress|review)""#);

/// A list without the statuses that work changes.
pub(crate) fn unticked(text: &str) -> Cow<'_, str> {
    STATUS.replace_all(text, r#"$1"""#)
}

/// Where the status of a task is written, with its quotes.
fn status(task: &Task<'_>) -> Option<Range<usize>> {
    let status = task.node.get("status")?;
    matches!(status.value, Value::Text(_)).then_some(status.span.start..status.span.end)
}
