//! The records of `checkpoints.json` as they follow from events (SPEC §5; seed 004, Recovery Contract).

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::commands::Commands;
use crate::event::{Event, Record, RunStarted, Worktree};
use crate::model::ownership::RUN_LOG_DIRECTORY;
use crate::model::text::shell_line;
use crate::model::{
    AgentName, Checkpoint, CheckpointRecord, CheckpointStatus, CommitId, Failure, FailureKind, GitState, LaneId, Stage,
    Timestamp,
};

/// What the records name besides what events say. All paths are absolute.
#[derive(Debug, Clone)]
pub struct RunPlaces {
    /// The run log.
    pub log_path: PathBuf,
    /// The checkpoint file.
    pub checkpoint_path: PathBuf,
    /// The words before a command in a hint, normally `lanekeeper` alone.
    pub program: Vec<String>,
    /// The main worktree's root.
    pub repository: PathBuf,
}

/// A fold over a run's events that says which records of `checkpoints.json` they change.
#[derive(Debug, Clone)]
pub struct CheckpointFold {
    places: RunPlaces,
    run: Option<RunStarted>,
    /// What all records share.
    shared: Option<Shared>,
    session_id: Option<Arc<str>>,
    phase: Branch,
    lanes: HashMap<LaneId, Branch>,
}

/// Texts that are the same in every record of a run.
#[derive(Debug, Clone)]
struct Shared {
    base_branch: Arc<str>,
    log_path: Arc<Path>,
    resume_hint: Arc<str>,
    /// Flags that a hint must carry because the files are not where they are looked for.
    elsewhere: Vec<String>,
}

/// What is known of one lane, or of the phase.
#[derive(Debug, Clone, Default)]
struct Branch {
    worktree: Option<Place>,
    own_worktrees: BTreeSet<AgentName>,
    head: Option<CommitId>,
    retries: u32,
    /// Where its pull request is.
    pull_request: Option<String>,
    rollback_hint: Option<Arc<str>>,
    /// The newest record of each stage, the newest of all last.
    records: Vec<CheckpointRecord>,
    /// What the record was before the lane failed or was blocked, for a resume.
    before_ending: Option<Box<CheckpointRecord>>,
}

/// Where a lane's worktree is, and what is checked out in it.
#[derive(Debug, Clone)]
struct Place {
    path: Arc<Path>,
    branch: Option<Arc<str>>,
}

impl CheckpointFold {
    /// Before the first event.
    pub fn new(places: RunPlaces) -> Self {
        Self { places, run: None, shared: None, session_id: None, phase: Branch::default(), lanes: HashMap::new() }
    }

    /// Takes in one record of the run log and gives the checkpoint records that it writes: each replaces the one with
    /// the same run, phase, lane and stage.
    pub fn apply(&mut self, record: &Record) -> Vec<CheckpointRecord> {
        let at = record.at;
        match &record.event {
            Event::RunStarted(started) => {
                self.session_id = Some(started.owner.session_id.as_str().into());
                self.shared = Some(Shared::of(started, &self.places));
                self.run = Some((**started).clone());
                Vec::new()
            }
            Event::RunResumed { owner, .. } => {
                self.session_id = Some(owner.session_id.as_str().into());
                self.undo_endings(at)
            }
            Event::FinalOpened { worktree } => {
                self.phase.open(worktree);
                Vec::new()
            }
            Event::CheckpointReached { lane, checkpoint } => self.reach(lane.as_ref(), checkpoint, at),
            Event::RetryPlanned { lane, checkpoint, .. } => {
                self.lane(lane).retries += 1;
                self.reach(Some(lane), checkpoint, at)
            }
            Event::LaneMerged { lane, commit, .. } => self.merged(lane, commit, at),
            Event::PullRequestOpened { lane, pull_request, .. } => {
                self.lane(lane).pull_request = Some(pull_request.url.clone());
                Vec::new()
            }
            Event::LaneFailed { lane, failure } => self.failed(lane, failure, at),
            Event::LaneBlocked { lane, reason } => self.end(
                lane,
                at,
                |_| None,
                |record| {
                    record.status = CheckpointStatus::Blocked;
                    record.notes = reason.clone();
                },
            ),
            Event::LaneRolledBack { lane, .. } => self.rolled_back(lane, at),
            event => {
                if let Some(lane) = event.lane() {
                    self.lane(lane).follow(event);
                }
                Vec::new()
            }
        }
    }

    /// The newest record of a stage of a lane, or of the phase.
    pub fn record(&self, lane: Option<&LaneId>, stage: Stage) -> Option<&CheckpointRecord> {
        let branch = lane.map_or(Some(&self.phase), |lane| self.lanes.get(lane))?;
        branch.stage(stage).map(|at| &branch.records[at])
    }

    fn lane(&mut self, lane: &LaneId) -> &mut Branch {
        self.lanes.entry(lane.clone()).or_default()
    }

    fn reach(&mut self, lane: Option<&LaneId>, checkpoint: &Checkpoint, at: Timestamp) -> Vec<CheckpointRecord> {
        let (Some(run), Some(shared)) = (&self.run, &self.shared) else { return Vec::new() };
        let branch = match lane {
            Some(lane) => self.lanes.entry(lane.clone()).or_default(),
            None => &mut self.phase,
        };
        if let Some(head) = &checkpoint.head_sha {
            branch.head = Some(head.clone());
        }
        let rollback = || shared.hint(commands(run, &self.places).execute_phase_rollback(&run.plan_path, lane));
        let rollback_hint = branch.rollback_hint.get_or_insert_with(rollback).clone();
        let worktree_path = worktree_path(run, &self.places, lane, branch);
        let session_id = self.session_id.clone();
        let written = Written { run, shared, rollback_hint, worktree_path, session_id };
        let record = written.record(lane, branch, checkpoint, at);
        branch.before_ending = None;
        branch.records.retain(|known| known.stage != record.stage);
        // Most lanes have three, and there may be thousands of lanes.
        branch.records.reserve_exact(1);
        branch.records.push(record.clone());
        vec![record]
    }

    fn merged(&mut self, lane: &LaneId, commit: &CommitId, at: Timestamp) -> Vec<CheckpointRecord> {
        let pull_request = self.lane(lane).pull_request.as_ref();
        let notes = pull_request.map_or_else(|| format!("merged as {commit}"), |url| format!("pull request {url}"));
        let changed = self.end(
            lane,
            at,
            |branch| branch.stage(Stage::PrePr),
            |record| {
                record.status = CheckpointStatus::Complete;
                record.notes = notes;
            },
        );
        self.lane(lane).before_ending = None;
        changed
    }

    /// Seed 004, Failure Scenarios: the stage's record fails; with no retry left the `retry_attempt` record does.
    fn failed(&mut self, lane: &LaneId, failure: &Failure, at: Timestamp) -> Vec<CheckpointRecord> {
        let attempt = self.lane(lane).retries + 1;
        let exhausted = |branch: &Branch| {
            let retry = branch.stage(Stage::RetryAttempt).filter(|_| failure.kind != FailureKind::State)?;
            let record = &branch.records[retry];
            (record.retry_attempt >= record.max_retries).then_some(retry)
        };
        self.end(lane, at, exhausted, |record| {
            record.status = CheckpointStatus::Failed;
            record.notes = failure.message.clone();
            record.retry_attempt = record.retry_attempt.map(|retry| retry.min(record.max_retries.unwrap_or(retry)));
            record.failure_context.extend(failure.context(attempt));
            record.command = failure.command.clone().or(record.command.take());
            record.exit_code = failure.exit_code.or(record.exit_code);
        })
    }

    fn rolled_back(&mut self, lane: &LaneId, at: Timestamp) -> Vec<CheckpointRecord> {
        let branch = self.lane(lane);
        for record in &mut branch.records {
            record.status = CheckpointStatus::RolledBack;
            record.timestamp = at;
        }
        let records = branch.records.clone();
        *branch = Branch { records: records.clone(), retries: branch.retries, ..Branch::default() };
        records
    }

    /// Changes the record that `choose` finds, or the lane's newest one.
    fn end(
        &mut self,
        lane: &LaneId,
        at: Timestamp,
        choose: impl Fn(&Branch) -> Option<usize>,
        change: impl FnOnce(&mut CheckpointRecord),
    ) -> Vec<CheckpointRecord> {
        let session_id = self.session_id.clone();
        let branch = self.lane(lane);
        let Some(chosen) = choose(branch).or(branch.records.len().checked_sub(1)) else { return Vec::new() };
        let git = branch.git();
        let head = branch.head.clone();
        let mut record = branch.records.remove(chosen);
        branch.before_ending.get_or_insert_with(|| Box::new(record.clone()));
        change(&mut record);
        record.timestamp = at;
        record.session_id = session_id;
        record.head_sha = head.or(record.head_sha);
        record.git = git.or(record.git);
        branch.records.push(record.clone());
        vec![record]
    }

    /// A resume gives failed and blocked lanes another chance: their records are again what they were.
    fn undo_endings(&mut self, at: Timestamp) -> Vec<CheckpointRecord> {
        let session_id = self.session_id.clone();
        let mut names: Vec<&LaneId> = self.lanes.keys().collect();
        names.sort();
        let names: Vec<LaneId> = names.into_iter().cloned().collect();
        let mut changed = Vec::new();
        for name in names {
            let branch = self.lane(&name);
            if let Some(mut record) = branch.before_ending.take().map(|record| *record) {
                record.timestamp = at;
                record.session_id = session_id.clone();
                branch.records.retain(|known| known.stage != record.stage);
                branch.records.push(record.clone());
                changed.push(record);
            }
        }
        changed
    }
}

impl Branch {
    fn open(&mut self, worktree: &Worktree) {
        self.head = Some(worktree.head.clone());
        let branch = Some(worktree.branch.as_str()).filter(|branch| !branch.is_empty()).map(Arc::from);
        self.worktree = Some(Place { path: worktree.path.as_path().into(), branch });
    }

    fn stage(&self, stage: Stage) -> Option<usize> {
        self.records.iter().position(|record| record.stage == stage)
    }

    fn git(&self) -> Option<GitState> {
        let branch = self.worktree.as_ref()?.branch.clone();
        // Nothing is dirty at a checkpoint of Lanekeeper's own, which commits first.
        Some(GitState { branch, head: self.head.clone(), dirty_files: Vec::new() })
    }

    /// Keeps where the lane's branch stands.
    fn follow(&mut self, event: &Event) {
        match event {
            Event::LaneBased { base, .. } | Event::LaneReset { base, .. } => self.head = Some(base.clone()),
            Event::WorktreeOpened { agent: None, worktree, .. } => self.open(worktree),
            Event::WorktreeOpened { agent: Some(agent), .. } => {
                self.own_worktrees.insert(agent.clone());
            }
            Event::AgentMerged { head, .. } => self.head = Some(head.clone()),
            // An agent without a worktree of its own works on the lane's branch.
            Event::WorkCommitted { agent, head, .. } if !self.own_worktrees.contains(agent) => {
                self.head = Some(head.clone());
            }
            _ => {}
        }
    }
}

impl Shared {
    fn of(run: &RunStarted, places: &RunPlaces) -> Self {
        let elsewhere = unusual_places(run, places);
        let resume = commands(run, places).execute_phase_resume(&run.plan_path);
        Self {
            base_branch: run.base_branch.as_str().into(),
            log_path: places.log_path.as_path().into(),
            resume_hint: shell_line(resume.iter().chain(&elsewhere)).into(),
            elsewhere,
        }
    }

    fn hint(&self, words: Vec<String>) -> Arc<str> {
        shell_line(words.iter().chain(&self.elsewhere)).into()
    }
}

fn commands<'a>(run: &'a RunStarted, places: &'a RunPlaces) -> Commands<'a> {
    Commands { program: &places.program, run: &run.run_id }
}

/// What a record says besides its checkpoint.
struct Written<'a> {
    run: &'a RunStarted,
    shared: &'a Shared,
    rollback_hint: Arc<str>,
    worktree_path: Arc<Path>,
    session_id: Option<Arc<str>>,
}

impl Written<'_> {
    fn record(
        self,
        lane: Option<&LaneId>,
        branch: &Branch,
        checkpoint: &Checkpoint,
        at: Timestamp,
    ) -> CheckpointRecord {
        let target = || checkpoint.target_branch.as_deref().map_or_else(|| self.shared.base_branch.clone(), Arc::from);
        CheckpointRecord {
            run_id: self.run.run_id.clone(),
            phase: self.run.phase.clone(),
            lane: lane.cloned(),
            stage: checkpoint.stage,
            status: checkpoint.status,
            base_branch: self.shared.base_branch.clone(),
            worktree_path: self.worktree_path,
            log_path: self.shared.log_path.clone(),
            timestamp: at,
            notes: checkpoint.context.clone(),
            resume_hint: self.shared.resume_hint.clone(),
            rollback_hint: self.rollback_hint,
            retry_attempt: checkpoint.retry_attempt,
            max_retries: checkpoint.max_retries,
            failure_context: checkpoint.failure_context.clone(),
            command: checkpoint.command.clone(),
            exit_code: checkpoint.exit_code,
            head_sha: branch.head.clone(),
            target_branch: (checkpoint.stage == Stage::PrePr).then(target),
            git: branch.git(),
            session_id: self.session_id,
        }
    }
}

fn worktree_path(run: &RunStarted, places: &RunPlaces, lane: Option<&LaneId>, branch: &Branch) -> Arc<Path> {
    match (&branch.worktree, lane) {
        (Some(worktree), _) => worktree.path.clone(),
        (None, Some(lane)) => {
            run.options.worktree_root.join(run.run_id.as_str()).join(lane.as_str()).join("code").into()
        }
        (None, None) => places.repository.as_path().into(),
    }
}

/// Flags that a hint must carry because the files are not where they are looked for.
fn unusual_places(run: &RunStarted, places: &RunPlaces) -> Vec<String> {
    let usual = places.repository.join(RUN_LOG_DIRECTORY);
    let flag = |name: &str, path: &Path, usual: PathBuf| {
        (path != usual).then(|| [name.to_owned(), path.to_string_lossy().into_owned()])
    };
    let checkpoints = flag("--checkpoint-path", &places.checkpoint_path, usual.join("checkpoints.json"));
    let log = flag("--log-path", &places.log_path, usual.join(format!("{}.jsonl", run.run_id)));
    checkpoints.into_iter().chain(log).flatten().collect()
}

#[cfg(test)]
mod tests;
