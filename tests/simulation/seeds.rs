//! Which seeds are run, and running them on all cores.

use std::io::Write;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Other seeds than the first ten thousand: `200000` for more of them, `7165..7166` for one that failed.
pub const VARIABLE: &str = "LANEWRIGHT_SEEDS";

/// Seeds that a rule of the scheduler, or an invariant, once failed: they are always run.
const FAILED: &[u64] = &[
    4_346,
    76_633,
    100_476,
    194_799,
    210_047,
    224_383,
    310_097,
    1_404_938,
    1_453_447,
    7_000_779_501,
    7_001_160_526,
    7_001_946_518,
    7_003_386_188,
    7_003_525_982,
    7_003_601_064,
];

/// All seeds to check: those of [`range`], and unless others were asked for, those that failed.
fn all() -> Vec<u64> {
    let failed = if std::env::var_os(VARIABLE).is_some() { &[] } else { FAILED };
    range().chain(failed.iter().copied()).collect()
}

pub fn range() -> Range<u64> {
    let Ok(text) = std::env::var(VARIABLE) else { return 0..10_000 };
    let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{VARIABLE}={text} is not a number"));
    match text.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => 0..number(&text),
    }
}

/// Checks every seed and returns what was found, in the order of the seeds. Prints how many there were.
pub fn check_all(check: impl Fn(u64) -> Result<(), String> + Sync) -> Vec<(u64, String)> {
    let (seeds, findings) = (all(), Mutex::new(Vec::new()));
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(finding) = check(seed) {
                findings.lock().unwrap().push((seed, finding));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut findings = findings.into_inner().unwrap();
    findings.sort();
    // Not `println!`: the test harness shows that for tests that fail only.
    let _ = writeln!(std::io::stderr(), "simulated {} seeds, {} findings", seeds.len(), findings.len());
    findings
}

pub fn list(findings: &[(u64, String)]) -> String {
    findings.iter().map(|(seed, finding)| format!("seed {seed}: {finding}")).collect::<Vec<_>>().join("\n")
}
