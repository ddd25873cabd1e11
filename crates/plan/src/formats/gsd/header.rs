//! What the front matter of a plan says, key by key.

use lanewright_model::{MustHaves, UserSetup};

use super::{must_haves, user_setup};
use crate::faults::{Faults, nearest, quoted};
use crate::front_matter::{KEYS, normal, scalar};
use crate::source_text::{At, Span};
use crate::tree::{Node, TableEntry, Value};

#[derive(Debug, Default)]
pub(super) struct Header {
    pub(super) phase: Option<At<String>>,
    pub(super) plan: Option<At<String>>,
    pub(super) title: Option<At<String>>,
    pub(super) wave: Option<At<u32>>,
    pub(super) depends_on: Vec<At<String>>,
    pub(super) files: Vec<At<String>>,
    /// Where the plan says that it cannot be done without a person.
    pub(super) attended: Option<Span>,
    pub(super) must_haves: MustHaves,
    /// What a person has to set up, as it is written.
    pub(super) user_setup: Option<Span>,
    /// The same, read.
    pub(super) setup: Vec<UserSetup>,
}

pub(super) fn read(root: Node, faults: &Faults<'_>) -> Header {
    let mut header = Header::default();
    let Value::Table(entries) = root.value else {
        if root.value != Value::Null {
            let message = format!("the front matter is {}, not a table of keys", root.value.kind());
            faults.warning(root.span, message, "write `key: value` lines; it is read as if it were not there");
        }
        return header;
    };
    note_near_misses(&entries, faults);
    let is_key = |entry: &TableEntry, keys: &[&str]| keys.contains(&normal(&entry.key.value).as_str());
    if let Some(at) = entries.iter().position(|entry| is_key(entry, &["user_setup"]) && !is_empty(&entry.value.value)) {
        let written = entries[at].value.span;
        let end = entries.get(at + 1).map_or(written.end, |next| next.key.span.start);
        header.user_setup = Some(Span::new(written.start, end));
        header.setup = user_setup::read(&entries[at].value, faults);
    }
    let nested = entries.iter().any(|entry| is_key(entry, &["must_haves"]));
    let is_bare = |entry: &TableEntry| !nested && is_key(entry, &["truths", "artifacts", "key_links"]);
    let (bare, entries): (Vec<TableEntry>, Vec<TableEntry>) = entries.into_iter().partition(is_bare);
    entries.into_iter().for_each(|entry| header.take(entry, faults));
    if let Some(first) = bare.first() {
        let span = first.key.span;
        header.must_haves = must_haves::read(At::new(Value::Table(bare), span), faults);
    }
    header
}

impl Header {
    fn take(&mut self, TableEntry { key, value }: TableEntry, faults: &Faults<'_>) {
        match normal(&key.value).as_str() {
            "phase" => self.phase = scalar(&value, faults),
            "plan" => self.plan = scalar(&value, faults),
            "title" | "name" => self.title = scalar(&value, faults),
            "wave" => self.wave = wave(&value, faults),
            "depends_on" => self.depends_on = references(value, faults),
            "files_modified" => self.files = texts(value, "files_modified", faults),
            "autonomous" => self.attended = attended(&value, faults),
            "must_haves" => self.must_haves = must_haves::read(value, faults),
            _ => {}
        }
    }
}

/// The value of the first key that has one of these names.
pub(super) fn field<'a>(entries: &'a [TableEntry], names: &[&str]) -> Option<&'a Node> {
    entries.iter().find(|entry| names.contains(&normal(&entry.key.value).as_str())).map(|entry| &entry.value)
}

/// Notes keys that are probably a known one misspelt, where the known one is missing.
fn note_near_misses(entries: &[TableEntry], faults: &Faults<'_>) {
    let keys: Vec<String> = entries.iter().map(|entry| normal(&entry.key.value)).collect();
    let missing: Vec<&str> = KEYS.into_iter().filter(|known| !keys.iter().any(|key| key == known)).collect();
    let unknown = keys.iter().zip(entries).filter(|(key, _)| !KEYS.contains(&key.as_str())).take(100);
    for (key, entry) in unknown {
        let Some(known) = nearest(key, missing.iter().copied()) else { continue };
        let allowed = if known.len() > 6 { 2 } else { 1 };
        if strsim::osa_distance(key, known) <= allowed && known != "type" && known != "plan" {
            let message = format!("the key {} is not known here", quoted(&entry.key.value));
            faults.warning(entry.key.span, message, format!("did you mean `{known}`?"));
        }
    }
}

/// A list of texts, or one; an item that is neither is left out with a warning.
pub(super) fn texts(node: Node, key: &str, faults: &Faults<'_>) -> Vec<At<String>> {
    let text = |item: Node| {
        let text = sentence(&item, faults);
        if let (None, Value::Table(_)) = (&text, &item.value) {
            let message = format!("this item of `{key}` is {}, not text", item.value.kind());
            faults.warning(item.span, message, "put it in quotes; it is left out");
        }
        text
    };
    node.items().into_iter().filter_map(text).collect()
}

/// `- Users can: sign in` is read as a table by YAML and as a sentence by people.
pub(super) fn sentence(node: &Node, faults: &Faults<'_>) -> Option<At<String>> {
    let Value::Table(entries) = &node.value else { return scalar(node, faults) };
    let [entry] = entries.as_slice() else { return None };
    let start = entry.key.span;
    match &entry.value.value {
        Value::List(_) | Value::Table(_) => None,
        Value::Null => Some(At::new(entry.key.value.clone(), start)),
        _ => Some(At::new(format!("{}: {}", entry.key.value, scalar(&entry.value, faults)?.value), start)),
    }
}

fn wave(node: &Node, faults: &Faults<'_>) -> Option<At<u32>> {
    let written = scalar(node, faults)?;
    let digits = written.value.find(|c: char| !c.is_ascii_digit()).unwrap_or(written.value.len());
    let (number, rest) = written.value.split_at(digits);
    let remark = rest.is_empty() || rest.starts_with([' ', '(']);
    match number.parse().ok().filter(|_| remark) {
        Some(wave) => Some(At::new(wave, written.span)),
        None => {
            let message = format!("{} is no number of a wave", quoted(&written.value));
            faults.warning(written.span, message, "write a whole number, for example `wave: 1`; it is ignored");
            None
        }
    }
}

fn attended(node: &Node, faults: &Faults<'_>) -> Option<Span> {
    match &node.value {
        Value::Null | Value::Boolean(true) => None,
        Value::Boolean(false) => Some(node.span),
        other => match scalar(node, faults).map(|text| text.value.to_ascii_lowercase()).as_deref() {
            Some("true" | "yes" | "on") => None,
            Some("false" | "no" | "off") => Some(node.span),
            _ => {
                let message = format!("`autonomous` is {}, neither true nor false", other.kind());
                faults.warning(node.span, message, "write `true` or `false`; it is taken as true");
                None
            }
        },
    }
}

/// The names of other plans, each by itself.
fn references(node: Node, faults: &Faults<'_>) -> Vec<At<String>> {
    let named = |item: Node| match &item.value {
        Value::Table(entries) => entries.iter().flat_map(|entry| named_plans(entry, faults)).collect(),
        _ => scalar(&item, faults).map(comma_separated).unwrap_or_default(),
    };
    node.items().into_iter().flat_map(named).collect()
}

/// `{ plans: [01-01] }` names plans in its values, `{ 01-01: why }` in its keys.
fn named_plans(entry: &TableEntry, faults: &Faults<'_>) -> Vec<At<String>> {
    if entry.key.value.starts_with(|c: char| c.is_ascii_digit()) {
        return vec![entry.key.clone()];
    }
    match (&entry.value.value, normal(&entry.key.value).as_str()) {
        (Value::List(items), "plans" | "plan" | "id" | "ids") => {
            items.iter().filter_map(|node| scalar(node, faults)).collect()
        }
        (_, "plan" | "plans" | "id") => scalar(&entry.value, faults).into_iter().flat_map(comma_separated).collect(),
        _ => Vec::new(),
    }
}

/// `01-01, 01-02` in one text; a remark in parentheses names nothing.
fn comma_separated(text: At<String>) -> Vec<At<String>> {
    let named = text.value.split('(').next().unwrap_or("").trim_matches(['[', ']', ' ']);
    let names = named.split([',', ';']).flat_map(|part| part.split(" and ")).map(str::trim);
    names.filter(|name| !name.is_empty()).map(|name| At::new(name.to_owned(), text.span)).collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::List(items) => items.is_empty(),
        Value::Table(entries) => entries.is_empty(),
        Value::Text(text) => text.trim().is_empty(),
        _ => false,
    }
}
