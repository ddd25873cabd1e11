//! What a worktree and its branch hold that the run did not leave there, kept before they are reset: a person may have worked
//! in a lane that rests, or in one that a resume did not compare with the run log.

use std::path::Path;

use lanewright_git::{self as git, GitError, Repository, Snapshot};
use lanewright_model::CommitId;
use lanewright_model::event::SnapshotReason;
use lanewright_model::text::listed;

use super::{Answer, Executor, LaneContext, SnapshotTarget};

/// The most files that a note names.
const NAMED: usize = 8;

/// What the run left in a worktree.
pub(super) struct Left {
    /// Where it left the worktree and its branch; everything before these commits is known, too.
    pub(super) commits: Vec<CommitId>,
    /// The files that differ from what it left: [`git::changed_by_hand`] where all that was written since the last gate is
    /// somebody's, [`git::unsaved`] where no agent has left anything.
    pub(super) files: fn(&Repository, &Path) -> Result<Vec<String>, GitError>,
}

impl Executor {
    /// Keeps what differs from what the run `left` in the worktree at `path`, of the agent or else of the lane, and on its
    /// branch.
    pub(super) fn keep_unsaved(
        &self,
        context: &LaneContext,
        agent: Option<usize>,
        path: Option<&Path>,
        left: &Left,
    ) -> Answer {
        let lane = context.lane;
        let branch = agent.map_or_else(|| self.lane_branch(lane), |agent| self.agent_branch(lane, agent));
        let name = agent.map(|agent| self.agent_name(lane, agent));
        let mut kept: Vec<(String, Snapshot)> = Vec::new();
        // One that cannot be read is left to the repairs.
        let there = path.and_then(|path| Some(self.repository.head_at(path).ok()?.commit));
        let tip = self.repository.branch_commit(&branch)?.filter(|tip| there.as_ref() != Some(tip));
        if let Some(tip) = tip.filter(|tip| !self.is_known(tip, left)) {
            let what = format!("{branch} was moved to {}", tip.short());
            kept.push((what, self.keep_commit(lane, &tip, context.at)?));
        }
        if let Some((path, there)) = path.zip(there) {
            let files = (left.files)(&self.repository, path)?;
            let what = match files.is_empty() {
                true => format!("{} was moved to {}", path.display(), there.short()),
                false => format!("{} in {}", listed(&files, NAMED), path.display()),
            };
            let is_new = || !self.is_known(&there, left) && !git::came_by_checkout(path, &there);
            if !files.is_empty() || is_new() {
                let reason = SnapshotReason::External;
                let target = SnapshotTarget { lane, agent: name.as_ref(), at: context.at, reason };
                kept.push((what, self.keep_worktree(&target, path)?));
            }
        }
        let events = kept.into_iter().flat_map(|(what, kept)| {
            let note = format!("changed by hand or by another program: {what}; saved as {}", kept.reference);
            let taken = self.taken(self.id(lane), name.clone(), SnapshotReason::External, kept);
            [taken, self.note(lane, note)]
        });
        Ok(events.collect())
    }

    /// A commit that cannot be read is not known.
    fn is_known(&self, commit: &CommitId, left: &Left) -> bool {
        left.commits.iter().any(|known| self.repository.is_ancestor(commit, known).unwrap_or(false))
    }
}
