//! What a simulated run begins with.

use std::time::Duration;

use lanewright_model::event::{Owner, RunOptions, RunStarted};
use lanewright_model::{Budget, CommitId, MergeMode, MustHavesRule, OnOrphan, Plan, ProcessId, RunId};

pub const BACKOFF: Duration = Duration::from_millis(10);

pub fn owner() -> Owner {
    Owner { session_id: "s".into(), process: ProcessId { pid: 1, started: 1 }, host: "h".into() }
}

pub fn run_started(plan: &Plan, base: &CommitId, max_parallel: u32) -> RunStarted {
    RunStarted {
        format: "1.0".into(),
        lanewright: "0".into(),
        run_id: RunId::new("r").unwrap(),
        phase: plan.phase.clone(),
        plan_path: "/p".into(),
        plan_sha256: String::new(),
        pinned_sha256: String::new(),
        base_branch: "main".into(),
        base_commit: base.clone(),
        owner: owner(),
        options: RunOptions {
            max_parallel,
            merge: MergeMode::Local,
            merge_style: Default::default(),
            fail_fast: false,
            bisect_merges: true,
            gsd_tracking: false,
            must_haves: MustHavesRule::Enforce,
            lanes: vec![],
            done: vec![],
            worktree_root: "/w".into(),
            branch_suffix: String::new(),
            keep_pool: false,
            keep_caches: false,
            checkpoint_tags: false,
            backoff: BACKOFF,
            outage_limit: Duration::from_secs(3600),
            specialist_timeout: BACKOFF,
            on_orphan: OnOrphan::Continue,
            timeout: None,
            next_phases: None,
            placed_by: None,
            plan_format: None,
            budget: Budget::default(),
        },
    }
}
