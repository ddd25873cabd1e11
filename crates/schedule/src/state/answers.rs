//! What people answered at the gates of a lane.

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

/// The answers that still count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answers(BTreeMap<HumanGate, Answer>);

impl Answers {
    pub(crate) fn get(&self, gate: &HumanGate) -> Option<&Answer> {
        self.0.get(gate)
    }

    pub(crate) fn approve(&self, gate: &HumanGate) -> bool {
        self.get(gate).is_some_and(|answer| answer.approved)
    }

    /// What the person said who rejected it.
    pub(crate) fn rejection(&self, gate: &HumanGate) -> Option<&str> {
        self.get(gate).filter(|answer| !answer.approved).map(|answer| answer.message.as_str())
    }

    /// Everything that was said with them.
    pub(crate) fn messages(&self) -> impl Iterator<Item = &String> {
        self.0.values().map(|answer| &answer.message).filter(|message| !message.is_empty())
    }

    pub(crate) fn give(&mut self, gate: HumanGate, approved: bool, message: &str) {
        self.0.insert(gate, Answer { approved, message: message.to_owned() });
    }

    /// Has the question asked again: what it was about is no more.
    pub(crate) fn forget(&mut self, gate: &HumanGate) {
        self.0.remove(gate);
    }

    pub(crate) fn forget_rejections(&mut self) {
        self.0.retain(|_, answer| answer.approved);
    }
}
