//! What a rollback has to do, from the run log alone.

use std::collections::{BTreeSet, HashMap};

use lanewright_model::event::{Event, LaneStage, Record};
use lanewright_model::{CommitId, JobId, LaneId, LaneIndex, Stage, Timestamp};
use lanewright_schedule::{LaneEnd, RunState};
use lanewright_view::RunHistory;
use lanewright_view::history::SnapshotView;

use super::RollbackError;
use super::points::{Point, points};

/// What the user wants rolled back.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// None: all lanes that have begun, or that have the point.
    pub lanes: &'a [LaneId],
    /// The name of the point that they are taken back to; `None`: where they had not begun.
    pub to: Option<&'a str>,
}

#[derive(Debug, Clone)]
pub struct RollbackPlan {
    /// Each lane before those that it depends on.
    pub lanes: Vec<LaneToRollBack>,
    /// Lanes that were asked for, have not begun and are not skipped.
    pub untouched: Vec<LaneId>,
    /// Lanes that were asked for and have not begun since they were rolled back.
    pub already: Vec<RolledBackBefore>,
    /// Whether nothing of the run is left afterwards, and the run log does not say so yet.
    pub ends_run: bool,
    /// Jobs that may still run and must not: those of the lanes, and the final gate, which judges their work.
    pub jobs: Vec<JobId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolledBackBefore {
    pub lane: LaneId,
    pub at: Timestamp,
    /// The head of the integration branch after its merge was undone, if it was.
    pub integration: Option<CommitId>,
    /// The refs that hold its work.
    pub kept: Vec<String>,
}

/// A lane that has begun, or is skipped, and is to be rolled back.
#[derive(Debug, Clone)]
pub struct LaneToRollBack {
    pub lane: LaneIndex,
    /// Where it is taken back to; `None`: where it had not begun.
    pub point: Option<Point>,
    pub stage: LaneStage,
    pub standing: String,
    pub merge: Option<MergeToRevert>,
    /// Whether its branches are its own. Those of a lane that was merged and cleaned up are gone, and whatever has
    /// their names now is another run's.
    pub owns_branches: bool,
    pub head: Option<CommitId>,
    /// Where its pull request is, which a rollback leaves as it is.
    pub pull_request: Option<String>,
    /// The remote that has its branch without a pull request, which a rollback leaves there, and the branch.
    pub pushed: Option<(String, String)>,
    /// Earlier snapshots of it; a merge may have removed these refs.
    pub kept: Vec<SnapshotView>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeToRevert {
    /// The number of its record in the run log; later merges are reverted first.
    pub seq: u64,
    pub commit: CommitId,
    pub onto: CommitId,
}

/// Plans the rollback of the lanes that are asked for; none asked for: of all lanes that have begun or are skipped.
///
/// # Errors
/// [`RollbackError::UnknownLane`], and [`RollbackError::Dependants`] where a lane that was not asked for depends on one
/// that was, and has begun; [`RollbackError::Elsewhere`] where a job of an executor has a lane. For a point also
/// [`RollbackError::UnknownPoint`], [`RollbackError::AmbiguousPoint`], [`RollbackError::SeveralLanes`],
/// [`RollbackError::Placed`], [`RollbackError::DependsOn`], and [`RollbackError::Contradiction`].
pub fn plan(state: &RunState, records: &[Record], asked: Asked<'_>) -> Result<RollbackPlan, RollbackError> {
    let plan = state.plan();
    let mut chosen = Vec::new();
    for lane in asked.lanes {
        chosen.push(state.find(lane).ok_or_else(|| RollbackError::UnknownLane(lane.clone()))?);
    }
    if asked.lanes.is_empty() {
        chosen = plan.indices().collect();
    }
    let name = |lane: LaneIndex| plan.lane(lane).id.clone();
    // A lane that was skipped before it began has nothing to reset, but a decision to undo.
    let begun = |lane: LaneIndex| state.lane(lane).has_begun() || state.lane(lane).is_skipped();
    let mut back_to = match asked.to {
        Some(to) => points_asked_for(state, records, asked, (to, &chosen))?,
        None => HashMap::new(),
    };
    if asked.to.is_some() {
        // What was built on a lane before it goes back is done anew: such lanes go to their start.
        let after: BTreeSet<LaneIndex> = back_to.keys().flat_map(|&lane| dependants(state, lane)).collect();
        chosen.retain(|lane| back_to.contains_key(lane) || (after.contains(lane) && !asked.lanes.is_empty()));
        back_to.retain(|lane, _| !after.contains(lane));
    }
    let left = |lanes: Vec<LaneIndex>| {
        let after = plan.dag().with_dependants(lanes).into_iter();
        after.filter(|&it| begun(it) && !chosen.contains(&it)).map(name).collect::<Vec<LaneId>>()
    };
    let goes = |lane: LaneIndex| begun(lane) || back_to.contains_key(&lane);
    let going: Vec<LaneIndex> = chosen.iter().copied().filter(|&lane| goes(lane)).collect();
    if let Some(&lane) = going.iter().find(|&&lane| !left(vec![lane]).is_empty()) {
        let all = chosen.iter().map(|&lane| name(lane)).chain(left(going.clone())).collect();
        return Err(RollbackError::Dependants { lane: name(lane), dependants: left(vec![lane]), all });
    }
    if let Some(&lane) = going.iter().find(|&&lane| state.lane(lane).is_elsewhere()) {
        return Err(RollbackError::Elsewhere(name(lane)));
    }
    for &lane in going.iter().filter(|&lane| back_to.contains_key(lane)) {
        // One that goes back as well is not merged either.
        let is_missing = |on: &&LaneIndex| !state.lane(**on).is_merged() || going.contains(on);
        let missing = plan.dag().dependencies(lane).iter().filter(is_missing);
        let missing: Vec<LaneId> = missing.map(|&on| name(on)).collect();
        if !missing.is_empty() {
            return Err(RollbackError::DependsOn { lane: name(lane), missing });
        }
    }
    let downwards = || plan.dag().order().iter().rev().copied().filter(|lane| chosen.contains(lane));
    let history = RunHistory::default().after(records);
    let to_roll_back = downwards().filter(|&lane| goes(lane));
    let mut lanes: Vec<_> = to_roll_back.map(|lane| lane_to_roll_back(state, &history, records, lane)).collect();
    lanes.iter_mut().for_each(|lane| lane.point = back_to.remove(&lane.lane));
    let concerns = |job: &&JobId| job.lane.as_ref().is_none_or(|lane| lanes.iter().any(|it| name(it.lane) == *lane));
    let mut jobs: Vec<JobId> = state.running_jobs().filter(concerns).cloned().collect();
    jobs.sort();
    let is_at_rest = |lane: &LaneIndex| chosen.contains(lane) && !going.contains(lane);
    let at_rest = plan.indices().filter(is_at_rest).map(name);
    let (mut untouched, mut already) = (Vec::new(), Vec::new());
    for lane in at_rest {
        match rolled_back_before(records, &lane) {
            Some(before) => already.push(before),
            None => untouched.push(lane),
        }
    }
    let jobs = if lanes.is_empty() { Vec::new() } else { jobs };
    let nothing_left = asked.to.is_none() && plan.indices().all(|lane| !begun(lane) || chosen.contains(&lane));
    let is_meant = !lanes.is_empty() || !already.is_empty() || asked.lanes.is_empty();
    let is_over = lanes.is_empty() && state.finished().is_some_and(|(outcome, _)| outcome.is_over());
    Ok(RollbackPlan { lanes, untouched, already, ends_run: nothing_left && is_meant && !is_over, jobs })
}

/// The point `to` of each of the lanes `chosen` that has it: of every one, if lanes were asked for.
fn points_asked_for(
    state: &RunState,
    records: &[Record],
    asked: Asked<'_>,
    (to, chosen): (&str, &[LaneIndex]),
) -> Result<HashMap<LaneIndex, Point>, RollbackError> {
    let plan = state.plan();
    let name = |lane: LaneIndex| plan.lane(lane).id.clone();
    let is_asked_for = !asked.lanes.is_empty();
    let (mut found, mut known) = (HashMap::new(), Vec::new());
    for (lane, point) in points(plan, records, chosen, to)? {
        match point {
            Ok(_) if state.lane(lane).placement().number() > 0 => return Err(RollbackError::Placed(name(lane))),
            Ok(point) => drop(found.insert(lane, point)),
            Err(_) if chosen.iter().any(|&other| dependants(state, other).contains(&lane)) => {}
            Err(has) if is_asked_for => {
                return Err(RollbackError::UnknownPoint { lane: Some(name(lane)), to: to.to_owned(), has });
            }
            Err(has) => known.extend(has),
        }
    }
    if found.is_empty() {
        known.sort();
        known.dedup();
        return Err(RollbackError::UnknownPoint { lane: None, to: to.to_owned(), has: known });
    }
    // Stages are common to all lanes; a task of that name is another one in each.
    if !is_asked_for && found.len() > 1 && Stage::ALL.iter().all(|stage| stage.word() != to) {
        let mut lanes: Vec<LaneIndex> = found.into_keys().collect();
        lanes.sort();
        return Err(RollbackError::SeveralLanes { to: to.to_owned(), lanes: lanes.into_iter().map(name).collect() });
    }
    Ok(found)
}

/// The lanes that depend on `lane`, also by way of others.
fn dependants(state: &RunState, lane: LaneIndex) -> Vec<LaneIndex> {
    let with = state.plan().dag().with_dependants([lane]);
    with.into_iter().filter(|&it| it != lane).collect()
}

fn rolled_back_before(records: &[Record], lane: &LaneId) -> Option<RolledBackBefore> {
    records.iter().rev().find_map(|record| match &record.event {
        Event::LaneRolledBack { lane: id, integration, kept, .. } if id == lane => {
            let (lane, integration, kept) = (lane.clone(), integration.clone(), kept.clone());
            Some(RolledBackBefore { lane, at: record.at, integration, kept })
        }
        _ => None,
    })
}

fn lane_to_roll_back(state: &RunState, history: &RunHistory, records: &[Record], lane: LaneIndex) -> LaneToRollBack {
    let (lane_state, id) = (state.lane(lane), &state.plan().lane(lane).id);
    let lane_history = history.lane(id);
    let kept = lane_history.map_or(Vec::new(), |lane| lane.snapshots_by_rollback().1.to_vec());
    let owns_branches = lane_history.is_none_or(|lane| history.owns_branches(lane));
    let own = records.iter().rev().filter(|record| record.event.lane() == Some(id));
    let merge = own.take_while(|record| !matches!(record.event, Event::LaneRolledBack { .. })).find_map(merge_in);
    let merge = merge.filter(|merge| history.run.merges() && merge.commit != merge.onto);
    let pull_request = lane_state.proposal().pull_request().map(|it| it.url.clone());
    let own = records.iter().rev().filter(|record| record.event.lane() == Some(id)).map(|record| &record.event);
    let since = own.take_while(|event| !matches!(event, Event::LaneRolledBack { .. }));
    let pushed = since.into_iter().find_map(|event| match event {
        Event::BranchPushed { remote, branch, .. } => Some((remote.clone(), branch.clone())),
        _ => None,
    });
    // The branch of a pull request that stays is not to be deleted.
    let pushed = pushed.filter(|_| pull_request.is_none());
    let standing = match lane_state.end() {
        _ if lane_state.is_half_rolled_back() => "half rolled back",
        _ if lane_state.merged().is_some() && pull_request.is_some() => "proposed",
        _ if lane_state.merged().is_some() => "merged",
        Some(LaneEnd::Failed(_)) => "failed",
        Some(LaneEnd::Blocked(_)) => "blocked",
        Some(LaneEnd::Skipped) => "skipped",
        _ => "unfinished",
    };
    let (stage, head) = (lane_state.stage(), lane_state.head().cloned());
    let standing = standing.to_owned();
    LaneToRollBack { lane, point: None, stage, standing, merge, owns_branches, head, pull_request, pushed, kept }
}

/// The merge that a record names. A staged one may have been published by a Lanewright that died before it could say so.
fn merge_in(record: &Record) -> Option<MergeToRevert> {
    match &record.event {
        Event::MergeStaged { onto, commit, .. } | Event::LaneMerged { onto, commit, .. } => {
            Some(MergeToRevert { seq: record.seq, commit: commit.clone(), onto: onto.clone() })
        }
        _ => None,
    }
}
