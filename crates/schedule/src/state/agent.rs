//! One agent of a lane: which task it is at, and what its attempts came to.

use std::time::Duration;

use lanewright_model::event::{Decision, LanePoint, MadeWith, OpenedWorktree, SnapshotReason, Worktree};
use lanewright_model::{
    Agent, AgentPhase, ChangeSize, CommitId, Failure, FailureKind, JobId, Session, TaskId, Timestamp,
};

use crate::state::gate::Gate;

use phase_tracker::PhaseTracker;
pub use refusals::Refusals;

/// One agent of a lane.
#[derive(Debug, Clone, Default)]
pub struct AgentState {
    /// Where its work stands, in the words of seed 000.
    pub phase: PhaseTracker,
    /// What comes next.
    pub step: AgentStep,
    /// The task it is at.
    pub task: usize,
    /// Retries used for that task.
    pub retries: u32,
    /// The number of its last attempt at that task.
    pub attempt: u32,
    /// Its worktree; the lane's, where it shares that.
    pub worktree: Option<Worktree>,
    /// Another candidate took its place when its worktree was about to be opened: whether that happened is not known.
    pub may_be_open: bool,
    /// Its `setup` commands.
    pub setup: Gate,
    /// Where its branch began: its changes are those since this commit.
    pub start: Option<CommitId>,
    /// Its branch's head.
    pub head: Option<CommitId>,
    /// Files that it changed since its worktree was opened.
    pub changed: Vec<String>,
    /// How much it changed, if it is a candidate.
    pub size: Option<ChangeSize>,
    /// The ref that keeps its work since another candidate was chosen, and its commit.
    pub kept: Option<(String, CommitId)>,
    /// Its branch's head when its last task passed.
    pub good: Option<CommitId>,
    /// The same for every task that passed since `start`, oldest first.
    pub passed: Vec<CommitId>,
    /// What went wrong before, oldest first.
    pub past: Vec<PastFailure>,
    /// Level 2 was reached in its task: the next attempt is the last.
    pub rolled_back: bool,
    /// Its next failure costs no retry: a gate was run again before the agent, or its session was gone.
    pub excused: bool,
    /// Its last attempt failed because something outside was out.
    pub outage: Option<OutageWait>,
    /// Snapshots of work that was put aside, newest last.
    pub salvaged: Vec<String>,
    /// Where its next attempt starts from.
    pub restart: RestartFrom,
    /// What its last attempt was made with; `None`: a command, or what the plan says.
    pub made_with: Option<Box<MadeWith>>,
    /// The session of its last attempt.
    pub session: Option<Session>,
    /// The candidate that it names as the judge of them.
    pub verdict: Option<u32>,
    /// What a reviewer that said no wants changed.
    pub rejection: Option<String>,
    /// What it said that it decided, in all attempts so far, and what users gave with snapshots.
    pub decisions: Vec<String>,
    /// It says itself that its task is complete.
    pub claims_completion: bool,
    /// What its last attempt said that ended well.
    pub said: Vec<String>,
    /// What its last attempt was refused.
    pub refusals: Refusals,
    /// Since when its state is to be kept: the name of the snapshot, also when it is asked for again.
    pub keep_since: Option<Timestamp>,
    /// Why what its last attempt left in the worktree could not be saved.
    pub unkept: Option<String>,
}

/// A failure that was noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastFailure {
    /// In which task; `None`: of the whole of the agent's work.
    pub task: Option<TaskId>,
    /// The number of the attempt that failed.
    pub attempt: u32,
    pub failure: Failure,
    /// What it has in common with the same failure.
    pub signature: String,
}

/// What an agent does after an attempt that failed because something outside was out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutageWait {
    /// Its next attempt begins when its runner continues.
    Waits,
    /// It is not waited for any longer.
    GivenUp,
}

/// What comes next for an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum AgentStep {
    /// Its next attempt can begin once its worktree is open and there is a place.
    #[default]
    Ready,
    /// Its next task is a person's, and the question is asked.
    Asking,
    /// An attempt runs.
    Running(JobId),
    /// An attempt succeeded; what it left is committed.
    Committing,
    /// The task's own gate.
    Verifying(Gate),
    /// The task passed; its state is saved.
    Snapshotting,
    /// All tasks are done; the lane takes the work in.
    Merging,
    /// The work is in the lane; the `checkpoint` gate runs.
    Gating(Gate),
    /// Something failed and is not noted yet.
    Judging(Failure),
    /// What a failure or a stop left is saved before anything else happens.
    Salvaging(SnapshotReason, Option<Failure>),
    /// Kept; either tried again or given up.
    Failed(Failure),
    /// A retry begins at that moment, from there.
    Retrying(Timestamp),
    /// The agent says that something outside must come first.
    Blocked(String),
    /// Its work is in the lane, or its word is given.
    Done,
    /// No retry is left.
    PermanentlyFailed(Failure),
    /// Another candidate was chosen; one that `passed` can take its place.
    Unchosen { passed: bool },
}

impl AgentStep {
    /// Whether only the user can help, because a program is missing.
    pub(crate) fn needs_environment(&self) -> bool {
        matches!(self, Self::Failed(failure) if failure.kind == FailureKind::Environment)
    }
}

/// Where a retry starts from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RestartFrom {
    /// The worktree as the failed attempt left it.
    #[default]
    Here,
    /// The last state that passed its gate.
    LastGood,
    /// The lane's head.
    LaneHead,
}

/// How many decisions are in an agent's next prompt: the newest.
const DECISIONS: usize = 20;

impl AgentState {
    pub(crate) fn add_decisions<'d>(&mut self, decisions: impl IntoIterator<Item = &'d Decision>) {
        for decision in decisions.into_iter().map(ToString::to_string) {
            // An agent may repeat them in each report.
            if !self.decisions.contains(&decision) {
                self.decisions.push(decision);
            }
        }
        let too_many = self.decisions.len().saturating_sub(DECISIONS);
        self.decisions.drain(..too_many);
    }

    /// What an attempt at `task` can learn from: failures of that task and of the agent's work as a whole, but no outages.
    pub fn lessons(&self, task: &TaskId) -> Vec<(u32, &Failure)> {
        let concerns = |past: &&PastFailure| past.task.as_ref().is_none_or(|about| about == task);
        let lessons = self.past.iter().filter(concerns).map(|past| (past.attempt, &past.failure));
        lessons.filter(|(_, failure)| !failure.kind.is_outage()).collect()
    }

    /// The entries of `failure_context` for an attempt at `task`.
    pub fn failure_context(&self, task: &TaskId) -> Vec<String> {
        self.lessons(task).into_iter().flat_map(|(attempt, failure)| failure.context(attempt)).collect()
    }

    /// Whether an attempt of it could begin once there is a place, now or in a moment: a gate may take long.
    pub(crate) fn wants_a_place(&self, plan: &Agent) -> bool {
        let next = match self.step {
            AgentStep::Ready | AgentStep::Retrying(_) => self.task,
            AgentStep::Committing | AgentStep::Snapshotting => self.task + 1,
            _ => return false,
        };
        plan.tasks.get(next).is_some_and(|task| !task.kind.is_human())
    }

    /// Whether its last failure was within a task, and not of the whole of its work.
    pub(crate) fn failed_in_task(&self) -> bool {
        self.past.last().is_some_and(|failure| failure.task.is_some())
    }

    /// Whether its last failure was not its doing, and only the user can help.
    pub(crate) fn lacked_environment(&self) -> bool {
        self.past.last().is_some_and(|past| past.failure.kind == FailureKind::Environment)
    }

    /// Whether it failed within a task and no retry is planned yet. From where that starts is decided already, so the level
    /// that belongs to it must not change.
    pub(crate) fn waits_for_retry_in_task(&self) -> bool {
        matches!(self.step, AgentStep::Salvaging(_, Some(_)) | AgentStep::Failed(_)) && self.failed_in_task()
    }

    /// Whether it failed in the same way so often that trying the same again is hopeless.
    pub(crate) fn fails_alike(&self) -> bool {
        let last: Vec<&PastFailure> = self.past.iter().rev().take(ALIKE).collect();
        // What failed before a resume gave it a fresh count does not count.
        self.retries as usize + 1 >= ALIKE && last.len() == ALIKE && last.iter().all(|failure| failure.is_like(last[0]))
    }

    /// Its word is given, its work is in the lane or kept, and its worktree is back in the pool.
    pub(crate) fn is_over(&self, shared: bool) -> bool {
        let has_ended = self.step == AgentStep::Done || self.is_unchosen() && !self.is_to_be_kept();
        has_ended && (shared || self.worktree.is_none() && !self.may_be_open)
    }

    pub fn is_unchosen(&self) -> bool {
        matches!(self.step, AgentStep::Unchosen { .. })
    }

    /// Whether it is a candidate that was not chosen, and its work is not kept yet.
    pub(crate) fn is_to_be_kept(&self) -> bool {
        self.is_unchosen() && self.attempt > 0 && self.kept.is_none()
    }

    /// Whether its work passed its gates, and it waits for the choice or was not chosen.
    pub(crate) fn may_be_chosen(&self) -> bool {
        matches!(self.step, AgentStep::Merging | AgentStep::Unchosen { passed: true })
    }

    /// Another candidate was chosen.
    pub(crate) fn set_unchosen(&mut self) {
        let begins = matches!(self.step, AgentStep::Ready | AgentStep::Retrying(_));
        self.may_be_open = begins && self.worktree.is_none();
        let in_lane = matches!(self.step, AgentStep::Gating(_) | AgentStep::Done);
        self.step = AgentStep::Unchosen { passed: self.may_be_chosen() || in_lane };
        self.unkept = None;
        let _ = self.phase.advance(AgentPhase::Abandoned);
    }

    /// A new piece of work, from the given task on; what went wrong before is remembered.
    pub(crate) fn restart_work(&mut self, task: usize) {
        self.step = AgentStep::Ready;
        self.task = task;
        self.retries = 0;
        self.rolled_back = false;
        self.session = None;
        self.outage = None;
        self.rejection = None;
        self.phase.begin_again(if self.worktree.is_some() { AgentPhase::Planning } else { AgentPhase::Initialized });
    }

    /// Has its next attempt start from `start`, once what could not be saved of the last one is saved.
    pub(crate) fn restart_from(&mut self, start: RestartFrom) {
        self.restart = start;
        if self.unkept.take().is_some() {
            self.step = AgentStep::Salvaging(SnapshotReason::Reset, self.failure().cloned());
        }
    }

    /// Goes back to `head` because what passed after it cannot be read any more: those tasks are done again.
    pub(crate) fn fall_back_to(&mut self, head: &CommitId) {
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
    pub(crate) fn claims_missing_work(&self, tasks: usize) -> bool {
        let first_time = self.past.iter().all(|failure| failure.task.is_some());
        self.claims_completion && first_time && self.task + 1 == tasks && self.head == self.start
    }

    /// Its worktree is where its next attempt starts from.
    pub(crate) fn reset(&mut self, head: &CommitId) {
        if self.restart == RestartFrom::LaneHead {
            self.start = Some(head.clone());
            self.passed.clear();
        } else {
            self.session = None;
            if self.good.as_ref() != Some(head) {
                self.fall_back_to(head);
            }
        }
        self.set_head(head);
    }

    pub(crate) fn open(&mut self, worktree: &Worktree) {
        self.worktree = Some(worktree.clone());
        self.may_be_open = false;
        self.start = Some(worktree.head.clone());
        self.passed.clear();
        self.set_head(&worktree.head);
        let _ = self.phase.advance(AgentPhase::Planning);
    }

    fn set_head(&mut self, head: &CommitId) {
        self.restart = RestartFrom::Here;
        self.unkept = None;
        self.head = Some(head.clone());
        self.good = Some(head.clone());
    }

    pub(crate) fn release(&mut self) {
        self.worktree = None;
        self.setup = Gate::Due;
    }

    /// Its task passed with its branch where it stands.
    pub(crate) fn pass_task(&mut self) {
        self.good = self.head.clone();
        self.passed.extend(self.head.clone());
        self.retries = 0;
        self.rolled_back = false;
        self.excused = false;
        self.refusals = Refusals::default();
    }

    pub(crate) fn remember(&mut self, task: Option<&TaskId>, failure: &Failure) {
        let (failure, signature) = (failure.clone(), failure.signature());
        self.past.push(PastFailure { task: task.cloned(), attempt: self.attempt, failure, signature });
    }

    /// The runner of its `fallback` that made its last attempt; `None`: its own.
    pub fn fallback(&self) -> Option<&String> {
        self.made_with.as_ref()?.fallback()
    }

    /// An attempt begins; for its runner the session of another one means nothing.
    pub(crate) fn make_with(&mut self, made_with: Option<&MadeWith>) {
        let (before, now) = (self.made_with.as_ref().map(|it| &it.runner), made_with.map(|it| &it.runner));
        // The log of an older version has the runner of no attempt.
        if before != now && (before.is_some() || made_with.is_some_and(|it| it.is_fallback)) {
            self.session = None;
        }
        self.made_with = made_with.cloned().map(Box::new);
    }

    /// Its runner is not waited for any longer.
    pub(crate) fn give_up_waiting(&mut self) {
        if self.outage.is_none() {
            return;
        }
        self.outage = Some(OutageWait::GivenUp);
        if let (AgentStep::Retrying(_), Some(past)) = (&self.step, self.past.last()) {
            self.step = AgentStep::Failed(past.failure.clone());
        }
    }

    /// What it waits for is waited for while one is awake.
    pub(crate) fn sleep(&mut self, duration: Duration) {
        if let AgentStep::Retrying(not_before) = &mut self.step {
            *not_before = not_before.plus(duration);
        }
    }

    /// Has the gate run again that the work did not pass, before anybody is paid to work on it: the user may have changed
    /// the work, the plan, or what the gate needs. `has_checkpoint_gate`: the plan has a `checkpoint` gate; `is_in_lane`:
    /// the agent's work is in the lane.
    pub(crate) fn judge_again(&mut self, has_checkpoint_gate: bool, is_in_lane: bool) {
        match self.restart {
            RestartFrom::Here if self.failed_in_task() => {
                self.step = AgentStep::Committing;
                self.phase.begin_again(AgentPhase::Executing);
            }
            // A restart of the machine may have taken what is in the worktree, but the work that the gate is to judge is
            // committed.
            RestartFrom::LastGood if self.failed_in_task() && self.lacked_environment() => {
                self.step = AgentStep::Verifying(Gate::Due);
                self.phase.begin_again(AgentPhase::Validating);
            }
            RestartFrom::LaneHead if is_in_lane && has_checkpoint_gate => self.step = AgentStep::Gating(Gate::Due),
            RestartFrom::LaneHead if is_in_lane => self.step = AgentStep::Done,
            _ => return,
        }
        self.excused = true;
    }

    /// A person's work is integrated into the lane in place of its own: from its branch, which is at `head`, or it is in
    /// the lane already.
    pub(crate) fn integrate(&mut self, head: Option<&CommitId>, has_checkpoint_gate: bool) {
        if self.is_unchosen() {
            return;
        }
        self.step = match head {
            Some(_) => AgentStep::Merging,
            None if has_checkpoint_gate => AgentStep::Gating(Gate::Due),
            None => AgentStep::Done,
        };
        self.head = head.cloned().or(self.head.take());
        self.restart = RestartFrom::Here;
        self.excused = true;
    }

    /// Whether it has something left to do in its worktree, whose changes it will commit.
    pub(crate) fn is_at_a_task(&self) -> bool {
        match self.step {
            AgentStep::Done | AgentStep::Merging | AgentStep::Gating(_) | AgentStep::Unchosen { .. } => false,
            AgentStep::Failed(_) | AgentStep::PermanentlyFailed(_) => self.failed_in_task(),
            _ => true,
        }
    }

    /// The failure that no retry has followed.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        match &self.step {
            AgentStep::Failed(failure) | AgentStep::PermanentlyFailed(failure) => Some(failure),
            _ => None,
        }
    }

    /// The worktree is another one, on another machine perhaps: what only the old one had is gone.
    pub(crate) fn lose_uncommitted(&mut self) {
        self.setup.run_again();
        // The agent's program knows it on its old machine only.
        self.session = None;
        if self.step == AgentStep::Committing {
            self.step = AgentStep::Ready;
            // It is not the agent's failure.
            self.phase.lose_attempt();
        }
    }

    /// The machine was started again: what was not recorded may be empty or gone, also of an attempt that had ended. What is
    /// there is saved, and its next attempt starts from the last recorded state. Where the user must act, nothing changes.
    pub(crate) fn lose_unsynced(&mut self) {
        let save = |failure| AgentStep::Salvaging(SnapshotReason::Stop, failure);
        match &self.step {
            // As if the attempt had been stopped.
            AgentStep::Committing => {
                self.step = save(None);
                self.phase.lose_attempt();
            }
            // It has changed nothing yet.
            AgentStep::Ready if self.attempt == 0 => return,
            AgentStep::Ready | AgentStep::Retrying(_) => self.step = save(None),
            AgentStep::Failed(failure) => self.step = save(Some(failure.clone())),
            // What is committed stays, and its files are checked out again before the next attempt.
            AgentStep::Verifying(_) | AgentStep::Snapshotting => {}
            AgentStep::Running(_) | AgentStep::Judging(_) | AgentStep::Salvaging(..) => {}
            _ => return,
        }
        self.setup.run_again();
        self.restart = self.restart.max(RestartFrom::LastGood);
    }

    /// Its lane is back at a point of its own, with `opened` where it works, if that was open then. An attempt that ran,
    /// or had failed, is made again. `phase`: the one it was in before.
    pub(crate) fn return_to(&mut self, point: &LanePoint, opened: Option<&OpenedWorktree>, phase: PhaseTracker) {
        let mut then = std::mem::replace(&mut self.phase, phase).now();
        for commit in self.start.iter_mut().chain(&mut self.head).chain(&mut self.good).chain(&mut self.passed) {
            *commit = point.now(commit);
        }
        let own = opened.filter(|opened| opened.agent.is_some());
        self.worktree = own.map(|opened| opened.worktree.clone());
        if opened.is_some_and(|opened| opened.snapshot.is_some()) {
            self.restart = RestartFrom::Here;
        }
        (self.setup, self.session, self.outage, self.unkept) = (Gate::Due, None, None, None);
        (self.retries, self.rolled_back, self.excused) = (0, false, false);
        match &mut self.step {
            AgentStep::Verifying(gate) | AgentStep::Gating(gate) => gate.start_again(),
            AgentStep::Ready | AgentStep::Asking | AgentStep::Snapshotting | AgentStep::Merging | AgentStep::Done => {}
            AgentStep::Unchosen { .. } => {}
            _ => {
                self.step = AgentStep::Ready;
                if matches!(then, AgentPhase::Validating | AgentPhase::Failed | AgentPhase::Abandoned) {
                    then = AgentPhase::RollingBack;
                }
            }
        }
        self.phase.begin_again(then);
    }

    pub(crate) fn note_keeping(&mut self, at: Timestamp) {
        let keeping = matches!(self.step, AgentStep::Snapshotting | AgentStep::Salvaging(..)) || self.is_to_be_kept();
        self.keep_since = keeping.then_some(self.keep_since.unwrap_or(at));
    }

    /// Its lane failed: if it waits for a retry, none is left.
    pub(crate) fn give_up(&mut self) {
        if let AgentStep::Failed(failure) = &self.step {
            self.step = AgentStep::PermanentlyFailed(failure.clone());
            let _ = self.phase.advance(AgentPhase::Abandoned);
        }
    }

    /// Whether a gate ended its work, which a resume judges again.
    pub(crate) fn ended_at_gate(&self) -> bool {
        match &self.step {
            AgentStep::PermanentlyFailed(failure) => {
                matches!(failure.kind, FailureKind::Gate | FailureKind::Environment)
            }
            step => step.needs_environment(),
        }
    }

    /// Another life of the run: what was given up is tried again with a fresh count.
    pub(crate) fn revive(&mut self) {
        self.setup.retry();
        if matches!(self.step, AgentStep::Salvaging(..) | AgentStep::Unchosen { .. }) {
            self.unkept = None;
        }
        self.outage = self.outage.map(|_| OutageWait::Waits);
        match &self.step {
            AgentStep::PermanentlyFailed(_) | AgentStep::Blocked(_) => self.restart_work(self.task),
            AgentStep::Failed(failure) if failure.kind.needs_user() => self.restart_work(self.task),
            _ => {}
        }
        if let AgentStep::Gating(gate) = &mut self.step {
            gate.retry();
        }
    }
}

impl PastFailure {
    fn is_like(&self, other: &Self) -> bool {
        (&self.task, &self.signature) == (&other.task, &other.signature)
    }
}

/// How many failures in a row have to be the same for the retries to end early.
const ALIKE: usize = 3;

pub(crate) mod phase_tracker;
mod refusals;
#[cfg(test)]
mod tests;
