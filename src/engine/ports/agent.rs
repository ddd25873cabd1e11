//! The work of agents: committed, kept, merged into the lane, put back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Answer, Moment, PortError, Ports, Task};
use crate::event::{Event, SnapshotReason, Worktree};
use crate::git::{self, Checkout, CommitRequest, GitError, Merge, Mode, Snapshot, SnapshotRequest};
use crate::model::ownership::{Ownership, is_prohibited};
use crate::model::text::headline;
use crate::model::{AgentName, CommitId, Failure, FailureKind, LaneIndex, Round, TaskId, Timestamp};
use crate::schedule::{RestartFrom, RunState};

impl Ports {
    /// The worktree in which the agent works.
    fn workplace(&self, lane: LaneIndex, agent: usize, state: &RunState) -> Result<Worktree, PortError> {
        let lane_state = state.lane(lane);
        let own = if self.plan.lane(lane).shares_worktree(agent) {
            &lane_state.worktree
        } else {
            &lane_state.agents[agent].worktree
        };
        own.clone().ok_or(PortError::Missing("where the agent works"))
    }

    pub(super) fn commit_work(
        self: &Arc<Self>,
        lane: LaneIndex,
        agent: usize,
        state: &RunState,
    ) -> Result<Task, PortError> {
        let worktree = self.workplace(lane, agent, state)?;
        let worker = &state.lane(lane).agents[agent];
        let start = worker
            .start
            .clone()
            .or_else(|| state.lane(lane).base.clone())
            .ok_or(PortError::Missing("where the agent began"))?;
        let task = worker.task;
        Ok(self.task(lane, move |ports| {
            let plan = &ports.plan.lane(lane).agents[agent];
            match ports.commit(lane, agent, task, &worktree, &start) {
                Err(PortError::Git(error)) => {
                    let message = mistake(error)?;
                    Ok(vec![Event::FailureNoted {
                        lane: ports.id(lane),
                        agent: Some(plan.name.clone()),
                        task: Some(plan.tasks[task].id.clone()),
                        failure: Failure::new(FailureKind::Report, message),
                    }])
                }
                answer => answer,
            }
        }))
    }

    fn commit(&self, lane: LaneIndex, agent: usize, task: usize, worktree: &Worktree, start: &CommitId) -> Answer {
        let (plan, id) = (self.plan.lane(lane), self.id(lane));
        let (name, task) = (&plan.agents[agent].name, &plan.agents[agent].tasks[task]);
        self.repository.vouch_for(&worktree.path)?;
        git::adopt_head(&self.repository, &worktree.path, &self.agent_branch(lane, agent))?;
        let subject = task.name.clone().unwrap_or_else(|| headline(&task.prompt, 60));
        let subject = if subject.is_empty() { format!("task {}", task.id) } else { subject };
        let mut trailers = self.trailers(&id);
        trailers.extend([("Agent", name.as_str()), ("Task", task.id.as_str())]);
        let message = format!("{id}: {subject}");
        let request = CommitRequest {
            worktree: &worktree.path,
            message: &message,
            trailers: &trailers,
            since: start,
            nobody_else: true,
        };
        let committed = git::commit_all(&self.repository, &request)?;
        let changed = self.repository.changed_paths(start, &committed.head)?;
        let changed = git::not_from_hook(&worktree.path, &committed.head, changed)?;
        let owns = Ownership::allowed_to(plan).map_err(|error| PortError::Precondition(error.to_string()))?;
        let mut prohibited: Vec<String> =
            changed.iter().filter(|path| is_prohibited(path) || !owns.allows(path)).cloned().collect();
        prohibited.extend(self.repository.embedded_repositories(start, &committed.head)?);
        prohibited.extend(committed.embedded);
        Ok(vec![Event::WorkCommitted { lane: id, agent: name.clone(), head: committed.head, changed, prohibited }])
    }

    pub(super) fn snapshot(
        self: &Arc<Self>,
        lane: LaneIndex,
        agent: usize,
        reason: SnapshotReason,
        state: &RunState,
    ) -> Result<Task, PortError> {
        let worktree = self.workplace(lane, agent, state)?;
        // Asked again after a crash, it finds the ref that it made before.
        let at = state.lane(lane).agents[agent].keep_since.unwrap_or_else(self.clock);
        let moment = Moment { at, ..self.moment(lane, state) };
        let branch = self.agent_branch(lane, agent);
        let start = state.lane(lane).base.clone().unwrap_or_else(|| self.facts.base_commit.clone());
        let committed = self.just_committed(lane, agent, reason, state);
        let ports = self.clone();
        Ok(Box::new(move |tell| {
            let name = ports.plan.lane(lane).agents[agent].name.clone();
            let (id, agent) = (ports.id(lane), Some(name.clone()));
            // The work goes on without a snapshot; that there is none is reported (SPEC §5).
            let kept = ports.reopen_if_lost(&worktree.path, &moment).and_then(|found| {
                found.into_iter().for_each(tell);
                // That there is something wrong with the stash keeps nothing else from being kept.
                let stashes = ports.keep_stashes(&moment, &branch, &start);
                stashes.unwrap_or_else(|error| vec![ports.noted(lane, &error)]).into_iter().for_each(tell);
                ports.keep_work(lane, &name, &worktree.path, at, committed.as_ref())
            });
            vec![match kept {
                Ok(kept) => {
                    Event::SnapshotTaken { lane: id, agent, reason, commit: kept.commit, reference: kept.reference }
                }
                Err(error) => Event::SnapshotFailed { lane: id, agent, reason, error: error.to_string() },
            }]
        }))
    }

    /// The head that holds all there is in an agent's worktree: its work was committed, and no gate was run since.
    fn just_committed(
        &self,
        lane: LaneIndex,
        agent: usize,
        reason: SnapshotReason,
        state: &RunState,
    ) -> Option<CommitId> {
        let (who, worker) = (&self.plan.lane(lane).agents[agent], &state.lane(lane).agents[agent]);
        let after_commit = reason == SnapshotReason::Task && who.round == Round::Implementation;
        let untouched = after_commit && !self.plan.is_gated(who.tasks.get(worker.task)?);
        worker.head.clone().filter(|_| untouched)
    }

    /// Keeps the whole state of an agent's worktree, which is not looked at where all of it is in the commit.
    fn keep_work(
        &self,
        lane: LaneIndex,
        agent: &AgentName,
        path: &Path,
        at: Timestamp,
        committed: Option<&CommitId>,
    ) -> Result<Snapshot, PortError> {
        if let Some(head) = committed {
            self.repository.vouch_for(path)?;
            let (reference, message) = (self.snapshot_reference(lane, at), self.snapshot_message(lane, Some(agent)));
            let message = self.redactor.redact(&message);
            // What goes wrong on this way is found and told on the other.
            if let Ok(Some(kept)) = git::snapshot_of_head(&self.repository, path, head, &reference, &message) {
                return Ok(kept);
            }
        }
        self.keep_worktree(lane, Some(agent), path, at)
    }

    fn noted(&self, lane: LaneIndex, error: &PortError) -> Event {
        Event::Noted { lane: Some(self.id(lane)), message: format!("what was stashed cannot be kept: {error}") }
    }

    /// Keeps what was stashed on `branch`: the list of stashes is everybody's, and work in it is easily forgotten.
    fn keep_stashes(&self, moment: &Moment, branch: &str, start: &CommitId) -> Answer {
        let mut events = Vec::new();
        for stash in git::stashed_on(&self.repository, branch, start)? {
            if moment.known.iter().any(|(_, known)| *known == stash) {
                continue;
            }
            let kept = self.keep_commit(moment.lane, &stash, moment.at)?;
            let message = format!(
                "work on {branch} was put into `git stash`, where it is in no branch; it is kept as {}",
                kept.reference
            );
            events.push(self.put_aside(moment.lane, None, kept));
            events.push(Event::Noted { lane: Some(self.id(moment.lane)), message });
        }
        Ok(events)
    }

    /// Keeps the whole state of a worktree under a ref of its own.
    pub(crate) fn keep_worktree(
        &self,
        lane: LaneIndex,
        agent: Option<&AgentName>,
        path: &Path,
        at: Timestamp,
    ) -> Result<Snapshot, PortError> {
        self.keep_worktree_saying(lane, agent, path, at, "")
    }

    /// The same, with words of a person's in the commit's message.
    pub(crate) fn keep_worktree_saying(
        &self,
        lane: LaneIndex,
        agent: Option<&AgentName>,
        path: &Path,
        at: Timestamp,
        words: &str,
    ) -> Result<Snapshot, PortError> {
        let reference = self.snapshot_reference(lane, at);
        let message = format!("{}\n\n{words}", self.snapshot_message(lane, agent));
        let message = self.redactor.redact(message.trim_end());
        self.keep_files(path, &self.index_file(lane, agent), &reference, &message)
    }

    /// Keeps the whole state of the worktree at `path` as `reference`.
    pub(super) fn keep_files(
        &self,
        path: &Path,
        index_file: &Path,
        reference: &str,
        message: &str,
    ) -> Result<Snapshot, PortError> {
        self.repository.vouch_for(path)?;
        let head = self.repository.head_at(path)?.commit;
        let request = SnapshotRequest {
            worktree: path,
            index_file,
            reference,
            message,
            parents: std::slice::from_ref(&head),
            since: std::slice::from_ref(&self.facts.base_commit),
        };
        git::snapshot(&self.repository, &request).or_else(|error| self.keep_afresh(&request, &head, error))
    }

    /// The private index of a worktree's snapshots, kept from one to the next.
    pub(crate) fn index_file(&self, lane: LaneIndex, agent: Option<&AgentName>) -> PathBuf {
        let directory = self.run.directory().join("lanes").join(self.plan.lane(lane).id.as_str());
        match agent {
            Some(agent) => directory.join("agents").join(agent.as_str()).join("snapshot.index"),
            None => directory.join("snapshot.index"),
        }
    }

    /// Keeps a commit under a snapshot's ref.
    pub(crate) fn keep_commit(&self, lane: LaneIndex, commit: &CommitId, at: Timestamp) -> Result<Snapshot, PortError> {
        Ok(git::keep(&self.repository, &self.snapshot_reference(lane, at), commit.clone())?)
    }

    /// What was kept of a worktree at that moment and is not in the run log, be it by one who died before saying so.
    pub(super) fn kept_unsaid(&self, moment: &Moment, agent: Option<&AgentName>) -> Result<Vec<Snapshot>, PortError> {
        let reference = self.snapshot_reference(moment.lane, moment.at);
        let mut kept = git::kept_under(&self.repository, &reference, &self.snapshot_message(moment.lane, agent))?;
        kept.retain(|kept| moment.known.iter().all(|(known, _)| *known != kept.reference));
        Ok(kept)
    }

    fn snapshot_reference(&self, lane: LaneIndex, at: Timestamp) -> String {
        git::reference_name(&self.facts.phase, self.id(lane), at, self.facts.options.checkpoint_tags)
    }

    fn snapshot_message(&self, lane: LaneIndex, agent: Option<&AgentName>) -> String {
        format!("Snapshot of {}{}", self.id(lane), agent.map(|agent| format!("/{agent}")).unwrap_or_default())
    }

    pub(super) fn merge_agent(
        self: &Arc<Self>,
        lane: LaneIndex,
        agent: usize,
        state: &RunState,
    ) -> Result<Task, PortError> {
        let lane_state = state.lane(lane);
        let worktree = lane_state.worktree.clone().ok_or(PortError::Missing("where the lane works"))?;
        let head = lane_state.head.clone().ok_or(PortError::Missing("where the lane stands"))?;
        let theirs = lane_state.agents[agent].head.clone().ok_or(PortError::Missing("what the agent did"))?;
        let moment = self.moment(lane, state);
        Ok(self.task(lane, move |ports| {
            let (id, plan) = (ports.id(lane), ports.plan.lane(lane));
            let name = plan.agents[agent].name.clone();
            let branch = ports.lane_branch(lane);
            let missing = || GitError::BranchMissing { branch: branch.clone() };
            let ours = ports.repository.branch_commit(&branch)?.ok_or_else(missing)?;
            let mut trailers = ports.trailers(&id);
            trailers.push(("Agent", name.as_str()));
            let merged = match git::merge(
                &ports.repository,
                &ours,
                &theirs,
                &format!("Merge {name} into {id}"),
                &trailers,
                &[],
            )? {
                Merge::Conflict(paths) => {
                    return Ok(vec![ports.conflict(lane, Some(agent), paths, "what other agents of the lane did")]);
                }
                Merge::AlreadyIn => ours,
                Merge::Done(merged) => {
                    git::move_branch(&ports.repository, &branch, &ours, &merged)?;
                    merged
                }
            };
            let mut events = ports.reopen_if_lost(&worktree.path, &moment)?;
            if merged != head {
                let kept = ports.bring_up(&moment, &worktree, &branch, [&head, &merged])?;
                events.extend(kept.into_iter().map(|kept| ports.put_aside(lane, None, kept)));
            }
            events.push(Event::AgentMerged { lane: id, agent: name, head: merged });
            Ok(events)
        }))
    }

    /// Brings the lane's worktree to the merge. What gates left in the way there is kept and put aside.
    fn bring_up(
        &self,
        moment: &Moment,
        worktree: &Worktree,
        branch: &str,
        [from, to]: [&CommitId; 2],
    ) -> Result<Vec<Snapshot>, PortError> {
        self.repository.vouch_for(&worktree.path)?;
        match git::set_worktree_to(&self.repository, &worktree.path, branch, [from, to]) {
            Err(GitError::Dirty { .. } | GitError::Program(_) | GitError::OperationInProgress { .. }) => {
                self.keep_worktree(moment.lane, None, &worktree.path, moment.at)?;
                git::restore(&worktree.path, to)?;
            }
            done => done?,
        }
        self.kept_unsaid(moment, None)
    }

    /// A merge that both sides have to say something about: the later one is done again on the new base (SPEC §7).
    pub(super) fn conflict(&self, lane: LaneIndex, agent: Option<usize>, paths: Vec<String>, with: &str) -> Event {
        let agent = agent.map(|agent| self.plan.lane(lane).agents[agent].name.clone());
        let message = format!("the work conflicts with {with}");
        let failure = Failure { paths, ..Failure::new(FailureKind::Conflict, message) };
        Event::FailureNoted { lane: self.id(lane), agent, task: None::<TaskId>, failure }
    }

    pub(super) fn release_agent(
        self: &Arc<Self>,
        lane: LaneIndex,
        agent: usize,
        state: &RunState,
    ) -> Result<Task, PortError> {
        let worktree = self.workplace(lane, agent, state)?;
        let head = state.lane(lane).head.clone().ok_or(PortError::Missing("where the lane stands"))?;
        let moment = self.moment(lane, state);
        Ok(self.task(lane, move |ports| {
            let mut events = ports.reopen_if_lost(&worktree.path, &moment)?;
            let left = ports.give_back(&ports.holder(lane, Some(agent)), &worktree, &[head], &moment)?;
            let name = ports.plan.lane(lane).agents[agent].name.clone();
            events.extend(left.into_iter().map(|left| ports.leftover(lane, agent, left)));
            events.push(Event::WorktreeReleased { lane: ports.id(lane), agent: name });
            Ok(events)
        }))
    }

    /// What was left in a worktree after its agent's work was taken: by gates, whose leftovers go when the lane is
    /// merged, or by a specialist, whose changes nobody takes and nobody throws away.
    fn leftover(&self, lane: LaneIndex, agent: usize, left: Snapshot) -> Event {
        let agent = &self.plan.lane(lane).agents[agent];
        if agent.round != Round::Implementation {
            let message = format!("what {} changed is not taken; it is kept as {}", agent.name, left.reference);
            return Event::Noted { lane: Some(self.id(lane)), message };
        }
        self.put_aside(lane, Some(agent.name.clone()), left)
    }

    /// What had to make room in a worktree, and is kept.
    pub(super) fn put_aside(&self, lane: LaneIndex, agent: Option<AgentName>, kept: Snapshot) -> Event {
        let (commit, reference) = (kept.commit, kept.reference);
        Event::SnapshotTaken { lane: self.id(lane), agent, reason: SnapshotReason::Reset, commit, reference }
    }

    /// Puts the agent's worktree where its next attempt starts from. Everything in it was kept before.
    pub(super) fn reset_agent(
        self: &Arc<Self>,
        lane: LaneIndex,
        agent: usize,
        state: &RunState,
    ) -> Result<Task, PortError> {
        let lane_state = state.lane(lane);
        let worker = &lane_state.agents[agent];
        let mut points = if worker.restart == RestartFrom::LastGood { worker.good_points() } else { Vec::new() };
        if points.is_empty() {
            points.push(lane_state.head.clone().ok_or(PortError::Missing("where the lane stands"))?);
        }
        let shared = self.plan.lane(lane).shares_worktree(agent);
        let (worktree, moment) = (self.workplace(lane, agent, state)?, self.moment(lane, state));
        Ok(self.task(lane, move |ports| {
            let mut events = ports.reopen_if_lost(&worktree.path, &moment)?;
            let holder = ports.holder(lane, (!shared).then_some(agent));
            let branch = Some(ports.agent_branch(lane, agent));
            let (start, damaged) = ports.first_intact(lane, agent, points)?;
            events.extend(damaged);
            ports.pool.open(&holder, &Checkout { branch, start: start.clone(), mode: Mode::Reset, adopt: true })?;
            let name = ports.plan.lane(lane).agents[agent].name.clone();
            events.push(Event::AgentReset { lane: ports.id(lane), agent: name, head: start });
            Ok(events)
        }))
    }
}

/// What an agent did wrong with its worktree, so that its work cannot be taken; an error that is not its doing stays one.
fn mistake(error: GitError) -> Result<String, GitError> {
    match error {
        GitError::NotOurs { path } => Ok(format!(
            "the worktree {} was removed, or replaced by something else, and with it what was not committed; work in it \
             and leave it and its .git in place",
            path.display()
        )),
        GitError::Astray { .. } | GitError::OperationInProgress { .. } => Ok(error.to_string()),
        error => Err(error),
    }
}
