use std::sync::Arc;

use lanewright_model::event::{Event, LaneStage, RunOutcome, SnapshotReason};
use lanewright_model::plan::PlanParts;
use lanewright_model::testing::{Story, agent, attempt, commit, lane, plan as plan_of, worktree};
use lanewright_model::{CommandLine, JobId, JobRole, Plan};
use lanewright_schedule::{Action, RunState, decide};
use lanewright_view::RunHistory;

use super::*;
use crate::at_resume::{ResumeError, check, replay};

const STAGES: [LaneStage; 10] = [
    LaneStage::Init,
    LaneStage::Classified,
    LaneStage::Requirements,
    LaneStage::Synthesis,
    LaneStage::Implementation,
    LaneStage::Validation,
    LaneStage::Review,
    LaneStage::AwaitingUserApproval,
    LaneStage::Complete,
    LaneStage::Cleanup,
];

/// The lane goes to `to`, one stage after another.
fn walked(story: Story, id: &str, to: LaneStage) -> Story {
    let mut from = LaneStage::Waiting;
    let mut story = story;
    for stage in STAGES.into_iter().take_while(|stage| *stage <= to) {
        story = story.moved(id, from, stage);
        from = stage;
        if stage == LaneStage::Init {
            story = story.then(Event::LaneBased { lane: lane(id), base: commit('a'), port: 4000, missing: vec![] });
            story = story.reached(
                id,
                lanewright_model::Checkpoint::new(
                    lanewright_model::Stage::BeforeLaneStart,
                    lanewright_model::CheckpointStatus::Ready,
                ),
            );
        }
    }
    story
}

fn merged(story: Story, id: &str, onto: char, digit: char) -> Story {
    let (onto, made) = (commit(onto), commit(digit));
    walked(story, id, LaneStage::AwaitingUserApproval)
        .then(Event::MergeStaged { lane: lane(id), onto: onto.clone(), commit: made.clone(), moved: false })
        .then(Event::LaneMerged { lane: lane(id), commit: made, onto, plan: None })
        .moved(id, LaneStage::AwaitingUserApproval, LaneStage::Complete)
        .moved(id, LaneStage::Complete, LaneStage::Cleanup)
        .then(Event::LaneCleaned { lane: lane(id), kept: vec![] })
}

/// Two lanes, the second built on the first, one beside them, and a final gate.
fn state(story: &Story) -> RunState {
    let plan = plan_of(&[("SL-1", &[], &[]), ("SL-2", &["SL-1"], &[]), ("SL-3", &[], &[])]);
    let mut parts = PlanParts::clone(&plan);
    parts.gates.last.push(CommandLine::Shell("true".to_owned()));
    let plan = Plan::new(parts).unwrap();
    replay(&run(), &Arc::new(plan), &story.records).unwrap()
}

fn run() -> lanewright_model::RunId {
    lanewright_model::RunId::new("r1").unwrap()
}

fn planned(story: &Story, asked: &[&str]) -> Result<RollbackPlan, RollbackError> {
    let asked: Vec<LaneId> = asked.iter().map(|name| lane(name)).collect();
    plan(&state(story), &story.records, Asked { lanes: &asked, to: None })
}

fn order(rollback: &RollbackPlan) -> Vec<u32> {
    rollback.lanes.iter().map(|lane| lane.lane.0).collect()
}

fn rolled_back(id: &str) -> Event {
    Event::LaneRolledBack { lane: lane(id), integration: Some(commit('9')), kept: vec![], point: None }
}

#[test]
fn dependents_are_rolled_back_first() {
    let story = merged(merged(Story::begun(), "SL-1", 'a', '1'), "SL-2", '1', '2');
    let rollback = planned(&story, &[]).unwrap();
    assert_eq!(order(&rollback), [1, 0]);
    assert_eq!(rollback.untouched, [lane("SL-3")]);
    let merge = |at: usize| rollback.lanes[at].merge.clone().unwrap();
    assert!(merge(0).seq > merge(1).seq);
    assert_eq!((merge(0).commit, merge(0).onto), (commit('2'), commit('1')));
}

#[test]
fn lane_with_begun_dependents_is_refused_alone() {
    let begun = walked(merged(Story::begun(), "SL-1", 'a', '1'), "SL-2", LaneStage::Classified);
    let refused = planned(&begun, &["SL-1"]);
    assert!(matches!(refused, Err(RollbackError::Dependants { dependants, .. }) if dependants == [lane("SL-2")]));
    assert_eq!(order(&planned(&begun, &["SL-1", "SL-2"]).unwrap()), [1, 0]);
    assert_eq!(order(&planned(&begun, &["SL-2"]).unwrap()), [1]);
    let waiting = merged(Story::begun(), "SL-1", 'a', '1');
    assert_eq!(order(&planned(&waiting, &["SL-1"]).unwrap()), [0], "SL-2 has not begun");
    assert!(matches!(planned(&waiting, &["SL-9"]), Err(RollbackError::UnknownLane(_))));
}

#[test]
fn jobs_of_lanes_and_final_gate_are_stopped() {
    let last = JobId { lane: None, role: JobRole::Final, number: 1 };
    let (own, other) = (JobId { lane: Some(lane("SL-1")), role: JobRole::Tests, number: 1 }, attempt("SL-3", "x", 1));
    let other = JobId { role: JobRole::Tests, ..other };
    let story = walked(walked(Story::begun(), "SL-1", LaneStage::Validation), "SL-3", LaneStage::Validation);
    let story = story.job(&own).job(&other).job(&last);
    assert_eq!(planned(&story, &["SL-1"]).unwrap().jobs, [last, own]);
    assert_eq!(planned(&story, &["SL-2"]).unwrap().jobs, [], "nothing of it began");
}

#[test]
fn staged_merge_is_reverted_empty_merge_is_not() {
    let staged = walked(Story::begun(), "SL-1", LaneStage::AwaitingUserApproval);
    let stage = Event::MergeStaged { lane: lane("SL-1"), onto: commit('a'), commit: commit('1'), moved: false };
    let merge = |story: &Story| planned(story, &["SL-1"]).unwrap().lanes[0].merge.clone();
    assert_eq!(merge(&staged.then(stage)).unwrap().commit, commit('1'));
    let empty = walked(Story::begun(), "SL-1", LaneStage::AwaitingUserApproval);
    let nothing = Event::LaneMerged { lane: lane("SL-1"), commit: commit('a'), onto: commit('a'), plan: None };
    assert_eq!(merge(&empty.then(nothing)), None);
}

#[test]
fn work_before_an_earlier_rollback_is_not_counted() {
    let kept = |story: Story, digit: char| {
        let reference = format!("refs/lanewright/checkpoint/P1-SL-1/{digit}");
        let (lane, agent) = (lane("SL-1"), Some(agent("engineer")));
        story.then(Event::snapshot(lane, agent, SnapshotReason::Stop, commit(digit), reference))
    };
    let story = kept(merged(Story::begun(), "SL-1", 'a', '1'), '7').then(rolled_back("SL-1"));
    assert!(planned(&story, &["SL-1"]).unwrap().lanes.is_empty());
    let again = kept(walked(story, "SL-1", LaneStage::Classified), '8');
    let lanes = planned(&again, &[]).unwrap().lanes;
    assert_eq!((lanes[0].merge.clone(), lanes[0].kept.len()), (None, 1));
    assert_eq!(lanes[0].kept[0].commit, commit('8'));
}

#[test]
fn rollback_reopens_done_run_and_its_final_gate() {
    let all = merged(merged(merged(Story::begun(), "SL-1", 'a', '1'), "SL-2", '1', '2'), "SL-3", '2', '3');
    let last = JobId { lane: None, role: JobRole::Final, number: 1 };
    let done = all.then(Event::FinalOpened { worktree: worktree(9, "", '3') }).job(&last).exited(&last, 0);
    let done = done.then(Event::PoolEmptied { kept: vec![] }).finished(RunOutcome::Done, 0);
    assert!(matches!(check(&run(), &state(&done), &done.records), Err(ResumeError::Complete(_))));
    let open = done.then(rolled_back("SL-3"));
    assert!(check(&run(), &state(&open), &open.records).is_ok());
    let mut now = state(&open.resumed());
    assert_eq!((now.finished(), now.final_worktree(), now.integration()), (None, None, Some(&commit('9'))));
    let begins = decide(&now, Story::begun().now()).events;
    assert!(matches!(&begins[..], [Event::LaneMoved { lane: id, .. }] if *id == lane("SL-3")), "{begins:?}");
    let again = merged(Story::default(), "SL-3", '9', '4');
    again.records.iter().for_each(|record| now.apply(record).unwrap());
    assert_eq!(decide(&now, again.now()).actions, [Action::OpenFinal]);
}

#[test]
fn half_rolled_back_lane_prevents_resume() {
    let story =
        merged(Story::begun(), "SL-1", 'a', '1').then(Event::RollbackBegun { lane: lane("SL-1"), to: String::new() });
    let refused = check(&run(), &state(&story), &story.records).unwrap_err();
    assert!(matches!(&refused, ResumeError::HalfRolledBack { lanes, .. } if *lanes == [lane("SL-1")]));
    let finish = refused.remedy().unwrap();
    assert_eq!(finish.last().map(String::as_str), Some("--yes"), "its merge is undone: {finish:?}");
    assert_eq!(order(&planned(&story, &[]).unwrap()), [0]);
    let story = story.then(rolled_back("SL-1"));
    assert!(check(&run(), &state(&story), &story.records).is_ok());
}

#[test]
fn half_rolled_back_done_run_is_not_done() {
    let story = merged(Story::begun(), "SL-1", 'a', '1').finished(RunOutcome::Done, 0);
    let story = story.then(Event::RollbackBegun { lane: lane("SL-1"), to: String::new() });
    let refused = check(&run(), &state(&story), &story.records);
    assert!(matches!(refused, Err(ResumeError::HalfRolledBack { lanes, .. }) if lanes == [lane("SL-1")]));
    let history = RunHistory::default().after(&story.records);
    assert_eq!((history.run.outcome, history.done()), (Some(RunOutcome::Stopped), 0));
    assert!(planned(&story, &[]).unwrap().ends_run);
}

#[test]
fn run_ends_with_the_rollback_of_its_last_lane() {
    let ends = |story: &Story, asked: &[&str]| planned(story, asked).unwrap().ends_run;
    let two = walked(merged(Story::begun(), "SL-1", 'a', '1'), "SL-3", LaneStage::Classified);
    assert_eq!(
        [&[][..], &["SL-1"], &["SL-3"], &["SL-1", "SL-3"]].map(|asked| ends(&two, asked)),
        [true, false, false, true]
    );
    let one = two.then(rolled_back("SL-1"));
    assert_eq!([&["SL-1"][..], &["SL-3"], &["SL-2"]].map(|asked| ends(&one, asked)), [false, true, false]);
    let last = one.then(rolled_back("SL-3"));
    let again = planned(&last, &["SL-1"]).unwrap();
    assert!(again.ends_run, "an interrupted rollback is finished");
    assert_eq!(
        (again.already[0].lane.clone(), again.already[0].integration.clone()),
        (lane("SL-1"), Some(commit('9')))
    );
    assert!(!ends(&last, &["SL-2"]), "a lane that never began ends nothing");
    let over = last.finished(RunOutcome::RolledBack, 0);
    assert!(!ends(&over, &[]) && check(&run(), &state(&over), &over.records).is_ok());
    assert!(!ends(&Story::begun().finished(RunOutcome::Done, 0), &[]), "a run that is done stays so");
}

#[test]
fn attempt_ended_by_rollback_frees_its_slot() {
    let job = attempt("SL-1", "engineer", 1);
    let open =
        Event::WorktreeOpened { lane: lane("SL-1"), agent: Some(agent("engineer")), worktree: worktree(1, "b", 'a') };
    let story = walked(Story::begun(), "SL-1", LaneStage::Implementation).then(open).job(&job);
    assert_eq!(state(&story).running_attempts(), 1);
    let story = story.then(rolled_back("SL-1"));
    assert_eq!(state(&story).running_attempts(), 0);
    assert_eq!(state(&story.exited(&job, 0)).running_attempts(), 0, "a late word counts for nothing");
}
