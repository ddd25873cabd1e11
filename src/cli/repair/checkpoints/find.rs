//! Finds snapshots: those of a run, or the one with a name.

use lanewright_model::text::{counted, shell_line};
use lanewright_store::run_log;
use lanewright_view::history::snapshots::snapshots;

use crate::cli::args::Name;
use crate::cli::runs::RunRecords;
use crate::cli::select::Selector;
use crate::cli::snapshots::{Found, existing};
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result};

/// The run that was named, else the newest unfinished one, else the newest.
pub(super) fn records_of_named(within: &RepositoryContext, run: Option<&Name>) -> Result<RunRecords> {
    RunRecords::read(&within.context, &within.state, Selector::new(&within.context, &within.state).run(run)?)
}

/// The one snapshot of any run that `name` means.
pub(crate) fn named(within: &RepositoryContext, name: &str) -> Result<Found> {
    if let Some(place) = name.strip_prefix("latest:") {
        return latest(within, place);
    }
    let mut meant: Vec<(RunRecords, String)> = Vec::new();
    for run in within.state.runs()? {
        let directory = within.state.run(&run);
        // A log that cannot be read names no snapshot.
        let Ok(log) = run_log::read(&directory.log()) else { continue };
        let run = RunRecords::of(run, directory, log.records);
        let all = snapshots(&run.records, None);
        let references = all.iter().filter(|snapshot| snapshot.is_called(name)).map(|it| it.reference.clone());
        let references: Vec<String> = references.collect();
        if references.len() > 1 {
            return Err(ambiguous(name, &references));
        }
        meant.extend(references.into_iter().next().map(|reference| (run, reference)));
    }
    match meant.as_slice() {
        [(run, reference)] => {
            let found = existing(within, run)?.into_iter().find(|found| found.snapshot.reference == *reference);
            found.ok_or_else(|| gone(reference))
        }
        [] => Err(ExitStatus::InvalidState
            .error(format!("there is no snapshot `{name}` here"))
            .hint("to list them: lanewright checkpoints list")),
        several => Err(ambiguous(name, &several.iter().map(|(_, reference)| reference.clone()).collect::<Vec<_>>())),
    }
}

/// The newest snapshot of `LANE` or `LANE/AGENT` that can be read; a warning names newer ones that cannot.
fn latest(within: &RepositoryContext, place: &str) -> Result<Found> {
    let (lane, agent) = place.split_once('/').map_or((place, None), |(lane, agent)| (lane, Some(agent)));
    let all = existing(within, &records_of_named(within, None)?)?;
    let of_place = |found: &Found| {
        found.snapshot.lane.as_str() == lane
            && agent.is_none_or(|agent| found.snapshot.agent.as_ref().is_some_and(|name| name.as_str() == agent))
    };
    for found in all.into_iter().rev().filter(of_place) {
        match &found.damage {
            None => return Ok(found),
            Some(damage) => {
                within.context.printer.warning(format!("{} is damaged: {damage}", found.snapshot.name), &[]);
            }
        }
    }
    Err(ExitStatus::InvalidState.error(format!("{place} has no snapshot that can be read")))
}

fn ambiguous(name: &str, references: &[String]) -> anyhow::Error {
    let message = format!("`{name}` may mean {}", counted(references.len(), "snapshot"));
    let error = ExitStatus::Usage.error(message);
    references.iter().take(5).fold(error, |error, reference| error.hint(format!("one of them: {reference}")))
}

fn gone(reference: &str) -> anyhow::Error {
    let message = format!("the snapshot {reference} was removed: its lane is merged, or it was pruned");
    ExitStatus::InvalidState.error(message)
}

pub(super) fn ways_back(name: &str) -> [(&'static str, String); 3] {
    let restore =
        |more: &[&str]| shell_line(["lanewright", "checkpoints", "restore", name].iter().chain(more).copied());
    let branch = format!("restored/{name}");
    [
        ("into its worktree, saving its state first", restore(&[])),
        ("into a new directory", restore(&["--to", name])),
        ("as a branch", restore(&["--branch", &branch])),
    ]
}
