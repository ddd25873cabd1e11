use lanewright_model::{Agent, AgentName, ExitCause, Finding};

use super::*;
use crate::sample_plans::{commit, exit, lane};
use crate::state::lane::LaneState;

/// A lane whose agents are all done and merged, in that order.
fn merged(names: &[&str]) -> (Lane, LaneState) {
    let mut plan = lane("A", &[], 1, &[]);
    let agent = |name: &&str| Agent { name: AgentName::new(name).unwrap(), ..plan.agents[0].clone() };
    plan.agents = names.iter().map(agent).collect();
    let mut state = LaneState::new(&plan, 0);
    for agent in 0..names.len() {
        state.attempts.agents_mut()[agent].step = AgentStep::Done;
        state.attempts.integration_mut().merged(agent, &commit(agent as u32));
    }
    (plan, state)
}

fn diagnosis(class: FailureClass, file: &str) -> Diagnosis {
    let finding = Finding { file: Some(file.to_owned()), line: None, column: None, message: String::new() };
    Diagnosis { class, tool: None, findings: vec![finding], count: 1, in_base: None }
}

#[test]
fn exact_agent_name_precedes_first_word() {
    let (plan, _) = merged(&["tester", "test-writer", "test"]);
    assert_eq!(called(&plan, "test"), Some(2));
    let (plan, _) = merged(&["tester", "test-writer"]);
    assert_eq!(called(&plan, "test"), Some(1));
    assert_eq!(called(&plan, "style"), None);
}

#[test]
fn undiagnosed_failure_uses_default_class() {
    let of = |class| delegate(Some(&diagnosis(class, "a.rs")), FailureClass::Test);
    assert_eq!(of(FailureClass::Unknown), Delegate::Named("test"));
    assert_eq!(of(FailureClass::Style), Delegate::SameAgent);
    assert_eq!(delegate(None, FailureClass::Unknown), Delegate::Escalate);
}

#[test]
fn compilation_error_goes_to_last_editor() {
    let (plan, mut state) = merged(&["a", "b", "architect"]);
    let found = diagnosis(FailureClass::Compilation, "src/x.rs");
    let assignee =
        |state: &LaneState, name| assignee(&state.attempts, &plan, Delegate::LastToTouchElse(name), Some(&found), 2);
    assert_eq!(assignee(&state, "a"), 0, "nobody changed it");
    assert_eq!(assignee(&state, "nobody"), 2);
    state.attempts.agents_mut()[0].changed = vec!["src/x.rs".to_owned()];
    state.attempts.agents_mut()[1].changed = vec!["src/x.rs".to_owned(), "src/y.rs".to_owned()];
    assert_eq!(assignee(&state, "a"), 1);
    state.attempts.agents_mut()[1].step = AgentStep::Ready;
    assert_eq!(assignee(&state, "a"), 2, "it is at its own work");
}

#[test]
fn joint_failure_names_merged_agents() {
    let gate = FailedGate { exit: exit(ExitCause::Exited, 7), diagnosis: None };
    let told = |names: &[&str]| {
        let (plan, state) = merged(names);
        joint_failure("it failed", &gate, &state.attempts, &plan).message
    };
    assert_eq!(told(&["a"]), "it failed: `agent --go` exited with code 7");
    assert_eq!(told(&["a", "b"]), "it failed: `agent --go` exited with code 7 (merged: a, b)");
}
