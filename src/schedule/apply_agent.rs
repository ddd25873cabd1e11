//! Folding events into the agents of a lane and their jobs.

use super::agent_machine::AgentPhase;
use super::apply::Fault;
use super::gate::Gate;
use super::judge::{Words, idle_failure, is_unknown, judge, last_words};
use super::state::{AgentState, AgentStep, OutageState, PastFailure, Rebuild, RestartFrom, RunState};
use crate::event::{Event, Idle, LaneStage, Reading, SnapshotReason};
use crate::model::plan::{OwnershipRule, RetryFrom};
use crate::model::retry::OUTAGE_LIMIT;
use crate::model::{
    AgentName, CommitId, ExitCause, Failure, FailureKind, HumanGate, JobExit, JobId, JobRole, LaneIndex, RetryLevel,
    Round, Runner, Stage, TaskId, Timestamp,
};

impl RunState {
    pub(super) fn apply_to_agents(&mut self, lane: LaneIndex, event: &Event, at: Timestamp) -> Result<(), Fault> {
        match event {
            Event::JobPlanned { job } => return self.job_planned(lane, job),
            Event::JobExited { job, exit, report, reading, transcript } => {
                let words =
                    Words { report: report.as_ref(), reading: reading.as_deref(), transcript: transcript.as_deref() };
                return self.job_exited(lane, job, exit, words, at);
            }
            Event::FailureNoted { agent: Some(name), task, failure, .. } => {
                let agent = self.agent_at(lane, name)?;
                return self.failure_noted(lane, agent, task.as_ref(), failure);
            }
            Event::PersonAsked { agent, .. } => {
                let agent = self.agent_at(lane, agent)?;
                return self.person_asked(lane, agent);
            }
            Event::MergesBisected { culprit, .. } => {
                let plan = self.plan.lane(lane);
                let guilty = plan.agents.iter().position(|agent| Some(agent.name.as_str()) == culprit.as_deref());
                self.lanes[lane.at()].culprit = Some(guilty);
            }
            Event::LaneReset { .. } => self.lane_reset(lane),
            Event::WorkCommitted { agent, head, changed, prohibited, idle, .. } => {
                let agent = self.agent_at(lane, agent)?;
                self.lanes[lane.at()].agents[agent].changed = changed.clone();
                return self.work_committed(lane, agent, head.clone(), prohibited, *idle);
            }
            Event::SnapshotTaken { agent: Some(name), reason: SnapshotReason::External, .. } => {
                return self.spare_what_was_lost(lane, name);
            }
            Event::SnapshotTaken { agent: Some(name), reason, reference, .. } => {
                let agent = self.agent_at(lane, name)?;
                return self.snapshot_done(lane, agent, *reason, Ok(reference));
            }
            Event::SnapshotFailed { agent: Some(name), reason, error, .. } => {
                let agent = self.agent_at(lane, name)?;
                return self.snapshot_done(lane, agent, *reason, Err(error));
            }
            Event::AgentMerged { agent, head, .. } => {
                let gate_due = !self.plan.gates.checkpoint.is_empty();
                let index = self.agent_at(lane, agent)?;
                let state = &mut self.lanes[lane.at()];
                if state.merges.last().is_none_or(|(last, at)| (*last, at) != (index, head)) {
                    state.merges.push((index, head.clone()));
                }
                if state.mender == Some(index) {
                    state.mender = None;
                }
                let agent = &mut state.agents[index];
                if agent.step == AgentStep::Merging {
                    agent.step = if gate_due { AgentStep::Gating(Gate::Due) } else { AgentStep::Done };
                }
            }
            Event::RetryPlanned { agent, level, not_before, .. } => {
                let agent = self.agent_at(lane, agent)?;
                return self.retry_planned(lane, agent, *level, *not_before);
            }
            Event::AgentReset { agent, head, .. } => {
                let agent = self.agent_mut(lane, agent)?;
                if agent.restart == RestartFrom::LaneHead {
                    agent.start = Some(head.clone());
                    agent.passed.clear();
                } else if agent.good.as_ref() != Some(head) {
                    agent.fall_back_to(head);
                }
                agent.restart = RestartFrom::Here;
                agent.session = None;
                agent.head = Some(head.clone());
                agent.good = Some(head.clone());
            }
            Event::WorktreeOpened { agent: Some(name), worktree, .. } => {
                let agent = self.agent_mut(lane, name)?;
                agent.worktree = Some(worktree.clone());
                agent.start = Some(worktree.head.clone());
                agent.head = Some(worktree.head.clone());
                agent.good = Some(worktree.head.clone());
                agent.passed.clear();
                agent.restart = RestartFrom::Here;
                agent.session = None;
                if agent.phase == AgentPhase::Initialized {
                    agent.phase = AgentPhase::Planning;
                }
            }
            Event::WorktreeLost { agent: Some(name), .. } => {
                self.agent_mut(lane, name)?.session = None;
                return self.spare_what_was_lost(lane, name);
            }
            Event::WorktreeReleased { agent, .. } => {
                let agent = self.agent_mut(lane, agent)?;
                agent.worktree = None;
                agent.setup = Gate::Due;
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn count_job(&mut self, job: &JobId) {
        let number = self.job_numbers.entry((job.lane.clone(), job.role.clone())).or_default();
        *number = (*number).max(job.number);
    }

    fn job_planned(&mut self, lane: LaneIndex, job: &JobId) -> Result<(), Fault> {
        self.count_job(job);
        let state = &mut self.lanes[lane.at()];
        state.running.insert(job.clone());
        let running = Gate::Running(job.clone());
        match &job.role {
            JobRole::Attempt { agent, .. } => {
                self.running_attempts += 1;
                let agent = self.agent_at(lane, agent)?;
                self.advance(lane, agent, AgentPhase::Planned)?;
                self.advance(lane, agent, AgentPhase::Executing)?;
                let state = &mut self.lanes[lane.at()].agents[agent];
                state.step = AgentStep::Running(job.clone());
                state.attempt = job.number;
            }
            JobRole::Verify { agent, .. } => self.agent_mut(lane, agent)?.step = AgentStep::Verifying(running),
            JobRole::Checkpoint { agent } => self.agent_mut(lane, agent)?.step = AgentStep::Gating(running),
            JobRole::Setup { agent: Some(agent) } => self.agent_mut(lane, agent)?.setup = running,
            JobRole::Setup { agent: None } => state.setup = running,
            JobRole::Tests => {
                state.tests = running;
                state.checkpoints.remove(&Stage::AfterLaneTests);
            }
            JobRole::MergedTests => state.merged_tests = running,
            JobRole::Final => {}
        }
        Ok(())
    }

    fn job_exited(
        &mut self,
        lane: LaneIndex,
        job: &JobId,
        exit: &JobExit,
        words: Words<'_>,
        at: Timestamp,
    ) -> Result<(), Fault> {
        let state = &mut self.lanes[lane.at()];
        // The fence: a job that is not waited for has nothing to say any more.
        if !state.running.remove(job) {
            return Ok(());
        }
        let reading = words.reading;
        match &job.role {
            JobRole::Attempt { agent, .. } => {
                self.running_attempts -= 1;
                let agent = self.agent_at(lane, agent)?;
                if exit.cause != ExitCause::Stopped {
                    self.note_outage(lane, agent, reading, at);
                }
                self.used += words.transcript.map(|transcript| transcript.usage).unwrap_or_default();
                self.attempt_exited(lane, agent, exit, words)?;
                self.lanes[lane.at()].agents[agent].blame_outage(reading);
            }
            JobRole::Verify { agent, .. } => {
                let agent = self.agent_at(lane, agent)?;
                let state = &mut self.lanes[lane.at()];
                if let AgentStep::Verifying(gate) = &mut state.agents[agent].step {
                    gate.settle(job, exit, reading, &mut state.in_vain);
                    if *gate == Gate::Passed {
                        self.start_snapshot(lane, agent)?;
                    }
                }
            }
            JobRole::Checkpoint { agent } => {
                let index = self.agent_at(lane, agent)?;
                let state = &mut self.lanes[lane.at()];
                let being_mended = state.mender.is_some();
                let agent = &mut state.agents[index];
                if let AgentStep::Gating(gate) = &mut agent.step {
                    gate.settle(job, exit, reading, &mut state.in_vain);
                    // What was red before it came is judged again with the work of who mends it.
                    let same = being_mended && gate.is_misunderstood();
                    if *gate == Gate::Passed || same {
                        agent.step = AgentStep::Done;
                    }
                }
            }
            JobRole::Setup { agent: Some(agent) } => {
                let agent = self.agent_at(lane, agent)?;
                let state = &mut self.lanes[lane.at()];
                state.agents[agent].setup.settle(job, exit, reading, &mut state.in_vain);
            }
            JobRole::Setup { agent: None } => state.setup.settle(job, exit, reading, &mut state.in_vain),
            JobRole::Tests => state.tests.settle(job, exit, reading, &mut state.in_vain),
            JobRole::MergedTests => state.merged_tests.settle(job, exit, reading, &mut state.in_vain),
            JobRole::Final => {}
        }
        Ok(())
    }

    fn attempt_exited(&mut self, lane: LaneIndex, agent: usize, exit: &JobExit, words: Words<'_>) -> Result<(), Fault> {
        let plan = &self.plan.lane(lane).agents[agent];
        let streams = self.plan.runner(plan).is_some_and(Runner::has_stream);
        let verdict = judge(plan.round, exit, words);
        let worker = &mut self.lanes[lane.at()].agents[agent];
        worker.rejection = words.report.filter(|report| report.rejects()).map(|report| report.feedback.clone());
        worker.claims_completion = words.report.is_some_and(|report| report.own && report.status == "COMPLETE");
        // A program that no longer has the session that it was to continue ends before it names one.
        let names_session = words.transcript.is_some_and(|transcript| transcript.session.is_some());
        let out = matches!(words.reading, Some(Reading::Outage(_)));
        let failed = exit.cause == ExitCause::Exited && exit.exit_code != 0;
        worker.excused |= worker.session.is_some() && failed && !names_session && !out;
        worker.session = words.transcript.and_then(|transcript| transcript.continuable(worker.session.as_ref()));
        match &verdict {
            AgentStep::Committing => {
                worker.said = last_words(exit, words, streams);
                self.advance(lane, agent, AgentPhase::Validating)?;
            }
            AgentStep::Snapshotting => {
                self.advance(lane, agent, AgentPhase::Validating)?;
                return self.start_snapshot(lane, agent);
            }
            _ => {}
        }
        self.lanes[lane.at()].agents[agent].step = verdict;
        Ok(())
    }

    /// Counts how long something outside has been out.
    fn note_outage(&mut self, lane: LaneIndex, agent: usize, reading: Option<&Reading>, at: Timestamp) {
        let limit = self.started().map_or(OUTAGE_LIMIT, |started| started.options.outage_limit);
        let worker = &mut self.lanes[lane.at()].agents[agent];
        let Some(Reading::Outage(outage)) = reading else {
            worker.outage = None;
            return;
        };
        let (since, waits) = worker.outage.map_or((at, 0), |known| (known.since, known.waits));
        let given_up = at.since(since) >= limit;
        worker.outage = Some(OutageState { since, waits, retry_after: outage.retry_after, given_up });
    }

    fn work_committed(
        &mut self,
        lane: LaneIndex,
        agent: usize,
        head: crate::model::CommitId,
        prohibited: &[String],
        idle: Idle,
    ) -> Result<(), Fault> {
        let plan = self.plan.clone();
        self.advance(lane, agent, AgentPhase::Validating)?;
        let state = &mut self.lanes[lane.at()];
        // Gates, reviewers and people judge work again that is in the lane already: it may rightly stay as it is.
        let is_in_lane = state.merges.iter().any(|(merged, _)| *merged == agent);
        if plan.lane(lane).shares_worktree(agent) {
            state.head = Some(head.clone());
        }
        let worker = &mut state.agents[agent];
        worker.head = Some(head);
        let said = worker.said.clone();
        if !prohibited.is_empty() {
            let message = "changed files outside `owns`";
            let failure = Failure { paths: prohibited.to_vec(), ..Failure::new(FailureKind::Ownership, message) };
            worker.step = AgentStep::Judging(failure);
            return Ok(());
        }
        let writes = plan.lane(lane).ownership != OwnershipRule::Nothing;
        if writes && worker.claims_what_is_not(plan.lane(lane).agents[agent].tasks.len()) {
            let message = "says COMPLETE, but changed and committed nothing";
            worker.step = AgentStep::Judging(Failure::new(FailureKind::Report, message));
            return Ok(());
        }
        let of_plan = &plan.lane(lane).agents[agent];
        let is_last = worker.task == of_plan.last_own_task();
        if idle == Idle::Agent && is_last && !is_in_lane {
            worker.step = AgentStep::Judging(idle_failure(of_plan, &said));
            return Ok(());
        }
        if !plan.is_gated(&plan.lane(lane).agents[agent].tasks[worker.task]) {
            return self.start_snapshot(lane, agent);
        }
        worker.step = AgentStep::Verifying(Gate::Due);
        Ok(())
    }

    fn start_snapshot(&mut self, lane: LaneIndex, agent: usize) -> Result<(), Fault> {
        self.advance(lane, agent, AgentPhase::Checkpointing)?;
        self.lanes[lane.at()].agents[agent].step = AgentStep::Snapshotting;
        Ok(())
    }

    fn snapshot_done(
        &mut self,
        lane: LaneIndex,
        agent: usize,
        reason: SnapshotReason,
        kept: Result<&String, &String>,
    ) -> Result<(), Fault> {
        let merges = self.plan.lane(lane).agents[agent].round == Round::Implementation;
        let worker = &mut self.lanes[lane.at()].agents[agent];
        match worker.step.clone() {
            AgentStep::Snapshotting if reason == SnapshotReason::Task => return self.task_passed(lane, agent),
            // Without a snapshot the work goes on (SPEC §5), but never by throwing away what is kept nowhere.
            AgentStep::Salvaging(wanted, Some(_))
                if reason == wanted && kept.is_err() && worker.restart != RestartFrom::Here =>
            {
                worker.unkept = kept.err().cloned();
            }
            AgentStep::Salvaging(wanted, failure) if reason == wanted => {
                // What a specialist left is never merged: its next attempt starts without it.
                if kept.is_ok() && !merges {
                    worker.restart = RestartFrom::LaneHead;
                }
                worker.salvaged.extend(kept.ok().cloned());
                worker.step = failure.map_or(AgentStep::Ready, AgentStep::Failed);
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn task_passed(&mut self, lane: LaneIndex, agent: usize) -> Result<(), Fault> {
        let plan = self.plan.clone();
        let plan = &plan.lane(lane).agents[agent];
        let worker = &mut self.lanes[lane.at()].agents[agent];
        worker.good = worker.head.clone();
        worker.passed.extend(worker.head.clone());
        worker.retries = 0;
        worker.rolled_back = false;
        worker.excused = false;
        worker.session = None;
        if worker.task + 1 < plan.tasks.len() {
            worker.task += 1;
            worker.step = AgentStep::Ready;
            return Ok(());
        }
        let merges = plan.round == Round::Implementation;
        worker.step = if merges { AgentStep::Merging } else { AgentStep::Done };
        self.advance(lane, agent, AgentPhase::Completed)
    }

    fn failure_noted(
        &mut self,
        lane: LaneIndex,
        agent: usize,
        task: Option<&TaskId>,
        failure: &Failure,
    ) -> Result<(), Fault> {
        let plan = self.plan.clone();
        let plan = plan.lane(lane);
        if let Some(task) = task {
            self.advance(lane, agent, AgentPhase::Failed)?;
            self.back_to_task(lane, agent, task);
        } else if failure.kind != FailureKind::Idle {
            self.note_rebuild(lane, failure);
            self.leave_gate_to(lane, agent, failure);
        }
        let state = &mut self.lanes[lane.at()];
        let worker = &mut state.agents[agent];
        let context = if failure.kind.is_outage() { Vec::new() } else { failure.context(worker.attempt) };
        let findings = failure.diagnosis.iter().flat_map(|diagnosis| &diagnosis.findings);
        let complaints = findings.map(ToString::to_string).collect();
        worker.past.push(PastFailure { task: task.cloned(), context, signature: failure.signature(), complaints });
        let puts_back = state.next_level(plan, agent) == Some(RetryLevel::Rollback);
        let worker = &mut state.agents[agent];
        worker.restart = match task {
            None if failure.kind == FailureKind::Idle => RestartFrom::Here,
            Some(_) if puts_back || failure.kind == FailureKind::Ownership || plan.resume == RetryFrom::Fresh => {
                RestartFrom::LastGood
            }
            Some(_) => RestartFrom::Here,
            None => RestartFrom::LaneHead,
        };
        let unmerged = matches!(worker.step, AgentStep::Merging);
        if task.is_none() {
            worker.restart_work(match failure.kind {
                FailureKind::Conflict => 0,
                FailureKind::Idle => plan.agents[agent].first_own_task(),
                _ => plan.agents[agent].last_own_task(),
            });
        }
        state.ask_again(plan, agent);
        let worker = &mut state.agents[agent];
        worker.step = match (task, failure.kind) {
            (Some(_), FailureKind::Timeout) => AgentStep::Salvaging(SnapshotReason::Timeout, Some(failure.clone())),
            (Some(_), _) => AgentStep::Salvaging(SnapshotReason::Failure, Some(failure.clone())),
            (None, _) if unmerged => AgentStep::Salvaging(SnapshotReason::Reset, Some(failure.clone())),
            (None, _) => AgentStep::Failed(failure.clone()),
        };
        Ok(())
    }

    /// What a worktree held that was lost, or that somebody changed meanwhile, is in snapshots only: they outlive the
    /// merge.
    fn spare_what_was_lost(&mut self, lane: LaneIndex, name: &AgentName) -> Result<(), Fault> {
        let agent = self.agent_at(lane, name)?;
        let state = &mut self.lanes[lane.at()];
        let worker = &state.agents[agent];
        state.snapshots.retain(|(reference, _)| !worker.salvaged.contains(reference));
        Ok(())
    }

    /// A person's no to a task is about the one before, which is done again.
    fn back_to_task(&mut self, lane: LaneIndex, agent: usize, task: &TaskId) {
        let plan = self.plan.clone();
        let plan = plan.lane(lane);
        let worker = &mut self.lanes[lane.at()].agents[agent];
        if let Some(at) = plan.agents[agent].tasks[..worker.task].iter().position(|known| known.id == *task) {
            worker.passed.truncate(worker.passed.len().saturating_sub(worker.task - at));
            worker.task = at;
            worker.retries = 0;
            for later in &plan.agents[agent].tasks[at..] {
                self.lanes[lane.at()].answers.remove(&HumanGate::Task(later.id.clone()));
            }
        }
    }

    /// A gate that failed on the work of one agent and is given to another is judged again with that one's work.
    fn leave_gate_to(&mut self, lane: LaneIndex, mender: usize, failure: &Failure) {
        let state = &mut self.lanes[lane.at()];
        let of_others = state.agents.iter_mut().enumerate().filter(|(agent, _)| *agent != mender);
        for (_, worker) in of_others.filter(|(_, worker)| matches!(worker.step, AgentStep::Gating(Gate::Failed(_)))) {
            worker.step = AgentStep::Done;
        }
        if is_unknown(failure.diagnosis.as_deref()) {
            state.misunderstood += 1;
            state.mender = Some(mender);
        }
    }

    /// A failure at the merge queue says what the lane has to be put onto.
    fn note_rebuild(&mut self, lane: LaneIndex, failure: &Failure) {
        let state = &mut self.lanes[lane.at()];
        if state.stage != LaneStage::AwaitingUserApproval {
            return;
        }
        state.rebuild = match (&failure.kind, &state.staged) {
            (FailureKind::Conflict, _) => Some(Rebuild::OnIntegration),
            (FailureKind::Gate, Some(staged)) => Some(Rebuild::OnMerge(staged.commit.clone())),
            _ => None,
        };
    }

    fn lane_reset(&mut self, lane: LaneIndex) {
        let plan = self.plan.clone();
        let state = &mut self.lanes[lane.at()];
        if state.rebuild.take() == Some(Rebuild::OnIntegration) {
            for agent in plan.lane(lane).round(Round::Implementation) {
                let worker = &mut state.agents[agent];
                if worker.step == AgentStep::Done {
                    worker.restart_work(0);
                    worker.restart = RestartFrom::LaneHead;
                    state.ask_again(plan.lane(lane), agent);
                }
            }
        }
    }

    fn retry_planned(
        &mut self,
        lane: LaneIndex,
        agent: usize,
        level: RetryLevel,
        not_before: crate::model::Timestamp,
    ) -> Result<(), Fault> {
        let state = &mut self.lanes[lane.at()];
        if state.agents[agent].failed_in_task() {
            state.agents[agent].excused = false;
        } else {
            // What the agents brought together was judged again once for all of them.
            state.agents.iter_mut().for_each(|worker| worker.excused = false);
        }
        let worker = &mut state.agents[agent];
        worker.step = AgentStep::Retrying(not_before);
        match level {
            RetryLevel::Rollback => {
                worker.rolled_back = true;
                worker.session = None;
            }
            RetryLevel::Wait => worker.outage.iter_mut().for_each(|outage| outage.waits += 1),
            RetryLevel::Retry if worker.failed_in_task() => worker.retries += 1,
            RetryLevel::Retry => state.rework += 1,
        }
        if self.lanes[lane.at()].agents[agent].phase == AgentPhase::Failed {
            self.advance(lane, agent, AgentPhase::RollingBack)?;
        }
        Ok(())
    }

    /// Takes the agent's work along an arrow of seed 000; standing where it should go is no step.
    pub(super) fn advance(&mut self, lane: LaneIndex, agent: usize, to: AgentPhase) -> Result<(), Fault> {
        let plan = self.plan.lane(lane);
        let worker = &mut self.lanes[lane.at()].agents[agent];
        let from = worker.phase;
        // A shared worktree opens nothing, and an agent that ran before is not planned again.
        if from == AgentPhase::Initialized && to == AgentPhase::Planned {
            worker.phase = AgentPhase::Planned;
            return Ok(());
        }
        if to == AgentPhase::Planned && from != AgentPhase::Planning {
            return Ok(());
        }
        if from != to && !from.may_become(to) {
            let (lane, agent) = (plan.id.clone(), plan.agents[agent].name.clone());
            return Err(Fault::ImpossiblePhase { lane, agent, from, to });
        }
        worker.phase = to;
        Ok(())
    }

    fn agent_mut(&mut self, lane: LaneIndex, name: &AgentName) -> Result<&mut AgentState, Fault> {
        let agent = self.agent_at(lane, name)?;
        Ok(&mut self.lanes[lane.at()].agents[agent])
    }
}

impl AgentState {
    /// A new piece of work, from the given task on; what went wrong before is remembered.
    pub(super) fn restart_work(&mut self, task: usize) {
        self.step = AgentStep::Ready;
        self.task = task;
        self.retries = 0;
        self.rolled_back = false;
        self.session = None;
        self.outage = None;
        self.rejection = None;
        self.phase = if self.worktree.is_some() { AgentPhase::Planning } else { AgentPhase::Initialized };
    }

    /// Goes back to `head` because what passed after it cannot be read any more: those tasks are done again.
    fn fall_back_to(&mut self, head: &CommitId) {
        let kept = self.passed.iter().rposition(|passed| passed == head).map_or(0, |at| at + 1);
        self.task = self.task.saturating_sub(self.passed.len() - kept);
        self.passed.truncate(kept);
    }

    /// Where it may start again, the best first: after its last task that passed, after one before, where it began.
    pub fn good_points(&self) -> Vec<CommitId> {
        let mut points: Vec<CommitId> = self.good.iter().cloned().collect();
        points.extend(self.passed.iter().rev().chain(&self.start).cloned());
        points.dedup();
        points
    }

    /// Whether its branch holds nothing although it says that its work, all `tasks` of it, is complete. Work that was
    /// taken before and is done again may rightly need no change.
    fn claims_what_is_not(&self, tasks: usize) -> bool {
        let first_time = self.past.iter().all(|failure| failure.task.is_some());
        self.claims_completion && first_time && self.task + 1 == tasks && self.head == self.start
    }

    /// An attempt that failed while something was out failed for that.
    fn blame_outage(&mut self, reading: Option<&Reading>) {
        if let (AgentStep::Judging(failure), Some(Reading::Outage(outage))) = (&mut self.step, reading) {
            failure.kind = outage.kind.into();
            // What its own stream complained of stands there already.
            if !failure.message.contains(&outage.line) {
                failure.message = format!("{}: {}", failure.message, outage.line);
            }
        }
    }

    /// Has the gate run again that the work did not pass, before anybody is paid to work on it: the user may have changed
    /// the work, the plan, or what the gate needs.
    fn judge_again(&mut self, has_checkpoint_gate: bool, is_in_lane: bool) {
        match self.restart {
            RestartFrom::Here if self.failed_in_task() => {
                self.step = AgentStep::Committing;
                self.phase = AgentPhase::Executing;
            }
            RestartFrom::LaneHead if is_in_lane && has_checkpoint_gate => self.step = AgentStep::Gating(Gate::Due),
            RestartFrom::LaneHead if is_in_lane => self.step = AgentStep::Done,
            _ => return,
        }
        self.excused = true;
    }

    /// The worktree is another one, on another machine perhaps: what only the old one had is gone.
    pub(super) fn lose_what_is_not_committed(&mut self) {
        self.setup.run_again();
        // The agent's program knows it on its old machine only.
        self.session = None;
        if self.step == AgentStep::Committing {
            self.step = AgentStep::Ready;
            // As if the attempt had not ended: it is not the agent's failure.
            self.phase = AgentPhase::Executing;
        }
    }

    pub(super) fn note_keeping(&mut self, at: Timestamp) {
        let keeping = matches!(self.step, AgentStep::Snapshotting | AgentStep::Salvaging(..));
        self.keep_since = keeping.then_some(self.keep_since.unwrap_or(at));
    }

    pub(super) fn abandon(&mut self) {
        if self.phase.may_become(AgentPhase::Abandoned) {
            self.phase = AgentPhase::Abandoned;
        }
    }

    /// Another life of the run: what was given up is tried again with a fresh count. `has_checkpoint_gate`: the plan has a
    /// `checkpoint` gate; `is_in_lane`: the agent's work is in the lane.
    pub(super) fn revive(&mut self, has_checkpoint_gate: bool, is_in_lane: bool) {
        self.setup.retry();
        self.unkept = None;
        match &self.step {
            AgentStep::GaveUp(failure) if failure.kind == FailureKind::Gate => {
                self.restart_work(self.task);
                self.judge_again(has_checkpoint_gate, is_in_lane);
            }
            AgentStep::GaveUp(_) | AgentStep::Blocked(_) => self.restart_work(self.task),
            _ => {}
        }
        if let AgentStep::Gating(gate) = &mut self.step {
            gate.retry();
        }
    }
}
