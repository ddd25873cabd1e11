use proptest::prelude::*;

use super::*;
use crate::view::Styles;

const CLEAN: &str = include_str!("../../../fixtures/foreign_logs/clean.jsonl");
const MIXED: &str = include_str!("../../../fixtures/foreign_logs/mixed.jsonl");

/// `line lane event standing` of every record.
fn told(log: &ForeignLog) -> Vec<String> {
    let word = |record: &ForeignRecord| {
        let lane = record.lane.as_deref().unwrap_or("-");
        format!("{} {lane} {} {}", record.line, record.event, record.standing)
    };
    log.records.iter().map(word).collect()
}

#[test]
fn a_log_that_keeps_to_the_contract_is_read_whole() {
    let log = read(CLEAN);
    let expected = [
        "1 - phase_start ok",
        "2 SL-TREE lane_start ok",
        "3 SL-FRUIT lane_start ok",
        "4 SL-TREE test_done error",
        "5 SL-FRUIT lane_merged ok",
    ];
    assert_eq!((told(&log), log.damage.len()), (expected.map(str::to_owned).to_vec(), 0));
    let failed = &log.records[3];
    assert_eq!(
        (failed.cmd.as_deref(), failed.exit_code, failed.task.as_deref()),
        (Some("make check"), Some(2), Some("P3-T1"))
    );
}

#[test]
fn bars_several_lines_offsets_odd_words_and_damage_are_taken_as_they_come() {
    let log = read(MIXED);
    let expected = [
        "1 - phase_start running",
        "2 SL-TREE lane_start running",
        "17 SL-FRUIT lane_complete ok",
        "17 SL-FRUIT lane_merged unknown",
        "23 SL-TREE lane_complete ok",
    ];
    assert_eq!(told(&log), expected);
    let times: Vec<String> = log.records.iter().filter_map(|record| record.ts).map(|ts| ts.to_string()).collect();
    assert_eq!(times[1], "2026-02-04T07:05:00.000Z", "the offset counts");
    assert_eq!(times[4], "2026-02-04T07:40:00.000Z", "seconds since 1970");
    assert_eq!(log.records[0].notes.as_deref(), Some("Starting | the orchard"));
    assert_eq!(log.records[1].cmd, None);
    let damage: Vec<(usize, usize, &str)> =
        log.damage.iter().map(|damage| (damage.line, damage.lines, damage.reason.as_str())).collect();
    let expected = [(18, 1, "bad JSON: expected value"), (19, 4, "it breaks off"), (24, 1, "it breaks off")];
    assert_eq!(damage, expected);
}

#[test]
fn a_run_is_what_most_records_name_and_a_lane_is_what_it_said_last() {
    let run = ForeignRun::new(read(MIXED), ".claude/run-logs/mixed.jsonl", "mixed");
    assert_eq!((run.run_id.as_str(), run.phase.as_deref(), run.damaged_lines()), ("P4-20260204", Some("P4"), 6));
    insta::assert_snapshot!(list(std::slice::from_ref(&run), 80, Styles::plain()), @r"
    Other run logs:
      P4-20260204 · P4 · 5 records · 2026-02-04 07:40:00 UTC · 6 damaged lines
        SL-TREE: lane_complete success
        SL-FRUIT: lane_merged whatever
    See: lanekeeper status RUN
    ");
    insta::assert_snapshot!(show(&run, 90, Styles::plain()), @r"
    P4-20260204 · P4 · 5 records · 2026-02-04 07:40:00 UTC · 6 damaged lines
    .claude/run-logs/mixed.jsonl
    phase: phase_start running

    lane      last event     status    records  at (UTC)             notes
    SL-TREE   lane_complete  success   2        2026-02-04 07:40:00  -
    SL-FRUIT  lane_merged    whatever  2        2026-02-04 07:21:00  -

    at (UTC)             lane      task  event          status       notes
    2026-02-04 07:00:00  -         -     phase_start    running      Starting | the orchard
    2026-02-04 07:05:00  SL-TREE   -     lane_start     in_progress  -
    2026-02-04 07:20:00  SL-FRUIT  -     lane_complete  Passed       -
    2026-02-04 07:21:00  SL-FRUIT  -     lane_merged    whatever     -
    2026-02-04 07:40:00  SL-TREE   -     lane_complete  success      -

    6 lines could not be read
      line 18: bad JSON: expected value
      line 19: it breaks off
      line 24: it breaks off
    ");
}

#[test]
fn arrays_aliases_a_bom_and_other_line_ends_do_not_matter() {
    let text = "\u{feff}[\r\n  {\"timestamp\": \"2026-02-04 07:00:00\", \"type\": \"lane_start\", \"exitCode\": \"1\"},\r\n  \
                {\"time\": \"2026-02-04T07:00:00+0100\", \"action\": \"x\", \"message\": {\"a\": 1}}\r\n]\r\n";
    let log = read(text);
    assert_eq!(told(&log), ["2 - lane_start error", "3 - x unknown"]);
    assert_eq!(log.records[1].ts.unwrap().to_string(), "2026-02-04T06:00:00.000Z");
    assert_eq!(log.records[1].notes.as_deref(), Some("{\"a\":1}"));
    assert_eq!(log.damage, []);
    let nameless = read("{\"a\": 1}\n[1, 2]\n{} 7\n");
    let reasons: Vec<&str> = nameless.damage.iter().map(|damage| damage.reason.as_str()).collect();
    assert_eq!(reasons, ["it names no event", "it is no JSON object", "it names no event"], "each line counts once");
}

#[test]
fn what_never_ends_is_read_in_one_go() {
    let traps = ["{\n", "{\"a\":[\n", "[{\"a\":\n", "2026-02-04T07:00:00Z|", "\"", "{\"event\":\"x\"}", " {\"a\":\n"];
    for trap in traps {
        // Whatever is gone through more than once for each line would take hours.
        let log = read(&trap.repeat((1 << 19) / trap.len()));
        assert!(!log.records.is_empty() || !log.damage.is_empty(), "{trap:?}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "(?s)[{}\\[\\]\",:|\\-0-9a-z\\n \u{0}é]{0,200}") {
        let log = read(&text);
        let lines = text.lines().count();
        prop_assert!(log.damage.iter().all(|damage| damage.line <= lines));
    }

    #[test]
    fn a_cut_log_loses_nothing_before_the_cut(cut in 0usize..1500) {
        let cut = cut.min(CLEAN.len());
        let before = CLEAN[..cut].lines().count().saturating_sub(1);
        prop_assert!(read(&CLEAN[..cut]).records.len() >= before);
    }
}
