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
    gate.record_exit(&job(1), exit, reading, &mut NoProgress::default());
    assert_eq!(gate, Gate::Running(job(2)), "another job ended");
    gate.record_exit(&job(2), exit, reading, &mut NoProgress::default());
    gate
}

#[test]
fn gate_result_follows_job_exit() {
    assert_eq!(settled(&exit(ExitCause::Exited, 0), None), Gate::Passed);
    assert_eq!(settled(&exit(ExitCause::Stopped, 7), None), Gate::Due);
    assert_eq!(settled(&exit(ExitCause::Lost, 7), None), Gate::Due);
    assert_eq!(settled(&exit(ExitCause::Exited, 7), None), failed(ExitCause::Exited, None));
    let reading = Reading::Diagnosis(diagnosis(FailureClass::Style));
    let understood = settled(&exit(ExitCause::TimedOut, 7), Some(&reading));
    assert_eq!(understood, failed(ExitCause::TimedOut, Some(FailureClass::Style)));
}

#[test]
fn gate_is_due_again_after_retry() {
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
fn only_diagnosed_gate_can_be_misunderstood() {
    assert!(failed(ExitCause::Exited, Some(FailureClass::Unknown)).is_misunderstood());
    assert!(!failed(ExitCause::Exited, Some(FailureClass::Test)).is_misunderstood());
    assert!(!failed(ExitCause::Exited, None).is_misunderstood());
    assert!(!Gate::Passed.is_misunderstood());
}

#[test]
fn gate_failure_has_command_log_and_diagnosis() {
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
