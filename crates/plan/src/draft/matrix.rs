//! `matrix`: one lane of the text stands for a lane for each combination of values. They are made before the keys are read,
//! so everything else sees plain lanes.

use std::collections::BTreeMap;

use crate::faults::{Faults, nearest, quoted};
use crate::source_text::{At, Span};
use crate::tree::{Node, TableEntry, Value};

/// The most lanes of one matrix.
const MAX_COMBINATIONS: usize = 256;

const HELP: &str = "write for example `matrix = { os = [\"linux\", \"mac\"] }`";

struct Axis {
    name: String,
    values: Vec<String>,
}

/// A value for each name.
type Combination<'a> = Vec<(&'a str, &'a str)>;

/// Puts the lanes that a matrix stands for in the place of its lane; what refers to that one refers to all of them.
pub(super) fn expand(plan: &mut [TableEntry], faults: &Faults<'_>) {
    let Some(TableEntry { value: At { value: Value::List(lanes), .. }, .. }) = entry(plan, "lane") else { return };
    let mut expanded: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut all = Vec::new();
    for mut lane in std::mem::take(lanes) {
        match take_matrix(&mut lane, faults) {
            None => all.push(lane),
            Some(axes) => {
                check_placeholders(&lane, &axes, faults);
                let copies: Vec<Node> = combinations(&axes).iter().map(|values| copy(&lane, values, faults)).collect();
                let ids: Vec<String> = copies.iter().filter_map(|copy| id_of(copy, faults)).collect();
                axes.iter().for_each(|axis| faults.note_copies(&axis.name, &axis.values));
                if let Some(id) = id_of(&lane, faults) {
                    faults.note_copies(&id, &ids);
                    expanded.insert(id, ids);
                }
                all.extend(copies);
            }
        }
    }
    if !expanded.is_empty() {
        all.iter_mut().for_each(|lane| refer_to_all(lane, &expanded, faults));
    }
    *lanes = all;
    if let Some(defaults) = entry(plan, "defaults").filter(|_| !expanded.is_empty()) {
        refuse_placeholders(&defaults.value, faults);
    }
}

fn entry<'e>(entries: &'e mut [TableEntry], key: &str) -> Option<&'e mut TableEntry> {
    entries.iter_mut().find(|entry| entry.key.value == key)
}

fn entries(node: &mut Node) -> Option<&mut Vec<TableEntry>> {
    if let Value::Table(entries) = &mut node.value { Some(entries) } else { None }
}

/// The matrix of a lane, which loses the key; `None`: it has none, or one that is at fault.
fn take_matrix(lane: &mut Node, faults: &Faults<'_>) -> Option<Vec<Axis>> {
    let entries = entries(lane)?;
    let at = entries.iter().position(|entry| entry.key.value == "matrix")?;
    let matrix = entries.remove(at).value;
    let Value::Table(entries) = matrix.value else {
        if matrix.value != Value::Null {
            let message = format!("a matrix is a table of names and lists of values, not {}", matrix.value.kind());
            faults.error_with(matrix.span, message, HELP);
        }
        return None;
    };
    if entries.is_empty() {
        faults.error_with(matrix.span, "this matrix is empty", HELP);
        return None;
    }
    let before = faults.errors();
    let axes: Vec<Axis> = entries.into_iter().map(|entry| axis(entry, faults)).collect();
    let size = axes.iter().fold(1_usize, |size, axis| size.saturating_mul(axis.values.len()));
    if size > MAX_COMBINATIONS {
        faults.error(
            matrix.span,
            format!("this matrix has {size} combinations, and at most {MAX_COMBINATIONS} are possible"),
        );
    }
    (faults.errors() == before).then_some(axes)
}

fn axis(entry: TableEntry, faults: &Faults<'_>) -> Axis {
    let (name, span) = (entry.key.value, entry.value.span);
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
        let message = format!("{} cannot name a value of a matrix", quoted(&name));
        faults.error_with(entry.key.span, message, "use letters, digits, `_` and `-`");
    }
    let mut values: Vec<String> = Vec::new();
    for item in entry.value.items() {
        let Some(text) = item.as_written(faults) else {
            faults.error_with(item.span, format!("text is wanted here, not {}", item.value.kind()), HELP);
            continue;
        };
        if in_id(&text).is_empty() {
            faults.error(item.span, format!("{} leaves nothing for the lane's id", quoted(&text)));
        } else if values.contains(&text) {
            faults.error_with(item.span, format!("{} is there twice", quoted(&text)), "keep one of them");
        }
        values.push(text);
    }
    if values.is_empty() {
        faults.error_with(span, format!("`{name}` has no values"), HELP);
    }
    Axis { name, values }
}

/// The value as part of an id: `ubuntu:22.04` is `ubuntu-22.04`.
fn in_id(value: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let text: String = value.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    text.trim_matches(['-', '.']).to_owned()
}

/// Every combination; those that differ in the last name come after one another.
fn combinations(axes: &[Axis]) -> Vec<Combination<'_>> {
    let mut all: Vec<Combination<'_>> = vec![Vec::new()];
    for axis in axes {
        let values = || axis.values.iter().map(|value| (axis.name.as_str(), value.as_str()));
        let extended = all.iter().flat_map(|begun| values().map(|value| [begun.as_slice(), &[value]].concat()));
        all = extended.collect();
    }
    all
}

/// The lane with these values in its texts; its id and its name end with them, unless they name them themselves.
fn copy(lane: &Node, values: &Combination<'_>, faults: &Faults<'_>) -> Node {
    let mut copy = lane.clone();
    let all = |map: fn(&str) -> String, between: &str| {
        values.iter().map(|(_, value)| map(value)).collect::<Vec<_>>().join(between)
    };
    for entry in entries(&mut copy).into_iter().flatten() {
        let own = entry.value.as_written(faults);
        match (entry.key.value.as_str(), own) {
            ("id", Some(id)) if placeholders(&id).next().is_some() => {
                let fitting: Vec<(&str, String)> = values.iter().map(|(name, value)| (*name, in_id(value))).collect();
                fill_in(&mut entry.value, &fitting.iter().map(|(name, value)| (*name, value.as_str())).collect());
            }
            ("id", Some(id)) => entry.value.value = Value::Text(format!("{id}-{}", all(in_id, "-"))),
            ("name", Some(name)) if placeholders(&name).next().is_none() => {
                entry.value.value = Value::Text(format!("{name} ({})", all(str::to_owned, ", ")));
            }
            _ => fill_in(&mut entry.value, values),
        }
    }
    copy
}

fn fill_in(node: &mut Node, values: &Combination<'_>) {
    each_text(node, &mut |text, _| {
        let found: Vec<_> = placeholders(text).collect();
        for (range, name) in found.into_iter().rev() {
            if let Some((_, value)) = values.iter().find(|(known, _)| *known == name) {
                text.replace_range(range, value);
            }
        }
    });
}

/// The places of `{{ matrix.NAME }}` in a text, each with the name. `${{ … }}` is another program's.
fn placeholders(text: &str) -> impl Iterator<Item = (std::ops::Range<usize>, String)> {
    let begins = text.match_indices("{{").filter(|(at, _)| !text[..*at].ends_with('$'));
    let read = |(at, _): (usize, &str)| {
        let length = text[at..].find("}}")? + 2;
        let inside = text[at + 2..at + length - 2].trim();
        Some((at..at + length, inside.strip_prefix("matrix.")?.trim().to_owned()))
    };
    begins.filter_map(read).collect::<Vec<_>>().into_iter()
}

fn check_placeholders(lane: &Node, axes: &[Axis], faults: &Faults<'_>) {
    let known: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
    each_text(&mut lane.clone(), &mut |text, span| {
        for (_, name) in placeholders(text).filter(|(_, name)| !known.contains(&name.as_str())) {
            let message = format!("`{{{{ matrix.{name} }}}}` is not in the lane's matrix");
            let help = match nearest(&name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("it has {}", known.join(", ")),
            };
            faults.error_with(span, message, help);
        }
    });
}

fn refuse_placeholders(defaults: &Node, faults: &Faults<'_>) {
    each_text(&mut defaults.clone(), &mut |text, span| {
        if placeholders(text).next().is_some() {
            faults.error_with(span, "values of a matrix are not filled in here", "write it in the lane");
        }
    });
}

fn each_text(node: &mut Node, act: &mut dyn FnMut(&mut String, Span)) {
    match &mut node.value {
        Value::Text(text) => act(text, node.span),
        Value::List(items) => items.iter_mut().for_each(|item| each_text(item, act)),
        Value::Table(entries) => entries.iter_mut().for_each(|entry| each_text(&mut entry.value, act)),
        Value::Null | Value::Boolean(_) | Value::Integer(_) | Value::Other(_) => {}
    }
}

fn id_of(lane: &Node, faults: &Faults<'_>) -> Option<String> {
    let Value::Table(entries) = &lane.value else { return None };
    entries.iter().find(|entry| entry.key.value == "id")?.value.as_written(faults)
}

/// Replaces, in the lists of lanes, one that a matrix stands for by all that it stands for.
fn refer_to_all(lane: &mut Node, expanded: &BTreeMap<String, Vec<String>>, faults: &Faults<'_>) {
    for entry in entries(lane).into_iter().flatten() {
        if !matches!(entry.key.value.as_str(), "depends_on" | "excludes") || entry.value.value == Value::Null {
            continue;
        }
        let span = entry.value.span;
        let named = std::mem::replace(&mut entry.value, At::new(Value::Null, span)).items().into_iter();
        let all = named.flat_map(|item| match item.as_written(faults).and_then(|id| expanded.get(&id)) {
            Some(ids) => ids.iter().map(|id| At::new(Value::Text(id.clone()), item.span)).collect(),
            None => vec![item],
        });
        entry.value.value = Value::List(all.collect());
    }
}
