//! Reading a run log, whole or as it grows. Nothing here changes a byte of it.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::error::{Damage, LogError};
pub use super::record::FORMAT;
use super::record::{self, EncodeError, LineFault, encode};
use lanewright_files::handle::sync_contents;
use lanewright_files::regular_file::{Links, open_with};
use lanewright_files::threads::{map_shares, share_of_core};
use lanewright_files::{FileError, if_there, open_error, regular_file};
use lanewright_model::event::{Event, Record, relocate};
use lanewright_model::{PhaseId, RunId};

#[derive(Debug, Default, PartialEq)]
pub struct LogContents {
    /// Every record that can be read, in order; those of a number that was there before are left out.
    pub records: Vec<Record>,
    /// Whether something that is not a whole record follows the last line: a write that was cut short, or one that
    /// is under way.
    pub torn_tail: bool,
    /// Every line that should be a record and is none.
    pub damage: Vec<Damage>,
}

/// Reads a run log that may be written to meanwhile. Damage is reported, not refused.
///
/// # Errors
/// `LogError::File` and `LogError::NewerFormat` only.
pub fn read(path: &Path) -> Result<LogContents, LogError> {
    let bytes = regular_file::read(path).map_err(FileError::io("read", path))?;
    Ok(scan_all(path, &bytes)?.contents)
}

/// The records of a run log whose event's word is `wanted`: the others are not looked at, so neither is their damage.
pub fn read_some(path: &Path, mut wanted: impl FnMut(&str) -> bool) -> Result<Vec<Record>, LogError> {
    let bytes = regular_file::read(path).map_err(FileError::io("read", path))?;
    let mut scanner = Scanner::default();
    let mut lines = bytes.split(|&byte| byte == b'\n').peekable();
    lines.peek().map_or(Ok(()), |first| scanner.check_format(path, first))?;
    let wanted = lines.filter(|line| record::word_of(line).is_some_and(&mut wanted));
    let lines = wanted.filter_map(|line| record::decode(line, &scanner.format).ok()).collect::<Vec<_>>();
    let mut records = lines.into_iter().filter_map(|line| scanner.of_this_run(line).ok()).collect::<Vec<_>>();
    relocate(&mut records);
    Ok(records)
}

/// The records of a run log whose line is `wanted`, by its event's word and its bytes. Lines that are not wanted are
/// compared with their checksums only.
pub fn read_checked(path: &Path, wanted: impl Fn(&str, &[u8]) -> bool) -> Result<LogContents, LogError> {
    let bytes = regular_file::read(path).map_err(FileError::io("read", path))?;
    let (mut contents, mut scanner) = (LogContents::default(), Scanner::default());
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n').peekable();
    lines.peek().map_or(Ok(()), |first| scanner.check_format(path, first))?;
    let mut number = 0;
    while let Some(line) = lines.next() {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        number += 1;
        let record = match record::is_intact(line) {
            true if !record::word_of(line).is_some_and(|word| wanted(word, line)) => continue,
            true => record::decode(line, &scanner.format).and_then(|line| scanner.of_this_run(line)),
            false if lines.peek().is_none() => {
                contents.torn_tail = true;
                break;
            }
            false => Err(LineFault::Checksum),
        };
        match record {
            Ok(record) => contents.records.push(record),
            Err(fault) => contents.damage.push(Damage { line: number, fault }),
        }
    }
    relocate(&mut contents.records);
    Ok(contents)
}

/// A run log's bytes, all of them durable and whole lines, with the records in them. Damage is refused.
pub fn read_durable(path: &Path) -> Result<(Vec<u8>, Vec<Record>), LogError> {
    let read = DurableLog::default().read(path)?;
    Ok((read.bytes, read.added))
}

/// Reads a run log again and again while it grows, and decodes only what was added.
#[derive(Debug, Default)]
pub struct DurableLog {
    scanner: Scanner,
    /// How many bytes were read, and their SHA-256.
    known: usize,
    sha256: String,
}

/// A run log, of which every line is durable, whole and undamaged.
pub struct DurableRead {
    pub bytes: Vec<u8>,
    pub sha256: String,
    /// Whether it begins with all that was read before. If it does not, all of it was added.
    pub continues: bool,
    pub added: Vec<Record>,
}

impl DurableLog {
    /// After an error the next call reads the log from its beginning.
    pub fn read(&mut self, path: &Path) -> Result<DurableRead, LogError> {
        let mut bytes = durable_bytes(path)?;
        let before = std::mem::take(self);
        let mut digest = Sha256::new_with_prefix(bytes.get(..before.known).unwrap_or_default());
        let continues = before.known > 0 && format!("{:x}", digest.clone().finalize()) == before.sha256;
        let Self { mut scanner, known, .. } = if continues { before } else { Self::default() };
        if !continues {
            digest = Sha256::new();
        }
        let scan = scanner.scan_to_end(path, &bytes[known..])?;
        if continues && scan.contents.records.iter().any(|record| matches!(record.event, Event::RunMoved(_))) {
            // It changes the paths in earlier records.
            return self.read(path);
        }
        bytes.truncate(known + scan.whole);
        bytes.extend(scan.open_end.then_some(b'\n'));
        digest.update(&bytes[known..]);
        let sha256 = format!("{:x}", digest.finalize());
        let added = if continues && scan.whole == 0 { Vec::new() } else { undamaged(path, scan)? };
        *self = Self { scanner, known: bytes.len(), sha256: sha256.clone() };
        Ok(DurableRead { bytes, sha256, continues, added })
    }
}

/// What was written and not synced yet must not be known elsewhere before it is safe here.
fn durable_bytes(path: &Path) -> Result<Vec<u8>, LogError> {
    let mut file = open_with(path, Links::Refuse).map_err(|source| open_error("open", path, source))?;
    let mut bytes = Vec::new();
    let read = file.read_to_end(&mut bytes).and_then(|_| sync_contents(&file));
    read.map_err(FileError::io("read", path))?;
    Ok(bytes)
}

/// Lines for `records`, which continue the log of a run.
pub fn lines(run: &RunId, phase: &PhaseId, records: &[Record]) -> Result<Vec<u8>, EncodeError> {
    let mut lines = Vec::new();
    records.iter().try_for_each(|record| encode(record, run, phase, &mut lines))?;
    Ok(lines)
}

/// The records of a run log that came from elsewhere, of which every byte must be right.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Vec<Record>, LogError> {
    let scan = scan_all(path, bytes)?;
    if scan.whole < bytes.len() || scan.open_end {
        let fault = LineFault::Checksum;
        return Err(LogError::Damaged { path: path.to_owned(), damage: vec![Damage { line: 0, fault }] });
    }
    undamaged(path, scan)
}

fn undamaged(path: &Path, scan: Scan) -> Result<Vec<Record>, LogError> {
    match scan.contents {
        LogContents { damage, .. } if !damage.is_empty() => Err(LogError::Damaged { path: path.to_owned(), damage }),
        LogContents { records, .. } if records.is_empty() => Err(LogError::Empty { path: path.to_owned() }),
        LogContents { records, .. } => Ok(records),
    }
}

/// A run log as it lies on disk.
pub(super) struct Scan {
    pub(super) contents: LogContents,
    /// How many bytes from the start hold whole lines.
    pub(super) whole: usize,
    /// Whether the last record lacks nothing but its newline.
    pub(super) open_end: bool,
    /// Whose log it is, if it holds a record.
    pub(super) run: Option<(RunId, PhaseId)>,
}

pub(super) fn scan_all(path: &Path, bytes: &[u8]) -> Result<Scan, LogError> {
    Scanner::default().scan_to_end(path, bytes)
}

/// Reads a run log as it grows: each record once, as soon as its line is whole.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    offset: u64,
    scanner: Scanner,
}

impl Follower {
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), offset: 0, scanner: Scanner::default() }
    }

    pub fn poll(&mut self) -> Result<LogContents, LogError> {
        let read = if_there(read_from(&self.path, self.offset)).map_err(FileError::io("read", &self.path))?;
        let Some(bytes) = read else { return Ok(LogContents::default()) };
        let (mut contents, whole) = self.scanner.scan(&self.path, &bytes)?;
        relocate(&mut contents.records);
        self.offset += whole as u64;
        Ok(contents)
    }
}

fn read_from(path: &Path, offset: u64) -> io::Result<Vec<u8>> {
    let mut file = regular_file::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What is known of a log after the lines that were read so far.
#[derive(Debug, Default)]
struct Scanner {
    lines: usize,
    last: u64,
    /// Whether the line before was damaged, so that it is unknown how many records it stood for.
    gap: bool,
    run: Option<(RunId, PhaseId)>,
    format: String,
}

impl Scanner {
    /// Reads the whole lines of `bytes`, and returns how many bytes they take.
    ///
    /// A last line that does not match its checksum counts as torn: a power cut may keep a line's end without its middle.
    fn scan(&mut self, path: &Path, bytes: &[u8]) -> Result<(LogContents, usize), LogError> {
        let (mut contents, mut whole, mut lines) = (LogContents::default(), 0, Vec::new());
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            if self.lines == 0 && lines.is_empty() {
                self.check_format(path, piece)?;
            }
            let is_last = whole + piece.len() == bytes.len();
            let Some(line) = piece.strip_suffix(b"\n").filter(|line| !is_last || record::is_intact(line)) else {
                contents.torn_tail = true;
                break;
            };
            lines.push(line);
            whole += piece.len();
        }
        for block in lines.chunks(BLOCK) {
            let share = share_of_core(block.len(), ALONE);
            let decoded = map_shares(block, share, |line| record::decode(line, &self.format));
            decoded.into_iter().for_each(|line| self.take(line, &mut contents));
        }
        Ok((contents, whole))
    }

    /// The same, and a last record that lacks nothing but its newline.
    fn scan_to_end(&mut self, path: &Path, bytes: &[u8]) -> Result<Scan, LogError> {
        let (mut contents, mut whole) = self.scan(path, bytes)?;
        let rest = &bytes[whole..];
        let open_end = !rest.is_empty() && record::is_intact(rest);
        if open_end {
            self.take(record::decode(rest, &self.format), &mut contents);
            contents.torn_tail = false;
            whole = bytes.len();
        }
        relocate(&mut contents.records);
        Ok(Scan { contents, whole, open_end, run: self.run.clone() })
    }

    fn check_format(&mut self, path: &Path, first_line: &[u8]) -> Result<(), LogError> {
        self.format = record::format_of(first_line).unwrap_or_else(|| "unknown".to_owned());
        let major = |format: &str| format.split('.').next().and_then(|number| number.parse::<u32>().ok());
        if major(&self.format) > major(FORMAT) {
            return Err(LogError::NewerFormat { path: path.to_owned(), found: self.format.clone() });
        }
        Ok(())
    }

    fn take(&mut self, line: Result<record::Line, LineFault>, contents: &mut LogContents) {
        self.lines += 1;
        let line_number = self.lines;
        let mut report = |fault| contents.damage.push(Damage { line: line_number, fault });
        let record = match line.and_then(|line| self.of_this_run(line)) {
            Ok(record) => record,
            Err(fault) => {
                self.gap = true;
                return report(fault);
            }
        };
        let (expected, found) = (self.last + 1, record.seq);
        if found < expected || (found > expected && !self.gap) {
            report(LineFault::Sequence { expected, found });
        }
        if found >= expected {
            (self.last, self.gap) = (found, false);
            contents.records.push(record);
        }
    }

    fn of_this_run(&mut self, line: record::Line) -> Result<Record, LineFault> {
        let record::Line { run_id, phase, record } = line;
        let (run, _) = self.run.get_or_insert_with(|| (run_id.clone(), phase));
        if *run == run_id { Ok(record) } else { Err(LineFault::OtherRun(run_id)) }
    }
}

/// How many lines are decoded before their records are put in order: enough that threads are worth their start, few
/// enough that the decoded lines take little memory.
const BLOCK: usize = 8192;

/// So many lines are decoded by one thread.
const ALONE: usize = BLOCK / 8;
