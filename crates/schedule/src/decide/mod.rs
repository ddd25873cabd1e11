//! What follows from the state of a run: the whole scheduler.
//!
//! [`decide`] returns events (decisions, to be written down first) or, once there is nothing left to write down,
//! actions (wishes). The caller appends the events, applies them and asks again until none come; only then does it act.

mod agent;
mod deciding;
mod failure_routing;
mod follow;
mod forecast;
mod lane;
mod merge;
mod placement;
mod proposal;

pub use deciding::{Decisions, Finish};

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

use crate::action::Action;
use crate::decide::deciding::{Deciding, wait_for_jobs};
use crate::decide::follow::follow;
use crate::decide::lane::decide_lane;
use crate::state::RunState;
use crate::state::gate::Gate;
use crate::state::lane::LaneEnd;
use crate::state::pauses::Pause;
use crate::state::runners::NextRunner;
use lanewright_model::event::{Event, LaneStage, RunOutcome, StopReason};
use lanewright_model::retry::OUTAGE_LIMIT;
use lanewright_model::{JobRole, LaneIndex, Timestamp};

/// What follows from `state` at `now`. Pure: the same arguments give the same decisions.
pub fn decide(state: &RunState, now: Timestamp) -> Decisions {
    let Some(started) = state.started() else { return Decisions::default() };
    if state.finished.is_some() {
        return Decisions::default();
    }
    let limit = started.options.max_parallel as usize;
    let places = limit.saturating_sub(state.running_attempts);
    let mut deciding = Deciding::new(state, now, places);
    watch_limits(&mut deciding);
    if !deciding.out.events.is_empty() {
        // A stop comes first: nothing may begin beside it.
        return deciding.out;
    }
    watch_pauses(&mut deciding);
    if !deciding.out.events.is_empty() {
        // What begins depends upon them.
        return deciding.out;
    }
    deciding.out.events.extend(state.unrecorded_moves());
    for lane in most_urgent_first(state) {
        if state.indexes.is_held_back(lane) && state.stop.is_none() {
            wait_for_jobs(&mut deciding, lane);
        } else {
            decide_lane(&mut deciding, lane);
        }
        let has_failed = |event: &Event| matches!(event, Event::LaneFailed { .. });
        if started.options.fail_fast && deciding.out.events.last().is_some_and(has_failed) {
            // The stop follows from it, and nothing may be planned beside it.
            return deciding.out;
        }
    }
    if state.stop.is_none() {
        admit(&mut deciding, limit);
    }
    let at_rest = match state.stop {
        Some(_) => deciding.out.actions.is_empty(),
        None => {
            state.indexes.active().iter().all(|&lane| state.indexes.is_held_back(lane) && state.lane(lane).is_quiet())
        }
    };
    let follows = state.stop.is_none() && follow(&mut deciding);
    if at_rest && !follows && deciding.out.events.is_empty() {
        conclude(&mut deciding);
    }
    deciding.out
}

/// Lanes that have begun, the longest remaining path first: in this order they get what places there are.
fn most_urgent_first(state: &RunState) -> Vec<LaneIndex> {
    let mut lanes: Vec<LaneIndex> = state.indexes.active().iter().copied().collect();
    lanes.sort_by_cached_key(|&lane| (Reverse(state.remaining(lane)), lane));
    lanes
}

/// The run's own time limit and `--fail-fast`.
fn watch_limits(deciding: &mut Deciding) {
    let state = deciding.state;
    if state.stop.is_some() {
        return;
    }
    let Some(started) = state.started() else { return };
    let stop = |reason| Event::StopRequested { lane: None, reason, force: false };
    if let (Some(limit), Some(since)) = (started.options.timeout, state.alive_since)
        && deciding.due(since.plus(limit))
    {
        deciding.note(stop(StopReason::Timeout));
    } else if started.options.fail_fast && state.indexes.failed() > state.failed_before {
        deciding.note(stop(StopReason::FailFast));
    }
}

/// Pauses of runners that began, and those that are over.
fn watch_pauses(deciding: &mut Deciding) {
    let state = deciding.state;
    if state.pauses.is_empty() {
        return;
    }
    let limit = state.started().map_or(OUTAGE_LIMIT, |started| started.options.outage_limit);
    deciding.out.events.extend(state.pauses.unrecorded(state.first_backoff(), limit));
    for end in state.pauses.ends(|job| state.runs(job)) {
        deciding.due(end);
    }
    for (account, came_through) in state.pauses.probes(|job| state.runs(job)) {
        if deciding.due(came_through) {
            deciding.note(Event::RunnerContinued { account });
        }
    }
}

/// Lets waiting lanes begin, the longest remaining path first, as long as there are places that no lane that has begun
/// is going to take.
fn admit(deciding: &mut Deciding, limit: usize) {
    let state = deciding.state;
    let held_back = |lane: LaneIndex| state.indexes.is_held_back(lane) || state.is_paused(lane);
    let moving = state.indexes.active().iter().filter(|lane| !held_back(**lane));
    // A run of which nothing moves would come to its end.
    let is_idle = state.indexes.active().iter().all(|lane| state.indexes.is_held_back(*lane));
    let mut awaited = awaited(state);
    let waiting_for_a_place = moving.map(|&lane| places_wanted(state, lane)).sum::<usize>();
    let mut free = limit.saturating_sub(state.running_attempts + waiting_for_a_place + state.leaving());
    // Lanes that test or merge hold worktrees too: without a bound a slow gate would open one for every lane.
    let here = state.indexes.active().iter().filter(|lane| state.executor(**lane).is_none());
    let here = here.filter(|lane| !state.is_paused(**lane)).count();
    let mut open = (2 * limit).max(limit + 2).saturating_sub(here);
    let upcoming = if free > 0 { state.upcoming() } else { BTreeSet::new() };
    let mut begun: Vec<LaneIndex> = Vec::new();
    let is_here = |lane: LaneIndex| state.executor(lane).is_none();
    while open > 0
        && let Some(lane) = state
            .indexes
            .next(&begun, |lane| is_here(lane) && has_runner(deciding, lane, &awaited))
            .or_else(|| state.indexes.next(&begun, |lane| is_here(lane) && is_idle && begun.is_empty()))
        && free > upcoming.range(..(Reverse(state.indexes.path(lane)), lane)).count()
    {
        begun.push(lane);
        awaited.extend(paused_accounts(state, lane));
        open -= 1;
        free = free.saturating_sub(places_wanted(state, lane).max(1));
        begin(deciding, lane);
    }
    // Those that work on a cluster take no place here.
    while let Some(lane) = state.indexes.next(&begun, |lane| state.executor(lane).is_some()) {
        begun.push(lane);
        begin(deciding, lane);
        if begun.len() >= MOST_AT_ONCE {
            break;
        }
    }
}

/// The paused accounts for which an attempt of a lane that has begun waits: it finds out whether the pause is over.
fn awaited(state: &RunState) -> BTreeSet<String> {
    if state.pauses.is_empty() {
        return BTreeSet::new();
    }
    let lanes = state.indexes.active().iter().filter(|lane| !state.indexes.is_held_back(**lane));
    lanes.flat_map(|lane| paused_accounts(state, *lane)).collect()
}

/// The paused accounts that attempts of the lane wait for, or would.
fn paused_accounts(state: &RunState, lane: LaneIndex) -> impl Iterator<Item = String> {
    state.runners_wanted(lane).filter(|runner| runner.pause.is_some()).map(|runner| runner.account)
}

/// Whether an attempt with which the lane begins may begin itself, if need be to find out whether a pause is over.
fn has_runner(deciding: &Deciding, lane: LaneIndex, awaited: &BTreeSet<String>) -> bool {
    let (state, now) = (deciding.state, deciding.now);
    let is_open = |runner: NextRunner<'_>| {
        let is_due = |pause: &Pause| pause.is_due(now, |job| state.runs(job));
        runner.pause.is_none_or(|pause| is_due(pause) && !awaited.contains(&runner.account))
    };
    let mut wanted = state.runners_wanted(lane).peekable();
    state.pauses.is_empty() || wanted.peek().is_none() || wanted.any(is_open)
}

/// The most lanes that one round of decisions begins.
const MOST_AT_ONCE: usize = 256;

fn begin(deciding: &mut Deciding, lane: LaneIndex) {
    deciding.note(Event::LaneMoved { lane: deciding.id(lane), from: LaneStage::Waiting, to: LaneStage::Init });
}

/// How many attempts of the lane could begin now, or as soon as its worktrees are open and what the last ones did is saved.
fn places_wanted(state: &RunState, lane: LaneIndex) -> usize {
    state.wanting(lane).filter(|agent| state.pause_of(lane, *agent).is_none()).count()
}

/// Nothing is left to do by itself: the final gate, the pool, the end.
fn conclude(deciding: &mut Deciding) {
    let state = deciding.state;
    if let Some(stop) = state.stop {
        return conclude_stopped(deciding, stop.reason, stop.force);
    }
    if block_dependants(deciding) {
        return;
    }
    let gate_due = state.indexes.all_complete() && state.blocked.is_none();
    if gate_due && state.merges_here() && !state.plan.gates.last.is_empty() && !final_gate(deciding) {
        return;
    }
    let bisects = state.started().is_some_and(|started| started.options.bisect_merges);
    if bisects && !state.bisected && matches!(state.final_gate, Gate::Failed(_)) && state.merges.len() > 1 {
        return deciding.want(Action::BisectMerges(None));
    }
    let (outcome, code) = match () {
        () if state.indexes.failed() > 0 => (RunOutcome::Failed, 1),
        () if !gate_due || matches!(state.final_gate, Gate::Failed(_)) => (RunOutcome::Blocked, 3),
        () => (RunOutcome::Done, 0),
    };
    if outcome != RunOutcome::Blocked && !state.pool_emptied {
        deciding.want(Action::EmptyPool);
        return;
    }
    deciding.out.finish = Some(Finish { outcome, code });
}

fn conclude_stopped(deciding: &mut Deciding, reason: StopReason, force: bool) {
    if let Gate::Running(job) = &deciding.state.final_gate {
        deciding.want(Action::StopJob { job: job.clone(), force });
        deciding.want(Action::RunJob(job.clone()));
        return;
    }
    let (outcome, code) = match reason {
        StopReason::Interrupt => (RunOutcome::Stopped, 130),
        StopReason::Terminate | StopReason::Request => (RunOutcome::Stopped, 143),
        StopReason::Timeout => (RunOutcome::Stopped, 124),
        StopReason::FailFast => (RunOutcome::Failed, 1),
    };
    deciding.out.finish = Some(Finish { outcome, code });
}

/// Runs the final gate; says whether it is over.
fn final_gate(deciding: &mut Deciding) -> bool {
    let state = deciding.state;
    match &state.final_gate {
        _ if state.final_worktree.is_none() => deciding.want(Action::OpenFinal),
        Gate::Due => deciding.note(Event::planned(state.next_job(None, JobRole::Final))),
        Gate::Running(job) => deciding.want(Action::RunJob(job.clone())),
        Gate::Passed | Gate::Failed(_) => return true,
    }
    false
}

/// Says of every waiting lane whose dependency will not be merged in this life that it is blocked.
fn block_dependants(deciding: &mut Deciding) -> bool {
    let state = deciding.state;
    let mut blocked = HashSet::new();
    for &index in state.plan.dag().order() {
        let lane = state.lane(index);
        if lane.stage != LaneStage::Waiting || lane.end.is_some() {
            continue;
        }
        let hopeless = |&&dependency: &&LaneIndex| {
            let end = &state.lane(dependency).end;
            matches!(end, Some(LaneEnd::Failed(_) | LaneEnd::Blocked(_) | LaneEnd::Left))
                || blocked.contains(&dependency)
        };
        if let Some(&dependency) = state.plan.dag().dependencies(index).iter().find(hopeless) {
            blocked.insert(index);
            let on = &state.plan.lane(dependency).id;
            let how = match &state.lane(dependency).end {
                Some(LaneEnd::Failed(_)) => "failed",
                Some(LaneEnd::Left) => "is not part of this run",
                _ => "is blocked",
            };
            deciding.block(index, format!("it depends on {on}, which {how}"));
        }
    }
    !blocked.is_empty()
}

#[cfg(test)]
mod tests {
    use lanewright_model::event::Record;
    use lanewright_model::testing::run_started;
    use lanewright_model::{Outage, OutageKind};

    use super::*;
    use crate::sample_plans::{lane, moment, plan};

    /// The lanes that begin `at`.
    fn begun(state: &RunState, at: i64) -> Vec<String> {
        let events = decide(state, moment(at)).events;
        let begins = |event: &Event| match event {
            Event::LaneMoved { lane, to: LaneStage::Init, .. } => Some(lane.to_string()),
            _ => None,
        };
        events.iter().filter_map(begins).collect()
    }

    #[test]
    fn a_lane_begins_to_find_out_whether_its_runner_is_available_again() {
        let mut lanes = ["A", "B", "C"].map(|id| lane(id, &[], 1, &[]));
        lanes[0].agents[0].command = lanewright_model::CommandLine::Shell("another".to_owned());
        let account = lanes[1].agents[0].command.to_string();
        let mut state = RunState::new(plan(lanes.to_vec(), &[]).into());
        let record = |state: &mut RunState, event| {
            state.apply(&Record { seq: 1, at: moment(0), event, origin: None }).unwrap();
        };
        let mut started = run_started();
        started.options.max_parallel = 4;
        record(&mut state, Event::RunStarted(Box::new(started)));
        let (outage, since) = (Outage::new(OutageKind::Quota, "429"), moment(0));
        record(&mut state, Event::RunnerPaused { account, outage, since, until: Some(moment(1_000)) });
        assert_eq!(begun(&state, 500), ["A"], "of another runner");
        let begin = |id: &str| {
            let (from, to) = (LaneStage::Waiting, LaneStage::Init);
            Event::LaneMoved { lane: lanewright_model::LaneId::new(id).unwrap(), from, to }
        };
        record(&mut state, begin("A"));
        assert_eq!(decide(&state, moment(500)).wake_at, Some(moment(1_000)));
        assert_eq!(begun(&state, 500), [""; 0]);
        assert_eq!(begun(&state, 1_000), ["B"]);
        record(&mut state, begin("B"));
        assert_eq!(begun(&state, 1_000), [""; 0], "one is enough");
    }
}
