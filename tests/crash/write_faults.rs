//! Every write of a state file refused, from the N-th on, with each error that a disk may have.

use std::io::Write;
use std::sync::Mutex;

use lanekeeper::fs::fault::WRITE_FAULT_VARIABLE;

use super::end_state::{EndState, assert_ended_as, assert_nothing_began_twice, assert_order, undisturbed_run_of};
use super::plans::RETRIED;
use super::world::{PLAN, World, for_each, rounds};

/// An error's name, what the system says for it, and of how many writes one is tried.
const FAULTS: [(&str, &str, usize); 3] =
    [("ENOSPC", "No space left on device", 1), ("EACCES", "Permission denied", 4), ("EIO", "Input/output error", 5)];

/// More writes than a run of this plan makes.
const ENOUGH: usize = 1000;

/// How many runs in which nothing was refused are enough. How much a run writes differs by a few.
const UNHARMED: usize = 12;

/// Begins a run, or goes on with one, in a world where writes may be refused; answers the command's arguments.
type Begin = fn(&World) -> Vec<String>;

#[test]
fn a_run_whose_files_are_refused_at_any_write_says_so_and_is_resumed() {
    let begin: Begin = |_| vec!["execute-phase".to_owned(), PLAN.to_owned()];
    let told: Vec<usize> = FAULTS.iter().map(|fault| sweep(fault, begin)).collect();
    assert!(told[0] > 100, "{told:?}");
}

#[test]
fn a_resume_whose_files_are_refused_at_any_write_says_so_and_is_resumed_itself() {
    let begin: Begin = |world| {
        assert!(world.go_on(Some("after_sync:8")).wait().was_killed());
        let (run, directory) = world.run().unwrap();
        let mut log = std::fs::OpenOptions::new().append(true).open(directory.log()).unwrap();
        log.write_all(b"{\"seq\":").unwrap();
        vec!["resume".to_owned(), run.to_string()]
    };
    let (name, words, _) = FAULTS[0];
    assert!(sweep(&(name, words, 4), begin) > 10);
}

/// Tries one write after the other; answers in how many runs something was refused.
fn sweep((name, words, step): &(&str, &str, usize), begin: Begin) -> usize {
    let expected = undisturbed_run_of(&RETRIED);
    let step = if rounds().is_some() { 1 } else { *step };
    let numbers: Vec<usize> = (1..ENOUGH).step_by(step).collect();
    let (told, unharmed) = (Mutex::new(0), Mutex::new(0));
    let case = |number: &usize| format!("{name}:{number}");
    for_each(&numbers, case, |number| {
        if *unharmed.lock().unwrap() * step <= UNHARMED {
            let was_told = is_refused_and_resumed(&case(number), words, begin, &expected);
            *if was_told { &told } else { &unharmed }.lock().unwrap() += 1;
        }
    });
    told.into_inner().unwrap()
}

/// Whether something was refused, which was said then; a run that says nothing left everything as it should be.
fn is_refused_and_resumed(fault: &str, words: &str, begin: Begin, expected: &EndState) -> bool {
    let world = World::new(&RETRIED);
    let arguments = begin(&world);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ended = world.spawn_with(&arguments, &[(WRITE_FAULT_VARIABLE, fault)]).wait();
    let was_told = ended.said().contains(words);
    assert!(!ended.said().contains("panicked"), "{ended:?}");
    match ended.code() {
        Some(0) if was_told => assert!(world.is_done(), "{ended:?}\n{}", world.story()),
        Some(0) => assert_ended_as(expected, &world),
        Some(1 | 3) => assert!(was_told, "{ended:?}\n{}", world.story()),
        _ => panic!("{ended:?}\n{}", world.story()),
    }
    assert_order(&world);
    world.finish();
    assert_ended_as(expected, &world);
    assert_nothing_began_twice(&world);
    was_told
}
