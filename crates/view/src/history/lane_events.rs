//! How an event changes what is known of its lane.

use lanewright_model::event::{AgentReport, CheckedOut, Event, LanePoint, LaneStage, Record, SnapshotReason, Worktree};
use lanewright_model::{
    AgentName, Approval, Checkpoint, CommitId, ExitCause, Failure, FailureKind, HumanGate, JobExit, JobId, JobRole,
    RetryLevel, TaskId, Timestamp,
};

use super::candidates::Choice;
use super::job::{AgentStatus, Retry};
use super::lane::{
    AgentHistory, AgentMove, AnswerView, CheckpointView, Ending, FailureView, LaneFacts, MergeView, PlacementView,
    SnapshotView,
};
use super::workplace::Workplace;

impl LaneFacts {
    #[deny(clippy::wildcard_enum_match_arm, reason = "the compiler names this fold where an event is added")]
    pub(super) fn apply(&mut self, record: &Record) {
        // The own run of a lane on a cluster wrote it.
        let (at, is_copied) = (record.at, record.origin.is_some());
        if !matches!(record.event, Event::EventLogged { .. }) {
            self.last = Some(at);
        }
        match &record.event {
            Event::LaneMoved { from, to, .. } => self.moved(*from, *to, at),
            Event::LaneBased { base, missing, .. } => {
                self.based(base);
                self.missing = Some(missing.clone());
            }
            Event::LaneReset { base, .. } => self.based(base),
            Event::StopRequested { .. } => self.stopping = true,
            Event::PersonAsked { agent, task, .. } => {
                self.no_longer_asks(agent);
                self.asking.push((agent.clone(), task.clone()));
            }
            Event::GateAnswered { gate, approved, message, .. } => {
                self.answered(gate, *approved);
                let (gate, message) = (gate.clone(), message.clone());
                self.answers.push(AnswerView { at, gate, approved: *approved, message });
            }

            Event::LaneOffered { number, executor, .. } if !is_copied => {
                self.placements.push(PlacementView::offered(*number, executor, at));
            }
            Event::LaneOffered { .. } => self.merge_commit = None,
            Event::LanePlaced { .. }
            | Event::LaneClaimed { .. }
            | Event::PlacementEnded { .. }
            | Event::Noted { .. } => {
                let current = self.placements.last_mut().filter(|placement| placement.ended.is_none());
                current.into_iter().for_each(|placement| placement.apply(&record.event, at));
            }
            // In the lane's own run that is its end.
            Event::LaneReturned { head, .. } if !is_copied => self.merge_commit = Some(head.clone()),

            Event::WorktreeOpened { agent, worktree, .. } => self.opened(agent.as_ref(), worktree, is_copied),
            Event::WorktreeLost { agent, head: Some(head), .. } => self.workplace_of(agent.as_ref()).reopened(head),
            Event::AgentMoved { agent, from, to, .. } => {
                self.agent_moves.push(AgentMove { agent: agent.clone(), from: *from, to: *to, at });
            }
            Event::WorktreeReleased { agent, .. } => self.agent_mut(agent).workplace = Workplace::default(),
            Event::WorkCommitted { agent, head, changed, .. } => {
                let changed = if self.about.is_empty() { &[][..] } else { changed };
                self.agent_mut(agent).changed = changed.to_vec();
                self.workplace_of(Some(agent)).set_head(head);
                self.stands_at(agent, head);
            }
            Event::AgentReset { agent, head, .. } => {
                self.agent_mut(agent).changed.clear();
                self.workplace_of(Some(agent)).set_head(head);
                self.stands_at(agent, head);
            }
            Event::CandidatePicked { agent, .. } => {
                let chosen = self.choice().chosen.clone();
                let picked = Some(agent.clone()).filter(|_| chosen.as_ref() != Some(agent));
                self.choices.push((record.seq, Choice { chosen, picked }));
            }
            Event::CandidateChosen { agent, .. } => {
                self.choices.push((record.seq, Choice { chosen: Some(agent.clone()), picked: None }));
                self.back_to_implementation(at);
            }
            Event::BranchMoved { agent, head, .. } => self.branch_moved(agent.as_ref(), head, at),
            Event::AgentMerged { agent, head, .. } => self.agent_merged(agent, head, at),
            Event::SnapshotTaken { agent, reason, commit, reference, unchanged, context, checked_out, .. } => {
                let place = self.place_of(agent.as_ref());
                match checked_out.as_deref() {
                    Some(CheckedOut { head, dirty }) => {
                        place.checkpoint_head = Some(head.clone());
                        place.dirty.clone_from(dirty);
                    }
                    // All is committed then.
                    None if *reason == SnapshotReason::Task => place.dirty.clear(),
                    None => {}
                }
                let (agent, commit, reference) = (agent.clone(), commit.clone(), reference.clone());
                let context = context.clone();
                self.snapshot_taken(SnapshotView {
                    agent,
                    reason: *reason,
                    commit,
                    reference,
                    at,
                    unchanged: *unchanged,
                    context,
                });
            }

            Event::JobPlanned { job, .. } => self.job_planned(job, record),
            Event::JobStarted { job, .. } => self.job_works(job, record, None),
            Event::JobExited { job, exit, report, .. } => {
                self.jobs.apply(&record.event, at, None);
                self.job_exited(job, exit, report.as_ref());
            }
            Event::CheckpointReached { checkpoint, .. } => self.checkpoint_reached(checkpoint, at),
            Event::FailureNoted { agent, task, failure, .. } => {
                agent.iter().for_each(|agent| self.jobs.reject(agent, failure));
                let job = self.failed_job(agent.as_ref()).map(|job| job.job.clone());
                let failure = failure.clone();
                self.failure_noted(FailureView { at, agent: agent.clone(), task: task.clone(), job, failure });
            }
            Event::RetryPlanned { agent, level, not_before, checkpoint, .. } => {
                self.retry_planned(agent, *level, *not_before, checkpoint, at);
            }

            Event::MustHavesChecked { verdicts, .. } => self.must_haves.clone_from(verdicts),
            Event::ChangesMeasured { changes, protected, .. } => {
                if protected.iter().any(|path| !self.protected.contains(path)) {
                    self.approved.retain(|gate| *gate != Approval::Changes);
                }
                (self.changes, self.protected) = (Some(*changes), protected.clone());
            }
            Event::MergeStaged { .. } => self.merging = true,
            Event::LaneMerged { commit, onto, .. } => self.merged(commit, onto, at),
            Event::PullRequestOpened { pull_request, .. } => {
                (self.pull_request, self.pull_request_status) = (Some(pull_request.clone()), None);
            }
            Event::PullRequestChanged { status, .. } => self.pull_request_status = Some(status.clone()),
            Event::FeedbackReceived { .. } => self.feedback_received(at),
            Event::LaneCleaned { kept, .. } => (self.is_cleaned, self.kept) = (true, kept.clone()),
            Event::LaneFailed { failure, .. } => self.failed(failure, at),
            Event::LaneBlocked { reason, .. } => self.ended(Ending::Blocked(reason.clone()), at),
            Event::LaneSkipped { reason, .. } => {
                (self.left_out, self.ending, self.finished) = (Some(reason.clone()), None, Some(at));
            }
            Event::RollbackBegun { to, .. } => {
                (self.is_half_rolled_back, self.point) = (true, Some(to.clone()).filter(|to| !to.is_empty()));
            }
            Event::LaneRolledBack { kept, point, .. } => {
                self.rolled_back(kept, at);
                let then = point.as_ref().map(|point| self.choice_at(point.seq)).unwrap_or_default();
                self.choices.push((record.seq, then));
                point.iter().for_each(|point| self.returned_to(point, at));
            }
            Event::GitWorked { took_ms, .. } => self.git.push(span_before(at, *took_ms)),

            // Not shown.
            Event::LaneReturned { .. } | Event::WorktreeLost { head: None, .. } | Event::WorktreeMadeAhead { .. } => {}
            Event::SnapshotFailed { .. } | Event::SnapshotDamaged { .. } | Event::MergeSuperseded { .. } => {}
            Event::MergesBisected { .. } | Event::BranchPushed { .. } | Event::ForgeUnavailable { .. } => {}
            // See `RunFacts::apply` and `RunFacts::note`.
            Event::RunStarted(_) | Event::RunResumed { .. } | Event::RunMoved(_) | Event::RunFinished { .. } => {}
            Event::FinalOpened { .. } | Event::PhaseBlocked { .. } | Event::PoolEmptied { .. } => {}
            Event::Slept { .. } | Event::EventLogged { .. } => {}
            Event::RunnerPaused { .. } | Event::RunnerContinued { .. } => {}
            Event::PullRequestsChecked { .. } | Event::PullRequestRefused { .. } | Event::MessageSent { .. } => {}
        }
    }

    /// It stays as it is while others go on.
    pub(super) fn set_aside(&mut self) {
        self.stopping = self.stopping || (self.ending.is_none() && !self.state.needs_person());
    }

    /// Failed, blocked and rolled back lanes are tried again, and stop requests no longer apply.
    pub(super) fn resumed(&mut self) {
        self.stopping = false;
        if self.ending.take().is_some() {
            // A lane whose open pull request blocked it has nothing left to do, unless it is sent back.
            self.finished = self.finished.filter(|_| self.is_merged());
            self.asking.append(&mut self.refused);
            self.rejected.retain(|&gate| gate != Approval::Setup);
        }
    }

    fn agent_mut(&mut self, name: &AgentName) -> &mut AgentHistory {
        let index = self.agents.iter().position(|agent| agent.name == *name).unwrap_or_else(|| {
            self.agents.push(AgentHistory {
                name: name.clone(),
                workplace: Workplace::default(),
                branch: None,
                changed: vec![],
            });
            self.agents.len() - 1
        });
        &mut self.agents[index]
    }

    /// Where an agent works: in a worktree of its own while it has one, else in the lane's.
    fn place_of(&mut self, agent: Option<&AgentName>) -> &mut Workplace {
        let own = agent.filter(|agent| self.has_own_worktree(agent));
        self.workplace_of(own)
    }

    /// All that is in the worktree of `agent` is in the commit `head`.
    fn stands_at(&mut self, agent: &AgentName, head: &CommitId) {
        let place = self.place_of(Some(agent));
        place.checkpoint_head = Some(head.clone());
        place.dirty.clear();
    }

    /// What is recorded of an agent's own worktree, whether it has one or not, or of the lane's.
    fn workplace_of(&mut self, agent: Option<&AgentName>) -> &mut Workplace {
        match agent.filter(|agent| self.has_own_worktree(agent)) {
            Some(agent) => &mut self.agent_mut(agent).workplace,
            None => &mut self.workplace,
        }
    }

    fn no_longer_asks(&mut self, agent: &AgentName) {
        self.asking.retain(|(asking, _)| asking != agent);
    }

    fn set_status(&mut self, agent: &AgentName, status: AgentStatus) {
        self.statuses.retain(|(known, _)| known != agent);
        self.statuses.push((agent.clone(), status));
    }

    fn answered(&mut self, gate: &HumanGate, approved: bool) {
        match gate {
            HumanGate::Approval(gate) => {
                self.approved.retain(|answered| answered != gate);
                self.rejected.retain(|answered| answered != gate);
                if approved { &mut self.approved } else { &mut self.rejected }.push(*gate);
            }
            HumanGate::Task(task) => {
                let asking = std::mem::take(&mut self.asking);
                let (answered, open) = asking.into_iter().partition(|(_, asked)| asked == task);
                self.asking = open;
                self.refused = if approved { Vec::new() } else { answered };
            }
        }
    }

    fn moved(&mut self, from: LaneStage, to: LaneStage, at: Timestamp) {
        // What was approved was the lane's content then: after more work the question is asked again.
        if to < self.stage {
            self.approved.retain(|&gate| match gate {
                Approval::Setup => true,
                Approval::Plan => to > LaneStage::Synthesis,
                Approval::Changes => false,
            });
            self.rejected.clear();
            self.merging = false;
        }
        if to != LaneStage::Waiting {
            self.started.get_or_insert(at);
            if self.ending == Some(Ending::RolledBack) {
                self.ending = None;
                self.finished = None;
            }
        }
        self.transitions.push((from, to, at));
        self.stage = to;
    }

    fn based(&mut self, base: &CommitId) {
        self.base = Some(base.clone());
        self.workplace.set_head(base);
        self.approved.retain(|&gate| gate == Approval::Setup);
        self.rejected.retain(|&gate| gate == Approval::Setup);
        self.merging = false;
    }

    fn opened(&mut self, agent: Option<&AgentName>, worktree: &Worktree, is_elsewhere: bool) {
        match agent {
            None => {
                self.workplace.open(worktree);
                self.is_open_elsewhere = is_elsewhere;
            }
            Some(agent) => {
                let agent = self.agent_mut(agent);
                agent.workplace.open(worktree);
                agent.branch = Some(worktree.branch.clone());
            }
        }
    }

    fn branch_moved(&mut self, agent: Option<&AgentName>, head: &CommitId, at: Timestamp) {
        self.workplace_of(agent).set_head(head);
        self.back_to_implementation(at);
    }

    fn back_to_implementation(&mut self, at: Timestamp) {
        if self.stage > LaneStage::Implementation {
            self.moved(self.stage, LaneStage::Implementation, at);
        }
    }

    fn agent_merged(&mut self, agent: &AgentName, head: &CommitId, at: Timestamp) {
        self.agent_mut(agent);
        self.workplace.set_head(head);
        self.no_longer_asks(agent);
        self.set_status(agent, AgentStatus::Complete);
        self.merges.push(MergeView { at, agent: Some(agent.clone()), commit: head.clone(), onto: None });
    }

    fn snapshot_taken(&mut self, taken: SnapshotView) {
        // What is put aside for the lane itself, a stash or the head of a lost worktree, is in no worktree.
        let is_in_worktree = match taken.reason {
            SnapshotReason::Reset => taken.agent.is_some(),
            reason => reason != SnapshotReason::Candidate,
        };
        if is_in_worktree {
            self.workplace_of(taken.agent.as_ref()).content = Some(taken.commit.clone());
        }
        self.snapshots.push(taken);
    }

    fn job_planned(&mut self, job: &JobId, record: &Record) {
        let mut retry = None;
        if let Some(agent) = job.agent().filter(|_| job.is_attempt()) {
            self.delayed_until = None;
            self.no_longer_asks(agent);
            self.refused.clear();
            let last = self.retries.iter_mut().rfind(|retry| retry.agent == *agent).filter(|last| !last.begun);
            retry = last.map(|last| {
                last.begun = true;
                last.clone()
            });
        }
        if let JobRole::Attempt { agent, .. } | JobRole::Verify { agent, .. } = &job.role {
            self.set_status(agent, AgentStatus::Working);
        }
        self.job_works(job, record, retry);
    }

    fn job_works(&mut self, job: &JobId, record: &Record, retry: Option<Retry>) {
        self.jobs.apply(&record.event, record.at, retry);
        let holder = self.works_in(job);
        self.workplace_of(holder).content = None;
    }

    fn job_exited(&mut self, job: &JobId, exit: &JobExit, report: Option<&AgentReport>) {
        let (JobRole::Attempt { agent, task } | JobRole::Verify { agent, task }) = &job.role else { return };
        let is_last = self.tasks_of(agent).and_then(<[TaskId]>::last).is_none_or(|last| last == task);
        let status = match (exit.cause, report.map(|report| report.status.as_str())) {
            // Not the agent's failure: it resumes where it was.
            (ExitCause::Stopped | ExitCause::Lost, _) => AgentStatus::Working,
            (ExitCause::TimedOut, _) => AgentStatus::Timeout,
            (_, Some("BLOCKED")) => AgentStatus::Blocked,
            (_, Some("ERROR")) => AgentStatus::Error,
            _ if !exit.passed() => AgentStatus::Error,
            _ if is_last => AgentStatus::Complete,
            _ => AgentStatus::Working,
        };
        self.set_status(agent, status);
    }

    fn checkpoint_reached(&mut self, checkpoint: &Checkpoint, at: Timestamp) {
        self.workplace.checkpoint_head = checkpoint.head_sha.clone().or(self.workplace.checkpoint_head.take());
        let Checkpoint { stage, status, context, .. } = checkpoint;
        self.checkpoints.push(CheckpointView { at, stage: *stage, status: *status, notes: context.clone() });
    }

    fn failure_noted(&mut self, noted: FailureView) {
        if let Some(agent) = &noted.agent {
            let timeout = noted.failure.kind == FailureKind::Timeout;
            self.set_status(&agent.clone(), if timeout { AgentStatus::Timeout } else { AgentStatus::Error });
        }
        self.failures.push(noted.clone());
        self.last_failure = Some(noted);
    }

    fn retry_planned(
        &mut self,
        agent: &AgentName,
        level: RetryLevel,
        not_before: Timestamp,
        checkpoint: &Checkpoint,
        at: Timestamp,
    ) {
        if level != RetryLevel::Wait {
            self.agent_mut(agent);
        }
        self.delayed_until = Some(not_before);
        self.retries.push(Retry {
            agent: agent.clone(),
            level,
            number: checkpoint.retry_attempt,
            of: checkpoint.max_retries,
            counted: self.retries_of(agent) + u32::from(level == RetryLevel::Retry),
            reason: self.last_failure.as_ref().map(|last| last.failure.message.clone()).unwrap_or_default(),
            planned: at,
            not_before,
            begun: false,
        });
        self.checkpoint_reached(checkpoint, at);
    }

    fn failed(&mut self, failure: &Failure, at: Timestamp) {
        // What was noted before may be another failure, repaired long ago.
        let noted = self.last_failure.take().filter(|noted| noted.failure.kind == failure.kind);
        let failed_job = self.failed_job(None).filter(|_| failure.command.is_some() || failure.exit_code.is_some());
        let job = noted.as_ref().and_then(|noted| noted.job.clone()).or(failed_job.map(|view| view.job.clone()));
        let (agent, task) = match noted {
            Some(noted) => (noted.agent, noted.task),
            None => (job.as_ref().and_then(JobId::agent).cloned(), job.as_ref().and_then(JobId::task).cloned()),
        };
        self.last_failure = Some(FailureView { at, agent, task, job, failure: failure.clone() });
        self.ended(Ending::Failed(failure.clone()), at);
    }

    fn merged(&mut self, commit: &CommitId, onto: &CommitId, at: Timestamp) {
        self.merge_commit = Some(commit.clone());
        (self.ending, self.finished) = (None, Some(at));
        self.merges.push(MergeView { at, agent: None, commit: commit.clone(), onto: Some(onto.clone()) });
    }

    /// Its pull request is open, and it continues.
    fn feedback_received(&mut self, at: Timestamp) {
        self.transitions.push((self.stage, LaneStage::AwaitingUserApproval, at));
        (self.stage, self.merge_commit, self.finished) = (LaneStage::AwaitingUserApproval, None, None);
        (self.is_cleaned, self.merging, self.workplace) = (false, false, Workplace::default());
        self.approved.retain(|gate| *gate != Approval::Changes);
    }

    fn ended(&mut self, ending: Ending, at: Timestamp) {
        self.ending = Some(ending);
        self.finished = Some(at);
    }

    fn rolled_back(&mut self, kept: &[String], at: Timestamp) {
        self.ended(Ending::RolledBack, at);
        self.kept = kept.to_vec();
        (self.is_cleaned, self.is_half_rolled_back) = (false, false);
        self.old_snapshots = self.snapshots.len();
        if self.stage != LaneStage::Waiting {
            self.transitions.push((self.stage, LaneStage::Waiting, at));
        }
        (self.stage, self.workplace, self.merging) = (LaneStage::Waiting, Workplace::default(), false);
        (self.base, self.missing, self.merge_commit, self.pull_request) = (None, None, None, None);
        (self.delayed_until, self.changes, self.left_out, self.point) = (None, None, None, None);
        self.pull_request_status = None;
        self.protected.clear();
        self.must_haves.clear();
        self.approved.clear();
        self.rejected.clear();
        self.asking.clear();
        self.agents.clear();
        self.statuses.clear();
        self.jobs.ended.append(&mut self.jobs.running);
    }
}

impl LaneFacts {
    /// It stands at an earlier point of its own, in new worktrees, until a resume.
    fn returned_to(&mut self, point: &LanePoint, at: Timestamp) {
        let passed = LaneStage::ALL.iter().copied().filter(|stage| *stage <= point.stage);
        let passed: Vec<LaneStage> = passed.collect();
        self.transitions.extend(passed.windows(2).map(|step| (step[0], step[1], at)));
        (self.stage, self.base, self.point) = (point.stage, Some(point.base.clone()), Some(point.name.clone()));
        for opened in &point.worktrees {
            self.opened(opened.agent.as_ref(), &opened.worktree, false);
        }
    }
}

impl PlacementView {
    fn apply(&mut self, event: &Event, at: Timestamp) {
        match event {
            Event::LanePlaced { ticket, .. } => self.job = Some(ticket.clone()),
            Event::LaneClaimed { host, .. } => {
                self.host = Some(host.clone());
                self.claimed.get_or_insert(at);
            }
            Event::Noted { message, .. } => self.note = Some(message.clone()),
            Event::PlacementEnded { outcome, reason, .. } => {
                (self.ended, self.outcome, self.reason) = (Some(at), *outcome, Some(reason.clone()));
            }
            _ => {}
        }
    }
}

/// The `took_ms` milliseconds before `at`.
pub(super) fn span_before(at: Timestamp, took_ms: u64) -> (Timestamp, Timestamp) {
    let began = at.unix_millis().saturating_sub(i64::try_from(took_ms).unwrap_or(i64::MAX));
    (Timestamp::from_unix_millis(began), at)
}
