//! The records of `checkpoints.json` as they follow from events (SPEC §5; seed 004, Recovery Contract).
//!
//! The newest stage of a lane, and of the phase, says where it stands now; stages before it are passed. So a record changes
//! whenever what it says is no longer true, not only when a stage is reached.

mod phase;
mod standing;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lanewright_model::event::{Event, Record, RunStarted};
use lanewright_model::ownership::RUN_LOG_DIRECTORY;
use lanewright_model::text::shell_line;
use lanewright_model::{Checkpoint, CheckpointRecord, CheckpointStatus, LaneId, Stage, Timestamp};

use crate::answers::commands::Commands;
use crate::history::{LaneHistory, LaneState, RunHistory, StateGroup, worktree_link};

/// What the records name besides what events say. All paths are absolute.
#[derive(Debug, Clone)]
pub struct RunFiles {
    pub log_path: PathBuf,
    pub checkpoint_path: PathBuf,
    /// The words before a command in a hint, so that it works from any directory: `lanewright -C REPOSITORY`.
    pub program: Vec<String>,
    pub repository: PathBuf,
}

impl RunFiles {
    pub fn new(log_path: PathBuf, checkpoint_path: PathBuf, repository: PathBuf) -> Self {
        let program = ["lanewright", "-C", &repository.to_string_lossy()].map(str::to_owned).to_vec();
        Self { log_path, checkpoint_path, program, repository }
    }
}

#[derive(Debug, Clone)]
pub struct CheckpointFold {
    pub history: RunHistory,
    files: RunFiles,
    shared: Option<SharedTexts>,
    /// Of each lane, and of the phase.
    written: BTreeMap<Option<LaneId>, Vec<StageRecord>>,
    /// The lanes that depend on each lane.
    dependants: BTreeMap<LaneId, Vec<LaneId>>,
    /// The state of each lane as it was seen last, and how many lanes are in each group of states.
    states: BTreeMap<LaneId, LaneState>,
    groups: Groups,
    /// The number of the record that was applied last.
    seq: u64,
    /// Whether no process works on the run, although it is not over.
    is_interrupted: bool,
}

/// How many lanes are in each group of states.
type Groups = BTreeMap<StateGroup, usize>;

/// Texts that are the same in every record of a run: there may be thousands of lanes.
#[derive(Debug, Clone)]
struct SharedTexts {
    base_branch: Arc<str>,
    log_path: Arc<Path>,
    resume_hint: Arc<str>,
    session_id: Arc<str>,
    /// The words before a command, with the flags that it needs where the files are not at their usual paths.
    program: Vec<String>,
}

/// A stage that was reached, and its record as it was written last.
#[derive(Debug, Clone)]
struct StageRecord {
    reached: Checkpoint,
    /// The number of the record by which it was reached.
    seq: u64,
    /// Whether its lane was rolled back after it.
    rolled_back: bool,
    /// Whether `record` was not returned yet.
    is_new: bool,
    record: CheckpointRecord,
}

impl CheckpointFold {
    /// Before the first event of `history`.
    pub fn new(files: RunFiles, history: RunHistory) -> Self {
        let mut dependants: BTreeMap<LaneId, Vec<LaneId>> = BTreeMap::new();
        for lane in history.lanes() {
            for on in &lane.depends_on {
                dependants.entry(on.clone()).or_default().push(lane.id.clone());
            }
        }
        let (written, states, groups) = Default::default();
        Self { history, files, shared: None, written, dependants, states, groups, seq: 0, is_interrupted: false }
    }

    /// Applies a record of the run log and returns the checkpoint records that it changes: each replaces the one with the
    /// same run, phase, lane and stage.
    pub fn apply(&mut self, record: &Record) -> Vec<CheckpointRecord> {
        self.history.apply(record);
        self.seq = record.seq;
        let (at, event) = (record.at, &record.event);
        match event {
            Event::RunStarted(started) => self.shared = Some(SharedTexts::of(started, &self.files)),
            Event::RunResumed { owner, .. } => {
                self.shared.iter_mut().for_each(|shared| shared.session_id = owner.session_id.as_str().into());
            }
            Event::CheckpointReached { lane, checkpoint } => self.reached(lane.as_ref(), checkpoint, at),
            Event::RetryPlanned { lane, checkpoint, .. } => self.reached(Some(lane), checkpoint, at),
            Event::LaneRolledBack { lane, point, .. } => {
                let last = point.as_ref().map_or(0, |point| point.seq);
                if let Some(written) = self.written.get_mut(&Some(lane.clone())) {
                    written.iter_mut().for_each(|stage| stage.rolled_back |= stage.seq > last);
                    // The last one says where the lane stands.
                    written.sort_by_key(|stage| !stage.rolled_back);
                }
            }
            _ => {}
        }
        self.is_interrupted &= !matches!(event, Event::RunResumed { .. });
        let mut changed = Vec::new();
        let mut concerns_phase = phase::concerns(event);
        match event.lane() {
            Some(lane) => concerns_phase |= self.refresh_with_dependants(lane, at, event, &mut changed),
            None if phase::concerns_all_lanes(event) => self.refresh_all(at, &mut changed),
            None => {}
        }
        if let Some(checkpoint) = phase::checkpoint(&self.history, event) {
            self.reached(None, &checkpoint, at);
        }
        if concerns_phase {
            self.refresh(None, at, &mut changed);
        }
        changed
    }

    /// What changes when the process that works on the run ends before the run is over: nothing is at work then.
    pub fn interrupted(&mut self) -> Vec<CheckpointRecord> {
        let mut changed = Vec::new();
        let open = self.history.run.started.is_some() && self.history.run.finished.is_none();
        if let Some(at) = self.history.run.last.filter(|_| open) {
            self.is_interrupted = true;
            // At the time of the lane's own last event: what happens to another one later changes nothing here.
            let last = |lane: &LaneHistory| (lane.id.clone(), lane.last.unwrap_or(at));
            let lanes: Vec<(LaneId, Timestamp)> = self.history.lanes().iter().map(last).collect();
            lanes.iter().for_each(|(lane, at)| self.refresh_lane(lane, *at, &mut changed));
            self.refresh(None, at, &mut changed);
        }
        changed
    }

    /// The newest record of a stage of a lane, or of the phase.
    pub fn record(&self, lane: Option<&LaneId>, stage: Stage) -> Option<&CheckpointRecord> {
        let written = self.written.get(&lane.cloned())?;
        written.iter().find(|written| written.record.stage == stage).map(|written| &written.record)
    }

    fn refresh_all(&mut self, at: Timestamp, changed: &mut Vec<CheckpointRecord>) {
        let lanes: Vec<LaneId> = self.history.lanes().iter().map(|lane| lane.id.clone()).collect();
        for lane in &lanes {
            self.refresh_lane(lane, at, changed);
        }
    }

    /// Brings the records of a lane up to date, and those of the lanes that wait for one whose state has changed. Whether
    /// one has.
    fn refresh_with_dependants(
        &mut self,
        lane: &LaneId,
        at: Timestamp,
        event: &Event,
        changed: &mut Vec<CheckpointRecord>,
    ) -> bool {
        // An answer changes the word for a lane at rest, and not its state.
        let mut changes_word = matches!(event, Event::GateAnswered { .. } | Event::RollbackBegun { .. });
        let mut open = vec![lane.clone()];
        let (mut seen, mut has_changed) = (BTreeSet::new(), false);
        while let Some(lane) = open.pop() {
            if !seen.insert(lane.clone()) {
                continue;
            }
            let before = self.states.get(&lane).copied();
            self.refresh_lane(&lane, at, changed);
            let after = self.states.get(&lane).copied();
            has_changed |= before != after;
            // Records of lanes that wait for it name how it ended, and nothing that it does before.
            if before.and_then(end) != after.and_then(end) || std::mem::take(&mut changes_word) {
                open.extend(self.dependants.get(&lane).into_iter().flatten().cloned());
            }
        }
        has_changed
    }

    fn refresh_lane(&mut self, lane: &LaneId, at: Timestamp, changed: &mut Vec<CheckpointRecord>) {
        let Some(state) = self.history.lane(lane).map(|lane| lane.state) else { return };
        let newest = self.written.get(&Some(lane.clone())).and_then(|written| written.last());
        let begins_again = || newest.is_some_and(|newest| newest.rolled_back) && state != LaneState::RolledBack;
        if (newest.is_none() && state != LaneState::Skipped) || begins_again() {
            self.reached(Some(lane), &Checkpoint::new(Stage::BeforeLaneStart, CheckpointStatus::Ready), at);
        }
        self.refresh(Some(lane), at, changed);
        let before = self.states.insert(lane.clone(), state);
        if let Some(count) = before.and_then(|before| self.groups.get_mut(&before.group())) {
            *count -= 1;
        }
        *self.groups.entry(state.group()).or_default() += 1;
    }

    fn reached(&mut self, lane: Option<&LaneId>, checkpoint: &Checkpoint, at: Timestamp) {
        let Some(record) = self.new_record(lane, checkpoint, at) else { return };
        let written = self.written.entry(lane.cloned()).or_default();
        written.retain(|known| known.record.stage != record.stage);
        // Most lanes have three, and there may be thousands of lanes.
        written.reserve_exact(1);
        written.push(StageRecord {
            reached: checkpoint.clone(),
            seq: self.seq,
            rolled_back: false,
            is_new: true,
            record,
        });
    }

    /// Brings the records of a lane or of the phase up to date, and adds those that change.
    fn refresh(&mut self, lane: Option<&LaneId>, at: Timestamp, changed: &mut Vec<CheckpointRecord>) {
        let (Some(run), Some(shared)) = (self.history.run.start.as_deref(), self.shared.as_ref()) else { return };
        let key = lane.cloned();
        let Some(mut written) = self.written.remove(&key) else { return };
        let standing = match lane.map(|lane| self.history.lane(lane)) {
            Some(Some(lane)) => standing::of_lane(&self.history, lane, &shared.commands(run), self.is_interrupted),
            Some(None) => return,
            None => phase::standing(&self.history, &self.groups, &shared.commands(run), self.is_interrupted),
        };
        let path = worktree_path(run, &self.files, lane.and_then(|lane| self.history.lane(lane)));
        let is_merged = lane.and_then(|lane| self.history.lane(lane)).is_none_or(|lane| lane.is_merged());
        let current = standing.stage(&written);
        let mut after = at;
        for (_, stage) in written.iter_mut().enumerate().filter(|(index, _)| *index != current) {
            let mut record = stage.record.clone();
            standing::show_passed(&stage.reached, stage.rolled_back, is_merged, &mut record);
            record.worktree_path = same_or(&record.worktree_path, &path);
            after = after.max(record.timestamp.plus(Duration::from_millis(1)));
            if std::mem::take(&mut stage.is_new) || record != stage.record {
                stage.record = record.clone();
                changed.push(record);
            }
        }
        if let Some(stage) = written.get_mut(current) {
            let mut record = stage.record.clone();
            standing.show(&stage.reached, &mut record);
            record.worktree_path = same_or(&record.worktree_path, &path);
            if let Some(git) = standing.git {
                (record.head_sha, record.git) = (git.head.clone().or(record.head_sha), Some(git));
            }
            if stage.is_new || record != stage.record {
                // Later than all others, whatever the clock did: the newest record of a lane says where it stands.
                (record.timestamp, record.session_id) = (after, Some(shared.session_id.clone()));
                (stage.is_new, stage.record) = (false, record.clone());
                changed.push(record);
            }
        }
        self.written.insert(key, written);
    }

    fn new_record(&self, lane: Option<&LaneId>, checkpoint: &Checkpoint, at: Timestamp) -> Option<CheckpointRecord> {
        let (run, shared) = (self.history.run.start.as_deref()?, self.shared.as_ref()?);
        let of_lane = lane.map(|lane| self.history.lane(lane));
        let workplace = of_lane.map_or(Some(&self.history.run.workplace), |lane| Some(&lane?.workplace))?;
        let before = self.written.get(&lane.cloned()).and_then(|written| Some(&written.last()?.record));
        let rollback = || shell_line(shared.commands(run).execute_phase_rollback(&run.plan_path, lane)).into();
        let target = || checkpoint.target_branch.as_deref().map_or_else(|| shared.base_branch.clone(), Arc::from);
        Some(CheckpointRecord {
            run_id: run.run_id.clone(),
            phase: run.phase.clone(),
            lane: lane.cloned(),
            stage: checkpoint.stage,
            status: checkpoint.status,
            base_branch: shared.base_branch.clone(),
            worktree_path: before.map_or_else(|| Path::new("").into(), |before| before.worktree_path.clone()),
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
            head_sha: checkpoint.head_sha.clone().or(workplace.checkpoint_head.clone()),
            target_branch: (checkpoint.stage == Stage::PrePr).then(target),
            git: standing::git_of(workplace),
            session_id: Some(shared.session_id.clone()),
        })
    }
}

impl SharedTexts {
    fn of(run: &RunStarted, files: &RunFiles) -> Self {
        let program = [files.program.clone(), unusual_paths(run, files)].concat();
        let resume = Commands { program: &program, run: &run.run_id }.execute_phase_resume(&run.plan_path);
        Self {
            base_branch: run.base_branch.as_str().into(),
            log_path: files.log_path.as_path().into(),
            resume_hint: shell_line(resume).into(),
            session_id: run.owner.session_id.as_str().into(),
            program,
        }
    }

    fn commands<'a>(&'a self, run: &'a RunStarted) -> Commands<'a> {
        Commands { program: &self.program, run: &run.run_id }
    }
}

/// The state, if the lane is at rest.
fn end(state: LaneState) -> Option<LaneState> {
    Some(state)
        .filter(|state| !matches!(state.group(), StateGroup::Working | StateGroup::Waiting | StateGroup::NeedsYou))
}

/// The same path as before without another copy of it, if it is the same.
fn same_or(before: &Arc<Path>, path: &Path) -> Arc<Path> {
    if **before == *path { before.clone() } else { path.into() }
}

/// The link to the worktree of a lane, before it is there and while it is; empty afterwards. For the phase the user's
/// checkout.
fn worktree_path(run: &RunStarted, files: &RunFiles, lane: Option<&LaneHistory>) -> PathBuf {
    match lane {
        Some(lane) if standing::has_left_its_worktree(lane) => PathBuf::new(),
        Some(lane) => worktree_link(run, &lane.id, None),
        None => files.repository.clone(),
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
