use std::path::{Path, PathBuf};

use lanewright_model::{JobId, JobRole, LaneId, ProcessId, RunId};

use super::super::facts::*;
use super::super::finding::Kind;
use super::*;

fn healthy() -> RunFacts {
    RunFacts {
        run: RunId::new("r1").unwrap(),
        log_path: "/s/r1.jsonl".into(),
        directory: "/s/r1".into(),
        held: false,
        log: LogSeen::Missing,
        expected: None,
        plan: PlanSeen::default(),
        tasks: Vec::new(),
        statuses: Vec::new(),
        holdings: Vec::new(),
        damaged: Vec::new(),
        jobs: Vec::new(),
        checkpoints: NewestCheckpoints::default(),
        base_missing: None,
        traces: None,
    }
}

fn facts(shared: SharedFacts) -> Facts {
    Facts { runs: Vec::new(), shared: SharedFacts { all_known: true, ..shared } }
}

fn kinds(facts: &Facts) -> Vec<Kind> {
    diagnose(facts).iter().map(|finding| finding.kind).collect()
}

#[test]
fn disk_is_nearly_full_below_5_percent_or_1_gib() {
    let full = |free: u64, all: u64| {
        !kinds(&facts(SharedFacts { disks: vec![("/".into(), free << 20, all << 20)], ..SharedFacts::default() }))
            .is_empty()
    };
    assert!(full(1023, 4096) && full(4_000, 100_000) && full(0, 0));
    assert!(!full(1024, 4096) && !full(5_000, 100_000));
    assert!(!full(u64::MAX >> 20, u64::MAX >> 20), "no disk is too large to be counted");
}

#[test]
fn lock_is_removed_only_from_idle_pool_worktree() {
    let cure = |in_use: Option<bool>, pool: Option<&str>| {
        let lock = IndexTrouble {
            path: "/w/.git/index.lock".into(),
            worktree: "/w".into(),
            pool: pool.map(PathBuf::from),
            in_use,
        };
        let found = diagnose(&facts(SharedFacts { index_locks: vec![lock], ..SharedFacts::default() }));
        found.first().map(|finding| finding.repair().is_some())
    };
    assert_eq!(cure(Some(false), Some("/r")), Some(true));
    assert_eq!(cure(Some(false), None), Some(false), "the user's is named only");
    assert_eq!(cure(None, Some("/r")), Some(false), "nobody knows");
    assert_eq!((cure(Some(true), Some("/r")), cure(Some(true), None)), (None, None));
}

#[test]
fn damaged_claim_is_kept_while_a_run_is_unreadable() {
    let slot = lanewright_git::Slot {
        number: 1,
        path: "/r/slots/01".into(),
        claim: "/r/slots/01.claim".into(),
        holder: Err("half written".to_owned()),
        checkout: None,
        ours: true,
        work: Vec::new(),
    };
    let with = |all_known| {
        let slots = [("/r".into(), vec![slot.clone()])].into();
        let shared = SharedFacts { slots, all_known, ..SharedFacts::default() };
        let facts = Facts { runs: Vec::new(), shared };
        diagnose(&facts).iter().all(|finding| finding.repair().is_some())
    };
    assert!(with(true));
    assert!(!with(false));
}

#[test]
fn run_with_only_checkpoints_is_over_if_they_say_so() {
    let mut run = healthy();
    run.traces = Some(RunTraces { has_directory: true, ..RunTraces::default() });
    let found = diagnose(&Facts { runs: vec![run], shared: SharedFacts::default() });
    assert_eq!(found[0].kind, Kind::LogMissing);
    assert!(!found[0].needs_action(), "no work can be lost");
}

#[test]
fn lost_job_needs_resume_damaged_job_needs_user() {
    let job = JobId { lane: Some(LaneId::new("SL-1").unwrap()), role: JobRole::Tests, number: 1 };
    let mut run = healthy();
    let lost = Ok(Observation::Lost(ProcessId { pid: 7, started: 1 }));
    run.jobs = vec![(job.clone(), "/j".into(), lost), (job, "/k".into(), Err("damaged".to_owned()))];
    let found = jobs(&run);
    assert_eq!(found.iter().map(Finding::needs_action).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn remedy_can_be_pasted_with_any_path() {
    let lock = IndexTrouble {
        path: "/a b/it's/index.lock".into(),
        worktree: "/a b/it's".into(),
        pool: None,
        in_use: Some(false),
    };
    let found = diagnose(&facts(SharedFacts { index_locks: vec![lock], ..SharedFacts::default() }));
    let command = found[0].remedy.split_once(": ").unwrap().1;
    assert_eq!(shlex::split(command).unwrap(), ["rm", "/a b/it's/index.lock"]);
    assert_eq!(Path::new(&found[0].place), Path::new("/a b/it's/index.lock"));
}
