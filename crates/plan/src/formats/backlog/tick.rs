//! Sets the status of a task and ticks its criteria in its file, and changes nothing else of it.

use std::sync::LazyLock;

use regex::Regex;

use super::board::Board;
use super::task_file::{criteria_boxes, header};
use crate::SourceFile;
use crate::faults::Faults;
use crate::formats::shared::boxes::{BoxState, with_ticks, without_ticks};
use crate::formats::shared::items::{Standing, standing_of};
use crate::front_matter::{self, scalar};
use crate::ids::as_id;
use crate::markdown::Document;
use crate::source_text::SourceText;
use crate::ticks::Tick;

pub(crate) fn ticked(tick: &Tick<'_>) -> Option<String> {
    let text = tick.text.trim_start_matches('\u{feff}');
    let companions: Vec<SourceFile<'_>> =
        tick.companions.iter().map(|(path, text)| SourceFile { path, text }).collect();
    let board = Board::of(&companions);
    let faults = Faults::new(SourceText::new(tick.path, text));
    let front = header(text)?;
    let node = front_matter::read(&text[front.inner.clone()], front.inner.start, &faults)?;
    let id = scalar(node.get("id")?, &faults)?;
    if as_id(&id.value).as_deref() != Some(tick.lane) {
        return None;
    }
    let status = node.get("status")?.span;
    let document = Document::new(text);
    let boxes = criteria_boxes(&document).into_iter().filter(|found| found.state != BoxState::Dropped);
    let mut changed = with_ticks(text, boxes.map(|found| found.tick).collect(), tick.done);
    // Boxes come after the front matter, so its places still hold.
    let written = changed.get(status.start..status.end)?.trim_end().to_owned();
    let wanted = if tick.done { board.done() } else { &board.first };
    if unquoted(&written).0.eq_ignore_ascii_case(board.done()) != tick.done {
        changed.replace_range(status.start..status.start + written.len(), &quoted_like(wanted, &written));
    }
    let mark = &tick.text[..tick.text.len() - text.len()];
    Some(format!("{mark}{changed}"))
}

static STATUS: LazyLock<Regex> = pattern!(r"(?m)^status:(.*)$");

/// A task's file without what work changes of it: its status, unless that sets the task aside, and the ticks of its boxes.
pub(crate) fn unticked(text: &str) -> String {
    let text = without_ticks(text);
    let status = header(&text).and_then(|front| {
        let found = STATUS.captures(&text[front.inner.clone()])?;
        let written = found.get(1)?;
        let value = unquoted(written.as_str().trim()).0;
        let is_work = matches!(standing_of(value), None | Some(Standing::Open | Standing::Done(_)));
        is_work.then(|| front.inner.start + written.start()..front.inner.start + written.end())
    });
    let Some(status) = status else { return text };
    format!("{}{}", &text[..status.start], &text[status.end..])
}

/// A scalar without its quotes, and the quote.
fn unquoted(written: &str) -> (&str, &str) {
    let inside = |quote: &'static str| Some((written.strip_prefix(quote)?.strip_suffix(quote)?, quote));
    inside("\"").or_else(|| inside("'")).unwrap_or((written, ""))
}

/// `status` with the quotes that the value has now, or with those that it needs.
fn quoted_like(status: &str, written: &str) -> String {
    let is_plain = status.chars().all(|c| c.is_alphanumeric() || " _/-".contains(c));
    match unquoted(written).1 {
        "\"" => format!("\"{}\"", status.replace('\\', "\\\\").replace('"', "\\\"")),
        "" if is_plain => status.to_owned(),
        _ => format!("'{}'", status.replace('\'', "''")),
    }
}
