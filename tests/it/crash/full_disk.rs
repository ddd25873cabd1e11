//! A disk that is full in the middle of a run.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::end_state::{EndState, assert_left_as, undisturbed_run_of};
use super::plans::HELD;
use super::world::World;
use crate::support::wait_until;

#[test]
fn a_full_disk_stops_a_run_and_loses_no_work() {
    let scratch = tempfile::tempdir().unwrap();
    let Some(_disk) = Disk::mounted_at(&scratch.path().join("disk")) else {
        return eprintln!("skipped: mounting a small disk needs privileges");
    };
    let world = World::inside(scratch, &HELD);
    let lanewright = world.go_on(None);
    world.until_agents_began(3);
    let (run, _) = world.run().unwrap();
    let work = world.path(&format!("disk/work.lanes/{run}/alpha/agents/maker/code/alpha/maker-1.txt"));
    wait_until("the work of an agent", || fs::read_to_string(&work).is_ok_and(|work| work == "maker 1\n"));
    let filler = world.path("disk/filler");
    fill(&filler);
    world.release("agents-may-end");
    let ended = lanewright.wait();
    assert_eq!(ended.code, 3, "{ended:?}\n{}", world.story());
    assert!(ended.stderr.contains("No space left on device"), "{ended:?}");
    assert_eq!(fs::read_to_string(&work).unwrap(), "maker 1\n");
    fs::remove_file(filler).unwrap();
    world.release("tests-may-end");
    world.finish();
    let expected = undisturbed_run_of(&HELD);
    // An agent that ended while its end could not be written down for half a minute has to do its task again. That it
    // ended is in the log where a line still fitted there, and in no file of its own.
    let finished = world.tasks_finished();
    assert!(expected.finished.iter().all(|task| finished.contains(task)), "{finished:?}");
    assert_left_as(&EndState { finished, ..expected }, &world);
}

/// A small file system of its own, as long as this is kept.
struct Disk(PathBuf);

impl Disk {
    fn mounted_at(place: &Path) -> Option<Self> {
        fs::create_dir(place).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=16m", "tmpfs"]).arg(place).output().ok()?;
        mounted.status.success().then(|| Self(place.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: an agent of a test that failed may still be in there.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

/// Writes until nothing more fits.
fn fill(path: &Path) {
    let mut file = File::create(path).unwrap();
    for size in [1 << 16, 1 << 12, 1] {
        let block = vec![0; size];
        let full = std::iter::repeat_with(|| file.write_all(&block)).find_map(Result::err).unwrap();
        assert_eq!(full.kind(), ErrorKind::StorageFull);
    }
}
