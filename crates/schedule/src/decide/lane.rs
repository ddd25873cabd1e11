//! What follows from the state of one lane (SPEC §6, steps 1 to 8).

use std::collections::BTreeMap;

use lanewright_model::event::{ChosenBy, Event, LaneStage};
use lanewright_model::{
    Approval, Checkpoint, CheckpointStatus, Failure, FailureKind, JobRole, LaneIndex, Round, Stage,
};

use crate::action::Action;
use crate::completion::Completion;
use crate::decide::agent::decide_agent;
use crate::decide::deciding::{
    Deciding, choose, lane_deadline, move_on, reach, run_gate, set_up, stop_jobs, wait_for_jobs,
};
use crate::decide::failure_routing::{must_haves_missing, search_first, send_back, tests_failed};
use crate::decide::merge::decide_merge;
use crate::decide::placement::{is_elsewhere, offer};
use crate::state::gate::Gate;
use crate::state::lane::first_round;
use crate::state::next_choice::NextChoice;

pub(crate) fn decide_lane(deciding: &mut Deciding, lane: LaneIndex) {
    let state = deciding.state;
    let lane_state = state.lane(lane);
    let forced = state.stop.map(|stop| stop.force);
    let stop = forced.or(lane_state.stopping).map(|force| force || lane_state.stopping == Some(true));
    if is_elsewhere(deciding, lane, stop) {
        return;
    }
    if let Some(force) = stop {
        return stop_jobs(deciding, lane, force);
    }
    if lane_state.end.is_some() {
        return wait_for_jobs(deciding, lane);
    }
    if let Some(picked) = lane_state.attempts.picked_before_resume() {
        return match lane_state.is_quiet() {
            true => choose(deciding, lane, picked, ChosenBy::User),
            false => stop_jobs(deciding, lane, false),
        };
    }
    if let Some(failure) = &lane_state.failure {
        return fail_when_quiet(deciding, lane, failure.clone());
    }
    let executor = state.executor(lane).filter(|_| lane_state.stage < LaneStage::AwaitingUserApproval);
    if let Some((deadline, limit)) = lane_deadline(state, lane)
        .filter(|_| executor.is_none() && lane_state.merged().is_none() && !state.is_paused(lane))
        && deciding.due(deadline)
    {
        let message = format!("the lane took longer than its timeout of {}", lanewright_model::time::exact(limit));
        return fail_when_quiet(deciding, lane, Failure::new(FailureKind::Timeout, message));
    }
    if !is_set_up(deciding, lane) {
        return;
    }
    if let Some(said) = lane_state.approvals.rejection(&Approval::Setup.into()) {
        return deciding.block(lane, format!("a person rejected the setup: {said}"));
    }
    let may_leave = lane_state.checkpoints.contains(&Stage::BeforeLaneStart);
    if let Some(executor) = executor.filter(|_| may_leave) {
        return offer(deciding, lane, executor);
    }
    match lane_state.stage {
        LaneStage::Waiting => {}
        LaneStage::Init => init(deciding, lane),
        LaneStage::Classified => classified(deciding, lane),
        LaneStage::Requirements => round(deciding, lane, Round::Requirements),
        LaneStage::Synthesis => synthesis(deciding, lane),
        // Of a lane that continues after its pull request was opened, nothing is left here but its branch.
        LaneStage::Implementation if lane_state.worktree().is_none() => {
            deciding.want(Action::OpenWorktree { lane, agent: None });
        }
        LaneStage::Implementation => implementation(deciding, lane),
        LaneStage::Validation => validation(deciding, lane),
        LaneStage::Review => round(deciding, lane, Round::Review),
        LaneStage::AwaitingUserApproval => decide_merge(deciding, lane),
        LaneStage::Complete => move_on(deciding, lane, LaneStage::Cleanup),
        LaneStage::Cleanup => deciding.want(Action::CleanLane(lane)),
    }
}

/// Whether the set-up commands ran in the lane's worktree, which is another one after the run was moved; has them run.
fn is_set_up(deciding: &mut Deciding, lane: LaneIndex) -> bool {
    let (lane_state, plan) = deciding.lane(lane);
    let works_there = lane_state.stage > LaneStage::Classified && lane_state.merged().is_none();
    let nothing = !works_there || lane_state.worktree().is_none() || plan.setup.is_empty();
    nothing || set_up(deciding, lane, lane_state.work.setup(), None)
}

/// Ends the lane once its agents have stopped and what they left is saved.
fn fail_when_quiet(deciding: &mut Deciding, lane: LaneIndex, failure: Failure) {
    match deciding.state.lane(lane).is_quiet() {
        true => deciding.fail(lane, failure),
        false => stop_jobs(deciding, lane, false),
    }
}

fn init(deciding: &mut Deciding, lane: LaneIndex) {
    match deciding.state.lane(lane).base() {
        None => deciding.want(Action::CheckLane(lane)),
        Some(_) => move_on(deciding, lane, LaneStage::Classified),
    }
}

/// The checkpoint before anything is made, the worktrees, and the checkpoint before any agent runs.
fn classified(deciding: &mut Deciding, lane: LaneIndex) {
    let (lane_state, plan) = deciding.lane(lane);
    // A resume checks a setup again.
    if lane_state.base().is_none() {
        return deciding.want(Action::CheckLane(lane));
    }
    if !lane_state.checkpoints.contains(&Stage::BeforeLaneStart) {
        let checkpoint = Checkpoint::new(Stage::BeforeLaneStart, CheckpointStatus::Ready);
        return reach(deciding, lane, Checkpoint { head_sha: lane_state.base().cloned(), ..checkpoint });
    }
    if lane_state.worktree().is_none() {
        return deciding.want(Action::OpenWorktree { lane, agent: None });
    }
    let mut open = plan.setup.is_empty() || set_up(deciding, lane, lane_state.work.setup(), None);
    for agent in first_round(plan).into_iter().flat_map(|round| plan.round(round)) {
        if lane_state.agents()[agent].worktree.is_none() && !plan.shares_worktree(agent) {
            deciding.want(Action::OpenWorktree { lane, agent: Some(agent) });
            open = false;
        }
    }
    if !open {
        return;
    }
    if !lane_state.checkpoints.contains(&Stage::AfterLaneStart) {
        let missing = lane_state.work.missing();
        if !missing.is_empty() {
            let message = format!("starts without {}, as its setup was approved", missing.join(", "));
            deciding.note(Event::Noted { lane: Some(plan.id.clone()), message });
        }
        let checkpoint = Checkpoint::new(Stage::AfterLaneStart, CheckpointStatus::InProgress);
        return reach(deciding, lane, Checkpoint { head_sha: lane_state.head().cloned(), ..checkpoint });
    }
    move_on(deciding, lane, LaneStage::Requirements);
}

/// Runs the implementation agents; of candidates one is chosen, by the judge if there is one, once all have come to rest.
fn implementation(deciding: &mut Deciding, lane: LaneIndex) {
    match deciding.state.next_choice(lane) {
        Some(NextChoice::Choose(candidate, by)) => {
            if let Some(why) = deciding.state.silence_of_judge(lane).filter(|_| by == ChosenBy::Size) {
                let message = format!("the judge chose no candidate ({why})");
                deciding.note(Event::Noted { lane: Some(deciding.id(lane)), message });
            }
            choose(deciding, lane, candidate, by);
        }
        Some(NextChoice::Judge) => {
            deciding.lane(lane).1.round(Round::Judge).for_each(|judge| decide_agent(deciding, lane, judge));
        }
        None => round(deciding, lane, Round::Implementation),
    }
}

/// Runs the agents of a round; when all are done, the lane moves on or back.
fn round(deciding: &mut Deciding, lane: LaneIndex, round: Round) {
    let (lane_state, plan) = deciding.lane(lane);
    let attempts = &lane_state.attempts;
    // A lane without an agent that may fix it ends as it is, with its work on its branch.
    let mut working = plan.round(round).filter(|&agent| !lane_state.agents()[agent].is_unchosen());
    if lane_state.rebuild().is_some() && !working.any(|agent| attempts.end_of(plan, agent).is_some()) {
        return deciding.want(Action::ResetLane(lane));
    }
    // Those whose runner a person has to see to, each with the reason.
    let mut stuck: BTreeMap<usize, String> = BTreeMap::new();
    // One that failed has its worktree still, and one that was asked before a crash may run.
    let is_left = |judge: &usize| lane_state.chosen().is_some() || attempts.has_job_of(plan, *judge);
    let judges = || plan.round(Round::Judge).filter(|judge| round == Round::Implementation && is_left(judge));
    for agent in
        attempts.in_turn(plan, round).chain(judges()).filter(|&agent| !attempts.waits_for_its_turn(plan, agent))
    {
        match deciding.state.unavailable(lane, agent) {
            // Its set-up commands may run since before a resume, and are to be waited for.
            Some(reason) if !attempts.opens_first(plan, agent) && !attempts.has_job_of(plan, agent) => {
                drop(stuck.insert(agent, reason));
            }
            _ => decide_agent(deciding, lane, agent),
        }
    }
    let mut all = plan.round(round).chain(judges());
    if all.all(|agent| lane_state.agents()[agent].is_over(plan.shares_worktree(agent))) {
        return round_over(deciding, lane, round);
    }
    // The others' work is not cut off: the lane ends when they have come to rest, too.
    let at_rest =
        |agent: usize| plan.shares_worktree(agent) || attempts.is_final(plan, agent) || stuck.contains_key(&agent);
    let blocked = |reason: &String| Event::LaneBlocked { lane: plan.id.clone(), reason: reason.clone() };
    let ends = || plan.round(round).filter_map(|agent| attempts.end_of(plan, agent));
    // A candidate for which something outside must come first may still succeed where the others failed.
    let may_succeed = |end: &Event| attempts.is_undecided(plan) && matches!(end, Event::LaneBlocked { .. });
    let stuck = || stuck.values().next().map(blocked);
    let end = || ends().chain(stuck()).find(may_succeed).or_else(|| ends().chain(stuck()).next());
    if plan.round(round).all(at_rest)
        && let Some(end) = end()
    {
        if !lane_state.is_quiet() {
            // An agent of another round may have left something, too: a reviewer whose machine died.
            return wait_for_jobs(deciding, lane);
        }
        let completion = Completion::of(lane_state, plan, round);
        // Of a single agent the end says it all.
        if completion.agents.len() > 1 {
            let message = format!("{} agents: {completion}", round.word());
            deciding.note(Event::Noted { lane: Some(plan.id.clone()), message });
        }
        deciding.note(end);
    }
}

fn round_over(deciding: &mut Deciding, lane: LaneIndex, round: Round) {
    let (lane_state, plan) = deciding.lane(lane);
    let rejection = |agent: usize| {
        let feedback = lane_state.agents()[agent].rejection.as_ref()?;
        Some(format!("{} rejected the work: {feedback}", plan.agents[agent].name))
    };
    let rejections: Vec<String> = plan.round(round).filter_map(rejection).collect();
    match round {
        Round::Requirements => move_on(deciding, lane, LaneStage::Synthesis),
        Round::Implementation | Round::Judge => move_on(deciding, lane, LaneStage::Validation),
        Round::Review if rejections.is_empty() && deciding.state.has_changes_to_measure(lane) => {
            deciding.want(Action::MeasureChanges(lane));
        }
        Round::Review if rejections.is_empty() => move_on(deciding, lane, LaneStage::AwaitingUserApproval),
        Round::Review => send_back(deciding, lane, Failure::new(FailureKind::Rejected, rejections.join("\n"))),
    }
}

fn synthesis(deciding: &mut Deciding, lane: LaneIndex) {
    let (lane_state, plan) = deciding.lane(lane);
    let Some(said) = lane_state.approvals.rejection(&Approval::Plan.into()) else {
        return move_on(deciding, lane, LaneStage::Implementation);
    };
    let reason = format!("a person rejected the plan: {said}");
    let Some(agent) = plan.round(Round::Requirements).next_back() else {
        return deciding.block(lane, reason);
    };
    deciding.note_failure(lane, Some(agent), None, Failure::new(FailureKind::Rejected, reason));
    move_on(deciding, lane, LaneStage::Requirements);
}

/// The lane's tests and the checkpoint that records them.
fn validation(deciding: &mut Deciding, lane: LaneIndex) {
    let (lane_state, plan) = deciding.lane(lane);
    let checkpoint = |status, context: &str| Checkpoint {
        head_sha: lane_state.head().cloned(),
        context: context.to_owned(),
        ..Checkpoint::new(Stage::AfterLaneTests, status)
    };
    let commands: Vec<String> = plan.tests.iter().map(ToString::to_string).collect();
    if commands.is_empty() && lane_state.validation.tests == Gate::Due {
        return validated(deciding, lane, checkpoint(CheckpointStatus::Complete, "the lane has no tests"));
    }
    match run_gate(deciding, lane, &lane_state.validation.tests, || JobRole::Tests) {
        None => {}
        Some(Ok(())) => {
            let passed = checkpoint(CheckpointStatus::Complete, "the lane's tests passed");
            let passed = Checkpoint { command: Some(commands.join(" && ")), exit_code: Some(0), ..passed };
            validated(deciding, lane, passed);
        }
        Some(Err(_)) if search_first(deciding, lane) => {}
        Some(Err(gate)) => {
            let failed = checkpoint(CheckpointStatus::Failed, "the lane's tests failed");
            let (command, exit_code) = (Some(gate.exit.command.clone()), Some(gate.exit.exit_code));
            reach(deciding, lane, Checkpoint { command, exit_code, ..failed });
            tests_failed(deciding, lane, "the lane's tests failed", gate);
        }
    }
}

/// The tests passed, which the checkpoint says; then the must-haves are looked for, and what follows from them.
fn validated(deciding: &mut Deciding, lane: LaneIndex, passed: Checkpoint) {
    let (lane_state, plan) = deciding.lane(lane);
    if !lane_state.checkpoints.contains(&Stage::AfterLaneTests) {
        return reach(deciding, lane, passed);
    }
    if plan.must_haves.is_empty() {
        return move_on(deciding, lane, LaneStage::Review);
    }
    let rule = deciding.state.started().map(|started| started.options.must_haves).unwrap_or_default();
    match lane_state.validation.must_haves(lane_state.head()) {
        None => deciding.want(Action::CheckMustHaves(lane)),
        Some(verdicts) if rule.refuses(verdicts) => must_haves_missing(deciding, lane, verdicts),
        Some(_) => move_on(deciding, lane, LaneStage::Review),
    }
}

#[cfg(test)]
mod tests;
