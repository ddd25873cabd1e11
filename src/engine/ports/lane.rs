//! Worktrees and branches of lanes: opened, put onto a new base, cleaned up.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{Answer, Moment, PortError, Ports, Task};
use crate::event::{Event, Worktree};
use crate::git::{self, Checkout, GitError, Holder, Mode, ProgramError, Snapshot};
use crate::model::{CommitId, LaneIndex, MergeMode};
use crate::schedule::{Rebuild, RunState};

/// What stands in a lane's place in the names of the final gate's snapshots.
pub(crate) const FINAL: &str = "final";

/// How long the end of a run waits for its worktrees to be deleted, and before that for one that is being made; `clean`
/// deletes the rest.
const DELETING: Duration = Duration::from_secs(10);

impl Ports {
    pub(super) fn open_lane(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Result<Task, PortError> {
        let lane_state = state.lane(lane);
        let known = lane_state.head.clone();
        let start =
            known.clone().or_else(|| lane_state.base.clone()).ok_or(PortError::Missing("what the lane starts from"))?;
        let mode = if known.is_some() { Mode::ExistingBranch } else { Mode::FreshBranch };
        let want = Checkout { branch: Some(self.lane_branch(lane)), start, mode, adopt: known.is_some() };
        Ok(self.task(lane, state, move |ports| {
            let worktree = ports.open(&ports.holder(lane, None), &ports.adopting_empty(&want)?, lane)?;
            Ok(vec![Event::WorktreeOpened { lane: ports.id(lane), agent: None, worktree }])
        }))
    }

    pub(super) fn open_agent(
        self: &Arc<Self>,
        lane: LaneIndex,
        agent: usize,
        state: &RunState,
    ) -> Result<Task, PortError> {
        let lane_state = state.lane(lane);
        let start = lane_state.head.clone().ok_or(PortError::Missing("where the lane stands"))?;
        let again = lane_state.agents[agent].start.is_some();
        let mode = if again { Mode::Reset } else { Mode::FreshBranch };
        let want = Checkout { branch: Some(self.agent_branch(lane, agent)), start, mode, adopt: again };
        Ok(self.task(lane, state, move |ports| {
            let worktree = ports.open(&ports.holder(lane, Some(agent)), &ports.adopting_empty(&want)?, lane)?;
            let name = ports.plan.lane(lane).agents[agent].name.clone();
            Ok(vec![Event::WorktreeOpened { lane: ports.id(lane), agent: Some(name), worktree }])
        }))
    }

    /// The same, with a branch that has nothing on it taken for the holder's: there was none when the lane began, so an
    /// earlier try made it whose claim was removed since.
    fn adopting_empty(&self, want: &Checkout) -> Result<Checkout, GitError> {
        let tip = want.branch.as_deref().map(|branch| self.repository.branch_commit(branch)).transpose()?.flatten();
        Ok(Checkout { adopt: want.adopt || tip.as_ref() == Some(&want.start), ..want.clone() })
    }

    /// A slot with `want` in it, under the name that its holder sees, with the ignored files that the lane asks for.
    pub(super) fn open(&self, holder: &Holder, want: &Checkout, lane: LaneIndex) -> Result<Worktree, GitError> {
        let worktree = self.pool.open(holder, want)?;
        self.pool.link(holder, &worktree.path)?;
        let patterns: Vec<&str> = self.plan.lane(lane).copy.iter().map(String::as_str).collect();
        if !patterns.is_empty() {
            git::copy_ignored(&self.repository, &worktree.path, &patterns)?;
        }
        Ok(worktree)
    }

    /// Puts the lane onto the integration branch, or onto its merge with it; what it held stays in a snapshot.
    pub(super) fn reset_lane(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Result<Task, PortError> {
        let lane_state = state.lane(lane);
        let rebuild = lane_state.rebuild.clone().ok_or(PortError::Missing("what the lane is put onto"))?;
        let head = lane_state.head.clone().ok_or(PortError::Missing("where the lane stands"))?;
        let (moment, worktree) = (self.moment(lane, state), lane_state.worktree.clone());
        Ok(self.task(lane, state, move |ports| {
            let id = ports.id(lane);
            let mut events = match &worktree {
                Some(worktree) => ports.reopen_if_lost(&worktree.path, &moment)?,
                None => Vec::new(),
            };
            let kept = ports.keep_commit(lane, &head, moment.at)?;
            let base = match &rebuild {
                Rebuild::OnIntegration => ports.integration()?,
                Rebuild::OnMerge(commit) => ports.merge_again(lane, commit, &head)?,
            };
            let branch = Some(ports.lane_branch(lane));
            let want = Checkout { branch, start: base.clone(), mode: Mode::Reset, adopt: true };
            ports.pool.open(&ports.holder(lane, None), &want)?;
            let note = format!("the lane's earlier work is kept as {}", kept.reference);
            events.extend([
                ports.put_aside(lane, None, kept),
                Event::Noted { lane: Some(id.clone()), message: note },
                Event::LaneReset { lane: id, base },
            ]);
            Ok(events)
        }))
    }

    /// Gives everything of the lane back: its slot, its links, the branches and snapshots whose work is merged.
    pub(super) fn clean_lane(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Result<Task, PortError> {
        let lane_state = state.lane(lane);
        let merged = lane_state.merged.clone().ok_or(PortError::Missing("where the lane was merged"))?;
        let head = lane_state.head.clone().ok_or(PortError::Missing("where the lane stands"))?;
        let moment = self.moment(lane, state);
        let worktree = lane_state.worktree.clone();
        let agents: Vec<usize> =
            (0..lane_state.agents.len()).filter(|&agent| lane_state.agents[agent].start.is_some()).collect();
        Ok(self.task(lane, state, move |ports| {
            let kept_by = [merged.clone(), head.clone()];
            let holder = ports.holder(lane, None);
            let mut events = Vec::new();
            let mut left = Vec::new();
            if let Some(worktree) = &worktree {
                events = ports.reopen_if_lost(&worktree.path, &moment)?;
                left = ports.give_back(&holder, worktree, &kept_by, &moment)?;
            }
            let told = |left: Snapshot| format!("{}: what was left uncommitted in the lane's worktree", left.reference);
            let mut kept: Vec<String> = left.into_iter().map(told).collect();
            let own = agents.iter().copied().filter(|&agent| !ports.plan.lane(lane).shares_worktree(agent));
            let branches: Vec<String> = own.map(|agent| ports.agent_branch(lane, agent)).collect();
            for branch in branches {
                ports.delete_branch(&branch, &kept_by, &mut kept);
            }
            // A lane that nobody merged keeps its branch and its snapshots.
            if ports.facts.options.merge == MergeMode::Local {
                ports.delete_branch(&ports.lane_branch(lane), &kept_by, &mut kept);
                kept.extend(git::delete_references(&ports.repository, &moment.known)?);
            }
            events.push(Event::LaneCleaned { lane: ports.id(lane), kept });
            Ok(events)
        }))
    }

    fn delete_branch(&self, branch: &str, kept_by: &[CommitId], kept: &mut Vec<String>) {
        if let Err(error) = git::delete_branch_if_merged(&self.repository, branch, kept_by) {
            kept.push(format!("branch {branch}: {error}"));
        }
    }

    /// Gives a slot back. What gates or a reviewer left in it is no work, but is kept in a snapshot all the same, which
    /// is answered; a repository in it, which no snapshot can hold, keeps it from being given back.
    pub(super) fn give_back(
        &self,
        holder: &Holder,
        worktree: &Worktree,
        kept_by: &[CommitId],
        moment: &Moment,
    ) -> Result<Vec<Snapshot>, PortError> {
        match self.pool.release(holder, kept_by) {
            Err(GitError::Dirty { .. } | GitError::OperationInProgress { .. } | GitError::Unmerged { .. }) => {
                self.refuse_embedded(&worktree.path)?;
                let left = self.keep_worktree(&moment.making_room(holder.agent.as_ref()), &worktree.path)?;
                let head = git::head_of(&worktree.path)?.commit;
                git::restore(&worktree.path, &head)?;
                let kept_by: Vec<CommitId> = kept_by.iter().cloned().chain([left.commit]).collect();
                self.pool.release(holder, &kept_by)?;
            }
            done => done?,
        }
        self.pool.unlink(holder)?;
        self.kept_unsaid(moment, holder.agent.as_ref())
    }

    /// Refuses a worktree with a repository in it, which no snapshot can hold.
    fn refuse_embedded(&self, path: &Path) -> Result<(), PortError> {
        self.repository.vouch_for(path)?;
        let inner = git::embedded_repositories_in(path)?;
        if inner.is_empty() {
            return Ok(());
        }
        let (place, inner) = (path.display(), inner.join(", "));
        Err(PortError::Precondition(format!(
            "{place} holds repositories of its own ({inner}); move them away, then resume"
        )))
    }

    pub(super) fn open_final(self: &Arc<Self>, _: &RunState) -> Result<Task, PortError> {
        let ports = self.clone();
        Ok(Box::new(move |_| {
            let opened = || -> Answer {
                let holder = Holder { run: ports.facts.run_id.clone(), lane: None, agent: None };
                let want = Checkout { branch: None, start: ports.integration()?, mode: Mode::Reset, adopt: true };
                Ok(vec![Event::FinalOpened { worktree: ports.pool.open(&holder, &want)? }])
            };
            opened().unwrap_or_else(|error| {
                let reason = format!("the worktree of the final gate cannot be opened: {error}");
                vec![Event::PhaseBlocked { reason }]
            })
        }))
    }

    pub(super) fn make_ahead(self: &Arc<Self>, state: &RunState) -> Task {
        let (ports, most) = (self.clone(), state.worktrees_ahead());
        Box::new(move |_| {
            let made =
                ports.integration().and_then(|tip| Ok(ports.pool.make_ahead(&ports.facts.run_id, &tip, most)?));
            vec![match made {
                Ok(at_hand) => Event::WorktreeMadeAhead { at_hand, error: String::new() },
                // Who ends git by a signal ends us, too.
                Err(PortError::Git(GitError::Program(ProgramError::Failed { code: None, .. }))) => {
                    Event::WorktreeMadeAhead { at_hand: 0, error: String::new() }
                }
                Err(error) => Event::WorktreeMadeAhead { at_hand: 0, error: error.to_string() },
            }]
        })
    }

    pub(super) fn empty_pool(self: &Arc<Self>, state: &RunState) -> Task {
        let ports = self.clone();
        let (integration, last) = (state.integration().cloned(), state.final_worktree().cloned());
        Box::new(move |tell| {
            ports.restore_recent(None).into_iter().for_each(tell);
            let mut kept = Vec::new();
            match last.map(|worktree| ports.give_back_last(&worktree, integration.as_slice())) {
                Some(Ok(left)) => kept.extend(
                    left.into_iter().map(|left| format!("{}: what the final gate left uncommitted", left.reference)),
                ),
                Some(Err(error)) => kept.push(error.to_string()),
                None => {}
            }
            let run = &ports.facts.run_id;
            let ended = ports.integration().and_then(|tip| Ok(ports.pool.end_making_ahead(run, &tip, DELETING)?));
            kept.extend(ended.err().map(|error| error.to_string()));
            if !ports.facts.options.keep_pool {
                match ports.pool.empty_within(run, DELETING) {
                    Ok(left) => {
                        kept.extend(left.into_iter().map(|left| format!("{}: {}", left.path.display(), left.reason)))
                    }
                    Err(error) => kept.push(error.to_string()),
                }
            }
            vec![Event::PoolEmptied { kept }]
        })
    }

    /// Gives the slot of the final gate back. What the gate left in it is no work, but is kept, named by the commit that
    /// it judged.
    fn give_back_last(&self, worktree: &Worktree, kept_by: &[CommitId]) -> Result<Vec<Snapshot>, PortError> {
        let holder = Holder { run: self.facts.run_id.clone(), lane: None, agent: None };
        let at = self.repository.commit_time(&worktree.head)?;
        let (phase, tags) = (&self.facts.phase, self.facts.options.checkpoint_tags);
        let reference = git::reference_name(phase, FINAL, at, tags);
        let message = format!("Snapshot of the final gate of {}", self.facts.run_id);
        // It was opened where the integration branch stood, wherever that went since.
        let kept_by = [kept_by, std::slice::from_ref(&worktree.head)].concat();
        match self.pool.release(&holder, &kept_by) {
            Err(GitError::Dirty { .. } | GitError::OperationInProgress { .. } | GitError::Unmerged { .. }) => {
                self.refuse_embedded(&worktree.path)?;
                let index_file = self.run.directory().join("snapshot.index");
                let left = self.keep_files(&worktree.path, &index_file, &reference, &message)?;
                git::restore(&worktree.path, &worktree.head)?;
                let kept_by: Vec<CommitId> = kept_by.into_iter().chain([left.commit]).collect();
                self.pool.release(&holder, &kept_by)?;
            }
            done => done?,
        }
        Ok(git::kept_under(&self.repository, &reference, &message)?)
    }
}
