//! Run logs that a death left torn, or that something damaged.

use std::fs::{self, OpenOptions};

use super::end_state::{assert_ended_as, assert_nothing_began_twice, assert_order, undisturbed};
use super::plans::EVERYTHING;
use super::world::World;

#[test]
fn a_last_line_that_was_torn_anywhere_is_done_again() {
    let world = World::new(&EVERYTHING);
    let mut torn = 0;
    // In one life after the other; the first goes far enough for there to be something to resume.
    for (life, keep) in [KEEP, KEEP].concat().into_iter().enumerate() {
        let number = if life == 0 { 8 } else { 2 + life % 3 };
        if !world.go_on(Some(&format!("after_sync:{number}"))).wait().was_killed() || world.is_done() {
            break;
        }
        tear(&world, keep);
        assert_order(&world);
        torn += 1;
    }
    assert!(torn > 5, "{torn}");
    if !world.is_done() {
        world.finish();
    }
    assert_ended_as(undisturbed(), &world);
    assert_nothing_began_twice(&world);
}

/// How much of a line of so many bytes, its end of line included, is left.
const KEEP: [fn(usize) -> usize; 5] = [|_| 1, |length| length / 2, |length| length - 1, |length| length - 2, |_| 0];

fn tear(world: &World, keep: fn(usize) -> usize) {
    let log = world.run().unwrap().1.log();
    let bytes = fs::read(&log).unwrap();
    let last = bytes.split_inclusive(|&byte| byte == b'\n').next_back().unwrap().len();
    let left = bytes.len() - last + keep(last);
    OpenOptions::new().write(true).open(&log).unwrap().set_len(left as u64).unwrap();
}

#[test]
fn resume_refuses_damaged_log_line_without_changes() {
    let world = World::new(&EVERYTHING);
    assert!(world.go_on(Some("after_sync:8")).wait().was_killed());
    world.wait_for_orphans();
    let (run, directory) = world.run().unwrap();
    let whole = fs::read(directory.log()).unwrap();
    let mut damaged = whole.clone();
    let third = whole.split_inclusive(|&byte| byte == b'\n').take(2).map(<[u8]>::len).sum::<usize>();
    damaged[third + 20] ^= 1;
    fs::write(directory.log(), &damaged).unwrap();
    let references = world.git(&["for-each-ref"]);
    let refused = world.spawn(&["resume", run.as_str()], None).wait();
    assert_eq!(refused.code, 6, "{refused:?}");
    assert!(refused.stderr.contains("line 3"), "{refused:?}");
    assert_eq!(fs::read(directory.log()).unwrap(), damaged);
    // A git that the dead one began may still have made one; none may have gone or moved.
    let now = world.git(&["for-each-ref"]);
    assert!(references.lines().all(|reference| now.contains(reference)), "{references}\n{now}");
    fs::write(directory.log(), &whole).unwrap();
    world.finish();
    assert_ended_as(undisturbed(), &world);
}
