//! Readers of single values; each notes what is wrong with a value where it stands.

use std::time::Duration;

use super::faults::{Faults, nearest, quoted};
use super::source_text::At;
use super::tree::{Node, Value};
use crate::model::CommandLine;

/// The longest time limit that is taken, to keep moments in the range of a calendar.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Text.
pub(super) fn text(node: Node, faults: &Faults<'_>) -> Option<At<String>> {
    match node.value {
        Value::Text(text) => Some(At::new(text, node.span)),
        Value::Integer(_) | Value::Boolean(_) | Value::Other(_) => {
            let written = faults.source.slice(node.span).trim();
            let message = format!("text is wanted here, not {}: `{written}`", node.value.kind());
            faults.error_with(node.span, message, format!("put it in quotes: \"{written}\""));
            None
        }
        other => wrong_kind("text", &other, node.span, faults),
    }
}

/// Text that says something.
pub(super) fn full_text(node: Node, faults: &Faults<'_>) -> Option<At<String>> {
    let text = text(node, faults)?;
    if text.value.trim().is_empty() {
        faults.error_with(text.span, "this text is empty", "write something, or leave the key out");
        return None;
    }
    Some(text)
}

/// Text, or a number or truth value as it is written: ids and environment variables.
pub(super) fn written(node: Node, faults: &Faults<'_>) -> Option<At<String>> {
    match node.value {
        Value::Integer(_) | Value::Boolean(_) | Value::Other(_) => {
            Some(At::new(faults.source.slice(node.span).trim().to_owned(), node.span))
        }
        _ => text(node, faults),
    }
}

/// A whole number of `least..=most`.
pub(super) fn number(node: Node, least: u32, most: u32, faults: &Faults<'_>) -> Option<At<u32>> {
    let Value::Integer(number) = node.value else {
        return wrong_kind("a whole number", &node.value, node.span, faults);
    };
    match u32::try_from(number).ok().filter(|number| (least..=most).contains(number)) {
        Some(number) => Some(At::new(number, node.span)),
        None => {
            let range = if most == u32::MAX { format!("at least {least}") } else { format!("{least} to {most}") };
            faults.error(node.span, format!("{number} is out of range: {range}"));
            None
        }
    }
}

/// True or false.
pub(super) fn flag(node: Node, faults: &Faults<'_>) -> Option<bool> {
    match node.value {
        Value::Boolean(flag) => Some(flag),
        other => wrong_kind("`true` or `false`", &other, node.span, faults),
    }
}

/// A length of time that is longer than nothing.
pub(super) fn duration(node: Node, faults: &Faults<'_>) -> Option<At<Duration>> {
    let help = "a number and a unit, for example `90s`, `30m` or `1h 30m`";
    let text = match node.value {
        Value::Text(text) => text,
        other => {
            let message = format!("a duration is wanted here, not {}", other.kind());
            faults.error_with(node.span, message, format!("write {help}"));
            return None;
        }
    };
    let fault = match humantime::parse_duration(text.trim()) {
        Ok(time) if time < Duration::from_millis(1) => "a time limit is longer than nothing".to_owned(),
        Ok(time) if time > LONGEST => "a time limit is at most a year".to_owned(),
        Ok(time) => return Some(At::new(time, node.span)),
        Err(error) => error.to_string(),
    };
    faults.error_with(node.span, format!("{} is no duration: {fault}", quoted(&text)), format!("write {help}"));
    None
}

/// One of the words of an enum.
pub(super) fn word<T: Copy>(
    words: &'static [T],
    name: fn(T) -> &'static str,
) -> impl Fn(Node, &Faults<'_>) -> Option<At<T>> {
    move |node, faults| {
        let text = written(node, faults)?;
        if let Some(&value) = words.iter().find(|&&word| name(word) == text.value) {
            return Some(At::new(value, text.span));
        }
        let names: Vec<&str> = words.iter().map(|&word| name(word)).collect();
        let help = match nearest(&text.value, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("one of: {}", names.join(", ")),
        };
        faults.error_with(text.span, format!("{} is not one of the words for this key", quoted(&text.value)), help);
        None
    }
}

/// A list of what `reader` reads; a single value is a list of one.
pub(super) fn list<T>(
    reader: impl Fn(Node, &Faults<'_>) -> Option<T>,
) -> impl FnOnce(Node, &Faults<'_>) -> Option<Vec<T>> {
    move |node, faults| {
        let nodes = if let Value::List(nodes) = node.value { nodes } else { vec![node] };
        Some(nodes.into_iter().filter_map(|node| reader(node, faults)).collect())
    }
}

/// One command: a shell line, or the list of a program and its arguments.
pub(super) fn command(node: Node, faults: &Faults<'_>) -> Option<At<CommandLine>> {
    let span = node.span;
    let line = match node.value {
        Value::List(items) => {
            let count = items.len();
            let words: Vec<String> = items.into_iter().filter_map(|item| Some(text(item, faults)?.value)).collect();
            if words.len() < count {
                return None;
            }
            CommandLine::Arguments(words)
        }
        _ => CommandLine::Shell(text(node, faults)?.value),
    };
    if line.is_empty() {
        faults.error_with(span, "this command is empty", "write a shell line, or a list of program and arguments");
        return None;
    }
    Some(At::new(line, span))
}

/// A list of commands. One line is a list of one.
pub(super) fn commands(node: Node, faults: &Faults<'_>) -> Option<Vec<CommandLine>> {
    let read = list(command)(node, faults)?;
    Some(read.into_iter().map(|command| command.value).collect())
}

fn wrong_kind<T>(wanted: &str, found: &Value, span: super::source_text::Span, faults: &Faults<'_>) -> Option<T> {
    faults.error(span, format!("{wanted} is wanted here, not {}", found.kind()));
    None
}
