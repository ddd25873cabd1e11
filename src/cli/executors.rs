//! The executors of the settings, and the exchange through which this machine and their jobs reach each other.

use std::time::Duration;

use super::runs::did_you_mean;
use super::{CliError, Context, ExitStatus, Hint, RepositoryContext, Result, host, now};
use crate::git::Remote;
use crate::model::{ExecutorSettings, LaneId, RunId};
use crate::placement::lane_run;
use crate::state_sync::Ownership;
use crate::state_sync::lane_run::drop_all;

pub(super) fn named<'a>(within: &'a RepositoryContext<'_>, name: &str) -> Result<&'a ExecutorSettings> {
    let executors = &within.settings.executors;
    executors.get(name).map(|setting| &setting.value).ok_or_else(|| {
        let known: Vec<&str> = executors.keys().map(String::as_str).collect();
        let error = ExitStatus::Usage.error(format!("the settings have no executor `{name}`"));
        did_you_mean(error, name, &known, || {
            let known = if known.is_empty() { String::new() } else { format!("known: {}; or ", known.join(", ")) };
            Some(format!("{known}define [executors.{name}] in lanekeeper.toml (docs/clusters.md)"))
        })
    })
}

pub(super) fn exchange_of(within: &RepositoryContext<'_>) -> Result<String> {
    let settings = &within.settings;
    settings.exchange.value.clone().or_else(|| settings.state_remote.value.clone()).ok_or_else(|| {
        ExitStatus::Usage
            .error("no exchange is set, through which this machine and the jobs reach each other")
            .hint("name a git remote or its address: --exchange REMOTE, or `exchange` in lanekeeper.toml")
    })
}

/// The exchange as a remote, and the address by which jobs reach it.
pub(super) fn exchange(within: &RepositoryContext<'_>) -> Result<(Remote, String)> {
    let named = exchange_of(within)?;
    let remote = Remote::named_or_at(&within.repository, &named)?;
    let address = within.context.path_or_address(&remote.url().unwrap_or(named));
    Ok((remote, address))
}

/// The variables of jobs, with the values that they have here.
pub(super) fn variables(context: &Context, name: &str, settings: &ExecutorSettings) -> Result<Vec<(String, String)>> {
    let value = |text: &str| match text.strip_prefix('$') {
        None => Ok(text.to_owned()),
        Some(other) => {
            context.environment.get(other).and_then(|value| value.to_str()).map(str::to_owned).ok_or_else(|| {
                let message =
                    format!("the variable {other}, which [executors.{name}] takes a value from, is not set here");
                ExitStatus::Usage.error(message).hint(format!("set it: export {other}=…"))
            })
        }
    };
    settings.environment.iter().map(|(name, text)| Ok((name.clone(), value(text)?))).collect()
}

/// How long a command waits for the exchange that could do without it.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The right to place the lanes of `run`, on the exchange of the settings.
pub(super) fn ownership(within: &RepositoryContext<'_>, run: &RunId) -> Result<Ownership> {
    let remote = Remote::named_or_at(&within.repository, &exchange_of(within)?)?.within(LONGEST_WAIT);
    Ok(Ownership::new(&within.repository, &remote, run, (&host(), now())))
}

/// Takes the lanes of a run from the clone that places them, which can remove nothing of them from then on. `false`: none
/// places any, or that is unknown.
pub(super) fn take_over(within: &RepositoryContext<'_>, run: &RunId) -> bool {
    if within.settings.executors.is_empty() {
        return false;
    }
    let taken = ownership(within, run).and_then(|mut ownership| ownership.take());
    taken.unwrap_or_else(|error| {
        let reason = CliError::from(error).message;
        let message = format!("another clone may still place the lanes of run {run}: {reason}");
        within.context.printer.warning(message, &[]);
        false
    })
}

/// Removes the states of lanes that were rolled back from the exchange. Nothing depends on it: a state that stays is
/// replaced when the lane is offered again.
pub(super) fn remove_states(within: &RepositoryContext<'_>, run: &RunId, lanes: &[LaneId]) {
    let lanes: Vec<RunId> = lanes.iter().map(|lane| lane_run(run, lane)).collect();
    let removed = ownership(within, run).and_then(|mut ownership| drop_all(&mut ownership, &lanes));
    report_states(within, run, removed);
}

/// Removes from the exchange what this clone pushed for the lanes of a run, and all that it knows of it.
pub(super) fn remove_all_states<'a>(
    within: &RepositoryContext<'_>,
    run: &RunId,
    lanes: impl Iterator<Item = &'a LaneId>,
) {
    // Most runs never had an exchange.
    let Ok(mut ownership) = ownership(within, run) else { return };
    if !ownership.is_known().unwrap_or(false) {
        return;
    }
    let lanes: Vec<RunId> = lanes.map(|lane| lane_run(run, lane)).collect();
    let removed = ownership.begin().and_then(|_| drop_all(&mut ownership, &lanes));
    report_states(within, run, removed.and_then(|()| ownership.end()));
}

fn report_states(within: &RepositoryContext<'_>, run: &RunId, removed: Result<()>) {
    if let Err(error) = removed {
        let reason = CliError::from(error).message;
        let message = format!("the states of lanes of run {run} may still be on the exchange: {reason}");
        within.context.printer.warning(message, &[]);
    }
}
