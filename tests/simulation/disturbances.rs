//! What disturbs a simulated run: stops, crashes, limits, another machine, rollbacks, skips; and how it continues.

use std::time::Instant;

use lanewright_model::event::{Event, Place, Record, RunMoved, StopReason};
use lanewright_model::{Budget, Dollars, JobId, JobRole, LaneId, LaneIndex, Timestamp};
use lanewright_schedule::RunLoop;
use lanewright_schedule::{AgentStep, LaneEnd, RunState};

use super::bugs::{Bug, plan_as_seen, record_as_applied};
use super::run::{Memory, Simulation};
use super::run_started::owner;

/// Why a lane is blocked until the user has done something.
const USERS_TURN: &[&str] = &["cannot be kept", "the user is in the way", "git operation in progress", "then resume"];

/// Far more than a run that ends needs.
const MOST_RESUMES: u32 = 1_000;

/// After so many resumes people who have answered leave failed lanes out of the next one: each gives these fresh retries, so
/// that two lanes that keep failing could make people answer and resume without end.
const PATIENCE: u32 = 50;

/// How often a run is disturbed, and the limits that it has at first.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Disturbances {
    pub crashes: u32,
    /// Whether some of these are in the middle of a batch of records, of which only the first ones are on disk.
    pub torn: bool,
    /// How often the user asks the run, or one of its lanes, to stop.
    pub stops: u32,
    /// How often the user rolls a lane back before the run is resumed.
    pub rollbacks: u32,
    /// Whether those may be of merged lanes, and die between two steps.
    pub whole_rollbacks: bool,
    /// How often another program removes a lane's branch, which the resume restores, and how often the snapshot that an
    /// agent is to start from turns out to be damaged.
    pub losses: u32,
    /// How often an agent moves the integration branch under the user's checkout.
    pub plumbing: u32,
    /// How often the user skips a lane before the run is resumed, or after it has failed.
    pub skips: u32,
    /// How often a person commits on the branches of lanes that rest before the run is resumed.
    pub hands: u32,
    /// How often the user picks another candidate of a lane.
    pub picks: u32,
    /// How often the machine sleeps.
    pub sleeps: u32,
    /// The run stops at the first failure, until the user continues it without that.
    pub fail_fast: bool,
    pub budget: Budget,
}

impl Disturbances {
    pub fn new(seed: u64, crashes: u32) -> Self {
        let has = |every: u64| crashes > 0 && seed % every == 1;
        let budget = Budget { cost: Dollars::new((seed % 7) as f64).filter(|_| has(5)), tokens: None };
        let half = crashes / 2;
        // Those that came later leave seeds that once failed as they were.
        let kind = if crashes > 0 { seed % 8 } else { 8 };
        Self {
            crashes,
            torn: matches!(kind, 0 | 5 | 6),
            whole_rollbacks: matches!(kind, 2 | 6),
            losses: if matches!(kind, 3 | 6) { 1 + half } else { 0 },
            plumbing: if kind == 5 { 2 } else { 0 },
            stops: half,
            rollbacks: half,
            skips: 2 * u32::from(has(4)),
            hands: half,
            picks: crashes,
            sleeps: crashes,
            fail_fast: has(3),
            budget,
        }
    }
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

impl Simulation {
    /// Something happens to a run in progress; whether anything did.
    pub fn disturb(&mut self) -> Result<bool, String> {
        if self.left.crashes > 0 && self.world.dice.roll(25) == 0 {
            self.left.crashes -= 1;
            match self.left.torn && self.world.dice.roll(2) == 0 {
                true => self.tears = true,
                false => self.crash()?,
            }
        } else if self.left.stops > 0 && self.world.dice.roll(25) == 0 {
            self.left.stops -= 1;
            self.ask_to_stop()?;
        } else if self.left.plumbing > 0 && self.world.dice.roll(25) == 0 {
            self.left.plumbing -= 1;
            self.world.move_branch_by_plumbing();
            self.story.note(self.world.now, || "an agent moves the integration branch".to_owned());
        } else if self.left.picks > 0 && self.world.has_candidates() && self.world.dice.roll(25) == 0 {
            self.left.picks -= 1;
            let picked = self.pick(&self.run_loop.state().clone());
            self.absorb(Vec::from_iter(picked), vec![])?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// The user picks one of the candidates that can be picked now.
    fn pick(&mut self, state: &RunState) -> Option<Event> {
        let plan = state.plan();
        let of_lane = |lane: LaneIndex| plan.lane(lane).candidates().map(move |candidate| (lane, candidate));
        let may = |(lane, candidate): &(LaneIndex, usize)| state.lane(*lane).may_pick(*candidate).is_ok();
        let all: Vec<(LaneIndex, usize)> = plan.indices().flat_map(of_lane).filter(may).collect();
        let (lane, candidate) = *all.get(self.world.dice.roll(all.len() as u32) as usize)?;
        let plan = plan.lane(lane);
        Some(Event::CandidatePicked { lane: plan.id.clone(), agent: plan.agents[candidate].name.clone() })
    }

    /// The user resumes a run that has ended and can continue; whether it does.
    pub fn continue_run(&mut self) -> Result<bool, String> {
        Ok(self.answer_and_resume()?
            || self.make_way()?
            || self.resume_stopped()?
            || self.resume_without_limits()?
            || self.skip_and_resume()?)
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
        self.absorb(vec![Event::StopRequested { lane, reason, force }], vec![])
    }

    /// Resumes a run that was stopped; says whether it was.
    fn resume_stopped(&mut self) -> Result<bool, String> {
        let stopped = std::mem::take(&mut self.is_stopping);
        if stopped {
            self.resume(self.durable())?;
        }
        Ok(stopped)
    }

    /// Lanewright dies; sometimes the machine with it. What was not durable may be gone, or half of it.
    fn crash(&mut self) -> Result<(), String> {
        let power = self.world.dice.roll(4) == 0;
        self.story.note(self.world.now, || format!("Lanewright dies, the machine with it: {power}"));
        let log = self.run_loop.log();
        let kept = self.world.dice.roll(1 + log.waiting.len() as u32) as usize;
        let mut records: Vec<Record> = log.durable.iter().chain(&log.waiting[..kept]).cloned().collect();
        if power {
            self.world.boot += 1;
            // What was said and not recorded went with the machine.
            self.late.clear();
            let state = self.replay(&records)?;
            let open: Vec<JobId> = state.running_jobs().cloned().chain(uncommitted(&state)).collect();
            self.world.lose_machine(&open);
        }
        if self.world.dice.roll(3) == 0 {
            self.move_elsewhere(&mut records)?;
        }
        self.resume(records)
    }

    /// The same before the last `count` records were synced: the first of them may be on disk all the same.
    pub fn die_before_sync(&mut self, count: usize) -> Result<(), String> {
        let mut records = self.durable();
        let lost = count - self.world.dice.roll(count as u32) as usize;
        let kept = records.len() - lost;
        self.story.records(&records[records.len() - count..kept]);
        records.truncate(kept);
        self.story.note(self.world.now, || format!("Lanewright dies before {lost} records are synced"));
        self.resume(records)
    }

    /// The run is taken to another machine: what is written down there before anybody goes on with it.
    fn move_elsewhere(&mut self, records: &mut Vec<Record>) -> Result<(), String> {
        let state = self.replay(records)?;
        let mut lost: Vec<JobId> = state.running_jobs().cloned().collect();
        lost.sort();
        let place = |host: &str| Place { host: host.into(), repository: "/r".into(), worktree_root: "/w".into() };
        let moved = RunMoved { from: place("ci"), to: place("desk"), slots: vec![] };
        self.world.leave_machine();
        self.world.lose_machine(&uncommitted(&state));
        let ended = self.world.lose_machine(&lost);
        self.write(records, std::iter::once(Event::RunMoved(Box::new(moved))).chain(ended));
        Ok(())
    }

    fn resume(&mut self, records: Vec<Record>) -> Result<(), String> {
        self.resume_with(records, None, Vec::new())
    }

    /// `only`: the lanes that go on; empty: all, or some of them by chance.
    fn resume_with(
        &mut self,
        mut records: Vec<Record>,
        budget: Option<Budget>,
        only: Vec<LaneId>,
    ) -> Result<(), String> {
        if self.left.rollbacks > 0 && self.world.dice.roll(3) == 0 {
            self.left.rollbacks -= 1;
            match self.left.whole_rollbacks {
                _ if self.world.dice.roll(2) == 0 => self.roll_back_to_a_point(&mut records)?,
                true => self.roll_back_permanently(&mut records)?,
                false => self.roll_back(&mut records)?,
            }
        }
        if self.left.skips > 0 && self.world.dice.roll(3) == 0 {
            self.left.skips -= 1;
            self.skip(&mut records)?;
        }
        if self.left.picks > 0 && self.world.has_candidates() && self.world.dice.roll(3) == 0 {
            self.left.picks -= 1;
            let state = self.replay(&records)?;
            let picked = self.pick(&state);
            self.write(&mut records, picked);
        }
        self.under_way.clear();
        self.is_stopping = false;
        self.wake_at = None;
        self.sleeps.unnoticed = None;
        let bug = self.world.bug;
        let mut state = self.replay(&records)?;
        self.world.examine(&state);
        if bug == Some(Bug::HoldForgotten) {
            forget_holds(&mut state, self.world.time());
        }
        let (next, number) = (records.last().map_or(0, |record| record.seq), state.resumes() + 1);
        if number > MOST_RESUMES {
            return Err("the run is resumed without end".into());
        }
        if self.left.losses > 0 && self.world.lose_a_branch(&state) {
            self.left.losses -= 1;
        }
        let lanes = if only.is_empty() { self.some_lanes() } else { only };
        let by_hand = self.commit_by_hand(&state, &lanes);
        self.run_loop = RunLoop::new(Memory::of(records, next, bug), state);
        let resumed = Event::RunResumed {
            plan_sha256: None,
            // The plan may be another one.
            pinned_sha256: (number % 3 == 0).then(|| "changed".to_owned()),
            number,
            owner: owner(self.world.boot),
            timeout: None,
            budget,
            message: String::new(),
            message_for: None,
            lanes: lanes.clone(),
            retried: if number % 2 == 0 { self.world.may_work_again(lanes) } else { Vec::new() },
            follow: None,
            level: None,
        };
        self.absorb([by_hand, vec![resumed]].concat(), vec![])
    }

    /// A person commits on the branches of lanes that rest, and that go on; what the resume finds of it, also of what one
    /// before did not come to record.
    fn commit_by_hand(&mut self, state: &RunState, lanes: &[LaneId]) -> Vec<Event> {
        let commits = self.left.hands > 0 && self.world.dice.roll(2) == 0;
        self.left.hands -= u32::from(commits);
        let goes_on = |lane: &LaneId| lanes.is_empty() || lanes.contains(lane);
        let plan = state.plan();
        let mut events = Vec::new();
        for lane in plan.indices().filter(|&lane| goes_on(&plan.lane(lane).id) && rests(state, lane)) {
            if commits {
                self.story.note(self.world.now, || format!("a person commits on the branch of {}", plan.lane(lane).id));
                self.world.commit_by_hand(lane);
            }
            let moved = self.world.moved_branch(lane, state).filter(|_| self.world.bug != Some(Bug::HandsNotSeen));
            let lane = plan.lane(lane).id.clone();
            events.extend(moved.map(|head| Event::BranchMoved { lane, agent: None, head, theirs: None }));
        }
        events
    }

    /// The lanes that the user resumes, with what they depend on; empty: all, as the next time.
    fn some_lanes(&mut self) -> Vec<LaneId> {
        if self.left.stops == 0 || self.world.dice.roll(4) != 0 {
            return Vec::new();
        }
        self.is_stopping = true;
        let plan = self.world.plan.clone();
        let chosen = self.world.dice.roll(plan.lanes.len() as u32);
        let lanes = plan.indices().nth(chosen as usize);
        plan.dag().with_dependencies(lanes).into_iter().map(|lane| plan.lane(lane).id.clone()).collect()
    }

    pub fn replay(&mut self, records: &[Record]) -> Result<RunState, String> {
        let (bug, began) = (self.world.bug, Instant::now());
        let mut state = RunState::new(plan_as_seen(&self.world.plan, bug));
        state.expect(records);
        for record in records {
            let forgotten = bug == Some(Bug::NamesReused)
                && matches!(record.event, Event::JobPlanned { .. } | Event::JobExited { .. });
            if !forgotten {
                let applied = match bug {
                    Some(_) => state.apply(&record_as_applied(record.clone(), bug)),
                    None => state.apply(record),
                };
                applied.map_err(|fault| format!("replay: {fault}"))?;
            }
        }
        self.core += began.elapsed();
        Ok(state)
    }

    /// Appends to the log of a run that is not in progress.
    pub fn write(&mut self, records: &mut Vec<Record>, events: impl IntoIterator<Item = Event>) {
        let written = records.len();
        for event in events {
            let seq = records.last().map_or(0, |record| record.seq) + 1;
            records.push(Record { seq, at: self.world.time(), event, origin: None });
        }
        self.story.records(&records[written..]);
    }

    /// The user rolls back a lane on which nothing is built, as the command does: its jobs are stopped first.
    fn roll_back(&mut self, records: &mut Vec<Record>) -> Result<(), String> {
        let state = self.replay(records)?;
        let may = |lane: &LaneIndex| {
            let mut dependants = state.plan().dag().with_dependants([*lane]).into_iter().filter(|other| other != lane);
            began(&state, *lane) && !dependants.any(|other| began(&state, other)) && self.world.may_roll_back(*lane)
        };
        let lanes: Vec<LaneIndex> = state.plan().indices().filter(may).collect();
        let at = self.world.dice.roll(lanes.len() as u32) as usize;
        let Some(&index) = lanes.get(at) else { return Ok(()) };
        let lane = state.plan().lane(index).id.clone();
        let concerns = |job: &&JobId| job.lane.as_ref().is_none_or(|of| *of == lane);
        let mut running: Vec<JobId> = state.running_jobs().filter(concerns).cloned().collect();
        running.sort();
        let ended: Vec<Event> = running.iter().map(|job| self.world.end(job)).collect();
        self.write(records, [Event::RollbackBegun { lane: lane.clone(), to: String::new() }]);
        self.write(records, ended);
        self.write(records, [Event::LaneRolledBack { lane, integration: None, kept: vec![], point: None }]);
        self.world.roll_back(index);
        Ok(())
    }

    /// The user skips a lane that rests, as the command does.
    fn skip(&mut self, records: &mut Vec<Record>) -> Result<(), String> {
        let state = self.replay(records)?;
        let may = |lane: &LaneIndex| {
            let rests = state.lane(*lane).is_left_to_do() && state.lane(*lane).is_quiet();
            rests && !self.world.merges.contains(lane)
        };
        let lanes: Vec<LaneIndex> = state.plan().indices().filter(may).collect();
        let at = self.world.dice.roll(lanes.len() as u32) as usize;
        let Some(&index) = lanes.get(at) else { return Ok(()) };
        let lane = state.plan().lane(index).id.clone();
        self.write(records, [Event::LaneSkipped { lane, reason: String::new() }]);
        Ok(())
    }

    /// The user skips a lane of a run that has failed, and resumes it.
    fn skip_and_resume(&mut self) -> Result<bool, String> {
        if self.left.skips == 0 {
            return Ok(false);
        }
        self.left.skips -= 1;
        let mut records = self.durable();
        self.skip(&mut records)?;
        self.resume(records)?;
        Ok(true)
    }

    /// The user continues a run that has reached a limit of its own without it.
    fn resume_without_limits(&mut self) -> Result<bool, String> {
        let state = self.run_loop.state();
        let failed_fast = state.stop().is_some_and(|stop| stop.reason == StopReason::FailFast);
        let waits =
            |lane| matches!(state.lane(lane).end(), Some(LaneEnd::Blocked(why)) if why.contains("budget reached"));
        let is_over_budget = state.plan().indices().any(waits);
        if !failed_fast && !is_over_budget {
            return Ok(false);
        }
        let mut records = self.durable();
        for record in &mut records {
            if let Event::RunStarted(started) = &mut record.event {
                started.options.fail_fast &= !failed_fast;
            }
        }
        self.world.watch.fail_fast &= !failed_fast;
        self.resume_with(records, is_over_budget.then(Budget::default), Vec::new())?;
        Ok(true)
    }

    /// The same for a run that has ended because nobody answered.
    fn answer_and_resume(&mut self) -> Result<bool, String> {
        let asked = self.answer_people()?;
        if asked {
            let state = self.run_loop.state();
            let is_out = |lane: &LaneIndex| matches!(state.lane(*lane).end(), Some(LaneEnd::Failed(_)));
            let left = state.plan().indices().filter(|lane| !is_out(lane));
            let only = match state.resumes() > PATIENCE {
                true => left.map(|lane| state.plan().lane(lane).id.clone()).collect(),
                false => Vec::new(),
            };
            self.resume_with(self.durable(), None, only)?;
        }
        Ok(asked)
    }

    /// The user makes room for what could not be kept, or makes way for the integration branch, and resumes; says
    /// whether anything waited for that.
    fn make_way(&mut self) -> Result<bool, String> {
        self.world.make_way();
        let waits = self.run_loop.state().plan().indices().any(|lane| {
            let end = self.run_loop.state().lane(lane).end();
            matches!(end, Some(LaneEnd::Blocked(reason)) if USERS_TURN.iter().any(|why| reason.contains(why)))
        });
        if waits {
            self.resume(self.durable())?;
        }
        Ok(waits)
    }
}

/// Whether nothing of the lane can be half done, and no agent takes in what a person changes there.
fn rests(state: &RunState, lane: LaneIndex) -> bool {
    let (lane_state, plan) = (state.lane(lane), state.plan().lane(lane));
    state.is_changed_by_others_only(lane) && lane_state.worktree().is_some() && !lane_state.is_worked_on(plan, None)
}

/// Whether there is something to roll back in the lane.
pub fn began(state: &RunState, lane: LaneIndex) -> bool {
    state.lane(lane).has_begun() || state.lane(lane).is_skipped()
}

/// Has every lane in progress end, so that the resume that follows hands out again what they hold.
fn forget_holds(state: &mut RunState, at: Timestamp) {
    for lane in state.plan().clone().indices() {
        if state.lane(lane).has_begun() && state.lane(lane).end().is_none() && !state.lane(lane).is_merged() {
            let lane = state.plan().lane(lane).id.clone();
            let event = Event::LaneBlocked { lane, reason: String::new() };
            state.apply(&Record { seq: 0, at, event, origin: None }).unwrap();
        }
    }
}
