//! Deaths at random moments, of Lanewright alone or of everything that it started.

use std::fs;

use lanewright_model::event::Event;
use lanewright_model::{JobRole, ProcessId};
use lanewright_programs::process::LiveProcess;
use lanewright_programs::process::{Observation, observe};
use rustix::process::Signal;

use super::end_state::{
    assert_ended_as, assert_nothing_began_twice, assert_order, undisturbed, undisturbed_run_of, undisturbed_run_with,
};
use super::plans::{EVERYTHING, HELD, QUESTIONS, TROUBLE};
use super::world::{PLAN, World, for_each, rounds, signal, tree_of};
use crate::support::{Running, wait_until};

#[test]
fn a_run_that_is_killed_at_any_moment_comes_to_its_end() {
    let seeds: Vec<u32> = (0..rounds().unwrap_or(20)).collect();
    for_each(&seeds, u32::to_string, |&seed| {
        let mut dice = Dice(u64::from(seed));
        let world = World::new(&EVERYTHING);
        for _ in 0..1 + dice.roll(3) {
            let enough = world.log_lines() + dice.roll(if world.log_lines() == 0 { 120 } else { 40 });
            let mut lanewright = world.go_on(None);
            wait_until("records", || world.log_lines() >= enough || lanewright.has_ended());
            lanewright.kill();
            drop(lanewright.wait());
            assert_order(&world);
            if world.is_done() {
                break;
            }
        }
        world.finish();
        assert_ended_as(undisturbed(), &world);
        assert_nothing_began_twice(&world);
    });
}

#[test]
fn run_with_timeouts_and_questions_survives_any_kill() {
    let expected = undisturbed_run_with(&TROUBLE, &QUESTIONS);
    let seeds: Vec<u32> = (0..rounds().unwrap_or(12)).collect();
    for_each(&seeds, u32::to_string, |&seed| {
        let mut dice = Dice(u64::from(seed) ^ 0xBAD);
        let world = World::new(&TROUBLE);
        for _ in 0..1 + dice.roll(4) {
            let enough = world.log_lines() + dice.roll(if world.log_lines() == 0 { 90 } else { 30 });
            let mut lanewright = world.go_on(None);
            wait_until("records", || world.log_lines() >= enough || lanewright.has_ended());
            if dice.roll(2) == 0 {
                world.answer(&QUESTIONS);
            }
            lanewright.kill();
            drop(lanewright.wait());
            assert_order(&world);
            if world.is_done() {
                break;
            }
        }
        world.finish_answering(&QUESTIONS);
        assert_ended_as(&expected, &world);
        assert_nothing_began_twice(&world);
    });
}

/// Numbers that look random and are the same every time (an xorshift).
struct Dice(u64);

impl Dice {
    /// Below `sides`.
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

/// A run whose agents all wait to be released.
fn held() -> (World, Running) {
    let world = World::new(&HELD);
    let lanewright = world.go_on(None);
    world.until_agents_began(3);
    (world, lanewright)
}

fn release(world: &World) {
    world.release("agents-may-end");
    world.release("tests-may-end");
}

#[test]
fn agents_that_are_alive_at_a_kill_finish_undisturbed() {
    let expected = undisturbed_run_of(&HELD);
    let (world, mut lanewright) = held();
    for _ in 0..2 {
        lanewright.kill();
        assert!(lanewright.wait().was_killed());
        let before = world.supervisors();
        assert_eq!(before.len(), 3);
        assert!(before.iter().all(|supervisor| supervisor.is_alive()));
        lanewright = world.go_on(None);
        let resumes = world.resumes();
        wait_until("the resume", || world.resumes() > resumes);
        assert_eq!(world.supervisors(), before);
    }
    release(&world);
    assert_eq!(lanewright.wait().code, 0, "{}", world.story());
    assert_ended_as(&expected, &world);
    assert_nothing_began_twice(&world);
    assert_eq!(world.lines_of_agents("begin").len(), 4);
}

#[test]
fn a_machine_that_is_lost_is_no_failure_of_its_agents() {
    let expected = undisturbed_run_of(&HELD);
    let (world, lanewright) = held();
    lose_machine(&world, lanewright);
    world.release("agents-may-end");
    let lanewright = world.go_on(None);
    let testing = |world: &World| {
        let tests = |event: &Event| matches!(event, Event::JobStarted { job, .. } if job.role == JobRole::Tests);
        world.records().iter().filter(|record| tests(&record.event)).count() == 2
    };
    wait_until("two lanes that run their tests", || testing(&world));
    lose_machine(&world, lanewright);
    world.release("tests-may-end");
    world.finish();
    assert_ended_as(&expected, &world);
    let failed = |event: &Event| matches!(event, Event::FailureNoted { .. } | Event::LaneFailed { .. });
    assert!(!world.records().iter().any(|record| failed(&record.event)), "{}", world.story());
    assert_eq!(world.lines_of_agents("begin").len(), 3 + 4);
}

/// Kills Lanewright and everything that it has started, all of it at once.
fn lose_machine(world: &World, mut lanewright: Running) {
    wait_until("two supervisors", || world.supervisors().len() > 1);
    let supervisors = world.supervisors();
    let everything: Vec<i32> = supervisors.iter().flat_map(|supervisor| tree_of(supervisor.pid)).collect();
    assert!(everything.len() > supervisors.len(), "{everything:?}");
    lanewright.kill();
    everything.iter().for_each(|&pid| signal(u32::try_from(pid).unwrap(), Signal::KILL));
    assert!(lanewright.wait().was_killed());
    wait_until("the end of all processes", || {
        everything.iter().all(|&pid| ProcessId::of(pid).is_none_or(|id| !id.is_alive()))
    });
    assert!(world.jobs().iter().any(|job| matches!(observe(job).unwrap(), Observation::Lost(_))));
}

#[test]
fn a_live_run_is_left_alone_and_a_dead_one_is_free() {
    let (world, mut first) = held();
    let before = fs::read(world.run().unwrap().1.log()).unwrap();
    let (run, _) = world.run().unwrap();
    for words in [["resume", run.as_str()].as_slice(), &["execute-phase", PLAN, "--resume"]] {
        let second = world.spawn(words, None).wait();
        assert_eq!(second.code, 4, "{second:?}");
        assert!(second.stderr.contains(&format!("pid {}", first.pid())), "{second:?}");
    }
    assert_eq!(fs::read(world.run().unwrap().1.log()).unwrap(), before);
    first.kill();
    assert!(first.wait().was_killed());
    release(&world);
    world.finish();
    assert_ended_as(&undisturbed_run_of(&HELD), &world);
    assert_nothing_began_twice(&world);
}
