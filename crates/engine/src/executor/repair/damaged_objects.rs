//! Objects that unfinished work needs and that cannot be read: what can be made again is, from memory and from the files
//! of worktrees; where a commit stays lost, its branch is made to continue from what is left (decision 43).

use std::collections::{BTreeMap, BTreeSet};

use lanewright_git::{self as git, GitError, LostObject, Rebuilt, Repository};
use lanewright_model::event::Event;
use lanewright_model::text::{counted, listed};
use lanewright_model::{AgentName, CommitId, LaneId, LaneIndex};
use lanewright_schedule::RunState;

use crate::executor::held_worktrees::{HeldWorktree, open_worktrees};
use crate::executor::{Executor, ExecutorError, LaneContext, Result};

/// How many lost objects of a commit are named.
const NAMED: usize = 4;

/// The commits that the unfinished work of a lane needs.
pub(crate) struct NeededCommits {
    /// The branches, each with the last recorded head.
    branches: Vec<(String, CommitId)>,
    /// The refs of snapshots, each with its commit.
    snapshots: Vec<(String, CommitId)>,
    bases: Vec<CommitId>,
}

/// A commit of which something cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedCommit {
    /// The branch or the ref that leads to it.
    pub(crate) name: String,
    pub(crate) commit: CommitId,
    pub(crate) lost: Vec<LostObject>,
}

/// What of a lane can be continued after its damaged objects were dealt with.
#[derive(Debug, Default)]
pub struct Restored {
    pub events: Vec<Event>,
    pub blocked: Vec<(LaneId, String)>,
}

/// What is done about a lane's head that is lost together with its worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LostHead {
    /// The lane cannot continue without that work.
    Refuse,
    /// The lane is about to be rolled back: its branch is set to the last commit that can be read.
    FallBack,
}

impl NeededCommits {
    pub(crate) fn of(state: &RunState, lane: LaneIndex) -> Self {
        let (lane_state, plan) = (state.lane(lane), state.plan().lane(lane));
        let started = state.started();
        let branch = |agent: Option<usize>| {
            let started = started?;
            Some(agent.map_or_else(
                || started.lane_branch(&plan.id),
                |agent| started.agent_branch(&plan.id, &plan.agents[agent].name),
            ))
        };
        let open = open_worktrees(state, lane).into_iter();
        Self {
            branches: open.filter_map(|open| Some((branch(open.agent)?, open.head))).collect(),
            snapshots: lane_state.snapshots().to_vec(),
            bases: lane_state.base().into_iter().chain(started.map(|it| &it.base_commit)).cloned().collect(),
        }
    }

    pub(crate) fn damaged(&self, repository: &Repository) -> Result<Vec<DamagedCommit>, GitError> {
        let mut named: Vec<(String, CommitId)> = self.branches.clone();
        for (branch, _) in &self.branches {
            let tip = repository.target_of(&git::branch_reference(branch))?;
            named.extend(tip.map(|tip| (branch.clone(), tip)));
        }
        for (reference, commit) in &self.snapshots {
            // One that was removed is not missed.
            if repository.target_of(reference)?.as_ref() == Some(commit) {
                named.push((reference.clone(), commit.clone()));
            }
        }
        let tips: BTreeSet<CommitId> = named.iter().map(|(_, commit)| commit.clone()).collect();
        let lost = git::lost_objects(repository, &self.bases, &tips)?;
        named.sort();
        named.dedup();
        let damaged =
            |(name, commit): (String, CommitId)| Some(DamagedCommit { lost: lost.get(&commit)?.clone(), name, commit });
        Ok(named.into_iter().filter_map(damaged).collect())
    }
}

impl DamagedCommit {
    fn objects(damaged: &[Self]) -> BTreeSet<String> {
        damaged.iter().flat_map(|it| it.lost.iter().map(|lost| lost.object.clone())).collect()
    }

    /// `SL-2/new (0123456 is missing), the commit itself (…)`
    pub(crate) fn reason(&self) -> String {
        let named = |lost: &LostObject| {
            let what = match (lost.path.as_str(), lost.object == self.commit.as_str()) {
                ("", true) => "the commit itself",
                ("", false) => "its history or root directory",
                (path, _) => path,
            };
            format!("{what} ({} {})", &lost.object[..7.min(lost.object.len())], lost.reason)
        };
        listed(&self.lost.iter().map(named).collect::<Vec<_>>(), NAMED)
    }
}

impl Executor {
    /// Stores again what is damaged of a lane, as far as memory and the files of its worktrees have it, with the damaged
    /// files out of the way. Returns what was done, and what stays lost.
    pub(crate) fn restore_damaged(&self, context: &LaneContext) -> Result<(Vec<Event>, Vec<DamagedCommit>)> {
        let needed = NeededCommits {
            branches: context.holdings.iter().filter_map(|holding| holding.branch.clone()).collect(),
            snapshots: context.known.clone(),
            bases: context.bases.clone(),
        };
        let damaged = needed.damaged(&self.repository)?;
        if damaged.is_empty() {
            return Ok((Vec::new(), damaged));
        }
        let objects = DamagedCommit::objects(&damaged);
        let aside = git::set_damaged_objects_aside(&self.repository, &objects)?;
        self.repository.restore_recent_objects();
        for holding in context.holdings.iter().filter(|holding| self.has_usable_worktree(holding)) {
            // What prevents it in one worktree, another one may have.
            if let Err(error) = git::store_objects_again(&self.repository, &holding.worktree.path, &objects) {
                tracing::debug!("objects cannot be made again: {error}");
            }
        }
        let left = needed.damaged(&self.repository)?;
        let restored = objects.len().saturating_sub(DamagedCommit::objects(&left).len());
        let mut events = Vec::new();
        if restored > 0 || aside.is_some() {
            let count = counted(objects.len(), "object");
            let mut message =
                format!("{count} could not be read; {restored} stored again from the files of its worktrees");
            message.extend(aside.map(|aside| format!("; what was damaged is kept in {}", aside.display())));
            events.push(self.note(context.lane, message));
        }
        Ok((events, left))
    }

    fn has_usable_worktree(&self, holding: &HeldWorktree) -> bool {
        !holding.busy && self.repository.refuse_foreign_worktree(&holding.worktree.path).is_ok()
    }

    /// Deals with the damaged objects of every lane that `wanted` names and that has something left to do.
    pub fn restore_lanes(&self, state: &RunState, wanted: impl Fn(&LaneId) -> bool) -> Restored {
        let mut restored = Restored::default();
        for lane in self.plan.indices().filter(|&lane| wanted(&self.id(lane)) && state.lane(lane).is_left_to_do()) {
            match self.restore_lane(lane, state, LostHead::Refuse) {
                Ok(done) => {
                    restored.events.extend(done.events);
                    restored.blocked.extend(done.blocked);
                }
                Err(error) => restored.blocked.push((self.id(lane), error.to_string())),
            }
        }
        restored
    }

    /// Deals with the damaged objects of a lane: its snapshots that stay lost are forgotten, and its branches lead to
    /// something that can be read.
    pub(crate) fn restore_lane(&self, lane: LaneIndex, state: &RunState, lost_head: LostHead) -> Result<Restored> {
        let context = self.lane_context(lane, state);
        let (mut events, damaged) = self.restore_damaged(&context)?;
        let is_lost: BTreeMap<&CommitId, &DamagedCommit> = damaged.iter().map(|it| (&it.commit, it)).collect();
        for (reference, commit) in &context.known {
            let Some(damage) = is_lost.get(commit).filter(|_| damaged.iter().any(|it| it.name == *reference)) else {
                continue;
            };
            let agent = git::trailers_of(&self.repository, commit).get("Agent").and_then(|it| AgentName::new(it).ok());
            let (commit, reference, error) = (commit.clone(), reference.clone(), damage.reason());
            events.push(Event::SnapshotDamaged { lane: self.id(lane), agent, commit, reference, error });
        }
        let mut blocked = Vec::new();
        for holding in &context.holdings {
            match self.rebuild_head(holding, &context, &is_lost, lost_head)? {
                Ok(done) => events.extend(done),
                Err(reason) => blocked.push((self.id(lane), reason)),
            }
        }
        Ok(Restored { events, blocked })
    }

    /// Has a branch whose head is lost continue from what is left: the files of its worktree, or its newest whole
    /// snapshot, on top of the last commit that can be read. The error says why that would leave work out of the lane.
    fn rebuild_head(
        &self,
        holding: &HeldWorktree,
        context: &LaneContext,
        lost: &BTreeMap<&CommitId, &DamagedCommit>,
        lost_head: LostHead,
    ) -> Result<Result<Vec<Event>, String>> {
        let Some((branch, recorded)) = holding.branch.as_ref().filter(|_| !holding.busy) else { return Ok(Ok(vec![])) };
        let Some(tip) = self.repository.target_of(&git::branch_reference(branch))? else { return Ok(Ok(vec![])) };
        // The state continues from the recorded head, so that has to be there as well.
        let is_gone = |damage: &&&DamagedCommit| damage.lost.iter().any(|lost| lost.object == recorded.as_str());
        let recorded_gone = lost.get(recorded).filter(is_gone);
        let Some(damage) = lost.get(&tip).or(recorded_gone) else { return Ok(Ok(vec![])) };
        let onto = self.last_whole(&holding.points, context)?;
        // A branch that does not lead beyond what is left has nothing of the lost head.
        let is_lost = lost.contains_key(&tip) || (!holding.is_worked_on && self.repository.is_ancestor(&tip, &onto)?);
        let (lane, agent) = (self.id(context.lane), holding.holder.agent.clone());
        let paths = damage.lost.iter().map(|lost| lost.path.as_str()).filter(|_| !holding.is_worked_on);
        let is_present = self.has_usable_worktree(holding)
            && git::is_on_branch(&holding.worktree.path, branch)
            && git::is_checked_out(&holding.worktree.path, holding.is_worked_on, paths)?
            && (!is_lost || holding.is_worked_on || self.repository.has_files_beyond(&holding.worktree.path, &onto)?);
        let snapshot = self.whole_snapshot(context, agent.as_ref(), lost)?;
        let (source, from) = if !is_lost {
            (Rebuilt::Head, "its branch".to_owned())
        } else if is_present {
            (Rebuilt::Files, format!("the files in {}", holding.worktree.path.display()))
        } else if !holding.is_worked_on && lost_head == LostHead::Refuse {
            return Ok(Err(self.work_is_lost(branch, damage, &lane)));
        } else if let Some((reference, commit)) = snapshot.filter(|_| holding.is_worked_on) {
            (Rebuilt::Snapshot(commit), reference)
        } else {
            (Rebuilt::Nothing, "nothing that came after it".to_owned())
        };
        let message = git::message(&format!("{lane}: what was left of a damaged branch"), &self.trailers(&lane));
        let path = is_present.then_some(holding.worktree.path.as_path());
        let head = self.repository.rebuild_branch(branch, path, [&tip, &onto], &source, &message)?;
        let mut events = Vec::new();
        if holding.is_worked_on {
            let reset =
                |agent: &AgentName| Event::AgentReset { lane: lane.clone(), agent: agent.clone(), head: onto.clone() };
            events.extend(recorded_gone.and(holding.worker.as_ref()).map(reset));
            let kept = self.keep_commit(context.lane, &head, context.at)?;
            events.push(self.put_aside(context.lane, agent, kept));
        } else if lost_head == LostHead::Refuse || is_present {
            events.push(Event::BranchMoved { lane: lane.clone(), agent, head: head.clone(), theirs: None });
        }
        let message = format!(
            "branch {branch} led to {}, of which cannot be read: {}; it continues at {}, which holds {from} on top of {}",
            tip.short(),
            damage.reason(),
            head.short(),
            onto.short(),
        );
        events.push(Event::Noted { lane: Some(lane), message });
        Ok(Ok(events))
    }

    fn work_is_lost(&self, branch: &str, damage: &DamagedCommit, lane: &LaneId) -> String {
        format!(
            "the work on branch {branch} cannot be read ({}), and no worktree has it; `git fsck` lists what is missing. Put \
             the objects back and resume, or start the lane over: `lanewright rollback {} --lane {lane}`",
            damage.reason(),
            self.facts.run_id
        )
    }

    /// The first of `points` of which everything can be read.
    fn last_whole(&self, points: &[CommitId], context: &LaneContext) -> Result<CommitId> {
        let lost = git::lost_objects(&self.repository, &context.bases, &points.iter().cloned().collect())?;
        let whole = points.iter().chain(&context.bases).find(|point| !lost.contains_key(point));
        whole.cloned().ok_or(ExecutorError::Missing("a commit that can be read"))
    }

    /// The newest snapshot of a worktree that can be read.
    fn whole_snapshot(
        &self,
        context: &LaneContext,
        agent: Option<&AgentName>,
        lost: &BTreeMap<&CommitId, &DamagedCommit>,
    ) -> Result<Option<(String, CommitId)>> {
        for (reference, commit) in context.known.iter().rev() {
            let is_its = || {
                git::trailers_of(&self.repository, commit).get("Agent").map(String::as_str)
                    == agent.map(|it| it.as_str())
            };
            // Of one whose parent is lost, the files are still all there.
            let has_files = lost.get(commit).is_none_or(|damage| damage.lost.iter().all(|it| it.path.is_empty()));
            if has_files
                && is_its()
                && self.repository.target_of(reference)?.is_some()
                && self.repository.has_commit(commit)?
            {
                return Ok(Some((reference.clone(), commit.clone())));
            }
        }
        Ok(None)
    }
}
