//! Offers lanes on the exchange, and has jobs started for them.

use std::collections::{BTreeMap, HashMap};

use lanewright_files::regular_file;
use lanewright_git::GitError;
use lanewright_model::event::{Event, Record, RunOutcome};
use lanewright_model::{CommitId, LaneId, LaneIndex, RunId};
use lanewright_programs::cluster::Order;
use lanewright_schedule::lane_log::{continued, lane_run};
use lanewright_store::run_log;

use super::cache_flag;
use super::error::{PlacementError, Result, with_causes};
use super::watch::{EXCHANGE, RUN_STATE, Watch, ended};
use crate::executor::crash::{CrashPoint, crash_point};
use crate::executor::placements::{Answer, PlacementTask};
use crate::state_sync::exchange::lane_run::{fetch_one, known, make, push_made, remember};
use crate::state_sync::{OwnPushes, PushNow, ReceivedState, Source, StateSyncError, state_reference};

/// The most lanes that are offered with one push and submitted before anything else is looked at.
const BURST: usize = 50;

/// A lane as a job may claim it.
struct Offer {
    task: PlacementTask,
    answer: Answer,
    state: ReceivedState,
    /// What the exchange has in its place; `None`: it has this offer already.
    replaces: Option<Option<CommitId>>,
}

impl Watch {
    /// Offers what waits, and has jobs started. What an exchange or an engine that is out does not take waits on.
    pub(super) fn place_waiting(&mut self) {
        let later = self.waiting.split_off(self.waiting.len().min(BURST));
        let burst = std::mem::replace(&mut self.waiting, later);
        self.has_more = !self.waiting.is_empty();
        if burst.is_empty() {
            return;
        }
        let there = self.ownership.runs();
        let Some(there) = self.tolerate(EXCHANGE, there) else { return self.waiting.extend(burst) };
        let there: HashMap<RunId, CommitId> = there.into_iter().collect();
        let mut offers = Vec::new();
        for (task, answer) in burst {
            match self.offer(&task, &there) {
                Ok((state, replaces)) => offers.push(Offer { task, answer, state, replaces }),
                Err(error) => self.postpone_or_refuse(task, answer, &error),
            }
        }
        for offers in self.pushed(offers) {
            self.submit(offers);
        }
    }

    /// What an outage keeps from being placed waits; what is wrong with it otherwise blocks the lane.
    fn postpone_or_refuse(&mut self, task: PlacementTask, answer: Answer, error: &PlacementError) {
        let without_answer = match error {
            PlacementError::State(StateSyncError::Git(GitError::RemoteLocked { .. })) => {
                Some(format!("lane {}", task.lane))
            }
            PlacementError::State(error) if error.is_outage() || matches!(error, StateSyncError::Taken { .. }) => {
                Some(EXCHANGE.to_owned())
            }
            PlacementError::Cluster(error) if error.is_outage() => Some(format!("executor {}", task.executor)),
            _ => None,
        };
        if let Some(subject) = without_answer {
            self.warn_once(&subject, error);
            return self.waiting.push((task, answer));
        }
        let unusable = self.unusable(&lane_run(&self.placing.started.run_id, &task.lane), error);
        let reason = format!("it cannot be placed: {}", unusable.unwrap_or_else(|| error.shown()));
        let blocked = Event::LaneBlocked { lane: task.lane.clone(), reason: reason.clone() };
        answer(vec![blocked.into(), ended(&task, Some(RunOutcome::Blocked), &reason).into()], true);
    }

    /// What may be claimed, by executor: what the exchange has already, and what is pushed now.
    fn pushed(&mut self, offers: Vec<Offer>) -> Vec<Vec<Offer>> {
        let (new, mut pushed): (Vec<Offer>, Vec<Offer>) =
            offers.into_iter().partition(|offer| offer.replaces.is_some());
        crash_point(CrashPoint::BeforeOffer);
        if !new.is_empty() && self.is_state_pushed() {
            pushed.extend(self.push_new(new));
        } else {
            self.waiting.extend(new.into_iter().map(|offer| (offer.task, offer.answer)));
        }
        crash_point(CrashPoint::Offered);
        let mut by_executor: BTreeMap<String, Vec<Offer>> = BTreeMap::new();
        for offer in pushed {
            by_executor.entry(offer.task.executor.clone()).or_default().push(offer);
        }
        by_executor.into_values().collect()
    }

    /// Has the run's own state pushed, so that a clone that pulls it knows of every offer. `false`: another clone has the run.
    fn is_state_pushed(&mut self) -> bool {
        let pushed = self.placing.state.as_ref().map_or(Ok(()), PushNow::push);
        self.tolerate(RUN_STATE, pushed.map_err(PlacementError::Other)).is_some()
    }

    /// Pushes all of them, or nothing if the exchange has another state of one of the lanes now. Where it refuses one, or
    /// cannot lock its ref, each is pushed for itself.
    fn push_new(&mut self, new: Vec<Offer>) -> Vec<Offer> {
        let states = new.iter().filter_map(|offer| Some((&offer.state, offer.replaces.as_ref()?.as_ref())));
        let error = match push_made(&mut self.ownership, &states.collect::<Vec<_>>()) {
            Ok(true) => return new,
            Ok(false) => {
                self.waiting.extend(new.into_iter().map(|offer| (offer.task, offer.answer)));
                return Vec::new();
            }
            Err(error) => error,
        };
        let is_about_one =
            matches!(error, StateSyncError::Git(GitError::RemoteLocked { .. } | GitError::PushRefused { .. }));
        if is_about_one && new.len() > 1 {
            return new.into_iter().flat_map(|offer| self.push_new(vec![offer])).collect();
        }
        let error = error.into();
        for offer in new {
            self.postpone_or_refuse(offer.task, offer.answer, &error);
        }
        Vec::new()
    }

    /// Has a job started for each offer, all of one executor.
    fn submit(&mut self, offers: Vec<Offer>) {
        let orders: Result<Vec<Order>> = offers.iter().map(|offer| self.order(offer)).collect();
        let tickets = orders.and_then(|orders| Ok(self.engine(&offers[0].task.executor)?.cluster.submit(&orders)));
        crash_point(CrashPoint::Submitted);
        let mut tickets = tickets.map(Vec::into_iter);
        for Offer { task, answer, state, .. } in offers {
            let ticket = match &mut tickets {
                Ok(tickets) => match tickets.next() {
                    Some(ticket) => ticket.map_err(PlacementError::from),
                    None => Err(PlacementError::Other("no answer".to_owned())),
                },
                Err(error) => Err(PlacementError::Other(with_causes(error))),
            };
            match ticket {
                Ok(ticket) => {
                    let (lane, number) = (task.lane.clone(), task.number);
                    answer(
                        vec![Event::LanePlaced { lane, number, offer: state.commit, ticket: ticket.0 }.into()],
                        true,
                    );
                }
                Err(error) => self.postpone_or_refuse(task, answer, &error),
            }
        }
    }

    fn order(&self, offer: &Offer) -> Result<Order> {
        let (task, run) = (&offer.task, &offer.state.manifest.run_id);
        let settings = &self.engine(&task.executor)?.settings;
        let resources = &self.placing.plan.lane(self.index(&task.lane)?).resources;
        let program = settings.program.as_deref().unwrap_or("lanewright");
        let (reference, offered) = (state_reference(run), offer.state.commit.as_str());
        let command = [program, "work", &self.placing.address, &reference, offered].map(str::to_owned);
        Ok(Order {
            name: self.name(run, task.number),
            comment: format!("{} {}", self.placing.started.run_id, task.lane),
            command: command.into_iter().chain(cache_flag(settings)).collect(),
            resources: resources.clone(),
        })
    }

    /// The lane's own run as it is to be worked on, and what the exchange has in its place unless it has that already.
    fn offer(
        &mut self,
        task: &PlacementTask,
        there: &HashMap<RunId, CommitId>,
    ) -> Result<(ReceivedState, Option<Option<CommitId>>)> {
        let (run, index) = (lane_run(&self.placing.started.run_id, &task.lane), self.index(&task.lane)?);
        let there = there.get(&run);
        let (repository, exchange) = (self.placing.repository.clone(), self.placing.exchange.clone());
        let mut before = known(&repository, &exchange, &run)?;
        self.read_log()?;
        if there.is_some() && there != before.as_ref().map(|before| &before.commit) {
            // An earlier life of this process pushed it and did not come to say so, or the job has claimed it since.
            let found = fetch_one(&repository, &exchange, &run)?;
            self.examined(&task.lane, &found, task.seen > 0)?;
            before = Some(found);
        }
        let log = before.as_ref().map(|before| before.log(&repository)).transpose()?.unwrap_or_default();
        let records = if log.is_empty() { Vec::new() } else { run_log::parse(&self.placing.directory.log(), &log)? };
        let is_this =
            |record: &Record| matches!(&record.event, Event::LaneOffered { number, .. } if *number == task.number);
        if let Some(before) = before.as_ref().filter(|_| there.is_some() && records.iter().any(is_this)) {
            remember(&repository, &exchange, before)?;
            return Ok((before.clone(), None));
        }
        // Nothing of an older state is in the run log where the lane has not begun, or was rolled back.
        let is_new = task.seen == 0;
        let before = before.filter(|_| !is_new);
        let (log, records) = if is_new { Default::default() } else { (log, records) };
        if !is_new && before.is_none() {
            return Err(PlacementError::Other(format!(
                "its state is gone from the exchange, and this clone has never had it; roll the lane back: lanewright \
                 rollback {} --lane {}",
                self.placing.started.run_id, task.lane
            )));
        }
        let facts = (&self.placing.started, self.placing.plan.as_ref());
        let added = continued(facts, (&run, index), &records, &self.records);
        let added = run_log::lines(&run, &self.placing.started.phase, &added);
        let log = [log, added.map_err(|error| PlacementError::Other(with_causes(&error)))?].concat();
        let plan = regular_file::read(self.placing.directory.plan()).map_err(|error| {
            PlacementError::Other(format!("the plan of the run cannot be read: {}", with_causes(&error)))
        })?;
        let made = make(&self.source(&run), &exchange, (&plan, log), before.as_ref())?;
        Ok((made, Some(there.cloned())))
    }

    pub(super) fn read_log(&mut self) -> Result<()> {
        let read = self.log.read(&self.placing.directory.log())?;
        if !read.continues {
            self.records.clear();
        }
        let is_wanted = |record: &Record| record.origin.is_none() || matches!(record.event, Event::JobPlanned { .. });
        self.records.extend(read.added.into_iter().filter(is_wanted));
        Ok(())
    }

    pub(super) fn index(&self, lane: &LaneId) -> Result<LaneIndex> {
        let index = self.placing.plan.find(lane);
        index.ok_or_else(|| PlacementError::Other(format!("the plan has no lane {lane}")))
    }

    fn source(&self, run: &RunId) -> Source {
        Source {
            repository: self.placing.repository.clone(),
            directory: self.placing.directory.clone(),
            run: run.clone(),
            host: self.placing.host.clone(),
            claim: None,
            pushes: OwnPushes::default(),
        }
    }
}
