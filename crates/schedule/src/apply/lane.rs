//! Folding events into a lane, and into what the run keeps of its lanes.

use lanewright_model::event::{Event, LanePoint, LaneStage, SnapshotReason};
use lanewright_model::{
    AgentName, Approval, Checkpoint, CommitId, Lane, LaneIndex, MergeMode, Remark, Stage, Timestamp,
};

use crate::apply::Fault;
use crate::apply::judge::Words;
use crate::state::RunState;
use crate::state::agent::AgentState;
use crate::state::gate::Gate;
use crate::state::lane::stage::may_move;
use crate::state::lane::validation::Search;
use crate::state::lane::{LaneEnd, LaneState};

impl RunState {
    #[deny(clippy::wildcard_enum_match_arm, reason = "the compiler names this fold where an event is added")]
    pub(super) fn apply_to_lane(&mut self, lane: LaneIndex, event: &Event, at: Timestamp) -> Result<(), Fault> {
        match event {
            Event::LaneMoved { from, to, .. } => {
                self.move_lane(lane, *from, *to, at)?;
                // Only now: a crash after the failure alone would have its remarks answered by nothing.
                if *to == LaneStage::Implementation {
                    self.lanes[lane.at()].proposal.feedback.clear();
                }
            }
            Event::LaneMerged { commit, .. } => self.lane_merged(lane, commit),
            Event::RollbackBegun { .. } => {
                self.lanes[lane.at()].begin_rollback(at);
                self.unfinish();
            }
            Event::LaneRolledBack { integration, point, .. } => {
                self.lane_rolled_back(lane, integration.as_ref(), point.as_deref(), at)?;
            }
            Event::CheckpointReached { checkpoint, .. } => self.checkpoint_reached(lane, checkpoint),
            Event::LaneFailed { failure, .. } => self.end_lane(lane, LaneEnd::Failed(failure.clone())),
            Event::LaneBlocked { reason, .. } => self.end_lane(lane, LaneEnd::Blocked(reason.clone())),
            Event::LaneSkipped { .. } => self.skip_lane(lane),
            Event::StopRequested { force, .. } => self.stop_lane(lane, *force),
            Event::FeedbackReceived { head, remarks, .. } => self.feedback_received(lane, head, remarks, at),
            Event::CandidatePicked { agent, .. } => {
                let agent = self.worker(lane, agent)?.at;
                self.lanes[lane.at()].pick(agent);
            }
            Event::CandidateChosen { agent, .. } => self.candidate_chosen(lane, agent, at)?,
            Event::BranchMoved { agent, head, theirs, .. } => {
                theirs.iter().for_each(|theirs| self.lanes[lane.at()].proposal.take_in(theirs));
                self.branch_moved(lane, agent.as_ref(), head, at)?;
            }
            Event::JobPlanned { job, made_with } => self.job_planned(lane, job, made_with.as_deref(), at)?,
            Event::JobExited { job, exit, report, reading, transcript } => {
                let (reading, transcript) = (reading.as_deref(), transcript.as_deref());
                self.job_exited(lane, job, exit, Words { report: report.as_ref(), reading, transcript }, at)?;
            }
            Event::LaneOffered { .. }
            | Event::LanePlaced { .. }
            | Event::LaneClaimed { .. }
            | Event::LaneReturned { .. }
            | Event::PlacementEnded { .. } => self.apply_placement(lane, event, at),
            Event::PersonAsked { .. }
            | Event::GateAnswered { .. }
            | Event::MessageSent { .. }
            | Event::LaneBased { .. }
            | Event::WorktreeOpened { .. }
            | Event::WorktreeLost { .. }
            | Event::WorktreeReleased { .. }
            | Event::AgentMoved { .. }
            | Event::JobStarted { .. }
            | Event::WorkCommitted { .. }
            | Event::SnapshotTaken { .. }
            | Event::SnapshotFailed { .. }
            | Event::SnapshotDamaged { .. }
            | Event::AgentMerged { .. }
            | Event::FailureNoted { .. }
            | Event::RetryPlanned { .. }
            | Event::AgentReset { .. }
            | Event::LaneReset { .. }
            | Event::MergeStaged { .. }
            | Event::MergeSuperseded { .. }
            | Event::MergesBisected { .. }
            | Event::MustHavesChecked { .. }
            | Event::BranchPushed { .. }
            | Event::PullRequestOpened { .. }
            | Event::PullRequestChanged { .. }
            | Event::PullRequestRefused { .. }
            | Event::ForgeUnavailable { .. }
            | Event::LaneCleaned { .. } => {
                apply_to_state(&mut self.lanes[lane.at()], event, self.plan.lane(lane), at);
                if let Some(agent) = event.facts().agent {
                    self.worker(lane, agent)?.apply(event)?;
                }
            }
            Event::ChangesMeasured { head, changes, protected, .. } => {
                let state = &mut self.lanes[lane.at()];
                if state.validation.measure(head, *changes, protected) {
                    // What was approved was less, and others are not held up by the question.
                    state.approvals.forget(&Approval::Changes.into());
                    state.checkpoints.remove(&Stage::PrePr);
                    self.leave_queue(lane);
                }
            }
            // Nothing is decided by them.
            Event::GitWorked { .. }
            | Event::Noted { .. }
            | Event::EventLogged { .. }
            | Event::WorktreeMadeAhead { .. } => {}
            // See `apply_to_run`.
            Event::RunStarted(_)
            | Event::PullRequestsChecked { .. }
            | Event::RunResumed { .. }
            | Event::RunMoved(_)
            | Event::RunFinished { .. }
            | Event::FinalOpened { .. }
            | Event::PhaseBlocked { .. }
            | Event::PoolEmptied { .. }
            | Event::RunnerPaused { .. }
            | Event::RunnerContinued { .. }
            | Event::Slept { .. } => {}
        }
        Ok(())
    }

    fn move_lane(&mut self, lane: LaneIndex, from: LaneStage, to: LaneStage, at: Timestamp) -> Result<(), Fault> {
        let (state, plan) = (&mut self.lanes[lane.at()], self.plan.lane(lane));
        if state.stage != from || !may_move(from, to) {
            return Err(Fault::ImpossibleMove { lane: plan.id.clone(), stands: state.stage, from, to });
        }
        state.stage = to;
        state.clock.move_on(at);
        match to {
            LaneStage::Requirements => state.approvals.forget(&Approval::Plan.into()),
            LaneStage::Implementation if from != LaneStage::Synthesis => {
                state.reopen(plan);
                self.leave_queue(lane);
            }
            LaneStage::Review => state.attempts.excuse_all(false),
            _ => {}
        }
        Ok(())
    }

    /// What another candidate brought is judged no further. One event says so, as for a branch that moved.
    fn candidate_chosen(&mut self, lane: LaneIndex, agent: &AgentName, at: Timestamp) -> Result<(), Fault> {
        let stage = self.lanes[lane.at()].stage;
        if stage > LaneStage::Implementation {
            self.move_lane(lane, stage, LaneStage::Implementation, at)?;
        }
        let agent = self.worker(lane, agent)?.at;
        self.lanes[lane.at()].choose(self.plan.lane(lane), agent);
        Ok(())
    }

    /// What was judged before is judged again. One event says so: a part of it after a crash would merge what no gate saw.
    fn branch_moved(
        &mut self,
        lane: LaneIndex,
        agent: Option<&AgentName>,
        head: &CommitId,
        at: Timestamp,
    ) -> Result<(), Fault> {
        let stage = self.lanes[lane.at()].stage;
        if stage > LaneStage::Implementation {
            self.move_lane(lane, stage, LaneStage::Implementation, at)?;
        }
        match agent {
            Some(agent) => self.worker(lane, agent)?.agent().integrate(Some(head), false),
            None => {
                let has_checkpoint_gate = !self.plan.gates.checkpoint.is_empty();
                self.lanes[lane.at()].set_head(head, self.plan.lane(lane), has_checkpoint_gate);
            }
        }
        Ok(())
    }

    /// The lane continues from its branch, which another person may have moved. What depends on it and has not begun waits
    /// for it again.
    fn feedback_received(&mut self, lane: LaneIndex, head: &CommitId, remarks: &[Remark], at: Timestamp) {
        if !self.lanes[lane.at()].is_followed() || !self.lanes[lane.at()].proposal.send_back(remarks, at) {
            return;
        }
        if self.lanes[lane.at()].head() != Some(head) {
            self.lanes[lane.at()].proposal.take_in(head);
        }
        self.lanes[lane.at()].take_up_again(head, self.plan.lane(lane), at);
        self.unfinish();
        self.count_dependants(lane, false);
    }

    fn lane_merged(&mut self, lane: LaneIndex, commit: &CommitId) {
        self.leave_queue(lane);
        if !self.lanes[lane.at()].merge.finish(commit) {
            return;
        }
        if self.merges_here() {
            self.merges.push((lane, commit.clone()));
            self.integration = Some(commit.clone());
        }
        self.count_dependants(lane, true);
    }

    fn lane_rolled_back(
        &mut self,
        lane: LaneIndex,
        integration: Option<&CommitId>,
        point: Option<&LanePoint>,
        at: Timestamp,
    ) -> Result<(), Fault> {
        let then = point.map(|point| self.lane_at(lane, point.seq)).transpose()?;
        self.leave_queue(lane);
        // What is merged from now on is searched from here: the commits before hold what was rolled back.
        if let Some(integration) = integration {
            self.integration = Some(integration.clone());
            self.merges.clear();
            self.searched_from = Some(integration.clone());
        }
        self.unfinish();
        // What the final gate saw is no more.
        self.final_gate = Gate::Due;
        self.final_worktree = None;
        let state = &mut self.lanes[lane.at()];
        self.running_attempts -= state.attempts_here();
        let was_merged = state.is_merged();
        let missing = self.missing(lane);
        let (state, plan) = (&mut self.lanes[lane.at()], self.plan.lane(lane));
        state.roll_back(plan, missing);
        if let (Some(point), Some(then)) = (point, then) {
            state.return_to(point, then, plan, at);
            if was_merged {
                // A merge removes them.
                state.work.forget_snapshots(|_| true);
            }
        }
        if was_merged {
            self.count_dependants(lane, false);
        }
        Ok(())
    }

    /// The lane as it was after the record `seq`.
    fn lane_at(&self, lane: LaneIndex, seq: u64) -> Result<LaneState, Fault> {
        let unknown = || Fault::UnknownPoint { lane: self.plan.lane(lane).id.clone(), seq };
        self.point(lane, seq).cloned().ok_or_else(unknown)
    }

    fn checkpoint_reached(&mut self, lane: LaneIndex, checkpoint: &Checkpoint) {
        let proposes = self.merge_mode() == Some(MergeMode::Pr);
        let state = &mut self.lanes[lane.at()];
        state.checkpoints.insert(checkpoint.stage);
        if checkpoint.stage != Stage::PrePr {
            return;
        }
        if let Some(head) = checkpoint.head_sha.as_ref().filter(|_| proposes) {
            state.proposal.announced.push(head.clone());
        }
        if !self.merge_queue.contains(&lane) {
            self.merge_queue.push_back(lane);
        }
    }

    fn end_lane(&mut self, lane: LaneIndex, end: LaneEnd) {
        self.leave_queue(lane);
        let state = &mut self.lanes[lane.at()];
        if matches!(end, LaneEnd::Failed(_)) {
            state.attempts.agents_mut().iter_mut().for_each(AgentState::give_up);
        }
        state.end = Some(end);
    }

    /// What depends on it continues as if it were merged.
    fn skip_lane(&mut self, lane: LaneIndex) {
        let was_merged = self.lanes[lane.at()].is_merged();
        self.end_lane(lane, LaneEnd::Skipped);
        self.unfinish();
        if !was_merged {
            self.count_dependants(lane, true);
        }
    }

    /// Counts for the lanes that depend on it that the lane is merged, or is not any more.
    fn count_dependants(&mut self, lane: LaneIndex, is_merged: bool) {
        for &dependant in self.plan.clone().dag().dependants(lane) {
            let missing = &mut self.lanes[dependant.at()].missing;
            *missing = if is_merged { *missing - 1 } else { *missing + 1 };
            self.refresh(dependant);
        }
    }

    pub(super) fn leave_queue(&mut self, lane: LaneIndex) {
        self.merge_queue.retain(|&queued| queued != lane);
    }

    /// The lanes behind it in the queue continue; a resume lets it reach its last checkpoint again.
    fn stop_lane(&mut self, lane: LaneIndex, force: bool) {
        self.leave_queue(lane);
        let stopping = &mut self.lanes[lane.at()].stopping;
        *stopping = Some(stopping.unwrap_or(false) || force);
    }
}

fn apply_to_state(state: &mut LaneState, event: &Event, plan: &Lane, at: Timestamp) {
    match event {
        Event::GateAnswered { gate, approved, message, .. } => {
            state.approvals.give(gate.clone(), *approved, message);
        }
        Event::MessageSent { message, .. } => state.approvals.remark(message),
        Event::LaneBased { base, port, missing, .. } => state.work.begin(base, *port, missing),
        Event::WorktreeOpened { agent: None, worktree, .. } => state.open(worktree),
        Event::FailureNoted { agent, failure, .. } => {
            // Of a lane that no agent works in again, that is all that becomes of it.
            if agent.is_none() {
                state.proposal.feedback.clear();
            }
            state.failure = Some(failure.clone()).filter(|_| agent.is_none()).or(state.failure.take());
        }
        // What a person did, or a candidate that was not chosen, may be nowhere else: it outlives the merge.
        Event::SnapshotTaken { reason: SnapshotReason::External | SnapshotReason::Candidate, .. } => {}
        Event::SnapshotTaken { agent, commit, reference, context, .. } => {
            // What is decided for the lane concerns all its agents.
            if let (None, Some(context)) = (agent, context) {
                state.attempts.agents_mut().iter_mut().for_each(|agent| agent.add_decisions(&context.decisions));
            }
            state.work.add_snapshot(reference, commit);
        }
        Event::SnapshotDamaged { reference, .. } => state.work.forget_snapshots(|known| known == reference),
        Event::AgentMerged { head, .. } => state.work.set_head(head),
        Event::LaneReset { base, .. } => state.reset(base, plan),
        Event::WorktreeLost { agent: None, .. } => state.lose_worktree(plan),
        Event::MergeStaged { onto, commit, moved, .. } => state.merge.stage(onto, commit, *moved),
        Event::MergeSuperseded { .. } => state.supersede(),
        Event::MergesBisected { culprit, .. } => {
            let guilty = plan.agents.iter().position(|agent| Some(agent.name.as_str()) == culprit.as_deref());
            state.validation.search = guilty.map_or(Search::FoundNothing, Search::Found);
        }
        Event::MustHavesChecked { head, verdicts, .. } => state.validation.check(head, verdicts),
        Event::BranchPushed { .. }
        | Event::PullRequestOpened { .. }
        | Event::PullRequestChanged { .. }
        | Event::PullRequestRefused { .. }
        | Event::ForgeUnavailable { .. } => state.proposal.apply(event, at),
        Event::LaneCleaned { .. } => state.clean(),
        _ => {}
    }
}
