//! The secrets of a run's plan, which no file of the run has (decision 0022).

use lanewright_model::event::RunStarted;
use lanewright_model::{Plan, Redactor};
use lanewright_plan::settings::Settings;
use lanewright_programs::process;
use lanewright_store::{RunDirectory, run_log};

use super::repository_context::redactor;
use super::run::PlanText;
use super::runs::{pinned_plan, started};

/// The plan with the secrets that it was stored without: from the plan's file as it is now, else from the environment,
/// which every job has anyway. What neither has stays withheld.
pub(super) fn with_secrets(settings: &Settings, started: &RunStarted, pinned: &Plan) -> Plan {
    if pinned.withheld().is_empty() {
        return pinned.clone();
    }
    // Only values of variables are taken, and other faults were judged when the run began.
    let lanes = pinned.lanes.iter().map(|lane| lane.id.to_string()).collect();
    let source = PlanText::read_of_run(settings, started, lanes, true).ok().and_then(|reading| reading.plan);
    pinned.with_secrets(|wanted| {
        let in_source = source.as_ref().and_then(|source| source.value_of(wanted));
        in_source.or_else(|| std::env::var(&wanted.name).ok())
    })
}

/// Removes the secrets of a run from what a command stores or prints, as far as its plan can be read; those of the
/// environment in any case.
pub(super) fn redactor_of_run(settings: &Settings, directory: &RunDirectory) -> Redactor {
    let Some(pinned) = pinned_plan(directory) else {
        return process::redactor([], settings.redacted_patterns());
    };
    // A run that was moved has its plan elsewhere.
    let wanted = |word: &str| ["run_started", "run_moved"].contains(&word);
    let records = run_log::read_some(&directory.log(), wanted).unwrap_or_default();
    let plan = started(&records).map(|started| with_secrets(settings, started, &pinned));
    redactor(settings, &plan.unwrap_or(pinned))
}
