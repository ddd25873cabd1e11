//! The thread that places lanes and follows them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use lanewright_model::event::{Event, Incoming, Record, RunOutcome};
use lanewright_model::{LaneId, RunId};
use lanewright_programs::cluster::{OrderName, Ticket};
use lanewright_schedule::lane_log::lane_run;
use lanewright_store::run_log::DurableLog;
use lanewright_store::{Request, requests};

use super::error::{PlacementError, Result};
use super::forced_stop::Unanswered;
use super::{Engine, Placing};
use crate::executor::placements::{Answer, Operation, PlacementTask};
use crate::state_sync::{Ownership, ReceivedState, StateSyncError};

/// Between two looks at the exchange: twenty times as long as one takes, within these bounds.
const REFS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// Between two questions to the engines: twice as long each time, from the first to the second, or from as long as many
/// jobs take, once a job was submitted or has ended.
const ENGINE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// With this number of jobs or more the engines are asked in the longest interval.
const MANY: u32 = 200;

/// How long each look at the exchange may take once the stop of the run was forced.
const HURRIED: Duration = Duration::from_secs(3);

/// What is said not to answer where the exchange does not.
pub(super) const EXCHANGE: &str = "the exchange";
pub(super) const RUN_STATE: &str = "the state of the run";

pub(super) struct Watch {
    pub(super) placing: Placing,
    unanswered: Unanswered,
    pub(super) log: DurableLog,
    /// What the run log has and was not copied into it, and the names of all jobs.
    pub(super) records: Vec<Record>,
    pub(super) waiting: Vec<(PlacementTask, Answer)>,
    /// Whether some of them were not tried yet.
    pub(super) has_more: bool,
    pub(super) followed: BTreeMap<LaneId, Followed>,
    pub(super) over: Vec<PlacementTask>,
    pub(super) refs_due: Instant,
    pub(super) engine_due: Instant,
    pub(super) engine_pause: Duration,
    pub(super) ownership: Ownership,
    /// Whether another clone has the run: nothing is placed or followed any more.
    pub(super) is_taken: bool,
    has_cancelled: bool,
    /// What does not answer, or refuses, and the reason that was last shown.
    pub(super) failures: HashMap<String, String>,
    /// Executors, and the reasons that were noted why jobs of them wait.
    pub(super) noted: HashSet<(String, String)>,
}

pub(super) struct Followed {
    pub(super) task: PlacementTask,
    pub(super) answer: Answer,
    /// Requests to stop it: by force, and what gets the answer that it has ended.
    pub(super) stops: Vec<(bool, Answer)>,
    pub(super) run: RunId,
    pub(super) name: OrderName,
    pub(super) ticket: Ticket,
    pub(super) state: Option<ReceivedState>,
    pub(super) files: HashSet<String>,
    pub(super) seen: u64,
    /// Since when the engine does not know the job.
    pub(super) absent: Option<Instant>,
    /// Why the job waits, and since when for this reason.
    pub(super) waits: Option<(String, Instant)>,
    /// What was noted last as keeping its job from starting, unless it is over.
    pub(super) stuck: Option<String>,
}

impl Watch {
    pub(super) fn new(placing: Placing, unanswered: Unanswered) -> Self {
        let now = Instant::now();
        let since = (placing.host.as_str(), placing.since);
        let ownership = Ownership::new(&placing.repository, &placing.exchange, &placing.started.run_id, since);
        Self {
            placing,
            unanswered,
            log: DurableLog::default(),
            records: Vec::new(),
            waiting: Vec::new(),
            has_more: false,
            followed: BTreeMap::new(),
            over: Vec::new(),
            refs_due: now,
            engine_due: now,
            engine_pause: ENGINE.0,
            ownership,
            is_taken: false,
            has_cancelled: false,
            failures: HashMap::new(),
            noted: HashSet::new(),
        }
    }

    pub(super) fn work(mut self, inbox: &Receiver<(PlacementTask, Answer)>) {
        while self.receive(inbox) {
            if self.unanswered.is_ending() {
                self.limit_time(HURRIED);
            }
            if self.is_taken {
                self.cancel_all();
                continue;
            }
            if self.has_run() {
                self.place_waiting();
            }
            if self.refs_due <= Instant::now() {
                let began = Instant::now();
                if self.has_run() {
                    self.collect();
                    self.check_owner();
                    self.forget();
                }
                self.refs_due = Instant::now() + (20 * began.elapsed()).clamp(REFS.0, REFS.1);
            }
            if self.engine_due <= Instant::now() {
                self.engine_pause = (2 * self.engine_pause).min(ENGINE.1);
                self.poll_engines();
                self.engine_due = Instant::now() + self.engine_pause;
            }
        }
        self.remove_finished_run();
    }

    /// Whether this process may place the lanes of the run. As long as there is none, it needs no right to.
    fn has_run(&mut self) -> bool {
        let is_idle = self.waiting.is_empty() && self.followed.is_empty() && self.over.is_empty();
        if is_idle || self.ownership.has_begun() {
            return true;
        }
        let begun = self.ownership.begin();
        self.tolerate(EXCHANGE, begun).unwrap_or(false)
    }

    /// Notices that another clone has the run where there is nothing to place or follow, and lanes work here.
    fn check_owner(&mut self) {
        if self.followed.is_empty() && self.ownership.has_begun() {
            let there = self.ownership.runs();
            self.tolerate(EXCHANGE, there);
        }
    }

    /// Has the run stopped, and answers everything: its lanes are another process's.
    fn cancel_all(&mut self) {
        if !std::mem::replace(&mut self.has_cancelled, true) {
            let stop = Request::Stop { lane: None, force: true };
            if let Err(error) = requests::submit(&self.placing.directory.requests(), &stop) {
                tracing::warn!("the run cannot be stopped: {error}");
            }
        }
        let answer_with_end = |task: &PlacementTask, answer: &Answer, mut news: Vec<Incoming>| {
            news.push(ended(task, None, "another clone has the run").into());
            answer(news, true);
        };
        for followed in std::mem::take(&mut self.followed).into_values() {
            let state = followed.state.as_ref();
            let cut_off = state.map(|state| self.cut_off(&followed.task.lane, state)).unwrap_or_default();
            answer_with_end(&followed.task, &followed.answer, cut_off);
            followed.stops.iter().for_each(|(_, answer)| answer(Vec::new(), true));
        }
        let waiting = std::mem::take(&mut self.waiting);
        waiting.iter().for_each(|(task, answer)| answer_with_end(task, answer, Vec::new()));
        (self.has_more, self.refs_due) = (false, Instant::now() + Duration::from_secs(3600));
        self.engine_due = self.refs_due;
    }

    /// Takes what arrived, or waits for the next look; `false`: nothing can arrive any more.
    fn receive(&mut self, inbox: &Receiver<(PlacementTask, Answer)>) -> bool {
        let due = if self.has_more { Instant::now() } else { self.refs_due.min(self.engine_due) };
        let mut next = inbox.recv_timeout(due.saturating_duration_since(Instant::now()));
        loop {
            match next {
                Ok((task, answer)) => self.take(task, answer),
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
            next = inbox.recv_timeout(Duration::ZERO);
        }
    }
}

impl Watch {
    fn take(&mut self, task: PlacementTask, answer: Answer) {
        let lane = task.lane.clone();
        match task.operation.clone() {
            Operation::Place => self.waiting.push((task, answer)),
            Operation::Follow { ticket, .. } => {
                let followed = self.follow(task, answer, Ticket(ticket));
                self.followed.insert(lane, followed);
                self.refs_due = Instant::now();
                self.poll_engines_earlier();
            }
            Operation::Forget => self.over.push(task),
            Operation::Stop { force } => {
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

    /// From now on no question to the exchange takes longer than `limit`.
    pub(super) fn limit_time(&mut self, limit: Duration) {
        self.placing.exchange = self.placing.exchange.clone().within(limit);
        self.ownership.limit_time(limit);
    }

    pub(super) fn poll_engines_earlier(&mut self) {
        let jobs = u32::try_from(self.followed.len()).unwrap_or(MANY);
        self.engine_pause = (ENGINE.1 * jobs.min(MANY) / MANY).max(ENGINE.0);
        self.engine_due = self.engine_due.min(Instant::now() + self.engine_pause);
    }

    fn follow(&self, task: PlacementTask, answer: Answer, ticket: Ticket) -> Followed {
        let run = lane_run(&self.placing.started.run_id, &task.lane);
        let (name, seen) = (self.name(&run, task.number), task.seen);
        let stops = Vec::new();
        let files = HashSet::new();
        Followed {
            task,
            answer,
            stops,
            run,
            name,
            ticket,
            state: None,
            files,
            seen,
            absent: None,
            waits: None,
            stuck: None,
        }
    }

    pub(super) fn name(&self, run: &RunId, number: u32) -> OrderName {
        super::job_name(&self.placing.address, run, number)
    }

    /// What can fail for a while: `None` where it does, which is shown.
    pub(super) fn tolerate<T, E: Into<PlacementError>>(&mut self, subject: &str, done: Result<T, E>) -> Option<T> {
        match done {
            Ok(done) => {
                self.failures.remove(subject);
                Some(done)
            }
            Err(error) => {
                self.warn_once(subject, &error.into());
                None
            }
        }
    }

    /// Shows that something failed which is tried again, once for each reason.
    pub(super) fn warn_once(&mut self, subject: &str, error: &PlacementError) {
        if let PlacementError::State(StateSyncError::Taken { run, by, remote, reference }) = error {
            (self.is_taken, self.refs_due) = (true, Instant::now());
            let (run, by, remote, reference) = (run.clone(), by.clone(), remote.clone(), reference.clone());
            let taken = StateSyncError::Taken { run, by, remote, reference };
            *self.placing.taken.lock().unwrap_or_else(PoisonError::into_inner) = Some(taken);
            return;
        }
        let reason = error.shown();
        if self.failures.insert(subject.to_owned(), reason.clone()) != Some(reason.clone()) {
            tracing::warn!("{subject}: {reason}; it is tried again");
        }
    }

    pub(super) fn engine(&self, name: &str) -> Result<&Engine> {
        let engine = self.placing.engines.get(name);
        engine.ok_or_else(|| PlacementError::Other(format!("executor `{name}` is not defined")))
    }
}

pub(super) fn ended(task: &PlacementTask, outcome: Option<RunOutcome>, reason: &str) -> Event {
    let (lane, number) = (task.lane.clone(), task.number);
    Event::PlacementEnded { lane, number, outcome, reason: reason.to_owned() }
}
