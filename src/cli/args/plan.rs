//! Arguments of the commands that read and write plans.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use lanewright_model::plan::SharedFiles;
use lanewright_model::{LaneOrder, LaneSplit, PhaseId, PlanFormat};
use lanewright_plan::settings::Layer;

use super::flags::{PLAN, ProgressArgs, flag, optional, switch};
use super::{Name, choice};

#[derive(Debug, Subcommand)]
pub(crate) enum Plan {
    /// Validate a plan; report every problem with its location
    Check(PlanFile),
    /// Show lanes, waves, the critical path and ownership overlaps
    Show(PlanShow),
    /// Draw the dependencies between the lanes
    Graph(PlanGraph),
    /// Write the plan in the native format (TOML)
    Convert(PlanFile),
    /// Write the JSON Schema of the native format
    Schema,
    /// Write a commented plan to start from
    New(NewPlan),
}

#[derive(Debug, Args)]
pub(crate) struct NewPlan {
    /// The file
    #[arg(default_value = "plan.toml")]
    pub(crate) file: PathBuf,
    /// The id of the phase [default: P1]
    #[arg(long, value_name = "ID")]
    pub(crate) phase: Option<PhaseId>,
    /// Name of a lane; repeatable
    #[arg(long = "lane", value_name = "NAME")]
    pub(crate) lanes: Vec<String>,
    /// The runner of the agents [default: that of the settings, else claude]
    #[arg(long, value_name = "NAME")]
    pub(crate) runner: Option<String>,
    /// A command that must pass before a lane is merged
    #[arg(long, value_name = "COMMAND")]
    pub(crate) test: Option<String>,
    /// Make a lane of each open issue of the forge, in the order of their dependencies
    #[arg(long, value_name = "SOURCE", value_enum, conflicts_with = "lanes")]
    pub(crate) from: Option<PlanSource>,
    /// Only issues with this label; repeatable
    #[arg(long = "label", value_name = "LABEL", requires = "from")]
    pub(crate) labels: Vec<String>,
    /// Only issues of this milestone
    #[arg(long, value_name = "TITLE", requires = "from")]
    pub(crate) milestone: Option<String>,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
}

/// What a new plan is made of.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum PlanSource {
    /// Issues of GitHub or GitLab, through `gh` or `glab`
    Issues,
}

impl NewPlan {
    /// Whether it is left open what the plan is to say.
    pub(crate) fn says_nothing(&self) -> bool {
        self.phase.is_none() && self.lanes.is_empty() && self.runner.is_none() && self.test.is_none()
    }
}

#[derive(Debug, Args)]
pub(crate) struct PlanFile {
    /// The plan, a roadmap, or a directory with plans, such as `.`
    pub(crate) plan: PathBuf,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PlanShow {
    #[command(flatten)]
    pub(crate) file: PlanFile,
    /// Print the first prompt of each agent for each of its tasks instead
    #[arg(long)]
    pub(crate) prompts: bool,
    /// Print where the plan says each lane, order and gate
    #[arg(long, conflicts_with = "prompts")]
    pub(crate) explain: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanGraph {
    #[command(flatten)]
    pub(crate) file: PlanFile,
    /// The language of the drawing; with `--format json` it is JSON
    #[arg(long = "as", value_enum, default_value_t, value_name = "LANGUAGE")]
    pub(crate) language: GraphLanguage,
    /// Show the states of the lanes in this run
    #[arg(long)]
    pub(crate) run: Option<Name>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphLanguage {
    /// Graphviz.
    #[default]
    Dot,
    /// Mermaid, which GitHub and GitLab draw in Markdown.
    Mermaid,
    /// A picture for browsers.
    Svg,
    /// A list by wave, for terminals.
    Text,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(crate) struct ReadingArgs {
    /// How the plan is written [default: detected from its text]
    #[arg(long, value_name = "FORMAT", value_parser = choice::<PlanFormat>(), help_heading = PLAN,
        hide_short_help = true)]
    pub(crate) plan_format: Option<PlanFormat>,
    /// The part of a list to run: a tag of Task Master, an epic or label of Beads, a label, milestone or parent task of
    /// Backlog.md
    #[arg(long, value_name = "NAME", help_heading = PLAN, hide_short_help = true)]
    pub(crate) tag: Option<String>,
    /// Also run what is already done: lanes that an earlier run merged, GSD plans with a summary
    #[arg(long, help_heading = PLAN, hide_short_help = true)]
    pub(crate) redo: bool,
    /// Treat missing parts of a Markdown plan, and in `plan check` tasks of more than 10 minutes, as errors
    #[arg(long, help_heading = PLAN, hide_short_help = true)]
    pub(crate) strict: bool,
    /// auto, exclude or merge: lanes that own the same files [default: by the format]
    ///
    /// `exclude` runs them one after the other, `merge` side by side and merges what they changed, `auto` merges where the
    /// tests of both judge what is merged.
    #[arg(long, value_name = "HOW", value_parser = choice::<SharedFiles>(), help_heading = PLAN,
        hide_possible_values = true, hide_short_help = true)]
    pub(crate) shared_files: Option<SharedFiles>,
    /// file: run the lanes of a task list one after the other, as the list has them [default: by their dependencies]
    #[arg(long, value_name = "HOW", value_parser = choice::<LaneOrder>(), help_heading = PLAN,
        hide_possible_values = true, hide_short_help = true)]
    pub(crate) order: Option<LaneOrder>,
    /// p: make lanes of tasks of Spec Kit's first phases that are marked [P] and name different files
    #[arg(long, value_name = "HOW", value_parser = choice::<LaneSplit>(), help_heading = PLAN,
        hide_possible_values = true, hide_short_help = true)]
    pub(crate) split: Option<LaneSplit>,
    /// Leave out the tasks of a list that only a person can do, such as manual tests
    #[arg(long, help_heading = PLAN, hide_short_help = true)]
    pub(crate) skip_manual: bool,
    /// Wait for your approval of what was done at each checkpoint of a list
    #[arg(long, help_heading = PLAN, hide_short_help = true)]
    pub(crate) stop_at_checkpoints: bool,
    /// Treat open interface gates without a provider as errors
    #[arg(long, help_heading = PLAN, hide_short_help = true)]
    pub(crate) strict_gates: bool,
    /// Run the plan even if it is marked retired
    #[arg(long, help_heading = PLAN, hide_short_help = true)]
    pub(crate) force: bool,
}

impl ReadingArgs {
    /// The layer of settings that these flags make.
    pub(crate) fn layer(&self) -> Layer {
        Layer {
            shared_files: optional("--shared-files", &self.shared_files),
            lists_order: flag("--order", &self.order),
            lists_split: flag("--split", &self.split),
            lists_skip_manual: switch("--skip-manual", self.skip_manual, true),
            lists_stop_at_checkpoints: switch("--stop-at-checkpoints", self.stop_at_checkpoints, true),
            ..Layer::default()
        }
    }
}
