//! Continues if git has lost objects: a power cut or a bad disk may take what a commit holds.

use lanewright_git::{self as git, GitError, Snapshot, SnapshotRequest};
use lanewright_model::event::Event;
use lanewright_model::{CommitId, LaneIndex};

use super::{Executor, ExecutorError};

impl Executor {
    /// The first of `points` that can be read, and events for the damaged ones before it.
    pub(super) fn first_intact(
        &self,
        lane: LaneIndex,
        agent: usize,
        points: Vec<CommitId>,
    ) -> Result<(CommitId, Vec<Event>), ExecutorError> {
        let damaged = git::damaged(&self.repository, &points)?;
        let mut events = Vec::new();
        for commit in points {
            let Some(error) = damaged.get(&commit) else { return Ok((commit, events)) };
            let agent = Some(self.plan.lane(lane).agents[agent].name.clone());
            let (lane, error) = (self.id(lane), error.clone());
            events.push(Event::SnapshotDamaged { lane, agent, commit, reference: String::new(), error });
        }
        let why: Vec<String> = damaged.values().cloned().collect();
        Err(ExecutorError::Precondition(format!(
            "no state that it could start again from can be read ({}); see what `git fsck` says, put the objects back \
             and resume",
            why.join("; ")
        )))
    }

    /// Keeps a worktree whose branch cannot be read, which was `error`: from its files alone, on top of what the run
    /// began with. What the files still hold is whole in git after it.
    pub(super) fn keep_afresh(
        &self,
        request: &SnapshotRequest<'_>,
        head: &CommitId,
        error: GitError,
    ) -> Result<Snapshot, ExecutorError> {
        if git::damaged(&self.repository, std::slice::from_ref(head))?.is_empty() {
            return Err(error.into());
        }
        let request = SnapshotRequest { head: &self.facts.base_commit, ..*request };
        Ok(git::snapshot_of_all_files(&self.repository, &request)?)
    }
}
