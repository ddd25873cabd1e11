//! Readers of single values; each reports what is wrong with a value at its span.

use std::time::Duration;

use lanewright_model::plan::{AgentWorktrees, OwnershipRule, RetryFrom, SharedFiles};
use lanewright_model::text::counted;
use lanewright_model::{Approval, CommandLine, Dollars, MergeChoice, Round, TaskKind, Word};

use super::keys::{Key, Shape};
use super::{CandidatesDraft, MAX_CANDIDATES};
use crate::faults::{Faults, nearest, quoted};
use crate::settings::value::words;
use crate::source_text::{At, Span};
use crate::tree::{Node, Value};

/// The longest time limit that is taken, to keep moments in the range of a calendar.
const MAX_TIME_LIMIT: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// What can be read from a node of the kind that a key takes.
pub(super) trait FromNode: Sized {
    /// `None` for what is at fault, which is noted.
    fn from_node(node: Node, key: &Key, faults: &Faults<'_>) -> Option<Self>;
}

/// Readers of types that do without the place.
macro_rules! without_place {
    ($($type:ty),*) => {$(
        impl FromNode for $type {
            fn from_node(node: Node, key: &Key, faults: &Faults<'_>) -> Option<Self> {
                At::from_node(node, key, faults).map(|read| read.value)
            }
        }
    )*};
}

without_place! { String, u32, CommandLine }

impl FromNode for At<String> {
    fn from_node(node: Node, key: &Key, faults: &Faults<'_>) -> Option<Self> {
        match key.shape {
            Shape::Id | Shape::Ids => written(node, faults),
            Shape::FullText | Shape::Candidates => full_text(node, faults),
            _ => text(node, faults),
        }
    }
}

/// A list of what the key takes; but for tables, a single value is a list of one.
impl<T: FromNode> FromNode for Vec<T> {
    fn from_node(node: Node, key: &Key, faults: &Faults<'_>) -> Option<Self> {
        let nodes = match (node.value, &key.shape) {
            (Value::List(nodes), _) => nodes,
            (other, Shape::Tables(_)) => {
                let message = format!("a list of tables is wanted here, not {}", other.kind());
                faults.error_with(node.span, message, "in TOML, write each one under a header in double brackets");
                return None;
            }
            (value, _) => vec![At::new(value, node.span)],
        };
        if let (true, [help]) = (nodes.is_empty(), key.required) {
            faults.error_with(node.span, format!("this plan has no {}", key.name), help);
        }
        Some(nodes.into_iter().filter_map(|node| T::from_node(node, key, faults)).collect())
    }
}

fn text(node: Node, faults: &Faults<'_>) -> Option<At<String>> {
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

fn full_text(node: Node, faults: &Faults<'_>) -> Option<At<String>> {
    let text = text(node, faults)?;
    if text.value.trim().is_empty() {
        faults.error_with(text.span, "this text is empty", "write something, or leave the key out");
        return None;
    }
    Some(text)
}

/// Text, or a number or truth value as it is written: ids and environment variables.
fn written(node: Node, faults: &Faults<'_>) -> Option<At<String>> {
    match node.as_written(faults) {
        Some(written) => Some(At::new(written, node.span)),
        None => wrong_kind("text", &node.value, node.span, faults),
    }
}

impl FromNode for At<u32> {
    fn from_node(node: Node, key: &Key, faults: &Faults<'_>) -> Option<Self> {
        match key.shape {
            _ if key.name == "max_tokens" && node.value == Value::Integer(0) => {
                faults.error_with(node.span, NO_BUDGET, NO_LIMIT);
                None
            }
            Shape::Number(least, most) => number(node, least, most, faults),
            _ => number(node, 0, u32::MAX, faults),
        }
    }
}

const NO_BUDGET: &str = "a budget is more than 0";
const NO_LIMIT: &str = "without the key there is no limit";

/// A whole number of `least..=most`.
fn number(node: Node, least: u32, most: u32, faults: &Faults<'_>) -> Option<At<u32>> {
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

impl FromNode for bool {
    fn from_node(node: Node, _: &Key, faults: &Faults<'_>) -> Option<Self> {
        match node.value {
            Value::Boolean(flag) => Some(flag),
            other => wrong_kind("`true` or `false`", &other, node.span, faults),
        }
    }
}

/// More than nothing.
impl FromNode for At<Dollars> {
    fn from_node(node: Node, _: &Key, faults: &Faults<'_>) -> Option<Self> {
        let text = written(node, faults)?;
        match text.value.parse::<Dollars>() {
            Ok(amount) if amount > Dollars::default() => return Some(At::new(amount, text.span)),
            Ok(_) => faults.error_with(text.span, NO_BUDGET, NO_LIMIT),
            Err(help) => faults.error(text.span, format!("{} is no amount: {help}", quoted(&text.value))),
        }
        None
    }
}

impl FromNode for At<CandidatesDraft> {
    fn from_node(node: Node, key: &Key, faults: &Faults<'_>) -> Option<Self> {
        let span = node.span;
        let help = format!(
            "write 1 to {MAX_CANDIDATES}, or a list of runners; each candidate has a worktree of its own and is paid for"
        );
        let wrong = |message: String| faults.error_with(span, message, &help);
        match node.value {
            Value::Integer(number) => match u32::try_from(number) {
                Ok(number @ 1..=MAX_CANDIDATES) => return Some(At::new(CandidatesDraft::Count(number), span)),
                _ => wrong(format!("the number of candidates cannot be {number}")),
            },
            Value::List(items) if items.is_empty() || items.len() > MAX_CANDIDATES as usize => {
                wrong(format!("this list has {}", counted(items.len(), "runner")));
            }
            Value::Text(text) if text.trim().parse::<u32>().is_ok() => {
                let message = format!("the number of candidates is a text here: {}", quoted(&text));
                faults.error_with(span, message, format!("write {} without quotes", text.trim()));
            }
            value @ (Value::List(_) | Value::Text(_)) => {
                let runners = Vec::from_node(At::new(value, span), key, faults)?;
                return Some(At::new(CandidatesDraft::Each(runners), span));
            }
            other => wrong(format!("a number or a list of runners is wanted here, not {}", other.kind())),
        }
        None
    }
}

/// Longer than nothing.
impl FromNode for At<Duration> {
    fn from_node(node: Node, _: &Key, faults: &Faults<'_>) -> Option<Self> {
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
            Ok(time) if time > MAX_TIME_LIMIT => "a time limit is at most a year".to_owned(),
            Ok(time) => return Some(At::new(time, node.span)),
            Err(error) => error.to_string(),
        };
        faults.error_with(node.span, format!("{} is no duration: {fault}", quoted(&text)), format!("write {help}"));
        None
    }
}

macro_rules! word_of_key {
    ($($type:ty),*) => {$(
        impl FromNode for At<$type> {
            fn from_node(node: Node, _: &Key, faults: &Faults<'_>) -> Option<Self> {
                word(node, faults)
            }
        }
    )*};
}

word_of_key! { AgentWorktrees, Approval, MergeChoice, OwnershipRule, RetryFrom, Round, SharedFiles, TaskKind }

fn word<T: Word>(node: Node, faults: &Faults<'_>) -> Option<At<T>> {
    let text = written(node, faults)?;
    if let Some(&word) = T::all().iter().find(|word| word.word() == text.value) {
        return Some(At::new(word, text.span));
    }
    let help = match nearest(&text.value, words::<T>()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("one of: {}", words::<T>().join(", ")),
    };
    faults.error_with(text.span, format!("{} is not one of the words for this key", quoted(&text.value)), help);
    None
}

/// A shell line, or the list of a program and its arguments.
impl FromNode for At<CommandLine> {
    fn from_node(node: Node, _: &Key, faults: &Faults<'_>) -> Option<Self> {
        let span = node.span;
        let line = match node.value {
            Value::List(items) => {
                let words: Vec<_> = items.into_iter().map(|item| Some(text(item, faults)?.value)).collect();
                CommandLine::Arguments(words.into_iter().collect::<Option<_>>()?)
            }
            _ => CommandLine::Shell(text(node, faults)?.value),
        };
        if line.is_empty() {
            faults.error_with(span, "this command is empty", "write a shell line, or a list of program and arguments");
            return None;
        }
        Some(At::new(line, span))
    }
}

impl FromNode for Vec<(At<String>, u32)> {
    fn from_node(node: Node, _: &Key, faults: &Faults<'_>) -> Option<Self> {
        let Value::Table(entries) = node.value else {
            faults.error_with(node.span, "`pools` is a table of names and sizes", "write for example `heavy = 1`");
            return None;
        };
        let size = |node| Some(number(node, 1, u32::MAX, faults)?.value);
        Some(entries.into_iter().filter_map(|entry| Some((entry.key, size(entry.value)?))).collect())
    }
}

impl FromNode for Vec<(At<String>, String)> {
    fn from_node(node: Node, _: &Key, faults: &Faults<'_>) -> Option<Self> {
        let Value::Table(entries) = node.value else {
            let help = "write for example `env = { CI = \"1\" }`";
            faults.error_with(node.span, "`env` is a table of names and values", help);
            return None;
        };
        let mut variables = Vec::new();
        for entry in entries {
            if entry.key.value.is_empty() || entry.key.value.contains('=') {
                let message = format!("{} cannot name an environment variable", quoted(&entry.key.value));
                faults.error_with(entry.key.span, message, "use letters, digits and `_`");
            } else if let Some(value) = written(entry.value, faults) {
                variables.push((entry.key, value.value));
            }
        }
        Some(variables)
    }
}

fn wrong_kind<T>(wanted: &str, found: &Value, span: Span, faults: &Faults<'_>) -> Option<T> {
    faults.error(span, format!("{wanted} is wanted here, not {}", found.kind()));
    None
}
