//! The report as JUnit XML.
//!
//! What is written satisfies the schema of Jenkins' xUnit plugin (`junit-10.xsd`) and the one of Ant's format (`JUnit.xsd`
//! of Windy Road) alike. Neither allows all that the other does, so: no attributes on `testsuites`; suites have every
//! attribute that one of them asks for, times without an offset, and `properties`, `system-out` and `system-err` in this
//! order; cases have a class, a time and at most one child.

use std::io;

use lanewright_model::{ExitCause, PhaseId, RetryLevel, Timestamp, Verdict};
use quick_xml::events::{BytesDecl, BytesText, Event};
use quick_xml::{ElementWriter, Writer};

use super::ExecutionReport;
use super::escape::visible;
use super::lanes::{JobReport, LaneReport, last_runs};
use crate::history::{FailureView, JobHistory, LaneHistory, StateGroup};
use crate::status::summary::milliseconds;

/// A suite for each lane, then one for the phase. Cases are the lane itself, its gates as they ended, and its must-haves.
pub(super) fn junit(report: &ExecutionReport<'_>) -> io::Result<String> {
    let package = report.history.run.phase.as_ref().map_or("run", PhaseId::as_str);
    let mut suites: Vec<Suite> = report.lanes.iter().map(|lane| of_lane(package, lane)).collect();
    suites.extend((!report.final_gate.is_empty()).then(|| of_phase(package, report)));
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    writer.create_element("testsuites").write_inner_content(|writer| {
        let mut suites = suites.iter().enumerate();
        suites.try_for_each(|(id, suite)| write_suite(writer, report, package, id, suite))
    })?;
    let mut text = String::from_utf8(writer.into_inner()).map_err(io::Error::other)?;
    text.push('\n');
    Ok(text)
}

struct Suite {
    name: String,
    started: Option<Timestamp>,
    elapsed_ms: u64,
    properties: Vec<(&'static str, String)>,
    cases: Vec<Case>,
    output: String,
}

struct Case {
    class: String,
    name: String,
    elapsed_ms: u64,
    /// `None`: it passed.
    problem: Option<Problem>,
}

/// A `failure` is what was tested and found wrong; an `error` kept it from being done; `skipped` has no type.
struct Problem {
    element: &'static str,
    kind: Option<String>,
    message: String,
    text: String,
}

impl Problem {
    fn new(element: &'static str, kind: &str, message: impl Into<String>, text: String) -> Option<Self> {
        Some(Self { element, kind: Some(kind.to_owned()), message: message.into(), text })
    }

    fn skipped(message: impl Into<String>) -> Option<Self> {
        Some(Self { element: "skipped", kind: None, message: message.into(), text: String::new() })
    }
}

fn of_lane(package: &str, report: &LaneReport<'_>) -> Suite {
    let lane = report.lane;
    let class = format!("{package}.{}", lane.id);
    let elapsed_ms = milliseconds(report.summary.elapsed).unwrap_or_default();
    let mut cases = vec![Case {
        class: class.clone(),
        name: lane.name.as_ref().map_or_else(|| lane.id.to_string(), |name| format!("{}: {name}", lane.id)),
        elapsed_ms,
        problem: problem_of_lane(report),
    }];
    cases.extend(of_gates(&class, &report.gates));
    cases.extend(lane.must_haves.iter().map(|verdict| of_must_have(&class, verdict)));
    Suite {
        name: class,
        started: lane.started,
        elapsed_ms,
        properties: properties(report),
        cases,
        output: commands(&report.gates).into_iter().chain(earlier(lane)).collect::<Vec<_>>().join("\n"),
    }
}

fn of_phase(package: &str, report: &ExecutionReport<'_>) -> Suite {
    Suite {
        name: package.to_owned(),
        started: report.final_gate.first().map(|gate| gate.started),
        elapsed_ms: report.final_gate.iter().map(|gate| gate.elapsed_ms).sum(),
        properties: Vec::new(),
        cases: of_gates(package, &report.final_gate),
        output: commands(&report.final_gate).join("\n"),
    }
}

fn properties(report: &LaneReport<'_>) -> Vec<(&'static str, String)> {
    let (lane, usage) = (report.lane, report.lane.usage());
    let retries = report.attempts.iter().filter_map(|attempt| attempt.job.retry.as_ref());
    let retries = retries.filter(|retry| retry.level == RetryLevel::Retry).count();
    let all = [
        ("state", Some(lane.state.word().to_owned())),
        ("attempts", Some(report.attempts.len().to_string())),
        ("retries", Some(retries.to_string())),
        ("tokens", Some(usage.tokens()).filter(|tokens| *tokens > 0).map(|tokens| tokens.to_string())),
        ("cost_usd", usage.cost.map(|cost| format!("{:.6}", cost.value()))),
        ("branch", lane.workplace.branch().map(str::to_owned)),
        ("merge_commit", lane.merge_commit.as_ref().map(ToString::to_string)),
        ("pull_request", lane.pull_request.as_ref().map(|it| it.url.clone())),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// All failures: cases have only the last state.
fn earlier(lane: &LaneHistory) -> Vec<String> {
    let complaint = |failure: &FailureView| {
        let lines = std::iter::once(failure.failure.message.clone()).chain(failure.failure.log.iter().cloned());
        format!("{} {}", failure.at, lines.collect::<Vec<_>>().join("\n  "))
    };
    lane.failures.iter().map(complaint).collect()
}

fn problem_of_lane(report: &LaneReport<'_>) -> Option<Problem> {
    let (state, note) = (report.lane.state, &report.summary.note);
    let note = if note.is_empty() { state.word().to_owned() } else { note.clone() };
    match state.group() {
        StateGroup::Merged => None,
        StateGroup::Failed => failed(report, note),
        StateGroup::Blocked | StateGroup::Stopped | StateGroup::NeedsYou => {
            Problem::new("error", state.word(), note, String::new())
        }
        // The result of those at work, or interrupted, is not known yet.
        StateGroup::Waiting | StateGroup::Skipped | StateGroup::Working => Problem::skipped(note),
    }
}

fn failed(report: &LaneReport<'_>, note: String) -> Option<Problem> {
    let Some(FailureView { failure, .. }) = report.failure() else {
        return Problem::new("failure", "failed", note, String::new());
    };
    let findings = failure.diagnosis.iter().flat_map(|diagnosis| &diagnosis.findings).map(ToString::to_string);
    let command = failure.command.clone();
    let lines = command.into_iter().chain(failure.paths.iter().cloned()).chain(findings).chain(failure.log.clone());
    Problem::new("failure", failure.kind.word(), failure.message.as_str(), lines.collect::<Vec<_>>().join("\n"))
}

fn of_gates(class: &str, gates: &[JobReport<'_>]) -> Vec<Case> {
    let case = |(gate, _): (&JobReport<'_>, usize)| Case {
        class: class.to_owned(),
        name: gate.job.label(),
        elapsed_ms: gate.elapsed_ms,
        problem: problem_of_gate(gate.job),
    };
    last_runs(gates).into_iter().map(case).collect()
}

/// What the gates ran, one line each. It is not part of a case's name, by which services identify cases across runs.
fn commands(gates: &[JobReport<'_>]) -> Vec<String> {
    let line = |(gate, runs): (&JobReport<'_>, usize)| {
        let again = if runs > 1 { format!(" (run {runs} times)") } else { String::new() };
        Some(format!("{}: {}{again}", gate.job.label(), gate.job.exit.as_ref()?.command))
    };
    last_runs(gates).into_iter().filter_map(line).collect()
}

fn problem_of_gate(gate: &JobHistory) -> Option<Problem> {
    let Some(exit) = &gate.exit else { return Problem::skipped(gate.ending()) };
    if exit.passed() {
        return None;
    }
    let element = if exit.cause == ExitCause::Exited { "failure" } else { "error" };
    let diagnosis = gate.diagnosis();
    let findings = diagnosis.into_iter().flat_map(|diagnosis| &diagnosis.findings).map(ToString::to_string);
    let text = findings.chain(gate.failed_tail().iter().cloned()).collect::<Vec<_>>().join("\n");
    Problem::new(element, diagnosis.map_or("gate", |diagnosis| diagnosis.class.word()), gate.ending(), text)
}

/// How much of a must-have is in its case's name, in characters.
const LONGEST_NAME: usize = 100;

fn of_must_have(class: &str, verdict: &Verdict) -> Case {
    let kind = verdict.kind.word().replace('_', " ");
    let text = || verdict.asked.iter().chain(&verdict.why).cloned().collect::<Vec<_>>().join("\n");
    Case {
        class: class.to_owned(),
        name: format!("must-have: {kind} {}", verdict.about.chars().take(LONGEST_NAME).collect::<String>()),
        elapsed_ms: 0,
        problem: match verdict.holds {
            Some(true) => None,
            Some(false) => Problem::new("failure", "must-have", verdict.describe(), text()),
            None => Problem::skipped("only a reader can tell"),
        },
    }
}

type Xml = Writer<Vec<u8>>;

/// An element whose attributes are made safe to show.
fn element<'w>(writer: &'w mut Xml, name: &'w str, attributes: &[(&str, String)]) -> ElementWriter<'w, Vec<u8>> {
    let element = writer.create_element(name);
    attributes.iter().fold(element, |element, (name, value)| element.with_attribute((*name, visible(value).as_ref())))
}

fn write_suite(
    writer: &mut Xml,
    report: &ExecutionReport<'_>,
    package: &str,
    id: usize,
    suite: &Suite,
) -> io::Result<()> {
    let problems: Vec<&Problem> = suite.cases.iter().filter_map(|case| case.problem.as_ref()).collect();
    let count = |element: &str| problems.iter().filter(|problem| problem.element == element).count().to_string();
    let host = report.history.run.owner.as_ref().map_or("localhost", |owner| &owner.host);
    let began = suite.started.or(report.history.run.started).unwrap_or(Timestamp::from_unix_millis(0));
    let attributes = [
        ("name", suite.name.clone()),
        ("package", package.to_owned()),
        ("id", id.to_string()),
        ("hostname", host.to_owned()),
        ("timestamp", began.0.format("%Y-%m-%dT%H:%M:%S").to_string()),
        ("tests", suite.cases.len().to_string()),
        ("failures", count("failure")),
        ("errors", count("error")),
        ("skipped", count("skipped")),
        ("time", seconds(suite.elapsed_ms)),
    ];
    element(writer, "testsuite", &attributes).write_inner_content(|writer| {
        writer.create_element("properties").write_inner_content(|writer| {
            suite.properties.iter().try_for_each(|(name, value)| {
                let attributes = [("name", (*name).to_owned()), ("value", value.clone())];
                element(writer, "property", &attributes).write_empty().map(|_| ())
            })
        })?;
        suite.cases.iter().try_for_each(|case| write_case(writer, case))?;
        write_text(writer, "system-out", &[], &suite.output)?;
        write_text(writer, "system-err", &[], "")
    })?;
    Ok(())
}

fn write_case(writer: &mut Xml, case: &Case) -> io::Result<()> {
    let attributes =
        [("name", case.name.clone()), ("classname", case.class.clone()), ("time", seconds(case.elapsed_ms))];
    let element = element(writer, "testcase", &attributes);
    let Some(Problem { element: name, kind, message, text }) = &case.problem else {
        return element.write_empty().map(|_| ());
    };
    let kind = kind.as_ref().map(|kind| ("type", kind.clone()));
    let attributes: Vec<_> = [("message", message.clone())].into_iter().chain(kind).collect();
    element.write_inner_content(|writer| write_text(writer, name, &attributes, text))?;
    Ok(())
}

fn write_text(writer: &mut Xml, name: &str, attributes: &[(&str, String)], text: &str) -> io::Result<()> {
    element(writer, name, attributes).write_text_content(BytesText::new(&visible(text)))?;
    Ok(())
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}
