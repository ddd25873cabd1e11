use std::fs;
use std::path::PathBuf;

use super::*;
use crate::journal::Journal;
use crate::run_log;
use crate::samples::{at, noted, phase};

/// A log of records that say `0`, `1`, ….
fn log(count: i64) -> (tempfile::TempDir, PathBuf, Vec<Vec<u8>>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("r1.jsonl");
    let mut journal = Journal::create(&path, &r1(), &phase()).unwrap();
    for number in 0..count {
        journal.append(at(number), &noted(None, &format!("record {number}"))).unwrap();
    }
    journal.sync().unwrap();
    let lines = fs::read(&path).unwrap().split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
    (directory, path, lines)
}

fn r1() -> RunId {
    RunId::new("r1").unwrap()
}

fn write(path: &Path, lines: &[Vec<u8>]) {
    fs::write(path, lines.join(&b'\n')).unwrap();
}

#[test]
fn salvage_keeps_records_before_damaged_line() {
    let (_directory, path, lines) = log(5);
    let whole = run_log::read(&path).unwrap().records;
    for at in 0..lines[2].len() {
        let mut damaged = lines.clone();
        damaged[2][at] ^= 0x15;
        if damaged[2].contains(&b'\n') {
            continue;
        }
        write(&path, &damaged);
        let saved = salvage(&path, &r1()).unwrap();
        assert_eq!(saved.records, whole[..2], "byte {at}");
        assert_eq!((saved.stranded, saved.lost.len(), saved.lost[0].line), (2, 1, 3), "byte {at}");
        fs::write(&path, &saved.text).unwrap();
        assert_eq!(run_log::read(&path).unwrap().records, whole[..2], "the text is a log of its own");
    }
}

#[test]
fn damage_between_consecutive_records_loses_nothing() {
    let (_directory, path, mut lines) = log(4);
    let whole = run_log::read(&path).unwrap().records;
    let (_other, other, strange) = log(1);
    assert!(other.exists());
    let strange = String::from_utf8(strange[0].clone()).unwrap().replace("r1", "r2").into_bytes();
    lines.insert(1, b"garbage".to_vec());
    lines.insert(3, lines[2].clone());
    lines.insert(4, strange.clone());
    lines.insert(0, strange);
    write(&path, &lines);
    let saved = salvage(&path, &r1()).unwrap();
    assert_eq!((saved.records, saved.stranded), (whole, 0));
    assert!(saved.lost.is_empty() && saved.needless.contains(&3), "{:?}", saved.needless);
}

#[test]
fn different_record_with_same_number_is_damage() {
    let (_directory, path, mut lines) = log(4);
    let (_other, _, others) = log(2);
    let mut journal = Journal::create(&path.with_extension("x"), &r1(), &phase()).unwrap();
    journal.append(at(0), &noted(None, "something else")).unwrap();
    journal.sync().unwrap();
    let text = fs::read(path.with_extension("x")).unwrap();
    assert_ne!(text.strip_suffix(b"\n"), Some(others[0].as_slice()));
    lines.insert(2, text.strip_suffix(b"\n").unwrap().to_vec());
    write(&path, &lines);
    let saved = salvage(&path, &r1()).unwrap();
    assert_eq!(saved.records.len(), 2);
    assert_eq!((saved.stranded, saved.lost.len()), (2, 1), "which of the two is true nobody knows");
}

#[test]
fn damaged_last_line_counts_as_lost() {
    let (_directory, path, mut lines) = log(3);
    lines[1] = b"zeros".to_vec();
    lines[2] = b"zeros".to_vec();
    write(&path, &lines);
    let saved = salvage(&path, &r1()).unwrap();
    assert_eq!((saved.records.len(), saved.stranded), (1, 0));
    assert_eq!(saved.lost[0].line, 2, "the last one is no more than a torn end");
}

#[test]
fn damaged_log_is_copied_once() {
    let (directory, path, lines) = log(2);
    let aside = replace_log(&path, &[lines[0].as_slice(), b"\n"].concat()).unwrap();
    fs::copy(&aside, &path).unwrap();
    assert_eq!(replace_log(&path, b"").unwrap(), aside);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    assert_eq!(fs::read(aside).unwrap(), lines.join(&b'\n'));
}
