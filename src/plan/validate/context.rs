//! What validation asks the outside for.

use std::time::Duration;

use super::prompt::prompt;
use crate::model::CommandLine;
use crate::plan::Fallbacks;
use crate::plan::draft::LaneDraft;
use crate::plan::faults::Faults;
use crate::plan::source_text::value;

/// How prompt files are read.
pub(in crate::plan) type Load<'a> = dyn Fn(&str) -> Result<String, String> + 'a;

/// How a runner's command is found.
pub(in crate::plan) type Runners<'a> = dyn Fn(&str) -> Option<CommandLine> + 'a;

/// What validation asks the outside for, and where it leaves faults.
pub(in crate::plan) struct Context<'a> {
    pub(in crate::plan) faults: &'a Faults<'a>,
    pub(in crate::plan) load: &'a Load<'a>,
    pub(in crate::plan) runners: &'a Runners<'a>,
    pub(in crate::plan) fallbacks: Fallbacks<'a>,
    /// Whether an agent without a command and a runner is no fault of the plan.
    pub(in crate::plan) runner_may_be_unset: bool,
}

/// A lane whose agents and tasks are validated.
pub(super) struct LaneContext<'a> {
    pub(super) lane: &'a LaneDraft,
    pub(super) context: &'a Context<'a>,
    /// The prompt of agents and tasks that have none of their own.
    pub(super) prompt: String,
}

impl<'a> LaneContext<'a> {
    pub(super) fn new(lane: &'a LaneDraft, context: &'a Context<'a>) -> Self {
        let name = || value(&lane.name).or_else(|| value(&lane.id));
        let prompt = prompt(&lane.prompt, context).or_else(name).unwrap_or_default();
        Self { lane, context, prompt }
    }

    /// The time limit of tasks that have none of their own.
    pub(super) fn max_time(&self) -> Option<Duration> {
        value(&self.lane.max_time)
    }
}
