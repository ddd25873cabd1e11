//! What an agent's work reaches besides the files of its worktree: other checkouts, what runs elsewhere, submodules.

use std::path::Path;

use lanewright_git as git;
use lanewright_model::event::Event;
use lanewright_model::ownership::{Ownership, is_far_reaching};
use lanewright_model::text::listed;
use lanewright_model::{CommitId, Failure, FailureKind, JobId, JobRole, LaneIndex, OutsideChanges, TaskId};

use super::{Executor, Result};

/// How many commands or files a note names.
const NAMED: usize = 5;

/// Where no agent may change anything.
const OUTSIDE: &str = "another checkout of the repository, outside its worktree";

#[derive(Default)]
pub(super) struct Reach {
    pub(super) notes: Vec<Event>,
    /// Why the attempt fails.
    pub(super) failure: Option<Failure>,
}

impl Executor {
    /// Of an attempt whose work in `worktree` is committed: it began at `start`, was last seen at `recorded`, and `changed`
    /// these files up to `head`.
    pub(super) fn reach(
        &self,
        (lane, agent, task, attempt): (LaneIndex, usize, &TaskId, u32),
        worktree: &Path,
        [start, recorded, head]: [&CommitId; 3],
        changed: &[String],
    ) -> Result<Reach> {
        let name = self.agent_name(lane, agent);
        let mut reach = Reach::default();
        let role = JobRole::Attempt { agent: name.clone(), task: task.clone() };
        let outside = self.outside_calls(&JobId { lane: Some(self.id(lane)), role, number: attempt });
        if !outside.is_empty() {
            let calls = listed(&outside.iter().map(ToString::to_string).collect::<Vec<_>>(), NAMED);
            let message = format!("attempt {attempt} changed {OUTSIDE}: {calls}");
            if self.outside_changes == OutsideChanges::Fail {
                reach.failure = Some(Failure::new(FailureKind::Ownership, message));
                return Ok(reach);
            }
            reach.notes.push(self.note(lane, format!("{name}: {message}")));
        }
        if let Some(message) = self.manifest_leading_out(worktree, changed) {
            reach.failure = Some(Failure::new(FailureKind::Ownership, message));
            return Ok(reach);
        }
        let far = self.far_reaching(lane, worktree, changed);
        // Of what was committed before it was said.
        if !far.is_empty() && !self.repository.changed_paths(recorded, head)?.is_empty() {
            let names = listed(&far, NAMED);
            let message = format!("{name} changes {names}: look at that before the lane's work is used");
            reach.notes.push(self.note(lane, message));
        }
        let submodules = self.repository.keep_submodules(worktree, start, head)?;
        for (first, kept) in &submodules.new_files {
            let message = format!(
                "new files in a submodule ({first}, …) are not committed; the checkout's copy has them as {kept}"
            );
            reach.notes.push(self.note(lane, message));
        }
        if !submodules.lost.is_empty() {
            reach.failure = Some(Failure::new(FailureKind::Report, submodules.lost.join("; ")));
        }
        Ok(reach)
    }

    /// Those of the `changed` files that decide what runs elsewhere and that the lane does not own, and links that lead out of
    /// `worktree`.
    fn far_reaching(&self, lane: LaneIndex, worktree: &Path, changed: &[String]) -> Vec<String> {
        let owns = &self.plan.lane(lane).owns;
        let owned = Ownership::new(owns).ok().filter(|_| !owns.is_empty());
        let is_owned = |path: &str| owned.as_ref().is_some_and(|owned| owned.allows(path));
        let far = changed.iter().filter(|path| is_far_reaching(path) && !is_owned(path)).cloned();
        let links = changed.iter().filter(|path| git::is_link_out(worktree, path));
        far.chain(links.map(|path| format!("{path} (a link that leads out)"))).collect()
    }
}
