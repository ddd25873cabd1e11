use chrono::FixedOffset;
use lanewright_model::event::{LaneStage, RunOutcome, StopReason};
use lanewright_model::testing::*;
use lanewright_model::time::LocalTime;
use lanewright_model::{Approval, CheckpointStatus, JobId, PullRequest, Stage};
use proptest::prelude::*;

use super::*;
use crate::contract::checkpoints::CheckpointFold;
use crate::contract::checkpoints::tests::places;
use crate::contract::tasks::task_file;
use crate::messages::line::narrate;
use crate::status::ending::ending;
use crate::status::lane_page::LanePage;
use crate::status::styles::Styles;
use crate::status::summary::{Summary, SummaryContext};

fn two_lanes() -> Plan {
    plan(&[("SL-1", &[], &[]), ("SL-2", &["SL-1"], &[Approval::Plan, Approval::Changes])])
}

fn state(story: &Story, id: &str) -> LaneState {
    view(story).lane(&lane(id)).unwrap().state
}

fn view(story: &Story) -> RunHistory {
    RunHistory::for_plan(&two_lanes()).after(&story.records)
}

#[test]
fn a_lane_is_followed_from_the_queue_to_the_merge() {
    let job = attempt("SL-1", "engineer", 1);
    let story = Story::begun();
    assert_eq!(state(&story, "SL-1"), LaneState::Waiting);
    let story = story.moved("SL-1", LaneStage::Waiting, LaneStage::Init);
    assert_eq!(state(&story, "SL-1"), LaneState::Starting);
    let story = story.opened("SL-1", 1).job(&job);
    assert_eq!(state(&story, "SL-1"), LaneState::Running);
    let running = view(&story);
    let current: Vec<_> = running.lane(&lane("SL-1")).unwrap().jobs.running.iter().collect();
    assert_eq!((current[0].job.number, current[0].running), (1, true));
    assert_eq!(running.active().count(), 1);

    let story = story.exited(&job, 0).moved("SL-1", LaneStage::Implementation, LaneStage::Validation);
    assert_eq!(state(&story, "SL-1"), LaneState::Testing);
    let story = story.moved("SL-1", LaneStage::Validation, LaneStage::Review);
    assert_eq!(state(&story, "SL-1"), LaneState::Reviewing);
    let story = story.moved("SL-1", LaneStage::Review, LaneStage::AwaitingUserApproval);
    assert_eq!(state(&story, "SL-1"), LaneState::Merging);
    let story = story.merged("SL-1", 'd');
    let done = view(&story);
    let merged = done.lane(&lane("SL-1")).unwrap();
    assert_eq!((merged.state, merged.merge_commit.clone()), (LaneState::Merged, Some(commit('d'))));
    assert_eq!(merged.workplaces().count(), 2);
    assert_eq!(done.run.integration, Some(commit('d')));
    assert_eq!(done.done(), 1);
    assert_eq!(done.waiting_for(done.lane(&lane("SL-2")).unwrap()), Some(WaitingFor::Place));
}

#[test]
fn a_lane_waits_for_what_is_not_merged_yet() {
    let seen = view(&Story::begun());
    assert_eq!(seen.waiting_for(&seen.lanes()[1]), Some(WaitingFor::Lanes(vec![lane("SL-1")])));
    let seen = view(&Story::begun().opened("SL-1", 1).failed("SL-1"));
    assert_eq!(seen.waiting_for(&seen.lanes()[1]), Some(WaitingFor::Lanes(vec![lane("SL-1")])));
}

#[test]
fn approval_is_asked_again_after_more_work() {
    use LaneStage::{AwaitingUserApproval, Implementation, Synthesis};
    let answer = |gate, approved| Event::GateAnswered { lane: lane("SL-2"), gate, approved, message: String::new() };
    let story = Story::begun().opened("SL-2", 1).moved("SL-2", Implementation, Synthesis);
    assert_eq!(state(&story, "SL-2"), LaneState::NeedsApproval(Approval::Plan));
    let story = story.then(answer(Approval::Plan.into(), true));
    assert_eq!(state(&story, "SL-2"), LaneState::Running);
    let story = story.moved("SL-2", Implementation, AwaitingUserApproval);
    assert_eq!(state(&story, "SL-2"), LaneState::NeedsApproval(Approval::Changes));
    // A run that ends because nobody answers still asks.
    let story = story.finished(RunOutcome::Blocked, 3);
    assert_eq!(state(&story, "SL-2"), LaneState::NeedsApproval(Approval::Changes));
    let story = story.resumed().then(answer(Approval::Changes.into(), true));
    assert_eq!(state(&story, "SL-2"), LaneState::Merging);
    let story = story.moved("SL-2", AwaitingUserApproval, Implementation);
    let story = story.moved("SL-2", Implementation, AwaitingUserApproval);
    assert_eq!(state(&story, "SL-2"), LaneState::NeedsApproval(Approval::Changes));
    let story = story.then(answer(Approval::Changes.into(), true)).then(answer(Approval::Changes.into(), false));
    assert_eq!(state(&story, "SL-2"), LaneState::Running, "it goes back to its agents");
}

#[test]
fn resume_reopens_failed_and_blocked_lanes() {
    let story = Story::begun().opened("SL-1", 1).failed("SL-1").blocked("SL-2", "needs SL-1");
    let story = story.finished(RunOutcome::Failed, 1);
    assert_eq!((state(&story, "SL-1"), state(&story, "SL-2")), (LaneState::Failed, LaneState::Blocked));
    assert_eq!(view(&story).lane(&lane("SL-2")).unwrap().reason(), Some("needs SL-1"));
    let story = story.resumed();
    assert_eq!((state(&story, "SL-1"), state(&story, "SL-2")), (LaneState::Running, LaneState::Waiting));
    let resumed = view(&story);
    assert_eq!((resumed.run.outcome, resumed.run.finished, resumed.run.resumes), (None, None, 1));
    assert_eq!(resumed.lanes()[0].finished, None);
    assert_eq!(resumed.run.owner.as_ref().unwrap().session_id, "second-session");
    assert_eq!(state(&story.merged("SL-1", 'd'), "SL-1"), LaneState::Merged);
}

#[test]
fn resumed_proposed_lane_stays_finished() {
    let pull_request = PullRequest { url: "https://forge/1".to_owned(), number: Some(1), base: "main".to_owned() };
    let opened = Event::PullRequestOpened { lane: lane("SL-1"), pull_request, head: commit('c'), updated: false };
    let story = Story::begun().opened("SL-1", 1).then(opened).merged("SL-1", 'd');
    let story = story.blocked("SL-1", "its checks failed").finished(RunOutcome::Blocked, 3);
    assert_eq!(state(&story, "SL-1"), LaneState::Blocked);
    let resumed = view(&story.resumed());
    assert_eq!(resumed.lanes()[0].state, LaneState::Proposed);
    assert!(resumed.lanes()[0].finished.is_some());
}

#[test]
fn a_stopped_lane_is_stopped_only_when_its_agents_are() {
    let stop = Event::StopRequested { lane: None, reason: StopReason::Interrupt, force: false };
    let job = attempt("SL-1", "engineer", 1);
    let story = Story::begun().opened("SL-1", 1).job(&job).then(stop);
    assert_eq!(state(&story, "SL-1"), LaneState::Running);
    let story = story.exited(&job, 143);
    assert_eq!((state(&story, "SL-1"), state(&story, "SL-2")), (LaneState::Stopped, LaneState::Waiting));
    assert_eq!(state(&story.resumed(), "SL-1"), LaneState::Running);
}

#[test]
fn a_lane_that_was_rolled_back_begins_again() {
    let rolled_back =
        Event::LaneRolledBack { lane: lane("SL-1"), integration: Some(commit('a')), kept: vec![], point: None };
    let story = Story::begun().opened("SL-1", 1).merged("SL-1", 'd').then(rolled_back);
    assert_eq!(state(&story, "SL-1"), LaneState::RolledBack);
    let seen = view(&story);
    assert_eq!((seen.run.integration.clone(), seen.lanes()[0].workplace.worktree.clone()), (Some(commit('a')), None));
    assert_eq!(state(&story.opened("SL-1", 3), "SL-1"), LaneState::Running);
}

#[test]
fn the_last_word_of_a_job_is_its_exit() {
    let job = attempt("SL-1", "engineer", 1);
    let seen = view(&Story::begun().opened("SL-1", 1).exited(&job, 0).job(&job).exited(&job, 1));
    let first = seen.lane(&lane("SL-1")).unwrap();
    assert!(first.jobs.running.is_empty());
    assert_eq!(first.jobs.ended.len(), 1);
    assert!(first.jobs.ended[0].exit.as_ref().unwrap().passed());
    assert_eq!(first.jobs.ended[0].span(at(999)).1, first.jobs.ended[0].exit.as_ref().unwrap().finished_at);
}

#[test]
fn a_retry_keeps_its_number_its_reason_and_its_delay() {
    let story = Story::begun().opened("SL-1", 1).retried("SL-1", 1, 3);
    let seen = view(&story);
    let first = seen.lane(&lane("SL-1")).unwrap();
    let retry = &first.retries[0];
    assert_eq!(
        (retry.attempt(), retry.of, retry.reason.as_str()),
        (1, Some(3), "TypeError: undefined is not a function")
    );
    assert!(matches!(seen.waiting_for(first), Some(WaitingFor::Until(_))));
    let again = view(&story.job(&attempt("SL-1", "engineer", 2)));
    assert_eq!(again.waiting_for(again.lane(&lane("SL-1")).unwrap()), None);
}

#[test]
fn chosen_lanes_include_dependencies() {
    let plan = plan(&[("SL-1", &[], &[]), ("SL-2", &["SL-1"], &[]), ("SL-3", &[], &[])]);
    let seen = RunHistory::for_plan(&plan).after(&Story::default().then(started(&["SL-2"])).records);
    let states: Vec<LaneState> = seen.lanes().iter().map(|lane| lane.state).collect();
    assert_eq!(states, [LaneState::Waiting, LaneState::Waiting, LaneState::Skipped]);
}

#[test]
fn lanes_keep_plan_order() {
    let story = Story::begun().opened("SL-2", 1).opened("SL-1", 3);
    let names = |view: RunHistory| view.lanes().iter().map(|lane| lane.id.to_string()).collect::<Vec<_>>();
    assert_eq!(names(view(&story)), ["SL-1", "SL-2"]);
    assert_eq!(names(RunHistory::default().after(&story.records)), ["SL-2", "SL-1"]);
}

proptest! {
    #[test]
    fn state_counts_hold_for_any_events(records in any_records()) {
        let seen = RunHistory::for_plan(&two_lanes()).after(&records);
        prop_assert!(seen.lanes().iter().flat_map(|lane| &lane.jobs.running).all(|job| job.exit.is_none()));
        prop_assert_eq!(seen.done(), seen.lanes().iter().filter(|lane| lane.state.is_done()).count());
        let active: Vec<&LaneId> = seen.active().map(|lane| &lane.id).collect();
        let expected: Vec<&LaneId> = seen.lanes().iter().filter(|l| l.state.is_active()).map(|l| &l.id).collect();
        prop_assert_eq!(active, expected);
    }

    #[test]
    fn views_accept_any_events(records in any_records(), width in 0usize..100) {
        let plan = two_lanes();
        let mut fold = CheckpointFold::new(places(), RunHistory::for_plan(&plan));
        for record in &records {
            for written in fold.apply(record) {
                prop_assert!(Stage::ALL.contains(&written.stage) && CheckpointStatus::ALL.contains(&written.status));
            }
            let line = narrate(record, &fold.history, FixedOffset::east_opt(0).unwrap());
            prop_assert!(line.is_none_or(|line| !line.text.chars().any(char::is_control)));
        }
        let seen = fold.history;
        plan.lanes.iter().for_each(|lane| drop(task_file(&seen, &plan, &lane.id)));
        let program = program();
        let summary = Summary::of(&seen, SummaryContext { now: LocalTime::utc(at(80)), program: &program, held: width % 2 == 0 });
        summary.render(width, Styles::coloured());
        prop_assert!(serde_json::to_string(&summary).is_ok());
        ending(&summary, &program, &|_| Vec::new(), width, Styles::plain());
        for lane in &summary.lanes {
            let output_of = |job: &JobId| (job.directory(), Vec::new());
            let page = LanePage { summary: &summary, lane, program: &program, output_of: &output_of, how: &|_| String::new() };
            page.render(width, Styles::plain());
            prop_assert!(page.json().is_object());
        }
    }
}
