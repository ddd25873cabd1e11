//! What is known of a phase's lanes before anybody decides to work on one: what is merged, who lives and has what, and
//! what a dead one left.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::locks::{WAIT, held, held_lanes};
use super::{PlanFile, Site};
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::runs::{LogOfRun, is_unfinished, logs};
use crate::event::{Event, Owner, Record, RunStarted};
use crate::model::text::shell_line;
use crate::model::{CheckpointStatus, LaneId, LaneIndex, MergeMode, Plan, RunId, Stage};
use crate::schedule::{self, Claim, Hindrance, NextLane};
use crate::store::checkpoints::{self, CheckpointEntry};
use crate::store::lock::{Holder, is_held, named, read_holder};
use crate::store::{LockScope, StateDirectory};

/// A run that is not finished and that nobody works on.
#[derive(Debug, Clone)]
pub(super) struct Abandoned {
    /// How it began.
    pub(super) started: RunStarted,
    /// Who worked on it last.
    pub(super) owner: Owner,
    /// The words that call Lanekeeper for it.
    program: Vec<String>,
}

impl Abandoned {
    /// How to go on with it.
    pub(super) fn resume(&self) -> String {
        let run = ["resume", self.started.run_id.as_str()];
        shell_line(self.program.iter().map(String::as_str).chain(run))
    }

    /// Whether it goes on with `lane` when it is resumed.
    fn has(&self, lane: &LaneId) -> bool {
        has(&self.started, lane)
    }
}

/// What is known of the lanes of a plan on one base.
#[derive(Debug, Default)]
pub(super) struct Survey {
    merged: BTreeSet<LaneId>,
    live: BTreeMap<LaneId, Option<Holder>>,
    pub(super) abandoned: Vec<Abandoned>,
}

impl Survey {
    /// Looks at every run of the plan's phase on `base`. The caller is choosing.
    pub(super) fn take(site: &Site, state: &StateDirectory, plan: &Plan, base: &str) -> Result<Self, CliError> {
        let mut survey = Self { live: held_lanes(state, plan)?.into_iter().collect(), ..Self::default() };
        let whole = state.lock(LockScope::Phase(&plan.phase))?;
        if is_held(&whole) {
            let holder = read_holder(&whole);
            survey.live.extend(plan.lanes.iter().map(|lane| (lane.id.clone(), holder.clone())));
        }
        let mut known = BTreeSet::new();
        // Locks are looked at before the log that they guard: what a process that has ended wrote is in the log by then.
        for LogOfRun { program, held, records } in logs(state)? {
            let Some(started) = beginning(&records).filter(|it| it.phase == plan.phase && it.base_branch == base)
            else {
                continue;
            };
            known.insert(started.run_id.clone());
            survey.merged.extend(merged_in(started, &records));
            survey.merged.extend(merged_by_people(site, base, started, &records)?);
            if is_unfinished(&records) && held {
                survey.note_live(state, plan, started);
            } else if is_unfinished(&records) {
                let owner = last_owner(started, &records);
                survey.abandoned.push(Abandoned { started: started.clone(), owner, program });
            }
        }
        survey.merged.extend(merged_by_cleaned(site, state, plan, base, &known)?);
        Ok(survey)
    }

    fn note_live(&mut self, state: &StateDirectory, plan: &Plan, started: &RunStarted) {
        let holder = read_holder(&state.run(&started.run_id).lock());
        for lane in plan.lanes.iter().filter(|lane| has(started, &lane.id)) {
            self.live.entry(lane.id.clone()).or_insert_with(|| holder.clone());
        }
    }

    /// The lanes that are merged and not among `lanes`.
    pub(super) fn merged_beside(&self, plan: &Plan, lanes: &[LaneId]) -> Vec<LaneId> {
        let beside = |lane: &&LaneId| !lanes.contains(lane) && plan.find(lane).is_some();
        if lanes.is_empty() { Vec::new() } else { self.merged.iter().filter(beside).cloned().collect() }
    }

    /// One for each lane of the plan.
    fn claims(&self, plan: &Plan) -> Vec<Claim> {
        let claim = |lane: &LaneId| match () {
            () if self.merged.contains(lane) => Claim::Merged,
            () if self.live.contains_key(lane) => Claim::Live,
            () if self.abandoned.iter().any(|run| run.has(lane)) => Claim::Left,
            () => Claim::Free,
        };
        plan.lanes.iter().map(|lane| claim(&lane.id)).collect()
    }

    /// The lane to work on by itself; `None`: all are merged.
    pub(super) fn next(
        &self,
        plan: &Plan,
        base: &str,
        preferred: Option<LaneIndex>,
    ) -> Result<Option<LaneId>, CliError> {
        match schedule::next_lane(plan, &self.claims(plan), preferred) {
            NextLane::Lane(lane) => Ok(Some(plan.lane(lane).id.clone())),
            NextLane::AllMerged => Ok(None),
            NextLane::Nothing(lanes) => Err(self.nothing(plan, base, &lanes)),
        }
    }

    /// Refuses a lane that was named and whose dependencies are not merged yet.
    pub(super) fn refuse_early(&self, plan: &Plan, base: &str, lane: LaneIndex) -> Result<(), CliError> {
        let Some(hindrance @ Hindrance::Needs(_)) = schedule::hindrance(plan, &self.claims(plan), lane) else {
            return Ok(());
        };
        let id = &plan.lane(lane).id;
        let message = format!("lane {id} cannot begin: {}", in_words(plan, base, &hindrance));
        Err(CliError::new(ExitStatus::Blocked, message)
            .hint("to begin with a lane that is ready: the same with --next in place of the lane")
            .hint(format!("to run it with what it depends on: lanekeeper execute-phase PLAN --lane {id}")))
    }

    /// The first abandoned run that goes on with one of `lanes` when it is resumed; no lane named: with any.
    pub(super) fn abandoned_with(&self, lanes: &[LaneId]) -> Option<&Abandoned> {
        self.abandoned.iter().find(|run| lanes.is_empty() || lanes.iter().any(|lane| run.has(lane)))
    }

    /// Refuses lanes that a living session works on, by itself or in a run of its own branches.
    pub(super) fn refuse_live(&self, plan: &Plan, lanes: &[LaneId]) -> Result<(), CliError> {
        let wanted = |lane: &LaneId| lanes.is_empty() || lanes.contains(lane);
        let of_merged = |lane: &LaneId| self.merged.contains(lane);
        match self.live.iter().find(|(lane, _)| wanted(lane) && !of_merged(lane)) {
            Some((lane, by)) => {
                Err(held(&format!("lane {lane} of phase {} is being worked on", plan.phase), by.as_ref()))
            }
            None => Ok(()),
        }
    }

    fn nothing(&self, plan: &Plan, base: &str, lanes: &[(LaneIndex, Hindrance)]) -> CliError {
        let told = |(lane, hindrance): &(LaneIndex, Hindrance)| {
            let id = &plan.lane(*lane).id;
            let reason = match hindrance {
                Hindrance::Held => format!("is worked on by {}", named(self.live.get(id).and_then(Option::as_ref))),
                Hindrance::Left => {
                    let run = self.abandoned.iter().find(|run| run.has(id)).map(Abandoned::to_string);
                    format!("belongs to {}", run.unwrap_or_default())
                }
                other => in_words(plan, base, other),
            };
            format!("\n  {id}: {reason}")
        };
        let lines: String = lanes.iter().map(told).collect();
        let message = format!("no lane of phase {} can begin now:{lines}", plan.phase);
        if lanes.iter().any(|(_, hindrance)| *hindrance == Hindrance::Held) {
            return CliError::new(ExitStatus::Held, message).hint(WAIT);
        }
        let needed = self.abandoned.iter().filter(|run| lanes.iter().any(|(lane, _)| run.has(&plan.lane(*lane).id)));
        let resume = |run: &Abandoned| format!("to resume it: {}", run.resume());
        needed.fold(CliError::new(ExitStatus::Blocked, message), |error, run| error.hint(resume(run)))
    }
}

impl std::fmt::Display for Abandoned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Owner { session_id, process, host } = &self.owner;
        let (run, pid) = (&self.started.run_id, process.pid);
        write!(f, "run {run}, which is not finished; its owner, pid {pid} on {host}, session {session_id}, is gone")
    }
}

/// Why a lane cannot begin, as far as plan and base tell.
pub(super) fn in_words(plan: &Plan, base: &str, hindrance: &Hindrance) -> String {
    let name = |lane: &LaneIndex| plan.lane(*lane).id.as_str();
    match hindrance {
        Hindrance::Held => "a living session works on it".to_owned(),
        Hindrance::Left => "it belongs to a run that is not finished".to_owned(),
        Hindrance::Needs(lanes) => {
            let (are, lanes) =
                (if lanes.len() == 1 { "is" } else { "are" }, lanes.iter().map(name).collect::<Vec<_>>());
            format!("it depends on {}, which {are} not merged into {base} yet", lanes.join(" and "))
        }
        Hindrance::Beside(lane) => format!("it must not run beside {}, which is being worked on", name(lane)),
        Hindrance::PoolInUse(pool) => format!("lanes that are being worked on use all of the pool `{pool}`"),
    }
}

fn beginning(records: &[Record]) -> Option<&RunStarted> {
    match &records.first()?.event {
        Event::RunStarted(started) => Some(started),
        _ => None,
    }
}

/// Whether a run works on `lane`.
fn has(started: &RunStarted, lane: &LaneId) -> bool {
    started.options.lanes.is_empty() || started.options.lanes.contains(lane)
}

fn last_owner(started: &RunStarted, records: &[Record]) -> Owner {
    let resumed = records.iter().rev().find_map(|record| match &record.event {
        Event::RunResumed { owner, .. } => Some(owner),
        _ => None,
    });
    resumed.unwrap_or(&started.owner).clone()
}

/// The lanes of a plan that runs of its own file, or of its directory, merged into `base`.
pub(super) fn merged_before(state: &StateDirectory, plan: &PlanFile, base: &str) -> Result<BTreeSet<LaneId>, CliError> {
    let same_place = |other: &Path| other.starts_with(&plan.path) || plan.path.starts_with(other);
    let mut merged = BTreeSet::new();
    for LogOfRun { records, .. } in logs(state)? {
        let of_plan =
            |it: &&RunStarted| it.phase == plan.plan.phase && it.base_branch == base && same_place(&it.plan_path);
        if let Some(started) = beginning(&records).filter(of_plan) {
            merged.extend(merged_in(started, &records));
        }
    }
    Ok(merged)
}

/// The lanes that a run merged into its base and did not take back.
fn merged_in(started: &RunStarted, records: &[Record]) -> BTreeSet<LaneId> {
    let mut merged = BTreeSet::new();
    if started.options.merge != MergeMode::Local {
        return merged;
    }
    for record in records {
        match &record.event {
            Event::LaneMerged { lane, .. } => drop(merged.insert(lane.clone())),
            Event::LaneRolledBack { lane, .. } => drop(merged.remove(lane)),
            _ => {}
        }
    }
    merged
}

/// The lanes whose pull requests somebody merged, as far as `base` here holds their work by now.
fn merged_by_people(
    site: &Site,
    base: &str,
    started: &RunStarted,
    records: &[Record],
) -> Result<Vec<LaneId>, CliError> {
    let Some(tip) = site.repository.branch_commit(base)?.filter(|_| started.options.merge == MergeMode::Pr) else {
        return Ok(Vec::new());
    };
    let mut heads = BTreeMap::new();
    for record in records {
        match &record.event {
            Event::PullRequestOpened { lane, head, .. } => drop(heads.insert(lane.clone(), head.clone())),
            Event::LaneRolledBack { lane, .. } => drop(heads.remove(lane)),
            _ => {}
        }
    }
    heads.retain(|_, head| site.repository.is_ancestor(head, &tip).unwrap_or(false));
    Ok(heads.into_keys().collect())
}

/// The lanes that runs merged whose logs `clean` removed: their checkpoints stay.
fn merged_by_cleaned(
    site: &Site,
    state: &StateDirectory,
    plan: &Plan,
    base: &str,
    known: &BTreeSet<RunId>,
) -> Result<Vec<LaneId>, CliError> {
    let Some(tip) = site.repository.branch_commit(base)? else { return Ok(Vec::new()) };
    let mut merged = Vec::new();
    for entry in checkpoints::read(&state.checkpoints())? {
        let CheckpointEntry::Record(record) = entry else { continue };
        let ours = record.phase == plan.phase && *record.base_branch == *base && !known.contains(&record.run_id);
        let done = record.stage == Stage::PrePr && record.status == CheckpointStatus::Complete;
        if let (true, Some(lane), Some(head)) = (ours && done, record.lane, record.head_sha)
            && site.repository.is_ancestor(&head, &tip).unwrap_or(false)
        {
            merged.push(lane);
        }
    }
    Ok(merged)
}
