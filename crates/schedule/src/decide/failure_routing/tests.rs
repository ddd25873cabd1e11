use lanewright_model::{Agent, AgentName, ExitCause, Finding};

use super::*;
use crate::sample_plans::{commit, exit, lane};

/// A lane whose agents are all done and merged, in that order.
fn merged(names: &[&str]) -> (Lane, LaneState) {
    let mut plan = lane("A", &[], 1, &[]);
    let agent = |name: &&str| Agent { name: AgentName::new(name).unwrap(), ..plan.agents[0].clone() };
    plan.agents = names.iter().map(agent).collect();
    let mut state = LaneState::new(&plan, 0);
    for agent in 0..names.len() {
        state.agents[agent].step = AgentStep::Done;
        state.intake.merged(agent, &commit(agent as u32));
    }
    (plan, state)
}

fn diagnosis(class: FailureClass, file: &str) -> Diagnosis {
    let finding = Finding { file: Some(file.to_owned()), line: None, column: None, message: String::new() };
    Diagnosis { class, tool: None, findings: vec![finding], count: 1 }
}

#[test]
fn the_exact_name_goes_before_a_first_word() {
    let (plan, _) = merged(&["tester", "test-writer", "test"]);
    assert_eq!(called(&plan, "test"), Some(2));
    let (plan, _) = merged(&["tester", "test-writer"]);
    assert_eq!(called(&plan, "test"), Some(1));
    assert_eq!(called(&plan, "style"), None);
}

#[test]
fn what_is_not_understood_counts_as_what_failed() {
    let of = |class| delegate(Some(&diagnosis(class, "a.rs")), FailureClass::Test);
    assert_eq!(of(FailureClass::Unknown), Delegate::Named("test"));
    assert_eq!(of(FailureClass::Style), Delegate::SameAgent);
    assert_eq!(delegate(None, FailureClass::Unknown), Delegate::Escalate);
}

#[test]
fn a_compiler_error_goes_to_the_last_who_changed_the_file() {
    let (plan, mut state) = merged(&["a", "b", "architect"]);
    let found = diagnosis(FailureClass::Compilation, "src/x.rs");
    let assignee = |state: &LaneState, name| state.assignee(&plan, Delegate::LastToTouchElse(name), Some(&found), 2);
    assert_eq!(assignee(&state, "a"), 0, "nobody changed it");
    assert_eq!(assignee(&state, "nobody"), 2);
    state.agents[0].changed = vec!["src/x.rs".to_owned()];
    state.agents[1].changed = vec!["src/x.rs".to_owned(), "src/y.rs".to_owned()];
    assert_eq!(assignee(&state, "a"), 1);
    state.agents[1].step = AgentStep::Ready;
    assert_eq!(assignee(&state, "a"), 2, "it is at its own work");
}

#[test]
fn a_joint_failure_names_those_whose_work_is_in() {
    let gate = FailedGate { exit: exit(ExitCause::Exited, 7), diagnosis: None };
    let told = |names: &[&str]| {
        let (plan, state) = merged(names);
        joint_failure("it failed", &gate, &state, &plan).message
    };
    assert_eq!(told(&["a"]), "it failed: `agent --go` exited with code 7");
    assert_eq!(told(&["a", "b"]), "it failed: `agent --go` exited with code 7 (merged: a, b)");
}
