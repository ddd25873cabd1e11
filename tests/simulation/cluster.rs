//! Lanes that work on a cluster: nodes that die or are cut off, an exchange that is away, and a process here that is killed
//! again and again.
//!
//! The scheduler, the run loop and the logs of lanes are the real ones; the exchange is a map, in which a state replaces
//! another only where that is the one that is expected.

use std::cmp::Reverse;
mod bug;
mod engine;
mod poll;

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use lanewright_model::event::{Event, Incoming, Record, RunOutcome, RunStarted};
use lanewright_model::testing::empty_plan;
use lanewright_model::{ExecutorKind, ExecutorSettings, ExitCause, JobExit, LaneIndex, Plan, PlanParts};
use lanewright_model::{JobId, RunId, Timestamp};
use lanewright_schedule::RunLoop;
use lanewright_schedule::lane_log::{continued, lane_run};
use lanewright_schedule::{Action, LaneEnd, RunState};

use super::dice::Dice;
use super::faultless::{self, Forgetful, commit_name};
use super::plans::plain_lane;
use super::run_started::{owner, run_started};
pub use bug::PlacingBug;

const SECOND: i64 = 1000;

const MINUTE: i64 = 60 * SECOND;

/// The tasks of a lane, and how long each takes.
const WORK: (u32, i64) = (5, 2 * MINUTE);

/// Between two looks at the exchange, and between two questions to the engine.
const LOOKS: (i64, i64) = (5 * SECOND, 10 * SECOND);

/// The shortest time between two pushes of a job.
const REST: i64 = 30 * SECOND;

/// How long the process here lives, where it is killed, and how long it then takes to be resumed.
const LIFE: (i64, i64) = (100 * SECOND, 2 * SECOND);

/// When the exchange is away.
const OUTAGE: std::ops::Range<i64> = 30 * MINUTE..35 * MINUTE;

#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub lanes: u32,
    pub nodes: u32,
    /// How many in a hundred nodes are lost in an hour.
    pub losses: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Faults {
    None,
    /// Nodes die, the exchange is away for five minutes, the process here is killed every 100 seconds.
    Of(u64),
}

/// What a run came to.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub minutes: f64,
    pub placements: u32,
    pub lives: u32,
    pub most_refs: usize,
}

/// The own run of a lane, as the exchange has it.
#[derive(Clone)]
struct State {
    id: u64,
    log: Arc<Vec<Record>>,
    /// Who claimed it: a job, or whoever closed it.
    claim: Option<u64>,
    outcome: Option<RunOutcome>,
}

struct Job {
    lane: LaneIndex,
    number: u32,
    offer: u64,
    node: Option<u32>,
    /// What its next push expects on the exchange.
    expects: u64,
    /// For the engine; on a node that it only cannot reach the job works on.
    is_over: bool,
    is_dead: bool,
}

/// What happens at a moment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Moment {
    LookAtExchange,
    LookAtEngine,
    Wake,
    Start(u64),
    Push { job: u64, records: usize, is_last: bool },
    LoseNode,
    Die,
    Resume,
}

struct Cluster {
    size: Size,
    bug: Option<PlacingBug>,
    dice: Dice,
    now: i64,
    plan: Arc<Plan>,
    started: RunStarted,
    /// The process here; `None`: it is dead.
    run_loop: Option<RunLoop<Forgetful>>,
    durable: Vec<Record>,
    /// Those that were not copied, by lane; `None`: of all.
    own: BTreeMap<Option<LaneIndex>, Vec<Record>>,
    due: BinaryHeap<Reverse<(i64, u64, Moment)>>,
    moments: u64,
    commits: u64,
    waiting: BTreeSet<LaneIndex>,
    followed: BTreeMap<LaneIndex, u64>,
    exchange: BTreeMap<LaneIndex, State>,
    states: u64,
    jobs: BTreeMap<u64, Job>,
    /// What each job will have written, with the log that it began with.
    works: BTreeMap<u64, Arc<Vec<Record>>>,
    free: Vec<u32>,
    queue: BTreeSet<u64>,
    outcome: Outcome,
}

/// Runs the phase to its end.
///
/// # Errors
/// What did not hold.
pub fn run(size: Size, faults: Faults, bug: Option<PlacingBug>) -> Result<Outcome, String> {
    let settings = executor(size.nodes);
    let lane = |at| {
        let mut lane = plain_lane(at, vec![], WORK.0);
        (lane.executor, lane.retries) = (Some("main".to_owned()), 0);
        lane
    };
    let executors = [("main".to_owned(), settings)].into_iter().collect();
    let lanes = (0..size.lanes).map(lane).collect();
    let plan =
        Arc::new(Plan::new(PlanParts { lanes, executors, ..empty_plan() }).map_err(|error| format!("{error:?}"))?);
    let started = run_started(&plan, &commit_name(0), size.nodes);
    let seed = if let Faults::Of(seed) = faults { seed } else { 0 };
    let mut cluster = Cluster {
        size,
        bug,
        dice: Dice::new(seed),
        now: 0,
        run_loop: Some(RunLoop::new(Forgetful::default(), RunState::new(plan.clone()))),
        plan,
        started: started.clone(),
        durable: Vec::new(),
        own: BTreeMap::new(),
        due: BinaryHeap::new(),
        moments: 0,
        commits: 0,
        waiting: BTreeSet::new(),
        followed: BTreeMap::new(),
        exchange: BTreeMap::new(),
        states: 0,
        jobs: BTreeMap::new(),
        works: BTreeMap::new(),
        free: (0..size.nodes).collect(),
        queue: BTreeSet::new(),
        outcome: Outcome { minutes: 0.0, placements: 0, lives: 1, most_refs: 0 },
    };
    if faults != Faults::None {
        cluster.at(LIFE.0, Moment::Die);
        cluster.lose_a_node_later();
    }
    cluster.at(0, Moment::LookAtExchange);
    cluster.at(0, Moment::LookAtEngine);
    cluster.absorb(vec![Event::RunStarted(Box::new(started)).into()], vec![])?;
    cluster.work(faults != Faults::None)
}

impl Cluster {
    fn work(mut self, has_outage: bool) -> Result<Outcome, String> {
        loop {
            let Some(Reverse((now, _, moment))) = self.due.pop() else { return Err("a deadlock".to_owned()) };
            if now > 10_000 * MINUTE {
                return Err("the run does not end".to_owned());
            }
            self.now = now;
            let is_away = has_outage && OUTAGE.contains(&now);
            match moment {
                Moment::Push { .. } | Moment::Start(_) if is_away => self.at(OUTAGE.end - now + SECOND, moment),
                Moment::LookAtExchange => {
                    if self.run_loop.is_some() && !is_away {
                        self.place()?;
                        self.poll_exchange()?;
                    }
                    self.at(LOOKS.0, Moment::LookAtExchange);
                }
                Moment::LookAtEngine => {
                    if self.run_loop.is_some() && !is_away {
                        self.poll_engine()?;
                    }
                    self.at(LOOKS.1, Moment::LookAtEngine);
                }
                Moment::Wake => self.absorb(vec![], vec![])?,
                Moment::Start(job) => self.start(job)?,
                Moment::Push { job, records, is_last } => self.push(job, records, is_last)?,
                Moment::LoseNode => self.lose_a_node(),
                Moment::Die => self.die(),
                Moment::Resume => self.resume()?,
            }
            self.outcome.most_refs = self.outcome.most_refs.max(self.exchange.len());
            if let Some((_, code)) = self.run_loop.as_ref().and_then(|run_loop| run_loop.state().finished()) {
                return self.end(code);
            }
        }
    }

    fn end(mut self, code: u8) -> Result<Outcome, String> {
        let state = self.run_loop.as_ref().ok_or("dead")?.state();
        let is_merged = |lane: &LaneIndex| state.lane(*lane).end() == Some(&LaneEnd::Merged);
        let merged = self.plan.indices().filter(is_merged).count();
        if (merged, code) != (self.size.lanes as usize, 0) {
            let ends = self.plan.indices().map(|lane| (lane, state.lane(lane).end()));
            let other = ends.into_iter().find(|(_, end)| *end != Some(&LaneEnd::Merged));
            return Err(format!("{merged} lanes are merged, the exit code is {code}: {other:?}"));
        }
        if let Some(failed) = self.durable.iter().find(|it| matches!(it.event, Event::LaneFailed { .. })) {
            return Err(format!("a lane failed, though no agent did: {:?}", failed.event));
        }
        let times = |lane: LaneIndex| {
            let id = &self.plan.lane(lane).id;
            self.durable.iter().filter(|it| matches!(&it.event, Event::LaneMerged { lane, .. } if lane == id)).count()
        };
        let sample = self.plan.indices().step_by(1 + self.size.lanes as usize / 50);
        if let Some(lane) = sample.into_iter().find(|lane| times(*lane) != 1) {
            return Err(format!("{} was merged {} times", self.plan.lane(lane).id, times(lane)));
        }
        self.outcome.minutes = self.now as f64 / MINUTE as f64;
        Ok(self.outcome)
    }

    fn at(&mut self, after: i64, moment: Moment) {
        self.moments += 1;
        self.due.push(Reverse((self.now + after, self.moments, moment)));
    }

    /// What the process here takes in, and what it does at once; it is killed between any two steps of that.
    fn absorb(&mut self, events: Vec<Incoming>, finished: Vec<Action>) -> Result<(), String> {
        let (mut events, mut finished) = (events, finished);
        loop {
            let Some(run_loop) = &mut self.run_loop else { return Ok(()) };
            let now = Timestamp::from_unix_millis(self.now);
            let absorbed = run_loop.absorb(std::mem::take(&mut events), std::mem::take(&mut finished), now);
            let step = absorbed.map_err(|error| error.to_string())?;
            self.keep(step.records);
            let wake = step.wake_at.map(|at| at.unix_millis());
            for action in step.actions {
                match action {
                    Action::PlaceLane(lane) => drop(self.waiting.insert(lane)),
                    Action::FollowLane(lane) => self.follow(lane),
                    action => {
                        self.commits += 1;
                        let state = self.run_loop.as_ref().ok_or("dead")?.state();
                        if let Action::CleanLane(lane) = &action {
                            self.exchange.remove(lane);
                        }
                        let answer = faultless::answer(&action, state, &commit_name(self.commits));
                        events.extend(answer.into_iter().map(Incoming::from));
                        finished.push(action);
                    }
                }
            }
            if finished.is_empty() {
                if let Some(wake) = wake {
                    self.at((wake - self.now).max(1), Moment::Wake);
                }
                return Ok(());
            }
        }
    }

    fn keep(&mut self, records: Vec<Record>) {
        for record in records.iter().filter(|record| record.origin.is_none()) {
            let lane = record.event.lane().and_then(|lane| self.plan.find(lane));
            if lane.is_some() || matches!(record.event, Event::RunResumed { .. }) {
                self.own.entry(lane).or_default().push(record.clone());
            }
        }
        self.durable.extend(records);
    }

    /// What the log here has of a lane by itself, and of all of them.
    fn own(&self, lane: LaneIndex) -> Vec<Record> {
        let mut own: Vec<Record> =
            [None, Some(lane)].iter().filter_map(|key| self.own.get(key)).flatten().cloned().collect();
        own.sort_by_key(|record| record.seq);
        own
    }

    fn follow(&mut self, lane: LaneIndex) {
        let Some(run_loop) = &self.run_loop else { return };
        let placement = run_loop.state().lane(lane).placement();
        if let Some((_, ticket)) = placement.current().and_then(|current| current.job.as_ref()) {
            self.followed.insert(lane, ticket.parse().unwrap_or(0));
        }
    }

    /// Whether the process here dies now, at a moment of its choosing.
    fn dies(&mut self) -> bool {
        let dies = self.outcome.lives > 1 && self.dice.roll(400) == 0;
        if dies {
            self.stop();
            self.at(LIFE.1, Moment::Resume);
        }
        dies
    }

    fn place(&mut self) -> Result<(), String> {
        for lane in std::mem::take(&mut self.waiting) {
            let Some(state) = self.run_loop.as_ref().map(RunLoop::state) else { return Ok(()) };
            let number = state.lane(lane).placement().number();
            let offer = self.offer(lane, number)?;
            if self.dies() {
                return Ok(());
            }
            let ticket = self.submit(lane, number, offer)?;
            if self.dies() {
                return Ok(());
            }
            let id = self.plan.lane(lane).id.clone();
            let placed = Event::LanePlaced { lane: id, number, offer: commit_name(offer), ticket: ticket.to_string() };
            self.absorb(vec![placed.into()], vec![Action::PlaceLane(lane)])?;
        }
        Ok(())
    }

    fn offer(&mut self, lane: LaneIndex, number: u32) -> Result<u64, String> {
        let there = self.exchange.get(&lane).cloned();
        let known = there.as_ref().map(|state| state.log.clone()).unwrap_or_default();
        let is_this = |it: &Record| matches!(&it.event, Event::LaneOffered { number: this, .. } if *this == number);
        let knows = self.bug != Some(PlacingBug::OfferWithoutCompare);
        if let Some(there) = there.as_ref().filter(|_| knows && known.iter().any(is_this)) {
            return Ok(there.id);
        }
        let run = self.run_of(lane);
        let own = self.own(lane);
        let before: &[Record] = if knows { &known } else { &[] };
        let added = continued((&self.started, &self.plan), (&run, lane), before, &own);
        let log = Arc::new([before, &added].concat());
        self.replace(lane, State { id: 0, log, claim: None, outcome: None })
    }

    fn run_of(&self, lane: LaneIndex) -> RunId {
        lane_run(&self.started.run_id, &self.plan.lane(lane).id)
    }

    /// A new state of a lane. What was pushed is never lost: each continues the one before it.
    fn replace(&mut self, lane: LaneIndex, state: State) -> Result<u64, String> {
        self.states += 1;
        if let Some(before) = self.exchange.get(&lane)
            && !state.log.starts_with(&before.log)
        {
            return Err(format!("a state of {} lost what was pushed before", self.plan.lane(lane).id));
        }
        let at_work = self.exchange.get(&lane).filter(|before| before.outcome.is_none());
        let holder = at_work.and_then(|before| before.claim).filter(|holder| *holder > 0);
        if let Some(holder) = holder.filter(|holder| state.claim != Some(*holder) && state.claim != Some(0)) {
            return Err(format!("{} was taken from job {holder} without being closed", self.plan.lane(lane).id));
        }
        self.exchange.insert(lane, State { id: self.states, ..state });
        Ok(self.states)
    }

    fn stop(&mut self) {
        self.run_loop = None;
        self.waiting.clear();
        self.followed.clear();
    }

    fn die(&mut self) {
        if self.run_loop.is_some() {
            self.stop();
            self.at(LIFE.1, Moment::Resume);
        }
        self.at(LIFE.0, Moment::Die);
    }

    fn resume(&mut self) -> Result<(), String> {
        let mut state = RunState::new(self.plan.clone());
        for record in &self.durable {
            state.apply(record).map_err(|fault| format!("replay: {fault}"))?;
        }
        self.outcome.lives += 1;
        let number = state.resumes() + 1;
        let last = self.durable.last().map_or(0, |record| record.seq);
        self.run_loop = Some(RunLoop::new(Forgetful(last), state));
        self.absorb(vec![resumed(number).into()], vec![])
    }
}

fn resumed(number: u32) -> Event {
    Event::RunResumed {
        plan_sha256: None,
        pinned_sha256: None,
        number,
        owner: owner(0),
        timeout: None,
        budget: None,
        message: String::new(),
        message_for: None,
        lanes: vec![],
        retried: vec![],
        follow: None,
        level: None,
    }
}

/// The end of a job that nothing is known of any more.
fn lost(job: &JobId) -> Event {
    let moment = Timestamp::from_unix_millis(0);
    let exit = JobExit {
        cause: ExitCause::Stopped,
        exit_code: 143,
        command: job.to_string(),
        started_at: moment,
        finished_at: moment,
        tail: vec![],
        notes: String::new(),
    };
    Event::JobExited { job: job.clone(), exit, report: None, reading: None, transcript: None }
}

fn executor(max_lanes: u32) -> ExecutorSettings {
    ExecutorSettings {
        kind: ExecutorKind::Slurm,
        partition: None,
        account: None,
        qos: None,
        arguments: vec![],
        context: None,
        namespace: None,
        image: None,
        service_account: None,
        secret: None,
        pod_patch: Default::default(),
        cache: None,
        output: None,
        program: None,
        environment: Default::default(),
        max_lanes: std::num::NonZeroU32::new(max_lanes),
    }
}
