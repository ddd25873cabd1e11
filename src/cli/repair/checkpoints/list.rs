//! `checkpoints list`.

use std::collections::BTreeMap;

use lanewright_model::event::Event;
use lanewright_model::text::counted;
use lanewright_model::{AgentName, CheckpointRecord, CommitId, JobId, LaneId, Stage, Timestamp};
use lanewright_view::RunHistory;
use lanewright_view::contract::checkpoints::{CheckpointFold, RunFiles};
use serde_json::{Value, json};

use super::find::records_of_named;
use crate::cli::args::ListCheckpoints;
use crate::cli::runs::{RunRecords, require_lane};
use crate::cli::snapshots::{Found, existing};
use crate::cli::{ExitStatus, RepositoryContext, Result};

pub(crate) fn run(within: &RepositoryContext, arguments: &ListCheckpoints) -> Result<ExitStatus> {
    let run = records_of_named(within, arguments.run.run.as_ref())?;
    if let (Some(lane), Some(plan)) = (&arguments.lane, &run.plan) {
        require_lane(plan, lane)?;
    }
    let wanted = |lane: Option<&LaneId>| arguments.lane.is_none() || arguments.lane.as_ref() == lane;
    let stages: Vec<CheckpointRecord> =
        stages(within, &run).into_iter().filter(|record| wanted(record.lane.as_ref())).collect();
    let mut found = existing(within, &run)?;
    found.retain(|found| wanted(Some(&found.snapshot.lane)));
    let sizes: Vec<Option<usize>> = found.iter().map(|found| size(within, found)).collect();
    let starts: Vec<AttemptStart> = starts(&run).into_iter().filter(|start| wanted(start.job.lane.as_ref())).collect();
    let text = as_text(&run, &stages, &starts, &found, &sizes);
    within.context.printer.print(text, &as_json(&run, &stages, &starts, &found, &sizes))
}

/// The commit that an attempt of an agent started from.
struct AttemptStart {
    at: Timestamp,
    job: JobId,
    commit: CommitId,
}

/// The starts of all attempts, the oldest first. Each is a checkpoint that needs no snapshot: it is committed.
fn starts(run: &RunRecords) -> Vec<AttemptStart> {
    let mut history = run.plan.as_ref().map_or_else(RunHistory::default, RunHistory::for_plan);
    let mut starts: Vec<AttemptStart> = Vec::new();
    for record in &run.records {
        history.apply(record);
        let Event::JobStarted { job, .. } = &record.event else { continue };
        // A resume that attaches to an attempt records its start again.
        let is_new = job.is_attempt() && starts.iter().all(|start| start.job != *job);
        let Some(lane) = job.lane.as_ref().and_then(|lane| history.lane(lane)).filter(|_| is_new) else { continue };
        let own = job.agent().and_then(|agent| lane.agent(agent)?.workplace.head.as_ref());
        let commit = own.or(lane.workplace.head.as_ref()).cloned();
        starts.extend(commit.map(|commit| AttemptStart { at: record.at, job: job.clone(), commit }));
    }
    starts
}

/// The newest record of each stage, in the order in which they were written, as the run log has them.
fn stages(within: &RepositoryContext, run: &RunRecords) -> Vec<CheckpointRecord> {
    let files =
        RunFiles::new(run.directory.log(), within.state.checkpoints(), within.repository.main_worktree().to_owned());
    let mut fold = CheckpointFold::new(files, run.plan.as_ref().map_or_else(RunHistory::default, RunHistory::for_plan));
    let mut newest: BTreeMap<(Option<LaneId>, Stage), CheckpointRecord> = BTreeMap::new();
    for record in run.records.iter().flat_map(|record| fold.apply(record)) {
        newest.insert((record.lane.clone(), record.stage), record);
    }
    let mut stages: Vec<CheckpointRecord> = newest.into_values().collect();
    stages.sort_by_key(|record| record.timestamp);
    stages
}

/// In how many files the snapshot differs from what its lane was built on; `None`: unknown.
fn size(within: &RepositoryContext, found: &Found) -> Option<usize> {
    let base = found.snapshot.base.as_ref().filter(|_| found.damage.is_none())?;
    within.repository.changed_paths(base, &found.snapshot.commit).ok().map(|paths| paths.len())
}

fn as_json(
    run: &RunRecords,
    stages: &[CheckpointRecord],
    starts: &[AttemptStart],
    found: &[Found],
    sizes: &[Option<usize>],
) -> Value {
    let start = |AttemptStart { at, job, commit }: &AttemptStart| {
        let (lane, agent, task) = (&job.lane, job.agent(), job.task());
        json!({"lane": lane, "agent": agent, "task": task, "attempt": job.number, "at": at, "commit": commit})
    };
    let starts: Vec<Value> = starts.iter().map(start).collect();
    let snapshot = |(found, size): (&Found, &Option<usize>)| {
        let it = &found.snapshot;
        json!({
            "name": it.name, "lane": it.lane, "agent": it.agent, "task": it.task, "reason": it.reason, "at": it.at,
            "commit": it.commit, "reference": it.reference, "changed_files": size, "damage": found.damage,
        })
    };
    let snapshots: Vec<Value> = found.iter().zip(sizes).map(snapshot).collect();
    json!({"run_id": run.run, "checkpoints": stages, "starts": starts, "snapshots": snapshots})
}

fn as_text(
    run: &RunRecords,
    stages: &[CheckpointRecord],
    starts: &[AttemptStart],
    found: &[Found],
    sizes: &[Option<usize>],
) -> String {
    let lane_width = stages.iter().map(|record| lane_of(record).len()).max().unwrap_or(0);
    let mut text = format!("Run {}\n", run.run);
    for record in stages {
        let lane = lane_of(record);
        text += &format!("{}  {lane:lane_width$}  {:<17} {}\n", record.timestamp, record.stage, record.status);
    }
    if !starts.is_empty() {
        text += "Starts of attempts\n";
    }
    for AttemptStart { at, job, commit } in starts {
        text += &format!("{at}  {job}  {}\n", commit.short());
    }
    if found.is_empty() {
        let merged = run.records.iter().any(|record| matches!(record.event, Event::LaneMerged { .. }));
        let why = if merged { " (those of merged lanes are removed)" } else { "" };
        return text + &format!("No snapshots{why}\n");
    }
    text += "Snapshots\n";
    let widest = found.iter().map(|found| found.snapshot.name.len()).max().unwrap_or(0);
    for (found, size) in found.iter().zip(sizes) {
        let it = &found.snapshot;
        let agent = it.agent.as_ref().map_or("-", AgentName::as_str);
        let remark = match (&found.damage, size) {
            (Some(damage), _) => format!("DAMAGED: {damage}"),
            (None, Some(size)) => format!("{} changed", counted(*size, "file")),
            (None, None) => String::new(),
        };
        let line = format!("{}  {:widest$}  {agent}  {}  {remark}", it.at, it.name, it.reason);
        text = text + line.trim_end() + "\n";
    }
    text
}

fn lane_of(record: &CheckpointRecord) -> &str {
    record.lane.as_ref().map_or("-", LaneId::as_str)
}
