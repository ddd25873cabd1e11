//! The file of `--timings`: a Chrome trace in the JSON array format, one slice or name a line.
//!
//! The format (`ph`, `ts`, `dur`, `pid`, `tid`, `args`) is that of the Trace Event Format, which Perfetto and
//! `chrome://tracing` read. It allows the closing bracket to be missing, and each line is written at once: what a run left
//! that was killed can be read.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use lanewright_model::{Redactor, Timestamp};
use serde_json::{Map, Value, json};

use crate::handle;
use crate::regular_file::Links;

/// A trace that is being written. Clones write into the same file.
#[derive(Clone)]
pub struct Timings(Arc<Mutex<Trace>>);

/// Something that took time, in microseconds since the trace began.
pub(super) struct Slice {
    pub(super) name: String,
    pub(super) row: usize,
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) about: Map<String, Value>,
}

struct Trace {
    file: File,
    began: (Instant, Timestamp),
    redactor: Redactor,
    rows: Vec<Row>,
    /// The rows that begin with a name, in the order in which they were needed.
    named: HashMap<String, Vec<usize>>,
    /// Nothing more is written: the trace is complete, or could not be written.
    closed: bool,
}

/// A line of the drawing. Slices of one row lie within or beside each other, never across.
#[derive(Default)]
struct Row {
    busy: bool,
    until: u64,
}

impl Timings {
    /// Begins a trace in the file at `path`, which is replaced; readable by its owner only. `now` is the current time.
    pub fn create(path: &Path, now: Timestamp, redactor: Redactor) -> io::Result<Self> {
        let file = handle::overwrite(path, Links::Follow)?;
        let began = (Instant::now(), now);
        let mut trace = Trace { file, began, redactor, rows: Vec::new(), named: HashMap::new(), closed: false };
        let named =
            json!({"name": "process_name", "ph": "M", "pid": std::process::id(), "args": {"name": "lanewright"}});
        trace.file.write_all(format!("[\n{named}").as_bytes())?;
        Ok(Self(Arc::new(Mutex::new(trace))))
    }

    /// From now on takes out what `redactor` knows.
    pub fn redact(&self, redactor: Redactor) {
        self.with(|trace| trace.redactor = redactor);
    }

    /// Adds a slice to the row `row` that is known by the times of the run log.
    pub fn add(&self, row: &str, name: &str, (from, until): (Timestamp, Timestamp), about: Map<String, Value>) {
        self.with(|trace| {
            let index = trace.occupy(row);
            let (from, until) = (trace.moment(from).max(trace.rows[index].until), trace.moment(until).min(trace.now()));
            if from < until {
                trace.put(Slice { name: name.to_owned(), row: index, from, until, about });
            }
            trace.rows[index].busy = false;
        });
    }

    /// Completes the file. Later slices are not written.
    pub fn finish(&self) {
        self.with(|trace| {
            trace.write(b"\n]\n");
            trace.closed = true;
        });
    }

    pub(super) fn now(&self) -> u64 {
        self.with(|trace| trace.now())
    }

    /// A row called `name` that has no open slice, until [`Timings::leave`].
    pub(super) fn occupy(&self, name: &str) -> usize {
        self.with(|trace| trace.occupy(name))
    }

    pub(super) fn leave(&self, row: usize) {
        self.with(|trace| trace.rows[row].busy = false);
    }

    pub(super) fn put(&self, slice: Slice) {
        self.with(|trace| trace.put(slice));
    }

    fn with<T>(&self, work: impl FnOnce(&mut Trace) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Trace {
    fn now(&self) -> u64 {
        u64::try_from(self.began.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// A time of the run log on the trace's own clock; 0 for what was before it.
    fn moment(&self, at: Timestamp) -> u64 {
        u64::try_from(at.since(self.began.1).as_micros()).unwrap_or(u64::MAX)
    }

    fn occupy(&mut self, name: &str) -> usize {
        let known = self.named.get(name).map_or(&[][..], Vec::as_slice);
        let (count, free) = (known.len(), known.iter().copied().find(|&row| !self.rows[row].busy));
        let row = free.unwrap_or_else(|| self.add_row(name, count));
        self.rows[row].busy = true;
        row
    }

    fn add_row(&mut self, name: &str, before: usize) -> usize {
        let row = self.rows.len();
        self.rows.push(Row::default());
        self.named.entry(name.to_owned()).or_default().push(row);
        let shown = if before == 0 { name.to_owned() } else { format!("{name} ({})", before + 1) };
        let about = |name: &str, about: Value| json!({"name": name, "ph": "M", "pid": std::process::id(), "tid": row, "args": about});
        self.line(about("thread_name", json!({"name": shown})));
        self.line(about("thread_sort_index", json!({"sort_index": row})));
        row
    }

    fn put(&mut self, slice: Slice) {
        let Slice { name, row, from, until, about } = slice;
        self.rows[row].until = self.rows[row].until.max(until);
        let duration = until.saturating_sub(from);
        let id = std::process::id();
        self.line(json!({"name": name, "cat": "lanewright", "ph": "X", "ts": from, "dur": duration, "pid": id, "tid": row, "args": about}));
    }

    fn line(&mut self, mut value: Value) {
        self.redactor.clean_json(&mut value);
        self.write(format!(",\n{value}").as_bytes());
    }

    /// One call, so that a line is there as a whole or not at all.
    fn write(&mut self, bytes: &[u8]) {
        if self.closed {
            return;
        }
        if let Err(error) = self.file.write_all(bytes) {
            self.closed = true;
            tracing::warn!("the timings cannot be written any more: {error}");
        }
    }
}
