//! Arguments of the commands that run something.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Arg, Args};
use lanewright_model::{Ci, Dollars, LaneId, MergeChoice, PlanFormat, RunId, Stage};
use lanewright_plan::settings::{Layer, OnConflict, OnLockConflict, Origin, Progress, Setting, absolute, value};

use super::{GlobalArgs, LaneArgs, Name, RunArg, choice};

/// Headings of the options, in the order in which help shows them.
const WHAT: &str = "What to run";
const HOW: &str = "How to run it";
const LIMITS: &str = "Limits";
const SESSION: &str = "Sessions and output";
const PLAN: &str = "Reading the plan";

/// Options of several commands that the short help of this one leaves out.
fn hide_rare(option: Arg) -> Arg {
    let is_rare = ["yes", "progress", "max_cost"].contains(&option.get_id().as_str());
    if is_rare { option.hide_short_help(true) } else { option }
}

#[derive(Debug, Args)]
#[command(mut_args(hide_rare))]
pub(crate) struct ExecutePhase {
    /// The plan, the directory of a GSD phase, or a roadmap
    ///
    /// The phases of a roadmap run one after the other.
    pub(crate) plan: PathBuf,
    /// Only this lane and what it depends on; repeatable
    #[arg(long = "lane", value_name = "LANE", help_heading = WHAT)]
    pub(crate) lanes: Vec<LaneId>,
    /// Plan to run after this one; repeatable
    #[arg(long = "next-phase", value_name = "PLAN", conflicts_with = "rollback", help_heading = WHAT,
        hide_short_help = true)]
    pub(crate) next_phases: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) execution: ExecutionArgs,
}

#[derive(Debug, Args)]
#[command(mut_args(hide_rare))]
pub(crate) struct ExecuteLane {
    /// The plan
    pub(crate) plan: PathBuf,
    /// The lane
    #[arg(required_unless_present = "next")]
    pub(crate) lane: Option<LaneId>,
    /// Run the first ready lane that no session is working on, instead of LANE
    #[arg(long, conflicts_with_all = ["lane", "resume", "rollback", "new_run"], help_heading = WHAT)]
    pub(crate) next: bool,
    #[command(flatten)]
    pub(crate) execution: ExecutionArgs,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct ReadingArgs {
    /// How the plan is written [default: detected from its text]
    #[arg(long, value_name = "FORMAT", value_parser = choice::<PlanFormat>(), help_heading = PLAN,
        hide_short_help = true)]
    pub(crate) plan_format: Option<PlanFormat>,
    /// Also run GSD plans that are already done
    #[arg(long, help_heading = PLAN, hide_short_help = true)]
    pub(crate) redo: bool,
    /// Treat missing parts of a Markdown plan as errors
    #[arg(long, help_heading = PLAN, hide_short_help = true)]
    pub(crate) strict: bool,
    /// Treat open interface gates without a provider as errors
    #[arg(long, help_heading = PLAN, hide_short_help = true)]
    pub(crate) strict_gates: bool,
    /// Run the plan even if it is marked retired
    #[arg(long, help_heading = PLAN, hide_short_help = true)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExecutionArgs {
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    /// The integration branch [default: the plan's]
    ///
    /// Without one in the plan, the current branch.
    #[arg(long, value_name = "BRANCH", value_parser = value::branch, help_heading = WHAT, hide_short_help = true)]
    pub(crate) base: Option<String>,
    /// How many agents may work at once
    ///
    /// Default: twice the number of processors, at least 4.
    #[arg(long, value_name = "N", value_parser = value::count, help_heading = HOW)]
    pub(crate) max_parallel: Option<NonZeroU32>,
    /// The runner of every agent without its own command
    #[arg(long, value_name = "NAME", value_parser = value::runner, help_heading = HOW)]
    pub(crate) runner: Option<String>,
    /// The executor of lanes that name none; `local` is this machine
    #[arg(long, value_name = "NAME", value_parser = value::runner, help_heading = HOW, hide_short_help = true)]
    pub(crate) executor: Option<String>,
    /// How often a failed attempt is repeated
    ///
    /// Default: each lane's own number.
    #[arg(long, value_name = "N", value_parser = value::number, help_heading = HOW, hide_short_help = true)]
    pub(crate) retries: Option<u32>,
    /// local, squash, rebase, ff, pr or none [default: local]
    ///
    /// How finished lanes reach the integration branch: `local` merges them into the integration branch, as `squash`, `rebase` and `ff` do in their ways; `pr` opens pull
    /// requests, `none` leaves their branches.
    #[arg(long, value_name = "HOW", value_parser = choice::<MergeChoice>(), help_heading = HOW,
        hide_possible_values = true)]
    pub(crate) merge: Option<MergeChoice>,
    /// The directory that holds the worktrees [default: a sibling of the repository]
    #[arg(long, value_name = "DIR", help_heading = HOW, hide_short_help = true)]
    pub(crate) worktree_root: Option<PathBuf>,
    /// Name of the run, new or to be resumed
    #[arg(long, value_name = "ID", help_heading = WHAT, hide_short_help = true)]
    pub(crate) run_id: Option<RunId>,
    /// Resume an unfinished run of this plan
    ///
    /// The latest of this plan and base, or the one of --run-id.
    #[arg(long, conflicts_with_all = ["rollback", "new_run"], help_heading = WHAT)]
    pub(crate) resume: bool,
    /// Reset the lanes, saving their work first
    #[arg(long, conflicts_with = "new_run", help_heading = WHAT, hide_short_help = true)]
    pub(crate) rollback: bool,
    /// Start beside an unfinished run
    ///
    /// The branches of its lanes get the run's name as a suffix.
    #[arg(long, help_heading = WHAT, hide_short_help = true)]
    pub(crate) new_run: bool,
    /// Let independent lanes continue when one fails (the default)
    #[arg(long, overrides_with = "fail_fast", help_heading = HOW, hide_short_help = true)]
    pub(crate) keep_going: bool,
    /// Stop everything when a lane fails
    #[arg(long, overrides_with = "keep_going", help_heading = HOW, hide_short_help = true)]
    pub(crate) fail_fast: bool,
    /// Find the merge that broke a lane's tests or the final gate
    #[arg(long, help_heading = HOW, hide_short_help = true)]
    pub(crate) bisect_merges: bool,
    /// Wait for your answers instead of ending
    ///
    /// When lanes need nothing else.
    #[arg(long, conflicts_with = "rollback", help_heading = HOW)]
    pub(crate) wait: bool,
    /// Show what would be done, and do nothing
    #[arg(long, conflicts_with = "resume", help_heading = WHAT)]
    pub(crate) dry_run: bool,
    /// Run in the background; return once the run has begun
    ///
    /// Prints how to look at it and how to stop it. What keeps it from beginning is printed, with its exit code.
    #[arg(long, help_heading = SESSION, hide_short_help = true, conflicts_with_all = ["dry_run", "rollback"])]
    pub(crate) detach: bool,
    /// How long the whole run may take, such as 90s or 2h
    #[arg(long, value_name = "DURATION", value_parser = value::limit, help_heading = LIMITS,
        hide_short_help = true)]
    pub(crate) timeout: Option<Limit>,
    /// Write a Chrome trace of the run to FILE, for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE", conflicts_with = "rollback", help_heading = SESSION, hide_short_help = true)]
    pub(crate) timings: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

pub(crate) type Limit = Option<Duration>;

pub(crate) type CostLimit = Option<Dollars>;

pub(crate) type CountLimit = Option<u64>;

#[derive(Debug, Args)]
pub(crate) struct ControlArgs {
    /// Continue although the plan changed since the run began
    #[arg(long, help_heading = SESSION, hide_short_help = true)]
    pub(crate) accept_plan_change: bool,
    /// The session that owns the run [default: a new one]
    #[arg(long, value_name = "ID", value_parser = value::session, help_heading = SESSION, hide_short_help = true)]
    pub(crate) session_id: Option<String>,
    /// What to do when a live session holds the run, the lane or the phase [default: fail]
    #[arg(long, value_name = "WHAT", value_parser = choice::<OnLockConflict>(), help_heading = SESSION,
        hide_short_help = true)]
    pub(crate) on_lock_conflict: Option<OnLockConflict>,
    /// What to do when files were changed in the run's worktrees while none of its processes ran [default: fail]
    #[arg(long, value_name = "WHAT", value_parser = choice::<OnConflict>(), default_value = "fail",
        hide_default_value = true, help_heading = SESSION, hide_short_help = true)]
    pub(crate) on_conflict: OnConflict,
    /// auto, live, plain, json or none [default: auto]
    #[arg(long, value_name = "HOW", value_parser = choice::<Progress>(), hide_possible_values = true,
        help_heading = SESSION)]
    pub(crate) progress: Option<Progress>,
    /// Start no more agents after this many US dollars
    ///
    /// Or `none`, which is the default.
    #[arg(long, value_name = "DOLLARS", value_parser = value::dollars_limit, help_heading = LIMITS)]
    pub(crate) max_cost: Option<CostLimit>,
    /// Start no more agents once this many tokens are used, or `none` [default: none]
    #[arg(long, value_name = "NUMBER", value_parser = value::count_limit, help_heading = LIMITS,
        hide_short_help = true)]
    pub(crate) max_tokens: Option<CountLimit>,
    /// The git remote that the state is pushed to while the run is worked on [default: none]
    #[arg(long, value_name = "NAME", value_parser = value::remote, help_heading = SESSION, hide_short_help = true)]
    pub(crate) state_remote: Option<String>,
    /// The git remote, by name or address, between this machine and executors [default: that of --state-remote]
    #[arg(long, value_name = "REMOTE", value_parser = value::exchange, help_heading = SESSION, hide_short_help = true)]
    pub(crate) exchange: Option<String>,
    /// CI service to report to when the run ends [default: auto]
    #[arg(long, value_name = "SERVICE", value_parser = choice::<Ci>(), help_heading = SESSION, hide_short_help = true)]
    pub(crate) ci: Option<Ci>,
    /// Do not ask for confirmation
    #[arg(long, help_heading = SESSION)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
#[command(mut_arg("yes", |yes| yes.hide_short_help(true)))]
pub(crate) struct Resume {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// How long the run may take from now on
    ///
    /// Such as 90s, 2h or none. Default: as long as when it began.
    #[arg(long, value_name = "DURATION", value_parser = value::limit, help_heading = LIMITS)]
    pub(crate) timeout: Option<Limit>,
    /// Add this text to the next prompt of each agent
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) message: String,
    /// Send the message only to this lane's agents
    #[arg(long, value_name = "LANE", requires = "message")]
    pub(crate) message_for: Option<LaneId>,
    /// Wait for your answers instead of ending
    ///
    /// When lanes need nothing else.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Run in the background; return once the run has begun
    ///
    /// Prints how to look at it and how to stop it. What keeps it from beginning is printed, with its exit code.
    #[arg(long, help_heading = SESSION, hide_short_help = true)]
    pub(crate) detach: bool,
    /// Only this lane and what it depends on; repeatable
    ///
    /// The others stay as they are.
    #[arg(long = "lane", value_name = "LANE")]
    pub(crate) lanes: Vec<LaneId>,
    /// Write a Chrome trace of the run to FILE, for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE", help_heading = SESSION, hide_short_help = true)]
    pub(crate) timings: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

#[derive(Debug, Args)]
#[command(mut_arg("yes", |yes| yes.hide_short_help(true)))]
pub(crate) struct Retry {
    /// [RUN] LANE...: a run, if the first word is one, and the lanes
    ///
    /// Without a run, the newest unfinished one, else the newest.
    #[arg(value_name = "RUN|LANE")]
    pub(crate) names: Vec<Name>,
    /// Add this text to the next prompts of the lanes
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) message: String,
    /// The prompt of the task that failed, from now on
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt_file: Option<PathBuf>,
    /// The runner of the agent that failed, from now on
    #[arg(long, value_name = "NAME", value_parser = value::runner)]
    pub(crate) runner: Option<String>,
    /// Wait for your answers instead of ending
    ///
    /// When lanes need nothing else.
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Skip {
    #[command(flatten)]
    pub(crate) target: LaneArgs,
    /// Why, for the record
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) message: String,
    #[command(flatten)]
    pub(crate) then: ThenResume,
}

/// Resuming at once, after another change to a run.
#[derive(Debug, Args)]
pub(crate) struct ThenResume {
    /// Resume the run at once, if no process works on it
    #[arg(long)]
    pub(crate) resume: bool,
    /// Wait for further answers instead of ending
    ///
    /// When lanes need nothing else.
    #[arg(long, requires = "resume")]
    pub(crate) wait: bool,
    /// auto, live, plain, json or none [default: auto]
    #[arg(long, value_name = "HOW", value_parser = choice::<Progress>(), hide_possible_values = true,
        requires = "resume")]
    pub(crate) progress: Option<Progress>,
}

#[derive(Debug, Args)]
#[command(mut_args(for_rollback))]
pub(crate) struct Rollback {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// Only this lane; repeatable
    #[arg(long = "lane", value_name = "LANE")]
    pub(crate) lanes: Vec<LaneId>,
    /// The stage to reset them to
    #[arg(long, value_name = "STAGE", value_parser = choice::<Stage>(), default_value = "before_lane_start")]
    pub(crate) to: Stage,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

/// A rollback means no run that is done unless it is named, and starts no agents.
fn for_rollback(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "run" => option
            .help("The run, or the beginning of its id [default: the only unfinished one]")
            .long_help("The run, or the beginning of its id\n\nOr @latest, the newest run. The default is the only unfinished run."),
        "yes" => option.help("Undo merged work without asking"),
        "max_cost" => option.hide_short_help(true),
        _ => option,
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Start a run; refuse if an unfinished one of the same plan and base exists.
    #[default]
    Start,
    /// Start a run beside an unfinished one.
    StartBeside,
    Resume,
    Rollback,
}

impl ExecutionArgs {
    /// What `--resume`, `--rollback` and `--new-run` ask for.
    pub(crate) fn intent(&self) -> Intent {
        match (self.resume, self.rollback, self.new_run) {
            (true, _, _) => Intent::Resume,
            (_, true, _) => Intent::Rollback,
            (_, _, true) => Intent::StartBeside,
            _ => Intent::Start,
        }
    }

    /// The layer of settings that these flags make; relative paths are seen from `directory`.
    pub(crate) fn layer(&self, directory: &Path) -> Layer {
        let own = Layer {
            base: optional("--base", &self.base),
            max_parallel: flag("--max-parallel", &self.max_parallel),
            runner: optional("--runner", &self.runner),
            retries: optional("--retries", &self.retries),
            executor: optional("--executor", &self.executor),
            merge: flag("--merge", &self.merge),
            worktree_root: flag("--worktree-root", &self.worktree_root),
            timeout: flag("--timeout", &self.timeout),
            bisect_merges: switch("--bisect-merges", self.bisect_merges, true),
            fail_fast: switch("--fail-fast", self.fail_fast, true).or(switch("--keep-going", self.keep_going, false)),
            ..Layer::default()
        };
        own.place_paths(|path| absolute(directory, path)).or(self.control.layer())
    }
}

impl ControlArgs {
    /// The layer of settings that these flags make.
    pub(crate) fn layer(&self) -> Layer {
        Layer {
            session_id: optional("--session-id", &self.session_id),
            on_lock_conflict: flag("--on-lock-conflict", &self.on_lock_conflict),
            progress: flag("--progress", &self.progress),
            max_cost: flag("--max-cost", &self.max_cost),
            max_tokens: flag("--max-tokens", &self.max_tokens),
            state_remote: optional("--state-remote", &self.state_remote),
            exchange: optional("--exchange", &self.exchange),
            ci: flag("--ci", &self.ci),
            ..Layer::default()
        }
    }
}

impl ThenResume {
    /// The layer of settings that these flags make.
    pub(crate) fn layer(&self) -> Layer {
        Layer { progress: flag("--progress", &self.progress), ..Layer::default() }
    }
}

impl Resume {
    /// The layer of settings that these flags make.
    pub(crate) fn layer(&self) -> Layer {
        Layer { timeout: flag("--timeout", &self.timeout), ..self.control.layer() }
    }
}

impl GlobalArgs {
    /// The layer of settings that these flags make; relative paths are seen from `directory`.
    pub(crate) fn layer(&self, directory: &Path) -> Layer {
        let layer = Layer {
            checkpoint_path: flag("--checkpoint-path", &self.checkpoint_path),
            log_path: optional("--log-path", &self.log_path),
            allow_unknown: switch("--allow-unknown", self.allow_unknown, true),
            ..Layer::default()
        };
        layer.place_paths(|path| absolute(directory, path))
    }
}

fn flag<T: Clone>(name: &'static str, value: &Option<T>) -> Option<Setting<T>> {
    value.clone().map(|value| Setting::new(value, Origin::Flag(name)))
}

fn optional<T: Clone>(name: &'static str, value: &Option<T>) -> Option<Setting<Option<T>>> {
    value.clone().map(|value| Setting::new(Some(value), Origin::Flag(name)))
}

fn switch(name: &'static str, given: bool, value: bool) -> Option<Setting<bool>> {
    given.then(|| Setting::new(value, Origin::Flag(name)))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::super::{Args, Command};
    use super::*;
    use lanewright_plan::settings::key::Kind;
    use lanewright_plan::settings::{Environment, KEYS, Key, Layers, Settings, Surroundings};

    fn parsed(flags: &[&str]) -> (GlobalArgs, ExecutionArgs) {
        let arguments = [&["lanewright", "execute-phase", "plan.toml"], flags].concat();
        let args = Args::try_parse_from(&arguments).unwrap_or_else(|error| panic!("{arguments:?}: {error}"));
        match args.command {
            Command::ExecutePhase(phase) => (args.global, phase.execution),
            other => panic!("{other:?}"),
        }
    }

    fn execution(flags: &[&str]) -> ExecutionArgs {
        parsed(flags).1
    }

    fn settings(flags: &[&str]) -> Settings {
        let directory = PathBuf::from("/repo/sub");
        let (global, execution) = parsed(flags);
        let layer = execution.layer(&directory).or(global.layer(&directory));
        let surroundings = Surroundings { repository: "/repo".into(), directory, home: None, cores: 4 };
        Layers::read(layer, &Environment::new(), &[], &surroundings).unwrap().resolve(None)
    }

    /// What to type after `flag`, and the value that must come of it.
    fn sample(key: &Key, flag: &str) -> (Vec<String>, String) {
        let typed = |text: &str| (vec![flag.to_owned(), text.to_owned()], text.to_owned());
        match key.kind {
            Kind::Text | Kind::List => typed("a-name"),
            Kind::Count | Kind::CountLimit => typed("17"),
            Kind::Dollars => typed("2.5"),
            Kind::Duration => typed("11m"),
            Kind::Choice(words) => typed(words()[0]),
            Kind::Path => (vec![flag.to_owned(), "../x".to_owned()], "/repo/x".to_owned()),
            Kind::Boolean => (vec![flag.to_owned()], (flag != "--keep-going").to_string()),
        }
    }

    #[test]
    fn clap_finds_no_contradiction() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_flag_sets_the_setting_that_it_is_documented_for() {
        for (key, flag) in KEYS.iter().flat_map(|key| key.flags.iter().map(move |flag| (key, *flag))) {
            let (typed, expected) = sample(key, flag);
            let typed: Vec<_> = typed.iter().map(String::as_str).collect();
            let row = settings(&typed).rows().into_iter().find(|row| row.key == key.name).unwrap();
            let value = row.value.as_str().map_or_else(|| row.value.to_string(), str::to_owned);
            assert_eq!((value, row.origin), (expected, Origin::Flag(flag)), "{flag}");
        }
    }

    #[test]
    fn no_flag_means_no_setting() {
        assert_eq!(execution(&[]).layer(Path::new("/")), Layer::default());
    }

    #[test]
    fn the_later_of_two_opposite_flags_counts() {
        assert!(settings(&["--keep-going", "--fail-fast"]).fail_fast.value);
        assert!(!settings(&["--fail-fast", "--keep-going"]).fail_fast.value);
    }

    #[test]
    fn a_run_begins_unless_something_else_is_asked_for() {
        let cases = [
            (["--yes"].as_slice(), Intent::Start),
            (&["--new-run"], Intent::StartBeside),
            (&["--resume", "--run-id", "r1"], Intent::Resume),
            (&["--rollback"], Intent::Rollback),
        ];
        for (flags, intent) in cases {
            assert_eq!(execution(flags).intent(), intent, "{flags:?}");
        }
    }
}
