//! What a lane costs: the processes that are started for it, the syncs and the system calls, as strace counts them.
//!
//! The counts do not depend on the machine, but on the file system: in memory git reads every file again (decision 23), so
//! the runs are below `target`. `cargo test --test it cost:: -- --nocapture` prints them with their causes;
//! `limits.toml` says what they may be, and what the best version so far had.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail, and this one prints what it counts")]

mod causes;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use crate::support::TestEnv;
use crate::support::trace;
use causes::Causes;

/// The lanes of the runs that are counted.
const LANES: u32 = 60;

/// More than the limit by this share is a failure: which git commands meet in one lock, and which records in one sync,
/// depends on the moment.
const TOLERANCE: f64 = 0.06;

/// One count of `limits.toml`, per lane.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    limit: f64,
    best: f64,
    best_at: String,
    /// Why the limit is above the best.
    #[serde(default)]
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    processes: Limit,
    syncs: Limit,
    /// Takes long to count.
    calls: Option<Limit>,
}

/// A phase of lanes that only write a file each.
struct Phase {
    env: TestEnv,
    lanes: u32,
}

impl Phase {
    /// With 200 files in the repository, and `agents` in each lane.
    fn new(lanes: u32, agents: u32) -> Self {
        let env = TestEnv::new_in(Path::new(env!("CARGO_TARGET_TMPDIR")));
        (0..200).for_each(|number| env.write(&format!("repo/src/{number}.txt"), format!("{number}\n")));
        env.commit("files");
        let agent = |lane: u32, agent: u32| {
            let command = format!("echo {agent} > {lane}-{agent}.txt");
            format!("[[lane.agent]]\nname = \"a{agent}\"\ncommand = [\"sh\", \"-c\", \"{command}\"]\n")
        };
        let lane = |lane: u32| -> String {
            let agents: String = (0..agents).map(|number| agent(lane, number)).collect();
            format!("[[lane]]\nid = \"L{lane}\"\n{agents}")
        };
        env.plan(&(0..lanes).fold("max_parallel = 4\n".to_owned(), |plan, number| plan + &lane(number)));
        Self { env, lanes }
    }

    /// Runs it under strace.
    fn run(&self, words: Vec<OsString>) {
        let mut command = Command::new(&words[0]);
        self.env.pin(&mut command).args(&words[1..]);
        command.arg(env!("CARGO_BIN_EXE_lanewright")).arg("execute-phase").arg(self.env.path("plan.toml"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn causes(&self) -> Causes {
        let trace = self.env.path("trace");
        self.run(trace::prefix(&trace, "execve,fsync,fdatasync,sync,syncfs,sync_file_range"));
        Causes::of(&trace::read(&trace), self.env.path(""), self.lanes)
    }

    /// System calls of all processes, per lane.
    fn calls(&self) -> f64 {
        let summary = self.env.path("summary");
        let words = ["strace", "-f", "-c", "-o"].map(Into::into);
        self.run(words.into_iter().chain([summary.clone().into()]).collect());
        let summary = fs::read_to_string(summary).unwrap();
        // `100.00    1.234    3    45678    12 total`
        let total = summary.lines().last().unwrap().split_whitespace().nth(3).unwrap();
        total.parse::<f64>().unwrap() / f64::from(self.lanes)
    }
}

fn check(name: &str, measured: f64, limit: &Limit) -> Option<String> {
    println!(
        "{name}: {measured:.1} a lane (at most {}; the best was {} at {})",
        limit.limit, limit.best, limit.best_at
    );
    assert!(limit.limit <= limit.best || !limit.reason.is_empty(), "limits.toml: why is {name} above the best?");
    if measured > limit.limit * (1.0 + TOLERANCE) {
        return Some(format!("{name}: {measured:.1} a lane, at most {}", limit.limit));
    }
    let far_below = measured < limit.limit * (1.0 - 3.0 * TOLERANCE);
    far_below.then(|| format!("{name}: {measured:.1} a lane; lower the limit of {} in limits.toml", limit.limit))
}

#[test]
fn lane_starts_no_more_processes_and_syncs_than_allowed() {
    if !trace::can_trace() {
        eprintln!("strace is missing, or may not trace here: skipped");
        return;
    }
    let limits: BTreeMap<String, Limits> = toml::from_str(include_str!("limits.toml")).unwrap();
    let mut wrong = Vec::new();
    for (name, agents) in [("one agent", 1), ("two agents", 2)] {
        let limits = &limits[name];
        let causes = Phase::new(LANES, agents).causes();
        println!("\n{LANES} lanes of {name}\n{causes}");
        wrong.extend(check("processes", causes.processes(), &limits.processes));
        wrong.extend(check("syncs", causes.syncs(), &limits.syncs));
        if let Some(limit) = &limits.calls {
            wrong.extend(check("system calls", Phase::new(LANES, agents).calls(), limit));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
