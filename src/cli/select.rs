//! Which run, lane and agent the words of a command mean.

use std::collections::BTreeSet;
use std::iter;

use lanewright_model::event::{Event, Record};
use lanewright_model::{AgentName, LaneId, Plan, RunId};
use lanewright_store::{RunDirectory, StateDirectory, run_log};

use super::args::Name;
use super::runs::{did_you_mean, existing, listed, named_few, pinned_plan, unfinished_of, unknown};
use super::{Context, ExitStatus, Hint, Result};

/// A run, and what of it is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) run: RunId,
    pub(super) lane: Option<LaneId>,
    pub(super) agent: Option<AgentName>,
}

/// The run that is meant if none is named: the newest unfinished one, else the newest that was not rolled back.
#[derive(Debug, Clone)]
pub(super) struct DefaultRun {
    pub(super) run: RunId,
    /// The other unfinished runs, the newest first.
    pub(super) others: Vec<RunId>,
}

impl DefaultRun {
    pub(super) fn only(run: RunId) -> Self {
        Self { run, others: Vec::new() }
    }
}

pub(super) struct Selector<'a> {
    context: &'a Context,
    state: &'a StateDirectory,
}

impl<'a> Selector<'a> {
    pub(super) fn new(context: &'a Context, state: &'a StateDirectory) -> Self {
        Self { context, state }
    }

    /// The run that is named, else the only unfinished one; `purpose`: what is done to it.
    pub(super) fn unfinished(&self, name: Option<&Name>, purpose: &str) -> Result<RunId> {
        if let Some(name) = name {
            return self.named(name);
        }
        let mut runs: Vec<RunId> =
            unfinished_of(self.state, &self.state.log_summaries()?).into_iter().map(|(run, _)| run).collect();
        match runs.len() {
            1 => Ok(runs.remove(0)),
            0 if self.state.runs()?.is_empty() => Err(no_run(self.state)),
            0 => {
                let message = format!("no unfinished run in this repository; to {purpose} another one, name it");
                Err(ExitStatus::InvalidState.error(message).hint(listed(self.state)))
            }
            count => {
                let names = named_few(runs.iter().map(RunId::as_str));
                let message = format!("{count} runs are unfinished; name the one to {purpose}");
                Err(ExitStatus::Usage.error(message).hint(format!("the newest first: {names}")))
            }
        }
    }

    /// The run that is named, else the newest unfinished one, else the newest that was not rolled back.
    pub(super) fn run(&self, name: Option<&Name>) -> Result<RunId> {
        match name {
            Some(name) => self.named(name),
            None => Ok(self.chosen(self.default_run()?.ok_or_else(|| no_run(self.state))?)),
        }
    }

    /// The run that is named, else the newest that was not rolled back.
    pub(super) fn newest(&self, name: Option<&Name>) -> Result<RunId> {
        if let Some(name) = name {
            return self.named(name);
        }
        let logs = self.state.log_summaries()?.without_rolled_back();
        self.state.newest(&logs)?.ok_or_else(|| no_run(self.state))
    }

    pub(super) fn named(&self, name: &Name) -> Result<RunId> {
        match self.exactly(name)? {
            Some(run) => Ok(run),
            None => self.beginning_with(name)?.ok_or_else(|| self.unknown_run(name)),
        }
    }

    /// The same; where no run has the name, the name itself, for what is left of a run without a log.
    pub(super) fn named_or_lost(&self, name: &Name) -> Result<RunId> {
        let known = self.exactly(name)?.map_or_else(|| self.beginning_with(name), |run| Ok(Some(run)))?;
        known.or_else(|| RunId::new(name.as_str()).ok()).ok_or_else(|| self.unknown_run(name))
    }

    /// What the words `[RUN] [LANE] [AGENT]` mean, of which the first may be missing.
    pub(super) fn agent_target(&self, names: &[&Name]) -> Result<Target> {
        let (run, rest) = self.run_and_rest(names, |_| self.default_run())?;
        self.within(run, rest)
    }

    /// What the words `[RUN] [LANE]` mean, of which the first may be missing.
    pub(super) fn target(&self, names: &[&Name]) -> Result<Target> {
        self.target_within(names, |_| self.default_run())
    }

    /// The same with another run that is meant if none is named: the one that `default` finds for the name of a lane.
    pub(super) fn target_within(
        &self,
        names: &[&Name],
        default: impl FnOnce(Option<&Name>) -> Result<Option<DefaultRun>>,
    ) -> Result<Target> {
        let (run, rest) = self.run_and_rest(names, default)?;
        match rest {
            [lane, other, ..] => Err(self.one_lane_only(&run, lane, other)),
            rest => self.within(run, rest),
        }
    }

    /// Why two words cannot stand for a lane; the first is one or an error says so.
    fn one_lane_only(&self, run: &RunId, lane: &Name, other: &Name) -> anyhow::Error {
        let members = Members::of(self.state.run(run));
        match (members.lane(lane), members.lane(other)) {
            (None, _) => members.unknown_lane(lane),
            (Some(lane), Some(other)) => ExitStatus::Usage
                .error(format!("{lane} and {other} are two lanes, and this command takes one"))
                .hint("repeat it for each lane"),
            (Some(lane), None) => ExitStatus::Usage.error(format!("unexpected argument `{other}` after lane {lane}")),
        }
    }

    /// The run that the first of the words means, and the words that are left; the `default` one if that is a lane of it.
    fn run_and_rest<'n>(
        &self,
        names: &'n [&'n Name],
        default: impl FnOnce(Option<&Name>) -> Result<Option<DefaultRun>>,
    ) -> Result<(RunId, &'n [&'n Name])> {
        let Some((first, rest)) = names.split_first() else {
            return Ok((self.chosen(default(None)?.ok_or_else(|| no_run(self.state))?), &[]));
        };
        if let Some(run) = self.exactly(first)? {
            return Ok((run, rest));
        }
        let default = default(Some(first))?;
        if let Some(default) = &default
            && Members::of(self.state.run(&default.run)).lane(first).is_some()
        {
            return Ok((self.chosen(default.clone()), names));
        }
        match self.beginning_with(first)? {
            Some(run) => Ok((run, rest)),
            None => Err(self.neither(first, default)),
        }
    }

    /// What the words `[RUN] [LANE...]` or `[RUN] [LANE] [AGENT]` mean: of two words that are left the second is an agent of
    /// the first, unless it is a lane.
    pub(super) fn lanes(&self, names: &[&Name]) -> Result<(RunId, Vec<LaneId>, Option<AgentName>)> {
        let (run, rest) = self.run_and_rest(names, |_| self.default_run())?;
        let members = Members::of(self.state.run(&run));
        if let [lane, agent] = rest
            && members.lane(agent).is_none()
        {
            let target = self.within(run, &[*lane, *agent])?;
            return Ok((target.run, target.lane.into_iter().collect(), target.agent));
        }
        Ok((run, members.all(rest)?, None))
    }

    /// What the words `[RUN] [LANE...]` mean.
    pub(super) fn lanes_of(&self, names: &[&Name]) -> Result<(RunId, Vec<LaneId>)> {
        let (run, rest) = self.run_and_rest(names, |_| self.default_run())?;
        let lanes = Members::of(self.state.run(&run)).all(rest)?;
        Ok((run, lanes))
    }

    pub(super) fn default_run(&self) -> Result<Option<DefaultRun>> {
        let logs = self.state.log_summaries()?;
        let mut unfinished = unfinished_of(self.state, &logs).into_iter().map(|(run, _)| run);
        let Some(run) = unfinished.next() else {
            return Ok(self.state.newest(&logs.without_rolled_back())?.map(DefaultRun::only));
        };
        Ok(Some(DefaultRun { run, others: unfinished.collect() }))
    }

    /// The default run, where it is the one that is meant; a note says so if there are more unfinished ones.
    fn chosen(&self, default: DefaultRun) -> RunId {
        if !default.others.is_empty() {
            let names = named_few(default.others.iter().map(RunId::as_str));
            self.context.printer.note(format!("Run {}, the newest unfinished one. Others: {names}.", default.run));
        }
        default.run
    }

    fn exactly(&self, name: &Name) -> Result<Option<RunId>> {
        if name.is_latest() {
            return self.latest().map(Some);
        }
        let run = RunId::new(name.as_str()).ok();
        Ok(run.filter(|run| self.state.has(run)))
    }

    fn latest(&self) -> Result<RunId> {
        self.state.newest(&self.state.log_summaries()?)?.ok_or_else(|| no_run(self.state))
    }

    fn beginning_with(&self, name: &Name) -> Result<Option<RunId>> {
        only_beginning_with(name.as_str(), &self.state.runs()?)
    }

    /// The lane and the agent of `run` that `names` are.
    fn within(&self, run: RunId, names: &[&Name]) -> Result<Target> {
        let members = Members::of(self.state.run(&run));
        let lane =
            names.first().map(|name| members.lane(name).ok_or_else(|| members.unknown_lane(name))).transpose()?;
        let agent = match (&lane, names.get(1)) {
            (Some(lane), Some(name)) => Some(members.agent(lane, name)?),
            _ => None,
        };
        match names.get(2) {
            Some(name) => Err(ExitStatus::Usage.error(format!("unexpected argument `{name}`: there is no such run"))),
            None => Ok(Target { run, lane, agent }),
        }
    }

    fn unknown_run(&self, name: &Name) -> anyhow::Error {
        match RunId::new(name.as_str()) {
            Ok(run) => existing(self.state, &run).err().unwrap_or_else(|| no_run(self.state)),
            Err(error) => ExitStatus::Usage.error(error.to_string()),
        }
    }

    /// Why a word is neither a run nor a lane.
    fn neither(&self, name: &Name, default: Option<DefaultRun>) -> anyhow::Error {
        let Some(DefaultRun { run, .. }) = default else { return self.unknown_run(name) };
        let lanes: BTreeSet<LaneId> = Members::of(self.state.run(&run)).lanes().collect();
        let runs = self.state.runs().unwrap_or_default();
        let known: Vec<&str> = lanes.iter().map(LaneId::as_str).chain(runs.iter().map(RunId::as_str)).collect();
        let error =
            ExitStatus::InvalidState.error(format!("there is no run `{name}` here, and run {run} has no such lane"));
        let lanes = || named_few(lanes.iter().map(LaneId::as_str));
        let otherwise = || Some(format!("the lanes of run {run}: {}; {}", lanes(), listed(self.state)));
        did_you_mean(error, name.as_str(), &known, otherwise)
    }
}

impl Target {
    /// `LANE` or `LANE/AGENT`.
    pub(super) fn place(&self) -> String {
        let parts = [self.lane.as_ref().map(LaneId::as_str), self.agent.as_ref().map(AgentName::as_str)];
        parts.into_iter().flatten().collect::<Vec<_>>().join("/")
    }

    /// The lane, where a command needs one.
    pub(super) fn lane(&self, command: &str) -> Result<&LaneId> {
        self.lane.as_ref().ok_or_else(|| no_lane(&self.run, command))
    }
}

/// A command that needs a lane was given none.
pub(super) fn no_lane(run: &RunId, command: &str) -> anyhow::Error {
    let error = ExitStatus::Usage.error(format!("no lane is named; run {run} is meant"));
    error.hint(format!("name one: lanewright {command} {run} LANE"))
}

/// Refuses to choose a run where there is none.
pub(super) fn no_run(state: &StateDirectory) -> anyhow::Error {
    let message = match state.runs() {
        Ok(runs) if !runs.is_empty() => "every run in this repository is rolled back; name the one you mean",
        _ => "no runs in this repository yet",
    };
    ExitStatus::InvalidState.error(message).hint(listed(state))
}

/// The one of `runs` that begins with `start`, if any does.
pub(super) fn only_beginning_with(start: &str, runs: &[RunId]) -> Result<Option<RunId>> {
    let meant: Vec<&RunId> = runs.iter().filter(|run| run.as_str().starts_with(start)).collect();
    if meant.len() < 2 {
        return Ok(meant.first().copied().cloned());
    }
    let message = format!("`{start}` is the beginning of {} runs", meant.len());
    let candidates = named_few(meant.iter().map(|run| run.as_str()));
    Err(ExitStatus::Usage.error(message).hint(format!("the newest first: {candidates}")))
}

/// The lanes and agents of a run, by its plan, else by its log.
struct Members {
    directory: RunDirectory,
    plan: Option<Plan>,
}

impl Members {
    fn of(directory: RunDirectory) -> Self {
        Self { plan: pinned_plan(&directory), directory }
    }

    fn lane(&self, name: &Name) -> Option<LaneId> {
        self.lanes().find(|lane| lane.as_str() == name.as_str())
    }

    /// The lanes that `names` are, each once.
    fn all(&self, names: &[&Name]) -> Result<Vec<LaneId>> {
        let known = |name: &&Name| self.lane(name).ok_or_else(|| self.unknown_lane(name));
        let mut lanes = names.iter().map(known).collect::<Result<Vec<_>>>()?;
        let mut seen = BTreeSet::new();
        lanes.retain(|lane| seen.insert(lane.clone()));
        Ok(lanes)
    }

    fn lanes(&self) -> impl Iterator<Item = LaneId> {
        let planned = self.plan.iter().flat_map(|plan| &plan.lanes).map(|lane| lane.id.clone());
        planned.chain(self.records().filter_map(|record| record.event.lane().cloned()))
    }

    fn agent(&self, lane: &LaneId, name: &Name) -> Result<AgentName> {
        self.agents(lane).find(|agent| agent.as_str() == name.as_str()).ok_or_else(|| {
            let known: BTreeSet<AgentName> = self.agents(lane).collect();
            let known: Vec<&str> = known.iter().map(AgentName::as_str).collect();
            unknown(&format!("lane {lane}"), "agent", name.as_str(), &known)
        })
    }

    fn agents(&self, lane: &LaneId) -> impl Iterator<Item = AgentName> {
        let planned = self.plan.iter().flat_map(|plan| &plan.lanes).filter(move |known| known.id == *lane);
        let planned = planned.flat_map(|lane| &lane.agents).map(|agent| agent.name.clone());
        planned.chain(self.records().filter_map(move |record| match record.event {
            Event::JobPlanned { job, .. } if job.lane.as_ref() == Some(lane) => job.agent().cloned(),
            _ => None,
        }))
    }

    /// What can be read of the log, which is not read before the first record is asked for: only a run whose plan was
    /// replaced has lanes that the plan lacks.
    fn records(&self) -> impl Iterator<Item = Record> {
        let read = || run_log::read(&self.directory.log()).map(|contents| contents.records).unwrap_or_default();
        iter::once_with(read).flatten()
    }

    fn unknown_lane(&self, name: &Name) -> anyhow::Error {
        let lanes: BTreeSet<LaneId> = self.lanes().collect();
        unknown("the run", "lane", name.as_str(), &lanes.iter().map(LaneId::as_str).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::CliError;

    fn chosen(start: &str) -> Result<Option<RunId>> {
        let runs = ["P1-SL-AUTH-2", "P1-SL-AUTH-1", "P2"].map(|name| RunId::new(name).unwrap());
        only_beginning_with(start, &runs)
    }

    #[test]
    fn unique_prefix_selects_the_run() {
        assert_eq!(chosen("P2").unwrap().unwrap().as_str(), "P2");
        assert_eq!(chosen("P1-SL-AUTH-1").unwrap().unwrap().as_str(), "P1-SL-AUTH-1");
        assert_eq!(chosen("P3").unwrap(), None);
    }

    #[test]
    fn ambiguous_prefix_lists_its_runs() {
        let error = CliError::from(chosen("P1").unwrap_err());
        assert_eq!((error.status, error.message.as_str()), (ExitStatus::Usage, "`P1` is the beginning of 2 runs"));
        assert_eq!(error.hints, ["the newest first: P1-SL-AUTH-2, P1-SL-AUTH-1"]);
    }
}
