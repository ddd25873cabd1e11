//! Which phase an agent's work is in, and which moves the log does not have yet.

use std::collections::VecDeque;

use lanewright_model::AgentPhase;

/// The phase of an agent's work. Every change of it goes along an arrow of [`AgentPhase::may_become`], or begins new work,
/// and is kept until it is on record.
#[derive(Debug, Clone, Default)]
pub struct PhaseTracker {
    now: AgentPhase,
    /// Oldest first.
    unrecorded: VecDeque<(AgentPhase, AgentPhase)>,
}

impl PhaseTracker {
    pub fn now(&self) -> AgentPhase {
        self.now
    }

    /// What is to be recorded, oldest first.
    pub(crate) fn unrecorded(&self) -> impl Iterator<Item = (AgentPhase, AgentPhase)> {
        self.unrecorded.iter().copied()
    }

    pub(crate) fn is_recorded(&self) -> bool {
        self.unrecorded.is_empty()
    }

    /// # Errors
    /// Where the table has no arrow: both phases.
    pub(crate) fn advance(&mut self, to: AgentPhase) -> Result<(), (AgentPhase, AgentPhase)> {
        if !self.now.may_become(to) {
            return Err((self.now, to));
        }
        self.go(to);
        Ok(())
    }

    /// New work begins, of which `to` is reached already.
    pub(crate) fn begin_again(&mut self, to: AgentPhase) {
        let has_begun = usize::from(self.now == AgentPhase::Initialized);
        to.way().into_iter().skip(has_begun).for_each(|phase| self.go(phase));
    }

    /// What its attempt left is lost, and the attempt is made again.
    pub(crate) fn lose_attempt(&mut self) {
        if self.now == AgentPhase::Validating {
            for phase in [AgentPhase::Failed, AgentPhase::RollingBack, AgentPhase::Executing] {
                self.go(phase);
            }
        }
    }

    /// The log has the move. Others than the oldest that it lacks are of a run elsewhere, and change nothing.
    pub(crate) fn record(&mut self, from: AgentPhase, to: AgentPhase) {
        if self.unrecorded.front() == Some(&(from, to)) {
            self.unrecorded.pop_front();
        }
    }

    fn go(&mut self, to: AgentPhase) {
        self.unrecorded.push_back((self.now, to));
        self.now = to;
    }
}
