use std::fs;

use lanewright_model::{CheckpointStatus, LaneId, PhaseId, RunId, Stage, Timestamp};

use super::*;

fn record(run: &str, lane: Option<&str>, stage: Stage) -> CheckpointRecord {
    CheckpointRecord {
        run_id: RunId::new(run).unwrap(),
        phase: PhaseId::new("P1").unwrap(),
        lane: lane.map(|lane| LaneId::new(lane).unwrap()),
        stage,
        status: CheckpointStatus::Ready,
        base_branch: "main".into(),
        worktree_path: Path::new("/w").into(),
        log_path: Path::new("/l").into(),
        timestamp: Timestamp::from_unix_millis(0),
        notes: String::new(),
        resume_hint: "lanewright resume".into(),
        rollback_hint: "lanewright rollback".into(),
        retry_attempt: None,
        max_retries: None,
        failure_context: vec![],
        command: None,
        exit_code: None,
        head_sha: None,
        target_branch: None,
        git: None,
        session_id: None,
    }
}

/// `updated` for texts that can be read.
fn edit(old: &str, records: &[CheckpointRecord]) -> String {
    updated(Path::new("x"), old, records).unwrap_or_else(|error| panic!("{error}"))
}

fn text_of(record: &CheckpointRecord) -> String {
    serde_json::to_string(record).unwrap()
}

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("checkpoints.json");
    fs::write(&path, text).unwrap();
    (directory, path)
}

#[test]
fn checkpoints_file_is_created_with_a_record_per_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new/checkpoints.json");
    update::<CheckpointRecord>(&path, &[]).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "[]\n");
    let (one, two) = (record("r", Some("A"), Stage::PrePr), record("r", None, Stage::PrePr));
    update(&path, std::slice::from_ref(&one)).unwrap();
    update(&path, std::slice::from_ref(&two)).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("[\n  {},\n  {}\n]\n", text_of(&one), text_of(&two)));
    let entries = [one, two].map(|record| CheckpointEntry::Record(Box::new(record)));
    assert_eq!(read(&path).unwrap(), entries);
}

#[test]
fn checkpoint_replaces_record_with_same_key() {
    let (a, b) = (record("r", Some("A"), Stage::PrePr), record("r", Some("B"), Stage::PrePr));
    let others = [record("s", Some("A"), Stage::PrePr), record("r", Some("A"), Stage::RetryAttempt)];
    let all = [&[a.clone(), b.clone()][..], &others].concat();
    let newer = CheckpointRecord { status: CheckpointStatus::Complete, notes: "later".into(), ..a.clone() };
    let old = edit("", &all);
    let new = edit(&old, std::slice::from_ref(&newer));
    assert_eq!(new, old.replacen(&text_of(&a), &text_of(&newer), 1));
}

#[test]
fn foreign_checkpoints_keep_text_and_position() {
    let ours = record("r", Some("A"), Stage::PrePr);
    let foreign = [
        "{ \"run_id\" : \"r\", \"phase\":\"P1\",\"lane\":\"A\",\"stage\":\"nightly\",\"n\":1.50e+0 }",
        "{\"run_id\":\"\\u0072\",\"phase\":\"P1\",\"lane\":\"Z\",\"stage\":\"pre_pr\",\"x\":\"\\/\"}",
        "[\"r\" ,\t\"P1\", \"new\",\"pre_pr\"]",
        "\"text, with [ and ,\"",
        "{\"run_id\":7,\"run_id\":8,\"phase\":null}",
    ];
    let old =
        format!("\u{feff} [{}\r\n ,{},{} , {}\n]\n\n", foreign[0], text_of(&ours), foreign[1..4].join(","), foreign[4]);
    let newer = CheckpointRecord { status: CheckpointStatus::Failed, ..ours.clone() };
    let added = record("r", Some("new"), Stage::PrePr);
    let new = edit(&old, &[newer.clone(), added.clone()]);
    let (replaced, appended) = (text_of(&newer), text_of(&added));
    let all = [&[foreign[0], &replaced], &foreign[1..], &[&appended]].concat();
    assert_eq!(new, format!("[\n  {}\n]\n", all.join(",\n  ")));
}

#[test]
fn update_keeps_foreign_fields_in_place() {
    let old = r#"[
  {
    "\u0061ge" : 1.50e+0,
    "exit_code": 7,
    "stage": "pre_pr", "lane": "A", "phase": "P1", "run_id": "r",
    "reviewer": {"name":  "x", "id": 12345678901234567890123},
    "status": "ready",
    "status": "twice"
  }
]"#;
    let newer = CheckpointRecord { command: Some("make".into()), ..record("r", Some("A"), Stage::PrePr) };
    let new = edit(old, std::slice::from_ref(&newer));
    assert!(
        new.contains(r#"{"age":1.50e+0,"stage":"pre_pr","lane":"A","phase":"P1","run_id":"r","reviewer":{"#),
        "{new}"
    );
    assert!(new.contains(r#""reviewer":{"name":  "x", "id": 12345678901234567890123},"status":"ready","#), "{new}");
    assert!(!new.contains("exit_code") && !new.contains("twice"), "{new}");
    let array: Vec<CheckpointRecord> = serde_json::from_str(&new).unwrap();
    assert_eq!(array, std::slice::from_ref(&newer));
    assert_eq!(edit(&new, &[newer]), new);
}

#[test]
fn update_replaces_last_record_with_same_key() {
    let ours = record("r", Some("A"), Stage::PrePr);
    let old = format!("[{0},{0}]", text_of(&ours));
    let newer = CheckpointRecord { notes: "later".into(), ..ours.clone() };
    let new = edit(&old, std::slice::from_ref(&newer));
    assert_eq!(new, format!("[\n  {},\n  {}\n]\n", text_of(&ours), text_of(&newer)));
}

#[test]
fn last_update_with_same_key_wins() {
    let ours = record("r", Some("A"), Stage::PrePr);
    let newer = CheckpointRecord { notes: "later".into(), ..ours.clone() };
    assert_eq!(edit("[]", &[ours, newer.clone()]), format!("[\n  {}\n]\n", text_of(&newer)));
}

#[test]
fn checkpoints_without_array_are_refused() {
    for (text, place) in [
        ("[\n{\"a\":1},\n{\"b\":\n]", ":4:1: "),
        ("{\"a\":1}", ":1:1: it holds no JSON array"),
        ("[1] x", ":1:5: "),
        ("[1,", ":1:3: "),
    ] {
        let (_directory, path) = file(text);
        let error = update(&path, &[record("r", None, Stage::PrePr)]).unwrap_err().to_string();
        assert!(error.contains(place) && error.contains("move it away"), "{error}");
        assert!(read(&path).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    let (_directory, path) = file("");
    fs::write(&path, b"[\n\"\xff\"]").unwrap();
    let error = update::<CheckpointRecord>(&path, &[]).unwrap_err().to_string();
    assert!(error.contains(":2:2: it is not UTF-8"), "{error}");
}

#[test]
fn empty_checkpoints_file_is_empty_array() {
    for text in ["", " \n", "\u{feff}"] {
        let (_directory, path) = file(text);
        assert_eq!(read(&path).unwrap(), []);
        update(&path, &[record("r", None, Stage::PrePr)]).unwrap();
        assert_eq!(read(&path).unwrap().len(), 1);
    }
}

#[test]
fn foreign_checkpoint_is_reported_with_reason() {
    let ours = record("r", Some("A"), Stage::PrePr);
    let (_directory, path) = file(&format!("[1, {}, {}]", text_of(&ours), text_of(&ours).replace("pre_pr", "nightly")));
    let entries = read(&path).unwrap();
    assert!(matches!(&entries[0], CheckpointEntry::Foreign { index: 0, .. }));
    assert_eq!(entries[1], CheckpointEntry::Record(Box::new(ours)));
    assert!(matches!(&entries[2], CheckpointEntry::Foreign { index: 2, reason } if reason.contains("nightly")));
}

#[test]
fn unchanged_checkpoints_are_not_written() {
    use std::os::unix::fs::MetadataExt;
    let (_directory, path) = file("");
    let ours = [record("r", None, Stage::PrePr)];
    update(&path, &ours).unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    update(&path, &ours).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().ino(), before);
}

#[test]
fn checkpoints_behind_link_are_refused() {
    let (directory, path) = file("[]");
    let link = directory.path().join("link.json");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let error = update(&link, &[record("r", None, Stage::PrePr)]).unwrap_err().to_string();
    assert!(error.contains("is a symbolic link"), "{error}");
    assert!(link.is_symlink());
}

#[test]
fn concurrent_checkpoint_updates_lose_nothing() {
    let (_directory, path) = file("[ {\"foreign\" : true} ]");
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let path = &path;
            scope.spawn(move || {
                for lane in 0..12 {
                    let shared = record("r", None, Stage::PrePr);
                    let own = record("r", Some(&format!("L{writer}-{lane}")), Stage::PrePr);
                    update(path, &[shared, own]).unwrap();
                }
            });
        }
    });
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("[\n  {\"foreign\" : true},\n  {"), "{text}");
    assert_eq!(read(&path).unwrap().len(), 1 + 1 + 8 * 12);
}

#[test]
fn update_handles_ten_thousand_records() {
    let lanes: Vec<_> = (0..10_000).map(|lane| record("r", Some(&format!("L{lane}")), Stage::PrePr)).collect();
    let newer: Vec<_> = lanes.iter().map(|old| CheckpointRecord { notes: "later".into(), ..old.clone() }).collect();
    let text = edit(&edit("", &lanes), &newer);
    assert_eq!(text, edit("", &newer));
}

#[test]
fn checkpoint_documentation_covers_every_field() {
    let docs = include_str!("../../../docs/checkpoints.md");
    for field in CheckpointRecord::FIELDS {
        assert!(docs.contains(&format!("\n| `{field}` | ")), "{field} is not explained");
    }
}

#[test]
fn log_paths_are_those_of_records_once_each() {
    let records = [
        record("r1", Some("A"), Stage::PrePr),
        record("r1", Some("B"), Stage::PrePr),
        record("r2", None, Stage::PrePr),
    ];
    let odd =
        r#"{"run_id": "r3"}, 7, {"run_id": "not a run", "log_path": "/l"}, {"run_id": "r4", "log_path": "/a\"b"}"#;
    let (_directory, path) = file(&edit(&format!("[{odd}]"), &records));
    let found = log_paths(&path).unwrap().into_iter();
    let found: Vec<_> = found.map(|(run, log)| (run.to_string(), log.to_string_lossy().into_owned())).collect();
    let expected = [("r1", "/l"), ("r2", "/l"), ("r4", "/a\"b")].map(|(run, log)| (run.to_owned(), log.to_owned()));
    assert_eq!(found, expected);
}
