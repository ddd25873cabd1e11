//! Why a resume or a rollback of a run is refused although nothing is damaged.

use lanewright_model::event::LaneStage;
use lanewright_model::text::shell_line;
use lanewright_schedule::LaneEnd;

use crate::at_resume::{ResumeError, check};
use crate::doctor::{Expected, Facts, Finding, Kind, RunFacts, Severity};

/// Why a resume is refused, and why the last one left lanes blocked.
pub(super) fn findings(facts: &RunFacts, expected: &Expected) -> Vec<Finding> {
    let Some(state) = &expected.state else { return Vec::new() };
    let mut found = Vec::new();
    let records = facts.log.certain().unwrap_or_default();
    match check(&facts.run, state, records) {
        Err(refused @ ResumeError::HalfRolledBack { .. }) => found.push(rollback_unfinished(facts, &refused)),
        Err(error @ ResumeError::NoCheckpoint(_)) => found.push(not_begun(facts, expected, &error)),
        _ if expected.done() => return found,
        _ => {}
    }
    found.extend(facts.base_missing.as_ref().map(|commit| {
        let branch = &expected.started.base_branch;
        let evidence = format!("the integration branch is gone; the run last knew it at {commit}");
        let make = shell_line(["git", "branch", branch, commit.as_str()]);
        Finding::new(Kind::BaseMissing, Severity::Error, branch, evidence)
            .needs_user(format!("to create it again: {make}"))
    }));
    found.extend(facts.plan.changed.then(|| {
        let path = &expected.started.plan_path;
        let resume = shell_line(["lanewright", "resume", facts.run.as_str(), "--accept-plan-change"]);
        Finding::at(Kind::PlanChanged, Severity::Warning, path, "it has changed since the run started")
            .needs_user(format!("restore it, or resume with the new one: {resume}"))
    }));
    found.extend(state.blocked().map(|reason| blocked(facts, reason)));
    for (lane, plan) in state.plan().indices().map(|at| (state.lane(at), state.plan().lane(at))) {
        // A lane that only waits for another one is not reported itself.
        if let (Some(LaneEnd::Blocked(reason)), true) = (lane.end(), lane.stage() != LaneStage::Waiting) {
            found.push(blocked(facts, reason).of(&(Some(plan.id.clone()), None)));
        }
    }
    found.into_iter().map(|finding| finding.of_run(&facts.run)).collect()
}

fn rollback_unfinished(facts: &RunFacts, refused: &ResumeError) -> Finding {
    let finish = shell_line(refused.remedy().unwrap_or_default());
    Finding::at(Kind::RollbackUnfinished, Severity::Error, &facts.log_path, refused.to_string())
        .needs_user(format!("to finish it: {finish}"))
}

fn not_begun(facts: &RunFacts, expected: &Expected, error: &ResumeError) -> Finding {
    let start = shell_line(["lanewright", "execute-phase", &expected.started.plan_path.to_string_lossy()]);
    Finding::at(Kind::RunNotBegun, Severity::Note, &facts.log_path, error.to_string())
        .hint(format!("there is nothing to resume; to start the phase: {start}"))
}

/// A blocked lane is not damage; the reason names what has to change before the next resume.
fn blocked(facts: &RunFacts, reason: &str) -> Finding {
    let resume = shell_line(["lanewright", "resume", facts.run.as_str()]);
    Finding::at(Kind::LaneBlocked, Severity::Note, &facts.log_path, format!("blocked: {reason}"))
        .hint(format!("change that, then: {resume}"))
}

/// The runs that cannot be taken because a live session works on another run of their phase.
pub(super) fn held_phases(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    for run in facts.runs.iter().filter(|run| !run.held) {
        let Some(started) = run.expected.as_ref().filter(|it| !it.done()).map(|it| &it.started) else { continue };
        let Some(holder) = facts.shared.held_phases.get(&started.phase) else { continue };
        if started.options.branch_suffix.is_empty() && *holder != run.run {
            let stop = shell_line(["lanewright", "stop", holder.as_str()]);
            let evidence = format!("run {holder} of the same phase is held by a live session");
            let finding = Finding::at(Kind::PhaseHeld, Severity::Note, &run.log_path, evidence).of_run(&run.run);
            found.push(finding.hint(format!(
                "until it ends no rollback is possible, and no resume of the same lanes; to stop it: {stop}"
            )));
        }
    }
    found
}
