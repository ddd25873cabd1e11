//! One simulated run: a run_loop, its actions under way, crashes, and what must hold throughout.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lanekeeper::engine::run_loop::{Log, RunLoop, Step};
use lanekeeper::event::{Event, LaneStage, Place, Record, RunMoved, RunOutcome, RunStarted, StopReason};
use lanekeeper::model::{CommitId, ExitCause, FailureKind, JobId, JobRole, LaneId, LaneIndex, MergeMode, Timestamp};
use lanekeeper::schedule::{Action, AgentStep, LaneEnd, RunState};

use super::beginning::{owner, run_started};
use super::bugs::{Bug, event_as_seen, plan_as_seen, record_as_kept};
use super::dice::Dice;
use super::plans::{Script, random_plan};
use super::world::World;

/// What a run came to: for each lane one word, and the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    pub lanes: Vec<&'static str>,
    pub code: u8,
    pub integrated: BTreeSet<String>,
}

pub struct Simulation {
    world: World,
    crashes: u32,
    /// How often the user still asks the run, or one of its lanes, to stop.
    stops: u32,
    /// The run, or a lane, was asked to stop since it was last resumed.
    is_stopping: bool,
    run_loop: RunLoop<Memory>,
    under_way: Vec<UnderWay>,
    wake_at: Option<Timestamp>,
    late: Vec<Event>,
    /// Whether people answer while the run continues; else once it has ended for want of an answer.
    answered_live: bool,
    /// How long opening a worktree takes at least.
    opening: i64,
    /// The user does something in one of so many steps.
    busy: u32,
    /// How many records the world was told of.
    learned: usize,
}

/// Attempts that ended well and whose work is in a worktree only.
fn uncommitted(state: &RunState) -> Vec<JobId> {
    let of_lane = |lane: LaneIndex| {
        let plan = state.plan().lane(lane);
        let agents = plan.agents.iter().zip(state.lane(lane).agents());
        agents.filter(|(_, worker)| worker.step == AgentStep::Committing).map(|(agent, worker)| {
            let (agent, task) = (agent.name.clone(), agent.tasks[worker.task].id.clone());
            JobId { lane: Some(plan.id.clone()), role: JobRole::Attempt { agent, task }, number: worker.attempt }
        })
    };
    state.plan().indices().flat_map(of_lane).collect()
}

struct UnderWay {
    action: Action,
    /// The lane's branch when the action was prepared: a real merge reads it first and moves it last.
    lane_branch: Option<CommitId>,
    acts_at: i64,
    answers_at: i64,
    answer: Option<Vec<Event>>,
}

/// A log whose last records may not survive.
#[derive(Default)]
pub struct Memory {
    durable: Vec<Record>,
    waiting: Vec<Record>,
    next: u64,
    bug: Option<Bug>,
}

impl Log for Memory {
    type Error = std::convert::Infallible;

    fn append(&mut self, at: Timestamp, event: &Event) -> Result<Record, Self::Error> {
        self.next += 1;
        let record = Record { seq: self.next, at, event: event.clone() };
        self.waiting.extend(record_as_kept(record.clone(), self.bug));
        Ok(record)
    }

    fn sync(&mut self) -> Result<(), Self::Error> {
        if self.bug != Some(Bug::ActBeforeSync) {
            self.durable.append(&mut self.waiting);
        }
        Ok(())
    }
}

/// How long opening a worktree takes in some of the runs, in milliseconds.
const SLOW: i64 = 300;

const MAX_PARALLEL: u32 = 3;

/// Why a lane is blocked until the user has done something.
const USERS_TURN: &[&str] = &["cannot be kept", "the user is in the way", "git operation in progress"];

pub fn simulate(seed: u64, crashes: u32, bug: Option<Bug>) -> Result<Ending, String> {
    let mut dice = Dice::new(seed);
    let plan = Arc::new(random_plan(&mut dice));
    // The world's dice are shared by the disturbed and the undisturbed run of a seed only as far as the script goes.
    let world = World::new(plan.clone(), Script::new(seed), Dice::new(seed ^ u64::from(crashes) << 40), bug);
    let run_loop = RunLoop::new(Memory { bug, ..Memory::default() }, RunState::new(plan_as_seen(&plan, bug)));
    let mut simulation = Simulation {
        world,
        crashes,
        stops: crashes / 2,
        is_stopping: false,
        run_loop,
        under_way: Vec::new(),
        wake_at: None,
        late: Vec::new(),
        answered_live: seed.is_multiple_of(2),
        busy: if seed.is_multiple_of(5) { 5 } else { 60 },
        opening: if seed.is_multiple_of(3) { SLOW } else { 0 },
        learned: 0,
    };
    simulation.run().map_err(|trouble| format!("seed {seed}: {trouble}"))
}

impl Simulation {
    fn run(&mut self) -> Result<Ending, String> {
        let started = started(&self.world);
        self.take_in(vec![Event::RunStarted(Box::new(started))], vec![])?;
        for _ in 0..20_000 {
            if let Some((outcome, code)) = self.run_loop.state().finished() {
                let wants_more =
                    |it: &mut Self| Ok::<_, String>(it.answer_and_resume()? || it.make_way()? || it.resume_stopped()?);
                if outcome != RunOutcome::Done && wants_more(self)? {
                    continue;
                }
                return self.ending(code);
            }
            self.step()?;
        }
        Err(format!("the run does not end: {:?}", self.under_way.iter().map(|way| &way.action).collect::<Vec<_>>()))
    }

    fn step(&mut self) -> Result<(), String> {
        if self.crashes > 0 && self.world.dice.roll(25) == 0 {
            self.crashes -= 1;
            return self.crash();
        }
        if self.stops > 0 && self.world.dice.roll(25) == 0 {
            self.stops -= 1;
            return self.ask_to_stop();
        }
        if self.world.dice.roll(self.busy) == 0 {
            self.world.let_user_act();
        }
        if self.answered_live {
            self.answer_people()?;
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
        let next = next.ok_or("nothing is under way and the run is not over: a deadlock")?;
        self.world.now = self.world.now.max(next);
        self.world.let_time_pass();
        Ok(())
    }

    fn act(&mut self) {
        let now = self.world.now;
        for way in &mut self.under_way {
            if way.answer.is_some() || way.acts_at > now {
                continue;
            }
            match &way.action {
                Action::RunJob(job) => {
                    if !self.world.jobs.contains_key(job)
                        || self.world.bug == Some(Bug::StartTwice) && self.world.dice.roll(3) == 0
                    {
                        self.world.start(job);
                    }
                    if let Some((exit, report, reading)) = self.world.jobs[job].exit.clone() {
                        let job = job.clone();
                        way.answer = Some(vec![Event::JobExited { job, exit, report, reading, transcript: None }]);
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
        self.check_limits();
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
        if let Some((job, _)) = self.world.jobs.iter().find(|(_, job)| job.starts > 1) {
            let job = job.clone();
            self.world.complain(format!("{job} was started twice"));
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
        self.take_in(events, finished)
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

    fn take_in(&mut self, events: Vec<Event>, finished: Vec<Action>) -> Result<(), String> {
        let now = self.world.time();
        let step: Step = self.run_loop.absorb(events, finished, now).map_err(|error| error.to_string())?;
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
        match self.world.violations.first() {
            Some(violation) => Err(violation.clone()),
            None => Ok(()),
        }
    }

    fn durable(&self) -> Vec<Record> {
        self.run_loop.log().durable.clone()
    }

    /// The user stops the run, one lane of it, or its time limit passes.
    fn ask_to_stop(&mut self) -> Result<(), String> {
        let lanes = self.world.plan.lanes.len() as u32;
        let lane = self.world.dice.roll(2 * lanes);
        let lane = self.world.plan.lanes.get(lane as usize).map(|lane| lane.id.clone());
        let reasons = [StopReason::Interrupt, StopReason::Terminate, StopReason::Request, StopReason::Timeout];
        let reason = if lane.is_some() { StopReason::Request } else { reasons[self.world.dice.roll(4) as usize] };
        self.is_stopping = true;
        let force = self.world.dice.roll(3) == 0;
        self.take_in(vec![Event::StopRequested { lane, reason, force }], vec![])
    }

    /// Resumes a run that was stopped; says whether it was.
    fn resume_stopped(&mut self) -> Result<bool, String> {
        let stopped = std::mem::take(&mut self.is_stopping);
        if stopped {
            self.resume(self.durable())?;
        }
        Ok(stopped)
    }

    /// Lanekeeper dies; sometimes the machine with it. What was not durable may be gone, or half of it.
    fn crash(&mut self) -> Result<(), String> {
        if self.world.dice.roll(4) == 0 {
            self.world.lose_power();
        }
        let log = self.run_loop.log();
        let kept = self.world.dice.roll(1 + log.waiting.len() as u32) as usize;
        let mut records: Vec<Record> = log.durable.iter().chain(&log.waiting[..kept]).cloned().collect();
        if self.world.dice.roll(3) == 0 {
            self.move_elsewhere(&mut records)?;
        }
        self.resume(records)
    }

    /// The run is taken to another machine: what is written down there before anybody goes on with it.
    fn move_elsewhere(&mut self, records: &mut Vec<Record>) -> Result<(), String> {
        let mut state = RunState::new(plan_as_seen(&self.world.plan, self.world.bug));
        for record in records.iter() {
            state.apply(record).map_err(|fault| format!("replay: {fault}"))?;
        }
        let mut lost: Vec<JobId> = state.running_jobs().cloned().collect();
        lost.sort();
        let place = |host: &str| Place { host: host.into(), repository: "/r".into(), worktree_root: "/w".into() };
        let moved = RunMoved { from: place("ci"), to: place("desk"), slots: vec![] };
        self.world.lose_machine(&uncommitted(&state));
        let ended = self.world.lose_machine(&lost);
        for event in std::iter::once(Event::RunMoved(Box::new(moved))).chain(ended) {
            let seq = records.last().map_or(0, |record| record.seq) + 1;
            records.push(Record { seq, at: self.world.time(), event });
        }
        Ok(())
    }

    fn resume(&mut self, records: Vec<Record>) -> Result<(), String> {
        self.under_way.clear();
        self.is_stopping = false;
        self.wake_at = None;
        let bug = self.world.bug;
        let mut state = RunState::new(plan_as_seen(&self.world.plan, bug));
        for record in &records {
            let forgotten = bug == Some(Bug::NamesReused)
                && matches!(record.event, Event::JobPlanned { .. } | Event::JobExited { .. });
            if !forgotten {
                state.apply(record).map_err(|fault| format!("replay: {fault}"))?;
            }
        }
        self.world.examine(&state);
        if bug == Some(Bug::HoldForgotten) {
            forget_holds(&mut state, self.world.time());
        }
        let (next, number) = (records.last().map_or(0, |record| record.seq), state.resumes() + 1);
        self.run_loop = RunLoop::new(Memory { durable: records, waiting: vec![], next, bug }, state);
        self.take_in(
            vec![Event::RunResumed {
                plan_sha256: None,
                pinned_sha256: None,
                number,
                owner: owner(),
                timeout: None,
                budget: None,
                message: String::new(),
                message_for: None,
            }],
            vec![],
        )
    }

    /// People answer every open gate; says whether there was one.
    fn answer_people(&mut self) -> Result<bool, String> {
        let state = self.run_loop.state();
        let plan = state.plan().clone();
        let open = |lane| state.open_gates(lane).into_iter().map(move |gate| (lane, gate));
        let questions: Vec<_> = plan.indices().flat_map(open).collect();
        let answers: Vec<Event> =
            questions.into_iter().map(|(lane, gate)| self.world.answer(plan.lane(lane), gate)).collect();
        let asked = !answers.is_empty();
        self.take_in(answers, vec![])?;
        Ok(asked)
    }

    /// The same for a run that has ended because nobody answered.
    fn answer_and_resume(&mut self) -> Result<bool, String> {
        let asked = self.answer_people()?;
        if asked {
            self.resume(self.durable())?;
        }
        Ok(asked)
    }

    /// The user makes room for what could not be kept, or makes way for the integration branch, and resumes; says
    /// whether anything waited for that.
    fn make_way(&mut self) -> Result<bool, String> {
        self.world.user.make_way();
        let waits = self.run_loop.state().plan().indices().any(|lane| {
            let end = self.run_loop.state().lane(lane).end();
            matches!(end, Some(LaneEnd::Blocked(reason)) if USERS_TURN.iter().any(|why| reason.contains(why)))
        });
        if waits {
            self.resume(self.durable())?;
        }
        Ok(waits)
    }

    fn ending(&mut self, code: u8) -> Result<Ending, String> {
        self.check_ending()?;
        let state = self.run_loop.state();
        let word = |lane| match state.lane(lane).end() {
            Some(LaneEnd::Merged) => "merged",
            Some(LaneEnd::Failed(_)) => "failed",
            Some(LaneEnd::Blocked(_)) => "blocked",
            _ => "other",
        };
        let lanes = state.plan().indices().map(word).collect();
        Ok(Ending { lanes, code, integrated: self.world.integrated() })
    }

    fn check_ending(&self) -> Result<(), String> {
        let state = self.run_loop.state();
        for lane in self.world.plan.indices() {
            let merged = state.lane(lane).end() == Some(&LaneEnd::Merged);
            if self.world.script.merge() == MergeMode::Pr {
                self.check_proposal(lane, merged)?;
                continue;
            }
            let times = self.world.merges.iter().filter(|other| **other == lane).count();
            let id = &self.world.plan.lane(lane).id;
            if times != usize::from(merged) {
                return Err(format!("{id} was merged {times} times and is said to be {:?}", state.lane(lane).end()));
            }
            if merged && !self.world.integrated().is_superset(&self.world.pieces(lane)) {
                return Err(format!("work of {id} is not on the integration branch"));
            }
        }
        if self.world.jobs.values().any(|job| job.exit.is_none()) {
            return Err("a job outlived the run".to_owned());
        }
        self.check_sequences()?;
        self.check_tasks_done_once()
    }

    /// A lane that is over has one pull request, for its head, unless it changed nothing; and nobody moved the
    /// integration branch for it.
    fn check_proposal(&self, lane: LaneIndex, over: bool) -> Result<(), String> {
        let (state, id) = (self.run_loop.state().lane(lane), &self.world.plan.lane(lane).id);
        let changed = state.head() != state.base();
        match self.world.pulls.get(&lane) {
            Some((1, head)) if !over || state.head() == Some(head) => {}
            Some((count, _)) => return Err(format!("{id} has {count} pull requests, not one for its head")),
            None if over && changed => return Err(format!("{id} is over and has no pull request")),
            None => {}
        }
        match self.world.merges.is_empty() {
            true => Ok(()),
            false => Err("a lane was merged that was to be proposed".to_owned()),
        }
    }

    /// Of two lanes that keep an order the second never began while the first one was still to come.
    fn check_sequences(&self) -> Result<(), String> {
        let mut over: BTreeSet<LaneId> = BTreeSet::new();
        let plan = &self.world.plan;
        for record in self.durable() {
            match &record.event {
                Event::LaneMerged { lane, .. } | Event::LaneFailed { lane, .. } | Event::LaneBlocked { lane, .. } => {
                    over.insert(lane.clone());
                }
                Event::LaneMoved { lane, from: LaneStage::Waiting, .. } => {
                    let waits = |(first, then): &&(LaneIndex, LaneIndex)| {
                        plan.lane(*then).id == *lane && !over.contains(&plan.lane(*first).id)
                    };
                    if let Some((first, _)) = plan.sequences.iter().find(waits) {
                        return Err(format!("{lane} began before {} was over", plan.lane(*first).id));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Every task that passed ran to success exactly once for each time its work was asked for.
    fn check_tasks_done_once(&self) -> Result<(), String> {
        let mut passed: BTreeMap<(String, String), usize> = BTreeMap::new();
        for (id, job) in &self.world.jobs {
            let success =
                job.exit.as_ref().is_some_and(|(exit, ..)| exit.cause == ExitCause::Exited && exit.exit_code == 0);
            if let (JobRole::Attempt { agent, task }, true) = (&id.role, success)
                && agent.as_str() != "reviewer"
            {
                *passed.entry((format!("{:?}", id.lane), task.to_string())).or_default() += 1;
            }
        }
        let durable = self.durable();
        for ((lane, task), times) in passed {
            let asked_again = |record: &&Record| {
                let again = match &record.event {
                    Event::FailureNoted { task, failure, .. } => {
                        task.is_none() || matches!(failure.kind, FailureKind::Rejected | FailureKind::Idle)
                    }
                    _ => false,
                };
                again && format!("{:?}", record.event.lane().cloned()) == lane
            };
            let allowed = 1 + durable.iter().filter(asked_again).count();
            if times > allowed {
                return Err(format!("task {task} of {lane} was done {times} times, wanted {allowed}"));
            }
        }
        Ok(())
    }
}

/// Has every lane in progress end, so that the resume that follows hands out again what they hold.
fn forget_holds(state: &mut RunState, at: Timestamp) {
    for lane in state.plan().clone().indices() {
        if state.lane(lane).has_begun() && state.lane(lane).end().is_none() && !state.lane(lane).is_merged() {
            let lane = state.plan().lane(lane).id.clone();
            let event = Event::LaneBlocked { lane, reason: String::new() };
            state.apply(&Record { seq: 0, at, event }).unwrap();
        }
    }
}

fn started(world: &World) -> RunStarted {
    let extra = u32::from(world.bug == Some(Bug::OnePlaceTooMany));
    let mut started = run_started(&world.plan, &world.integration, MAX_PARALLEL + extra);
    started.options.merge = world.script.merge();
    started.options.must_haves = world.script.must_haves();
    started
}
