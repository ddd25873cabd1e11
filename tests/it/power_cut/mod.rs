//! Power cuts: a run is recorded, and resumed on what a cut at any moment may leave of its disk.
//!
//! `LANEWRIGHT_CUTS=FIRST..END` tries these states; each number stands for a moment of the recorded run and what is lost
//! then.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod disk;
mod kept;
mod scenario;

use std::fs;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use disk::Disk;
use kept::{Kept, splitmix};
use lanewright_programs::process::{Observation, observe};
use scenario::{Scenario, date_files_below, in_another_boot, replaced};

use crate::crash::plans::PlanText;
use crate::crash::world::{PLAN, World, files_below};
use crate::support::trace::{self, Argument, Call};
use crate::support::wait_until;

/// A run whose system calls are known.
struct Recording {
    scenario: Scenario,
    before: Disk,
    calls: Vec<Call>,
    /// The calls that changed the disk, and how much a cut could take after each.
    moments: Vec<(usize, usize)>,
}

impl Recording {
    fn new() -> Self {
        let scenario = Scenario::new();
        let before = Disk::of(&scenario.world.root);
        let calls = scenario.record();
        let mut recording = Self { scenario, before, calls, moments: Vec::new() };
        let disk = recording.find_moments();
        let differences = disk.differences(&recording.scenario.world.root);
        assert!(differences.is_empty(), "the replayed disk is another than the real one: {differences:#?}");
        recording
    }

    /// The same run of a program that does not sync files whose path has `part`.
    fn without_syncs(mut self, part: &str) -> Self {
        let is_dropped = |call: &Call| {
            let syncs = call.name.ends_with("sync");
            syncs && matches!(&call.arguments[0], Argument::File(_, path) if path.to_string_lossy().contains(part))
        };
        let all = self.calls.len();
        self.calls.retain(|call| !is_dropped(call));
        assert_ne!(self.calls.len(), all, "nothing with {part} in its path was synced");
        self.find_moments();
        self
    }

    /// The moments of its calls, and the disk at its end.
    fn find_moments(&mut self) -> Disk {
        let (mut disk, mut moments, mut changes) = (self.before.clone(), Vec::new(), 0);
        replay(&mut disk, &self.calls, |at, disk| {
            if disk.changes > changes {
                changes = disk.changes;
                moments.push((at, disk.at_risk()));
            }
        });
        self.moments = moments;
        disk
    }

    fn state(&self, number: u64) -> (usize, Kept) {
        let (moment, choice) = (splitmix(number), splitmix(number ^ u64::MAX));
        let (at, at_risk) = self.moments[usize::try_from(moment % self.moments.len() as u64).unwrap()];
        let kept = match choice % 8 {
            0 => Kept::Nothing,
            1 => Kept::Names,
            2 => Kept::Sizes,
            3 => Kept::Contents,
            4 | 5 if at_risk > 0 => Kept::AllBut(usize::try_from((choice >> 8) % at_risk as u64).unwrap()),
            _ => Kept::Some(choice),
        };
        (at, kept)
    }

    /// What is wrong with the states of `numbers`.
    fn failures(&self, numbers: impl Iterator<Item = u64>) -> Vec<String> {
        let mut states: Vec<(usize, Kept, u64)> =
            numbers.map(|number| (self.state(number), number)).map(|((at, kept), number)| (at, kept, number)).collect();
        states.sort_by_key(|(at, ..)| *at);
        let (mut failures, mut states) = (Vec::new(), states.into_iter().peekable());
        replay(&mut self.before.clone(), &self.calls, |at, disk| {
            while let Some((_, kept, number)) = states.next_if(|(moment, ..)| *moment == at) {
                if let Err(failure) = self.check(disk, kept) {
                    let call = &self.calls[at];
                    let moment = format!("state {number}: {kept:?} after call {at}, {} of {}", call.name, call.pid);
                    failures.push(format!("{moment}\n{failure}"));
                }
            }
        });
        failures
    }

    fn check(&self, disk: &Disk, kept: Kept) -> Result<(), String> {
        let lost = disk.restore(&self.scenario.world.root, kept, &in_another_boot);
        self.scenario.date_files();
        let resumed = catch_unwind(AssertUnwindSafe(|| self.scenario.resume_and_check()));
        resumed.map_err(|panic| {
            let said = panic.downcast::<String>().map_or_else(|_| "a panic".to_owned(), |said| *said);
            format!("lost: {lost:#?}\n{said}")
        })
    }
}

/// Applies the calls, and shows the disk after each.
fn replay(disk: &mut Disk, calls: &[Call], mut after: impl FnMut(usize, &Disk)) {
    let mut starts: Vec<(usize, u32, u32, bool)> = calls
        .iter()
        .filter(|call| matches!(call.name.as_str(), "clone" | "clone3" | "vfork" | "fork") && call.result > 0)
        .map(|call| {
            let shares = call.arguments.iter().any(|word| format!("{word:?}").contains("CLONE_FILES"));
            (call.began, call.pid, u32::try_from(call.result).unwrap(), shares)
        })
        .collect();
    starts.sort_unstable();
    let mut starts = starts.into_iter().peekable();
    let mut syncs: Vec<&Call> = calls.iter().filter(|call| call.name.ends_with("sync")).collect();
    syncs.sort_by_key(|call| call.began);
    let mut syncs = syncs.into_iter().peekable();
    for (at, call) in calls.iter().enumerate() {
        while let Some((_, parent, child, shares)) = starts.next_if(|(began, ..)| *began <= call.began) {
            disk.start(parent, child, shares);
        }
        while let Some(sync) = syncs.next_if(|sync| sync.began <= call.began) {
            disk.begin(sync);
        }
        disk.apply(call);
        after(at, disk);
    }
}

fn numbers() -> Range<u64> {
    let Ok(wanted) = std::env::var("LANEWRIGHT_CUTS") else { return 0..12 };
    let (first, end) = wanted.split_once("..").expect("LANEWRIGHT_CUTS=FIRST..END");
    first.parse().unwrap()..end.parse().unwrap()
}

#[test]
fn resume_after_power_cut_loses_no_accepted_work() {
    if !trace::can_trace() {
        eprintln!("strace is missing, or may not trace here: skipped");
        return;
    }
    let recordings = 2;
    let failures: Vec<String> = std::thread::scope(|scope| {
        let each = |own: u64| {
            scope.spawn(move || Recording::new().failures(numbers().filter(move |number| number % recordings == own)))
        };
        let started: Vec<_> = (0..recordings).map(each).collect();
        started.into_iter().flat_map(|recording| recording.join().unwrap()).collect()
    });
    let tried = numbers().end - numbers().start;
    assert!(failures.is_empty(), "{} of {tried} states fail:\n{}", failures.len(), failures.join("\n\n"));
}

/// The checks above see a sync that is missing.
#[test]
fn run_without_needed_syncs_fails_after_power_cut() {
    if !trace::can_trace() {
        eprintln!("strace is missing, or may not trace here: skipped");
        return;
    }
    let fails = |part: &str| {
        let recording = Recording::new().without_syncs(part);
        (0..50).any(|four| !recording.failures(4 * four..4 * four + 4).is_empty())
    };
    std::thread::scope(|scope| {
        let log = scope.spawn(|| fails("/r1.jsonl"));
        assert!(fails("/.git/objects/"), "objects are not synced, and nothing fails");
        assert!(log.join().unwrap(), "the log is not synced, and nothing fails");
    });
}

/// A lane of one agent, which works once it is allowed to end.
const HELD_AGENT: PlanText = PlanText::new(
    r#"
phase = "P1"
[[lane]]
id = "alpha"
command = ["sh", "ROOT/agent.sh"]
[[lane.agent]]
name = "maker"
[[lane.task]]
id = "1"
prompt = "one"
"#,
    "until_true 'test -e ROOT/agents-may-end'\nwrite\n",
);

#[test]
fn emptied_work_of_an_unrecorded_attempt_is_not_merged() {
    let world = World::new(&HELD_AGENT);
    let mut run = world.spawn(&["execute-phase", PLAN], None);
    world.until_agents_began(1);
    run.kill();
    run.wait();
    world.release("agents-may-end");
    let job = world.jobs().remove(0);
    wait_until("the end of the agent", || matches!(observe(&job), Ok(Observation::Exited(_))));
    // What a power cut leaves: the exit is synced, what the agent wrote is not.
    let slots = world.path("disk/work.lanes/slots");
    for file in files_below(&slots, &[]).iter().filter(|file| file.ends_with("alpha/maker-1.txt")) {
        fs::write(slots.join(file), "").unwrap();
    }
    restart_machine(&world);
    let ended = world.go_on(None).wait();
    assert_eq!(ended.code, 0, "{ended:?}\n{}", world.story());
    assert!(ended.stderr.contains("ended with the machine, which was started again"), "{ended:?}");
    assert_eq!(world.git(&["cat-file", "blob", "main:alpha/maker-1.txt"]), "maker 1\n", "{}", world.story());
    assert_eq!(world.lines_of_agents("begin"), ["alpha maker 1 1", "alpha maker 1 2"]);
}

fn restart_machine(world: &World) {
    let log = world.run().unwrap().1.log();
    fs::write(&log, in_another_boot(&log, fs::read(&log).unwrap())).unwrap();
}

#[test]
fn published_file_is_restored_unless_the_user_changed_it() {
    let world = World::new(&HELD_AGENT);
    world.release("agents-may-end");
    world.finish();
    restart_machine(&world);
    let file = world.work().join("alpha/maker-1.txt");
    let published = fs::read_to_string(&file).unwrap();
    let stopped = stopped_at(&world);
    for (later, expected) in [(Duration::from_secs(600), ""), (Duration::ZERO, published.as_str())] {
        fs::write(&file, "").unwrap();
        fs::File::open(&file).unwrap().set_modified(stopped + later).unwrap();
        let (code, said) = world.output(&["resume", world.run().unwrap().0.as_str()]);
        assert_eq!(code, Some(7), "{said}");
        assert_eq!(fs::read_to_string(&file).unwrap(), expected, "{said}");
        assert_eq!(said.contains("restored alpha/maker-1.txt"), !expected.is_empty(), "{said}");
    }
}

/// As a cut leaves it that takes both the branch's last move and its deletion.
#[test]
fn deleted_branch_that_came_back_at_an_earlier_commit_is_deleted_again() {
    let world = World::new(&HELD_AGENT);
    let base = world.git(&["rev-parse", "main"]);
    world.release("agents-may-end");
    world.finish();
    restart_machine(&world);
    // What is set again is younger than the cut.
    let log = world.run().unwrap().1.log();
    let year = world.records()[0].at.to_string()[..4].parse::<u32>().unwrap();
    fs::write(&log, replaced(&fs::read_to_string(&log).unwrap(), [year, year - 4].map(|it| format!("\"ts\":\"{it}"))))
        .unwrap();
    world.git(&["update-ref", "refs/heads/lane/P1/alpha", base.trim()]);
    date_files_below(&world.work().join(".git/refs"), stopped_at(&world));
    let (code, said) = world.output(&["resume", world.run().unwrap().0.as_str()]);
    assert_eq!(code, Some(7), "{said}");
    assert_eq!(world.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]), "refs/heads/main\n", "{said}");
}

fn stopped_at(world: &World) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(world.records().pop().unwrap().at.unix_millis().unsigned_abs())
}
