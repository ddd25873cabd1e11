//! The plan and the small files of lanes and agents.

use std::collections::BTreeSet;
use std::sync::Arc;

use lanewright_model::event::{Event, LaneStage, Record};
use lanewright_model::text::shell_line;
use lanewright_model::{AgentPhase, LaneId, Plan, Transition};
use lanewright_schedule::Fault;
use lanewright_store::LaneDirectory;
use serde_json::Value;

use crate::doctor::escalation;
use crate::doctor::{Expected, Finding, Kind, Repair, RunFacts, Severity, StatusSeen, TaskSeen, differing};

pub(super) fn plan(facts: &RunFacts, expected: &Expected) -> Option<Finding> {
    let seen = &facts.plan;
    let (kind, evidence) = match (&seen.pinned, &seen.contradiction) {
        (None, _) => (Kind::PlanMissing, "the plan that the run pinned is gone".to_owned()),
        (Some(Err(reason)), _) => (Kind::PlanUnreadable, reason.clone()),
        (Some(Ok(_)), Some((line, fault @ (Fault::UnknownLane(_) | Fault::UnknownAgent(..))))) => {
            (Kind::PlanMismatch, format!("line {line} of the run log does not fit it: {fault}"))
        }
        (Some(Ok(_)), Some((line, fault))) => return Some(contradiction(facts, expected, *line, fault)),
        (Some(Ok(_)), None) if seen.edited => {
            (Kind::PlanMismatch, "another program changed it: its SHA-256 is not the one in the run log".to_owned())
        }
        (Some(Ok(_)), None) => return None,
    };
    let finding = Finding::at(kind, Severity::Error, &seen.path, evidence).of_run(&facts.run);
    let records = facts.log.certain().filter(|_| !seen.is_source);
    let retried = retried_differently(records.unwrap_or_default());
    let repair = |plan: &Arc<Plan>| Repair::WritePlan(seen.path.clone(), plan.clone(), retried.clone());
    Some(match &seen.source {
        Some(source) if expected.done() => finding.needed_for_rollback(repair(source)),
        Some(source) => finding.repaired_by(repair(source)),
        None if expected.done() => {
            let undo = shell_line(["git", "revert", "-m", "1", "MERGE"]);
            let rollback = shell_line(["lanewright", "rollback", facts.run.as_str(), "--accept-plan-change"]);
            finding.hint(format!(
                "the run is complete; to roll it back with the plan file as it is now: {rollback}, or by hand: {undo}"
            ))
        }
        None => {
            let why = match &seen.unfit {
                Some(fault) => format!("the run log does not fit its source: {fault}"),
                None => "its source has changed or is gone".to_owned(),
            };
            let issue = format!("{} cannot be used, and {why}", seen.path.display());
            finding.escalated(escalation::unusable_plan(facts, expected, issue))
        }
    })
}

/// The lanes of which a retry replaced something that only the pinned plan has.
fn retried_differently(records: &[Record]) -> Vec<LaneId> {
    let replaces = |record: &Record| match &record.event {
        Event::RunResumed { pinned_sha256: Some(_), retried, .. } => retried.clone(),
        _ => Vec::new(),
    };
    let lanes: BTreeSet<LaneId> = records.iter().flat_map(replaces).collect();
    lanes.into_iter().collect()
}

fn contradiction(facts: &RunFacts, expected: &Expected, line: u64, fault: &Fault) -> Finding {
    let issue = format!("line {line} does not follow from those before it: {fault}");
    if expected.done() {
        let finding = Finding::at(Kind::LogContradiction, Severity::Note, &facts.log_path, issue).of_run(&facts.run);
        return finding.hint("the run is complete; a rollback of it is refused");
    }
    Finding::at(Kind::LogContradiction, Severity::Error, &facts.log_path, issue.clone())
        .of_run(&facts.run)
        .escalated(escalation::contradiction(facts, expected, issue))
}

pub(super) fn task(facts: &RunFacts, expected: &Expected, seen: &TaskSeen) -> Vec<Finding> {
    let root = &expected.started.options.worktree_root;
    let repair = || Repair::WriteTask {
        root: root.clone(),
        lane: LaneDirectory::new(root, &facts.run, &seen.lane),
        task: Box::new(seen.expected.clone()),
    };
    let finding = |(kind, severity, evidence): (Kind, Severity, String)| {
        let finding = Finding::at(kind, severity, &seen.path, evidence).of_run(&facts.run);
        let finding = finding.of(&(Some(seen.lane.clone()), None));
        if seen.late { finding.repaired_by_resume(repair()) } else { finding.repaired_by(repair()) }
    };
    task_faults(seen).into_iter().map(finding).collect()
}

fn task_faults(seen: &TaskSeen) -> Vec<(Kind, Severity, String)> {
    let expected = &seen.expected;
    if !seen.exists {
        return vec![(Kind::TaskMissing, Severity::Error, format!("lane {} is at {}", seen.lane, expected.state))];
    }
    let Some(Value::Object(raw)) = &seen.raw else {
        return vec![(Kind::TaskUnreadable, Severity::Error, "it holds no JSON object".to_owned())];
    };
    let mut faults = Vec::new();
    let no_steps = match raw.get("transition_log") {
        None | Some(Value::Null) => true,
        Some(Value::Array(steps)) => steps.is_empty(),
        Some(_) => false,
    };
    if no_steps && !expected.transition_log.is_empty() {
        let steps = expected.transition_log.len();
        faults.push((Kind::TransitionLogMissing, Severity::Error, format!("the run log tells of {steps} steps")));
    }
    let Some(found) = &seen.found else {
        if faults.is_empty() {
            faults.push((
                Kind::TaskUnreadable,
                Severity::Error,
                "a field of it is missing or no such thing".to_owned(),
            ));
        }
        return faults;
    };
    let of_agents = found.agents.iter().filter_map(|(name, agent)| {
        let step = impossible_step(&agent.transition_log, AgentPhase::from_word, AgentPhase::may_record)?;
        Some(format!("agent {name}: {step}"))
    });
    let of_lane = impossible_step(&found.transition_log, LaneStage::from_word, may_step);
    for step in of_lane.into_iter().chain(of_agents) {
        faults.push((Kind::TransitionImpossible, Severity::Error, step));
    }
    if found.session_id != expected.session_id {
        let evidence = format!("it names session {}, the run log {}", found.session_id, expected.session_id);
        faults.push((Kind::SessionMismatch, Severity::Warning, evidence));
    }
    let fields = differing(found, expected);
    if faults.is_empty() && !fields.is_empty() {
        let evidence = format!("it says something else than the run log in: {}", fields.join(", "));
        faults.push((Kind::TaskDisagrees, Severity::Warning, evidence));
    }
    faults
}

/// Whether a lane can go from one stage to another: not past one, and not nowhere.
fn may_step(from: LaneStage, to: LaneStage) -> bool {
    let place = |stage| LaneStage::ALL.iter().position(|known| *known == stage).unwrap_or_default();
    to != from && place(to) <= place(from) + 1
}

/// The first step that cannot be made: out of a state that it does not follow, into an unknown one, or past one.
fn impossible_step<S: Copy>(
    steps: &[Transition],
    read: impl Fn(&str) -> Option<S>,
    may: impl Fn(S, S) -> bool,
) -> Option<String> {
    let mut stands = steps.first().map_or("", |step| step.from.as_str());
    for step in steps {
        let states = read(&step.from).zip(read(&step.to));
        if step.from != stands || !states.is_some_and(|(from, to)| may(from, to)) {
            return Some(format!("from {} to {}, at {stands}", step.from, step.to));
        }
        stands = &step.to;
    }
    None
}

pub(super) fn status(facts: &RunFacts, seen: &StatusSeen) -> Finding {
    let finding = Finding::at(Kind::StatusUnreadable, Severity::Warning, &seen.path, "it holds no JSON object");
    let finding = finding.of_run(&facts.run).of(&(Some(seen.lane.clone()), Some(seen.agent.clone())));
    match seen.open {
        true => {
            let resume = shell_line(["lanewright", "resume", facts.run.as_str()]);
            finding.hint(format!("the agent may be writing it; a resume judges it when the job has ended: {resume}"))
        }
        false => finding.repaired_by(Repair::SetAside(seen.path.clone())),
    }
}
