//! What people answered at the gates of a lane, and said to its agents.

use std::collections::BTreeMap;

use lanewright_model::HumanGate;

/// A person's answer at a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Yes or no.
    pub approved: bool,
    /// What was said.
    pub message: String,
}

/// The answers that still count, and what was said besides.
#[derive(Debug, Clone, Default)]
pub(crate) struct Approvals {
    answers: BTreeMap<HumanGate, Answer>,
    /// What people said when they resumed the run, oldest first.
    remarks: Vec<String>,
}

impl Approvals {
    pub(crate) fn get(&self, gate: &HumanGate) -> Option<&Answer> {
        self.answers.get(gate)
    }

    pub(crate) fn approve(&self, gate: &HumanGate) -> bool {
        self.get(gate).is_some_and(|answer| answer.approved)
    }

    /// The message of a rejection.
    pub(crate) fn rejection(&self, gate: &HumanGate) -> Option<&str> {
        self.get(gate).filter(|answer| !answer.approved).map(|answer| answer.message.as_str())
    }

    /// Everything that was said, with answers and at resumes.
    pub(super) fn remarks(&self) -> Vec<String> {
        let messages = self.answers.values().map(|answer| &answer.message).filter(|message| !message.is_empty());
        messages.chain(&self.remarks).cloned().collect()
    }

    pub(crate) fn remark(&mut self, message: &str) {
        self.remarks.push(message.to_owned());
    }

    pub(crate) fn give(&mut self, gate: HumanGate, approved: bool, message: &str) {
        self.answers.insert(gate, Answer { approved, message: message.to_owned() });
    }

    /// Has the question asked again: what it was about is no more.
    pub(crate) fn forget(&mut self, gate: &HumanGate) {
        self.answers.remove(gate);
    }

    pub(super) fn forget_rejections(&mut self) {
        self.answers.retain(|_, answer| answer.approved);
    }
}
