use lanewright_model::{LaneId, OutageKind};

use super::*;
use crate::sample_plans::{commit, moment};

/// The run that opened it died before it recorded that.
#[test]
fn remarks_since_the_branch_was_pushed_are_about_this_run() {
    let lane = || LaneId::new("A").unwrap();
    let pull_request = PullRequest { url: "https://f/1".into(), number: Some(1), base: "main".into() };
    let mut state = ProposalState::default();
    for at in [5, 6] {
        let (remote, branch) = ("origin".to_owned(), "b".to_owned());
        state.apply(&Event::BranchPushed { lane: lane(), remote, branch, head: commit(1) }, moment(at));
    }
    state.apply(&Event::PullRequestOpened { lane: lane(), pull_request, head: commit(1), updated: true }, moment(900));
    assert_eq!(state.known_since(), Some(moment(5)));
}

#[test]
fn rollback_keeps_pull_request() {
    let lane = || LaneId::new("A").unwrap();
    let outage = || Outage::new(OutageKind::Network, "refused");
    let out = || Event::ForgeUnavailable { lane: lane(), outage: outage() };
    let pull_request = PullRequest { url: "https://f/1".into(), number: Some(1), base: "main".into() };
    let mut state = ProposalState { announced: vec![commit(1)], ..ProposalState::default() };
    for times in 1..4 {
        state.apply(&out(), moment(times));
        let times = times as u32;
        assert_eq!(state.out, Some(ForgeOutage { at: moment(times.into()), times, outage: outage() }));
    }
    let (remote, branch) = ("origin".to_owned(), "b".to_owned());
    state.apply(&Event::BranchPushed { lane: lane(), remote, branch, head: commit(1) }, moment(5));
    assert_eq!((&state.out, &state.pushed), (&None, &Some(commit(1))));
    state.apply(&out(), moment(6));
    let opened =
        Event::PullRequestOpened { lane: lane(), pull_request: pull_request.clone(), head: commit(1), updated: false };
    assert!(!state.is_open());
    state.apply(&opened, moment(7));
    assert!(state.is_open() && state.out.is_none());
    assert!(state.is_made_for(Some(&commit(1))) && !state.is_made_for(Some(&commit(2))));
    let left = state.after_rollback();
    assert_eq!((left.announced(), left.pull_request()), (&[commit(1)][..], Some(&pull_request)));
    assert!(!left.is_open() && left.pushed.is_none());
}
