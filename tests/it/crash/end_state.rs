//! What a run must leave behind, however often it died: exactly what it leaves undisturbed.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use lanewright_model::event::{Event, Record};
use lanewright_model::{JobId, LaneId, ProcessId, Stage};
use lanewright_programs::process::{Observation, observe};
use lanewright_store::checkpoints::{self, CheckpointEntry};
use lanewright_store::run_log;

use super::plans::{EVERYTHING, PlanText};
use super::world::{World, files_below, older_version};

/// Everything of a run's end that must not depend on what happened on the way.
#[derive(Debug, PartialEq)]
pub struct EndState {
    pub(crate) tree: String,
    /// Changes in the user's worktree.
    pub(crate) status: String,
    pub(crate) worktrees: usize,
    pub(crate) references: String,
    /// Files in git's directory, its objects, logs and index aside.
    pub(crate) in_git: Vec<String>,
    /// Files below the worktree root.
    pub(crate) in_lanes: Vec<String>,
    pub(crate) checkpoints: Vec<String>,
    /// Every task that an agent has finished, as often as it did.
    pub finished: Vec<String>,
}

impl EndState {
    pub fn of(world: &World) -> Self {
        world.git(&["fsck", "--no-progress", "--no-dangling"]);
        Self {
            tree: world.git(&["ls-tree", "-r", "main"]),
            status: world.git(&["status", "--porcelain"]),
            worktrees: world.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(),
            references: world.git(&["for-each-ref", "--format=%(refname)"]),
            in_git: in_git(world),
            in_lanes: files_below(&world.path("disk/work.lanes"), &[]),
            checkpoints: checkpoints_of(world),
            finished: world.tasks_finished(),
        }
    }
}

/// A version that begins the run in this one's place ([`World::spawn`]) may keep caches that this one never reads.
fn in_git(world: &World) -> Vec<String> {
    let mut files = files_below(&world.work().join(".git"), &["objects", "logs", "index", "ORIG_HEAD"]);
    if older_version().is_some() {
        files.retain(|file| !file.starts_with("lanewright/index."));
    }
    files
}

fn checkpoints_of(world: &World) -> Vec<String> {
    let (run, _) = world.run().unwrap();
    let records = checkpoints::read(&world.state_directory().join("checkpoints.json")).unwrap();
    let own = records.into_iter().filter_map(|entry| match entry {
        CheckpointEntry::Record(record) => (record.run_id == run).then_some(record),
        CheckpointEntry::Foreign { .. } => panic!("{entry:?}"),
    });
    let mut lines: Vec<String> =
        own.map(|record| format!("{:?} {} {}", record.lane, record.stage, record.status)).collect();
    lines.sort();
    lines
}

/// The end of an undisturbed run of [`EVERYTHING`].
pub fn undisturbed() -> &'static EndState {
    static END: OnceLock<EndState> = OnceLock::new();
    END.get_or_init(|| undisturbed_run_of(&EVERYTHING))
}

/// The same for a plan that asks people.
pub fn undisturbed_run_with(plan: &PlanText, gates: &[(&str, &str)]) -> EndState {
    let world = World::new(plan);
    world.finish_answering(gates);
    EndState::of(&world)
}

pub fn undisturbed_run_of(plan: &PlanText) -> EndState {
    let world = World::new(plan);
    world.release("agents-may-end");
    world.release("tests-may-end");
    world.finish();
    assert!(world.is_done(), "{}", world.story());
    EndState::of(&world)
}

/// The run is over and left what an undisturbed one leaves; its log is whole and every job of it has ended.
pub fn assert_ended_as(expected: &EndState, world: &World) {
    assert_left_as(expected, world);
    let (_, run) = world.run().unwrap();
    let log = run_log::read(&run.log()).unwrap();
    for job in started_by(&log.records).keys() {
        assert!(matches!(observe(&run.job(job)).unwrap(), Observation::Exited(_)), "{job}\n{}", world.story());
    }
}

/// The same, but for jobs whose end nobody could write down.
pub fn assert_left_as(expected: &EndState, world: &World) {
    assert!(world.is_done(), "{}", world.story());
    assert_eq!(EndState::of(world), *expected, "{}", world.story());
    let (_, run) = world.run().unwrap();
    let log = run_log::read(&run.log()).unwrap();
    assert!(log.damage.is_empty() && !log.torn_tail, "{}", world.story());
}

/// What has begun was never begun again: agents began as often as attempts were planned, each under one supervisor.
pub fn assert_nothing_began_twice(world: &World) {
    let mut begun = world.lines_of_agents("begin");
    let all = begun.len();
    begun.dedup();
    assert_eq!(begun.len(), all, "{}", world.story());
    for (job, supervisors) in started_by(&world.records()) {
        let first = supervisors[0];
        assert!(supervisors.iter().all(|&other| other == first), "{job}: {supervisors:?}\n{}", world.story());
    }
}

/// Who is said to have supervised each job.
fn started_by(records: &[Record]) -> BTreeMap<JobId, Vec<ProcessId>> {
    let mut found: BTreeMap<JobId, Vec<ProcessId>> = BTreeMap::new();
    for record in records {
        if let Event::JobStarted { job, supervisor } = &record.event {
            found.entry(job.clone()).or_default().push(*supervisor);
        }
    }
    found
}

/// Whatever is there, what must come before it is in the run log: no worktree or branch before `before_lane_start`, no
/// agent before `after_lane_start`, no merge before `pre_pr` (SPEC §5).
pub fn assert_order(world: &World) {
    let records = world.records();
    let reached = |lane: &str, stage: Stage| {
        let lane = LaneId::new(lane).unwrap();
        let is_it = |record: &Record| {
            matches!(&record.event, Event::CheckpointReached { lane: Some(of), checkpoint }
                if *of == lane && checkpoint.stage == stage)
        };
        assert!(records.iter().any(is_it), "{lane} has no {stage}\n{}", world.story());
    };
    let anything = records.iter().any(|record| matches!(record.event, Event::CheckpointReached { .. }));
    let worktrees = world.count_worktrees();
    assert!(anything || worktrees == 1, "{}", world.story());
    assert!(anything || files_below(&world.path("disk/work.lanes"), &[]).is_empty(), "{}", world.story());
    for branch in
        world.git(&["for-each-ref", "--format=%(refname)", "refs/heads/lane", "refs/heads/lane-agent"]).lines()
    {
        reached(branch.split('/').nth(4).unwrap(), Stage::BeforeLaneStart);
    }
    for begun in world.lines_of_agents("begin") {
        reached(begun.split(' ').next().unwrap(), Stage::AfterLaneStart);
    }
    for merge in world.git(&["log", "--first-parent", "--format=%s", "main"]).lines() {
        if let Some(lane) = merge.strip_prefix("Merge lane ") {
            reached(lane, Stage::PrePr);
        }
    }
}
