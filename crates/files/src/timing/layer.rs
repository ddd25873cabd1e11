//! What listens to the spans of [`TARGET`] and makes slices of them.

use serde_json::{Map, Value};
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use super::chrome::{Slice, Timings};

/// The target of spans that say what is being done. Their fields are shown, except two: `title` says it
/// better than the span's own name, and `row` names the row; a span without one is drawn where the span around it is.
pub const TARGET: &str = "lanewright::timings";

pub struct Listener(Timings);

struct Open {
    row: usize,
    /// Whether the row is given back with it.
    own: bool,
    from: u64,
    fields: Fields,
}

#[derive(Default)]
struct Fields(Map<String, Value>);

impl Listener {
    pub fn new(timings: Timings) -> Self {
        Self(timings)
    }

    fn open<S: Subscriber + for<'a> LookupSpan<'a>>(
        &self,
        attributes: &Attributes<'_>,
        id: &Id,
        context: &Context<'_, S>,
    ) -> Option<Open> {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let around = context.span(id)?.parent().and_then(|span| span.extensions().get::<Open>().map(|open| open.row));
        let named = fields.0.remove("row").and_then(|row| row.as_str().map(str::to_owned));
        let (row, own) = match (named, around) {
            (None, Some(row)) => (row, false),
            (named, _) => (self.0.occupy(&named.unwrap_or_else(thread_name)), true),
        };
        Some(Open { row, own, from: self.0.now(), fields })
    }
}

fn thread_name() -> String {
    std::thread::current().name().filter(|name| *name != "main").unwrap_or("engine").to_owned()
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Listener {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let open = self.open(attributes, id, &context);
        if let (Some(open), Some(span)) = (open, context.span(id)) {
            span.extensions_mut().insert(open);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            values.record(&mut open.fields);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(Open { row, own, from, mut fields }) = span.extensions_mut().remove::<Open>() else { return };
        let title = fields.0.remove("title").and_then(|title| title.as_str().map(str::to_owned));
        let name = title.unwrap_or_else(|| span.name().to_owned());
        self.0.put(Slice { name, row, from, until: self.0.now(), about: fields.0 });
        if own {
            self.0.leave(row);
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }
}
