//! One simulated run: a run loop, its actions under way, and what must hold throughout.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use lanewright_model::event::{Event, Incoming, Log, Record, RunOutcome, RunStarted};
use lanewright_model::{CommitId, Dollars, JobId, MergeMode, Timestamp, Transcript, Usage};
use lanewright_schedule::{Action, LaneEnd, LaneState, RunState};
use lanewright_schedule::{RunLoop, Step};

use super::bugs::{Bug, event_as_decided, event_as_seen, plan_as_seen, record_as_applied, record_as_kept};
use super::case::Case;
use super::disturbances::Disturbances;
use super::run_started::run_started;
use super::sleep::{LIMIT, Sleeps};
use super::story::Story;
use super::watch::checkpoints::Checkpoints;
use super::world::World;

/// What a run came to: for each lane one word, and the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    pub lanes: Vec<&'static str>,
    pub code: u8,
    pub integrated: BTreeSet<String>,
}

impl Ending {
    /// Whether it is what a run of the same seed came to; where the user skipped a lane, only its plan says what it must
    /// come to.
    pub fn agrees_with(&self, other: &Self) -> bool {
        self == other || [self, other].iter().any(|ending| ending.lanes.contains(&"skipped"))
    }
}

/// What names a piece that a person committed on a lane's branch.
pub const BY_HAND: &str = "/by hand/";

pub struct Simulation {
    pub world: World,
    /// What will still happen.
    pub left: Disturbances,
    pub sleeps: Sleeps,
    /// The run, or a lane, was asked to stop since it was last resumed.
    pub is_stopping: bool,
    pub run_loop: RunLoop<Memory>,
    pub under_way: Vec<UnderWay>,
    pub wake_at: Option<Timestamp>,
    /// Words that come once more.
    pub late: Vec<Event>,
    /// Whether people answer while the run continues; else once it has ended for want of an answer.
    answered_live: bool,
    /// How long opening a worktree takes at least.
    opening: i64,
    /// The user does something in one of so many steps.
    busy: u32,
    /// How many records the world was told of.
    learned: usize,
    /// Lanewright dies before the next records are synced.
    pub tears: bool,
    pub story: Story,
    /// How long the scheduler itself worked, for the bench.
    pub core: Duration,
}

pub struct UnderWay {
    action: Action,
    /// The lane's branch when the action was prepared: a real merge reads it first and moves it last.
    lane_branch: Option<CommitId>,
    acts_at: i64,
    answers_at: i64,
    answer: Option<Vec<Event>>,
}

impl UnderWay {
    pub fn put_off(&mut self, later: i64) {
        self.acts_at += later;
        self.answers_at += later;
    }
}

/// A log whose last records may not survive.
#[derive(Default)]
pub struct Memory {
    pub durable: Vec<Record>,
    pub waiting: Vec<Record>,
    next: u64,
    bug: Option<Bug>,
}

impl Memory {
    pub fn of(durable: Vec<Record>, next: u64, bug: Option<Bug>) -> Self {
        Self { durable, waiting: vec![], next, bug }
    }
}

impl Log for Memory {
    type Error = std::convert::Infallible;

    fn append(&mut self, at: Timestamp, incoming: &Incoming) -> Result<Record, Self::Error> {
        self.next += 1;
        let event = event_as_decided(incoming.event.clone(), self.bug);
        let record = Record { seq: self.next, at, event, origin: incoming.origin };
        self.waiting.extend(record_as_kept(record.clone(), self.bug));
        Ok(if self.bug.is_some() { record_as_applied(record, self.bug) } else { record })
    }

    fn sync(&mut self) -> Result<(), Self::Error> {
        if self.bug != Some(Bug::ActBeforeSync) {
            self.durable.append(&mut self.waiting);
        }
        Ok(())
    }
}

/// Far more than a run has.
pub const MOST_STEPS: u32 = 20_000;

/// How long opening a worktree takes in some of the runs, in milliseconds.
const SLOW: i64 = 300;

const MAX_PARALLEL: u32 = 3;

impl Simulation {
    pub fn new(case: &Case, story: Story) -> Self {
        let (seed, plan, bug) = (case.seed, case.plan.clone(), case.bug);
        let run_loop = RunLoop::new(Memory { bug, ..Memory::default() }, RunState::new(plan_as_seen(&plan, bug)));
        let checkpoints = seed.is_multiple_of(8).then(|| Checkpoints::new(&plan));
        let mut world = World::new(plan, case.script.clone(), case.dice.clone(), bug);
        world.watch.checkpoints = checkpoints;
        world.damages = case.disturbances.losses;
        Self {
            world,
            left: case.disturbances,
            sleeps: Sleeps::new(&case.dice),
            is_stopping: false,
            run_loop,
            under_way: Vec::new(),
            wake_at: None,
            late: Vec::new(),
            answered_live: seed.is_multiple_of(2),
            busy: if seed.is_multiple_of(5) { 5 } else { 60 },
            opening: if seed.is_multiple_of(3) { SLOW } else { 0 },
            learned: 0,
            tears: false,
            story,
            core: Duration::ZERO,
        }
    }

    pub fn run(&mut self) -> Result<Ending, String> {
        self.begin()?;
        for _ in 0..MOST_STEPS {
            if let Some(ending) = self.advance()? {
                return Ok(ending);
            }
        }
        Err(format!("the run does not end: {:?}", self.under_way.iter().map(|way| &way.action).collect::<Vec<_>>()))
    }

    pub fn begin(&mut self) -> Result<(), String> {
        let started = started(&self.world, self.left);
        self.world.watch.fail_fast = started.options.fail_fast;
        self.world.watch.budget = started.options.budget;
        self.world.watch.approvals.protects = !started.options.protect.is_empty();
        self.world.watch.finish.merges_here = started.options.merge == MergeMode::Local;
        self.absorb(vec![Event::RunStarted(Box::new(started))], vec![])
    }

    /// One step, or what the user does once the run has ended; how it ended, if nothing is left to do.
    pub fn advance(&mut self) -> Result<Option<Ending>, String> {
        match self.run_loop.state().finished() {
            None => self.step()?,
            Some((outcome, _)) if outcome != RunOutcome::Done && self.continue_run()? => {}
            Some((_, code)) => return self.ending(code).map(Some),
        }
        Ok(None)
    }

    fn step(&mut self) -> Result<(), String> {
        self.perhaps_sleep();
        if self.disturb()? {
            return Ok(());
        }
        if self.sleeps.unnoticed.is_some() {
            self.absorb(vec![], vec![])?;
            if self.run_loop.state().finished().is_some() {
                return Ok(());
            }
        }
        if self.world.dice.roll(self.busy) == 0 {
            let deed = self.world.let_user_act();
            self.story.note(self.world.now, || format!("the user acts: {deed:?}"));
        }
        if self.answered_live {
            self.answer_people()?;
        }
        if self.run_loop.state().finished().is_some() {
            return Ok(());
        }
        self.pass_time()?;
        self.act();
        self.answer()
    }

    /// Goes to the next moment at which something happens.
    fn pass_time(&mut self) -> Result<(), String> {
        let moment = |way: &UnderWay| match (&way.action, &way.answer) {
            (_, Some(_)) => way.answers_at,
            (Action::RunJob(job), None) => {
                self.world.jobs.get(job).map_or(way.acts_at, |known| known.ends_at.max(way.acts_at))
            }
            _ => way.acts_at,
        };
        let next = self.under_way.iter().map(moment).chain(self.wake_at.map(Timestamp::unix_millis)).min();
        // Until a time limit passes something else happens.
        let next = next.filter(|next| next - self.world.now < LIMIT.as_millis() as i64 / 2);
        let next = next.ok_or_else(|| format!("a deadlock: nothing is under way at {}", self.standing()))?;
        self.world.now = self.world.now.max(next);
        self.world.let_time_pass();
        Ok(())
    }

    fn act(&mut self) {
        let (now, mut starts) = (self.world.now, false);
        for way in &mut self.under_way {
            if way.answer.is_some() || way.acts_at > now {
                continue;
            }
            match &way.action {
                Action::RunJob(job) => {
                    if !self.world.jobs.contains_key(job)
                        || self.world.bug == Some(Bug::StartTwice) && self.world.dice.roll(3) == 0
                    {
                        self.world.start(job, self.run_loop.state());
                        starts = true;
                    }
                    if let Some((exit, report, reading)) = self.world.jobs[job].exit.clone() {
                        let job = job.clone();
                        let resumed = self.run_loop.state().resumes() > 0;
                        if !(resumed && self.world.bug == Some(Bug::TakeOverForgotten)) {
                            self.world.take_over(&job);
                        }
                        let limited_until = self.world.limited_until(&job);
                        let transcript =
                            job.is_attempt().then(|| Box::new(Transcript { limited_until, ..transcript() }));
                        way.answer = Some(vec![Event::JobExited { job, exit, report, reading, transcript }]);
                    }
                }
                Action::StopJob { job, force } => {
                    self.world.stop(job, *force);
                    if self.world.jobs[job].exit.is_some() {
                        way.answer = Some(vec![]);
                    } else {
                        way.acts_at = self.world.jobs[job].ends_at.max(now + 1);
                    }
                }
                action => {
                    way.answer = Some(self.world.carry_out(action, way.lane_branch.take(), self.run_loop.state()))
                }
            }
        }
        if starts {
            self.check_limits();
        }
    }

    fn check_limits(&mut self) {
        let attempts = self.world.running_attempts();
        if attempts > MAX_PARALLEL as usize {
            self.world.complain(format!("{attempts} attempts at once"));
        }
        let at_work = self.world.lanes_at_work();
        let heavy = at_work.iter().filter(|lane| !self.world.plan.lane(**lane).uses.is_empty()).count();
        if heavy > 1 {
            self.world.complain("two lanes in a pool of one");
        }
        if self.world.plan.clone().exclusions.iter().any(|(a, b)| at_work.contains(a) && at_work.contains(b)) {
            self.world.complain("two lanes that exclude each other at once");
        }
    }

    fn answer(&mut self) -> Result<(), String> {
        let now = self.world.now;
        let (ready, rest): (Vec<_>, Vec<_>) =
            self.under_way.drain(..).partition(|way| way.answer.is_some() && way.answers_at <= now);
        self.under_way = rest;
        let (mut events, mut finished) = (Vec::new(), Vec::new());
        for way in ready {
            for event in way.answer.into_iter().flatten() {
                if matches!(event, Event::JobExited { .. }) && self.world.dice.roll(10) == 0 {
                    self.late.push(event.clone());
                }
                events.push(event_as_seen(event, self.world.bug));
            }
            finished.push(way.action);
        }
        if self.world.dice.roll(6) == 0 {
            events.extend(self.late_words());
        }
        self.absorb(events, finished)
    }

    /// Words that were said before, once more; with a bug as if they were about what runs now.
    fn late_words(&mut self) -> Vec<Event> {
        let words = std::mem::take(&mut self.late);
        if self.world.bug != Some(Bug::FenceIgnored) {
            return words;
        }
        let running: Vec<JobId> = self.run_loop.state().running_jobs().cloned().collect();
        let renamed = |word: Event| match word {
            Event::JobExited { job, exit, report, reading, transcript } => {
                let now = running.iter().find(|now| now.lane == job.lane && now.role == job.role).cloned();
                Event::JobExited { job: now.unwrap_or(job), exit, report, reading, transcript }
            }
            word => word,
        };
        words.into_iter().map(renamed).collect()
    }

    pub fn absorb(&mut self, events: Vec<Event>, finished: Vec<Action>) -> Result<(), String> {
        let (now, began) = (self.world.time(), Instant::now());
        let events = self.sleeps.notice().into_iter().chain(events);
        let step: Step = self.run_loop.absorb(events, finished, now).map_err(|error| error.to_string())?;
        self.core += began.elapsed();
        if !step.records.is_empty() && std::mem::take(&mut self.tears) {
            return self.die_before_sync(step.records.len());
        }
        self.story.records(&step.records);
        let durable = &self.run_loop.log().durable;
        self.world.learn(&durable[self.learned.min(durable.len())..]);
        self.learned = durable.len();
        self.wake_at = step.wake_at;
        for action in step.actions {
            let slow = if matches!(action, Action::OpenWorktree { .. }) { self.opening } else { 0 };
            let acts_at = self.world.now + slow + i64::from(self.world.dice.roll(4));
            let answers_at = acts_at + i64::from(self.world.dice.roll(4));
            let lane_branch = self.world.lane_branch_of(&action);
            self.under_way.push(UnderWay { action, lane_branch, acts_at, answers_at, answer: None });
        }
        self.check_stops();
        match self.world.violations.first() {
            Some(violation) => Err(violation.clone()),
            None => Ok(()),
        }
    }

    /// What runs in a lane that is to stop is being stopped, as hard as that was asked for.
    fn check_stops(&mut self) {
        for job in self.run_loop.state().running_jobs().filter(|job| job.lane.is_some()) {
            let Some(force) = self.world.watch.stops.force(job.lane.as_ref()) else { continue };
            let stop = Action::StopJob { job: job.clone(), force };
            if !self.under_way.iter().any(|way| way.action == stop) {
                self.world.violations.push(format!("{job} is not stopped, by force: {force}"));
            }
        }
    }

    pub fn durable(&self) -> Vec<Record> {
        self.run_loop.log().durable.clone()
    }

    /// People answer every open gate; says whether there was one.
    pub fn answer_people(&mut self) -> Result<bool, String> {
        let state = self.run_loop.state();
        let plan = state.plan().clone();
        let open = |lane| state.open_gates(lane).into_iter().map(move |gate| (lane, gate));
        let questions: Vec<_> = plan.indices().flat_map(open).collect();
        let answers: Vec<Event> =
            questions.into_iter().map(|(lane, gate)| self.world.answer(plan.lane(lane), gate)).collect();
        let asked = !answers.is_empty();
        if asked {
            self.absorb(answers, vec![])?;
        }
        Ok(asked)
    }

    /// Where each lane that is not complete stands, with what its agents wait for.
    fn standing(&self) -> String {
        let state = self.run_loop.state();
        let open = state.plan().indices().map(|lane| state.lane(lane)).filter(|lane| !lane.is_complete());
        let steps = |lane: &LaneState| lane.agents().iter().map(|agent| agent.step.clone()).collect::<Vec<_>>();
        let words: Vec<String> =
            open.map(|lane| format!("{} {:?} {:?}", lane.stage(), lane.end(), steps(lane))).collect();
        words.join("; ")
    }

    fn ending(&mut self, code: u8) -> Result<Ending, String> {
        self.check_ending()?;
        let state = self.run_loop.state();
        let word = |lane| match state.lane(lane).end() {
            Some(LaneEnd::Merged) => "merged",
            Some(LaneEnd::Skipped) => "skipped",
            Some(LaneEnd::Failed(_)) => "failed",
            Some(LaneEnd::Blocked(_)) => "blocked",
            _ => "other",
        };
        let lanes: Vec<&str> = state.plan().indices().map(word).collect();
        let expected = self.world.expected();
        if (&lanes, code) != (&expected.0, expected.1) {
            return Err(format!("the run ended with {lanes:?} and {code}, not with {expected:?}"));
        }
        // What people committed is as random as when they did.
        let integrated = self.world.integrated();
        let integrated = integrated.iter().filter(|piece| !piece.contains(BY_HAND));
        let integrated = integrated.map(|piece| self.world.without_names(piece)).collect();
        Ok(Ending { lanes, code, integrated })
    }
}

fn started(world: &World, disturbances: Disturbances) -> RunStarted {
    let extra = u32::from(world.bug == Some(Bug::OnePlaceTooMany));
    let mut started = run_started(&world.plan, &world.git.integration, MAX_PARALLEL + extra);
    started.options.merge = world.script.merge();
    started.options.follow = world.script.follow();
    started.options.fail_fast = disturbances.fail_fast;
    started.options.budget = disturbances.budget;
    started.options.timeout = Some(LIMIT);
    started.options.must_haves = world.script.must_haves();
    started.options.protect = world.script.protect();
    started
}

/// What an attempt costs: a dollar each.
fn transcript() -> Transcript {
    let usage = Usage { cost: Dollars::new(1.0), ..Usage::default() };
    Transcript { usage, ..Transcript::default() }
}
