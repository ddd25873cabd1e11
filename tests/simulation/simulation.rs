//! Thousands of whole phases against a simulated world, with crashes between any two steps.
//!
//! What must hold is checked while a run is in progress and at its end; each planted bug shows that a check can fail.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

mod bugs;
mod case;
mod cluster;
mod dice;
mod disturbances;
mod endings;
mod faultless;
mod makespan;
mod pairs;
mod phases;
mod plans;
mod rollbacks;
mod run;
mod run_started;
mod seeds;
mod shrink;
mod sleep;
mod story;
mod user;
mod watch;
mod world;

use bugs::Bug;
use case::Case;

#[test]
fn runs_end_well_despite_crashes() {
    let findings = seeds::check_all(|seed| Case::disturbed(seed, None).check());
    for (seed, finding) in findings.iter().take(SHOWN) {
        println!("{}", story_of(*seed, finding));
    }
    assert!(findings.is_empty(), "{}", seeds::list(&findings));
}

/// How many findings are shown with their story.
const SHOWN: usize = 3;

/// How to repeat a finding, and the smallest run in which the same goes wrong.
fn story_of(seed: u64, finding: &str) -> String {
    let small = shrink::shrink(Case::disturbed(seed, None));
    let undisturbed = small.undisturbed();
    let told = if undisturbed.simulate().is_err() { undisturbed } else { small };
    let (ending, story) = told.tell();
    let lanes: Vec<String> = told.plan.lanes.iter().map(plans::describe).collect();
    format!(
        "seed {seed}: {finding}\nrepeat: {}={seed}..{} cargo test --test simulation runs_end\nthe same in a smaller run: \
         {ending:?}\n{:?}, gates {:?}, merge {:?}\n{}\n{}\n",
        seeds::VARIABLE,
        seed + 1,
        told.disturbances,
        told.plan.gates,
        told.script.merge(),
        lanes.join("\n"),
        story.join("\n"),
    )
}

#[test]
fn every_planted_bug_is_caught() {
    let mut undisturbed = BTreeMap::new();
    for &bug in Bug::ALL {
        let caught = seeds::range().find_map(|seed| {
            let expected = undisturbed.entry(seed).or_insert_with(|| Case::new(seed, 0, None).simulate().unwrap());
            match Case::disturbed(seed, Some(bug)).simulate() {
                Err(trouble) => Some(trouble),
                Ok(ending) if !ending.agrees_with(expected) => Some(format!("seed {seed}: another outcome")),
                Ok(_) => None,
            }
        });
        println!("{bug:?}: {caught:?}");
        assert!(caught.is_some(), "{bug:?} was not caught");
    }
}

#[test]
fn concurrent_runs_keep_each_others_work() {
    let seeds = seeds::range();
    let some = seeds.start..seeds.end.min(seeds.start + (seeds.end - seeds.start).div_ceil(10));
    let findings: Vec<(u64, String)> = some.filter_map(|seed| Some((seed, pairs::check(seed, None).err()?))).collect();
    assert!(findings.is_empty(), "{}", seeds::list(&findings));
    let caught = seeds::range().find_map(|seed| pairs::check(seed, Some(Bug::MoveNotSeen)).err());
    assert!(caught.is_some(), "a publication that does not compare was not caught");
}

const CLUSTER: cluster::Size = cluster::Size { lanes: 500, nodes: 25, losses: 1 };

/// How many times as many lanes and nodes: `20` for 10,000 lanes on 500 nodes.
const TIMES: &str = "LANEWRIGHT_CLUSTERS";

/// Many more nodes are lost than anywhere.
const BAD_CLUSTER: cluster::Size = cluster::Size { losses: 20, ..CLUSTER };

#[test]
fn cluster_faults_hardly_delay_lanes() {
    let times = std::env::var(TIMES).map_or(1, |times| times.parse().unwrap());
    let size = cluster::Size { lanes: times * CLUSTER.lanes, nodes: times * CLUSTER.nodes, ..CLUSTER };
    let calm = cluster::run(size, cluster::Faults::None, None).unwrap();
    for seed in 1..=4 {
        let disturbed = cluster::run(size, cluster::Faults::Of(seed), None).unwrap();
        println!("{disturbed:?}: {:.3} times as long as {calm:?}", disturbed.minutes / calm.minutes);
        assert!(disturbed.minutes / calm.minutes <= 1.1, "{disturbed:?}, undisturbed {calm:?}");
    }
}

#[test]
fn cluster_lanes_are_merged_once() {
    let findings: Vec<String> =
        (1..=20).filter_map(|seed| cluster::run(BAD_CLUSTER, cluster::Faults::Of(seed), None).err()).collect();
    assert!(findings.is_empty(), "{findings:#?}");
}

#[test]
fn every_planted_placement_bug_is_caught() {
    for &bug in cluster::PlacingBug::ALL {
        let caught = (1..=20).find_map(|seed| cluster::run(BAD_CLUSTER, cluster::Faults::Of(seed), Some(bug)).err());
        println!("{bug:?}: {caught:?}");
        assert!(caught.is_some(), "{bug:?} was not caught");
    }
}

/// As many as the bench `schedule` measures.
const PHASES: u64 = 200;

#[test]
fn phases_are_faster_than_waves_and_near_the_bound() {
    let all: Vec<makespan::Makespans> = (0..PHASES).map(makespan::measure).collect();
    let worse = all.iter().enumerate().filter(|(_, one)| one.is_worse_than_waves());
    let worse: Vec<String> = worse.map(|(seed, one)| format!("seed {seed}, {} places", one.parallel)).collect();
    assert!(worse.is_empty(), "these phases take longer than by waves: {worse:?}");
    assert!(all.iter().all(|one| one.ratio() >= 1.0), "a phase takes less time than is possible");
    let mean = all.iter().map(makespan::Makespans::ratio).sum::<f64>() / all.len() as f64;
    assert!(mean <= 1.05, "{mean:.3} times the lower bound");
}
