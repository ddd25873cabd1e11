use std::fs;
use std::io;
use std::path::Path;

use crate::error::LogError;
use crate::journal::Journal;
use crate::log_guard::Tampering;
use crate::run_log::{LogContents, read};
use crate::samples::*;

/// What another program does to the log at a path while it is open, what that is called, and whether it leaves
/// something in its place.
type Attack = (fn(&Path), Tampering, bool);

const ATTACKS: &[Attack] = &[
    (|log| fs::remove_file(log).unwrap(), Tampering::Deleted, false),
    (|log| fs::remove_dir_all(log.parent().unwrap()).unwrap(), Tampering::Deleted, false),
    (|log| fs::write(log, "").unwrap(), Tampering::Truncated, true),
    (|log| fs::OpenOptions::new().write(true).open(log).unwrap().set_len(100).unwrap(), Tampering::Truncated, true),
    (append_garbage, Tampering::Extended, true),
    (|log| fs::rename(log, log.with_extension("elsewhere")).unwrap(), Tampering::Deleted, false),
    (replace_by_copy, Tampering::Replaced, true),
    (replace_by_link, Tampering::Replaced, true),
    (replace_by_directory, Tampering::Replaced, true),
];

fn append_garbage(log: &Path) {
    io::Write::write_all(&mut fs::OpenOptions::new().append(true).open(log).unwrap(), b"garbage\n").unwrap();
}

fn replace_by_copy(log: &Path) {
    let bytes = fs::read(log).unwrap();
    fs::remove_file(log).unwrap();
    fs::write(log, bytes).unwrap();
}

fn replace_by_link(log: &Path) {
    fs::rename(log, log.with_extension("elsewhere")).unwrap();
    std::os::unix::fs::symlink(log.with_extension("elsewhere"), log).unwrap();
}

fn replace_by_directory(log: &Path) {
    fs::remove_file(log).unwrap();
    fs::create_dir(log).unwrap();
}

#[test]
fn tampered_log_is_restored_and_closed() {
    for (number, (attack, expected, leaves)) in ATTACKS.iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("logs/deeper/r1.jsonl");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut journal = Journal::create(&path, &run(), &phase()).unwrap();
        let mut records = vec![journal.append(at(0), &started()).unwrap()];
        journal.sync().unwrap();
        if number % 2 == 0 {
            drop(journal);
            journal = Journal::open(&path).unwrap().0;
        }
        attack(&path);
        records.push(journal.append(at(1), &noted(None, "happened")).unwrap());
        let error = journal.sync().unwrap_err();
        let LogError::TamperedWith { how, restored: Ok(aside), .. } = &error else { panic!("{number}: {error}") };
        assert_eq!((how, aside.is_some()), (expected, *leaves), "{number}: {error}");
        assert_eq!(read(&path).unwrap(), LogContents { records, ..LogContents::default() }, "{number}");
        assert!(fs::symlink_metadata(&path).unwrap().is_file(), "{number}");
        assert!(aside.iter().all(|aside| fs::symlink_metadata(aside).is_ok()), "{number}");
        assert!(matches!(journal.append(at(2), &noted(None, "x")), Err(LogError::Poisoned { .. })), "{number}");
    }
}

#[test]
fn log_is_not_restored_through_linked_directory() {
    let directory = tempfile::tempdir().unwrap();
    let (logs, elsewhere) = (directory.path().join("logs"), directory.path().join("elsewhere"));
    fs::create_dir(&logs).unwrap();
    let mut journal = Journal::create(&logs.join("r1.jsonl"), &run(), &phase()).unwrap();
    journal.append(at(0), &started()).unwrap();
    journal.sync().unwrap();
    fs::remove_dir_all(&logs).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &logs).unwrap();
    journal.append(at(1), &noted(None, "x")).unwrap();
    let error = journal.sync().unwrap_err();
    assert!(matches!(&error, LogError::TamperedWith { restored: Err(_), .. }), "{error}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}

#[test]
fn large_log_is_restored_from_open_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r1.jsonl");
    let mut journal = Journal::create(&path, &run(), &phase()).unwrap();
    journal.append(at(0), &started()).unwrap();
    let large = noted(None, &"x".repeat(1 << 20));
    for number in 0..40 {
        journal.append(at(number), &large).unwrap();
        journal.sync().unwrap();
    }
    let before = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    journal.append(at(50), &noted(None, "last")).unwrap();
    assert!(matches!(journal.sync(), Err(LogError::TamperedWith { restored: Ok(None), .. })));
    assert!(fs::read(&path).unwrap().starts_with(&before) && read(&path).unwrap().damage.is_empty());

    let (mut journal, _) = Journal::open(&path).unwrap();
    fs::write(&path, "").unwrap();
    journal.append(at(60), &noted(None, "x")).unwrap();
    let error = journal.sync().unwrap_err();
    assert!(matches!(&error, LogError::TamperedWith { how: Tampering::Truncated, restored: Err(_), .. }), "{error}");
}
