use super::*;
use crate::command::CommandLine;
use crate::plan::PlanParts;
use crate::replaced::Replaced;
use crate::testing::{agent, lane, plan, task};

/// `A`, `B` after `A`, and `C`.
fn sample() -> PlanParts {
    plan(&[("A", &[], &[]), ("B", &["A"], &[]), ("C", &[], &[])]).into()
}

fn digests(parts: PlanParts) -> Vec<String> {
    let plan = Plan::new(parts).unwrap();
    plan.indices().map(|index| plan.lane_digest(index).to_owned()).collect()
}

/// The lanes whose digests differ from those of the sample.
fn changed(change: impl FnOnce(&mut PlanParts)) -> Vec<&'static str> {
    let mut parts = sample();
    change(&mut parts);
    let both = digests(sample()).into_iter().zip(digests(parts)).zip(["A", "B", "C"]);
    both.filter(|((before, after), _)| before != after).map(|(_, lane)| lane).collect()
}

#[test]
fn digests_stay_those_of_earlier_versions() {
    // A version with other digests runs lanes again that are merged.
    assert_eq!(digests(sample()), ["104af704df1814cb", "1ea894b0d3a90140", "b9323b9149fe068d"]);
}

#[test]
fn changed_work_changes_the_lane_and_its_dependants() {
    assert_eq!(changed(|plan| plan.lanes[0].agents[0].tasks[0].prompt = "other".to_owned()), ["A", "B"]);
    assert_eq!(changed(|plan| plan.lanes[0].tests.push(CommandLine::Shell("make".to_owned()))), ["A", "B"]);
    assert_eq!(changed(|plan| plan.lanes[1].owns.push("src/**".to_owned())), ["B"]);
    assert_eq!(changed(|plan| plan.lanes[2].env.extend([("MODE".to_owned(), "fast".to_owned())])), ["C"]);
    assert_eq!(changed(|plan| plan.lanes[2].agents[0].command = CommandLine::Shell("x".to_owned())), ["C"]);
    assert_eq!(changed(|plan| plan.lanes[2].depends_on.push(LaneIndex(0))), ["C"]);
    assert_eq!(changed(|plan| plan.phase = crate::PhaseId::new("P2").unwrap()), ["A", "B", "C"]);
}

#[test]
fn how_a_lane_is_carried_out_changes_no_digest() {
    let none: [&str; 0] = [];
    assert_eq!(changed(|plan| plan.lanes[0].retries = 7), none);
    let usual = |plan: &mut PlanParts| {
        plan.lanes[0].has_usual_tests = true;
        plan.lanes[0].tests.push(CommandLine::Shell("make".to_owned()));
    };
    assert_eq!(changed(usual), none);
    assert_eq!(changed(|plan| plan.lanes[0].timeout = Some(std::time::Duration::from_secs(1))), none);
    assert_eq!(changed(|plan| plan.lanes[0].approval.push(crate::Approval::Changes)), none);
    assert_eq!(changed(|plan| plan.lanes[0].agents[0].allow_empty = true), none);
    assert_eq!(changed(|plan| plan.lanes[0].agents[0].name = agent("claude")), none);
    assert_eq!(changed(|plan| plan.gates.last.push(CommandLine::Shell("make".to_owned()))), none);
    assert_eq!(changed(|plan| plan.title = Some("Other".to_owned())), none);
}

#[test]
fn lane_keeps_its_digest_beside_new_lanes() {
    let with_more: PlanParts = plan(&[("N", &[], &[]), ("A", &[], &[]), ("B", &["A"], &[]), ("C", &[], &[])]).into();
    assert_eq!(digests(with_more)[1..], digests(sample()));
}

#[test]
fn withheld_secret_and_replaced_prompt_change_no_digest() {
    let secret = |plan: &mut PlanParts| {
        plan.lanes[0].env.extend([("API_TOKEN".to_owned(), "s3cr3t-value".to_owned())]);
    };
    let mut with_secret = sample();
    secret(&mut with_secret);
    let stored = Plan::new(with_secret.clone()).unwrap().without_secrets(&[]);
    assert_eq!(digests(stored.into()), digests(with_secret));
    let retried = changed(|plan| {
        let planned_sha256 = sha256(&plan.lanes[0].agents[0].tasks[0].prompt);
        plan.lanes[0].agents[0].tasks[0].prompt = "in another way".to_owned();
        let part = AgentPart::Prompt(task("1"));
        plan.replaced.push(Replaced { lane: lane("A"), agent: agent("engineer"), part, planned_sha256 });
    });
    assert_eq!(retried, [] as [&str; 0]);
}
