//! Finds the merge that broke a gate: the gate is run again on what was merged before (SPEC §8).

use std::collections::BTreeMap;
use std::sync::Arc;

use lanewright_git::{self as git, Checkout, Holder, Mode};
use lanewright_model::event::Event;
use lanewright_model::{AgentName, CommandLine, CommitId, JobId, JobRole, LaneIndex};
use lanewright_programs::process;
use lanewright_schedule::RunState;

use super::{Answer, Executor, ExecutorError, Prepared, Result};

struct Search {
    lane: Option<LaneIndex>,
    /// Where everything was still as it had been.
    base: CommitId,
    /// Each merge, in the order in which they were made, with its lane or agent; the last one is known to fail.
    merges: Vec<(String, CommitId)>,
    /// Where the final gate's own worktree stood.
    judged: Option<CommitId>,
    gate: Vec<CommandLine>,
    environment: BTreeMap<String, String>,
}

impl Executor {
    /// Searches the merges of a lane's agents, or those of the lanes into the integration branch.
    pub(super) fn bisect(self: &Arc<Self>, lane: Option<LaneIndex>, state: &RunState) -> Prepared {
        let search = match lane {
            Some(lane) => self.search_lane(lane, state)?,
            None => self.search_phase(state)?,
        };
        let executor = self.clone();
        Ok(Box::new(move |_| {
            let lane = search.lane.map(|lane| executor.id(lane));
            executor.search(&search).unwrap_or_else(|error| {
                // The search is a service; that it cannot be had changes nothing about the failure.
                let note =
                    Event::Noted { lane: lane.clone(), message: format!("the merges were not bisected: {error}") };
                vec![note, Event::MergesBisected { lane, culprit: None, commit: None }]
            })
        }))
    }

    fn search_lane(&self, lane: LaneIndex, state: &RunState) -> Result<Search> {
        let (lane_state, plan) = (state.lane(lane), self.plan.lane(lane));
        let base = lane_state.base().cloned().ok_or(ExecutorError::Missing("the lane's base"))?;
        let called = |(agent, head): &(usize, CommitId)| (plan.agents[*agent].name.to_string(), head.clone());
        Ok(Search {
            lane: Some(lane),
            base,
            merges: lane_state.merges().iter().map(called).collect(),
            judged: None,
            gate: plan.tests.clone(),
            environment: plan.env.clone(),
        })
    }

    fn search_phase(&self, state: &RunState) -> Result<Search> {
        let called = |(lane, commit): &(LaneIndex, CommitId)| (self.id(*lane).to_string(), commit.clone());
        Ok(Search {
            lane: None,
            base: state.merges_began_at().unwrap_or(&self.facts.base_commit).clone(),
            judged: state.final_worktree().map(|worktree| worktree.head.clone()),
            merges: state.merges().iter().map(called).collect(),
            gate: self.plan.gates.last.clone(),
            environment: BTreeMap::new(),
        })
    }

    fn search(&self, search: &Search) -> Answer {
        let holder = self.search_holder(search.lane, "bisect");
        // Everything up to `passes` passes, and `fails` fails; what the base does is looked at when it matters.
        let (mut passes, mut fails) = (None, search.merges.len().saturating_sub(1));
        while fails - passes.map_or(0, |passes: usize| passes + 1) > 0 {
            let middle = (passes.map_or(0, |passes| passes + 1) + fails) / 2;
            if self.passes(search, &holder, &search.merges[middle].1)? { passes = Some(middle) } else { fails = middle }
        }
        let guilty = passes.is_some() || self.passes(search, &holder, &search.base)?;
        let found = search.merges.get(fails).filter(|_| guilty).cloned();
        self.release_search_worktree(&holder, search)?;
        let (culprit, commit) = found.unzip();
        Ok(vec![Event::MergesBisected { lane: search.lane.map(|lane| self.id(lane)), culprit, commit }])
    }

    /// The holder of a worktree for a search, with a name that begins with `what` and that no agent of the lane has.
    pub(super) fn search_holder(&self, lane: Option<LaneIndex>, what: &str) -> Holder {
        let free = |name: &String| {
            let taken =
                lane.is_some_and(|lane| self.plan.lane(lane).agents.iter().any(|agent| agent.name.as_str() == name));
            !taken
        };
        let name = (1..).map(|number| format!("{what}-{number}")).find(free).unwrap_or_default();
        Holder {
            run: self.facts.run_id.clone(),
            lane: lane.map(|lane| self.id(lane)),
            agent: lane.and_then(|_| AgentName::new(&name).ok()),
        }
    }

    /// Whether the gate passes on `commit`. A commit that was judged before, perhaps in another life of the run, is not
    /// judged again.
    fn passes(&self, search: &Search, holder: &Holder, commit: &CommitId) -> Result<bool> {
        let place = search.lane.map_or_else(|| "phase".to_owned(), |lane| self.id(lane).to_string());
        let directory = self.run.directory().join("bisect").join(place).join(commit.as_str());
        let want = Checkout { branch: None, start: commit.clone(), mode: Mode::Reset, adopt: true };
        let worktree = self.pool.open(holder, &want)?;
        let job = JobId { lane: holder.lane.clone(), role: JobRole::Tests, number: 0 };
        let spec = self.gate_spec(job, search.gate.clone(), &worktree, search.environment.clone());
        let launched = match process::observe(&directory)? {
            process::Observation::Absent | process::Observation::Planned => Some(self.launch(&directory, &spec)?),
            _ => None,
        };
        let passed = process::wait_without_secrets(&directory, launched, &self.redactor)?.passed();
        git::restore(&worktree.path, commit)?;
        Ok(passed)
    }

    fn release_search_worktree(&self, holder: &Holder, search: &Search) -> Result<()> {
        let kept_by: Vec<CommitId> = search.merges.iter().map(|(_, commit)| commit.clone()).collect();
        if let Some(start) = search.judged.clone() {
            // The final gate's own worktree: it goes back to what the gate judged.
            self.pool.open(holder, &Checkout { branch: None, start, mode: Mode::Reset, adopt: true })?;
            return Ok(());
        }
        self.pool.release(holder, &kept_by)?;
        Ok(self.pool.unlink(holder)?)
    }
}
