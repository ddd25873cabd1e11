//! Arguments of the commands that control a run: what becomes of its lanes, and which answers they get.

use clap::{Arg, Args, ValueEnum};
use lanewright_model::{Ci, HumanGate, LaneId};
use lanewright_plan::settings::{Layer, OnConflict, OnLockConflict, value};

use super::flags::{CostLimit, CountLimit, LIMITS, ProgressArgs, SESSION, flag, optional};
use super::{AgentArgs, LaneArgs, Name, RunArg, choice};

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
    #[command(flatten, next_help_heading = SESSION)]
    pub(crate) progress: ProgressArgs,
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

impl ControlArgs {
    /// The layer of settings that these flags make.
    pub(crate) fn layer(&self) -> Layer {
        Layer {
            session_id: optional("--session-id", &self.session_id),
            on_lock_conflict: flag("--on-lock-conflict", &self.on_lock_conflict),
            max_cost: flag("--max-cost", &self.max_cost),
            max_tokens: flag("--max-tokens", &self.max_tokens),
            state_remote: optional("--state-remote", &self.state_remote),
            exchange: optional("--exchange", &self.exchange),
            ci: flag("--ci", &self.ci),
            ..self.progress.layer()
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Stop {
    #[command(flatten)]
    pub(crate) target: LaneArgs,
    /// Kill the agents instead of asking them to end
    #[arg(long)]
    pub(crate) force: bool,
}

/// The gates of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GateName {
    /// After each task, in the agent's worktree.
    Atomic,
    /// After each agent is merged into its lane.
    Checkpoint,
    /// After the last lane, on the integration branch.
    Final,
    /// The tests of a lane, before it is merged.
    Tests,
}

impl GateName {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Atomic => "atomic",
            Self::Checkpoint => "checkpoint",
            Self::Final => "final",
            Self::Tests => "tests",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Gate {
    /// The gate
    #[arg(value_enum)]
    pub(crate) gate: GateName,
    #[command(flatten)]
    pub(crate) target: AgentArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// The run, or the beginning of its id [default: the one that waits]
    ///
    /// Or @latest, the newest run. The default is the unfinished run in which LANE waits.
    pub(crate) run: Option<Name>,
    /// The lane [default: the only one that waits]
    pub(crate) lane: Option<Name>,
    /// setup, plan, changes or a task [default: the only one]
    #[arg(long, value_name = "GATE")]
    pub(crate) gate: Option<HumanGate>,
    /// Text for the agents; required to reject
    #[arg(short, long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) message: String,
    #[command(flatten)]
    pub(crate) then: ThenResume,
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

#[derive(Debug, Args)]
pub(crate) struct Pick {
    #[command(flatten)]
    place: LaneArgs,
    /// The number of the candidate
    #[arg(value_name = "N")]
    number: Option<Name>,
    #[command(flatten)]
    pub(crate) then: ThenResume,
}

impl Pick {
    /// What names the lane, and the number behind it.
    pub(crate) fn names(&self) -> (Vec<&Name>, Option<&Name>) {
        let mut names: Vec<&Name> = self.place.names().into_iter().chain(&self.number).collect();
        let number = names.pop();
        (names, number)
    }
}

#[derive(Debug, Args)]
pub(crate) struct Tell {
    #[command(flatten)]
    pub(crate) target: LaneArgs,
    /// What to tell them
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) message: String,
}

/// Resuming at once, after another change to a run.
#[derive(Debug, Args)]
#[command(mut_arg("progress", |progress| progress.requires("resume")))]
pub(crate) struct ThenResume {
    /// Resume the run at once, if no process works on it
    #[arg(long)]
    pub(crate) resume: bool,
    /// Wait for further answers instead of ending
    ///
    /// When lanes need nothing else.
    #[arg(long, requires = "resume")]
    pub(crate) wait: bool,
    /// Run in the background; return once the run has begun
    ///
    /// Prints how to look at it and how to stop it. What keeps it from beginning is printed, with its exit code.
    #[arg(long, requires = "resume", help_heading = SESSION, hide_short_help = true)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}

impl ThenResume {
    /// The layer of settings that these flags make.
    pub(crate) fn layer(&self) -> Layer {
        self.progress.layer()
    }
}

#[derive(Debug, Args)]
#[command(mut_args(for_rollback))]
pub(crate) struct Rollback {
    #[command(flatten)]
    pub(crate) run: RunArg,
    /// Only this lane; repeatable
    #[arg(long = "lane", value_name = "LANE")]
    pub(crate) lanes: Vec<LaneId>,
    /// The point to take them back to: a stage, a task, or a snapshot or its tag
    ///
    /// A stage is after_lane_start, after_lane_tests or pre_pr; a task, which may be named AGENT/TASK, means the moment when it had passed; a snapshot has the names of `checkpoints list`.
    #[arg(long, value_name = "POINT", default_value = "before_lane_start")]
    pub(crate) to: String,
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
