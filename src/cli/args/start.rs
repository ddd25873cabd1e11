//! Arguments of the commands that start a run.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::{Arg, Args};
use lanewright_model::{LaneId, MergeChoice, RunId, SandboxChoice};
use lanewright_plan::settings::{Layer, absolute, value};

use super::choice;
use super::control::ControlArgs;
use super::flags::{HOW, LIMITS, Limit, SESSION, WHAT, flag, optional, switch};
use super::plan::ReadingArgs;

/// Options of several commands that the short help of this one leaves out.
fn hide_rare(option: Arg) -> Arg {
    let is_rare = ["yes", "progress", "max_cost"].contains(&option.get_id().as_str());
    if is_rare { option.hide_short_help(true) } else { option }
}

#[derive(Debug, Args)]
#[command(mut_args(hide_rare))]
pub(crate) struct ExecutePhase {
    /// The plan, a roadmap, or a directory with plans, such as `.`
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
    #[arg(long, conflicts_with_all = ["lane", "resume", "rollback", "new_run", "redo"], help_heading = WHAT)]
    pub(crate) next: bool,
    #[command(flatten)]
    pub(crate) execution: ExecutionArgs,
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
    /// off, auto or on [default: off]
    ///
    /// Whether agents, gates and set-up run in a sandbox, in which they write to their worktree only; with `on` no run starts
    /// where none can be built.
    #[arg(long, value_name = "WHEN", value_parser = choice::<SandboxChoice>(), help_heading = HOW,
        hide_possible_values = true, hide_short_help = true)]
    pub(crate) sandbox: Option<SandboxChoice>,
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
    /// With --merge pr: how long checks and reviews of pull requests are followed, such as 2h
    #[arg(long, value_name = "DURATION", value_parser = value::limit, help_heading = LIMITS,
        hide_short_help = true)]
    pub(crate) follow: Option<Limit>,
    /// Write a Chrome trace of the run to FILE, for Perfetto or chrome://tracing
    #[arg(long, value_name = "FILE", conflicts_with = "rollback", help_heading = SESSION, hide_short_help = true)]
    pub(crate) timings: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
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
            sandbox: flag("--sandbox", &self.sandbox),
            worktree_root: flag("--worktree-root", &self.worktree_root),
            timeout: flag("--timeout", &self.timeout),
            follow: flag("--follow", &self.follow),
            bisect_merges: switch("--bisect-merges", self.bisect_merges, true),
            fail_fast: switch("--fail-fast", self.fail_fast, true).or(switch("--keep-going", self.keep_going, false)),
            ..Layer::default()
        };
        own.place_paths(|path| absolute(directory, path)).or(self.control.layer()).or(self.reading.layer())
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::args::{Args, Command, GlobalArgs};
    use lanewright_plan::settings::key::Kind;
    use lanewright_plan::settings::{Environment, Invocation, KEYS, Key, Layers, Origin, Settings};

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
        let invocation = Invocation { repository: "/repo".into(), directory, home: None, cores: 4 };
        Layers::read(layer, &Environment::new(), &[], &invocation).unwrap().resolve(None)
    }

    /// What to type after `flag`, and the value that must come of it.
    fn sample(key: &Key, flag: &str) -> (Vec<String>, String) {
        let typed = |text: &str| (vec![flag.to_owned(), text.to_owned()], text.to_owned());
        match key.kind {
            Kind::Text | Kind::List | Kind::Table => typed("a-name"),
            Kind::Count | Kind::CountLimit => typed("17"),
            Kind::Dollars => typed("2.5"),
            Kind::Duration => typed("11m"),
            Kind::Size => typed("3MiB"),
            Kind::Choice(words) => typed(words()[0]),
            Kind::Path => (vec![flag.to_owned(), "../x".to_owned()], "/repo/x".to_owned()),
            Kind::Boolean => (vec![flag.to_owned()], (flag != "--keep-going").to_string()),
        }
    }

    #[test]
    fn arguments_pass_debug_assert() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_flag_sets_its_documented_setting() {
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
    fn last_of_opposite_flags_wins() {
        assert!(settings(&["--keep-going", "--fail-fast"]).fail_fast.value);
        assert!(!settings(&["--fail-fast", "--keep-going"]).fail_fast.value);
    }

    #[test]
    fn intent_is_start_unless_a_flag_changes_it() {
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
