//! Folding events into a lane.

use crate::event::Event;
use crate::model::must_haves::any_broken;
use crate::model::{Approval, HumanGate, Lane, Stage, TaskKind, Timestamp};
use crate::schedule::state::agent::AgentStep;
use crate::schedule::state::gate::Gate;
use crate::schedule::state::in_vain::Decision;
use crate::schedule::state::lane::{Answer, LaneEnd, LaneState, Rebuild, StagedMerge};

pub(crate) fn apply_to_lane(lane: &mut LaneState, event: &Event, at: Timestamp) {
    match event {
        Event::StopRequested { force, .. } => lane.stopping = Some(lane.stopping.unwrap_or(false) || *force),
        Event::GateAnswered { gate, approved, message, .. } => {
            lane.answers.insert(gate.clone(), Answer { approved: *approved, message: message.clone() });
        }
        Event::LaneBased { base, port, .. } => {
            lane.base = Some(base.clone());
            lane.port = *port;
        }
        Event::WorktreeOpened { agent: None, worktree, .. } => {
            lane.head = Some(worktree.head.clone());
            lane.worktree = Some(worktree.clone());
        }
        Event::AgentMerged { head, .. } => lane.head = Some(head.clone()),
        Event::FailureNoted { agent: None, failure, .. } => lane.failure = Some(failure.clone()),
        Event::SnapshotTaken { commit, reference, .. } => lane.snapshots.push((reference.clone(), commit.clone())),
        Event::LaneReset { base, .. } => {
            lane.base = Some(base.clone());
            lane.head = Some(base.clone());
            lane.staged = None;
            if lane.rebuild == Some(Rebuild::OnIntegration) {
                lane.merges.clear();
            }
        }
        Event::MergeStaged { onto, commit, moved, .. } => {
            lane.staged = Some(StagedMerge { onto: onto.clone(), commit: commit.clone(), moved: *moved });
        }
        Event::MustHavesChecked { head, verdicts, .. } => lane.must_haves = Some((head.clone(), verdicts.clone())),
        Event::MergeSuperseded { .. } => {
            if let Some(staged) = lane.staged.take() {
                lane.in_vain.count(Decision::Merge(staged.onto));
            }
            lane.merged_tests = Gate::Due;
        }
        Event::BranchPushed { .. } | Event::PullRequestOpened { .. } | Event::ForgeUnavailable { .. } => {
            lane.proposal.apply(event, at);
        }
        Event::LaneCleaned { .. } => {
            lane.end = Some(LaneEnd::Merged);
            lane.worktree = None;
        }
        _ => {}
    }
}

impl LaneState {
    /// Back to the implementation: what came after it is done again.
    pub(crate) fn reopen(&mut self) {
        self.in_vain.forget_all();
        self.tests = Gate::Due;
        self.merged_tests = Gate::Due;
        self.must_haves = None;
        self.bisected = false;
        self.culprit = None;
        self.staged = None;
        self.answers.remove(&Approval::Changes.into());
        self.checkpoints.remove(&Stage::AfterLaneTests);
        self.checkpoints.remove(&Stage::PrePr);
    }

    /// The time that a person took to answer does not count.
    pub(crate) fn note_waiting(&mut self, plan: &Lane, at: Timestamp) {
        match (self.is_parked(plan), self.parked_since) {
            (true, None) => self.parked_since = Some(at),
            (false, Some(since)) => {
                self.clock = self.clock.map(|clock| clock.plus(at.since(since)));
                self.parked_since = None;
            }
            _ => {}
        }
    }

    pub(crate) fn begin_rollback(&mut self, at: Timestamp) {
        if !self.rolling_back {
            self.stands_since = Some(at);
        }
        self.rolling_back = true;
    }

    pub(crate) fn order_intake(&mut self) {
        let agents = &self.agents;
        self.intake.retain(|&agent| matches!(agents[agent].step, AgentStep::Merging | AgentStep::Gating(_)));
        let new = (0..agents.len()).filter(|&agent| agents[agent].step == AgentStep::Merging);
        let new: Vec<usize> = new.filter(|agent| !self.intake.contains(agent)).collect();
        self.intake.extend(new);
    }

    /// Another life of the run: failures and blocks are tried again with a fresh count.
    pub(crate) fn revive(&mut self, has_checkpoint_gate: bool, at: Timestamp) {
        // Only what had ended gets a fresh count: a crash in the middle must not give a lane more tries than it has.
        if matches!(self.end, Some(LaneEnd::Failed(_) | LaneEnd::Blocked(_))) {
            self.end = None;
            self.rework = 0;
            self.misunderstood = 0;
            self.assignee = None;
            // A no that ended the lane is asked about again; any other has not been acted upon yet.
            self.answers.retain(|_, answer| answer.approved);
        }
        // What was lost with the machine says nothing of the work, however often that happens.
        self.in_vain.forget_all();
        self.stopping = None;
        self.failure = None;
        self.proposal.out = None;
        self.clock = self.clock.map(|_| at);
        self.parked_since = self.parked_since.map(|_| at);
        for gate in [&mut self.setup, &mut self.tests, &mut self.merged_tests] {
            gate.retry();
        }
        self.must_haves.take_if(|(_, verdicts)| any_broken(verdicts));
        // A lane that stood in the queue when it ended reaches its last checkpoint again.
        if self.merged.is_none() {
            self.checkpoints.remove(&Stage::PrePr);
        }
        for (agent, worker) in self.agents.iter_mut().enumerate() {
            worker.revive(has_checkpoint_gate, self.merges.iter().any(|(merged, _)| *merged == agent));
        }
        // The tests judge what all agents brought: the agent that is to fix that is excused.
        if self.agents.iter().any(|worker| worker.excused && !worker.failed_in_task()) {
            self.agents.iter_mut().for_each(|worker| worker.excused = true);
        }
    }

    /// Answers that have to be given anew when the agent does its work again: what it showed is no more.
    pub(crate) fn ask_again(&mut self, plan: &Lane, agent: usize) {
        let from = self.agents[agent].task;
        for task in plan.agents[agent].tasks[from..].iter().filter(|task| task.kind == TaskKind::HumanVerify) {
            self.answers.remove(&HumanGate::Task(task.id.clone()));
        }
    }
}
