use std::path::PathBuf;

use lanewright_model::event::{CheckedOut, LaneStage, RunOutcome, SnapshotReason};
use lanewright_model::testing::*;
use lanewright_model::{Approval, Failure, FailureKind, JobId, JobRole};

use super::*;

const LANE: &str = "SL-AUTH";

/// What the story writes, record by record.
fn all_written(history: RunHistory, story: &Story) -> Vec<CheckpointRecord> {
    let mut fold = CheckpointFold::new(places(), history);
    story.records.iter().flat_map(|record| fold.apply(record)).collect()
}

/// What it writes of lanes.
fn written(story: &Story) -> Vec<CheckpointRecord> {
    let all = all_written(RunHistory::default(), story).into_iter();
    all.filter(|record| record.lane.is_some()).collect()
}

/// Of two lanes, the second of which depends on the first: lane, stage, status and notes of what the file holds.
fn file_of_two(story: &Story) -> Vec<String> {
    let plan = plan(&[("SL-1", &[], &[Approval::Changes]), ("SL-2", &["SL-1"], &[])]);
    let mut file: Vec<CheckpointRecord> = Vec::new();
    for record in all_written(RunHistory::for_plan(&plan), story) {
        file.retain(|known| (&known.lane, known.stage) != (&record.lane, record.stage));
        file.push(record);
    }
    file.sort_by_key(|record| (record.lane.clone(), record.stage));
    let lane = |record: &CheckpointRecord| record.lane.as_ref().map_or("-".to_owned(), LaneId::to_string);
    file.iter().map(|it| format!("{} {} {}: {}", lane(it), it.stage, it.status, it.notes)).collect()
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
    RunFiles::new(logs.join("P1-SL-AUTH-20251227.jsonl"), logs.join("checkpoints.json"), "/repo".into())
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
    assert_eq!(&*record.worktree_path, Path::new("/w/P1-SL-AUTH-20251227/SL-AUTH/code"));
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
fn hints_can_be_pasted_anywhere() {
    let record = last(&Story::begun().opened(LANE, 1));
    let run = "'/repo/plans/phase 1.toml' --run-id P1-SL-AUTH-20251227";
    assert_eq!(*record.resume_hint, *format!("lanewright -C /repo execute-phase {run} --resume"));
    assert_eq!(*record.rollback_hint, *format!("lanewright -C /repo execute-phase {run} --lane SL-AUTH --rollback"));
}

#[test]
fn hints_say_where_the_files_are_when_that_is_unusual() {
    let elsewhere =
        RunFiles { checkpoint_path: "/state/my points.json".into(), log_path: "/state/l".into(), ..places() };
    let mut fold = CheckpointFold::new(elsewhere, RunHistory::default());
    let story = Story::begun().opened(LANE, 1);
    let mut records = story.records.iter().flat_map(|record| fold.apply(record));
    let record = records.find(|record| record.lane.is_some()).unwrap();
    assert!(
        record.resume_hint.contains(" --checkpoint-path '/state/my points.json' --log-path /state/l execute-phase ")
    );
    assert_eq!(&*record.log_path, Path::new("/state/l"));
}

#[test]
fn the_worktree_is_named_before_it_is_there() {
    let records = written(&Story::begun().opened(LANE, 1));
    let is_based = |record: &&CheckpointRecord| record.head_sha.is_some();
    let first = records.iter().find(is_based).unwrap();
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
    let stages = [Stage::BeforeLaneStart, Stage::AfterLaneStart, Stage::PrePr];
    assert_eq!(file(&story), stages.map(|stage| (stage, CheckpointStatus::Complete)));
    let count = written(&story).len();
    assert_eq!(written(&story.resumed()).len(), count, "a resume changes nothing of a merged lane");
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
    let record = last(&Story::begun().blocked(LANE, "no checkpoint yet"));
    assert_eq!((record.stage, record.status), (Stage::BeforeLaneStart, CheckpointStatus::Blocked));
}

#[test]
fn a_resume_brings_back_what_the_record_was() {
    for story in [Story::begun().opened(LANE, 1).failed(LANE), Story::begun().opened(LANE, 1).blocked(LANE, "x")] {
        let record = last(&story.finished(RunOutcome::Failed, 1).resumed());
        assert_eq!((record.stage, record.status), (Stage::AfterLaneStart, CheckpointStatus::InProgress));
        assert_eq!((record.notes.as_str(), record.failure_context.len()), ("worktrees are checked out", 0));
        assert_eq!(record.session_id.as_deref(), Some("second-session"));
    }
    let again = Story::begun().opened(LANE, 1).blocked(LANE, "x").failed(LANE).resumed();
    assert_eq!(last(&again).status, CheckpointStatus::InProgress);
}

#[test]
fn rollback_marks_only_records_of_its_lane() {
    let story = Story::begun().opened(LANE, 1).opened("SL-2", 3).merged(LANE, 'd');
    let before = written(&story).len();
    let story = story.then(Event::LaneRolledBack { lane: lane(LANE), integration: None, kept: vec![], point: None });
    let marked = &written(&story)[before..];
    assert_eq!(marked.len(), 3);
    assert!(
        marked.iter().all(|record| record.lane == Some(lane(LANE)) && record.status == CheckpointStatus::RolledBack)
    );
}

#[test]
fn lane_that_waits_names_what_it_waits_for() {
    let story = Story::begun();
    assert_eq!(
        file_of_two(&story),
        [
            "- before_lane_start in_progress: 0 of 2 lanes merged",
            "SL-1 before_lane_start ready: waits for a place",
            "SL-2 before_lane_start blocked: waits for lane SL-1",
        ]
    );
    let story = story.opened("SL-1", 1).failed("SL-1");
    let waits = |story: &Story| file_of_two(story).pop().unwrap();
    assert_eq!(waits(&story), "SL-2 before_lane_start blocked: waits for lane SL-1 (failed)");
    let story = story.resumed();
    assert_eq!(waits(&story), "SL-2 before_lane_start blocked: waits for lane SL-1");
    assert_eq!(
        waits(&Story::begun().opened("SL-1", 1).merged("SL-1", 'd')),
        "SL-2 before_lane_start ready: waits for a place"
    );
}

#[test]
fn approval_blocks_and_says_what_to_type() {
    let story = Story::begun().opened("SL-1", 1);
    let story = story.moved("SL-1", LaneStage::Classified, LaneStage::AwaitingUserApproval);
    let file = file_of_two(&story);
    assert_eq!(
        file[2],
        "SL-1 after_lane_start blocked: waits for approval of its changes: \
         lanewright -C /repo approve P1-SL-AUTH-20251227 SL-1 --gate changes"
    );
    assert!(file[0].starts_with("- before_lane_start blocked: 0 of 2 lanes merged; SL-1 waits for your approval"));
    let yes = Event::GateAnswered {
        lane: lane("SL-1"),
        gate: Approval::Changes.into(),
        approved: true,
        message: String::new(),
    };
    let file = file_of_two(&story.then(yes));
    assert!(file[0].starts_with("- before_lane_start in_progress") && file[2].contains("in_progress"), "{file:?}");
}

#[test]
fn blocked_phase_is_not_complete() {
    let story = Story::begun().opened("SL-1", 1);
    let story = story.moved("SL-1", LaneStage::Classified, LaneStage::AwaitingUserApproval);
    let blocked = file_of_two(&story.finished(RunOutcome::Blocked, 3));
    assert!(blocked[0].starts_with("- before_lane_start blocked: "), "{blocked:?}");
    assert!(blocked[0].contains("approve P1-SL-AUTH-20251227 SL-1"), "{blocked:?}");
}

#[test]
fn retry_that_helped_is_complete() {
    let tests = Checkpoint::new(Stage::AfterLaneTests, CheckpointStatus::Complete);
    let story = Story::begun().opened(LANE, 1).retried(LANE, 1, 3);
    assert_eq!(file(&story).pop(), Some((Stage::RetryAttempt, CheckpointStatus::Retrying)));
    assert_eq!(file(&story.reached(LANE, tests)).pop(), Some((Stage::RetryAttempt, CheckpointStatus::Complete)));
}

#[test]
fn stopped_lane_is_not_in_progress() {
    let story = Story::begun().opened(LANE, 1).moved(LANE, LaneStage::Classified, LaneStage::Implementation);
    assert_eq!(last(&story).status, CheckpointStatus::InProgress);
    let record = last(&story.finished(RunOutcome::Stopped, 130));
    assert_eq!((record.status, record.notes.as_str()), (CheckpointStatus::Ready, "stopped in implementation"));
}

#[test]
fn worktree_path_is_the_link_until_the_worktree_is_gone() {
    let story = Story::begun().opened(LANE, 1);
    let paths =
        |story: &Story| written(story).into_iter().map(|record| record.worktree_path.to_path_buf()).collect::<Vec<_>>();
    assert!(paths(&story).iter().all(|path| path == Path::new("/w/P1-SL-AUTH-20251227/SL-AUTH/code")));
    let gone = story.merged(LANE, 'd').then(Event::LaneCleaned { lane: lane(LANE), kept: vec![] });
    assert_eq!(paths(&gone).pop(), Some(PathBuf::new()));
}

#[test]
fn red_final_gate_fails_the_phase() {
    let job = JobId { lane: None, role: JobRole::Final, number: 1 };
    let story = Story::begun().opened("SL-1", 1).merged("SL-1", 'd').job(&job).exited(&job, 1);
    let story = story.finished(RunOutcome::Failed, 1);
    let file = file_of_two(&story);
    assert!(file[0].starts_with("- before_lane_start complete: "), "{file:?}");
    assert!(file[1].starts_with("- after_lane_tests failed: "), "{file:?}");
    let again = JobId { number: 2, ..job.clone() };
    let story = story.resumed().job(&again);
    let file = file_of_two(&story);
    assert!(file[2].starts_with("- retry_attempt retrying: "), "{file:?}");
    let file = file_of_two(&story.exited(&again, 0).finished(RunOutcome::Done, 0));
    let statuses: Vec<&str> = file[..4].iter().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(
        statuses,
        [
            "- before_lane_start complete",
            "- after_lane_tests complete",
            "- pre_pr complete",
            "- retry_attempt complete",
        ]
    );
}

#[test]
fn rolled_back_lane_that_waits_again_is_ready() {
    let story = Story::begun().opened(LANE, 1);
    let story = story.then(Event::LaneRolledBack { lane: lane(LANE), integration: None, kept: vec![], point: None });
    use CheckpointStatus::{Ready, RolledBack};
    let stages = [Stage::BeforeLaneStart, Stage::AfterLaneStart];
    assert_eq!(file(&story), stages.map(|stage| (stage, RolledBack)));
    assert_eq!(file(&story.resumed()), [(Stage::BeforeLaneStart, Ready), (Stage::AfterLaneStart, RolledBack)]);
}

#[test]
fn failed_lane_names_uncommitted_files_of_its_agent() {
    let saved = |story: Story, dirty: &[&str]| {
        let dirty = dirty.iter().map(|path| (*path).to_owned()).collect();
        story.then(Event::SnapshotTaken {
            lane: lane(LANE),
            agent: Some(agent("engineer")),
            reason: SnapshotReason::Failure,
            commit: commit('f'),
            reference: "refs/x".to_owned(),
            unchanged: false,
            context: None,
            checked_out: Some(Box::new(CheckedOut { head: commit('d'), dirty })),
        })
    };
    let git = |story: &Story| {
        let git = last(story).git.unwrap();
        format!("{} {} {}", git.branch.unwrap(), git.head.unwrap().short(), git.dirty_files.join(" "))
    };
    let failed = saved(Story::begun().opened(LANE, 1).retried(LANE, 1, 1), &["a.rs", "b.rs"]);
    assert_eq!(git(&failed), "lane-agent/P1/SL-AUTH/engineer dddddddddd a.rs b.rs");
    // The agent works again, or it failed for good: its worktree is as it was left.
    assert_eq!(git(&failed.clone().job(&attempt(LANE, "engineer", 2))), git(&failed));
    assert_eq!(git(&failed.clone().failed(LANE)), git(&failed));
    let reset = Event::AgentReset { lane: lane(LANE), agent: agent("engineer"), head: commit('a') };
    assert_eq!(git(&failed.clone().then(reset)), "lane/P1/SL-AUTH aaaaaaaaaa ");
    assert_eq!(last(&failed.clone().merged(LANE, 'e')).git.unwrap().dirty_files, [""; 0]);
    assert_eq!(git(&saved(failed, &[])), "lane/P1/SL-AUTH aaaaaaaaaa ", "it is clean now");
}
