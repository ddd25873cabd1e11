//! Writes a run log: the only place where events become durable (SPEC §4).
//!
//! Records are appended to memory and made durable together: everything that waits shares one write and one
//! `fdatasync`. After an error nothing is tried again, because a second `fsync` may report success for pages that the
//! kernel has already dropped; the log is closed, and opening it again shows what is on disk.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use lanewright_files::directory::{sync_directory, with_suffix};
use lanewright_files::handle::{append_existing, append_new, sync_contents, truncate, write_all};
use lanewright_files::regular_file::Links;
use lanewright_files::{FileError, atomic, open_error};
use lanewright_model::event::{Event, Incoming, Log, Record};
use lanewright_model::{PhaseId, Redactor, RunId, Timestamp};

use super::error::LogError;
use super::log_guard::LogGuard;
use super::record::encode;
use super::run_log::scan_all;

/// A run log that is open for writing. The run's lock must be held while it is.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    guard: LogGuard,
    run_id: RunId,
    phase: PhaseId,
    last: (u64, Timestamp),
    /// Lines that are not in the file yet.
    waiting: Vec<u8>,
    /// The first error, after which nothing is written.
    poison: Option<String>,
    redactor: Redactor,
}

impl Journal {
    /// Makes the log of a new run at `path`, whose directory exists; mode 0600.
    pub fn create(path: &Path, run_id: &RunId, phase: &PhaseId) -> Result<Self, LogError> {
        let file = append_new(path).map_err(|source| open_error("create", path, source))?;
        if let Some(directory) = path.parent() {
            sync_directory(directory)?;
        }
        let last = (0, Timestamp::from_unix_millis(0));
        Ok(Self::over((path, Vec::new()), file, (run_id.clone(), phase.clone()), last))
    }

    /// Opens the log of a run that was begun, and returns what it holds. A torn tail is cut off.
    ///
    /// What is returned is durable, whether or not the process that wrote it came as far as that.
    ///
    /// # Errors
    /// Any `LogError` but the last two; the file is then untouched.
    pub fn open(path: &Path) -> Result<(Self, Vec<Record>), LogError> {
        let mut file = append_existing(path, Links::Refuse).map_err(|source| open_error("open", path, source))?;
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut file, &mut bytes).map_err(FileError::io("read", path))?;
        let scan = scan_all(path, &bytes)?;
        if !scan.contents.damage.is_empty() {
            return Err(LogError::Damaged { path: path.to_owned(), damage: scan.contents.damage });
        }
        let records = scan.contents.records;
        let (Some(run), Some(last)) = (scan.run, records.last()) else {
            return Err(LogError::Empty { path: path.to_owned() });
        };
        let repaired = if scan.whole < bytes.len() { truncate(&file, scan.whole as u64) } else { Ok(()) };
        repaired.and_then(|()| sync_contents(&file)).map_err(FileError::io("repair the end of", path))?;
        bytes.truncate(scan.whole);
        let mut journal = Self::over((path, bytes), file, run, (last.seq, last.at));
        journal.waiting.extend(scan.open_end.then_some(b'\n'));
        Ok((journal, records))
    }

    /// Makes the log of a run that came from elsewhere: `bytes`, and after them `events`, all of it durable at once.
    ///
    /// # Errors
    /// Those of [`Journal::open`] and [`Journal::append`]; there is no log at `path` then.
    pub fn install(path: &Path, bytes: &[u8], at: Timestamp, events: &[Event]) -> Result<(), LogError> {
        let staged = with_suffix(path, ".arriving");
        atomic::write(&staged, bytes)?;
        let (mut journal, _) = Self::open(&staged)?;
        events.iter().try_for_each(|event| journal.append(at, event).map(drop))?;
        journal.sync()?;
        atomic::rename(&staged, path)?;
        path.parent().map_or(Ok(()), |directory| Ok(sync_directory(directory)?))
    }

    fn over(
        (path, bytes): (&Path, Vec<u8>),
        file: File,
        (run_id, phase): (RunId, PhaseId),
        last: (u64, Timestamp),
    ) -> Self {
        Self {
            path: path.to_owned(),
            file,
            guard: LogGuard::new(path, bytes),
            run_id,
            phase,
            last,
            waiting: Vec::new(),
            poison: None,
            redactor: Redactor::default(),
        }
    }

    /// The same, which from now on takes secrets out of what it records: whatever is made of the records has none.
    #[must_use]
    pub fn redacting(self, redactor: Redactor) -> Self {
        Self { redactor, ..self }
    }

    /// Adds a record for `event` to what waits for [`Journal::sync`]. No process may act on it before that.
    ///
    /// Its time is `at`, to the millisecond, but never before the record before it: a clock that was set back moves
    /// nothing.
    ///
    /// # Errors
    /// `LogError::Event`, after which the journal continues without the event, and `LogError::Poisoned`.
    pub fn append(&mut self, at: Timestamp, event: &Event) -> Result<Record, LogError> {
        self.append_copy(at, event, None)
    }

    /// The same for an event that stands in another log under the number `origin`.
    pub fn append_copy(&mut self, at: Timestamp, event: &Event, origin: Option<u64>) -> Result<Record, LogError> {
        self.refuse_if_poisoned()?;
        let (seq, at) = (self.last.0 + 1, Timestamp::from_unix_millis(at.unix_millis()).max(self.last.1));
        let mut event = event.clone();
        event.change_texts(&mut |text| self.redactor.clean(text));
        let record = Record { seq, at, event, origin };
        encode(&record, &self.run_id, &self.phase, &mut self.waiting).map_err(|source| LogError::Event {
            path: self.path.clone(),
            event: format!("{:?}", record.event).chars().take(80).collect(),
            source,
        })?;
        self.last = (seq, at);
        Ok(record)
    }

    /// Writes everything that waits and makes it durable, with one write and one `fdatasync`; nothing waits: nothing is done.
    ///
    /// # Errors
    /// `LogError::File` or `LogError::TamperedWith` the first time, `LogError::Poisoned` after that.
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.refuse_if_poisoned()?;
        if self.waiting.is_empty() {
            return Ok(());
        }
        let written = write_all(&self.file, &self.waiting).and_then(|()| sync_contents(&self.file));
        let done = written.map_err(|source| FileError::io("write", &self.path)(source).into()).and_then(|()| {
            self.guard.add(&self.waiting);
            self.waiting.clear();
            self.refuse_if_tampered_with()
        });
        done.inspect_err(|error| self.poison = Some(error.to_string()))
    }

    /// Makes sure that the path of the log leads to what was written, and nothing else. Where it does not, the log is
    /// restored, and still nothing may be done on the strength of what was written last: the program that did it may do
    /// it again.
    fn refuse_if_tampered_with(&self) -> Result<(), LogError> {
        let found = self.guard.tampering(&self.file).map_err(FileError::io("look at", &self.path))?;
        found.map_or(Ok(()), |how| {
            Err(LogError::TamperedWith { path: self.path.clone(), how, restored: self.guard.restore(&self.file) })
        })
    }

    fn refuse_if_poisoned(&self) -> Result<(), LogError> {
        match &self.poison {
            Some(cause) => Err(LogError::Poisoned { path: self.path.clone(), cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// Writes to another file from now on, one that fails.
    #[cfg(test)]
    pub(super) fn redirect(&mut self, file: File) {
        self.file = file;
    }
}

impl Log for Journal {
    type Error = LogError;

    fn append(&mut self, at: Timestamp, incoming: &Incoming) -> Result<Record, LogError> {
        self.append_copy(at, &incoming.event, incoming.origin)
    }

    fn sync(&mut self) -> Result<(), LogError> {
        Self::sync(self)
    }
}

#[cfg(test)]
mod tests;
