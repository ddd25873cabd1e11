//! The executors of the settings, and the exchange through which this machine and their jobs reach each other.

use super::runs::did_you_mean;
use super::{Context, ExitStatus, Hint, RepositoryContext, Result};
use crate::git::Remote;
use crate::model::ExecutorSettings;

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
