//! One phase of many lanes, in a process of its own that says what it took.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lanewright::progress::FanOut;
use lanewright::progress::projections::ProjectionWriter;
use lanewright_files::timing::TARGET;
use lanewright_git::{Pool, Repository};
use lanewright_model::event::{Event, Record, RunStarted};
use lanewright_model::testing::{empty_plan, resumed};
use lanewright_model::{LaneIndex, Plan, PlanParts, RunId};
use lanewright_schedule::RunLoop;
use lanewright_schedule::RunState;
use lanewright_store::{Journal, StateDirectory};
use lanewright_view::RunHistory;
use tracing::Subscriber;
use tracing::span::Id;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry;

use super::dice::Dice;
use super::faultless::{Faultless, Takes, commit_name};
use super::plans::plain_lane;
use super::run_started::{owner, run_started};

const PARALLEL: u32 = 64;

/// A repository, whose state and worktrees everything below is about.
pub fn prepare(place: &Path) {
    let git = |words: &[&str]| {
        let names = ["-c", "user.name=x", "-c", "user.email=x@example.org"];
        let done = Command::new("git").arg("-C").arg(place.join("repo")).args(names).args(words).status().unwrap();
        assert!(done.success(), "git {words:?}");
    };
    fs::create_dir_all(place.join("repo")).unwrap();
    git(&["init", "-q", "-b", "main"]);
    git(&["commit", "-q", "--allow-empty", "-m", "first"]);
}

/// Half of the lanes wait for one of the hundred before them.
fn plan(count: u32) -> Plan {
    let mut dice = Dice::new(u64::from(count));
    let lane = |index: u32| {
        let waits = index > 0 && dice.roll(2) == 0;
        let before = waits.then(|| LaneIndex(index - 1 - dice.roll(index.min(100))));
        plain_lane(index, before.into_iter().collect(), 1)
    };
    Plan::new(PlanParts { lanes: (0..count).map(lane).collect(), ..empty_plan() }).unwrap()
}

struct Phase {
    state: StateDirectory,
    repository: Repository,
    pool: Pool,
    plan: Arc<Plan>,
    started: RunStarted,
}

impl Phase {
    fn new(plan: Plan, place: &Path) -> Self {
        let root = place.join("lanes");
        let repository = Repository::discover(&place.join("repo")).unwrap();
        let mut started = run_started(&plan, &commit_name(0), PARALLEL);
        started.options.worktree_root.clone_from(&root);
        let pool = Pool::new(repository.clone(), &root, u32::MAX, false);
        Self { state: StateDirectory::new(repository.main_worktree()), repository, pool, plan: Arc::new(plan), started }
    }

    fn projections(&self, history: Arc<Vec<Record>>) -> ProjectionWriter {
        ProjectionWriter::start(&self.state, &self.repository, &self.pool, &self.started, &self.plan, history).unwrap()
    }
}

/// What watches a run, as in a real one without a terminal.
struct Watchers {
    projections: ProjectionWriter,
    view: FanOut<'static>,
    merged: u32,
}

impl Watchers {
    fn see(&mut self, records: &[Record]) {
        self.projections.send(records);
        for record in records {
            self.view.record(record);
            self.merged += u32::from(matches!(record.event, Event::LaneMerged { .. }));
        }
    }
}

/// How long the projections were written.
#[derive(Clone, Default)]
struct Writes {
    total: Arc<Mutex<Duration>>,
    since: Arc<Mutex<Option<Instant>>>,
}

impl Writes {
    /// Counts from now on, in whatever thread.
    fn counted() -> Self {
        let writes = Self::default();
        let ours = filter_fn(|span| span.target() == TARGET && span.name() == "write checkpoints and tasks");
        tracing::subscriber::set_global_default(registry().with(writes.clone().with_filter(ours))).unwrap();
        writes
    }

    fn ms(&self) -> f64 {
        self.total.lock().unwrap().as_secs_f64() * 1000.0
    }
}

impl<S: Subscriber> Layer<S> for Writes {
    fn on_enter(&self, _: &Id, _: Context<'_, S>) {
        *self.since.lock().unwrap() = Some(Instant::now());
    }

    fn on_exit(&self, _: &Id, _: Context<'_, S>) {
        *self.total.lock().unwrap() +=
            self.since.lock().unwrap().take().map_or(Duration::ZERO, |since| since.elapsed());
    }
}

/// Runs the phase to its end, or until half of its lanes are merged: then this process is killed.
pub fn run(count: u32, place: &Path, cut: bool) {
    let writes = Writes::counted();
    let phase = Phase::new(plan(count), place);
    let directory = phase.state.run(&phase.started.run_id);
    phase.state.create().unwrap();
    directory.create().unwrap();
    fs::write(directory.plan(), serde_json::to_vec(&*phase.plan).unwrap()).unwrap();
    let (began, cpu) = (Instant::now(), cpu_ms());
    let journal = Journal::create(&directory.log(), &phase.started.run_id, &phase.started.phase).unwrap();
    let run_loop = RunLoop::new(journal, RunState::new(phase.plan.clone()));
    let mut world = Faultless::new(run_loop, briefly());
    let view = FanOut::new(RunHistory::for_plan(&phase.plan));
    let mut watchers = Watchers { projections: phase.projections(Arc::default()), view, merged: 0 };
    watchers.see(&world.absorb(vec![Event::RunStarted(Box::new(phase.started.clone()))], vec![]).unwrap());
    let mut syncs = 1;
    while !world.is_over() {
        watchers.see(&world.step().unwrap());
        syncs += 1;
        if cut && watchers.merged >= count / 2 {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
        }
    }
    watchers.projections.finish().unwrap();
    println!("wall {}", began.elapsed().as_secs_f64() * 1000.0 / f64::from(count));
    println!("cpu {}", (cpu_ms() - cpu) / f64::from(count));
    println!("syncs {syncs}");
    // A lane has three checkpoints.
    println!("mirror {}", writes.ms() / f64::from(count * 3));
    println!("memory {}", peak_mb());
    check(&phase, count);
}

/// Takes up a phase that was cut off, as `lanewright resume` does, up to where the first thing is done.
pub fn resume(count: u32, place: &Path) {
    let directory = StateDirectory::new(&place.join("repo")).run(&RunId::new("r").unwrap());
    let began = Instant::now();
    let told = |part: &str| println!("{part} {}", began.elapsed().as_secs_f64());
    let (journal, history) = Journal::open(&directory.log()).unwrap();
    let history = Arc::new(history);
    told("log");
    let phase = Phase::new(serde_json::from_slice(&fs::read(directory.plan()).unwrap()).unwrap(), place);
    told("plan");
    let mut state = RunState::new(phase.plan.clone());
    history.iter().for_each(|record| state.apply(record).unwrap());
    told("replay");
    let view = FanOut::new(RunHistory::for_plan(&phase.plan).after(history.iter()));
    let mut watchers = Watchers { projections: phase.projections(history.clone()), view, merged: 0 };
    told("files");
    println!("events {}", history.len());
    drop(history);
    let mut world = Faultless::new(RunLoop::new(journal, state), briefly());
    let records = world.absorb(vec![resumed(1, owner(0))], vec![]).unwrap();
    told("first action");
    watchers.see(&records);
    while !world.is_over() {
        watchers.see(&world.step().unwrap());
    }
    watchers.projections.finish().unwrap();
    println!("memory {}", peak_mb());
    check(&phase, count);
}

/// Every job takes between one and twenty milliseconds of the world's time.
fn briefly() -> Takes {
    let mut dice = Dice::new(1);
    Box::new(move |_| 1 + i64::from(dice.roll(20)))
}

/// `checkpoints.json` holds what it must.
fn check(phase: &Phase, count: u32) {
    let text = fs::read_to_string(phase.state.checkpoints()).unwrap();
    let records: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let complete = |record: &&serde_json::Value| record["stage"] == "pre_pr" && record["status"] == "complete";
    let lanes: BTreeSet<&str> = records.iter().filter(complete).filter_map(|record| record["lane"].as_str()).collect();
    assert_eq!(lanes.len(), count as usize, "lanes that are complete in checkpoints.json");
}

/// Milliseconds of processor time that this process took, with all its threads.
fn cpu_ms() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = stat.rsplit(") ").next().unwrap();
    let ticks: f64 = after_name.split(' ').skip(11).take(2).map(|field| field.parse::<f64>().unwrap()).sum();
    ticks * 10.0
}

/// The most memory that this process held, in MB.
fn peak_mb() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1000.0
}
