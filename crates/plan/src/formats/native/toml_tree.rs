//! TOML text into the tree.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::faults::Faults;
use crate::source_text::{At, Span};
use crate::tree::{Node, TableEntry, Value};

/// Reads `text`; every syntax error is a fault. `None` where syntax errors leave nothing to rely on.
pub(crate) fn parse(text: &str, faults: &Faults<'_>) -> Option<Node> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().map_or(Span::default(), |span| Span::new(span.start, span.end));
        match error.message() {
            "duplicate key" => repeated(span, faults),
            message => faults.error(span, format!("invalid TOML: {}", message.replace('\n', ", "))),
        }
    }
    let usable = errors.iter().all(|error| error.message() == "duplicate key");
    usable.then(|| convert_table(table.into_inner(), Span::default()))
}

fn repeated(span: Span, faults: &Faults<'_>) {
    let message = format!("duplicate key `{}`", faults.source.slice(span).trim());
    faults.error_with(span, message, "keep one of them");
}

fn convert(value: Spanned<DeValue<'_>>) -> Node {
    let span = Span::new(value.span().start, value.span().end);
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(number) => whole_number(&number),
        DeValue::Float(_) => Value::Other("a fraction"),
        DeValue::Boolean(value) => Value::Boolean(value),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Array(items) => Value::List(items.into_iter().map(convert).collect()),
        DeValue::Table(table) => return convert_table(table, span),
    };
    At::new(value, span)
}

fn whole_number(number: &toml::de::DeInteger<'_>) -> Value {
    i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Other("a number out of range"), Value::Integer)
}

fn convert_table(table: DeTable<'_>, span: Span) -> Node {
    let entry = |(key, value): (Spanned<std::borrow::Cow<'_, str>>, _)| {
        let span = Span::new(key.span().start, key.span().end);
        TableEntry { key: At::new(key.into_inner().into_owned(), span), value: convert(value) }
    };
    let mut entries: Vec<TableEntry> = table.into_iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.key.span.start);
    At::new(Value::Table(entries), span)
}
