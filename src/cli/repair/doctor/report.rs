//! What `doctor` prints.

use std::collections::BTreeMap;

use lanewright_engine::doctor::{Cure, Escalation, Finding};
use lanewright_model::RunId;
use lanewright_model::text::counted;
use serde_json::{Value, json};

use super::Visit;
use super::credentials::Credentials;
use super::sandbox::Sandbox;
use crate::cli::{Context, ExitStatus, Result};

/// A finding, and what came of it.
type Line<'a> = (&'a Finding, Outcome<'a>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome<'a> {
    Found,
    Repaired(&'a str),
    NotRepaired(&'a str),
}

pub(crate) fn report(
    context: &Context,
    visit: &Visit,
    fix: bool,
    of_machine: (&Credentials, Option<&Sandbox>),
) -> Result<ExitStatus> {
    let (credentials, sandbox) = of_machine;
    let lines = lines(visit);
    let mut by_run: BTreeMap<Option<&RunId>, Vec<&Line<'_>>> = BTreeMap::new();
    for line in &lines {
        by_run.entry(line.0.run.as_ref()).or_default().push(line);
    }
    let mut text = String::new();
    for (run, lines) in by_run {
        let heading = run.map_or("shared by all runs:".to_owned(), |run| format!("run {run}:"));
        text.push_str(&format!("{heading}\n"));
        lines.into_iter().for_each(|line| text.push_str(&as_text(*line)));
    }
    let text = text + &end(&lines, fix) + &of_agents(credentials) + &sandbox.map(Sandbox::as_text).unwrap_or_default();
    context.printer.print(text, &as_json(&lines, fix, of_machine))
}

/// What agents could push with, a line each; for information.
fn of_agents(Credentials { readable, withheld }: &Credentials) -> String {
    let mut text = String::new();
    if !readable.is_empty() {
        text.push_str("Agents run as you, and could push with:\n");
        text.extend(readable.iter().map(|it| format!("  {}: {}; {}\n", it.place, it.what, it.remedy)));
    }
    if !withheld.is_empty() {
        text.push_str(&format!("Variables that agents do not get (`pass_env` passes them): {}\n", withheld.join(", ")));
    }
    text
}

/// What was repaired, then what is left; a finding that was not repaired is listed once.
fn lines(visit: &Visit) -> Vec<Line<'_>> {
    let is_left = |finding: &Finding| visit.left.iter().any(|left| left.is_same(finding));
    let repaired = visit.treated.iter().filter(|(finding, _)| !is_left(finding)).map(|(finding, done)| match done {
        Ok(what) | Err(what) => (finding, Outcome::Repaired(what)),
    });
    let left = visit.left.iter().map(|finding| {
        let treated = visit.treated.iter().rev().find(|(treated, _)| treated.is_same(finding));
        let outcome = match treated {
            Some((_, Err(reason))) => Outcome::NotRepaired(reason),
            Some((_, Ok(_))) => Outcome::NotRepaired("it was repaired, and is wrong again"),
            None => Outcome::Found,
        };
        (finding, outcome)
    });
    repaired.chain(left).collect()
}

fn end(lines: &[Line<'_>], fix: bool) -> String {
    let count = |wanted: &dyn Fn(&Line<'_>) -> bool| lines.iter().filter(|line| wanted(line)).count();
    let repaired = count(&|(_, outcome)| matches!(outcome, Outcome::Repaired(_)));
    let open = |line: &Line<'_>| !matches!(line.1, Outcome::Repaired(_)) && line.0.needs_action();
    let (repairable, person) = (
        count(&|line| open(line) && line.0.repair().is_some()),
        count(&|line| open(line) && line.0.repair().is_none()),
    );
    let mut counts = Vec::new();
    counts.extend((repaired > 0).then(|| format!("{repaired} repaired")));
    counts.extend((repairable > 0 && fix).then(|| format!("{repairable} could not be repaired")));
    counts.extend((repairable > 0 && !fix).then(|| format!("{repairable} can be repaired: lanewright doctor --fix")));
    counts.extend((person > 0).then(|| format!("{person} for a person to decide")));
    match (lines.len(), counts.is_empty()) {
        (0, _) => "Nothing is wrong.\n".to_owned(),
        (found, true) => format!("{}; nothing has to be done.\n", counted(found, "finding")),
        (found, false) => format!("{}; {}.\n", counted(found, "finding"), counts.join(", ")),
    }
}

fn as_text((finding, outcome): Line<'_>) -> String {
    let mut lines = vec![format!("  {} {} {}", finding.severity, finding.kind, finding.place)];
    let whose = [finding.lane.as_ref().map(ToString::to_string), finding.agent.as_ref().map(ToString::to_string)];
    let whose: Vec<String> = whose.into_iter().flatten().collect();
    let whose = if whose.is_empty() { String::new() } else { format!("{}: ", whose.join("/")) };
    lines.push(format!("    {whose}{}", finding.evidence));
    match outcome {
        Outcome::Found => lines.push(format!("    {}", finding.remedy)),
        Outcome::Repaired(what) => lines.push(format!("    repaired: {what}")),
        Outcome::NotRepaired(reason) => lines.push(format!("    not repaired: {reason}")),
    }
    if let (Cure::Escalation(escalation), false) = (&finding.cure, matches!(outcome, Outcome::Repaired(_))) {
        lines.extend(escalated(escalation).into_iter().map(|line| format!("    {line}")));
    }
    lines.join("\n") + "\n"
}

fn escalated(escalation: &Escalation) -> Vec<String> {
    let mut lines = vec![format!("Issue: {}", escalation.issue), "Current State:".to_owned()];
    lines.extend(escalation.current_state.iter().map(|line| format!("  {line}")));
    lines.push(format!("Recovery Attempts: {}", escalation.recovery_attempts));
    lines.push(format!("Impact: {}", escalation.impact));
    lines.push("Options:".to_owned());
    for (number, option) in escalation.options.iter().enumerate() {
        lines.push(format!("  {}. {} ({})", number + 1, option.what, option.judgement));
        lines.extend(option.commands.iter().map(|command| format!("       {command}")));
    }
    lines
}

fn as_json(lines: &[Line<'_>], fix: bool, (credentials, sandbox): (&Credentials, Option<&Sandbox>)) -> Value {
    let open = |line: &&Line<'_>| !matches!(line.1, Outcome::Repaired(_)) && line.0.needs_action();
    json!({
        "fix": fix,
        "clean": lines.iter().filter(open).count() == 0,
        "findings": lines.iter().map(finding_json).collect::<Vec<_>>(),
        "credentials": credentials,
        "sandbox": sandbox,
    })
}

fn finding_json((finding, outcome): &Line<'_>) -> Value {
    let (word, details) = match outcome {
        Outcome::Found => ("found", None),
        Outcome::Repaired(details) => ("repaired", Some(*details)),
        Outcome::NotRepaired(reason) => ("not_repaired", Some(*reason)),
    };
    let escalation = match &finding.cure {
        Cure::Escalation(escalation) => json!(escalation),
        Cure::Needless | Cure::Optional(_) | Cure::Repair(_) | Cure::Person => Value::Null,
    };
    json!({
        "kind": finding.kind,
        "severity": finding.severity,
        "run_id": finding.run,
        "lane": finding.lane,
        "agent": finding.agent,
        "where": finding.place,
        "evidence": finding.evidence,
        "remedy": finding.remedy,
        "fixable": finding.repair().is_some(),
        "needs_action": finding.needs_action(),
        "outcome": word,
        "told": details,
        "escalation": escalation,
    })
}
