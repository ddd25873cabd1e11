//! Thousands of whole phases against a simulated world, with crashes between any two steps.
//!
//! What must hold is checked while a run goes on and at its end; each planted bug shows that a check can fail.

#![allow(clippy::unwrap_used)]

#[path = "simulation/bugs.rs"]
mod bugs;
#[path = "simulation/dice.rs"]
mod dice;
#[path = "simulation/plans.rs"]
mod plans;
#[path = "simulation/run.rs"]
mod run;
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
