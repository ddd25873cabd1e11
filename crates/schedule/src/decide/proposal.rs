//! A finished lane on its way into a pull request (`--merge pr`; SPEC §6, step 7).

use std::collections::BTreeSet;

use lanewright_model::event::Event;
use lanewright_model::retry::{LONGEST_BACKOFF, backoff};
use lanewright_model::{LaneIndex, PullRequest, Timestamp};

use crate::action::Action;
use crate::decide::deciding::{Deciding, leave_branch};
use crate::state::RunState;
use crate::state::lane::proposal::ForgeOutage;

/// How often in a row a remote or a forge may be out before the lane waits for a person.
const TRIES: u32 = 5;

/// The branch on the remote, the pull request, and then the lane is complete; one lane at a time.
pub(crate) fn propose(deciding: &mut Deciding, lane: LaneIndex) {
    let state = deciding.state;
    let lane_state = state.lane(lane);
    // Before it is taken for empty, a push finds out whether accepted work is missing in it.
    let is_whole = lane_state.accepted().iter().all(|commit| Some(commit) == lane_state.head());
    if lane_state.work.is_empty() && (is_whole || lane_state.proposal.pushed.as_ref() == lane_state.head()) {
        let message = "it changed nothing, so there is nothing to open a pull request for".to_owned();
        deciding.note(Event::Noted { lane: Some(deciding.id(lane)), message });
        return leave_branch(deciding, lane);
    }
    if lane_state.proposal.is_made_for(lane_state.head()) {
        return leave_branch(deciding, lane);
    }
    if let Some(out) = &lane_state.proposal.out
        && !may_try_again(deciding, lane, out)
    {
        return;
    }
    match lane_state.proposal.pushed.as_ref() == lane_state.head() {
        false => deciding.want(Action::PushBranch(lane)),
        true => deciding.want(Action::OpenPullRequest(lane)),
    }
}

/// Whether the time has come; a lane that has tried too often waits for a person.
fn may_try_again(deciding: &mut Deciding, lane: LaneIndex, out: &ForgeOutage) -> bool {
    let state = deciding.state;
    let id = &state.plan.lane(lane).id;
    if out.times >= TRIES {
        let reason = format!("tried {} times: {}; see that it can be reached, then resume", out.times, out.outage.line);
        deciding.block(lane, reason);
        return false;
    }
    let first = state.started().map_or(LONGEST_BACKOFF, |started| started.options.backoff);
    let asked = out.outage.retry_after.unwrap_or_default().min(LONGEST_BACKOFF);
    let wait = backoff(first, &format!("{}/{id}/forge", state.plan.phase), out.times).max(asked);
    let moment: Timestamp = out.at.plus(wait);
    deciding.due(moment)
}

impl RunState {
    /// The branch that the lane's pull request asks to be merged into: what a person chose, else that of the one lane which it
    /// builds on and whose pull request is open, else the integration branch.
    pub fn proposal_target(&self, lane: LaneIndex) -> String {
        let Some(started) = self.started() else { return String::new() };
        if let Some(base) = self.lane(lane).proposal.chosen_base() {
            return base.clone();
        }
        match self.proposed_before(lane).as_slice() {
            [only] => started.lane_branch(&self.plan.lane(*only).id),
            _ => started.base_branch.clone(),
        }
    }

    /// The pull requests that have to be merged before the lane's.
    pub fn proposals_before(&self, lane: LaneIndex) -> Vec<PullRequest> {
        let of = |lane: LaneIndex| self.lane(lane).proposal.pull_request().cloned();
        self.proposed_before(lane).into_iter().filter_map(of).collect()
    }

    /// The nearest lanes with a pull request that the lane builds on, without those that another one of them holds.
    fn proposed_before(&self, lane: LaneIndex) -> Vec<LaneIndex> {
        let dag = self.plan.dag();
        let (mut found, mut open) = (BTreeSet::new(), dag.dependencies(lane).to_vec());
        while let Some(next) = open.pop() {
            if self.lane(next).proposal.is_open() {
                found.insert(next);
            } else {
                open.extend(dag.dependencies(next));
            }
        }
        let held = |it: &&LaneIndex| found.iter().any(|at| at != *it && dag.with_dependencies([*at]).contains(it));
        found.iter().filter(|it| !held(it)).copied().collect()
    }
}
