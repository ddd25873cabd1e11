use std::fs;
use std::path::PathBuf;

use lanewright_model::digest::sha256;
use lanewright_model::event::{Place, RunMoved};

use super::*;
use crate::error::Damage;
use crate::record::LineFault;
use crate::run_log::{DurableLog, Follower, LogContents, read, read_durable};
use crate::samples::*;

struct Log {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl Log {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r1.jsonl");
        Self { _directory: directory, path }
    }

    /// A log with these events, a millisecond apart; returns the records too.
    fn with(events: &[Event]) -> (Self, Vec<Record>) {
        let log = Self::new();
        let mut journal = Journal::create(&log.path, &run(), &phase()).unwrap();
        let records = (0..).zip(events).map(|(n, event)| journal.append(at(n), event).unwrap()).collect();
        journal.sync().unwrap();
        (log, records)
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }

    fn set(&self, bytes: &[u8]) {
        fs::write(&self.path, bytes).unwrap();
    }

    fn lines(&self) -> Vec<String> {
        String::from_utf8(self.bytes()).unwrap().lines().map(|line| format!("{line}\n")).collect()
    }

    fn damage(&self) -> Vec<(usize, LineFault)> {
        read(&self.path).unwrap().damage.into_iter().map(|Damage { line, fault }| (line, fault)).collect()
    }
}

fn three() -> [Event; 3] {
    [started(), noted(Some(lane()), "one"), noted(None, "two")]
}

#[test]
fn reopened_log_continues_after_synced_records() {
    let (log, mut records) = Log::with(&every_event());
    assert_eq!(read(&log.path).unwrap(), LogContents { records: records.clone(), ..LogContents::default() });
    let (mut journal, opened) = Journal::open(&log.path).unwrap();
    assert_eq!(opened, records);
    for message in ["more", "and more"] {
        records.push(journal.append(at(1000), &noted(None, message)).unwrap());
        journal.sync().unwrap();
    }
    journal.sync().unwrap();
    assert_eq!(read(&log.path).unwrap(), LogContents { records, ..LogContents::default() });
}

#[test]
fn long_log_keeps_order_and_line_numbers() {
    let mut events = vec![started()];
    events.extend((1..20_000).map(|number| noted(None, &number.to_string())));
    let (log, mut records) = Log::with(&events);
    assert_eq!(Journal::open(&log.path).unwrap().1, records);
    let mut lines = log.lines();
    lines[11_110] = lines[11_110].replace("noted", "notes");
    log.set(lines.concat().as_bytes());
    records.remove(11_110);
    assert_eq!(log.damage(), [(11_111, LineFault::Checksum)]);
    assert_eq!(read(&log.path).unwrap().records, records);
}

#[test]
fn append_writes_nothing_before_sync() {
    let (log, _) = Log::with(&[started()]);
    let (mut journal, _) = Journal::open(&log.path).unwrap();
    let before = log.bytes();
    journal.append(at(1), &noted(None, "x")).unwrap();
    assert_eq!(log.bytes(), before);
}

#[test]
fn torn_tail_is_cut_off_at_any_byte() {
    let (log, records) = Log::with(&three());
    let whole = log.bytes();
    let last = log.lines()[2].len();
    for cut in 1..=last {
        log.set(&whole[..whole.len() - cut]);
        // Without its newline the record is whole all the same.
        let kept = if cut == 1 { 3 } else { 2 };
        let contents = read(&log.path).unwrap();
        assert_eq!((contents.records.len(), contents.torn_tail), (kept, (2..last).contains(&cut)), "cut {cut}");
        let (mut journal, opened) = Journal::open(&log.path).unwrap();
        assert_eq!(opened, records[..kept], "cut {cut}");
        journal.append(at(9), &noted(None, "after")).unwrap();
        journal.sync().unwrap();
        let contents = read(&log.path).unwrap();
        assert_eq!((contents.records.len(), contents.torn_tail), (kept + 1, false), "cut {cut}");
        assert_eq!(contents.damage, []);
    }
}

#[test]
fn last_line_with_bad_checksum_is_torn() {
    let (log, records) = Log::with(&three());
    let mut bytes = log.bytes();
    let hole = bytes.len() - 40;
    bytes[hole..hole + 20].fill(0);
    log.set(&bytes);
    assert_eq!(Journal::open(&log.path).unwrap().1, records[..2]);
    log.set(&[log.bytes(), vec![0; 5000]].concat());
    assert_eq!(Journal::open(&log.path).unwrap().1, records[..2]);
}

#[test]
fn corrupted_middle_line_is_reported_and_refused() {
    let (log, records) = Log::with(&three());
    let whole = log.bytes();
    let first = log.lines()[0].len();
    for index in first..first + log.lines()[1].len() - 1 {
        let mut bytes = whole.clone();
        bytes[index] ^= 1;
        log.set(&bytes);
        let contents = read(&log.path).unwrap();
        assert_eq!(contents.damage[0], Damage { line: 2, fault: LineFault::Checksum }, "byte {index}");
        assert_eq!(contents.records.last(), records.last());
        let error = Journal::open(&log.path).unwrap_err();
        assert!(matches!(&error, LogError::Damaged { damage, .. } if damage[0].line == 2), "{error}");
        assert_eq!(log.bytes(), bytes, "a damaged log was changed");
    }
}

#[test]
fn all_damage_is_reported_at_once() {
    let (log, _) = Log::with(&[started(), noted(None, "1"), noted(None, "2"), noted(None, "3"), noted(None, "4")]);
    let mut lines = log.lines();
    lines[1] = "not json\n".into();
    lines[3] = "\n".into();
    log.set(lines.concat().as_bytes());
    let error = Journal::open(&log.path).unwrap_err().to_string();
    let expected = "is damaged: line 2: its checksum does not match; line 4: its checksum does not match";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn missing_and_duplicate_lines_are_reported() {
    let (log, records) = Log::with(&[started(), noted(None, "1"), noted(None, "2"), noted(None, "3")]);
    let lines = log.lines();
    log.set([&lines[0], &lines[2], &lines[3]].map(String::as_str).concat().as_bytes());
    assert_eq!(log.damage(), [(2, LineFault::Sequence { expected: 2, found: 3 })]);
    log.set([&lines[0], &lines[1], &lines[1], &lines[2]].map(String::as_str).concat().as_bytes());
    assert_eq!(log.damage(), [(3, LineFault::Sequence { expected: 3, found: 2 })]);
    assert_eq!(read(&log.path).unwrap().records, records[..3]);
    log.set([&lines[1], &lines[2]].map(String::as_str).concat().as_bytes());
    assert_eq!(log.damage(), [(1, LineFault::Sequence { expected: 1, found: 2 })]);
}

#[test]
fn invalid_last_line_with_checksum_is_damage() {
    let (log, _) = Log::with(&three());
    let line = forged(noted(None, "x"), |body| body.replace("\"noted\"", "\"novel\""));
    log.set(&[log.bytes(), line, b"\n".to_vec()].concat());
    let before = log.bytes();
    assert!(matches!(Journal::open(&log.path), Err(LogError::Damaged { .. })));
    assert_eq!(log.bytes(), before);
}

#[test]
fn line_of_other_run_is_damage() {
    let (log, _) = Log::with(&three());
    let other = RunId::new("r2").unwrap();
    let mut line = Vec::new();
    let record = Record { seq: 4, at: at(4), event: noted(None, "x"), origin: None };
    crate::record::encode(&record, &other, &phase(), &mut line).unwrap();
    log.set(&[log.bytes(), line].concat());
    assert_eq!(log.damage(), [(4, LineFault::OtherRun(other))]);
}

#[test]
fn log_without_records_is_reported_empty() {
    let (log, _) = Log::with(&[started()]);
    for bytes in [&b""[..], &log.bytes()[..30]] {
        log.set(bytes);
        assert!(matches!(Journal::open(&log.path), Err(LogError::Empty { .. })));
        assert_eq!(read(&log.path).unwrap().records, []);
    }
}

#[test]
fn newer_major_format_is_refused() {
    let log = Log::new();
    log.set(b"{\"format\":\"2.0\",\"event\":\"begun\",\"sum\":1}\n");
    for error in [read(&log.path).unwrap_err(), Journal::open(&log.path).unwrap_err()] {
        assert!(matches!(&error, LogError::NewerFormat { found, .. } if found == "2.0"), "{error}");
    }
}

#[test]
fn newer_minor_format_is_read() {
    let (log, _) = Log::with(&[started()]);
    let line = forged(started(), |body| body.replace("\"seq\":3", "\"seq\":1").replace("\"1.0\"", "\"1.9\""));
    log.set(&[line, b"\n".to_vec()].concat());
    assert_eq!(read(&log.path).unwrap().records.len(), 1);
}

#[test]
fn record_times_never_decrease() {
    let (log, _) = Log::with(&[started()]);
    let (mut journal, _) = Journal::open(&log.path).unwrap();
    let times = [500, 100, 600].map(|millis| journal.append(at(millis), &noted(None, "x")).unwrap().at);
    assert_eq!(times, [500, 500, 600].map(at));
    journal.sync().unwrap();
    let (mut journal, _) = Journal::open(&log.path).unwrap();
    assert_eq!(journal.append(at(0), &noted(None, "x")).unwrap().at, at(600));
}

#[test]
fn unwritable_event_leaves_log_unchanged() {
    let (log, _) = Log::with(&[started()]);
    let (mut journal, _) = Journal::open(&log.path).unwrap();
    let Event::RunStarted(mut other) = started() else { unreachable!() };
    other.run_id = RunId::new("r2").unwrap();
    assert!(matches!(journal.append(at(1), &Event::RunStarted(other)), Err(LogError::Event { .. })));
    assert_eq!(journal.append(at(1), &noted(None, "x")).unwrap().seq, 2);
    journal.sync().unwrap();
    assert_eq!(log.damage(), []);
}

#[test]
fn log_is_created_once_with_private_mode() {
    use std::os::unix::fs::PermissionsExt;
    let (log, _) = Log::with(&[started()]);
    assert!(Journal::create(&log.path, &run(), &phase()).is_err());
    assert_eq!(fs::metadata(&log.path).unwrap().permissions().mode() & 0o777, 0o600);
    let link = log.path.with_file_name("link.jsonl");
    std::os::unix::fs::symlink(&log.path, &link).unwrap();
    let error = Journal::open(&link).unwrap_err().to_string();
    assert!(error.contains("is a symbolic link"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn journal_is_closed_after_error() {
    let (log, _) = Log::with(&[started()]);
    let (mut journal, _) = Journal::open(&log.path).unwrap();
    journal.append(at(1), &noted(None, "lost")).unwrap();
    journal.redirect(fs::File::options().append(true).open("/dev/full").unwrap());
    assert!(matches!(journal.sync(), Err(LogError::File(_))));
    journal.redirect(fs::File::options().append(true).open(&log.path).unwrap());
    for error in [journal.sync().unwrap_err(), journal.append(at(2), &noted(None, "x")).unwrap_err()] {
        assert!(matches!(&error, LogError::Poisoned { cause, .. } if cause.contains("No space left")), "{error}");
    }
    assert_eq!(read(&log.path).unwrap().records.len(), 1);
}

#[test]
fn follower_returns_each_whole_record_once() {
    let (log, records) = Log::with(&three());
    let whole = log.bytes();
    fs::remove_file(&log.path).unwrap();
    let mut follower = Follower::new(&log.path);
    assert_eq!(follower.poll().unwrap(), LogContents::default());
    let mut seen = Vec::new();
    for end in 0..=whole.len() {
        log.set(&whole[..end]);
        let contents = follower.poll().unwrap();
        assert_eq!(contents.damage, []);
        assert_eq!(contents.torn_tail, end > 0 && whole[end - 1] != b'\n');
        seen.extend(contents.records);
    }
    assert_eq!(seen, records);
    assert_eq!(follower.poll().unwrap(), LogContents::default());
}

#[test]
fn follower_continues_after_tail_was_rewritten() {
    let (log, records) = Log::with(&three());
    let (whole, last) = (log.bytes(), log.lines()[2].len());
    let mut damaged = whole.clone();
    let place = whole.len() - last + 5;
    damaged[place] ^= 1;
    log.set(&damaged);
    let mut follower = Follower::new(&log.path);
    assert_eq!(follower.poll().unwrap().records, records[..2]);
    Journal::open(&log.path).unwrap();
    log.set(&whole);
    let contents = follower.poll().unwrap();
    assert_eq!((contents.records, contents.damage), (records[2..].to_vec(), vec![]));
}

#[test]
fn durable_log_read_in_parts_equals_whole() {
    let place =
        |root: &str| Place { host: "h".into(), repository: root.into(), worktree_root: format!("{root}.lanes").into() };
    let moved = RunMoved { from: place("/repo"), to: place("/other"), slots: vec![] };
    let events = [every_event(), vec![Event::RunMoved(Box::new(moved)), noted(None, "last")]].concat();
    let (log, _) = Log::with(&events);
    let (whole, mut ends) = (log.bytes(), vec![0]);
    for line in log.lines() {
        let before = ends[ends.len() - 1];
        ends.extend([before + line.len() / 2, before + line.len() - 1, before + line.len()]);
    }
    let (mut growing, mut records) = (DurableLog::default(), Vec::new());
    for end in ends.into_iter().filter(|&end| becomes(&log, &whole[..end])) {
        let (read, (bytes, all)) = (growing.read(&log.path).unwrap(), read_durable(&log.path).unwrap());
        records.truncate(if read.continues { records.len() } else { 0 });
        records.extend(read.added);
        assert_eq!((&read.sha256, &read.bytes, &records), (&sha256(&bytes), &bytes, &all), "{end}");
    }
    let mut other = whole.clone();
    let place = other.len() / 2;
    other[place] ^= 1;
    log.set(&other);
    assert!(matches!(growing.read(&log.path), Err(LogError::Damaged { .. })), "what was read before is looked at");
}

/// Makes `bytes` the log; whether it holds a record.
fn becomes(log: &Log, bytes: &[u8]) -> bool {
    log.set(bytes);
    read_durable(&log.path).is_ok()
}

#[test]
fn golden_logs_are_readable() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/journals/v1");
    let read = |name: &str| read(&directory.join(name)).unwrap();
    let every = read("every-event.jsonl");
    assert_eq!((every.damage, every.torn_tail), (vec![], false));
    assert_eq!(every.records.into_iter().map(|record| record.event).collect::<Vec<_>>(), every_event());
    let torn = read("torn-tail.jsonl");
    assert_eq!((torn.records.len(), torn.torn_tail, torn.damage.len()), (3, true, 0));
    let newer = read("newer-minor.jsonl");
    assert_eq!((newer.records.len(), newer.damage.len()), (2, 0));
    let damaged = read("damaged-middle.jsonl");
    assert_eq!(damaged.damage, [Damage { line: 2, fault: LineFault::Checksum }]);
}
