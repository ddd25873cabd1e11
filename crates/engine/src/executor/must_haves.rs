//! Checks the must-haves of a lane in the commit at its head.

use std::sync::Arc;

use lanewright_agents::diagnose::{FileText, MAX_FILE_BYTES, check_must_haves};
use lanewright_git as git;
use lanewright_model::event::Event;
use lanewright_model::{LaneIndex, TreeEntry};
use lanewright_schedule::RunState;

use super::{Executor, Prepared, lane_head};

impl Executor {
    /// Reads what is committed, never the worktree: what an agent left there is not what is merged.
    pub(super) fn check_must_haves(self: &Arc<Self>, lane: LaneIndex, state: &RunState) -> Prepared {
        let head = lane_head(state, lane)?;
        let worktree = state.lane(lane).worktree().map(|worktree| worktree.path.clone());
        Ok(self.task(lane, state, move |executor| {
            let entries = executor.repository.entries(&head)?;
            let asked = &executor.plan.lane(lane).must_haves;
            let root = worktree.as_deref().unwrap_or(executor.repository.main_worktree());
            let uncommitted = |path: &str| match git::is_ignored(root, path) {
                Ok(true) => Some("git ignores it, so that it cannot be committed".to_owned()),
                _ => executor.why_left_out(lane, path),
            };
            let verdicts = check_must_haves(asked, &entries, &mut |entry| executor.text_of(entry), &uncommitted);
            Ok(vec![Event::MustHavesChecked { lane: executor.id(lane), head: head.clone(), verdicts }])
        }))
    }

    fn text_of(&self, entry: &TreeEntry) -> FileText {
        if entry.size > MAX_FILE_BYTES {
            return FileText::TooLarge;
        }
        match self.repository.contents(&entry.object) {
            Err(error) => FileText::Unreadable(error.to_string()),
            // Git's own test for binary files.
            Ok(bytes) if bytes.iter().take(8000).any(|&byte| byte == 0) => FileText::Binary,
            Ok(bytes) => FileText::Text(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }
}
