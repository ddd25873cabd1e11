//! The files that others read, as they follow from the run log: `checkpoints.json`, each lane's `task.json`, and
//! `errors.jsonl` (SPEC §4, §5 and §10).
//!
//! A thread of its own folds records and writes what they add up to: the newest state, never a queue. After a write it
//! rests ten times as long as the write took, so the files cost a run a tenth of one core at most, however many lanes
//! share them. What cannot be written is told, tried again with the next record and at the end, and stops nothing: the
//! run log holds it all.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::event::{Event, Record, RunStarted};
use crate::fs::FileError;
use crate::git::{Pool, Repository};
use crate::model::{AgentName, Failure, LaneId, Plan, RunId, Stage, TaskId};
use crate::store::checkpoints::{self, CheckpointsError};
use crate::store::error_log::{self, ErrorEntry, ErrorType};
use crate::store::lane_files::{self, LaneFileError};
use crate::store::{LaneDirectory, StateDirectory};
use crate::timing::TARGET;
use crate::view::{CheckpointFold, RunPlaces, TaskFold};

/// Why the files do not hold what the run log says.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// The thread that writes them could not be started.
    #[error("cannot start the thread that writes checkpoints: {0}")]
    Start(io::Error),
    /// `checkpoints.json` could not be read or written.
    #[error(transparent)]
    Checkpoints(#[from] CheckpointsError),
    /// A lane's `task.json` could not be written.
    #[error(transparent)]
    Task(#[from] LaneFileError),
    /// `errors.jsonl` could not be written.
    #[error(transparent)]
    Errors(#[from] FileError),
    /// The thread that writes them panicked.
    #[error("the thread that writes checkpoints panicked; `lanekeeper resume` writes them")]
    Panicked,
}

/// The writer of the files. They are complete when it is gone.
pub struct Mirror {
    news: Option<Sender<Vec<Record>>>,
    thread: Option<JoinHandle<Result<(), MirrorError>>>,
}

impl Mirror {
    /// Writes what `history` says, which a crash may have kept from being written, then follows what [`Mirror::send`]
    /// tells.
    ///
    /// # Errors
    /// [`MirrorError::Start`] only; what cannot be written is the matter of [`Mirror::finish`].
    pub fn start(
        state: &StateDirectory,
        repository: &Repository,
        pool: &Pool,
        run: &RunStarted,
        plan: &Plan,
        history: Arc<Vec<Record>>,
    ) -> Result<Self, MirrorError> {
        let directory = state.run(&run.run_id);
        let places = RunPlaces {
            log_path: directory.log(),
            checkpoint_path: state.checkpoints(),
            program: vec!["lanekeeper".to_owned()],
            repository: repository.main_worktree().to_owned(),
        };
        Self::begin(places, directory.errors(), remover(pool, &run.run_id), plan, history)
    }

    fn begin(
        places: RunPlaces,
        errors: PathBuf,
        remove_lane: RemoveLane,
        plan: &Plan,
        history: Arc<Vec<Record>>,
    ) -> Result<Self, MirrorError> {
        let mut state = Folded::new(&places, plan);
        let checkpoints = places.checkpoint_path.clone();
        let mut disk = Disk { checkpoints, errors, remove_lane, fault: None, told: false };
        // Before anything else begins: a lane that begins again must not lose its new directory to the old one's removal.
        let put_back = put_back(&history);
        put_back.iter().for_each(|lane| (disk.remove_lane)(lane));
        let (news, inbox) = mpsc::channel();
        let work = move || {
            // Nobody waits for what a crash may have kept from being written.
            history.iter().for_each(|record| state.learn(record));
            drop(history);
            state.closed.retain(|lane| !put_back.contains(lane));
            disk.write(&mut state);
            follow(&inbox, &mut state, |state| disk.write(state));
            disk.fault.map_or(Ok(()), Err)
        };
        let thread = std::thread::Builder::new().name("mirror".to_owned()).spawn(work).map_err(MirrorError::Start)?;
        Ok(Self { news: Some(news), thread: Some(thread) })
    }

    /// Tells of records that are durable. Never waits.
    pub fn send(&self, records: &[Record]) {
        if let Some(news) = &self.news {
            // A thread that panicked tells so at the end.
            let _ = news.send(records.to_vec());
        }
    }

    /// Writes everything that is left.
    ///
    /// # Errors
    /// What could not be written, also at this last try.
    pub fn finish(mut self) -> Result<(), MirrorError> {
        self.close()
    }

    fn close(&mut self) -> Result<(), MirrorError> {
        drop(self.news.take());
        self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap_or(Err(MirrorError::Panicked)))
    }
}

impl Drop for Mirror {
    /// On the way out of an error the files are completed too.
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::warn!("{error}");
        }
    }
}

/// The lanes that were put back and may begin again; those that were merged do not.
fn put_back(history: &[Record]) -> BTreeSet<LaneId> {
    let mut lanes = BTreeSet::new();
    for record in history {
        match &record.event {
            Event::LaneRolledBack { lane, .. } => drop(lanes.insert(lane.clone())),
            Event::WorktreeOpened { lane, .. } if !lanes.is_empty() => drop(lanes.remove(lane)),
            _ => {}
        }
    }
    lanes
}

/// Removes what a lane has below the worktree root, if it is there.
type RemoveLane = Box<dyn Fn(&LaneId) + Send>;

fn remover(pool: &Pool, run: &RunId) -> RemoveLane {
    let (pool, run) = (pool.clone(), run.clone());
    Box::new(move |lane| match pool.remove_lane_directory(&run, lane) {
        Ok(kept) if kept.is_empty() => {}
        Ok(kept) => tracing::warn!("the directory of lane {lane} keeps what is not Lanekeeper's: {kept:?}"),
        Err(error) => tracing::warn!("the directory of lane {lane} was not removed: {error}"),
    })
}

/// Takes in what comes and has it written, all of it before this returns.
fn follow(inbox: &Receiver<Vec<Record>>, state: &mut Folded, mut write: impl FnMut(&mut Folded)) {
    let mut due = Instant::now();
    while let Ok(records) = inbox.recv() {
        records.iter().for_each(|record| state.learn(record));
        let open = gather_until(due, inbox, state);
        let began = Instant::now();
        write(state);
        if !open {
            return;
        }
        due = Instant::now() + rest_after(began.elapsed());
    }
    write(state);
}

/// Takes in what comes until `due`, and what is there then. Whether more may come.
fn gather_until(due: Instant, inbox: &Receiver<Vec<Record>>, state: &mut Folded) -> bool {
    loop {
        match inbox.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(records) => records.iter().for_each(|record| state.learn(record)),
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

/// The shortest rest between two writes, whose syncs the run log waits for: nobody reads these files more often.
const SHORTEST_REST: Duration = Duration::from_millis(20);

fn rest_after(write: Duration) -> Duration {
    (write * 10).max(SHORTEST_REST)
}

/// What the records so far add up to, and what of it is not written yet.
struct Folded {
    checkpoint_fold: CheckpointFold,
    task_fold: TaskFold,
    run: Option<Box<RunStarted>>,
    /// The stages whose newest record is not written.
    checkpoints: BTreeSet<(Option<LaneId>, Stage)>,
    /// Lanes that hold worktrees, and so have a directory.
    open: BTreeSet<LaneId>,
    /// Those of them whose `task.json` is behind.
    tasks: BTreeSet<LaneId>,
    /// Lanes whose directory is to be removed.
    closed: BTreeSet<LaneId>,
    errors: Vec<ErrorEntry>,
}

impl Folded {
    fn new(places: &RunPlaces, plan: &Plan) -> Self {
        Self {
            checkpoint_fold: CheckpointFold::new(places.clone()),
            task_fold: TaskFold::new(plan),
            run: None,
            checkpoints: BTreeSet::new(),
            open: BTreeSet::new(),
            tasks: BTreeSet::new(),
            closed: BTreeSet::new(),
            errors: Vec::new(),
        }
    }

    fn learn(&mut self, record: &Record) {
        self.take_in(record);
        let entry = self.run.as_ref().and_then(|run| error_entry(run, record));
        self.errors.extend(entry);
    }

    fn take_in(&mut self, record: &Record) {
        for checkpoint in self.checkpoint_fold.apply(record) {
            self.checkpoints.insert((checkpoint.lane, checkpoint.stage));
        }
        match &record.event {
            Event::RunStarted(started) => self.run = Some(started.clone()),
            Event::WorktreeOpened { lane, .. } => {
                self.open.insert(lane.clone());
                self.closed.remove(lane);
            }
            Event::LaneCleaned { lane, .. } | Event::LaneRolledBack { lane, .. } => self.close(lane),
            // The session is another one now.
            Event::RunResumed { .. } => self.tasks.clone_from(&self.open),
            _ => {}
        }
        let changed = self.task_fold.apply(record);
        if let Some(lane) = record.event.lane().filter(|lane| changed && self.open.contains(*lane)) {
            self.tasks.insert(lane.clone());
        }
    }

    fn close(&mut self, lane: &LaneId) {
        self.open.remove(lane);
        self.tasks.remove(lane);
        self.closed.insert(lane.clone());
    }
}

fn error_entry(run: &RunStarted, record: &Record) -> Option<ErrorEntry> {
    let entry =
        |lane: &LaneId, specialist: Option<&AgentName>, task: Option<&TaskId>, error_type, details| ErrorEntry {
            timestamp: record.at,
            phase: run.phase.clone(),
            plan: run.plan_path.to_string_lossy().into_owned(),
            lane: Some(lane.clone()),
            task: task.cloned(),
            specialist: specialist.cloned(),
            error_type,
            details,
        };
    match &record.event {
        Event::FailureNoted { lane, agent, task, failure } => {
            Some(entry(lane, agent.as_ref(), task.as_ref(), failure.kind.into(), details(failure)))
        }
        Event::LaneFailed { lane, failure } => {
            Some(entry(lane, None, None, failure.kind.into(), format!("the lane failed: {}", details(failure))))
        }
        Event::SnapshotDamaged { lane, agent, commit, error, .. } => {
            let details = format!("the snapshot {commit} is damaged: {error}");
            Some(entry(lane, agent.as_ref(), None, ErrorType::State, details))
        }
        Event::SnapshotFailed { lane, agent, error, .. } => {
            let details = format!("a snapshot could not be taken: {error}");
            Some(entry(lane, agent.as_ref(), None, ErrorType::State, details))
        }
        _ => None,
    }
}

/// The message, what was run, and the end of what it said.
fn details(failure: &Failure) -> String {
    let command = failure.command.as_ref().map(|command| match failure.exit_code {
        Some(code) => format!("`{command}` exited with {code}"),
        None => format!("`{command}`"),
    });
    let paths = (!failure.paths.is_empty()).then(|| failure.paths.join(", "));
    let parts = std::iter::once(failure.message.clone()).chain(command).chain(paths).chain(failure.log.iter().cloned());
    parts.collect::<Vec<_>>().join("\n")
}

/// The files themselves.
struct Disk {
    checkpoints: PathBuf,
    errors: PathBuf,
    remove_lane: RemoveLane,
    /// Why something is still behind; the first reason of the last write.
    fault: Option<MirrorError>,
    told: bool,
}

impl Disk {
    /// Writes everything that is behind; what cannot be written stays behind.
    fn write(&mut self, state: &mut Folded) {
        let _span = tracing::debug_span!(target: TARGET, "write checkpoints and tasks").entered();
        self.fault = None;
        self.remove_closed(state);
        let written = write_checkpoints(&self.checkpoints, state);
        self.note(written);
        let written = write_errors(&self.errors, &mut state.errors);
        self.note(written);
        self.write_tasks(state);
    }

    fn remove_closed(&self, state: &mut Folded) {
        while let Some(lane) = state.closed.pop_first() {
            (self.remove_lane)(&lane);
        }
    }

    fn write_tasks(&mut self, state: &mut Folded) {
        let Some(run) = &state.run else { return };
        for lane in std::mem::take(&mut state.tasks) {
            let Some(task) = state.task_fold.lane(&lane) else { continue };
            let directory = LaneDirectory::new(&run.options.worktree_root, &run.run_id, &lane);
            if let Err(error) = lane_files::write_task(&directory, &task) {
                self.note(Err(error.into()));
                state.tasks.insert(lane);
            }
        }
    }

    fn note(&mut self, written: Result<(), MirrorError>) {
        let Err(error) = written else { return };
        if !std::mem::replace(&mut self.told, true) {
            tracing::warn!("{error}; the run continues, its log holds everything");
        }
        self.fault.get_or_insert(error);
    }
}

fn write_checkpoints(path: &Path, state: &mut Folded) -> Result<(), MirrorError> {
    if state.checkpoints.is_empty() {
        return Ok(());
    }
    let newest = |(lane, stage): &(Option<LaneId>, Stage)| state.checkpoint_fold.record(lane.as_ref(), *stage);
    let mut records: Vec<_> = state.checkpoints.iter().filter_map(newest).collect();
    records.sort_by_key(|record| record.timestamp);
    checkpoints::update(path, &records)?;
    state.checkpoints.clear();
    Ok(())
}

fn write_errors(path: &Path, behind: &mut Vec<ErrorEntry>) -> Result<(), MirrorError> {
    if !behind.is_empty() {
        error_log::complete(path, behind)?;
        behind.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests;
