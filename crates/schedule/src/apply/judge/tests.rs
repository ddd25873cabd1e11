use lanewright_model::{Outage, OutageKind, TaskId};

use super::*;
use crate::sample_plans::{exit, lane};

fn report(status: &str, decision: &str, message: &str) -> AgentReport {
    AgentReport { status: status.into(), decision: decision.into(), message: message.into(), ..AgentReport::default() }
}

fn complaint(error: &str) -> Transcript {
    Transcript { error: error.into(), ..Transcript::default() }
}

fn step(round: Round, exit: &JobExit, report: AgentReport, transcript: Transcript) -> AgentStep {
    judge(round, exit, Words { report: Some(&report), reading: None, transcript: Some(&transcript) })
}

fn failure(step: AgentStep) -> Failure {
    let AgentStep::Judging(failure) = step else { panic!("no failure: {step:?}") };
    failure
}

#[test]
fn successful_attempt_is_judged_by_its_report() {
    use Round::{Implementation, Requirements, Review};
    let exit = exit(ExitCause::Exited, 0);
    let taken = [
        (Implementation, "", AgentStep::Committing),
        (Implementation, "REJECTED", AgentStep::Committing),
        (Requirements, "", AgentStep::Snapshotting),
        (Review, "APPROVED", AgentStep::Snapshotting),
        (Review, "REJECTED", AgentStep::Snapshotting),
    ];
    for (round, decision, expected) in taken {
        assert_eq!(step(round, &exit, report("", decision, ""), complaint("")), expected, "{round:?} {decision}");
    }
    let blocked = step(Implementation, &exit, report("BLOCKED", "", "no key"), complaint(""));
    assert_eq!(blocked, AgentStep::Blocked("no key".into()));
    let unreadable = AgentReport { fault: "not JSON".into(), ..AgentReport::default() };
    let refused = [
        (Implementation, unreadable, "", "not JSON"),
        (Implementation, report("ERROR", "", "no tests"), "", "the agent reports an error: no tests"),
        (Implementation, report("COMPLETE", "", ""), "cut off", "cut off"),
        (
            Review,
            report("COMPLETE", "PENDING", ""),
            "",
            "the reviewer gave no decision (APPROVED or REJECTED) in its status file",
        ),
    ];
    for (round, report, error, message) in refused {
        let expected = Failure { log: exit.tail.clone(), ..Failure::new(FailureKind::Report, message) };
        assert_eq!(failure(step(round, &exit, report, complaint(error))), expected);
    }
}

#[test]
fn failed_attempt_message_quotes_agent() {
    let plain = [
        (ExitCause::TimedOut, FailureKind::Timeout, "ran out of time (exit code 7)"),
        (ExitCause::NotStarted, FailureKind::Crash, "could not be started: why"),
        (ExitCause::Lost, FailureKind::Lost, "its supervisor vanished: why"),
        (ExitCause::Exited, FailureKind::Crash, "exited with code 7"),
    ];
    for (cause, kind, message) in plain {
        let exit = exit(cause, 7);
        let expected = Failure {
            command: Some("agent --go".into()),
            exit_code: Some(7),
            log: exit.tail.clone(),
            ..Failure::new(kind, message)
        };
        assert_eq!(failure(step(Round::Review, &exit, report("", "", ""), complaint(""))), expected);
    }
    let exit = exit(ExitCause::Exited, 7);
    let told = |message: &str, error: &str| {
        failure(step(Round::Review, &exit, report("", "", message), complaint(error))).message
    };
    assert_eq!(told("no disk", "cut off"), "exited with code 7: no disk");
    assert_eq!(told("", "cut off"), "exited with code 7: cut off");
    assert_eq!(told("`agent --go` failed", "cut off"), "exited with code 7: cut off");
    assert_eq!(told("`agent --go` failed", ""), "exited with code 7");
}

#[test]
fn an_outage_is_named_once() {
    let outage = Outage::new(OutageKind::Quota, "429");
    let reading = Reading::Outage(outage);
    let blamed = |error: &str| {
        let transcript = complaint(error);
        let words = Words { report: None, reading: Some(&reading), transcript: Some(&transcript) };
        failure(judge(Round::Implementation, &exit(ExitCause::Exited, 1), words))
    };
    assert_eq!(blamed("").kind, FailureKind::Quota);
    assert_eq!(blamed("").message, "exited with code 1: 429");
    assert_eq!(blamed("status 429 it was").message, "exited with code 1: status 429 it was");
}

#[test]
fn report_message_precedes_output() {
    let exit = exit(ExitCause::Exited, 0);
    let said = |own: bool, message: &str, transcript: &str, streams: bool| {
        let report = AgentReport { own, ..report("", "", message) };
        let transcript = Transcript { message: transcript.into(), ..Transcript::default() };
        let words = Words { report: Some(&report), reading: None, transcript: Some(&transcript) };
        last_words(&exit, words, streams)
    };
    assert_eq!(said(true, "x\n\ny", "z", true), ["x", "y"]);
    assert_eq!(said(false, "x", "z", true), ["z"]);
    assert_eq!(said(true, " ", " ", false), ["a", "b"]);
    assert!(said(true, "", "", true).is_empty());
    let long: Vec<String> = (0..30).map(|line| line.to_string()).collect();
    assert_eq!(said(true, &long.join("\n"), "", true), long[10..]);
}

#[test]
fn an_idle_agent_is_quoted_from_the_end() {
    let mut agent = lane("A", &[], 1, &[]).agents.remove(0);
    let told = |agent: &Agent, said: &[&str]| {
        let said = said.iter().map(|line| line.to_string()).collect::<Vec<_>>();
        idle_failure(agent, (&Refusals::default(), &[]), &said)
    };
    assert_eq!(told(&agent, &[]).message, "changed no file, and said nothing");
    assert_eq!(told(&agent, &["Which", "one?"]).message, "changed no file; it said: Which one?");
    assert_eq!(told(&agent, &["Which", "one?"]).log, ["Which", "one?"]);
    let long = "é".repeat(QUOTED + 1);
    assert_eq!(told(&agent, &[&long[2..]]).message, format!("changed no file; it said: {}", &long[2..]));
    assert_eq!(told(&agent, &[&long]).message, format!("changed no file; it said: …{}", &long[2..]));
    let ignored = ["a.sql (ignored by .gitignore:1)".to_owned()];
    let with_ignored = idle_failure(&agent, (&Refusals::default(), &ignored), &[]).message;
    let ignores = "changed no file but what commits leave out: a.sql (ignored by .gitignore:1), and said nothing";
    assert_eq!(with_ignored, ignores);
    let second = lanewright_model::Task { id: TaskId::new("2").unwrap(), ..agent.tasks[0].clone() };
    agent.tasks.push(second);
    assert_eq!(told(&agent, &[]).message, "no task changed a file, and said nothing");
}
