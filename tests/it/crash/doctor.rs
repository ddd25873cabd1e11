//! The doctor contradicts no state that a run makes: while the run is worked on, after it was stopped, and after it was
//! killed anywhere. What it repairs there changes nothing about the end of the run.

use lanewright_engine::executor::crash::CrashPoint;
use lanewright_programs::process::LiveProcess;
use rustix::process::Signal;

use super::end_state::{EndState, assert_ended_as, assert_nothing_began_twice, undisturbed, undisturbed_run_with};
use super::plans::{EVERYTHING, MOVED, PlanText, QUESTIONS, TROUBLE};
use super::points::ELSEWHERE;
use super::world::{World, for_each, rounds, signal, tree_of};
use crate::support::wait_until;

/// Looks, repairs and looks again; nothing has to be done, and no branch moves.
fn doctor_agrees(world: &World) {
    world.wait_for_orphans();
    let branches = || world.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads"]);
    let before = branches();
    for arguments in [["doctor"].as_slice(), &["doctor", "--fix"], &["doctor"]] {
        let (code, told) = world.output(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {told}\n{}", world.story());
    }
    // A git that outlives its Lanewright may still create one.
    let after = branches();
    let moved: Vec<&str> = before.lines().filter(|branch| !after.lines().any(|now| now == *branch)).collect();
    assert!(moved.is_empty(), "{moved:?} moved: {after}\n{}", world.story());
}

fn dies_at(point: &str, plan: &PlanText, expected: &EndState) -> bool {
    let world = World::new(plan);
    let died = world.go_on(Some(point)).wait().was_killed();
    doctor_agrees(&world);
    world.finish_answering(&QUESTIONS);
    assert_ended_as(expected, &world);
    assert_nothing_began_twice(&world);
    died
}

#[test]
fn after_a_death_at_every_crash_point() {
    let names = CrashPoint::all().map(CrashPoint::name).filter(|name| !ELSEWHERE.contains(&name.as_str()));
    // Before an action the disk is as it was after the last sync.
    let after = names.filter(|name| name == "before_sync" || !name.starts_with("before_"));
    let points: Vec<String> = after.map(|name| format!("{name}:1")).collect();
    for_each(&points, String::clone, |point| {
        assert!(dies_at(point, &EVERYTHING, undisturbed()), "no run comes to {point}");
    });
}

/// As many syncs as a run of [`EVERYTHING`] or [`TROUBLE`] makes at least.
const MOST_SYNCS: u32 = 30;

#[test]
fn after_a_death_between_any_two_records() {
    let expected = undisturbed_run_with(&TROUBLE, &QUESTIONS);
    let step = if rounds().is_some() { 1 } else { 3 };
    let syncs: Vec<u32> = (1..=MOST_SYNCS).step_by(step).collect();
    for_each(&syncs, u32::to_string, |sync| {
        dies_at(&format!("after_sync:{sync}"), &EVERYTHING, undisturbed());
        dies_at(&format!("after_sync:{sync}"), &TROUBLE, &expected);
    });
}

#[test]
fn at_any_moment_of_a_run() {
    let world = World::new(&EVERYTHING);
    let mut lanewright = world.go_on(None);
    while !lanewright.has_ended() {
        for arguments in [["doctor"].as_slice(), &["doctor", "--fix"]] {
            let (code, told) = world.output(arguments);
            assert_eq!(code, Some(0), "{arguments:?}: {told}\n{}", world.story());
        }
    }
    assert_eq!(lanewright.wait().code, 0, "{}", world.story());
    assert_ended_as(undisturbed(), &world);
}

#[test]
fn while_a_run_waits_for_people() {
    let expected = undisturbed_run_with(&TROUBLE, &QUESTIONS);
    let world = World::new(&TROUBLE);
    while !world.is_done() {
        let ended = world.go_on(None).wait();
        assert!(matches!(ended.code, 0 | 3), "{ended:?}\n{}", world.story());
        doctor_agrees(&world);
        world.answer(&QUESTIONS);
        doctor_agrees(&world);
    }
    assert_ended_as(&expected, &world);
}

/// How a Lanewright ends whose lane is at its tests on the merged result, in a worktree on no branch.
#[derive(Debug, Clone, Copy)]
enum End {
    Stopped,
    Killed,
    /// With everything that it started.
    MachineLost,
}

#[test]
fn while_the_merged_result_is_tested() {
    let expected = {
        let world = World::new(&MOVED);
        world.release("merged-may-end");
        world.finish();
        EndState::of(&world)
    };
    for_each(
        &[End::Stopped, End::Killed, End::MachineLost],
        |end| format!("{end:?}"),
        |end| {
            let world = World::new(&MOVED);
            let mut lanewright = world.go_on(None);
            wait_until("the tests of the merged result", || world.path("merged-tests").exists());
            wait_until("their record", || world.supervisors().len() == 1);
            doctor_agrees(&world);
            let supervisor = world.supervisors()[0];
            match end {
                End::Stopped => signal(lanewright.pid(), Signal::TERM),
                End::Killed => lanewright.kill(),
                End::MachineLost => {
                    let all = tree_of(supervisor.pid);
                    lanewright.kill();
                    all.iter().for_each(|&pid| signal(u32::try_from(pid).unwrap(), Signal::KILL));
                    wait_until("the end of the supervisor", || !supervisor.is_alive());
                }
            }
            drop(lanewright.wait());
            doctor_agrees(&world);
            world.release("merged-may-end");
            world.finish();
            assert_ended_as(&expected, &world);
        },
    );
}
