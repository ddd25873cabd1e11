//! Who does a lane, and what the execution policy tells the runner.

use super::context::Context;
use super::making::Making;
use super::policy::Policy;
use crate::plan::draft::ProgramDraft;
use crate::plan::faults::quoted;
use crate::plan::ids::as_id;
use crate::plan::source_text::At;
use crate::plan::validate::Runners;

/// Who does the lane, and whether that is somebody else than the policy asks for.
pub(super) fn program(making: &Making<'_>, policy: &Policy, id: &str) -> (ProgramDraft, bool) {
    let (context, nobody) = (making.context, ProgramDraft::default());
    let Some((name, at)) = policy.get("executor") else { return (nobody, false) };
    if let Some(wanted) = making.fallbacks.runner.filter(|_| making.fallbacks.runner_outranks_plan) {
        return (nobody, known_runner(name, making.runners).is_none_or(|runner| runner != wanted));
    }
    if let Some(runner) = known_runner(name, making.runners) {
        return (ProgramDraft { runner: Some(context.at(runner, at.clone())), ..nobody }, false);
    }
    let message = format!("lane {} is for {}, and there is no such runner", quoted(id), quoted(name));
    let help = format!("describe it under `[runners.{}]` in lanekeeper.toml", as_id(name).unwrap_or_default());
    if policy.get("unsupported").is_some_and(|(value, _)| value.eq_ignore_ascii_case("block")) {
        context.faults.error_with(
            context.span(at.clone()),
            message,
            format!("{help}, or write `unsupported=inherit_default`"),
        );
        return (ProgramDraft { faulty: true, ..nobody }, true);
    }
    context.warning(at.clone(), message, format!("{help}; until then the default runner does the lane"));
    (nobody, true)
}

/// The runner that is meant by the name of an executor.
fn known_runner(name: &str, runners: &Runners<'_>) -> Option<String> {
    let lower = name.to_lowercase();
    let other = match lower.replace('_', "-").as_str() {
        "claude-code" | "anthropic" => "claude",
        "openai" | "codex-cli" => "codex",
        "gemini-cli" | "google" => "gemini",
        _ => lower.as_str(),
    };
    [name, lower.as_str(), other].into_iter().find(|name| runners(name).is_some()).map(str::to_owned)
}

/// What the policy tells the runner. A model is the executor's own: another runner would not know it.
pub(super) fn environment(context: &Context<'_>, policy: &Policy, foreign: bool) -> Vec<(At<String>, String)> {
    let keys = [("model", "LANEKEEPER_MODEL"), ("effort", "LANEKEEPER_EFFORT"), ("work-unit", "LANEKEEPER_WORK_UNIT")];
    let told = keys.iter().filter(|(key, _)| !(foreign && *key == "model"));
    let pair = |(key, name): &(&str, &str)| {
        let (value, at) = policy.get(key)?;
        Some((context.at((*name).to_owned(), at.clone()), value.clone()))
    };
    told.filter_map(pair).collect()
}
