//! What the doctor finds about lanes on a cluster. The exchange is asked only for runs that have some and are not complete,
//! and an engine only about jobs that were silent for long. Nothing of it is damage: a resume deals with all of it.

use std::collections::HashMap;
use std::time::Duration;

use lanewright_engine::doctor::{Facts, Finding, Kind, RunFacts};
use lanewright_engine::placement::job_name;
use lanewright_engine::state_sync::Ownership;
use lanewright_engine::state_sync::exchange::lane_run::known;
use lanewright_model::text::shell_line;
use lanewright_model::{CommitId, LaneIndex, RunId};
use lanewright_programs::cluster::{OrderName, Sighting};
use lanewright_schedule::RunState;
use lanewright_schedule::lane_log::lane_run;

use crate::cli::executors::{engine, exchange, exchange_of, named};
use crate::cli::{CliError, RepositoryContext, Result, host, now};

/// How long an exchange may take to answer.
const LONGEST_ANSWER: Duration = Duration::from_secs(10);

/// After how long without a push a claim is silent, in milliseconds.
const SILENCE: i64 = 15 * 60 * 1000;

pub(crate) fn findings(within: &RepositoryContext, facts: &Facts) -> Vec<Finding> {
    let runs = facts.runs.iter().filter(|run| !run.held);
    let unfinished = runs.filter_map(|run| Some((run, run.expected.as_ref().filter(|it| !it.done())?.state.as_ref()?)));
    unfinished.flat_map(|(run, state)| of_run(within, run, state)).collect()
}

fn of_run(within: &RepositoryContext, run: &RunFacts, state: &RunState) -> Vec<Finding> {
    let placed = |lane: &LaneIndex| state.lane(*lane).placement().number() > 0;
    let lanes: Vec<LaneIndex> = state.plan().indices().filter(placed).collect();
    // A resume without an exchange says so.
    let Some(exchange) = exchange_of(within).ok().filter(|_| !lanes.is_empty()) else { return Vec::new() };
    let placed = PlacedRun { within, run, state, exchange };
    placed.findings(&lanes).unwrap_or_else(|error| {
        let reason = CliError::from(error).message;
        vec![placed.finding(Kind::ExchangeUnreachable, format!("it was not looked at: {reason}"), &placed.resume())]
    })
}

struct PlacedRun<'a> {
    within: &'a RepositoryContext,
    run: &'a RunFacts,
    state: &'a RunState,
    exchange: String,
}

impl PlacedRun<'_> {
    fn findings(&self, lanes: &[LaneIndex]) -> Result<Vec<Finding>> {
        let repository = &self.within.repository;
        let (remote, address) = exchange(self.within)?;
        let remote = remote.within(LONGEST_ANSWER);
        let mut ownership = Ownership::new(repository, &remote, &self.run.run, (&host(), now()));
        let there: HashMap<RunId, CommitId> = ownership.runs()?.into_iter().collect();
        let mut found = Vec::new();
        if ownership.is_taken()? {
            let evidence = "another clone continued the run and places its lanes".to_owned();
            found.push(self.finding(Kind::RunTaken, evidence, "a resume is refused here, and shows where"));
        }
        for &lane in lanes {
            let (id, lane_state) = (&self.state.plan().lane(lane).id, self.state.lane(lane));
            let own = lane_run(&self.run.run, id);
            let finding = match (lane_state.placement().current(), there.get(&own)) {
                (None, Some(_)) if lane_state.merged().is_some() || lane_state.placement().seen() == 0 => self.finding(
                    Kind::LaneStateLeft,
                    format!("the exchange still has the state {own}, which is not needed any more"),
                    &format!("the run removes it when it is done, or: {}", self.command("clean")),
                ),
                (Some(placement), None) if placement.job.is_some() => {
                    let job = placement.job.as_ref().map_or("", |(_, ticket)| ticket.as_str());
                    let evidence = format!("the exchange has no state {own}, and job {job} works on it");
                    self.finding(Kind::LaneStateMissing, evidence, &self.resume())
                }
                (Some(_), Some(there)) => {
                    let silent = known(repository, &remote, &own)?.filter(|state| state.commit == *there);
                    let silent = silent.map(|state| state.manifest).filter(|it| it.claim.is_some());
                    let since = silent.map(|manifest| manifest.at);
                    match since.filter(|at| now().unix_millis() - at.unix_millis() > SILENCE) {
                        Some(since) if !self.has_job(lane, &own, &address)? => {
                            let evidence =
                                format!("its job has pushed nothing since {since}, and is over for its engine");
                            self.finding(Kind::LaneClaimSilent, evidence, &self.resume())
                        }
                        _ => continue,
                    }
                }
                _ => continue,
            };
            found.push(finding.of_lane(id));
        }
        Ok(found)
    }

    fn has_job(&self, lane: LaneIndex, own: &RunId, address: &str) -> Result<bool> {
        let placement = self.state.lane(lane).placement();
        let Some(current) = placement.current() else { return Ok(false) };
        let settings = named(self.within, &current.executor)?;
        let engine = engine(&self.within.context, &current.executor, settings)?;
        let name: OrderName = job_name(address, own, placement.number());
        let jobs = engine.survey(std::slice::from_ref(&name))?;
        Ok(jobs.get(&name).is_some_and(|job| !matches!(job.sighting, Sighting::Over(_))))
    }

    fn finding(&self, kind: Kind, evidence: String, remedy: &str) -> Finding {
        Finding::of_exchange(kind, &self.run.run, &self.exchange, evidence, remedy)
    }

    fn resume(&self) -> String {
        format!("a resume looks again, and offers again what is gone: {}", self.command("resume"))
    }

    fn command(&self, name: &str) -> String {
        shell_line(["lanewright", name, self.run.run.as_str()])
    }
}
