//! The command of an agent.

use super::context::LaneContext;
use super::order::called;
use crate::model::{CommandLine, UNSET_RUNNER};
use crate::plan::draft::AgentDraft;
use crate::plan::faults::quoted;
use crate::plan::source_text::At;

/// The runner of agents whose command the plan gives.
pub(in crate::plan) const NO_RUNNER: &str = "command";

/// The command and the runner of an agent, from the nearest place that names one: the agent, its lane, the defaults.
/// Where none does, the runner of a plan that cannot name one is [`UNSET_RUNNER`]. `declared` says that the plan names the agent.
pub(super) fn program(
    draft: &AgentDraft,
    declared: bool,
    around: &LaneContext<'_>,
) -> Option<(CommandLine, At<String>)> {
    let program = if draft.program.is_given() { &draft.program } else { &around.lane.program };
    if program.faulty {
        return None;
    }
    let fallbacks = &around.context.fallbacks;
    let of_settings = fallbacks.runner.map(|runner| At::new(runner.to_owned(), draft.span));
    match (&program.command, &program.runner) {
        (Some(command), None) => Some((command.value.clone(), At::new(NO_RUNNER.to_owned(), command.span))),
        (None, Some(runner)) => {
            let runner = of_settings.filter(|_| fallbacks.runner_outranks_plan).unwrap_or_else(|| runner.clone());
            Some((runner_command(None, &runner, around)?, runner))
        }
        (Some(command), Some(runner)) => Some((runner_command(Some(command), runner, around)?, runner.clone())),
        (None, None) => match of_settings {
            Some(runner) => Some((runner_command(None, &runner, around)?, runner)),
            None if around.context.runner_may_be_unset => {
                // It is never run: no run starts with an agent whose runner is not set.
                let nothing = CommandLine::Shell("false".to_owned());
                Some((nothing, At::new(UNSET_RUNNER.to_owned(), draft.span)))
            }
            None => {
                nothing_to_run(draft, declared, around);
                None
            }
        },
    }
}

fn runner_command(
    command: Option<&At<CommandLine>>,
    runner: &At<String>,
    around: &LaneContext<'_>,
) -> Option<CommandLine> {
    let faults = around.context.faults;
    let known = (around.context.runners)(&runner.value);
    if let Some(command) = command {
        if known.is_none() && runner.value != NO_RUNNER {
            let message = format!("there is no runner {}; only the command beside it is used", quoted(&runner.value));
            faults.warning(runner.span, message, "describe the runner, or leave `runner` out");
        }
        return Some(command.value.clone());
    }
    if known.is_none() {
        let message = format!("there is no runner {}", quoted(&runner.value));
        faults.error_with(runner.span, message, "name a runner that is described, or write a `command`");
    }
    known
}

fn nothing_to_run(draft: &AgentDraft, declared: bool, around: &LaneContext<'_>) {
    let lane = called(around.lane);
    let message = match &draft.name {
        Some(name) => format!("agent {} of lane {lane} has nothing to run", quoted(&name.value)),
        None if declared => format!("an agent of lane {lane} has nothing to run"),
        None => format!("lane {lane} has nothing to run"),
    };
    let help = "set `command` or `runner` in the agent, in the lane or in `[defaults]`";
    around.context.faults.error_with(draft.span, message, help);
}
