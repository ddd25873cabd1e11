//! Worktrees and branches of lanes: opened, reset to a new base, cleaned up.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lanewright_git::{self as git, Checkout, GitError, Holder, Mode, Outage, Pool, Snapshot};
use lanewright_model::event::{Event, Worktree};
use lanewright_model::text::listed;
use lanewright_model::{Agent, CommitId, LaneIndex, MergeMode};
use lanewright_programs::process::{DELETE_TRASH, Output, start_detached};
use lanewright_schedule::{Rebuild, RunState};

use super::unsaved::Left;
use super::{Answer, Executor, ExecutorError, LaneContext, Prepared, Result, Task, lane_head};

/// Takes a lane's place in the names of the final gate's snapshots.
pub(crate) const FINAL: &str = "final";

/// The most lanes that a note names.
const LANES: usize = 8;

/// How long the end of a run waits for its worktrees to be deleted. A process of its own deletes the rest.
const DELETING: Duration = Duration::from_millis(200);

impl Executor {
    pub(super) fn open_lane(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Prepared {
        let lane_state = state.lane(lane);
        let known = lane_state.head().cloned();
        let start =
            known.clone().or_else(|| lane_state.base().cloned()).ok_or(ExecutorError::Missing("the lane's base"))?;
        let mode = if known.is_some() { Mode::ExistingBranch } else { Mode::FreshBranch };
        let want = Checkout { branch: Some(self.lane_branch(lane)), start, mode, adopt: known.is_some() };
        Ok(self.task(lane, state, move |executor| {
            let worktree = executor.open(&executor.holder(lane, None), &executor.adopting_empty(&want)?, lane)?;
            Ok(vec![Event::WorktreeOpened { lane: executor.id(lane), agent: None, worktree }])
        }))
    }

    pub(super) fn open_agent(self: &Arc<Self>, lane: LaneIndex, agent: usize, state: &RunState) -> Prepared {
        let lane_state = state.lane(lane);
        let start = lane_head(state, lane)?;
        let again = lane_state.agents()[agent].start.is_some();
        let mode = if again { Mode::Reset } else { Mode::FreshBranch };
        let want = Checkout { branch: Some(self.agent_branch(lane, agent)), start, mode, adopt: again };
        Ok(self.task(lane, state, move |executor| {
            let worktree =
                executor.open(&executor.holder(lane, Some(agent)), &executor.adopting_empty(&want)?, lane)?;
            let name = executor.agent_name(lane, agent);
            Ok(vec![Event::WorktreeOpened { lane: executor.id(lane), agent: Some(name), worktree }])
        }))
    }

    /// The same, with a branch that has nothing on it taken for the holder's: there was none when the lane began, so an
    /// earlier try made it whose claim was removed since.
    fn adopting_empty(&self, want: &Checkout) -> Result<Checkout, GitError> {
        let tip = want.branch.as_deref().map(|branch| self.repository.branch_commit(branch)).transpose()?.flatten();
        Ok(Checkout { adopt: want.adopt || tip.as_ref() == Some(&want.start), ..want.clone() })
    }

    /// The pool, in which a hook of the user's may take as long as a gate, an attempt or the lane may, whichever is least.
    pub(super) fn pool_of(&self, lane: LaneIndex) -> Pool {
        let (timeouts, specialist) = (&self.plan.timeouts, self.facts.options.specialist_timeout);
        let lane = self.plan.lane(lane);
        let limit = |agent: &Agent, task: usize| agent.time_limit(task, timeouts, specialist);
        let tasks = lane.agents.iter().flat_map(|agent| (0..agent.tasks.len()).map(move |task| limit(agent, task)));
        let limits = [Some(timeouts.gate), tasks.max(), lane.timeout];
        let limit = limits.into_iter().flatten().min().unwrap_or(timeouts.gate);
        self.pool.clone().ending_hooks_after(limit)
    }

    /// A slot with `want` in it, under the name that its holder sees. Its first job has the ignored files copied.
    pub(crate) fn open(&self, holder: &Holder, want: &Checkout, lane: LaneIndex) -> Result<Worktree, GitError> {
        let worktree = self.pool_of(lane).open(holder, want)?;
        self.pool.link(holder, &worktree.path)?;
        self.copied.forget(&worktree.path);
        Ok(worktree)
    }

    /// Puts the lane onto the integration branch, or onto its merge with it; what it held stays in a snapshot.
    pub(super) fn reset_lane(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Prepared {
        let lane_state = state.lane(lane);
        let rebuild = lane_state.rebuild().cloned().ok_or(ExecutorError::Missing("the lane's new base"))?;
        let head = lane_head(state, lane)?;
        let (context, worktree) = (self.lane_context(lane, state), lane_state.worktree().cloned());
        let (first, merge) = (lane_state.first_base().cloned(), lane_state.last_staged().cloned());
        // What such gates write of the agents' own files is not noted.
        let plan = self.plan.lane(lane);
        let is_gated = (0..plan.agents.len())
            .filter(|&agent| plan.shares_worktree(agent))
            .any(|agent| plan.agents[agent].tasks.iter().any(|task| self.plan.is_gated(plan, agent, task)));
        Ok(self.task(lane, state, move |executor| {
            let id = executor.id(lane);
            let mut events = match &worktree {
                Some(worktree) => executor.reopen_if_lost(&worktree.path, &context)?,
                None => Vec::new(),
            };
            let base = match &rebuild {
                Rebuild::OnIntegration => executor.integration()?,
                Rebuild::OnFirstBase => first.clone().ok_or(ExecutorError::Missing("the lane's first base"))?,
                Rebuild::OnMerge(commit) => executor.merge_again(lane, commit, &head)?,
            };
            let commits = [head.clone(), base.clone()].into_iter().chain(merge.clone()).collect();
            let left = Left { commits, files: if is_gated { git::changed_by_hand } else { git::unsaved } };
            let path = worktree.as_ref().map(|worktree| worktree.path.as_path());
            events.extend(executor.keep_unsaved(&context, None, path, &left)?);
            let kept = executor.keep_commit(lane, &head, context.at)?;
            let branch = Some(executor.lane_branch(lane));
            let want = Checkout { branch, start: base.clone(), mode: Mode::Reset, adopt: true };
            executor.pool_of(lane).open(&executor.holder(lane, None), &want)?;
            let note = format!("the lane's earlier work is kept as {}", kept.reference);
            events.extend([
                executor.put_aside(lane, None, kept),
                executor.note(lane, note),
                Event::LaneReset { lane: id, base },
            ]);
            Ok(events)
        }))
    }

    /// Releases everything of the lane: its slot, its links, the branches and snapshots whose work is merged.
    pub(super) fn clean_lane(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Prepared {
        let lane_state = state.lane(lane);
        let merged = lane_state.merged().cloned().ok_or(ExecutorError::Missing("the lane's merge"))?;
        let head = lane_head(state, lane)?;
        let context = self.lane_context(lane, state);
        let kept: Vec<CommitId> = lane_state.kept_candidates().map(|(_, commit)| commit.clone()).collect();
        let (worktree, snapshots) = (lane_state.worktree().cloned(), lane_state.snapshots().to_vec());
        let placements = lane_state.placement().number();
        let agents: Vec<usize> =
            (0..lane_state.agents().len()).filter(|&agent| lane_state.agents()[agent].start.is_some()).collect();
        Ok(self.task(lane, state, move |executor| {
            let kept_by = [&[merged.clone(), head.clone()], &kept[..]].concat();
            let holder = executor.holder(lane, None);
            let mut events = Vec::new();
            let mut left = Vec::new();
            if let Some(worktree) = &worktree {
                events = executor.reopen_if_lost(&worktree.path, &context)?;
                left = executor.release_worktree(&holder, worktree, &kept_by, &context)?;
            }
            let describe =
                |left: Snapshot| format!("{}: what was left uncommitted in the lane's worktree", left.reference);
            let mut kept: Vec<String> = left.into_iter().map(describe).collect();
            let own = agents.iter().copied().filter(|&agent| !executor.plan.lane(lane).shares_worktree(agent));
            let branches: Vec<String> = own.map(|agent| executor.agent_branch(lane, agent)).collect();
            for branch in branches {
                executor.delete_branch(&branch, &kept_by, &mut kept);
            }
            // A lane that is not merged locally keeps its branch and its snapshots.
            if executor.facts.options.merge == MergeMode::Local {
                executor.delete_branch(&executor.lane_branch(lane), &kept_by, &mut kept);
                kept.extend(git::delete_references(&executor.repository, &snapshots)?);
            }
            executor.forget_placement(&executor.id(lane), placements);
            events.push(Event::LaneCleaned { lane: executor.id(lane), kept });
            Ok(events)
        }))
    }

    /// The branches that were deleted because the lane is merged, as refs.
    fn deleted_branches(&self, lane: LaneIndex, state: &RunState) -> Vec<String> {
        if state.lane(lane).merged().is_none() {
            return Vec::new();
        }
        self.branches(lane, state).iter().map(|branch| git::branch_reference(branch)).collect()
    }

    /// Deletes those again that a power cut brought back.
    pub(super) fn delete_references_again(&self, lane: LaneIndex, state: &RunState, outage: Outage) -> Result<()> {
        let lane_state = state.lane(lane);
        let is_local = self.facts.options.merge == MergeMode::Local;
        let Some(merged) = lane_state.merged().filter(|_| is_local && lane_state.worktree().is_none()) else {
            return Ok(());
        };
        let kept = lane_state.kept_candidates().map(|(_, commit)| commit);
        let kept_by: Vec<CommitId> = std::iter::once(merged).chain(lane_state.head()).chain(kept).cloned().collect();
        for branch in self.branches(lane, state).iter().filter(|it| self.repository.is_of_before(it, outage)) {
            self.delete_branch(branch, &kept_by, &mut Vec::new());
        }
        git::delete_references(&self.repository, lane_state.snapshots())?;
        Ok(())
    }

    fn delete_branch(&self, branch: &str, kept_by: &[CommitId], kept: &mut Vec<String>) {
        if let Err(error) = git::delete_branch_if_merged(&self.repository, branch, kept_by) {
            kept.push(format!("branch {branch}: {}", error.with_remedy()));
        }
    }

    /// Gives a slot back. What gates or a reviewer left in it, or is left out of commits, is no work, but is kept in a
    /// snapshot all the same, which is answered; a repository in it, which no snapshot can hold, keeps it from being given
    /// back.
    pub(super) fn release_worktree(
        &self,
        holder: &Holder,
        worktree: &Worktree,
        kept_by: &[CommitId],
        context: &LaneContext,
    ) -> Result<Vec<Snapshot>> {
        self.release(holder, worktree, kept_by, || {
            self.keep_worktree(&context.before_reset(holder.agent.as_ref()), &worktree.path)
        })?;
        self.pool.unlink(holder)?;
        self.unrecorded(context, holder.agent.as_ref())
    }

    /// Releases a slot whose work `kept_by` leads to; what else is in it is saved first, by `keep`.
    fn release(
        &self,
        holder: &Holder,
        worktree: &Worktree,
        kept_by: &[CommitId],
        keep: impl FnOnce() -> Result<Snapshot>,
    ) -> Result<()> {
        match self.pool.release(holder, kept_by) {
            Err(GitError::Dirty { .. } | GitError::OperationInProgress { .. } | GitError::Unmerged { .. }) => {
                self.refuse_embedded(&worktree.path)?;
                let left = keep()?;
                git::restore(&worktree.path, &git::head_of(&worktree.path)?.commit)?;
                Ok(self.pool.release(holder, &[kept_by, &[left.commit]].concat())?)
            }
            done => Ok(done?),
        }
    }

    pub(super) fn refuse_embedded(&self, path: &Path) -> Result<()> {
        self.repository.refuse_foreign_worktree(path)?;
        let inner = git::embedded_repositories_in(path)?;
        if inner.is_empty() {
            return Ok(());
        }
        let (place, inner) = (path.display(), inner.join(", "));
        Err(ExecutorError::Precondition(format!(
            "{place} holds repositories of its own ({inner}); move them away, then resume"
        )))
    }

    pub(super) fn open_final(self: &Arc<Self>) -> Task {
        let executor = self.clone();
        Box::new(move |_| {
            let opened = || -> Answer {
                let holder = Holder { run: executor.facts.run_id.clone(), lane: None, agent: None };
                let integration = executor.integration()?;
                let mut events: Vec<Event> = executor.keep_final(&holder, &integration)?.into_iter().collect();
                let want = Checkout { branch: None, start: integration, mode: Mode::Reset, adopt: true };
                let worktree = executor.pool.open(&holder, &want)?;
                // A lane may have had the slot.
                executor.copied.forget(&worktree.path);
                events.push(Event::FinalOpened { worktree });
                Ok(events)
            };
            opened().unwrap_or_else(|error| {
                let reason = format!("the worktree of the final gate cannot be opened: {error}");
                vec![Event::PhaseBlocked { reason }]
            })
        })
    }

    pub(super) fn empty_pool(self: &Arc<Self>, state: &RunState) -> Task {
        let executor = self.clone();
        let (integration, last) = (state.integration().cloned(), state.final_worktree().cloned());
        let deleted: Vec<String> = self.plan.indices().flat_map(|lane| self.deleted_branches(lane, state)).collect();
        let has_worked = |lane: &LaneIndex| state.lane(*lane).agents().iter().any(|agent| agent.attempt > 0);
        let workers: Vec<String> =
            self.plan.indices().filter(has_worked).map(|lane| self.id(lane).to_string()).collect();
        Box::new(move |emit| {
            executor.note_shared_changes(&workers, emit);
            executor.restore_recent(None).into_iter().for_each(emit);
            let mut kept = Vec::new();
            if let Err(error) = git::sync_deleted(&executor.repository, &deleted) {
                kept.push(error.with_remedy());
            }
            match last.map(|worktree| executor.release_final_worktree(&worktree, integration.as_slice())) {
                Some(Ok(left)) => kept.extend(
                    left.into_iter().map(|left| format!("{}: what the final gate left uncommitted", left.reference)),
                ),
                Some(Err(error)) => kept.push(error.to_string()),
                None => {}
            }
            let run = &executor.facts.run_id;
            if !executor.facts.options.keep_pool {
                match executor.pool.empty(run, Some(DELETING)) {
                    Ok(left) => {
                        kept.extend(left.into_iter().map(|left| format!("{}: {}", left.path.display(), left.reason)))
                    }
                    Err(error) => kept.push(error.with_remedy()),
                }
                kept.extend(executor.delete_trash_later());
            }
            // Before the end: a run that is done is not looked at again.
            let moved = executor.integration_moved().unwrap_or_else(|error| Some(error.to_string()));
            let blocked = moved.map(|reason| Event::PhaseBlocked { reason });
            blocked.into_iter().chain([Event::PoolEmptied { kept }]).collect()
        })
    }

    /// Reports what of the user's is not as it was before this process started agents.
    fn note_shared_changes(&self, workers: &[String], emit: &dyn Fn(Event)) {
        let Some(Some(before)) = self.shared_before.get().filter(|_| !workers.is_empty()) else { return };
        match self.repository.shared_state() {
            Ok(now) => {
                let changes = now.changes_since(before, &listed(workers, LANES));
                changes.into_iter().for_each(|message| emit(Event::Noted { lane: None, message }));
            }
            Err(error) => tracing::debug!("what agents changed cannot be told: {error}"),
        }
    }

    /// Starts a process that deletes what is left in the pool's trash. Returns why not.
    fn delete_trash_later(&self) -> Option<String> {
        if !self.pool.has_trash() {
            return None;
        }
        let (repository, root) = (self.repository.main_worktree(), self.pool.root());
        let started = start_detached(
            &self.program,
            &[OsStr::new(DELETE_TRASH), root.as_os_str()],
            repository,
            Output::Nowhere,
            &[],
        );
        started.err().map(|error| format!("{}: `lanewright clean` deletes it: {error}", root.display()))
    }

    /// Saves what a person did where the final gate failed, before it judges the integration branch again.
    fn keep_final(&self, holder: &Holder, integration: &CommitId) -> Result<Option<Event>> {
        let held = self.pool.held_by(&holder.run)?;
        let Some(slot) = held.into_iter().find(|slot| slot.holder == *holder && slot.provisioned) else {
            return Ok(None);
        };
        let Ok(head) = self.repository.head_at(&slot.path) else { return Ok(None) };
        let there = head.commit;
        // What is uncommitted there is the gate's.
        if self.repository.is_ancestor(&there, integration).unwrap_or(true) || git::came_by_checkout(&slot.path, &there)
        {
            return Ok(None);
        }
        let (phase, tags) = (&self.facts.phase, self.facts.options.checkpoint_tags);
        let reference = git::reference_name(phase, FINAL, self.clock.now(), tags);
        let message = format!("Snapshot of the final gate of {}", self.facts.run_id);
        let kept = self.keep_files(&slot.path, &reference, &message, git::snapshot)?;
        let message =
            format!("committed by hand or by another program where the final gate ran; saved as {}", kept.reference);
        Ok(Some(Event::Noted { lane: None, message }))
    }

    /// Gives the slot of the final gate back. What the gate left in it is no work, but is kept, named by the commit that
    /// it judged.
    fn release_final_worktree(&self, worktree: &Worktree, kept_by: &[CommitId]) -> Result<Vec<Snapshot>> {
        let holder = Holder { run: self.facts.run_id.clone(), lane: None, agent: None };
        let at = self.repository.commit_time(&worktree.head)?;
        let (phase, tags) = (&self.facts.phase, self.facts.options.checkpoint_tags);
        let reference = git::reference_name(phase, FINAL, at, tags);
        let message = format!("Snapshot of the final gate of {}", self.facts.run_id);
        // It was opened where the integration branch stood, wherever that went since.
        let kept_by = [kept_by, std::slice::from_ref(&worktree.head)].concat();
        self.release(&holder, worktree, &kept_by, || {
            self.keep_files(&worktree.path, &reference, &message, git::snapshot)
        })?;
        Ok(git::saved_under(&self.repository, &reference, &message)?)
    }
}
