//! Where the records of runs stand in `checkpoints.json`, and what must change there for others to stand in it.

use std::borrow::{Borrow, Cow};
use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Range;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::json::{Item, Items, to_object};
use crate::model::{CheckpointRecord, LaneId, PhaseId, RunId, Stage};

/// Why records cannot be put into a text.
pub(super) enum EditError<'a> {
    Unreadable(serde_json::Error),
    Record(&'a CheckpointRecord, serde_json::Error),
    Io(io::Error),
}

/// What tells records apart: the run, by its number in a layout, the lane and the stage.
type Name = (usize, Option<LaneId>, Stage);

/// What is known of a text that holds an array.
#[derive(Debug)]
pub(super) struct Layout {
    /// The runs whose records are known.
    runs: Vec<(RunId, PhaseId)>,
    /// The values of their records, in the order of the text.
    values: Vec<Range<usize>>,
    by_name: HashMap<Name, usize>,
    end: End,
    /// What stands between a comma and a value that is added.
    space: String,
    size: usize,
}

/// Where values are added.
#[derive(Debug)]
enum End {
    /// After the last one, which ends here.
    After(usize),
    /// From here on stands what closes an empty array.
    Empty(usize, String),
}

/// Bytes that others take the place of.
#[derive(Debug)]
pub(super) struct Edit {
    pub(super) at: Range<usize>,
    pub(super) text: String,
}

/// What makes a text hold what it should.
#[derive(Debug, Default)]
pub(super) struct Edits {
    /// In the order of the text.
    pub(super) list: Vec<Edit>,
    /// Records without a predecessor: their names, and where they stand in the last of the list.
    added: Vec<(Name, Range<usize>)>,
}

impl Layout {
    /// Looks for all records of the runs that `records` belong to.
    pub(super) fn of<R: Borrow<CheckpointRecord>>(text: &str, records: &[R]) -> serde_json::Result<Self> {
        let items = array(text)?;
        let close = text.len() - items.close.len();
        let mut layout = Self {
            runs: runs_of(records),
            values: Vec::new(),
            by_name: HashMap::new(),
            end: End::Empty(close, format!("\n{}", items.close.trim_start())),
            space: items.items.last().map_or_else(|| "\n  ".to_owned(), |item| item.before.to_string()),
            size: text.len(),
        };
        for item in &items.items {
            let start = item.value.as_ptr().addr() - text.as_ptr().addr();
            layout.end = End::After(start + item.value.len());
            if let Some(name) = layout.name_of(&item.value) {
                layout.know(name, start..start + item.value.len());
            }
        }
        Ok(layout)
    }

    /// Of values with one name the last counts.
    fn know(&mut self, name: Name, value: Range<usize>) {
        self.by_name.insert(name, self.values.len());
        self.values.push(value);
    }

    /// The name of a value that is a record of one of the runs.
    fn name_of(&self, value: &str) -> Option<Name> {
        let key: Key<'_> = serde_json::from_str(value).ok()?;
        let run =
            self.runs.iter().position(|(run, phase)| run.as_str() == key.run_id && phase.as_str() == key.phase)?;
        let lane = if key.lane == "-" { None } else { Some(LaneId::new(&key.lane).ok()?) };
        Some((run, lane, Stage::from_word(&key.stage)?))
    }

    fn run(&self, record: &CheckpointRecord) -> Option<usize> {
        self.runs.iter().position(|(run, phase)| (run, phase) == (&record.run_id, &record.phase))
    }

    /// Whether it knows everything that stands in the way of `records`.
    pub(super) fn covers<R: Borrow<CheckpointRecord>>(&self, records: &[R]) -> bool {
        records.iter().all(|record| self.run(record.borrow()).is_some())
    }

    /// How long the text is.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// What must change for `records` to stand in the text, of which `read` gives a part.
    pub(super) fn edits<'a, R: Borrow<CheckpointRecord>>(
        &self,
        records: &'a [R],
        read: impl Fn(Range<usize>) -> io::Result<String>,
    ) -> Result<Edits, EditError<'a>> {
        let (mut edits, mut new) = (Edits::default(), Vec::new());
        for (name, record) in self.newest(records) {
            let fields = to_object(record).map_err(|error| EditError::Record(record, error))?;
            match self.by_name.get(&name).map(|&index| self.values[index].clone()) {
                Some(at) => {
                    let old = read(at.clone()).map_err(EditError::Io)?;
                    let text = merged(&old, &fields);
                    edits.list.extend((text != old).then_some(Edit { at, text }));
                }
                None => new.push((name, Value::Object(fields).to_string())),
            }
        }
        edits.list.sort_by_key(|edit| edit.at.start);
        self.add(&mut edits, new);
        Ok(edits)
    }

    /// Of records with one name the last, in the place of the first.
    fn newest<'a, R: Borrow<CheckpointRecord>>(&self, records: &'a [R]) -> Vec<(Name, &'a CheckpointRecord)> {
        let mut newest: Vec<(Name, &CheckpointRecord)> = Vec::with_capacity(records.len());
        let mut by_name: HashMap<Name, usize> = HashMap::with_capacity(records.len());
        for record in records.iter().map(R::borrow) {
            let Some(run) = self.run(record) else { continue };
            let name = (run, record.lane.clone(), record.stage);
            match by_name.get(&name) {
                Some(&index) => newest[index].1 = record,
                None => {
                    by_name.insert(name.clone(), newest.len());
                    newest.push((name, record));
                }
            }
        }
        newest
    }

    /// One record a line, unless whoever began the text does it otherwise.
    fn add(&self, edits: &mut Edits, new: Vec<(Name, String)>) {
        if new.is_empty() {
            return;
        }
        let mut text = String::new();
        for (name, value) in new {
            let is_first = text.is_empty() && matches!(self.end, End::Empty(..));
            text.extend([if is_first { "" } else { "," }, &self.space]);
            edits.added.push((name, text.len()..text.len() + value.len()));
            text.push_str(&value);
        }
        let at = match &self.end {
            End::After(end) => *end..*end,
            End::Empty(from, close) => {
                text.push_str(close);
                *from..self.size
            }
        };
        edits.list.push(Edit { at, text });
    }

    /// What is known of the text once `edits` are in it.
    pub(super) fn after(self, edits: &Edits) -> Self {
        let Self { runs, mut values, mut by_name, mut end, space, size } = self;
        // Where the last change ended, before and after it.
        let (mut from, mut to) = (0, 0);
        let mut list = edits.list.iter().peekable();
        for value in &mut values {
            let start = to + value.start - from;
            let length = list.next_if(|edit| edit.at == *value).map_or(value.len(), |edit| edit.text.len());
            (from, to) = (value.end, start + length);
            *value = start..to;
        }
        if let End::After(last) = &mut end {
            *last = to + *last - from;
        }
        let grown: usize = edits.list.iter().map(|edit| edit.text.len()).sum();
        let size = size + grown - edits.list.iter().map(|edit| edit.at.len()).sum::<usize>();
        if let Some(addition) = edits.list.last().filter(|_| !edits.added.is_empty()) {
            let start = to + addition.at.start - from;
            for (name, value) in &edits.added {
                by_name.insert(name.clone(), values.len());
                values.push(start + value.start..start + value.end);
            }
            end = End::After(values.last().map_or(start, |value| value.end));
        }
        Self { runs, values, by_name, end, space, size }
    }
}

impl Edits {
    /// Gives the parts of the new text in their order: ranges of the old one, which is `size` bytes long, and what is new.
    pub(super) fn parts(&self, size: usize) -> impl Iterator<Item = (Range<usize>, &str)> {
        let ends = self.list.iter().map(|edit| edit.at.end);
        let kept_from = std::iter::once(0).chain(ends);
        let changes = self.list.iter().map(|edit| (edit.at.start, edit.text.as_str()));
        kept_from.zip(changes.chain([(size, "")])).map(|(from, (to, text))| (from..to, text))
    }
}

fn runs_of<R: Borrow<CheckpointRecord>>(records: &[R]) -> Vec<(RunId, PhaseId)> {
    let mut runs: Vec<(RunId, PhaseId)> = Vec::new();
    for record in records.iter().map(R::borrow) {
        if !runs.iter().any(|(run, phase)| (run, phase) == (&record.run_id, &record.phase)) {
            runs.push((record.run_id.clone(), record.phase.clone()));
        }
    }
    runs
}

/// What says which record a value is.
#[derive(Deserialize)]
struct Key<'a> {
    #[serde(borrow)]
    run_id: Cow<'a, str>,
    #[serde(borrow)]
    phase: Cow<'a, str>,
    #[serde(borrow)]
    lane: Cow<'a, str>,
    #[serde(borrow)]
    stage: Cow<'a, str>,
}

/// The array `text`, which may begin with a byte order mark.
pub(super) fn array(text: &str) -> serde_json::Result<Items<'_>> {
    let (mark, json) = text.split_at(if text.starts_with('\u{feff}') { 3 } else { 0 });
    let items = Items::of_array(json)?;
    Ok(Items { open: &text[..mark.len() + items.open.len()], ..items })
}

/// The object `old` with `fields` in it: fields of the contract are replaced, added in their place or removed, all
/// others stay.
fn merged(old: &str, fields: &Map<String, Value>) -> String {
    let Ok(mut object) = Items::of_object(old) else { return Value::Object(fields.clone()).to_string() };
    let mut seen = HashSet::new();
    object.items.retain(|item| {
        let ours = CheckpointRecord::FIELDS.contains(&&*item.name);
        !ours || (fields.contains_key(&*item.name) && seen.insert(item.name.clone()))
    });
    let mut place = 0;
    for (name, value) in fields {
        match object.items.iter().position(|item| item.name == **name) {
            Some(found) => {
                place = found;
                object.items[found].value = value.to_string().into();
            }
            None => {
                place += 1;
                let added = Item::new(name, spelled(name, &object.items[0].before), value.to_string());
                object.items.insert(place, added);
            }
        }
    }
    object.text()
}

/// What stands before a new member's value, spaced as before the first one of its object.
fn spelled(name: &str, first: &str) -> String {
    let (space, rest) = first.split_at(first.find('"').unwrap_or(0));
    let colon = rest.rfind('"').map_or(":", |quote| &rest[quote + 1..]);
    format!("{space}\"{name}\"{colon}")
}
