//! What a power cut may have left of a run whose machine was started again (decision 50).

use std::path::Path;

use lanewright_engine::at_resume::{close_jobs_of_earlier_boot, publications};
use lanewright_engine::executor::Executor;
use lanewright_git::{self as git, Outage};
use lanewright_model::event::Event;
use lanewright_model::text::listed;

use super::lock::LockedRun;
use crate::cli::{ExitStatus, RepositoryContext, Result, now, owner};

/// How many files of a checkout are named.
const NAMED: usize = 20;

/// Whether the machine was started again since a process worked on the run.
pub(super) fn is_in_another_boot(within: &RepositoryContext, locked: &LockedRun) -> bool {
    locked.state.owner().is_some_and(|earlier| owner(&within.session_id).is_in_another_boot(earlier))
}

/// Repairs all of a run that is not resumed, and says what it repaired.
pub(super) fn recover(within: &RepositoryContext, locked: &LockedRun, executor: &Executor) -> Result<()> {
    restore_checkouts(within, locked);
    close_jobs_of_earlier_boot(&locked.state, &locked.directory)
        .map_err(|error| ExitStatus::Blocked.error(error.to_string()))?;
    for event in executor.recover_after_boot(&locked.state, &locked.records, outage(locked)) {
        if let Event::Noted { message, .. } = event {
            within.context.printer.note(message);
        }
    }
    Ok(())
}

/// Restores files in checkouts of the integration branch that a power cut took just after the run had published them.
pub(super) fn restore_checkouts(within: &RepositoryContext, locked: &LockedRun) {
    let branch = &locked.started.base_branch;
    let outage = outage(locked);
    let moves = publications(&locked.records, |at| outage.concerns(at));
    let restored = git::restore_published_files(&within.repository, branch, &moves, outage);
    let warnings = match restored {
        Ok(restored) => {
            let restored = restored.into_iter().filter(|(_, paths)| !paths.is_empty());
            restored.map(|(place, paths)| restored_message(&paths, &place)).collect()
        }
        Err(error) => vec![format!("cannot check {branch} for files that a power cut took: {}", error.with_remedy())],
    };
    warnings.iter().for_each(|warning| within.context.printer.warning(warning, &[]));
}

fn restored_message(paths: &[String], place: &Path) -> String {
    format!("restored {} in {} after a restart of the machine", listed(paths, NAMED), place.display())
}

/// When the machine stopped, as far as the run log shows.
pub(super) fn outage(locked: &LockedRun) -> Outage {
    Outage::after(locked.records.last().map_or_else(now, |record| record.at))
}
