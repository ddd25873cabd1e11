//! What the world says of jobs that the run log takes for running, and what follows: one pure table.

use crate::model::{JobId, ProcessId};
use crate::process::Observation;

/// What becomes of a job that was running when the last Lanekeeper ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It was never begun: it is begun now.
    Begin,
    /// It runs: it is waited for, undisturbed.
    Attach(Option<ProcessId>),
    /// It ended meanwhile: its exit is collected.
    Collect,
    /// It died with the machine: what it left is kept, and it is begun again under another name.
    Replace,
}

/// The verdict over a job, as [`crate::process::observe`] saw it.
pub fn verdict(seen: &Observation) -> Verdict {
    match seen {
        Observation::Absent | Observation::Planned => Verdict::Begin,
        Observation::Starting => Verdict::Attach(None),
        Observation::Running(supervisor) => Verdict::Attach(Some(*supervisor)),
        Observation::Exited(_) => Verdict::Collect,
        Observation::Lost(_) => Verdict::Replace,
    }
}

/// One line for a person about every job that is taken up again.
pub fn describe(job: &JobId, verdict: Verdict) -> String {
    match verdict {
        Verdict::Begin => format!("{job} had not begun"),
        Verdict::Attach(Some(supervisor)) => {
            format!("{job} still runs (supervisor {}); it is not disturbed", supervisor.pid)
        }
        Verdict::Attach(None) => format!("{job} is about to run; it is not disturbed"),
        Verdict::Collect => format!("{job} ended meanwhile; its exit is collected"),
        Verdict::Replace => format!("{job} died without a word; what it left is kept and it is done again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ExitCause, JobExit, Timestamp};

    #[test]
    fn what_began_is_never_begun_again() {
        let supervisor = ProcessId { pid: 7, started: 9 };
        let moment = Timestamp::from_unix_millis(0);
        let exit = JobExit {
            cause: ExitCause::Exited,
            exit_code: 0,
            command: String::new(),
            started_at: moment,
            finished_at: moment,
            tail: vec![],
            notes: String::new(),
        };
        let table = [
            (Observation::Absent, Verdict::Begin),
            (Observation::Planned, Verdict::Begin),
            (Observation::Starting, Verdict::Attach(None)),
            (Observation::Running(supervisor), Verdict::Attach(Some(supervisor))),
            (Observation::Exited(exit), Verdict::Collect),
            (Observation::Lost(supervisor), Verdict::Replace),
        ];
        for (seen, expected) in table {
            assert_eq!(verdict(&seen), expected, "{seen:?}");
        }
    }
}
