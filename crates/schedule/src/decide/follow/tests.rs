use std::time::Duration;

use lanewright_model::event::{Event, LaneStage, Record};
use lanewright_model::testing::{commit, run_started};
use lanewright_model::{
    ChecksState, Follow, LaneId, LaneIndex, MergeMode, PullRequest, PullRequestState, PullRequestStatus, Remark,
    ReviewState,
};

use crate::action::Action;
use crate::decide::{Decisions, decide};
use crate::sample_plans::{lane, moment, plan};
use crate::state::RunState;

const FOLLOW: Follow = Follow { time: Duration::from_secs(100), rounds: 1, auto_merge: true };

fn id(name: &str) -> LaneId {
    LaneId::new(name).unwrap()
}

fn apply(state: &mut RunState, at: i64, event: Event) {
    state.apply(&Record { seq: 1, at: moment(at), event, origin: None }).unwrap();
}

/// A run of `A`, and of `B` on top of it, whose pull requests were opened at 0.
fn opened(follow: Follow) -> RunState {
    let mut state = RunState::new(plan(vec![lane("A", &[], 1, &[]), lane("B", &[0], 1, &[])], &[]).into());
    let mut started = run_started();
    (started.options.merge, started.options.follow) = (MergeMode::Pr, Some(follow));
    apply(&mut state, 0, Event::RunStarted(Box::new(started)));
    for (name, base) in [("A", "main"), ("B", "lane/P1/A")] {
        open(&mut state, name, base);
    }
    state
}

fn open(state: &mut RunState, name: &str, base: &str) {
    let index = state.plan().find(&id(name)).unwrap();
    let pull_request = PullRequest { url: format!("https://f/{name}"), number: Some(1), base: base.to_owned() };
    state.lanes[index.at()].work.set_head(&commit('b'));
    apply(state, 0, Event::PullRequestOpened { lane: id(name), pull_request, head: commit('b'), updated: false });
    state.lanes[index.at()].stage = LaneStage::Cleanup;
    apply(state, 0, Event::LaneMerged { lane: id(name), commit: commit('b'), onto: commit('a'), plan: None });
    apply(state, 0, Event::LaneCleaned { lane: id(name), kept: Vec::new() });
}

fn status(state: PullRequestState, checks: ChecksState, review: ReviewState) -> PullRequestStatus {
    PullRequestStatus { state, checks, review, retargeted: None, moved_to: None, failed: Vec::new(), unanswered: 0 }
}

fn says(state: &mut RunState, at: i64, name: &str, status: PullRequestStatus) {
    apply(state, at, Event::PullRequestChanged { lane: id(name), status });
    apply(state, at, Event::PullRequestsChecked { error: String::new() });
}

fn remark(number: u32) -> Remark {
    Remark { id: format!("comment:{number}"), by: "reviewer".into(), path: None, line: None, text: "no".into() }
}

fn wants(decisions: &Decisions, action: &Action) -> bool {
    decisions.actions.contains(action)
}

#[test]
fn the_forge_is_asked_until_the_time_is_over() {
    let mut state = opened(FOLLOW);
    let soon = decide(&state, moment(10));
    assert!(soon.actions.is_empty() && soon.finish.is_none(), "{soon:?}");
    assert_eq!(soon.wake_at, Some(moment(1_000)), "not at once about what was opened just now");
    assert!(wants(&decide(&state, moment(1_000)), &Action::CheckPullRequests));
    apply(&mut state, 1_000, Event::PullRequestsChecked { error: "HTTP 502".into() });
    let (first, second) = (decide(&state, moment(1_000)).wake_at.unwrap(), moment(1_000));
    apply(&mut state, first.unix_millis(), Event::PullRequestsChecked { error: String::new() });
    let again = decide(&state, first).wake_at.unwrap();
    assert!(again.since(first) > first.since(second), "the wait does not grow");
    let over = decide(&state, moment(100_000));
    assert!(!wants(&over, &Action::CheckPullRequests), "{over:?}");
    assert!(wants(&over, &Action::EmptyPool), "the run does not end: {over:?}");
}

#[test]
fn a_resume_asks_once_however_short_the_time() {
    let state = opened(Follow { time: Duration::ZERO, ..FOLLOW });
    assert!(wants(&decide(&state, moment(1_000)), &Action::CheckPullRequests));
    let mut asked = state;
    apply(&mut asked, 1_000, Event::PullRequestsChecked { error: String::new() });
    assert!(!wants(&decide(&asked, moment(200_000)), &Action::CheckPullRequests));
}

#[test]
fn remarks_send_the_lane_back_once_each_and_not_too_often() {
    let mut state = opened(FOLLOW);
    let received = |remarks: Vec<Remark>| Event::FeedbackReceived { lane: id("A"), head: commit('c'), remarks };
    apply(&mut state, 2_000, received(vec![remark(1)]));
    let lane = state.lane(LaneIndex(0));
    assert_eq!((lane.stage(), lane.head(), lane.merged()), (LaneStage::AwaitingUserApproval, Some(&commit('c')), None));
    assert_eq!(lane.delivered(), Some(&commit('b')), "what depends on it starts from what was pushed");
    let events = decide(&state, moment(2_000)).events;
    let [Event::FailureNoted { failure, task: None, .. }, Event::LaneMoved { to: LaneStage::Implementation, .. }] =
        &events[..]
    else {
        panic!("{events:?}")
    };
    assert!(failure.message.contains("reviewer wrote:\n\n> no"), "{}", failure.message);
    events.into_iter().for_each(|event| apply(&mut state, 2_000, event));
    // While the lane is at work, and about what was answered, nothing follows.
    apply(&mut state, 2_001, received(vec![remark(2)]));
    assert_eq!(state.lane(LaneIndex(0)).stage(), LaneStage::Implementation);
    open(&mut state, "A", "main");
    apply(&mut state, 3_000, received(vec![remark(1)]));
    assert!(state.lane(LaneIndex(0)).merged().is_some(), "an answered remark sends it back again");
    let asked =
        PullRequestStatus { unanswered: 1, ..status(PullRequestState::Open, ChecksState::Passed, ReviewState::None) };
    says(&mut state, 4_000, "A", asked);
    let events = decide(&state, moment(4_000)).events;
    let [Event::LaneBlocked { reason, .. }] = &events[..] else { panic!("{events:?}") };
    assert!(reason.contains("after it was sent back 1 time") && reason.contains("https://f/A"), "{reason}");
}

#[test]
fn a_remark_is_acted_upon_where_a_crash_cut_off_that_the_lane_went_back() {
    let mut state = opened(FOLLOW);
    let open = status(PullRequestState::Open, ChecksState::Passed, ReviewState::Approved);
    says(&mut state, 2_000, "A", open);
    apply(&mut state, 2_000, Event::FeedbackReceived { lane: id("A"), head: commit('b'), remarks: vec![remark(1)] });
    let sent_back = decide(&state, moment(2_000)).events;
    apply(&mut state, 2_000, sent_back[0].clone());
    let again = decide(&state, moment(3_000)).events;
    assert!(matches!(again[1], Event::LaneMoved { to: LaneStage::Implementation, .. }), "{again:?}");
    again.into_iter().for_each(|event| apply(&mut state, 3_000, event));
    assert!(state.lane(LaneIndex(0)).proposal().feedback.is_empty(), "it is sent back for ever");
    // The agent changes nothing.
    state.lanes[0].stage = LaneStage::Cleanup;
    apply(&mut state, 3_000, Event::LaneMerged { lane: id("A"), commit: commit('b'), onto: commit('a'), plan: None });
    apply(&mut state, 3_000, Event::LaneCleaned { lane: id("A"), kept: Vec::new() });
    let merge = Action::MergePullRequest(LaneIndex(0));
    assert!(!wants(&decide(&state, moment(3_000)), &merge), "by what was said before");
    apply(&mut state, 4_000, Event::PullRequestsChecked { error: String::new() });
    assert!(wants(&decide(&state, moment(4_000)), &merge), "not even later");
    let mut state = opened(FOLLOW);
    apply(&mut state, 2_000, Event::FeedbackReceived { lane: id("A"), head: commit('b'), remarks: vec![remark(1)] });
    apply(&mut state, 3_000, Event::BranchMoved { lane: id("A"), agent: None, head: commit('c'), theirs: None });
    assert!(!state.lane(LaneIndex(0)).proposal().feedback.is_empty(), "a commit by hand answers it");
}

#[test]
fn pull_requests_are_merged_in_the_order_of_their_lanes() {
    use {
        ChecksState::Passed,
        PullRequestState::{Merged, Open},
        ReviewState::Approved,
    };
    let mut state = opened(FOLLOW);
    let (a, b) = (LaneIndex(0), LaneIndex(1));
    says(&mut state, 2_000, "B", status(Open, Passed, Approved));
    assert!(!wants(&decide(&state, moment(2_000)), &Action::MergePullRequest(b)), "before what it builds on");
    says(&mut state, 2_000, "A", status(Open, Passed, ReviewState::Required));
    assert!(!wants(&decide(&state, moment(2_000)), &Action::MergePullRequest(a)), "without its review");
    says(&mut state, 2_000, "A", status(Open, Passed, Approved));
    assert!(wants(&decide(&state, moment(2_000)), &Action::MergePullRequest(a)));
    apply(&mut state, 2_000, Event::PullRequestRefused { lane: id("A"), reason: "HTTP 405".into() });
    assert!(!wants(&decide(&state, moment(90_000)), &Action::MergePullRequest(a)), "again at once");
    apply(&mut state, 302_000, Event::PullRequestsChecked { error: String::new() });
    assert!(wants(&decide(&state, moment(302_000)), &Action::MergePullRequest(a)), "not even later");
    let unanswered = PullRequestStatus { unanswered: 1, ..status(Open, Passed, Approved) };
    says(&mut state, 302_000, "A", unanswered);
    assert!(
        !wants(&decide(&state, moment(302_000)), &Action::MergePullRequest(a)),
        "over a remark that no agent was given"
    );
    says(&mut state, 2_000, "A", status(Merged, Passed, Approved));
    assert!(wants(&decide(&state, moment(2_000)), &Action::MergePullRequest(b)), "what it builds on is merged");
    let resumed = lanewright_model::testing::resumed(1, run_started().owner);
    apply(&mut state, 400_000, resumed);
    let now = decide(&state, moment(400_000));
    assert!(!wants(&now, &Action::MergePullRequest(b)), "by what the forge said in an earlier life: {now:?}");
    assert!(wants(&now, &Action::CheckPullRequests));
    apply(&mut state, 400_000, Event::PullRequestsChecked { error: "HTTP 500".into() });
    assert!(!wants(&decide(&state, moment(400_000)), &Action::MergePullRequest(b)), "without an answer in this life");
}

#[test]
fn answers_about_what_is_no_more_are_not_recorded() {
    use {
        ChecksState::Passed,
        PullRequestState::{Closed, Merged, Open},
        ReviewState::Approved,
    };
    let mut state = opened(FOLLOW);
    let received = |number| Event::FeedbackReceived { lane: id("A"), head: commit('b'), remarks: vec![remark(number)] };
    let changed = |status| Event::PullRequestChanged { lane: id("A"), status };
    assert!(!state.is_stale(&received(1)) && !state.is_stale(&changed(status(Open, Passed, Approved))));
    says(&mut state, 1, "A", status(Closed, Passed, Approved));
    assert!(!state.is_stale(&received(1)), "it may be opened again");
    says(&mut state, 2, "A", status(Merged, Passed, Approved));
    assert!(state.is_stale(&received(1)) && state.is_stale(&changed(status(Open, Passed, Approved))));
    let mut state = opened(FOLLOW);
    apply(&mut state, 1, received(1));
    assert!(state.is_stale(&received(2)) && state.is_stale(&changed(status(Open, Passed, Approved))), "it is at work");
    assert!(!state.is_stale(&changed(status(Merged, Passed, Approved))), "that it was merged counts");
}

#[test]
fn a_pull_request_without_checks_is_not_merged_before_they_may_have_begun() {
    use {PullRequestState::Open, ReviewState::Approved};
    let mut state = opened(FOLLOW);
    says(&mut state, 2_000, "A", status(Open, ChecksState::None, Approved));
    let merge = Action::MergePullRequest(LaneIndex(0));
    assert!(!wants(&decide(&state, moment(2_000)), &merge));
    assert!(wants(&decide(&state, moment(60_000)), &merge));
    let mut by_hand = opened(Follow { auto_merge: false, ..FOLLOW });
    says(&mut by_hand, 2_000, "A", status(Open, ChecksState::None, Approved));
    says(&mut by_hand, 2_000, "B", status(Open, ChecksState::Passed, Approved));
    assert!(decide(&by_hand, moment(2_000)).wake_at.is_some(), "it is not followed any more");
}

#[test]
fn a_lane_whose_checks_still_fail_in_the_end_waits_for_the_user() {
    let mut state = opened(FOLLOW);
    says(&mut state, 2_000, "A", status(PullRequestState::Open, ChecksState::Failed, ReviewState::None));
    let events = decide(&state, moment(100_000)).events;
    let [Event::LaneBlocked { lane, reason }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(lane, &id("A"));
    assert!(reason.contains("open, checks failed") && reason.contains("https://f/A"), "{reason}");
    events.into_iter().for_each(|event| apply(&mut state, 100_000, event));
    let over = decide(&state, moment(100_000)).finish.expect("the run ends");
    assert_eq!(over.code, 3);
}

#[test]
fn a_person_may_choose_where_a_pull_request_is_merged() {
    let mut state = opened(FOLLOW);
    let b = LaneIndex(1);
    assert_eq!(state.proposal_target(b), "lane/P1/A");
    let open = status(PullRequestState::Open, ChecksState::Pending, ReviewState::None);
    says(&mut state, 1, "B", PullRequestStatus { retargeted: Some("release".into()), ..open.clone() });
    assert_eq!(state.proposal_target(b), "release");
    says(&mut state, 2, "B", open);
    assert_eq!(state.proposal_target(b), "release", "once it is what the run set, too");
}
