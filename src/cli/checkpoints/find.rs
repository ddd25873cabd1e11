//! Finding snapshots: of a run, or the one that a name means.

use std::collections::BTreeMap;

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::execution::Site;
use crate::cli::runs::{named_or_newest, pinned_plan, read_log};
use crate::event::{Event, Record, RunStarted};
use crate::git;
use crate::model::text::{counted, shell_line};
use crate::model::{CommitId, Plan, RunId};
use crate::settings::{Layer, Settings};
use crate::store::{RunDirectory, StateDirectory, run_log};
use crate::view::snapshots::{KeptSnapshot, snapshots};

/// The repository, its runs and the settings.
pub(super) struct Place {
    pub(super) site: Site,
    pub(super) settings: Settings,
    pub(super) state: StateDirectory,
}

/// What is known of one run.
pub(super) struct RunRecords {
    pub(super) run: RunId,
    pub(super) directory: RunDirectory,
    pub(super) plan: Option<Plan>,
    pub(super) records: Vec<Record>,
}

/// A snapshot whose ref is there, and the run that it belongs to.
pub(super) struct Found {
    pub(super) run: RunId,
    pub(super) snapshot: KeptSnapshot,
    /// What is wrong with it, if it cannot be read.
    pub(super) damage: Option<String>,
}

impl Place {
    pub(super) fn find(context: &Context) -> Result<Self, CliError> {
        let settings = context.layers(Layer::default())?.resolve(None);
        let site = Site::find(context)?;
        let state = site.state(&settings);
        Ok(Self { site, settings, state })
    }

    /// The run that was named, else the only unfinished one, else the newest.
    pub(super) fn records(&self, context: &Context, run: Option<&RunId>) -> Result<RunRecords, CliError> {
        let run = named_or_newest(&self.state, run)?;
        let directory = self.state.run(&run);
        let records = read_log(context, &directory)?.records;
        Ok(RunRecords { run, plan: pinned_plan(&directory), directory, records })
    }

    /// The run's snapshots whose refs are there, oldest first.
    pub(super) fn existing(&self, run: &RunRecords) -> Result<Vec<Found>, CliError> {
        let mut there = Vec::new();
        for snapshot in snapshots(&run.records, run.plan.as_ref()) {
            if self.is_there(&snapshot) {
                there.push(snapshot);
            }
        }
        let commits: Vec<CommitId> = there.iter().map(|snapshot| snapshot.commit.clone()).collect();
        let mut damage: BTreeMap<CommitId, String> = git::damaged(&self.site.repository, &commits)?;
        let found = |snapshot: KeptSnapshot| {
            let damage = damage.remove(&snapshot.commit);
            Found { run: run.run.clone(), snapshot, damage }
        };
        Ok(there.into_iter().map(found).collect())
    }

    /// A ref that leads to something that cannot be read is there too.
    fn is_there(&self, snapshot: &KeptSnapshot) -> bool {
        match self.site.repository.commit_at(&snapshot.reference) {
            Ok(at) => at.as_ref() == Some(&snapshot.commit),
            Err(_) => true,
        }
    }

    /// The one snapshot of any run that `name` means.
    pub(super) fn named(&self, context: &Context, name: &str) -> Result<Found, CliError> {
        if let Some(place) = name.strip_prefix("latest:") {
            return self.latest(context, place);
        }
        let mut meant: Vec<(RunRecords, String)> = Vec::new();
        for run in self.state.runs()? {
            let directory = self.state.run(&run);
            // A log that cannot be read names no snapshot.
            let Ok(log) = run_log::read(&directory.log()) else { continue };
            let run = RunRecords { run, plan: pinned_plan(&directory), directory, records: log.records };
            let all = snapshots(&run.records, None);
            let references = all.iter().filter(|snapshot| means(name, snapshot)).map(|it| it.reference.clone());
            let references: Vec<String> = references.collect();
            meant.extend(references.first().map(|reference| (run, reference.clone())));
            if references.len() > 1 {
                return Err(ambiguous(name, &references));
            }
        }
        match meant.as_slice() {
            [(run, reference)] => {
                let found = self.existing(run)?.into_iter().find(|found| found.snapshot.reference == *reference);
                found.ok_or_else(|| gone(reference))
            }
            [] => Err(CliError::new(ExitStatus::InvalidState, format!("there is no snapshot `{name}` here"))
                .hint("to see which there are: lanekeeper checkpoints list")),
            several => {
                Err(ambiguous(name, &several.iter().map(|(_, reference)| reference.clone()).collect::<Vec<_>>()))
            }
        }
    }

    /// The newest snapshot of `LANE` or `LANE/AGENT` that can be read; newer ones that cannot are told of.
    fn latest(&self, context: &Context, place: &str) -> Result<Found, CliError> {
        let (lane, agent) = place.split_once('/').map_or((place, None), |(lane, agent)| (lane, Some(agent)));
        let all = self.existing(&self.records(context, None)?)?;
        let of_place = |found: &Found| {
            found.snapshot.lane.as_str() == lane
                && agent.is_none_or(|agent| found.snapshot.agent.as_ref().is_some_and(|name| name.as_str() == agent))
        };
        for found in all.into_iter().rev().filter(of_place) {
            match &found.damage {
                None => return Ok(found),
                Some(damage) => context.printer.warning(format!("{} is damaged: {damage}", found.snapshot.name), &[]),
            }
        }
        Err(CliError::new(ExitStatus::InvalidState, format!("{place} has no snapshot that can be read")))
    }
}

/// The fewest digits of a commit that name it.
const SHORTEST_PREFIX: usize = 4;

fn means(name: &str, snapshot: &KeptSnapshot) -> bool {
    let prefix = name.len() >= SHORTEST_PREFIX && snapshot.commit.as_str().starts_with(name);
    let reference = snapshot.reference == name || snapshot.reference.strip_prefix("refs/") == Some(name);
    let tag = snapshot.reference.strip_prefix("refs/tags/") == Some(name);
    snapshot.name == name || reference || tag || prefix
}

fn ambiguous(name: &str, references: &[String]) -> CliError {
    let message = format!("`{name}` may mean {}", counted(references.len(), "snapshot"));
    let error = CliError::new(ExitStatus::Usage, message);
    references.iter().take(5).fold(error, |error, reference| error.hint(format!("one of them: {reference}")))
}

fn gone(reference: &str) -> CliError {
    let message = format!("the snapshot {reference} was removed: its lane is merged, or it was pruned");
    CliError::new(ExitStatus::InvalidState, message)
}

/// What a run began with.
pub(super) fn started(run: &RunRecords) -> Result<&RunStarted, CliError> {
    match run.records.first().map(|record| &record.event) {
        Some(Event::RunStarted(started)) => Ok(started),
        _ => Err(CliError::new(
            ExitStatus::Corrupted,
            format!("the log of run {} does not begin with its start", run.run),
        )),
    }
}

/// The command that shows a snapshot, and those that bring it back.
pub(super) fn ways_back(name: &str) -> [(&'static str, String); 3] {
    let restore =
        |more: &[&str]| shell_line(["lanekeeper", "checkpoints", "restore", name].iter().chain(more).copied());
    let branch = format!("restored/{name}");
    [
        ("into its worktree, keeping what is there", restore(&[])),
        ("into a new directory", restore(&["--to", name])),
        ("as a branch", restore(&["--branch", &branch])),
    ]
}
