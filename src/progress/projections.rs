//! Writes the files for other programs: `checkpoints.json`, each lane's `task.json`, and `errors.jsonl` (SPEC §4, §5, §10).
//!
//! A thread folds durable records and writes the newest state, never a queue, with a rest between two writes (`pace`).
//! What cannot be written is reported, tried again with the next record and at the end, and stops nothing: the run log
//! holds it all.

mod pace;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Instant;

use lanewright_files::timing::TARGET;
use lanewright_git::{Pool, Repository};
use lanewright_model::event::{Event, Record, RunStarted, SPECIALIST_ERRORS};
use lanewright_model::{AgentName, CheckpointStatus, Failure, LaneId, Plan, RunId, Stage, TaskFile, TaskId};
use lanewright_store::error_log::{self, ErrorEntry, ErrorType};
use lanewright_store::{LaneDirectory, StateDirectory, checkpoints, lane_files};
use lanewright_view::RunHistory;
use lanewright_view::contract::checkpoints::{CheckpointFold, RunFiles};
use lanewright_view::contract::tasks::task_file;
use pace::{News, Pace};

/// Why the files are behind the run log.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ProjectionError(String);

fn behind(error: impl std::fmt::Display) -> ProjectionError {
    ProjectionError(error.to_string())
}

/// Writes the files; they are complete when it is dropped.
pub struct ProjectionWriter {
    inbox: Option<Sender<Vec<Record>>>,
    thread: Option<JoinHandle<Result<(), ProjectionError>>>,
}

impl ProjectionWriter {
    /// Writes what follows from `history`, which a crash may have left unwritten, then what follows from the records of
    /// [`ProjectionWriter::send`].
    ///
    /// # Errors
    /// If no thread can be started; [`ProjectionWriter::finish`] returns what cannot be written.
    pub fn start(
        state: &StateDirectory,
        repository: &Repository,
        pool: &Pool,
        run: &RunStarted,
        plan: &Arc<Plan>,
        history: Arc<Vec<Record>>,
    ) -> Result<Self, ProjectionError> {
        let directory = state.run(&run.run_id);
        let files = RunFiles::new(directory.log(), state.checkpoints(), repository.main_worktree().to_owned());
        let planning = run.planning(repository.main_worktree()).filter(|_| run.options.placed_by.is_none());
        let mut errors = vec![directory.errors()];
        if let Some(planning) = planning {
            let path = planning.join(SPECIALIST_ERRORS);
            repository.ensure_excluded(&[&format!("/{}", path.display())]).map_err(behind)?;
            errors.push(repository.main_worktree().join(path));
        }
        Self::begin(files, errors, remover(pool, &run.run_id), plan, history)
    }

    fn begin(
        files: RunFiles,
        errors: Vec<PathBuf>,
        remove_lane: RemoveLane,
        plan: &Arc<Plan>,
        history: Arc<Vec<Record>>,
    ) -> Result<Self, ProjectionError> {
        let checkpoints = files.checkpoint_path.clone();
        let mut pending = Pending::new(files, plan);
        let mut disk = Disk { checkpoints, errors, remove_lane, fault: None, reported: false };
        // Before anything else begins: a lane that begins again must not lose its new directory to the old one's removal.
        let rolled_back = rolled_back(&history);
        rolled_back.iter().for_each(|lane| (disk.remove_lane)(lane));
        let (inbox, records) = mpsc::channel();
        let work = move || {
            history.iter().for_each(|record| pending.apply(record));
            drop(history);
            pending.closed.retain(|lane| !rolled_back.contains(lane));
            let mut pace = Pace::new(Instant::now());
            disk.write_all(&mut pending, &mut pace);
            follow(&records, &mut pending, &mut pace, |pending, due, pace| disk.write(pending, due, pace));
            pending.end();
            disk.write_all(&mut pending, &mut pace);
            disk.fault.map_or(Ok(()), Err)
        };
        let thread = std::thread::Builder::new().name("projections".to_owned()).spawn(work);
        let thread =
            thread.map_err(|error| behind(format!("cannot start the thread that writes checkpoints: {error}")));
        Ok(Self { inbox: Some(inbox), thread: Some(thread?) })
    }

    /// Takes durable records. Never waits.
    pub fn send(&self, records: &[Record]) {
        if let Some(inbox) = &self.inbox {
            // That the thread panicked is returned at the end.
            let _ = inbox.send(records.to_vec());
        }
    }

    /// Writes everything that is left.
    ///
    /// # Errors
    /// What could not be written, also at this last attempt.
    pub fn finish(mut self) -> Result<(), ProjectionError> {
        self.close()
    }

    fn close(&mut self) -> Result<(), ProjectionError> {
        drop(self.inbox.take());
        let panicked = || behind("the thread that writes checkpoints panicked; `lanewright resume` writes them");
        self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap_or_else(|_| Err(panicked())))
    }
}

impl Drop for ProjectionWriter {
    /// After an error elsewhere the files are completed too.
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::warn!("{error}");
        }
    }
}

/// The lanes that were rolled back and may begin again; merged ones do not.
fn rolled_back(history: &[Record]) -> BTreeSet<LaneId> {
    let mut lanes = BTreeSet::new();
    for record in history {
        match &record.event {
            Event::LaneRolledBack { lane, point: None, .. } => drop(lanes.insert(lane.clone())),
            Event::WorktreeOpened { lane, .. } if !lanes.is_empty() => drop(lanes.remove(lane)),
            _ => {}
        }
    }
    lanes
}

/// Removes the directory of a lane below the worktree root, if it exists.
type RemoveLane = Box<dyn Fn(&LaneId) + Send>;

fn remover(pool: &Pool, run: &RunId) -> RemoveLane {
    let (pool, run) = (pool.clone(), run.clone());
    Box::new(move |lane| match pool.remove_lane_directory(&run, lane) {
        Ok(kept) if kept.is_empty() => {}
        Ok(kept) => tracing::warn!("the directory of lane {lane} keeps what is not Lanewright's: {kept:?}"),
        Err(error) => tracing::warn!("the directory of lane {lane} was not removed: {error}"),
    })
}

/// Applies what arrives, and calls `write` with what is due, until no more can come. What is not due then is left.
fn follow(
    inbox: &Receiver<Vec<Record>>,
    pending: &mut Pending,
    pace: &mut Pace,
    mut write: impl FnMut(&mut Pending, News, &mut Pace),
) {
    loop {
        let arrived = match pace.next(pending.news) {
            Some(due) => inbox.recv_timeout(due.saturating_duration_since(Instant::now())),
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match arrived {
            Ok(records) => records.iter().for_each(|record| pending.apply(record)),
            Err(RecvTimeoutError::Timeout) => write(pending, pace.due(pending.news, Instant::now()), pace),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The run as its records describe it, and what of that is not written yet.
struct Pending {
    plan: Arc<Plan>,
    fold: CheckpointFold,
    /// The stages whose newest record is not written.
    checkpoints: BTreeSet<(Option<LaneId>, Stage)>,
    /// Lanes that hold worktrees, and so have a directory, with what their `task.json` says.
    open: BTreeMap<LaneId, Option<TaskFile>>,
    /// Open lanes whose `task.json` may be behind.
    tasks: BTreeSet<LaneId>,
    closed: BTreeSet<LaneId>,
    errors: Vec<ErrorEntry>,
    /// What to write next. What could not be written is news again with the next record.
    news: News,
}

impl Pending {
    fn new(files: RunFiles, plan: &Arc<Plan>) -> Self {
        Self {
            plan: plan.clone(),
            fold: CheckpointFold::new(files, RunHistory::for_plan(plan)),
            checkpoints: BTreeSet::new(),
            open: BTreeMap::new(),
            tasks: BTreeSet::new(),
            closed: BTreeSet::new(),
            errors: Vec::new(),
            news: News::default(),
        }
    }

    fn apply(&mut self, record: &Record) {
        let written = self.fold.apply(record);
        let is_urgent = |status| matches!(status, CheckpointStatus::Failed | CheckpointStatus::Blocked);
        self.news.is_urgent |= written.iter().any(|record| is_urgent(record.status));
        self.checkpoints.extend(written.into_iter().map(|record| (record.lane, record.stage)));
        match &record.event {
            Event::WorktreeOpened { lane, .. } | Event::LaneRolledBack { lane, point: Some(_), .. } => {
                self.open.entry(lane.clone()).or_default();
                self.closed.remove(lane);
            }
            Event::LaneCleaned { lane, .. } | Event::LaneRolledBack { lane, .. } => {
                self.open.remove(lane);
                self.tasks.remove(lane);
                self.closed.insert(lane.clone());
            }
            // The session has changed.
            Event::RunResumed { .. } => self.tasks = self.open.keys().cloned().collect(),
            _ => {}
        }
        self.tasks.extend(record.event.lane().filter(|lane| self.open.contains_key(lane)).cloned());
        self.errors.extend(self.fold.history.run.start.as_ref().and_then(|run| error_entry(run, record)));
        self.news.checkpoints = !self.checkpoints.is_empty();
        self.news.small_files = !(self.tasks.is_empty() && self.closed.is_empty() && self.errors.is_empty());
    }

    /// The process that writes is about to end.
    fn end(&mut self) {
        let written = self.fold.interrupted();
        self.checkpoints.extend(written.into_iter().map(|record| (record.lane, record.stage)));
    }

    /// The `task.json` of lanes for which it has changed.
    fn take_tasks(&mut self) -> Vec<(LaneId, TaskFile)> {
        let history = &self.fold.history;
        let tasks = std::mem::take(&mut self.tasks).into_iter();
        let tasks = tasks.filter_map(|lane| Some((task_file(history, &self.plan, &lane)?, lane)));
        let is_new =
            |(task, lane): &(TaskFile, LaneId)| self.open.get(lane).is_none_or(|old| old.as_ref() != Some(task));
        tasks.filter(is_new).map(|(task, lane)| (lane, task)).collect()
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

/// The message, what was run, and the end of its output.
fn details(failure: &Failure) -> String {
    let command = failure.command.as_ref().map(|command| match failure.exit_code {
        Some(code) => format!("`{command}` exited with {code}"),
        None => format!("`{command}`"),
    });
    let paths = (!failure.paths.is_empty()).then(|| failure.paths.join(", "));
    let parts = std::iter::once(failure.message.clone()).chain(command).chain(paths).chain(failure.log.iter().cloned());
    parts.collect::<Vec<_>>().join("\n")
}

struct Disk {
    checkpoints: PathBuf,
    errors: Vec<PathBuf>,
    remove_lane: RemoveLane,
    /// Why something is still behind: the first reason of the last write.
    fault: Option<ProjectionError>,
    reported: bool,
}

impl Disk {
    /// Writes everything that is behind; what cannot be written stays behind.
    fn write_all(&mut self, pending: &mut Pending, pace: &mut Pace) {
        self.fault = None;
        self.write(pending, News { checkpoints: true, small_files: true, is_urgent: false }, pace);
    }

    /// Writes what is `due`, and notes in `pace` that it did.
    fn write(&mut self, pending: &mut Pending, due: News, pace: &mut Pace) {
        let _span = tracing::debug_span!(target: TARGET, "write checkpoints and tasks").entered();
        if due.small_files {
            pending.news.small_files = false;
            self.write_small_files(pending);
            pace.wrote_small_files(Instant::now());
        }
        if due.checkpoints && !pending.checkpoints.is_empty() {
            (pending.news.checkpoints, pending.news.is_urgent) = (false, false);
            let written = write_checkpoints(&self.checkpoints, pending);
            pace.wrote_checkpoints(*written.as_ref().unwrap_or(&0), Instant::now());
            self.note(written);
        }
    }

    fn write_small_files(&mut self, pending: &mut Pending) {
        while let Some(lane) = pending.closed.pop_first() {
            (self.remove_lane)(&lane);
        }
        let written = write_errors(&self.errors, &mut pending.errors);
        self.note(written);
        self.write_tasks(pending);
    }

    fn write_tasks(&mut self, pending: &mut Pending) {
        let Some(run) = pending.fold.history.run.start.clone() else { return };
        for (lane, task) in pending.take_tasks() {
            let directory = LaneDirectory::new(&run.options.worktree_root, &run.run_id, &lane);
            match lane_files::write_task(&directory, &task) {
                Ok(()) => drop(pending.open.insert(lane, Some(task))),
                Err(error) => {
                    self.note::<()>(Err(behind(error)));
                    pending.tasks.insert(lane);
                }
            }
        }
    }

    fn note<T>(&mut self, written: Result<T, ProjectionError>) {
        let Err(error) = written else { return };
        if !std::mem::replace(&mut self.reported, true) {
            tracing::warn!("{error}; the run continues, its log holds everything");
        }
        self.fault.get_or_insert(error);
    }
}

/// Returns how many bytes the file has.
fn write_checkpoints(path: &Path, pending: &mut Pending) -> Result<usize, ProjectionError> {
    let newest = |(lane, stage): &(Option<LaneId>, Stage)| pending.fold.record(lane.as_ref(), *stage);
    let mut records: Vec<_> = pending.checkpoints.iter().filter_map(newest).collect();
    records.sort_by_key(|record| record.timestamp);
    let bytes = checkpoints::update(path, &records).map_err(behind)?;
    pending.checkpoints.clear();
    Ok(bytes)
}

fn write_errors(paths: &[PathBuf], entries: &mut Vec<ErrorEntry>) -> Result<(), ProjectionError> {
    if !entries.is_empty() {
        paths.iter().try_for_each(|path| error_log::complete(path, entries)).map_err(behind)?;
        entries.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests;
