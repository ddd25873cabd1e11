//! Reads the native format (SPEC §3.1): tables key by key, as `draft` describes them. A key that is not described is reported
//! with the nearest one that is.

use super::PlanDraft;
use super::keys::{Field, Key, Shape, Table};
use super::matrix;
use super::values::FromNode;
use crate::faults::Faults;
use crate::settings::in_files;
use crate::source_text::{At, Span};
use crate::tree::{Node, TableEntry, Value};

pub(crate) fn plan(mut root: Node, faults: &Faults<'_>) -> Option<PlanDraft> {
    if let Value::Table(entries) = &mut root.value {
        // For editors.
        entries.retain(|entry| entry.key.value != "$schema");
        matrix::expand(entries, faults);
    }
    let (keys, owner) = (PlanDraft::keys().iter().collect(), PlanDraft::OWNER.to_owned());
    Fields::new(root, owner, keys, faults)?.table()
}

/// The entries of a table that are not read yet.
pub(super) struct Fields<'a> {
    owner: String,
    span: Span,
    keys: Vec<&'static Key>,
    entries: Vec<TableEntry>,
    pub(super) faults: &'a Faults<'a>,
    /// What makes the table worth reading is missing or at fault.
    useless: bool,
}

impl<'a> Fields<'a> {
    /// The fields of `node`, which messages call `owner` (`a lane`); not a table is a fault.
    fn new(node: Node, owner: String, keys: Vec<&'static Key>, faults: &'a Faults<'a>) -> Option<Self> {
        match node.value {
            Value::Table(entries) => Some(Self { owner, span: node.span, keys, entries, faults, useless: false }),
            other => {
                let message = format!("{owner} is a table of keys and values, not {}", other.kind());
                faults.error(node.span, message);
                None
            }
        }
    }

    pub(super) fn span(&self) -> Span {
        self.span
    }

    /// The value of the key called `name`, as its shape says. A key without a value counts as absent.
    pub(super) fn read<T: FromNode>(&mut self, name: &str) -> Option<T> {
        let key = *self.keys.iter().find(|key| key.name == name)?;
        let at = self.entries.iter().position(|entry| entry.key.value == name);
        let given = at.map(|at| self.entries.remove(at).value).filter(|node| node.value != Value::Null);
        if let (None, [help]) = (&given, key.required) {
            self.faults.error_with(self.span, format!("{} needs the key `{name}`", self.owner), help);
        }
        T::from_node(given?, key, self.faults)
    }

    /// Reads the whole table; every key that it does not have is a fault, but for the user's own, which begin with `x-`.
    fn table<T: Table>(mut self) -> Option<T> {
        let table = T::read(&mut self);
        let known: Vec<&str> = self.keys.iter().map(|key| key.name).collect();
        for entry in self.entries.iter().filter(|entry| !entry.key.value.starts_with("x-")) {
            let name = &entry.key.value;
            let setting = in_files(name).filter(|_| PlanDraft::keys().iter().all(|key| key.name != name));
            self.faults.unknown_key(entry.key.span, &self.owner, name, (&known, setting));
        }
        (!self.useless).then_some(table)
    }
}

impl<T: Table> FromNode for T {
    fn from_node(mut node: Node, key: &Key, faults: &Faults<'_>) -> Option<Self> {
        let Shape::Table(_, without) = &key.shape else {
            return Fields::new(node, T::OWNER.to_owned(), T::keys().iter().collect(), faults)?.table();
        };
        if let Value::Table(entries) = &mut node.value {
            entries.retain(|entry| {
                let allowed = !without.contains(&entry.key.value.as_str());
                if !allowed {
                    let message = format!("`{}` cannot be the same for all lanes", entry.key.value);
                    faults.error_with(entry.key.span, message, "write it in each lane");
                }
                allowed
            });
        }
        let keys = T::keys().iter().filter(|key| !without.contains(&key.name)).collect();
        Fields::new(node, format!("`{}`", key.name), keys, faults)?.table()
    }
}

/// The one key that fills a field.
impl<T: FromNode + Clone> Field for Option<T> {
    fn read(fields: &mut Fields<'_>, names: &[&'static str]) -> Self {
        fields.read(names.first()?)
    }

    fn fill(&mut self, default: &Self) {
        if self.is_none() {
            self.clone_from(default);
        }
    }
}

impl<T: Clone> Field for Vec<T>
where
    Self: FromNode,
{
    fn read(fields: &mut Fields<'_>, names: &[&'static str]) -> Self {
        <Option<Self> as Field>::read(fields, names).unwrap_or_default()
    }

    /// Of two entries of the same name the last counts, the field's own.
    fn fill(&mut self, default: &Self) {
        self.splice(..0, default.iter().cloned());
    }
}

impl<T: Table + Clone + Default> Field for T {
    fn read(fields: &mut Fields<'_>, names: &[&'static str]) -> Self {
        <Option<Self> as Field>::read(fields, names).unwrap_or_default()
    }

    fn fill(&mut self, default: &Self) {
        Table::fill(self, default);
    }
}

impl Field for bool {
    fn read(fields: &mut Fields<'_>, names: &[&'static str]) -> Self {
        <Option<Self> as Field>::read(fields, names).unwrap_or_default()
    }
}

/// Text without which a table is left out, where its key is required; else absent text is empty.
impl Field for String {
    fn read(fields: &mut Fields<'_>, names: &[&'static str]) -> Self {
        At::<String>::read(fields, names).value
    }
}

impl Field for At<String> {
    fn read(fields: &mut Fields<'_>, names: &[&'static str]) -> Self {
        let required = fields.keys.iter().any(|key| names.contains(&key.name) && !key.required.is_empty());
        let read = <Option<Self> as Field>::read(fields, names);
        fields.useless |= required && read.is_none();
        read.unwrap_or_default()
    }
}
