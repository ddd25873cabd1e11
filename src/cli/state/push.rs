//! `state push`: a run as it is now, to a remote.

use lanewright_engine::state_sync::{OwnPushes, Sent, Source, send};
use lanewright_git::{self as git, Remote};
use lanewright_model::RunId;
use lanewright_model::text::counted;
use serde_json::json;

use crate::cli::args::PushState;
use crate::cli::select::Selector;
use crate::cli::{ExitStatus, RepositoryContext, Result, host};

pub(super) fn run(within: &RepositoryContext, remote: &Remote, arguments: &PushState) -> Result<ExitStatus> {
    // Also what agents committed whose end no process has recorded.
    within.note_rescued(&git::bring_over_all(&within.repository)?);
    let run = Selector::new(&within.context, &within.state).run(arguments.run.run.as_ref())?;
    let sent = push(within, remote, &run, arguments.force)?;
    let (records, name) = (sent.manifest.records, remote.name());
    let count = counted(usize::try_from(records).unwrap_or(usize::MAX), "record");
    within.context.printer.print(
        format_args!("Pushed run {run} ({count}) to {name} as {}.\n", sent.reference),
        &json!({
            "run_id": run,
            "remote": name,
            "reference": sent.reference,
            "commit": sent.commit,
            "records": records,
        }),
    )
}

/// Pushes a run as it is now. With `force` whatever the remote has of it is overwritten.
pub(super) fn push(within: &RepositoryContext, remote: &Remote, run: &RunId, force: bool) -> Result<Sent> {
    let (directory, repository) = (within.state.run(run), within.repository.clone());
    let source =
        Source { repository, directory, run: run.clone(), host: host(), claim: None, pushes: OwnPushes::default() };
    let _pushing = within.activity(format_args!("Pushing run {run} to {}", remote.name()));
    Ok(send(&source, remote, force)?)
}
