//! Tables read key by key: a key that no reader asked for is reported with the nearest known one.

use super::faults::Faults;
use super::source_text::Span;
use super::tree::{Entry, Node, Value};

/// The entries of a table that are not read yet.
pub(super) struct Fields<'a> {
    owner: &'static str,
    span: Span,
    entries: Vec<Entry>,
    known: Vec<&'static str>,
    faults: &'a Faults<'a>,
}

impl<'a> Fields<'a> {
    /// The fields of `node`, which is `owner` (`a lane`); not a table is a fault.
    pub(super) fn new(node: Node, owner: &'static str, faults: &'a Faults<'a>) -> Option<Self> {
        match node.value {
            Value::Table(entries) => Some(Self { owner, span: node.span, entries, known: Vec::new(), faults }),
            other => {
                let message = format!("{owner} is a table of keys and values, not {}", other.kind());
                faults.error(node.span, message);
                None
            }
        }
    }

    /// Where the table begins.
    pub(super) fn span(&self) -> Span {
        self.span
    }

    /// The value of `key` as `reader` understands it; a key without a value counts as absent.
    pub(super) fn read<T>(
        &mut self,
        key: &'static str,
        reader: impl FnOnce(Node, &'a Faults<'a>) -> Option<T>,
    ) -> Option<T> {
        self.known.push(key);
        let at = self.entries.iter().position(|entry| entry.key.value == key)?;
        let node = self.entries.remove(at).value;
        if node.value == Value::Null { None } else { reader(node, self.faults) }
    }

    /// The same for a key that cannot be left out.
    pub(super) fn required<T>(
        &mut self,
        key: &'static str,
        help: &str,
        reader: impl FnOnce(Node, &'a Faults<'a>) -> Option<T>,
    ) -> Option<T> {
        let given = |entry: &Entry| entry.key.value == key && entry.value.value != Value::Null;
        if !self.entries.iter().any(given) {
            self.faults.error_with(self.span, format!("{} needs the key `{key}`", self.owner), help);
        }
        self.read(key, reader)
    }

    /// What `read` makes of this table, and whether it noted an error on the way.
    pub(super) fn observe<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> (T, bool) {
        let before = self.faults.errors();
        let value = read(self);
        (value, self.faults.errors() > before)
    }

    /// Ends reading; every key that was not asked for is a fault, but for the user's own, which begin with `x-`.
    pub(super) fn finish(self) {
        for entry in self.entries.iter().filter(|entry| !entry.key.value.starts_with("x-")) {
            self.faults.unknown_key(entry.key.span, self.owner, &entry.key.value, &self.known);
        }
    }
}
