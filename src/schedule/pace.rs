//! How long agents and worktrees take in this run, as far as is known.

use std::time::Duration;

/// What took how long, so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Pace {
    attempts: Mean,
    openings: Mean,
}

/// The mean of what was added.
#[derive(Debug, Clone, Default)]
struct Mean {
    count: u32,
    together: Duration,
}

/// What a worktree may take to open without anybody minding.
const QUICK: Duration = Duration::from_millis(250);

/// Agents that take so many times as long as opening a worktree are worth opening one for.
const WORTH_IT: u32 = 5;

impl Pace {
    /// An attempt ended.
    pub(super) fn attempt_took(&mut self, time: Duration) {
        self.attempts.add(time);
    }

    /// A lane's worktree was opened.
    pub(super) fn opening_took(&mut self, time: Duration) {
        self.openings.add(time);
    }

    /// Whether making a worktree takes so long that one is made before it is needed, and agents work for so long that there
    /// is time; as long as none has ended, they are taken to.
    pub(super) fn is_worth_making_ahead(&self) -> bool {
        self.openings.value().is_some_and(|opening| opening > QUICK) && !self.worktrees_are_dear()
    }

    /// Whether it is quicker to wait for a lane that is about to give its worktrees back than to make others: making one
    /// takes long, and what agents do with it does not.
    pub(super) fn worktrees_are_dear(&self) -> bool {
        let (attempt, opening) = (self.attempts.value(), self.openings.value());
        attempt.zip(opening).is_some_and(|(attempt, opening)| opening > QUICK && attempt < opening * WORTH_IT)
    }
}

impl Mean {
    fn add(&mut self, time: Duration) {
        self.count = self.count.saturating_add(1);
        self.together = self.together.saturating_add(time);
    }

    fn value(&self) -> Option<Duration> {
        self.together.checked_div(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(attempt: u64, opening: u64) -> Pace {
        let mut pace = Pace::default();
        pace.attempt_took(Duration::from_millis(attempt));
        pace.opening_took(Duration::from_millis(opening));
        pace
    }

    #[test]
    fn a_worktree_is_dear_where_it_takes_long_and_agents_do_not() {
        assert!(!Pace::default().worktrees_are_dear(), "nothing is known yet");
        assert!(pace(50, 1_000).worktrees_are_dear());
        assert!(!pace(50, 100).worktrees_are_dear());
        assert!(!pace(30_000, 1_000).worktrees_are_dear());
    }

    #[test]
    fn a_worktree_is_made_ahead_where_it_takes_long_and_there_is_time() {
        let mut begun = Pace::default();
        assert!(!begun.is_worth_making_ahead(), "nothing is known yet");
        begun.opening_took(Duration::from_millis(1_000));
        assert!(begun.is_worth_making_ahead(), "the first agents are at work");
        assert!(pace(30_000, 1_000).is_worth_making_ahead());
        assert!(!pace(30_000, 100).is_worth_making_ahead());
        assert!(!pace(50, 1_000).is_worth_making_ahead());
    }
}
