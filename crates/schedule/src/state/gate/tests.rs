use lanewright_model::JobRole;

use super::*;
use crate::sample_plans::{commit, exit};

fn job(number: u32) -> JobId {
    JobId { lane: None, role: JobRole::Final, number }
}

fn diagnosis(class: FailureClass) -> Diagnosis {
    Diagnosis { class, tool: None, findings: Vec::new(), count: 0, in_base: None }
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

#[test]
fn missing_program_is_not_the_agents_failure() {
    let kind = |command: &str, cause, code, line: &str| {
        let exit =
            JobExit { command: command.into(), tail: vec![line.into()], notes: String::new(), ..exit(cause, code) };
        let failure = FailedGate { exit, diagnosis: None }.failure("it failed");
        (failure.kind, failure.message)
    };
    let ended = |command, code, line| kind(command, ExitCause::Exited, code, line).0;
    let (gate, environment) = (FailureKind::Gate, FailureKind::Environment);
    assert_eq!(ended("npm test", 127, "sh: 1: runner: not found"), environment);
    assert_eq!(ended("node_modules/.bin/jest src/a.js", 127, "sh: 1: node_modules/.bin/jest: not found"), environment);
    assert_eq!(ended("/opt/check src/a.js", 126, "sh: 1: /opt/check: Permission denied"), environment);
    assert_eq!(ended("cargo test", 101, "error: not found"), gate);
    // The agent may have to write it.
    assert_eq!(ended("cd app && ./check.sh", 127, "sh: 1: ./check.sh: not found"), gate);
    assert_eq!(ended("scripts/check", 126, "sh: 1: scripts/check: Permission denied"), gate);
    assert_eq!(kind("scripts/check", ExitCause::NotStarted, 127, "").0, gate);
    assert_eq!(ended("bash check.sh", 127, "bash: check.sh: No such file or directory"), gate);
    assert_eq!(ended("python3.11 -m pytest", 127, "sh: 1: python3.11: not found"), environment);
    assert_eq!(kind("no-such scripts/check", ExitCause::NotStarted, 127, "").0, environment);
    assert_eq!(kind("no-such", ExitCause::TimedOut, 127, "").0, gate);
    let said =
        "it failed: `npm test` exited with code 127: a program that it needs was not found (sh: 1: runner: not found)";
    assert_eq!(kind("npm test", ExitCause::Exited, 127, "sh: 1: runner: not found").1, said);
}

#[test]
fn gate_that_fails_in_base_names_it() {
    let failure = |line: &str, in_base: Option<CommitId>| {
        let diagnosis = Some(Box::new(Diagnosis { in_base, ..diagnosis(FailureClass::Unknown) }));
        let exit = JobExit { command: "make".into(), tail: vec![line.into()], ..exit(ExitCause::Exited, 2) };
        FailedGate { exit, diagnosis }.failure("it failed")
    };
    let base = || Some(commit(7));
    let failed = failure("2 of 9 failed", base());
    assert_eq!(failed.kind, FailureKind::Gate, "it may be what the lane is to change");
    let said = format!("; it fails in the same way without the lane's changes (base {})", commit(7).short());
    assert!(failed.message.ends_with(&said), "{}", failed.message);
    // A program that the gate starts in turn.
    for line in ["/bin/sh: 1: eslint: not found", "bash: line 3: eslint: command not found"] {
        assert_eq!(failure(line, base()).kind, FailureKind::Environment, "{line}");
        assert_eq!(failure(line, None).kind, FailureKind::Gate, "the lane may have caused it: {line}");
    }
    assert_eq!(failure("/usr/bin/python3: No module named pytest", base()).kind, FailureKind::Environment);
    // These may be what the lane is to write.
    for line in ["sh: 1: ./check.sh: not found", "/usr/bin/python3: No module named ledger", "error: page: not found"] {
        assert_eq!(failure(line, base()).kind, FailureKind::Gate, "{line}");
    }
}
