//! How well the scheduler fills its places: `cargo bench --bench schedule`.
//!
//! 200 random phases run in the simulator. Their tasks take one to ten minutes, the range that plans may name, and each
//! exactly as long as its plan says: more than that no scheduler can know beforehand. Each makespan stands beside the
//! lower bound, which is the longest path or the work shared evenly, whichever is more, and beside that of running wave
//! by wave, each wave's longest lanes first. No time is measured, so the figures are the same on every machine.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints")]
#![allow(missing_docs, dead_code, reason = "it shares the simulator of the tests")]

#[path = "../tests/simulation/dice.rs"]
mod dice;
#[path = "../tests/simulation/faultless.rs"]
mod faultless;
#[path = "../tests/simulation/makespan.rs"]
mod makespan;
#[path = "../tests/simulation/phases.rs"]
mod phases;
#[path = "../tests/simulation/plans.rs"]
mod plans;
#[path = "../tests/simulation/run_started.rs"]
mod run_started;

use makespan::{Makespans, measure};

const PHASES: u64 = 200;

fn main() {
    let all: Vec<Makespans> = (0..PHASES).map(measure).collect();
    println!(
        "{:<10}{:>8}{:>16}{:>12}{:>16}{:>20}",
        "places", "phases", "ours / bound", "worst", "waves / bound", "worse than waves"
    );
    for parallel in 2..=8 {
        row(&parallel.to_string(), all.iter().filter(|one| one.parallel == parallel));
    }
    row("all", all.iter());
    println!("target: all ≤ 1.05 in the mean, and none worse than by waves");
}

fn row<'a>(name: &str, phases: impl Iterator<Item = &'a Makespans>) {
    let phases: Vec<&Makespans> = phases.collect();
    let mean = |of: &dyn Fn(&Makespans) -> f64| phases.iter().map(|one| of(one)).sum::<f64>() / phases.len() as f64;
    let ours = mean(&Makespans::ratio);
    let worst = phases.iter().map(|one| one.ratio()).fold(0.0, f64::max);
    let waves = mean(&|one| one.waves / one.lower_bound);
    let worse = phases.iter().filter(|one| one.is_worse_than_waves()).count();
    println!("{name:<10}{:>8}{ours:>16.3}{worst:>12.3}{waves:>16.3}{worse:>20}", phases.len());
}
