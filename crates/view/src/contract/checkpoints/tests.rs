use std::path::PathBuf;

use lanewright_model::event::RunOutcome;
use lanewright_model::testing::*;

use super::*;

const LANE: &str = "SL-AUTH";

/// What the story writes, record by record.
fn written(story: &Story) -> Vec<CheckpointRecord> {
    let mut fold = CheckpointFold::new(places(), RunHistory::default());
    story.records.iter().flat_map(|record| fold.apply(record)).collect()
}

fn last(story: &Story) -> CheckpointRecord {
    written(story).pop().unwrap()
}

/// What `checkpoints.json` holds after the story: stage and status of each record.
fn file(story: &Story) -> Vec<(Stage, CheckpointStatus)> {
    let mut file: Vec<CheckpointRecord> = Vec::new();
    for record in written(story) {
        file.retain(|known| (&known.lane, known.stage) != (&record.lane, record.stage));
        file.push(record);
    }
    file.sort_by_key(|record| record.stage);
    file.into_iter().map(|record| (record.stage, record.status)).collect()
}

/// Where everything usually is.
pub(crate) fn places() -> RunFiles {
    let logs = PathBuf::from("/repo/.claude/ai-dev-kit/run-logs");
    RunFiles {
        log_path: logs.join("P1-SL-AUTH-20251227.jsonl"),
        checkpoint_path: logs.join("checkpoints.json"),
        program: program(),
        repository: "/repo".into(),
    }
}

#[test]
fn a_retry_record_holds_every_field_of_seed_004() {
    let record = last(&Story::begun().opened(LANE, 1).retried(LANE, 1, 3).retried(LANE, 2, 3));
    let context = ["Attempt 1: TypeError: undefined is not a function", "Test failed: AuthService.register"];
    assert_eq!(record.run_id.as_str(), "P1-SL-AUTH-20251227");
    assert_eq!(record.phase.as_str(), "P1");
    assert_eq!(record.lane, Some(lane(LANE)));
    assert_eq!(record.stage.word(), "retry_attempt");
    assert_eq!(record.status.word(), "retrying");
    assert_eq!(&*record.base_branch, "main");
    assert_eq!(&*record.worktree_path, Path::new("/w/slots/01"));
    assert_eq!(&*record.log_path, Path::new("/repo/.claude/ai-dev-kit/run-logs/P1-SL-AUTH-20251227.jsonl"));
    assert_eq!(record.timestamp.to_string(), "2025-12-27T10:02:18.000Z");
    assert_eq!((record.retry_attempt, record.max_retries), (Some(2), Some(3)));
    assert_eq!(record.failure_context[..2], context);
    assert_eq!(record.failure_context[2], "Attempt 2: TypeError: undefined is not a function");
    assert_eq!(record.session_id.as_deref(), Some("first-session"));
    let git = record.git.unwrap();
    assert_eq!(
        (git.branch.as_deref(), git.head, git.dirty_files.len()),
        (Some("lane/P1/SL-AUTH"), Some(commit('a')), 0)
    );
}

#[test]
fn hints_can_be_pasted_anywhere_in_the_repository() {
    let record = last(&Story::begun().opened(LANE, 1));
    let run = "'/repo/plans/phase 1.toml' --run-id P1-SL-AUTH-20251227";
    assert_eq!(*record.resume_hint, *format!("lanewright execute-phase {run} --resume"));
    assert_eq!(*record.rollback_hint, *format!("lanewright execute-phase {run} --lane SL-AUTH --rollback"));
}

#[test]
fn hints_say_where_the_files_are_when_that_is_unusual() {
    let elsewhere =
        RunFiles { checkpoint_path: "/state/my points.json".into(), log_path: "/state/l".into(), ..places() };
    let mut fold = CheckpointFold::new(elsewhere, RunHistory::default());
    let story = Story::begun().opened(LANE, 1);
    let record = story.records.iter().flat_map(|record| fold.apply(record)).next().unwrap();
    assert!(record.resume_hint.ends_with("--checkpoint-path '/state/my points.json' --log-path /state/l"));
    assert_eq!(&*record.log_path, Path::new("/state/l"));
}

#[test]
fn the_worktree_is_named_before_it_is_there() {
    let records = written(&Story::begun().opened(LANE, 1));
    let first = &records[0];
    assert_eq!((first.stage, first.status), (Stage::BeforeLaneStart, CheckpointStatus::Ready));
    assert_eq!(&*first.worktree_path, Path::new("/w/P1-SL-AUTH-20251227/SL-AUTH/code"));
    assert_eq!((first.git.clone(), first.head_sha.clone()), (None, Some(commit('a'))));
}

#[test]
fn a_merge_completes_the_record_before_it() {
    let story = Story::begun().opened(LANE, 1).merged(LANE, 'd');
    let record = last(&story);
    assert_eq!((record.stage, record.status), (Stage::PrePr, CheckpointStatus::Complete));
    assert_eq!((record.head_sha.clone(), record.target_branch.as_deref()), (Some(commit('c')), Some("main")));
    assert!(record.notes.contains(&"d".repeat(40)));
    use CheckpointStatus::{Complete, InProgress, Ready};
    let stages = [(Stage::BeforeLaneStart, Ready), (Stage::AfterLaneStart, InProgress), (Stage::PrePr, Complete)];
    assert_eq!(file(&story), stages);
    assert_eq!(written(&story.resumed()).len(), 4, "a resume changes nothing of a merged lane");
}

#[test]
fn exhausted_retry_lists_every_error() {
    let story = Story::begun().opened(LANE, 1).retried(LANE, 1, 2).retried(LANE, 2, 2);
    let tests = Checkpoint::new(Stage::AfterLaneTests, CheckpointStatus::Failed);
    let record = last(&story.reached(LANE, tests).failed(LANE));
    assert_eq!((record.stage, record.status), (Stage::RetryAttempt, CheckpointStatus::Failed));
    assert_eq!((record.retry_attempt, record.max_retries), (Some(2), Some(2)));
    let attempts: Vec<&String> = record.failure_context.iter().filter(|line| line.starts_with("Attempt")).collect();
    assert_eq!(attempts.len(), 3);
    assert_eq!((record.command.as_deref(), record.exit_code), (Some("cargo test auth"), Some(101)));
}

#[test]
fn retry_count_is_capped_at_maximum() {
    let story = Story::begun().opened(LANE, 1).retried(LANE, 3, 2).failed(LANE);
    assert_eq!(last(&story).retry_attempt, Some(2));
}

#[test]
fn unrepairable_failure_fails_newest_stage() {
    let record = last(&Story::begun().opened(LANE, 1).failed(LANE));
    assert_eq!((record.stage, record.status), (Stage::AfterLaneStart, CheckpointStatus::Failed));
    assert_eq!(record.failure_context[0], "Attempt 1: TypeError: undefined is not a function");
    assert_eq!(record.notes, "TypeError: undefined is not a function");
    // The disk is full, with retries that were used up before and then succeeded.
    let full = Event::LaneFailed { lane: lane(LANE), failure: Failure::new(FailureKind::State, "disk full") };
    let story = Story::begun().opened(LANE, 1).retried(LANE, 2, 2);
    let story = story.reached(LANE, Checkpoint::new(Stage::PrePr, CheckpointStatus::InProgress)).then(full);
    assert_eq!((last(&story).stage, last(&story).status), (Stage::PrePr, CheckpointStatus::Failed));
}

#[test]
fn a_blocked_lane_says_what_must_come_first() {
    let story = Story::begun().opened(LANE, 1).blocked(LANE, "main is dirty");
    let record = last(&story);
    assert_eq!((record.stage, record.status), (Stage::AfterLaneStart, CheckpointStatus::Blocked));
    assert_eq!(record.notes, "main is dirty");
    assert!(written(&Story::begun().blocked(LANE, "no checkpoint yet")).is_empty());
}

#[test]
fn a_resume_brings_back_what_the_record_was() {
    for story in [Story::begun().opened(LANE, 1).failed(LANE), Story::begun().opened(LANE, 1).blocked(LANE, "x")] {
        let record = last(&story.finished(RunOutcome::Failed, 1).resumed());
        assert_eq!((record.stage, record.status), (Stage::AfterLaneStart, CheckpointStatus::InProgress));
        assert_eq!((record.notes.as_str(), record.failure_context.len()), ("", 0));
        assert_eq!(record.session_id.as_deref(), Some("second-session"));
    }
    let again = Story::begun().opened(LANE, 1).blocked(LANE, "x").failed(LANE).resumed();
    assert_eq!(last(&again).status, CheckpointStatus::InProgress);
}

#[test]
fn rollback_marks_only_records_of_its_lane() {
    let story = Story::begun().opened(LANE, 1).opened("SL-2", 3).merged(LANE, 'd');
    let before = written(&story).len();
    let story = story.then(Event::LaneRolledBack { lane: lane(LANE), integration: None, kept: vec![] });
    let marked = &written(&story)[before..];
    assert_eq!(marked.len(), 3);
    assert!(
        marked.iter().all(|record| record.lane == Some(lane(LANE)) && record.status == CheckpointStatus::RolledBack)
    );
}

#[test]
fn the_phase_has_records_without_a_lane() {
    let checkpoint = Checkpoint::new(Stage::AfterLaneTests, CheckpointStatus::Failed);
    let record = last(&Story::begun().then(Event::CheckpointReached { lane: None, checkpoint }));
    assert_eq!((&record.lane, &*record.worktree_path), (&None, Path::new("/repo")));
    assert!(!record.rollback_hint.contains("--lane"));
}
