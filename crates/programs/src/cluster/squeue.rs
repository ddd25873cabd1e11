//! What `squeue` prints of jobs.

use super::{Ending, Job, OrderName, Sighting, Ticket, slurm_reasons};

/// What is asked of each job; the fields end with `|`. The reason is last, because it may hold anything.
pub(super) const FIELDS: &str = "JobArrayID:|,Name:|,State:|,exit_code:|,NodeList:|,Reason:|";

/// The signal by which Slurm says that a job could not be launched.
const NOT_LAUNCHED: i32 = 53;

/// The jobs in a listing with [`FIELDS`]; `None`: it is none.
pub(super) fn jobs(listing: &str) -> Option<Vec<(OrderName, Job)>> {
    listing.lines().filter(|line| !line.trim().is_empty()).map(job).collect()
}

fn job(line: &str) -> Option<(OrderName, Job)> {
    let mut fields = line.splitn(6, '|').map(str::trim);
    let mut field = || fields.next();
    let (ticket, name, state) = (Ticket(field()?.to_owned()), OrderName(field()?.to_owned()), field()?);
    let (status, node) = (field()?.parse().ok()?, field()?);
    let reason = field()?.trim_end_matches('|');
    Some((name, Job { ticket, sighting: sighting(state, status, node, reason) }))
}

fn sighting(state: &str, status: i32, node: &str, reason: &str) -> Sighting {
    let ending = match state {
        "PENDING" => return slurm_reasons::waiting(reason),
        "RUNNING" | "COMPLETING" | "SIGNALING" | "STAGE_OUT" => return Sighting::Running { node: node.to_owned() },
        // Its exit code is none of a command.
        "FAILED" if node.is_empty() => slurm_reasons::never_ran(reason),
        "COMPLETED" | "FAILED" => ended(status, reason),
        "OUT_OF_MEMORY" => Ending::OutOfMemory,
        "TIMEOUT" | "DEADLINE" => Ending::TimeLimit,
        "PREEMPTED" => Ending::Preempted,
        "NODE_FAIL" => Ending::NodeLost,
        "CANCELLED" | "REVOKED" => Ending::Cancelled,
        "BOOT_FAIL" | "LAUNCH_FAILED" => Ending::NeverStarted(reason.to_owned()),
        // Configuring, suspended, requeued: nothing has ended.
        other => return Sighting::Waiting(other.to_owned()),
    };
    Sighting::Over(ending)
}

/// `status` is what `wait(2)` returns: the exit code in its second byte, the signal in the first.
fn ended(status: i32, reason: &str) -> Ending {
    match status & 0x7f {
        0 => Ending::Exited(status >> 8),
        NOT_LAUNCHED => Ending::NeverStarted(reason.to_owned()),
        signal => Ending::Exited(128 + signal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cause;

    fn seen(line: &str) -> Sighting {
        jobs(line).unwrap().remove(0).1.sighting
    }

    /// Printed by Slurm 22.05.8.
    const RECORDED: &str = "12_1|lw-arr|COMPLETED|0|n2|None|\n1|lw-aaa|FAILED|768|n1|NonZeroExitCode|\n\
                            13|lw-held|PENDING|0||JobHeldUser|\n8|lw-sleep|RUNNING|0|n1|None|\n";

    #[test]
    fn a_listing_is_read_job_by_job() {
        let jobs = jobs(RECORDED).unwrap();
        let shown: Vec<_> = jobs.iter().map(|(name, job)| (name.0.as_str(), job.ticket.0.as_str())).collect();
        assert_eq!(shown, [("lw-arr", "12_1"), ("lw-aaa", "1"), ("lw-held", "13"), ("lw-sleep", "8")]);
        let sightings: Vec<_> = jobs.into_iter().map(|(_, job)| job.sighting).collect();
        assert_eq!(
            sightings,
            [
                Sighting::Over(Ending::Exited(0)),
                Sighting::Over(Ending::Exited(3)),
                Sighting::Stuck(Cause {
                    said: "it is held (JobHeldUser)".into(),
                    remedy: "release it (scontrol release JOB), and remove `--hold` from `arguments`".into(),
                }),
                Sighting::Running { node: "n1".into() },
            ]
        );
        assert_eq!(super::jobs(""), Some(vec![]));
        assert_eq!(super::jobs("Usage: squeue"), None);
    }

    #[test]
    fn every_squeue_state_has_its_ending() {
        for (state, ending) in [
            ("FAILED|32512|n1|NonZeroExitCode|", Ending::Exited(127)),
            ("FAILED|9|n2|JobLaunchFailure|", Ending::Exited(137)),
            ("FAILED|4021|n1|JobLaunchFailure|", Ending::NeverStarted("JobLaunchFailure".into())),
            ("OUT_OF_MEMORY|9|n1|OutOfMemory|", Ending::OutOfMemory),
            ("TIMEOUT|15|n1|TimeLimit|", Ending::TimeLimit),
            ("PREEMPTED|15|n1|None|", Ending::Preempted),
            ("NODE_FAIL|1|n1|NodeDown|", Ending::NodeLost),
            ("CANCELLED|0||JobHeldUser|", Ending::Cancelled),
            ("FAILED|1||SystemFailure|", Ending::NeverStarted("SystemFailure".into())),
            ("FAILED|1|n1|NonZeroExitCode|", Ending::Exited(129)),
            ("BOOT_FAIL|0|n1|NodeDown|", Ending::NeverStarted("NodeDown".into())),
        ] {
            assert_eq!(seen(&format!("1|lw-a|{state}")), Sighting::Over(ending), "{state}");
        }
        // Slurm 22.05.8, of a job whose submission it refused.
        let refused = seen("6|lw-a|FAILED|1||BadConstraints|");
        assert!(matches!(&refused, Sighting::Over(Ending::Impossible(_))), "{refused:?}");
        assert_eq!(seen("1|lw-a|REQUEUED|0||BeginTime|"), Sighting::Waiting("REQUEUED".into()));
        let odd = seen("1|lw-a|PENDING|0||ReqNodeNotAvail, Reserved | for maintenance|");
        assert!(odd.waits_for().unwrap().ends_with(" (ReqNodeNotAvail, Reserved | for maintenance)"), "{odd:?}");
    }
}
