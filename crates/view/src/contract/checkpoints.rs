//! The records of `checkpoints.json` as they follow from events (SPEC §5; seed 004, Recovery Contract).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lanewright_model::event::{Event, Record, RunStarted};
use lanewright_model::ownership::RUN_LOG_DIRECTORY;
use lanewright_model::text::shell_line;
use lanewright_model::{
    Checkpoint, CheckpointRecord, CheckpointStatus, Failure, FailureKind, GitState, LaneId, Stage, Timestamp,
};

use crate::answers::commands::Commands;
use crate::history::{RunHistory, Workplace};

/// What the records name besides what events say. All paths are absolute.
#[derive(Debug, Clone)]
pub struct RunFiles {
    pub log_path: PathBuf,
    pub checkpoint_path: PathBuf,
    /// The words before a command in a hint, normally `lanewright` alone.
    pub program: Vec<String>,
    pub repository: PathBuf,
}

#[derive(Debug, Clone)]
pub struct CheckpointFold {
    pub history: RunHistory,
    files: RunFiles,
    shared: Option<SharedTexts>,
    /// Of each lane, and of the phase.
    written: BTreeMap<Option<LaneId>, LaneRecords>,
}

/// Texts that are the same in every record of a run: there may be thousands of lanes.
#[derive(Debug, Clone)]
struct SharedTexts {
    base_branch: Arc<str>,
    log_path: Arc<Path>,
    resume_hint: Arc<str>,
    session_id: Arc<str>,
    /// Flags that a hint needs because the files are not at their usual paths.
    flags: Vec<String>,
}

#[derive(Debug, Clone, Default)]
struct LaneRecords {
    retries: u32,
    /// The newest record of each stage, the newest of all last.
    records: Vec<CheckpointRecord>,
    /// The record before the lane failed or was blocked, for a resume.
    before_ending: Option<Box<CheckpointRecord>>,
}

impl CheckpointFold {
    /// Before the first event of `history`.
    pub fn new(files: RunFiles, history: RunHistory) -> Self {
        Self { history, files, shared: None, written: BTreeMap::new() }
    }

    /// Applies a record of the run log and returns the checkpoint records that it writes: each replaces the one with the
    /// same run, phase, lane and stage.
    pub fn apply(&mut self, record: &Record) -> Vec<CheckpointRecord> {
        self.history.apply(record);
        let at = record.at;
        match &record.event {
            Event::RunStarted(started) => {
                self.shared = Some(SharedTexts::of(started, &self.files));
                Vec::new()
            }
            Event::RunResumed { owner, .. } => {
                self.shared.iter_mut().for_each(|shared| shared.session_id = owner.session_id.as_str().into());
                self.undo_endings(at)
            }
            Event::CheckpointReached { lane, checkpoint } => self.reached(lane.as_ref(), checkpoint, at),
            Event::RetryPlanned { lane, checkpoint, .. } => {
                self.written(lane).retries += 1;
                self.reached(Some(lane), checkpoint, at)
            }
            Event::LaneMerged { lane, commit, .. } => {
                let pull_request = self.history.lane(lane).and_then(|lane| lane.pull_request.as_ref());
                let notes =
                    pull_request.map_or_else(|| format!("merged as {commit}"), |it| format!("pull request {}", it.url));
                let merged = self.written(lane).stage(Stage::PrePr);
                let changed =
                    self.end(lane, at, merged, |record| set_status(record, CheckpointStatus::Complete, &notes));
                self.written(lane).before_ending = None;
                changed
            }
            Event::LaneFailed { lane, failure } => self.failed(lane, failure, at),
            Event::LaneBlocked { lane, reason } => {
                self.end(lane, at, None, |record| set_status(record, CheckpointStatus::Blocked, reason))
            }
            Event::LaneRolledBack { lane, .. } => self.rolled_back(lane, at),
            _ => Vec::new(),
        }
    }

    /// The newest record of a stage of a lane, or of the phase.
    pub fn record(&self, lane: Option<&LaneId>, stage: Stage) -> Option<&CheckpointRecord> {
        let written = self.written.get(&lane.cloned())?;
        written.stage(stage).map(|index| &written.records[index])
    }

    fn written(&mut self, lane: &LaneId) -> &mut LaneRecords {
        self.written.entry(Some(lane.clone())).or_default()
    }

    fn reached(&mut self, lane: Option<&LaneId>, checkpoint: &Checkpoint, at: Timestamp) -> Vec<CheckpointRecord> {
        let Some(record) = self.new_record(lane, checkpoint, at) else { return Vec::new() };
        let written = self.written.entry(lane.cloned()).or_default();
        written.before_ending = None;
        written.records.retain(|known| known.stage != record.stage);
        // Most lanes have three, and there may be thousands of lanes.
        written.records.reserve_exact(1);
        written.records.push(record.clone());
        vec![record]
    }

    fn new_record(&self, lane: Option<&LaneId>, checkpoint: &Checkpoint, at: Timestamp) -> Option<CheckpointRecord> {
        let (run, shared) = (self.history.run.start.as_deref()?, self.shared.as_ref()?);
        let workplace = self.workplace(lane)?;
        let before = self.written.get(&lane.cloned()).and_then(|written| written.records.last());
        let rollback = || shared.hint(commands(run, &self.files).execute_phase_rollback(&run.plan_path, lane));
        let target = || checkpoint.target_branch.as_deref().map_or_else(|| shared.base_branch.clone(), Arc::from);
        let path = worktree_path(run, &self.files, lane, workplace);
        Some(CheckpointRecord {
            run_id: run.run_id.clone(),
            phase: run.phase.clone(),
            lane: lane.cloned(),
            stage: checkpoint.stage,
            status: checkpoint.status,
            base_branch: shared.base_branch.clone(),
            worktree_path: before
                .map(|it| &it.worktree_path)
                .filter(|it| ***it == *path)
                .cloned()
                .unwrap_or(path.into()),
            log_path: shared.log_path.clone(),
            timestamp: at,
            notes: checkpoint.context.clone(),
            resume_hint: shared.resume_hint.clone(),
            rollback_hint: before.map_or_else(rollback, |before| before.rollback_hint.clone()),
            retry_attempt: checkpoint.retry_attempt,
            max_retries: checkpoint.max_retries,
            failure_context: checkpoint.failure_context.clone(),
            command: checkpoint.command.clone(),
            exit_code: checkpoint.exit_code,
            head_sha: workplace.checkpoint_head.clone(),
            target_branch: (checkpoint.stage == Stage::PrePr).then(target),
            git: git(workplace),
            session_id: Some(shared.session_id.clone()),
        })
    }

    fn workplace(&self, lane: Option<&LaneId>) -> Option<&Workplace> {
        match lane {
            Some(lane) => self.history.lane(lane).map(|lane| &lane.workplace),
            None => Some(&self.history.run.workplace),
        }
    }

    /// Seed 004, Failure Scenarios: the stage's record fails; with no retry left the `retry_attempt` record does.
    fn failed(&mut self, lane: &LaneId, failure: &Failure, at: Timestamp) -> Vec<CheckpointRecord> {
        let written = self.written(lane);
        let attempt = written.retries + 1;
        let is_last = |retry: &usize| written.records[*retry].retry_attempt >= written.records[*retry].max_retries;
        let retry = written.stage(Stage::RetryAttempt).filter(|_| failure.kind != FailureKind::State);
        let exhausted = retry.filter(is_last);
        self.end(lane, at, exhausted, |record| {
            set_status(record, CheckpointStatus::Failed, &failure.message);
            record.retry_attempt = record.retry_attempt.map(|retry| retry.min(record.max_retries.unwrap_or(retry)));
            record.failure_context.extend(failure.context(attempt));
            record.command = failure.command.clone().or(record.command.take());
            record.exit_code = failure.exit_code.or(record.exit_code);
        })
    }

    fn rolled_back(&mut self, lane: &LaneId, at: Timestamp) -> Vec<CheckpointRecord> {
        let written = self.written(lane);
        written.before_ending = None;
        for record in &mut written.records {
            record.status = CheckpointStatus::RolledBack;
            record.timestamp = at;
        }
        written.records.clone()
    }

    /// Changes the `chosen` record, or the lane's newest one.
    fn end(
        &mut self,
        lane: &LaneId,
        at: Timestamp,
        chosen: Option<usize>,
        change: impl FnOnce(&mut CheckpointRecord),
    ) -> Vec<CheckpointRecord> {
        let session_id = self.shared.as_ref().map(|shared| shared.session_id.clone());
        let workplace = self.workplace(Some(lane)).cloned().unwrap_or_default();
        let written = self.written(lane);
        let Some(chosen) = chosen.or(written.records.len().checked_sub(1)) else { return Vec::new() };
        let mut record = written.records.remove(chosen);
        written.before_ending.get_or_insert_with(|| Box::new(record.clone()));
        change(&mut record);
        record.timestamp = at;
        record.session_id = session_id;
        record.git = git(&workplace).or(record.git);
        record.head_sha = workplace.checkpoint_head.or(record.head_sha);
        written.records.push(record.clone());
        vec![record]
    }

    /// A resume tries failed and blocked lanes again: their records are restored.
    fn undo_endings(&mut self, at: Timestamp) -> Vec<CheckpointRecord> {
        let session_id = self.shared.as_ref().map(|shared| shared.session_id.clone());
        let mut changed = Vec::new();
        for written in self.written.values_mut() {
            if let Some(mut record) = written.before_ending.take().map(|record| *record) {
                record.timestamp = at;
                record.session_id.clone_from(&session_id);
                written.records.retain(|known| known.stage != record.stage);
                written.records.push(record.clone());
                changed.push(record);
            }
        }
        changed
    }
}

fn set_status(record: &mut CheckpointRecord, status: CheckpointStatus, notes: &str) {
    record.status = status;
    notes.clone_into(&mut record.notes);
}

impl LaneRecords {
    fn stage(&self, stage: Stage) -> Option<usize> {
        self.records.iter().position(|record| record.stage == stage)
    }
}

impl SharedTexts {
    fn of(run: &RunStarted, files: &RunFiles) -> Self {
        let flags = unusual_paths(run, files);
        let resume = commands(run, files).execute_phase_resume(&run.plan_path);
        Self {
            base_branch: run.base_branch.as_str().into(),
            log_path: files.log_path.as_path().into(),
            resume_hint: shell_line(resume.iter().chain(&flags)).into(),
            session_id: run.owner.session_id.as_str().into(),
            flags,
        }
    }

    fn hint(&self, words: Vec<String>) -> Arc<str> {
        shell_line(words.iter().chain(&self.flags)).into()
    }
}

/// Nothing is dirty at a checkpoint, since Lanewright commits first.
fn git(workplace: &Workplace) -> Option<GitState> {
    workplace.worktree.as_ref()?;
    let (branch, head) = (workplace.branch().map(Arc::from), workplace.checkpoint_head.clone());
    Some(GitState { branch, head, dirty_files: Vec::new() })
}

fn commands<'a>(run: &'a RunStarted, files: &'a RunFiles) -> Commands<'a> {
    Commands { program: &files.program, run: &run.run_id }
}

fn worktree_path(run: &RunStarted, files: &RunFiles, lane: Option<&LaneId>, workplace: &Workplace) -> PathBuf {
    match (&workplace.worktree, lane) {
        (Some(worktree), _) => worktree.path.clone(),
        (None, Some(lane)) => run.options.worktree_root.join(run.run_id.as_str()).join(lane.as_str()).join("code"),
        (None, None) => files.repository.clone(),
    }
}

fn unusual_paths(run: &RunStarted, files: &RunFiles) -> Vec<String> {
    let usual = files.repository.join(RUN_LOG_DIRECTORY);
    let flag = |name: &str, path: &Path, usual: PathBuf| {
        (path != usual).then(|| [name.to_owned(), path.to_string_lossy().into_owned()])
    };
    let checkpoints = flag("--checkpoint-path", &files.checkpoint_path, usual.join("checkpoints.json"));
    let log = flag("--log-path", &files.log_path, usual.join(format!("{}.jsonl", run.run_id)));
    checkpoints.into_iter().chain(log).flatten().collect()
}

#[cfg(test)]
pub(crate) mod tests;
