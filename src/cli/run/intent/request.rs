//! What a command that runs a plan was asked for, apart from the settings.

use std::path::PathBuf;
use std::time::Duration;

use lanewright_model::event::{Event, RunOptions};
use lanewright_model::{Budget, Follow, ForgeChoice, LaneId, MergeMode, RetryLevel, RunId};
use lanewright_plan::settings::{OnConflict, OnLockConflict, Settings};

use crate::cli::args::{ControlArgs, ExecuteLane, ExecutePhase, ExecutionArgs, Intent, Recover, Retry, ThenResume};
use crate::cli::context::REPOSITORY_CONFIG;

/// Whether lanes run without the lanes that they depend on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Alone {
    /// A whole phase, or lanes with all they depend on.
    #[default]
    No,
    Lane,
    /// The next lane that is ready; one that was named is preferred.
    Next,
}

/// Which lanes a resume continues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ResumeReach {
    #[default]
    All,
    /// These and what they depend on.
    Only(Vec<LaneId>),
    /// All but those that failed or are blocked, and what depends on these.
    Unfailed,
    /// Those whose pull requests are open.
    Followed,
    /// Some that failed or are blocked, what they depend on, and what depends on them.
    Retry(Vec<LaneId>, Replacement),
}

impl ResumeReach {
    /// The lanes that the user asked to retry.
    pub(crate) fn retried(&self) -> &[LaneId] {
        match self {
            Self::Retry(lanes, _) => lanes,
            Self::All | Self::Only(_) | Self::Unfailed | Self::Followed => &[],
        }
    }
}

/// What a retry does in another way than the plan says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) runner: Option<String>,
    /// The text of a prompt.
    pub(crate) prompt: Option<String>,
}

/// What a command that adopts a run was asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Adoption {
    pub(crate) accept_plan_change: bool,
    pub(crate) on_conflict: OnConflict,
    /// Text for the agents' next prompts; may be empty.
    pub(crate) message: String,
    /// The lane whose agents see the message; `None`: all.
    pub(crate) message_for: Option<LaneId>,
    /// Whether the run stays while a lane waits for the user.
    pub(crate) wait: bool,
    /// Which lanes go on.
    pub(crate) reach: ResumeReach,
    /// What the next attempt of the lanes that are retried is for, if that was chosen.
    pub(crate) level: Option<RetryLevel>,
    /// How long pull requests are followed, if that was given; zero: the forge is asked once.
    pub(crate) follow: Option<Duration>,
    /// What the run log is to have together with the resume, and only if there is one.
    pub(crate) logged: Option<Event>,
}

impl Adoption {
    pub(crate) fn retry(lanes: Vec<LaneId>, arguments: &Retry, prompt: Option<String>) -> Self {
        let replacement = Replacement { runner: arguments.runner.clone(), prompt };
        Self {
            message: arguments.message.clone(),
            wait: arguments.wait,
            reach: ResumeReach::Retry(lanes, replacement),
            ..Self::of(&arguments.control)
        }
    }

    /// The next level of recovery of a lane, with what is known of its error; `logged` records it.
    pub(crate) fn recovery(lane: LaneId, arguments: &Recover, level: RetryLevel, logged: Event) -> Self {
        Self {
            message: arguments.error.clone(),
            wait: arguments.wait,
            reach: ResumeReach::Retry(vec![lane], Replacement::default()),
            level: Some(level),
            logged: Some(logged),
            ..Self::of(&arguments.control)
        }
    }

    /// After an answer: what it was given to and what is unfinished continues.
    pub(crate) fn after_answer(then: &ThenResume) -> Self {
        Self { reach: ResumeReach::Unfailed, ..Self::after_change(then) }
    }

    pub(crate) fn after_change(then: &ThenResume) -> Self {
        Self { wait: then.wait, ..Self::default() }
    }

    /// The words of the command that asks for the same of `run`, with `more` flags.
    pub(crate) fn command<'a>(&'a self, run: &'a RunId, more: &[&'a str]) -> Vec<&'a str> {
        let is_recovery = self.level.is_some();
        let flag = if is_recovery { "--error" } else { "-m" };
        let message = [flag, self.message.as_str()].into_iter().filter(|_| !self.message.trim().is_empty());
        let (name, lanes): (_, Vec<&str>) = match &self.reach {
            ResumeReach::All | ResumeReach::Unfailed => ("resume", Vec::new()),
            ResumeReach::Followed => ("follow", Vec::new()),
            ResumeReach::Only(lanes) => ("resume", lanes.iter().flat_map(|lane| ["--lane", lane.as_str()]).collect()),
            ResumeReach::Retry(lanes, _) if is_recovery => ("recover", lanes.iter().map(LaneId::as_str).collect()),
            ResumeReach::Retry(lanes, _) => ("retry", lanes.iter().map(LaneId::as_str).collect()),
        };
        let runner = match &self.reach {
            ResumeReach::Retry(_, replacement) => replacement.runner.as_deref(),
            _ => None,
        };
        let message_for = self.message_for.iter().flat_map(|lane| ["--message-for", lane.as_str()]);
        let runner = runner.into_iter().flat_map(|runner| ["--runner", runner]);
        [name, run.as_str()]
            .into_iter()
            .chain(lanes)
            .chain(message)
            .chain(message_for)
            .chain(runner)
            .chain(more.iter().copied())
            .collect()
    }

    pub(crate) fn of(control: &ControlArgs) -> Self {
        let ControlArgs { accept_plan_change, on_conflict, .. } = *control;
        Self { accept_plan_change, on_conflict, ..Self::default() }
    }
}

/// How far a rollback goes without a word of the user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Consent {
    /// The user said yes to what it undoes.
    pub(crate) yes: bool,
    pub(crate) dry_run: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RunRequest {
    /// Only these lanes; empty: all.
    pub(crate) lanes: Vec<LaneId>,
    /// Whether lanes run that an earlier run did: the named ones, else all.
    pub(crate) redo: bool,
    /// The part of the plan's list that is run.
    pub(crate) tag: Option<String>,
    pub(crate) alone: Alone,
    pub(crate) intent: Intent,
    pub(crate) run_id: Option<RunId>,
    pub(crate) adoption: Adoption,
    pub(crate) consent: Consent,
    /// The plans that come after this one; `None`: it is not part of a chain.
    pub(crate) next_phases: Option<Vec<PathBuf>>,
}

impl RunRequest {
    pub(crate) fn phase(arguments: &ExecutePhase) -> Self {
        Self::new(arguments.lanes.clone(), Alone::No, &arguments.execution)
    }

    pub(crate) fn lane(arguments: &ExecuteLane, settings: &Settings) -> Self {
        let any = arguments.next || settings.on_lock_conflict.value == OnLockConflict::Next;
        let alone = if any { Alone::Next } else { Alone::Lane };
        Self::new(arguments.lane.iter().cloned().collect(), alone, &arguments.execution)
    }

    fn new(lanes: Vec<LaneId>, alone: Alone, execution: &ExecutionArgs) -> Self {
        Self {
            lanes,
            alone,
            redo: execution.reading.redo,
            tag: execution.reading.tag.clone(),
            intent: execution.intent(),
            run_id: execution.run_id.clone(),
            adoption: Adoption { wait: execution.wait, ..Adoption::of(&execution.control) },
            consent: Consent { yes: execution.control.yes, dry_run: execution.dry_run },
            ..Self::default()
        }
    }

    /// Whether lanes that an earlier run did are all run again.
    pub(crate) fn is_all_again(&self) -> bool {
        self.intent == Intent::StartBeside || self.redo && self.lanes.is_empty()
    }

    /// The same for a later plan of the chain: runs and lanes are named for the first one only.
    pub(crate) fn later(&self, rest: Vec<PathBuf>) -> Self {
        Self { run_id: None, lanes: Vec::new(), next_phases: Some(rest), ..self.clone() }
    }

    /// What the run log keeps for the whole life of the run. Which lanes count as done, the suffix of branches and the
    /// plan's format, and git's settings, are found out when the run begins, and are left empty here.
    pub(crate) fn run_options(&self, settings: &Settings) -> RunOptions {
        // What says so is protected with what it names.
        let rule_file =
            settings.protect.value.iter().find(|globs| !globs.is_empty()).map(|_| REPOSITORY_CONFIG.to_owned());
        RunOptions {
            max_parallel: settings.max_parallel.value.get(),
            merge: settings.merge.value.mode(),
            merge_style: settings.merge.value.style().unwrap_or_default(),
            fail_fast: settings.fail_fast.value,
            bisect_merges: settings.bisect_merges.value,
            gsd_tracking: settings.gsd_tracking.value,
            must_haves: settings.must_haves.value,
            lanes: self.lanes.clone(),
            done: Vec::new(),
            worktree_root: settings.worktree_root.value.clone(),
            branch_prefix: settings.branch_prefix.value.clone().unwrap_or_default(),
            branch_suffix: String::new(),
            keep_pool: settings.keep_pool.value,
            keep_caches: settings.keep_caches.value,
            git_directory: settings.git_directory.value,
            protect: settings.protect.value.iter().flatten().cloned().chain(rule_file).collect(),
            checkpoint_tags: settings.checkpoint_tags.value,
            backoff: settings.backoff.value,
            outage_limit: settings.outage_limit.value,
            fallback_after: settings.fallback_after.value,
            follow: follow(settings, settings.follow.value).filter(|_| settings.merge.value.mode() == MergeMode::Pr),
            specialist_timeout: settings.specialist_timeout.value,
            on_orphan: settings.on_orphan.value,
            timeout: settings.timeout.value,
            next_phases: self.next_phases.clone(),
            placed_by: None,
            plan_format: None,
            plan_tag: self.tag.clone(),
            list_options: settings.list_options(),
            budget: Budget { cost: settings.max_cost.value, tokens: settings.max_tokens.value },
            git_settings: None,
        }
    }
}

/// How pull requests are followed for `time`, as the settings say otherwise.
pub(crate) fn follow(settings: &Settings, time: Option<Duration>) -> Option<Follow> {
    // A command opens pull requests and cannot merge them.
    let is_command = settings.pull_request_command.value.is_some()
        && matches!(settings.forge.value, ForgeChoice::Command | ForgeChoice::Auto);
    let (rounds, auto_merge) = (settings.follow_rounds.value, settings.auto_merge.value && !is_command);
    time.map(|time| Follow { time, rounds, auto_merge })
}

#[cfg(test)]
mod tests {

    use clap::Parser;

    use lanewright_model::{GitDirectory, LaneOrder, ListOptions};

    use super::*;
    use crate::cli::args::{Args, Command};
    use lanewright_model::{Dollars, MergeStyle, MustHavesRule, OnOrphan};
    use lanewright_plan::settings::{ConfigFile, Environment, Invocation, Layers};

    fn request(arguments: &[&str], config: &str) -> (RunRequest, Settings) {
        let arguments = [&["lanewright"], arguments].concat();
        let settings = |execution: &ExecutionArgs| {
            let invocation = Invocation { repository: "/r".into(), directory: "/r".into(), home: None, cores: 4 };
            let file = ConfigFile { path: "/r/lanewright.toml".into(), text: config.to_owned() };
            let layer = execution.layer(&invocation.directory);
            Layers::read(layer, &Environment::new(), &[file], &invocation).unwrap().resolve(None)
        };
        match Args::try_parse_from(arguments).unwrap().command {
            Command::ExecutePhase(phase) => (RunRequest::phase(&phase), settings(&phase.execution)),
            Command::ExecuteLane(lane) => {
                let settings = settings(&lane.execution);
                (RunRequest::lane(&lane, &settings), settings)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn execute_lane_requests_one_lane() {
        let lane = request(&["execute-lane", "p.toml", "SL-1"], "").0;
        let phase = request(&["execute-phase", "p.toml", "--lane", "SL-1"], "").0;
        assert_eq!(lane.lanes, [LaneId::new("SL-1").unwrap()]);
        assert_eq!((lane.alone, phase.alone), (Alone::Lane, Alone::No));
        assert_eq!(RunRequest { alone: Alone::No, ..lane }, phase);
    }

    #[test]
    fn next_lane_comes_from_flag_or_conflict_setting() {
        let next = request(&["execute-lane", "p.toml", "--next"], "").0;
        assert_eq!((next.alone, next.lanes), (Alone::Next, Vec::new()));
        let preferred = request(&["execute-lane", "p.toml", "SL-1", "--on-lock-conflict", "next"], "").0;
        assert_eq!((preferred.alone, preferred.lanes), (Alone::Next, vec![LaneId::new("SL-1").unwrap()]));
        assert_eq!(request(&["execute-phase", "p.toml"], "on_lock_conflict = 'next'\n").0.alone, Alone::No);
    }

    #[test]
    fn run_options_come_from_settings() {
        let config = "max_parallel = 3\nmerge = 'none'\nfail_fast = true\nworktree_root = 'w'\nkeep_pool = true\n\
                      keep_caches = true\ngit_directory = 'shared'\nbranch_prefix = 'bot/'\nprotect = ['.github/**']\ncheckpoint_tags = true\nbackoff = '2s'\nspecialist_timeout = '3s'\n\
                      on_orphan = 'stop'\ntimeout = '4s'\nmax_cost = 2.5\nmax_tokens = 1000\nlists = { order = 'file', skip_manual = true }\n";
        let expected = RunOptions {
            max_parallel: 3,
            merge: MergeMode::None,
            merge_style: MergeStyle::Merge,
            fail_fast: true,
            bisect_merges: false,
            gsd_tracking: false,
            must_haves: MustHavesRule::Paths,
            lanes: vec![LaneId::new("a").unwrap(), LaneId::new("b").unwrap()],
            done: Vec::new(),
            worktree_root: "/r/w".into(),
            branch_prefix: "bot/".to_owned(),
            branch_suffix: String::new(),
            keep_pool: true,
            keep_caches: true,
            git_directory: GitDirectory::Shared,
            protect: vec![".github/**".to_owned(), "lanewright.toml".to_owned()],
            checkpoint_tags: true,
            backoff: Duration::from_secs(2),
            outage_limit: Duration::from_secs(24 * 3600),
            fallback_after: Duration::from_secs(300),
            follow: None,
            specialist_timeout: Duration::from_secs(3),
            on_orphan: OnOrphan::Stop,
            timeout: Some(Duration::from_secs(4)),
            next_phases: None,
            placed_by: None,
            plan_format: None,
            plan_tag: None,
            list_options: ListOptions { order: LaneOrder::File, skip_manual: true, ..ListOptions::default() },
            budget: Budget { cost: Dollars::new(2.5), tokens: Some(1000) },
            git_settings: None,
        };
        let (found, settings) = request(&["execute-phase", "p.toml", "--lane", "a", "--lane", "b"], config);
        assert_eq!(found.run_options(&settings), expected);
    }
}
