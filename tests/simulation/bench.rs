//! What a seed of the simulator costs: `cargo bench --package lanewright-simulation`.
//!
//! The scheduler's own work, on its way forward and in replays, stands beside the whole: the rest is the simulated world.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints")]
#![allow(dead_code, reason = "it shares the simulator of the tests")]

use std::time::{Duration, Instant};

mod bugs;
mod case;
mod dice;
mod disturbances;
mod endings;
mod plans;
mod rollbacks;
mod run;
mod run_started;
mod sleep;
mod story;
mod user;
mod watch;
mod world;

use case::Case;
use run::Simulation;
use story::Story;

const SEEDS: u64 = 2_000;

fn main() {
    let (began, mut core, mut records) = (Instant::now(), Duration::ZERO, 0);
    for seed in 0..SEEDS {
        let disturbed = Case::disturbed(seed, None);
        for case in [disturbed.undisturbed(), disturbed] {
            let mut simulation = Simulation::new(&case, Story::default());
            simulation.run().unwrap();
            core += simulation.core;
            records += simulation.run_loop.log().durable.len();
        }
    }
    let whole = began.elapsed();
    let (each, share) = (whole.as_secs_f64() * 1e3 / SEEDS as f64, core.as_secs_f64() / whole.as_secs_f64());
    println!("{SEEDS} seeds, each with and without disturbances: {each:.2} ms a seed on one core");
    println!(
        "{:.0} records a seed; {:.0} % of the time is the scheduler's own work",
        records as f64 / SEEDS as f64,
        share * 100.0
    );
}
