//! How long the scheduler takes for a phase, beside what is possible and beside waves.

use std::sync::Arc;

use lanewright_model::event::Event;
use lanewright_model::{JobId, Plan};
use lanewright_schedule::RunLoop;
use lanewright_schedule::RunState;

use super::dice::Dice;
use super::faultless::{Faultless, Forgetful, Takes, commit_name};
use super::phases::Phase;
use super::run_started::run_started;

/// The makespans of one phase, in minutes.
pub struct Makespans {
    pub parallel: u32,
    pub lower_bound: f64,
    pub ours: f64,
    pub waves: f64,
}

impl Makespans {
    pub fn ratio(&self) -> f64 {
        self.ours / self.lower_bound
    }

    pub fn is_worse_than_waves(&self) -> bool {
        self.ours > self.waves
    }
}

/// The phase that belongs to `seed`, run by two to eight agents at once.
pub fn measure(seed: u64) -> Makespans {
    let mut dice = Dice::new(seed);
    let phase = Phase::random(&mut dice);
    let parallel = 2 + dice.roll(7);
    let ours = run(phase.plan(), parallel);
    Makespans { parallel, lower_bound: phase.lower_bound(parallel), ours, waves: phase.by_waves(parallel) as f64 }
}

/// Runs the plan to its end in the simulator; each task takes as long as it may.
fn run(plan: Plan, parallel: u32) -> f64 {
    let plan = Arc::new(plan);
    let started = run_started(&plan, &commit_name(0), parallel);
    let run_loop = RunLoop::new(Forgetful::default(), RunState::new(plan.clone()));
    let mut world = Faultless::new(run_loop, as_long_as_allowed(plan));
    world.absorb(vec![Event::RunStarted(Box::new(started))], vec![]).unwrap();
    while !world.is_over() {
        world.step().unwrap();
    }
    world.now as f64 / 60_000.0
}

fn as_long_as_allowed(plan: Arc<Plan>) -> Takes {
    Box::new(move |job: &JobId| {
        let lane = job.lane.as_ref().and_then(|lane| plan.find(lane));
        let tasks = lane.into_iter().flat_map(|lane| &plan.lane(lane).agents).flat_map(|agent| &agent.tasks);
        let limit = tasks.filter(|task| Some(&task.id) == job.task()).find_map(|task| task.max_time);
        limit.unwrap_or_default().as_millis() as i64
    })
}
