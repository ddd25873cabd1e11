//! What a resume does about changes that were made while the run was at rest (SPEC §9; seed 001, US-3.3), and about
//! worktrees, branches and claims that were removed.

use super::resume::{Control, Opened};
use super::site::{Site, now};
use super::watch::ports;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::engine::ports::Keeping;
use crate::event::{Event, SnapshotReason};
use crate::git::{self, Publication};
use crate::model::RunId;
use crate::model::text::shell_line;
use crate::recover::changes::{ExternalChange, UndoneMerge, external_changes};
use crate::settings::OnConflict;

/// How many files of a worktree are named.
const NAMED: usize = 20;

/// Warns of heads that moved; refuses changed files, or saves them; repairs what is missing. Returns the events that
/// record it.
pub(super) fn settle(
    context: &Context,
    site: &Site,
    run: &RunId,
    opened: &Opened,
    control: &Control,
) -> Result<Vec<Event>, CliError> {
    let ports = ports(site, &control.settings, &opened.started, &opened.plan, opened.directory.clone())?;
    let index_of = |lane, agent: Option<&_>| ports.index_file(lane, agent);
    let found = external_changes(&site.repository, &opened.state, &opened.records, &index_of)?;
    let mut events = Vec::new();
    for moved in found.moved {
        context.printer.warning(&moved, &[]);
        events.push(Event::Noted { lane: None, message: moved });
    }
    if control.on_conflict == OnConflict::Fail && !found.undone.is_empty() {
        return Err(work_is_gone(run, &opened.started.base_branch, &found.undone));
    }
    for undone in found.undone {
        context.printer.warning(&undone.message, &[]);
        events.push(Event::Noted { lane: Some(undone.lane), message: undone.message });
    }
    if control.on_conflict == OnConflict::Fail && !found.conflicts.is_empty() {
        return Err(refusal(run, &found.conflicts));
    }
    for change in found.conflicts {
        let Some(lane) = opened.state.find(&change.lane) else { continue };
        let reason = SnapshotReason::External;
        let keeping = Keeping { lane, agent: change.agent.as_ref(), at: now(), reason };
        let kept = ports.keep_worktree(&keeping, &change.worktree);
        let kept = kept.map_err(|error| {
            let message = format!("what was changed in {} cannot be kept: {error}", change.worktree.display());
            CliError::new(ExitStatus::Blocked, message)
        })?;
        context.printer.note(format!("{}; kept as {}", told(&change), kept.reference));
        let (lane, agent) = (change.lane, change.agent);
        let (commit, reference) = (kept.commit, kept.reference);
        events.push(Event::SnapshotTaken { lane, agent, reason, commit, reference });
    }
    // After the look at what was changed: what is opened again holds what is recorded, not what was there.
    events.extend(ports.repair_all(&opened.state));
    Ok(events)
}

/// Brings checkouts of the integration branch into step that were left half-way or behind, by a crash or by a `git switch`
/// during a publication. What prevents it is a warning: nothing is lost yet.
pub(super) fn settle_checkouts(context: &Context, site: &Site, branch: &str) {
    let warning = match git::settle_checkouts(&site.repository, branch) {
        Ok(Some(Publication::CheckedOutDirty { worktree, obstacles })) => obstacles.cannot_move(branch, &worktree),
        Ok(_) => return,
        Err(error) => format!("whether checkouts of {branch} are in step with it is unknown: {error}"),
    };
    context.printer.warning(&warning, &[]);
}

fn work_is_gone(run: &RunId, branch: &str, undone: &[UndoneMerge]) -> CliError {
    let list: Vec<&str> = undone.iter().map(|undone| undone.message.as_str()).collect();
    let message = format!("merged work was taken out of the integration branch:\n  {}", list.join("\n  "));
    let merges = undone.iter().map(|undone| undone.merge.short());
    let restore: Vec<&str> = ["git", "cherry-pick", "-m", "1"].into_iter().chain(merges).collect();
    let without = shell_line(["lanekeeper", "resume", run.as_str(), "--on-conflict", "override"]);
    CliError::new(ExitStatus::ExternalChanges, message)
        .hint(format!("to restore it, on {branch}: {}", shell_line(restore)))
        .hint(format!("to continue without it: {without}"))
}

fn refusal(run: &RunId, conflicts: &[ExternalChange]) -> CliError {
    let list: Vec<String> = conflicts.iter().map(told).collect();
    let message = format!("files of run {run} were changed while nothing of it was at work:\n  {}", list.join("\n  "));
    let go_on = shell_line(["lanekeeper", "resume", run.as_str(), "--on-conflict", "override"]);
    CliError::new(ExitStatus::ExternalChanges, message)
        .hint(format!("to save them in a snapshot and continue with them: {go_on}"))
        .hint("or put them back, then resume")
}

fn told(change: &ExternalChange) -> String {
    let whose = change.agent.as_ref().map_or_else(|| "the lane".to_owned(), ToString::to_string);
    let (named, more) = change.paths.split_at(change.paths.len().min(NAMED));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    format!("{} ({whose}): {}{more} in {}", change.lane, named.join(", "), change.worktree.display())
}
