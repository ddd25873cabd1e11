//! Thousands of whole phases against a simulated world, with crashes between any two steps.
//!
//! What must hold is checked while a run goes on and at its end; each planted bug shows that a check can fail.

#![allow(clippy::unwrap_used)]

#[path = "simulation/beginning.rs"]
mod beginning;
#[path = "simulation/bugs.rs"]
mod bugs;
#[path = "simulation/dice.rs"]
mod dice;
#[path = "simulation/makespan.rs"]
mod makespan;
#[path = "simulation/phases.rs"]
mod phases;
#[path = "simulation/plans.rs"]
mod plans;
#[path = "simulation/run.rs"]
mod run;
#[path = "simulation/smooth.rs"]
mod smooth;
#[path = "simulation/world.rs"]
mod world;

use bugs::Bug;
use run::simulate;

/// Without optimisation ten thousand take minutes: `cargo test --release --test simulation` runs them all.
const SEEDS: u64 = if cfg!(debug_assertions) { 1_500 } else { 10_000 };

#[test]
fn runs_end_well_and_a_crash_changes_no_outcome() {
    for seed in 0..SEEDS {
        let undisturbed = simulate(seed, 0, None).unwrap();
        let disturbed = simulate(seed, 1 + (seed % 4) as u32, None).unwrap();
        assert_eq!(undisturbed, disturbed, "seed {seed}");
    }
}

#[test]
fn every_planted_bug_is_caught() {
    for &bug in Bug::ALL {
        let caught = (0..SEEDS).find_map(|seed| {
            let expected = simulate(seed, 0, None).unwrap();
            match simulate(seed, 1 + (seed % 4) as u32, Some(bug)) {
                Err(trouble) => Some(trouble),
                Ok(ending) if ending != expected => Some(format!("seed {seed}: another outcome")),
                Ok(_) => None,
            }
        });
        println!("{bug:?}: {caught:?}");
        assert!(caught.is_some(), "{bug:?} was not caught");
    }
}

/// What the bench `schedule` shows of 200 phases holds for fewer, too.
const PHASES: u64 = if cfg!(debug_assertions) { 60 } else { 200 };

#[test]
fn phases_take_hardly_longer_than_they_must_and_never_longer_than_by_waves() {
    let all: Vec<makespan::Makespans> = (0..PHASES).map(makespan::measure).collect();
    let worse = all.iter().enumerate().filter(|(_, one)| one.is_worse_than_waves());
    let worse: Vec<String> = worse.map(|(seed, one)| format!("seed {seed}, {} places", one.parallel)).collect();
    assert!(worse.is_empty(), "these phases take longer than by waves: {worse:?}");
    let mean = all.iter().map(makespan::Makespans::ratio).sum::<f64>() / all.len() as f64;
    assert!(mean <= 1.05, "{mean:.3} times the lower bound");
}
