//! The thread that places lanes and follows them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::lane_log::{continued, lane_run, news};
use super::{Engine, Placing, cache_flag};
use crate::cluster::{Cancel, Ending, Job, Order, OrderName, Sighting, Ticket};
use crate::event::{Event, Incoming, Record, RunOutcome};
use crate::executor::elsewhere::{Answer, Errand, What};
use crate::fs::regular_file;
use crate::git::{GitError, point_reference};
use crate::model::{CommitId, ExitCause, JobExit, LaneId, LaneIndex, RunId, Timestamp};
use crate::schedule::RunState;
use crate::state_sync::lane_run::{drop_all, fetch_all, known, make, push_made, remember};
use crate::state_sync::{Claim, ReceivedState, Source, claim, runs_of, state_reference};
use crate::store::run_files;
use crate::store::run_log::{self, DurableLog};

/// Between two looks at the exchange: twenty times as long as one takes, within these bounds.
const REFS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// Between two questions to the engines: twice as long each time, from the first to the second, or from as long as many
/// jobs take, once a job was submitted or has ended.
const ENGINE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// With so many jobs the engines are never asked more often than in the longest interval.
const MANY: u32 = 200;

/// The most refs that one push removes.
const MOST_REMOVED: usize = 100;

/// So long an engine must not know a job before there is no hope for it.
const ABSENT: Duration = Duration::from_secs(30);

pub(super) struct Watch {
    placing: Placing,
    log: DurableLog,
    /// What the run log has of each lane; of all lanes what concerns them all.
    records: Vec<Record>,
    waiting: Vec<(Errand, Answer)>,
    followed: BTreeMap<LaneId, Followed>,
    /// What is to be forgotten.
    over: Vec<Errand>,
    refs_due: Instant,
    engine_due: Instant,
    engine_pause: Duration,
    /// What does not answer, or refuses, and the reason that was last shown.
    troubles: HashMap<String, String>,
}

/// A lane whose job is followed.
struct Followed {
    errand: Errand,
    answer: Answer,
    /// Requests to stop it: by force, and whom to tell that it has ended.
    stops: Vec<(bool, Answer)>,
    run: RunId,
    name: OrderName,
    ticket: Ticket,
    /// The state that was looked at last.
    state: Option<ReceivedState>,
    files: HashSet<String>,
    seen: u64,
    /// Since when the engine does not know the job.
    absent: Option<Instant>,
}

impl Watch {
    pub(super) fn new(placing: Placing) -> Self {
        let now = Instant::now();
        Self {
            placing,
            log: DurableLog::default(),
            records: Vec::new(),
            waiting: Vec::new(),
            followed: BTreeMap::new(),
            over: Vec::new(),
            refs_due: now,
            engine_due: now,
            engine_pause: ENGINE.0,
            troubles: HashMap::new(),
        }
    }

    pub(super) fn work(mut self, inbox: &Receiver<(Errand, Answer)>) {
        while self.gather(inbox) {
            self.place_waiting();
            if self.refs_due <= Instant::now() {
                let began = Instant::now();
                self.tolerate_look_at_refs();
                self.forget();
                self.refs_due = Instant::now() + (20 * began.elapsed()).clamp(REFS.0, REFS.1);
            }
            if self.engine_due <= Instant::now() {
                self.engine_pause = (2 * self.engine_pause).min(ENGINE.1);
                self.look_at_engines();
                self.engine_due = Instant::now() + self.engine_pause;
            }
        }
        self.forget();
    }

    /// Takes what arrived, or waits for the next look; `false`: nothing can arrive any more.
    fn gather(&mut self, inbox: &Receiver<(Errand, Answer)>) -> bool {
        let due = self.refs_due.min(self.engine_due);
        let mut next = inbox.recv_timeout(due.saturating_duration_since(Instant::now()));
        loop {
            match next {
                Ok((errand, answer)) => self.take(errand, answer),
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
            next = inbox.recv_timeout(Duration::ZERO);
        }
    }
}

impl Watch {
    fn take(&mut self, errand: Errand, answer: Answer) {
        let lane = errand.lane.clone();
        match errand.what.clone() {
            What::Place => self.waiting.push((errand, answer)),
            What::Follow { ticket, .. } => {
                let followed = self.follow(errand, answer, Ticket(ticket));
                self.followed.insert(lane, followed);
                self.refs_due = Instant::now();
                self.ask_engines_soon();
            }
            What::Forget => self.over.push(errand),
            What::Stop { force } => {
                if let Some(followed) = self.followed.get_mut(&lane) {
                    followed.stops.push((force, answer));
                    self.engine_due = Instant::now();
                } else if let Some(at) = self.waiting.iter().position(|(waiting, _)| waiting.lane == lane) {
                    let (placed, placing) = self.waiting.remove(at);
                    placing(vec![ended(&placed, None, "it was stopped before it was offered").into()], true);
                    answer(Vec::new(), true);
                } else {
                    answer(Vec::new(), true);
                }
            }
        }
    }

    /// There is something to expect of the engines.
    fn ask_engines_soon(&mut self) {
        let jobs = u32::try_from(self.followed.len()).unwrap_or(MANY);
        self.engine_pause = (ENGINE.1 * jobs.min(MANY) / MANY).max(ENGINE.0);
        self.engine_due = self.engine_due.min(Instant::now() + self.engine_pause);
    }

    fn follow(&self, errand: Errand, answer: Answer, ticket: Ticket) -> Followed {
        let run = lane_run(&self.placing.started.run_id, &errand.lane);
        let (name, seen) = (self.name(&run, errand.number), errand.seen);
        let stops = Vec::new();
        Followed { errand, answer, stops, run, name, ticket, state: None, files: HashSet::new(), seen, absent: None }
    }

    fn name(&self, run: &RunId, number: u32) -> OrderName {
        OrderName::of(&[&self.placing.address, run.as_str(), &number.to_string()])
    }

    fn tolerate_look_at_refs(&mut self) {
        let looked = self.look_at_refs();
        self.tolerate("the exchange", looked);
    }

    /// What can fail for a while is tried again; that it fails is shown once for each reason.
    fn tolerate<T>(&mut self, subject: &str, done: Result<T>) -> Option<T> {
        match done {
            Ok(done) => {
                self.troubles.remove(subject);
                Some(done)
            }
            Err(error) => {
                let reason = GitError::reason(&error);
                if self.troubles.insert(subject.to_owned(), reason.clone()) != Some(reason.clone()) {
                    tracing::warn!("{subject}: {reason}; it is tried again");
                }
                None
            }
        }
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

    /// Offers what waits, and has jobs started. What an exchange or an engine that is out does not take waits on.
    fn place_waiting(&mut self) {
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

    fn engine(&self, name: &str) -> Result<&Engine> {
        self.placing.engines.get(name).with_context(|| format!("the settings have no executor `{name}`"))
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

    fn index(&self, lane: &LaneId) -> Result<LaneIndex> {
        self.placing.plan.find(lane).with_context(|| format!("the plan has no lane {lane}"))
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

    fn look_at_refs(&mut self) -> Result<()> {
        if self.followed.is_empty() {
            return Ok(());
        }
        let there: HashMap<RunId, CommitId> = runs_of(&self.placing.exchange)?.into_iter().collect();
        let changed = self.followed.values().filter(|followed| {
            let seen = followed.state.as_ref().map(|state| &state.commit);
            there.get(&followed.run).is_some_and(|commit| Some(commit) != seen)
        });
        let changed: Vec<RunId> = changed.map(|followed| followed.run.clone()).collect();
        if changed.is_empty() {
            return Ok(());
        }
        for state in fetch_all(&self.placing.repository, &self.placing.exchange, &changed)? {
            self.look_at_state(state)?;
        }
        Ok(())
    }

    /// Copies what is new in a state, and ends the placement where it says that the run has ended.
    fn look_at_state(&mut self, state: ReceivedState) -> Result<()> {
        let run = state.manifest.run_id.clone();
        let Some((lane, mut followed)) = self.remove_run(&run) else { return Ok(()) };
        let copied = self.copy(&mut followed, &state, None);
        let outcome = state.manifest.outcome.filter(|_| state.manifest.claim.is_some());
        followed.state = Some(state);
        match (copied?, outcome) {
            (news, Some(outcome)) => self.end(followed, news, Some(outcome), "its run ended"),
            (news, None) => {
                (followed.answer)(news, false);
                self.followed.insert(lane, followed);
            }
        }
        Ok(())
    }

    /// Removes what lanes left that are merged. What cannot be removed is left to people: it harms nothing.
    fn forget(&mut self) {
        let over = std::mem::take(&mut self.over);
        for some in over.chunks(MOST_REMOVED) {
            let removed = self.remove(some);
            self.tolerate("the refs of merged lanes", removed);
        }
    }

    fn remove(&self, over: &[Errand]) -> Result<()> {
        let runs: Vec<RunId> = over.iter().map(|it| lane_run(&self.placing.started.run_id, &it.lane)).collect();
        for (errand, run) in over.iter().zip(&runs) {
            let names: Vec<OrderName> = (1..=errand.number).map(|number| self.name(run, number)).collect();
            self.engine(&errand.executor)?.cluster.forget(&names)?;
        }
        drop_all(&self.placing.repository, &self.placing.exchange, &runs)
    }

    fn remove_run(&mut self, run: &RunId) -> Option<(LaneId, Followed)> {
        let lane = self.followed.iter().find(|(_, followed)| followed.run == *run)?.0.clone();
        self.followed.remove_entry(&lane)
    }

    /// What the run log gets of a state; files, branches and refs are written first. `cut_off`: when its jobs ended, with
    /// their job.
    fn copy(
        &self,
        followed: &mut Followed,
        state: &ReceivedState,
        cut_off: Option<Timestamp>,
    ) -> Result<Vec<Incoming>> {
        let repository = &self.placing.repository;
        let log = state.log(repository)?;
        let records = run_log::parse(&self.placing.directory.log(), &log)?;
        run_files::restore(&self.placing.directory, &state.new_files(repository, &mut followed.files)?)?;
        remember(repository, &self.placing.exchange, state)?;
        for (name, commit) in &state.manifest.references {
            point_reference(repository, name, commit)?;
        }
        let mut news = news(&followed.errand.lane, &records, followed.seen);
        followed.seen = records.last().map_or(followed.seen, |record| record.seq.max(followed.seen));
        if let Some(at) = cut_off {
            let own = RunState::replay(&self.placing.plan, &records);
            let own = own.map_err(|(line, fault)| anyhow::anyhow!("line {line} of its log: {fault}"))?;
            news.extend(own.running_jobs().map(|job| {
                let exit = JobExit {
                    cause: ExitCause::Stopped,
                    exit_code: 143,
                    command: job.to_string(),
                    started_at: state.manifest.at,
                    finished_at: at,
                    tail: Vec::new(),
                    notes: format!("it ran on {}, and was cut off", state.manifest.host),
                };
                Incoming::from(Event::JobExited {
                    job: job.clone(),
                    exit,
                    report: None,
                    reading: None,
                    transcript: None,
                })
            }));
        }
        Ok(news)
    }

    /// The placement is over: the lane's branch is put where its own run left it, then everybody is told.
    fn end(&self, followed: Followed, mut news: Vec<Incoming>, outcome: Option<RunOutcome>, reason: &str) {
        let branch = self.placing.started.lane_branch(&followed.errand.lane);
        let head = followed.state.as_ref().and_then(|state| state.manifest.branches.get(&branch));
        if let Some(head) = head
            && let Err(error) = point_reference(&self.placing.repository, &format!("refs/heads/{branch}"), head)
        {
            tracing::warn!("branch {branch} cannot be moved to {head}: {error}");
        }
        news.push(ended(&followed.errand, outcome, reason).into());
        (followed.answer)(news, true);
        followed.stops.iter().for_each(|(_, answer)| answer(Vec::new(), true));
    }

    fn look_at_engines(&mut self) {
        let executors: HashSet<String> =
            self.followed.values().map(|followed| followed.errand.executor.clone()).collect();
        for executor in executors {
            let names = self.followed.values().filter(|followed| followed.errand.executor == executor);
            let names: Vec<OrderName> = names.map(|followed| followed.name.clone()).collect();
            let Ok(engine) = self.engine(&executor) else { continue };
            let jobs = engine.cluster.survey(&names).map_err(anyhow::Error::from);
            if let Some(jobs) = self.tolerate(&format!("executor {executor}"), jobs) {
                self.judge(&executor, &jobs);
            }
        }
    }

    fn judge(&mut self, executor: &str, jobs: &HashMap<OrderName, Job>) {
        let lanes: Vec<LaneId> = self.followed.keys().cloned().collect();
        for lane in lanes {
            let Some(followed) = self.followed.get_mut(&lane).filter(|it| it.errand.executor == executor) else {
                continue;
            };
            let sighting = jobs.get(&followed.name).map(|job| job.sighting.clone());
            followed.absent = followed.absent.or(Some(Instant::now())).filter(|_| sighting.is_none());
            let stop = followed.stops.iter().map(|(force, _)| *force).max();
            let waits = matches!(sighting, Some(Sighting::Waiting(_)));
            let over = match &sighting {
                Some(Sighting::Over(ending)) => Some(why(ending)),
                None if followed.absent.is_some_and(|since| since.elapsed() >= ABSENT) => {
                    Some("its executor does not know its job any more".to_owned())
                }
                _ => None,
            };
            let ticket = followed.ticket.clone();
            if let Some(why) = over {
                self.ask_engines_soon();
                self.close(&lane, &why);
            } else if stop == Some(true) || (stop.is_some() && waits) {
                self.close(&lane, "it was stopped");
                self.cancel(executor, &ticket, Cancel::Kill);
            } else if stop.is_some() {
                self.cancel(executor, &ticket, Cancel::Ask);
            }
        }
    }

    fn cancel(&mut self, executor: &str, ticket: &Ticket, how: Cancel) {
        let cancel = |engine: &Engine| engine.cluster.cancel(std::slice::from_ref(ticket), how);
        let cancelled = self.engine(executor).and_then(|engine| Ok(cancel(engine)?));
        self.tolerate(&format!("job {}", ticket.0), cancelled);
    }

    /// Takes the lane back. A job that was quicker, or works on although its engine has lost it, is fenced by it, or its
    /// work is collected.
    fn close(&mut self, lane: &LaneId, reason: &str) {
        self.tolerate_look_at_refs();
        let Some(mut followed) = self.followed.remove(lane) else { return };
        let closed = self.closed(&mut followed);
        match self.tolerate(&format!("lane {lane}"), closed).flatten() {
            Some(news) => self.end(followed, news, None, reason),
            None => drop(self.followed.insert(lane.clone(), followed)),
        }
    }

    /// `None`: somebody moved the state meanwhile.
    fn closed(&self, followed: &mut Followed) -> Result<Option<Vec<Incoming>>> {
        let (repository, exchange) = (&self.placing.repository, &self.placing.exchange);
        let state = match followed.state.take() {
            Some(state) => state,
            None => {
                fetch_all(repository, exchange, std::slice::from_ref(&followed.run))?.pop().context("it is gone")?
            }
        };
        let ours = Claim {
            id: format!("closed-{}", followed.errand.number),
            host: self.placing.host.clone(),
            at: state.manifest.at,
        };
        let closed = match state.manifest.claim.as_ref().is_some_and(|claim| claim.id == ours.id) {
            true => Ok(state.clone()),
            false => claim(repository, exchange, &state, &ours),
        };
        match closed {
            Ok(closed) => {
                let news = self.copy(followed, &closed, Some(closed.manifest.at))?;
                followed.state = Some(closed);
                Ok(Some(news))
            }
            Err(error) => {
                let fenced = matches!(error.downcast_ref(), Some(crate::state_sync::StateSyncError::Fenced { .. }));
                if fenced { Ok(None) } else { Err(error) }
            }
        }
    }
}

fn ended(errand: &Errand, outcome: Option<RunOutcome>, reason: &str) -> Event {
    let (lane, number) = (errand.lane.clone(), errand.number);
    Event::PlacementEnded { lane, number, outcome, reason: reason.to_owned() }
}

fn why(ending: &Ending) -> String {
    format!("its job {ending}")
}
