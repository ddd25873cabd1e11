//! A run that no other process can touch.

use std::sync::Arc;

use lanewright_engine::at_resume::beginning;
use lanewright_model::event::{Record, RunStarted};
use lanewright_model::{Plan, RunId};
use lanewright_schedule::RunState;
use lanewright_store::{Journal, RunDirectory, RunLock};

use super::locks::{choosing, lock_branches, lock_run};
use crate::cli::repository_context::redactor;
use crate::cli::run::intent::{Adoption, Pinned, Pinning};
use crate::cli::wait_policy::retry_while_held;
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result};

pub(crate) struct LockedRun {
    pub(crate) directory: RunDirectory,
    /// The run log, open for more.
    pub(crate) journal: Journal,
    pub(crate) records: Arc<Vec<Record>>,
    pub(crate) started: RunStarted,
    pub(crate) plan: Arc<Plan>,
    /// What `plan.json` is to hold.
    pub(crate) plan_text: Vec<u8>,
    /// Whether another program changed `plan.json`, and that is accepted.
    pub(crate) edited: bool,
    /// The SHA-256 of the plan's file, where another plan is accepted.
    pub(crate) accepted: Option<String>,
    /// What the log adds up to.
    pub(crate) state: RunState,
    /// Of the run, and of the phase or of each lane: these only where no other run has the same branches.
    pub(crate) _locks: Vec<RunLock>,
}

impl LockedRun {
    /// The same run with another plan, whose text is to be that of `plan.json`.
    pub(crate) fn with_plan(
        self,
        within: &RepositoryContext,
        plan: Arc<Plan>,
        state: RunState,
        plan_text: Vec<u8>,
    ) -> Self {
        let journal = self.journal.redacting(redactor(&within.settings, &plan));
        Self { plan, plan_text, state, journal, ..self }
    }
}

/// Which branches of the phase a command touches that adopts a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Reach {
    /// Those of the run's own lanes.
    Own,
    /// Any: no other process may work on the phase.
    All,
}

/// Locks a run and replays it with the plan that it pinned, whatever became of the plan's file.
pub(crate) fn adopt(within: &RepositoryContext, run: &RunId, adoption: &Adoption, reach: Reach) -> Result<LockedRun> {
    let directory = within.state.run(run);
    if !within.state.has(run) {
        let message = format!("there is no run {run} here ({} is not its log)", directory.log().display());
        return Err(ExitStatus::InvalidState.error(message).hint("lanewright status lists the runs"));
    }
    directory.create()?;
    retry_while_held(&within.context, &within.settings, || adopt_now(within, run, adoption, reach))
}

fn adopt_now(within: &RepositoryContext, run: &RunId, adoption: &Adoption, reach: Reach) -> Result<LockedRun> {
    let directory = within.state.run(run);
    let mut locks = vec![lock_run(within, run)?];
    let (journal, records) = Journal::open(&directory.log())?;
    let started = beginning(run, &records)?.clone();
    let pinned = Pinning { within, adoption, started: &started, records: &records }.read()?;
    let Pinned { plan, state, text: plan_text, edited, accepted } = pinned;
    let journal = journal.redacting(redactor(&within.settings, &plan));
    if started.options.branch_suffix.is_empty() {
        let lanes = if reach == Reach::Own { started.options.lanes.as_slice() } else { &[] };
        locks.extend(choosing(&within.state, &plan.phase, || lock_branches(within, &plan, lanes, run))?);
    }
    let records = Arc::new(records);
    Ok(LockedRun { directory, journal, records, started, plan, plan_text, edited, accepted, state, _locks: locks })
}
