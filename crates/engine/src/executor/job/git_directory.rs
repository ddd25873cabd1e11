//! The git directory of an agent: given before its attempt, and taken over after it (decision 72).

use std::path::Path;

use lanewright_git::{self as git, LeftBehind};
use lanewright_model::event::Event;
use lanewright_model::job::TAIL_LINES;
use lanewright_model::{ExitCause, GitDirectory, JobExit, JobId};

use crate::executor::crash::{CrashPoint, crash_point};
use crate::executor::{Executor, LaneContext, Result};

/// The exit code of an attempt whose git directory is lost, and that would have passed otherwise.
const LOST: i32 = 1;

impl Executor {
    /// Gives an attempt that is about to begin a git directory of its own.
    pub(super) fn give_git_directory(&self, job: &JobId, worktree: &Path) -> Result<()> {
        if job.is_attempt() && self.facts.options.git_directory == GitDirectory::Private {
            git::make_private(&self.repository, worktree)?;
            crash_point(CrashPoint::GitDirectory("made"));
        }
        Ok(())
    }

    /// Takes over what the agent of an attempt that ended did with git, and makes its worktree lead to the repository again.
    /// An attempt whose git directory was removed or damaged fails.
    pub(super) fn take_git_directory(
        &self,
        job: &JobId,
        worktree: &Path,
        context: Option<&LaneContext>,
        exit: &mut JobExit,
        emit: &dyn Fn(Event),
    ) -> Result<()> {
        let (true, Some(context)) = (job.is_attempt(), context) else { return Ok(()) };
        let Some(taken) = git::take_over(&self.repository, worktree)? else { return Ok(()) };
        crash_point(CrashPoint::GitDirectory("taken_over"));
        self.keep_left_behind(context, job, &taken.left)?.into_iter().for_each(emit);
        let who = agent_of(job);
        if taken.removed {
            let what = "the git directory in which it worked was removed; its files are committed as they are";
            emit(self.note(context.lane, format!("{who}: {what}")));
        }
        if let Some((place, reason)) = &taken.kept {
            let place = place.display();
            emit(self.note(
                context.lane,
                format!("{who} left more than is kept: {reason}; its git directory is {place} now"),
            ));
        }
        git::restore_link(&self.repository, worktree)?;
        crash_point(CrashPoint::GitDirectory("led_back"));
        if let Some(reason) = taken.lost {
            let said = format!("what the agent committed cannot be taken over from its git directory: {reason}");
            if exit.passed() {
                exit.exit_code = LOST;
            }
            if exit.cause == ExitCause::Exited {
                exit.tail.drain(..(exit.tail.len() + 1).saturating_sub(TAIL_LINES));
                exit.tail.push(said.clone());
                exit.notes = said;
            }
        }
        Ok(())
    }

    /// Keeps what an attempt left in its git directory besides its branch.
    fn keep_left_behind(&self, context: &LaneContext, job: &JobId, left: &[LeftBehind]) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        for LeftBehind { name, commit } in left {
            if context.known.iter().any(|(_, known)| known == commit) {
                continue;
            }
            let kept = self.keep_commit(context.lane, commit, context.at)?;
            let what = match name.split_once('/').map(|(_, rest)| rest.split_once('/').unwrap_or((rest, ""))) {
                Some(("stash", _)) => "put work into `git stash`".to_owned(),
                Some(("heads", branch)) => format!("left the branch `{branch}`"),
                Some(("tags", tag)) => format!("left the tag `{tag}`"),
                _ => format!("left `{name}`"),
            };
            let agent = job.agent().cloned();
            let who = agent_of(job);
            let message = format!("{who} {what}; it is in its git directory only, and kept as {}", kept.reference);
            events.push(self.put_aside(context.lane, agent, kept));
            events.push(self.note(context.lane, message));
        }
        Ok(events)
    }
}

/// The name of the agent of an attempt.
fn agent_of(job: &JobId) -> String {
    job.agent().map_or_else(|| job.to_string(), ToString::to_string)
}
