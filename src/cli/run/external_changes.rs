//! What a resume does about changes that were made while the run was at rest (SPEC §9; seed 001, US-3.3), and about
//! worktrees, branches and claims that were removed.

use super::locked_run::LockedRun;
use super::request::Adoption;
use crate::cli::{ExitStatus, Hint, RepositoryContext, Result, now};
use crate::event::{Event, SnapshotReason};
use crate::executor::Keeping;
use crate::git::{self, Publication};
use crate::model::RunId;
use crate::model::text::{listed, shell_line};
use crate::projection::RunHistory;
use crate::recover::changes::{ExternalChange, UndoneMerge, external_changes};
use crate::settings::OnConflict;

/// How many files of a worktree are named.
const NAMED: usize = 20;

/// Warns of heads that moved; refuses changed files, or saves them; repairs what is missing. Returns the events that
/// record it.
pub(super) fn settle(
    within: &RepositoryContext<'_>,
    locked: &LockedRun,
    history: &RunHistory,
    adoption: &Adoption,
) -> Result<Vec<Event>> {
    let (context, run) = (within.context, &locked.started.run_id);
    let refuses = adoption.on_conflict == OnConflict::Fail;
    let executor = within.executor(&locked.started, &locked.plan)?;
    let found = external_changes(&within.repository, &locked.state, history)?;
    let mut events = Vec::new();
    for moved in found.moved {
        context.printer.warning(&moved, &[]);
        events.push(Event::Noted { lane: None, message: moved });
    }
    if refuses && !found.undone.is_empty() {
        return Err(work_is_gone(run, &locked.started.base_branch, &found.undone));
    }
    for undone in found.undone {
        context.printer.warning(&undone.message, &[]);
        events.push(Event::Noted { lane: Some(undone.lane), message: undone.message });
    }
    if refuses && !found.conflicts.is_empty() {
        return Err(refusal(run, &found.conflicts));
    }
    for change in found.conflicts {
        let Some(lane) = locked.state.find(&change.lane) else { continue };
        let reason = SnapshotReason::External;
        let keeping = Keeping { lane, agent: change.agent.as_ref(), at: now(), reason };
        let kept = executor.keep_worktree(&keeping, &change.worktree);
        let kept = kept.map_err(|error| {
            let message = format!("what was changed in {} cannot be kept: {error}", change.worktree.display());
            ExitStatus::Blocked.error(message)
        })?;
        context.printer.note(format!("{}; kept as {}", described(&change), kept.reference));
        let (lane, agent) = (change.lane, change.agent);
        let (commit, reference) = (kept.commit, kept.reference);
        events.push(Event::SnapshotTaken { lane, agent, reason, commit, reference });
    }
    // Only now: a worktree that is locked again holds what is recorded, not what was changed.
    events.extend(executor.repair_all(&locked.state));
    Ok(events)
}

/// Brings checkouts of the integration branch into step that were left half-way or behind, by a crash or by a `git switch`
/// during a publication. What prevents it is a warning: nothing is lost yet.
pub(super) fn settle_checkouts(within: &RepositoryContext<'_>, branch: &str) {
    warn_of_checkouts(within, branch, git::settle_checkouts(&within.repository, branch));
}

/// The same once no `git switch` can be under way, so that no note about the last publication is left.
pub(crate) fn settle_switches(within: &RepositoryContext<'_>, branch: &str) {
    warn_of_checkouts(within, branch, git::settle_switches(&within.repository, branch));
}

fn warn_of_checkouts(
    within: &RepositoryContext<'_>,
    branch: &str,
    settled: Result<Option<Publication>, git::GitError>,
) {
    let warning = match settled {
        Ok(Some(Publication::CheckedOutDirty { worktree, obstacles })) => obstacles.cannot_move(branch, &worktree),
        Ok(_) => return,
        Err(error) => format!("whether checkouts of {branch} are in step with it is unknown: {}", error.with_remedy()),
    };
    within.context.printer.warning(&warning, &[]);
}

fn work_is_gone(run: &RunId, branch: &str, undone: &[UndoneMerge]) -> anyhow::Error {
    let list: Vec<&str> = undone.iter().map(|undone| undone.message.as_str()).collect();
    let message = format!("merged work was taken out of the integration branch:\n  {}", list.join("\n  "));
    let pick = |picked: &mut dyn Iterator<Item = &String>| {
        shell_line(["git", "cherry-pick", "-m", "1"].into_iter().chain(picked.map(String::as_str)))
    };
    // Git takes a range and single commits together for one walk.
    let restore = match undone.iter().all(|undone| undone.picked.len() == 1) {
        true => pick(&mut undone.iter().flat_map(|undone| &undone.picked)),
        false => undone.iter().map(|undone| pick(&mut undone.picked.iter())).collect::<Vec<_>>().join(" && "),
    };
    let without = shell_line(["lanekeeper", "resume", run.as_str(), "--on-conflict", "override"]);
    ExitStatus::ExternalChanges
        .error(message)
        .hint(format!("to restore it, on {branch}: {restore}"))
        .hint(format!("to continue without it: {without}"))
}

fn refusal(run: &RunId, conflicts: &[ExternalChange]) -> anyhow::Error {
    let list: Vec<String> = conflicts.iter().map(described).collect();
    let message = format!("files of run {run} were changed while nothing of it was at work:\n  {}", list.join("\n  "));
    let go_on = shell_line(["lanekeeper", "resume", run.as_str(), "--on-conflict", "override"]);
    ExitStatus::ExternalChanges
        .error(message)
        .hint(format!("to save them in a snapshot and continue with them: {go_on}"))
        .hint("or restore them, then resume")
}

fn described(change: &ExternalChange) -> String {
    let whose = change.agent.as_ref().map_or_else(|| "the lane".to_owned(), ToString::to_string);
    format!("{} ({whose}): {} in {}", change.lane, listed(&change.paths, NAMED), change.worktree.display())
}
