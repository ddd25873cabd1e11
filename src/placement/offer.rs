//! Offers lanes on the exchange, and has jobs started for them.

use anyhow::{Context as _, Result};

use super::cache_flag;
use super::lane_log::{continued, lane_run};
use super::watch::{Watch, ended};
use crate::cluster::Order;
use crate::event::{Event, Record, RunOutcome};
use crate::executor::elsewhere::Errand;
use crate::fs::regular_file;
use crate::git::GitError;
use crate::model::{CommitId, LaneId, LaneIndex, RunId};
use crate::state_sync::lane_run::{fetch_all, known, make, push_made, remember};
use crate::state_sync::{Source, runs_of, state_reference};
use crate::store::run_log;

impl Watch {
    /// Offers what waits, and has jobs started. What an exchange or an engine that is out does not take waits on.
    pub(super) fn place_waiting(&mut self) {
        for (errand, answer) in std::mem::take(&mut self.waiting) {
            match self.place(&errand) {
                Ok(Some(event)) => answer(vec![event.into()], true),
                Ok(None) => self.waiting.push((errand, answer)),
                Err(error) => {
                    let reason = format!("it cannot be placed: {error:#}");
                    let blocked = Event::LaneBlocked { lane: errand.lane.clone(), reason: reason.clone() };
                    answer(vec![blocked.into(), ended(&errand, Some(RunOutcome::Blocked), &reason).into()], true);
                }
            }
        }
    }

    /// `None`: later.
    fn place(&mut self, errand: &Errand) -> Result<Option<Event>> {
        let offered = match self.offer(errand) {
            Err(error) if matches!(error.downcast_ref(), Some(GitError::Remote { .. })) => {
                return Ok(self.tolerate("the exchange", Err(error)));
            }
            offered => offered?,
        };
        let run = lane_run(&self.placing.started.run_id, &errand.lane);
        let order = self.order(errand, &run, &offered)?;
        let ticket = match self.engine(&errand.executor)?.cluster.submit(&[order]).remove(0) {
            Err(error) if error.is_outage() => {
                return Ok(self.tolerate(&format!("executor {}", errand.executor), Err(error.into())));
            }
            ticket => ticket.map_err(|error| anyhow::anyhow!("{error}; {}", error.remedy()))?,
        };
        let (lane, number) = (errand.lane.clone(), errand.number);
        Ok(Some(Event::LanePlaced { lane, number, offer: offered, ticket: ticket.0 }))
    }

    fn order(&self, errand: &Errand, run: &RunId, offer: &CommitId) -> Result<Order> {
        let settings = &self.engine(&errand.executor)?.settings;
        let resources = &self.placing.plan.lane(self.index(&errand.lane)?).resources;
        let program = settings.program.as_deref().unwrap_or("lanekeeper");
        let reference = state_reference(run);
        let command = [program, "work", &self.placing.address, &reference, offer.as_str()].map(str::to_owned);
        Ok(Order {
            name: self.name(run, errand.number),
            comment: format!("{} {}", self.placing.started.run_id, errand.lane),
            command: command.into_iter().chain(cache_flag(settings)).collect(),
            cpus: resources.cpus(),
            memory_mib: resources.memory_mib(),
            minutes: resources.minutes(),
        })
    }

    /// Pushes the lane's own run as it is to be worked on, unless that was done before; the commit that a job may claim.
    fn offer(&mut self, errand: &Errand) -> Result<CommitId> {
        let (run, index) = (lane_run(&self.placing.started.run_id, &errand.lane), self.index(&errand.lane)?);
        let there = runs_of(&self.placing.exchange)?.into_iter().find(|(there, _)| *there == run);
        let there = there.map(|(_, commit)| commit);
        let (repository, exchange) = (self.placing.repository.clone(), self.placing.exchange.clone());
        let mut before = known(&repository, &exchange, &run)?;
        if there.is_some() && there != before.as_ref().map(|before| before.commit.clone()) {
            // An earlier life of this process pushed it and did not come to say so, or the job has claimed it since.
            before = fetch_all(&repository, &exchange, std::slice::from_ref(&run))?.pop();
        }
        let log = before.as_ref().map(|before| before.log(&repository)).transpose()?.unwrap_or_default();
        let records = if log.is_empty() { Vec::new() } else { run_log::parse(&self.placing.directory.log(), &log)? };
        let is_this =
            |record: &Record| matches!(&record.event, Event::LaneOffered { number, .. } if *number == errand.number);
        if let Some(before) = before.as_ref().filter(|_| records.iter().any(is_this)) {
            remember(&repository, &exchange, before)?;
            return Ok(before.commit.clone());
        }
        self.read_log()?;
        let facts = (&self.placing.started, self.placing.plan.as_ref());
        let log = continued(facts, (&run, index), (log, &records), &self.records)?;
        let plan = regular_file::read(self.placing.directory.plan()).context("the plan of the run cannot be read")?;
        let made = make(&self.source(&run), &exchange, (&plan, log), before.as_ref())?;
        if !push_made(&repository, &exchange, &made, there.as_ref())? {
            anyhow::bail!("another process changed the state of lane {} on the exchange", errand.lane);
        }
        Ok(made.commit)
    }

    fn read_log(&mut self) -> Result<()> {
        let read = self.log.read(&self.placing.directory.log())?;
        if !read.continues {
            self.records.clear();
        }
        self.records.extend(read.added.into_iter().filter(|record| record.origin.is_none()));
        Ok(())
    }

    fn index(&self, lane: &LaneId) -> Result<LaneIndex> {
        self.placing.plan.find(lane).with_context(|| format!("the plan has no lane {lane}"))
    }

    fn source(&self, run: &RunId) -> Source {
        Source {
            repository: self.placing.repository.clone(),
            directory: self.placing.directory.clone(),
            run: run.clone(),
            host: self.placing.host.clone(),
            claim: None,
        }
    }
}
