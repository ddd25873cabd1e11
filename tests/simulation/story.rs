//! The trace of a simulated run, for finding the cause of a finding.

use lanewright_model::event::Record;

/// The lines of the trace, if it is recorded.
#[derive(Default)]
pub struct Story(Option<Vec<String>>);

/// The longest line.
const WIDTH: usize = 240;

impl Story {
    /// One that is recorded.
    pub fn recording() -> Self {
        Self(Some(Vec::new()))
    }

    pub fn note(&mut self, now: i64, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.0 {
            lines.push(format!("{now:>6} {}", line().chars().take(WIDTH).collect::<String>()));
        }
    }

    pub fn records(&mut self, records: &[Record]) {
        for record in records {
            self.note(record.at.unix_millis(), || format!("  {:?}", record.event));
        }
    }

    pub fn lines(self) -> Vec<String> {
        self.0.unwrap_or_default()
    }
}
