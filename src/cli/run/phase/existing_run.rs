//! The run of a plan that exists already.

use lanewright_model::event::{RunOutcome, RunStarted};
use lanewright_model::text::shell_line;
use lanewright_model::{Plan, RunId};
use lanewright_store::run_log;

use super::run_intent::Progress;
use crate::cli::args::Intent;
use crate::cli::run::intent::{PlanFile, RunRequest};
use crate::cli::runs::{last_outcome, started, unfinished};
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result};

/// The run that was named, else the latest one of the plan on its base: an unfinished one before a complete one, which a
/// rollback never means by itself. One that was rolled back has to be named.
pub(super) fn latest_run(
    within: &RepositoryContext,
    request: &RunRequest,
    plan: &Plan,
) -> Result<Option<(RunId, Progress)>> {
    if let Some(run) = request.run_id.as_ref().filter(|_| request.intent != Intent::Start) {
        return Ok(Some((run.clone(), Progress::Unfinished)));
    }
    let (base, state) = (within.base_branch()?, &within.state);
    let covers = |run: &RunStarted| {
        let theirs = &run.options.lanes;
        theirs.is_empty() || request.lanes.iter().all(|lane| theirs.contains(lane))
    };
    let same = |run: &RunStarted| run.phase == plan.phase && run.base_branch == base && covers(run);
    if let Some((run, _)) = unfinished(state)?.into_iter().find(|(_, run)| same(run)) {
        return Ok(Some((run, Progress::Unfinished)));
    }
    if request.intent == Intent::Rollback {
        return Ok(None);
    }
    let decides = |word: &str| word.starts_with("run_") || ["lane_rolled_back", "rollback_begun"].contains(&word);
    let is_same = |run: &RunId| {
        let Ok(records) = run_log::read_some(&state.run(run).log(), decides) else { return false };
        started(&records).is_some_and(same) && last_outcome(&records) != Some(RunOutcome::RolledBack)
    };
    let mut runs = state.runs_of(&plan.phase)?.into_iter().map(|(_, run)| run);
    Ok(runs.find(is_same).map(|run| (run, Progress::Complete)))
}

pub(crate) fn no_run(within: &RepositoryContext, plan: &PlanFile, intent: Intent) -> Result<anyhow::Error> {
    let base = within.base_branch()?;
    if intent == Intent::Rollback {
        return Ok(ExitStatus::InvalidState
            .error(format!("there is no unfinished run of phase {} on {base} to roll back", plan.plan.phase))
            .hint("to roll back another one, name it: --run-id RUN"));
    }
    let start = shell_line(["lanewright", "execute-phase", &plan.path.to_string_lossy()]);
    Ok(ExitStatus::InvalidState
        .error(format!("there is no run of phase {} on {base} to resume", plan.plan.phase))
        .hint(format!("to begin one: {start}")))
}
