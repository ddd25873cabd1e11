//! Why Slurm does not start a job, in words, and what to change: the only place that knows its reasons.
//!
//! They are those of Slurm 22.05 and its documentation (squeue(1), "JOB REASON CODES", and "Resource Limits"). Other
//! versions have more: an unknown one is shown as Slurm names it.

use super::{Cause, Ending, Sighting};

/// What is to be expected of a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// It goes away by itself: other jobs end, time passes.
    Passes,
    /// It may stay until somebody changes the job, its limits or the cluster.
    Lasts,
}

use Expect::{Lasts, Passes};

const NODES: &str = "see which nodes, and why: sinfo -R; ask the administrators for them, or change `partition` or \
                     `arguments` of the executor";
const SIZE: &str = "lower `cpus`, `memory_mib` or `gpus` of the lane, or set another `partition`; see what nodes have: \
                    sinfo -o '%R %c %m %G'";
const FEATURES: &str = "correct `arguments` of the executor (--constraint and the like; see what nodes have: sinfo -o \
                        '%R %f %c %m %G'), or lower `cpus`, `memory_mib` or `gpus` of the lane";
const TIME: &str = "lower `job_time` of the lane (8h if it has none), or set another `partition`; see their limits: \
                    sinfo -o '%R %l'";
const PARTITION: &str = "set another `partition` of the executor, or ask the administrators";
const NODE_COUNT: &str = "correct `--nodes` in `arguments` of the executor, or set another `partition`; see: scontrol \
                          show partition";
const ACCOUNT: &str = "set `account` of the executor to one that you may use there";
const QOS: &str = "set `qos` of the executor to one that you may use there";
const JOB_LIMIT: &str = "lower `cpus`, `memory_mib`, `gpus` or `job_time` of the lane, or set another `account` or `qos`; \
                         see the limits: sacctmgr show assoc, sacctmgr show qos";
const BUDGET: &str = "ask the administrators for more, or set another `account` or `qos`";
const RESERVATION: &str = "correct `--reservation` in `arguments` of the executor; see: scontrol show reservation";
const LICENSES: &str = "correct `--licenses` in `arguments` of the executor; see: scontrol show licenses";
const GPUS: &str = "correct `gpus` of the lane, or `--gres` in `arguments` of the executor; see what nodes have: sinfo \
                    -o '%R %G'";

/// Reasons, what they mean, and what to do about those that last. `*` stands for anything; the first that fits counts.
const REASONS: &[(&str, Expect, &str, &str)] = &[
    ("Resources", Passes, "no node has enough free", ""),
    ("Priority", Passes, "other jobs come first", ""),
    ("None", Passes, "Slurm has not looked at it yet", ""),
    ("WaitingForScheduling", Passes, "Slurm has not looked at it yet", ""),
    ("SchedDefer", Passes, "Slurm has not looked at it yet", ""),
    ("Dependency", Passes, "another job comes first that it depends on", ""),
    ("BeginTime", Passes, "its earliest start has not come", ""),
    ("Licenses", Passes, "no license is free", ""),
    ("Reservation", Passes, "its reservation has not begun", ""),
    ("Cleaning", Passes, "Slurm cleans up after its last start", ""),
    ("Prolog", Passes, "the cluster's prolog runs", ""),
    ("BurstBuffer*", Passes, "its burst buffer is not ready", ""),
    ("BadConstraints", Lasts, "no node of the cluster has what it asks for", FEATURES),
    ("PartitionConfig", Lasts, "no node of the partition has what it asks for", SIZE),
    ("MaxMemPerLimit", Lasts, "it asks for more memory than the partition allows", SIZE),
    ("PartitionTimeLimit", Lasts, "it asks for more time than the partition allows", TIME),
    ("PartitionNodeLimit", Lasts, "the partition does not allow as many or as few nodes, or they are down", NODE_COUNT),
    ("PartitionDown", Lasts, "the partition is down", PARTITION),
    ("PartitionInactive", Lasts, "the partition is inactive", PARTITION),
    ("ReqNodeNotAvail*", Lasts, "a node that it needs is down, drained, reserved or in use", NODES),
    ("Nodes required for job are *", Lasts, "the nodes that it needs are down, drained or reserved", NODES),
    ("NodeDown", Lasts, "a node that it needs is down", NODES),
    ("FrontEndDown", Lasts, "the front end of the cluster is down", NODES),
    ("JobHeldUser", Lasts, "it is held", "release it (scontrol release JOB), and remove `--hold` from `arguments`"),
    ("JobHeldAdmin", Lasts, "an administrator holds it", "ask the administrators"),
    ("JobHoldMaxRequeue", Lasts, "it is held, after too many failed starts", "ask the administrators"),
    ("DependencyNeverSatisfied", Lasts, "a job failed that it depends on", "correct `--dependency` in `arguments`"),
    ("ReservationDeleted", Lasts, "its reservation was deleted", RESERVATION),
    ("InvalidAccount", Lasts, "the account is not valid", ACCOUNT),
    ("AccountNotAllowed", Lasts, "the account may not use the partition", ACCOUNT),
    ("Job's account *", Lasts, "the account may not use the partition", ACCOUNT),
    ("InvalidQOS", Lasts, "the QOS is not valid", QOS),
    ("QOSNotAllowed", Lasts, "the QOS may not be used in the partition", QOS),
    ("Job's QOS *", Lasts, "the QOS may not be used in the partition", QOS),
    ("QOSUsageThreshold", Lasts, "the account has used too much for the QOS", BUDGET),
    (
        "QOSMin*",
        Lasts,
        "it asks for less than the QOS demands",
        "raise `cpus`, `memory_mib` or `gpus`, or set another `qos`",
    ),
    // Before the limits of one job: their names contain these.
    ("*Grp*RunMinutes*", Passes, "your jobs together ask for too much time; it starts when others end", ""),
    ("Assoc*Grp*Minutes*", Lasts, "the account has used up its computing time", BUDGET),
    ("QOS*Grp*Minutes*", Lasts, "the QOS has used up its computing time", BUDGET),
    ("AssocGrpWall*", Lasts, "the account has used up its computing time", BUDGET),
    ("QOSGrpWall*", Lasts, "the QOS has used up its computing time", BUDGET),
    ("AssociationTimeLimit", Lasts, "the account has used up its computing time", BUDGET),
    ("QOSTimeLimit", Lasts, "the QOS has used up its computing time", BUDGET),
    ("AssocMax*PerJob*", Lasts, "it asks for more than one job of the account may have", JOB_LIMIT),
    ("AssocMax*PerNode*", Lasts, "it asks for more than one job of the account may have on a node", JOB_LIMIT),
    ("QOSMax*PerJob*", Lasts, "it asks for more than one job of the QOS may have", JOB_LIMIT),
    ("QOSMax*PerNode*", Lasts, "it asks for more than one job of the QOS may have on a node", JOB_LIMIT),
    ("Assoc*Job*Limit", Passes, "the account has as many jobs as it may; it starts when others end", ""),
    ("QOS*Job*Limit", Passes, "the QOS has as many jobs as it may; it starts when others end", ""),
    ("Assoc*", Passes, "the account's jobs together use what they may; it starts when others end", ""),
    ("QOS*", Passes, "the jobs of the QOS together use what they may; it starts when others end", ""),
];

/// What `sbatch` prints where it refuses a job that can never run, and what to do about it.
const REFUSALS: &[(&str, &str)] = &[
    ("Invalid feature specification", FEATURES),
    ("node configuration is not available", FEATURES),
    ("generic resource (gres) specification", GPUS),
    ("time limit is invalid", TIME),
    ("Invalid license specification", LICENSES),
    ("Invalid node name specified", "correct the nodes that `arguments` of the executor name; see: sinfo -N"),
    ("Requested reservation is invalid", RESERVATION),
    ("Required partition not available", PARTITION),
    ("Node count specification invalid", NODE_COUNT),
    ("Invalid account", ACCOUNT),
    ("nvalid qos", QOS),
];

/// What to do about a refusal by `sbatch`.
pub(super) fn refusal(said: &str) -> Option<&'static str> {
    let limits = said.split(|c: char| !c.is_ascii_alphanumeric());
    let mut limits = limits.filter(|word| ["Assoc", "QOS"].iter().any(|kind| word.starts_with(kind)));
    let limit = limits.find_map(|limit| entry(limit).filter(|(_, expect, ..)| *expect == Lasts));
    let refused = REFUSALS.iter().find(|(words, _)| said.contains(words)).map(|(_, remedy)| *remedy);
    refused.or(limit.map(|(.., remedy)| *remedy))
}

/// A job that waits for `reason`.
pub(super) fn waiting(reason: &str) -> Sighting {
    match meaning(reason) {
        Some((Lasts, cause)) => Sighting::Stuck(cause),
        Some((Passes, cause)) => Sighting::Waiting(cause.said),
        None => Sighting::Waiting(reason.to_owned()),
    }
}

/// The end of a job that never had a node.
pub(super) fn never_ran(reason: &str) -> Ending {
    match meaning(reason) {
        Some((Lasts, cause)) => Ending::Impossible(cause),
        _ => Ending::NeverStarted(reason.to_owned()),
    }
}

fn meaning(reason: &str) -> Option<(Expect, Cause)> {
    let (_, expect, words, remedy) = entry(reason)?;
    Some((*expect, Cause { said: format!("{words} ({reason})"), remedy: (*remedy).to_owned() }))
}

fn entry(reason: &str) -> Option<&'static (&'static str, Expect, &'static str, &'static str)> {
    REASONS.iter().find(|(pattern, ..)| fits(pattern, reason))
}

/// Whether `text` is `pattern`, in which `*` stands for anything.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text
            .strip_prefix(start)
            .is_some_and(|text| (0..=text.len()).any(|at| text.get(at..).is_some_and(|left| fits(rest, left)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_lasts(reason: &str, words: &str, remedy: &str) {
        match waiting(reason) {
            Sighting::Stuck(cause) => {
                assert_eq!(cause.said, format!("{words} ({reason})"));
                assert!(cause.remedy.contains(remedy), "{reason}: {}", cause.remedy);
            }
            other => panic!("{reason}: {other:?}"),
        }
    }

    #[test]
    fn every_reason_is_reached_by_its_own_pattern() {
        for (pattern, expect, words, remedy) in REASONS {
            let reason = pattern.replace('*', "Xyz");
            let (found, cause) = meaning(&reason).unwrap();
            assert_eq!((found, cause.said), (*expect, format!("{words} ({reason})")), "{pattern}");
            assert_eq!(remedy.is_empty(), *expect == Passes, "{pattern}");
        }
    }

    /// The reasons that Slurm 22.05.8 gave for jobs that it could not start.
    #[test]
    fn recorded_reasons_name_the_key_to_change() {
        assert_lasts("BadConstraints", "no node of the cluster has what it asks for", "--constraint");
        assert_lasts("PartitionConfig", "no node of the partition has what it asks for", "`cpus`");
        assert_lasts("MaxMemPerLimit", "it asks for more memory than the partition allows", "`memory_mib`");
        assert_lasts("PartitionTimeLimit", "it asks for more time than the partition allows", "`job_time`");
        let nodes = "the partition does not allow as many or as few nodes, or they are down";
        assert_lasts("PartitionNodeLimit", nodes, "`--nodes`");
        assert_lasts("PartitionDown", "the partition is down", "`partition`");
        let drained = "a node that it needs is down, drained, reserved or in use";
        assert_lasts("ReqNodeNotAvail, UnavailableNodes:n1", drained, "sinfo -R");
        let all = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions";
        assert_lasts(all, "the nodes that it needs are down, drained or reserved", "sinfo -R");
        assert_lasts("JobHeldUser", "it is held", "scontrol release");
        let unknown = "Job's account not known, so it can't use this partition (lanes allows foo)";
        assert_lasts(unknown, "the account may not use the partition", "`account`");
    }

    /// Named as in Slurm's documentation: this needs accounting.
    #[test]
    fn per_job_limits_last_and_shared_limits_pass() {
        for reason in ["AssocMaxCpuPerJobLimit", "AssocMaxWallDurationPerJobLimit", "AssocMaxMemPerJob"] {
            assert_lasts(reason, "it asks for more than one job of the account may have", "`job_time`");
        }
        for reason in ["QOSMaxWallDurationPerJobLimit", "QOSMaxNodePerJobLimit", "QOSMaxGRESMinutesPerJob"] {
            assert_lasts(reason, "it asks for more than one job of the QOS may have", "`qos`");
        }
        assert_lasts("QOSMaxCpuPerNode", "it asks for more than one job of the QOS may have on a node", "`qos`");
        assert_lasts("QOSMinCpuNotSatisfied", "it asks for less than the QOS demands", "raise `cpus`");
        assert_lasts("AssocGrpCPUMinutesLimit", "the account has used up its computing time", "`account`");
        assert_lasts("QOSGrpWallLimit", "the QOS has used up its computing time", "`qos`");
        for reason in ["AssocMaxJobsLimit", "QOSMaxJobsPerUserLimit", "AssocGrpJobsLimit", "QOSJobLimit"] {
            assert!(matches!(waiting(reason), Sighting::Waiting(said) if said.contains("as many jobs as it may")));
        }
        for reason in ["AssocGrpCpuLimit", "QOSGrpMemLimit", "QOSMaxCpuPerUserLimit", "AssocGrpCPURunMinutesLimit"] {
            assert!(matches!(waiting(reason), Sighting::Waiting(said) if said.contains("when others end")), "{reason}");
        }
    }

    #[test]
    fn transient_and_unknown_reasons_are_waiting() {
        for reason in ["Resources", "Priority", "Dependency", "BeginTime", "Licenses", "None", "Prolog"] {
            let said = format!(" ({reason})");
            assert!(matches!(waiting(reason), Sighting::Waiting(words) if words.ends_with(&said)), "{reason}");
        }
        assert_eq!(waiting("SomethingNew, more"), Sighting::Waiting("SomethingNew, more".into()));
        assert_eq!(waiting("ResourcesXyz"), Sighting::Waiting("ResourcesXyz".into()));
    }

    #[test]
    fn only_a_lasting_reason_makes_an_end_final() {
        assert!(matches!(never_ran("BadConstraints"), Ending::Impossible(_)));
        assert!(matches!(never_ran("InvalidQOS"), Ending::Impossible(_)));
        for reason in ["SystemFailure", "JobLaunchFailure", "Resources"] {
            assert_eq!(never_ran(reason), Ending::NeverStarted(reason.into()));
        }
    }

    #[test]
    fn refusals_recorded_from_sbatch_have_a_remedy() {
        for (said, remedy) in [
            ("allocation failure: Invalid feature specification", "--constraint"),
            (
                "sbatch: error: Memory specification can not be satisfied\nsbatch: error: Batch job submission failed: \
              Requested node configuration is not available",
                "`memory_mib`",
            ),
            ("sbatch: error: Invalid generic resource (gres) specification", "`gpus`"),
            ("sbatch: error: Batch job submission failed: Invalid license specification", "`--licenses`"),
            ("sbatch: error: Batch job submission failed: Invalid node name specified", "sinfo -N"),
            ("allocation failure: Required partition not available (inactive or drain)", "`partition`"),
            ("sbatch: error: Batch job submission failed: Requested reservation is invalid", "`--reservation`"),
            (
                "sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or exceeds some \
              limit)",
                "`job_time`",
            ),
        ] {
            assert!(refusal(said).is_some_and(|it| it.contains(remedy)), "{said}");
        }
        let general = "sbatch: error: Job violates accounting/QOS policy";
        assert_eq!(refusal(&format!("sbatch: error: QOSMaxWallDurationPerJobLimit\n{general}")), Some(JOB_LIMIT));
        assert_eq!([refusal("sbatch: error: something else"), refusal(general)], [None, None]);
    }
}
