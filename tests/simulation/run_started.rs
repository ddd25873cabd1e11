//! What a simulated run begins with.

use std::time::Duration;

use lanewright_model::event::{Owner, RunOptions, RunStarted};
use lanewright_model::testing::{run_options, run_started as sample};
use lanewright_model::{CommitId, MustHavesRule, Plan, ProcessId, RunId};

pub const BACKOFF: Duration = Duration::from_millis(10);

/// The process that works on a run in this boot of the machine.
pub fn owner(boot: u32) -> Owner {
    let process = ProcessId { pid: 1, started: 1 };
    Owner { session_id: "s".into(), process, host: "h".into(), boot: boot.to_string() }
}

pub fn run_started(plan: &Plan, base: &CommitId, max_parallel: u32) -> RunStarted {
    RunStarted {
        run_id: RunId::new("r").unwrap(),
        phase: plan.phase.clone(),
        base_commit: base.clone(),
        owner: owner(0),
        options: RunOptions {
            max_parallel,
            bisect_merges: true,
            must_haves: MustHavesRule::Enforce,
            backoff: BACKOFF,
            specialist_timeout: BACKOFF,
            fallback_after: Duration::from_millis(50),
            ..run_options()
        },
        ..sample()
    }
}
