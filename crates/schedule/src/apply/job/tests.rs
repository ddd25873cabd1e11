use lanewright_model::event::{AgentReport, Worktree};
use lanewright_model::runner::RunnerText;
use lanewright_model::{Outage, OutageKind, Plan, PlanParts, Session, Transcript, Usage};

use super::*;
use crate::sample_plans::{commit, exit, lane, plan};
use crate::state::agent::AgentState;

/// An agent that continued `session`, after such an attempt.
fn heard(session: Option<&str>, exit: &JobExit, words: Words<'_>) -> AgentState {
    let mut parts = PlanParts::from(plan(vec![lane("A", &[], 1, &[])], &[]));
    let command = parts.lanes[0].agents[0].command.clone();
    let runner = RunnerText { command: Some(command), ..RunnerText::default() }.complete().unwrap();
    parts.runners = [("command".to_owned(), runner)].into();
    let plan = Plan::new(parts).unwrap();
    let mut state = LaneState::new(&plan.lanes[0], 0);
    let worktree = Worktree { slot: 1, path: "/w".into(), branch: "lane/A".into(), head: commit(1) };
    state.attempts.agents_mut()[0].worktree = Some(worktree);
    let known = |id: &str| Session { id: id.to_owned(), usage: Usage::default(), worktree: "/w".into() };
    state.attempts.agents_mut()[0].session = session.map(known);
    let mut worker = Worker { plan: &plan, lane: &plan.lanes[0], state: &mut state, at: 0 };
    worker.record_report(exit, words);
    state.agents()[0].clone()
}

#[test]
fn lost_session_costs_no_retry() {
    let named = Transcript { session: Some("s".into()), ..Transcript::default() };
    let unnamed = Transcript::default();
    let outage = Reading::Outage(Outage::new(OutageKind::Quota, "429"));
    let excused = |session, exit: &JobExit, transcript, reading| {
        heard(session, exit, Words { report: None, reading, transcript: Some(transcript) }).excused
    };
    let failed = exit(ExitCause::Exited, 1);
    assert!(excused(Some("s"), &failed, &unnamed, None));
    assert!(!excused(None, &failed, &unnamed, None), "there was none to continue");
    assert!(!excused(Some("s"), &failed, &named, None), "the program had it");
    assert!(!excused(Some("s"), &failed, &unnamed, Some(&outage)), "something was out");
    assert!(!excused(Some("s"), &exit(ExitCause::Exited, 0), &unnamed, None), "it ended well");
    assert!(!excused(Some("s"), &exit(ExitCause::TimedOut, 124), &unnamed, None), "it ran out of time");
    let refusals = vec![lanewright_model::Refusal { call: String::new(), reason: "no writing".into() }];
    let refused = Transcript { refusals, ..Transcript::default() };
    let words = Words { report: None, reading: None, transcript: Some(&refused) };
    assert_eq!(heard(None, &failed, words).refusals.lines(), ["no writing"]);
    let session = heard(Some("s"), &failed, Words { report: None, reading: None, transcript: Some(&named) }).session;
    assert_eq!(session.map(|session| session.id).as_deref(), Some("s"));
}

#[test]
fn own_report_and_rejection_are_recorded() {
    let said = |report: AgentReport| {
        heard(None, &exit(ExitCause::Exited, 0), Words { report: Some(&report), reading: None, transcript: None })
    };
    let report = |status: &str, own| AgentReport { status: status.into(), own, ..AgentReport::default() };
    assert!(said(report("COMPLETE", true)).claims_completion);
    assert!(!said(report("COMPLETE", false)).claims_completion, "its supervisor wrote it");
    assert!(!said(report("ERROR", true)).claims_completion);
    let decided = |decision: &str| AgentReport {
        decision: decision.into(),
        feedback: "shorter".into(),
        ..AgentReport::default()
    };
    assert_eq!(said(decided("REJECTED")).rejection.as_deref(), Some("shorter"));
    assert_eq!(said(decided("APPROVED")).rejection, None);
}
