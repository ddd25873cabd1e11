//! Collects the facts about runs from the store, from git and from the processes. Nothing here writes a byte.

mod checkpoints;
mod shared;
mod traces;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lanewright_files::regular_file::read_left;
use lanewright_git::{GitError, Pool, Repository, Slot, SlotCheckout, branch_reference};
use lanewright_model::digest::sha256;
use lanewright_model::event::{Event, Record, RunStarted};
use lanewright_model::{CheckpointRecord, CommitId, JobId, LaneId, Plan, RunId};
use lanewright_programs::process;
use lanewright_schedule::{Fault, RunState};
use lanewright_store::checkpoints::records;
use lanewright_store::recovery::run_log::salvage;
use lanewright_store::{LaneDirectory, LogContents, LogError, RunDirectory, StateDirectory, lane_files, lock, run_log};
use lanewright_view::RunHistory;
use lanewright_view::contract::tasks::task_file;

use crate::at_resume::agent_names::with_recorded_names;
use crate::at_resume::{PlanOnRecord, pinned_text};
use crate::doctor::error::Result;
use crate::doctor::facts::*;
use crate::doctor::{Expected, Holding, Owned};
use crate::executor::repair::damaged_objects::NeededCommits;

/// The source of a plan as it is now: its SHA-256, prompt files included, and the plan, if it is one.
pub type Source = (String, Option<Arc<Plan>>);

pub struct Scope<'a> {
    pub repository: &'a Repository,
    pub state: &'a StateDirectory,
    pub worktree_root: &'a Path,
    /// Only this run; `None`: all of them.
    pub only: Option<&'a RunId>,
    /// Runs whose locks this process holds.
    pub ours: &'a BTreeSet<RunId>,
    /// Reads a plan's source; `None`: it cannot be read.
    pub read_source: &'a dyn Fn(&RunStarted, &[String]) -> Option<Source>,
}

pub fn scan(scope: &Scope<'_>) -> Result<Facts> {
    let checkpoints = records(&scope.state.checkpoints(), |_| true).map_err(|error| error.to_string());
    let records = checkpoints.as_deref().unwrap_or_default();
    let all = traces::known_runs(scope, records)?;
    let mut by_run: BTreeMap<&RunId, Vec<&CheckpointRecord>> = BTreeMap::new();
    records.iter().for_each(|record| by_run.entry(&record.run_id).or_default().push(record));
    let facts = |run: RunId| {
        let own = by_run.get(&run).map(Vec::as_slice).unwrap_or_default();
        run_facts(scope, run, own).map(RunFacts::without_details)
    };
    let every = all.into_iter().map(facts).collect::<Result<Vec<_>, _>>()?;
    let shared = shared::shared_facts(scope, &every, checkpoints)?;
    let asked = |run: &RunFacts| scope.only.is_none_or(|only| *only == run.run);
    Ok(Facts { runs: every.into_iter().filter(asked).collect(), shared })
}

/// `own`: what `checkpoints.json` holds of the run.
fn run_facts(scope: &Scope<'_>, run: RunId, own: &[&CheckpointRecord]) -> Result<RunFacts> {
    let directory = scope.state.run(&run);
    let held = !scope.ours.contains(&run) && lock::is_held(&directory.lock());
    let log_path = traces::log_path(&directory, own);
    let log = log_seen(&log_path, &run, held);
    let mut facts = RunFacts {
        log_path,
        directory: directory.directory(),
        held,
        expected: log.certain().and_then(Expected::of),
        log,
        plan: PlanSeen { path: directory.plan(), ..PlanSeen::default() },
        tasks: Vec::new(),
        statuses: Vec::new(),
        holdings: Vec::new(),
        damaged: Vec::new(),
        jobs: Vec::new(),
        checkpoints: NewestCheckpoints::default(),
        base_missing: None,
        traces: None,
        run,
    };
    let pinned = pinned(&directory, &facts.log);
    let written = pinned.as_ref().and_then(|text| text.as_ref().ok()).map(sha256);
    facts.plan.pinned =
        pinned.map(|text| serde_json::from_slice::<Plan>(&text?).map(Arc::new).map_err(|error| error.to_string()));
    if held {
        return Ok(facts);
    }
    if let Some(mut expected) = facts.expected.take() {
        inspect_plan(scope, &mut facts, &mut expected, written);
        let events = facts.log.certain().unwrap_or_default();
        let plan = expected.state.as_ref().map(RunState::plan);
        facts.checkpoints = checkpoints::expected(scope, &facts.log_path, plan.map(|plan| &**plan), events, own);
        facts.jobs = jobs(&directory, &expected);
        let base = scope.repository.target_of(&branch_reference(&expected.started.base_branch))?;
        facts.base_missing =
            expected.state.as_ref().and_then(RunState::integration).filter(|_| base.is_none()).cloned();
        facts.holdings = holdings(scope, &facts, &expected)?;
        facts.damaged = damaged_lanes(scope, &expected)?;
        let lanes: BTreeSet<LaneId> = expected.holdings().into_keys().filter_map(|(lane, _)| lane).collect();
        facts.statuses = statuses(&expected, &lanes);
        facts.tasks = tasks(&expected, lanes, events);
        facts.expected = Some(expected);
    } else {
        facts.traces = Some(traces::find(scope, &facts, own)?);
    }
    Ok(facts)
}

/// Reads the pinned plan and its source, and replays the log with the one that fits it.
fn inspect_plan(scope: &Scope<'_>, facts: &mut RunFacts, expected: &mut Expected, sha256: Option<String>) {
    let events: &[Record] = facts.log.certain().unwrap_or_default();
    let known: BTreeSet<String> =
        events.iter().filter_map(|record| record.event.lane()).map(ToString::to_string).collect();
    let known: Vec<String> = known.into_iter().collect();
    let source = (scope.read_source)(&expected.started, &known);
    let on_record = PlanOnRecord::of(events);
    let pinned = |source: &Source| source.0 == on_record.source;
    facts.plan.changed = match (&source, &facts.plan.pinned) {
        (Some(now), Some(Ok(plan))) => !pinned(now) && now.1.as_ref() != Some(plan),
        _ => false,
    };
    facts.plan.source_sha256 = on_record.source.to_owned();
    let source = source.filter(pinned).and_then(|(_, plan)| plan);
    facts.plan.source = source.map(|plan| Arc::new(with_recorded_names(Plan::clone(&plan), events)));
    let text = facts.plan.source.as_ref().and_then(|plan| serde_json::to_vec_pretty(plan).ok());
    facts.plan.is_source = text.is_some_and(|text| self::sha256(&text) == on_record.pinned);
    if let Some(Ok(plan)) = facts.plan.pinned.as_ref().map(|plan| plan.as_ref()) {
        let is_foreign = sha256.is_some_and(|sha256| on_record.is_foreign(&sha256));
        facts.plan.edited = is_foreign && facts.plan.source.as_ref() != Some(plan);
        facts.plan.contradiction = expected.replay(plan, events).err();
    }
    if let Some(source) = &facts.plan.source
        && let Err((_, fault @ (Fault::UnknownLane(_) | Fault::UnknownAgent(..)))) = RunState::replay(source, events)
    {
        facts.plan.unfit = Some(fault);
        facts.plan.source = None;
    }
    if let (None, Some(source)) = (&expected.state, &facts.plan.source) {
        let _ = expected.replay(source, events);
    }
}

impl RunFacts {
    /// Without what no finding about a run that is done needs: there may be thousands of them.
    fn without_details(mut self) -> Self {
        if let (Some(expected), LogSeen::Whole { records, torn: false }) = (&mut self.expected, &mut self.log)
            && expected.done()
        {
            expected.state = None;
            // Those name what the pinned plan alone has.
            records.retain(|record| matches!(record.event, Event::RunResumed { .. }));
            records.shrink_to_fit();
        }
        self
    }
}

impl LogSeen {
    pub fn certain(&self) -> Option<&[Record]> {
        match self {
            Self::Whole { records, .. } => Some(records),
            Self::Damaged(salvage) if salvage.lost.is_empty() => Some(&salvage.records),
            Self::Damaged(_) | Self::Missing | Self::Empty | Self::Newer(_) | Self::Unreadable(_) => None,
        }
    }
}

/// `held`: the log is being written, so its end is no damage.
fn log_seen(path: &Path, run: &RunId, held: bool) -> LogSeen {
    if fs::symlink_metadata(path).is_err() {
        return LogSeen::Missing;
    }
    match run_log::read(path) {
        Err(LogError::NewerFormat { found, .. }) => LogSeen::Newer(found),
        Err(error) => LogSeen::Unreadable(error.to_string()),
        Ok(contents) if contents.damage.is_empty() && contents.records.is_empty() => LogSeen::Empty,
        Ok(LogContents { records, .. }) if run_of_log(&records).is_some_and(|found| found != run) => {
            LogSeen::Unreadable(format!("it does not begin with the beginning of run {run}; put the right file there"))
        }
        Ok(contents) if contents.damage.is_empty() => {
            LogSeen::Whole { records: contents.records, torn: contents.torn_tail && !held }
        }
        Ok(_) => salvage(path, run)
            .map_or_else(|error| LogSeen::Unreadable(error.to_string()), |salvage| LogSeen::Damaged(Box::new(salvage))),
    }
}

/// The run that the first record starts.
fn run_of_log(records: &[Record]) -> Option<&RunId> {
    match &records.first()?.event {
        Event::RunStarted(started) => Some(&started.run_id),
        _ => None,
    }
}

fn pinned(directory: &RunDirectory, log: &LogSeen) -> Option<Result<Vec<u8>, String>> {
    fs::symlink_metadata(directory.plan()).ok()?;
    Some(pinned_text(directory, log.certain().unwrap_or_default()).map_err(|error| error.to_string()))
}

/// Whether the last process of a run ended normally, and so wrote the files that follow from its log.
fn has_ended(events: &[Record]) -> bool {
    let ends = |event: &Event| match event {
        Event::RunFinished { .. } => Some(true),
        Event::RunStarted(_) | Event::RunResumed { .. } => Some(false),
        _ => None,
    };
    events.iter().rev().find_map(|record| ends(&record.event)).unwrap_or_default()
}

fn tasks(expected: &Expected, lanes: BTreeSet<LaneId>, events: &[Record]) -> Vec<TaskSeen> {
    let Some(state) = &expected.state else { return Vec::new() };
    let (root, run) = (&expected.started.options.worktree_root, &expected.started.run_id);
    let seen = |lane: LaneId| {
        let path = LaneDirectory::new(root, run, &lane).task_file();
        let exists = fs::symlink_metadata(&path).is_ok();
        let found = lane_files::read_task(&path).ok().flatten();
        let (mut history, mut late) = (RunHistory::for_plan(state.plan()), !exists && !has_ended(events));
        for record in events {
            history.apply(record);
            let task = found.as_ref().zip(task_file(&history, state.plan(), &lane));
            late = late || task.is_some_and(|(found, task)| differing(found, &task).is_empty());
        }
        let expected = task_file(&history, state.plan(), &lane)?;
        let raw = read_left(&path).and_then(|text| serde_json::from_str(&text).ok());
        Some(TaskSeen { exists, raw, found, expected, late, path, lane })
    };
    lanes.into_iter().filter_map(seen).collect()
}

fn statuses(expected: &Expected, lanes: &BTreeSet<LaneId>) -> Vec<StatusSeen> {
    let Some(plan) = expected.state.as_ref().map(RunState::plan) else { return Vec::new() };
    let (root, run) = (&expected.started.options.worktree_root, &expected.started.run_id);
    let mut found = Vec::new();
    for lane in plan.lanes.iter().filter(|lane| lanes.contains(&lane.id)) {
        for agent in &lane.agents {
            let path = LaneDirectory::new(root, run, &lane.id).status_file(&agent.name);
            let object = || serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&read_left(&path)?).ok();
            if fs::symlink_metadata(&path).is_err() || object().is_some() {
                continue;
            }
            let of_agent = |job: &JobId| job.lane.as_ref() == Some(&lane.id) && job.agent() == Some(&agent.name);
            let open = expected.open_jobs().any(of_agent);
            found.push(StatusSeen { lane: lane.id.clone(), agent: agent.name.clone(), path, open });
        }
    }
    found
}

fn jobs(directory: &RunDirectory, expected: &Expected) -> Vec<(JobId, PathBuf, Result<process::Observation, String>)> {
    let seen = |job: &JobId| {
        let path = directory.job(job);
        let seen = process::observe(&path).map_err(|error| error.to_string());
        (job.clone(), path, seen)
    };
    expected.open_jobs().map(seen).collect()
}

fn damaged_lanes(scope: &Scope<'_>, expected: &Expected) -> Result<Vec<DamagedLane>, GitError> {
    let Some(state) = expected.state.as_ref().filter(|_| !expected.done()) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for lane in state.plan().indices().filter(|&lane| state.lane(lane).is_left_to_do()) {
        let commits = NeededCommits::of(state, lane).damaged(scope.repository)?;
        if !commits.is_empty() {
            let (root, run) = (&expected.started.options.worktree_root, &expected.started.run_id);
            let directory = LaneDirectory::new(root, run, &state.plan().lane(lane).id).path().to_owned();
            found.push(DamagedLane { lane, directory, commits });
        }
    }
    Ok(found)
}

fn holdings(scope: &Scope<'_>, facts: &RunFacts, expected: &Expected) -> Result<Vec<HoldingSeen>, GitError> {
    let options = &expected.started.options;
    let pool = Pool::new(scope.repository.clone(), &options.worktree_root, u32::MAX, options.keep_caches);
    let slots = pool.inspect_slots()?;
    let own = expected.holdings().into_iter();
    own.map(|(owned, holding)| holding_seen(scope, facts, expected, owned, holding, &slots)).collect()
}

fn holding_seen(
    scope: &Scope<'_>,
    facts: &RunFacts,
    expected: &Expected,
    owned: Owned,
    mut holding: Holding,
    slots: &[Slot],
) -> Result<HoldingSeen, GitError> {
    let slot = slots.iter().find(|slot| slot.number == holding.worktree.slot);
    let (mut claim, mut checkout) = (Claimed::ByNobody, None);
    match slot.map(|slot| &slot.holder) {
        None | Some(Ok(None)) => {}
        Some(Ok(Some(holder))) if *holder == expected.holder(&owned) => {
            claim = Claimed::Rightly;
            checkout = slot.and_then(|slot| slot.checkout.clone());
        }
        Some(Ok(Some(other))) => claim = Claimed::ByAnother(other.run.to_string()),
        Some(Err(reason)) => claim = Claimed::Damaged(reason.clone()),
    }
    // The claim is written with every checkout, the log after it.
    if let Some(SlotCheckout::Detached(commit)) = &checkout {
        holding.worktree.branch.clear();
        holding.head = commit.clone();
    }
    let incomplete = checkout == Some(SlotCheckout::Incomplete);
    let worktree = &holding.worktree;
    let branch = match worktree.branch.as_str() {
        "" => Some(holding.head.clone()),
        // One whose commit cannot be read is there; git itself says that it is not.
        name => scope.repository.target_of(&branch_reference(name))?,
    };
    let works_here = |job: &&JobId| expected.workplace(job) == owned;
    let alive = facts
        .jobs
        .iter()
        .filter(|(_, _, seen)| matches!(seen, Ok(process::Observation::Starting | process::Observation::Running(_))));
    let busy = alive.map(|(job, ..)| job).find(works_here).cloned();
    let (mut snapshot, mut lost_snapshot) = (None, None);
    if let Some((name, commit)) = expected.last_snapshot(&owned) {
        if scope.repository.target_of(name)?.is_some() {
            snapshot = Some(name.to_owned());
        } else if !scope.repository.has_commit(commit)? {
            lost_snapshot = Some(name.to_owned());
        }
    }
    Ok(HoldingSeen {
        state: scope.repository.worktree_state(&worktree.path, &worktree.branch)?,
        origin: if branch.is_none() { origin(scope.repository, expected, &owned, &holding)? } else { None },
        owned,
        holding,
        branch,
        claim,
        incomplete,
        busy,
        snapshot,
        lost_snapshot,
    })
}

/// Where a branch that is gone can be made again: the latest of where its worktree last stood, where it stood at its newest
/// snapshot and where the run log last knows it, else at that snapshot itself.
fn origin(
    repository: &Repository,
    expected: &Expected,
    owned: &Owned,
    holding: &Holding,
) -> Result<Option<(CommitId, String)>, GitError> {
    let mut candidates: Vec<(CommitId, String)> = Vec::new();
    // Lanewright moves the branch of a lane without its worktree, whose log of heads then lags behind.
    let last = match repository.last_head(&holding.worktree.path) {
        Some(last) if repository.has_commit(&holding.head)? && repository.is_ancestor(&last, &holding.head)? => None,
        last => last,
    };
    candidates.extend(last.map(|it| (it, "where its worktree last stood".to_owned())));
    let snapshot = expected.last_snapshot(owned).map(|(name, commit)| (commit.clone(), name));
    if let Some((commit, name)) = &snapshot
        && repository.has_commit(&holding.head)?
        && let Some(stood) = repository.parent_of(commit)?
        && repository.is_ancestor(&holding.head, &stood)?
    {
        candidates.push((stood, format!("where it stood at its snapshot {name}")));
    }
    candidates.push((holding.head.clone(), "where the run log last knows it".to_owned()));
    candidates.extend(snapshot.map(|(commit, name)| (commit, format!("its snapshot {name}"))));
    for candidate in candidates {
        if repository.has_commit(&candidate.0)? {
            return Ok(Some(candidate));
        }
    }
    Ok(None)
}
