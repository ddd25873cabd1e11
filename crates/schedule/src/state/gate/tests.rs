use lanewright_model::JobRole;

use super::*;
use crate::sample_plans::exit;

fn job(number: u32) -> JobId {
    JobId { lane: None, role: JobRole::Final, number }
}

fn diagnosis(class: FailureClass) -> Diagnosis {
    Diagnosis { class, tool: None, findings: Vec::new(), count: 0 }
}

fn failed(cause: ExitCause, class: Option<FailureClass>) -> Gate {
    let diagnosis = class.map(|class| Box::new(diagnosis(class)));
    Gate::Failed(Box::new(FailedGate { exit: exit(cause, 7), diagnosis }))
}

fn settled(exit: &JobExit, reading: Option<&Reading>) -> Gate {
    let mut gate = Gate::Running(job(2));
    gate.settle(&job(1), exit, reading, &mut InVain::default());
    assert_eq!(gate, Gate::Running(job(2)), "another job ended");
    gate.settle(&job(2), exit, reading, &mut InVain::default());
    gate
}

#[test]
fn a_gate_stands_as_its_job_ended() {
    assert_eq!(settled(&exit(ExitCause::Exited, 0), None), Gate::Passed);
    assert_eq!(settled(&exit(ExitCause::Stopped, 7), None), Gate::Due);
    assert_eq!(settled(&exit(ExitCause::Lost, 7), None), Gate::Due);
    assert_eq!(settled(&exit(ExitCause::Exited, 7), None), failed(ExitCause::Exited, None));
    let reading = Reading::Diagnosis(diagnosis(FailureClass::Style));
    let understood = settled(&exit(ExitCause::TimedOut, 7), Some(&reading));
    assert_eq!(understood, failed(ExitCause::TimedOut, Some(FailureClass::Style)));
}

#[test]
fn a_gate_is_due_again_for_a_reason() {
    let after = |change: fn(&mut Gate), mut gate: Gate| {
        change(&mut gate);
        gate
    };
    let failed = || failed(ExitCause::Exited, None);
    assert_eq!(after(Gate::retry, failed()), Gate::Due);
    assert_eq!(after(Gate::retry, Gate::Passed), Gate::Passed);
    assert_eq!(after(Gate::run_again, Gate::Passed), Gate::Due);
    assert_eq!(after(Gate::run_again, failed()), failed());
}

#[test]
fn only_an_output_that_was_read_can_be_misunderstood() {
    assert!(failed(ExitCause::Exited, Some(FailureClass::Unknown)).is_misunderstood());
    assert!(!failed(ExitCause::Exited, Some(FailureClass::Test)).is_misunderstood());
    assert!(!failed(ExitCause::Exited, None).is_misunderstood());
    assert!(!Gate::Passed.is_misunderstood());
}

#[test]
fn a_failed_gate_is_a_failure_with_all_that_is_known() {
    let Gate::Failed(gate) = failed(ExitCause::Exited, Some(FailureClass::Test)) else { unreachable!() };
    let expected = Failure {
        command: Some("agent --go".into()),
        exit_code: Some(7),
        log: gate.exit.tail.clone(),
        diagnosis: gate.diagnosis.clone(),
        ..Failure::new(FailureKind::Gate, "the tests failed: `agent --go` exited with code 7")
    };
    assert_eq!(gate.failure("the tests failed"), expected);
    let Gate::Failed(lost) = failed(ExitCause::Lost, None) else { unreachable!() };
    assert_eq!(lost.failure("it failed").message, "it failed: the supervisor of `agent --go` died 3 times: why");
}
