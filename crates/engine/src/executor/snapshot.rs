//! Snapshots: worktrees, stashes and commits, each saved under a ref that the run log names.

use std::path::Path;
use std::sync::Arc;

use lanewright_git::{self as git, GitError, Repository, Snapshot, SnapshotRequest};
use lanewright_model::event::{CheckedOut, Event, SnapshotReason};
use lanewright_model::{AgentName, CommitId, LaneId, LaneIndex, Round, Timestamp};
use lanewright_schedule::RunState;

use super::{Answer, Executor, ExecutorError, LaneContext, Prepared, Result};
use crate::executor::crash::{CrashPoint, crash_point};

/// The trailer of a snapshot's commit that says why it was taken.
pub(crate) const REASON: &str = "Reason";

/// The most files that the event of a snapshot names.
const MAX_DIRTY: usize = 100;

#[derive(Debug, Clone, Copy)]
pub struct SnapshotTarget<'a> {
    pub lane: LaneIndex,
    /// Whose worktree; `None`: the lane's.
    pub agent: Option<&'a AgentName>,
    /// Which gives it its name.
    pub at: Timestamp,
    pub reason: SnapshotReason,
}

impl Executor {
    pub(super) fn snapshot(
        self: &Arc<Self>,
        lane: LaneIndex,
        agent: usize,
        reason: SnapshotReason,
        state: &RunState,
    ) -> Prepared {
        let worktree = match (self.workplace(lane, agent, state), reason) {
            (Err(_), SnapshotReason::Candidate) => return self.keep_candidate(lane, agent, state),
            (worktree, _) => worktree?,
        };
        // Asked again after a crash, it finds the ref that it made before.
        let at = state.lane(lane).agents()[agent].keep_since.unwrap_or_else(|| self.clock.now());
        let context = LaneContext { at, ..self.lane_context(lane, state) };
        let branch = self.agent_branch(lane, agent);
        let start = state.lane(lane).base().cloned().unwrap_or_else(|| self.facts.base_commit.clone());
        let committed = self.just_committed(lane, agent, reason, state);
        let known = self.known_head(lane, agent, state);
        let executor = self.clone();
        Ok(Box::new(move |emit| {
            let name = executor.agent_name(lane, agent);
            // The work continues without a snapshot; its absence is reported (SPEC §5).
            let kept = executor.retry_with_repairs(&context, emit, || {
                executor.reopen_if_lost(&worktree.path, &context)?.into_iter().for_each(emit);
                // An error in the stash does not keep the rest from being saved.
                let stashes = executor.keep_stashes(&context, &branch, &start);
                let failed = |error| vec![executor.note(lane, format!("what was stashed cannot be kept: {error}"))];
                stashes.unwrap_or_else(failed).into_iter().for_each(emit);
                let target = SnapshotTarget { lane, agent: Some(&name), at, reason };
                executor.keep_work(&target, &worktree.path, committed.as_ref())
            });
            let mut event = executor.snapshot_event(lane, &name, reason, kept);
            if let Event::SnapshotTaken { commit, unchanged, .. } = &mut event {
                let tree = |commit| executor.repository.tree_of(commit).ok();
                *unchanged = tree(commit).is_some_and(|saved| tree(&known).is_some_and(|known| known == saved));
            }
            vec![event]
        }))
    }

    /// Keeps the work of a candidate that was not chosen and has no worktree any more.
    fn keep_candidate(self: &Arc<Self>, lane: LaneIndex, agent: usize, state: &RunState) -> Prepared {
        let worker = &state.lane(lane).agents()[agent];
        let head = worker.head.clone().ok_or(ExecutorError::Missing("the candidate's head"))?;
        let at = worker.keep_since.unwrap_or_else(|| self.clock.now());
        let context = LaneContext { at, ..self.lane_context(lane, state) };
        let executor = self.clone();
        Ok(Box::new(move |emit| {
            let name = executor.agent_name(lane, agent);
            let kept = executor.retry_with_repairs(&context, emit, || executor.keep_commit(lane, &head, at));
            vec![executor.snapshot_event(lane, &name, SnapshotReason::Candidate, kept)]
        }))
    }

    pub(super) fn snapshot_event(
        &self,
        lane: LaneIndex,
        agent: &AgentName,
        reason: SnapshotReason,
        kept: Result<Snapshot>,
    ) -> Event {
        let (lane, agent) = (self.id(lane), Some(agent.clone()));
        match kept {
            Ok(kept) => self.taken(lane, agent, reason, kept),
            Err(error) => Event::SnapshotFailed { lane, agent, reason, error: error.to_string() },
        }
    }

    /// The event of a snapshot, with what was checked out.
    pub fn taken(&self, lane: LaneId, agent: Option<AgentName>, reason: SnapshotReason, kept: Snapshot) -> Event {
        let Snapshot { commit, reference } = kept;
        let checked_out = self.checked_out(reason, &commit);
        Event::SnapshotTaken { lane, agent, reason, commit, reference, unchanged: false, context: None, checked_out }
    }

    /// What was checked out when a snapshot was taken, if the worktree stays as it is; `None` too where git cannot read it,
    /// since what counts is the snapshot.
    pub fn checked_out(&self, reason: SnapshotReason, snapshot: &CommitId) -> Option<Box<CheckedOut>> {
        if !reason.leaves_worktree() {
            return None;
        }
        let head = self.repository.parent_of(snapshot).ok()??;
        let mut dirty = self.repository.changed_paths(&head, snapshot).ok()?;
        dirty.truncate(MAX_DIRTY);
        Some(Box::new(CheckedOut { head, dirty }))
    }

    /// The commit with which an agent's attempt began, as far as the run log has it.
    fn known_head(&self, lane: LaneIndex, agent: usize, state: &RunState) -> CommitId {
        let lane_state = state.lane(lane);
        let head = lane_state.agents()[agent].head.as_ref().or(lane_state.start_of(agent)).or(lane_state.base());
        head.unwrap_or(&self.facts.base_commit).clone()
    }

    /// The head that holds all there is in an agent's worktree: its work was committed, and no gate was run since.
    fn just_committed(
        &self,
        lane: LaneIndex,
        agent: usize,
        reason: SnapshotReason,
        state: &RunState,
    ) -> Option<CommitId> {
        let (who, worker) = (&self.plan.lane(lane).agents[agent], &state.lane(lane).agents()[agent]);
        let after_commit = reason == SnapshotReason::Task && who.round == Round::Implementation;
        let untouched = after_commit && !self.plan.is_gated(self.plan.lane(lane), agent, who.tasks.get(worker.task)?);
        worker.head.clone().filter(|_| untouched)
    }

    /// Keeps the whole state of an agent's worktree, which is not looked at where all of it is in the commit.
    fn keep_work(&self, target: &SnapshotTarget<'_>, path: &Path, committed: Option<&CommitId>) -> Result<Snapshot> {
        if let Some(head) = committed {
            self.repository.refuse_foreign_worktree(path)?;
            let (reference, message) = (self.snapshot_reference(target.lane, target.at), self.message(target, ""));
            let (reference, message) = (&reference, &message);
            let request = SnapshotRequest { worktree: path, reference, message, head, since: head };
            // What goes wrong here is found and reported below.
            if let Ok(Some(kept)) = git::snapshot_of_head(&self.repository, &request) {
                return Ok(kept);
            }
        }
        self.keep_worktree(target, path)
    }

    /// Keeps what was stashed on `branch`: the list of stashes is everybody's, and work in it is easily forgotten.
    fn keep_stashes(&self, context: &LaneContext, branch: &str, start: &CommitId) -> Answer {
        let mut events = Vec::new();
        for stash in git::stashed_on(&self.repository, branch, start)? {
            if context.known.iter().any(|(_, known)| *known == stash) {
                continue;
            }
            let kept = self.keep_commit(context.lane, &stash, context.at)?;
            let message = format!(
                "work on {branch} was put into `git stash`, where it is in no branch; it is kept as {}",
                kept.reference
            );
            events.push(self.put_aside(context.lane, None, kept));
            events.push(self.note(context.lane, message));
        }
        Ok(events)
    }

    pub fn keep_worktree(&self, target: &SnapshotTarget<'_>, path: &Path) -> Result<Snapshot> {
        self.keep_worktree_with_note(target, path, "")
    }

    /// The same, with words of a person's in the commit's message.
    pub fn keep_worktree_with_note(&self, target: &SnapshotTarget<'_>, path: &Path, words: &str) -> Result<Snapshot> {
        let reference = self.snapshot_reference(target.lane, target.at);
        // An agent continues in the worktree, which has what its work leaves out.
        let save = if target.reason.is_routine() { git::snapshot_of_work } else { git::snapshot };
        let kept = self.keep_files(path, &reference, &self.message(target, words), save);
        crash_point(CrashPoint::Kept);
        kept
    }

    /// The same of the branch of the agent, or without one of the lane, for where no worktree is; `None`: there is no such
    /// branch either.
    pub fn keep_branch_with_note(&self, target: &SnapshotTarget<'_>, words: &str) -> Result<Option<Snapshot>> {
        let agents = &self.plan.lane(target.lane).agents;
        let agent = target.agent.and_then(|name| agents.iter().position(|agent| agent.name == *name));
        let branch = agent.map_or_else(|| self.lane_branch(target.lane), |agent| self.agent_branch(target.lane, agent));
        let Some(head) = self.repository.branch_commit(&branch)? else { return Ok(None) };
        let reference = self.snapshot_reference(target.lane, target.at);
        let request = SnapshotRequest {
            worktree: self.repository.main_worktree(),
            reference: &reference,
            message: &self.message(target, words),
            head: &head,
            since: &self.facts.base_commit,
        };
        Ok(Some(git::snapshot_of_commit(&self.repository, &request)?))
    }

    /// Keeps the state of the worktree at `path` as `reference`, in the way of `save`.
    pub(super) fn keep_files(
        &self,
        path: &Path,
        reference: &str,
        message: &str,
        save: fn(&Repository, &SnapshotRequest<'_>) -> Result<Snapshot, GitError>,
    ) -> Result<Snapshot> {
        self.repository.refuse_foreign_worktree(path)?;
        // What cannot be had of the agent's commits is reported when its attempt ends; the files are kept all the same.
        if let Err(error) = git::bring_over(&self.repository, path) {
            tracing::debug!("the commits of the agent in {} are not kept: {error}", path.display());
        }
        let head = self.repository.head_at(path)?.commit;
        let request =
            SnapshotRequest { worktree: path, reference, message, head: &head, since: &self.facts.base_commit };
        save(&self.repository, &request).or_else(|error| self.keep_files_only(&request, &head, error))
    }

    /// Keeps a worktree whose branch cannot be read, which was `error`: from its files alone, on top of what the run
    /// began with. What the files still hold is whole in git after it.
    fn keep_files_only(&self, request: &SnapshotRequest<'_>, head: &CommitId, error: GitError) -> Result<Snapshot> {
        if git::damaged(&self.repository, std::slice::from_ref(head))?.is_empty() {
            return Err(error.into());
        }
        let request = SnapshotRequest { head: &self.facts.base_commit, ..*request };
        Ok(git::snapshot_of_all_files(&self.repository, &request)?)
    }

    pub fn keep_commit(&self, lane: LaneIndex, commit: &CommitId, at: Timestamp) -> Result<Snapshot> {
        Ok(git::keep(&self.repository, &self.snapshot_reference(lane, at), commit.clone())?)
    }

    /// The snapshots of a worktree at that moment that the run log lacks, also those of a process that died. Those of what was
    /// changed by hand outlive the merge, and are recorded by the step or the resume that finds them.
    pub(super) fn unrecorded(&self, context: &LaneContext, agent: Option<&AgentName>) -> Result<Vec<Snapshot>> {
        let reference = self.snapshot_reference(context.lane, context.at);
        let mut kept = git::saved_under(&self.repository, &reference, &self.headline(context.lane, agent))?;
        let is_by_hand = |kept: &Snapshot| {
            let trailers = git::trailers_of(&self.repository, &kept.commit);
            trailers.get(REASON).is_some_and(|reason| reason == SnapshotReason::External.word())
        };
        kept.retain(|kept| context.known.iter().all(|(known, _)| *known != kept.reference) && !is_by_hand(kept));
        Ok(kept)
    }

    fn snapshot_reference(&self, lane: LaneIndex, at: Timestamp) -> String {
        git::reference_name(&self.facts.phase, self.plan.lane(lane).id.as_str(), at, self.facts.options.checkpoint_tags)
    }

    /// What the commit of a snapshot says. Its trailers let a resume record a snapshot that its taker did not.
    fn message(&self, target: &SnapshotTarget<'_>, words: &str) -> String {
        let id = self.id(target.lane);
        let mut trailers = self.trailers(&id);
        trailers.extend(target.agent.map(|agent| ("Agent", agent.as_str())));
        trailers.push((REASON, target.reason.word()));
        let words = format!("{}\n\n{words}", self.headline(target.lane, target.agent));
        git::message(&self.redactor.redact(&words), &trailers)
    }

    fn headline(&self, lane: LaneIndex, agent: Option<&AgentName>) -> String {
        format!("Snapshot of {}{}", self.id(lane), agent.map(|agent| format!("/{agent}")).unwrap_or_default())
    }

    /// Saved work that had to make room in a worktree.
    pub(super) fn put_aside(&self, lane: LaneIndex, agent: Option<AgentName>, kept: Snapshot) -> Event {
        let (commit, reference) = (kept.commit, kept.reference);
        let (lane, reason) = (self.id(lane), SnapshotReason::Reset);
        Event::snapshot(lane, agent, reason, commit, reference)
    }
}
