//! Gates that failed after agents were merged: which agent fixes what (SPEC §8; seed 003, Recovery Procedure 3).

mod delegate;

use lanewright_model::event::LaneStage;
use lanewright_model::must_haves::tally;
use lanewright_model::text::headline;
use lanewright_model::{Diagnosis, Failure, FailureClass, FailureKind, Lane, LaneIndex, Round, Verdict};

use self::delegate::{Delegate, re_delegation};
use crate::action::Action;
use crate::decide::deciding::{Deciding, move_on};
use crate::state::agent::AgentStep;
use crate::state::gate::FailedGate;
use crate::state::lane::attempts::Attempts;
use crate::state::lane::validation::Search;

/// The failure of a gate that judges what several agents did: it names those whose work is in.
fn joint_failure(what: &str, gate: &FailedGate, attempts: &Attempts, plan: &Lane) -> Failure {
    let mut failure = gate.failure(what);
    let merged: Vec<&str> =
        attempts.integration().agents().into_iter().map(|agent| plan.agents[agent].name.as_str()).collect();
    if merged.len() > 1 {
        failure.message.push_str(&format!(" (merged: {})", merged.join(", ")));
    }
    failure
}

/// The `checkpoint` gate failed on what `agent` and those before it brought.
pub(crate) fn checkpoint_failed(deciding: &mut Deciding, lane: LaneIndex, agent: usize, gate: &FailedGate) {
    let (lane_state, plan) = deciding.lane(lane);
    let failure = joint_failure("the checkpoint gate failed", gate, &lane_state.attempts, plan);
    let fixer = match delegate(gate.diagnosis.as_deref(), FailureClass::Unknown) {
        // Output that no rule reads is given to an agent once, with the log; then a person has to look.
        Delegate::Escalate if lane_state.attempts.was_misunderstood() => None,
        delegate => Some(assignee(&lane_state.attempts, plan, delegate, gate.diagnosis.as_deref(), agent)),
    };
    deciding.note_failure(lane, fixer, None, failure);
}

/// Has the merge that broke the lane's tests searched, where that is wanted and not done; says whether it is.
pub(crate) fn search_first(deciding: &mut Deciding, lane: LaneIndex) -> bool {
    let lane_state = deciding.state.lane(lane);
    let wanted = deciding.state.started().is_some_and(|started| started.options.bisect_merges);
    let search = wanted && lane_state.validation.search == Search::Due && lane_state.merges().len() > 1;
    if search {
        deciding.want(Action::BisectMerges(Some(lane)));
    }
    search
}

/// The lane's tests failed: a failure that their output does not explain is a failure of tests all the same.
pub(crate) fn tests_failed(deciding: &mut Deciding, lane: LaneIndex, what: &str, gate: &FailedGate) {
    let (lane_state, plan) = deciding.lane(lane);
    let mut failure = joint_failure(what, gate, &lane_state.attempts, plan);
    let culprit = match lane_state.validation.search {
        Search::Found(culprit) => Some(culprit),
        Search::Due | Search::FoundNothing => None,
    };
    if let Some(culprit) = culprit {
        failure.message.push_str(&format!("; they first fail with the merge of {}", plan.agents[culprit].name));
    }
    let delegate = delegate(gate.diagnosis.as_deref(), FailureClass::Test);
    let of_table = |last| assignee(&lane_state.attempts, plan, delegate, gate.diagnosis.as_deref(), last);
    send_back_to(deciding, lane, culprit.or(lane_state.last_worker(plan).map(of_table)), failure);
}

/// What the lane must have is not there: the table is the log, and what is missing stands at its end.
pub(crate) fn must_haves_missing(deciding: &mut Deciding, lane: LaneIndex, verdicts: &[Verdict]) {
    let mut rows: Vec<&Verdict> = verdicts.iter().filter(|verdict| verdict.holds.is_some()).collect();
    rows.sort_by_key(|verdict| verdict.holds == Some(false));
    let row = |verdict: &&Verdict| {
        let word = if verdict.holds == Some(true) { "holds" } else { "missing" };
        format!("{word}: {}", verdict.describe())
    };
    let missing: Vec<&str> = rows.iter().filter(|row| row.holds == Some(false)).map(|row| row.about.as_str()).collect();
    let missing = headline(&missing.join(", "), 400);
    let message = format!("the lane lacks what it must have ({}): {missing}", tally(verdicts));
    let log = rows.iter().map(row).collect();
    send_back(deciding, lane, Failure { log, ..Failure::new(FailureKind::Gate, message) });
}

/// Sends a lane back to its last implementation agent; without one no agent can fix it.
pub(crate) fn send_back(deciding: &mut Deciding, lane: LaneIndex, failure: Failure) {
    let (lane_state, plan) = deciding.lane(lane);
    let assignee = lane_state.last_worker(plan);
    send_back_to(deciding, lane, assignee, failure);
}

fn send_back_to(deciding: &mut Deciding, lane: LaneIndex, assignee: Option<usize>, failure: Failure) {
    deciding.note_failure(lane, assignee, None, failure);
    if assignee.is_some() {
        move_on(deciding, lane, LaneStage::Implementation);
    }
}

fn delegate(diagnosis: Option<&Diagnosis>, otherwise: FailureClass) -> Delegate {
    match diagnosis {
        Some(diagnosis) if diagnosis.class != FailureClass::Unknown => re_delegation(diagnosis.class, diagnosis.count),
        _ => re_delegation(otherwise, 0),
    }
}

/// Which agent of the implementation round fixes it; `otherwise` where the one that the table names is not in the lane, or
/// still at its own work.
fn assignee(
    attempts: &Attempts,
    plan: &Lane,
    delegate: Delegate,
    diagnosis: Option<&Diagnosis>,
    otherwise: usize,
) -> usize {
    let found = match delegate {
        Delegate::LastToTouchElse(name) => {
            diagnosis.and_then(|diagnosis| last_to_touch(attempts, diagnosis)).or_else(|| called(plan, name))
        }
        Delegate::Named(name) => called(plan, name),
        Delegate::SameAgent | Delegate::Escalate => None,
    };
    let free = |agent: &usize| matches!(attempts.agents()[*agent].step, AgentStep::Done | AgentStep::Gating(_));
    found.filter(free).unwrap_or(otherwise)
}

/// The agent that was merged last of those that changed a file of the findings.
fn last_to_touch(attempts: &Attempts, diagnosis: &Diagnosis) -> Option<usize> {
    let touched = |agent: &&usize| {
        let changed = &attempts.agents()[**agent].changed;
        diagnosis.findings.iter().any(|finding| changed.iter().any(|path| finding.may_name(path)))
    };
    attempts.integration().agents().iter().rev().find(touched).copied()
}

/// The implementation agent of that name, or whose name begins with that word: `test`, `test-writer`.
fn called(plan: &Lane, name: &str) -> Option<usize> {
    let exact = |agent: &usize| plan.agents[*agent].name.as_str() == name;
    let first_word = |agent: &usize| plan.agents[*agent].name.as_str().split(['-', '_', '.']).next() == Some(name);
    plan.round(Round::Implementation).find(exact).or_else(|| plan.round(Round::Implementation).find(first_word))
}

#[cfg(test)]
mod tests;
