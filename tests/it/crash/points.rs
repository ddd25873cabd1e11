//! Deaths at every crash point.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lanewright_engine::executor::crash::CrashPoint;

use super::end_state::{assert_ended_as, assert_nothing_began_twice, assert_order, undisturbed, undisturbed_run_of};
use super::plans::{EVERYTHING, HELD, LITTERING};
use super::world::{World, for_each, rounds, signal};
use crate::support::wait_until;

/// Points that only a run comes to that searches its merges.
const WHEN_BISECTING: [&str; 2] = ["before_bisect_merges", "after_bisect_merges"];

/// Points that only a run comes to that is asked to stop.
const WHEN_STOPPED: [&str; 2] = ["before_stop_job", "after_stop_job"];

/// Points that only a run comes to whose lanes end in pull requests: `tests/it/pull_requests.rs` and `follow.rs` die there.
const WHEN_PROPOSING: [&str; 8] = [
    "before_push_branch",
    "after_push_branch",
    "before_open_pull_request",
    "after_open_pull_request",
    "before_check_pull_requests",
    "after_check_pull_requests",
    "before_merge_pull_request",
    "after_merge_pull_request",
];

/// Points that only a run comes to whose lanes work on a cluster.
const WHEN_PLACED: [&str; 6] = [
    "before_place_lane",
    "after_place_lane",
    "before_follow_lane",
    "after_follow_lane",
    "before_stop_placement",
    "after_stop_placement",
];

/// Points that a run of [`EVERYTHING`] does not come to.
pub const ELSEWHERE: [&str; 18] = {
    let ([a, b], [c, d], [e, f, g, h, i, j, k, l]) = (WHEN_STOPPED, WHEN_BISECTING, WHEN_PROPOSING);
    let [m, n, o, p, q, r] = WHEN_PLACED;
    [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r]
};

#[test]
fn a_resume_fixes_a_death_at_every_crash_point() {
    let names: Vec<String> =
        CrashPoint::all().map(CrashPoint::name).filter(|name| !ELSEWHERE.contains(&name.as_str())).collect();
    let deaths = AtomicU32::new(0);
    for_each(&names, String::clone, |name| {
        let most = rounds().unwrap_or(MOST_DEATHS);
        let died = (1..=most).take_while(|number| dies_and_is_fixed(&format!("{name}:{number}"))).count();
        assert!(died > 0, "no run comes to {name}");
        deaths.fetch_add(u32::try_from(died).unwrap(), Ordering::Relaxed);
    });
    eprintln!("{} deaths at {} points", deaths.into_inner(), names.len());
}

/// How often a run dies at a point, unless the environment says otherwise.
const MOST_DEATHS: u32 = 1;

/// Whether a run comes to the point; its end must be that of one that does not.
fn dies_and_is_fixed(point: &str) -> bool {
    let world = World::new(&EVERYTHING);
    let ended = world.go_on(Some(point)).wait();
    if ended.was_killed() {
        assert_order(&world);
        world.finish();
    }
    assert_ended_as(undisturbed(), &world);
    assert_nothing_began_twice(&world);
    ended.was_killed()
}

#[test]
fn a_resume_fixes_a_death_on_the_way_of_any_merge_style() {
    let points = ["stage_merge", "publish_merge", "clean_lane", "reset_lane"].map(|action| {
        let most = if action == "reset_lane" { 1 } else { 4 };
        (1..=most).flat_map(move |number| ["before", "after"].map(|when| format!("{when}_{action}:{number}")))
    });
    let points: Vec<String> = points.into_iter().flatten().collect();
    for style in ["squash", "rebase", "ff"] {
        let plan = EVERYTHING.merged_by(style);
        let expected = undisturbed_run_of(&plan);
        for_each(
            &points,
            |point| format!("{style} {point}"),
            |point| {
                let world = World::new(&plan);
                assert!(world.go_on(Some(point)).wait().was_killed(), "no run comes to {point}");
                assert_order(&world);
                world.finish();
                assert_ended_as(&expected, &world);
                assert_nothing_began_twice(&world);
                // A fast-forward takes the merges within a lane along.
                assert!(style == "ff" || world.git(&["log", "--merges", "--format=%s", "main"]).is_empty());
            },
        );
    }
}

#[test]
fn files_left_by_gates_are_saved_once_across_kills() {
    let expected = undisturbed_run_of(&LITTERING);
    assert_eq!(expected.references, "refs/heads/main\n", "what was put aside outlived the merge");
    let certain = ["after_merge_agent:2", "after_release_agent:1", "after_release_agent:2", "kept:1", "kept:4"];
    let dies_and_is_fixed = |point: &str| {
        let world = World::new(&LITTERING);
        let died = world.go_on(Some(point)).wait().was_killed();
        world.finish();
        assert_ended_as(&expected, &world);
        died
    };
    for_each(
        &certain,
        |point| (*point).to_owned(),
        |point| assert!(dies_and_is_fixed(point), "no run comes to {point}"),
    );
    // How many syncs there are depends on what comes together.
    let syncs: Vec<u32> = (1..=MOST_SYNCS).collect();
    for_each(&syncs, u32::to_string, |number| {
        dies_and_is_fixed(&format!("before_sync:{number}"));
    });
}

/// As many as a run of [`LITTERING`] makes at most.
const MOST_SYNCS: u32 = 35;

#[test]
fn a_death_right_after_the_end_leaves_no_file_behind() {
    let world = World::new(&EVERYTHING);
    world.finish();
    // What a Lanewright leaves that dies between the last record and the files that follow from the log.
    fs::write(world.state_directory().join("checkpoints.json"), "[]").unwrap();
    world.finish();
    assert_ended_as(undisturbed(), &world);
}

#[test]
fn a_resume_fixes_a_death_while_agents_are_stopped() {
    let expected = undisturbed_run_of(&HELD);
    for_each(
        &WHEN_STOPPED,
        |name| (*name).to_owned(),
        |name| {
            let world = World::new(&HELD);
            let lanewright = world.go_on(Some(&format!("{name}:1")));
            world.until_agents_began(3);
            signal(lanewright.pid(), rustix::process::Signal::TERM);
            assert!(lanewright.wait().was_killed(), "no run comes to {name}");
            let told_and_running =
                || world.jobs().into_iter().any(|job| job.join("stop").exists() && !job.join("exit.json").exists());
            // One whose stop was written down and that was not signalled any more goes on: nobody disturbs it.
            let patience = Instant::now() + Duration::from_secs(5);
            wait_until("the end of the agents that were told to stop", || {
                !told_and_running() || Instant::now() > patience
            });
            world.release("agents-may-end");
            world.release("tests-may-end");
            world.finish();
            assert_ended_as(&expected, &world);
        },
    );
}
