//! When a job's processes are asked to end and when they are killed. Pure: the runner carries it out.

use std::time::{Duration, Instant};

use crate::model::ExitCause;

/// What reaches a supervisor from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// Stop gracefully; said a second time: kill.
    Stop,
    /// Kill.
    Kill,
}

/// What is to be done to the whole tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blow {
    /// SIGTERM.
    Terminate,
    /// SIGKILL until nothing is left.
    Kill,
}

/// A job's way from its start to its end.
#[derive(Debug)]
pub(super) struct Course {
    limit: Option<Instant>,
    kill_after: Duration,
    end: Option<End>,
}

#[derive(Debug)]
struct End {
    cause: ExitCause,
    kill_at: Option<Instant>,
    killed: bool,
}

impl Course {
    /// A course that begins now. Limits beyond what the clock can count are none.
    pub(super) fn new(now: Instant, timeout: Option<Duration>, kill_after: Duration) -> Self {
        Self { limit: timeout.and_then(|timeout| now.checked_add(timeout)), kill_after, end: None }
    }

    /// Why the job is being ended, if it is.
    pub(super) fn ending(&self) -> Option<ExitCause> {
        self.end.as_ref().map(|end| end.cause)
    }

    /// Whether the processes had to be killed.
    pub(super) fn killed(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.killed)
    }

    /// The exit code of a job that was ended (SPEC §6): 124 or 143 when it went when asked, 137 when it was killed.
    pub(super) fn code(&self) -> i32 {
        match &self.end {
            Some(end) if end.killed => 137,
            Some(end) if end.cause == ExitCause::TimedOut => 124,
            _ => 143,
        }
    }

    /// Begins the end, because of `cause`.
    pub(super) fn begin(&mut self, cause: ExitCause, now: Instant) -> Blow {
        self.end = Some(End { cause, kill_at: now.checked_add(self.kill_after), killed: false });
        Blow::Terminate
    }

    /// Takes a word from outside.
    pub(super) fn hear(&mut self, word: Word, now: Instant) -> Option<Blow> {
        match (word, &self.end) {
            (Word::Stop, None) => Some(self.begin(ExitCause::Stopped, now)),
            (Word::Kill, None) => {
                self.begin(ExitCause::Stopped, now);
                self.kill()
            }
            // Whatever ends for another reason has not been asked twice.
            (Word::Stop, Some(end)) if end.cause != ExitCause::Stopped => None,
            (Word::Stop | Word::Kill, Some(_)) => self.kill(),
        }
    }

    /// What the time demands.
    pub(super) fn due(&mut self, now: Instant) -> Option<Blow> {
        if self.next()? > now {
            return None;
        }
        match self.end {
            None => Some(self.begin(ExitCause::TimedOut, now)),
            Some(_) => self.kill(),
        }
    }

    /// When [`due`](Self::due) is to be asked next.
    pub(super) fn next(&self) -> Option<Instant> {
        match &self.end {
            None => self.limit,
            Some(end) if end.killed => None,
            Some(end) => end.kill_at,
        }
    }

    fn kill(&mut self) -> Option<Blow> {
        let end = self.end.as_mut()?;
        end.killed = true;
        Some(Blow::Kill)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn course(now: Instant) -> Course {
        Course::new(now, Some(10 * SECOND), 3 * SECOND)
    }

    #[test]
    fn time_asks_first_and_kills_later() {
        let start = Instant::now();
        let mut course = course(start);
        assert_eq!(course.due(start + 9 * SECOND), None);
        assert_eq!(course.due(start + 10 * SECOND), Some(Blow::Terminate));
        assert_eq!((course.ending(), course.code()), (Some(ExitCause::TimedOut), 124));
        assert_eq!(course.due(start + 12 * SECOND), None);
        assert_eq!(course.due(start + 13 * SECOND), Some(Blow::Kill));
        assert_eq!((course.ending(), course.code()), (Some(ExitCause::TimedOut), 137));
    }

    #[test]
    fn a_stop_kills_when_it_is_said_twice() {
        let now = Instant::now();
        let mut course = course(now);
        assert_eq!(course.hear(Word::Stop, now), Some(Blow::Terminate));
        assert_eq!(course.code(), 143);
        assert_eq!(course.hear(Word::Stop, now), Some(Blow::Kill));
        assert_eq!((course.ending(), course.code()), (Some(ExitCause::Stopped), 137));
    }

    #[test]
    fn a_stop_neither_shortens_nor_renames_a_timeout() {
        let start = Instant::now();
        let mut course = course(start);
        course.due(start + 10 * SECOND);
        assert_eq!(course.hear(Word::Stop, start), None);
        assert_eq!(course.hear(Word::Kill, start), Some(Blow::Kill));
        assert_eq!(course.ending(), Some(ExitCause::TimedOut));
    }

    #[test]
    fn a_stopped_job_does_not_time_out_as_well() {
        let start = Instant::now();
        let mut course = course(start);
        course.hear(Word::Stop, start + 9 * SECOND);
        assert_eq!(course.due(start + 10 * SECOND), None);
        assert_eq!(course.ending(), Some(ExitCause::Stopped));
    }

    #[test]
    fn limits_that_no_clock_can_count_are_none() {
        let mut course = Course::new(Instant::now(), Some(Duration::MAX), Duration::MAX);
        assert_eq!(course.next(), None);
        course.hear(Word::Stop, Instant::now());
        assert_eq!(course.next(), None);
    }
}
