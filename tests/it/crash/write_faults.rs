//! Every write of a state file refused, from the N-th on, with each error that a disk may have.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use lanewright_files::fault::WRITE_FAULT_VARIABLE;

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
fn run_survives_a_failure_of_any_write() {
    let begin: Begin = |_| vec!["execute-phase".to_owned(), PLAN.to_owned()];
    for fault in &FAULTS {
        let told = sweep(fault, begin);
        assert!(told.len() * fault.2 > 200, "{}: {}", fault.0, told.len());
        // Of the run, of the repository, of a lane. Where the log is refused, nothing else is named.
        for file in FILES {
            assert!(told.iter().any(|said| said.contains(file)) || fault.2 > 1, "{}: none was {file}", fault.0);
        }
    }
}

/// Parts of the paths of files that are refused one time or another.
const FILES: [&str; 5] = [".jsonl", "/plan.json", "/.git/info/exclude", "/.git/lanewright", "/task.json"];

#[test]
fn resume_survives_a_failure_of_any_write() {
    let begin: Begin = |world| {
        assert!(world.go_on(Some("after_sync:8")).wait().was_killed());
        let (run, directory) = world.run().unwrap();
        let mut log = std::fs::OpenOptions::new().append(true).open(directory.log()).unwrap();
        log.write_all(b"{\"seq\":").unwrap();
        vec!["resume".to_owned(), run.to_string()]
    };
    let (name, words, _) = FAULTS[0];
    assert!(sweep(&(name, words, 4), begin).len() > 10);
}

/// Tries one write after the other; returns what the runs said in which something was refused.
fn sweep((name, words, step): &(&str, &str, usize), begin: Begin) -> Vec<String> {
    let expected = undisturbed_run_of(&RETRIED);
    let step = if rounds().is_some() { 1 } else { *step };
    let numbers: Vec<usize> = (1..ENOUGH).step_by(step).collect();
    let (told, unharmed) = (Mutex::new(Vec::new()), Mutex::new(0));
    let case = |number: &usize| format!("{name}:{number}");
    for_each(&numbers, case, |number| {
        if *unharmed.lock().unwrap() * step <= UNHARMED {
            match refused_and_resumed(&case(number), words, begin, &expected) {
                Some(said) => told.lock().unwrap().push(said),
                None => *unharmed.lock().unwrap() += 1,
            }
        }
    });
    told.into_inner().unwrap()
}

/// What was said if something was refused; a run that says nothing left everything as it should be.
fn refused_and_resumed(fault: &str, words: &str, begin: Begin, expected: &EndState) -> Option<String> {
    let world = World::new(&RETRIED);
    let arguments = begin(&world);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ended = world.spawn_with(&arguments, &[(WRITE_FAULT_VARIABLE, fault)]).wait();
    let was_told = ended.stderr.contains(words);
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    match ended.code {
        0 if was_told => assert!(world.is_done(), "{ended:?}\n{}", world.story()),
        0 => assert_ended_as(expected, &world),
        1 | 3 => assert!(was_told, "{ended:?}\n{}", world.story()),
        _ => panic!("{ended:?}\n{}", world.story()),
    }
    assert_order(&world);
    assert_nothing_is_half_written(&world);
    world.finish();
    assert_ended_as(expected, &world);
    assert_nothing_began_twice(&world);
    was_told.then_some(ended.stderr)
}

/// No temporary file is left in the repository or the pool. Supervisors may be writing the files of their jobs.
fn assert_nothing_is_half_written(world: &World) {
    let slots = entries(&world.path("disk")).into_iter().flat_map(|path| entries(&path.join("slots")));
    let git = ["", "info", "lanewright"].into_iter().flat_map(|below| entries(&world.work().join(".git").join(below)));
    let is_temporary = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(".unfinished-") || name.ends_with(".tmp")
    };
    let left: Vec<PathBuf> = slots.chain(git).filter(is_temporary).collect();
    assert!(left.is_empty(), "{left:?}");
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
