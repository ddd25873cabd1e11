use lanewright_model::event::{Idle, LaneStage, RunOutcome};
use lanewright_model::{Approval, JobId, JobRole, LaneId, Stage, TaskId};
use proptest::prelude::*;

use super::*;
use crate::samples::*;

#[test]
fn every_event_survives_its_line() {
    for event in every_event() {
        let record = record(event);
        let line = decode(&line_of(&record), "1.0").unwrap();
        assert_eq!((line.record, line.run_id, line.phase), (record, run(), phase()));
    }
}

fn lanes() -> impl Strategy<Value = LaneId> {
    "[A-Za-z0-9][A-Za-z0-9_-]{0,12}".prop_map(|text| LaneId::new(&text).unwrap())
}

fn events() -> impl Strategy<Value = Event> {
    let stages = prop::sample::select(LaneStage::ALL);
    let roles = ("[a-z]{1,8}", prop::option::of(lanes())).prop_map(|(task, lane)| {
        let role = JobRole::Attempt { agent: agent(), task: TaskId::new(&task).unwrap() };
        JobId { lane, role, number: 9 }
    });
    prop_oneof![
        prop::sample::select(every_event()),
        (prop::option::of(lanes()), any::<String>()).prop_map(|(lane, message)| Event::Noted { lane, message }),
        (lanes(), stages.clone(), stages).prop_map(|(lane, from, to)| Event::LaneMoved { lane, from, to }),
        (lanes(), any::<String>()).prop_map(|(lane, reason)| Event::LaneBlocked { lane, reason }),
        (lanes(), any::<bool>(), any::<String>()).prop_map(|(lane, approved, message)| Event::GateAnswered {
            lane,
            gate: Approval::Changes.into(),
            approved,
            message
        }),
        (roles, any::<String>(), any::<i32>(), any::<String>()).prop_map(|(job, command, code, notes)| {
            let exit = lanewright_model::JobExit { notes, ..sample_exit(&command, code) };
            Event::JobExited { job, exit, report: None, reading: None, transcript: None }
        }),
        (prop::option::of(lanes()), prop::option::of(any::<String>()), prop::option::of(any::<i32>())).prop_map(
            |(lane, command, exit_code)| Event::CheckpointReached {
                lane,
                checkpoint: lanewright_model::Checkpoint {
                    command,
                    exit_code,
                    ..sample_checkpoint(Stage::AfterLaneTests)
                }
            }
        ),
        (lanes(), prop::collection::vec(any::<String>(), 0..4), prop::sample::select(Idle::ALL)).prop_map(
            |(lane, changed, idle)| Event::WorkCommitted {
                size: None,
                ignored: vec![],
                lane,
                agent: agent(),
                head: commit('e'),
                changed,
                prohibited: vec![],
                idle
            }
        ),
        any::<u8>().prop_map(|code| Event::RunFinished { outcome: RunOutcome::Done, code }),
    ]
}

proptest! {
    #[test]
    fn any_event_survives_its_line(seq in 1u64.., millis in 0i64..4_000_000_000_000, event in events()) {
        let record = Record { seq, at: Timestamp::from_unix_millis(millis), event, origin: None };
        let line = line_of(&record);
        prop_assert!(!line.contains(&b'\n'));
        prop_assert_eq!(decode(&line, "1.0").unwrap().record, record);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        prop_assert!(decode(&bytes, "1.0").is_err());
    }
}

#[test]
fn columns_come_first_in_contract_order() {
    let event = Event::JobExited {
        job: JobId { lane: Some(lane()), role: JobRole::Attempt { agent: agent(), task: task() }, number: 2 },
        exit: sample_exit("sh -c 'x'", 7),
        report: None,
        reading: None,
        transcript: None,
    };
    let line = String::from_utf8(line_of(&record(event))).unwrap();
    let columns = concat!(
        r#"{"seq":3,"ts":"2026-01-01T00:00:00.007Z","run_id":"r1","phase":"P1","lane":"SL-1","task":"1.2","#,
        r#""event":"job_exited","status":"error","cmd":"sh -c 'x'","exit_code":7,"notes":"a note","job":{"#,
    );
    assert!(line.starts_with(columns), "{line}");
}

#[test]
fn line_has_unique_member_names() {
    for event in every_event() {
        let line = String::from_utf8(line_of(&record(event))).unwrap();
        let Value::Object(object) = serde_json::from_str(&line).unwrap() else { panic!("{line} is no object") };
        // A name that stood twice would have lost its first value.
        assert_eq!(serde_json::to_string(&object).unwrap(), line);
    }
}

#[test]
fn record_of_run_has_dashes_as_lane_and_task() {
    let line = String::from_utf8(line_of(&record(noted(None, "x")))).unwrap();
    assert!(line.contains(r#""lane":"-","task":"-","event":"noted""#), "{line}");
}

#[test]
fn run_id_differing_from_column_is_refused() {
    let other = lanewright_model::RunId::new("other").unwrap();
    let mut buffer = b"before".to_vec();
    let error = encode(&record(started()), &other, &phase(), &mut buffer).unwrap_err();
    assert!(matches!(error, EncodeError::Collision(field) if field == "run_id"));
    assert_eq!(buffer, b"before");
}

#[test]
fn checksum_detects_any_flipped_bit() {
    let line = line_of(&record(noted(Some(lane()), "hello")));
    assert!(is_intact(&line));
    for index in 0..line.len() {
        for bit in 0..8 {
            let mut flipped = line.clone();
            flipped[index] ^= 1 << bit;
            assert_eq!(decode(&flipped, "1.0").err(), Some(LineFault::Checksum), "byte {index}, bit {bit}");
        }
    }
}

#[test]
fn unknown_event_error_names_format() {
    let line = forged(noted(None, "x"), |body| body.replace("\"noted\"", "\"lane_cloned\""));
    let fault = decode(&line, "1.7").err().unwrap();
    assert_eq!(fault.to_string(), "its event `lane_cloned` is unknown to format 1.0; the log has format 1.7");
}

#[test]
fn unknown_fields_of_newer_minor_are_ignored() {
    let line = forged(noted(None, "x"), |body| format!("{body},\"colour\":\"red\""));
    assert_eq!(decode(&line, "1.7").unwrap().record, record(noted(None, "x")));
}

#[test]
fn unknown_word_is_not_an_unknown_event() {
    let event = Event::RunFinished { outcome: RunOutcome::Done, code: 0 };
    let line = forged(event, |body| body.replace("\"done\"", "\"dusty\""));
    let fault = decode(&line, "1.0").err().unwrap();
    assert!(matches!(&fault, LineFault::Fields(reason) if reason.contains("dusty")), "{fault}");
}

/// serde lists all kinds of events in its message about one that it does not know.
#[test]
fn every_kind_of_event_has_a_sample() {
    let unknown = serde_json::from_str::<Event>(r#"{"event":"?"}"#).unwrap_err().to_string();
    let kinds: Vec<&str> = unknown.split('`').skip(3).step_by(2).collect();
    let samples: Vec<serde_json::Value> =
        every_event().into_iter().map(|event| serde_json::from_slice(&line_of(&record(event))).unwrap()).collect();
    assert!(kinds.len() > 30, "{unknown}");
    for kind in kinds {
        assert!(samples.iter().any(|sample| sample["event"] == kind), "{kind} has no sample");
    }
}
