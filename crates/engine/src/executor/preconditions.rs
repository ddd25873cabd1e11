//! Checks what a lane needs before it starts, and selects its base (SPEC §6, step 1).

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::Arc;

use lanewright_git::{self as git, Merge};
use lanewright_model::event::Event;
use lanewright_model::ownership::Ownership;
use lanewright_model::{Agent, CommitId, LaneIndex, MergeMode};
use lanewright_schedule::RunState;

use super::{Executor, ExecutorError, Prepared, Result};

pub const PORTS_PER_LANE: u16 = 10;

impl Executor {
    pub(super) fn check_lane(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Prepared {
        let delivered = |lane: &LaneIndex| state.lane(*lane).delivered().cloned();
        let dependencies: Vec<CommitId> = self.plan.dag().dependencies(lane).iter().filter_map(delivered).collect();
        Ok(self.task(lane, state, move |executor| {
            let base = match executor.facts.options.merge {
                MergeMode::Local => executor.integration()?,
                MergeMode::None | MergeMode::Pr => executor.base_of_unmerged(lane, &dependencies)?,
            };
            executor.refuse_foreign_branches(lane)?;
            executor.refuse_changed_files(lane)?;
            let port = executor.free_ports(lane)?;
            let missing = executor.missing_variables(lane);
            Ok(vec![Event::LaneBased { lane: executor.id(lane), base, port, missing }])
        }))
    }

    /// The variables of the lane's `user_setup` that an agent of it would not find in its environment.
    fn missing_variables(&self, lane: LaneIndex) -> Vec<String> {
        let plan = self.plan.lane(lane);
        let is_given = |value: Option<&String>| value.is_some_and(|value| !value.is_empty());
        let of_agent = |agent: &Agent, name: &str| {
            let has_command = agent.tasks.iter().any(|task| task.command.is_some());
            let runner = self.plan.runner(agent).filter(|_| !has_command).map(|runner| &runner.environment);
            is_given(agent.env.get(name)) || is_given(runner.and_then(|environment| environment.get(name)))
        };
        let is_set = |name: &str| {
            is_given(plan.env.get(name))
                || !self.withheld.is_withheld_from_all(name)
                    && std::env::var_os(name).is_some_and(|value| !value.is_empty())
                || plan.agents.iter().all(|agent| of_agent(agent, name))
        };
        let wanted = plan.user_setup.iter().flat_map(|service| &service.env_vars);
        let missing: BTreeSet<&str> = wanted.map(|it| it.name.as_str()).filter(|name| !is_set(name)).collect();
        missing.into_iter().map(str::to_owned).collect()
    }

    /// With `--merge none` and `pr` nothing reaches the integration branch: a lane starts from the merge of what it depends on.
    fn base_of_unmerged(&self, lane: LaneIndex, dependencies: &[CommitId]) -> Result<CommitId> {
        let mut base = self.facts.base_commit.clone();
        for head in dependencies {
            if self.repository.is_ancestor(&base, head)? {
                base = head.clone();
                continue;
            }
            let id = self.id(lane);
            let message = format!("Merge what {id} depends on");
            match git::merge(&self.repository, &base, head, &message, &self.trailers(&id), &[])? {
                Merge::AlreadyIn => {}
                Merge::Done(merge) => base = merge,
                Merge::Conflict(paths) => {
                    let paths = paths.join(", ");
                    let message = format!(
                        "the lanes that it depends on conflict with each other in {paths}; merge them and resume"
                    );
                    return Err(ExecutorError::Precondition(message));
                }
            }
        }
        Ok(base)
    }

    /// A branch that exists before the lane has begun belongs to the user or to an earlier run.
    fn refuse_foreign_branches(&self, lane: LaneIndex) -> Result<()> {
        let agents = 0..self.plan.lane(lane).agents.len();
        let names = agents.map(|agent| self.agent_branch(lane, agent)).chain([self.lane_branch(lane)]);
        for branch in names {
            if self.repository.branch_commit(&branch)?.is_some() {
                let place = self.repository.where_checked_out(&branch)?;
                return Err(git::GitError::BranchInTheWay { branch, place }.into());
            }
        }
        Ok(())
    }

    /// The lane would miss uncommitted changes of files that it owns.
    fn refuse_changed_files(&self, lane: LaneIndex) -> Result<()> {
        let plan = self.plan.lane(lane);
        if plan.owns.is_empty() {
            return Ok(());
        }
        let found = git::changes_where_checked_out(&self.repository, &self.facts.base_branch, None)?;
        let Some((place, changed)) = found else { return Ok(()) };
        let owns = Ownership::new(&plan.owns).map_err(|error| ExecutorError::Precondition(error.to_string()))?;
        let owned: Vec<String> = changed.into_iter().filter(|path| owns.allows(path)).collect();
        if owned.is_empty() {
            return Ok(());
        }
        // A commit there would undo what another program brought in.
        let branch = &self.facts.base_branch;
        if let Some((worktree, blockers)) = git::first_stale_checkout(&self.repository, branch)? {
            return Err(ExecutorError::Precondition(blockers.cannot_move(branch, &worktree)));
        }
        let (files, place) = (owned.join(", "), place.display());
        let message = format!(
            "{place} holds uncommitted changes of files that the lane owns ({files}); commit or stash them and resume"
        );
        Err(ExecutorError::Precondition(message))
    }

    /// The first of a block of free ports. Lanes of a run never get the same block, nor do lanes of
    /// runs that share the branches of a phase, each of which has lanes of its own.
    fn free_ports(&self, lane: LaneIndex) -> Result<u16> {
        const FIRST: u32 = 20_000;
        const BLOCKS: u32 = 2_500;
        let shares_branches = self.facts.options.branch_suffix.is_empty();
        let whose = if shares_branches { self.facts.phase.as_str() } else { self.facts.run_id.as_str() };
        let place = self.repository.main_worktree().to_string_lossy();
        let shift = crc32fast::hash(format!("{place}\n{whose}").as_bytes()) % BLOCKS;
        let lanes = u32::try_from(self.plan.lanes.len()).unwrap_or(BLOCKS).max(1);
        let blocks = (0..BLOCKS / lanes.min(BLOCKS)).map(|round| (shift + round * lanes + lane.0) % BLOCKS);
        let ports = blocks.filter_map(|block| u16::try_from(FIRST + block * u32::from(PORTS_PER_LANE)).ok());
        let free =
            |first: &u16| (*first..*first + PORTS_PER_LANE).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok());
        let none = || {
            ExecutorError::Precondition(
                "no block of ten free ports is left; end what listens on them and resume".to_owned(),
            )
        };
        { ports }.find(free).ok_or_else(none)
    }
}
