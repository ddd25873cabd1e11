//! Options as resolved: what the arguments and the settings come to for one plan.

use std::path::PathBuf;

use uuid::Uuid;

use super::args::{ExecuteLane, ExecutePhase, ExecutionArgs, Intent, Resume};
use crate::event::RunOptions;
use crate::model::{Budget, LaneId, RunId};
use crate::settings::{OnConflict, OnLockConflict, Settings};

/// Whether lanes are worked on by themselves, without what they depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alone {
    /// No: a phase, or a part of one that holds all it depends on.
    No,
    /// The lane that was named.
    Lane,
    /// The next one that is ready; one that was named is preferred.
    Next,
}

/// Everything that `execute-phase` or `execute-lane` was asked for; nothing is read again after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The plan, as typed.
    pub plan: PathBuf,
    /// Only these lanes; empty: all.
    pub lanes: Vec<LaneId>,
    /// Lanes that are merged already and are not done again.
    pub merged_before: Vec<LaneId>,
    /// Whether they run without what they depend on.
    pub alone: Alone,
    /// What to do with the plan.
    pub intent: Intent,
    /// The run's name, where one was given.
    pub run_id: Option<RunId>,
    /// The session that owns what is started.
    pub session_id: String,
    /// Go on although the plan changed since the run began.
    pub accept_plan_change: bool,
    /// What to do about changes from outside.
    pub on_conflict: OnConflict,
    /// Only say what would be done.
    pub dry_run: bool,
    /// Ask nothing.
    pub yes: bool,
    /// The plans that come after this one; `None`: it is part of no chain.
    pub next_phases: Option<Vec<PathBuf>>,
    /// Every setting with its origin.
    pub settings: Settings,
}

impl Options {
    /// The options of `execute-phase`.
    pub fn for_phase(arguments: &ExecutePhase, settings: Settings) -> Self {
        Self::new(arguments.plan.clone(), arguments.lanes.clone(), Alone::No, &arguments.execution, settings)
    }

    /// The options of `execute-lane`.
    pub fn for_lane(arguments: &ExecuteLane, settings: Settings) -> Self {
        let any = arguments.next || settings.on_lock_conflict.value == OnLockConflict::Next;
        let alone = if any { Alone::Next } else { Alone::Lane };
        let lanes = arguments.lane.iter().cloned().collect();
        Self::new(arguments.plan.clone(), lanes, alone, &arguments.execution, settings)
    }

    fn new(plan: PathBuf, lanes: Vec<LaneId>, alone: Alone, execution: &ExecutionArgs, settings: Settings) -> Self {
        Self {
            plan,
            lanes,
            merged_before: Vec::new(),
            alone,
            intent: execution.intent(),
            run_id: execution.run_id.clone(),
            session_id: session_id(&settings),
            accept_plan_change: execution.control.accept_plan_change,
            on_conflict: execution.control.on_conflict,
            dry_run: execution.dry_run,
            yes: execution.control.yes,
            next_phases: None,
            settings,
        }
    }

    /// The options of a phase that comes after a run that was resumed.
    pub fn after_resume(arguments: &Resume, settings: Settings) -> Self {
        Self {
            plan: PathBuf::new(),
            lanes: Vec::new(),
            merged_before: Vec::new(),
            alone: Alone::No,
            intent: Intent::Start,
            run_id: None,
            session_id: session_id(&settings),
            accept_plan_change: false,
            on_conflict: arguments.control.on_conflict,
            dry_run: false,
            yes: arguments.control.yes,
            next_phases: None,
            settings,
        }
    }

    /// What the run log keeps of them for the whole life of the run. Which lanes count as done and whether branches
    /// get a suffix is found out when the run begins, and is left empty here.
    pub fn run_options(&self) -> RunOptions {
        let settings = &self.settings;
        RunOptions {
            max_parallel: settings.max_parallel.value.get(),
            merge: settings.merge.value,
            fail_fast: settings.fail_fast.value,
            bisect_merges: settings.bisect_merges.value,
            gsd_tracking: settings.gsd_tracking.value,
            must_haves: settings.must_haves.value,
            lanes: self.lanes.clone(),
            done: Vec::new(),
            worktree_root: settings.worktree_root.value.clone(),
            branch_suffix: String::new(),
            keep_pool: settings.keep_pool.value,
            keep_caches: settings.keep_caches.value,
            checkpoint_tags: settings.checkpoint_tags.value,
            backoff: settings.backoff.value,
            outage_limit: settings.outage_limit.value,
            specialist_timeout: settings.specialist_timeout.value,
            on_orphan: settings.on_orphan.value,
            timeout: settings.timeout.value,
            next_phases: self.next_phases.clone(),
            plan_format: None,
            budget: Budget { cost: settings.max_cost.value, tokens: settings.max_tokens.value },
        }
    }
}

/// The session that `settings` name, or a new one.
pub fn session_id(settings: &Settings) -> String {
    settings.session_id.value.clone().unwrap_or_else(|| Uuid::now_v7().to_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use clap::Parser;

    use super::*;
    use crate::cli::args::{Args, Command};
    use crate::model::{Dollars, MergeMode, MustHavesRule, OnOrphan};
    use crate::settings::{ConfigFile, Environment, Layers, Surroundings};

    fn options(arguments: &[&str], config: &str) -> Options {
        let arguments = [&["lanekeeper"], arguments].concat();
        let settings = |execution: &ExecutionArgs| {
            let surroundings = Surroundings { repository: "/r".into(), directory: "/r".into(), home: None, cores: 4 };
            let file = ConfigFile { path: "/r/lanekeeper.toml".into(), text: config.to_owned() };
            let layer = execution.layer(&surroundings.directory);
            Layers::read(layer, &Environment::new(), &[file], &surroundings).unwrap().resolve(None)
        };
        match Args::try_parse_from(arguments).unwrap().command {
            Command::ExecutePhase(phase) => Options::for_phase(&phase, settings(&phase.execution)),
            Command::ExecuteLane(lane) => Options::for_lane(&lane, settings(&lane.execution)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_lane_alone_is_a_phase_of_one_lane() {
        let lane = options(&["execute-lane", "p.toml", "SL-1"], "");
        let phase = options(&["execute-phase", "p.toml", "--lane", "SL-1"], "");
        assert_eq!(lane.lanes, [LaneId::new("SL-1").unwrap()]);
        assert_eq!((lane.alone, phase.alone), (Alone::Lane, Alone::No));
        let same = |options| Options { session_id: String::new(), alone: Alone::No, ..options };
        assert_eq!(same(lane), same(phase));
    }

    #[test]
    fn the_next_lane_is_one_that_is_asked_for_or_that_a_conflict_allows() {
        let next = options(&["execute-lane", "p.toml", "--next"], "");
        assert_eq!((next.alone, next.lanes), (Alone::Next, Vec::new()));
        let preferred = options(&["execute-lane", "p.toml", "SL-1", "--on-lock-conflict", "next"], "");
        assert_eq!((preferred.alone, preferred.lanes), (Alone::Next, vec![LaneId::new("SL-1").unwrap()]));
        assert_eq!(options(&["execute-phase", "p.toml"], "on_lock_conflict = 'next'\n").alone, Alone::No);
    }

    #[test]
    fn every_option_of_a_run_comes_from_its_setting() {
        let config = "max_parallel = 3\nmerge = 'none'\nfail_fast = true\nworktree_root = 'w'\nkeep_pool = true\n\
                      keep_caches = true\ncheckpoint_tags = true\nbackoff = '2s'\nspecialist_timeout = '3s'\n\
                      on_orphan = 'stop'\ntimeout = '4s'\nmax_cost = 2.5\nmax_tokens = 1000\n";
        let expected = RunOptions {
            max_parallel: 3,
            merge: MergeMode::None,
            fail_fast: true,
            bisect_merges: false,
            gsd_tracking: false,
            must_haves: MustHavesRule::Report,
            lanes: vec![LaneId::new("a").unwrap(), LaneId::new("b").unwrap()],
            done: Vec::new(),
            worktree_root: "/r/w".into(),
            branch_suffix: String::new(),
            keep_pool: true,
            keep_caches: true,
            checkpoint_tags: true,
            backoff: Duration::from_secs(2),
            outage_limit: Duration::from_secs(3600),
            specialist_timeout: Duration::from_secs(3),
            on_orphan: OnOrphan::Stop,
            timeout: Some(Duration::from_secs(4)),
            next_phases: None,
            plan_format: None,
            budget: Budget { cost: Dollars::new(2.5), tokens: Some(1000) },
        };
        let found = options(&["execute-phase", "p.toml", "--lane", "a", "--lane", "b"], config);
        assert_eq!(found.run_options(), expected);
        assert_eq!(found.plan, Path::new("p.toml"));
    }

    #[test]
    fn a_session_is_the_one_named_or_a_new_one() {
        let named = ["execute-phase", "p.toml", "--session-id", "mine"];
        assert_eq!(options(&named, "").session_id, "mine");
        let new = || options(&["execute-phase", "p.toml"], "").session_id;
        assert_ne!(new(), new());
    }
}
