//! What the user is asked to approve, and answers that only a resume acts on.

use lanewright_model::cells::clean;
use lanewright_model::text::listed;
use lanewright_model::{AgentName, Approval, HumanGate};

use crate::history::{AnswerView, LaneHistory, LaneState, RunHistory};

/// How many files a question names.
const NAMED: usize = 5;

/// What a lane asks the user, if it does.
pub fn open_gate(lane: &LaneHistory) -> Option<HumanGate> {
    match lane.state {
        LaneState::NeedsApproval(gate) => Some(gate.into()),
        LaneState::NeedsPerson => lane.asking.first().map(|(_, task)| HumanGate::Task(task.clone())),
        _ => None,
    }
}

/// What is to be approved, where that is known: `: 3 files changed, +12 -4`, `: set API_KEY (Dashboard)`.
pub(crate) fn subject_of(lane: &LaneHistory, gate: Approval) -> String {
    let subject = match gate {
        Approval::Setup => Some(clean(&lane.setup_to_do().join("; "))).filter(|to_do| !to_do.is_empty()),
        Approval::Plan => None,
        Approval::Changes => lane.changes.map(|changes| {
            let protected = listed(&lane.protected, NAMED);
            if protected.is_empty() {
                changes.to_string()
            } else {
                format!("{changes}, protected: {}", clean(&protected))
            }
        }),
    };
    subject.map(|subject| format!(": {subject}")).unwrap_or_default()
}

/// `, at commit 1a2b3c4d5e`: the head whose changes are to be approved.
pub(crate) fn commit_of(lane: &LaneHistory, gate: Approval) -> String {
    let head = lane.workplace.head.as_ref().filter(|_| gate == Approval::Changes);
    head.map(|head| format!(", at commit {}", head.short())).unwrap_or_default()
}

pub(crate) fn answer_word(approved: bool) -> &'static str {
    if approved { "approved" } else { "rejected" }
}

/// The last answer to a lane that does not move, if nothing came of it yet.
fn answer_without_effect<'h>(history: &RunHistory, lane: &'h LaneHistory) -> Option<&'h AnswerView> {
    if lane.state != LaneState::Stopped {
        return None;
    }
    let ended = history.run.finished;
    // The run may have been resumed for other lanes since: then the lane stands where it was approved.
    let (_, _, moved) = lane.transitions.last()?;
    let is_approval = |answer: &AnswerView| matches!(answer.gate, HumanGate::Approval(_)) && answer.at >= *moved;
    lane.answers.last().filter(|answer| ended.is_some_and(|ended| answer.at >= ended) || is_approval(answer))
}

/// The candidate with which a resume builds a lane that does not move.
fn pick_without_effect(lane: &LaneHistory) -> Option<AgentName> {
    lane.replacement().filter(|_| lane.state == LaneState::Stopped)
}

/// The word for the lane's state: one that was answered, or whose candidate was picked, and that waits for a resume is not
/// merely stopped.
pub fn word(history: &RunHistory, lane: &LaneHistory) -> &'static str {
    if pick_without_effect(lane).is_some() {
        return "picked";
    }
    answer_without_effect(history, lane).map_or_else(|| lane.state.word(), answered)
}

/// What became of a lane that waits for a resume only.
fn answered(answer: &AnswerView) -> &'static str {
    match (&answer.gate, answer.approved) {
        (HumanGate::Approval(_), true) => "approved",
        (HumanGate::Task(_), true) => "answered",
        (_, false) => "rejected",
    }
}

/// What was picked or answered, and what a resume does with it; a pick undoes an answer.
pub(crate) fn effect_of_resume(history: &RunHistory, lane: &LaneHistory) -> Option<String> {
    let picked = pick_without_effect(lane).map(|agent| format!("{agent} picked, resume to build the lane with it"));
    picked.or_else(|| answer_without_effect(history, lane).map(|answer| effect_of_answer(answer).to_owned()))
}

fn effect_of_answer(answer: &AnswerView) -> &'static str {
    match (&answer.gate, answer.approved) {
        (HumanGate::Approval(Approval::Changes), true) => "approved, resume to merge",
        (HumanGate::Approval(Approval::Setup), true) => "setup approved, resume to start",
        (HumanGate::Approval(Approval::Setup), false) => "setup rejected, resume to end the lane as blocked",
        (HumanGate::Approval(Approval::Plan), true) => "plan approved, resume to implement it",
        (HumanGate::Task(_), true) => "answered, resume to continue",
        (_, false) => "rejected, resume to rework it",
    }
}
