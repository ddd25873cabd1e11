//! When a job's processes are asked to end and when they are killed. Pure: the runner carries it out. All times are time
//! awake since the job began.

use std::time::Duration;

use lanewright_model::ExitCause;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopRequest {
    Stop,
    Kill,
}

/// The next step for the whole tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Terminate,
    /// SIGKILL until nothing is left.
    Kill,
}

/// How far the end of a job has come: at most its limit passes, then it is asked to end, then it is killed.
#[derive(Debug)]
pub(super) struct Termination {
    limit: Option<Duration>,
    kill_after: Duration,
    end: Option<End>,
}

#[derive(Debug)]
struct End {
    cause: ExitCause,
    kill_at: Option<Duration>,
    killed: bool,
}

impl Termination {
    pub(super) fn new(limit: Option<Duration>, kill_after: Duration) -> Self {
        Self { limit, kill_after, end: None }
    }

    pub(super) fn cause(&self) -> Option<ExitCause> {
        self.end.as_ref().map(|end| end.cause)
    }

    pub(super) fn is_killing(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.killed)
    }

    /// The exit code of a job that was ended (SPEC §6): 124 or 143 when it went when asked, 137 when it was killed.
    pub(super) fn exit_code(&self) -> i32 {
        match &self.end {
            Some(end) if end.killed => 137,
            Some(end) if end.cause == ExitCause::TimedOut => 124,
            _ => 143,
        }
    }

    pub(super) fn begin(&mut self, cause: ExitCause, now: Duration) -> Signal {
        // A time beyond what can be counted never comes.
        self.end = Some(End { cause, kill_at: now.checked_add(self.kill_after), killed: false });
        Signal::Terminate
    }

    pub(super) fn request(&mut self, request: StopRequest, now: Duration) -> Option<Signal> {
        match (request, &self.end) {
            (StopRequest::Stop, None) => Some(self.begin(ExitCause::Stopped, now)),
            (StopRequest::Kill, None) => {
                self.begin(ExitCause::Stopped, now);
                self.kill()
            }
            // Whatever ends for another reason has not been asked twice.
            (StopRequest::Stop, Some(end)) if end.cause != ExitCause::Stopped => None,
            (StopRequest::Stop | StopRequest::Kill, Some(_)) => self.kill(),
        }
    }

    /// What the time demands.
    pub(super) fn due(&mut self, now: Duration) -> Option<Signal> {
        if self.next()? > now {
            return None;
        }
        match self.end {
            None => Some(self.begin(ExitCause::TimedOut, now)),
            Some(_) => self.kill(),
        }
    }

    /// When to call [`due`](Self::due) next.
    pub(super) fn next(&self) -> Option<Duration> {
        match &self.end {
            None => self.limit,
            Some(end) if end.killed => None,
            Some(end) => end.kill_at,
        }
    }

    fn kill(&mut self) -> Option<Signal> {
        let end = self.end.as_mut()?;
        end.killed = true;
        Some(Signal::Kill)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn termination() -> Termination {
        Termination::new(Some(10 * SECOND), 3 * SECOND)
    }

    #[test]
    fn time_asks_first_and_kills_later() {
        let mut termination = termination();
        assert_eq!(termination.due(9 * SECOND), None);
        assert_eq!(termination.due(10 * SECOND), Some(Signal::Terminate));
        assert_eq!((termination.cause(), termination.exit_code()), (Some(ExitCause::TimedOut), 124));
        assert_eq!(termination.due(12 * SECOND), None);
        assert_eq!(termination.due(13 * SECOND), Some(Signal::Kill));
        assert_eq!((termination.cause(), termination.exit_code()), (Some(ExitCause::TimedOut), 137));
    }

    #[test]
    fn a_stop_kills_when_it_is_said_twice() {
        let (mut termination, now) = (termination(), SECOND);
        assert_eq!(termination.request(StopRequest::Stop, now), Some(Signal::Terminate));
        assert_eq!(termination.exit_code(), 143);
        assert_eq!(termination.request(StopRequest::Stop, now), Some(Signal::Kill));
        assert_eq!((termination.cause(), termination.exit_code()), (Some(ExitCause::Stopped), 137));
    }

    #[test]
    fn a_stop_neither_shortens_nor_renames_a_timeout() {
        let mut termination = termination();
        termination.due(10 * SECOND);
        assert_eq!(termination.request(StopRequest::Stop, 10 * SECOND), None);
        assert_eq!(termination.request(StopRequest::Kill, 10 * SECOND), Some(Signal::Kill));
        assert_eq!(termination.cause(), Some(ExitCause::TimedOut));
    }

    #[test]
    fn a_stopped_job_does_not_time_out_as_well() {
        let mut termination = termination();
        termination.request(StopRequest::Stop, 9 * SECOND);
        assert_eq!(termination.due(10 * SECOND), None);
        assert_eq!(termination.cause(), Some(ExitCause::Stopped));
    }

    #[test]
    fn limits_beyond_all_time_never_pass() {
        let mut termination = Termination::new(Some(Duration::MAX), Duration::MAX);
        assert_eq!(termination.due(3600 * SECOND), None);
        termination.request(StopRequest::Stop, SECOND);
        assert_eq!(termination.next(), None);
    }
}
